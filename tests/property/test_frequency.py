"""Laws of the change frequencies, on random small logs and against a plain loop."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.features.frequency import WINDOWS, Frequencies, frequencies
from salticus.features.history import NEVER_GONE, History, full_history, partial_history

START = 480_000  # an hour of 2024
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@st.composite
def histories(draw: Any) -> History:
    """A few pages in a few categories; changes lie within the life of their page."""
    n = draw(st.integers(1, 6))
    start = draw(st.integers(START, START + 50))
    born = [start + draw(st.integers(0, 60)) for _ in range(n)]
    lives = [draw(st.none() | st.integers(0, 900)) for _ in range(n)]
    gone = [NEVER_GONE if life is None else b + life for b, life in zip(born, lives, strict=True)]
    group = [draw(st.integers(0, 2)) for _ in range(n)]
    changes = []
    for page in range(n):
        after = st.integers(0, min(900, gone[page] - born[page]))
        changes += [(page, born[page] + h) for h in sorted(draw(st.lists(after, max_size=6)))]
    columns = np.array(changes, dtype=np.int64).reshape(-1, 2)
    return History(
        start=start,
        born=np.array(born),
        gone=np.array(gone),
        group=np.array(group),
        page=columns[:, 0],
        hour=columns[:, 1],
    )


points = st.lists(st.tuples(st.integers(0, 5), st.integers(-5, 1000)), min_size=1, max_size=20)


def at_points(history: History, where: list[tuple[int, int]]) -> tuple[Any, Any]:
    page = np.array([p % len(history) for p, _ in where])
    return page, np.array([history.start + h for _, h in where])


def plainly(history: History, page: int, hour: int) -> dict[str, float]:
    """The features of one page by loops over everything: slow, short, and hard to get wrong."""
    peers = [p for p in range(len(history)) if history.group[p] == history.group[page]]
    found = {}
    for name, window in WINDOWS.items():
        found[f"page_{name}"] = rate(history, [page], hour - window, hour)
        found[f"category_{name}"] = rate(history, peers, hour - window, hour)
    found["page_recent"] = float(since(history, page, hour))
    alive = [p for p in peers if history.born[p] < hour and not history.gone[p] < hour]
    ages = [since(history, p, hour) for p in alive]
    found["category_recent"] = sum(ages) / len(ages) if ages else hour - history.start
    return found


def changes_of(history: History, page: int) -> list[int]:
    return [int(h) for p, h in zip(history.page, history.hour, strict=True) if p == page]


def rate(history: History, pages: list[int], low: int, high: int) -> float:
    count = sum(low <= h < high for p in pages for h in changes_of(history, p))
    lives = [(max(low, int(history.born[p])), min(high, int(history.gone[p]))) for p in pages]
    hours = sum(max(0, b - a) for a, b in lives)
    return count / hours if hours else 0.0


def since(history: History, page: int, hour: int) -> int:
    born = int(history.born[page])
    known = [h for h in changes_of(history, page) if h < hour]
    return hour - max(known, default=born if born < hour else history.start)


def same(a: Frequencies, b: Frequencies) -> bool:
    pairs = zip(asdict(a).values(), asdict(b).values(), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


@settings(max_examples=300, deadline=None)
@given(histories(), points)
def test_the_plain_loop_finds_the_same(history: History, where: list[tuple[int, int]]) -> None:
    page, hour = at_points(history, where)
    found = asdict(frequencies(history, page, hour))
    for i in range(len(page)):
        mine = {name: float(column[i]) for name, column in found.items()}
        assert mine == plainly(history, int(page[i]), int(hour[i]))


@settings(deadline=None)
@given(histories(), points)
def test_what_happens_from_the_hour_on_is_not_known(
    history: History, where: list[tuple[int, int]]
) -> None:
    page, hour = at_points(history, where[:1])
    past = history.hour < hour[0]
    cut = replace(history, page=history.page[past], hour=history.hour[past])
    assert same(frequencies(history, page, hour), frequencies(cut, page, hour))


@settings(deadline=None)
@given(histories(), points, st.integers(-10_000, 10_000))
def test_a_shift_of_all_times_shifts_nothing(
    history: History, where: list[tuple[int, int]], by: int
) -> None:
    page, hour = at_points(history, where)
    gone = np.where(history.gone < NEVER_GONE, history.gone + by, NEVER_GONE)
    moved = replace(
        history, start=history.start + by, born=history.born + by, gone=gone, hour=history.hour + by
    )
    assert same(frequencies(history, page, hour), frequencies(moved, page, hour + by))


@settings(deadline=None)
@given(histories(), points, st.randoms(use_true_random=False))
def test_the_order_of_predictions_does_not_matter(
    history: History, where: list[tuple[int, int]], chance: Any
) -> None:
    page, hour = at_points(history, where)
    order = np.array(chance.sample(range(len(page)), len(page)))
    straight, mixed = (
        asdict(frequencies(history, p, h)) for p, h in ((page, hour), (page[order], hour[order]))
    )
    assert all(np.array_equal(straight[name][order], mixed[name]) for name in straight)


# -------------------------------------------------------------------------------------- from tables


@st.composite
def logs(draw: Any) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Pages, their values, and a crawler that compares each answer with its last one."""
    n = draw(st.integers(1, 4))
    pages = pl.DataFrame({"page_id": [f"p{i}" for i in range(n)], "category": ["c"] * n})
    values, visits = [], []
    for i in range(n):
        minutes = sorted(draw(st.sets(st.integers(0, 5000), min_size=1, max_size=8)))
        truth = [(m, draw(st.sampled_from("abc"))) for m in minutes]
        values += [(f"p{i}", when(m), value) for m, value in truth]
        visits += crawl(f"p{i}", truth, sorted(draw(st.sets(st.integers(0, 6000), max_size=12))))
    kinds = {"page_id": pl.String, "at": pl.Datetime("us", "UTC")}
    return (
        pages,
        pl.DataFrame(values, schema=kinds | {"value": pl.String}, orient="row"),
        pl.DataFrame(visits, schema=kinds | {"changed": pl.Boolean}, orient="row"),
    )


def when(minute: int) -> datetime:
    return EPOCH + timedelta(hours=START, minutes=minute)


def crawl(
    page: str, truth: list[tuple[int, str]], minutes: list[int]
) -> list[tuple[str, datetime, bool | None]]:
    visits: list[tuple[str, datetime, bool | None]] = []
    known = None
    for minute in minutes:
        now = [value for m, value in truth if m <= minute]
        if now:
            visits.append((page, when(minute), None if known is None else now[-1] != known))
            known = now[-1]
    return visits


@settings(max_examples=200, deadline=None)
@given(logs())
def test_a_crawler_never_sees_more_changes_than_there_were(
    log: tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame],
) -> None:
    pages, values, visits = log
    full = full_history(pages, values.lazy())
    partial = partial_history(pages, visits.lazy(), like=full)
    end = START + 200
    for page in range(len(pages)):
        seen, there_were = (int((h.page == page).sum()) for h in (partial, full))
        assert seen <= there_were
    page = np.arange(len(pages))
    hour = np.full(len(pages), end)
    both = [frequencies(h, page, hour) for h in (partial, full)]
    assert (both[0].page_month <= both[1].page_month).all()
    assert both[0].category_month[0] <= both[1].category_month[0]
