"""Times and counts: one form in JSON, and one for people."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from salticus.types.dates import epoch_us, utc

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS = ((60, 1, "s"), (3600, 60, "min"), (2 * 86_400, 3600, "h"), (float("inf"), 86_400, "d"))


def moment(micros: int) -> datetime:
    """A time of the store (µs since 1970)."""
    return _EPOCH + timedelta(microseconds=micros)


def known(micros: int | None) -> datetime | None:
    """The same, if there is one."""
    return None if micros is None else moment(micros)


def when(time: datetime | int | None) -> str:
    """A time for people.

    >>> when(1_767_225_600_000_000)
    '2026-01-01 00:00:00Z'
    """
    if time is None:
        return "never"
    at = moment(time) if isinstance(time, int) else time
    return at.strftime("%Y-%m-%d %H:%M:%SZ")


def iso(micros: int | None) -> str | None:
    """A time for machines.

    >>> iso(1_767_225_600_500_000)
    '2026-01-01T00:00:00.500000Z'
    """
    return None if micros is None else utc(micros)


def plain(answer: Any) -> Any:
    """An answer for machines: what JSON knows, times in ISO 8601.

    >>> plain({"at": moment(1_767_225_600_000_000), "n": 1})
    {'at': '2026-01-01T00:00:00.000000Z', 'n': 1}
    """
    told = msgspec.to_builtins(answer, builtin_types=(datetime,), enc_hook=_item, str_keys=True)
    return _spelt(told)


def _item(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def _spelt(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: _spelt(each) for name, each in told.items()}
    if isinstance(told, list | tuple):
        return [_spelt(each) for each in told]
    return utc(epoch_us(told)) if isinstance(told, datetime) else told


def spaced(**others: str) -> Callable[[str], str]:
    """How an answer names its fields in JSON: with spaces, but for these.

    >>> spaced(end="to")("last_visit"), spaced(end="to")("end")
    ('last visit', 'to')
    """
    return lambda name: others.get(name, name.replace("_", " "))


def ago(time: datetime | None, now: datetime) -> str:
    """How long ago, in the unit that suits.

    >>> ago(_EPOCH, moment(90_000_000)), ago(None, _EPOCH)
    ('1min ago', '-')
    """
    return "-" if time is None else f"{span((now - time).total_seconds())} ago"


def span(seconds: float) -> str:
    """A length of time in the unit that suits.

    >>> span(0.2), span(7200), span(200_000)
    ('0s', '2h', '2d')
    """
    seconds = max(0.0, seconds)
    unit, name = next((unit, name) for end, unit, name in _STEPS if seconds < end)
    return f"{int(seconds // unit)}{name}"


def counted(count: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "page"), counted(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
