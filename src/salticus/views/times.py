"""Times as people and machines read them. All are µs since 1970, UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from salticus.types.dates import utc

_STEPS = ((60, 1, "s"), (3600, 60, "min"), (2 * 86_400, 3600, "h"), (float("inf"), 86_400, "d"))


def when(micros: int | None) -> str:
    """A time for people.

    >>> when(1_767_225_600_000_000)
    '2026-01-01 00:00:00Z'
    """
    if micros is None:
        return "never"
    return datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def iso(micros: int | None) -> str | None:
    """A time for machines.

    >>> iso(1_767_225_600_500_000)
    '2026-01-01T00:00:00.500000Z'
    """
    return None if micros is None else utc(micros)


def ago(micros: int | None, now: int) -> str:
    """How long ago, in the unit that suits.

    >>> ago(0, 90_000_000), ago(0, 3 * 86_400_000_000), ago(None, 0)
    ('1min ago', '3d ago', '-')
    """
    return "-" if micros is None else f"{span((now - micros) / 1e6)} ago"


def span(seconds: float) -> str:
    """A length of time in the unit that suits.

    >>> span(0.2), span(7200), span(200_000)
    ('0s', '2h', '2d')
    """
    seconds = max(0.0, seconds)
    unit, name = next((unit, name) for end, unit, name in _STEPS if seconds < end)
    return f"{int(seconds // unit)}{name}"
