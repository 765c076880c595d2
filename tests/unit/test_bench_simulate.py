"""The bench of simulation, in small: the same worlds, the same work, side by side."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from salticus.cli import app
from salticus.errors import SalticusError
from salticus.lab.bench.replay import BARE, POLICIES, bench


def test_every_policy_is_measured_beside_the_bare_loop() -> None:
    rows = list(bench(sizes=(200,), policies=("uniform", "clairvoyant"), days=1))
    assert [row["policy"] for row in rows] == [BARE, "uniform", "clairvoyant"]
    assert rows[0]["x bare NumPy"] == 1
    for row in rows:
        assert row["M page-ticks/s"] >= 0
        assert 0 < row["clicks fresh"] <= 1
        assert row["ns/page-tick"] > 0
    assert rows[2]["clicks fresh"] >= rows[1]["clicks fresh"]


def test_all_builtin_policies_are_in_it() -> None:
    assert {"uniform", "nutch", "stormcrawler", "clairvoyant"} <= set(POLICIES)


def test_the_command_prints_json() -> None:
    words = ["bench", "simulate", "--pages", "100", "--policy", "uniform", "--days", "1", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)) == 2


def test_a_contestant_that_fails_is_named() -> None:
    with pytest.raises(SalticusError, match="no policy is called 'nosuch'"):
        list(bench(sizes=(10,), policies=("nosuch",), days=1))
