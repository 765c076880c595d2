"""What a check found: good, doubtful or bad, in words, with advice."""

from __future__ import annotations

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One line of the doctor's report; `advice` says what to do, if anything."""

    level: Literal["ok", "warn", "fail"]
    about: str
    said: str
    advice: str = ""


def good(about: str, said: str) -> Finding:
    """All is well with this."""
    return Finding("ok", about, said)


def doubtful(about: str, said: str, advice: str = "") -> Finding:
    """This works, but perhaps not as wished."""
    return Finding("warn", about, said, advice)


def bad(about: str, said: str, advice: str = "") -> Finding:
    """This does not work."""
    return Finding("fail", about, said, advice)
