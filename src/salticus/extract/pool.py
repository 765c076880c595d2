"""Runs extractors: the fast ones in place, the others in worker processes with a deadline."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from pebble import ProcessExpired, ProcessPool

from salticus import plugins
from salticus.config import Extract, Rule
from salticus.errors import ExtractError
from salticus.extract import BUILTIN
from salticus.extract.about import canonical_link
from salticus.extract.base import Content, Extractor
from salticus.extract.rules import Route, Routes
from salticus.types import Reading, Status, Target

try:
    import resource
except ImportError:  # not on Windows, where memory is then unlimited
    resource = None  # type: ignore[assignment]

QUEUE = 4  # tasks a worker that are handed to the pool at once; the others wait outside
RESTART_S = 2.0  # what replacing a worker may take
_PRELOAD = ("salticus.extract.text", "salticus.extract.judge")
TRIES = 2  # a task whose pool broke under it is tried once more in a new one
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
GRACE_S = 5.0
MEMORY = 2 * 10**9  # bytes that a worker may take beyond what it takes when it starts

_ANSWER: msgspec.msgpack.Decoder[Reading] = msgspec.msgpack.Decoder(Reading)


class Extraction:
    """Reads the bodies of pages, each on the route of its kind and of its rule.

    Parts that are fast run in place; for all others the page makes one trip to a worker. A part
    that hangs, crashes, or eats its memory costs its own page an ExtractError; the next page is
    read as ever. `extractors` maps kinds to parts of the user's. Workers start when first needed,
    which takes seconds: `pause` is held meanwhile, until one has answered.
    """

    def __init__(
        self,
        config: Extract,
        *,
        rules: Sequence[Rule] = (),
        extractors: Mapping[str, str] | None = None,
        pause: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.config = config
        self.pause = pause
        self.routes = Routes(rules, extractors)
        self._part = cache(_made)
        self._slots = asyncio.Semaphore(QUEUE * config.workers)
        self._starting = asyncio.Lock()
        self._pool: ProcessPool | None = None
        self._tasks: set[Future[bytes]] = set()
        self._closed = False

    async def read(self, content: Content, target: Target) -> Reading:
        """What the body of a page says. Raises nothing but ExtractError, and PluginError if an
        extractor cannot be loaded."""
        route = self.routes.route(target.kind, target.rule)
        rule = self.routes.rules[route.rule] if route.rule >= 0 else None
        if self.config.links or (rule is not None and (rule.select or rule.value)):
            return await self._outside(content, route)
        for at, name in enumerate(route.names):
            part = self._part(name)
            if not part.fast:
                return await self._outside(content, replace(route, names=route.names[at:]))
            found = extract(part, content)
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

    async def _outside(self, content: Content, route: Route) -> Reading:
        async with self._slots:
            with nullcontext() if self._pool else self.pause():
                return await self._tried(content, route)

    async def _tried(self, content: Content, route: Route) -> Reading:
        for _ in range(TRIES):
            pool = await self._started(content.url)
            try:
                return _ANSWER.decode(await self._run(pool, content, route))
            except msgspec.MsgspecError as error:
                raise failure(content.url, error) from error
            except BrokenProcessPool:
                await self._discard(pool)
        raise ExtractError(f"{content.url}: no worker answers")

    async def _started(self, url: str) -> ProcessPool:
        async with self._starting:
            if self._closed:
                raise ExtractError(f"{url}: extraction is closed")
            if self._pool is None:
                given = (self.routes.names, self.config, self.routes.rules)
                try:
                    self._pool = await asyncio.to_thread(_start, self.config.workers, given)
                except (OSError, BrokenProcessPool) as error:
                    raise ExtractError(f"{url}: the workers cannot be started: {error}") from error
            return self._pool

    async def _discard(self, pool: ProcessPool) -> None:
        async with self._starting:
            if self._pool is pool:
                self._pool = None
                await asyncio.to_thread(_stop, pool)

    async def _run(self, pool: ProcessPool, content: Content, route: Route) -> bytes:
        deadline_s = self.config.deadline.total_seconds()
        try:
            task: Future[bytes] = pool.schedule(
                run, args=(content, route, deadline_s), timeout=deadline_s
            )
        except RuntimeError as error:
            raise BrokenProcessPool(str(error)) from error
        self._tasks.add(task)
        patience_s = 2 * QUEUE * (deadline_s + RESTART_S)
        try:
            async with asyncio.timeout(patience_s) as patience:
                return await asyncio.wrap_future(task)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._closed and not (current and current.cancelling()):
                raise ExtractError(f"{content.url}: extraction was closed") from None
            raise
        except (BrokenProcessPool, ExtractError):
            raise
        except Exception as error:
            if patience.expired():  # a worker killed from outside may take the pool's lock along
                raise BrokenProcessPool(f"no answer in {patience_s:g} s") from error
            raise failure(content.url, error, deadline_s) from error
        finally:
            self._tasks.discard(task)


def _made(name: str, **given: Any) -> Extractor:
    part: Extractor = plugins.load("extractor", name, BUILTIN)(**given)
    return part


def _start(workers: int, given: tuple[Any, ...]) -> ProcessPool:
    context = multiprocessing.get_context(METHOD)
    context.set_forkserver_preload(["__main__", "salticus.extract.pool", *_PRELOAD])
    pool = ProcessPool(workers, initializer=prepare, initargs=given, context=context)
    if not pool.active:  # asking starts the workers, here rather than in the event loop
        raise BrokenProcessPool("the workers did not start")
    return pool


def _stop(pool: ProcessPool) -> None:
    pool.stop()  # type: ignore[no-untyped-call]
    pool.join()


class PageReader:  # imports inside, because parsers take a while, and the crawler itself needs none
    """Reads pages: the parts of the route in turn, the rule's fields, the judgement, the links.

    Raises nothing but ExtractError, and PluginError if a part cannot be loaded.
    """

    def __init__(self, config: Extract, rules: Sequence[Rule] = ()) -> None:
        self.config = config
        self.rules = tuple(rules)
        self.part = cache(self._part)
        self._fields = cache(self._made_fields)

    def read(self, content: Content, route: Route) -> Reading:
        rule = self.rules[route.rule] if route.rule >= 0 else None
        try:
            found, own = self._first(content, route)
        except ExtractError as error:
            with suppress(ExtractError):  # the first says more
                verdict = self._judged(content, Reading(), rendered=False)
                if verdict.status is not Status.OK:
                    return verdict
            raise error from None
        if rule is not None and (rule.select or rule.value) and route.kind != "source":
            found = self._selected(content, found, route)
        done = found.status is not Status.OK or (own and found.value is not None)
        if not done and not found.entries:
            found = self._judged(content, found, rendered=rule is not None and rule.render)
        return self._linked(content, found, route)

    def _first(self, content: Content, route: Route) -> tuple[Reading, bool]:
        """The first reading that has something to say, and whether a part of the user's has it."""
        found = Reading()
        for name in route.names:
            said = extract(self.part(name, route.rule), content)
            if said.value is not None or said.status is not Status.OK or said.entries:
                return said, name not in BUILTIN
            found = said if said.fault else found
        return found, False

    def _selected(self, content: Content, found: Reading, route: Route) -> Reading:
        from salticus.extract.document import document_of

        fields = self._fields(route.rule)
        made: Reading = fields.read(document_of(content), found.value, route.kind)
        return replace(made, fault=made.fault or found.fault, canonical=found.canonical)

    def _judged(self, content: Content, found: Reading, *, rendered: bool) -> Reading:
        from salticus.extract.document import document_of
        from salticus.extract.judge import judge

        document = document_of(content)
        if found.value is None and found.fault is None and document.opaque:
            return replace(found, fault=f"not text: the body is {document.opaque}")
        return judge(document, found.value, rendered=rendered) or found

    def _linked(self, content: Content, found: Reading, route: Route) -> Reading:
        if found.status is not Status.OK:
            return found
        if self.config.links and (route.kind != "source" or _is_hub(found)):
            from salticus.extract.links import joined, links_of

            found = replace(found, entries=joined(found.entries, links_of(content)))
        return replace(found, canonical=found.canonical or canonical_link(content))

    def _part(self, name: str, rule: int) -> Extractor:
        if name != "text":
            return _made(name)
        ignore = self.rules[rule].ignore if rule >= 0 else ()
        return _made(name, ignore=ignore, pdf=self.config.pdf)

    def _made_fields(self, rule: int) -> Any:
        from salticus.extract.fields import Fields

        return Fields(self.rules[rule])


