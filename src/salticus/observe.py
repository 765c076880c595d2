"""What a visit taught us: (fetched, reading, what we held) → observation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from urllib.parse import urlsplit

from salticus.config import Tolerance
from salticus.types import Fetched, Observation, Reading, Status, Target, Value


def observe(target: Target, fetched: Fetched, reading: Reading) -> Observation:
    """The observation of one visit; who made it and why is filled in by the caller.

    The value decides "changed", never the bytes. Nothing is said about change when there was no
    earlier value, when the visit failed, or when the page lost its value (status `lost`).

    >>> target = Target(page=1, url="http://a/1", host="a", digest=digest("1 EUR"), seen=5)
    >>> fetched = Fetched("http://a/1", Status.OK, 9)
    >>> observe(target, fetched, Reading(Value("offer", "2 EUR"))).changed
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
        _judge(seen, target, fetched, reading)
    elif fetched.status is Status.NOT_MODIFIED and target.digest is not None:
        seen.changed, seen.digest = False, target.digest
    return seen


def _judge(seen: Observation, target: Target, fetched: Fetched, reading: Reading) -> None:
    value = reading.value
    if reading.status is not Status.OK:
        seen.status, seen.fault = reading.status.label, reading.fault
    elif _sent_home(target, fetched, value):
        seen.status, seen.fault = Status.SOFT_404.label, f"it leads to {fetched.url}, the home page"
    elif value is None:
        seen.status = Status.OK.label if target.digest is None else Status.LOST.label
        lost = "the page had a value and has none now" if target.digest else "no value found"
        seen.fault = f"{lost}: {reading.fault}" if reading.fault else lost
    else:
        seen.fault, seen.digest = reading.fault, digest(value.text)
        seen.changed = None if target.digest is None else seen.digest != target.digest
        if seen.changed is not False:
            seen.value, seen.age_s = value, _age(seen.last_modified, seen.at)


def _sent_home(target: Target, fetched: Fetched, value: Value | None) -> bool:
    """Whether what we held is gone, and the site sends us to its front door instead.

    A page that always led there and still does is none of these: the user may have added it so.
    """
    if target.digest is None or not _home(fetched.url) or _home(target.url):
        return False
    return value is None or (fetched.moved is not None and digest(value.text) != target.digest)


def _home(url: str) -> bool:
    parts = urlsplit(url)
    return parts.path in ("", "/") and not parts.query


def tolerated(before: Value, after: Value, tolerance: Mapping[str, Tolerance]) -> bool:
    """Whether two values differ only in numbers, and by less than is worth a word.

    >>> one, other = (Value("offer", f"{p} EUR", {"price": p}) for p in ("100", "100.5"))
    >>> tolerated(one, other, {"price": Tolerance.parse("1%")})
    True
    """
    texts = [before.text, after.text]
    for name, allowed in tolerance.items():
        was, now = before.fields.get(name), after.fields.get(name)
        if was is None or now is None or was == now:
            continue
        if not _covers(allowed, was, now):
            return False
        texts = [texts[0].replace(was, "\0", 1), texts[1].replace(now, "\0", 1)]
    return texts[0] == texts[1]


def _covers(allowed: Tolerance, was: str, now: str) -> bool:
    try:
        return allowed.covers(float(was), float(now))
    except ValueError:
        return False


def kept(seen: Observation, target: Target) -> None:
    """The change was too small to count: the value that was held stays."""
    seen.changed, seen.digest = False, target.digest
    seen.value = seen.age_s = None


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
