"""Laws that every clock obeys."""

from __future__ import annotations

from datetime import timedelta

from salticus.clock import Clock


async def check_clock(clock: Clock) -> None:
    """Run all laws of `Clock`; it takes 20 ms of wall time at most."""
    assert clock.speed > 0, "law: time goes forward"
    first = clock.now()
    offset = first.utcoffset()
    assert offset is not None, "law: world time is aware"
    assert not offset, "law: world time is UTC"
    times = [(clock.now(), clock.wall()) for _ in range(1000)]
    for series in zip(*times, strict=True):
        assert list(series) == sorted(series), "law: neither world time nor wall time goes back"
    target = first + timedelta(seconds=0.02 * clock.speed)
    await clock.until(target)
    assert clock.now() >= target, "law: `until` returns at or after the time"
    before = clock.wall()
    await clock.until(first)
    assert clock.wall() >= before, "law: waiting for the past is allowed, and time does not go back"
