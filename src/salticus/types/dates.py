"""Times as others write them (W3C and ISO 8601 forms, and those of e-mail), and as we do."""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_tz

HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000  # µs

_SHORT = re.compile(r"\d{4}(?:-\d\d)?", re.ASCII)
_NAMED = re.compile(r"\s*(?:UTC|GMT|Z)$")
_LONGEST = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)  # before the web there were no pages
_LATEST = datetime(2100, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)


def utc(micros: int) -> str:
    """A time (µs since 1970) as text, in one form.

    >>> utc(1_767_225_600_500_000)
    '2026-01-01T00:00:00.500000Z'
    """
    text = (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def epoch_us(when: datetime) -> int:
    """A time as µs since 1970; one without a zone is UTC.

    >>> epoch_us(datetime(1970, 1, 2)) == epoch_us(datetime(1970, 1, 2, tzinfo=UTC)) == DAY_US
    True
    """
    return ((when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH) // _MICRO


@functools.lru_cache(maxsize=10_000)  # sitemaps say the same of many pages
def written(text: str | None) -> int | None:
    """The time (µs since 1970) that a text states; None if that is no time of a page.

    What is left open is taken as the earliest: a month is its first day, a day its first second.
    A time without a zone is UTC. Nothing is guessed from today's date: same text, same time.

    >>> written("1970"), written("2026-01"), written("Thu, 01 Jan 2026 01:00:00 +0100")
    (None, 1767225600000000, 1767225600000000)
    >>> written("2026-01-01T00:00:00.5Z") - written("2026")
    500000
    >>> written("yesterday"), written("2026-02-30"), written("0000-00-00")
    (None, None, None)
    """
    text = (text or "").strip()
    if not text or len(text) > _LONGEST:
        return None
    try:
        when = (_iso(text) if text[0].isdigit() else None) or _mail(text)
    except (ValueError, TypeError, IndexError, OverflowError):  # all of these are seen of parsedate
        return None
    if when is None or not _EARLIEST <= when < _LATEST:
        return None
    return epoch_us(when)


def _iso(text: str) -> datetime | None:
    if _SHORT.fullmatch(text):
        text += "-01-01" if len(text) == 4 else "-01"
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        bare = _NAMED.sub("+00:00", text.upper()).replace(" +", "+").replace(" -", "-")
        return None if bare == text else _iso(bare)
    return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)


def _mail(text: str) -> datetime | None:
    """As in ``Fri, 02 Jan 2026 10:00:00 GMT``, which RSS took over from e-mail."""
    parts = parsedate_tz(text)
    if parts is None:
        return None
    year, month, day, hour, minute, second = parts[:6]
    zone = timezone(timedelta(seconds=parts[9] or 0))
    return datetime(year, month, day, hour, minute, second, tzinfo=zone).astimezone(UTC)
