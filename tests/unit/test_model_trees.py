"""Boosted trees: grown by scikit-learn, scored by our own arrays."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from salticus.errors import ConfigError
from salticus.features.names import FeatureSet
from salticus.models.training import trees
from salticus.models.training.boosting import TreesSettings, forest_of, told_nodes
from salticus.models.training.trees import encode, fit_trees, out_of_fold, refit_trees, totals
from salticus.models.trees import BLOCK, Encoding, TreesModel, dense_frame
from salticus.types import Examples, Floats32, Inputs, Metadata

NAMES = ("page_month", "all_month", "page_recent", "hour")
CHOICE = FeatureSet(NAMES, ("merchant", "title"))
SMALL = TreesSettings(trees=20, least=20, patience=5, smoothing=2.0)
WEIGHTED = replace(SMALL, weighted=True)


def inputs_of(dense: Floats32, page: np.ndarray) -> Inputs:
    rows = len(dense)
    return Inputs(
        page=page,
        hour=np.arange(rows, dtype=np.int64),
        dense=dense,
        steps=np.empty((rows, 0, 3), dtype=np.float32),
        names=NAMES,
    )


def world(rows: int = 3000, pages: int = 60, horizons: int = 2, seed: int = 0) -> Examples:
    """Pages change with their month's rate; the merchant (page % 6) matters too."""
    rng = np.random.default_rng(seed)
    dense = rng.gamma(1.0, 1.0, (rows, len(NAMES))).astype(np.float32)
    dense[rng.random(dense.shape) < 0.2] = np.nan
    page = rng.integers(0, pages, rows)
    odds = np.nan_to_num(dense[:, 0]) - 2.0 + 0.5 * (page % 6 == 0)
    label = (rng.random((rows, horizons)) < 1 / (1 + np.exp(-odds))[:, None]).astype(np.int8)
    for horizon in range(1, horizons):
        label[(label[:, :horizon] != 0).any(axis=1), horizon] = -1
    yes = np.ones(rows, dtype=np.bool_)
    return Examples(inputs_of(dense, page), label, np.ones(rows), yes, yes, page)


def metadata_of(pages: int = 60) -> Metadata:
    page = np.arange(pages, dtype=np.int32)
    words = np.stack([page % 7, np.where(page % 2, page % 11, -1)], axis=1).astype(np.int32)
    codes = np.stack([page % 6, page % 3], axis=1).astype(np.int32)
    return Metadata(codes, words, ("merchant", "country"), (8, 3), 16)


def fitted(settings: TreesSettings = SMALL) -> TreesModel:
    return fit_trees(world(), world(seed=1), metadata_of(), CHOICE, settings)


@pytest.fixture(scope="module")
def model() -> TreesModel:
    return fitted()


# ------------------------------------------------------------------------------------------ scoring


