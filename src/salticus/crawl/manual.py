"""What the user does by hand: pages that are added, and visits that are ordered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.assembly import check_contact, fetching, live
from salticus.crawl.opening import Crawl, clock_of, open_crawl
from salticus.crawl.snapshot import Snapshot, no_plan, replace_part
from salticus.errors import InputError
from salticus.schedule.ledger import Ledger
from salticus.store.base import Store
from salticus.store.nouns import PageState, Query
from salticus.types import NewPage as NewPage
from salticus.types import Outcomes, Pages, Plan, Purpose, Tick, instant, unplanned
from salticus.urls import canonical

if TYPE_CHECKING:
    from salticus.crawl.live import Live


_SHOWN = 10  # faults that are named
MANUAL = 1000  # pages that are visited by one order of the user's
_PATIENCE_S = 3600.0  # wall seconds that these visits may take in all


class Added(msgspec.Struct, frozen=True):
    """How many of the pages given are new, and how many were known already."""

    new: int
    known: int


async def add(crawl: Crawl, pages: Iterable[str | NewPage]) -> Added:
    """Add pages, all of them or none if one is no URL; known ones get what is given of the rest."""
    given = [NewPage(page) if isinstance(page, str) else page for page in pages]
    new = await crawl.store.add(given, at=crawl.micros)
    return Added(new, len(given) - new)


def canonical_urls(entries: Iterable[tuple[str, str]]) -> list[str]:
    """The canonical URLs of (where it stands, text), each once; InputError names all bad ones."""
    bad: list[str] = []
    found: dict[str, None] = {}
    for where, text in entries:
        try:
            found[canonical(text)[0]] = None
        except InputError as error:
            bad.append(f"{where}: {error}{_hint(text)}")
    if bad:
        more = f"\n(and {len(bad) - _SHOWN} more)" if len(bad) > _SHOWN else ""
        raise InputError("nothing was added\n" + "\n".join(bad[:_SHOWN]) + more)
    if not found:
        raise InputError("no URL was given; name some, or use --file, or - for standard input")
    return list(found)


def _hint(text: str) -> str:
    """What was probably meant.

    >>> _hint("shop.example/tea"), _hint("nonsense")
    ('; did you mean https://shop.example/tea ?', '')
    """
    bare = "://" not in text and "." in text and " " not in text
    return f"; did you mean https://{text} ?" if bare else ""


async def read_sources(config: Config, urls: Sequence[str]) -> tuple[list[PageState], int, int]:
    """Visit sources now, and those that they name: their states, how many pages are new by them,
    and how many sources are still to be read."""
    async with open_crawl(config) as crawl:
        before = (await crawl.store.summary()).pages
    visited = await visit_now(config, urls)
    async with open_crawl(config) as crawl:
        found = (await crawl.store.summary()).pages - before
        return visited, found, len(await unread_sources(crawl.store))


# -------------------------------------------------------------------------- visits that are ordered


async def visit_now(config: Config, urls: Sequence[str]) -> list[PageState]:
    """Visit known pages at once, and the sitemaps that sitemaps among them name.

    Visits to the pages given are the user's own: they are polite like all others, but do not count
    against the budget. The sitemaps that these name do, and are read as far as a day's budget goes;
    the crawl visits the others. Raises StoreLocked if a crawler runs on the store.
    """
    check_contact(config)
    clock = clock_of(config)
    async with fetching(config, clock) as fetcher, live(config, clock, fetcher) as (world, store):
        asked = [await store.page(url) for url in urls]
        await _make(world, by_hand([page.page for page in asked], _now(clock)))
        seen = {page.page: await store.page(page.url) for page in asked}
        while (sources := await unread_sources(store, {*seen})) and len(seen) < MANUAL:
            plan = by_hand([page.page for page in sources[: MANUAL - len(seen)]], _now(clock))
            plan = await _paid(config, store, plan, await world.pages(plan.tick))
            if not len(plan):
                break
            await _make(world, plan)
            visited = {*plan.page.tolist()}
            seen |= {p.page: await store.page(p.url) for p in sources if p.page in visited}
        async for _ in world.finish():
            pass
        return list(seen.values())


async def unread_sources(store: Store, known: set[int] | None = None) -> list[PageState]:
    """Sources that others name and that were never visited, without those `known`."""
    sources = await store.find(Query(kind="source", state="new"))
    return [page for page in sources if page.sources and page.page not in (known or ())]


def _now(clock: Clock) -> Tick:
    """From now until these visits must be made."""
    now = clock.now()
    return Tick(0, now, now + timedelta(seconds=_PATIENCE_S * clock.speed))


async def _make(world: Live, plan: Plan) -> None:
    await world.pages(plan.tick)
    async for _ in world.visit(plan):
        pass


async def _paid(config: Config, store: Store, plan: Plan, pages: Pages) -> Plan:
    """As many of the visits as the budget has left, a day's at most, to discover pages.

    They are charged before they are made, as if made when the tick ends: a kill gives none for
    free.
    """
    plan = plan.take(np.isin(plan.page, pages.ids))
    plan = replace(plan, purpose=np.full(len(plan), Purpose.DISCOVER, dtype=np.int8))
    ledger = Ledger(config.budget, carry=timedelta(days=1), caps=config.caps)
    await Snapshot({"ledger": ledger}, store).recall()
    start = plan.tick.start
    grant = ledger.grant(pages, Tick(0, start, start + timedelta(microseconds=1)))
    cost = pages.cost[pages.rows(plan.page)]
    within = np.cumsum(cost) <= grant.visits
    plan = plan.take(within)
    made = replace(Outcomes.dropped(plan, instant(plan.tick.end)), made=np.ones(len(plan), bool))
    ledger.spend(plan.visit, cost[within])
    ledger.learn(made)
    await replace_part(store, "ledger", ledger, no_plan(start))
    return plan


def by_hand(pages: Sequence[int], tick: Tick) -> Plan:
    """The user's own visits, beyond the budget, due at once.

    They are numbered by the start of the tick.
    """
    return Plan(
        visit=unplanned(instant(tick.start), len(pages)),
        page=np.array(pages, dtype=np.int64),
        due=np.full(len(pages), instant(tick.start)),
        purpose=np.full(len(pages), Purpose.MANUAL, dtype=np.int8),
        propensity=np.ones(len(pages)),
        tick=tick,
    )
