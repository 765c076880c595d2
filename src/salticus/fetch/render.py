"""Rendering: a page's scripts are run in a browser that has no network of its own."""

from __future__ import annotations

import asyncio

from salticus.config import Fetch
from salticus.fetch.base import Answer, Ask
from salticus.fetch.browser import Browser, BrowserGone, find
from salticus.fetch.supply import Shelf, Supply
from salticus.fetch.tab import Tab, failure
from salticus.types import Status

PAGES = 2  # open at once
REQUESTS = 60  # that a page may make us send
TRIES = 2  # a page whose browser broke is tried once more: another page may have broken it
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
        """The page as a reader would see it; what is no HTML stays as it is."""
        if page.content_type.partition(";")[0].strip().lower() not in _HTML:
            return page
        fault = ""
        async with self._slots:
            for _ in range(TRIES):
                try:
                    browser = await self._started()
                    return await self._show(browser, page, wait, ask)
                except BrowserGone as error:
                    fault = str(error)
        return failure(page, Status.BROKEN, fault)

    async def close(self) -> None:
        """End the browser."""
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

    async def _show(self, browser: Browser, page: Answer, wait: str | None, ask: Ask) -> Answer:
        supply = Supply(page.url, ask, self._scripts, requests=self.requests)
        return await Tab(browser, page, supply, self.settings).read(wait)
