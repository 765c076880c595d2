"""What the loop must not forget: a snapshot at every tick, completed by the stored outcomes.

The snapshot holds every part's memory and the visits still open. After a crash the parts are
restored, the outcomes stored since are learnt again from the store, and the visits that have none
are made: the same decisions, without a commit for each of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from typing import TypeVar

import numpy as np

from salticus.crawl.parts import Parts
from salticus.crawl.world import Costs
from salticus.errors import StoreError
from salticus.predict.trust import Trust
from salticus.store.base import RunStore
from salticus.types import UNPLANNED, Ints, Outcomes, Plan, Tick, instant, moment
from salticus.types.state import Remembers, State, packed, part_of, unpack

_TRUSTING = {
    "predictor": ("change", "trust_"),
    "clicks": ("click", "pooled_trust_"),
    "impressions": ("impression", "pooled_trust_"),
}
"""The parts that trust models: of which task, and the names of what they keep of it."""

T = TypeVar("T")

_MMAP_THRESHOLD = -3  # in malloc.h


class Snapshot:
    """Saves and restores the parts of a loop; without a keeper it forgets, as simulations may.

    Law: a loop that was killed and restored plans what it would have planned.
    """

    def __init__(self, parts: Mapping[str, object], keeper: RunStore | None = None) -> None:
        named = ((f"{role}.{type(part).__name__}", part) for role, part in parts.items())
        self.parts = {name: part for name, part in named if isinstance(part, Remembers)}
        self.keeper = keeper
        self.open_: Plan | None = None
        self._settled: list[Ints] = []

    async def save(self, plan: Plan | None = None) -> None:
        """Remember all parts, with `plan` about to be made."""
        if self.keeper is None:
            return
        still = self._still_open()
        self.open_ = plan if still is None else still if plan is None else still.join(plan)
        if self.open_ is not None:
            states = {name: part.state() for name, part in self.parts.items()}
            states["open"] = _columns(self.open_)
            await self.keeper.remember(_packed(states))

    def opened(self, plan: Plan) -> None:
        """These visits are open too."""
        if self.keeper is not None:
            self.open_ = plan if self.open_ is None else plan.join(self.open_)

    def learn(self, outcomes: Outcomes) -> None:
        """These visits are no longer open."""
        if self.keeper is not None:
            self._settled.append(outcomes.visit)

    def _still_open(self) -> Plan | None:
        settled, self._settled = self._settled, []
        if self.open_ is None or not settled:
            return self.open_
        return self.open_.without(np.concatenate(settled))

    async def recall(self) -> tuple[Plan, Outcomes] | None:
        """Restore all parts. Returns the visits that were open, and the outcomes of those that
        were stored before the run ended."""
        blob = await self.keeper.recall() if self.keeper else None
        if blob is None or self.keeper is None:
            return None
        try:
            states = unpack(blob)
            self.open_ = _plan(states.pop("open"))
            for name in states.keys() & self.parts.keys():
                self.parts[name].restore(states[name])
        except (ValueError, KeyError, OSError) as error:
            raise StoreError(f"the run state cannot be read: {error}") from error
        return self.open_, await self.keeper.outcomes(self.open_.visit)


def _packed(states: Mapping[str, State]) -> Iterator[bytes]:
    give_back()
    yield from packed(states)


async def replace_part(keeper: RunStore, role: str, part: Remembers, plan: Plan) -> None:
    """Replace what is remembered of one part, and leave the others; `plan` is open if none was."""
    blob = await keeper.recall()
    states = {"open": _columns(plan)} if blob is None else unpack(blob)
    states[f"{role}.{type(part).__name__}"] = part.state()
    await keeper.remember(packed(states))


async def learnt_trust(keeper: RunStore) -> dict[str, Trust]:
    """How far models are trusted beside history by what a crawl remembers, by their tasks."""
    blob, found = await keeper.recall(), {}
    for name, state in ({} if blob is None else unpack(blob)).items():
        task, prefix = _TRUSTING.get(name.partition(".")[0], ("", ""))
        if f"{prefix}losses" in state:
            found[task] = Trust()
            found[task].restore(part_of(state, prefix))
    return found


def give_back() -> None:
    """Return to the system what planning has freed, where the C library can: at a million pages a
    quarter of a gigabyte, which the snapshot would else come on top of."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def tidily(work: Callable[[], T]) -> T:
    """Do work and give back what it has freed, which the next would else come on top of."""
    found = work()
    give_back()
    return found


def set_apart() -> None:
    """Have the C library, where it can, keep every large column apart, so that it is returned as
    soon as it is freed: at 300,000 pages a plan's peak is 80 MB lower."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 22)


async def recover(
    snapshot: Snapshot, parts: Parts, learn: Callable[[Outcomes], None], costs: Costs
) -> Plan | None:
    """Let the parts become what they were when the last run stopped; the visits that it left open.

    The outcomes stored since the snapshot are learnt, of urgent visits too, which no snapshot knows
    of, and InstaCrawl hears which requests were decided.
    """
    keeper, recalled = snapshot.keeper, await snapshot.recall()
    if keeper is None or recalled is None:
        return None
    plan, outcomes = recalled
    learn(outcomes)
    for part in (parts.insta, parts.discover):
        later = await keeper.outcomes_after(max(part.latest_, UNPLANNED))
        urgent = later.take(later.purpose == part.purpose)
        if len(urgent):
            parts.ledger.spend(urgent.visit, await costs(urgent.page))
        learn(urgent)
        part.made(urgent.visit)
    parts.insta.heard(await keeper.asked(parts.insta.number_))
    return plan.without(outcomes.visit)


def _columns(plan: Plan) -> State:
    columns = {each.name: getattr(plan, each.name) for each in fields(plan) if each.name != "tick"}
    return columns | {
        "number": np.array(plan.tick.number),
        "span": np.array([instant(plan.tick.start), instant(plan.tick.end)]),
    }


def _plan(state: State) -> Plan:
    start, end = (moment(t) for t in state.pop("span"))
    tick = Tick(int(state.pop("number")), start, end)
    return Plan(**state, tick=tick)


def no_plan(now: datetime) -> Plan:
    """The plan of a crawl that has none."""
    none = np.empty(0, dtype=np.int64)
    tick = Tick(0, now, now)
    return Plan(none, none, none.view("M8[us]"), none.astype(np.int8), none.astype(float), tick)
