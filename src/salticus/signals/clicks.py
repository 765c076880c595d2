"""What readers did, line by line: tables, JSON lines, and access logs of web servers."""

from __future__ import annotations

import csv
import functools
import math
import re
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec

from salticus.errors import InputError
from salticus.types import Count
from salticus.types.dates import epoch_us, written

DELIMITERS = ",\t;|"
ABSURD = 10**9  # clicks or impressions that one row may claim
MAX_URL = 2_048
AHEAD = 3_600_000_000  # µs that a time may lie ahead of our clock

# why a line does not count: it is wrong …
BAD = {
    "unreadable": "no row of this format",
    "long": "too long for a row",
    "url": "no web address",
    "time": "no time",
    "early": "a time before 1970",
    "future": "a time more than an hour ahead",
    "count": "a count that is no whole number of 0 or more",
    "absurd": "a count above a billion",
}
# … or it is nothing that a reader did
IDLE = {
    "blank": "blank",
    "other": "another request than a click",
    "bot": "of a bot",
    "failed": "answered with an error",
}
_NUMBER = re.compile(r"\s*[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d{1,3})?\s*", re.ASCII)
_UNITS = ((1e11, 1e6), (1e14, 1e3), (1e17, 1.0))  # seconds, milliseconds, microseconds
_COLUMNS = ("url", "at", "clicks", "impressions")
_NAMES = {"page": "url", "time": "at", "timestamp": "at"} | {name: name for name in _COLUMNS}
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(
    rf"[^\[\"]{{1,500}}\[([^\]]{{1,60}})\] {_QUOTED} (\d{{3}}) \S+(?: {_QUOTED} {_QUOTED})?"
)
_BOT = re.compile(r"bot|crawl|spider|salticus", re.I)  # our own visits are no demand either
_ASKS = frozenset({"GET", "POST"})
_TIME = re.compile(r"(\d\d)/([A-Za-z]{3})/(\d{4}):(\d\d:\d\d:\d\d) ([-+]\d{4})", re.ASCII)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_ANY = re.compile(r"(?P<url>.*)", re.S)
_PLACE = "{url}"


