"""Prices, currencies and words have one form each."""

from __future__ import annotations

import math
from decimal import Decimal
from struct import pack, unpack
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from salticus.extract.price import Price, Shown, currency, plausible, price, rival
from salticus.extract.words import availability, condition, term


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
        ("44.400000000000006", "44.4", ""),
        ("109.99000000000001", "109.99", ""),
        ("19.989999999999998", "19.99", ""),
        ("1.9989999999999998e1", "19.99", ""),
        ("19.989999771118164", "19.99", ""),  # through single precision
        ("12.500000000000", "12.5", ""),
        ("0.00001234", "0.00001234", ""),
        ("0.000000001234", "0.000000001234", ""),
        ("44.4000000001", "44.4000000001", ""),
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


@example(740_709, 0)  # 7407.08984375 in single precision
@example(819_243, 0)  # 8192.4296875
@given(st.integers(1, 10**8), st.integers(-4, 4))
def test_what_arithmetic_adds_to_a_price_is_no_part_of_it(cents: int, steps: int) -> None:
    exact = Decimal(cents) / 100
    near = float(exact)
    for _ in range(abs(steps)):
        near = math.nextafter(near, math.copysign(math.inf, steps))
    single = unpack("f", pack("f", float(exact)))[0]
    assert price(repr(near)) == price(str(exact))
    if cents < 10**6:
        assert price(repr(single)) == price(str(exact))


def test_currencies_are_codes_or_unknown() -> None:
    assert [currency(raw) for raw in ("EUR", " usd ", "€", "zł", "lei")] == [
        "EUR", "USD", "EUR", "PLN", "RON",
    ]  # fmt: skip
    unknown: list[Any] = [None, "", "$", "kr", "¥", "12", "EURO!", 978]
    assert [currency(raw) for raw in unknown] == [""] * 8
    escaped = ["&euro;", "&#8364;", "&pound;", {"@value": "EUR"}, ["&euro;"]]
    assert [currency(raw) for raw in escaped] == ["EUR", "EUR", "GBP", "EUR", "EUR"]
    assert [currency("&#36;", tongue) for tongue in ("en-us", "en")] == ["USD", ""]


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


@pytest.mark.parametrize(
    ("raw", "tongue", "amount", "code"),
    [
        ("1.299,00 €", "de", "1299", "EUR"),
        ("12,– €", "de", "12", "EUR"),
        ("19,99 €*", "de", "19.99", "EUR"),
        ("Preis: 19,99 EUR inkl. MwSt.", "de", "19.99", "EUR"),
        ("1\u202f299,00\xa0€ TTC", "fr", "1299", "EUR"),
        ("35 € 99", "fr", "35.99", "EUR"),
        ("€ 1.299,90", "it", "1299.9", "EUR"),
        ("1.299,50 €", "es", "1299.5", "EUR"),
        ("R$ 1.299,00", "pt-br", "1299", "BRL"),
        ("€ 1.299,-", "nl", "1299", "EUR"),
        ("1 299,00 zł", "pl", "1299", "PLN"),
        ("1 299,- Kč", "cs", "1299", "CZK"),
        ("1 299:-", "sv", "1299", ""),
        ("1 299 kr", "sv-se", "1299", "SEK"),
        ("1.299,00 kr.", "da", "1299", "DKK"),
        ("kr 1 299,–", "nb", "1299", "NOK"),
        ("1 299 kr", "", "1299", ""),
        ("CHF 1’299.–", "de-ch", "1299", "CHF"),
        ("Fr. 12.50", "fr-ch", "12.5", "CHF"),
        ("12 990 Ft", "hu", "12990", "HUF"),
        ("1 299 руб.", "ru", "1299", "RUB"),
        ("12\xa0990\xa0₽", "ru", "12990", "RUB"),
        ("1.299,90 TL", "tr", "1299.9", "TRY"),
        ("1,299円（税込）", "ja", "1299", "JPY"),
        ("１，２９９円", "ja", "1299", "JPY"),
        ("￥1,299", "ja", "1299", "JPY"),
        ("¥1,299", "zh", "1299", "CNY"),
        ("1,299,000원", "ko", "1299000", "KRW"),
        ("₹1,29,999", "hi", "129999", "INR"),
        ("Rs. 1,299", "en-in", "1299", "INR"),
        ("1.299.000 ₫", "vi", "1299000", "VND"),
        ("1.299.000đ", "vi", "1299000", "VND"),
        ("Rp 1.299.000", "id", "1299000", "IDR"),
        ("١٬٢٩٩٫٥٠ ر.س", "ar", "1299.5", "SAR"),
        ("۱۲۹۹", "fa", "1299", ""),
        ("12.500 د.ك", "ar", "12.5", "KWD"),
        ("1 299 грн", "uk", "1299", "UAH"),
        ("1.299,00 lei", "ro", "1299", "RON"),
        ("$1,299.00", "en-us", "1299", "USD"),
        ("$1,299.00", "en", "1299", ""),
        ("$ 19.990", "es-cl", "19990", "CLP"),
        ("US $12.50", "en", "12.5", "USD"),
        ("$12 CAD", "en", "12", "CAD"),
        ("£0.99", "en-gb", "0.99", "GBP"),
        ("19⁹⁹ €", "de", "19.99", "EUR"),
        ("12,50&nbsp;&euro;", "de", "12.5", "EUR"),
        ("12,50 € / Stück", "de", "12.5", "EUR"),
    ],
)
def test_prices_of_many_countries(raw: str, tongue: str, amount: str, code: str) -> None:
    assert price(raw, tongue=tongue) == price(Shown(raw), tongue=tongue) == Price(amount, code)


