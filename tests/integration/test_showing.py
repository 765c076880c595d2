"""The demo and the bench, small."""

from __future__ import annotations

import json
import re
from pathlib import Path

from salticus.bench.fetch import bench

from .conftest import finished, salticus


def test_the_demo_shows_what_it_achieved(tmp_path: Path) -> None:
    words = ("--seconds", "6", "--shops", "4", "--offers", "80", "--speed", "43200", "--json")
    code, out, err = finished(salticus("demo", tmp_path / "demo", *words))
    assert code == 0, err
    facts = json.loads(out)
    assert facts["politeness violations"] == 0
    assert facts["most visits in any day"] <= facts["budget (visits a day)"] == 80
    assert facts["visits"] >= 0.8 * 80 * facts["world days"]
    assert 0.5 < facts["freshness without revisits"] < facts["true freshness"] <= 1
    page = Path(facts["page"]).read_text("utf-8")
    assert "True prices" in page
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
