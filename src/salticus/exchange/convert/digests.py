"""`digests`: a crawl log of (url, time, digest): what a page was cannot be told, but when it was
another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from salticus.exchange.convert.base import ConvertOptions, SourceRows
from salticus.exchange.convert.table import read_table, text_values

DIGEST = ("digest", "hash", "checksum", "md5", "sha1", "sha256", "signature", "etag", "value")


def read(sources: Sequence[Path], options: ConvertOptions) -> SourceRows:
    """CSV or JSON of digests seen."""
    files, rows = read_table(sources, options, DIGEST, text_values)
    return SourceRows(
        files=files,
        rows=rows,
        values_are="digests",
        caveats="a digest tells any change of the bytes, meaningful or not",
    )
