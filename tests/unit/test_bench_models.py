"""The bench of models in small: every figure is there, and memory is counted in bytes of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from salticus.errors import SalticusError
from salticus.lab.bench import models
from salticus.lab.bench.models import array_bytes
from salticus.models.trees import TreesModel


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_TREES", 3)
    monkeypatch.setattr(models, "_HOSTS", 3)


def test_an_answer_is_kept_in_three_bytes() -> None:
    """At a million pages and a visit a day that is 90 MB of 330; it was 630 MB, and twice that."""
    month = [models._followed(3000, days) for days in (2, 30)]
    before, after = (each.state() for each in month)
    visits = len(after["past_visits_data"]) - len(before["past_visits_data"])
    assert visits <= 3 * 28 * 3000 * 1.05
    assert array_bytes(month[1]) < 400 * 3000 + 600_000  # rooms of groups and buffers


@pytest.mark.parametrize("kind", models.KINDS)
def test_three_models_are_asked_about_every_page(kind: str) -> None:
    found = models.contest(kind, 60)
    assert {"read", "score", "wall", "peak"} <= found.keys()
    assert all(figure >= 0 for figure in found.values())


def test_models_are_as_big_as_usual() -> None:
    trees = models.a_model("trees", (6, 24)).model
    assert isinstance(trees, TreesModel)
    for forest in trees.forests:
        assert np.count_nonzero(forest.first == np.arange(len(forest.first))) == 3 * 15


def test_a_row_tells_every_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"read": 0.1, "score": 2.0, "wall": 3.0, "arrays": 4e6, "peak": 5e6}
    monkeypatch.setattr(models, "measured", lambda *words: found)
    (row,) = models.bench(pages=10_000, contests=("trees",))
    assert row["score s/M"] == 200.0
    assert row["arrays B/page"] == 400
    assert row["tick s/M"] is None


def test_a_crawl_with_a_model_goes_through_its_ticks() -> None:
    found = models.process(200)
    assert found["tick"] >= 0
    assert found["arrays"] > 0


def test_a_contest_that_does_not_exist_is_named() -> None:
    with pytest.raises(SalticusError, match="no contest nonsense"):
        models.contest("nonsense", 1)


def test_arrays_are_counted_once() -> None:
    column = np.zeros(100)
    assert array_bytes({"one": column, "two": [column[:50], column]}) == 800
