"""How good the copies of a crawl are now."""

from __future__ import annotations

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.standing import Standing, recalled
from salticus.store.base import Store
from salticus.types import Floats, Ints, Pages, instant


async def chances(config: Config, store: Store, ids: Ints, clock: Clock | None = None) -> Floats:
    """The chance that the copy of each page is out of date now; 1 for pages without a copy."""
    standing = await recalled(config, store, clock)
    return copies_of(standing, ids).outdated(instant(standing.now))


def copies_of(standing: Standing, ids: Ints) -> Pages:
    """These pages, which must be in the store, with the curves of the last plan, as the crawl has
    them: so all who are asked whether a copy is out of date give one answer."""
    start = standing.open.tick.start
    return standing.census.copies(ids, standing.parts.predictor, start)
