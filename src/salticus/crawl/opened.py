"""An open crawl, for those who look at it: store, settings, clock and state, kept current."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from salticus.clock import Clock
from salticus.config import Config, load
from salticus.crawl.opening import clock_of, stored
from salticus.types import instant

if TYPE_CHECKING:
    from salticus.crawl.standing import Standing
    from salticus.store.base import Stamp, Store


@asynccontextmanager
async def open_crawl(
    settings: Config | Path | str, clock: Clock | None = None
) -> AsyncIterator[Crawl]:
    """The crawl that the settings describe, or the file that holds them; its store is made if there
    is none. Others may open it too, and a crawler may run on it meanwhile."""
    config = settings if isinstance(settings, Config) else load(Path(settings))
    async with stored(config) as store:
        yield Crawl(config, store, clock or clock_of(config))


class Crawl:
    """A crawl that is open for looking at it. Whoever keeps it open reads the store's columns and
    the crawler's state once, and later only what has changed.

    Law: it answers as one that was opened just now.
    """

    def __init__(self, config: Config, store: Store, clock: Clock) -> None:
        self.config = config
        self.store = store
        self.clock = clock
        self._stamp: Stamp | None = None
        self._standing: Standing | None = None

    def now(self) -> datetime:
        """World time."""
        return self.clock.now()

    @property
    def micros(self) -> int:
        """World time in µs since 1970, as the store counts."""
        return int(instant(self.now()).astype(np.int64))

    async def running(self) -> bool:
        """Whether a crawler works on the store."""
        return await self.store.holder() is not None

    async def standing(self) -> Standing:
        """What the crawl had learnt when it planned last, all pages, and the visits still open.
        Nothing may be studied or planned with it; for that see `foreseeing`."""
        stamp = await self.store.stamp()
        if self._standing is None or self._stamp is None or stamp.state != self._stamp.state:
            self._standing = await self.foreseeing()
        elif stamp.data != self._stamp.data:
            self._standing = await self._followed(self._standing)
        self._stamp = stamp
        return replace(self._standing, now=self.now())

    async def foreseeing(self) -> Standing:
        """What the crawl knows, read anew, to plan ahead with."""
        from salticus.crawl.standing import recalled  # compiled parts; not everyone needs them

        return await recalled(self.config, self.store, self.clock)

    async def _followed(self, standing: Standing) -> Standing:
        """With the pages that were added and edited since, and without the visits that were made;
        what these taught is studied when the crawl plans next."""
        await standing.census.refresh()
        made = await self.store.outcomes(standing.open.visit)
        return replace(standing, open=standing.open.without(made.visit))
