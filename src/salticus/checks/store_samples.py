"""Pages and visits that the laws of stores are tried on."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import numpy as np

from salticus.store.base import Store
from salticus.types import NewPage, Observation, Outcomes, Record

URLS = [f"http://shop{n % 2}.example:8080/offer/{n}" for n in range(4)]
NEW = "http://new.example/"
NOON = 1_767_268_800_123_457  # µs, with a last digit that a float of seconds would lose


def visit(number: int, page: int, **known: Any) -> Observation:
    """A plain answer of the page, unless `known` says otherwise."""
    usual = {"at": NOON + number, "purpose": "policy", "propensity": 1.0, "status": "ok"}
    return Observation(visit=number, page=page, **usual | known)  # type: ignore[arg-type]


async def filled(store: Store) -> list[int]:
    """Put four pages in the store; their ids."""
    await store.add([NewPage(url) for url in URLS], at=NOON)
    return [int(page) for page in (await store.table()).ids]


async def record(store: Store, *observations: Observation) -> None:
    """Record visits, each in a call of its own."""
    for observation in observations:
        await store.record([Record(observation)])


async def told(store: Store, number: int, page: int, **said: Any) -> None:
    """Record a visit that says more than how its page is."""
    await store.record([Record(visit(number, page), **said)])


async def outcomes(store: Store, *visits: int) -> Outcomes:
    """The outcomes of these visits."""
    return await store.outcomes(np.array(visits, dtype=np.int64))


async def resting(store: Store) -> list[int]:
    """The pages that are not to be visited."""
    table = await store.table()
    return [int(page) for page in table.ids[table.rests]]


async def refuses(call: Awaitable[object], error: type[Exception], law: str) -> None:
    """The call must fail with this error."""
    try:
        await call
    except error:
        return
    raise AssertionError(f"law: {law}")
