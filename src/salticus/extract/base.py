"""The contract of extraction: what a page means, apart from its bytes."""

from __future__ import annotations

from typing import Protocol

import msgspec

from salticus.types import Reading, Value


class Content(msgspec.Struct):
    """A fetched body with what is needed to read it."""

    url: str
    body: bytes
    content_type: str = ""
    charset: str | None = None


class Extractor(Protocol):
    """Finds the value of a page.

    Laws: pure (same content, same value); `text` of the value is canonical, so that equal meaning
    gives equal text; None when the page has no such value; raises nothing but ExtractError. A part
    that learns more than the value may return a whole `Reading`.
    `fast` parts cost microseconds whatever the page and run inside the event loop; the others run
    in worker processes with a deadline.
    """

    fast: bool

    def extract(self, content: Content) -> Value | Reading | None: ...
