"""Access logs of web servers: which requests were clicks, and on which pages."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import unquote

from salticus.errors import InputError
from salticus.signals.clicks import MAX_URL, Left, count_of
from salticus.types import Count

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


def looks_like(line: bytes) -> bool:
    """Whether a line is one of an access log, in the common or the combined format."""
    return _LINE.match(line.decode("utf-8", "replace")) is not None


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
        self._last = ("", 0)

    def read(self, line: bytes) -> Count:
        found = _LINE.match(line.decode("utf-8", "replace"))
        if found is None:
            raise Left("unreadable")
        time, request, status, _, agent = found.groups()
        if int(status) >= 400:
            raise Left("failed")
        if agent and _BOT.search(agent):
            raise Left("bot")
        return count_of(self._url(request), self._at(time))

    def _url(self, request: str) -> str:
        method, _, rest = request.partition(" ")
        target = rest.rpartition(" HTTP/")[0] or rest
        match = self.click.match(target[: 4 * MAX_URL]) if method in _ASKS else None
        if match is None:
            raise Left("other")
        url = match["url"] or ""
        return unquote(url) if self.decodes else url

    def _at(self, text: str) -> int:
        """The time of a line; many lines in a row have the same."""
        if text != self._last[0]:
            try:
                self._last = text, _micros(text)
            except (ValueError, OverflowError):
                raise Left("time") from None
        return self._last[1]


def _micros(text: str) -> int:
    """A time as in 16/Nov/2026:06:25:24 +0100, whatever the language of the machine."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(text)
    day, month, year, clock, zone = found.groups()
    number = _MONTHS.index(month.lower()) + 1
    when = datetime.fromisoformat(f"{year}-{number:02}-{day}T{clock}{zone}")
    return int(when.timestamp()) * 10**6
