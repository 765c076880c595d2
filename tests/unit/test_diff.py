"""Differences: what is left out is the same, what is shown is right, and it is never slow."""

from __future__ import annotations

from decimal import Decimal

from effort import within
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.views.diff import MOST, difference, in_words, marked, move, pieces

words = st.lists(st.sampled_from(["tea", "is", "hot", "cold", "and", "[-", "+}", "…"]), max_size=40)
amounts = st.decimals(min_value="0.01", max_value=10**6, places=2)


@given(words, words)
def test_pieces_make_up_both_texts(old: list[str], new: list[str]) -> None:
    found = pieces(" ".join(old), " ".join(new), around=None)
    before = " ".join(piece.text for piece in found if piece.kind != "new")
    after = " ".join(piece.text for piece in found if piece.kind != "gone")
    assert (before.split(), after.split()) == (old, new)


@given(words, words)
def test_what_is_different_is_always_shown(old: list[str], new: list[str]) -> None:
    whole = pieces(" ".join(old), " ".join(new), around=None)
    short = pieces(" ".join(old), " ".join(new), around=2)
    assert [p for p in short if p.kind != "same"] == [p for p in whole if p.kind != "same"]
    assert all(len(piece.text.split()) <= 6 for piece in short if piece.kind == "same")


@given(words)
def test_equal_texts_have_no_difference(text: list[str]) -> None:
    assert {piece.kind for piece in pieces(" ".join(text), " ".join(text))} <= {"same"}


def test_only_the_surroundings_are_shown() -> None:
    text = [f"w{n}" for n in range(100)]
    found = marked(pieces(" ".join(text), " ".join([*text[:50], "new", *text[51:]]), around=2))
    assert found == "… w48 w49 [-w50-] {+new+} w51 w52 …"


@given(amounts, amounts, st.sampled_from(["EUR", "USD", ""]))
def test_a_price_moves_by_its_difference(old: Decimal, new: Decimal, currency: str) -> None:
    went = move(f"{old} {currency}".strip(), f"{new} {currency}".strip())
    if old == new:
        assert went is None
        return
    assert went is not None
    assert went.before + went.by == went.after == new
    assert (went.by > 0) == (went.short()[0] == "↑") == ("(+" in went.words())


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_texts_can_be_compared(old: str, new: str) -> None:
    assert set(difference(old, new)) <= {"price", "text"}
    assert isinstance(in_words(old, new), str)


def test_a_price_and_its_availability_may_move_together() -> None:
    said = in_words("20 EUR InStock", "15 EUR OutOfStock")
    assert said == "20 EUR → 15 EUR (-5, -25 %), [-InStock-] {+OutOfStock+}"


def test_a_price_from_nothing_has_no_share() -> None:
    assert in_words("0 EUR", "5 EUR") == "0 EUR → 5 EUR (+5)"
    assert difference("0 EUR", "5 EUR")["price"]["percent"] is None


@settings(deadline=None, max_examples=5)
@given(st.integers(1, 5), st.integers(1, 5))
def test_long_texts_take_no_time(kinds: int, others: int) -> None:
    """Few words that repeat are the worst for a comparison."""
    for size in (MOST // 2 - 2, 100_000):
        old = "a " + " ".join(f"w{n % kinds}" for n in range(size)) + " a"
        new = "b " + " ".join(f"w{n % (kinds + others)}" for n in range(size)) + " b"
        with within(250):
            pieces(old, new)
