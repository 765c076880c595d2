"""The networks: they learn what there is to learn, score as they were trained, and repeat."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from salticus.errors import ConfigError, InputError
from salticus.features.names import FeatureSet
from salticus.models.deep import DeepModel, Layout, SequenceModel
from salticus.models.training import deep
from salticus.models.training.deep import (
    OURS,
    PUBLISHED,
    TrainingRows,
    fit_deep,
    fit_sequence,
    layout_of,
    scales_of,
)
from salticus.models.training.network import first_weights, forward, jax_of
from salticus.types import Examples, Floats, Inputs, Metadata
from salticus.types.state import pack, unpack

NAMES = ("page_recent", "price", "hour")
PAGES, MERCHANTS, BUCKETS = 600, 40, 64
CHOICE = FeatureSet(NAMES, ("merchant", "title"))
SETTINGS = replace(
    OURS, hidden=(32, 16), batch=256, epochs=4, rate=3e-3, table_rate=0.1, round_rows=4000
)


def a_catalogue() -> Metadata:
    """Pages of 40 merchants; a title is one word that matters and one that tells the page."""
    chance = np.random.default_rng(3)
    codes = chance.integers(0, MERCHANTS, (PAGES, 1)).astype(np.int32)
    words = np.stack([np.arange(PAGES) % 8, 8 + np.arange(PAGES) % 56], axis=1).astype(np.int32)
    words[:20, 1] = -1
    return Metadata(codes, words, ("merchant",), (MERCHANTS + 4,), BUCKETS)


def some_rows(n: int, seed: int, depth: int = 0) -> tuple[Examples, Floats]:
    """Outcomes of a planted model, with its log-odds: merchant, word, hour and numbers matter."""
    chance, planted = np.random.default_rng(seed), np.random.default_rng(7)
    catalogue = a_catalogue()
    page = chance.integers(0, PAGES, n)
    recent, price = chance.exponential(50.0, n), chance.normal(size=n)
    hour = chance.integers(0, 24, n)
    steps = np.full((n, depth, 3), np.nan, dtype=np.float32)
    for k in range(depth):
        steps[chance.random(n) < 0.9, k] = 1.0
    odds = -1.0 - 0.8 * np.log1p(recent / 50.0) + 0.7 * price + (hour < 6)
    odds += planted.normal(size=MERCHANTS + 4)[catalogue.codes[page, 0]]
    odds += planted.normal(size=8)[page % 8]
    dense = np.stack([recent, price, hour], axis=1).astype(np.float32)
    dense[chance.random(n) < 0.1, 1] = np.nan
    label = (chance.random((n, 1)) < 1 / (1 + np.exp(-odds[:, None]))).astype(np.int8)
    inputs = Inputs(page, np.zeros(n, dtype=np.int64), dense, steps, NAMES)
    yes = np.ones(n, dtype=np.bool_)
    return Examples(inputs, label, np.ones(n), yes, yes, np.zeros(n, dtype=np.int64)), odds


def auc(model: DeepModel, rows: Examples) -> float:
    return float(roc_auc_score(rows.label[:, 0], model.logits(rows.inputs, a_catalogue())[:, 0]))


@pytest.fixture(scope="module")
def model() -> DeepModel:
    return fit_deep(some_rows(8000, 1)[0], some_rows(2000, 2)[0], a_catalogue(), CHOICE, SETTINGS)


def test_most_of_what_can_be_known_is_learnt(model: DeepModel) -> None:
    rows, odds = some_rows(4000, 4)
    best = roc_auc_score(rows.label[:, 0], odds)
    print(f"AUC {auc(model, rows):.3f} of {best:.3f}")
    assert auc(model, rows) - 0.5 > 0.9 * (best - 0.5)


def test_the_published_settings_train() -> None:
    small = replace(PUBLISHED, hidden=(32, 16), batch=64, epochs=2)
    train, validation = some_rows(8000, 1)[0], some_rows(2000, 2)[0]
    rows, odds = some_rows(4000, 4)
    found = auc(fit_deep(train, validation, a_catalogue(), CHOICE, small), rows)
    assert found - 0.5 > 0.8 * (roc_auc_score(rows.label[:, 0], odds) - 0.5)


def test_l1_makes_weights_zero() -> None:
    small = replace(PUBLISHED, hidden=(16,), batch=64, epochs=1, l1=3.0)
    made = fit_deep(some_rows(2000, 1)[0], some_rows(500, 2)[0], a_catalogue(), CHOICE, small)
    assert np.mean(made.weights_["layer0/weight"] == 0) > 0.3


def test_scoring_is_the_forward_pass_of_training() -> None:
    rows, catalogue = some_rows(300, 5, depth=8)[0], a_catalogue()
    layout = replace(layout_of(rows, catalogue, CHOICE, SETTINGS), steps=8, state=6)
    settings = replace(SETTINGS, spread=1.0)
    weights = {**scales_of(rows, layout), **first_weights(layout, settings)}
    model = SequenceModel(layout, weights)
    trainer = deep.Trainer(SequenceModel, layout, catalogue, settings)
    batch = trainer._columns(rows, 1.0) | weights
    batch |= {
        "codes": catalogue.codes[rows.inputs.page],
        "words": catalogue.words[rows.inputs.page],
    }
    batch["kept"] = np.ones((300, 2), dtype=np.float32)
    there = np.asarray(jax_of()[0].jit(forward, static_argnames="layout")(weights, batch, layout))
    here = model.logits(rows.inputs, catalogue)
    assert np.abs(here).max() > 0.1
    np.testing.assert_allclose(here, there, atol=1e-4)


def test_a_row_is_scored_alone(model: DeepModel) -> None:
    """However many rows, pages or cores there are."""
    rows, catalogue = some_rows(10_000, 6)[0].inputs, a_catalogue()
    whole = model.logits(rows, catalogue)
    fresh = DeepModel.of(model.settings(), model.arrays())
    part = fresh.logits(rows.take(np.arange(7)), catalogue)  # so few that pages are not all read
    np.testing.assert_allclose(part, whole[:7], atol=1e-5)


def test_a_model_survives_its_file(model: DeepModel) -> None:
    rows = some_rows(500, 6)[0].inputs
    again = DeepModel.of(model.settings(), unpack(pack({"m": model.arrays()}))["m"])
    assert again.logits(rows, a_catalogue()).tolist() == model.logits(rows, a_catalogue()).tolist()


def test_a_seed_fixes_every_weight(model: DeepModel) -> None:
    train, validation = some_rows(8000, 1)[0], some_rows(2000, 2)[0]
    again = fit_deep(train, validation, a_catalogue(), CHOICE, SETTINGS)
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    other = fit_deep(train, validation, a_catalogue(), CHOICE, replace(SETTINGS, seed=1))
    assert not np.array_equal(other.weights_["layer0/weight"], model.weights_["layer0/weight"])


def test_training_goes_on_where_it_was_stopped(model: DeepModel, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(text: str) -> None:
        seen.append(text)
        if len(seen) == 3:
            raise Stop

    seen: list[str] = []
    kept = replace(SETTINGS, folder=tmp_path)
    train, validation = some_rows(8000, 1)[0], some_rows(2000, 2)[0]
    with pytest.raises(Stop):
        fit_deep(train, validation, a_catalogue(), CHOICE, kept, stop)
    rest: list[str] = []
    again = fit_deep(train, validation, a_catalogue(), CHOICE, kept, rest.append)
    assert len(rest) == 8 - 3
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(again.arrays()[name], array)
    with pytest.raises(InputError, match="other rows or settings"):
        fit_deep(train, validation, a_catalogue(), CHOICE, replace(kept, rate=1.0))
    (tmp_path / "checkpoint.npz").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="not a checkpoint"):
        fit_deep(train, validation, a_catalogue(), CHOICE, kept)


def test_training_ends_when_validation_gets_worse() -> None:
    train, validation = some_rows(300, 1)[0], some_rows(2000, 2)[0]
    told: list[str] = []
    greedy = replace(SETTINGS, batch=64, rate=0.02, epochs=40, patience=2)
    made = fit_deep(train, validation, a_catalogue(), CHOICE, greedy, told.append)
    losses = [float(text.split("loss ")[1].split(",")[0]) for text in told]
    assert len(losses) < 40
    assert deep.log_loss(made, validation, a_catalogue()) == pytest.approx(min(losses), abs=1e-5)


def test_what_is_unknown_or_new_scores_finitely(model: DeepModel) -> None:
    rows, catalogue = some_rows(500, 6)[0].inputs, a_catalogue()
    blank = replace(rows, dense=np.full_like(rows.dense, np.nan))
    huge = replace(rows, dense=np.full_like(rows.dense, 3e38))
    new = replace(catalogue, codes=np.full_like(catalogue.codes, MERCHANTS + 3))
    untitled = replace(new, words=np.full_like(new.words, -1))
    for inputs in (blank, huge):
        assert np.isfinite(model.logits(inputs, untitled)).all()


def test_a_horizon_that_is_not_known_teaches_nothing() -> None:
    """Rows whose second horizon is unknown leave its weights as they would be without them."""
    train, validation = some_rows(2000, 1)[0], some_rows(500, 2)[0]
    both = replace(train, label=np.repeat(train.label, 2, axis=1))
    unknown = both.label.copy()
    unknown[:, 1] = -1
    settings = replace(SETTINGS, epochs=1)
    two = replace(validation, label=np.repeat(validation.label, 2, axis=1))
    made = fit_deep(replace(both, label=unknown), two, a_catalogue(), CHOICE, settings)
    start = first_weights(made.layout, settings)
    last = made.weights_["layer2/weight"], start["layer2/weight"]
    np.testing.assert_array_equal(last[0][:, 1], last[1][:, 1])
    assert not np.array_equal(last[0][:, 0], last[1][:, 0])


def test_weights_say_how_many_rows_a_row_stands_for() -> None:
    """Positives sampled one in four, weighted by four: the mean probability comes out right."""
    train, validation = some_rows(8000, 1)[0], some_rows(2000, 2)[0]
    kept = (train.label[:, 0] == 0) | (np.arange(8000) % 4 == 0)
    weight = np.where(train.label[:, 0] == 1, 4.0, 1.0)
    thinned = replace(train, weight=weight).take(kept)
    made = fit_deep(thinned, validation, a_catalogue(), CHOICE, SETTINGS)
    chance = 1 / (1 + np.exp(-made.logits(validation.inputs, a_catalogue())))
    assert chance.mean() == pytest.approx(validation.label.mean(), rel=0.1)


def with_gaps(n: int, seed: int) -> Examples:
    """Rows whose outcome hangs on whether the last gaps alternate, long and short."""
    rows = some_rows(n, seed)[0]
    chance = np.random.default_rng([seed, 9])
    steps = np.full((n, 9, 3), np.nan, dtype=np.float32)
    steps[:, 3:, 0] = chance.choice([1.0, 4.0], (n, 6))
    steps[:, 3:, 1:] = chance.normal(size=(n, 6, 2))
    turns = steps[:, -1, 0] != steps[:, -2, 0]
    label = (chance.random((n, 1)) < np.where(turns, 0.8, 0.2)[:, None]).astype(np.int8)
    return replace(rows, inputs=replace(rows.inputs, steps=steps), label=label)


def test_a_pattern_in_the_gaps_is_read() -> None:
    train, validation, rows = with_gaps(8000, 1), with_gaps(2000, 2), with_gaps(4000, 3)
    made = fit_sequence(train, validation, a_catalogue(), CHOICE, SETTINGS)
    plain = fit_deep(train, validation, a_catalogue(), CHOICE, replace(SETTINGS, epochs=1))
    assert auc(plain, rows) < 0.55
    assert auc(made, rows) > 0.75
    assert made.layout.steps == 8
    short = replace(rows.inputs, steps=rows.inputs.steps[:, :4])
    with pytest.raises(InputError, match="last 8 changes"):
        made.logits(short, a_catalogue())
    with pytest.raises(InputError, match="depth"):
        fit_sequence(some_rows(10, 1)[0], validation, a_catalogue(), CHOICE, SETTINGS)


def test_what_does_not_fit_the_model_is_refused(model: DeepModel) -> None:
    rows, catalogue = some_rows(10, 6)[0].inputs, a_catalogue()
    for wrong in (replace(catalogue, sizes=(3,)), replace(catalogue, buckets=3)):
        with pytest.raises(InputError, match=r"vocabulary|buckets"):
            model.logits(rows, wrong)
    with pytest.raises(InputError, match="hour"):
        model.logits(replace(rows, names=("page_recent", "price", "day")), catalogue)
    with pytest.raises(InputError, match="no rows"):
        TrainingRows(some_rows(0, 1)[0], SETTINGS)


def test_without_jax_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ConfigError, match=r"salticus\[deep\]"):
        jax_of()


def test_scoring_needs_no_jax() -> None:
    code = "import sys, salticus.models.deep; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_layouts_survive_json() -> None:
    layout = Layout(("a",), (0,), ("hour",), ("brand",), (9,), (4,), buckets=8, word=2)
    settings = {k: list(v) if isinstance(v, tuple) else v for k, v in
                DeepModel(layout, {}).settings().items()}  # fmt: skip
    assert Layout.of(settings) == layout
