"""The bench of learning, in small: the same rows and contests, nothing is timed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from salticus.errors import SalticusError
from salticus.lab.bench import learn
from salticus.models.training import deep


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learn, "_PAGES", 300)
    monkeypatch.setattr(learn, "_DAYS", 3)
    monkeypatch.setattr(learn, "_ROUNDS", 2)
    monkeypatch.setattr(learn, "_BATCH", 256)
    monkeypatch.setattr(learn, "_MARKET", (50, 9))


@pytest.mark.parametrize("name", ["examples", "features"])
def test_examples_are_made(name: str) -> None:
    assert learn.contest(name, 500)["rate"] > 0


def test_ours_and_the_bare_loop_train_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep, "OURS", replace(deep.OURS, hidden=(8,)))
    found = learn.training(600)
    assert set(found) == {"rate", "bare", "bytes"}
    assert found["rate"] > 0
    assert found["bare"] > 0


def test_the_rows_are_as_real_ones() -> None:
    rows, metadata = learn.made_up(400, depth=4), learn.catalogue()
    assert rows.inputs.steps.shape == (400, 4, 3)
    assert 0.02 < np.isnan(rows.inputs.dense).mean() < 0.08
    assert 0 < rows.label.mean() < 0.5
    assert (metadata.codes < np.array(metadata.sizes)).all()


def test_a_row_tells_the_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"training": {"rate": 90.0, "bare": 100.0, "bytes": 2e6}}
    found["dnn"] = {"rate": 7.0, "bytes": 1e6}
    monkeypatch.setattr(learn, "measured", lambda contest, *words: found[contest])
    first, second = learn.bench(rows=10, contests=("training", "dnn"))
    assert first == {
        "what": "training", "rows": 10, "rows/s": 90, "bare rows/s": 100, "x bare": 0.9, "MB": 2,
    }  # fmt: skip
    assert second["x bare"] is None


def test_a_contest_that_fails_says_why() -> None:
    with pytest.raises(SalticusError, match="^nonsense: "):
        list(learn.bench(rows=10, contests=("nonsense",)))
