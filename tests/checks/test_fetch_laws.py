"""The built-in engine and fetcher obey their laws."""

import asyncio

from salticus.checks.fetch import check_engine, check_fetcher
from salticus.clock import Clock
from salticus.config import Config
from salticus.fetch.http import HttpEngine
from salticus.fetch.polite import PoliteFetcher


def test_http_engine() -> None:
    asyncio.run(check_engine(HttpEngine))


def test_polite_fetcher() -> None:
    def make(config: Config, clock: Clock) -> PoliteFetcher:
        return PoliteFetcher(HttpEngine(config.fetch, clock), config, clock)

    asyncio.run(check_fetcher(make))
