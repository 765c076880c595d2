"""A server that is faster than any client measured against it: a few ready-made offer pages."""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web
from msgspec.structs import replace

from salticus.clock import run_fast
from salticus.lab.bench.course import BenchSetup
from salticus.lab.worlds.mall.render import Padding, page_head
from salticus.lab.worlds.mall.stock import generate

_VARIANTS = 51
_THIRD = ("jsonld", "jsonld", "microdata")


def offers(size: int, *, mixed: bool) -> list[bytes]:
    """Offer pages of about `size` bytes, alike but for product, price, and markup if `mixed`."""
    stock = generate(shops=1, offers=_VARIANTS, days=1)
    padding = Padding(size)
    texts = [stock.values[first] or "" for first in stock.offsets[:-1]]
    styles = [_THIRD[number % 3] if mixed else "jsonld" for number in range(_VARIANTS)]
    return [
        padding.page(page_head(replace(page, markup=style), text), text)
        for page, text, style in zip(stock.pages, texts, styles, strict=True)
    ]


async def serve(course: BenchSetup, size: int) -> None:
    """Serve on all ports of the course until the process is ended."""
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


if __name__ == "__main__":
    run_fast(serve(BenchSetup.given(), int(BenchSetup.further()[0])))
