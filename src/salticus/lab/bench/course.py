"""The course that all contestants run: the same pages, the same concurrency, one process each."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import msgspec


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

    def arguments(self) -> list[str]:
        """As words for another process."""
        ports, kind = ",".join(map(str, self.ports)), "mixed" if self.mixed else "plain"
        return [str(self.pages), ports, str(self.per_host), kind]

    @classmethod
    def given(cls) -> BenchSetup:
        """The course in this process' arguments."""
        pages, ports, per_host, kind = sys.argv[1:5]
        hosts = tuple(map(int, ports.split(",")))
        return cls(int(pages), hosts, int(per_host), mixed=kind == "mixed")

    @staticmethod
    def further() -> list[str]:
        """This process' arguments after those of the course."""
        return sys.argv[5:]


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
        result = {"pages": pages, "prices": prices, "seconds": wall, "cpu_seconds": cpu}
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
