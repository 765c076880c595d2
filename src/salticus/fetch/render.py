"""Rendering: a page's scripts are run in a browser that has no network of its own."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import msgspec

from salticus.config import Fetch
from salticus.fetch.base import Answer, Ask
from salticus.fetch.browser import (
    CRASHED,
    LEFT,
    Browser,
    BrowserGone,
    Deadline,
    IsolatedWorld,
    Unrendered,
    find,
)
from salticus.fetch.hosts import BUSY_CODES
from salticus.types import Status

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

PAGES = 2  # open at once
REQUESTS = 60  # that a page may make us send
TRIES = 2  # a page whose browser broke is tried once more: another page may have broken it
QUIET_S = 0.5  # for so long must nothing happen
RESTLESS_S = 3.0  # after so long without requests a page is done even if its markup moves on
LOOK_S = 0.1
READ_S = 5.0
FLOOD = 500  # requests, also refused ones, after which a page is given up
SHELF = 32_000_000  # bytes of scripts that are kept
SHELF_S = 3600.0
_HOPS = 5
_FOR_GOOD = frozenset({Status.DISALLOWED, Status.UNSAFE})
_HTML = frozenset({"", "text/html", "application/xhtml+xml"})


class BrowserRenderer:
    """Runs the scripts of pages in the system's Chromium.

    A page sees what it was answered with, and of the rest only scripts and what they `fetch`: by
    way of `ask`, at most `requests` a page. Images, fonts and frames stay empty, nothing is ever
    sent, and the page cannot leave. It is done when `wait` is there; without one, when it asks for
    nothing and its markup stands still; if its own site then failed to give it something, the visit
    has failed too, since the page may show that rather than its content. The time limit leaves out
    what passes while we ask: that is our own politeness. Scripts are kept for an hour and shared by
    all pages.
    """

    def __init__(self, settings: Fetch, *, pages: int = PAGES, requests: int = REQUESTS) -> None:
        self.settings = settings
        self.requests = requests
        self.executable = find(settings.browser)
        self._scripts = Shelf()
        self._slots = asyncio.Semaphore(pages)
        self._starting = asyncio.Lock()
        self._browser: Browser | None = None

    async def render(self, page: Answer, wait: str | None, ask: Ask) -> Answer:
        if page.content_type.partition(";")[0].strip().lower() not in _HTML:
            return page
        fault = ""
        async with self._slots:
            for _ in range(TRIES):
                try:
                    browser = await self._started()
                    supply = Supply(page.url, ask, self._scripts, requests=self.requests)
                    return await Tab(browser, page, supply, self.settings).read(wait)
                except BrowserGone as error:
                    fault = str(error)
        return failure(page, Status.BROKEN, fault)

    async def close(self) -> None:
        async with self._starting:
            browser, self._browser = self._browser, None
            if browser is not None:
                await browser.close()

    async def _started(self) -> Browser:
        async with self._starting:
            if self._browser is not None and not self._browser.alive:
                await self._browser.close()
                self._browser = None
            if self._browser is None:
                self._browser = await Browser.start(self.executable)
            return self._browser


class Tab:
    """Shows one page to its scripts, and reads what they made of it."""

    def __init__(self, browser: Browser, page: Answer, supply: Supply, settings: Fetch) -> None:
        self.browser = browser
        self.page = page
        self.supply = supply
        self.limit_s = settings.timeout.total_seconds()
        self.max_size = settings.max_size
        self._asking: set[asyncio.Future[Answer | None]] = set()
        self._requests = 0
        self._shown = False
        self._time = Deadline(self.limit_s)
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def read(self, wait: str | None) -> Answer:
        """The rendered page, or an answer that says why there is none; BrowserGone if the browser
        is to blame."""
        from playwright.async_api import Error

        try:
            async with self.browser.page() as (page, self._session):
                page.on("crash", lambda _: self._give_up(Unrendered(Status.BROKEN, CRASHED)))
                await page.context.route("**/*", self._serve)
                try:
                    return await self._unless_ended(self._watch(page, wait))
                finally:
                    await self._stop_asking()
        except Unrendered as error:
            return failure(self.page, error.status, str(error))
        except Error as error:
            if not self.browser.alive:
                raise BrowserGone("the browser crashed") from error
            fault = f"not rendered: {' '.join(str(error).split())[:200]}"
            return failure(self.page, Status.BROKEN, fault)

    def _give_up(self, error: Exception) -> None:
        if not self._end.done():
            self._end.set_exception(error)

    async def _unless_ended(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait((task, self._end), return_when=asyncio.FIRST_COMPLETED)
            if self._end.done():
                self._end.result()
            return await task
        finally:
            task.cancel()
            self._end.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # ---------------------------------------------------------------------------------- watching

    async def _watch(self, page: Page, wait: str | None) -> Answer:
        world = await self._settled(page, wait)
        try:
            async with asyncio.timeout(min(READ_S, self.limit_s)):
                world_now = world or await IsolatedWorld.of(self._session)
                url, text = await world_now.read(self.max_size)
        except TimeoutError:
            fault = f"its scripts did not come to rest within {self.limit_s:g} s"
            raise Unrendered(Status.TIMEOUT, fault) from None
        if not url.startswith(("http://", "https://")):
            raise Unrendered(Status.BROKEN, LEFT)
        self._check(wait, found=world is not None)
        return self._answer(text)

    def _check(self, wait: str | None, *, found: bool) -> None:
        if wait is None and self.supply.fault:
            raise Unrendered(self.supply.status, self.supply.fault)
        if wait is not None and not found:
            fault = f"no element fits {wait!r} within {self.limit_s:g} s"
            raise Unrendered(Status.BROKEN, "; ".join(filter(None, (fault, self.supply.fault))))

    async def _settled(self, page: Page, wait: str | None) -> IsolatedWorld | None:
        """The world of a page that is done; None if its time was over before."""
        try:
            async with asyncio.timeout(self.limit_s) as limit:
                self._time.govern(limit)
                await page.goto(self.page.url, wait_until="commit", timeout=0)
                world = await IsolatedWorld.of(self._session)
                await self._settle(world, wait)
                return world
        except TimeoutError:
            return None
        finally:
            self._time.govern(None)

    async def _settle(self, world: IsolatedWorld, wait: str | None) -> None:
        now = asyncio.get_running_loop().time
        moved, moves = now(), -1
        while True:
            there, loaded, seen = await world.look(wait)
            if seen != moves:
                moved, moves = now(), seen
            idle_s = self._time.idle_s()
            still = now() - moved >= QUIET_S or idle_s >= RESTLESS_S
            if there and (wait is not None or (loaded and still and idle_s >= QUIET_S)):
                return
            await asyncio.sleep(LOOK_S)

    def _answer(self, text: str | None) -> Answer:
        body = b"" if text is None else text.encode("utf-8", "replace")
        if text is None or len(body) > self.max_size:
            fault = f"rendered, the page is larger than {self.max_size} bytes"
            raise Unrendered(Status.TOO_LARGE, fault)
        return msgspec.structs.replace(
            self.page,
            body=body,
            content_type="text/html; charset=utf-8",
            charset="utf-8",
            etag=None,
            last_modified=None,
        )

    # ----------------------------------------------------------------------------------- serving

    async def _serve(self, route: Route) -> None:
        from playwright.async_api import Error

        try:
            await self._answer_to(route)
        except Error:  # the page is closed, or wants it no more; Playwright waits for a word
            with contextlib.suppress(Error):
                await route.fallback()

    async def _answer_to(self, route: Route) -> None:
        self._requests += 1
        request, kind = route.request, route.request.resource_type
        if self._requests > FLOOD:
            await self._stem()
            await route.abort("failed")
        elif request.is_navigation_request():
            if self._shown:  # frames and other pages are not opened
                await route.abort("aborted")
            else:
                self._shown = True
                await _fulfil(route, self.page)
        elif kind == "stylesheet":
            # empty rather than refused: some loaders of scripts wait for their styles
            await route.fulfill(status=200, content_type="text/css", body="")
        else:
            given = request.method == "GET" and kind in ("script", "fetch", "xhr")
            answer = await self._ask(request.url, kind == "script") if given else None
            await (route.abort("failed") if answer is None else _fulfil(route, answer))

    async def _stem(self) -> None:
        """End a flood of requests at its source: it would keep the whole crawler busy."""
        if not self._end.done():
            self._give_up(Unrendered(Status.BROKEN, f"it asks for more than {FLOOD} addresses"))
            await self._session.send("Page.crash")

    async def _ask(self, url: str, script: bool) -> Answer | None:
        task = asyncio.ensure_future(self.supply.get(url, script))
        self._asking.add(task)
        self._time.pause()
        try:
            return await task
        except asyncio.CancelledError:
            return None  # the page is being closed
        except Exception as error:
            self._give_up(error)
            return None
        finally:
            self._asking.discard(task)
            self._time.resume()

    async def _stop_asking(self) -> None:
        if self._asking:
            for task in tuple(self._asking):
                task.cancel()
            await asyncio.wait(tuple(self._asking))


def failure(page: Answer, status: Status, fault: str) -> Answer:
    """The answer for a page that could not be rendered."""
    return Answer(page.url, status, page.answered_at, page.code, fault=fault)


async def _fulfil(route: Route, answer: Answer) -> None:
    headers = {"content-type": answer.content_type} if answer.content_type else {}
    await route.fulfill(status=answer.code or 200, headers=headers, body=answer.body)


class Supply:
    """What one page is given, within its number of requests.

    `status` and `fault` tell of the first thing that the page's own site failed to give, and might
    give another time: without it the page is perhaps not what it is usually.
    """

    def __init__(self, page: str, ask: Ask, shelf: Shelf, *, requests: int) -> None:
        self.page = page
        self.left = requests
        self.status = Status.OK
        self.fault = ""
        self._ask = ask
        self._shelf = shelf

    async def get(self, url: str, script: bool) -> Answer | None:
        """The answer for a URL, after redirects; None if there is none to give."""
        kept = self._shelf.get(url) if script else None
        if kept is not None:
            return kept
        answer = await self._follow(url)
        if script and answer is not None and answer.code < 500:
            self._shelf.put(url, answer)
        return answer

    async def _follow(self, url: str) -> Answer | None:
        """Redirects are followed here: a browser would follow them past us."""
        for _ in range(_HOPS + 1):
            if self.left <= 0:
                return None
            self.left -= 1
            answer = await self._ask(url)
            self._judge(url, answer)
            if answer is None or answer.status is not Status.OK:
                return None
            if not (300 <= answer.code < 400 and answer.location):
                return answer
            url = urljoin(url, answer.location)
        return None

    def _judge(self, url: str, answer: Answer | None) -> None:
        status, fault = _failure(answer)
        if status is not Status.OK and not self.fault and site(url) == site(self.page):
            self.status, self.fault = status, f"its scripts need {url:.200}: {fault}"


def _failure(answer: Answer | None) -> tuple[Status, str]:
    """What went wrong that might go well another time; OK if nothing did."""
    if answer is None:
        return Status.BUSY, "it could not be asked for in time"
    if answer.status is not Status.OK:
        well = answer.status in _FOR_GOOD
        return (Status.OK, "") if well else (answer.status, answer.fault or "no answer")
    fault = f"the server answered {answer.code}"
    if answer.code in BUSY_CODES:
        return Status.BUSY, fault
    return (Status.HTTP, fault) if answer.code >= 500 else (Status.OK, "")


def site(url: str) -> str:
    """The end of a host's name, by which hosts that belong together are known; rather too much
    belongs together than too little.

    >>> site("https://www.shop.example/1") == site("https://api.shop.example:8080/offers/1")
    True
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    return ".".join(host.rsplit(".", 2)[-2:])


class Shelf:
    """The scripts used last, up to so many bytes, for an hour; keyed by the URL asked for.

    >>> shelf = Shelf(size=10)
    >>> for name in "abc":
    ...     shelf.put(name, Answer(name, Status.OK, 0.0, body=b"12345"))
    >>> [name for name in "abc" if shelf.get(name)]
    ['b', 'c']
    """

    def __init__(self, *, size: int = SHELF) -> None:
        self.size = size
        self._kept: OrderedDict[str, tuple[float, Answer]] = OrderedDict()
        self._bytes = 0

    def get(self, url: str) -> Answer | None:
        since, answer = self._kept.get(url, (0.0, None))
        if answer is None or time.monotonic() - since > SHELF_S:
            return None
        self._kept.move_to_end(url)
        return answer

    def put(self, url: str, answer: Answer) -> None:
        """Keep an answer; those used longest ago make room for it."""
        self._drop(url)
        self._kept[url] = time.monotonic(), answer
        self._bytes += len(answer.body)
        while self._bytes > self.size:
            self._drop(next(iter(self._kept)))

    def _drop(self, url: str) -> None:
        if url in self._kept:
            self._bytes -= len(self._kept.pop(url)[1].body)
