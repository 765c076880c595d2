"""Quantities as people write them: budgets, spans, sizes, shares, hours of the day."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


class Size(int):
    """A number of bytes, written like ``"10 MB"``."""


class Span(timedelta):
    """A length of time, written like ``"2h"``."""


def _number(text: str | float, what: str) -> tuple[float, bool]:
    """A number, or one in per cent; and whether it is. ValueError says `what` it should be."""
    shown = str(text).strip()
    is_share = shown.endswith("%")
    try:
        return float(shown.removesuffix("%")) / (100 if is_share else 1), is_share
    except ValueError:
        raise ValueError(f"{text!r} is not a {what}") from None


class Share(float):
    """A part of a whole, from 0 to 1, written like ``"2%"``.

    >>> Share.parse("2%"), Share.parse(0.5)
    (0.02, 0.5)
    """

    @classmethod
    def parse(cls, text: str | float) -> Share:
        """``"2%"`` or 0.02."""
        part, _ = _number(text, "share; write 2% or 0.02")
        if not 0 <= part <= 1:
            raise ValueError(f"a share lies between 0 and 100%, not {text!r}")
        return cls(part)


class ClickScore(str):
    """By what a click is scored: ``"stale"``, or the chance of a change within ``"6h"``.

    >>> ClickScore.parse("6h").horizon, ClickScore.parse("stale").horizon
    (Span(seconds=21600), None)
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> ClickScore:
        """``"stale"`` or a length of time."""
        if text != "stale":
            try:
                span = duration(text)
            except ValueError:
                span = Span()
            if not span:
                raise ValueError(f"{text!r} is no score of clicks; write stale, or a time like 6h")
        return cls(text)

    @property
    def horizon(self) -> Span | None:
        """The time within which a change counts; None if it is that the copy is out of date."""
        return None if self == "stale" else duration(self)


class Budget:
    """How many visits a day: for the whole system, or per page.

    >>> Budget.parse("10%").per_day(2000)
    200.0
    >>> Budget.parse(500).per_day(2000)
    500.0
    """

    def __init__(self, amount: float, *, per_page: bool) -> None:
        self.amount = amount
        self.per_page = per_page

    @classmethod
    def parse(cls, text: str | float) -> Budget:
        """``"10%"`` or 0.1 = visits per page and day; 1 and more = visits a day in all."""
        amount, is_share = _number(text, "budget; write 10%, 0.1 or 5000")
        if not 0 < amount < float("inf"):
            raise ValueError(f"a budget must be more than 0, not {text!r}")
        return cls(amount, per_page=is_share or amount < 1)

    def per_day(self, pages: int) -> float:
        """Visits a day with so many pages."""
        return self.amount * pages if self.per_page else self.amount


class CrawlRate:
    """Visits to sources and to what is found on them: so many a second, or a share of the links
    that appear.

    >>> CrawlRate.parse("0.1/s").per_day(links=500.0), CrawlRate.parse("10%").per_day(links=500.0)
    (8640.0, 50.0)
    """

    def __init__(self, amount: float, *, per_link: bool) -> None:
        self.amount = amount
        self.per_link = per_link

    @classmethod
    def parse(cls, text: str) -> CrawlRate:
        """``"0.1/s"`` or ``"10%"``."""
        seconds = text.strip().endswith("/s")
        amount, is_share = _number(text.strip().removesuffix("/s"), "rate; write 0.1/s or 10%")
        if seconds == is_share or not 0 < amount < float("inf"):
            raise ValueError(f"{text!r} is not a rate; write 0.1/s or 10%, more than 0")
        return cls(amount if is_share else amount * 86_400, per_link=is_share)

    def per_day(self, links: float) -> float:
        """Visits a day where so many links appear in one."""
        return self.amount * links if self.per_link else self.amount


class Tolerance:
    """How far a number may move and still count as the same: ``"1%"``, or 0.5 in its own unit.

    >>> Tolerance.parse("1%").covers(100, 100.9), Tolerance.parse(0.5).covers(100, 100.9)
    (True, False)
    """

    def __init__(self, amount: float, *, relative: bool) -> None:
        self.amount = amount
        self.relative = relative

    @classmethod
    def parse(cls, text: str | float) -> Tolerance:
        """``"1%"`` of the earlier number, or an amount."""
        amount, is_share = _number(text, "tolerance; write 1% or 0.5")
        if not 0 <= amount < float("inf"):
            raise ValueError(f"a tolerance must not be negative, and {text!r} is no tolerance")
        return cls(amount, relative=is_share)

    def covers(self, before: float, after: float) -> bool:
        """Whether the move from `before` to `after` is too small to count."""
        room = self.amount * abs(before) if self.relative else self.amount
        return abs(after - before) <= room


