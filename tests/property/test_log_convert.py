"""Whatever the rows are: what was seen is told right, and nothing is lost without being counted."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.errors import InputError
from salticus.exchange.check import examine
from salticus.exchange.convert.base import ConvertOptions
from salticus.exchange.convert.build import convert_log
from salticus.exchange.convert.table import read_prices, read_times

START = datetime(2026, 1, 1, tzinfo=UTC)

Row = tuple[str, datetime, str]
SEEN = st.dictionaries(
    st.tuples(
        st.sampled_from([f"http://shop{n % 2}.example/{n}" for n in range(4)]),
        st.integers(0, 30).map(lambda hour: START + timedelta(hours=hour)),
    ),
    st.sampled_from(["1", "2.5", "30"]),
    min_size=1,
    max_size=40,
).map(lambda seen: [(url, at, price) for (url, at), price in seen.items()])


def as_csv(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("url", "time", "price"))
    writer.writerows((url, at.isoformat(), price) for url, at, price in rows)
    return text.getvalue()


def as_lines(rows: list[Row]) -> str:
    items = ({"url": u, "time": at.timestamp(), "price": float(p)} for u, at, p in rows)
    return "".join(f"{json.dumps(item)}\n" for item in items)


def converted(name: str, text: str, **options: Any) -> dict[str, pl.DataFrame]:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, name), Path(folder, "log")
        source.write_text(text, "utf-8")
        convert_log([source], out, "prices", ConvertOptions(**options))
        assert examine(out) == []
        return {path.stem: pl.read_parquet(path) for path in out.glob("*.parquet")}


def visits_by_url(tables: dict[str, pl.DataFrame]) -> list[tuple[Any, ...]]:
    named = tables["visits"].join(tables["pages"].select("page_id", "url"), on="page_id")
    return named.sort("url", "at").select("url", "at", "changed", "value").rows()


def expected_visits(rows: list[Row]) -> list[tuple[Any, ...]]:
    """The same by plain reasoning: compare each row with the one before it of its page."""
    told: list[tuple[Any, ...]] = []
    held: dict[str, str] = {}
    for url, at, price in sorted(rows):
        changed = None if url not in held else price != held[url]
        told.append((url, at, changed, None if changed is False else price))
        held[url] = price
    return told


@settings(max_examples=25, deadline=None)
@given(SEEN.flatmap(st.permutations), st.sampled_from([("p.csv", as_csv), ("p.jl", as_lines)]))
def test_changes_are_told_whatever_the_order_of_the_rows(rows: list[Row], form: Any) -> None:
    name, write = form
    tables = converted(name, write(rows), complete=True)
    assert visits_by_url(tables) == expected_visits(rows)
    assert tables["pages"]["url"].to_list() == list(dict.fromkeys(url for url, _, _ in rows))
    assert tables["visits"]["at"].is_sorted()
    new = tables["visits"].filter(pl.col("value").is_not_null()).sort("page_id", "at")
    assert tables["values"].rows() == new.select("page_id", "at", "value").rows()


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)
GOOD = st.tuples(
    st.just("http://a.example/"), st.integers(0, 50).map(lambda n: f"{n * 86_400}"), st.just("7")
)
ANY = st.tuples(
    CELLS | st.just("http://b.example/"), CELLS | st.just("5"), CELLS | st.just("1,50 €")
)


@settings(max_examples=40, deadline=None)
@given(st.lists(GOOD, min_size=1, max_size=5, unique=True), st.lists(ANY, max_size=8))
def test_every_row_is_kept_or_counted(good: list[Any], rest: list[Any]) -> None:
    text = "".join(
        json.dumps(dict(zip(("url", "time", "price"), row, strict=True))) + "\n"
        for row in (*good, *rest)
    )
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "p.jsonl"), Path(folder, "log")
        source.write_text(text, "utf-8")
        told = convert_log([source], out, "prices", ConvertOptions(skip_bad=True))
        kept = told["rows"]["visits"] + told["repeated"] + told["skipped"]
        assert kept == len(good) + len(rest)
        assert told["rows"]["visits"] >= len(good)
        if told["skipped"]:
            with pytest.raises(InputError, match=rf"^{told['skipped']} bad row"):
                convert_log([source], Path(folder, "strict"), "prices", ConvertOptions())


@given(
    st.floats(-2e9, 9e9).map(lambda seconds: START + timedelta(seconds=seconds)),
    st.integers(-14 * 60, 14 * 60),
    st.sampled_from(["T", " "]),
    st.sampled_from(["microseconds", "milliseconds", "seconds", "minutes"]),
)
def test_a_time_is_read_in_any_zone(when: datetime, minutes: int, gap: str, spec: str) -> None:
    text = when.astimezone(timezone(timedelta(minutes=minutes))).isoformat(gap, spec)
    rows = pl.LazyFrame({"time": [text]})
    (at,) = read_times(rows, None).collect()["at"]
    assert at == datetime.fromisoformat(text)


PRICES = st.decimals(0, 10**9, allow_nan=False, allow_infinity=False, places=2)


@given(PRICES, PRICES, st.sampled_from(["{}", "{} ", "{:f}", "{} €", "€{}", "EUR {}"]))
def test_prices_are_equal_when_their_texts_are(one: Decimal, other: Decimal, form: str) -> None:
    raw = pl.LazyFrame({"raw": [f"{one:f}", form.format(one).strip(), f"{other:f}"]})
    plain, odd, second = read_prices(raw).collect()["price"]
    assert plain == odd
    assert (plain == second) == (one == other)
    assert Decimal(plain) == one
    assert plain == (f"{one:f}".rstrip("0").rstrip(".") or "0")
