"""Features that a crawl keeps as it goes are those of the log that is exported from its store."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.exchange.folder import Log
from salticus.exchange.write import export_log
from salticus.features.following import Following, as_crawled
from salticus.features.groups import groups_of
from salticus.features.names import chosen
from salticus.features.past import FeatureStream
from salticus.features.places import Place, Places
from salticus.features.seen import pages_of, seen_events
from salticus.store.sqlite.store import SqliteStore
from salticus.types import Count, NewPage, Observation, Outcomes, Record, Value

HOUR = 3_600_000_000
START = 20_500 * 24 * HOUR
PAGES = 5
NAMES = chosen("full", "both").dense
URLS = [f"http://shop{n % 2}.example/{n}" for n in range(PAGES)]

PLACES = Places([Place("shop1.example", "Shop", "Asia/Tokyo")])

WORDS = st.sampled_from(["a", "b", "a > c"])
FIELDS = st.fixed_dictionaries(
    {}, optional={"brand": WORDS, "category": WORDS, "country": st.sampled_from(["DE", "de"])}
)
VISIT = st.tuples(
    st.integers(0, 1700 * 60),  # minute
    st.integers(0, PAGES - 1),
    st.sampled_from(["ok", "ok", "not_modified", "timeout", "gone"]),
    st.sampled_from([True, False]),
    FIELDS,
)
CLICKS = st.lists(
    st.tuples(
        st.integers(0, 1700), st.integers(0, PAGES - 1), st.integers(0, 3), st.integers(0, 5)
    ),
    max_size=12,
)


def observed(rows: list[Any]) -> list[Observation]:
    """What visits leave, one after another; a page's first answer says nothing of change."""
    since: dict[int, int] = {}
    seen = []
    for number, (minute, page, status, changed, fields) in enumerate(rows):
        at, last = START + minute * (HOUR // 60), since.get(page)
        answered = status in ("ok", "not_modified")
        new = answered and (last is None or (changed and status == "ok"))
        stock = "OutOfStock" if number % 3 else "InStock"
        value = Value("offer", f"{number}.57 EUR {stock}", fields) if new else None
        seen.append(
            Observation(
                visit=number,
                page=page + 1,
                at=at,
                purpose="policy",
                propensity=1.0,
                status=status,
                changed=None if last is None or not answered else value is not None,
                since=last,
                value=value,
                digest=None if value is None else str(number),
            )  # fmt: skip
        )
        if answered:
            since[page] = at
    return seen


def batch(store: SqliteStore, folder: Path, ids: Any, hour: int) -> Any:
    """The features of pages by the log that is exported now."""
    export_log(store.scan, folder, name="crawl")
    log = Log(folder)
    pages = as_crawled(pages_of(log), PLACES)
    past = FeatureStream(groups_of(pages), full=False, demand=log.has("demand"))
    for events in seen_events(log, pages, "partial"):
        past.learn(events)
    rows = np.searchsorted(pages["page_id"].to_numpy(), ids)
    return past.read(rows, np.full(len(rows), hour)).select(NAMES)


def streamed(following: Following, store: SqliteStore, hour: int) -> tuple[Any, Any]:
    touched = following.touched()
    following.place(touched, store.facts(touched))
    ids = np.arange(1, PAGES + 1)
    rows, known = following.rows(ids)
    return ids[known], following.read(rows[known], hour).select(NAMES)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(VISIT, min_size=1, max_size=40, unique_by=lambda v: v[:2]).map(
        lambda rows: sorted(rows, key=lambda row: row[:2])
    ),
    CLICKS.map(sorted),
    st.data(),
)
def test_streaming_features_are_those_of_the_exported_log(
    rows: list[Any], clicks: list[Any], data: Any
) -> None:
    """With irregular visits, failures, births, clicks and pages that turn out to be something
    else."""

    async def crawl(place: Path) -> None:
        store = await SqliteStore.open(place / "s.db")
        await store.add([NewPage(url) for url in URLS], at=0)
        following, left, waiting, mark = Following(places=PLACES), observed(rows), clicks, 0
        for stop in range(2):
            cut = data.draw(st.integers(0, len(left))) if stop == 0 else len(left)
            due, left = left[:cut], left[cut:]
            while due:
                some = data.draw(st.integers(1, len(due)))
                await store.record([Record(seen) for seen in due[:some]])
                following.learn(Outcomes.of(data.draw(st.permutations(due[:some]))))
                if data.draw(st.booleans()):
                    again = Following(places=PLACES)
                    again.restore(following.state())
                    following = again
                due = due[some:]
            hour = left[0].at // HOUR if left else START // HOUR + 1700
            early = [row for row in waiting if START // HOUR + row[0] < hour]
            waiting = waiting[len(early) :]
            await store.count([Count(URLS[p], START + h * HOUR, c, i) for h, p, c, i in early])
            counts = await store.counts(mark)
            following.count(counts)
            mark = counts.last
            ids, mine = streamed(following, store, hour)
            theirs = batch(store, place / f"log{stop}", ids, hour)
            np.testing.assert_array_equal(mine, theirs)
        await store.close()

    with tempfile.TemporaryDirectory() as place:
        asyncio.run(crawl(Path(place)))


def test_an_answer_that_comes_late_counts_in_the_hour_read() -> None:
    """It neither stops the crawl nor changes what was read; known twice, it counts once."""
    following = Following(places=PLACES)
    seen = observed([(60, 0, "ok", True, {}), (120, 0, "ok", True, {}), (130, 1, "ok", True, {})])
    following.learn(Outcomes.of(seen[:1]))
    facts = {"host": ["a", "b"], **dict.fromkeys(("brand", "category", "country"), [None, None])}
    following.place(np.array([1, 2]), facts)
    following.read(np.array([0]), START // HOUR + 9)
    following.learn(Outcomes.of(seen))
    following.learn(Outcomes.of(seen))
    following.place(np.array([1, 2]), facts)
    read = following.read(np.array([0, 1]), START // HOUR + 11)
    assert read.column("page_visits").tolist() == [2, 1]
    assert read.column("page_since").tolist() == [2, 2]
