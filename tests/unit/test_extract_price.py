"""Prices, currencies and words have one form each."""

from __future__ import annotations

from typing import Any

import pytest

from salticus.extract.price import Price, availability, condition, currency, price, term


@pytest.mark.parametrize(
    ("raw", "amount", "code"),
    [
        ("19.9", "19.9", ""),
        ("19.90", "19.9", ""),
        (" 019.900 ", "19.9", ""),
        (20, "20", ""),
        ("20.00", "20", ""),
        ("100", "100", ""),
        (0, "0", ""),
        ("0.00", "0", ""),
        ("0.05", "0.05", ""),
        ("1.299", "1.299", ""),
        ("1.2e3", "1200", ""),
        ("12E-1", "1.2", ""),
        ("999999999999999.99", "999999999999999.99", ""),
        ("1,299", "1299", ""),
        ("1.299,00 €", "1299", "EUR"),
        ("€1.299.000,50", "1299000.5", "EUR"),
        ("$1,299", "1299", ""),
        ("US$ 1,299.99", "1299.99", "USD"),
        ("USD 12", "12", "USD"),
        ("1\u202f299,5\u00a0€", "1299.5", "EUR"),
        ("CHF 1’299.00", "1299", "CHF"),
        ("Kč 1 299", "1299", "CZK"),
        ("₹1,29,999.00", "129999", "INR"),
        ("12,- €", "12", "EUR"),
        ("35€99", "35.99", "EUR"),
    ],
)
def test_prices_are_read_exactly(raw: Any, amount: str, code: str) -> None:
    assert price(raw) == Price(amount, code)


@pytest.mark.parametrize(
    "raw",
    [
        *(None, True, False, [], {}, 1.5, "", " ", "free", "call us", "call 0800 123", "N/A", "-"),
        *(-1, "-5", "−5", "-0.5", "12.99-19.99", "from 5 €", "5 to 7", "12 34", "50%", "0,999"),
        *("NaN", "Infinity", "1e400", "1e-400", "1e99", 10**15, "9" * 41, "1.2.3,4", "1234,500"),
        *("1.299,00 € / 1.399,00 €", "5 kg"),
    ],
)
def test_what_is_not_one_price_is_none(raw: Any) -> None:
    assert price(raw) is None


def test_currencies_are_codes_or_unknown() -> None:
    assert [currency(raw) for raw in ("EUR", " usd ", "€", "zł", "lei")] == [
        "EUR", "USD", "EUR", "PLN", "RON",
    ]  # fmt: skip
    unknown: list[Any] = [None, "", "$", "kr", "¥", "12", "EURO!", 978]
    assert [currency(raw) for raw in unknown] == [""] * 8


def test_words_are_known_in_every_usual_spelling() -> None:
    spelt = (
        "InStock", "instock", "In Stock", "in_stock", "in-stock", "schema:InStock",
        "http://schema.org/InStock", "https://schema.org/InStock/", "HTTPS://SCHEMA.ORG/INSTOCK",
        ["InStock", "SoldOut"], {"@id": "https://schema.org/InStock"},
    )  # fmt: skip
    assert {availability(raw) for raw in spelt} == {"InStock"}
    unknown: list[Any] = [None, "", "yes", 1, [], {}]
    assert [availability(raw) for raw in unknown] == [""] * 6
    assert condition("schema:newcondition") == "NewCondition"
    assert condition("mint") == ""
    assert term("http://schema.org#Product ") == "Product"
