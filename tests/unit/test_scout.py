"""What a running crawl learns of its sources: the same after a restart, and found pages fade."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from salticus.checks.store_samples import visit
from salticus.config import Config, parse
from salticus.crawl.finders import make_census
from salticus.crawl.scout import Scout
from salticus.predict.finder import ModelFinder
from salticus.predict.links import LinkRates, SourceVisits
from salticus.store.memory.store import MemoryStore
from salticus.testing import START, a_tick, blank_pages
from salticus.types import (
    KINDS,
    Counts,
    Entry,
    FoundPages,
    Looks,
    NewPage,
    Record,
    Value,
    instant,
)
from salticus.types.state import pack, unpack

HOUR = np.timedelta64(1, "h")
NOW = instant(START)
FEED, HUB = 3, 5
FOUND = np.array([11, 12, 13, 14])


def looks(after: int, until: int) -> Looks:
    """The feed and the hub, every hour; from their second look on, the feed has two new links."""
    number = np.arange(after, until)
    source = np.where(number % 2 == 0, FEED, HUB)
    at = NOW + (number // 2 - 100) * HOUR
    since = np.where(number < 2, np.datetime64("NaT"), at - HOUR)
    new = np.where((number >= 2) & (source == FEED), 2, 0)
    shown = np.full(len(number), 10)
    return Looks(source, at, since, shown, new, shown - new, new, until)


def finds() -> FoundPages:
    at = NOW - np.array([50, 20, 5, 1]) * HOUR
    return FoundPages(FOUND, np.full(4, FEED), at, at - HOUR, 4)


def counted(clicks: int, hours: int = 48) -> list[Counts]:
    """Every hour somebody clicks on the oldest page that was found, less and less."""
    return [
        Counts(
            FOUND[:1], np.array([NOW - k * HOUR]), np.array([clicks + k]), np.zeros(1, int), 100 - k
        )
        for k in range(hours, 0, -1)
    ]


def taught(scout: Scout) -> Scout:
    scout.looked(looks(0, 100))
    scout.take(finds())
    answered = np.full(20, NOW - 49 * HOUR)
    for counts in counted(3):
        scout.heed(counts, np.arange(20), answered)
    return scout


def test_restored_it_knows_what_it_knew_and_learns_on() -> None:
    whole, part = taught(Scout(MemoryStore())), taught(Scout(MemoryStore()))
    again = Scout(MemoryStore())
    again.restore(unpack(pack({"scout": part.state()}))["scout"])
    for scout in (whole, again):
        scout.looked(looks(100, 160))
        scout.finder.solve()
    pages = replace(blank_pages(20), tick=a_tick())
    told, restored = whole.prospects(pages), again.prospects(pages)
    assert told is not None
    assert restored is not None
    for name in ("rate", "profit", "decay", "remaining", "entries", "span", "row"):
        assert np.array_equal(getattr(told, name), getattr(restored, name), equal_nan=True), name
    assert np.array_equal(told.harvest.finds, restored.harvest.finds)
    assert told.rate[FEED] == pytest.approx(48.0, rel=0.2)
    assert told.rate[HUB] < 5.0


def test_without_a_look_nothing_is_promised() -> None:
    assert Scout(MemoryStore()).prospects(blank_pages(20)) is None
    assert asyncio.run(Scout(MemoryStore()).refresh()).tolist() == []


def test_found_pages_wait_and_are_worth_less_the_older_they_are() -> None:
    told = taught(Scout(MemoryStore())).prospects(blank_pages(20))
    assert told is not None
    left = told.remaining[FOUND]
    assert (np.diff(left) > 0).all(), "the latest is worth the most"
    assert np.isnan(np.delete(told.remaining, FOUND)).all()


def test_what_a_source_showed_at_first_is_worth_less_than_what_it_found() -> None:
    """Ten links at 48 a day are five hours old at most; nobody knows how old each is."""
    blank, found = blank_pages(20), np.isin(np.arange(20), [8, 9, *FOUND])
    held = np.where(np.arange(20) == FOUND[0], NOW, blank.last_visit)
    kind = np.where(np.isnat(held), -1, KINDS.index("page")).astype(blank.kind.dtype)
    pages = replace(blank, found=found, added=np.full(20, NOW), kind=kind).answered(held)
    told = taught(Scout(MemoryStore())).prospects(pages)
    assert told is not None
    assert told.backlog is not None
    assert np.flatnonzero(told.backlog).tolist() == [8, 9]
    assert 0.0 < told.remaining[8] == told.remaining[9] < told.profit[FEED]
    offers = replace(pages, kind=np.where(np.isnat(held), -1, 0).astype(kind.dtype))
    both = pages.answered(np.where(np.arange(20) == 8, NOW, held))
    for others, left in ((offers, []), (both, [9])):
        again = taught(Scout(MemoryStore())).prospects(others)
        assert again is not None
        assert again.backlog is not None
        assert np.flatnonzero(again.backlog).tolist() == left


def test_settings_say_what_is_supposed_and_how_it_is_learnt() -> None:
    """Where nobody clicks, interest halves as the settings say; the last visits alone tell how many
    links appear; and nothing is worked out anew before its time."""
    config = parse({"sources": {"half_life": "6h", "history": 3, "relearn": "3h"}})
    scout = make_census(config, MemoryStore()).scout
    scout.looked(looks(0, 4))
    told = scout.prospects(blank_pages(20))
    assert told is not None
    assert told.decay[[FEED, HUB]] == pytest.approx(np.log(2) * 4)
    before = scout.finder.links_.rate.copy()
    scout.looked(looks(4, 8))
    assert np.array_equal(scout.finder.links_.rate, before), "two hours later"
    scout.looked(looks(8, 10))
    assert not np.array_equal(scout.finder.links_.rate, before), "three hours later"
    assert scout.finder.rates.last_.shape[-1] == 3


@pytest.mark.parametrize(("before", "after"), [(7, 3), (3, 7), (5, 5)])
def test_a_history_that_is_set_anew_keeps_the_latest_visits(before: int, after: int) -> None:
    old, new, other = (LinkRates(visits=many) for many in (before, after, min(before, after)))
    for k in range(9):
        told = SourceVisits(*(np.array([x]) for x in (4, 1.0 + k, 2.0 * k, k + 1.0, 1.0)))
        old.learn(told)
        other.learn(told)
    new.restore(old.state())
    one, none = np.array([4]), np.zeros(1, dtype=np.int64)
    assert new.links(one, none).rate == pytest.approx(other.links(one, none).rate)


def test_a_source_is_revisited_by_custom_as_its_format_is() -> None:
    async def main() -> list[float]:
        store = MemoryStore()
        formats = ("rss", "html", "sitemap index", "json feed")
        await store.add([NewPage(f"http://a.example/{f}", kind="source") for f in formats], at=0)
        pages = [await store.page(f"http://a.example/{f}") for f in formats]
        for k, (page, format) in enumerate(zip(pages, formats, strict=True)):
            value = Value("source", "1 links", {"format": format, "links": "1"})
            seen = visit(k + 1, page.page, value=value, digest="x")
            await store.record([Record(seen, entries=(Entry(f"{page.url}/1"),), looked=True)])
        scout = Scout(store)
        scout.meet(np.array([page.page for page in pages]), np.zeros(4, dtype=int), 1.0)
        assert np.isnan(scout.usual_).all()
        await scout.refresh()
        again = Scout(store)
        again.restore(unpack(pack({"scout": scout.state()}))["scout"])
        told = again.prospects(replace(blank_pages(4), ids=again.ids_))
        assert told is not None
        return [round(24 * days, 2) for days in told.usual]

    assert asyncio.run(main()) == [0.5, 12.0, 24.0, 0.5]


def test_policies_with_a_price_of_their_own_model_learn_by_that_model() -> None:
    kinds = {
        name: type(make_census(Config(policy=name), MemoryStore()).scout.finder)
        for name in ("leap", "echo_newpages", "echo_schedule", "echo_newpages_published", "bfs")
    }
    model = {name for name, kind in kinds.items() if kind is ModelFinder}
    assert model == {"echo_newpages", "echo_schedule"}
    published = make_census(Config(policy="echo_schedule_published"), MemoryStore()).scout.finder
    assert published.rates.plain
    assert not make_census(Config(policy="leap"), MemoryStore()).scout.finder.rates.plain


def test_interest_in_found_pages_fades_and_their_own_clicks_correct_it() -> None:
    scout = taught(Scout(MemoryStore()))
    pages = blank_pages(20).answered(np.full(20, NOW - HOUR))
    clicks = np.zeros(20)
    faded = scout.fading(pages, clicks)
    others = np.delete(np.arange(20), FOUND)
    assert (faded[others] == pages.demand[others]).all()
    assert faded[FOUND[0]] < faded[FOUND[-1]], "old pages are wanted less"
    clicks[FOUND[0]] = 50.0
    assert scout.fading(pages, clicks)[FOUND[0]] > 5.0 * faded[FOUND[0]]
    offers = replace(pages, kind=np.full(20, KINDS.index("offer"), dtype=pages.kind.dtype))
    assert np.array_equal(scout.fading(offers, clicks), pages.demand), "offers stay for sale"
    nobody = Scout(MemoryStore())
    nobody.looked(looks(0, 100))
    nobody.take(finds())
    assert np.array_equal(nobody.fading(pages, clicks), pages.demand), "where nobody counts clicks"


def test_a_found_page_that_is_clicked_for_months_is_wanted_for_months() -> None:
    """A guide, say, that a feed announced: interest in news fades, but not in this."""
    scout, held = Scout(MemoryStore()), np.full(20, NOW - 1000 * HOUR)
    scout.looked(looks(0, 200))
    at = np.full(2, NOW - 960 * HOUR)
    scout.take(FoundPages(FOUND[:2], np.full(2, FEED), at, at - HOUR, 2))
    for k in range(960, 0, -1):
        time, many = np.array([NOW - k * HOUR]), np.array([1])
        scout.heed(Counts(FOUND[:1], time, many, np.zeros(1, int), 961 - k), np.arange(20), held)
    demand = scout.fading(blank_pages(20).answered(np.full(20, NOW - HOUR)), np.zeros(20))
    assert demand[FOUND[0]] == pytest.approx(24.0, rel=0.1)
    assert demand[FOUND[1]] < 0.1, "the other one has left"
