"""What is known of a page without its history, as numbers of a vocabulary.

A vocabulary keeps 64-bit hashes and no text. A value that training did not know, or hardly, falls
by its hash into one of a few buckets, so that a new merchant or brand is still something. Titles
need no vocabulary: their n-grams are hashed (Weinberger et al. 2009, "Feature hashing").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from salticus.errors import InputError
from salticus.features.names import METADATA
from salticus.types import Bools, Ints, Metadata
from salticus.types.frames import pl
from salticus.types.inputs import Ints32
from salticus.types.state import State

Hashes = NDArray[np.uint64]

LEAST = 5  # training pages that must have a value, for it to get a number of its own
BUCKETS = 2**15  # of n-grams of titles
SPARE = 16  # buckets of a field for values without a number
WORDS = 12  # n-grams of a title that are kept

_LEVELS = 2  # of the category's path that are fields of their own, beside the whole of it
_WORD = r"[\p{L}\p{N}]+"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The values of some fields that training pages had, and how all others are numbered.

    `fields` are names of `METADATA`; a category counts as three: its first level, its first two,
    and all of its path. Of each, code 0 is unknown, then come the known values in the order of
    their hashes, then `spare` buckets. Laws: a page's codes depend on that page alone;
    ``of(v.settings(), v.arrays())`` encodes as v does.

    >>> import polars as pl
    >>> pages = pl.DataFrame({"brand": ["Acme", "Acme", None, "Other"]})
    >>> rows = np.array([True, True, True, False])
    >>> words = Vocabulary.fit(pages, rows, ("brand",), least=2)
    >>> words.encode(pages).codes[:, 0].tolist()[:3]
    [1, 1, 0]
    """

    fields: tuple[str, ...]
    known: dict[str, Hashes]
    buckets: int = BUCKETS
    spare: int = SPARE
    words: int = WORDS

    @classmethod
    def fit(
        cls,
        pages: pl.DataFrame,
        rows: Bools,
        fields: tuple[str, ...] = METADATA,
        *,
        least: int = LEAST,
    ) -> Self:
        """The values that at least so many of the given rows (the training pages) have."""
        if strange := sorted(set(fields) - set(METADATA)):
            raise InputError(f"no such field of metadata: {strange[0]}")
        known = {}
        for column in _columns(fields):
            counts = texts_of(pages, column).filter(rows).drop_nulls().value_counts(name="pages")
            often = counts.filter(counts["pages"] >= least)
            known[column] = np.sort(hashes(often[column]))
        return cls(fields, known)

    @property
    def columns(self) -> tuple[str, ...]:
        """The fields that have codes: one each, but none for the title and three for a category."""
        return _columns(self.fields)

    def encode(self, pages: pl.DataFrame) -> Metadata:
        """The codes and words of the pages; a column that the frame lacks is unknown throughout."""
        codes = np.zeros((len(pages), len(self.columns)), dtype=np.int32)
        for n, column in enumerate(self.columns):
            codes[:, n] = self._codes(column, texts_of(pages, column))
        words = self.words if "title" in self.fields else 0
        return Metadata(
            codes=codes,
            words=_grams(texts_of(pages, "title"), words, self.buckets),
            fields=self.columns,
            sizes=tuple(1 + len(self.known[column]) + self.spare for column in self.columns),
            buckets=self.buckets,
        )

    def _codes(self, column: str, texts: pl.Series) -> Ints32:
        known = self.known[column]
        each, places = _distinct(texts)
        found = hashes(each)
        at = np.searchsorted(known, found)
        there = known[np.minimum(at, len(known) - 1)] == found if len(known) else at < 0
        other = len(known) + (found % np.uint64(self.spare)).astype(np.int64)
        codes = np.concatenate([[-1], np.where(there, at, other)])  # place 0: unknown
        return np.asarray(1 + codes[places], dtype=np.int32)

    def settings(self) -> dict[str, Any]:
        """All but the known values, as JSON can hold it."""
        return {
            "fields": list(self.fields),
            "buckets": self.buckets,
            "spare": self.spare,
            "words": self.words,
        }

    def arrays(self) -> State:
        """The hashes of the known values by field, ascending."""
        return dict(self.known)

    @classmethod
    def of(cls, settings: dict[str, Any], arrays: State) -> Self:
        fields = tuple(settings["fields"])
        known = {name: np.asarray(arrays[name], dtype=np.uint64) for name in _columns(fields)}
        return cls(fields, known, *(int(settings[name]) for name in ("buckets", "spare", "words")))


def hashes(texts: Iterable[object]) -> Hashes:
    """A 64-bit hash of each text (or what `str` makes of it): the same with every version.

    >>> hashes(["a"]), len(hashes([]))
    (array([3405396810240292928], dtype=uint64), 0)
    """
    raw = b"".join(blake2b(str(text).encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64)


def _columns(fields: tuple[str, ...]) -> tuple[str, ...]:
    levels = tuple(f"category_{level}" for level in range(1, _LEVELS + 1))
    each = ((*levels, field) if field == "category" else (field,) for field in fields)
    return tuple(name for names in each for name in names if name != "title")


def texts_of(pages: pl.DataFrame, column: str) -> pl.Series:
    """The texts of a column or of a level of the category; null: unknown."""
    field, _, level = column.partition("_")
    if field not in pages.columns:
        return pl.Series(column, [None] * len(pages), dtype=pl.String)
    texts = pages[field].cast(pl.String).alias(column)
    if not level:
        return texts
    path = pl.col(column).str.split(" > ")
    cut = pl.when(path.list.len() >= int(level)).then(path.list.head(int(level)).list.join(" > "))
    return texts.to_frame().select(cut.alias(column)).to_series()


def _distinct(texts: pl.Series) -> tuple[pl.Series, Ints]:
    """The distinct texts, and for each row 1 + the place of its text among them, or 0 if null."""
    each = texts.drop_nulls().unique(maintain_order=True)
    numbers = pl.DataFrame({"text": each, "place": np.arange(1, len(each) + 1)})
    rows = texts.alias("text").to_frame()
    joined = rows.join(numbers, on="text", how="left", maintain_order="left")
    return each, joined["place"].fill_null(0).to_numpy().astype(np.int64)


def _grams(titles: pl.Series, most: int, buckets: int) -> Ints32:
    """Titles × `most`: buckets of the words and of pairs of neighbours, lower case, -1 for none.

    In the order word, word, their pair, word, the pair that it ends, …
    """
    grams = np.full((len(titles), most), -1, dtype=np.int32)
    if not most:
        return grams
    found = titles.str.to_lowercase().str.extract_all(_WORD).list.head(most // 2 + 1)
    words = found.alias("word").to_frame().with_row_index("row").explode("word").drop_nulls("word")
    each, places = _distinct(words["word"].cast(pl.String))
    word, row = hashes(each)[places - 1], words["row"].to_numpy().astype(np.int64)
    nth = np.arange(len(row)) - np.searchsorted(row, row)
    _put(grams, row, np.maximum(0, 2 * nth - 1), word % np.uint64(buckets))
    second = np.flatnonzero(nth > 0)
    pair = word[second - 1] * np.uint64(0x9E3779B97F4A7C15) + word[second]  # wraps on purpose
    _put(grams, row[second], 2 * nth[second], (pair ^ (pair >> np.uint64(29))) % np.uint64(buckets))
    return grams


def _put(grams: Ints32, row: Ints, slot: Ints, bucket: Hashes) -> None:
    fits = slot < grams.shape[1]
    grams[row[fits], slot[fits]] = bucket[fits].astype(np.int32)
