"""What is said of sources: new links a day, from what the store keeps of visits and links."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from salticus.checks.store_samples import visit as observed
from salticus.config import Config
from salticus.crawl.opening import open_crawl
from salticus.store.base import Store
from salticus.types import Entry, Looks, NewPage, Record, Value
from salticus.types.dates import DAY_US
from salticus.views.sources import SourceFacts, by_hour, sources_of

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
    more = {"entries": entries, "complete": True} if status == "ok" else {}
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
            return await sources_of(crawl)

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
    assert busy.half_life == pytest.approx(np.log(2)), "nobody clicked: as it is on the first day"
    assert (busy.interval, busy.visit_price) == (None, None), "nothing was planned yet"
    assert "new pages, each good for 1 clicks, half of them within 17 h" in busy.why
    assert found[NEW].why == "no visit to it was answered yet"
    assert found[NEW].worth is None


def test_hours_of_the_day_are_told_apart() -> None:
    """Ten new links every day between 8 and 9, none at other hours, looked at by the hour."""
    hours = START // 3_600_000_000 * 3_600_000_000 + 3_600_000_000 * np.arange(10 * 24)
    at = hours.view("M8[us]")
    new = np.where((hours // 3_600_000_000) % 24 == 9, 10, 0)[1:]
    blank = np.zeros(len(new), dtype=np.int64)
    looks = Looks(blank + 7, at[1:], at[:-1], blank, new, blank, blank, len(new))
    (found,) = by_hour(looks, np.array([7]), np.array([10.0]))
    assert np.argmax(found) == 8
    assert found[8] > 5 * np.delete(found, 8).max()
    assert found.min() > 0


def test_without_sources_there_is_nothing_to_say(tmp_path: Path) -> None:
    async def main() -> list[SourceFacts]:
        async with open_crawl(Config(store=f"sqlite:{tmp_path / 's.db'}")) as crawl:
            return await sources_of(crawl)

    assert asyncio.run(main()) == []
