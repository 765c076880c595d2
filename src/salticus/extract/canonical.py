"""One form for text that reads the same."""

from __future__ import annotations

import re
import unicodedata

# Controls (NUL cannot be stored everywhere), and marks that nobody sees: soft hyphen, zero-width
# space, word joiner, byte order mark. Joiners stay: they carry meaning in Persian and in emoji.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff]+")

_ASIAN = re.compile("[\u3040-\u9fff\uac00-\ud7af]")
_LETTERS = 3  # a word, where words are not set apart


def canonical(text: str) -> str:
    """The text with single spaces, composed characters, and nothing that cannot be stored.

    Idempotent; encodable as UTF-8; no space at either end.

    >>> canonical(" soft\\xadly \\x00 cafe\\u0301 \\n")
    'softly café'
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    text = text.encode("utf-8", "replace").decode("utf-8")
    text = unicodedata.normalize("NFC", _UNSEEN.sub("", _CONTROLS.sub(" ", text)))
    return " ".join(text.split())


def length(text: str) -> int:
    """How long a text is, in words, also where words are not set apart.

    >>> length("three short words"), length("お探しのページは見つかりません")
    (3, 5)
    """
    words = len(text.split())
    return words if text.isascii() else max(words, len(_ASIAN.findall(text)) // _LETTERS)
