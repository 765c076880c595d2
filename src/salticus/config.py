"""The one TOML file: read, checked, and turned into typed settings."""

from __future__ import annotations

import math
import re
import tomllib
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from salticus.errors import ConfigError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}


class Size(int):
    """A number of bytes, written like ``"10 MB"``."""


class Span(timedelta):
    """A length of time, written like ``"2h"``."""


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
        shown = str(text).strip()
        try:
            amount = float(shown.removesuffix("%")) / (100 if shown.endswith("%") else 1)
        except ValueError:
            raise ValueError(f"{text!r} is not a budget; write 10%, 0.1 or 5000") from None
        if not 0 < amount < float("inf"):
            raise ValueError(f"a budget must be more than 0, not {text!r}")
        return cls(amount, per_page=shown.endswith("%") or amount < 1)

    def per_day(self, pages: int) -> float:
        """Visits a day with so many pages."""
        return self.amount * pages if self.per_page else self.amount


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Politeness for the hosts that match a pattern such as ``*.example.org``."""

    match: str
    delay: Span | None = None
    concurrency: int | None = None


class Fetch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How pages are fetched. `delay` and `per_host` hold for hosts without a pattern."""

    contact: str = ""
    concurrency: int = 256
    delay: Span = Span(seconds=1)
    per_host: int = 1
    timeout: Span = Span(seconds=30)
    max_size: Size = Size(10_000_000)
    max_redirects: int = 5
    retries: int = 2
    allow_private: tuple[str, ...] = ()


class Extract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How values are found."""

    workers: int = 1
    deadline: Span = Span(seconds=5)
    keep_content: bool = True


class Time(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An accelerated clock, for malls and tests: `speed` world seconds a wall second."""

    speed: float = 1.0
    world_origin: datetime | None = None
    wall_origin: datetime | None = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of one crawl."""

    store: str = "salticus.db"
    budget: Budget = Budget(1.0, per_page=True)
    tick: Span = Span(hours=2)
    seed: int = 0
    policy: str = "uniform"
    predictor: str = "gamma"
    spacing: str = "even"
    max_interval: Span | None = None
    retention: Span | None = None
    fetch: Fetch = Fetch()
    extract: Extract = Extract()
    clock: Time = Time()
    hosts: tuple[Host, ...] = ()

    @property
    def max_interval_days(self) -> float:
        """The maximum interval of pages without one of their own; inf = none."""
        return math.inf if self.max_interval is None else self.max_interval / timedelta(days=1)

    def delay(self, host: str) -> float:
        """Seconds between two requests to `host` (the first pattern that sets it wins)."""
        found = (h.delay for h in self._matching(host) if h.delay is not None)
        return next(found, self.fetch.delay).total_seconds()

    def concurrency(self, host: str) -> int:
        """Requests to `host` that may be under way at once."""
        found = (h.concurrency for h in self._matching(host) if h.concurrency is not None)
        return next(found, self.fetch.per_host)

    def _matching(self, host: str) -> list[Host]:
        return [h for h in self.hosts if matches(host, h.match)]


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


def load(path: Path) -> Config:
    """Read the file; ConfigError names file, key and remedy."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; `salticus init` writes one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path}: {error}") from error
    try:
        config = parse(raw)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return msgspec.structs.replace(config, store=str(path.parent / config.store))


def parse(raw: dict[str, Any]) -> Config:
    """Settings from a mapping; ConfigError names the key."""
    try:
        config = msgspec.convert(raw, Config, dec_hook=_decode, builtin_types=(datetime,))
    except msgspec.ValidationError as error:
        raise ConfigError(str(error).replace("`$.", "`")) from error
    _check(config)
    return config


def _decode(kind: type, raw: Any) -> Any:
    if kind is Span:
        return duration(raw)
    if kind is Size:
        return size(raw)
    if kind is Budget:
        return Budget.parse(raw)
    raise NotImplementedError(kind)


def _check(config: Config) -> None:
    positive = {
        "tick": config.tick.total_seconds(),
        "fetch.concurrency": config.fetch.concurrency,
        "fetch.per_host": config.fetch.per_host,
        "fetch.timeout": config.fetch.timeout.total_seconds(),
        "fetch.max_size": config.fetch.max_size,
        "extract.workers": config.extract.workers,
        "extract.deadline": config.extract.deadline.total_seconds(),
        "clock.speed": config.clock.speed,
    }
    for host in config.hosts:
        positive[f"concurrency of hosts that match {host.match!r}"] = (
            1 if host.concurrency is None else host.concurrency
        )
    for key, value in positive.items():
        if value <= 0:
            raise ConfigError(f"{key} must be more than 0, not {value}")
    for key in ("retries", "max_redirects"):
        if getattr(config.fetch, key) < 0:
            raise ConfigError(f"fetch.{key} must not be negative")
