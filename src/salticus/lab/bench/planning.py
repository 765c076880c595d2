"""Contestant: one policy over columns of so many pages."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import msgspec
import numpy as np

from salticus import allocate, plugins
from salticus.allocate.base import Policy
from salticus.lab.bench.memory import new_peak, peak
from salticus.predict.gamma import GammaSurvival
from salticus.testing import START, a_tick, blank_pages
from salticus.types import DAY, Floats, Pages, Survival, days_between, instant

_A_DAY = 0.1  # visits per page and day
_ROUNDS = 3
_CHUNK = 1 << 17
_MERCHANTS = 1000


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
    sys.stdout.buffer.write(msgspec.json.encode(plan(name, curves, int(size))))
