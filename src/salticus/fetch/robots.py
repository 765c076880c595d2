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

from salticus.fetch.base import Answer
from salticus.fetch.rules import RobotsRules, frees
from salticus.types import Status

BYTES = 512_001  # that are asked for: one more than count shows that there are more
_BYTES = 512_000
_DAY_S = 86_400.0
_STALE_S = 6 * _DAY_S
_RETRY_S, _RETRY_CAP_S = 60.0, 3600.0
_TELLING = frozenset({Status.UNSAFE, Status.CERTIFICATE, Status.BLOCKED})  # they hold for the host


class Robots:
    """What robots.txt said, and until when that holds. Times are wall seconds.

    `code` is that of the last answer that was read whole, 0 when there was none, None before the
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

    def known(self, now: float) -> bool:
        """Whether it was read, or is known not to exist, and that is not too long ago."""
        return _tells(self.code) and now < self.until + _STALE_S

    def refusal(self, url: str, now: float) -> tuple[Status, str] | None:
        """Why `url` may not be asked for; None if it may."""
        if not self.known(now):
            return self._status, self._fault
        if now < self.free_until or self._allows(url):
            return None
        return Status.DISALLOWED, "robots.txt disallows this path"

    def delay(self) -> float:
        """The crawl-delay asked of us in seconds, 0 if none."""
        if "crawl" not in self.text.lower():
            return 0.0
        return min(self._parsed().delay(), _DAY_S)

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
        self._rules: RobotsRules | None = None
        free = _tells(code) and frees(text)
        self.free_until = until if free else 0.0

    def _miss(self, answer: Answer, now: float) -> None:
        self._retry_at = now + min(_RETRY_S * 2**self._failures, _RETRY_CAP_S)
        self._failures = min(self._failures + 1, 16)
        telling = answer.status in _TELLING
        self._status = _meaning(answer)
        why = answer.fault or f"the server answered {answer.code}"
        done = "read" if 200 <= answer.code < 300 else "reached"
        self._fault = why if telling else f"robots.txt could not be {done}: {why}"
        if not _tells(self.code) and not telling:  # such a host was not even asked
            code = answer.code if answer.status is Status.OK else 0  # rules unread are not none
            self._settle(code, "", self._retry_at)

    def _allows(self, url: str) -> bool:
        return self._parsed().allow(url)

    def _parsed(self) -> RobotsRules:
        if self._rules is None:
            self._rules = RobotsRules(self.text)
        return self._rules


def _meaning(answer: Answer) -> Status:
    """How a visit ends whose host does not give its robots.txt: as its robots.txt did. That no rule
    forbids the page must stay visible, or a host that is down would look like one that does."""
    if answer.status is not Status.OK:
        return answer.status
    return Status.BUSY if answer.code in (429, 503) else Status.HTTP


def _tells(code: int | None) -> bool:
    """Whether an answer with this code settles what is allowed."""
    return code is not None and 200 <= code < 500 and code != 429


def _text(answer: Answer) -> str:
    """The rules that count, cut after the last whole line."""
    if answer.code >= 300:
        return ""
    text = answer.body[:_BYTES].decode(_encoding(answer.body), "replace")
    return text if len(answer.body) <= _BYTES else text[: text.rfind("\n") + 1]


def _encoding(body: bytes) -> str:
    """UTF-8, as the RFC asks; but rules that were saved as UTF-16 are no less meant."""
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    zeros = body[0:1] == b"\0", body[1:2] == b"\0"
    return {(True, False): "utf-16-be", (False, True): "utf-16-le"}.get(zeros, "utf-8-sig")
