"""A server that is faster than any client measured against it: a few ready-made offer pages."""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web

from salticus.clock import run_fast
from salticus.worlds.mall.generate import generate
from salticus.worlds.mall.render import Padding, page_head

_VARIANTS = 50


def offers(size: int) -> list[bytes]:
    """Offer pages of about `size` bytes, alike but for product and price."""
    stock = generate(shops=1, offers=_VARIANTS, days=1)
    padding = Padding(size)
    texts = [stock.values[first] or "" for first in stock.offsets[:-1]]
    return [
        padding.page(page_head(page, text), text)
        for page, text in zip(stock.pages, texts, strict=True)
    ]


async def serve(ports: list[int], size: int) -> None:
    """Serve on all `ports` until the process is ended."""
    pages = offers(size)
    robots = web.Response(text="User-agent: *\nDisallow: /private/\n")

    async def answer(request: web.BaseRequest) -> web.Response:
        if request.path == "/robots.txt":
            return web.Response(body=robots.body, content_type="text/plain")
        body = pages[int(request.path[3:]) % _VARIANTS]
        return web.Response(body=body, content_type="text/html", charset="utf-8")

    runner = web.ServerRunner(web.Server(answer, access_log=None))
    await runner.setup()
    for port in ports:
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    sys.stdout.write("open\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    run_fast(serve([int(port) for port in sys.argv[2].split(",")], int(sys.argv[1])))
