"""One table of a log under examination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from salticus.exchange.about import shown
from salticus.exchange.folder import KINDS, Log, fits, misfit, plainly
from salticus.exchange.schema import REQUIRED, TABLES
from salticus.exchange.violation import Promise, RowTally, Violation

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Faults = Mapping[str | None, str]
"""What keeps columns from being read; None stands for the whole file."""


class Checked:
    """A table, and how far it can be used: `sound` are the columns that are there and fit."""

    def __init__(self, log: Log, name: str, faults: Faults) -> None:
        self.log = log
        self.name = name
        self.file = log.path(name).name
        self.faults = faults

    @cached_property
    def schema(self) -> Mapping[str, pl.DataType]:
        """All columns and their types; none if the file cannot be read."""
        there = self.log.has(self.name) and None not in self.faults
        return self.log.schema(self.name) if there else {}

    @cached_property
    def sound(self) -> dict[str, str]:
        """The format's columns that can be used, and their kinds."""
        known = {c: kind for c, kind in TABLES[self.name].items() if c in self.schema}
        readable = {c: kind for c, kind in known.items() if c not in self.faults}
        return {c: kind for c, kind in readable.items() if fits(kind, self.schema[c])}

    @cached_property
    def rows(self) -> pl.LazyFrame:
        """The sound columns in one form, and `row`, counted from 1."""
        import polars as pl

        forms = (plainly(c, kind, self.schema[c]) for c, kind in self.sound.items())
        # one wide integer, because ids of different widths cannot be joined
        ids = [c for c, kind in self.sound.items() if kind == "id" and self.schema[c].is_integer()]
        plain = self.log.raw(self.name).select(forms).with_columns(pl.col(ids).cast(pl.Int128))
        return plain.with_row_index("row", 1)

    def distinct(self, column: str) -> pl.DataFrame:
        """The different cells of a sound column, numbered as `code`."""
        found = self.rows.select(column).drop_nulls().unique().collect(engine="streaming")
        return found.with_row_index("code")

    @cached_property
    def ids(self) -> pl.DataFrame:
        """The pages of the table: `page_id`, `code`."""
        return self.distinct("page_id")

    def columns(self) -> Iterator[Violation]:
        """The file or columns that are absent, damaged, or of the wrong type."""
        if not self.log.has(self.name):
            yield Violation(self.file, None, "no such file", "a log needs one")
            return
        for column, fault in self.faults.items():
            yield Violation(self.file, column, f"cannot be read ({fault})", "write the file anew")
        if None in self.faults:
            return
        for column, kind in TABLES[self.name].items():
            if column in self.schema and not fits(kind, self.schema[column]):
                problem = misfit(kind, self.schema[column])
                yield Violation(self.file, column, problem, _remedy(kind, self.schema[column]))
            elif column not in self.schema and column in REQUIRED[self.name]:
                yield Violation(self.file, column, "missing", "every row needs it")

    def broken(self, promise: Promise, tally: RowTally) -> Iterator[Violation]:
        """The rows that break a promise, if there are any; the first one's cell is shown."""
        if tally.first is not None:
            yield Violation(
                self.file,
                promise.column,
                promise.problem.format(self._cell(promise.column, tally.first)),
                promise.remedy,
                row=tally.first,
                count=tally.count,
                level=promise.level,
            )

    def _cell(self, column: str, row: int) -> str:
        """What stands in a row, for people; times may be such that no calendar has them."""
        import polars as pl

        time = self.sound[column] == "time"
        cell = pl.col(column).dt.epoch("us") if time else pl.col(column)
        found = self.rows.slice(row - 1, 1).select(cell).collect().item()
        if isinstance(found, str):
            return repr(shown(found))
        return _time(found) if time and found is not None else shown(found)

    def tally(self, odd: pl.LazyFrame) -> RowTally:
        """How many rows a query over `rows` leaves, and the first of them."""
        import polars as pl

        found = odd.select(pl.len(), pl.col("row").min()).collect(engine="streaming")
        return RowTally(*found.row(0))


def _time(micros: int) -> str:
    """A time in µs since 1970, as far as there is a calendar.

    >>> _time(1_500_000), _time(2**62)
    ('1970-01-01 00:00:01.500000+00:00', '4611686018427387904 µs after 1970')
    """
    try:
        return str(_EPOCH + timedelta(microseconds=micros))
    except OverflowError:
        return f"{micros} µs after 1970"


def _remedy(kind: str, found: pl.DataType) -> str:
    import polars as pl

    if kind == "time" and isinstance(found, pl.Datetime):
        return "write with the times that they are UTC"
    if kind == "time" and found == pl.Date:
        return "write the day's midnight in UTC"
    return f"write {KINDS[kind]}"
