"""`salticus bench policies`: what one plan over all pages costs, beside one bare NumPy pass."""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from salticus import allocate, plugins
from salticus.allocate.base import Policy
from salticus.lab.bench import Told, answer, measured, new_peak, peak
from salticus.predict.gamma import GammaSurvival
from salticus.testing import START, a_tick, blank_pages
from salticus.types import DAY, Floats, Pages, Survival, days_between, instant

SIZES = (100_000, 1_000_000, 10_000_000)
POLICIES = ("leap", "lambdacrawl")
CURVES = ("gamma", "rhythm")

_A_DAY = 0.1  # visits per page and day
_ROUNDS = 3
_CHUNK = 1 << 17
_MERCHANTS = 1000


def bench(
    *,
    sizes: Sequence[int] = SIZES,
    policies: Sequence[str] = POLICIES,
    curves: Sequence[str] = CURVES,
    told: Told = lambda step: None,
) -> Iterator[dict[str, Any]]:
    """A row for each policy, kind of survival curves, and number of pages, each in a process of
    its own; ticks of 2 h, a budget of 10 %, change rates lognormal and demand by Zipf's law.

    The columns are explained in docs/reference/cli.md.
    """
    with tempfile.TemporaryDirectory() as folder:
        before: dict[tuple[str, str], tuple[int, float]] = {}
        for pages, policy, kind in product(sizes, policies, curves):
            told(f"{policy} on {kind} curves, {pages:,} pages")
            got = measured(policy, "policies", policy, kind, pages, NUMBA_CACHE_DIR=folder)
            seconds = got["seconds"]
            first = before.setdefault((policy, kind), (pages, seconds))
            yield {
                "policy": policy,
                "curves": kind,
                "pages": pages,
                "s": round(seconds, 6),
                "ns/page": round(1e9 * seconds / pages, 1),
                "x NumPy pass": round(seconds / got["pass"], 2),
                "MB": round(got["bytes"] / 1e6),
                "bytes/page": round(got["bytes"] / pages),
                "first call s": round(got["first"], 2),
                "growth": _growth(first, (pages, seconds)),
            }


def _growth(before: tuple[int, float], now: tuple[int, float]) -> float | None:
    """The exponent with which seconds have grown with pages.

    >>> _growth((10, 1.0), (1000, 50.0))
    0.85
    """
    if now[0] <= before[0]:
        return None
    return round(math.log(now[1] / before[1]) / math.log(now[0] / before[0]), 2)


# ---------------------------------------------------------------------------------- the contestants


def columns(n: int, kind: str) -> Pages:
    """Pages as a crawl has them: rates lognormal around 0.08 changes a day (mean 0.25), demand by
    Zipf's law, last visits within ten days, a thousand merchants."""
    chance = np.random.default_rng(1)
    blank = blank_pages(n)
    demand, a, b = np.empty(n), np.empty(n), np.empty(n)
    merchant, last = blank.merchant, blank.last_visit
    for low in range(0, n, _CHUNK):  # so that making them takes no more memory than they do
        rows = slice(low, min(n, low + _CHUNK))
        rank = np.arange(rows.start, rows.stop) * 2_654_435_761 % n  # a prime: every rank once
        days = chance.random(len(rank)) * 10
        merchant[rows] = chance.integers(0, _MERCHANTS, len(rank))
        last[rows] = instant(START) - (days * DAY.astype(np.int64)).astype("m8[us]")
        demand[rows] = 1e4 / (rank + 1)
        a[rows] = 0.5 + 4 * chance.random(len(rank))
        b[rows] = a[rows] / chance.lognormal(-2.5, 1.5, len(rank))
    pages = replace(blank.answered(last), demand=demand, impressions=demand)
    return replace(pages, survival=GammaSurvival(a, b) if kind == "gamma" else _rhythm(pages, a, b))


def _rhythm(pages: Pages, a: Floats, b: Floats) -> Survival:
    """Curves of merchants whose pages change in some hours of the week more than in others."""
    from salticus.predict.rhythm import RhythmSurvival

    pace = np.random.default_rng(2).gamma(0.5, size=(_MERCHANTS + 1, 168))
    table = np.pad(np.cumsum(7 * pace / pace.sum(axis=1, keepdims=True), axis=1), ((0, 0), (1, 0)))
    now = int(instant(START).astype(np.int64))
    last = pages.last_answer.view(np.int64)
    return RhythmSurvival(a=a, b=b, row=pages.merchant + 1, last=last, now=now, table=table)


def plan(name: str, curves: str, n: int) -> dict[str, float]:
    """Seconds of one call for a new tick, of one NumPy pass, and of a first call on ten pages."""
    few = columns(10, curves)
    first = _seconds(lambda: _made(name).expected(few, 1.0))
    policy, pages = _made(name), columns(n, curves)
    visits, base = n * _A_DAY * pages.tick.days, new_peak()
    policy.expected(pages, visits)
    seconds = []
    for number in range(1, _ROUNDS + 1):
        pages = replace(pages, tick=a_tick(number))
        seconds.append(_seconds(lambda: policy.expected(pages, visits)))  # noqa: B023 at once
    used = peak() - base
    return {"seconds": median(seconds), "first": first, "bytes": used, "pass": _bare(pages)}


def _made(name: str) -> Policy:
    policy: Policy = plugins.make("policy", name, allocate.BUILTIN, seed=1)
    return policy


def _bare(pages: Pages) -> float:
    """Seconds of demand · e^(−rate · age), the least that any policy must look at."""
    assert pages.survival is not None
    rate, age = pages.survival.rates(), days_between(pages.last_answer, instant(START))
    return median(_seconds(lambda: pages.demand * np.exp(-rate * age)) for _ in range(_ROUNDS))


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return max(time.process_time() - began, 1e-9)


if __name__ == "__main__":
    name, curves, size = sys.argv[1:]
    answer(plan(name, curves, int(size)))
