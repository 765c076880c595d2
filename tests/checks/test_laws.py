"""Every built-in part, and one from outside, under the public law suites."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from salticus import allocate, plugins, predict, schedule
from salticus.allocate.base import Proposer
from salticus.allocate.baselines import Uniform
from salticus.allocate.explore import Explore
from salticus.allocate.gate.uniform import UniformGate
from salticus.allocate.insta import Insta
from salticus.allocate.leap import Leap
from salticus.allocate.limits import Limits, Pins
from salticus.allocate.panel import Panel
from salticus.allocate.share import in_proportion
from salticus.checks.clock import check_clock
from salticus.checks.policy import check_policy
from salticus.checks.predictor import check_predictor
from salticus.checks.proposer import check_draw, check_proposer, pages_to_propose
from salticus.checks.spacing import check_spacing
from salticus.clock import SystemClock, VirtualClock
from salticus.crawl.parts import PolicyVisits
from salticus.errors import PluginError
from salticus.schedule.coin import Coin
from salticus.schedule.even import Even
from salticus.testing import a_grant
from salticus.types import Draw, Floats, Grant, Member, Outcomes, Pages, Purpose, Tick
from salticus.types.state import State

NOW = datetime(2026, 1, 1, tzinfo=UTC)

OUTSIDE = '''
import numpy as np
from salticus.allocate.base import known

class ByDemand:
    """Visits in proportion to demand, none above one."""

    def expected(self, pages, visits):
        expected = np.zeros(len(pages))
        left, free = min(visits, len(pages)), np.ones(len(pages), dtype=bool)
        while left > 1e-12 and free.any():
            worth = known("demand", pages.demand, pages.ids)[free] + 1e-9
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
    "make",
    [
        Limits,
        Pins,
        Panel,
        Insta,
        lambda: Insta(UniformGate(share=0.5), share=0.3),
        Explore,
        lambda: Explore(0.3, seed=4),
        lambda: PolicyVisits(Uniform(), Even()),
        lambda: PolicyVisits(Leap(), Coin(seed=3)),
    ],
)
def test_proposers(make: Callable[[], Proposer]) -> None:
    check_proposer(make)


@pytest.mark.parametrize("seed", range(5))
def test_a_panel_with_members_obeys_the_laws_of_proposers(seed: int) -> None:
    pages = pages_to_propose(seed)

    def make() -> Panel:
        panel = Panel()
        panel.members = [Member(page, "uniform", 1.0, 0.5, 0) for page in pages.ids[::3].tolist()]
        panel.veil(pages)
        return panel

    assert len(make().draw(pages, a_grant(9), pages.tick).rows)
    check_draw(make, pages, 40)


class Twice:
    """Breaks a law: proposes a page twice."""

    purpose = Purpose.LIMIT

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        return Draw.sure(np.flatnonzero(pages.open)[:1].repeat(2))


class Grasping(Twice):
    """Breaks a law: proposes every page, whatever it costs."""

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        return Draw.sure(np.flatnonzero(pages.open))


class Crowding(Grasping):
    """Breaks a law: has a budget of its own, and takes it for the hosts' leave."""

    purpose = Purpose.PANEL


class Knocking(Twice):
    """Breaks a law: proposes a page that is not open."""

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        return Draw.sure(np.flatnonzero(~pages.open)[:1])


class Counting(Twice):
    """Breaks a law: proposes nothing any more once it was asked of another tick."""

    def __init__(self) -> None:
        self.count_ = 0

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        self.count_ += tick.number == 7
        return Pins().draw(pages, a_grant(0) if self.count_ else grant, tick)


class Hoarding(Twice):
    """Breaks a law: sets visits aside that it is never given."""

    def draw(self, pages: Pages, grant: Grant, tick: Tick) -> Draw:
        return replace(Draw.sure(np.empty(0, dtype=np.int64)), reserve=0.5)


