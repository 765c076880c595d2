"""Pages of a converted log: numbered by first appearance, with what the rows say of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import can_ada

from salticus.exchange.convert.base import Problem
from salticus.exchange.convert.scan import MARK

if TYPE_CHECKING:
    import polars as pl

_CHUNK = 50_000  # URLs that are Python objects at a time
_TAKEN = ("page_id", "url", "host", "kind", "stratum")  # by the log itself


def number_pages(rows: pl.LazyFrame, path: Path) -> pl.LazyFrame:
    """The rows with `page_id`, and with the problem of those whose URL is none.

    A page is its URL in canonical form, without fragment, unless the source has ids of its own.
    """
    import polars as pl

    urls = _urls(rows)
    rows = rows.rename({"url": "written"}).join(urls.lazy(), on="written", how="left")
    bad = pl.col("written").is_not_null() & pl.col("url").is_null()
    wrong = pl.when(bad).then(pl.lit(Problem.BAD_URL.value, dtype=pl.Int8))
    rows = rows.with_columns(
        problem=pl.coalesce("problem", wrong),
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
    import polars as pl

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
        url = can_ada.parse(text)
    except (ValueError, TypeError):
        return None, None
    if url.protocol not in ("http:", "https:"):
        return None, None
    return url.href.partition("#")[0], url.host


def page_table(rows: pl.LazyFrame, kind: str | None) -> pl.LazyFrame:
    """One row a page; of the source's own columns what was said last."""
    import polars as pl

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
    import polars as pl

    parts = text.str.strip_chars('[]" ').str.replace_all(r'"?\s*,\s*"?', ",").str.split(",")
    return pl.when(text.is_not_null()).then(parts)
