"""What `log.json` says of a log: its name, how finely its times are known, where it comes from."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from salticus.config import duration
from salticus.errors import InputError

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class LogMetadata:
    """What `log.json` says of a log. `resolution` is how finely its times are known."""

    name: str
    resolution: timedelta | None = None
    demand_bucket: timedelta | None = None
    rest: dict[str, Any] = field(default_factory=dict)

    def ends(self) -> tuple[datetime, datetime] | None:
        """The first and the last instant of `span`, if it is given; ValueError if it is not right.

        Both are within the log. A bare date stands for its whole day.

        >>> first, last = LogMetadata("x", rest={"span": ["2026-01-01", "2026-01-31"]}).ends()
        >>> str(first), str(last)
        ('2026-01-01 00:00:00+00:00', '2026-01-31 23:59:59.999999+00:00')
        """
        span = self.rest.get("span")
        if span is None:
            return None
        if not isinstance(span, list) or len(span) != 2:
            raise ValueError(f"{shown(span)} is not a list of two times")
        first, last = _instant(span[0]), _instant(span[1])
        if _DAY.fullmatch(span[1]):
            last += timedelta(days=1) - timedelta(microseconds=1)
        if last < first:
            raise ValueError(f"it ends ({span[1]}) before it begins ({span[0]})")
        return first, last


def read_about(path: Path) -> dict[str, Any]:
    """What `log.json` holds; InputError says why it cannot be read."""
    try:
        raw = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error})") from error
    if not isinstance(raw, dict):
        raise InputError(f"{path}: not a JSON object")
    return raw


def about_of(folder: Path) -> LogMetadata:
    """What a log says of itself; without `log.json`, nothing but the name of its folder."""
    path = folder / "log.json"
    if not path.exists():
        return LogMetadata(folder.resolve().name)
    raw = read_about(path)
    return LogMetadata(
        name=str(raw.get("name") or folder.resolve().name),
        resolution=_length(path, raw, "resolution"),
        demand_bucket=_length(path, raw, "demand_bucket"),
        rest=raw,
    )


def length(given: Any) -> timedelta:
    """A length of time as `log.json` gives it; ValueError if it is none."""
    try:
        span = duration(given)
    except OverflowError:
        raise ValueError(f"{shown(given)} is too long") from None
    if not span:
        raise ValueError("it must be more than 0")
    return span


def shown(given: Any) -> str:
    """Something out of a file, short enough for a message.

    >>> shown([1]), len(shown("long" * 1000))
    ('[1]', 100)
    """
    text = str(given)
    return text if len(text) <= 100 else text[:99] + "…"


def _instant(text: Any) -> datetime:
    try:
        when = datetime.fromisoformat(text)
        if _DAY.fullmatch(text):
            return when.replace(tzinfo=UTC)
        if when.tzinfo is not None:
            return when.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{shown(text)} is not a time such as 2026-01-31T12:00:00Z") from None
    raise ValueError(f"{text} has no time zone; write {text}Z if it is UTC")


def _length(path: Path, raw: dict[str, Any], key: str) -> timedelta | None:
    if raw.get(key) is None:
        return None
    try:
        return length(raw[key])
    except ValueError as error:
        raise InputError(f"{path}: `{key}`: {error}") from None