@pytest.mark.parametrize(
    ("proposer", "law"),
    [
        (Twice, "no row twice"),
        (Grasping, "no more than the grant covers"),
        (Crowding, "no host beyond"),
        (Knocking, "only pages that are open"),
        (Counting, "to be asked changes nothing"),
        (Hoarding, "only one that is given the purse"),
    ],
)
def test_the_suite_finds_broken_proposers(proposer: type[Twice], law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_proposer(proposer)


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


class Lavish(Wasteful):
    """Says that it may leave visits unspent, and spends too many."""

    spends = False


class Fickle(Greedy):
    """Gives to all pages alike, and to the lowest ids once it was asked."""

    def __init__(self) -> None:
        self.count_ = 0

    def expected(self, pages: Pages, visits: float) -> Floats:
        self.count_ += 1
        return self.shared(pages, visits, alike=self.count_ == 1)

    def shared(self, pages: Pages, visits: float, *, alike: bool) -> Floats:
        if alike:
            return np.full(len(pages), min(1.0, visits / max(1, len(pages))))
        return np.clip(visits - np.argsort(np.argsort(pages.ids)), 0.0, 1.0)


class Forgetful(Fickle):
    """Says that it remembers what it was told, and does not."""

    def expected(self, pages: Pages, visits: float) -> Floats:
        return self.shared(pages, visits, alike=self.count_ < 2)

    def learn(self, outcomes: Outcomes) -> None:
        self.count_ += 1

    def state(self) -> State:
        return {}

    def restore(self, state: State) -> None: ...


class Blind(Greedy):
    """Breaks a law: takes a demand that is not known for none."""

    def expected(self, pages: Pages, visits: float) -> Floats:
        worth = np.nan_to_num(pages.demand) + 1e-9
        return in_proportion(worth, visits)


class Pushy(Greedy):
    """Breaks a law: asked about the full hosts, it asks for more than they can take."""

    def expected(self, pages: Pages, visits: float) -> Floats:
        return np.full(len(pages), min(1.0, visits / max(1, len(pages))))

    def expected_by_host(self, pages: Pages, room: Floats) -> Floats:
        return np.ones(len(pages))


@pytest.mark.parametrize(
    ("policy", "law"),
    [
        (Blind, "NaN in demand is rejected"),
        (Pushy, "no host beyond"),
        (Greedy, "spent exactly|permutation"),
        (Wasteful, "spent exactly"),
        (Wrong, "never NaN"),
        (Lavish, "never more"),
        (Fickle, "asked again"),
        (Forgetful, "restored from its state"),
    ],
)
def test_the_suite_finds_broken_policies(policy: type[Greedy], law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_policy(policy)


class Thrifty(Greedy):
    """Leaves a visit unspent, and says that it may."""

    spends = False

    def expected(self, pages: Pages, visits: float) -> Floats:
        return np.full(len(pages), min(1.0, max(0.0, visits - 1.0) / max(1, len(pages))))


def test_only_a_policy_that_says_so_may_leave_visits_unspent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_policy(Thrifty)
    monkeypatch.setattr(Thrifty, "spends", True)
    with pytest.raises(AssertionError, match="spent exactly"):
        check_policy(Thrifty)


class ByRow:
    """Breaks a law: draws the first rows."""

    def draw(self, pages: Pages, expected: Floats, visits: int, tick: Tick) -> Draw:
        rows = np.flatnonzero(expected > 0)[: min(visits, math.ceil(expected.sum()))]
        return Draw(rows, np.ones(len(rows)))

    def keep(self, pages: Pages, draw: Draw) -> None: ...

    def learn(self, outcomes: Outcomes) -> None: ...


class Lazy(ByRow):
    """Breaks a law: one visit less than expected."""

    def draw(self, pages: Pages, expected: Floats, visits: int, tick: Tick) -> Draw:
        return super().draw(pages, expected, max(0, visits - 1), tick)


@pytest.mark.parametrize(("spacing", "law"), [(ByRow, "no host beyond"), (Lazy, "as many visits")])
def test_the_suite_finds_broken_spacings(spacing: type[ByRow], law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_spacing(spacing)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuch", "known: .*, uniform"),
        ("nosuch.py:Policy", "there is no such file"),
        ("salticus.nosuch:Policy", "No module named"),
        ("salticus.allocate.baselines:Nosuch", "has no 'Nosuch'"),
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