def test_the_arrays_score_as_the_estimator_does() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(3)
    x = rng.normal(size=(2000, 5)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    x[:, 4] = np.nan_to_num(x[:, 4])  # unknown in scoring alone
    y = np.nan_to_num(x[:, 0]) + x[:, 4] > rng.normal(size=2000)
    estimator = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(x, y)
    nodes = [trees[0].nodes for trees in estimator._predictors]
    forest = forest_of(nodes, float(estimator._baseline_prediction[0, 0]))
    asked = np.vstack([x, np.full((1, 5), np.nan), np.full((1, 5), 1e30)]).astype(np.float32)
    assert np.abs(forest.scores(asked) - estimator.decision_function(asked)).max() < 1e-6


def test_narrow_thresholds_part_rows_as_wide_ones_do() -> None:
    """A feature right at a threshold that no float32 is equal to."""
    wide = np.float64(0.1)  # below np.float32(0.1)
    names = ["is_leaf", "feature_idx", "num_threshold", "missing_go_to_left", "left", "right"]
    kinds = [(name, np.float64 if name == "num_threshold" else np.int64) for name in names]
    kinds += [("value", np.float64), ("depth", np.int64)]
    rows = [(0, 0, wide, 1, 2, 1, 0.0, 0), (1, 0, 0, 0, 0, 0, 5.0, 1), (1, 0, 0, 0, 0, 0, -5.0, 1)]
    forest = forest_of([np.array(rows, dtype=kinds)], 1.0)
    x = np.array([[np.float32(0.1)], [np.nextafter(np.float32(0.1), np.float32(0))], [np.nan]])
    assert forest.scores(x.astype(np.float32)).tolist() == [6.0, -4.0, -4.0]


def test_a_row_scores_the_same_in_any_company(model: TreesModel) -> None:
    examples, metadata = world(), metadata_of()
    all_rows = model.logits(examples.inputs, metadata)
    order = np.random.default_rng(0).permutation(len(examples))
    shuffled = model.logits(examples.inputs.take(order), metadata)
    assert np.array_equal(shuffled, all_rows[order])
    few = model.logits(examples.inputs.take(order[:7]), metadata)  # fewer rows than pages
    assert np.array_equal(few, all_rows[order[:7]])
    many = np.resize(order, BLOCK + 3)  # more than one block
    assert np.array_equal(model.logits(examples.inputs.take(many), metadata), all_rows[many])


def test_no_rows_no_scores(model: TreesModel) -> None:
    none = world().inputs.take(np.empty(0, dtype=np.int64))
    assert model.logits(none, metadata_of()).shape == (0, 2)


def test_a_model_is_its_settings_and_arrays(model: TreesModel) -> None:
    again = TreesModel.of(model.settings(), model.arrays())
    asked = world(seed=5).inputs
    assert np.array_equal(again.logits(asked, metadata_of()), model.logits(asked, metadata_of()))


def test_pairs_are_unknown_where_they_mean_nothing() -> None:
    dense = np.array([[6, 3], [6, 0], [np.nan, 2], [0, 2]], dtype=np.float32)
    found = dense_frame(dense, ("a", "b"), ("b",), (("ratio", "a", "b"),))
    expected = [[3, 2], [0, np.nan], [2, np.nan], [2, 0]]
    assert np.array_equal(found, np.array(expected, dtype=np.float32), equal_nan=True)


def test_a_page_is_drawn_to_its_kind_by_how_long_it_is_known() -> None:
    """Rate 0.01 an hour in a kind of rate 0.001: unknown, known for 30 days, known for ever."""
    names = ("page_all", "page_age", "merchant_month", "shelf_month", "merchant_ahead_24")
    ages = np.array([np.nan, 0, 720, 1e9], dtype=np.float32)
    dense = np.stack([np.full(4, 0.01), ages, np.full(4, 1e-3), np.full(4, np.nan)], axis=1)
    dense = np.hstack([dense, np.full((4, 1), 0.048)]).astype(np.float32)
    pairs = (("drawn_all", *names[:4]), ("paced_all", *names))
    found = dense_frame(dense, names, (), pairs)
    expected = [1e-3, 1e-3, (7.2 + 0.3) / (720 + 300), 0.01]
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5)
    np.testing.assert_allclose(found[:, 1], found[:, 0] * 48, rtol=1e-5)


def test_growing_anew_keeps_the_size_and_learns_what_is_new(model: TreesModel) -> None:
    later = world(rows=3000, seed=5)
    again = refit_trees(model, (world(), later), metadata_of(), SMALL)
    assert [len(f.root) for f in again.forests] == [len(f.root) for f in model.forests]
    assert not np.array_equal(again.forests[0].value, model.forests[0].value)


def test_growing_anew_has_the_fewest_trees_at_least(model: TreesModel) -> None:
    more = len(model.forests[0].root) + 5
    settings = replace(SMALL, trees=more, fewest=more)
    again = refit_trees(model, (world(), world(rows=500, seed=5)), metadata_of(), settings)
    assert len(again.forests[0].root) == more


