"""Profit and decay of the pages of a source, from clicks by age."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from salticus.predict.interest import Interest, Prior, ages, interest
from salticus.types import Floats

EDGES = ages(1 / 72)
BINS = len(EDGES) - 1
PRIOR = Prior(1.0, 1.0)
counts = arrays(np.float64, (3, BINS), elements=st.integers(0, 1000).map(float))


def seen(rng: np.random.Generator, decay: float, watched: Floats) -> tuple[Floats, Floats]:
    """Clicks on pages that get 5 each on average, and pages watched, in each bin of age."""
    clicks, pages = np.zeros(BINS), np.zeros(BINS)
    for days in watched:
        at = rng.exponential(1 / decay, rng.poisson(5.0))
        clicks += np.histogram(at[at < days], EDGES)[0]
        pages += np.clip((days - EDGES[:-1]) / np.diff(EDGES), 0.0, 1.0)
    return clicks, pages


Fit = Callable[[Floats, Floats], tuple[float, float]]


def likeliest(clicks: Floats, pages: Floats) -> tuple[float, float]:
    told = interest(clicks[None], pages[None], EDGES, PRIOR)
    return float(told.profit[0]), float(told.decay[0])


def curve(clicks: Floats, pages: Floats) -> tuple[Floats, Floats]:
    """Ages, and the clicks that a page has had on average by then."""
    some = pages > 0.5
    return EDGES[1:][some], np.cumsum(clicks[some] / pages[some])


def projected(clicks: Floats, pages: Floats) -> tuple[float, float]:
    """The least squares of P(1 − e^(−mt)) on the curve: for every m there is one best P."""
    t, so_far = curve(clicks, pages)
    shape = -np.expm1(-np.geomspace(1e-2, 1e3, 600)[:, None] * t)
    profit = shape @ so_far / np.einsum("ij,ij->i", shape, shape)
    best = int(np.argmin(((so_far - profit[:, None] * shape) ** 2).sum(axis=1)))
    return float(profit[best]), float(np.geomspace(1e-2, 1e3, 600)[best])


def descended(clicks: Floats, pages: Floats) -> tuple[float, float]:
    """The same by gradient descent in both, as published (Lefortier et al. 2013)."""
    t, so_far = curve(clicks, pages)
    profit, decay = 0.5 * so_far[-1], 1.0
    for _ in range(2000):
        left = np.exp(-decay * t)
        off = so_far - profit * (1.0 - left)
        profit += 0.02 * float((off * (1.0 - left)).mean())
        decay = max(decay + 0.02 * float((off * profit * t * left).mean()), 1e-3)
    return profit, decay


def errors(watched: str, fit: Fit = likeliest, sources: int = 60) -> tuple[Floats, Floats]:
    """Relative errors of P and m on sources of 300 pages, each alone in the world."""
    rng = np.random.default_rng(4)
    found = []
    for decay in np.exp(rng.normal(0.0, 1.0, sources)):
        days = np.full(300, 14.0) if watched == "to the end" else rng.uniform(0, 3 / decay, 300)
        told = fit(*seen(rng, decay, days))
        found.append((told[0] / 5.0 - 1.0, told[1] / decay - 1.0))
    profit, decay = np.array(found).T
    return profit, decay


@pytest.mark.parametrize("watched", ["to the end", "for a while"])
def test_they_are_recovered_from_300_pages_of_5_clicks(watched: str) -> None:
    profit, decay = errors(watched)
    assert np.median(np.abs(profit)) < 0.05
    assert np.median(np.abs(decay)) < 0.10
    assert abs(np.median(profit)) < 0.025, "pages that were lost from sight bias nothing"
    assert abs(np.median(decay)) < 0.05


@pytest.mark.parametrize("other", [projected, descended])
def test_the_likeliest_errs_less_than_least_squares_where_pages_are_lost_from_sight(
    other: Fit,
) -> None:
    ours, theirs = (errors("for a while", fit, 30) for fit in (likeliest, other))
    for one, another in zip(ours, theirs, strict=True):
        assert np.sqrt(np.mean(one**2)) < np.sqrt(np.mean(another**2))


def test_the_error_that_is_told_is_the_error() -> None:
    profit, decay = errors("to the end")
    told = 1 / np.sqrt(1505)
    assert np.std(profit) == pytest.approx(told, rel=0.5)
    assert np.std(decay) == pytest.approx(told, rel=0.5)


def test_without_clicks_and_pages_the_prior_is_all() -> None:
    nothing = np.zeros((2, BINS))
    told = interest(nothing, nothing, EDGES, Prior(0.5, 3.0))
    assert told.profit == pytest.approx([0.5, 0.5], rel=1e-3)
    assert told.decay == pytest.approx([3.0, 3.0], rel=1e-3)


def test_a_new_source_is_taken_for_one_like_the_others() -> None:
    rng = np.random.default_rng(1)
    clicks, pages = np.zeros((2, BINS)), np.zeros((2, BINS))
    clicks[0], pages[0] = seen(rng, 2.0, np.full(300, 14.0))
    told = interest(clicks, pages, EDGES, PRIOR)
    assert told.profit[1] == pytest.approx(told.profit[0], rel=0.02)
    assert told.decay[1] == pytest.approx(told.decay[0], rel=0.02)
    assert told.error[1] > 10 * told.error[0]


@given(counts, counts)
def test_whatever_was_counted_both_are_numbers_above_nothing(clicks: Floats, pages: Floats) -> None:
    told = interest(clicks, pages, EDGES, PRIOR)
    for column in told:
        assert np.all(np.isfinite(column))
        assert np.all(column > 0.0)


@given(counts, counts, st.permutations(range(3)))
def test_the_order_of_sources_does_not_matter(
    clicks: Floats, pages: Floats, order: list[int]
) -> None:
    one, other = (interest(clicks[p], pages[p], EDGES, PRIOR) for p in (slice(None), order))
    for mine, theirs in zip(Interest(*one), Interest(*other), strict=True):
        assert theirs == pytest.approx(mine[order], rel=1e-4)


@given(counts, counts)
def test_more_clicks_tell_more(clicks: Floats, pages: Floats) -> None:
    few = interest(clicks, pages, EDGES, PRIOR)
    many = interest(clicks + 1.0, pages, EDGES, PRIOR)
    assert np.all(many.error < few.error)
