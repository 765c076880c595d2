"""The truth of a mall: lookups agree with a plain reading of the change points."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.lab.worlds.mall.stock import MallPage, Stock, generate, offer_text, offsets_of

START = datetime(2026, 1, 1, tzinfo=UTC)

histories = st.lists(
    st.lists(
        st.tuples(st.integers(0, 50), st.sampled_from(["1 EUR InStock", "2 EUR InStock", None]))
    ),
    max_size=6,
)


def stock_of(histories: list[list[tuple[int, str | None]]]) -> Stock:
    """A stock with the given (second, value) pairs a page."""
    ordered = [sorted(points, key=lambda point: point[0]) for points in histories]
    rows = [row for row, points in enumerate(ordered) for _ in points]
    flat = [point for points in ordered for point in points]
    start = np.datetime64(START.replace(tzinfo=None), "us")
    return Stock(
        pages=[MallPage(str(row), 0, f"/o/{row}", "A thing") for row in range(len(ordered))],
        offsets=offsets_of(np.array(rows, dtype=np.int64), len(ordered)),
        times=start + np.array([second for second, _ in flat], dtype="timedelta64[s]"),
        values=[value for _, value in flat],
    )


def naive(points: list[tuple[int, str | None]], second: float) -> str | None:
    """The value of the last point that has passed."""
    passed = [value for at, value in sorted(points, key=lambda point: point[0]) if at <= second]
    return passed[-1] if passed else None


@given(histories, st.floats(-1, 51))
def test_lookups_agree_with_a_plain_reading(
    histories: list[list[tuple[int, str | None]]], second: float
) -> None:
    stock = stock_of(histories)
    when = START + timedelta(seconds=second)
    exact = (when - START).total_seconds()
    expected = [naive(points, exact) for points in histories]
    assert [stock.value(row, when) for row in range(len(stock))] == expected
    points = stock.values_at(when)
    assert points.tolist() == [
        stock.point(row, np.datetime64(when.replace(tzinfo=None), "us"))
        for row in range(len(stock))
    ]


@given(histories)
def test_a_history_is_what_was_given(histories: list[list[tuple[int, str | None]]]) -> None:
    stock = stock_of(histories)
    for row, points in enumerate(histories):
        given_points = sorted(points, key=lambda point: point[0])
        assert stock.history(row) == [(START + timedelta(seconds=s), v) for s, v in given_points]


@given(st.decimals(0, 10**6, places=4), st.integers(0, 6))
def test_the_text_of_an_offer_does_not_depend_on_how_its_price_is_written(
    price: Decimal, zeros: int
) -> None:
    text = offer_text(price, "eur", "InStock")
    shown, currency, availability = text.split(" ")
    assert Decimal(shown) == price
    assert (currency, availability) == ("EUR", "InStock")
    assert "E" not in shown
    assert offer_text(f"{price:f}{'0' * zeros}", "EUR", "InStock") == text


def test_the_same_seed_makes_the_same_stock() -> None:
    one, same, other = generate(offers=50), generate(offers=50), generate(offers=50, seed=1)
    assert one.pages == same.pages
    assert one.values == same.values
    assert (one.times == same.times).all()
    assert one.values != other.values


@pytest.fixture(scope="module")
def market() -> Stock:
    return generate(shops=7, offers=5000, days=20, seed=3)


def test_generated_change_points_are_in_order_and_within_the_span(market: Stock) -> None:
    first = market.offsets[:-1]
    assert (market.times[first] == np.datetime64("2026-01-01")).all()
    assert market.times.max() < np.datetime64("2026-01-21")
    rows = np.repeat(np.arange(len(market)), np.diff(market.offsets))
    assert (np.diff(market.times)[np.diff(rows) == 0] > np.timedelta64(0)).all()


def test_generated_changes_are_changes(market: Stock) -> None:
    for row in range(len(market)):
        values = [value for _, value in market.history(row)]
        assert all(a != b for a, b in zip(values, values[1:], strict=False))
        assert values[0] is not None


def test_generated_rates_have_a_heavy_tail(market: Stock) -> None:
    rates = (np.diff(market.offsets) - 1) / 20
    assert 0.35 < rates.mean() < 0.75
    assert np.median(rates) < rates.mean() / 2
    assert np.quantile(rates, 0.99) > 5 * rates.mean()


def test_generated_offers_are_varied(market: Stock) -> None:
    texts = [value for value in market.values if value is not None]
    assert market.shops == 7
    assert {page.shop for page in market.pages} == set(range(7))
    assert len({page.language for page in market.pages}) >= 4
    assert len({text.split(" ")[1] for text in texts}) >= 4
    assert {text.split(" ")[2] for text in texts} == {"InStock", "OutOfStock"}
    assert all(text.split(" ")[0].endswith(".99") for text in texts)
    assert None in market.values
    assert all(page.category and page.category.count(" > ") == 2 for page in market.pages)
    assert all(page.brand for page in market.pages)
