"""Nothing observed is ever lost: kill -9 at random moments, and on with the crawl."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np
import pytest

from salticus.checks.fetch_server import Server, dripping
from salticus.crawl.journal import BATCH
from salticus.lab.worlds.mall.audit import AccessEntry, Breach, audit
from salticus.lab.worlds.mall.folder import Plot, urls_of
from salticus.lab.worlds.mall.newsroom import Newsroom
from salticus.lab.worlds.mall.press import PressSettings
from salticus.lab.worlds.mall.render import Shelves
from salticus.urls import without_tracking

from .conftest import Street, finished, wait_for

SETTINGS = """\
budget = "100%"

[fetch]
contact = "tests@example.org"
delay = "1ms"
timeout = "10m"
allow_private = ["127.0.0.1"]
"""
SHOPS, DELAY, SPEED = 12, 0.05, 8640.0
SETTLED_S = 2.0  # a visit answered so long before a kill is stored: batches wait 0.5 s
UNREAD_S = 0.5  # an answer given so shortly before a kill may be in the batch that is lost


@dataclass(frozen=True)
class Life:
    """One life of the crawler, in wall seconds and in world time (µs)."""

    born: float
    killed: float


def kill_often(street: Street, kills: int, seed: int) -> list[Life]:
    """Crawl and kill, again and again, each time after a random number of requests."""
    chance = np.random.default_rng(seed)
    lives = []
    for _ in range(kills):
        born, before = time.time(), street.requests()
        crawler = street.crawl()
        more = int(chance.integers(1, 250))
        wait_for(lambda b=before, m=more: street.requests() >= b + m, "requests")
        crawler.kill()
        killed = time.time()
        crawler.communicate()
        lives.append(Life(born, killed))
        print(f"killed after {street.requests() - before} requests")
    return lives


def answered(entries: list[AccessEntry], life: Life) -> list[AccessEntry]:
    """Visits that the mall answered in this life."""
    inside = (e for e in entries if life.born <= e.arrived <= life.killed)
    return [e for e in inside if e.status in (200, 304) and e.path.startswith("/o/")]


def check_nothing_lost(street: Street, lives: list[Life]) -> None:
    """What the mall answered is stored, but for the visits in flight and one batch."""
    entries = street.entries()
    query = "SELECT at FROM observations WHERE code IN (200, 304) ORDER BY at"
    stored = np.array([row[0] for row in street.sql(query)], dtype=np.int64)
    for life in lives:
        given = answered(entries, life)
        worlds = [entry.world for entry in given]
        if not worlds:
            continue
        first, last = min(worlds), max(worlds) + int(DELAY * SPEED * 1e6)
        kept = np.searchsorted(stored, last, "right") - np.searchsorted(stored, first)
        lost = len(given) - int(kept)
        print(f"answered {len(given)}, stored {kept}, lost {lost}")
        assert lost <= SHOPS + 2 * BATCH
        assert kept >= sum(entry.arrived < life.killed - SETTLED_S for entry in given)


def check_visits_once(street: Street) -> None:
    ((rows, visits),) = street.sql("SELECT count(*), count(DISTINCT visit) FROM observations")
    assert rows == visits > 0
    ((counted,),) = street.sql("SELECT sum(visits) FROM pages")
    assert counted == rows


def check_manners(street: Street, lives: list[Life]) -> None:
    kills = [life.killed for life in lives]
    report = audit(street.entries(), delay=DELAY, kills=kills)
    breaches = [b for b in report.breaches if not unread(b, kills)]
    assert not breaches, "\n".join(map(str, breaches[:10]))
    ages = [round(age(b, kills), 3) for b in report.breaches if unread(b, kills)]
    print(f"{report.requests} requests, seconds from unread Retry-After to kill: {ages}")


def unread(breach: Breach, kills: list[float]) -> bool:
    """A Retry-After that was on its way when the crawler died."""
    if breach.rule != "early" or breach.previous is None:
        return False
    return age(breach, kills) <= UNREAD_S


def age(breach: Breach, kills: list[float]) -> float:
    """Seconds from the answer that was not heeded to the next kill."""
    assert breach.previous is not None
    sent = breach.previous.arrived
    return min((kill - sent for kill in kills if kill >= sent), default=float("inf"))


def survive(street: Street, kills: int, seed: int) -> None:
    street.open("429:0.01:retry=1", shops=SHOPS, offers=600, days=400, speed=SPEED, delay=DELAY)
    street.set("budget", '"300%"')
    lives = kill_often(street, kills, seed)
    before = street.requests()
    last = street.crawl()
    wait_for(lambda: street.requests() > before + 300, "the crawl to go on")
    last.terminate()
    code, _, err = finished(last)
    assert code == 0, err
    check_nothing_lost(street, lives)
    check_visits_once(street)
    check_manners(street, lives)


def test_a_kill_while_the_body_of_a_429_drips_does_not_lose_its_retry_after(street: Street) -> None:
    async def main() -> None:
        busy = Server({"/p": dripping("429 Slow down", Retry_After="3600")})
        async with busy, Server({"/p": dripping("200 OK")}) as endless:
            street.folder.mkdir()
            street.settings.write_text(SETTINGS)
            urls = (busy.url("/p"), endless.url("/p"))
            await asyncio.to_thread(street.add, *urls)
            crawler = street.crawl("--once")
            await asyncio.gather(busy.asked("/p"), endless.asked("/p"))
            query = f"SELECT next_at FROM hosts WHERE host = '{busy.host}' AND strikes > 0"
            await asyncio.to_thread(wait_for, lambda: bool(street.sql(query)), "the pause")
            assert crawler.poll() is None
            crawler.kill()
            ((next_at,),) = street.sql(query)
            assert 3500 < float(str(next_at)) - time.time() <= 3600

    asyncio.run(main())


def test_kill_three_times(street: Street) -> None:
    survive(street, kills=3, seed=1)


@pytest.mark.soak
def test_kill_fifty_times(street: Street) -> None:
    survive(street, kills=50, seed=2)


def check_no_find_lost(street: Street) -> None:
    """Every look at a source that was stored has its finds, each page is found once, and what the
    sources promise is the same whether learnt in one life or in several."""
    looks = "SELECT sum(new) FROM looks WHERE since IS NOT NULL"
    finds = "SELECT count(*), count(DISTINCT page) FROM finds"
    ((shown,),), ((rows, pages),) = street.sql(looks), street.sql(finds)
    assert shown == rows == pages > 0
    lost = (
        "SELECT count(*) FROM observations JOIN pages ON pages.id = page LEFT JOIN looks ON "
        "looks.source = page AND looks.at = observations.at WHERE pages.kind = 'source' AND "
        "observations.code IN (200, 304) AND observations.status = 'ok' AND looks.seq IS NULL"
    )
    assert street.sql(lost) == [(0,)]
    code, out, err = finished(street.start("new", "-c", street.settings))
    assert (code, len(out.splitlines())) == (0, rows), err


def check_no_link_lost(street: Street, plot: Plot, lives: list[Life]) -> None:
    """Law: whatever article stood on a source when the mall served that, the store knows, but for
    what was answered just before a kill."""
    press = plot.truth()
    urls = urls_of(street.folder, press)
    hosts = {urlsplit(urls[row]).netloc: row for row in range(press.first, len(urls))}
    owners = {own.shop: own for own in press.publishers}
    every = np.array([page.shop for page in press.stock.pages])
    rooms = {}
    for host, row in hosts.items():
        own = owners[press.stock.pages[row].shop]
        rows: list[int] = np.flatnonzero(every == own.shop).tolist()
        rooms[host] = Newsroom(own, Shelves(press.stock, host, rows))
    shown: set[str] = set()
    for life in lives:
        settled = (e for e in street.entries() if life.born <= e.arrived < life.killed - SETTLED_S)
        for entry in settled:
            room = rooms.get(entry.host)
            if room is not None and entry.status == 200 and entry.path in room.publisher.sources:
                shown |= {urls[row] for row in room.standing(entry.path, entry.world)}
    held = {without_tracking(str(url)) for (url,) in street.sql("SELECT url FROM pages")}
    print(f"{len(shown)} articles stood on sources when they were looked at")
    assert shown <= held, sorted(shown - held)[:10]


def test_a_kill_loses_no_page_that_was_found(street: Street) -> None:
    press = {"publishers": 3, "articles": 200}
    street.open(shops=2, offers=40, days=60, speed=SPEED, delay=0.01, **press)
    plot = Plot(shops=2, offers=40, days=60, press=PressSettings(publishers=3, articles=200.0))
    street.add("--file", street.folder / "sources.txt", "--kind", "source", "--no-visit")
    street.set("budget", "4000")
    lives = kill_often(street, 3, seed=3)
    born, last = time.time(), street.crawl()
    known = "SELECT count(*) FROM finds"
    wait_for(lambda: int(str(street.sql(known)[0][0])) > 50, "new pages")
    last.terminate()
    code, _, err = finished(last)
    assert code == 0, err
    check_no_find_lost(street)
    check_visits_once(street)
    for some in (lives, [Life(born, time.time() + SETTLED_S)]):
        check_no_link_lost(street, plot, some)