def test_growing_anew_does_not_drown_the_latest_examples(
    model: TreesModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 3000 examples before 500 later ones a third is learnt from, and always the same third."""
    train, later = world(rows=3000), world(rows=500, seed=5)
    monkeypatch.setattr(trees, "_ENOUGH", 100)
    some = trees._some(train, 1000, SMALL.seed)
    assert len(some) == 1000
    assert len(np.unique(some.inputs.dense, axis=0)) == 1000
    found = [
        refit_trees(model, (rows, later), metadata_of(), SMALL).forests[0].value
        for rows in (train, train, some, world(rows=1000))
    ]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[3])


def test_growing_anew_leaves_a_horizon_that_no_row_knows() -> None:
    first, second = (
        replace(rows, label=np.where([True, False], rows.label, -1).astype(np.int8))
        for rows in (world(), world(seed=1))
    )
    once = fit_trees(first, second, metadata_of(), CHOICE, SMALL)
    again = refit_trees(once, (first, second), metadata_of(), SMALL)
    assert len(again.forests[1].root) == 0
    assert again.forests[1].baseline == once.forests[1].baseline


# ----------------------------------------------------------------------------------------- training


def test_training_learns_what_matters(model: TreesModel) -> None:
    asked = world(rows=2000, seed=9)
    odds = model.logits(asked.inputs, metadata_of())[:, 0]
    happened = asked.label[:, 0] == 1
    ranks = np.argsort(np.argsort(odds)) + 1.0
    n = happened.sum()
    auc = (ranks[happened].sum() - n * (n + 1) / 2) / (n * (len(odds) - n))
    assert auc > 0.65


def test_the_same_seed_grows_the_same_trees(model: TreesModel) -> None:
    again = fitted().arrays()
    assert all(np.array_equal(again[name], array) for name, array in model.arrays().items())
    other = fitted(replace(SMALL, seed=1)).arrays()
    assert not np.array_equal(other["0.feature"], model.arrays()["0.feature"])


def test_later_examples_stop_the_growth() -> None:
    """Validation labels that contradict the training ones leave (almost) no tree."""
    train = world()
    against = replace(train, label=np.where(train.label == 1, 0, 1).astype(np.int8))
    stopped = fit_trees(train, against, metadata_of(), CHOICE, SMALL)
    assert len(stopped.forests[0].root) == 0
    assert len(fitted().forests[0].root) > 3


def test_rows_that_are_not_at_risk_teach_nothing() -> None:
    train = world(horizons=2)
    gone = train.label[:, 1] < 0
    dense = np.where(gone[:, None], np.float32(7.0), train.inputs.dense)
    moved = replace(train, inputs=replace(train.inputs, dense=dense))
    one, other = (fit_trees(t, world(seed=1), metadata_of(), CHOICE, SMALL) for t in (train, moved))
    assert np.array_equal(one.forests[1].threshold, other.forests[1].threshold)


def test_examples_that_are_all_alike_give_their_rate() -> None:
    train = world()
    never = replace(train, label=np.zeros_like(train.label))
    odds = fit_trees(never, never, metadata_of(), CHOICE, SMALL).logits(train.inputs, metadata_of())
    assert np.ptp(odds) == 0
    assert odds[0, 0] < -7


def test_a_feature_of_which_nothing_is_known_is_passed_over() -> None:
    train = world()
    dense = train.inputs.dense.copy()
    dense[:, 1] = np.nan
    blind = replace(train, inputs=replace(train.inputs, dense=dense))
    model = fit_trees(blind, world(seed=1), metadata_of(), CHOICE, SMALL)
    used = set(model.forests[0].feature[model.forests[0].threshold < np.inf].tolist())
    assert 0 in used
    assert 1 not in used


def test_a_feature_that_has_moved_away_is_passed_over() -> None:
    """What tells training from validation rows, as the age of pages does, is the season's."""
    later = world(seed=1)
    dense = later.inputs.dense.copy()
    dense[:, 0] += 5.0  # the feature that matters most
    moved = replace(later, inputs=replace(later.inputs, dense=dense))
    for drift, passed in ((0.65, True), (1.0, False)):
        grown = replace(SMALL, drift=drift, patience=20, pairs=False)
        forest = fit_trees(world(), moved, metadata_of(), CHOICE, grown).forests[0]
        assert (0 not in forest.feature[forest.threshold < np.inf]) == passed


def test_weights_count_as_copies() -> None:
    train, later = world(rows=800), world(seed=1)
    empty = later.take(np.empty(0, dtype=np.int64))
    happened = train.label[:, 0] == 1
    heavy = replace(train, weight=np.where(happened, 1.0, 3.0))
    parts, all_alike = (empty, metadata_of(), CHOICE), replace(SMALL, weighted=False)
    even, more, alike = (
        fit_trees(t, *parts, settings).logits(later.inputs, metadata_of())[:, 0]
        for t, settings in ((train, WEIGHTED), (heavy, WEIGHTED), (heavy, all_alike))
    )
    assert np.mean(even - more) == pytest.approx(np.log(3), abs=0.25)
    assert np.array_equal(even, alike)


def test_a_rate_may_only_raise_the_probability(model: TreesModel) -> None:
    asked = world(rows=300, seed=4).inputs
    known = replace(asked, dense=np.nan_to_num(asked.dense))
    more = known.dense.copy()
    more[:, 0] += 1.0
    rises = replace(SMALL, pairs=False)
    steady = fitted(rises)
    low = steady.logits(known, metadata_of())
    high = steady.logits(replace(known, dense=more), metadata_of())
    assert (high >= low - 1e-12).all()


def test_engines_are_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="sklearn or lightgbm"):
        fitted(replace(SMALL, engine="oak"))
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ConfigError, match=r"install `salticus\[lightgbm\]`"):
        fitted(replace(SMALL, engine="lightgbm"))


