"""What is different between two values: prices by amount and share, texts word by word. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Literal, NamedTuple

Kind = Literal["same", "gone", "new"]

AROUND = 8  # words that are shown before and after what is different
MOST = 4000  # words that are compared one by one; comparing takes the square of their number

_PRICE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)(?: ([A-Z]{3}))?(?: |$)")
_MARKS = {"same": ("", ""), "gone": ("[-", "-]"), "new": ("{+", "+}")}


class Move(NamedTuple):
    """A price that went from one amount to another, in one currency ("" if none is stated)."""

    before: Decimal
    after: Decimal
    currency: str

    @property
    def by(self) -> Decimal:
        """How much it rose; negative if it fell."""
        return (self.after - self.before).normalize()

    @property
    def percent(self) -> float | None:
        """The same in per cent of what it was; None if that was nothing."""
        return round(float(self.by / self.before * 100), 1) if self.before else None

    def short(self) -> str:
        """For a column: direction, amount, share.

        >>> move("19.9 EUR", "17.5 EUR").short()
        '↓ 2.4 EUR (-12.1 %)'
        """
        share = "" if self.percent is None else f" ({self.percent:+g} %)"
        return f"{'↑' if self.by > 0 else '↓'} {abs(self.by):f} {self.currency}".strip() + share

    def words(self) -> str:
        """For people.

        >>> move("19.9 EUR InStock", "17.5 EUR InStock").words()
        '19.9 EUR → 17.5 EUR (-2.4, -12.1 %)'
        """
        share = "" if self.percent is None else f", {self.percent:+g} %"
        amounts = (f"{each:f} {self.currency}".strip() for each in (self.before, self.after))
        return f"{' → '.join(amounts)} ({self.by:+f}{share})"


def move(before: str, after: str) -> Move | None:
    """How the price went, if both texts begin with one, in the same currency, and they differ.

    >>> move("19.9 EUR", "17.5 USD"), move("Tea", "Coffee"), move("5 EUR InStock", "5 EUR")
    (None, None, None)
    """
    found = _PRICE.match(before), _PRICE.match(after)
    if found[0] is None or found[1] is None or found[0][2] != found[1][2]:
        return None
    old, new = Decimal(found[0][1]), Decimal(found[1][1])
    return Move(old, new, found[0][2] or "") if old != new else None


class Piece(NamedTuple):
    """Words that stand in both texts, only in the earlier one, or only in the later one."""

    kind: Kind
    text: str


def pieces(before: str, after: str, around: int | None = AROUND) -> list[Piece]:
    """The earlier text turned into the later one, with `around` words about each difference.

    With None all words are there. Law: then the pieces that are not new make up the earlier text,
    and those that are not gone the later one, but for whitespace.

    >>> pieces("open from nine to five", "open from ten to five")[1:3]
    [Piece(kind='gone', text='nine'), Piece(kind='new', text='ten')]
    """
    old, new = before.split(), after.split()
    runs = [(kind, words) for kind, words in _compared(old, new) if words]
    last = len(runs) - 1
    return [
        Piece(
            kind, " ".join(_shown(words, around, at == 0, at == last) if kind == "same" else words)
        )
        for at, (kind, words) in enumerate(runs)
    ]


def _compared(old: list[str], new: list[str]) -> list[tuple[Kind, list[str]]]:
    """Runs of words. What is equal at both ends is set aside, since most edits are small."""
    head = _equal(zip(old, new, strict=False))
    tail = _equal(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    inner_old, inner_new = old[head : len(old) - tail], new[head : len(new) - tail]
    inner: list[tuple[Kind, list[str]]] = [("gone", inner_old), ("new", inner_new)]
    if len(inner_old) + len(inner_new) <= MOST:
        inner = list(_matched(inner_old, inner_new))
    return [("same", old[:head]), *inner, ("same", old[len(old) - tail :])]


def _equal(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _matched(old: list[str], new: list[str]) -> Iterator[tuple[Kind, list[str]]]:
    for what, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        if what == "equal":
            yield "same", old[a:b]
        else:
            yield "gone", old[a:b]
            yield "new", new[c:d]


def _shown(words: list[str], around: int | None, first: bool, last: bool) -> list[str]:
    """Equal words with the middle left out; at the ends of the text, the outer ones."""
    if around is None:
        return words
    head = [] if first else words[:around]
    tail = [] if last else words[max(0, len(words) - around) :]
    return words if len(words) <= len(head) + len(tail) + 1 else [*head, "…", *tail]


def marked(found: Iterable[Piece]) -> str:
    """Pieces as one line: ``[-gone-]``, ``{+new+}``.

    >>> marked(pieces("open from nine to five", "open from ten to five"))
    'open from [-nine-] {+ten+} to five'
    """
    return " ".join(f"{_MARKS[kind][0]}{text}{_MARKS[kind][1]}" for kind, text in found)


def difference(before: str, after: str) -> dict[str, Any]:
    """Both for machines: ``price`` if that moved, else ``text``.

    >>> difference("20 EUR", "15 EUR")
    {'price': {'before': 20.0, 'after': 15.0, 'by': -5.0, 'percent': -25.0, 'currency': 'EUR'}}
    """
    went = move(before, after)
    if went is None:
        return {"text": marked(pieces(before, after))}
    amounts = {name: float(getattr(went, name)) for name in ("before", "after", "by")}
    return {"price": {**amounts, "percent": went.percent, "currency": went.currency}}


def in_words(before: str, after: str) -> str:
    """A difference for people, in one line.

    >>> in_words("20 EUR InStock", "20 EUR OutOfStock")
    '20 EUR [-InStock-] {+OutOfStock+}'
    """
    went = move(before, after)
    if went is None:
        return marked(pieces(before, after))
    old, new = (_PRICE.sub("", text, count=1) for text in (before, after))
    return went.words() if old == new else f"{went.words()}, {marked(pieces(old, new))}"
