"""The course that all contestants run: its pages, the server, the bare loop, and Salticus.

One process each, with the same pages and concurrency; the Scrapy spider is in `spider`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp import web
from msgspec.structs import replace

from salticus.clock import collect_rarely, run_fast
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.opening import stored
from salticus.lab.bench.process import answer
from salticus.lab.worlds.mall.render import Padding, page_head
from salticus.lab.worlds.mall.stock import generate
from salticus.types import NewPage

_VARIANTS = 51
_THIRD = ("jsonld", "jsonld", "microdata")


@dataclass(frozen=True)
class BenchSetup:
    """`pages` offers spread over `ports`, at most `per_host` requests to each at once.

    On a `mixed` course every third page has its offer in microdata, and the links of all pages are
    wanted too.
    """

    pages: int
    ports: tuple[int, ...]
    per_host: int
    mixed: bool = False

    @property
    def urls(self) -> list[str]:
        """All pages, host after host in turn."""
        hosts = len(self.ports)
        return [f"http://127.0.0.1:{self.ports[k % hosts]}/o/{k}" for k in range(self.pages)]

    @property
    def concurrency(self) -> int:
        return len(self.ports) * self.per_host

    def words(self) -> tuple[str, ...]:
        """For another process."""
        kind = "mixed" if self.mixed else "plain"
        return str(self.pages), ",".join(map(str, self.ports)), str(self.per_host), kind

    @classmethod
    def said(cls, pages: str, ports: str, per_host: str, kind: str) -> BenchSetup:
        """The course of these words."""
        hosts = tuple(map(int, ports.split(",")))
        return cls(int(pages), hosts, int(per_host), mixed=kind == "mixed")


class Stopwatch:
    """Wall and processor time from its making to `stop`."""

    def __init__(self) -> None:
        self._start = (time.perf_counter(), time.process_time())
        self._end = self._start

    def stop(self) -> None:
        self._end = (time.perf_counter(), time.process_time())

    def report(self, pages: int, prices: int) -> None:
        """Print what was done, for the process that compares."""
        wall, cpu = (end - start for start, end in zip(self._start, self._end, strict=True))
        answer({"pages": pages, "prices": prices, "seconds": wall, "cpu_seconds": cpu})


# --------------------------------------------------------------------------------------- the server


def offers(size: int, *, mixed: bool) -> list[bytes]:
    """Pages of about `size` bytes, alike but for product, price, and markup if `mixed`."""
    stock = generate(shops=1, offers=_VARIANTS, days=1)
    padding = Padding(size)
    texts = [stock.values[first] or "" for first in stock.offsets[:-1]]
    styles = [_THIRD[number % 3] if mixed else "jsonld" for number in range(_VARIANTS)]
    return [
        padding.page(page_head(replace(page, markup=style), text), text)
        for page, text, style in zip(stock.pages, texts, styles, strict=True)
    ]


async def serve(course: BenchSetup, size: int) -> None:
    """Serve on all ports of the course until the process is ended; faster than any contestant."""
    pages = offers(size, mixed=course.mixed)
    robots = web.Response(text="User-agent: *\nDisallow: /private/\n")

    async def answer(request: web.BaseRequest) -> web.Response:
        if request.path == "/robots.txt":
            return web.Response(body=robots.body, content_type="text/plain")
        body = pages[int(request.path[3:]) % _VARIANTS]
        return web.Response(body=body, content_type="text/html", charset="utf-8")

    runner = web.ServerRunner(web.Server(answer, access_log=None))
    await runner.setup()
    for port in course.ports:
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    sys.stdout.write("open\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


# ---------------------------------------------------------------------------------- the contestants


async def download(course: BenchSetup) -> None:
    """A bare aiohttp loop downloads all pages and throws them away.

    It makes as many requests to each host at once as the course allows.
    """
    queues = [deque(course.urls[k :: len(course.ports)]) for k in range(len(course.ports))]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work(queue: deque[str]) -> None:
            while queue:
                async with session.get(queue.popleft()) as response:
                    await response.read()

        watch = Stopwatch()
        await asyncio.gather(*(work(q) for q in queues for _ in range(course.per_host)))
        watch.stop()
        watch.report(course.pages, 0)


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
    """Salticus visits every page in one tick, with robots, queues, extraction and store on."""
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


def main(role: str, words: list[str]) -> None:
    """Play a role: server (with the bytes of a page), bare, or salticus (content, workers)."""
    course, more = BenchSetup.said(*words[:4]), words[4:]
    if role == "server":
        run_fast(serve(course, int(more[0])))
    elif role == "bare":
        run_fast(download(course))
    else:
        collect_rarely()
        chosen = {"keep_content": more[0] == "keep", "workers": int(more[1])}
        with tempfile.TemporaryDirectory() as place:
            run_fast(crawl(course, settings(course, Path(place), **chosen)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
