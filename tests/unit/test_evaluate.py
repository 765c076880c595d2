"""Figures of a model by group: rows fall where they belong, and events are those of the labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from salticus.models.training.evaluate import (
    Scored,
    Shops,
    evaluate,
    groups,
    hazards_of,
    labels_within,
    scored,
)
from salticus.types import Examples, Floats, Inputs, Metadata

EDGES = (6, 24, 72)


def rows_of(n: int, seed: int = 0) -> Scored:
    """Rows whose probabilities are the truth: hazards of 0.1, 0.2 and 0.3 times a page's own."""
    rng = np.random.default_rng(seed)
    own = rng.random(n)
    hazard = own[:, None] * np.array([0.1, 0.2, 0.3])
    came = rng.random((n, 3)) < hazard
    before = np.cumsum(came, axis=1) - came > 0
    return Scored(
        page=rng.integers(0, 50, n),
        hour=np.zeros(n, dtype=np.int64),
        probability=1 - np.cumprod(1 - hazard, axis=1),
        label=np.where(before, -1, came).astype(np.int8),
        weight=rng.choice([1.0, 3.0], n),
        seen=rng.random(n) < 0.75,
        known=rng.integers(0, 40, n),
    )


def test_true_probabilities_are_found_right_for_every_edge_and_stretch() -> None:
    report = evaluate(rows_of(60_000), EDGES)
    whole = [row for row in report["figures"] if row["by"] == "all"]
    assert [row["edge"] for row in whole] == [*EDGES]
    assert [(row["from"], row["to"]) for row in report["stretches"]] == [(0, 6), (6, 24), (24, 72)]
    for row in (*whole, *report["stretches"]):
        assert row["ece"] < 0.01
        assert row["said"] == pytest.approx(row["share"], abs=0.01)
        assert 0.5 < row["auc"] < 1.0
        assert row["auc_mean"] == pytest.approx(row["auc"], abs=0.02)
    shares = [row["share"] for row in whole]
    assert shares == sorted(shares)


def test_rows_fall_into_the_groups_they_belong_to() -> None:
    rows = rows_of(500)
    shops = Shops(("a", "b"), np.where(np.arange(50) < 10, -1, np.arange(50) % 2),
                  np.array([True, False]))  # fmt: skip
    found = dict(groups(rows, shops))
    assert found["all", "all"].all()
    assert (found["seen", "seen"] ^ found["seen", "unseen"]).all()
    by_known = [mask for (by, _), mask in found.items() if by == "known"]
    assert np.sum(by_known, axis=0).tolist() == [1] * 500
    assert (rows.known[found["known", "2 to 4"]] < 5).all()
    assert (rows.known[found["known", "30 and more"]] >= 30).all()
    assert (found["merchant", "(new to the model)"] == found["merchant", "b"]).all()
    assert not (found["merchant", "a"] & (rows.page < 10)).any()


def test_figures_of_a_group_are_those_of_its_rows_alone() -> None:
    rows = rows_of(4000)
    part = rows.take(~rows.seen)
    whole, alone = evaluate(rows, EDGES), evaluate(part, EDGES)
    unseen = [row for row in whole["figures"] if row["group"] == "unseen"]
    every = [row for row in alone["figures"] if row["group"] == "all"]
    for ours, theirs in zip(unseen, every, strict=True):
        assert {**ours, "by": "", "group": ""} == {**theirs, "by": "", "group": ""}


def test_what_is_not_known_counts_nowhere() -> None:
    """Neither do events that are known where quiet rows are not: they would seem too many."""
    rows = rows_of(30_000)
    hour = np.arange(30_000) // 100
    hidden = rows.label.copy()
    hidden[hour >= 200, 2] = -1
    report = evaluate(replace(rows, hour=hour, label=hidden), EDGES)
    first, _, last = [row for row in report["figures"] if row["by"] == "all"]
    assert (first["rows"], last["rows"]) == (30_000, 20_000)
    assert last["said"] == pytest.approx(last["share"], abs=0.01)


def test_figures_that_are_not_defined_are_none() -> None:
    rows = rows_of(30)
    none = replace(rows, label=np.zeros_like(rows.label))
    for row in evaluate(none, EDGES)["figures"]:
        assert row["auc"] is None
        assert row["events"] == 0
        assert row["share"] == 0.0


def test_labels_and_hazards_follow_from_one_another() -> None:
    label = np.array([[1, -1, -1], [0, 1, -1], [0, 0, 1], [0, 0, 0], [0, -1, -1]], dtype=np.int8)
    assert labels_within(label).tolist() == [
        [1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0], [0, -1, -1],
    ]  # fmt: skip
    hazard = np.random.default_rng(0).random((20, 4))
    again = hazards_of(1 - np.cumprod(1 - hazard, axis=1))
    assert again == pytest.approx(hazard)


class Half:
    """Says one half of everything."""

    def probabilities(self, inputs: Inputs, metadata: Metadata) -> Floats:
        return np.full((len(inputs), 1), 0.5)


def test_only_the_uniform_stratum_is_judged() -> None:
    n = 10
    inputs = Inputs(np.arange(n), np.zeros(n, dtype=np.int64), np.zeros((n, 1), dtype=np.float32),
                    np.zeros((n, 0, 3), dtype=np.float32), ("page_month",))  # fmt: skip
    uniform = np.arange(n) < 4
    examples = Examples(inputs, np.zeros((n, 1), dtype=np.int8), np.ones(n), uniform, uniform,
                        np.arange(n))  # fmt: skip
    nothing = Metadata(np.zeros((n, 0), np.int32), np.zeros((n, 0), np.int32), (), (), 0)
    found = scored(Half(), [examples, examples], nothing)
    assert found.page.tolist() == [0, 1, 2, 3] * 2
    with pytest.raises(ValueError, match="nothing"):
        scored(Half(), [], nothing)
