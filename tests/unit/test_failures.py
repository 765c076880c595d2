"""Pages whose visits failed: how likely the next is answered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.allocate.failures import Failures
from salticus.allocate.leap import Leap
from salticus.testing import START, blank_pages
from salticus.types import Bools, Outcomes, Pages, Status, instant

NOW = instant(START)
HOUR = np.timedelta64(1, "h")


def outcomes(page: list[int], answered: list[bool]) -> Outcomes:
    """Visits an hour apart."""
    at = NOW + np.arange(len(page)) * HOUR
    status = np.where(answered, Status.OK, Status.TIMEOUT).astype(np.int8)
    return Outcomes.known(page=np.array(page), at=at, status=status)


def silent_pages(n: int, silent: Bools) -> Pages:
    """Pages of one host, visited an hour ago; those that were silent answered a week ago."""
    visit = np.full(n, NOW - HOUR)
    pages = replace(blank_pages(n), host=np.zeros(n, dtype=np.int64), last_visit=visit)
    return replace(pages, last_answer=np.where(silent, NOW - 168 * HOUR, visit))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=40), st.integers(0, 40))
def test_counts_do_not_depend_on_how_outcomes_are_cut(
    visits: list[tuple[int, bool]], cut: int
) -> None:
    pages, answered = [page for page, _ in visits], [told for _, told in visits]
    whole, parts = Failures(), Failures()
    told = outcomes(pages, answered)
    whole.learn(told)
    for some in (np.arange(min(cut, len(told))), np.arange(min(cut, len(told)), len(told))):
        parts.learn(told.take(some))
    every = np.arange(6)
    assert np.array_equal(whole.times(every), parts.times(every))
    for page in range(6):
        own = [ok for number, ok in visits if number == page]
        in_a_row = len(own) - max((k + 1 for k, ok in enumerate(own) if ok), default=0)
        assert whole.times(np.array([page])) == in_a_row


def chance(n: int, silent: int, times: int) -> float:
    """Of the first page, where so many of n pages are silent after so many failures each."""
    failures, rows = Failures(), np.arange(silent)
    failures.learn(outcomes(rows.repeat(times).tolist(), [False] * (silent * times)))
    pages = silent_pages(n, np.arange(n) < silent)
    return float(failures.answering(pages, NOW, rows)[0])


def test_a_page_is_tried_again_soon_where_others_answer() -> None:
    assert chance(50, 5, 1) > 0.25
    assert chance(50, 50, 1) < 0.02, "a host that is down"


def test_hope_falls_with_every_failure_but_never_below_patience() -> None:
    found = [chance(50, 5, times) for times in (1, 2, 3, 20)]
    assert (np.diff(found) < 0).all()
    pages = silent_pages(50, np.arange(50) < 5)
    assert found[-1] >= pages.answering(NOW)[0] > 0


def test_leap_remembers_failures_over_a_restart() -> None:
    first, again = Leap(), Leap()
    first.learn(outcomes([3, 3, 4], [False, False, False]))
    again.restore(first.state())
    assert np.array_equal(first.failures_.times(np.arange(6)), again.failures_.times(np.arange(6)))
