"""The baselines: single frequencies, a line through all of them, Gamma posteriors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from salticus.features.names import FeatureSet
from salticus.models.linear import (
    GAMMA,
    HAN2019,
    NAMES,
    LinearModel,
    LinearSettings,
    columns_of,
    fit_linear,
)
from salticus.models.model import sigmoid
from salticus.types import Examples, Inputs, Metadata

COLUMNS = tuple(dict.fromkeys(column for name in NAMES for column in columns_of(name)))
NOTHING = Metadata(np.empty((0, 0), dtype=np.int32), np.empty((0, 0), dtype=np.int32), (), (), 0)
NONE = FeatureSet((), ())


def examples(columns: dict[str, np.ndarray], label: np.ndarray) -> Examples:
    rows = len(label)
    dense = np.full((rows, len(COLUMNS)), np.nan, dtype=np.float32)
    for name, column in columns.items():
        dense[:, COLUMNS.index(name)] = column
    place = np.arange(rows)
    inputs = Inputs(place, place, dense, np.empty((rows, 0, 3), dtype=np.float32), COLUMNS)
    yes = np.ones(rows, dtype=np.bool_)
    return Examples(inputs, label.astype(np.int8), np.ones(rows), yes, yes, place)


def frequent(rows: int = 2000, seed: int = 0) -> Examples:
    rng = np.random.default_rng(seed)
    columns = {name: rng.gamma(1.0, 0.01, rows) for name in COLUMNS}
    for name in COLUMNS:
        columns[name][rng.random(rows) < 0.1] = np.nan
    rate = np.nan_to_num(columns["page_month"])
    return examples(columns, (rng.random((rows, 2)) < -np.expm1(-24 * rate)[:, None]))


def fitted(train: Examples, which: str, edges: tuple[int, ...] = (6, 24)) -> LinearModel:
    settings = LinearSettings(which=which, edges=edges)
    return fit_linear(train, train, NOTHING, NONE, settings)


@pytest.mark.parametrize("which", NAMES)
def test_a_baseline_scores_and_is_its_arrays(which: str) -> None:
    train = frequent()
    model = fitted(train, which)
    odds = model.logits(train.inputs, NOTHING)
    assert odds.shape == (len(train), 2)
    assert np.isfinite(odds).all()
    again = LinearModel.of(model.settings(), model.arrays())
    order = np.arange(len(train))[::-1]
    assert np.array_equal(again.logits(train.inputs.take(order), NOTHING), odds[order])


@pytest.mark.parametrize("which", HAN2019)
def test_a_single_frequency_keeps_its_own_order(which: str) -> None:
    """Even where the labels say otherwise: the AUC is to be the feature's own."""
    train = frequent()
    contrary = replace(train, label=(1 - train.label).astype(np.int8))
    for examples_ in (train, contrary):
        column = examples_.inputs.column(which)
        known = ~np.isnan(column)
        odds = fitted(examples_, which).logits(examples_.inputs, NOTHING)[known, 0]
        ahead = odds[np.argsort(column[known], kind="stable")]
        assert (np.diff(ahead if not which.endswith("recent") else ahead[::-1]) >= 0).all()


def test_a_line_predicts_how_often() -> None:
    train = frequent(rows=5000)
    p = sigmoid(fitted(train, "combined").logits(train.inputs, NOTHING))[:, 0]
    happened = train.label[:, 0] == 1
    assert p.mean() == pytest.approx(happened.mean(), abs=0.005)
    known = ~np.isnan(train.inputs.column("page_month"))
    assert p[~known].mean() == pytest.approx(happened[~known].mean(), abs=0.02)  # unknown is a case
    half = p > np.median(p)
    assert p[half].mean() == pytest.approx(happened[half].mean(), abs=0.03)


@pytest.mark.parametrize("value", [0, 1])
def test_labels_that_are_all_alike_still_give_a_line(value: int) -> None:
    train = frequent(rows=200)
    odds = fitted(replace(train, label=np.full_like(train.label, value)), "page_day").logits(
        train.inputs, NOTHING
    )
    assert np.isfinite(odds).all()
    assert ((odds > 4) == bool(value)).all()


def gamma_world(rows: int, seed: int, memory: bool = True) -> tuple[Examples, np.ndarray]:
    """Rates from Gamma(2, 200 h); what each page's own hours have told; labels to the edges."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2.0, 1 / 200.0, rows)
    age = rng.choice([0.0, 24.0, 240.0, 2400.0], rows)
    changes = rng.poisson(rate * age).astype(np.float64)
    first = rng.exponential(1 / rate)
    label = np.stack([first < 6, np.where(first < 6, -1, first < 24)], axis=1)
    columns = {"page_changes": changes, "page_age": age}
    return examples(columns, label), rate


def test_gamma_recovers_prior_and_rates() -> None:
    train, rate = gamma_world(30_000, seed=0)
    model = fitted(train, GAMMA)
    a, b, _ = model.prior
    assert a / b == pytest.approx(0.01, rel=0.08)
    p = sigmoid(model.logits(train.inputs, NOTHING))
    old = train.inputs.column("page_age") == 2400
    assert p[old, 0].mean() == pytest.approx(-np.expm1(-6 * rate[old]).mean(), rel=0.05)
    assert np.corrcoef(p[old, 0], -np.expm1(-6 * rate[old]))[0, 1] > 0.9
    new = train.inputs.column("page_age") == 0
    assert np.ptp(p[new, 0]) == 0  # nothing known: the prior alone
    by_day = 1 - (1 - p[:, 0]) * (1 - p[:, 1])
    assert by_day.mean() == pytest.approx(-np.expm1(-24 * rate).mean(), rel=0.05)


def test_gamma_makes_up_for_what_visits_missed() -> None:
    """The month's bias-reduced rate is twice the rate as found: so are all changes counted."""
    label = np.zeros((2, 1))
    found = {"page_changes": 10.0, "page_age": 720.0, "page_month": np.array([0.01, np.nan])}
    two = examples({**found, "page_rate": np.array([0.02, np.nan])}, label)
    model = LinearModel(
        GAMMA, (6,), np.zeros((1, 0)), np.zeros((1, 0)), np.zeros(1), np.array([1e-9, 1e-9, 1e9])
    )
    p = sigmoid(model.logits(two.inputs, NOTHING))[:, 0]
    expected = [1 - (720 / 726) ** 20, 1 - (720 / 726) ** 10]
    assert p == pytest.approx(expected, rel=1e-3)
