"""What is planned against what hosts can take."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np

from salticus.allocate.limits import check_feasible
from salticus.config import Config, Hours
from salticus.crawl.census import Census
from salticus.crawl.opening import Crawl
from salticus.errors import Infeasible
from salticus.fetch.robots import Robots
from salticus.types import Tick
from salticus.views.finding import Finding, bad, doubtful, good
from salticus.views.times import span
from salticus.views.words import counted

_DAY_S = 86_400.0
_NAMED = 3


async def burden(crawl: Crawl) -> list[Finding]:
    """Pages, visits a day, and hosts that cannot take their share of them."""
    config, store, clock = crawl.config, crawl.store, crawl.clock
    census = Census(store, max_interval=config.max_interval_days, rules=config.pages)
    await census.refresh()
    now = clock.now()
    tick = Tick(0, now, now + config.tick)
    asked = {h.host: _asked(h.robots) for h in await store.hosts()}
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


def _asked(robots: str | None) -> float:
    """The crawl-delay that a host's robots.txt asks for, seconds."""
    return Robots(200, robots).delay() if robots else 0.0


def _room(config: Config, host: str, asked: float) -> float:
    """Visits that a host can take in a real day."""
    delay = max(config.delay(host), asked)
    open_s = _DAY_S if (hours := config.hours(host)) is None else _length(hours)
    return open_s / delay if delay else np.inf


def _length(hours: Hours) -> float:
    start, end = (datetime.combine(datetime.now(UTC), t) for t in (hours.start, hours.end))
    return (end - start) % timedelta(days=1) / timedelta(seconds=1)


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
