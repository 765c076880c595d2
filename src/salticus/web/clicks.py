"""What readers do, taken in while a crawl runs: counted, and asked for a visit at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from salticus.clock import Clock
from salticus.crawl.live import Live
from salticus.crawl.loop import Loop
from salticus.errors import InputError
from salticus.store.nouns import Hit
from salticus.types import NEVER, Count, Floats, Ints, Request, Signal, instant
from salticus.views.search import Found, found

logger = logging.getLogger(__name__)

_FLUSH_S = 0.5  # wall seconds that counts wait to be stored together
_AHEAD = timedelta(hours=1)  # by which another clock may be fast
_LATE = timedelta(hours=1)  # by which a click may be told late, and still bring a visit
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST = 10_000  # clicks of one row that count


class Clicks:
    """Counts clicks and impressions, and lets each click ask the gate.

    Counts are stored together, twice a second; what came within the last half second before a
    crash is lost. A click that brings a visit begins it at once.
    """

    def __init__(self, loop: Loop, world: Live, clock: Clock) -> None:
        self.loop = loop
        self.world = world
        self.store = world.store
        self.clock = clock
        self._counts: list[Count] = []
        self._requests: list[Request] = []
        self._due: asyncio.Task[None] | None = None
        self._noticed: dict[int, int] = {}  # when a page's owner last said that it has changed

    async def take(self, counts: Sequence[Count]) -> dict[str, int]:
        """Count, and ask for visits: how many rows came, asked, were let through, are visited."""
        clicked = await self._clicked(counts)
        insta = self.loop.parts.insta
        requests, plan = await self.loop.urge(lambda: insta.ask(clicked, instant(self.clock.now())))
        self._counts += counts
        self._requests += requests
        self._flush_soon()
        sent = sum(request.sent for request in requests)
        return {"taken": len(counts), "asked": len(requests), "sent": sent, "visits": len(plan)}

    def counted(self, url: str, at: str | None, clicks: int | None, impressions: int) -> Count:
        """A row as it is counted: a click, unless it says otherwise, and now unless it says when.

        InputError for counts below zero or absurd, and for times that are none, to come, or before
        1970.
        """
        now = self.clock.now()
        when = now if at is None else _time(at)
        clicks = (1 if impressions == 0 else 0) if clicks is None else clicks
        if not (0 <= clicks <= MOST and 0 <= impressions <= 100 * MOST):
            what = f"{clicks} clicks and {impressions} impressions"
            raise InputError(f"{url}: {what}; at most {MOST} clicks of one row count, none below 0")
        if when > now + _AHEAD:
            raise InputError(f"{url}: {when.isoformat()} is yet to come")
        if when < _EPOCH:
            raise InputError(f"{url}: {when.isoformat()} is before 1970")
        return Count(url, int(when.timestamp() * 1e6), clicks, impressions)

    async def search(self, words: str, limit: int) -> list[Found]:
        """What the words find in the copy, each with the chance that it is out of date.

        That they were shown is counted.
        """
        hits, now = await self.store.search(words, limit), self.clock.now()
        outdated = self._outdated(hits, now)
        at = int(now.timestamp() * 1e6)
        await self.take([Count(hit.url, at, impressions=1) for hit in hits])
        return found(hits, outdated)

    def _outdated(self, hits: Sequence[Hit], now: datetime) -> Floats:
        """The chance that each copy is out of date, by the curves of the last plan."""
        pages = np.array([hit.page for hit in hits], dtype=np.int64)
        answers = [NEVER if hit.last_answer is None else hit.last_answer for hit in hits]
        answered = np.array(answers, dtype="M8[us]")
        chance = self.loop.parts.insta.outdated(pages, answered, instant(now))
        others = np.flatnonzero(np.isnan(chance))  # such as pages that a rule pauses
        if len(others):
            some = self.world.census.copies(pages[others], self.loop.parts.predictor, now)
            chance[others] = some.outdated(instant(now))
        return chance

    async def followed(self, url: str) -> str | None:
        """Count a click on a page; its URL as it is stored, or None if it is not known."""
        found = await self.store.targets(await self.store.ids([url]))
        for target in found:
            await self.take([Count(target.url, int(self.clock.now().timestamp() * 1e6), clicks=1)])
            return target.url
        return None

    async def pushed(self, urls: Sequence[str]) -> int:
        """Store that owners say their pages have changed; how many are known.

        A notice of a page that was not read since the last one says nothing new.
        """
        at = int(self.clock.now().timestamp() * 1e6)
        pages = await self.store.ids(urls)
        known = pages[pages >= 0]
        targets = await self.store.targets(np.unique(known))
        news = [t.page for t in targets if self._noticed.get(t.page, -1) <= (t.seen or 0)]
        self._noticed.update(dict.fromkeys(news, at))
        await self.store.notice([Signal(page, at, "push") for page in news])
        return len(known)

    async def flush(self) -> None:
        """Store what waits."""
        counts, self._counts = self._counts, []
        requests, self._requests = self._requests, []
        if counts:
            await self.store.count(counts)
        if requests:
            await self.store.ask(requests)

    # ------------------------------------------------------------------------------------ inside

    async def _clicked(self, counts: Sequence[Count]) -> Ints:
        """The pages clicked just now, once for each row; unknown ones are left out."""
        if not self.loop.parts.insta.share:
            return np.empty(0, dtype=np.int64)
        since = int((self.clock.now() - _LATE).timestamp() * 1e6)
        fresh = [count.url for count in counts if count.clicks > 0 and count.at >= since]
        ids = await self.store.ids(fresh)
        return ids[ids >= 0]

    def _flush_soon(self) -> None:
        if self._due is None or self._due.done():
            self._due = asyncio.create_task(self._later(), name="counts")

    async def _later(self) -> None:
        await asyncio.sleep(_FLUSH_S)
        try:
            await self.flush()
        except Exception:
            logger.exception("clicks could not be stored")


def _time(text: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no time; write 2026-01-31T12:00:00Z") from None
    return when.replace(tzinfo=when.tzinfo or UTC)
