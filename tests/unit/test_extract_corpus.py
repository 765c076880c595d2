"""Shop pages written apart from the extractor: no false price, and every field's recall."""

from __future__ import annotations

import json
from collections import Counter
from email.message import Message
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from salticus.extract.base import Content
from salticus.extract.markup import Markup
from salticus.extract.offer import Offer
from salticus.types import Value

PAGES = Path(__file__).parents[1] / "data" / "offers"
SAID: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted(PAGES.glob("*.json"))
}
WITH = [name for name, said in SAID.items() if said["expected"] is not None]
WITHOUT = [name for name, said in SAID.items() if said["expected"] is None]

# What is reached is 1.0 for all of them; the floors leave room for pages yet to be written.
FLOORS = {"price": 0.98, "currency": 0.98, "availability": 0.97, "title": 0.97} | dict.fromkeys(
    ("brand", "category", "condition", "language", "country", "sku", "gtin", "list_price",
     "low_price", "high_price"), 0.95,
)  # fmt: skip


@cache
def content(name: str) -> Content:
    header = Message()
    header["content-type"] = SAID[name].get("content_type", "")
    charset = header.get_param("charset")
    body = (PAGES / f"{name}.html").read_bytes()
    kind = header.get_content_type()
    return Content(SAID[name]["url"], body, kind, str(charset) if charset else None)


@cache
def found(name: str) -> Value | None:
    """What the chain of parts finds: the fast one, then the one that reads the whole page."""
    return Offer().extract(content(name)) or Markup().extract(content(name))


def test_the_corpus_is_large_and_varied() -> None:
    assert len(SAID) >= 400
    assert len(WITHOUT) >= 120
    assert sum(said.get("held_out", False) for said in SAID.values()) >= 180
    assert all(name.startswith(("no-", "big-negative-")) is (name in WITHOUT) for name in SAID)
    assert {"jsonld", "microdata", "rdfa", "opengraph", "mixed"} <= {
        s["style"] for s in SAID.values()
    }
    assert len({said["locale"] for said in SAID.values()}) >= 10


@pytest.mark.parametrize("name", WITHOUT)
def test_no_page_without_an_offer_has_a_price(name: str) -> None:
    value = found(name)
    assert value is None, f"{SAID[name]['about']}: {value and value.text}"


@pytest.mark.parametrize("held_out", [False, True])
def test_fields_are_found_and_right(held_out: bool) -> None:
    """Recall is the share of stated fields found right, precision that of found ones."""
    stated, right, wrong = Counter[str](), Counter[str](), Counter[str]()
    for name in (name for name in WITH if SAID[name].get("held_out", False) is held_out):
        value = found(name)
        fields = value.fields if value else {}
        for field, expected in SAID[name]["expected"].items():
            stated[field] += 1
            right[field] += fields.get(field) == expected
            wrong[field] += field in fields and fields[field] != expected
    print(f"\n{'field':<14}{'pages':>6}{'recall':>8}{'precision':>11}")
    for field, n in stated.most_common():
        precision = right[field] / max(1, right[field] + wrong[field])
        print(f"{field:<14}{n:>6}{right[field] / n:>8.3f}{precision:>11.3f}")
    low = {f: right[f] / n for f, n in stated.items() if right[f] / n < FLOORS.get(f, 0.95)}
    assert not low
    assert wrong["price"] == wrong["currency"] == 0


@pytest.mark.parametrize("name", list(SAID))
def test_both_parts_see_the_same_offer(name: str) -> None:
    """The fast part only saves time: reading the whole page would have said the same."""
    fast = Offer().extract(content(name))
    if fast is not None:
        whole = Markup().extract(content(name))
        assert whole is not None
        assert whole.text == fast.text
