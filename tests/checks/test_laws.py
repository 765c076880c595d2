"""Every built-in part, and one from outside, under the public law suites."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from salticus import allocate, plugins, predict, schedule
from salticus.checks.clock import check_clock
from salticus.checks.policy import check_policy
from salticus.checks.predictor import check_predictor
from salticus.checks.spacing import check_spacing
from salticus.clock import SystemClock, VirtualClock
from salticus.errors import PluginError
from salticus.types import Floats, Outcomes, Pages

NOW = datetime(2026, 1, 1, tzinfo=UTC)

OUTSIDE = '''
import numpy as np

class ByDemand:
    """Visits in proportion to demand, none above one."""

    def expected(self, pages, visits):
        expected = np.zeros(len(pages))
        left, free = min(visits, len(pages)), np.ones(len(pages), dtype=bool)
        while left > 1e-12 and free.any():
            worth = pages.demand[free] + 1e-9
            share = np.minimum(1 - expected[free], left * worth / worth.sum())
            expected[free] += share
            left -= share.sum()
            free = expected < 1 - 1e-12
        return expected

    def learn(self, outcomes):
        pass
'''


@pytest.mark.parametrize("name", allocate.BUILTIN)
def test_policies(name: str) -> None:
    check_policy(plugins.load("policy", name, allocate.BUILTIN))


@pytest.mark.parametrize("name", predict.BUILTIN)
def test_predictors(name: str) -> None:
    check_predictor(plugins.load("predictor", name, predict.BUILTIN))


@pytest.mark.parametrize("name", schedule.BUILTIN)
def test_spacings(name: str) -> None:
    check_spacing(plugins.load("spacing", name, schedule.BUILTIN))


@pytest.mark.parametrize(
    "clock",
    [
        SystemClock(),
        SystemClock(speed=3600, world_origin=NOW, wall_origin=NOW),
        VirtualClock(NOW),
    ],
)
def test_clocks(clock: SystemClock | VirtualClock) -> None:
    asyncio.run(check_clock(clock))


def test_a_policy_from_a_file_outside_passes(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OUTSIDE)
    check_policy(plugins.load("policy", f"{path}:ByDemand", allocate.BUILTIN))


class Greedy:
    """Breaks a law: spends all on the first pages."""

    def expected(self, pages: Pages, visits: float) -> Floats:
        return (np.arange(len(pages)) < visits).astype(np.float64)

    def learn(self, outcomes: Outcomes) -> None: ...


class Wasteful(Greedy):
    def expected(self, pages: Pages, visits: float) -> Floats:
        return np.full(len(pages), 0.5)


class Wrong(Greedy):
    def expected(self, pages: Pages, visits: float) -> Floats:
        return np.full(len(pages), np.nan)


@pytest.mark.parametrize(
    ("policy", "law"),
    [(Greedy, "spent exactly|permutation"), (Wasteful, "spent exactly"), (Wrong, "never NaN")],
)
def test_the_suite_finds_broken_policies(policy: type[Greedy], law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_policy(policy)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuch", "known: uniform"),
        ("nosuch.py:Policy", "there is no such file"),
        ("salticus.nosuch:Policy", "No module named"),
        ("salticus.allocate.uniform:Nosuch", "has no 'Nosuch'"),
    ],
)
def test_parts_that_cannot_be_loaded_say_why(name: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        plugins.load("policy", name, allocate.BUILTIN)


def test_a_broken_file_says_where(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0")
    with pytest.raises(PluginError, match="broken.py: ZeroDivisionError"):
        plugins.load("policy", f"{path}:Policy", {})
