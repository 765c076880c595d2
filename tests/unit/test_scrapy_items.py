"""What the Scrapy add-on makes of items, callbacks and failures."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Request
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider
from scrapy.spiders import Rule as Follow

from salticus.config import Budget, Rule
from salticus.crawl.manual import by_hand
from salticus.schedule.ledger import Ledger
from salticus.scrapy.crawl import Options, callback_name
from salticus.scrapy.fetcher import fetched_of, first_url, reading, status_of, taken, words_for
from salticus.testing import a_tick
from salticus.types import Outcomes, Status, instant

WORDS = st.text("ab1 .;:\x00é\u0301", min_size=1, max_size=6)
PARTS = st.recursive(
    WORDS | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


def text(*items: Any, rule: Rule | None = None, kind: str | None = None) -> str | None:
    value = reading([taken(item) for item in items], rule, kind).value
    return value and value.text


@given(item=st.dictionaries(st.sampled_from(["title", "text", "tags", "n"]), PARTS))
def test_the_order_of_fields_does_not_matter_and_every_field_does(item: dict[str, Any]) -> None:
    assert text(item) == text(dict(reversed(item.items())))
    other = text({**item, "more": "1"})
    assert other is not None
    assert other != text(item)


@given(cents=st.integers(1, 10**8))
def test_a_price_reads_the_same_in_every_type(cents: int) -> None:
    price = Decimal(cents) / 100
    said = [price, float(price), f"{price:.2f} €", f"EUR {price:.2f}"]
    texts = {text({"price": one, "currency": "EUR"}) for one in said}
    assert len(texts) == 1


def test_a_number_is_not_read_as_a_text() -> None:
    assert text({"price": 1.299, "currency": "EUR"}) == "1.299 EUR"


@dataclass
class Article:
    title: str
    at: datetime
    tags: frozenset[str] = frozenset({"b", "a"})


class Book(scrapy.Item):  # type: ignore[misc]
    title = scrapy.Field()
    price = scrapy.Field()


def test_all_kinds_of_items_are_read() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert text(Article("Tea", at)) == (
        'at: 2026-01-02T00:00:00+00:00; tags: ["a","b"]; title: Tea'
    )
    assert text(Book(title="Tea", price="9,90 €")) == "9.9 EUR"


def test_a_rule_chooses_the_fields_of_the_value() -> None:
    rule = Rule("*", value=("price", "stock"))
    seen = reading([{"price": 5, "stock": 3, "title": "Tea"}], rule)
    assert seen.value is not None
    assert seen.value.text == "price: 5; stock: 3"
    assert seen.value.fields["title"] == "Tea"
    missing = reading([{"price": 5}], rule)
    assert missing.value is None
    assert missing.fault is not None
    assert "stock" in missing.fault


def test_an_offer_without_its_price_has_lost_its_value() -> None:
    assert text({"price": None, "availability": "OutOfStock"}, kind="offer") is None
    assert text({"price": "call us"}) is None


def test_several_items_are_one_value() -> None:
    assert text({"title": "a"}, {"title": "b"}) == "a\nb"
    assert text() is None
    assert text({"title": "a"}, {"title": ""}) is None


def test_what_has_no_spelling_is_a_fault_not_a_change() -> None:
    seen = reading([{"title": "a", "node": object()}])
    assert seen.value is None
    assert seen.fault == (
        "field 'node': a object has no spelling of its own; let the spider give text or numbers"
    )
    assert text("not an item") is None


def test_pipelines_do_not_change_what_was_taken() -> None:
    item = {"title": "a", "tags": ["x"]}
    before = taken(item)
    item["tags"].append("y")  # type: ignore[attr-defined]
    assert before == {"title": "a", "tags": ["x"]}


class Shop(CrawlSpider):  # type: ignore[misc]
    name = "shop"
    rules = (Follow(LinkExtractor(), callback="parse_offer"),)

    def parse_offer(self, response: Any) -> None: ...


def test_callbacks_are_known_by_the_names_of_the_spider() -> None:
    spider = Shop()
    assert callback_name(Request("http://a/"), spider) is None
    assert callback_name(Request("http://a/", spider.parse_offer), spider) == "parse_offer"
    assert callback_name(Request("http://a/", lambda response: None), spider) is None
    ruled = Request("http://a/", spider._callback, meta={"rule": 0})
    assert callback_name(ruled, spider) == "parse_offer"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (IgnoreRequest("Forbidden by robots.txt"), Status.DISALLOWED),
        (IgnoreRequest("max redirections reached"), Status.REDIRECTS),
        (TimeoutError(), Status.TIMEOUT),
        (OSError("refused"), Status.NETWORK),
    ],
)
def test_failures_have_their_status(error: Exception, status: Status) -> None:
    assert status_of(error) is status
    assert words_for(error)


@pytest.mark.parametrize(
    ("reasons", "moved"), [([301, 308], True), ([301, 302], False), ([], False)]
)
def test_a_page_has_moved_if_every_redirect_is_for_good(reasons: list[int], moved: bool) -> None:
    meta = {"redirect_urls": ["http://a/old"], "redirect_reasons": reasons} if reasons else {}
    request = Request("http://a/new", meta=meta)
    fetched = fetched_of(HtmlResponse("http://a/new", request=request), 5)
    assert (fetched.moved == "http://a/new") is moved
    assert first_url(request) == ("http://a/old" if reasons else "http://a/new")


def test_the_settings_of_the_add_on_are_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "scrapy.md"
    said = re.findall(r"^\| `(SALTICUS_\w+)`", page.read_text("utf-8"), re.M)
    assert said == re.findall(r'"(SALTICUS_\w+)"', inspect.getsource(Options))


def test_visits_by_hand_do_not_burden_the_ledger() -> None:
    ledger = Ledger(Budget(10.0, per_page=False))
    plan = by_hand([1, 2, 3], a_tick())
    ledger.learn(Outcomes.dropped(plan, instant(a_tick().start)))
    assert ledger.open_ == 0
    assert ledger.balance_ == 0.0
