"""The demo and the bench, small."""

from __future__ import annotations

import json
import re
from pathlib import Path

from salticus.lab.bench.fetch import bench

from .conftest import finished, salticus


def test_the_demo_shows_what_it_achieved(tmp_path: Path) -> None:
    words = ("--seconds", "5", "--offers", "300", "--seed", "3", "--json")
    code, out, err = finished(salticus("demo", tmp_path / "demo", *words))
    assert code == 0, err
    facts = json.loads(out)
    for policy in ("uniform", "leap"):
        told = facts[policy]
        assert told["politeness violations"] == 0
        assert told["visits"] > 0.5 * 120 * 20, "most of the budget is spent"
        assert told["most visits in any day"] <= 120, "and no more: 40 % of 300 a day"
        assert 0 <= told["click_staleness"] < 1
        assert 0 <= told["page_staleness"] < 1
        assert told["clicks scored"] > 100
    page = Path(facts["page"]).read_text("utf-8")
    assert "met a copy out of date" in page
    assert "change found" in page
    assert not re.search(r"<(?:script|link)[^>]+(?:src|href)=", page), "the page needs no network"


def test_the_bench_measures_all_contestants() -> None:
    rows = {row["contestant"]: row for row in bench(pages=120, rounds=1, size=3_000)}
    assert list(rows) == [
        "aiohttp, bare",
        "Salticus",
        "Salticus, no content kept",
        "Scrapy, bare",
    ]
    assert [row["prices"] for row in rows.values()] == [0, 120, 120, 120]
    assert all(row["pages/s"] > 0 for row in rows.values())


def test_the_mixed_bench_finds_the_same_prices() -> None:
    rows = {row["contestant"]: row for row in bench(pages=60, rounds=1, size=3_000, mixed=True)}
    assert list(rows) == [
        "aiohttp, bare",
        "Salticus, 1 worker",
        "Salticus, 2 workers",
        "Scrapy, bare",
    ]
    assert [row["prices"] for row in rows.values()] == [0, 60, 60, 60]
