"""Words that several reports share."""

from __future__ import annotations


def counted(count: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "page"), counted(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
