"""What is said of sources: new links a day, from what the store keeps of visits and links."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from salticus.checks.store_samples import visit as observed
from salticus.config import Config
from salticus.crawl.opening import open_crawl
from salticus.store.base import Store
from salticus.types import Entry, NewPage, Record, Value
from salticus.types.dates import DAY_US
from salticus.views.sources import SourceFacts, sources_of

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


def test_without_sources_there_is_nothing_to_say(tmp_path: Path) -> None:
    async def main() -> list[SourceFacts]:
        async with open_crawl(Config(store=f"sqlite:{tmp_path / 's.db'}")) as crawl:
            return await sources_of(crawl)

    assert asyncio.run(main()) == []
