"""What commands print: a table for people, or the same as JSON for machines."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from shutil import get_terminal_size
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import typer

from salticus.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")

_WIDE = 140  # columns of a table that is not shown on a terminal
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


def json(told: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(msgspec.json.format(_encoded(told)).decode())


def answer(told: T, as_json: bool, people: str | Callable[[T], None]) -> None:
    """Print an answer: as JSON, or for people this text, or what this prints of it."""
    if as_json:
        json(told)
    elif isinstance(people, str):
        typer.echo(people)
    else:
        people(told)


def line(told: Any) -> None:
    """One line at once, because others may wait for it: text for people, all else as JSON."""
    text = clean(told) if isinstance(told, str) else _encoded(told).decode()
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _encoded(told: Any) -> bytes:
    from salticus.views.times import plain

    return msgspec.json.encode(plain(told))


def facts_of(told: msgspec.Struct, *without: str) -> dict[str, Any]:
    """The fields of an answer by the names that they have in JSON; those not set are left out."""
    names = ((field.encode_name, field.name) for field in msgspec.structs.fields(told))
    every = {name: getattr(told, field) for name, field in names if name not in without}
    return {name: fact for name, fact in every.items() if fact is not msgspec.UNSET}


def table_of(answers: Sequence[msgspec.Struct]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Header and rows of answers of one kind."""
    rows = [facts_of(answer) for answer in answers]
    return tuple(rows[0]), [tuple(row.values()) for row in rows]


def write_json(data: Any, path: Path | None) -> bool:
    """One JSON document in the file, if one is named, or on standard output if that is `-`; False
    in this case, since people then want to see nothing else."""
    if str(path) == "-":
        json(data)
        return False
    try:
        if path is not None:
            path.write_bytes(msgspec.json.format(_encoded(data)) + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    return True


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """On a terminal, one line that says what is being done; otherwise nothing."""
    console = _stderr()
    if not console.is_terminal:
        yield lambda step: None
        return
    with console.status("…") as status:
        yield status.update


@contextmanager
def bar(total: int) -> Iterator[Callable[[int], None]]:
    """On a terminal, a bar that fills up to `total`."""
    from rich.progress import Progress

    with Progress(console=_stderr(), disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, completed=done)


def _stderr() -> Console:
    from rich.console import Console

    return Console(file=sys.stderr)


def clean(text: str) -> str:
    """Text of pages without what a terminal would obey instead of show.

    >>> clean("cheap\\x1b[31m tea")
    'cheap�[31m tea'
    """
    return _CONTROL.sub("\ufffd", text)


def facts(title: str, known: Mapping[str, Any]) -> None:
    """A title and one line a fact."""
    typer.echo(clean(title))
    width = max(map(len, known), default=0)
    for name, fact in known.items():
        typer.echo(f"  {clean(name):<{width}}  {_shown(fact)}")


def _shown(fact: Any) -> str:
    """A fact in words: nothing is "-", lists and counts are spelt out.

    >>> _shown(None), _shown({"ok": 3, "gone": 1}), _shown(True), _shown(1234)
    ('-', 'ok 3, gone 1', 'yes', '1,234')
    """
    if isinstance(fact, Mapping):
        fact = [f"{name} {count}" for name, count in fact.items()]
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, datetime):
        return _when(fact)
    if isinstance(fact, int | float):
        return f"{fact:,}"
    if isinstance(fact, list):
        fact = ", ".join(map(str, fact))
    return clean(shorten(str(fact or "-"), 200, placeholder=" …"))


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on standard output."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(*header, title=title, title_justify="left")
    for row in rows:
        grid.add_row(*(Text(clean(_cell(cell))) for cell in row))
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE).print(grid)


def columns(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A plain table, one line a row, whose last column may be as long as it is: for URLs, which
    must not be cut."""
    cells = [list(header), *([clean(_cell(cell)) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)][:-1]
    for row in cells:
        padded = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
        typer.echo("  ".join([*padded, row[-1]]))


def wrapped(text: str, first: str = "") -> None:
    """Text in lines of the terminal's width; the first begins with `first`, the others with as
    many spaces."""
    lines = wrap(
        clean(text),
        min(100, get_terminal_size().columns),
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
    typer.echo("\n".join(lines))


def _cell(cell: Any) -> str:
    """A cell as text: numbers with four digits, nothing as a dash.

    >>> _cell(0.123456), _cell(None), _cell(12), _cell("tea")
    ('0.1235', '-', '12', 'tea')
    """
    if cell is None:
        return "-"
    if isinstance(cell, datetime):
        return _when(cell)
    return f"{cell:.4g}" if isinstance(cell, float) and abs(cell) < 1e4 else str(cell)


def _when(time: datetime) -> str:
    from salticus.views.times import when

    return when(time)
