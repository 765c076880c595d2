"""Budget and maximum interval on a real crawl, at a budget that is just enough for both."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from salticus.lab.demo import busiest_day

from .conftest import Street, finished

HOUR = 3600 * 10**6  # µs
SPEED = 8640.0


def test_a_tight_budget_keeps_every_maximum_interval(street: Street) -> None:
    """200 pages, 12 h, ticks of 2 h: each page every fifth tick, 480 visits a day.

    With no visit to spare, one that the machine delays past its tick delays others; the next tick
    makes up for it. To the minute the interval is a law on the virtual clock (test_budget.py).
    """
    street.open(shops=10, offers=200, days=60, speed=SPEED, delay=0.02)
    street.set("tick", '"2h"\nmax_interval = "12h"')
    street.set("budget", "479")
    code, _, err = finished(street.crawl("--for", "1s"))
    assert code == 2
    assert "need a budget of at least 480 visits a day, but the budget is 479" in err

    street.set("budget", "480")
    code, _, err = finished(street.crawl("--for", "16s"))
    assert code == 0, err
    rows = street.sql("SELECT page, at FROM observations ORDER BY page, at")
    gaps = [b[1] - a[1] for a, b in pairwise(rows) if a[0] == b[0]]  # type: ignore[operator]
    assert max(gaps) <= (12 + 2) * HOUR
    at = np.array([row[1] for row in rows], dtype="M8[us]")
    assert busiest_day(at) <= 480
    days = 16 * SPEED / 86_400
    assert len(rows) >= 480 * (days - 3 / 12)  # a tick's worth, and the crawler's start and end
    assert {purpose for (purpose,) in street.sql("SELECT DISTINCT purpose FROM observations")} <= {
        "explore",
        "limit",
        "policy",
    }