def _is_hub(found: Reading) -> bool:
    """Whether a source is an HTML page, which may have links that lead to no new pages."""
    return found.value is not None and found.value.fields.get("format") == "html"


def extract(part: Extractor, content: Content) -> Reading:
    """What the part finds; whatever it raises becomes an ExtractError that names the URL."""
    try:
        found = part.extract(content)
        return found if isinstance(found, Reading) else Reading(found)
    except Exception as error:
        raise failure(content.url, error) from error


def failure(url: str, error: BaseException, deadline_s: float = 0.0) -> ExtractError:
    """The error for a page whose extractor raised `error`, or did not end in time."""
    if isinstance(error, ExtractError) and str(error).startswith(url):
        return error
    if isinstance(error, TimeoutError) and deadline_s:
        return ExtractError(f"{url}: the extractor took longer than {deadline_s:g} s")
    if isinstance(error, ProcessExpired):
        return ExtractError(f"{url}: the extractor crashed its worker (exit code {error.exitcode})")
    if isinstance(error, MemoryError):
        return ExtractError(f"{url}: the extractor needed more than {MEMORY / 1e9:g} GB")
    return ExtractError(f"{url}: {type(error).__name__}: {error}"[: len(url) + 502])


_reader = PageReader(Extract())  # of this process


def prepare(names: Collection[str], config: Extract, rules: Sequence[Rule]) -> None:
    """Load the parts before any deadline runs, and limit what this process may take."""
    # The pool's own handler runs only between two steps of Python code, and the pool waits for
    # it before it kills; a part may be caught in C code.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    global _reader
    _reader = PageReader(config, rules)
    for name in names:
        with suppress(Exception):  # whoever asks for the part will be told
            _reader.part(name, -1)
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = _size() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))


def _size() -> int:
    """Bytes of address space in use; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def run(content: Content, route: Route, deadline_s: float) -> bytes:
    """Read a page on its route; the reading as bytes."""
    _alarm(deadline_s + GRACE_S)
    try:
        return msgspec.msgpack.encode(_reader.read(content, route), enc_hook=_plain)
    except BaseException as error:  # SystemExit must not travel to the crawler
        raise failure(content.url, error) from None
    finally:
        _alarm(0)


def _plain(text: Any) -> str:
    """A parser's own kind of `str`, such as lxml's, as plain text; TypeError for all else."""
    if isinstance(text, str):
        return str(text)
    raise TypeError(f"{type(text).__name__} is no text")


def _alarm(seconds: float) -> None:
    """End this process after so long: the pool may be gone, and nobody else would."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
