"""Scrapy as the fetcher: a visit is a request that Scrapy schedules, delays and retries, and the
items that the spider makes of it are its reading."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

from itemadapter import ItemAdapter
from msgspec.structs import replace
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from salticus.config import Rule
from salticus.errors import ExtractError
from salticus.extract.canonical import json_text
from salticus.extract.fields import made, spelt
from salticus.fetch.faults import in_one_line
from salticus.fetch.polite import meaning
from salticus.types import Fetched, HostState, Reading, Status, Target, Value

VISIT = "salticus_visit"  # the key of a request's meta; redirects and retries carry it along

_PERMANENT = (301, 308)

# By name: Scrapy has errors of its own since 2.15, before it they were those of Twisted.
_STATUS = {
    "DownloadTimeoutError": Status.TIMEOUT,
    "TCPTimedOutError": Status.TIMEOUT,
    "TimeoutError": Status.TIMEOUT,
    "DownloadCancelledError": Status.TOO_LARGE,
    "ResponseDataLossError": Status.BROKEN,
}


class ScrapyFetcher:
    """Makes visits by the requests of a running spider.

    Politeness is Scrapy's: robots.txt, delays, throttling, retries, redirects, with the project's
    settings for them. No more requests of a host are in its queues than it makes at once, so that
    they are made in the order of the plan. `ask` makes the request of a visit.
    """

    def __init__(self, crawler: Crawler, ask: Callable[[Target], Any]) -> None:
        self.crawler = crawler
        self.ask = ask
        self._open: dict[int, asyncio.Future[Fetched | None]] = {}
        self._count = 0
        self._stopped = False

    async def fetch(self, target: Target, before: float = math.inf) -> Fetched | None:
        request: Request = await self.ask(target)
        if self._stopped:
            return None
        self._count = number = self._count + 1
        request.meta[VISIT] = number
        ended: asyncio.Future[Fetched | None] = asyncio.get_running_loop().create_future()
        self._open[number] = ended
        self.crawler.engine.crawl(request)
        try:
            return await ended
        finally:
            del self._open[number]

    def end(self, request: Request, fetched: Fetched | None) -> bool:
        """The request of a visit has ended; None if it was not made. False if it is of none."""
        ended = self._open.get(request.meta.get(VISIT, 0))
        if ended is None:
            return VISIT in request.meta
        if not ended.done():
            ended.set_result(fetched)
        return True

    def news(self) -> list[HostState]:
        return []

    def restore(self, states: list[HostState]) -> None:
        """Nothing: what Scrapy knows of hosts it does not remember."""

    def capacity(self, name: str, start: float, seconds: float) -> float:
        own = self._slot(name).get("delay")
        delay = float(self.crawler.settings.getfloat("DOWNLOAD_DELAY") if own is None else own)
        return seconds / delay if delay > 0 else math.inf

    def concurrency(self, name: str) -> int:
        own = self._slot(name).get("concurrency")
        most: int = self.crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        return max(1, most if own is None else int(own))

    def _slot(self, name: str) -> dict[str, Any]:
        """What the project's settings say of one host; Scrapy knows hosts without their port."""
        slots: dict[str, dict[str, Any]] = self.crawler.settings.getdict("DOWNLOAD_SLOTS")
        return slots.get(name.partition(":")[0], {})

    def stop(self) -> None:
        self._stopped = True

    async def close(self) -> None:
        """The spider has closed: requests that it did not make are not made any more."""
        self.stop()
        for ended in self._open.values():
            if not ended.done():
                ended.set_result(None)


def fetched_of(response: Response, at: int) -> Fetched:
    """What Scrapy brought back at world time `at` (µs), redirects and retries included."""
    status, fault = meaning(response.status, conditional=False)
    reasons = response.meta.get("redirect_reasons", [])
    return Fetched(
        response.url,
        status,
        at,
        code=response.status,
        body=response.body,
        content_type=_header(response, "Content-Type") or "",
        etag=_header(response, "ETag"),
        last_modified=_header(response, "Last-Modified"),
        fault=fault,
        elapsed_s=response.meta.get("download_latency", 0.0),
        moved=response.url if reasons and all(why in _PERMANENT for why in reasons) else None,
    )


def first_url(request: Request) -> str:
    """The URL that was asked for before all redirects."""
    urls: list[str] = request.meta.get("redirect_urls", [])
    return urls[0] if urls else request.url


