"""Sources are looked over once a day: those dead for long are retired, with a reason, until they
are well again; and it is said on which sites new ones should be looked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import urljoin

import numpy as np

from salticus.allocate.base import Policy, Priced
from salticus.allocate.finding import source_intervals
from salticus.crawl.census import Census
from salticus.store.base import Store
from salticus.store.nouns import AlertState, PageState, Query
from salticus.types import Alert, Ints, Pages, Tick
from salticus.types.dates import utc
from salticus.types.state import places

RETIRED = "retired"  # the kind of such alerts; their host is the URL of the source
DISCOVER = "discover"  # likewise, of the main page of a site
_LONG = timedelta(weeks=8)  # since sources of a site were looked for
_EVERY = timedelta(days=1)  # world time
_FAILED = 3  # visits that must have gone wrong
_MICRO = timedelta(microseconds=1)


class Retiring:
    """Looks over all sources once a day, and retires those that are dead `after` so long: they did
    not answer, or showed no new link and are never worth the visit price.

    An alert under the source's URL keeps the reason. Law: it is raised once, and over when the
    source answers again, or shows a new link; a visit price that falls does not end it. Nothing is
    forbidden: exploration looks at retired sources as at all pages.
    """

    def __init__(self, store: Store, census: Census, policy: Policy, after: timedelta) -> None:
        self.store, self.census, self.policy = store, census, policy
        self.after = after // _MICRO
        self._next: datetime | None = None

    async def note(self, tick: Tick) -> None:
        """Look over the sources, unless that was done less than a day ago."""
        if self._next is not None and tick.start < self._next:
            return
        self._next = tick.start + _EVERY
        sources = await self.store.find(Query(kind="source"))
        retired = await retired_sources(self.store)
        quiet, at = self._quiet(), int(tick.start.timestamp() * 1e6)
        dead = {one.url for one in sources if self._silent(one) or one.page in quiet}
        alerts: list[Alert | None] = [
            Alert(url, RETIRED, at, over=True) for url in retired if url not in dead
        ]
        fresh = [one for one in sources if one.url in dead - retired.keys() and not one.paused]
        if any(one.page in quiet for one in fresh):
            poor = await asyncio.to_thread(self._never_worth, np.array([*quiet]), tick)
            quiet = {page: since for page, since in quiet.items() if page in poor}
        reasons = ((one.url, self._reason(one, quiet.get(one.page))) for one in fresh)
        alerts += [Alert(url, RETIRED, at, reason) for url, reason in reasons if reason]
        alerts += [await self._searched(main, at) for main in mains_of(sources)]
        await self.store.sound([alert for alert in alerts if alert])

    async def _searched(self, main: str, at: int) -> Alert | None:
        """Whether the sources of a site were looked for long ago; None if they never were."""
        last = await self.store.done(discovery_of(main))
        if not last:
            return None
        said = f"its sources were looked for on {_day(last)}, and not since"
        return Alert(main, DISCOVER, at, said, over=at - last < _LONG // _MICRO)

    def _reason(self, source: PageState, quiet: int | None) -> str | None:
        if self._silent(source):
            since = "it was added" if source.last_answer is None else _day(source.last_answer)
            return f"no answer since {since}: {source.fault or source.status}"
        if quiet is not None:
            return f"no new link since {_day(quiet)}, and never worth the visit price"
        return None

    def _silent(self, source: PageState) -> bool:
        """Whether visits have failed for so long."""
        since = source.added if source.last_answer is None else source.last_answer
        many = source.failures >= _FAILED and source.last_visit is not None
        return many and (source.last_visit or 0) - since >= self.after

    def _quiet(self) -> dict[int, int]:
        """The sources whose visits have found nothing new for so long, and since when, µs."""
        scout = self.census.scout
        since = np.fmax(scout.first_, scout.news_)
        rows = np.flatnonzero(scout.overlap.last_ - since >= np.timedelta64(self.after, "us"))
        return dict(
            zip(scout.ids_[rows].tolist(), since[rows].astype(np.int64).tolist(), strict=True)
        )

    def _never_worth(self, sources: Ints, tick: Tick) -> set[int]:
        """Those of some sources that never reach the visit price; none if there is no price."""
        price = self.policy.price_ if isinstance(self.policy, Priced) else np.nan
        pages: Pages = self.census.everyone(tick, lambda _: 0.0)
        if not np.isfinite(price) or pages.prospects is None:
            return set()
        rows, known = places(pages.ids, sources)
        rows = rows[known & (pages.prospects.row[rows] >= 0)]
        never = np.isinf(source_intervals(pages.prospects, rows, price))
        return set(pages.ids[rows[never]].tolist())


async def retired_sources(store: Store) -> dict[str, AlertState]:
    """The sources that are retired, by URL."""
    return {alert.host: alert for alert in await store.alerts() if alert.kind == RETIRED}


def mains_of(sources: Sequence[PageState]) -> list[str]:
    """The main pages of the sites on which sources are, each once."""
    return list(dict.fromkeys(urljoin(source.url, "/") for source in sources))


def discovery_of(main: str) -> str:
    """The name under which the store notes when a site's sources were looked for, µs."""
    return f"discover {main}"


def _day(at: int) -> str:
    return utc(at)[:10]
