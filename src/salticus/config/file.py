"""The one TOML file: as it is handed to people, and read, checked, and turned into settings; and
how it says where the store is."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from salticus.config.sections import Config, Host, Rule
from salticus.config.units import (
    Budget,
    ClickScore,
    Hours,
    Share,
    Size,
    Span,
    Tolerance,
    duration,
    size,
)
from salticus.errors import ConfigError

_DEFAULT = Path(__file__).with_name("default.toml")
# file.py:Class, package.module:Class, or a name; then the place, if there is one
_URL = re.compile(r"([^:]+\.py:\w+|\w+(?:\.\w+)+:\w+|[A-Za-z][\w-]+(?=:))(?::(.*))?", re.DOTALL)


def default_text(*, contact: str = "", budget: str = "100%") -> str:
    """The default settings with comments, and these two filled in.

    Whatever has a default, or is an example, stands there as ``#name = value``.

    >>> 'contact = "me@example.org"' in default_text(contact="me@example.org")
    True
    """
    text = _DEFAULT.read_text("utf-8")
    return _filled(_filled(text, "contact", contact), "budget", budget)


def _filled(text: str, name: str, value: str) -> str:
    head, tail = re.split(rf'(?m)^{name} = "[^"]*"', text, maxsplit=1)
    return f"{head}{name} = {json.dumps(value, ensure_ascii=False)}{tail}"


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
    store = beside(path.parent, config.store)
    models = msgspec.structs.replace(config.models, path=str(path.parent / config.models.path))
    kept = config.clock.path and str(path.parent / config.clock.path)
    clock = msgspec.structs.replace(config.clock, path=kept)
    return msgspec.structs.replace(
        config, store=store, models=models, clock=clock, folder=str(path.parent), file=str(path)
    )


def parse(raw: dict[str, Any]) -> Config:
    """Settings from a mapping; ConfigError names the key."""
    for name in raw.keys() & {"folder", "file"}:
        raise ConfigError(f"Object contains unknown field `{name}`")
    for number, rule in enumerate(raw.get("pages") or (), 1):
        if isinstance(rule, dict) and not rule.keys() & {"match", "host", "tag"}:
            raise ConfigError(f"rule {number} of [[pages]] needs a `match`, a `host` or a `tag`")
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
    if kind in (Budget, ClickScore, Hours, Share, Tolerance):
        return kind.parse(raw)
    raise NotImplementedError(kind)


def _check(config: Config) -> None:
    positive: dict[str, float | None] = {
        "tick": config.tick.total_seconds(),
        "fetch.concurrency": config.fetch.concurrency,
        "fetch.per_host": config.fetch.per_host,
        "fetch.timeout": config.fetch.timeout.total_seconds(),
        "fetch.max_size": config.fetch.max_size,
        "extract.workers": config.extract.workers,
        "extract.deadline": config.extract.deadline.total_seconds(),
        "clock.speed": config.clock.speed,
        "models.least": config.models.least,
        "sources.half_life": config.sources.half_life.total_seconds(),
        "sources.history": config.sources.history,
        "sources.relearn": config.sources.relearn.total_seconds(),
        "sources.retire": config.sources.retire.total_seconds(),
        **{f"caps.{name}": cap for name, cap in msgspec.structs.asdict(config.caps).items()},
    }
    for host in config.hosts:
        _check_zone(host)
        positive[f"concurrency of hosts that match {host.match!r}"] = host.concurrency
    for rule in config.pages:
        said = f"of {rule.named}"
        positive[f"cost {said}"] = rule.cost or None
        for name in ("interval", "max_interval", "min_interval"):
            span = getattr(rule, name)
            positive[f"{name} {said}"] = None if span is None else span.total_seconds()
    for key, value in positive.items():
        if value is not None and value <= 0:
            raise ConfigError(f"{key} must be more than 0, not {value}")
    if config.on_change and bool(config.on_change.command) == bool(config.on_change.python):
        raise ConfigError("on_change needs either a command or a python callable")
    check_hours(config)
    for rule in config.pages:
        _check_rule(rule, config.max_interval)
    for key in ("retries", "max_redirects"):
        if getattr(config.fetch, key) < 0:
            raise ConfigError(f"fetch.{key} must not be negative")


def _check_zone(host: Host) -> None:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(host.timezone or "UTC")
    except (ValueError, OSError, KeyError):
        raise ConfigError(
            f"timezone of hosts that match {host.match!r}: there is no {host.timezone!r}; write "
            "it as Europe/Berlin"
        ) from None


def _check_rule(rule: Rule, max_interval: Span | None) -> None:
    if rule.importance is not None and not 0 <= rule.importance < float("inf"):
        raise ConfigError(f"importance of {rule.named} must be 0 or more, not {rule.importance}")
    least, most = rule.min_interval, rule.max_interval or max_interval
    if least is not None and most is not None and most < least:
        raise ConfigError(
            f"max_interval of {rule.named} is {most}, below its min_interval of {least}; "
            f"raise the one or lower the other"
        )


def check_hours(config: Config) -> None:
    """Refuse windows of hours that may hold no whole tick: only one of two ticks surely does."""
    for rule in config.pages:
        if rule.hours is not None and rule.hours.length < 2 * config.tick:
            raise ConfigError(
                f"hours of {rule.named}: a window of {rule.hours.length} needs "
                f"ticks of at most {rule.hours.length / 2}, not {config.tick}; set `tick`"
            )


def split_url(url: str) -> tuple[str, str]:
    """The kind of store, and its place; a plain path is a SQLite file.

    The kind is a name, or the part itself as ``file.py:Class`` or ``module:Class``.

    >>> split_url("crawl.db"), split_url("sqlite:crawl.db"), split_url("memory:")
    (('sqlite', 'crawl.db'), ('sqlite', 'crawl.db'), ('memory', ''))
    >>> split_url("mine.py:Mine:anything"), split_url("mine.py:Mine")
    (('mine.py:Mine', 'anything'), ('mine.py:Mine', ''))
    """
    found = _URL.fullmatch(url)
    return ("sqlite", url) if found is None else (found[1], found[2] or "")


def beside(folder: Path, url: str) -> str:
    """The same store with its path, if it is one, taken from `folder`.

    >>> beside(Path("/a"), "b.db"), beside(Path("/a"), "sqlite:b.db"), beside(Path("/a"), "memory:")
    ('/a/b.db', 'sqlite:/a/b.db', 'memory:')
    """
    kind, place = split_url(url)
    if kind != "sqlite":
        return url
    return f"{url.removesuffix(place)}{folder / place}"
