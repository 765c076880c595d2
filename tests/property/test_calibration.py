"""Laws of the statistics of the calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.lab.studies.calibration.market import ChangeHistory
from salticus.lab.studies.calibration.statistics import change_within, changes_within, lived
from salticus.models.training.metrics import auc

labels = st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=2, max_size=40).filter(
    lambda rows: len({positive for positive, _ in rows}) == 2
)


@settings(deadline=None)
@given(labels)
def test_auc_is_the_share_of_pairs_in_the_right_order(rows: list[tuple[bool, int]]) -> None:
    high = [score for positive, score in rows if positive]
    low = [score for positive, score in rows if not positive]
    pairs = [(a > b) + (a == b) / 2 for a in high for b in low]
    assert auc(*columns(rows)) == pytest.approx(sum(pairs) / len(pairs))


@settings(deadline=None)
@given(labels)
def test_auc_knows_only_the_order(rows: list[tuple[bool, int]]) -> None:
    scores, positive = columns(rows)
    assert auc(np.exp(scores) * 3 + 1, positive) == auc(scores, positive)
    assert auc(-scores, positive) == pytest.approx(1 - auc(scores, positive))


@settings(deadline=None)
@given(labels)
def test_auc_of_the_answer_is_one_and_of_a_constant_a_half(rows: list[tuple[bool, int]]) -> None:
    _, positive = columns(rows)
    assert auc(positive.astype(float), positive) == 1.0
    assert auc(np.zeros(len(positive)), positive) == 0.5


def columns(rows: list[tuple[bool, int]]) -> tuple[Any, Any]:
    positive, scores = zip(*rows, strict=True)
    return np.array(scores, dtype=float), np.array(positive)


@st.composite
def histories(draw: Any) -> ChangeHistory:
    n = draw(st.integers(1, 4))
    lives = [sorted(draw(st.tuples(st.integers(0, 30), st.integers(0, 60)))) for _ in range(n)]
    changes = []
    for page, (born, gone) in enumerate(lives):
        within = st.lists(st.integers(born, max(born, gone - 1)), max_size=6)
        changes += [(page, hour) for hour in sorted(draw(within))]
    rows = np.array(changes, dtype=np.int64).reshape(-1, 2)
    born, gone = np.array(lives).T
    return ChangeHistory(0, born, gone, np.zeros(n, dtype=np.int64), rows[:, 0], rows[:, 1])


@settings(deadline=None)
@given(histories(), st.integers(1, 12), st.integers(0, 20), st.integers(25, 60))
def test_every_hour_of_every_life_is_a_prediction_time(
    history: ChangeHistory, horizon: int, low: int, high: int
) -> None:
    born, gone = history.born, history.gone
    points = [
        (page, hour)
        for page in range(len(history))
        for hour in range(max(low, born[page]), min(high, gone[page]))
    ]
    assert lived(history, low, high).sum() == len(points)
    if points:
        page, hour = np.array(points).T
        share = changes_within(history, page, hour, horizon).mean()
        assert change_within(history, horizon, low, high) == pytest.approx(share)


@settings(deadline=None)
@given(histories(), st.integers(1, 12))
def test_a_label_looks_at_the_hours_from_the_prediction_on(
    history: ChangeHistory, horizon: int
) -> None:
    changes = set(zip(history.page.tolist(), history.hour.tolist(), strict=True))
    page, hour = (a.ravel() for a in np.meshgrid(np.arange(len(history)), np.arange(60)))
    found = changes_within(history, page, hour, horizon)
    for p, h, label in zip(page.tolist(), hour.tolist(), found.tolist(), strict=True):
        assert label == any((p, h + ahead) in changes for ahead in range(horizon))
