"""Which pages are offered for a visit."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from salticus.crawl.census import _idle, awake
from salticus.store.nouns import DROPPED
from salticus.testing import START, a_tick
from salticus.types import DAY, Status, instant


def rests_for(idle: int) -> float:
    """Days after a visit for which a page is not awake; inf = for ever."""
    visit = np.array([instant(START)])
    for day in range(400):
        tick = a_tick(0)
        then = type(tick)(0, START + timedelta(days=day), START + timedelta(days=day, hours=2))
        if awake(np.array([idle]), visit, then)[0]:
            return day
    return np.inf


def test_pages_with_nothing_to_come_back_for_rest_longer_and_longer_and_are_dropped() -> None:
    rests = [rests_for(idle) for idle in range(DROPPED + 1)]
    assert rests == [0, 0, 1, 2, 4, 8, 16, 30, 30, np.inf]


@given(st.lists(st.sampled_from(list(Status)), max_size=30))
def test_idle_counts_what_is_not_there_and_an_answer_ends_it(statuses: list[Status]) -> None:
    idle, expected = np.zeros(1, dtype=np.int64), 0
    for status in statuses:
        idle = _idle(idle, np.array([status], dtype=np.int8))
        if status in (Status.OK, Status.NOT_MODIFIED):
            expected = 0
        elif status in (Status.GONE, Status.SOFT_404, Status.DISALLOWED, Status.UNSAFE):
            expected += 1
        assert idle[0] == expected


def test_pages_never_visited_are_awake() -> None:
    never = np.array([np.datetime64("NaT", "us"), instant(START) - 100 * DAY])
    assert awake(np.array([0, 3]), never, a_tick()).all()
