"""One page: its state, its history, its content."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from salticus.config import Config
from salticus.crawl.opening import clock_of, stored
from salticus.crawl.snapshot import Memory
from salticus.predict.gamma import Gamma, posterior
from salticus.store.base import PageState, RunStore
from salticus.views.diff import difference
from salticus.views.times import when

STATES = {
    "new": "not visited yet",
    "well": "its last visit was answered",
    "failing": "its last visit failed",
    "gone": "nothing to come back for: visited less and less, then no more",
    "paused": "not visited until `salticus pages URL --resume`",
    "unlisted": "the sources that named it name it no more; not visited",
    "moved": "another page has taken its place",
}


async def page_report(config: Config, url: str, *, diffs: int = 0) -> dict[str, Any]:
    """What is known of a page, with its last `diffs` changes word by word; raises UnknownPage."""
    async with stored(config) as store:
        page = await store.page(url)
        visits = list(store.scan("visits", page.page))
        values = list(store.scan("values", page.page))
        following = await _next(store, page, clock_of(config).now().timestamp() * 1e6)
    return {
        "url": page.url,
        "facts": _facts(page, _rate(visits), following),
        "values": values,
        "visits": visits,
        "diffs": _diffs(values, diffs),
    }


async def latest(config: Config, url: str) -> dict[str, Any]:
    """Latest value and content of a page; raises UnknownPage.

    The value is what a merchant's feed says, if that is newer than the last answer: see `origin`.
    """
    async with stored(config) as store:
        page = await store.page(url)
        content = await store.content(page.page)
    body, content_type = content or (None, None)
    told = page.told
    return {
        "url": page.url,
        "value": told.value.text if told else page.value,
        "fields": told.value.fields if told else page.fields,
        "origin": f"feed:{told.origin}" if told else "visit",
        "visited": page.last_answer,
        "content_type": content_type,
        "content": body,
    }


def _diffs(values: list[dict[str, Any]], last: int) -> list[dict[str, Any]]:
    """The last changes: when, and what is different; the newest first."""
    pairs = list(pairwise(values))[-last:] if last else []
    found = [(new["at"], difference(old["value"], new["value"])) for old, new in reversed(pairs)]
    return [{"at": at, **told} for at, told in found]


async def _next(store: RunStore, page: PageState, now: float) -> str | None:
    """When the page's next visit is due, if it is planned already."""
    recalled = await Memory({}, store).recall()
    if recalled is None or page.state in ("paused", "moved"):
        return None
    plan, made = recalled
    plan = plan.without(made.visit)
    due = plan.due[plan.page == page.page].astype(np.int64)
    ahead = due[due >= now]
    return when(int(ahead.min())) if len(ahead) else None


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


def _facts(page: PageState, rate: float, following: str | None) -> dict[str, Any]:
    return {
        "kind": page.kind,
        "state": f"{page.state} ({STATES[page.state]})",
        "value": page.value,
        **page.fields,
        **_elsewhere(page),
        "tags": ", ".join(page.tags),
        "added": when(page.added),
        "last visit": when(page.last_visit),
        "last answer": when(page.last_answer),
        "last change": when(page.last_change),
        "next visit": following or "not planned yet",
        "last status": page.status,
        "last fault": page.fault,
        "visits": page.visits,
        "changes": page.changes,
        "failures": page.failures,
        "changes a day (estimate)": round(rate, 3),
        "maximum interval (days)": page.max_interval,
    }


def _elsewhere(page: PageState) -> dict[str, Any]:
    """What others say of the page, and it of itself; only what there is."""
    told = page.told
    said = told and f"{told.value.text} ({told.origin}, {when(told.at)})"
    known = {
        "moved to": page.moved,
        "calls itself": page.canonical if page.canonical != page.url else None,
        "named by": ", ".join(page.sources),
        "a feed says": said,
    }
    return {name: value for name, value in known.items() if value}
