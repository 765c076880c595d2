"""`salticus bench fetch`: pages a second, side by side in one run.

Server and contestants have one process each, with the same pages and concurrency; the Scrapy
spider is in `spider`.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from salticus.clock import collect_rarely, run_fast
from salticus.config import Config, parse
from salticus.crawl.assembly import crawler
from salticus.crawl.opening import stored
from salticus.errors import SalticusError
from salticus.lab.bench import Told, answer, measured
from salticus.lab.worlds.mall.render import Padding, page_head
from salticus.lab.worlds.mall.stock import generate
from salticus.types import NewPage

HOSTS, PER_HOST = 10, 8
BARE, SCRAPY = "aiohttp, bare", "Scrapy, bare"
PLAIN = {"Salticus": ("keep", 1), "Salticus, no content kept": ("drop", 1)}  # content, workers
MIXED = {"Salticus, 1 worker": ("keep", 1), "Salticus, 2 workers": ("keep", 2)}
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

    @property
    def spelt(self) -> str:
        """For another process."""
        return msgspec.json.encode(self).decode()


def bench(
    *, pages: int, rounds: int, size: int, mixed: bool = False, told: Told = lambda step: None
) -> list[dict[str, Any]]:
    """A row for each contestant: median pages a second, and ratios to the bare loops.

    All contestants find the same prices; on a `mixed` course also the links of every page.
    """
    course = BenchSetup(pages, _free_ports(HOSTS), PER_HOST, mixed=mixed)
    ours = {name: ("fetch", "salticus", *how) for name, how in (MIXED if mixed else PLAIN).items()}
    entered = {BARE: ("fetch", "bare"), **ours, SCRAPY: ("spider", "scrapy")}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in entered}
    if not find_spec("scrapy"):
        del runs[SCRAPY]
    with _server(course, size):
        for number in range(rounds):
            for name in runs:
                told(f"{name}, round {number + 1} of {rounds}")
                runs[name].append(_run(name, entered[name], course))
    rates = {name: median(r["pages"] / r["seconds"] for r in own) for name, own in runs.items()}
    return [_row(name, own, rates) for name, own in runs.items()]


def _row(name: str, runs: list[dict[str, float]], rates: dict[str, float]) -> dict[str, Any]:
    rate, scrapy = rates[name], rates.get(SCRAPY)
    each = [r["pages"] / r["seconds"] for r in runs]
    return {
        "contestant": name,
        "pages/s": round(rate),
        "lowest": round(min(each)),
        "highest": round(max(each)),
        "cpu us/page": round(median(r["cpu_seconds"] / r["pages"] for r in runs) * 1e6),
        "prices": int(runs[0]["prices"]),
        "x bare aiohttp": round(rate / rates[BARE], 2),
        "x bare Scrapy": round(rate / scrapy, 2) if scrapy else None,
    }


def _run(name: str, entry: tuple[object, ...], course: BenchSetup) -> dict[str, float]:
    module, role, *more = entry
    found = measured(name, str(module), role, course.spelt, *more)
    if found["pages"] != course.pages:
        raise SalticusError(f"{name} fetched {found['pages']} of {course.pages} pages")
    return found


@contextmanager
def _server(course: BenchSetup, size: int) -> Iterator[None]:
    words = ["salticus.lab.bench.fetch", "server", course.spelt, str(size)]
    command = [sys.executable, "-m", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or not process.stdout.readline():
                raise SalticusError("the bench's server did not start")
            yield
        finally:
            process.terminate()


def _free_ports(n: int) -> tuple[int, ...]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return tuple(sock.getsockname()[1] for sock in sockets)


# --------------------------------------------------------------------------------------- the server


def offers(size: int, *, mixed: bool) -> list[bytes]:
    """Pages of about `size` bytes, alike but for product, price, and markup if `mixed`."""
    stock = generate(shops=1, offers=_VARIANTS, days=1)
    padding, made = Padding(size), []
    for number, page in enumerate(stock.pages):
        text = stock.values[stock.offsets[number]] or ""
        style = _THIRD[number % 3] if mixed else "jsonld"
        head = page_head(msgspec.structs.replace(page, markup=style), text)
        made.append(padding.page(head, text))
    return made


async def serve(course: BenchSetup, size: int) -> None:
    """Serve on all ports of the course until the process is ended; faster than any contestant."""
    pages = offers(size, mixed=course.mixed)

    async def reply(request: web.BaseRequest) -> web.Response:
        if request.path == "/robots.txt":
            rules = b"User-agent: *\nDisallow: /private/\n"
            return web.Response(body=rules, content_type="text/plain")
        body = pages[int(request.path[3:]) % _VARIANTS]
        return web.Response(body=body, content_type="text/html", charset="utf-8")

    runner = web.ServerRunner(web.Server(reply, access_log=None))
    await runner.setup()
    for port in course.ports:
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    sys.stdout.write("open\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


# ---------------------------------------------------------------------------------- the contestants


def clocks() -> tuple[float, float]:
    """Wall and processor seconds."""
    return time.perf_counter(), time.process_time()


def report(began: tuple[float, float], ended: tuple[float, float], pages: int, prices: int) -> None:
    """Tell the process that compares what was done between two looks at the `clocks`."""
    wall, cpu = (end - start for start, end in zip(began, ended, strict=True))
    answer({"pages": pages, "prices": prices, "seconds": wall, "cpu_seconds": cpu})


async def download(course: BenchSetup) -> None:
    """A bare aiohttp loop downloads all pages, as many at once as allowed, and throws them away."""
    queues = [deque(course.urls[k :: len(course.ports)]) for k in range(len(course.ports))]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work(queue: deque[str]) -> None:
            while queue:
                async with session.get(queue.popleft()) as response:
                    await response.read()

        began = clocks()
        await asyncio.gather(*(work(q) for q in queues for _ in range(course.per_host)))
        report(began, clocks(), course.pages, 0)


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
        began = clocks()
        await loop.run(once=True)
        ended = clocks()
    async with stored(config) as store:
        summary = await store.summary()
        prices = sum(1 for _ in store.scan("values"))
    report(began, ended, summary.answered, prices)


def main(role: str, spelt: str, *more: str) -> None:
    """Play a role: server (with the bytes of a page), bare, or salticus (content, workers)."""
    course = msgspec.json.decode(spelt, type=BenchSetup)
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
    main(*sys.argv[1:])
