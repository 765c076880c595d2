"""Contestant: a bare aiohttp loop that downloads and throws away."""

from __future__ import annotations

import asyncio
from collections import deque

import aiohttp

from salticus.clock import run_fast
from salticus.lab.bench.course import BenchSetup, Stopwatch


async def download(course: BenchSetup) -> None:
    """All pages, with as many requests to each host at once as the course allows."""
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


if __name__ == "__main__":
    run_fast(download(BenchSetup.given()))
