"""How far merchants' feeds can be trusted: histories made by hand, and the commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from salticus.cli.exchange import feed_import, feed_report
from salticus.errors import InputError
from salticus.store.sqlite.store import SqliteStore
from salticus.types import NewPage, Observation, Record, Value
from salticus.views.merchants import Lag, Merchant, facts, measure

HOUR = 3_600_000_000
IN, OUT = "5 EUR InStock", "5 EUR OutOfStock"


class History:
    """Signals, visits and values, as a store gives them; times in hours."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {"signals": [], "visits": [], "values": []}

    def told(self, at: float, value: str, *, page: int = 1, name: str = "shop") -> History:
        row = {"page_id": page, "at": int(at * HOUR), "kind": f"feed:{name}", "value": value}
        self.tables["signals"].append(row)
        return self

    def seen(self, at: float, value: str | None, *, page: int = 1, status: str = "ok") -> History:
        """A visit; `value` is None where it found what was there before."""
        row = {"page_id": page, "at": int(at * HOUR), "value": value}
        if value is not None:
            self.tables["values"].append(row)
        self.tables["visits"].append({**row, "status": status})
        return self

    def scan(self, table: str) -> Iterator[dict[str, Any]]:
        return iter(sorted(self.tables[table], key=lambda row: row["at"]))

    def shop(self) -> Merchant:
        return measure(self.scan)["shop"]

    def lags(self) -> list[tuple[float, float]]:
        return [(lag.least / HOUR, lag.most / HOUR) for lag in self.shop().lags]


def test_accuracy_is_the_share_of_visits_that_find_what_was_told() -> None:
    history = (
        History()
        .seen(0, "4 EUR InStock")  # before the feed: not its business
        .told(1, IN)
        .seen(2, IN)
        .seen(3, None)
        .told(4, "6 EUR InStock")
        .seen(5, None)  # still 5
        .seen(6, None, status="timeout")  # a failure says nothing
        .told(7, OUT)
        .seen(8, None)  # the price is right, the stock is not
    )
    shop = history.shop()
    assert (shop.sightings, shop.right, shop.right_price) == (4, 2, 3)
    known = facts("shop", shop)
    assert (known.accuracy, known.price_accuracy, known.unchecked_pages) == (0.5, 0.75, 0)


def test_what_no_visit_has_checked_is_not_wrong() -> None:
    shop = History().seen(0, IN).told(1, OUT).told(1, IN, page=2).shop()
    assert (shop.pages, shop.unchecked, shop.sightings) == (2, 2, 0)
    known = facts("shop", shop)
    assert known.accuracy is None
    assert known.lag_median_s is None


def test_the_page_was_first() -> None:
    """The change came between 1 and 2, the feed told of it at 5: it lags by 3 to 4 hours."""
    history = History().told(0, IN).seen(1, IN).seen(2, OUT).told(5, OUT)
    assert history.lags() == [(3, 4)]


def test_the_feed_was_first() -> None:
    history = History().told(0, IN).seen(0.5, IN).told(1, OUT).seen(2, None).seen(4, OUT)
    assert history.lags() == [(-3, -1)]
    assert facts("shop", history.shop()).feed_first == 1


def test_between_two_visits_nobody_knows_who_was_first() -> None:
    history = History().told(0, IN).seen(1, IN).told(2, OUT).seen(4, OUT)
    assert history.lags() == [(-2, 1)]
    known = facts("shop", history.shop())
    assert (known.feed_first, known.page_first, known.changes) == (0, 0, 1)


def test_the_change_lies_between_the_last_old_and_the_first_new_sighting() -> None:
    history = History().told(0, IN).seen(1, IN).seen(3, None).seen(4, OUT).seen(9, None)
    assert history.told(10, OUT).lags() == [(6, 7)]


def test_what_the_feed_never_told_lags_for_ever() -> None:
    history = History().told(0, IN).seen(1, IN).seen(2, OUT).seen(3, "7 EUR").told(4, "7 EUR")
    assert history.lags() == [(float("inf"),) * 2, (1, 2)]
    known = facts("shop", history.shop())
    assert known.untold_changes == 1
    assert known.lag_median_s == [3600, 7200]
    assert known.lag_p90_s == [None, None]


def test_a_change_since_the_last_feed_is_open() -> None:
    shop = History().told(0, IN).seen(1, IN).seen(2, OUT).shop()
    assert (shop.open, shop.lags) == (1, [])
    shop = History().told(0, IN).seen(1, IN).seen(2, OUT).told(3, IN, page=2).shop()
    assert (shop.open, len(shop.lags)) == (0, 1)


def test_a_feed_that_slept_through_was_not_first() -> None:
    """The page left its value and came back; the feed said nothing, and is right by luck."""
    history = History().told(0, IN).seen(1, IN).seen(2, OUT).seen(3, IN).told(4, IN, page=2)
    assert history.lags() == [(float("inf"),) * 2]


def test_changes_before_the_first_statement_are_not_the_feeds() -> None:
    assert History().seen(0, IN).seen(2, OUT).told(3, OUT).lags() == []


