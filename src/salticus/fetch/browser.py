"""A Chromium without a network: it is found, started, watched, read and ended here."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from salticus.errors import ConfigError
from salticus.types import Status

if TYPE_CHECKING:
    from playwright.async_api import Browser as Chromium
    from playwright.async_api import BrowserContext, CDPSession, Page, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
NOWHERE = (
    # Names and addresses are not found, and whatever would do without them is sent to a proxy that
    # is not found either: what a page's scripts ask for comes from us or not at all.
    "--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=http://nowhere.invalid:1",
    "--proxy-bypass-list=<-loopback>", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # its name until 2024
    "--disable-quic", "--disable-background-networking", "--disable-component-update",
    "--disable-domain-reliability", "--disable-sync", "--no-pings", "--dns-prefetch-disable",
)  # fmt: skip
FRUGAL = (
    "--disable-gpu", "--disable-3d-apis", "--disable-breakpad", "--no-first-run", "--mute-audio",
    "--blink-settings=imagesEnabled=false", "--js-flags=--max-old-space-size=512",
)  # fmt: skip
BLANK: dict[str, Any] = {
    "service_workers": "block",
    "accept_downloads": False,
    "locale": "en-US",
    "timezone_id": "UTC",
}
PAGE_MEMORY = 10**9  # bytes that one process of the browser may take, and
MEMORY = 3 * PAGE_MEMORY  # all of them together
WATCH_S = 0.2
CLOSE_S = 5.0
START_S = 20.0
LINGER_S = 0.05
OVERTIME = 4  # how many time limits may pass in all, with what we wait for ourselves
CRASHED = f"it crashed its browser, or needed more than {PAGE_MEMORY / 1e9:g} GB"
LEFT = "it left for another page before it could be read"

# Both run in a world of their own: what the page does to its prototypes does not reach them, and
# names of its elements do not hide `document`'s, since they are taken from the prototype.
LOOK = """((wait) => {
  const own = name => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  if (!globalThis.seen) {
    globalThis.seen = {moves: 0};
    new MutationObserver(list => { seen.moves += list.length; }).observe(document,
      {subtree: true, childList: true, characterData: true, attributes: true});
  }
  const there = wait === null || !!Document.prototype.querySelector.call(document, wait);
  return [there, own("readyState") === "complete", seen.moves];
})"""
READ = """((limit) => {
  const own = name => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const root = own("documentElement"), type = own("doctype");
  const text = (type ? new XMLSerializer().serializeToString(type) + "\\n" : "")
    + (root ? root.outerHTML : "");
  return [own("URL"), text.length > limit ? null : text.toWellFormed()];
})"""


class BrowserGone(Exception):
    """The browser ended, or had to be ended, while a page was open."""


class Unrendered(Exception):
    """The page cannot be rendered; `status` and words say why."""

    def __init__(self, status: Status, fault: str) -> None:
        super().__init__(fault)
        self.status = status


class Browser:
    """One running Chromium, which opens pages that share nothing.

    A process of the browser that takes more than its memory is ended, and with it its page; if all
    of them together take too much, or the browser does not answer, the browser is.
    """

    def __init__(self, playwright: Playwright, chromium: Chromium, folder: Path) -> None:
        self._playwright = playwright
        self._chromium = chromium
        self._folders = [folder]
        self._control: CDPSession | None = None
        self._pid = 0
        self._tabs = 0
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, executable: str) -> Browser:
        """Start the browser; BrowserGone says in words for people why it does not start."""
        from playwright.async_api import Error, async_playwright

        folder = Path(tempfile.mkdtemp(prefix="salticus-"))
        playwright = await async_playwright().start()
        try:
            chromium = await playwright.chromium.launch(**_options(executable, folder))
            browser = cls(playwright, chromium, folder)
            browser._control = await chromium.new_browser_cdp_session()
            browser._pid = next(p for p, kind in await browser._processes() if kind == "browser")
            browser._folders += _profile(browser._pid)
        except BaseException as error:
            await playwright.stop()
            await asyncio.to_thread(_remove, folder)
            if isinstance(error, Error | StopIteration):
                raise BrowserGone(f"{executable} cannot be started: {_reason(error)}") from error
            raise
        return browser

    @property
    def alive(self) -> bool:
        return self._chromium.is_connected()

    @contextlib.asynccontextmanager
    async def page(self) -> AsyncIterator[tuple[Page, CDPSession]]:
        """A blank page with no past, and a line to it; nothing of it is left afterwards."""
        self._tabs += 1
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._guard())
        context: BrowserContext | None = None
        try:
            async with asyncio.timeout(START_S):
                context = await self._chromium.new_context(**BLANK)
                page = await context.new_page()
                session = await context.new_cdp_session(page)
        except TimeoutError:
            self._kill(self._pid)
            raise BrowserGone("the browser does not answer") from None
        else:
            context.on("page", self._refuse)
            yield page, session
        finally:
            self._tabs -= 1
            if context is not None:
                await self._end(context.close())

    async def _refuse(self, popup: Page) -> None:
        await self._end(popup.close())

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        await self._end(self._chromium.close())
        await self._playwright.stop()
        for folder in self._folders:
            await asyncio.to_thread(_remove, folder)

    async def _end(self, closing: Any) -> None:
        """Wait for something to close; if it does not, end the browser."""
        from playwright.async_api import Error

        try:
            async with asyncio.timeout(CLOSE_S):
                await closing
        except TimeoutError:
            self._kill(self._pid)
        except Error:
            pass  # it is closed already

    async def _guard(self) -> None:
        """While pages are open, end what takes too much memory."""
        from playwright.async_api import Error

        with contextlib.suppress(Error):
            while self._tabs and self.alive:
                self._weigh(await self._processes())
                await asyncio.sleep(WATCH_S)

    async def _processes(self) -> list[tuple[int, str]]:
        assert self._control is not None
        try:
            async with asyncio.timeout(CLOSE_S):
                answer = await self._control.send("SystemInfo.getProcessInfo")
        except TimeoutError:
            self._kill(self._pid)
            return []
        return [(each["id"], each["type"]) for each in answer["processInfo"]]

    def _weigh(self, processes: list[tuple[int, str]]) -> None:
        sizes = {pid: resident(pid) for pid, _ in processes}
        if sum(sizes.values()) > MEMORY:
            self._kill(self._pid)
        for pid, size in sizes.items():
            if size > PAGE_MEMORY:
                self._kill(pid)

    def _kill(self, pid: int) -> None:
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


class IsolatedWorld:
    """A place beside the page's own scripts from which its markup can be seen."""

    def __init__(self, session: CDPSession, context: int) -> None:
        self._session = session
        self._context = context

    @classmethod
    async def of(cls, session: CDPSession) -> IsolatedWorld:
        tree = await session.send("Page.getFrameTree")
        frame = {"frameId": tree["frameTree"]["frame"]["id"]}
        made = await session.send("Page.createIsolatedWorld", frame)
        return cls(session, made["executionContextId"])

    async def look(self, wait: str | None) -> Any:
        """Whether the element `wait` is there, whether all is loaded, and how often it changed."""
        return await self._run(LOOK, wait)

    async def read(self, limit: int) -> Any:
        """The address and the markup of the page; no markup if that has more than `limit`
        characters."""
        return await self._run(READ, limit)

    async def _run(self, function: str, argument: Any) -> Any:
        """What a JavaScript function of one argument returns."""
        from playwright.async_api import Error

        call = {
            "expression": f"{function}({json.dumps(argument)})",
            "contextId": self._context,
            "returnByValue": True,
        }
        try:
            answer = await self._session.send("Runtime.evaluate", call)
        except Error as error:
            if "Cannot find context" in str(error):
                raise Unrendered(Status.BROKEN, LEFT) from error
            raise
        if "exceptionDetails" in answer:
            words = answer["exceptionDetails"].get("exception", {}).get("description", "")
            raise Unrendered(Status.BROKEN, f"not rendered: {words.partition(chr(10))[0]:.200}")
        return answer["result"]["value"]


