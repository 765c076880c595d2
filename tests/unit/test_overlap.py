"""Sources of a site that show the same links: what one look has shown, another cannot find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.predict.overlap import Overlap
from salticus.types import Floats, Looks

START = np.datetime64("2026-01-01", "us")
HOUR = np.timedelta64(1, "h")
MAIN, FEED, SPORT, OTHER = range(4)


def look(source: int, hour: float, since: float | None, shows: int, new: int) -> Looks:
    """One look, which shows so many links that the one before did not; `new` ones nobody had."""
    at = np.array([START + np.timedelta64(int(hour * 3600), "s")])
    none = np.array(["NaT"], dtype="M8[us]")
    before = none if since is None else np.array([START + np.timedelta64(int(since * 3600), "s")])
    columns = (np.array([n]) for n in (20 + shows, new, 20, shows))
    return Looks(np.array([source]), at, before, *columns, last=1)


def taught(days: int = 20) -> Overlap:
    """A site whose main page and feed show all, and a category half of it; another site. Every hour
    two pages appear, and the three sources are looked at one after another."""
    overlap = Overlap()
    overlap.grow(4)
    overlap.place(np.array([MAIN, FEED, SPORT, OTHER]), np.array([7, 7, 7, 9]))
    for hour in range(24 * days):
        since = None if hour == 0 else hour - 1.0
        for source, late, shows, new in ((MAIN, 0.0, 2, 2), (FEED, 0.1, 2, 0), (SPORT, 0.2, 1, 0)):
            told = look(source, hour + late, None if since is None else since + late, shows, new)
            overlap.looked(told.source, told)
    return overlap


def unseen(overlap: Overlap, ages: list[float], tick: float = 0.0) -> Floats:
    """In hours, of ages in hours."""
    return 24.0 * overlap.unseen(np.array(ages) / 24.0, np.ones(len(ages)), tick / 24.0)


def test_shares_are_what_sources_show_of_all_that_was_found() -> None:
    assert taught().share == pytest.approx([1.0, 1.0, 0.5, 0.0], abs=0.02)


def test_a_look_at_one_source_leaves_another_nothing() -> None:
    overlap = taught()
    told = unseen(overlap, [1.0, 8.0, 8.0, 30.0])
    assert told[[MAIN, OTHER]] == pytest.approx([1.0, 30.0], abs=0.2), "other sites hide nothing"
    assert max(told[FEED], told[SPORT]) < 1.2
    told = unseen(overlap, [8.0, 8.0, 1.0, 30.0])
    assert told[MAIN] == pytest.approx(4.5, abs=0.2), "a category leaves the other half"


def test_in_a_tick_the_best_source_comes_first() -> None:
    """The second is to show what came in half a tick since."""
    told = unseen(taught(), [6.0, 6.0, 6.0, 6.0], tick=2.0)
    assert max(told[MAIN], told[FEED]) == pytest.approx(6.0, abs=0.2)
    assert min(told[MAIN], told[FEED]) == pytest.approx(1.0, abs=0.2)


def test_a_source_that_does_not_answer_hides_nothing() -> None:
    ages, able = np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.0, 1.0, 1.0, 1.0])
    assert taught().unseen(ages, able, 0.0)[FEED] == pytest.approx(0.5, abs=0.02)


@given(
    ages=st.lists(st.floats(0.0, 100.0) | st.just(np.inf), min_size=4, max_size=4),
    tick=st.floats(0.0, 2.0),
)
def test_nothing_is_unseen_for_longer_than_since_the_last_look(
    ages: list[float], tick: float
) -> None:
    told = taught(2).unseen(np.array(ages), np.ones(4), tick)
    assert np.all(told >= 0.0)
    assert np.all(told <= np.array(ages) + 1e-9)
    assert told[OTHER] == ages[OTHER], "a source that stands alone is unseen for its age"
    assert np.array_equal(np.isinf(told), np.isinf(ages)), "all of a first look is unseen"


def test_what_others_have_shown_is_counted_and_not_found_again() -> None:
    """The feed shows 2 pages an hour that the main page has shown 6 minutes before."""
    overlap = taught(2)
    told = look(MAIN, 48.0, 47.0, 2, 2)
    overlap.looked(told.source, told)
    told = look(FEED, 48.1, 47.1, 5, 0)
    days, shows = overlap.looked(told.source, told)
    assert shows.tolist() == [2.0], "links to old pages are none"
    assert 24.0 * days[0] == pytest.approx(0.1, abs=0.02)


def test_restored_it_goes_on_alike() -> None:
    overlap, again = taught(2), Overlap()
    again.restore(overlap.state())
    told = look(SPORT, 50.0, 47.2, 4, 2)
    first, second = (each.looked(told.source, told) for each in (overlap, again))
    assert np.array_equal(first, second)
    assert np.array_equal(overlap.share, again.share)
