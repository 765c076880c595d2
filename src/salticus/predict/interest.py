"""How long people want the pages of a source: from the clicks on them, by age.

The clicks that a page has had at age t are taken to be P(1 − e^(−mt)) on average: P in all, and of
these P·e^(−mt) still to come (Lefortier et al. 2013, §2; ALGORITHMS §1.4). Clicks are counted in
bins of age, and with them how many pages were watched through each bin, so that pages that are
still young, or were lost from sight, bias nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from salticus.predict.gamma_prior import gamma_prior
from salticus.types import Floats, Ints
from salticus.types.compiled import compiled

CLICKS = 5.0  # what the other sources together say counts for as many
_SLOWEST, _FASTEST = 1e-4, 1e4  # a day
_EXACT, _STEPS = 1e-5, 100  # of the logarithm of a decay
_NEAR = 0.25  # by how much it is changed first


class Interest(NamedTuple):
    """Of each source the clicks that a new page of it gets in all, by which factor e^−`decay` they
    become fewer in a day, and the relative standard error of both."""

    profit: Floats
    decay: Floats
    error: Floats


class Prior(NamedTuple):
    """What is supposed where nothing is known: few clicks, so that no source without a history is
    visited too often, but some, or it would never be visited (Lefortier et al. 2013, §5)."""

    profit: float
    decay: float


def ages(resolution: float, last: float = 14.0) -> Floats:
    """Edges of bins of age, days: the finest as long as times are known to, older ones longer.

    >>> (ages(1 / 24, 1.0) * 24).round(6).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0]
    """
    edges, step = [0.0], 1.0
    while edges[-1] * resolution < last:
        edges.append(edges[-1] + step)
        if edges[-1] >= 4.0 and math.log2(edges[-1]).is_integer():
            step = edges[-1] / 2.0
    return np.array(edges) * resolution


def interest(clicks: Floats, pages: Floats, edges: Floats, prior: Prior) -> Interest:
    """P and m of each source, a row each: clicks in each bin of age, and pages watched through it.

    The likeliest P and m if clicks are Poisson's: for any m the best P is Σ clicks / Σ pages·q, q
    the share of a page's clicks that falls into the bin, so that there is one number to look for.
    Every source is drawn to what all together say, its m as if that were `CLICKS` clicks of its
    own, its P as far as sources are alike (`gamma_prior`); all together are drawn to the prior.
    Cost: linear in sources, about six passes over their bins.

    >>> edges = ages(1 / 24, 4.0)
    >>> share = -np.diff(np.exp(-2.0 * edges))
    >>> told = interest(3000 * share[None], np.full((1, len(share)), 600.0), edges, Prior(1.0, 1.0))
    >>> told.profit.round(2), told.decay.round(2)
    (array([5.]), array([2.]))
    """
    if not len(clicks):
        return Interest(*np.zeros((3, 0)))  # without the time that it takes to load compiled code
    every = _drawn(clicks.sum(axis=0)[None], pages.sum(axis=0)[None], edges, prior)
    decay = _drawn(clicks, pages, edges, Prior(float(every.profit[0]), float(every.decay[0]))).decay
    got = clicks.sum(axis=1)
    seen = np.einsum("ib,ib->i", pages, -np.diff(np.exp(-decay[:, None] * edges)))
    alike = gamma_prior(got, seen, prior.profit)
    got, seen = got + alike.shape, seen + alike.shape / alike.mean
    return Interest(got / seen, decay, 1.0 / np.sqrt(got))


def _drawn(clicks: Floats, pages: Floats, edges: Floats, prior: Prior) -> Interest:
    """The same, with the prior as so many clicks more."""
    share = -np.diff(np.exp(-prior.decay * edges))
    clicks, pages = clicks + CLICKS * share, pages + CLICKS / prior.profit
    profit, decay = _likeliest(clicks, pages, edges, prior.decay)
    return Interest(profit, decay, 1.0 / np.sqrt(clicks.sum(axis=1)))


@compiled
def _likeliest(clicks: Floats, pages: Floats, edges: Floats, usual: float) -> tuple[Floats, Floats]:
    """P and m of each source, looked for from the usual m on: most are near it."""
    profit, decay = np.empty(len(clicks)), np.empty(len(clicks))
    left, half = np.ones(len(edges)), _half(edges)
    for i in range(len(clicks)):
        lo, hi = math.log(_SLOWEST), math.log(_FASTEST)
        low, high, at, step = 0.0, 0.0, min(max(math.log(usual), lo), hi), _NEAR
        for _ in range(_STEPS):
            _fade(edges, half, math.exp(at), left)
            off, profit[i] = _slope(clicks[i], pages[i], edges, left)
            before = at
            if off > 0.0:
                lo, low, high = at, off, 0.5 * high  # halved, or one end would never move
            else:
                hi, high, low = at, off, 0.5 * low
            if low > 0.0 > high:
                at = lo + (hi - lo) * low / (low - high)
            else:
                at = min(at + step, hi) if off > 0.0 else max(at - step, lo)
                step *= 2.0
            if abs(at - before) < _EXACT:
                break
        decay[i] = math.exp(at)
    return profit, decay


@compiled
def _half(edges: Floats) -> Ints:
    """Which edge is at half the age of each; -1 if none is."""
    half = np.full(len(edges), -1)
    for k in range(len(edges)):
        for j in range(1, k):
            if 2.0 * edges[j] == edges[k]:
                half[k] = j
    return half


@compiled
def _fade(edges: Floats, half: Ints, decay: float, left: Floats) -> None:
    """Set what is left of interest at every edge, e^(−mt), squares where that is enough."""
    for k in range(len(edges)):
        left[k] = left[half[k]] ** 2 if half[k] >= 0 else math.exp(-decay * edges[k])


@compiled
def _slope(clicks: Floats, pages: Floats, edges: Floats, left: Floats) -> tuple[float, float]:
    """How the likelihood grows with m if P is the best for it, and that P; e^(−mt) is `left` of
    interest at every edge.

    It is Σ clicks·ln q − Σ clicks·ln Σ pages·q. With q = e^(−ma) − e^(−mb) in the bin from a to b,
    the slope of ln q is (b − a)/(e^(m(b−a)) − 1) − a: its mean over the clicks, less its mean over
    all clicks that m would bring.
    """
    got, told, seen, meant = 0.0, 0.0, 0.0, 0.0
    for k in range(len(clicks)):
        share, grows = left[k] - left[k + 1], -edges[k]
        if share > 0.0:
            grows += (edges[k + 1] - edges[k]) * left[k + 1] / share
        got += clicks[k]
        told += clicks[k] * grows
        seen += pages[k] * share
        meant += pages[k] * share * grows
    return told / got - meant / seen, got / seen
