"""Any log with the truth can be served."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from salticus.errors import InputError
from salticus.lab.worlds.mall.stock import Stock, stock_from_log

DAY = datetime(2026, 3, 1, tzinfo=UTC)
SHARED = Path(__file__).parents[3] / "shared" / "data"


def write_log(
    folder: Path, pages: dict[str, list[Any]], values: list[tuple[Any, int, Any]]
) -> Path:
    """A log whose values are (page, day, value)."""
    folder.mkdir(exist_ok=True)
    pl.DataFrame(pages).write_parquet(folder / "pages.parquet")
    pl.DataFrame(
        {
            "page_id": [page for page, _, _ in values],
            "at": [DAY + timedelta(days=day) for _, day, _ in values],
            "value": [value for _, _, value in values],
        }
    ).write_parquet(folder / "values.parquet")
    return folder


def texts_of(stock: Stock) -> list[str | None]:
    return [stock.value(row, DAY) for row in range(len(stock))]


def test_prices_become_offers_in_order_of_time(tmp_path: Path) -> None:
    pages = {"page_id": ["b", "a"], "host": ["two", "one"], "title": ["Pan", None]}
    values = [("b", 2, "3.50"), ("a", 0, "19.99 GBP OutOfStock"), ("b", 0, "3.99"), ("b", 3, None)]
    stock = stock_from_log(write_log(tmp_path, pages, values))
    assert [(p.page_id, p.shop, p.kind, p.title) for p in stock.pages] == [
        ("a", 0, "offer", "a"),
        ("b", 1, "offer", "Pan"),
    ]
    assert [value for _, value in stock.history(0)] == ["19.99 GBP OutOfStock"]
    assert stock.history(1) == [
        (DAY, "3.99 EUR InStock"),
        (DAY + timedelta(days=2), "3.5 EUR InStock"),
        (DAY + timedelta(days=3), None),
    ]


def test_the_currency_of_bare_prices_can_be_given(tmp_path: Path) -> None:
    log = write_log(tmp_path, {"page_id": ["a"]}, [("a", 0, "5")])
    assert stock_from_log(log, currency="chf").value(0, DAY) == "5 CHF InStock"


def test_a_value_written_differently_is_no_change(tmp_path: Path) -> None:
    log = write_log(
        tmp_path, {"page_id": ["a"]}, [("a", 0, "5.0"), ("a", 1, "5.00"), ("a", 2, "6")]
    )
    assert [at for at, _ in stock_from_log(log).history(0)] == [DAY, DAY + timedelta(days=2)]


def test_two_pages_with_the_same_value_both_keep_it(tmp_path: Path) -> None:
    log = write_log(tmp_path, {"page_id": ["a", "b"]}, [("a", 0, "5"), ("b", 0, "5")])
    assert texts_of(stock_from_log(log)) == ["5 EUR InStock"] * 2


def test_what_is_not_a_price_is_text(tmp_path: Path) -> None:
    pages = {"page_id": ["a", "b", "c"], "kind": ["article", None, "offer"]}
    values = [("a", 0, "1.50"), ("b", 0, "Sold  out\nsoon"), ("c", 0, "2"), ("c", 1, "on request")]
    stock = stock_from_log(write_log(tmp_path, pages, values))
    assert [page.kind for page in stock.pages] == ["article", "page", "page"]
    assert [page.path for page in stock.pages] == ["/a/0", "/a/1", "/a/2"]
    assert texts_of(stock) == ["1.50", "Sold out soon", "2"]


def test_numbers_serve_as_ids_and_values(tmp_path: Path) -> None:
    stock = stock_from_log(write_log(tmp_path, {"page_id": [7]}, [(7, 0, 3.5)]))
    assert stock.pages[0].page_id == "7"
    assert stock.value(0, DAY) == "3.5 EUR InStock"


def test_pages_without_values_and_values_without_pages_are_left_out(tmp_path: Path) -> None:
    log = write_log(tmp_path, {"page_id": ["a", "b"]}, [("a", 0, "1"), ("z", 0, "1")])
    stock = stock_from_log(log)
    assert [page.page_id for page in stock.pages] == ["a"]
    assert len(stock.values) == 1


def test_many_hosts_fold_on_few_ports_and_stay_together(tmp_path: Path) -> None:
    names = [f"host{n % 100}" for n in range(300)]
    pages = {"page_id": [str(n) for n in range(300)], "host": names}
    log = write_log(tmp_path, pages, [(str(n), 0, "1") for n in range(300)])
    stock = stock_from_log(log, shops=5)
    assert {page.shop for page in stock.pages} == set(range(5))
    by_host: dict[str, set[int]] = {}
    for page in stock.pages:
        by_host.setdefault(names[int(page.page_id)], set()).add(page.shop)
    assert all(len(shops) == 1 for shops in by_host.values())
    assert stock_from_log(log).shops <= 64


def test_merchants_stand_in_for_hosts(tmp_path: Path) -> None:
    pages = {"page_id": ["a", "b", "c"], "merchant": ["x", "y", "x"]}
    stock = stock_from_log(write_log(tmp_path, pages, [(p, 0, "1") for p in "abc"]))
    assert [page.shop for page in stock.pages] == [0, 1, 0]


def test_a_log_without_the_truth_is_refused_by_name(tmp_path: Path) -> None:
    log = write_log(tmp_path, {"page_id": ["a"]}, [("a", 0, "1")])
    (log / "values.parquet").unlink()
    with pytest.raises(InputError, match=r"values\.parquet: no such file"):
        stock_from_log(log)


@pytest.mark.parametrize("name", ["grocery", "fuel"])
def test_real_logs_can_be_served(name: str) -> None:
    folder = SHARED / name
    if not folder.exists():
        pytest.skip(f"the trace {name} is not here")
    stock = stock_from_log(folder, shops=20)
    assert len(stock) == pl.read_parquet(folder / "values.parquet")["page_id"].n_unique()
    assert stock.shops <= 20
    assert sum(page.kind == "offer" for page in stock.pages) > 0.999 * len(stock)
    assert len(stock.values) > len(stock)
