"""What commands print: a table for people, or the same as JSON for machines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from textwrap import shorten
from typing import Any

import msgspec
import typer


def print_json(data: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(msgspec.json.format(msgspec.json.encode(data, enc_hook=_plain)).decode())


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """A title and one line a fact."""
    typer.echo(title)
    width = max(map(len, facts), default=0)
    for name, fact in facts.items():
        typer.echo(f"  {name:<{width}}  {_shown(fact)}")


def _shown(fact: Any) -> str:
    """A fact in words: nothing is "-", lists and counts are spelt out.

    >>> _shown(None), _shown({"ok": 3, "gone": 1}), _shown(True), _shown(1234)
    ('-', 'ok 3, gone 1', 'yes', '1,234')
    """
    if isinstance(fact, Mapping):
        fact = [f"{name} {count}" for name, count in fact.items()]
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, int | float):
        return f"{fact:,}"
    if isinstance(fact, list):
        fact = ", ".join(map(str, fact))
    return shorten(str(fact or "-"), 200)


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on standard output."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*header, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    Console(file=sys.stdout).print(table)
