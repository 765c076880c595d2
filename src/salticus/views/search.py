"""What a search of the local copy found, and how far it can be trusted."""

from __future__ import annotations

from textwrap import shorten
from typing import Any

import msgspec
import numpy as np

from salticus.config import Config
from salticus.crawl.opening import clock_of, stored
from salticus.errors import SalticusError
from salticus.store.base import Hit, Store
from salticus.views.standing import chances
from salticus.views.times import ago, iso

_SHORT = 48  # characters of a title


class Found(msgspec.Struct, frozen=True):
    """A hit, and the chance that its copy is out of date; None if nothing can be said."""

    hit: Hit
    outdated: float | None


async def found(config: Config, words: str, limit: int) -> list[Found]:
    """What the words find in the store, best first. Counts nothing."""
    async with stored(config) as store:
        hits = await store.search(words, limit)
        outdated = await _outdated(config, store, hits)
    return [Found(hit, chance) for hit, chance in zip(hits, outdated, strict=True)]


async def _outdated(config: Config, store: Store, hits: list[Hit]) -> list[float | None]:
    if not hits:
        return []
    try:
        found = await chances(config, store, np.array([hit.page for hit in hits], dtype=np.int64))
    except SalticusError:  # a search answers, even where a crawl could not go on
        return [None] * len(hits)
    return [None if np.isnan(chance) else float(chance) for chance in found]


def as_json(found: Found) -> dict[str, Any]:
    """A hit for machines."""
    known = msgspec.structs.asdict(found.hit) | {"outdated": found.outdated}
    return known | {name: iso(known[name]) for name in ("last_visit", "last_answer")}


def as_table(found: list[Found], config: Config) -> tuple[list[str], list[list[Any]]]:
    """Hits for people: header and rows; without the chances if none is known."""
    now = int(clock_of(config).now().timestamp() * 1e6)
    header = ["price", "stock", "visited", "outdated", "title", "url"]
    rows = [_row(each, now) for each in found]
    if all(each.outdated is None for each in found):
        return [name for name in header if name != "outdated"], [r[:3] + r[4:] for r in rows]
    return header, rows


def _row(found: Found, now: int) -> list[Any]:
    hit, chance = found.hit, found.outdated
    price = " ".join(filter(None, (hit.price, hit.currency)))
    return [
        price or "-",
        hit.availability,
        ago(hit.last_visit, now),
        None if chance is None else f"{chance:.0%}",
        shorten(hit.title or "-", _SHORT, placeholder="…"),
        hit.url,
    ]
