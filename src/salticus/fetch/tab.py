"""One page in the browser: what it is given, when it is done, what is read from it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from salticus.config import Fetch
from salticus.fetch.base import Answer
from salticus.fetch.browser import PAGE_MEMORY, Browser, BrowserGone
from salticus.fetch.supply import Supply
from salticus.types import Status

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page, Route

QUIET_S = 0.5  # for so long must nothing happen
RESTLESS_S = 3.0  # after so long without requests a page is done even if its markup moves on
LOOK_S = 0.1
READ_S = 5.0
OVERTIME = 4  # how many time limits may pass in all, with what we wait for ourselves
LEFT = "it left for another page before it could be read"
FLOOD = 500  # requests, also refused ones, after which a page is given up

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


class Unrendered(Exception):
    """The page cannot be rendered; `status` and words say why."""

    def __init__(self, status: Status, fault: str) -> None:
        super().__init__(fault)
        self.status = status


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
                page.on("crash", lambda _: self._give_up(_crash()))
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
            return failure(self.page, Status.BROKEN, f"not rendered: {_line(error)}")

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
                read = (world or await IsolatedWorld.of(self._session)).run(READ, self.max_size)
                url, text = await read
        except TimeoutError:
            fault = f"its scripts did not come to rest within {self.limit_s:g} s"
            raise Unrendered(Status.TIMEOUT, fault) from None
        if not url.startswith(("http://", "https://")):
            raise Unrendered(Status.BROKEN, LEFT)
        self._check(wait, found=world is not None)
        return self._answer(text)

    def _check(self, wait: str | None, *, found: bool) -> None:
        """Refuse a page that lacks something."""
        supply = self.supply
        if wait is None and supply.fault:
            raise Unrendered(supply.status, supply.fault)
        if wait is not None and not found:
            fault = f"no element fits {wait!r} within {self.limit_s:g} s"
            raise Unrendered(Status.BROKEN, "; ".join(filter(None, (fault, supply.fault))))

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
        """Return when the page is done; otherwise go on looking."""
        now = asyncio.get_running_loop().time
        moved, moves = now(), -1
        while True:
            there, loaded, seen = await world.run(LOOK, wait)
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
        """Answer one request of the page's."""
        from playwright.async_api import Error

        try:
            await self._answer_to(route)
        except Error:  # the page is closed, or wants it no more; Playwright waits for a word
            with contextlib.suppress(Error):
                await route.fallback()

    async def _answer_to(self, route: Route) -> None:
        self._requests += 1
        if self._requests > FLOOD:
            await self._stem()
            await route.abort("failed")
        elif route.request.is_navigation_request():
            await self._serve_document(route)
        elif route.request.resource_type == "stylesheet":
            # empty rather than refused: some loaders of scripts wait for their styles
            await route.fulfill(status=200, content_type="text/css", body="")
        else:
            await self._serve_data(route)

    async def _stem(self) -> None:
        """End a flood of requests at its source: it would keep the whole crawler busy."""
        if not self._end.done():
            self._give_up(Unrendered(Status.BROKEN, f"it asks for more than {FLOOD} addresses"))
            await self._session.send("Page.crash")

    async def _serve_document(self, route: Route) -> None:
        """The page itself, once; frames and other pages are not opened."""
        if self._shown:
            await route.abort("aborted")
            return
        self._shown = True
        await _fulfil(route, self.page)

    async def _serve_data(self, route: Route) -> None:
        request = route.request
        kind, answer = request.resource_type, None
        if request.method == "GET" and kind in ("script", "fetch", "xhr"):
            answer = await self._ask(request.url, kind == "script")
        if answer is None:
            await route.abort("failed")
        else:
            await _fulfil(route, answer)

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


class IsolatedWorld:
    """A place beside the page's own scripts from which its markup can be seen."""

    def __init__(self, session: CDPSession, context: int) -> None:
        self._session = session
        self._context = context

    @classmethod
    async def of(cls, session: CDPSession) -> IsolatedWorld:
        """A new world in the page's main frame."""
        tree = await session.send("Page.getFrameTree")
        frame = {"frameId": tree["frameTree"]["frame"]["id"]}
        made = await session.send("Page.createIsolatedWorld", frame)
        return cls(session, made["executionContextId"])

    async def run(self, function: str, argument: Any) -> Any:
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


def failure(page: Answer, status: Status, fault: str) -> Answer:
    """The answer for a page that could not be rendered."""
    return Answer(page.url, status, page.answered_at, page.code, fault=fault)


def _crash() -> Unrendered:
    memory = f"{PAGE_MEMORY / 1e9:g} GB"
    return Unrendered(Status.BROKEN, f"it crashed its browser, or needed more than {memory}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


async def _fulfil(route: Route, answer: Answer) -> None:
    headers = {"content-type": answer.content_type} if answer.content_type else {}
    await route.fulfill(status=answer.code or 200, headers=headers, body=answer.body)
