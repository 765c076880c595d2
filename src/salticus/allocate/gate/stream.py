"""The gates that hold a share of a stream: by ranks among the scores of late, and by what is owed.

The loops over requests are compiled; one request depends on all before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from salticus.allocate.gate.base import Decisions, a_share, decided, scored
from salticus.errors import ConfigError
from salticus.types import Floats
from salticus.types.compiled import compiled
from salticus.types.state import State

MARKS = 1024
SEEN, KEPT, NEXT, DEBT, GAMMA = range(5)

_GOLDEN = 0.6180339887498949  # its multiples fall evenly into [0, 1) and echo no rhythm
_KEPT = ("recent", "ordered", "usage", "numbers")
_SOONEST, _LATEST, _SHARE = 50.0, 5000.0, 1 / 200


class Book(NamedTuple):
    """What a gate knows of its stream.

    `recent` holds scores in the order in which they came, `ordered` the same by size. `usage`
    counts of late how often each quantile came. `numbers`: requests seen, scores kept, where the
    next goes, requests owed (share · seen − sent), and γ.
    """

    share: float
    memory: float
    recent: Floats
    ordered: Floats
    usage: Floats
    numbers: Floats


def new_book(share: float, memory: int, quantiles: int) -> Book:
    """The book of a gate that has seen nothing; each quantile counts as seen once."""
    marks = np.zeros(min(MARKS, memory))
    return Book(share, float(memory), marks, marks.copy(), np.ones(quantiles), np.zeros(5))


class StreamGate:
    """A gate that knows its stream by a book, and keeps that over a restart."""

    book_: Book

    def state(self) -> State:
        return {name: getattr(self.book_, name).copy() for name in _KEPT}

    def restore(self, state: State) -> None:
        kept = (state[name].copy() for name in _KEPT)
        self.book_ = Book(self.book_.share, self.book_.memory, *kept)


class InstaCrawl(StreamGate):
    """Sends a request of quantile i of n with probability p_i = min(1, (i/n)·γ).

    Han et al. 2019, §6.1.2, eq. 1; the first quantile is the lowest. Quantiles are those of the
    last `memory` requests, of which about a thousand scores are kept; scores that are equal are in
    the quantile of their middle. γ is solved anew for every request so that `share` of all
    requests is sent: from how often each quantile came of late, and from what is owed. No request
    is hopeless: γ is never below half the share, so p_i ≥ share/2n. (A share of 0 sends nothing.)

    Cost: one search among the kept scores a request, in constant memory.

    >>> gate = InstaCrawl(share=0.2)
    >>> chance = np.arange(5000) * 0.618 % 1
    >>> sent = gate.send(np.arange(5000) % 7 / 7, chance).sent
    >>> bool(abs(sent.mean() - 0.2) < 0.01)
    True
    """

    def __init__(self, *, share: float = 0.2, quantiles: int = 20, memory: int = 20_000) -> None:
        if quantiles < 1 or memory < 1:
            raise ConfigError("a gate needs at least one quantile, and a memory of one request")
        self.share = a_share(share)
        self.quantiles = quantiles
        self.memory = memory
        self.book_ = new_book(share, memory, quantiles)

    def send(self, scores: Floats, chances: Floats) -> Decisions:
        return decided(by_quantiles(self.book_, scored(scores), chances), chances)


class ThresholdGate(StreamGate):
    """Sends a request if its score is among the highest `share` of late.

    "The simplest way" of Han et al. 2019, §6.1.2, and its danger: a page whose score stays low may
    never be visited, so a wrong prediction is never found out. `floor` is the probability of the
    requests below the threshold; with it, nothing is hopeless. The threshold is the quantile that
    holds the share; scores that tie there are sent by chance. Cost: as InstaCrawl.

    >>> gate, scores = ThresholdGate(share=0.5), np.tile([0.1, 0.9], 50)
    >>> gate.send(scores, np.full(100, 0.5)).sent[-4:]
    array([False,  True, False,  True])
    """

    def __init__(self, *, share: float = 0.2, floor: float = 0.0, memory: int = 20_000) -> None:
        if not 0.0 <= floor <= share or memory < 1:
            raise ConfigError("a threshold's floor is at most its share, its memory one or more")
        self.share = a_share(share)
        self.floor = floor
        self.memory = memory
        self.book_ = new_book(share, memory, 1)

    def send(self, scores: Floats, chances: Floats) -> Decisions:
        return decided(by_threshold(self.book_, scored(scores), chances, self.floor), chances)


@compiled
def place(book: Book, score: float) -> tuple[float, float]:
    """Where a score stands among those of late and itself: shares below it, and not above it.

    Equal scores share one interval. Then the score is kept: all at first, later so many that those
    kept come from the last `memory` requests.
    """
    numbers, size = book.numbers, len(book.recent)
    kept = int(numbers[KEPT])
    low = np.searchsorted(book.ordered[:kept], score, side="left")
    high = np.searchsorted(book.ordered[:kept], score, side="right") + 1
    if kept < size or (numbers[SEEN] * _GOLDEN) % 1.0 < size / book.memory:
        _keep(book, score, kept)
    numbers[SEEN] += 1
    return low / (kept + 1), high / (kept + 1)


@compiled
def _keep(book: Book, score: float, kept: int) -> None:
    """Put a score in the place of the oldest one; the others close the gap."""
    ordered, numbers = book.ordered, book.numbers
    place, gap = int(numbers[NEXT]), kept
    if kept == len(ordered):
        gap = np.searchsorted(ordered, book.recent[place])
    else:
        numbers[KEPT] += 1
    while gap > 0 and ordered[gap - 1] > score:
        ordered[gap] = ordered[gap - 1]
        gap -= 1
    while gap + 1 < numbers[KEPT] and ordered[gap + 1] < score:
        ordered[gap] = ordered[gap + 1]
        gap += 1
    ordered[gap] = score
    book.recent[place] = score
    numbers[NEXT] = (place + 1) % len(ordered)


@compiled
def aim(book: Book) -> float:
    """The share to send now: the one to hold, and what is owed over the next requests.

    A debt is paid within as many requests as a 200th of those seen, 50 at least and 5,000 at most,
    so that the share realised is off by half a point at most for long, whatever the scores do.
    """
    patience = min(max(book.numbers[SEEN] * _SHARE, _SOONEST), _LATEST)
    wanted: float = book.share + book.numbers[DEBT] / patience
    return min(1.0, max(0.0, wanted))


@compiled
def settle(book: Book, sent: bool) -> None:
    """Keep account of a decision."""
    book.numbers[DEBT] += book.share - (1.0 if sent else 0.0)


@compiled
def gamma(usage: Floats, share: float) -> float:
    """γ with Σ uᵢ·min(1, (i/n)γ) = share·Σ uᵢ, n at most: at γ = n everything is sent.

    From the highest quantile down, those whose probability would pass 1 are sent for certain.
    """
    n = len(usage)
    if share >= 1.0:
        return float(n)
    left = share * usage.sum()
    slope = 0.0
    for i in range(n):
        slope += usage[i] * (i + 1) / n
    for i in range(n, 0, -1):
        if left * i <= slope * n:
            break
        left -= usage[i - 1]
        slope -= usage[i - 1] * i / n
    return min(float(n), max(0.0, left / slope)) if slope > 0 else float(n)


@compiled
def by_quantiles(book: Book, scores: Floats, chances: Floats) -> Floats:
    """Propensities p_i = min(1, (i/n)γ), request by request (Han 2019, eq. 1)."""
    n = len(book.usage)
    propensity = np.empty(len(scores))
    for k in range(len(scores)):
        low, high = place(book, scores[k])
        i = min(n, int(n * (low + high) / 2) + 1)
        book.usage[:] *= 1 - 1 / book.memory
        book.usage[i - 1] += 1.0
        book.numbers[GAMMA] = max(book.share / 2, gamma(book.usage, aim(book)))
        propensity[k] = min(1.0, i / n * book.numbers[GAMMA])
        settle(book, chances[k] < propensity[k])
    return propensity


@compiled
def by_threshold(book: Book, scores: Floats, chances: Floats, floor: float) -> Floats:
    """Propensities 1 above the threshold and `floor` below it, request by request.

    Scores that tie at the threshold share what is left.
    """
    propensity = np.empty(len(scores))
    for k in range(len(scores)):
        low, high = place(book, scores[k])
        above = max(0.0, aim(book) - floor) / (1.0 - floor) if floor < 1.0 else 0.0
        part = min(1.0, max(0.0, (high - 1.0 + above) / (high - low)))
        propensity[k] = floor + (1.0 - floor) * part
        settle(book, chances[k] < propensity[k])
    return propensity