@pytest.mark.parametrize(
    "raw",
    [
        *("ab 19,99 €", "from $5", "à partir de 5 €", "desde 5 €", "19,99 €/kg", "5 € pro Monat"),
        *(
            "10x R$ 129,90",
            "5 € zzgl. MwSt.",
            "5 € HT",
            "+ 5 €",
            "save 5 €",
            "5 € 10 €",
            "1.299.00",
        ),
        *("{{price}}", "${price}", "%price%", "0800 123 456", "12/2030", "5 Sterne", "4.5/5"),
    ],
)
def test_words_that_make_another_thing_of_a_price(raw: str) -> None:
    assert price(raw) is price(Shown(raw), tongue="de") is None


def test_three_digits_after_a_mark_by_currency_and_language() -> None:
    assert price("12.990", "HUF") == price("12.990", "CLP") == Price("12990")
    assert price("12.990", "KWD") == price("12.990", "EUR") == Price("12.99")
    assert price(Shown("1.299"), "EUR", "de") == Price("1299")
    assert price(Shown("1.299"), "EUR", "en") == Price("1.299")
    doubtful = [("1.299", "EUR", "de"), ("12.500", "", "fr"), ("1,299", "EUR", "de")]
    assert [rival(*said) for said in doubtful] == ["1299", "12500", "1.299"]
    certain = [("1.299", "JPY", "de"), ("1.299", "EUR", "en"), ("1.299", "EUR", ""),
               ("0.999", "", "de"), ("1,299", "EUR", "en"), ("1.299,00", "EUR", "de"),
               ("1299.000", "EUR", "de"),
               (Shown("1.299"), "EUR", "de"), ("1.299 €", "EUR", "de"), ("1.29", "EUR", "de"),
               ("1.299", "KWD", "de"), (1299, "EUR", "de"), (None, "", "")]  # fmt: skip
    assert [rival(*said) for said in certain] == [""] * len(certain)


def test_lists_and_wrapped_values_state_a_price_if_they_agree() -> None:
    assert price(["19.90", "19,90 €", "call us"]) == Price("19.9", "EUR")
    assert price(["19.90", "20"]) is price([]) is price([["5"]]) is None
    assert price({"@value": "19.90"}) == Price("19.9")
    assert price({"price": "5"}) is None


def test_placeholders_are_not_plausible() -> None:
    for amount, code in (
        ("999999", "EUR"),
        ("999999.99", ""),
        ("99999999", "IDR"),
        ("1" * 9, "USD"),
    ):
        assert not plausible(amount, code)
    for amount, code in (("99999", "EUR"), ("9999.99", ""), ("999999", "IDR"), ("12345678", "JPY")):
        assert plausible(amount, code)


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("Auf Lager", "InStock"),
        ("En stock", "InStock"),
        ("Rupture de stock", "OutOfStock"),
        ("Nicht auf Lager", "OutOfStock"),
        ("Ausverkauft", "SoldOut"),
        ("Disponibile", "InStock"),
        ("Non disponibile", "OutOfStock"),
        ("Agotado", "SoldOut"),
        ("Em estoque", "InStock"),
        ("Niet op voorraad", "OutOfStock"),
        ("Skladem", "InStock"),
        ("Není skladem", "OutOfStock"),
        ("I lager", "InStock"),
        ("Ikke på lager", "OutOfStock"),
        ("Нет в наличии", "OutOfStock"),
        ("В наличии", "InStock"),
        ("Stokta yok", "OutOfStock"),
        ("在庫あり", "InStock"),
        ("品切れ", ""),
        ("Vorbestellbar", "PreOrder"),
        ("available for order", "BackOrder"),
        ("oos", "OutOfStock"),
        ("Leider nicht mehr auf Lager", "OutOfStock"),
        ("Not yet available", "PreOrder"),
        ("Nur noch 3 Stück auf Lager", "LimitedAvailability"),
        ("https://shop.example/available", ""),
    ],
)
def test_availability_in_plain_words(said: str, word: str) -> None:
    assert availability(said) == word
