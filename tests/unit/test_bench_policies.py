"""The bench of policies, in small: the same columns, the same rows, nothing is timed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from salticus.cli import app
from salticus.errors import SalticusError
from salticus.lab.bench.policies import bench, columns, plan

COLUMNS = {
    "policy", "curves", "pages", "s", "ns/page", "x NumPy pass", "MB", "bytes/page",
    "first call s", "growth",
}  # fmt: skip


def test_a_row_for_every_policy_curve_and_size() -> None:
    rows = list(bench(sizes=(50, 5000), policies=("uniform",), curves=("gamma",)))
    assert [(row["policy"], row["pages"]) for row in rows] == [("uniform", 50), ("uniform", 5000)]
    for row in rows:
        assert set(row) == COLUMNS
        assert row["bytes/page"] >= 0
    assert rows[0]["growth"] is None
    assert isinstance(rows[1]["growth"], float)


@pytest.mark.parametrize("kind", ["gamma", "rhythm"])
def test_the_columns_are_those_of_a_crawl(kind: str) -> None:
    pages = columns(300, kind)
    assert sorted(pages.demand) == pytest.approx(sorted(1e4 / np.arange(1, 301)))
    assert not np.isnat(pages.last_visit).any()
    survival = pages.survival
    assert survival is not None
    rates = survival.rates()
    assert 0.05 < np.median(rates) < 0.12
    unchanged = survival.unchanged(np.ones(300))
    assert (unchanged > 0).all()
    assert (unchanged < 1).all()


@pytest.mark.parametrize("policy", ["leap", "lambdacrawl"])
def test_a_policy_is_measured(policy: str) -> None:
    found = plan(policy, "gamma", 200)
    assert set(found) == {"seconds", "first", "bytes", "pass"}


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of small runs, which compile nothing."""
    ran = []

    def measured(name: str, module: str, *words: object, **more: str) -> dict[str, float]:
        ran.append(words)
        numbers = ("seconds", "first", "bytes", "pass")
        return dict.fromkeys(numbers, 0.5)

    monkeypatch.setattr("salticus.lab.bench.policies.measured", measured)
    words = ["bench", "policies", "--pages", "100", "--policy", "uniform", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert ran == [("uniform", "gamma", 100), ("uniform", "rhythm", 100)]
    assert set(found["plans"][0]) == COLUMNS
    assert CliRunner().invoke(app, words[:-1]).exit_code == 0


def test_a_contestant_that_fails_is_named() -> None:
    with pytest.raises(SalticusError, match="no policy is called 'nosuch'"):
        list(bench(sizes=(10,), policies=("nosuch",), curves=("gamma",)))
