"""What the panel found: how often pages change, and what the crawl on its own knew of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from math import nan, sqrt
from typing import Any

import numpy as np

from salticus.allocate.panel import Terms, choose
from salticus.config import Config
from salticus.crawl.opening import clock_of, stored
from salticus.errors import InputError
from salticus.types import Floats, Member, Sighting
from salticus.views.freshness import foreseen
from salticus.views.times import when

_DAY_US = 86_400_000_000
_Z = 1.96


async def plan_panel(
    config: Config, count: int, every: timedelta, length: timedelta | None
) -> dict[str, Any]:
    """Choose a panel, and let the crawl visit it from now on; InputError if it cannot be."""
    if every < config.tick:
        raise InputError(f"--every {every} is shorter than a tick ({config.tick}); set `tick`")
    clock = clock_of(config)
    async with stored(config) as store:
        if _open(await store.panel(), now := int(clock.now().timestamp() * 1e6)):
            raise InputError("there is a panel already; `salticus panel end` ends it")
        pages, _ = await foreseen(config, store)
        if not 0 < count <= len(pages):
            raise InputError(f"--pages {count}: a panel has from 1 to {len(pages)} pages")
        until = None if length is None else now + round(length.total_seconds() * 1e6)
        terms = Terms(every / timedelta(days=1), now, until)
        await store.empanel(choose(pages, count, terms, seed=config.seed))
        return _about(await store.panel())


async def end_panel(config: Config) -> dict[str, Any]:
    """End the panel; what it found stays."""
    now = int(clock_of(config).now().timestamp() * 1e6)
    async with stored(config) as store:
        members = await store.panel()
        if not _open(members, now):
            raise InputError("there is no panel; `salticus panel plan` plans one")
        await store.empanel([_ended(member, now) for member in members])
        return _about(await store.panel())


async def panel_of(config: Config) -> dict[str, Any]:
    """The panel, and what it found, by stratum."""
    async with stored(config) as store:
        members = await store.panel()
        if not members:
            raise InputError("there is no panel; `salticus panel plan` plans one")
        seen = await store.sightings()
        table = await store.table()
    demand = dict(zip(table.ids.tolist(), table.demand.tolist(), strict=True))
    lives = lives_of(members, seen)
    strata = sorted({member.stratum for member in members})
    by_stratum = {name: [life for life in lives if life.member.stratum == name] for name in strata}
    uniform, click = ([x for x in lives if x.member.stratum.startswith(k)] for k in _KINDS)
    return {
        **_about(members),
        "strata": [{"stratum": name, **_summed(some)} for name, some in by_stratum.items()],
        "pages fresh": _fresh(uniform, np.array([x.member.weight for x in uniform])),
        "clicks fresh": _fresh(
            click, np.array([x.member.weight * demand.get(x.member.page, 0.0) for x in click])
        ),
    }


_KINDS = ("uniform", "click")


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


def _summed(lives: Sequence[Life]) -> dict[str, Any]:
    days, changes = sum(x.days for x in lives), sum(x.changes for x in lives)
    return {
        "pages": len(lives),
        "visits": sum(x.visits for x in lives),
        "failed": sum(x.failed for x in lives),
        "changes a day": round(changes / days, 4) if days else None,
        "caught": round(sum(x.caught for x in lives) / changes, 4) if changes else None,
    }


def _fresh(lives: Sequence[Life], weight: Floats) -> dict[str, float | None]:
    """Freshness of the crawl without the panel: weighted mean over pages, with an interval."""
    some = np.array([x.checks > 0 for x in lives], dtype=np.bool_)
    share = np.array([x.right / x.checks for x in lives if x.checks])
    w = weight[some] if len(weight) else weight
    if not len(share) or w.sum() <= 0:
        return {"freshness": None, "half_width": None}
    mean, n = float(w @ share / w.sum()), len(share)
    spread = float(w**2 @ (share - mean) ** 2) * n / (n - 1) if n > 1 else nan
    half = _Z * sqrt(spread) / float(w.sum()) if n > 1 else nan
    return {"freshness": round(mean, 4), "half_width": None if n < 2 else round(half, 4)}


def _open(members: Sequence[Member], now: int) -> bool:
    return any(member.until is None or member.until > now for member in members)


def _ended(member: Member, now: int) -> Member:
    until = now if member.until is None else min(member.until, now)
    return Member(member.page, member.stratum, member.weight, member.every, member.since, until)


def _about(members: Sequence[Member]) -> dict[str, Any]:
    first = members[0]
    return {
        "pages": len(members),
        "every (h)": round(24 * first.every, 3),
        "visits a day": round(sum(1.0 / member.every for member in members), 1),
        "since": when(first.since),
        "until": "it is ended" if first.until is None else when(first.until),
    }
