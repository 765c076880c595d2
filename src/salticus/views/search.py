"""What a search of the local copy found, and how far it can be trusted."""

from __future__ import annotations

from datetime import datetime

import msgspec
import numpy as np

from salticus.crawl.opening import Crawl
from salticus.store.nouns import Hit
from salticus.types import Floats, Told
from salticus.views.fresh import outdated_or_unknown, times
from salticus.views.times import known


class Found(msgspec.Struct, frozen=True):
    """A hit, and the chance that its copy is out of date; None if nothing can be said."""

    page: int
    url: str
    title: str | None
    price: str | None
    currency: str | None
    availability: str | None
    last_visit: datetime | None
    last_answer: datetime | None
    told: Told | None
    outdated: float | None


async def search(crawl: Crawl, words: str, limit: int = 20) -> list[Found]:
    """What the words find in the store, best first. Counts nothing."""
    hits = await crawl.store.search(words, limit)
    ids = np.array([hit.page for hit in hits], dtype=np.int64)
    answered = times([hit.last_answer for hit in hits])
    return found(hits, await outdated_or_unknown(crawl, ids, answered) if hits else np.empty(0))


def found(hits: list[Hit], outdated: Floats) -> list[Found]:
    """Hits with the chance of each to be out of date, NaN = unknown."""
    times = [{n: known(getattr(hit, n)) for n in ("last_visit", "last_answer")} for hit in hits]
    chances = (None if np.isnan(chance) else chance for chance in outdated.tolist())
    return [
        Found(**msgspec.structs.asdict(hit) | each, outdated=chance)
        for hit, each, chance in zip(hits, times, chances, strict=True)
    ]
