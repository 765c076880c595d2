"""What a visit taught us: (fetched, value, what we held) → observation. Pure."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from hashlib import blake2b

from salticus.types import Fetched, Observation, Status, Target, Value


def observe(target: Target, fetched: Fetched, value: Value | None) -> Observation:
    """The observation of one visit; who made it and why is filled in by the caller.

    The value decides "changed", never the bytes. Nothing is said about change when there was no
    earlier value, when the visit failed, or when the page lost its value (status `lost`).

    >>> target = Target(page=1, url="http://a/", host="a", digest=digest("1 EUR"), seen=5)
    >>> observe(target, Fetched("http://a/", Status.OK, 9), Value("offer", "2 EUR")).changed
    True
    """
    seen = Observation(
        visit=0,
        page=target.page,
        at=fetched.at,
        purpose="policy",
        propensity=1.0,
        status=fetched.status.label,
        code=fetched.code,
        since=target.seen if target.digest is not None else None,
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        fault=fetched.fault,
        size=len(fetched.body),
        elapsed_s=fetched.elapsed_s,
    )
    if fetched.status is Status.OK:
        _judge(seen, target, value)
    elif fetched.status is Status.NOT_MODIFIED and target.digest is not None:
        seen.changed, seen.digest = False, target.digest
    return seen


def _judge(seen: Observation, target: Target, value: Value | None) -> None:
    if value is None:
        if target.digest is not None:
            seen.status = Status.LOST.label
        seen.fault = "the page had a value and has none now" if target.digest else "no value found"
        return
    seen.digest = digest(value.text)
    if seen.digest == target.digest:
        seen.changed = False
        return
    seen.changed = None if target.digest is None else True
    seen.value = value
    seen.age_s = _age(seen.last_modified, seen.at)


def digest(text: str) -> str:
    """A short name for a value: equal texts, equal digests."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _age(last_modified: str | None, at: int) -> float | None:
    """Seconds since the server says the page last changed; None if it does not say, or nonsense."""
    if last_modified is None:
        return None
    try:
        age = at / 1e6 - parsedate_to_datetime(last_modified).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None
    return age if age >= 0 else None