def _header(response: Response, name: str) -> str | None:
    value: bytes | None = response.headers.get(name)
    return None if value is None else value.decode("latin-1")


def status_of(error: BaseException) -> Status:
    """The status that names a request that brought no response.

    A request that a middleware refuses, for robots.txt or another reason, is disallowed.

    >>> status_of(IgnoreRequest("Forbidden by robots.txt")).label
    'disallowed'
    """
    if isinstance(error, IgnoreRequest):
        return Status.REDIRECTS if "redirections" in str(error) else Status.DISALLOWED
    return _STATUS.get(type(error).__name__, Status.NETWORK)


def words_for(error: BaseException) -> str:
    """What went wrong, in one line.

    >>> words_for(ValueError("no price"))
    'ValueError: no price'
    """
    said = str(error)
    if isinstance(error, IgnoreRequest) and said:
        return in_one_line(said)
    return in_one_line(f"{type(error).__name__}: {said}" if said else type(error).__name__)


def reading(items: Sequence[Any], rule: Rule | None = None, kind: str | None = None) -> Reading:
    """The value of a page of which a spider made these items (`taken`); `kind` is its own so far.

    An item with a price is an offer, whose value is price, currency and availability; of others
    all fields count, or those that the rule's `value` names. Fields that are None or empty are
    unknown. Several items make one value, in the order in which they came.

    >>> reading([{"price": 19.90, "currency": "EUR", "title": "Green tea"}]).value.text
    '19.9 EUR'
    >>> reading([{"title": "Tea", "text": "How to brew"}]).value.text
    'text: How to brew; title: Tea'
    """
    rule = rule or Rule("*")
    try:
        each = [_read(item, rule, rule.kind or kind) for item in items]
    except ExtractError as error:
        return Reading(fault=str(error))
    if len(each) == 1:
        return each[0]
    values = [one.value for one in each if one.value is not None]
    if len(values) < len(each) or not each:
        faults = (one.fault for one in each if one.value is None)
        return Reading(fault=next(faults, None) or "the spider made no item of it")
    text = "\n".join(value.text for value in values)
    return Reading(Value(values[0].kind, text, {"items": str(len(values))}))


def taken(item: Any) -> Any:
    """The fields of an item as they are now; pipelines may change them."""
    return ItemAdapter(item).asdict() if ItemAdapter.is_item(item) else item


def _read(item: Any, rule: Rule, kind: str | None) -> Reading:
    if not isinstance(item, dict):
        raise ExtractError(f"a {type(item).__name__} is not an item: it has no fields")
    known: dict[str, str] = {}
    faults: dict[str, str] = {}
    for name, raw in item.items():
        try:
            known = _field(rule, name, raw) | known  # what the item itself says goes first
        except ExtractError as error:
            faults[name] = str(error)
    if kind is None:
        kind = "offer" if "price" in known else "page"
    if not rule.value and kind != "offer":
        if faults:
            return Reading(fault="; ".join(f"field {name!r}: {faults[name]}" for name in faults))
        rule = replace(rule, value=tuple(sorted(known)))
    return made(rule, known, kind, faults)


def _field(rule: Rule, name: str, raw: Any) -> dict[str, str]:
    """A field as text, and the currency if the text of a price has it; nothing if it is unknown."""
    if raw is None or raw == "":
        return {}
    if not isinstance(raw, str):
        return {name: json_text(_plain(raw))}
    text = json_text(raw)
    if not text:
        return {}
    spelling, code = spelt(rule, name, [text])
    return {name: spelling} | ({"currency": code} if code else {})


def _plain(raw: Any) -> Any:
    """A Python value as JSON would have it; equal values are written alike."""
    if isinstance(raw, bool | str | None):
        return raw
    if isinstance(raw, Decimal | Real):
        return _number(raw)
    if isinstance(raw, date | datetime):
        return raw.isoformat()
    if isinstance(raw, bytes):
        return raw.decode("utf-8", "replace")
    if isinstance(raw, Mapping):
        return {str(key): _plain(part) for key, part in raw.items()}
    if isinstance(raw, set | frozenset):
        return sorted((_plain(part) for part in raw), key=json_text)
    if isinstance(raw, list | tuple):
        return [_plain(part) for part in raw]
    raise ExtractError(
        f"a {type(raw).__name__} has no spelling of its own; let the spider give text or numbers"
    )


def _number(raw: Any) -> Decimal | str:
    number = Decimal(str(raw))
    return number if number.is_finite() else str(number)