def test_lightgbm_scores_as_it_would_itself() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2000, 5)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    x[:, 4] = np.nan_to_num(x[:, 4])
    y = np.nan_to_num(x[:, 0]) + x[:, 4] > rng.normal(size=2000)
    own = {"objective": "binary", "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(own, lightgbm.Dataset(x, y.astype(np.float64)), 20)
    trees = booster.dump_model()["tree_info"]
    forest = forest_of([told_nodes(tree["tree_structure"]) for tree in trees], 0.0)
    asked = np.vstack([x, np.full((1, 5), np.nan)]).astype(np.float32)
    assert np.abs(forest.scores(asked) - booster.predict(asked, raw_score=True)).max() < 1e-6


# ---------------------------------------------------------------------------------- target encoding


def test_a_pages_own_labels_do_not_move_its_encoding() -> None:
    train, metadata = world(), metadata_of()
    names = ("merchant", "title")
    before = out_of_fold(totals(train, 60), metadata, names, smoothing=2.0)
    for page in (0, 13, 59):
        label = train.label.copy()
        own = train.inputs.page == page
        label[own] = np.where(label[own] == 1, 0, 1)
        moved = replace(train, label=label)
        after = out_of_fold(totals(moved, 60), metadata, names, smoothing=2.0)
        assert all(
            np.array_equal(one[page], other[page]) for one, other in zip(before, after, strict=True)
        )
        assert not np.array_equal(before[0], after[0])  # others saw it


def test_encodings_are_shrunk_log_odds() -> None:
    """By hand: two pages with four examples each, one pseudo-page at the mean of 3/8."""
    train = world(rows=8, pages=2, horizons=1)
    label = np.array([1, 1, 1, 0, 0, 0, 0, 0], dtype=np.int8)[:, None]
    page = np.repeat([0, 1], 4)
    train = replace(train, label=label, inputs=replace(train.inputs, page=page))
    metadata = Metadata(
        codes=np.array([[0], [2]], dtype=np.int32),
        words=np.array([[0, 1], [1, -1]], dtype=np.int32),
        fields=("merchant",),
        sizes=(3,),
        buckets=3,
    )
    found = encode(totals(train, 2), metadata, ("merchant", "title"), smoothing=1.0)

    def odds(hits: float, trials: float) -> float:
        return float(np.log(hits / (trials - hits)))

    mean = 3 / 8
    merchants = [odds(3 + 4 * mean, 8), odds(mean, 1), odds(4 * mean, 8)]
    words = [odds(3 + 4 * mean, 8), odds(3 + 4 * mean, 12), odds(mean, 1)]
    assert found.table[0] == pytest.approx(merchants, abs=1e-6)
    assert found.words[0] == pytest.approx(words, abs=1e-6)
    columns = found.columns(metadata, 0)
    assert columns[0] == pytest.approx([merchants[0], np.mean(words[:2])], abs=1e-6)
    assert columns[1] == pytest.approx([merchants[2], words[1]], abs=1e-6)


def test_what_is_not_told_stays_unknown() -> None:
    table = np.array([[1.0, 2.0]], dtype=np.float32)
    encoding = Encoding(("merchant",), (2,), table, np.array([[3.0]], dtype=np.float32))
    codes = np.array([[1], [-1]], dtype=np.int32)
    words = np.array([[-1], [0]], dtype=np.int32)
    found = encoding.columns(Metadata(codes, words, ("merchant",), (2,), 1), 0)
    assert np.array_equal(found, [[2.0, np.nan], [np.nan, 3.0]], equal_nan=True)
