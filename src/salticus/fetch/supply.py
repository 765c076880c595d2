"""What a rendered page is given: scripts and data, from the shelf or asked for politely."""

from __future__ import annotations

import time
from collections import OrderedDict
from urllib.parse import urljoin, urlsplit

from salticus.fetch.base import Answer, Ask
from salticus.fetch.hosts import BUSY_CODES
from salticus.types import Status

SHELF = 32_000_000  # bytes of scripts that are kept
SHELF_S = 3600.0
_HOPS = 5
_FOR_GOOD = frozenset({Status.DISALLOWED, Status.UNSAFE})


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
    if answer.code in BUSY_CODES or answer.code >= 500:
        status = Status.BUSY if answer.code in BUSY_CODES else Status.HTTP
        return status, f"the server answered {answer.code}"
    return Status.OK, ""


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
        """The answer kept for a URL, unless it is too old."""
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
