"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer

from salticus.config import Budget, Config, duration, load

ConfigFile = Annotated[
    Path, typer.Option("--config", "-c", help="The settings, a TOML file.", show_default=True)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
DEFAULT = Path("salticus.toml")

T = TypeVar("T")


def settings(
    path: Path,
    *,
    policy: str | None = None,
    budget: str | None = None,
    tick: str | None = None,
    seed: int | None = None,
) -> Config:
    """The settings of the file, with those given as flags in their place."""
    given = {
        "policy": policy,
        "budget": None if budget is None else flag("budget", Budget.parse, budget),
        "tick": None if tick is None else flag("tick", duration, tick),
        "seed": seed,
    }
    found = {key: value for key, value in given.items() if value is not None}
    return msgspec.structs.replace(load(path), **found)


def span(name: str, text: str | None) -> timedelta | None:
    """The length of time given to the flag `name`, if any."""
    return None if text is None else flag(name, duration, text)


def day(name: str, text: str | None) -> datetime | None:
    """The day or time given to the flag `name`, if any; UTC if it names no zone."""
    if text is None:
        return None
    when = flag(name, datetime.fromisoformat, text)
    return when.replace(tzinfo=when.tzinfo or UTC).astimezone(UTC)


def flag(name: str, parse: Callable[[str], T], text: str) -> T:
    """What is given to the flag `name`; its error names the flag."""
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"--{name}: {error}") from None
