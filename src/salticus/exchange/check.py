"""Whether a folder is a log: every promise of the format that it breaks, with where and what to do.

Tables are streamed, never held: what is kept in memory is the ids of the pages, and one row a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from salticus.exchange.folder import TABLES, Log, shown
from salticus.exchange.probe import damage
from salticus.exchange.rules import (
    Checked,
    Faults,
    Level,
    Promise,
    RowTally,
    Violation,
    check_about,
    rules_of,
)
from salticus.types import Bools, Ints

_PIECE = 250_000  # rows
_NEVER = np.iinfo(np.int64).min

_SORTED = ("values", "texts")
_ONCE: dict[str, Level] = {"values": "violation", "texts": "warning", "demand": "violation"}


def check(folder: Path) -> list[Violation]:
    """Everything that is wrong with a log, in order of its files.

    Files are first read in a child process, so that even damage that kills a reader is named.
    """
    if not folder.is_dir():
        return [Violation(str(folder), None, "no such folder", "name the folder of a log")]
    files = (folder / f"{table}.parquet" for table in TABLES)
    return examine(folder, damage([path for path in files if path.is_file()]))


def examine(folder: Path, damaged: Mapping[Path, Faults] | None = None) -> list[Violation]:
    """The same, where it is known already which files and columns cannot be read."""
    about, found = check_about(folder)
    log = Log(folder, about)
    faults = damaged or {}
    tables = {name: Checked(log, name, faults.get(log.path(name), {})) for name in TABLES}
    for table in tables.values():
        if log.has(table.name) or table.name == "pages":
            found += _table(table, tables["pages"])
    return found + list(_strangers(folder))


def _strangers(folder: Path) -> Iterator[Violation]:
    """Files that nobody reads, perhaps because their name is misspelt."""
    for path in sorted(folder.glob("*.parquet")):
        if path.stem not in TABLES:
            problem = "not a table of the format, so it is not read"
            yield Violation(path.name, None, problem, "rename or remove it", level="warning")


def _table(table: Checked, pages: Checked) -> Iterator[Violation]:
    yield from table.columns()
    yield from _said(table)
    if table.sound:
        yield from _cells(table)
        yield from _twice(table) if table is pages else _among(table, pages)


def _said(table: Checked) -> Iterator[Violation]:
    """A table of another length than `log.json` says."""
    rows = table.log.about.rest.get("rows")
    said = rows.get(table.name) if isinstance(rows, dict) else None
    if said is not None and table.schema and said != (found := table.log.rows(table.name)):
        problem = f"{shown(said)} for {table.file}, which has {found}"
        remedy = "correct it, or find the rest"
        yield Violation("log.json", "rows", problem, remedy, level="warning")


def _cells(table: Checked) -> Iterator[Violation]:
    """What is wrong with single rows, found in one pass."""
    rules = rules_of(table.name, set(table.sound), table.log.about)
    if not rules:
        return
    bad = [expression.fill_null(value=False) for _, expression in rules]
    counts = [each.sum().alias(f"count{n}") for n, each in enumerate(bad)]
    firsts = [pl.col("row").filter(each).min().alias(f"first{n}") for n, each in enumerate(bad)]
    found = table.rows.select(counts + firsts).collect(engine="streaming").row(0)
    for n, (promise, _) in enumerate(rules):
        yield from table.broken(promise, RowTally(found[n], found[len(rules) + n]))


def _twice(pages: Checked) -> Iterator[Violation]:
    """Pages that have more than one row."""
    if "page_id" not in pages.sound:
        return
    given = pages.rows.filter(pl.col("page_id").is_not_null())
    if pages.tally(given).count > len(pages.ids):
        again = given.filter(~pl.col("page_id").is_first_distinct())
        promise = Promise("page_id", "{} has a row already", "keep one row a page")
        yield from pages.broken(promise, pages.tally(again))


def _among(table: Checked, pages: Checked) -> Iterator[Violation]:
    """What is wrong with the ids of a table, and with the rows of a page beside one another."""
    ids = [c for c, kind in table.sound.items() if kind == "id" and "page_id" in pages.sound]
    for column in ids:
        if _alike(table, column, pages):
            yield from _unknown(table, column, pages.ids)
        else:
            theirs = pages.schema["page_id"]
            problem = f"{table.schema[column]}, but `page_id` of pages.parquet is {theirs}"
            yield Violation(table.file, column, problem, "use one type of id throughout")
    if "host" in table.sound and "host" in pages.sound:
        yield from _unknown(table, "host", pages.distinct("host"), "warning")
    if table.name in _ONCE and {"page_id", "at"} <= table.sound.keys():
        yield from _order(table, pages)


def _alike(table: Checked, column: str, pages: Checked) -> bool:
    """Whether a column and the ids of `pages` are both text, or both numbers, or nothing at all."""
    types = (table.schema[column], pages.schema["page_id"])
    return types[0].is_integer() == types[1].is_integer() or pl.Null in types


def _unknown(
    table: Checked, column: str, known: pl.DataFrame, level: Level = "violation"
) -> Iterator[Violation]:
    """Cells that are not among those known."""
    there = known.lazy().select(pl.exclude("code").alias(column))
    asked = table.rows.select("row", column).filter(pl.col(column).is_not_null())
    if len(known):
        asked = asked.join(there, on=column, how="anti")
    remedy = "add it there, or leave these rows out"
    promise = Promise(column, "{} is not in pages.parquet", remedy, level)
    yield from table.broken(promise, table.tally(asked))


def _order(table: Checked, pages: Checked) -> Iterator[Violation]:
    """Times out of order, two rows of a page at one time, change points without a change."""
    known = "page_id" in pages.sound and _alike(table, "page_id", pages)
    value = "value" if table.name == "values" and "value" in table.sound else None
    order = order_of(table.rows, pages.ids if known else table.ids, value)
    if table.name in _SORTED:
        problem = "{} is earlier than the row before it of the same page"
        yield from table.broken(Promise("at", problem, "sort by page_id, at"), order.early)
    again = order.again if order.early.first is None else _again(table)
    problem = "{} is the time of an earlier row of the same page"
    promise = Promise("at", problem, "keep one row a page and time", _ONCE[table.name])
    yield from table.broken(promise, again)
    if order.early.first is None:  # else rows side by side are not neighbours in time
        problem = "{} is what the page had before"
        promise = Promise("value", problem, "keep only rows at which the value changes")
        yield from table.broken(promise, order.repeated)


def _again(table: Checked) -> RowTally:
    """Rows at a time that their page has had, in a table out of order; holds its ids and times."""
    given = table.rows.filter(pl.col("page_id").is_not_null() & pl.col("at").is_not_null())
    return table.tally(given.filter(~pl.struct("page_id", "at").is_first_distinct()))


@dataclass(slots=True)
class Order:
    """Rows that come before the row above them of the same page, at its time, or with its value."""

    early: RowTally = field(default_factory=RowTally)
    again: RowTally = field(default_factory=RowTally)
    repeated: RowTally = field(default_factory=RowTally)


def order_of(rows: pl.LazyFrame, ids: pl.DataFrame, value: str | None = None) -> Order:
    """Compare each row with the one before it of its page.

    `rows` has `row`, `page_id`, `at` and the column `value`, if one is named; `ids` numbers the
    pages (`page_id`, `code`). Rows without page or time are passed over. Values are compared by a
    64-bit hash.
    """
    look = pl.col(value).hash() if value else pl.lit(0, pl.UInt64)
    found = rows.join(ids.lazy(), on="page_id", how="left", maintain_order="left")
    pieces = (
        found.select("row", "code", at=pl.col("at").dt.epoch("us"), look=look)
        .filter(pl.col("code").is_not_null() & pl.col("at").is_not_null())
        .collect_batches(chunk_size=_PIECE)
    )
    past = _Past(len(ids))
    order = Order()
    for piece in pieces:
        row, code, at, look_ = (piece[name].to_numpy() for name in ("row", "code", "at", "look"))
        early, again, same = past.compare(code, at, look_)
        _count(order.early, row[early])
        _count(order.again, row[again])
        _count(order.repeated, row[same & ~early & ~again] if value else row[:0])
    return order


def _count(tally: RowTally, rows: NDArray[np.uint32]) -> None:
    """Add rows to a tally; calls come in order of the file."""
    if len(rows):
        tally.count += len(rows)
        tally.first = int(rows[0]) if tally.first is None else tally.first


class _Past:
    """The last row of every page so far."""

    def __init__(self, pages: int) -> None:
        self._at = np.full(pages, _NEVER, dtype=np.int64)
        self._look = np.zeros(pages, dtype=np.uint64)

    def compare(
        self, code: NDArray[np.uint32], at: Ints, look: NDArray[np.uint64]
    ) -> tuple[Bools, Bools, Bools]:
        """Which of these rows are earlier than, at the time of, and look like their page's last.

        They become the last rows in their turn.
        """
        turn = np.argsort(code, kind="stable")  # the rows of a page side by side, in their order
        code, at, look = code[turn], at[turn], look[turn]
        begins = np.ones(len(code), dtype=np.bool_)
        begins[1:] = code[1:] != code[:-1]
        before, looked = np.roll(at, 1), np.roll(look, 1)
        before[begins], looked[begins] = self._at[code[begins]], self._look[code[begins]]
        ends = np.roll(begins, -1)
        self._at[code[ends]], self._look[code[ends]] = at[ends], look[ends]
        back = np.empty_like(turn)
        back[turn] = np.arange(len(turn))
        same = (look == looked) & (before != _NEVER)
        return (at < before)[back], (at == before)[back], same[back]
