"""What a visit teaches, case by case."""

from __future__ import annotations

import pytest

from salticus.config import Tolerance
from salticus.observe import digest, kept, observe, tolerated
from salticus.types import Fetched, Reading, Status, Target, Value

URL = "https://shop.example/p/1"
HELD = Target(page=1, url=URL, host="shop.example", kind="offer", digest=digest("5 EUR"), seen=3)
NEW = Target(page=1, url=URL, host="shop.example")


def fetched(url: str = URL, status: Status = Status.OK, **more: object) -> Fetched:
    return Fetched(url, status, 9, **more)  # type: ignore[arg-type]


def offer(price: str) -> Reading:
    return Reading(Value("offer", f"{price} EUR", {"price": price}))


def test_the_value_decides() -> None:
    assert observe(HELD, fetched(), offer("5")).changed is False
    assert observe(HELD, fetched(), offer("6")).changed is True
    assert observe(NEW, fetched(), offer("6")).changed is None


def test_what_the_reading_says_against_the_page_counts() -> None:
    seen = observe(HELD, fetched(), Reading(status=Status.BLOCKED, fault="a captcha"))
    assert (seen.status, seen.fault, seen.changed) == ("blocked", "a captcha", None)
    assert seen.digest is None


def test_a_page_without_its_value_is_lost_and_the_reason_is_told() -> None:
    seen = observe(HELD, fetched(), Reading(fault="nothing fits css:.price"))
    assert seen.status == "lost"
    assert seen.changed is None
    assert "css:.price" in (seen.fault or "")
    assert observe(NEW, fetched(), Reading()).status == "ok"


@pytest.mark.parametrize("home", ["https://shop.example/", "https://other.example"])
def test_an_offer_that_leads_to_the_home_page_is_not_there_any_more(home: str) -> None:
    assert observe(HELD, fetched(home), Reading()).status == "soft_404"
    moved = fetched(home, moved=home)
    assert observe(HELD, moved, Reading(Value("page", "Welcome"))).status == "soft_404"


def test_a_page_that_always_led_home_is_a_page() -> None:
    home = "https://shop.example/"
    target = Target(page=1, url=URL, host="shop.example", digest=digest("Welcome"), seen=3)
    assert observe(target, fetched(home), Reading(Value("page", "Welcome"))).changed is False
    assert observe(target, fetched(home), Reading(Value("page", "Hello"))).changed is True
    assert observe(NEW, fetched(home, moved=home), Reading(Value("page", "Hello"))).status == "ok"


@pytest.mark.parametrize(
    ("before", "after", "allowed", "same"),
    [
        ("100", "100.9", "1%", True),
        ("100", "101.1", "1%", False),
        ("100", "99.6", 0.5, True),
        ("100", "99.4", 0.5, False),
        ("call us", "100", "1%", False),
    ],
)
def test_small_moves_are_tolerated(
    before: str, after: str, allowed: str | float, same: bool
) -> None:
    one, other = offer(before).value, offer(after).value
    assert one is not None
    assert other is not None
    assert tolerated(one, other, {"price": Tolerance.parse(allowed)}) is same


def test_tolerance_of_one_field_does_not_excuse_another() -> None:
    one = Value("offer", "100 EUR InStock", {"price": "100", "availability": "InStock"})
    other = Value("offer", "100.5 EUR SoldOut", {"price": "100.5", "availability": "SoldOut"})
    assert not tolerated(one, other, {"price": Tolerance.parse("1%")})


def test_a_tolerated_change_leaves_what_was_held() -> None:
    seen = observe(HELD, fetched(last_modified="Thu, 01 Jan 1970 00:00:00 GMT"), offer("6"))
    kept(seen, HELD)
    assert (seen.changed, seen.digest, seen.value, seen.age_s) == (False, HELD.digest, None, None)
