"""The desk as a companion of a crawl."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from salticus.clock import Clock
from salticus.config import Config
from salticus.crawl.loop import Loop

if TYPE_CHECKING:
    from salticus.crawl.live import Live


@asynccontextmanager
async def desk(config: Config, loop: Loop, world: Live, clock: Clock) -> AsyncIterator[None]:
    """The desk is open meanwhile, if the settings give it an address."""
    if config.desk.listen is None:
        yield
        return
    from salticus.web.clicks import Clicks
    from salticus.web.server import opened

    world.lingers = True
    clicks = Clicks(loop, world, clock)
    try:
        async with opened(clicks, config.desk.listen, config.desk.allowed_hosts):
            yield
    finally:
        await clicks.flush()
