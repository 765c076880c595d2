"""One page: its state, its history, its content."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from salticus.assemble import stored
from salticus.config import Config
from salticus.predict.gamma import Gamma, posterior
from salticus.store.base import PageState


async def page_report(config: Config, url: str) -> dict[str, Any]:
    """What is known of a page; raises UnknownPage."""
    async with stored(config) as store:
        page = await store.page(url)
        visits = list(store.scan("visits", page.page))
        values = list(store.scan("values", page.page))
    return {
        "url": page.url,
        "facts": _facts(page, _rate(visits)),
        "values": values,
        "visits": visits,
    }


async def latest(config: Config, url: str) -> dict[str, Any]:
    """Latest value and content of a page; raises UnknownPage."""
    async with stored(config) as store:
        page = await store.page(url)
        content = await store.content(page.page)
    body, content_type = content or (None, None)
    return {
        "url": page.url,
        "value": page.value,
        "fields": page.fields,
        "visited": page.last_answer,
        "content_type": content_type,
        "content": body,
    }


def _rate(visits: list[dict[str, Any]]) -> float:
    """Estimated changes a day, by the Gamma filter over the page's answered visits."""
    answered = [v for v in visits if v["status"] in ("ok", "not_modified")]
    pairs = [(a, b) for a, b in pairwise(answered) if b["changed"] is not None]
    days = np.array([(b["at"] - a["at"]) / 86_400e6 for a, b in pairs])
    changed = np.array([b["changed"] for _, b in pairs], dtype=np.bool_)
    model = Gamma()
    a, b = np.array([model.prior_changes]), np.array([model.prior_days])
    for gap, flag in zip(days[days > 0], changed[days > 0], strict=True):
        a, b = posterior(a, b, np.array([gap]), np.array([flag]))
    return float(a[0] / b[0])


def _facts(page: PageState, rate: float) -> dict[str, Any]:
    return {
        "kind": page.kind,
        "value": page.value,
        **page.fields,
        "tags": ", ".join(page.tags),
        "added": when(page.added),
        "last visit": when(page.last_visit),
        "last answer": when(page.last_answer),
        "last change": when(page.last_change),
        "last status": page.status,
        "last fault": page.fault,
        "visits": page.visits,
        "changes": page.changes,
        "failures": page.failures,
        "changes a day (estimate)": round(rate, 3),
        "maximum interval (days)": page.max_interval,
    }


def when(micros: int | None) -> str:
    """A time for people.

    >>> when(1_767_225_600_000_000)
    '2026-01-01 00:00:00Z'
    """
    if micros is None:
        return "never"
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
