"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

import msgspec
import typer

from salticus.config import Budget, Config, duration, load

if TYPE_CHECKING:
    from salticus.crawl.opening import Crawl


P = ParamSpec("P")
T = TypeVar("T")


def opt(default: T, help: str, *names: str, **more: Any) -> T:
    """An option: its default, what it is for, and its names if they are not the parameter's."""
    made: T = typer.Option(default, *names, help=help, **more)
    return made


def arg(default: T, help: str, **more: Any) -> T:
    """An argument: its default, and what it is for."""
    made: T = typer.Argument(default, help=help, **more)
    return made


Texts = list[str] | None
PageKind = Literal["offer", "article", "page", "source"]

REQUIRED: Any = ...  # in place of a default
SETTINGS = Path("salticus.toml")
CONFIG = opt(SETTINGS, "The settings, a TOML file.", "--config", "-c")
JSON = opt(False, "Print JSON instead of a table.", "--json")
JSON_FILE: Path | None = opt(None, "Write the result as JSON (- = print).", "--json")
CHARTS: Path | None = opt(None, "Write charts to this HTML file.")
SEED = opt(0, "Random seed, for repeatable runs.")
WINDOW = opt("24h", "The time looked back on, e.g. 24h or 7d.")
LABELS: Texts = opt(None, "A label; may be repeated.")
LOG_FOLDER: Path = arg(REQUIRED, "A log: a folder of Parquet files.", metavar="LOG")
URL: str = arg(REQUIRED, "A page's URL, as it was added.")
PATTERN: str | None = arg(None, "A URL, a part of one, or a pattern: `*` stands for anything.")
OF_TAG: str | None = opt(None, "Only pages with this label.")
OF_HOST: str | None = opt(None, "Only pages of this host; `*` stands for anything.")
OF_KIND: PageKind | None = opt(
    None, "Only of this kind: offer, article, page, source.", metavar="KIND"
)


def from_options(kind: type[T], given: Mapping[str, Any], **others: Any) -> T:
    """A `kind` made of the options that have the names of its fields, and of the others."""
    names = signature(kind).parameters
    return kind(**{name: each for name, each in given.items() if name in names} | others)


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


def ask(
    config: Path,
    question: Callable[Concatenate[Crawl, P], Awaitable[T]],
    *given: P.args,
    **named: P.kwargs,
) -> T:
    """What the crawl of a settings file answers to a question, which is asked with the rest."""
    from salticus.crawl.opening import open_crawl

    async def asked() -> T:
        async with open_crawl(settings(config)) as crawl:
            return await question(crawl, *given, **named)

    return waited(asked())


def waited(work: Coroutine[Any, Any, T]) -> T:
    """What comes of work that waits for others. `--help` does not, and is to be quick."""
    import asyncio

    return asyncio.run(work)


def span(name: str, text: str | None) -> timedelta | None:
    """The length of time given to the flag `name`, if any."""
    return None if text is None else flag(name, duration, text)


def day(name: str, text: str | None) -> datetime | None:
    """The day or time given to the flag `name`, if any; UTC if it names no zone."""
    if text is None:
        return None
    when = flag(name, datetime.fromisoformat, text)
    return when.replace(tzinfo=when.tzinfo or UTC).astimezone(UTC)


def moment(name: str, text: str | None, now: datetime) -> datetime | None:
    """The time given to the flag `name`, if any: a day, a time, or how long before `now`."""
    if text is None:
        return None
    with suppress(ValueError):
        return now - duration(text)
    with suppress(typer.BadParameter):
        return day(name, text)
    what = f"--{name}: {text!r} is no time; write 2h, 3d, 2026-01-31 or 2026-01-31T12:00"
    raise typer.BadParameter(what)


def flag(name: str, parse: Callable[[str], T], text: str) -> T:
    """What is given to the flag `name`; its error names the flag."""
    try:
        return parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"--{name}: {error}") from None
