"""Laws of gates: the share is held, ranks and γ are what they are said to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus import plugins
from salticus.allocate.gate import BUILTIN
from salticus.allocate.gate.base import Gate
from salticus.allocate.gate.stream import InstaCrawl, ThresholdGate, gamma, new_book, place
from salticus.checks.gate import check_gate
from salticus.types import Floats
from salticus.types.coins import coins

N = 10_000
HOLDING = (InstaCrawl, ThresholdGate)


@st.composite
def streams(draw: Any) -> Floats:
    """Scores of `N` requests in a few spells, each with a law, a level and a slope of its own."""
    ends = sorted(draw(st.sets(st.integers(1, N - 1), max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    spells = []
    for length in np.diff([0, *ends, N]):
        level = draw(st.sampled_from([-5.0, 0.0, 0.0, 0.0, 0.5, 5.0]))
        slope = draw(st.sampled_from([-1.0, 0.0, 0.0, 1e-4, 1.0]))
        law = draw(st.sampled_from(["uniform", "skewed", "equal", "two", "few"]))
        drawn = {
            "uniform": rng.random(length),
            "skewed": rng.beta(0.2, 8.0, length),
            "equal": np.zeros(length),
            "two": (rng.random(length) < 0.1).astype(np.float64),
            "few": rng.integers(0, 4, length) / 4,
        }[law]
        spells.append(level + slope * np.arange(length) + drawn)
    return np.concatenate(spells)


SHARES = st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.99, 1.0])


@pytest.mark.parametrize("name", BUILTIN)
def test_built_in_gates_obey_the_laws(name: str) -> None:
    made = plugins.load("gate", name, BUILTIN)
    check_gate(lambda share: made(share=share))


@pytest.mark.parametrize("kind", HOLDING)
@settings(max_examples=40, deadline=None)
@given(scores=streams(), share=SHARES, seed=st.integers(0, 100))
def test_the_share_is_held_whatever_the_scores_do(
    kind: Any, scores: Floats, share: float, seed: int
) -> None:
    sent = kind(share=share).send(scores, coins(seed, np.arange(N), 0)).sent
    assert abs(sent.mean() - share) < 0.01


@pytest.mark.parametrize("kind", HOLDING)
@settings(max_examples=25, deadline=None)
@given(scores=streams(), cuts=st.sets(st.integers(0, N), max_size=5))
def test_one_by_one_is_as_good_as_in_a_batch(kind: Any, scores: Floats, cuts: set[int]) -> None:
    chances = coins(1, np.arange(N), 0)
    whole = kind(share=0.2).send(scores, chances).propensity
    gate: Gate = kind(share=0.2)
    parts = [
        gate.send(scores[a:b], chances[a:b]).propensity
        for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), N], strict=True)
    ]
    assert np.array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("kind", HOLDING)
@settings(max_examples=25, deadline=None)
@given(scores=streams())
def test_only_the_order_of_scores_matters(kind: Any, scores: Floats) -> None:
    chances = coins(2, np.arange(N), 0)
    plain, stretched = (kind().send(s, chances).propensity for s in (scores, 2.0 * scores))
    assert np.array_equal(plain, stretched)


@settings(max_examples=25, deadline=None)
@given(scores=streams(), share=st.floats(0.001, 1.0), n=st.integers(1, 30))
def test_no_request_is_hopeless(scores: Floats, share: float, n: int) -> None:
    gate = InstaCrawl(share=share, quantiles=n)
    assert gate.send(scores, coins(3, np.arange(N), 0)).propensity.min() > 0.999 * share / (2 * n)


@settings(max_examples=40, deadline=None)
@given(
    scores=st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9]) | st.floats(-1, 1), max_size=60),
    memory=st.integers(1, 20),
)
def test_ranks_are_those_of_the_last_scores(scores: list[float], memory: int) -> None:
    book = new_book(0.2, memory, 1)
    for k, score in enumerate(scores):
        window = [*scores[max(0, k - memory) : k], score]
        below = sum(other < score for other in window) / len(window)
        upto = sum(other <= score for other in window) / len(window)
        assert place(book, score) == pytest.approx((below, upto))


@settings(max_examples=200, deadline=None)
@given(
    usage=st.lists(st.floats(0, 100), min_size=1, max_size=20).filter(lambda u: sum(u) > 1e-3),
    share=st.floats(0, 1),
)
def test_gamma_spends_the_share(usage: list[float], share: float) -> None:
    counted, n = np.array(usage), len(usage)
    factor = gamma(counted, share)
    sent = counted @ np.minimum(1.0, np.arange(1, n + 1) / n * factor)
    assert 0.0 <= factor <= n
    assert sent == pytest.approx(share * counted.sum(), rel=1e-9, abs=1e-9)