class Deadline:
    """The time limit of a page: it stands still while we ask for something, within reason."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self._now = asyncio.get_running_loop().time
        self._end = self._now() + OVERTIME * seconds
        self._since = self._now()
        self._pending = 0
        self._limit: asyncio.Timeout | None = None

    def govern(self, limit: asyncio.Timeout | None) -> None:
        """Move this time-out from now on; None leaves it alone."""
        self._limit = limit
        self._since = self._now()

    def idle_s(self) -> float:
        """Seconds since the last request was answered; 0 while one is open."""
        return 0.0 if self._pending else self._now() - self._since

    def pause(self) -> None:
        """A request begins."""
        if self._pending == 0:
            self.left -= self._now() - self._since
            self._move(self._end)
        self._pending += 1

    def resume(self) -> None:
        """A request has ended."""
        self._pending -= 1
        if self._pending == 0:
            self._since = self._now()
            self._move(min(self._end, self._since + self.left))

    def _move(self, when: float) -> None:
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(when)


def find(named: str | None) -> str:
    """The browser's program, if it and what drives it are installed; ConfigError if not."""
    if importlib.util.find_spec("playwright") is None:
        raise ConfigError("rendering needs Playwright: pip install 'salticus[render]'")
    for name in NAMES if named is None else (named,):
        if found := shutil.which(name):
            return found
    if named is not None:
        raise ConfigError(f"fetch.browser: there is no program {named!r}")
    raise ConfigError(
        "rendering needs a browser: install the system's package `chromium`, or name a Chromium or "
        "Chrome as fetch.browser"
    )


def resident(pid: int) -> int:
    """Bytes of memory that a process holds; 0 where the system does not tell.

    >>> resident(os.getpid()) >= 0, resident(-1)
    (True, 0)
    """
    try:
        pages = Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _options(executable: str, folder: Path) -> dict[str, Any]:
    return {
        "executable_path": executable,
        "args": [*NOWHERE, *FRUGAL],
        "ignore_default_args": ["--disable-popup-blocking"],
        # as root Chromium refuses to start with its sandbox
        "chromium_sandbox": not hasattr(os, "geteuid") or os.geteuid() != 0,
        # nothing of ours: neither secrets in the environment, nor files in the home folder
        "env": {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "TMPDIR": str(folder)},
        "timeout": 1000 * START_S,
        # Ctrl-C is for the crawler, which lets its visits end
        "handle_sigint": False,
    }


def _profile(pid: int) -> list[Path]:
    """The browser's profile, which Playwright removes while processes of a browser that was killed
    may still write to it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace").split("\0")
    except OSError:
        return []
    found = (word.partition("--user-data-dir=")[2] for word in words)
    return [Path(folder) for folder in found if folder]


def _remove(folder: Path) -> None:
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(LINGER_S)


def _reason(error: Exception) -> str:
    """The line of Playwright's message, which has all that the browser said, that says why."""
    lines = [line.partition("[err] ")[2] for line in str(error).splitlines() if "[err] " in line]
    fatal = [line.rpartition("FATAL:")[2] for line in lines if "FATAL:" in line]
    return [*fatal, *lines, str(error).partition("\n")[0]][0][:200]
