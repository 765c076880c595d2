"""What is wrong with a log: where, what, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["violation", "warning"]


@dataclass(frozen=True, slots=True)
class Promise:
    """What the cells of a column keep: how a breach of it is put, and what to do about one.

    `{}` in `problem` is where the offending cell is shown.
    """

    column: str
    problem: str
    remedy: str
    level: Level = "violation"


@dataclass(slots=True)
class RowTally:
    """How many rows, and the first of them, counted from 1."""

    count: int = 0
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that breaks a promise of the format, or (level "warning") that is odd.

    `row` is the first row concerned, counted from 1, and `count` how many rows there are. In
    `log.json` a column is a name of the object.

    >>> print(Violation("values.parquet", "at", "early", "sort by page_id, at", row=17, count=4))
    values.parquet: column `at`, row 17 (and 3 more): early; sort by page_id, at
    """

    file: str
    column: str | None
    problem: str
    remedy: str
    row: int | None = None
    count: int | None = None
    level: Level = "violation"

    def __str__(self) -> str:
        return f"{self.file}: {self._where()}{self.problem}; {self.remedy}"

    def _where(self) -> str:
        noun = "" if self.file.endswith(".json") else "column "
        parts = [f"{noun}`{self.column}`"] if self.column else []
        if self.row is not None:
            more = f" (and {self.count - 1:,} more)" if self.count and self.count > 1 else ""
            parts.append(f"row {self.row}{more}")
        return ", ".join(parts) + ": " if parts else ""
