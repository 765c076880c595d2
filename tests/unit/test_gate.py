"""Gates by hand, and on a small market: the gate of the paper beats the uniform one."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from salticus.allocate.gate import BUILTIN
from salticus.allocate.gate.base import Decisions
from salticus.allocate.gate.stream import InstaCrawl, ThresholdGate, gamma
from salticus.allocate.gate.uniform import UniformGate
from salticus.checks.gate import check_gate
from salticus.cli import app
from salticus.errors import ConfigError, InputError, PluginError
from salticus.exchange.folder import Log
from salticus.lab.simulate import SimulationSettings
from salticus.lab.simulate.gates import GateContest, replay_requests
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.types import Floats
from salticus.types.coins import coins

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
RULES = SimulationSettings(history=15 * DAY, warmup=2 * DAY, days=8, tick=6 * HOUR)


# ---------------------------------------------------------------------------------------- by hand


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, 0.0),
        (0.5, 0.8),  # (.25 + .5 + .75 + 1) · .8 = 4 · .5
        (0.625, 1.0),
        (0.75, 4 / 3),  # the fourth for certain: 1/3 + 2/3 + 1 + 1 = 3
        (0.875, 2.0),  # .5 + 1 + 1 + 1
        (1.0, 4.0),
    ],
)
def test_gamma_of_four_equal_quantiles(share: float, expected: float) -> None:
    assert gamma(np.ones(4), share) == pytest.approx(expected, abs=1e-12)


def test_the_probability_grows_with_the_quantile() -> None:
    """Eq. 1: once the quantiles are known, p_i is (i/n)·γ, here with γ = share · 2n/(n + 1)."""
    rng = np.random.default_rng(0)
    gate = InstaCrawl(share=0.2, quantiles=4)
    gate.send(rng.random(200_000), rng.random(200_000))
    mean = np.mean([_asked(gate, rng) for _ in range(200)], axis=0)
    assert mean == pytest.approx(0.32 * np.array([0.25, 0.5, 0.75, 1.0]), rel=0.03)


def _asked(gate: InstaCrawl, rng: np.random.Generator) -> Floats:
    order = rng.permutation(4)
    found = np.empty(4)
    found[order] = gate.send(np.array([0.1, 0.4, 0.6, 0.9])[order], rng.random(4)).propensity
    return found


def test_the_threshold_is_hard_and_ties_share_what_is_left() -> None:
    scores = np.tile([0.9, 0.5, 0.5, 0.1], 2500)
    decisions = ThresholdGate(share=0.5).send(scores, coins(0, np.arange(10_000), 0))
    late = decisions.propensity[5000:].reshape(-1, 4)
    assert (late[:, 0] == 1.0).all()
    assert (late[:, 3] == 0.0).all()
    assert late[:, 1:3].mean() == pytest.approx(0.5, abs=0.02)


def test_a_floor_under_the_threshold_leaves_nothing_hopeless() -> None:
    rng = np.random.default_rng(1)
    gate = ThresholdGate(share=0.2, floor=0.05)
    decisions = gate.send(rng.random(10_000), rng.random(10_000))
    assert decisions.propensity.min() == 0.05
    assert decisions.sent.mean() == pytest.approx(0.2, abs=0.01)


def test_a_share_of_all_or_nothing() -> None:
    rng = np.random.default_rng(2)
    for kind in (InstaCrawl, ThresholdGate, UniformGate):
        for share in (0.0, 1.0):
            sent = kind(share=share).send(rng.random(500), rng.random(500)).sent
            assert (sent == bool(share)).all()


@pytest.mark.parametrize("kind", [InstaCrawl, ThresholdGate, UniformGate])
def test_what_makes_no_sense_is_refused(kind: Any) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        kind(share=1.5)
    with pytest.raises(InputError, match="request 1"):
        kind().send(np.array([0.1, np.nan]), np.array([0.5, 0.5]))


def test_gates_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="quantile"):
        InstaCrawl(quantiles=0)
    with pytest.raises(ConfigError, match="floor"):
        ThresholdGate(share=0.1, floor=0.2)


class Counting:
    """Sends every fifth request of a batch, whichever that is."""

    def send(self, scores: Floats, chances: Floats) -> Decisions:
        p = np.where(np.arange(len(scores)) % 5 == 0, 1.0, 0.0)
        return Decisions(chances < p, p)


class Lavish:
    """Sends twice as much as it should."""

    def __init__(self, share: float) -> None:
        self.share = share

    def send(self, scores: Floats, chances: Floats) -> Decisions:
        p = np.full(len(scores), min(1.0, 2 * self.share))
        return Decisions(chances < p, p)


def test_the_laws_find_what_breaks_them() -> None:
    with pytest.raises(AssertionError, match="share is held"):
        check_gate(Lavish)
    with pytest.raises(AssertionError, match="one by one"):
        check_gate(lambda share: Counting() if share == 0.2 else UniformGate(share=share))


# ---------------------------------------------------------------------------------------- a market


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate") / "market"
    make_market(folder, MarketSize(500, 40), seed=2, preset="han2019")
    return folder


@pytest.fixture(scope="module")
def report(market: Path) -> dict[str, Any]:
    return replay_requests(Log(market), RULES, GateContest((0.1, 0.4), list(BUILTIN)))


def row(report: dict[str, Any], gate: str, share: str) -> dict[str, Any]:
    (found,) = (r for r in report["rows"] if (r["gate"], r["budget"]) == (gate, share))
    return dict(found)


def test_the_realised_share_is_within_a_point(report: dict[str, Any]) -> None:
    for each in report["rows"]:
        assert abs(each["resource"] - float(each["budget"])) < 0.01, each["gate"]


@pytest.mark.parametrize("share", ["0.1", "0.4"])
def test_the_gate_beats_the_uniform_one_at_equal_share(report: dict[str, Any], share: str) -> None:
    ours, theirs = (row(report, gate, share) for gate in ("instacrawl", "uniform"))
    assert ours["freshness"]["mean"] > theirs["freshness"]["mean"] + 0.002
    assert ours["found"] > 1.1 * theirs["found"]


def test_the_saving_at_equal_freshness_is_reported(report: dict[str, Any]) -> None:
    saved = {(r["gate"], r["at_budget"]): r["saving"] for r in report["savings"]}
    assert saved["instacrawl", "0.4"] > 0.2
    assert all(r["against"] == "uniform" for r in report["savings"])


def test_without_the_uniform_gate_there_is_nothing_to_save_against(market: Path) -> None:
    short = replace(RULES, warmup=DAY, days=1)
    report = replay_requests(Log(market), short, GateContest((0.2, 0.5), ["threshold"]))
    assert [r["gate"] for r in report["rows"]] == ["threshold"] * 2
    assert report["savings"] == []


def test_one_seed_gives_one_result_whatever_else_is_asked(market: Path) -> None:
    short = replace(RULES, warmup=DAY, days=1)
    alone = replay_requests(Log(market), short, GateContest((0.2,), ["instacrawl"]))
    among = replay_requests(Log(market), short, GateContest((0.1, 0.2), ["uniform", "instacrawl"]))
    assert alone["rows"][0] == row(among, "instacrawl", "0.2")


def test_the_command_shows_gates(market: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "gates.json", tmp_path / "gates.html"
    words = ["simulate", str(market), "--requests", "--gate", "uniform", "--gate", "instacrawl"]
    words += ["--budget", "10%", "--budget", "50%", "--tick", "6h"]
    spans = ["--history", "15d", "--warmup", "1d", "--days", "1"]
    told = CliRunner().invoke(app, [*words, *spans, "--json", str(out), "--plot", str(plot)])
    assert told.exit_code == 0, told.output
    assert "instacrawl" in told.output
    found = json.loads(out.read_text())
    assert {r["gate"] for r in found["rows"]} == {"uniform", "instacrawl"}
    assert [r["budget"] for r in found["rows"]] == ["0.1", "0.5"] * 2
    assert "Freshness against the share sent" in plot.read_text()


def test_a_gate_that_is_not_there_is_named_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="nosuch"):
        replay_requests(Log(tmp_path), RULES, GateContest((0.2,), ["nosuch"]))


def test_a_gate_without_requests_is_refused(market: Path) -> None:
    told = CliRunner().invoke(app, ["simulate", str(market), "--gate", "uniform"])
    assert told.exit_code == 2
    assert "--requests" in told.output
