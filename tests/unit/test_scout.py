"""What a running crawl learns of its sources: the same after a restart, and found pages fade."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from salticus.crawl.scout import Scout
from salticus.store.memory.store import MemoryStore
from salticus.testing import START, a_tick, blank_pages
from salticus.types import KINDS, Counts, FoundPages, Looks, instant
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
