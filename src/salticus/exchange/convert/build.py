"""From rows to a log: bad rows are counted and named, pages numbered, changes found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from salticus import plugins
from salticus.errors import InputError
from salticus.exchange.convert import BUILTIN
from salticus.exchange.convert.base import (
    COMPLAINTS,
    Converter,
    ConvertOptions,
    Problem,
    SourceRows,
    flag,
)
from salticus.exchange.convert.scan import CSV, MARK, ragged
from salticus.exchange.place import check_free, work_folder
from salticus.exchange.write import PARTIAL, resolution_of, spelt, write_log
from salticus.urls import canonical

_CHUNK = 50_000  # URLs that are Python objects at a time
_TAKEN = ("page_id", "url", "host", "kind", "stratum")  # by the log itself

SHOWN = 10  # bad rows that are named
_STATED = "stated to be every change (--complete)"


def convert_log(
    sources: Sequence[Path], out: Path, format: str, options: ConvertOptions
) -> dict[str, Any]:
    """Convert sources to a log in a new or empty folder; what was written, and what was not.

    Memory is linear in pages; rows are streamed and sorted by polars. Raises InputError with the
    number of bad rows and the first of them, unless they are to be skipped; nothing is written.
    """
    check_free(out)
    read: Converter = plugins.load("converter", format, BUILTIN)
    found = read(sources, options)
    stated = {"given": options.resolution, "the source": found.resolution}
    origin = next((origin for origin, span in stated.items() if span), "the times")
    with work_folder(out) as work:
        rows = _staged(found, work / "rows.parquet")
        rows = number_pages(rows, work / "pages.parquet")
        seen = _sorted(rows, work / "seen.parquet")
        bad = _judged(found, pl.concat([_bad(rows), _bad(seen)]), options)
        repeated = _count(seen.filter(pl.col("problem").is_null() & pl.col("again")))
        tables = _tables(found, rows, seen.filter(~pl.col("again")), options)
        resolution = stated.get(origin) or resolution_of(seen, options.timezone or "UTC")
        about = _about(found, format, options) | {"resolution": resolution}
        written = write_log(out, tables, {"name": options.name or out.name, **about})
    return {
        "out": str(out),
        "rows": written,
        "resolution": resolution and spelt(resolution),
        "resolution_from": origin,
        "repeated": repeated,
        "skipped": bad,
    }


def _staged(found: SourceRows, path: Path) -> pl.LazyFrame:
    """The rows read once, written as columns: what follows passes over them several times."""
    try:
        found.rows.with_row_index("n").sink_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        if "os error" in str(error):  # the disk is at fault, not the source
            raise OSError(str(error)) from error
        raise _unreadable(found, error) from error
    rows = pl.scan_parquet(path, glob=False)
    if not _count(rows):
        raise InputError(f"{found.files[0].path if found.files else 'the source'}: no rows")
    return rows


def _unreadable(found: SourceRows, error: Exception) -> InputError:
    """Which file polars stumbled over, and where, as far as can be told."""
    for path in (file.path for file in found.files if file.path.suffix.lower() in CSV):
        if lines := ragged(path):
            named = ", ".join(map(str, lines[:SHOWN]))
            return InputError(
                f"{path}: {len(lines):,} lines have more fields than the heading, the first are "
                f"{named}; put fields that hold the separator in quotes"
            )
    names = ", ".join(str(file.path) for file in found.files[:3])
    return InputError(f"{names}: cannot be read: {str(error).partition(chr(10))[0]}")


def _sorted(rows: pl.LazyFrame, path: Path) -> pl.LazyFrame:
    """The good rows by page and time. `again` marks those whose page has a row at that time
    already; if that has another value, it is a problem."""
    good = rows.filter(pl.col("problem").is_null())
    ordered = good.select("page_id", "at", "value", "n", "file", "line").sort("page_id", "at", "n")
    again = pl.all_horizontal(pl.col(c) == pl.col(c).shift() for c in ("page_id", "at"))
    other = pl.col("value").ne_missing(pl.col("value").shift())
    marked = ordered.with_columns(again=again.fill_null(False), other=other)
    clash = pl.col("again") & pl.col("other")
    problem, shown = flag(clash, Problem.CLASH), pl.when(clash).then("value")
    marked.select(pl.exclude("other"), problem=problem, shown=shown).sink_parquet(path)
    return pl.scan_parquet(path, glob=False)


def _bad(rows: pl.LazyFrame) -> pl.LazyFrame:
    bad = rows.filter(pl.col("problem").is_not_null())
    return bad.select(pl.col("n", "file", "line").cast(pl.Int64), "problem", "shown")


def _judged(found: SourceRows, bad: pl.LazyFrame, options: ConvertOptions) -> int:
    """How many rows are bad; raises if there are any and they are not to be skipped."""
    count = _count(bad)
    if count == 0 or options.skip_bad:
        return count
    first = bad.sort("n").head(SHOWN).collect(engine="streaming")
    lines = [_complaint(found, row) for row in first.iter_rows(named=True)]
    rest = [f"… and {count - SHOWN:,} more"] if count > SHOWN else []
    raise InputError(
        "\n  ".join([f"{count:,} bad row{'s'[: count > 1]}, nothing was written:", *lines, *rest])
        + "\nmend them, or go on without them with --skip-bad"
    )


def _complaint(found: SourceRows, row: dict[str, Any]) -> str:
    file = found.files[row["file"]]
    role, wrong, remedy = COMPLAINTS[Problem(row["problem"])]
    column = "" if role == "row" else f"column `{file.columns.get(role, role)}` "
    shown = f" ({row['shown'][:60]!r})" if row["shown"] else ""
    return f"{file.path}, {file.unit} {row['line']}: {column}{wrong}{shown}; {remedy}"


def _tables(
    found: SourceRows, rows: pl.LazyFrame, seen: pl.LazyFrame, options: ConvertOptions
) -> dict[str, pl.LazyFrame]:
    """The tables of the log. `seen` has one row a page and time, in that order."""
    same_page = (pl.col("page_id") == pl.col("page_id").shift()).fill_null(False)
    differs = pl.col("value").ne_missing(pl.col("value").shift())
    changed = pl.when(same_page).then(differs)
    visits = seen.select("page_id", "at", "value", status=pl.lit("ok"), changed=changed)
    new = pl.col("changed").is_null() | pl.col("changed")
    tables = {"pages": page_table(rows, found.kind)}
    if not found.truth:
        told = visits.with_columns(pl.when(new).then("value"))
        tables["visits"] = told.sort("at", "page_id")
    if found.truth or options.complete:
        tables["values"] = visits.filter(new).select("page_id", "at", "value")
    return tables


def _about(found: SourceRows, format: str, options: ConvertOptions) -> dict[str, Any]:
    names = [file.path.name for file in found.files]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    listed = found.source or ", ".join(names[:3]) + more
    stated = _STATED if options.complete else "" if found.truth else PARTIAL
    caveats = "; ".join(filter(None, (stated, found.caveats)))
    about: dict[str, Any] = {"source": f"{format}: {listed}", "caveats": caveats}
    return about | ({"values_are": found.values_are} if found.values_are else {})


def _count(rows: pl.LazyFrame) -> int:
    return int(rows.select(pl.len()).collect(engine="streaming").item())


def number_pages(rows: pl.LazyFrame, path: Path) -> pl.LazyFrame:
    """The rows with `page_id`, and with the problem of those whose URL is none.

    A page is its URL in canonical form, without fragment, unless the source has ids of its own.
    """
    urls = _urls(rows)
    rows = rows.rename({"url": "written"}).join(urls.lazy(), on="written", how="left")
    bad = pl.col("written").is_not_null() & pl.col("url").is_null()
    rows = rows.with_columns(
        problem=pl.coalesce("problem", flag(bad, Problem.BAD_URL)),
        shown=pl.when(pl.col("problem").is_null() & bad).then("written").otherwise("shown"),
    ).drop("written")
    if "page_id" in rows.collect_schema():
        return rows
    good = rows.filter(pl.col("problem").is_null())
    first = good.group_by("url").agg(pl.col("n").min()).sort("n").select("url")
    first.with_row_index("page_id", offset=1).cast({"page_id": pl.Int64}).sink_parquet(path)
    return rows.join(pl.scan_parquet(path, glob=False), on="url", how="left")


def _urls(rows: pl.LazyFrame) -> pl.DataFrame:
    """Every spelling of a URL, with its canonical form and host; null if it is no URL."""
    spelt = rows.select(written=pl.col("url").drop_nulls().unique()).collect(engine="streaming")
    schema = {"url": pl.String, "host": pl.String}
    parsed = [
        pl.DataFrame([_parsed(url) for url in part["written"]], schema=schema, orient="row")
        for part in spelt.iter_slices(_CHUNK)
    ]
    return spelt.hstack(pl.concat(parsed) if parsed else pl.DataFrame(schema=schema))


def _parsed(text: str) -> tuple[str | None, str | None]:
    """Canonical form and host.

    >>> _parsed("HTTP://Example.org:80/a/../b#top"), _parsed("example.org")
    (('http://example.org/b', 'example.org'), (None, None))
    """
    try:
        return canonical(text)
    except InputError:
        return None, None


def page_table(rows: pl.LazyFrame, kind: str | None) -> pl.LazyFrame:
    """One row a page; of the source's own columns what was said last."""
    good = rows.filter(pl.col("problem").is_null())
    own = [name for name in good.collect_schema().names() if name.startswith(MARK)]
    told = [pl.col(name).max_by(pl.when(pl.col(name).is_not_null()).then("n")) for name in own]
    first = [pl.col("n").min(), pl.col("url").max_by("n"), pl.col("host").max_by("n")]
    pages = good.group_by("page_id").agg(*first, *told).sort("n").drop("n")
    pages = pages.rename({name: _name(name, own) for name in own})  # one may be called `n`
    if "tags" in pages.collect_schema():
        pages = pages.with_columns(tags=_tags(pl.col("tags")))
    return pages.with_columns(kind=pl.lit(kind, dtype=pl.String))


def _name(column: str, columns: Sequence[str]) -> str:
    """What a column of the source is called in the log: `name` is a title if there is no other."""
    name = column.removeprefix(MARK)
    if name == "name" and MARK + "title" not in columns:
        return "title"
    return f"original_{name}" if name in _TAKEN else name


def _tags(text: pl.Expr) -> pl.Expr:
    """``a, b`` or ``["a", "b"]`` as a list."""
    parts = text.str.strip_chars('[]" ').str.replace_all(r'"?\s*,\s*"?', ",").str.split(",")
    return pl.when(text.is_not_null()).then(parts)
