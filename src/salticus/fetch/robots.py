"""robots.txt of one host, after RFC 9309.

What an answer means:

- 2xx: the rules are followed. Lines that cannot be read are ignored, so rubbish allows all. Only
  the first 500 KiB count.
- 4xx but 429, and redirects that end nowhere: there are no rules, all is allowed.
- Anything else (5xx, 429, network failure, time-out, unreadable body): nothing is allowed until it
  is reached. It is asked again after one minute, then two, four, … up to an hour. Meanwhile rules
  that were read before stay in force, up to a week old.

An answer holds for 24 hours. A crawl-delay is honoured up to one day.
"""

from __future__ import annotations

import re

from protego import Protego

from salticus.fetch import AGENT
from salticus.fetch.base import Answer
from salticus.types import Status

_BYTES = 512_000
_DAY_S = 86_400.0
_STALE_S = 6 * _DAY_S
_RETRY_S, _RETRY_CAP_S = 60.0, 3600.0
_AGENT_LINE = re.compile(r"\s*user[ -]?agent\s*[:\s]\s*(\*|[a-z_-]*)", re.IGNORECASE)
_DISALLOW = re.compile(r"di[as]+l", re.IGNORECASE)  # as generously misspelt as Protego takes it


class Robots:
    """What robots.txt said, and until when that holds. Times are wall seconds.

    `code` is that of the last answer that told something, 0 when there was none, None before the
    first. Before `free_until` every path is allowed, without a further look.

    >>> robots = Robots(200, "User-agent: *\\nDisallow: /cart", until=100.0)
    >>> robots.refusal("http://a.org/offer", 0.0), robots.refusal("http://a.org/cart/1", 0.0)
    (None, (<Status.DISALLOWED: 4>, 'robots.txt disallows this path'))
    """

    __slots__ = (
        "_failures",
        "_fault",
        "_retry_at",
        "_rules",
        "_status",
        "code",
        "free_until",
        "text",
        "until",
    )

    def __init__(self, code: int | None = None, text: str = "", until: float = 0.0) -> None:
        self._status = Status.DISALLOWED
        self._fault = "robots.txt could not be reached"
        self._failures = 0
        self._retry_at = 0.0
        self._settle(code, text, until)

    def due(self, now: float) -> bool:
        """Whether robots.txt must be asked for before anything else is."""
        return now >= self.until and now >= self._retry_at

    def refusal(self, url: str, now: float) -> tuple[Status, str] | None:
        """Why `url` may not be asked for; None if it may."""
        if not _tells(self.code) or now >= self.until + _STALE_S:
            return self._status, self._fault
        if now < self.free_until or self._allows(url):
            return None
        return Status.DISALLOWED, "robots.txt disallows this path"

    def delay(self) -> float:
        """The crawl-delay asked of us in seconds, 0 if none."""
        if "crawl" not in self.text.lower():
            return 0.0
        return min(self._parsed().crawl_delay(AGENT) or 0.0, _DAY_S)

    def learn(self, answer: Answer, now: float) -> None:
        """Take in an answer; the last one, if redirects were followed."""
        complete = answer.status is Status.OK
        if complete and _tells(answer.code):
            self._failures, self._retry_at = 0, 0.0
            self._settle(answer.code, _text(answer), now + _DAY_S)
        else:
            self._miss(answer, now)

    def _settle(self, code: int | None, text: str, until: float) -> None:
        self.code, self.text, self.until = code, text, until
        self._rules: Protego | None = None
        free = _tells(code) and not _DISALLOW.search(text)
        self.free_until = until if free else 0.0

    def _miss(self, answer: Answer, now: float) -> None:
        self._retry_at = now + min(_RETRY_S * 2**self._failures, _RETRY_CAP_S)
        self._failures = min(self._failures + 1, 16)
        unsafe = answer.status is Status.UNSAFE
        self._status = Status.UNSAFE if unsafe else Status.DISALLOWED
        why = answer.fault or f"the server answered {answer.code}"
        self._fault = why if unsafe else f"robots.txt could not be reached: {why}"
        if not _tells(self.code) and not unsafe:  # nothing was asked of an unsafe host
            self._settle(answer.code, "", self._retry_at)

    def _allows(self, url: str) -> bool:
        return self._parsed().can_fetch(url, AGENT)

    def _parsed(self) -> Protego:
        if self._rules is None:
            self._rules = Protego.parse(_for_us(self.text))
        return self._rules


def _tells(code: int | None) -> bool:
    """Whether an answer with this code settles what is allowed."""
    return code is not None and 200 <= code < 500 and code != 429


def _text(answer: Answer) -> str:
    """The rules that count, cut after the last whole line."""
    if answer.code >= 300:
        return ""
    body = answer.body
    if len(body) > _BYTES:
        body = body[: body.rfind(b"\n", 0, _BYTES) + 1]
    return body.decode("utf-8-sig", "replace")


def _for_us(text: str) -> str:
    """The same rules with every other crawler called "other".

    Agents are compared as whole product tokens, as the RFC asks; and a file of a thousand agents
    that share a thousand rules, which Protego would multiply, costs no more than any other.

    >>> _for_us("User-agent: Salt\\nDisallow: /").splitlines()
    ['User-agent: other', 'Disallow: /']
    """
    return "\n".join(_rename(line) for line in text.splitlines())


def _rename(line: str) -> str:
    match = _AGENT_LINE.match(line)
    if match is None:
        return line
    name = match[1].lower()
    return f"User-agent: {name if name in ('*', AGENT.lower()) else 'other'}"
