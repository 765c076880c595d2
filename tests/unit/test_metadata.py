"""Metadata as numbers: laws of the vocabulary."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.errors import InputError
from salticus.features.metadata import SPARE, Vocabulary, hashes
from salticus.features.names import METADATA

PAGES = pl.DataFrame(
    {
        "page_id": range(8),
        "merchant": ["a", "a", "a", "b", "b", None, "c", "a"],
        "brand": ["x"] * 4 + [None] * 4,
        "category": ["A > B > C", "A > B > D", "A", None, "A > B > C", "E", "E", "E"],
        "title": [
            "Red shoe",
            "red SHOE, size 9",
            "",
            None,
            "Shoe red",
            "a b c d e f g h",
            "x",
            "é",
        ],
    }
)
TRAINED = np.array([True] * 6 + [False] * 2)
names = st.lists(st.sampled_from(["p", "q", "r", "", None, "é"]), min_size=1, max_size=20)


def codes(vocabulary: Vocabulary, pages: pl.DataFrame, field: str) -> list[int]:
    told = vocabulary.encode(pages)
    return told.codes[:, told.fields.index(field)].tolist()


def test_zero_is_unknown_and_rare_values_are_not_known() -> None:
    vocabulary = Vocabulary.fit(PAGES, TRAINED, least=2)
    merchant = codes(vocabulary, PAGES, "merchant")
    assert merchant[5] == 0
    assert merchant[0] == merchant[7]
    assert {merchant[0], merchant[3]} == {1, 2}
    assert merchant[6] >= 3, "training never saw it, so it is in a spare bucket"
    assert codes(vocabulary, PAGES, "condition") == [0] * 8, "the log has no such column"


def test_only_training_pages_count() -> None:
    assert len(Vocabulary.fit(PAGES, TRAINED, ("merchant",), least=3).known["merchant"]) == 1
    assert len(Vocabulary.fit(PAGES, ~TRAINED, ("merchant",), least=1).known["merchant"]) == 2


def test_levels_of_a_category_are_fields_of_their_own() -> None:
    vocabulary = Vocabulary.fit(PAGES, np.ones(8, dtype=np.bool_), ("category",), least=1)
    told = vocabulary.encode(PAGES)
    assert told.fields == ("category_1", "category_2", "category")
    first, second, whole = told.codes.T
    assert first[0] == first[1] == first[2] != first[5]
    assert second[0] == second[1] > 0
    assert second[2] == second[5] == 0, "there is no second level"
    assert len({whole[0], whole[1], whole[2], whole[5]}) == 4
    assert first[3] == second[3] == whole[3] == 0


def test_words_are_lower_case_and_pairs_know_their_order() -> None:
    words = Vocabulary.fit(PAGES, TRAINED, ("title",)).encode(PAGES).words
    assert words.shape == (8, 12)
    assert (words[2] == -1).all()
    assert (words[3] == -1).all()
    assert words[0, :3].tolist() == words[1, :3].tolist(), "red, shoe, red shoe"
    assert words[0, :2].tolist() == words[4, :2][::-1].tolist()
    assert words[0, 2] != words[4, 2]
    assert (words[0, 3:] == -1).all()
    assert (words[5] >= 0).all()
    assert words.max() < Vocabulary.fit(PAGES, TRAINED).buckets


def test_without_the_title_there_are_no_words() -> None:
    told = Vocabulary.fit(PAGES, TRAINED, ("brand",)).encode(PAGES)
    assert told.words.shape == (8, 0)
    assert told.fields == ("brand",)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InputError, match="colour"):
        Vocabulary.fit(PAGES, TRAINED, ("colour",))


@settings(max_examples=30, deadline=None)
@given(names, names, st.integers(1, 4))
def test_a_vocabulary_is_arrays_and_plain_settings(
    known: list[str | None], asked: list[str | None], least: int
) -> None:
    """Laws: codes are in range, depend on the page alone, and survive being stored."""
    kinds = {"brand": pl.String, "title": pl.String}
    pages = pl.DataFrame({"brand": known, "title": known}, schema=kinds)
    wanted = pl.DataFrame({"brand": asked, "title": asked}, schema=kinds)
    vocabulary = Vocabulary.fit(pages, np.ones(len(pages), dtype=np.bool_), METADATA, least=least)
    stored = json.loads(json.dumps(vocabulary.settings()))
    again = Vocabulary.of(stored, vocabulary.arrays())
    told, retold = vocabulary.encode(wanted), again.encode(wanted)
    assert np.array_equal(told.codes, retold.codes)
    assert np.array_equal(told.words, retold.words)
    assert told.sizes == retold.sizes
    assert (told.codes >= 0).all()
    assert (told.codes < np.array(told.sizes)).all()
    one = vocabulary.encode(wanted[-1:])
    assert one.codes.tolist() == told.codes[-1:].tolist()
    assert one.words.tolist() == told.words[-1:].tolist()
    often = {name for name in known if name is not None and known.count(name) >= least}
    codes = told.codes[:, told.fields.index("brand")]
    for name, code in zip(asked, codes.tolist(), strict=True):
        assert (code == 0) == (name is None)
        assert (1 <= code <= len(often)) == (name in often)
    assert told.sizes[told.fields.index("brand")] == 1 + len(often) + SPARE


def test_hashes_are_the_same_for_ever() -> None:
    """Models on disk depend on them."""
    assert hashes(["Bebapemart", 7]).tolist() == [2587157286153911229, 9407870976149377255]
