"""The rules of a robots.txt that concern us, read by Protego, at a cost that no file can raise.

A check tries every rule with a wildcard. Half a megabyte of them would take tens of milliseconds
for each visit. So a file with more wildcards than anyone needs is read strictly: a path is
disallowed up to its first wildcard, and exceptions do not count. A file made to be slow closes its
own host, and we never ask for what it disallows.
"""

from __future__ import annotations

import re

from protego import Protego

from salticus.fetch import AGENT

_WILDCARDS = 5000  # taken as they stand: a check of them takes two milliseconds
_LONG = 20_000  # characters of rules from which on verdicts are remembered
_VERDICTS = 1000
_AGENT_LINE = re.compile(r"\s*user[ -]?agent\s*[:\s]\s*(\*|[a-z_-]*)", re.IGNORECASE)
_DISALLOW = re.compile(r"di[as]+l", re.IGNORECASE)  # as generously misspelt as Protego takes it
_OTHER = "User-agent: other"
_AGENTS = {name: f"User-agent: {name}" for name in ("*", AGENT.lower())}
_RULE = re.compile(r"(\s*[a-z]+)([:\s]+)([^#]*)", re.IGNORECASE)


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
        """Whether we may ask for `url`."""
        if self._verdicts is None:
            return self._protego.can_fetch(url, AGENT)
        if (known := self._verdicts.get(url)) is not None:
            return known
        if len(self._verdicts) >= _VERDICTS:
            self._verdicts.clear()
        verdict = self._verdicts[url] = self._protego.can_fetch(url, AGENT)
        return verdict

    def delay(self) -> float:
        """The crawl-delay in seconds, 0 if none."""
        return self._protego.crawl_delay(AGENT) or 0.0


def frees(text: str) -> bool:
    """Whether a text can disallow nothing."""
    return not _DISALLOW.search(text)


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
    if match is None:
        return line
    name = match[1].lower()
    return _AGENTS.get(name, _OTHER)


def _wildcards(lines: list[str]) -> int:
    """How many wildcards the rules for us have."""
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
