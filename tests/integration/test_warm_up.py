"""Nothing is compiled while a clock runs: neither in a crawl, nor while a demo's mall is open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import asyncio, sys, time
from contextlib import asynccontextmanager
from pathlib import Path

def compiled():
    "The signatures for which each compiled function has machine code."
    modules = [m for name, m in sys.modules.items() if name.startswith("salticus.")]
    parts = {id(p): p for m in modules for p in vars(m).values() if hasattr(p, "signatures")}
    return {
        f"{p.py_func.__module__}.{p.py_func.__name__} {signature}"
        for p in parts.values() for signature in p.signatures
    }
"""
CRAWL = """
from salticus.crawl import assembly as crawl
from salticus.crawl.opening import stored
from salticus.checks.fetch_server import Server, reply
from salticus.checks.store_samples import visit
from salticus.config import parse
from salticus.types import Count, Entry, NewPage, Record

policy, folder = sys.argv[1:]
config = parse({
    "store": f"{folder}/s.db", "policy": policy, "tick": "1h", "budget": "600%",
    "fetch": {"contact": "a@example.org", "delay": 0, "allow_private": ["127.0.0.1"]},
    "models": {"path": f"{folder}/models"},
})
before = []
clock_of = crawl.clock_of

def noted(config):
    before.append(compiled())
    return clock_of(config)

crawl.clock_of = noted

def page(text):
    body = f"<title>Tea</title><main><p>{text} is what this page says, at some length.</p></main>"
    return reply(body.encode(), Content_Type="text/html")

async def announced(store, feed, urls):
    "A feed that was looked at before, hour after hour, and named one page more each time."
    await store.add([NewPage(feed, kind="source")], at=1)
    source, now = await store.page(feed), int(time.time() * 1e6)
    for k, url in enumerate(urls):
        seen = visit(k + 1, source.page, at=now - (4 - k) * 3_600_000_000)
        await store.record([Record(seen, entries=(Entry(url),), looked=True)])
    assert len(await store.looks(0)) == 4 and len(await store.finds(0)) == 3

async def main():
    async with Server({}) as one, Server({}) as two:
        for n in range(12):
            for server in (one, two):
                server.routes[f"/{n}"] = page(n)
        urls = [server.url(f"/{n}") for n in range(12) for server in (one, two)]
        async with stored(config) as store:
            await announced(store, one.url("/feed"), urls[:4])
            await store.add([NewPage(url) for url in urls], at=1)
        for word in ("now", "later", "last"):
            async with crawl.crawler(config, once=True) as loop:
                await loop.run(once=True)
            one.routes["/1"] = page(word)
            async with stored(config) as store:
                await store.count([Count(url, int(time.time() * 1e6), clicks=1) for url in urls])
    async with stored(config) as store:
        assert (await store.summary()).visits >= 24

asyncio.run(main())
print(*sorted(compiled() - before[0]), sep="\\n")
assert before[0] or policy == "uniform"
"""
REFUSED = """
from salticus.config import parse
from salticus.crawl.assembly import crawler
from salticus.errors import StoreError

async def main():
    settings = {"store": sys.argv[1], "fetch": {"contact": "a@example.org"}}
    async with crawler(parse(settings)):
        raise AssertionError("there is no such folder")

try:
    asyncio.run(main())
except StoreError:
    print(*sorted(compiled()), sep="\\n")
"""
DEMO = """
from salticus.config import Budget
from salticus.lab import demo

class Opened(Exception):
    pass

@asynccontextmanager
async def opened(folder, plot):
    print(*sorted(compiled()), sep="\\n")
    raise Opened
    yield

demo.neighbour_mall = opened
course = demo.DemoSetup(50, 2, 2.0, 1.0, 1.0, Budget.parse("40%"), 0.01, policies=("leap",))
try:
    asyncio.run(demo.run_demo(Path(sys.argv[1]), course, lambda step: None))
except Opened:
    pass
"""


def said(code: str, *words: str) -> list[str]:
    """What code says in a process of its own, in which nothing was compiled or loaded yet."""
    command = [sys.executable, "-c", KERNELS + code, *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split("\n")


@pytest.mark.parametrize("policy", ["leap", "lambdacrawl", "uniform", "echo_newpages"])
def test_nothing_is_compiled_once_the_clock_of_a_crawl_runs(tmp_path: Path, policy: str) -> None:
    assert said(CRAWL, policy, str(tmp_path)) == ["", ""]


def test_a_store_that_cannot_be_is_refused_before_anything_is_compiled(tmp_path: Path) -> None:
    assert said(REFUSED, str(tmp_path / "nowhere" / "a.db")) == ["", ""]


def test_all_is_compiled_before_the_mall_of_a_demo_opens(tmp_path: Path) -> None:
    names = {line.partition(" ")[0] for line in said(DEMO, str(tmp_path))}
    needed = {"allocate.leap._ages", "predict.worth.rhythm_worth"}
    assert {f"salticus.{name}" for name in needed} <= names
