"""What the user wants done on every change: a command, or a Python callable."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import logging
import math
import multiprocessing
import os
import shlex
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from salticus import plugins
from salticus.config import Hook
from salticus.errors import ConfigError, PluginError
from salticus.store.base import ChangeStore
from salticus.types import Change

READER, BEGUN = "hook", "hook begun"
POLL_S = 1.0
RETRY_S = 1.0
START_S = 10.0  # that a process may take to start
BATCH = 1000
IN_FLIGHT = 4  # changes a worker that are begun before it is noted how far we are
SHOWN = 1000  # characters of a value in the environment, where space is short

logger = logging.getLogger(__name__)
Message = dict[str, Any]
File = IO[bytes]


class HookFailed(Exception):
    """The command or callable did not do its work; the words say why."""


class HookTimeout(HookFailed):
    """It did not end in time, and would not the second time either."""


class Hooks:
    """Follows the changes in the store, and runs the user's command or callable for each.

    Every change is handled at least once, in groups in the order in which they were stored: how far
    we are is noted in the store, so a crash repeats at most the group in flight. The first start
    begins with what comes then. What fails is tried once more, then logged in a line that names the
    page, and counted in `failures`; the others go on. A store that cannot be read is read again.
    """

    def __init__(self, hook: Hook, store: ChangeStore, folder: Path) -> None:
        self.hook, self.store = hook, store
        self.handled = self.failures = 0
        self.action = action_of(hook, folder)
        self._slots = asyncio.Semaphore(max(1, hook.workers))
        self._end = math.inf
        self._fault = ""

    async def run(self, stop: asyncio.Event) -> None:
        """Handle changes until `stop`, and then those that are there, as far as one time-out
        allows; the others are handled at the next start."""
        try:
            while not stop.is_set():
                await self._supervised(stop)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), POLL_S)
            await self._supervised(stop)
        finally:
            await self.action.close()

    async def _supervised(self, stop: asyncio.Event) -> None:
        """Handle what is stored; what goes wrong is said once, and tried again at the next call."""
        try:
            await self._catch_up(await self._begin(), stop)
            self._fault = ""
        except Exception as error:  # if this task ended, nobody would hear of later changes
            fault, self._fault = self._fault, _reason(error)
            if self._fault != fault:
                logger.warning("changes cannot be read for the hook: %s", self._fault)

    async def _begin(self) -> int:
        if not await self.store.done(BEGUN):
            await self.store.done(READER, await self.store.last_change())
            await self.store.done(BEGUN, 1)
        return await self.store.done(READER)

    # ----------------------------------------------------------------------------------- changes

    async def _catch_up(self, after: int, stop: asyncio.Event) -> None:
        """Handle what is stored after a change, and note how far we are."""
        while changes := await self.store.changes(after, limit=BATCH):
            wanted, size = list(filter(self._wants, changes)), IN_FLIGHT * self.hook.workers
            for group in (wanted[i : i + size] for i in range(0, len(wanted), size)):
                if not await self._handle_all(group, stop):
                    return
                await self.store.done(READER, group[-1].seq)
            after = await self.store.done(READER, changes[-1].seq)

    async def _handle_all(self, group: Sequence[Change], stop: asyncio.Event) -> bool:
        work = (self._handle(each, stop) for each in group)
        done = await asyncio.gather(*work, return_exceptions=True)
        if errors := [each for each in done if isinstance(each, BaseException)]:
            raise errors[0]  # only now, when none of the group is running
        return all(done)

    def _wants(self, change: Change) -> bool:
        first = change.before is None
        wanted = not self.hook.tags or not set(self.hook.tags).isdisjoint(change.tags)
        return wanted and (self.hook.first or not first) and change.after.kind != "source"

    async def _handle(self, change: Change, stop: asyncio.Event) -> bool:
        """Handle one change; False if there is no more time for it."""
        async with self._slots:
            if self._is_late(stop):
                return False
            content = await self.store.content(change.page)
            try:
                await self._tell(await asyncio.to_thread(message_of, change, content))
            except Exception as error:
                self.failures += 1
                logger.warning("the hook failed for %s: %s", change.url, _reason(error))
            self.handled += 1
            return True

    def _is_late(self, stop: asyncio.Event) -> bool:
        now = asyncio.get_running_loop().time()
        if stop.is_set():
            self._end = min(self._end, now + self.hook.timeout.total_seconds())
        return now >= self._end

    async def _tell(self, message: Message) -> None:
        """Do it, and if that fails once more; unless it took too long."""
        try:
            await self.action.act(message)
        except HookTimeout:
            raise
        except Exception:
            await asyncio.sleep(RETRY_S)
            await self.action.act(message)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, HookFailed) else f"{type(error).__name__}: {error}"


def message_of(change: Change, content: tuple[bytes, str] | None) -> Message:
    """What a hook is told of a change. `content` is the latest that is kept: as text under
    "content", or if it is none under "content_base64"."""
    told: Message = {
        "seq": change.seq,
        "url": change.url,
        "tags": list(change.tags),
        "at": f"{datetime.fromtimestamp(change.at // 1_000_000, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "before": msgspec.to_builtins(change.before),
        "after": msgspec.to_builtins(change.after),
        "content_type": None,
        "content": None,
    }
    return told if content is None else told | _told_content(*content)


def _told_content(body: bytes, content_type: str) -> Message:
    from salticus.extract.base import Content
    from salticus.extract.charset import decoded, opaque
    from salticus.fetch.http import charset

    content = Content("", body, content_type, charset(content_type))
    if opaque(content):
        encoded = base64.b64encode(body).decode("ascii")
        return {"content_type": content_type, "content_base64": encoded}
    return {"content_type": content_type, "content": decoded(content)}


# ------------------------------------------------------------------------------------- a command


class Command:
    """Runs a program, without a shell; the change is on its standard input as JSON.

    The program runs in the folder of the settings, and need not read its input. It has failed if
    its exit code is not 0.
    """

    def __init__(self, command: str, folder: Path, timeout_s: float) -> None:
        self.words = _words(command, folder)
        self.folder = folder
        self.timeout_s = timeout_s

    async def act(self, message: Message) -> None:
        """Run the program, and end it with all that it started if its time is over."""
        # files, no pipes: nobody has to write while the program may end without reading
        with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
            await asyncio.to_thread(told.write, msgspec.json.encode(message))
            told.seek(0)
            process = await self._start(environment(message), told, said)
            try:
                async with asyncio.timeout(self.timeout_s):
                    await process.wait()
            except TimeoutError:
                raise HookTimeout(f"it took longer than {self.timeout_s:g} s") from None
            finally:
                await _end(process)
            if process.returncode:
                raise HookFailed(f"exit code {process.returncode}{_last_line(said)}")

    async def close(self) -> None:
        """Nothing is left open."""

    async def _start(self, short: dict[str, str], told: File, said: File) -> Process:
        try:
            return await asyncio.create_subprocess_exec(
                *self.words,
                stdin=told,
                stdout=said,
                stderr=said,
                cwd=self.folder,
                env={**os.environ, **short},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise HookFailed(f"{self.words[0]} cannot be started: {error}") from error


def environment(message: Message) -> dict[str, str]:
    """The change in short, for programs that would rather not read JSON."""
    before, after = message["before"] or {}, message["after"]
    short = {
        "URL": message["url"],
        "AT": message["at"],
        "TAGS": ",".join(message["tags"]),
        "BEFORE": before.get("text", "")[:SHOWN],
        "AFTER": after["text"][:SHOWN],
    }
    return {f"SALTICUS_{name}": text.replace("\0", "") for name, text in short.items()}


def _words(command: str, folder: Path) -> list[str]:
    try:
        program, *rest = shlex.split(command)
    except ValueError as error:
        reason = "it is empty" if not command.strip() else str(error)
        raise ConfigError(f"on_change.command: {reason}") from error
    named = str(folder.absolute() / program) if os.sep in program else program
    found = shutil.which(named)
    if found is None:
        raise ConfigError(f"on_change.command: there is no program {program!r}")
    return [found, *rest]


async def _end(process: Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        await process.wait()


def _last_line(said: File) -> str:
    said.seek(max(0, said.seek(0, os.SEEK_END) - 2000))
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1][:300]}" if lines else ""


# -------------------------------------------------------------------------------- a Python callable


class Function:
    """Calls a function with the change, in a process of its own that can be ended.

    The function is named ``file.py:function``, the file relative to the settings, or
    ``module:function``. Its process works in the folder of the settings, and keeps what it loads
    for the next change.
    """

    def __init__(self, name: str, folder: Path, timeout_s: float, workers: int) -> None:
        self.name = _anchored(name, folder)
        self.folder = folder
        self.timeout_s = timeout_s
        self.workers = workers
        self._pool: Any = None

    async def act(self, message: Message) -> None:
        """Call the function, and end its process if its time is over."""
        from pebble import ProcessExpired

        args = (self.name, msgspec.msgpack.encode(message))
        try:
            # the pool keeps the time, unless a process that was killed took its lock along
            async with asyncio.timeout(2 * self.timeout_s + START_S) as patience:
                task = self._started().schedule(_call, args=args, timeout=self.timeout_s)
                fault = await asyncio.wrap_future(task)
        except TimeoutError:
            if patience.expired():
                await self.close()
            raise HookTimeout(f"it took longer than {self.timeout_s:g} s") from None
        except ProcessExpired as error:
            raise HookFailed(f"its process ended with exit code {error.exitcode}") from error
        except (BrokenProcessPool, RuntimeError, OSError) as error:
            await self.close()  # the next call starts another
            raise HookFailed(f"no process to call it in: {error}") from error
        if fault:
            raise HookFailed(fault)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()
            await asyncio.to_thread(pool.join)

    def _started(self) -> Any:
        from pebble import ProcessPool

        if self._pool is None:
            # not forked: the crawler has threads and connections that must stay its own
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPool(
                self.workers,
                initializer=_prepare,
                initargs=(str(self.folder.absolute()),),
                context=context,
            )
        return self._pool


def _anchored(name: str, folder: Path) -> str:
    where, _, function = name.rpartition(":")
    if not where or not function:
        raise ConfigError(f"on_change.python: {name!r} is not file.py:function or module:function")
    if not where.endswith(".py"):
        return name
    path = folder.absolute() / where
    if not path.is_file():
        raise ConfigError(f"on_change.python: there is no file {where!r} beside the settings")
    return f"{path}:{function}"


def _prepare(folder: str) -> None:
    os.chdir(folder)
    sys.path.insert(0, folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the crawler


def _call(name: str, message: bytes) -> str | None:
    """In a process of its own: call the function; what went wrong, in words."""
    try:
        _function(name)(msgspec.msgpack.decode(message))
    except PluginError as error:
        return str(error)
    except BaseException as error:  # SystemExit must not travel to the crawler
        return f"{type(error).__name__}: {error}"[:300]
    return None


@functools.cache
def _function(name: str) -> Any:
    return plugins.load("hook", name, {})


def action_of(hook: Hook, folder: Path) -> Command | Function:
    """What is done with a change; ConfigError if it cannot be."""
    timeout_s = hook.timeout.total_seconds()
    if hook.command is not None:
        return Command(hook.command, folder, timeout_s)
    return Function(str(hook.python), folder, timeout_s, max(1, hook.workers))
