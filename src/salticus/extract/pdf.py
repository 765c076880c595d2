"""The text of a PDF, with the extra ``pdf``."""

from __future__ import annotations

import io
import logging

from salticus.errors import ExtractError
from salticus.extract.canonical import canonical

MAX_PAGES = 300
MAX_TEXT = 2_000_000

OFF = "a PDF; set extract.pdf = true to read its text"
ABSENT = "a PDF, and nothing to read it with: pip install 'salticus[pdf]'"


def text(body: bytes) -> str:
    """What the pages say, in their order; ExtractError if that cannot be found out.

    At most `MAX_PAGES` pages and `MAX_TEXT` characters are read.
    """
    try:
        import pypdf
    except ImportError:
        raise ExtractError(ABSENT) from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it complains of every bad PDF
    try:
        return _read(pypdf.PdfReader(io.BytesIO(body)))
    except MemoryError:
        raise
    except Exception as error:  # a hostile PDF breaks it in countless ways
        raise ExtractError(f"the PDF cannot be read: {type(error).__name__}: {error}") from error


def _read(reader: object) -> str:
    said: list[str] = []
    left = MAX_TEXT
    for page in reader.pages[:MAX_PAGES]:  # type: ignore[attr-defined]
        said.append(canonical(page.extract_text()[:left]))
        left -= len(said[-1])
        if left <= 0:
            break
    return " ".join(filter(None, said))
