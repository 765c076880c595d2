"""One page: its state, its history, its content."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from salticus.crawl.opening import Crawl
from salticus.crawl.snapshot import Snapshot
from salticus.predict.gamma import Gamma, posterior
from salticus.store.nouns import PageState
from salticus.types import ANSWERED, STATUS
from salticus.views.diff import difference
from salticus.views.times import known, moment, when

STATES = {
    "new": "not visited yet",
    "well": "its last visit was answered",
    "failing": "its last visit failed",
    "gone": "nothing to come back for: visited less and less, then no more",
    "paused": "not visited until `salticus pages URL --resume`",
    "unlisted": "the sources that named it name it no more; not visited",
    "moved": "another page has taken its place",
}


class HeldValue(msgspec.Struct, frozen=True):
    """A value of a page, from a time on."""

    page_id: int
    at: datetime
    value: str


class Seen(msgspec.Struct, frozen=True):
    """A visit, as it stands in a log."""

    page_id: int
    at: datetime
    purpose: str
    policy: str | None
    propensity: float
    status: str
    changed: bool | None
    value: str | None
    age_s: float | None
    code: int | None
    fault: str | None
    chance: float | None


class PageView(msgspec.Struct, frozen=True):
    """What is known of a page; `diffs` are its last changes, newest first."""

    url: str
    facts: dict[str, Any]
    values: list[HeldValue]
    visits: list[Seen]
    diffs: list[dict[str, Any]]


class Copy(msgspec.Struct, frozen=True):
    """What is held of a page; `origin` is a merchant's feed if that is newer than what was seen."""

    url: str
    value: str | None
    fields: dict[str, str]
    origin: str
    visited: datetime | None
    content_type: str | None
    content: bytes | None


async def page_of(crawl: Crawl, url: str, *, diffs: int = 0) -> PageView:
    """What is known of a page, with its last `diffs` changes word by word; raises UnknownPage."""
    page = await crawl.store.page(url)
    rows = crawl.store.scan("visits", page.page)
    visits = [Seen(**row | {"at": moment(row["at"])}) for row in rows]
    rows = crawl.store.scan("values", page.page)
    values = [HeldValue(row["page_id"], moment(row["at"]), row["value"] or "") for row in rows]
    facts = _facts(page, rate_of(visits), await _next(crawl, page))
    pairs = list(pairwise(values))[-diffs:] if diffs else []
    last = [{"at": new.at, **difference(old.value, new.value)} for old, new in reversed(pairs)]
    return PageView(page.url, facts, values, visits, last)


async def copy_of(crawl: Crawl, url: str) -> Copy:
    """Latest value and content of a page; raises UnknownPage."""
    page = await crawl.store.page(url)
    body, content_type = await crawl.store.content(page.page) or (None, None)
    told = page.told
    return Copy(
        url=page.url,
        value=told.value.text if told else page.value,
        fields=told.value.fields if told else page.fields,
        origin=f"feed:{told.origin}" if told else "visit",
        visited=known(page.last_answer),
        content_type=content_type,
        content=body,
    )


async def _next(crawl: Crawl, page: PageState) -> datetime | None:
    """When the page's next visit is due, if it is planned already."""
    recalled = await Snapshot({}, crawl.store).recall()
    if recalled is None or page.state in ("paused", "moved"):
        return None
    plan, made = recalled
    plan = plan.without(made.visit)
    due = plan.due[plan.page == page.page].astype(np.int64)
    ahead = due[due >= crawl.micros]
    return moment(int(ahead.min())) if len(ahead) else None


def rate_of(visits: list[Seen]) -> float:
    """Estimated changes a day, by the Gamma filter over the answered ones of a page's visits."""
    answered = [v for v in visits if STATUS[v.status] in ANSWERED]
    pairs = [(a, b) for a, b in pairwise(answered) if b.changed is not None]
    model = Gamma()
    a, b = np.array([model.prior_changes]), np.array([model.prior_days])
    for before, after in pairs:
        if (days := (after.at - before.at).total_seconds() / 86_400) > 0:
            a, b = posterior(a, b, np.array([days]), np.array([after.changed]))
    return float(a[0] / b[0])


def _facts(page: PageState, rate: float, following: datetime | None) -> dict[str, Any]:
    times = ("added", "last_visit", "last_answer", "last_change")
    return {
        "kind": page.kind,
        "state": f"{page.state} ({STATES[page.state]})",
        "value": page.value,
        **page.fields,
        **_elsewhere(page),
        "tags": ", ".join(page.tags),
        **{name.replace("_", " "): known(getattr(page, name)) or "never" for name in times},
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
    found = {
        "moved to": page.moved,
        "calls itself": page.canonical if page.canonical != page.url else None,
        "named by": ", ".join(page.sources),
        "a feed says": told and f"{told.value.text} ({told.origin}, {when(told.at)})",
    }
    return {name: value for name, value in found.items() if value}
