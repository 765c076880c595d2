"""What the rows of each page must keep among themselves: times that grow, values that differ.

The table passes by in pieces, and of each page only its last row is remembered: memory grows with
the pages, not with the rows, and the rows of a page need not stand together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from salticus.exchange.violation import RowTally
from salticus.types import Bools, Ints

if TYPE_CHECKING:  # polars takes a tenth of a second to import, so it is imported where used
    import polars as pl
    from numpy.typing import NDArray

_PIECE = 250_000  # rows
_NEVER = np.iinfo(np.int64).min


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
    import polars as pl

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
