"""Runs extractors: the fast ones in place, the others in worker processes with a deadline."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from msgspec.structs import replace
from pebble import ProcessExpired, ProcessPool

from salticus import plugins
from salticus.config import Extract, Rule
from salticus.errors import ExtractError
from salticus.extract import BUILTIN, reader, worker
from salticus.extract.base import Content, Extractor
from salticus.extract.canonical_link import canonical_link
from salticus.extract.route import Route, Routes
from salticus.types import Reading, Status, Target

QUEUE = 4  # tasks a worker that are handed to the pool at once; the others wait outside
RESTART_S = 2.0  # what replacing a worker may take
_PRELOAD = ("salticus.extract.text", "salticus.extract.judge")
TRIES = 2  # a task whose pool broke under it is tried once more in a new one


class Extraction:
    """Reads the bodies of pages, each on the route of its kind and of its rule.

    Parts that are fast run in place; for all others the page makes one trip to a worker. A part
    that hangs, crashes, or eats its memory costs its own page an ExtractError; the next page is
    read as ever. `extractors` maps kinds to parts of the user's. Workers start when first needed.
    """

    def __init__(
        self,
        config: Extract,
        *,
        rules: Sequence[Rule] = (),
        extractors: Mapping[str, str] | None = None,
    ) -> None:
        self.config = config
        self.rules = tuple(rules)
        self.routes = Routes(rules, extractors)
        self._parts: dict[str, Extractor] = {}
        self._slots = asyncio.Semaphore(QUEUE * config.workers)
        self._starting = asyncio.Lock()
        self._pool: ProcessPool | None = None
        self._tasks: set[Future[bytes]] = set()
        self._closed = False

    async def read(self, content: Content, target: Target) -> Reading:
        """What the body of a page says. Raises nothing but ExtractError, and PluginError if an
        extractor cannot be loaded."""
        route = self.routes.route(target.kind, target.rule)
        rule = self.rules[route.rule] if route.rule >= 0 else None
        if self.config.links or (rule is not None and (rule.select or rule.value)):
            return await self._outside(content, route)
        for at, name in enumerate(route.names):
            part = self._parts.get(name) or self._load(name)
            if not part.fast:
                return await self._outside(content, replace(route, names=route.names[at:]))
            found = reader.extract(part, content)
            if found.value is not None or found.status is not Status.OK:
                return replace(found, canonical=found.canonical or canonical_link(content))
        return Reading()

    async def close(self) -> None:
        """Stop the workers; pages still waiting for them end with ExtractError."""
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()
        async with self._starting:
            pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(_stop, pool)

    def _load(self, name: str) -> Extractor:
        part: Extractor = plugins.load("extractor", name, BUILTIN)()
        self._parts[name] = part
        return part

    async def _outside(self, content: Content, route: Route) -> Reading:
        async with self._slots:
            for _ in range(TRIES):
                pool = await self._started(content.url)
                try:
                    return worker.read(await self._run(pool, content, route), content)
                except BrokenProcessPool:
                    await self._discard(pool)
        raise ExtractError(f"{content.url}: no worker answers")

    async def _started(self, url: str) -> ProcessPool:
        async with self._starting:
            if self._closed:
                raise ExtractError(f"{url}: extraction is closed")
            if self._pool is not None:
                return self._pool
            try:
                given = (self.routes.names, self.config, self.rules)
                pool = await asyncio.to_thread(_start, self.config.workers, given)
            except (OSError, BrokenProcessPool) as error:
                raise ExtractError(f"{url}: the workers cannot be started: {error}") from error
            self._pool = pool
            return pool

    async def _discard(self, pool: ProcessPool) -> None:
        async with self._starting:
            if self._pool is pool:
                self._pool = None
                await asyncio.to_thread(_stop, pool)

    async def _run(self, pool: ProcessPool, content: Content, route: Route) -> bytes:
        deadline_s = self.config.deadline.total_seconds()
        task = _schedule(pool, (content, route, deadline_s), deadline_s)
        self._tasks.add(task)
        patience_s = 2 * QUEUE * (deadline_s + RESTART_S)
        try:
            async with asyncio.timeout(patience_s) as patience:
                return await asyncio.wrap_future(task)
        except asyncio.CancelledError:
            self._raise_if_closed(content.url)
            raise
        except (BrokenProcessPool, ExtractError):
            raise
        except Exception as error:
            if patience.expired():  # a worker killed from outside may take the pool's lock along
                raise BrokenProcessPool(f"no answer in {patience_s:g} s") from error
            raise _failure(content.url, error, deadline_s) from error
        finally:
            self._tasks.discard(task)

    def _raise_if_closed(self, url: str) -> None:
        current = asyncio.current_task()
        if self._closed and not (current and current.cancelling()):
            raise ExtractError(f"{url}: extraction was closed") from None


def _schedule(pool: ProcessPool, args: tuple[Any, ...], deadline_s: float) -> Future[bytes]:
    try:
        return pool.schedule(worker.run, args=args, timeout=deadline_s)
    except RuntimeError as error:
        raise BrokenProcessPool(str(error)) from error


def _failure(url: str, error: Exception, deadline_s: float) -> ExtractError:
    if isinstance(error, TimeoutError):
        return ExtractError(f"{url}: the extractor took longer than {deadline_s:g} s")
    if isinstance(error, ProcessExpired):
        return ExtractError(f"{url}: the extractor crashed its worker (exit code {error.exitcode})")
    return reader.failure(url, error)


def _start(workers: int, given: tuple[Any, ...]) -> ProcessPool:
    context = multiprocessing.get_context(worker.METHOD)
    context.set_forkserver_preload(["__main__", "salticus.extract.pool", *_PRELOAD])
    pool = ProcessPool(workers, initializer=worker.prepare, initargs=given, context=context)
    if not pool.active:  # asking starts the workers, here rather than in the event loop
        raise BrokenProcessPool("the workers did not start")
    return pool


def _stop(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()
