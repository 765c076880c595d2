"""A store with some weeks of visits that nobody had to wait for."""

from __future__ import annotations

import numpy as np

from salticus.store.base import Store
from salticus.testing import START
from salticus.types import Count, NewPage, Observation, Record, Value, instant

DAY_US = 86_400_000_000
BEGIN = int(instant(START).astype(np.int64))


async def fill(
    store: Store, *, pages: int, days: int, bursts: bool, together: bool = False, seed: int = 0
) -> int:
    """Let pages be visited about thrice a day, by coins; how many visits that makes.

    With `bursts`, every page changes often in some stretches of days and never in the others, which
    no rate tells; without, each has a rate of its own. With `together` the pages of one brand on
    one host change at the same times, on some days.
    """
    rng = np.random.default_rng(seed)
    await store.add([NewPage(f"http://shop{n % 3}.example/{n}") for n in range(pages)], at=BEGIN)
    rows = []
    for page in range(1, pages + 1):
        at = np.sort(rng.uniform(0, days, rng.poisson(3 * days)))
        own = np.random.default_rng((seed, page % 3, page % 4)) if together else rng
        changes = _days(own, days) if together else _changes(own, days, bursts=bursts)
        before = None
        for when in at.tolist():
            new = before is not None and bool(((changes > before) & (changes <= when)).any())
            rows.append((BEGIN + int(when * DAY_US), page, None if before is None else new, before))
            before = when
    rows.sort(key=lambda row: row[:2])
    records = [_record(number, *row) for number, row in enumerate(rows)]
    await store.record(records)
    return len(records)


def _days(rng: np.random.Generator, days: int) -> np.ndarray:
    """Two changes on one day in five."""
    some = np.flatnonzero(rng.random(days) < 0.2)
    return np.repeat(some, 2) + rng.uniform(0, 1, 2 * len(some))


def _changes(rng: np.random.Generator, days: int, *, bursts: bool) -> np.ndarray:
    if not bursts:
        return rng.uniform(0, days, rng.poisson(days * rng.uniform(0.2, 3.0)))
    edges = np.cumsum(rng.uniform(2, 6, 2 * days))
    many = rng.uniform(0, days, 12 * days)
    return many[np.searchsorted(edges, many) % 2 == 0]


def _record(number: int, at: int, page: int, changed: bool | None, before: float | None) -> Record:
    since = None if before is None else BEGIN + int(before * DAY_US)
    new = changed is not False
    value = Value("offer", str(number), {"brand": f"b{page % 4}", "title": "a thing"})
    return Record(
        Observation(
            visit=number,
            page=page,
            at=at,
            purpose="explore",
            propensity=0.1,
            status="ok",
            changed=changed,
            since=since,
            digest=str(number) if new else None,
            value=value if new else None,
        )  # fmt: skip
    )


async def click(store: Store, *, pages: int, days: int, seed: int = 0) -> None:
    """Let people click often on pages of one brand, and hardly ever on others, on most days."""
    rng = np.random.default_rng(seed)
    rows = []
    for page in range(1, pages + 1):
        rate = 3.0 if page % 4 == 0 else 0.02
        for day in range(days):
            if rng.random() < 0.7:
                many, at = rng.poisson(rate), BEGIN + day * DAY_US + int(rng.integers(DAY_US))
                rows.append(Count(f"http://shop{(page - 1) % 3}.example/{page - 1}", at, int(many)))
    await store.count(rows)
