"""The policies in words."""

from __future__ import annotations

import inspect

import msgspec

from salticus import allocate, plugins


class PolicyView(msgspec.Struct, frozen=True):
    """A policy: its name, where it is, a sentence about it, and the rest of its description."""

    name: str
    where: str
    summary: str
    text: str


def policies() -> list[PolicyView]:
    """Those that come with Salticus."""
    return [policy(name) for name in allocate.BUILTIN]


def policy(name: str) -> PolicyView:
    """A policy by its name, or ``file.py:Class``."""
    part = plugins.load("policy", name, allocate.BUILTIN)
    plain = name.replace("-", "_")
    known = plain if plain in allocate.BUILTIN else name
    lines = (inspect.getdoc(part) or "").split("\n>>> ")[0].strip().splitlines() or [""]
    text = "\n".join(lines[1:]).strip()
    return PolicyView(known, allocate.BUILTIN.get(known, name), lines[0], text)
