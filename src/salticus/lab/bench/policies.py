"""`salticus bench policies`: what one plan over all pages costs, beside one bare NumPy pass."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from salticus.errors import SalticusError

SIZES = (100_000, 1_000_000, 10_000_000)
POLICIES = ("leap", "lambdacrawl")
CURVES = ("gamma", "rhythm")

Told = Callable[[str], None]


def bench(
    *,
    sizes: Sequence[int] = SIZES,
    policies: Sequence[str] = POLICIES,
    curves: Sequence[str] = CURVES,
    told: Told = lambda step: None,
) -> Iterator[dict[str, Any]]:
    """A row for each policy, kind of survival curves, and number of pages, each in a process of
    its own; ticks of 2 h, a budget of 10 %, change rates lognormal and demand by Zipf's law.

    `s` is processor time of one core, the median of three ticks after a first one; `MB` the peak of
    memory beyond the columns.
    `first call s` is a call on ten pages. In the first row of a policy it includes compiling;
    what was compiled is kept for the other rows. `growth` is the exponent of the time since the
    policy's first row, 1 = linear.
    """
    with tempfile.TemporaryDirectory() as folder:
        before: dict[tuple[str, str], tuple[int, float]] = {}
        for pages in sizes:
            for policy in policies:
                for kind in curves:
                    told(f"{policy} on {kind} curves, {pages:,} pages")
                    got = _measure(Path(folder), policy, kind, pages)
                    now = pages, got["seconds"]
                    growth = _growth(before.setdefault((policy, kind), now), now)
                    yield {**_row(pages, policy, kind, got), "growth": growth}


def _row(pages: int, policy: str, curves: str, got: dict[str, float]) -> dict[str, Any]:
    return {
        "policy": policy,
        "curves": curves,
        "pages": pages,
        "s": round(got["seconds"], 6),
        "ns/page": round(1e9 * got["seconds"] / pages, 1),
        "x NumPy pass": round(got["seconds"] / got["pass"], 2),
        "MB": round(got["bytes"] / 1e6),
        "bytes/page": round(got["bytes"] / pages),
        "first call s": round(got["first"], 2),
    }


def _growth(before: tuple[int, float], now: tuple[int, float]) -> float | None:
    """The exponent with which seconds have grown with pages.

    >>> _growth((10, 1.0), (1000, 50.0))
    0.85
    """
    if now[0] <= before[0]:
        return None
    return round(math.log(now[1] / before[1]) / math.log(now[0] / before[0]), 2)


def _measure(folder: Path, policy: str, curves: str, pages: int) -> dict[str, float]:
    """Run a contestant; what it compiles is kept in the folder."""
    words = ["-m", "salticus.lab.bench.planning", policy, curves, str(pages)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, check=False, env=environment
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise SalticusError(f"{policy}: {last}")
    return msgspec.json.decode(done.stdout, type=dict[str, float])
