"""A store warmed with a log."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.opening import clock_of, stored
from salticus.crawl.parts import make_parts
from salticus.crawl.snapshot import Memory, no_plan
from salticus.observe import digest
from salticus.predict.base import Retraces
from salticus.store.base import Store

_LESSON = 50_000  # stored visits that are learnt at a time


async def import_log(config: Config, folder: Path, *, values: bool = True) -> dict[str, int]:
    """Warm the store with a log: its pages, its visits, its clicks; how many were new.

    All of it or nothing: InputError says what is wrong with the log, StoreLocked that a crawler
    runs on the store. What the visits teach of change rates is learnt once they are stored.
    """
    from salticus.exchange.folder import Log
    from salticus.exchange.past import ImportedHistory

    past = ImportedHistory(Log(folder), digest, values=values)
    past.check()
    clock = clock_of(config)
    async with stored(config) as store, store.lock():
        at = int(clock.now().timestamp() * 1e6)
        loaded = await store.load(past.pages(), past.visits, at=at, most=past.most)
        await _teach(config, clock, store, range(loaded.first, loaded.end))
    return {"pages": loaded.pages, "visits": loaded.visits}


async def _teach(config: Config, clock: Clock, store: Store, visits: range) -> None:
    """Let the predictor learn stored visits, and keep what it has learnt for the next run."""
    parts = make_parts(config, clock, store)
    memory = Memory(parts.named(), store)
    recalled = await memory.recall()
    for start in visits[::_LESSON]:
        numbers = np.arange(start, min(start + _LESSON, visits.stop))
        parts.predictor.learn(await store.outcomes(numbers))
    if visits:
        if isinstance(parts.predictor, Retraces):
            parts.predictor.look_back()  # imported visits may lie before known ones
        await memory.save(None if recalled else no_plan(clock.now()))
