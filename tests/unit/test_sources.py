"""What is said of sources: new links a day, from what the store keeps of visits and links."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import numpy as np
import pytest

from salticus.checks.store_samples import visit as observed
from salticus.config import Config
from salticus.crawl.finders import make_census
from salticus.crawl.opening import open_crawl
from salticus.predict.finder import Finder
from salticus.predict.links import SourceVisits
from salticus.store.base import Store
from salticus.testing import a_tick
from salticus.types import Entry, NewPage, Record, Value
from salticus.types.dates import DAY_US
from salticus.views.promises import by_hour
from salticus.views.sources import CoverStep, SourceFacts, as_row, cover_of, sources_of

START = 1_780_000_000_000_000  # µs
BUSY, QUIET, NEW, DEAD = (f"http://{name}.example/" for name in ("busy", "quiet", "new", "dead"))


async def visit(store: Store, url: str, day: float, *names: str, status: str = "ok") -> None:
    """A visit to a source that names pages."""
    page = await store.page(url)
    at = START + int(day * DAY_US)
    value = Value("source", f"{len(names)} links", {"format": "rss", "links": str(len(names))})
    well = {"value": value, "digest": "x"} if status == "ok" else {}
    seen = observed(at // 10**5 + page.page, page.page, at=at, status=status, **well)
    entries = tuple(Entry(f"{url}{name}") for name in names)
    more = {"entries": entries, "complete": True, "looked": True} if status == "ok" else {}
    await store.record([Record(seen, **more)])  # type: ignore[arg-type]


def told(tmp_path: Path) -> dict[str, SourceFacts]:
    async def main() -> list[SourceFacts]:
        async with open_crawl(Config(store=f"sqlite:{tmp_path / 's.db'}")) as crawl:
            urls = (BUSY, QUIET, NEW, DEAD)
            await crawl.store.add([NewPage(url, kind="source") for url in urls], at=START)
            for k in range(6):
                await visit(crawl.store, BUSY, k / 4, *(str(n) for n in range(10 * k, 10 * k + 20)))
                await visit(crawl.store, QUIET, k, "a", "b", *(("c",) if k >= 4 else ()))
            await visit(crawl.store, DEAD, 1.0, status="timeout")
            return (await sources_of(crawl)).sources

    return {source.url: source for source in asyncio.run(main())}


def test_the_busiest_comes_first_and_rates_are_those_of_visits(tmp_path: Path) -> None:
    found = told(tmp_path)
    assert next(iter(found)) == BUSY
    busy, quiet = found[BUSY], found[QUIET]
    assert (busy.links, busy.format, busy.visits, busy.state) == (20, "rss", 6, "well")
    assert busy.new_per_day == pytest.approx(50 / 1.25 / 0.65, rel=0.25), "some came and went"
    assert 0.2 <= quiet.new_per_day < 0.5, "one in five days, drawn to the others"
    assert quiet.links == 3
    assert busy.error < quiet.error
    assert busy.last_new is not None
    assert quiet.last_new is not None
    assert (busy.last_new.timestamp() - START / 1e6) / 86_400 == pytest.approx(1.25)
    assert (quiet.last_new.timestamp() - START / 1e6) / 86_400 == pytest.approx(4.0)


def test_a_source_that_was_never_read_is_taken_for_one_like_the_others(tmp_path: Path) -> None:
    found = told(tmp_path)
    for url, state in ((NEW, "new"), (DEAD, "failing")):
        source = found[url]
        assert (source.state, source.links, source.last_new) == (state, 0, None)
        assert found[QUIET].new_per_day < source.new_per_day < found[BUSY].new_per_day
        assert source.error > found[QUIET].error


def test_what_sources_promise_is_told_in_numbers_and_in_words(tmp_path: Path) -> None:
    found = told(tmp_path)
    busy = found[BUSY]
    assert busy.clicks_per_page is not None
    assert busy.clicks_per_page > 0
    assert busy.half_life == pytest.approx(17 / 24), "nobody clicked: as the settings suppose"
    assert (busy.interval, busy.visit_price) == (None, None), "nothing was planned yet"
    assert "new pages, each good for 1 clicks, half of them within 17 h" in busy.why
    assert found[NEW].why == "no visit to it was answered yet"
    assert found[NEW].worth is None


def test_hours_of_the_day_are_told_apart() -> None:
    """Ten new links every day between 8 and 9, none at other hours, looked at by the hour."""
    finder, one = Finder(1, resolution=1 / 24, shortest=1 / 288), np.zeros(1, dtype=np.int64)
    assert np.allclose(by_hour(finder.harvest_), 1.0)
    for hour in range(1, 20 * 24):
        new, none = np.array([10.0 if hour % 24 == 9 else 0.0]), np.zeros(1)
        at = np.array([START - START % DAY_US + hour * 3_600_000_000]).view("M8[us]")
        finder.visited(SourceVisits(one, np.array([1 / 24]), new, none, none), at)
    finder.solve()
    found = by_hour(finder.harvest_)
    assert np.argmax(found) == 8
    assert found[8] > 2 * np.delete(found, 8).max()
    assert found.mean() == pytest.approx(1.0)


def test_what_is_shown_is_what_the_crawl_decides_by(tmp_path: Path) -> None:
    """Rates and errors are those of the census that plans, to the last digit."""
    found = told(tmp_path)

    async def known() -> dict[str, tuple[float, float]]:
        config = Config(store=f"sqlite:{tmp_path / 's.db'}")
        async with open_crawl(config) as crawl:
            census = make_census(config, crawl.store)
            await census.refresh()
            census.everyone(a_tick(), lambda _: 1.0)
            links, ids = census.scout.finder.links_, census.scout.ids_
            urls = [target.url for target in await crawl.store.targets(ids)]
            told = zip(links.rate.tolist(), links.error.tolist(), strict=True)
            return dict(zip(urls, told, strict=True))

    assert {url: (one.new_per_day, one.error) for url, one in found.items()} == asyncio.run(known())


def test_a_row_says_in_a_word_why_a_source_is_visited_when_it_is(tmp_path: Path) -> None:
    found, now = told(tmp_path), datetime.fromtimestamp(START / 1e6, UTC) + timedelta(days=6)
    assert [as_row(found[url], now)[-2] for url in (NEW, DEAD)] == ["not visited yet", "failing"]
    assert as_row(found[BUSY], now)[-2] == "no visit price"
    busy = msgspec.structs.replace(found[BUSY], visit_price=0.1, interval=10.0, unseen=2.0)
    assert as_row(busy, now)[-2:] == ("due in 8 d", BUSY)
    assert as_row(msgspec.structs.replace(busy, unseen=10.0), now)[-2] == "due"
    assert as_row(msgspec.structs.replace(busy, interval=None), now)[-2] == "not worth a visit"


def test_few_sources_show_most_of_the_new_pages(tmp_path: Path) -> None:
    """Every new page counts once, for the source that adds the most; what was there at the first
    visit is old."""

    async def main() -> list[CoverStep]:
        async with open_crawl(Config(store=f"sqlite:{tmp_path / 's.db'}")) as crawl:
            urls = (BUSY, QUIET, NEW)
            await crawl.store.add([NewPage(url, kind="source") for url in urls], at=START)
            assert await cover_of(crawl) == []
            for url in urls:
                await visit(crawl.store, url, 0.0, f"{len(url)}old")
            await visit(crawl.store, BUSY, 1.0, *(f"{n}" for n in range(8)))
            await visit(crawl.store, QUIET, 1.1, "x", "y")
            await visit(crawl.store, NEW, 1.2)
            return await cover_of(crawl)

    assert asyncio.run(main()) == [CoverStep(BUSY, 8, 0.8), CoverStep(QUIET, 2, 1.0)]


def test_without_sources_there_is_nothing_to_say(tmp_path: Path) -> None:
    async def main() -> list[SourceFacts]:
        async with open_crawl(Config(store=f"sqlite:{tmp_path / 's.db'}")) as crawl:
            return (await sources_of(crawl)).sources

    assert asyncio.run(main()) == []
