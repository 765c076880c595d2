"""`salticus bench links`: what reading the links of a page costs, beside parsing it and no more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import can_ada
from selectolax.lexbor import LexborHTMLParser

from salticus.extract.base import Content
from salticus.extract.links import links_of, read_links
from salticus.lab.bench import Told

URL = "https://www.news.example/"
_ORIGIN = URL[:-1]
_BATCH = 5  # pages between two looks at the clock

_TEASER = (
    '<article class="teaser teaser--{0}"><a class="teaser__link" data-track="front|{0}" href="{1}">'
    '<div class="teaser__image"><img loading="lazy" src="/images/{0}.jpg" width="480" alt=""></div>'
    '<h3 class="teaser__title">The council votes on line {0}</h3></a><p class="teaser__text">After '
    "years of delay the new line opens in spring, and most of those who live beside it are glad."
    '</p><span class="teaser__time">{0} minutes ago</span></article>\n'
)
_ITEM = '<li class="item"><a href="{1}">Line {0}</a></li>\n'


def bench(
    *, links: int = 160, rounds: int = 100, told: Told = lambda step: None
) -> Iterator[dict[str, Any]]:
    """A row for each page and contestant, by the best of the rounds, in which all take turns.

    The columns are explained in docs/reference/cli.md.
    """
    for name, body in (("front", front_page(links)), ("list", plain_list(links))):
        told(f"{name} page, {links:,} links, {len(body):,} bytes")
        seconds = _fastest(body, rounds)
        for contestant, best in seconds.items():
            yield {
                "page": name,
                "contestant": contestant,
                "bytes": len(body),
                "ms/page": round(1e3 * best, 3),
                "links/s": round(links / best),
                "x parse": round(best / seconds["parse"], 2),
            }


def front_page(links: int) -> bytes:
    """The main page of a news site: teasers, and a quarter of the links in boxes around them."""
    boxed = links // 8
    menu = "".join(_ITEM.format(n, f"/section-{n}/") for n in range(boxed))
    news = "".join(_TEASER.format(n, _article(n)) for n in range(links - 2 * boxed))
    about = "".join(_ITEM.format(n, f"/about/us-{n}") for n in range(boxed))
    page = f"<!doctype html><title>News</title><nav><ul>{menu}</ul></nav><main>{news}</main>"
    return f"{page}<footer><ul>{about}</ul></footer>".encode()


def plain_list(links: int) -> bytes:
    """The same links without anything around them."""
    return "".join(_ITEM.format(n, _article(n)) for n in range(links)).encode()


def _article(number: int) -> str:
    """Two in ten have the whole address and a tracking parameter, one leads to another site."""
    path = f"/news/2026/11/{number % 28 + 1:02}/the-council-votes-{'on-' * (number % 7)}{number}"
    if number % 10 == 9:
        return f"https://partner.example{path}"
    return f"{_ORIGIN}{path}.html?utm_source=front" if number % 10 > 6 else path


def _bare(body: bytes) -> object:
    """Every link in one spelling; of boxes, sessions, trackers and repetition nothing is known."""
    written = [node.attributes["href"] or "" for node in LexborHTMLParser(body).css("a[href]")]
    return [can_ada.parse(_ORIGIN + raw if raw[:1] == "/" else raw).href for raw in written]


CONTESTANTS: dict[str, Callable[[bytes], object]] = {
    "parse": LexborHTMLParser,
    "parse + can_ada": _bare,
    "read_links": lambda body: read_links(Content(URL, body, "text/html", "utf-8")),
    "links_of": lambda body: links_of(Content(URL, body, "text/html", "utf-8")),
}


def _fastest(body: bytes, rounds: int) -> dict[str, float]:
    """Seconds of one core that each takes for a page, in the round that was disturbed least."""
    best = dict.fromkeys(CONTESTANTS, float("inf"))
    for _ in range(rounds):
        for name, work in CONTESTANTS.items():
            began = time.process_time()
            for _ in range(_BATCH):
                work(body)
            best[name] = min(best[name], max(time.process_time() - began, 1e-9) / _BATCH)
    return best
