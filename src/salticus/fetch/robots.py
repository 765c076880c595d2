"""robots.txt of one host, after RFC 9309.

What an answer means:

- 2xx: the rules are followed. Lines that cannot be read are ignored, so rubbish allows all. Only
  the first 500 KiB count.
- 4xx but 429, and redirects that end nowhere: there are no rules, all is allowed.
- Anything else (5xx, 429, network failure, time-out, unreadable body): nothing is allowed until it
  is reached. It is asked again after one minute, then two, four, … up to an hour. Meanwhile rules
  that were read before stay in force, up to a week old.

An answer holds for 24 hours. A crawl-delay is honoured up to one day.

Rules are read by Protego, at a cost that no file can raise. A check tries every rule with a
wildcard; half a megabyte of them would take tens of milliseconds for each visit. So a file with
more wildcards than anyone needs is read strictly: a path is disallowed up to its first wildcard,
and exceptions do not count. A file made to be slow closes its own host, and we never ask for what
it disallows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from protego import Protego

from salticus.fetch import AGENT
from salticus.fetch.base import Answer
from salticus.types import Status

ROBOTS_BYTES = 512_001  # that are asked for: one more than count shows that there are more
_BYTES = 512_000
_DAY_S = 86_400.0
_STALE_S = 6 * _DAY_S
_RETRY_S, _RETRY_CAP_S = 60.0, 3600.0
_TELLING = frozenset({Status.UNSAFE, Status.CERTIFICATE, Status.BLOCKED})  # they hold for the host
_WILDCARDS = 5000  # taken as they stand: a check of them takes two milliseconds
_LONG = 20_000  # characters of rules from which on verdicts are remembered
_VERDICTS = 1000
_AGENT_LINE = re.compile(r"\s*user[ -]?agent\s*[:\s]\s*(\*|[a-z_-]*)", re.IGNORECASE)
_DISALLOW = re.compile(r"di[as]+l", re.IGNORECASE)  # as generously misspelt as Protego takes it
_OTHER = "User-agent: other"
_AGENTS = {name: f"User-agent: {name}" for name in ("*", AGENT.lower())}
_RULE = re.compile(r"(\s*[a-z]+)([:\s]+)([^#]*)", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Robots:
    """What robots.txt said, and until when that holds. Times are wall seconds.

    `code` is that of the last answer that was read whole, 0 when there was none, None before the
    first. Before `free_until` every path is allowed, without a further look.

    >>> robots = Robots(200, "User-agent: *\\nDisallow: /cart", until=100.0)
    >>> robots.refusal("http://a.org/offer", 0.0), robots.refusal("http://a.org/cart/1", 0.0)
    (None, (<Status.DISALLOWED: 4>, 'robots.txt disallows this path'))
    """

    code: int | None = None
    text: str = ""
    until: float = 0.0
    free_until: float = field(init=False)
    _rules: RobotsRules | None = field(init=False)
    _status: Status = Status.DISALLOWED
    _fault: str = "robots.txt could not be reached"
    _failures: int = 0
    _retry_at: float = 0.0

    def __post_init__(self) -> None:
        self._settle(self.code, self.text, self.until)

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
        if now < self.free_until or self._parsed().allow(url):
            return None
        return Status.DISALLOWED, "robots.txt disallows this path"

    def delay(self) -> float:
        """The crawl-delay asked of us in seconds, 0 if none."""
        if "crawl" not in self.text.lower():
            return 0.0
        return min(self._parsed().delay(), _DAY_S)

    def learn(self, answer: Answer, now: float) -> None:
        """Take in an answer; the last one, if redirects were followed."""
        if answer.status is Status.OK and _tells(answer.code):
            self._failures, self._retry_at = 0, 0.0
            self._settle(answer.code, _text(answer), now + _DAY_S)
        else:
            self._miss(answer, now)

    def _settle(self, code: int | None, text: str, until: float) -> None:
        self.code, self.text, self.until, self._rules = code, text, until, None
        free = _tells(code) and not _DISALLOW.search(text)  # then it can disallow nothing
        self.free_until = until if free else 0.0

    def _miss(self, answer: Answer, now: float) -> None:
        self._retry_at = now + min(_RETRY_S * 2**self._failures, _RETRY_CAP_S)
        self._failures = min(self._failures + 1, 16)
        telling = answer.status in _TELLING
        # a visit ends as robots.txt did: that no rule forbids the page must stay visible, or a host
        # that is down would look like one that does
        self._status = answer.status
        if answer.status is Status.OK:
            self._status = Status.BUSY if answer.code in (429, 503) else Status.HTTP
        why = answer.fault or f"the server answered {answer.code}"
        done = "read" if 200 <= answer.code < 300 else "reached"
        self._fault = why if telling else f"robots.txt could not be {done}: {why}"
        if not _tells(self.code) and not telling:  # such a host was not even asked
            code = answer.code if answer.status is Status.OK else 0  # rules unread are not none
            self._settle(code, "", self._retry_at)

    def _parsed(self) -> RobotsRules:
        if self._rules is None:
            self._rules = RobotsRules(self.text)
        return self._rules


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


class RobotsRules:
    """What a robots.txt lets us ask for.

    >>> rules = RobotsRules("User-agent: *\\nDisallow: /cart")
    >>> rules.allow("http://a.org/offer"), rules.allow("http://a.org/cart/1")
    (True, False)
    """

    __slots__ = ("_protego", "_verdicts")

    def __init__(self, text: str) -> None:
        self._protego = Protego.parse(for_us(text))
        self._verdicts: dict[str, bool] | None = {} if len(text) >= _LONG else None

    def allow(self, url: str) -> bool:
        if self._verdicts is None:
            return self._protego.can_fetch(url, AGENT)
        if (known := self._verdicts.get(url)) is not None:
            return known
        if len(self._verdicts) >= _VERDICTS:
            self._verdicts.clear()
        verdict = self._verdicts[url] = self._protego.can_fetch(url, AGENT)
        return verdict

    def delay(self) -> float:
        return self._protego.crawl_delay(AGENT) or 0.0


def for_us(text: str) -> str:
    """The same rules with every other crawler called "other", and not too many wildcards.

    Agents are compared as whole product tokens, as the RFC asks; and a file of a thousand agents
    that share a thousand rules, which Protego would multiply, costs no more than any other.

    >>> for_us("User-agent: Salt\\nDisallow: /").splitlines()
    ['User-agent: other', 'Disallow: /']
    """
    lines = [_rename(line) for line in text.splitlines()]
    if _wildcards(lines) > _WILDCARDS:
        lines = [_strict(line) for line in lines]
    return "\n".join(lines)


def _rename(line: str) -> str:
    match = _AGENT_LINE.match(line)
    return line if match is None else _AGENTS.get(match[1].lower(), _OTHER)


def _wildcards(lines: list[str]) -> int:
    count, ours, ruled = 0, False, True
    for line in lines:
        if line.startswith("User-agent: "):  # as they were renamed
            ours = line != _OTHER or (ours and not ruled)
            ruled = False
            continue
        ruled = ruled or "llow" in line.lower()
        if ours and ("*" in line or "$" in line):
            count += line.count("*") + line.count("$")
    return count


def _strict(line: str) -> str:
    """A rule without its wildcards that allows no more than it did.

    >>> _strict("Disallow: /a*b"), _strict("Disallow: *"), _strict("Allow: /a")
    ('Disallow: /a', 'Disallow: /', '')
    """
    match = _RULE.match(line)
    if match is None or line.startswith("User-agent: ") or "delay" in line.lower():
        return line
    if not _DISALLOW.search(match[1]):
        return ""
    path = match[3].strip()
    return f"Disallow: {re.split('[*$]', path, maxsplit=1)[0] or '/' if path else ''}"
