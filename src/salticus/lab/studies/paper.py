"""What studies of papers share: published figures beside ours, as JSON, CSV and a page."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np

from salticus.charts.paper import write_paper
from salticus.errors import ConfigError
from salticus.exchange.folder import Log
from salticus.exchange.place import in_place
from salticus.lab.studies.prediction.arena import ArenaSettings, Told
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.types import Floats

A = TypeVar("A")
B = TypeVar("B")
Row = dict[str, Any]

FIGURES = ("published", "ours", "difference", "low", "high", "note")
"""The columns of every table, after those that say what a row is about."""


class Measured(NamedTuple):
    """A figure of ours with its 95 % interval, if one is known."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a figure is drawn: columns as ``hour:Q``, a colour and a panel for each value of two.

    `points` are drawn if given, otherwise the rows of the table; `points` as a kind shows the span
    from `low` to `high` of each, too. With `log` both axes are logarithmic.
    """

    kind: Literal["lines", "bars", "points"]
    x: str
    y: str = "ours:Q"
    colour: str = ""
    panel: str = ""
    titles: tuple[str, str] = ("", "")
    log: bool = False
    points: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table or figure of the paper, with ours beside it.

    `key` names its CSV file; `about` are the columns that say what a row is about; `words` say what
    the figures are, and `remarks` what a reader must know of the whole.
    """

    key: str
    title: str
    words: str
    about: tuple[str, ...]
    rows: Sequence[Row]
    drawings: Sequence[Drawing] = ()
    remarks: Sequence[str] = ()


def compared(
    about: Row,
    ours: Measured | float | None,
    published: float | None = None,
    *,
    bound: float = 0.0,
    why: str = "",
) -> Row:
    """A row: what it is about, both figures, their difference, our interval, and where they part.

    They part where the published figure lies outside our interval and differs from ours by more
    than `bound`; `why` is then said. What is not a number is None.

    >>> row = compared({"m": "dnn"}, Measured(0.86, 0.85, 0.87), 0.875, why="Fewer examples.")
    >>> row["difference"], row["note"]
    (-0.015, 'Ours is lower. Fewer examples.')
    """
    value, low, high = map(figure, ours if isinstance(ours, Measured) else Measured(ours))
    published = figure(published)
    difference, note = None, ""
    if value is not None and published is not None:
        difference = figure(value - published)
        inside = low is not None and high is not None and low <= published <= high
        if not inside and abs(value - published) > bound:
            note = f"Ours is {'lower' if value < published else 'higher'}. {why}".strip()
    told = (published, value, difference, low, high, note)
    return {**about, **dict(zip(FIGURES, told, strict=True))}


def claim(what: str, source: str, holds: bool | None, figures: str) -> Row:
    """Something that the paper says, whether it was reproduced (None: cannot be told), and by which
    figures."""
    return {"claim": what, "source": source, "holds": holds, "figures": figures}


def figure(value: float | None) -> float | None:
    """A number to six digits; None if it is none.

    >>> figure(1 / 3), figure(float("nan")), figure(None)
    (0.333333, None, None)
    """
    if value is None or not np.isfinite(value):
        return None
    return float(f"{float(value):.6g}")


def mean_of(values: Floats) -> Measured:
    """The mean of periods or runs, and its 95 % interval by Student's t; of fewer than two none.

    >>> mean_of(np.array([1.0, 2.0, 3.0, np.nan]))
    Measured(value=2.0, low=-0.484138, high=4.48414)
    """
    from scipy.stats import t

    some = values[np.isfinite(values)]
    n = len(some)
    if n < 2:
        return Measured(figure(some[0]) if n else None)
    mean = float(some.mean())
    off = float(t.ppf(0.975, n - 1) * some.std(ddof=1) / np.sqrt(n))
    return Measured(figure(mean), figure(mean - off), figure(mean + off))


def median_of(values: Floats) -> Measured:
    """The median, and its 95 % interval between two of the values (by the binomial distribution,
    whatever theirs is); of fewer than six values there is none.

    >>> median_of(np.arange(1.0, 12.0))
    Measured(value=6.0, low=2.0, high=10.0)
    """
    from scipy.stats import binom

    some = np.sort(values[np.isfinite(values)])
    n = len(some)
    if not n:
        return Measured(None)
    out = int(binom.ppf(0.025, n, 0.5))  # values below the interval, plus one
    ends = (some[out - 1], some[n - out]) if out else (None, None)
    return Measured(figure(np.median(some)), figure(ends[0]), figure(ends[1]))


def in_processes(work: Callable[[A], B], tasks: Sequence[A], jobs: int) -> Iterator[B]:
    """What comes of each task, in their order; the work is done in so many processes."""
    if jobs <= 1:
        yield from map(work, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, tasks)


def scale_of(scales: Mapping[str, A], name: str) -> A:
    """How big a study is to be; ConfigError for a name that no scale has."""
    if name not in scales:
        raise ConfigError(f"no scale is called {name!r}; known: {', '.join(scales)}")
    return scales[name]


def log_or_market(
    log: Path | None, size: MarketSize, preset: str, plan: ArenaSettings, told: Told
) -> Log:
    """The log that is to be studied; without one, a synthetic market in the study's own folder."""
    if log is None:
        told(f"making {size.offers:,} offers for {size.days} days")
        log = plan.work / "log"
        make_market(log, size, seed=plan.seed, preset=preset)
    return Log(log)


def report_of(
    title: str,
    protocol: Row,
    tables: Sequence[PaperTable],
    claims: Sequence[Row] = (),
    notes: Sequence[str] = (),
) -> Row:
    """The whole study as plain data, in the order of the paper."""
    told = [asdict(table) for table in tables]
    kept = {"tables": told, "claims": [*claims], "notes": [*notes]}
    return {"title": title, "protocol": protocol, **kept}


def write_study(report: Row, folder: Path) -> list[Path]:
    """Write `report.html`, `results.json`, and a CSV file for each table and each drawing's points;
    the paths of what was written. The same report gives the same files."""
    files = [folder / "report.html", folder / "results.json"]
    write_paper(report, files[0])
    with in_place(files[1]) as part:
        part.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    for table in report["tables"]:
        files.append(_write_csv(folder / f"{table['key']}.csv", table["rows"]))
        drawn = [drawing["points"] for drawing in table["drawings"] if drawing["points"]]
        for number, points in enumerate(drawn, 1):
            files.append(_write_csv(folder / f"{table['key']}-points-{number}.csv", points))
    return files


def _write_csv(path: Path, rows: Sequence[Row]) -> Path:
    with in_place(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else FIGURES)
        writer.writeheader()
        writer.writerows(rows)
    return path
