"""Figures of probabilities: by their definitions, and against values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.models.training.metrics import (
    auc,
    brier,
    calibration_error,
    log_loss,
    pr_auc,
    reliability,
    subset_aucs,
)

rows = st.lists(
    st.tuples(st.booleans(), st.integers(0, 8), st.integers(1, 5)), min_size=2, max_size=60
).filter(lambda drawn: len({positive for positive, _, _ in drawn}) == 2)


def columns(drawn: list[tuple[bool, int, int]]) -> tuple[Any, Any, Any]:
    positive, eighths, weight = (np.array(column) for column in zip(*drawn, strict=True))
    return eighths / 8, positive, weight.astype(float)


def by_pairs(scores: Any, positive: Any, weight: Any) -> float:
    """The AUC as it is defined: every positive against every negative, ties counting half."""
    above = scores[positive][:, None] - scores[~positive][None, :]
    pairs = weight[positive][:, None] * weight[~positive][None, :]
    return float(((np.sign(above) + 1) / 2 * pairs).sum() / pairs.sum())


def by_steps(scores: Any, positive: Any, weight: Any) -> float:
    """Precision at each score that occurs, weighted by the recall that it adds."""
    ones, total = weight * positive, 0.0
    for score in np.unique(scores):
        taken = scores >= score
        precision = ones[taken].sum() / weight[taken].sum()
        total += ones[scores == score].sum() * precision
    return total / float(ones.sum())


def by_mean(each: Any, weight: Any) -> float:
    return float(np.average(each, weights=weight))


@settings(deadline=None, max_examples=30)
@given(rows)
def test_figures_are_those_of_their_definitions(drawn: list[tuple[bool, int, int]]) -> None:
    scores, positive, weight = columns(drawn)
    exact = {"rel": 1e-12, "abs": 1e-12}
    assert auc(scores, positive, weight) == pytest.approx(
        by_pairs(scores, positive, weight), **exact
    )
    assert pr_auc(scores, positive, weight) == pytest.approx(
        by_steps(scores, positive, weight), **exact
    )
    held = np.clip(np.where(positive, scores, 1.0 - scores), 1e-12, 1.0)
    assert log_loss(scores, positive, weight) == pytest.approx(
        by_mean(-np.log(held), weight), **exact
    )
    assert brier(scores, positive, weight) == pytest.approx(
        by_mean((scores - positive) ** 2, weight), **exact
    )


@settings(deadline=None, max_examples=30)
@given(rows)
def test_a_weight_of_n_is_n_rows(drawn: list[tuple[bool, int, int]]) -> None:
    scores, positive, weight = columns(drawn)
    times = weight.astype(int)
    many, truly = np.repeat(scores, times), np.repeat(positive, times)
    for figure in (auc, pr_auc, log_loss, brier):
        assert figure(scores, positive, weight) == pytest.approx(figure(many, truly))
    for equal in ("count", "width"):
        few = reliability(scores, positive, weight, equal=equal)
        whole = reliability(many, truly, equal=equal)
        assert calibration_error(few) == pytest.approx(calibration_error(whole))
        assert [each.predicted for each in few] == pytest.approx([e.predicted for e in whole])


@settings(deadline=None, max_examples=30)
@given(rows, st.integers(0, 100))
def test_the_order_of_rows_means_nothing(drawn: list[tuple[bool, int, int]], seed: int) -> None:
    scores, positive, weight = columns(drawn)
    mixed = np.random.default_rng(seed).permutation(len(scores))
    table = reliability(scores, positive, weight, bins=5)
    again = reliability(scores[mixed], positive[mixed], weight[mixed], bins=5)
    assert [each.rows for each in table] == [each.rows for each in again]
    assert calibration_error(table) == pytest.approx(calibration_error(again))
    assert auc(scores, positive) == pytest.approx(auc(scores[mixed], positive[mixed]))


@pytest.mark.parametrize("equal", ["count", "width"])
@settings(deadline=None, max_examples=30)
@given(drawn=rows)
def test_bins_hold_every_row_once(equal: str, drawn: list[tuple[bool, int, int]]) -> None:
    scores, positive, weight = columns(drawn)
    table = reliability(scores, positive, weight, equal=equal)
    assert sum(each.rows for each in table) == len(scores)
    assert sum(each.share for each in table) == pytest.approx(1.0)
    assert all(a.high <= b.low for a, b in zip(table, table[1:], strict=False))
    came = sum(each.share * each.observed for each in table)
    assert came == pytest.approx(np.average(positive, weights=weight))


def test_calibration_error_by_hand() -> None:
    said = np.array([0.1, 0.1, 0.1, 0.1, 0.9, 0.9])
    came = np.array([False, False, True, False, True, False])
    # |0.1 - 0.25| for four rows of six, |0.9 - 0.5| for two
    for equal in ("count", "width"):
        error = calibration_error(reliability(said, came, equal=equal))
        assert error == pytest.approx(4 / 6 * 0.15 + 2 / 6 * 0.4)


def test_bins_are_of_equal_count_or_width() -> None:
    said = np.linspace(0.0, 1.0, 1000) ** 3
    came = np.zeros(1000, dtype=bool)
    assert [each.rows for each in reliability(said, came)] == [50] * 20
    wide = reliability(said, came, equal="width", bins=4)
    assert [each.low >= k / 4 and each.high <= (k + 1) / 4 for k, each in enumerate(wide)] == [
        True
    ] * 4


def test_true_probabilities_are_calibrated_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    said = rng.beta(0.3, 8.0, 200_000)
    came = rng.random(200_000) < said
    assert calibration_error(reliability(said, came)) < 0.002
    assert calibration_error(reliability(np.sqrt(said), came)) > 0.05


def test_subsets_scatter_about_the_whole() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(20_000)
    positive = rng.random(20_000) < scores * 0.2
    mean, sd = subset_aucs(scores, positive, seed=3)
    assert mean == pytest.approx(auc(scores, positive), abs=0.01)
    assert 0.005 < sd < 0.05
    assert (mean, sd) == subset_aucs(scores, positive, seed=3)
    assert (mean, sd) != subset_aucs(scores, positive, seed=4)


def test_without_rows_or_without_one_kind_figures_are_unknown() -> None:
    none, nobody = np.empty(0), np.empty(0, dtype=bool)
    for figure in (auc, pr_auc, log_loss, brier):
        assert np.isnan(figure(none, nobody))
    assert np.isnan(calibration_error(reliability(none, nobody)))
    assert np.isnan(auc(np.ones(3), np.ones(3, dtype=bool)))
    assert np.isnan(pr_auc(np.ones(3), np.zeros(3, dtype=bool)))
    assert np.isnan(subset_aucs(np.ones(3), np.zeros(3, dtype=bool))).all()