class Left(Exception):
    """A line that does not count; `reason` is one of `BAD` or `IDLE`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LineReader(Protocol):
    """Reads one line; raises Left if it does not count. The URL is as it stands there."""

    def read(self, line: bytes) -> Count: ...


class Table:
    """Rows of a table whose header is known.

    >>> Table(b"page;at;clicks").read(b"http://a.example/;2026-01-01;3")
    Count(url='http://a.example/', at=1767225600000000, clicks=3, impressions=0)
    """

    def __init__(self, header: bytes) -> None:
        text = _text(header).lstrip("\ufeff")
        self.delimiter = max(DELIMITERS, key=text.count)
        self.names = [_NAMES.get(name.strip().lower(), "") for name in self._cells(text)]

    @property
    def known(self) -> bool:
        """Whether this is the header of a table that can be read."""
        return {"url", "at"} <= {*self.names}

    def read(self, line: bytes) -> Count:
        try:
            row = dict(zip(self.names, self._cells(_text(line)), strict=True))
        except (csv.Error, ValueError):  # ValueError: another number of cells
            raise Left("unreadable") from None
        return count_of(
            row["url"], row["at"], row.get("clicks") or None, row.get("impressions") or None
        )

    def _cells(self, text: str) -> list[str]:
        """The cells of one line: a quote that is not closed must not swallow the next."""
        return next(csv.reader([text], delimiter=self.delimiter, strict=True), [])


class _Row(msgspec.Struct):
    """What matters of a JSON object; anything may stand anywhere."""

    url: Any = None
    page: Any = None
    at: Any = None
    time: Any = None
    timestamp: Any = None
    clicks: Any = None
    impressions: Any = None


class JsonLines:
    """One JSON object a line.

    >>> JsonLines().read(b'{"url": "http://a.example/", "time": 1767225600}').clicks
    1
    """

    _decoder = msgspec.json.Decoder(_Row)

    def read(self, line: bytes) -> Count:
        try:
            row = self._decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Left("unreadable") from None
        times = (row.at, row.time, row.timestamp)
        at = next((time for time in times if time is not None), None)
        return count_of(row.url or row.page, at, row.clicks, row.impressions)


def count_of(url: Any, at: Any, clicks: Any = None, impressions: Any = None) -> Count:
    """A row of which every cell may be anything; without counts it is one click."""
    if not isinstance(url, str) or not url.strip() or len(url) > MAX_URL:
        raise Left("url")
    when = micros(at)
    if clicks is None and impressions is None:
        return Count(url.strip(), when, 1, 0)
    return Count(url.strip(), when, _whole(clicks), _whole(impressions))


def micros(raw: Any) -> int:
    """A time in µs since 1970: text in the forms of `dates`, or seconds, milli- or microseconds.

    >>> micros("2026-01-01T01:00+01:00") == micros(1767225600) == micros("1767225600000")
    True
    """
    if isinstance(raw, str) and not _NUMBER.fullmatch(raw):
        return _stated(raw.strip())
    number = _number(raw, "time")
    for most, scale in _UNITS:
        if abs(number) < most:
            return round(number * scale)
    raise Left("time")  # NaN among them


def _number(raw: Any, what: str) -> float:
    """A number, or a text that is one; else the line is left for `what` it has there."""
    if isinstance(raw, str) and _NUMBER.fullmatch(raw):
        return float(raw)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise Left(what)
    return raw


def _stated(text: str) -> int:
    try:
        return epoch_us(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as error:
        found = written(text) if isinstance(error, ValueError) else None
    if found is None:
        raise Left("time")
    return found


def _whole(raw: Any) -> int:
    """A count: a whole number from 0 to `ABSURD`; nothing is 0.

    >>> _whole("12"), _whole(3.0), _whole(None)
    (12, 3, 0)
    """
    if raw is None:
        return 0
    number = _number(raw, "count")
    if number > ABSURD:
        raise Left("absurd")
    if math.isnan(number) or number < 0 or number != int(number):
        raise Left("count")
    return int(number)


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def looks_like(line: bytes) -> bool:
    """Whether a line is one of an access log, in the common or the combined format."""
    return _LINE.match(_text(line)) is not None


def click_of(text: str) -> re.Pattern[str]:
    """A pattern for the requests that are clicks: with ``{url}`` where the page's address stands,
    else a regular expression with a group of the name ``url``.

    >>> click_of("/go?to={url}").match("/go?to=http%3A%2F%2Fa.example%2F&from=list")["url"]
    'http%3A%2F%2Fa.example%2F'
    """
    if _PLACE in text:
        before, after = map(re.escape, text.split(_PLACE, 1))
        return re.compile(rf"{before}(?P<url>[^&#]+){after}")
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise InputError(f"--click: {text!r} is no regular expression: {error}") from None
    if "url" not in pattern.groupindex:
        raise InputError(
            f"--click: {text!r} does not say where the address of the page stands; write {_PLACE} "
            "there, or a regular expression with a group (?P<url>…)"
        )
    return pattern


class AccessLogReader:
    """Lines of an access log, in the common or the combined format of Apache and nginx.

    Clicks are the requests (GET or POST) whose target `click` matches; the group ``url`` of the
    match, percent-decoded, is the address of the page. Without `click` every request is one for
    the page itself. Bots, by what they call themselves, and failed requests do not count.

    >>> line = b'1.2.3.4 - - [01/Jan/2026:00:00:00 +0000] "GET /to/http%3A%2F%2Fa.example HTTP/1.1"'
    >>> AccessLogReader(click_of("/to/{url}")).read(line + b' 302 0 "-" "Firefox"').url
    'http://a.example'
    """

    def __init__(self, click: re.Pattern[str] | None = None) -> None:
        self.click = click or _ANY
        self.decodes = click is not None

    def read(self, line: bytes) -> Count:
        found = _LINE.match(_text(line))
        if found is None:
            raise Left("unreadable")
        time, request, status, _, agent = found.groups()
        if int(status) >= 400:
            raise Left("failed")
        if agent and _BOT.search(agent):
            raise Left("bot")
        return count_of(self._url(request), _logged(time))

    def _url(self, request: str) -> str:
        method, _, rest = request.partition(" ")
        target = rest.rpartition(" HTTP/")[0] or rest
        match = self.click.match(target[: 4 * MAX_URL]) if method in _ASKS else None
        if match is None:
            raise Left("other")
        url = match["url"] or ""
        return unquote(url) if self.decodes else url


@functools.lru_cache(maxsize=1)  # many lines in a row have the same
def _logged(text: str) -> int:
    """A time as in 16/Nov/2026:06:25:24 +0100, whatever the language of the machine."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise Left("time")
    day, month, year, clock, zone = found.groups()
    try:
        number = _MONTHS.index(month.lower()) + 1
        when = datetime.fromisoformat(f"{year}-{number:02}-{day}T{clock}{zone}")
        return int(when.timestamp()) * 10**6
    except (ValueError, OverflowError):
        raise Left("time") from None
