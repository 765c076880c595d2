"""The study of a log with links: which sources show what, and for how long people want it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.allocate.cover import cover
from salticus.exchange.folder import Log
from salticus.lab.analyze.study import Analysis, facts_of, sheet_of, study

START = datetime(2026, 6, 1, tzinfo=UTC)


def hours(n: float) -> datetime:
    return START + timedelta(hours=n)


def write(folder: Path, **tables: dict[str, Any]) -> Analysis:
    """The study of a log of the given columns."""
    for name, columns in tables.items():
        pl.DataFrame(columns).write_parquet(folder / f"{name}.parquet")
    about = {"name": "test", "resolution": "1h", "demand_bucket": "1h"}
    (folder / "log.json").write_text(json.dumps(about))
    return study(Log(folder))


def links(*rows: tuple[str, str, float, float | None]) -> dict[str, Any]:
    source, page, appeared, stood = zip(*rows, strict=True)
    ends = [None if s is None else hours(a + s) for a, s in zip(appeared, stood, strict=True)]
    return {
        "source_id": source,
        "page_id": page,
        "appeared": [hours(a) for a in appeared],
        "vanished": pl.Series(ends, dtype=pl.Datetime("us", "UTC")),
    }


PAGES = {
    "page_id": ["home", "sport", "list", "a", "b", "c", "d"],
    "url": [
        "http://n.example/",
        "http://n.example/sport/",
        "http://n.example/list?p=2",
        *(f"http://n.example/{n}" for n in range(4)),
    ],
    "kind": ["source"] * 3 + ["article"] * 4,
    "timezone": ["Europe/Berlin"] * 7,
}
LINKS = links(
    ("home", "a", 0, 2),
    ("home", "b", 1, 0),
    ("home", "c", 2, 6),
    ("sport", "c", 3, 9),
    ("sport", "d", 24, 0),
    ("list", "c", 25, None),
)


def test_links_pages_and_the_sources_that_show_most(tmp_path: Path) -> None:
    found = write(tmp_path, pages=PAGES, links=LINKS).links
    assert found is not None
    assert (found.sources, found.links, found.pages) == (3, 6, 4)
    assert found.links_a_day == pytest.approx(6 / (25 / 24))
    assert found.pages_a_day == pytest.approx(4 / (25 / 24))
    assert (found.median_hours, found.brief) == (2.0, 0.4)
    assert [(each.sources, each.share) for each in found.cover] == [(1, 0.75), (2, 1.0), (3, 1.0)]
    assert (found.enough, found.main, found.sections) == (2, 0.5, 0.5)
    assert [(each.source, each.links, each.alone) for each in found.busiest][0] == (
        "http://n.example/",
        3,
        pytest.approx(2 / 3),
    )
    assert [hour for hour, n in enumerate(found.hours) if n] == [2, 3, 4, 5], "in Berlin's summer"
    assert found.notes == []


def test_links_of_strangers_are_left_out_and_counted(tmp_path: Path) -> None:
    some = links(("home", "a", 0, 2), ("home", "nobody", 1, 0), ("nobody", "a", 1, 0))
    found = write(tmp_path, pages=PAGES, links=some).links
    assert found is not None
    assert found.links == 1
    assert found.notes == [
        "2 rows of links.parquet are of no page in pages.parquet or without a time"
    ]


def test_without_urls_and_ends_less_is_said(tmp_path: Path) -> None:
    found = write(
        tmp_path,
        pages={"page_id": PAGES["page_id"]},
        links={name: LINKS[name] for name in ("source_id", "page_id", "appeared")},
    ).links
    assert found is not None
    assert (found.main, found.sections, found.median_hours, found.brief) == (None,) * 4
    assert found.busiest[0].source == "home"
    assert "no `url` of every source" in found.notes[0]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), min_size=1, max_size=30))
def test_the_cover_is_greedy(pairs: list[tuple[int, int]]) -> None:
    """Each source adds the most of those left, and together they show every page once."""
    source, page = np.array(pairs).T
    order, gains = cover(source, page)
    assert sorted(order.tolist()) == sorted(set(source.tolist()))
    left = set(page.tolist())
    for place, (best, gain) in enumerate(zip(order.tolist(), gains.tolist(), strict=True)):
        adds = {k: len(left & {p for s, p in pairs if s == k}) for k in order[place:].tolist()}
        assert gain == adds[best] == max(adds.values())
        left -= {p for s, p in pairs if s == best}
    assert not left


# ----------------------------------------------------------------------------------------- interest


def publisher(folder: Path, *, lasting: int = 0) -> Analysis:
    """Two sources; the pages of one get 40 clicks with a half-life of 6 h, those of the other 10
    within 24 h; so many pages are clicked every day alike."""
    rng = np.random.default_rng(5)
    rows, clicks = [], []
    for source, (many, half) in {"fast": (40, 6.0), "slow": (10, 24.0)}.items():
        for n in range(120):
            page, born = f"{source}{n}", float(rng.integers(0, 24 * 20))
            rows.append((source, page, born, 5.0))
            at = born + rng.exponential(half / np.log(2), rng.poisson(many))
            clicks += [(page, int(hour)) for hour in at]
    for n, day in product(range(lasting), range(40)):
        if day == 0:
            rows.append(("slow", f"ever{n}", 0.0, 5.0))
        clicks.append((f"ever{n}", 24 * day + 1))
    counted = pl.DataFrame(clicks, schema=["page_id", "hour"], orient="row")
    demand = counted.group_by("page_id", "hour").len("clicks").sort("page_id", "hour")
    at = [hours(hour) for hour in demand["hour"]]
    return write(
        folder,
        pages={"page_id": ["fast", "slow", *(page for _, page, _, _ in rows)]},
        links=links(*rows),
        demand={"page_id": demand["page_id"], "at": at, "clicks": demand["clicks"]},
    )


def test_profit_and_half_life_of_each_source(tmp_path: Path) -> None:
    found = publisher(tmp_path).interest
    assert found is not None
    assert found.pages == 240
    told = {each.source: each for each in found.sources}
    for name, clicks, half in (("fast", 40.0, 6.0), ("slow", 10.0, 24.0)):
        assert told[name].pages == 120
        assert told[name].profit == pytest.approx(clicks, rel=0.05)
        assert told[name].half_life_hours == pytest.approx(half, rel=0.1)
        assert told[name].error == pytest.approx(1 / np.sqrt(120 * clicks), rel=0.3)
    last = [point for point in found.curve if point.what == "clicks"][-1]
    assert last.had == pytest.approx(25.0, rel=0.05)
    assert found.ephemeral == 1.0


def test_pages_that_are_always_wanted_are_not_ephemeral(tmp_path: Path) -> None:
    found = publisher(tmp_path, lasting=60).interest
    assert found is not None
    assert found.ephemeral == pytest.approx(240 / 300, abs=0.03)
    assert sum(pattern.share for pattern in found.patterns) == pytest.approx(1.0)
    lasting = [pattern for pattern in found.patterns if not pattern.ephemeral]
    assert min(lasting[0].days) > 0.9


def test_without_clicks_or_links_there_is_no_such_section(tmp_path: Path) -> None:
    assert write(tmp_path, pages=PAGES, links=LINKS).interest is None
    nobody = {"page_id": ["home"], "at": [hours(1)], "clicks": [3]}
    assert write(tmp_path, pages=PAGES, links=LINKS, demand=nobody).interest is None


def test_the_page_and_the_facts_tell_of_both(tmp_path: Path) -> None:
    told = publisher(tmp_path)
    facts = facts_of(told)
    assert facts["sources that show 80.0 % of them"] == 2
    assert facts["clicks on a new page"] == "25.1"
    page = sheet_of(told).html()
    assert "<h2>Links to new pages</h2>" in page
    assert "<h2>Interest in new pages</h2>" in page