class Hours:
    """A window of the day in some time zone, such as ``"22:00-06:00 Europe/Vienna"``.

    Without a zone it is UTC. The window is half-open, and may run past midnight.

    >>> night = Hours.parse("22:00-06:00")
    >>> night.holds(datetime(2026, 1, 1, 23, tzinfo=UTC))
    True
    >>> night.opening(datetime(2026, 1, 1, 12, tzinfo=UTC)).hour
    22
    """

    def __init__(self, start: time, end: time, zone: ZoneInfo) -> None:
        self.start = start
        self.end = end
        self.zone = zone

    @classmethod
    def parse(cls, text: str) -> Hours:
        """``"HH:MM-HH:MM"``, with an IANA zone after it if it is not UTC."""
        match = re.fullmatch(r"\s*(\d\d:\d\d)\s*-\s*(\d\d:\d\d)(?:\s+(\S+))?\s*", str(text))
        if match is None:
            raise ValueError(f"{text!r} is not a window; write 22:00-06:00 Europe/Vienna")
        try:
            start, end = time.fromisoformat(match[1]), time.fromisoformat(match[2])
            zone = ZoneInfo(match[3] or "UTC")
        except (ValueError, ZoneInfoNotFoundError) as error:
            raise ValueError(f"{text!r} is not a window: {error}") from None
        if start == end:
            raise ValueError(f"{text!r} is an empty window; leave it out to allow the whole day")
        return cls(start, end, zone)

    @property
    def length(self) -> timedelta:
        """How long the window is, on a day of 24 hours."""
        start, end = (timedelta(hours=t.hour, minutes=t.minute) for t in (self.start, self.end))
        return (end - start) % timedelta(days=1)

    def spans(self, start: datetime, end: datetime) -> bool:
        """Whether all of the time from `start` to `end` lies in the window.

        >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
        >>> Hours.parse("08:00-13:00").spans(noon, noon + timedelta(hours=2))
        False
        """
        return self.holds(start) and self.closing(start) >= end

    def holds(self, when: datetime) -> bool:
        """Whether an aware time lies in the window."""
        local = when.astimezone(self.zone).time()
        if self.start < self.end:
            return self.start <= local < self.end
        return local >= self.start or local < self.end

    def opening(self, when: datetime) -> datetime:
        """The next time from `when` on at which the window is open, in UTC."""
        if self.holds(when):
            return when.astimezone(UTC)
        local = when.astimezone(self.zone)
        day = local.date() + timedelta(days=local.time() >= self.start)
        return datetime.combine(day, self.start, self.zone).astimezone(UTC)

    def closing(self, when: datetime) -> datetime:
        """The end of the window that `when` lies in, in UTC."""
        local = when.astimezone(self.zone)
        day = local.date() + timedelta(days=local.time() >= self.end)
        return datetime.combine(day, self.end, self.zone).astimezone(UTC)


def matches(host: str, pattern: str) -> bool:
    """Whether a host (with or without port) fits a pattern.

    >>> matches("shop.example.org:8080", "*.example.org"), matches("a.org", "b.org")
    (True, False)
    """
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    return fnmatchcase(host, pattern) or fnmatchcase(name, pattern)


def duration(text: str | float) -> Span:
    """A span written like ``90s``, ``10m``, ``2h``, ``1.5d``; a bare number is seconds.

    >>> duration("1.5h")
    Span(seconds=5400)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(text).lower())
    if match is None or (match[2] or "s") not in _UNITS:
        raise ValueError(f"{text!r} is not a duration; write 90s, 10m, 2h or 7d")
    return Span(seconds=float(match[1]) * _UNITS[match[2] or "s"])


def size(text: str | int) -> Size:
    """A number of bytes written like ``10 MB``; a bare number is bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Z]*)\s*", str(text).upper())
    if match is None or (match[2] or "B") not in _SIZES:
        raise ValueError(f"{text!r} is not a size; write 500 KB or 10 MB")
    return Size(float(match[1]) * _SIZES[match[2] or "B"])
