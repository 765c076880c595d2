"""Contestant: Salticus with robots, queues, extraction, observation and store on."""

from __future__ import annotations

import tempfile
from pathlib import Path

from salticus.clock import collect_rarely, run_fast
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.opening import stored
from salticus.lab.bench.course import BenchSetup, Stopwatch
from salticus.types import NewPage


def settings(course: BenchSetup, folder: Path, **extract: object) -> Config:
    """No delay and a budget for all pages at once; the rest as it comes."""
    return parse(
        {
            "store": str(folder / "salticus.db"),
            "budget": course.pages * 24,
            "tick": "1h",
            "extract": {"links": course.mixed, **extract},
            "fetch": {
                "contact": "bench@example.org",
                "delay": 0,
                "per_host": course.per_host,
                "concurrency": course.concurrency,
                "allow_private": ["127.0.0.1"],
            },
        }
    )


async def crawl(course: BenchSetup, config: Config) -> None:
    """One tick that visits every page."""
    async with stored(config) as store:
        await store.add([NewPage(url, kind="offer") for url in course.urls], at=0)
    async with crawler(config, once=True) as loop:
        watch = Stopwatch()
        await loop.run(once=True)
        watch.stop()
    async with stored(config) as store:
        summary = await store.summary()
        prices = sum(1 for _ in store.scan("values"))
    watch.report(summary.answered, prices)


if __name__ == "__main__":
    collect_rarely()
    course, (content, workers) = BenchSetup.given(), BenchSetup.further()
    chosen = {"keep_content": content == "keep", "workers": int(workers)}
    with tempfile.TemporaryDirectory() as place:
        run_fast(crawl(course, settings(course, Path(place), **chosen)))
