"""Checks of settings, store, budget and hosts, with advice; nothing is changed by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np

from salticus.allocate.limits import check_feasible
from salticus.config import Config
from salticus.crawl.census import Census
from salticus.crawl.opening import Crawl, clock_of, open_crawl, stored
from salticus.errors import Infeasible, SalticusError, StoreMissing
from salticus.fetch.robots import Robots
from salticus.store.nouns import Health, Query
from salticus.types import Tick
from salticus.views.alerts import alerts_of, headline
from salticus.views.listing import pages
from salticus.views.settings import settings_of
from salticus.views.times import counted, span
from salticus.views.trial import Finding, bad, doubtful, good, trial

_DAY_S = 86_400.0
_NAMED = 3  # hosts that are named
_LOW, _FULL = 1_000_000_000, 50_000_000  # bytes left on the disk


async def examine(path: Path, url: str | None = None) -> AsyncIterator[Finding]:
    """All checks of the settings at `path`, then a trial of `url`, or of a page of the store."""
    config, found = await settings_of(path)
    for finding in found:
        yield finding
    if config is None:
        return
    holds = False
    async for finding in _store(config):
        holds = holds or finding.about == "pages"
        yield finding
    sample = url or (await _sample(config) if holds else None)
    if sample is None:
        yield doubtful("trial", "there is no page to try", "Name one: `salticus doctor URL`.")
        return
    async for finding in trial(config, sample):
        yield finding


async def _store(config: Config) -> AsyncIterator[Finding]:
    try:
        async with stored(config, create=False) as store:
            health = await store.health()
            yield _health(config.store, health)
            if health.wrong is None:
                if health.free is not None:
                    yield _disk(health.free)
                holder = await store.holder()
                running = f"a crawl is running (process {holder})"
                who = "no crawl is running" if holder is None else running
                yield good("running", who)
                async for finding in _held(Crawl(config, store, clock_of(config))):
                    yield finding
    except StoreMissing:
        yield doubtful("store", f"{config.store} is not there yet", "`salticus add URL` makes it.")
    except SalticusError as error:
        yield bad("store", str(error), "A copy made by `salticus backup` can take its place.")


def _health(name: str, health: Health) -> Finding:
    if health.wrong is None:
        return good("store", f"{name} is sound ({health.bytes / 1e6:,.1f} MB)")
    copy = "Keep a copy of the file as it is, and go back to your last backup."
    return bad("store", f"{name} is damaged: {' '.join(health.wrong.split())}", copy)


def _disk(free: int) -> Finding:
    said = f"{free / 1e9:,.1f} GB are free where the store lies"
    if free >= _LOW:
        return good("disk", said)
    more = "Make room, or set `retention` so that old visits are deleted."
    return (bad if free < _FULL else doubtful)("disk", said, more)


async def _held(crawl: Crawl) -> AsyncIterator[Finding]:
    config, store = crawl.config, crawl.store
    for finding in await burden(crawl):
        yield finding
    ids = (await store.table()).ids if config.pages else None
    for rule in config.pages:
        if ids is not None and not np.any(await store.fitting(ids, [rule]) >= 0):
            yield doubtful("[[pages]]", f"the store has no {rule.named}")
    open_ = await alerts_of(crawl)
    for alert in open_:
        yield doubtful("alert", headline(alert), alert.advice)
    if not open_:
        yield good("alerts", "no host has an alert")


async def _sample(config: Config) -> str | None:
    """A page to try: the last that was visited and is no source, else any."""
    async with open_crawl(config) as crawl:
        query = Query(sort="last_visit", descending=True, limit=100)
        found = [page for page in await pages(crawl, query) if page.kind != "source"]
    well = [page for page in found if page.state in ("well", "new")]
    return next((page.url for page in well or found), None)


async def burden(crawl: Crawl) -> list[Finding]:
    """Pages, visits a day, and hosts that cannot take their share of them."""
    config, store, clock = crawl.config, crawl.store, crawl.clock
    census = Census(store, max_interval=config.max_interval_days, rules=config.pages)
    await census.refresh()
    now = clock.now()
    tick = Tick(0, now, now + config.tick)
    known = {h.host: h.robots for h in await store.hosts() if h.robots}
    asked = {host: Robots(200, robots).delay() for host, robots in known.items()}
    room = {host: _room(config, host, asked.get(host, 0.0)) / clock.speed for host in census.hosts}
    pages = census.pages(tick, lambda host: room[host] * tick.days)
    if not len(pages):
        add = "`salticus add URL`, or a whole shop: `salticus add --sitemap URL`."
        return [doubtful("pages", "the store has no page to visit", add)]
    planned = config.per_day(len(pages), int(pages.found.sum()))
    counts = Counter(census.hosts[number] for number in pages.host.tolist())
    found = [
        good("pages", f"{counted(len(pages), 'page')} to visit on {counted(len(counts), 'host')}"),
        _shares(counts, room, planned / len(pages)),
    ]
    try:
        check_feasible(pages, planned, tick, census.hosts)
    except Infeasible as error:
        found.append(bad("max_interval", str(error)))
    return found


def _room(config: Config, host: str, asked: float) -> float:
    """Visits that a host can take in a real day, at a crawl-delay of `asked` seconds."""
    delay, hours = max(config.delay(host), asked), config.hours(host)
    open_s = _DAY_S if hours is None else hours.length.total_seconds()
    return open_s / delay if delay else np.inf


def _shares(counts: Counter[str], room: dict[str, float], each: float) -> Finding:
    """Whether every host can take the visits that a page gets on average."""
    planned = each * counts.total()
    said = f"{planned:,.0f} visits a day, each page every {span(_DAY_S / each)} on average"
    over = [(host, n * each) for host, n in counts.most_common() if n * each > room[host]]
    if not over:
        return good("budget", f"{said}; every host can take its share")
    named = ", ".join(f"{host} {room[host]:,.0f} of {n:,.0f}" for host, n in over[:_NAMED])
    more = f" and {len(over) - _NAMED} more" if len(over) > _NAMED else ""
    return doubtful(
        "budget",
        f"{said}; politeness leaves fewer to {counted(len(over), 'host')}: {named}{more} a day",
        "Their visits go to other hosts, or are not made. Lower `budget`, or, if the owner of the "
        "host agrees, give it a shorter delay in [[hosts]].",
    )
