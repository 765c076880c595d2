"""What the panel found: how often pages change, and what the crawl on its own knew of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from math import sqrt

import msgspec
import numpy as np
from msgspec.structs import replace

from salticus.allocate.panel import Terms, choose
from salticus.crawl.opening import Crawl
from salticus.errors import InputError
from salticus.types import Floats, Member, Sighting
from salticus.views.freshness import foreseen, percent_within
from salticus.views.times import moment, spaced

_DAY_US = 86_400_000_000
_MICRO = timedelta(microseconds=1)
_Z = 1.96
_KINDS = ("uniform", "click")


class Stratum(msgspec.Struct, frozen=True, rename=spaced()):
    """The pages of the panel that were drawn together; `caught` is the share of their changes of
    which the crawl's own visits saw the value."""

    stratum: str
    pages: int
    visits: int
    failed: int
    changes_a_day: float | None
    caught: float | None


class Measured(msgspec.Struct, frozen=True):
    """A freshness as the panel found it; None = not known yet."""

    freshness: float | None
    half_width: float | None

    def words(self) -> str:
        return percent_within(self.freshness, self.half_width)


class PanelView(msgspec.Struct, frozen=True, rename=spaced(every_h="every (h)")):
    """The panel, and what it found, if that was asked for."""

    pages: int
    every_h: float
    visits_a_day: float
    since: datetime
    until: datetime | str
    strata: list[Stratum] | msgspec.UnsetType = msgspec.UNSET
    pages_fresh: Measured | msgspec.UnsetType = msgspec.UNSET
    clicks_fresh: Measured | msgspec.UnsetType = msgspec.UNSET


async def plan_panel(
    crawl: Crawl, count: int, every: timedelta, length: timedelta | None
) -> PanelView:
    """Choose a panel, and let the crawl visit it from now on; InputError if it cannot be."""
    config, store, now = crawl.config, crawl.store, crawl.micros
    if every < config.tick:
        raise InputError(f"--every {every} is shorter than a tick ({config.tick}); set `tick`")
    if _open(await store.panel(), now):
        raise InputError("there is a panel already; `salticus panel end` ends it")
    pages, _ = await foreseen(crawl)
    if not 0 < count <= len(pages):
        raise InputError(f"--pages {count}: a panel has from 1 to {len(pages)} pages")
    until = None if length is None else now + length // _MICRO
    terms = Terms(every / timedelta(days=1), now, until)
    await store.empanel(choose(pages, count, terms, seed=config.seed))
    return _about(await store.panel())


async def end_panel(crawl: Crawl) -> PanelView:
    """End the panel; what it found stays."""
    members, now = await crawl.store.panel(), crawl.micros
    if not _open(members, now):
        raise InputError("there is no panel; `salticus panel plan` plans one")
    ends = [now if member.until is None else min(member.until, now) for member in members]
    ended = [replace(member, until=end) for member, end in zip(members, ends, strict=True)]
    await crawl.store.empanel(ended)
    return _about(await crawl.store.panel())


async def panel(crawl: Crawl) -> PanelView:
    """The panel, and what it found, by stratum."""
    members = await crawl.store.panel()
    if not members:
        raise InputError("there is no panel; `salticus panel plan` plans one")
    table = await crawl.store.table()
    demand = dict(zip(table.ids.tolist(), table.demand.tolist(), strict=True))
    lives = lives_of(members, await crawl.store.sightings())
    strata = sorted({member.stratum for member in members})
    uniform, click = ([x for x in lives if x.member.stratum.startswith(k)] for k in _KINDS)
    clicks = np.array([x.member.weight * demand.get(x.member.page, 0.0) for x in click])
    return replace(
        _about(members),
        strata=[_summed(name, [x for x in lives if x.member.stratum == name]) for name in strata],
        pages_fresh=_fresh(uniform, np.array([x.member.weight for x in uniform])),
        clicks_fresh=_fresh(click, clicks),
    )


@dataclass(frozen=True, slots=True)
class Life:
    """A page of the panel: what was seen of it, and what the crawl's own visits would have held.

    `changes` are those that any visit showed, `caught` those of which an own visit saw the value.
    `checks` are answered visits of the panel after the crawl's first own; at `right` of them its
    copy would have been right.
    """

    member: Member
    visits: int
    failed: int
    days: float
    changes: int
    caught: int
    checks: int
    right: int


def lives_of(members: Sequence[Member], seen: Sequence[Sighting]) -> list[Life]:
    """The life of each page, from all visits to it by page and time."""
    of_page = {page: list(some) for page, some in groupby(seen, lambda s: s.page)}
    return [_life(member, of_page.get(member.page, [])) for member in members]


def _life(member: Member, seen: Sequence[Sighting]) -> Life:
    """Follow the value, and beside it the copy of a crawl without the panel.

    Changes count from the first answer in the time of the panel on; the copy may be older.
    """
    panel = [s for s in seen if s.purpose == "panel"]
    told = [s for s in seen if s.digest is not None]
    inside = [s.at for s in told if s.at >= member.since]
    first = inside[0] if inside else member.since
    true: str | None = None
    copy: str | None = None
    changes = caught = checks = right = 0
    open_ = False  # a change that no own visit has seen yet
    for s in told:
        if true is not None and s.digest != true and s.at > first:
            changes, open_ = changes + 1, True
        true = s.digest
        if s.purpose != "panel":
            copy, caught, open_ = true, caught + open_, False
        elif copy is not None:
            checks, right = checks + 1, right + (copy == true)
    days = (inside[-1] - inside[0]) / _DAY_US if inside else 0.0
    failed = sum(s.digest is None for s in panel)
    return Life(member, len(panel), failed, days, changes, caught, checks, right)


def _summed(name: str, lives: Sequence[Life]) -> Stratum:
    days, changes = sum(x.days for x in lives), sum(x.changes for x in lives)
    return Stratum(
        stratum=name,
        pages=len(lives),
        visits=sum(x.visits for x in lives),
        failed=sum(x.failed for x in lives),
        changes_a_day=round(changes / days, 4) if days else None,
        caught=round(sum(x.caught for x in lives) / changes, 4) if changes else None,
    )


def _fresh(lives: Sequence[Life], weight: Floats) -> Measured:
    """Freshness of the crawl without the panel: weighted mean over pages, with an interval."""
    some = np.array([x.checks > 0 for x in lives], dtype=np.bool_)
    share = np.array([x.right / x.checks for x in lives if x.checks])
    w = weight[some] if len(weight) else weight
    if not len(share) or w.sum() <= 0:
        return Measured(None, None)
    mean, n = float(w @ share / w.sum()), len(share)
    if n < 2:
        return Measured(round(mean, 4), None)
    spread = float(w**2 @ (share - mean) ** 2) * n / (n - 1)
    return Measured(round(mean, 4), round(_Z * sqrt(spread) / float(w.sum()), 4))


def _open(members: Sequence[Member], now: int) -> bool:
    return any(member.until is None or member.until > now for member in members)


def _about(members: Sequence[Member]) -> PanelView:
    first = members[0]
    return PanelView(
        pages=len(members),
        every_h=round(24 * first.every, 3),
        visits_a_day=round(sum(1.0 / member.every for member in members), 1),
        since=moment(first.since),
        until="it is ended" if first.until is None else moment(first.until),
    )
