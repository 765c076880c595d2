"""The calibration table: published, ours, difference, bound, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from salticus.lab.studies.calibration.published import Measured, Statistic

HEADER = ("statistic", "source", "published", "ours", "difference", "bound", "holds")


class CalibrationRow(msgspec.Struct, frozen=True):
    """One line of the table. `spread` is a standard deviation over subsets, if there is one."""

    preset: str
    statistic: str
    source: str
    published: float | tuple[str, ...]
    ours: float | tuple[str, ...]
    difference: float | str
    bound: float | str
    ok: bool
    spread: float | None = None
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """The line as text, in the order of HEADER."""
        ours = _shown(self.ours)
        return (
            self.statistic,
            self.source,
            "above 1" if self.bound == "> 1" else _shown(self.published),
            ours if self.spread is None else f"{ours} ({self.spread:.3f})",
            self._difference(),
            self.bound if isinstance(self.bound, str) else f"{self.bound:g}",
            "ok" if self.ok else "miss",
        )

    def _difference(self) -> str:
        """With a digit more than usual where the bound is small."""
        if isinstance(self.difference, str):
            return self.difference
        fine = isinstance(self.bound, float) and self.bound < 0.01
        return f"{self.difference:+.4f}" if fine else f"{self.difference:+.3f}"


def rows(
    statistics: Iterable[Statistic],
    measured: Mapping[str, Measured],
    spreads: Mapping[str, float] | None = None,
) -> list[CalibrationRow]:
    """A line for every statistic that was measured."""
    return [
        CalibrationRow(
            s.preset, s.name, s.source, s.value, ours, *_compared(s, ours),
            spread=(spreads or {}).get(s.key), note=s.note,
        )
        for s in statistics
        if (ours := measured.get(s.key)) is not None
    ]  # fmt: skip


def _compared(statistic: Statistic, ours: Measured) -> tuple[float | str, float | str, bool]:
    """Difference, bound and verdict; a figure that is not a number is a miss.

    >>> _compared(Statistic("k", "n", "s", "p", ("a", "b")), ("b", "c"))
    ('1 of 2 agree', 'same', False)
    """
    published = statistic.value
    if isinstance(published, tuple) or isinstance(ours, tuple):
        wanted, found = (set(x if isinstance(x, tuple) else ()) for x in (published, ours))
        return f"{len(wanted & found)} of {len(wanted)} agree", "same", wanted == found
    difference = ours - published
    if statistic.bound is None:
        return difference, f"> {published:g}", difference > 0
    return difference, statistic.bound, abs(difference) <= statistic.bound


def _shown(value: Measured) -> str:
    """A value in words or with four digits.

    >>> _shown(("a", "b")), _shown(1 / 49), _shown(0.746)
    ('a, b', '0.0204', '0.746')
    """
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:.4f}" if abs(value) < 0.1 else f"{value:.3f}"


def summary(table: Sequence[CalibrationRow]) -> dict[str, object]:
    """How many lines hold, and which do not."""
    missed = [f"{row.preset}: {row.statistic}" for row in table if not row.ok]
    return {"ok": len(table) - len(missed), "missed": missed}


def markdown(table: Sequence[CalibrationRow]) -> str:
    """The table as Markdown, one for each preset, then the notes."""
    presets = dict.fromkeys(row.preset for row in table)
    tables = {preset: [row for row in table if row.preset == preset] for preset in presets}
    return "\n".join(f"## {preset}\n\n{_grid(lines)}\n" for preset, lines in tables.items())


def _grid(table: Sequence[CalibrationRow]) -> str:
    head = [HEADER, tuple("---" for _ in HEADER)]
    lines = ["| " + " | ".join(cells) + " |" for cells in (*head, *(r.cells() for r in table))]
    notes = [f"{row.statistic}: {row.note}." for row in table if row.note]
    return "\n".join([*lines, "", *notes] if notes else lines)