def test_merchants_are_told_apart() -> None:
    history = History().told(0, IN).told(0, OUT, name="other").seen(1, IN)
    found = measure(history.scan)
    assert list(found) == ["other", "shop"]
    assert (found["other"].right, found["shop"].right) == (0, 1)


def test_other_signals_do_not_count() -> None:
    history = History()
    history.tables["signals"] = [{"page_id": 1, "at": 0, "kind": "lastmod", "value": "x"}]
    assert measure(history.scan) == {}


def test_the_true_quantiles_lie_between_the_bounds() -> None:
    shop = Merchant(lags=[Lag(n * 1e6, (n + 5) * 1e6) for n in range(10)])
    known = facts("shop", shop)
    assert (known.lag_median_s, known.lag_p90_s) == ([4, 9], [8, 13])


# ------------------------------------------------------------------------------------ commands

FEED = """id\ttitle\tlink\tprice\tavailability
1\tTea\thttps://shop.example/1?utm_source=feed\t5.00 EUR\tin stock
2\tMilk\thttps://shop.example/2\t1.20 EUR\tin stock
3\tJam\thttps://shop.example/3\tsoon\tin stock
"""


def app() -> typer.Typer:
    made = typer.Typer(pretty_exceptions_enable=False)
    made.command("import")(feed_import)
    made.command("report")(feed_report)
    return made


def invoke(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app(), list(words), input=stdin)


def done(*words: str, stdin: str | None = None) -> Any:
    result = invoke(*words, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("salticus.toml").write_text('store = "crawl.db"\n', "utf-8")
    Path("shop.tsv").write_text(FEED, "utf-8")
    return tmp_path


async def _visits(*values: str) -> None:
    store = await SqliteStore.open("crawl.db")
    page = (await store.page("https://shop.example/1")).page
    for visit, text in enumerate(values, 1):
        seen = Observation(
            visit=visit, page=page, at=2 * 10**15 + visit, purpose="policy", propensity=1.0,
            status="ok", digest=text, value=Value("offer", text),
        )  # fmt: skip
        await store.record([Record(seen)])
    await store.close()


async def _page(url: str) -> Any:
    store = await SqliteStore.open("crawl.db")
    try:
        return await store.page(url)
    finally:
        await store.close()


async def _known(url: str) -> None:
    store = await SqliteStore.open("crawl.db")
    await store.add([NewPage(url, kind="article")], at=0)
    await store.close()


def test_import_counts(folder: Path) -> None:
    first = done("import", "shop.tsv", "--at", "2026-11-16T06:00Z")
    counts = ("merchant", "rows", "new_pages", "updated", "unchanged", "bad")
    assert [first[name] for name in counts] == ["shop", 3, 2, 0, 0, 1]
    assert first["complaints"] == ["shop.tsv:4:4: price 'soon' is not one price; write 19.99 EUR"]
    Path("shop.tsv").write_text(FEED.replace("1.20", "1.30"), "utf-8")
    second = done("import", "shop.tsv", "--at", "2026-11-16T07:00Z")
    assert [second[name] for name in counts] == ["shop", 3, 0, 1, 1, 1]
    page = asyncio.run(_page("https://shop.example/2"))
    assert (page.told.origin, page.told.value.text) == ("shop", "1.3 EUR InStock")


def test_only_known_pages_if_wanted_and_tags(folder: Path) -> None:
    asyncio.run(_known("https://shop.example/2"))
    told = done("import", "-", "--merchant", "b", "--known-only", "--tag", "x", stdin=FEED)
    assert (told["new_pages"], told["updated"], told["unknown_pages"]) == (0, 1, 1)
    page = asyncio.run(_page("https://shop.example/2"))
    assert (page.tags, page.kind) == (["x"], "article")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["import", "-"], "name the merchant with --merchant"),
        (["import", "shop.tsv", "--merchant", " "], "name the merchant with --merchant"),
        (["import", "https://shop.example/feed.xml"], "download it first"),
        (["import", "none.tsv"], "none.tsv: cannot be read"),
        (["report"], "no merchant's feed was imported yet"),
    ],
)
def test_complaints(folder: Path, words: list[str], complaint: str) -> None:
    result = invoke(*words, stdin=FEED)
    assert isinstance(result.exception, InputError)
    assert complaint in str(result.exception)


def test_a_bad_feed_leaves_nothing(folder: Path) -> None:
    Path("shop.tsv").write_text(FEED.replace("EUR", "or so"), "utf-8")
    result = invoke("import", "shop.tsv")
    assert isinstance(result.exception, InputError)
    assert not Path("crawl.db").exists()


def test_report(folder: Path) -> None:
    done("import", "shop.tsv", "--at", "2026-11-16T06:00Z")
    asyncio.run(_visits("5 EUR InStock", "6 EUR InStock"))
    (known,) = done("report")
    assert (known["merchant"], known["visits"], known["accuracy"]) == ("shop", 2, 0.5)
    assert (known["unchecked_pages"], known["open_changes"]) == (1, 1)
    shown = invoke("report").stdout
    assert "shop" in shown
    assert "1 pages are not yet checkable" in shown


def test_import_is_shown_to_people(folder: Path) -> None:
    shown = invoke("import", "shop.tsv").stdout
    assert "new pages" in shown
    assert "shop.tsv:4:4" in shown
