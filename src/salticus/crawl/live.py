"""The live web: fetch, extract, observe, store, one visit after another on each host."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import numpy as np

from salticus.clock import Clock, until_or
from salticus.config import Config
from salticus.crawl.alerts import Watch
from salticus.crawl.finders import make_census
from salticus.crawl.journal import Journal, patience
from salticus.crawl.opening import cost_of
from salticus.crawl.snapshot import tidily
from salticus.crawl.world import Asks
from salticus.errors import ExtractError
from salticus.extract.base import Content
from salticus.extract.links import not_after
from salticus.extract.pool import Extraction
from salticus.fetch.base import Fetcher
from salticus.observe import kept, observe, tolerated
from salticus.store.base import Store
from salticus.types import ANSWERED, STATUS, Outcomes, Pages, Plan, Purpose, Status, Tick
from salticus.types.arrays import Floats, Ints, instant
from salticus.types.rows import Alert, Entry, Fetched, Observation, Reading, Record, Target

logger = logging.getLogger(__name__)

_CHUNK = 500  # targets read from the store at a time
_MET = 2_000_000  # links that are remembered, so that the store is not asked about each again
_PATIENCE_S = 60.0  # wall seconds that an urgent visit may wait for its turn
_PURPOSES = [purpose.label for purpose in Purpose]


class Job(msgspec.Struct, frozen=True):
    """A visit that is due: its row in the plan, and the wall time after which it is dropped."""

    row: int
    plan: Plan
    target: Target
    before: float


@dataclass(eq=False)
class Live:
    """The world that is fetched. Each host has a queue, worked off by as many workers as it allows.

    Outcomes are yielded once they are committed. A visit in flight at the end of its tick goes on,
    and its outcome comes with a later tick's. Of the settings, the maximum interval, the retention
    and the rules matter here.
    """

    store: Store
    fetcher: Fetcher
    extraction: Extraction
    clock: Clock
    config: Config = Config()
    lingers: bool = False  # visit until the tick ends: urgent visits may come

    def __post_init__(self) -> None:
        self.census = make_census(self.config, self.store)
        self.demand = self.census.demand
        self._costs = [(rule, cost_of(rule)) for rule in self.config.pages]
        self.watch = Watch()
        wait_s = patience(self.clock.speed)
        self._journal = Journal(self.store, self._committed, wait_s=wait_s)
        self._news: asyncio.Queue[Outcomes | BaseException | Plan] = asyncio.Queue()
        self._queues: defaultdict[str, deque[Job]] = defaultdict(deque)
        self._working: defaultdict[str, int] = defaultdict(int)
        self._workers: set[asyncio.Task[None]] = set()
        self._busy: set[int] = set()
        self._all_out = False  # all visits of the plan have been handed out
        self._stopped = asyncio.Event()
        self.asks: Asks | None = None
        self.looks_over: Callable[[Tick], Awaitable[None]] | None = None  # all sources
        self._met: set[int] = set()
        self._modest: bool | None = None  # whether all found pages count for the budget, as told

    # ------------------------------------------------------------------------------ the contract

    async def pages(self, tick: Tick) -> Pages:
        if self.config.retention is not None:
            await self.store.prune(int((tick.start - self.config.retention).timestamp() * 1e6))
        await self.store.charge(self._costs)
        await self.census.refresh()
        await self.census.heed()
        seconds = (tick.end - tick.start).total_seconds() / self.clock.speed
        now = self.clock.wall()
        room = {name: self.fetcher.capacity(name, now, seconds) for name in self.census.hosts}
        await asyncio.to_thread(tidily, lambda: self.census.foretell(tick.start))
        pages = await asyncio.to_thread(self.census.pages, tick, room.__getitem__)
        await self._weigh(pages)
        if self.looks_over is not None:
            await self.looks_over(tick)
        return pages

    async def costs(self, pages: Ints) -> Floats:
        await self.store.charge(self._costs)
        return await self.census.costs(pages)

    async def targets(self, pages: Ints) -> list[Target]:
        """What is needed to visit these pages, without those that are gone, with their rules."""
        rules = dict(zip(pages.tolist(), (await self.census.rules(pages)).tolist(), strict=True))
        found = await self.store.targets(pages)
        return [msgspec.structs.replace(each, rule=rules[each.page]) for each in found]

    async def _weigh(self, pages: Pages) -> None:
        """Say so if there are more found pages than count for the budget, and when that is over."""
        found, most = int(pages.found.sum()), self.config.caps.budget_pages
        over = found <= most or not self.config.budget.per_page
        if over is self._modest:
            return
        self._modest = over
        fault = f"{found:,} pages were found; caps.budget_pages = {most} count for the budget"
        at = int(pages.tick.start.timestamp() * 1e6)
        await self.store.sound([Alert("*", "flood", at, fault, over=over)])

    async def visit(self, plan: Plan) -> AsyncIterator[Outcomes]:
        open_visits = set(plan.visit.tolist())
        feeder = asyncio.create_task(self._feed(plan))
        try:
            while open_visits or self.lingers or not self._news.empty():
                outcomes = await self._next()
                if outcomes is plan:
                    break
                if isinstance(outcomes, Plan):  # an earlier tick's end, overtaken by its visits
                    continue
                open_visits.difference_update(outcomes.visit.tolist())
                yield outcomes
                await self._announce(outcomes)
        finally:
            feeder.cancel()
            await asyncio.gather(feeder, return_exceptions=True)

    async def _announce(self, outcomes: Outcomes) -> None:
        """Ask for visits to the pages that visits to sources have found."""
        if self.asks is not None and self.census.has_source(outcomes.page):
            found, now = await self.census.scout.refresh(), instant(self.clock.now())
            if len(found):
                await self.asks(found, self.census.scout.worth(found, now), now)

    async def urge(self, plan: Plan) -> None:
        targets = {target.page: target for target in await self.targets(plan.page)}
        before = self.clock.wall() + _PATIENCE_S
        for row, page in enumerate(plan.page.tolist()):
            if page in targets and not self._stopped.is_set():
                self._queue(Job(row, plan, targets[page], before), urgent=True)
            else:
                self._drop(plan, [row])

    def stop(self) -> None:
        self._stopped.set()
        self.fetcher.stop()

    async def finish(self) -> AsyncIterator[Outcomes]:
        self.stop()
        if self._workers:
            await asyncio.wait(self._workers)
        await self._journal.flush()
        while not self._news.empty():
            outcomes = await self._next()
            if isinstance(outcomes, Outcomes):
                yield outcomes

    # ---------------------------------------------------------------------------- inside a tick

    async def _next(self) -> Outcomes | Plan:
        """The next outcomes, or the plan whose tick has ended."""
        news = await self._news.get()
        if isinstance(news, BaseException):
            raise news
        if isinstance(news, Outcomes):
            self.census.learn(news)
        return news

    async def _feed(self, plan: Plan) -> None:
        """Hand out visits as they fall due; at the end of the tick drop those not begun."""
        try:
            row = await self._hand_out(plan)
            await self._wait(plan.tick.end)
        except Exception as error:
            self._news.put_nowait(error)
            raise
        waiting = [job for queue in self._queues.values() for job in queue if job.plan is plan]
        for host, queue in self._queues.items():
            self._queues[host] = deque(job for job in queue if job.plan is not plan)
        self._busy.difference_update([job.target.page for job in waiting])
        self._drop(plan, [job.row for job in waiting])
        self._drop(plan, list(range(row, len(plan))))
        self._news.put_nowait(plan)

    async def _hand_out(self, plan: Plan) -> int:
        """Queue visits as they fall due. Returns how many; fewer than all if time runs out."""
        self._all_out = False
        due: list[datetime] = [when.replace(tzinfo=UTC) for when in plan.due.tolist()]
        left = (plan.tick.end - self.clock.now()).total_seconds() / self.clock.speed
        before, now = self.clock.wall() + left, self.clock.now()
        for start in range(0, len(plan), _CHUNK):
            await self._wait(due[start])
            some = plan.page[start : start + _CHUNK]
            targets = {target.page: target for target in await self.targets(some)}
            for row, page in enumerate(some.tolist(), start):
                if now < due[row]:
                    await self._wait(due[row])
                    now = self.clock.now()
                if now >= plan.tick.end or self._stopped.is_set():
                    return row
                if page in targets:
                    self._queue(Job(row, plan, targets[page], before))
                else:  # forgotten since it was planned
                    self._drop(plan, [row])
        self._all_out = True
        return len(plan)

    async def _wait(self, due: datetime) -> None:
        await until_or(self.clock, due, self._stopped)

    def _queue(self, job: Job, *, urgent: bool = False) -> None:
        page, host = job.target.page, job.target.host
        if page in self._busy:  # still in flight from an earlier tick
            self._drop(job.plan, [job.row])
            return
        self._busy.add(page)
        (self._queues[host].appendleft if urgent else self._queues[host].append)(job)
        if self._working[host] < self.fetcher.concurrency(host):
            self._working[host] += 1
            worker = asyncio.create_task(self._work(host))
            self._workers.add(worker)
            worker.add_done_callback(self._worked)

    def _worked(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if self._all_out and not self._workers:
            self._journal.hurry()
        if not worker.cancelled() and (error := worker.exception()) is not None:
            self._news.put_nowait(error)  # a store that fails, or a fault of ours: end the run

    def _drop(self, plan: Plan, rows: list[int]) -> None:
        if rows:
            part = plan.take(np.array(rows, dtype=np.int64))
            self._news.put_nowait(Outcomes.dropped(part, instant(self.clock.now())))

    # ------------------------------------------------------------------------------ one visit

    async def _work(self, host: str) -> None:
        try:
            while self._queues[host]:
                await self._visit(self._queues[host].popleft())
        finally:
            self._working[host] -= 1

    async def _visit(self, job: Job) -> None:
        fetched = await self.fetcher.fetch(job.target, job.before)
        if fetched is None:
            self._busy.discard(job.target.page)
            self._drop(job.plan, [job.row])
        else:
            await self.take(job, fetched)

    async def take(self, job: Job, fetched: Fetched) -> None:
        """Judge and store what came back from a visit, whoever made it."""
        reading = await self._read(job.target, fetched)
        seen = observe(job.target, fetched, reading)
        plan, row = job.plan, job.row
        seen.visit = int(plan.visit[row])
        seen.purpose = _PURPOSES[plan.purpose[row]]
        seen.propensity = float(plan.propensity[row])
        chance = float(plan.chance[row])
        seen.chance = None if math.isnan(chance) else chance
        if seen.changed:
            await self._tolerate(job.target, seen)
        record = self._record(job.target, fetched, reading, seen)
        # pages that a source names are to be visited at once
        await self._journal.write(record, urgent=bool(record.hosts) or record.looked)

    def _record(
        self, target: Target, fetched: Fetched, reading: Reading, seen: Observation
    ) -> Record:
        record = Record(seen, tuple(self.fetcher.news()))
        record.alerts = self.watch.see(target.host, seen)
        record.looked = target.kind == "source" and STATUS[seen.status] in ANSWERED
        if seen.value is not None:
            record.content, record.content_type = fetched.body, fetched.content_type
        if seen.digest is not None:  # only a page that is well tells of others
            record.moved, record.canonical = fetched.moved, reading.canonical
            record.complete = reading.complete
            record.entries = self._named(reading, fetched.at)
        return record

    def _named(self, reading: Reading, at: int) -> tuple[Entry, ...] | None:
        """The pages that a page names: of a source all of them, of others those not met before."""
        entries = not_after(reading.entries, at)
        if reading.value is not None and reading.value.kind == "source":
            return entries
        fresh = tuple(entry for entry in entries if hash(entry.url) not in self._met)
        if len(self._met) > _MET:
            self._met.clear()
        self._met.update(hash(entry.url) for entry in fresh)
        return fresh or None

    async def _tolerate(self, target: Target, seen: Observation) -> None:
        """Changes that the user's rule calls too small are none."""
        rule = self.config.rule(target.rule)
        if rule is None or not rule.tolerance or seen.value is None:
            return
        held = await self.store.value(target.page)
        if held is not None and tolerated(held, seen.value, rule.tolerance):
            kept(seen, target)

    async def _read(self, target: Target, fetched: Fetched) -> Reading:
        """What the page says; whatever an extractor does wrong is the fault of this visit alone."""
        if fetched.status is not Status.OK:
            return Reading()
        if fetched.reading is not None:
            return fetched.reading
        content = Content(fetched.url, fetched.body, fetched.content_type, fetched.charset)
        try:
            return await self.extraction.read(content, target)
        except ExtractError as error:
            fetched.status, fetched.fault = Status.BROKEN, str(error)
        except Exception as error:
            logger.exception("an extractor broke its contract", extra={"url": target.url})
            fetched.status, fetched.fault = Status.BROKEN, f"{type(error).__name__}: {error}"
        return Reading()

    def _committed(self, batch: list[Observation] | BaseException) -> None:
        if isinstance(batch, BaseException):
            self._news.put_nowait(batch)
            return
        self._busy.difference_update([seen.page for seen in batch])
        self._news.put_nowait(Outcomes.of(batch))
