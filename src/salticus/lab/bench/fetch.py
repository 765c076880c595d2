"""`salticus bench fetch`: pages a second, side by side in one run."""

from __future__ import annotations

import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

from salticus.errors import SalticusError
from salticus.lab.bench.course import BenchSetup
from salticus.lab.bench.process import Told, measured

HOSTS, PER_HOST = 10, 8
BARE, SCRAPY = "aiohttp, bare", "Scrapy, bare"
PLAIN = {
    BARE: ("course", "bare"),
    "Salticus": ("course", "salticus", "keep", "1"),
    "Salticus, no content kept": ("course", "salticus", "drop", "1"),
    SCRAPY: ("spider", "scrapy"),
}
MIXED = {
    BARE: ("course", "bare"),
    "Salticus, 1 worker": ("course", "salticus", "keep", "1"),
    "Salticus, 2 workers": ("course", "salticus", "keep", "2"),
    SCRAPY: ("spider", "scrapy"),
}


def bench(
    *, pages: int, rounds: int, size: int, mixed: bool = False, told: Told = lambda step: None
) -> list[dict[str, Any]]:
    """A row for each contestant: median pages a second, and ratios to the bare loops.

    All contestants find the same prices; on a `mixed` course also the links of every page.
    """
    course = BenchSetup(pages, _free_ports(HOSTS), PER_HOST, mixed=mixed)
    names = [name for name in _entered(course) if name != SCRAPY or find_spec("scrapy")]
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with _server(course, size):
        for number in range(rounds):
            for name in names:
                told(f"{name}, round {number + 1} of {rounds}")
                runs[name].append(_run(name, course))
    rates = {
        name: statistics.median(r["pages"] / r["seconds"] for r in runs[name]) for name in names
    }
    return [_row(name, runs[name], rates) for name in names]


def _entered(course: BenchSetup) -> dict[str, tuple[str, ...]]:
    return MIXED if course.mixed else PLAIN


def _row(name: str, runs: list[dict[str, float]], rates: dict[str, float]) -> dict[str, Any]:
    rate = rates[name]
    scrapy = rates.get(SCRAPY)
    each = [r["pages"] / r["seconds"] for r in runs]
    return {
        "contestant": name,
        "pages/s": round(rate),
        "lowest": round(min(each)),
        "highest": round(max(each)),
        "cpu us/page": round(statistics.median(r["cpu_seconds"] / r["pages"] for r in runs) * 1e6),
        "prices": int(runs[0]["prices"]),
        "x bare aiohttp": round(rate / rates[BARE], 2),
        "x bare Scrapy": round(rate / scrapy, 2) if scrapy else None,
    }


def _run(name: str, course: BenchSetup) -> dict[str, float]:
    module, role, *more = _entered(course)[name]
    found = measured(name, module, role, *course.words(), *more)
    if found["pages"] != course.pages:
        raise SalticusError(f"{name} fetched {found['pages']} of {course.pages} pages")
    return found


@contextmanager
def _server(course: BenchSetup, size: int) -> Iterator[None]:
    words = ["server", *course.words(), str(size)]
    command = [sys.executable, "-m", "salticus.lab.bench.course", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or not process.stdout.readline():
                raise SalticusError("the bench's server did not start")
            yield
        finally:
            process.terminate()


def _free_ports(n: int) -> tuple[int, ...]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return tuple(sock.getsockname()[1] for sock in sockets)
