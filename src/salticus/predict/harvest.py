"""What a visit to a source brings: how many new links, and how often people click on their pages.

Both depend on how long ago the last visit was. Links that stand for long are seldom those of which
most are made, and often those that people want: on a list of which nine tenths are gone after eight
hours, what still stands may be worth twice as much as what is new. So nothing is derived from one
rate at which links vanish and one at which interest decays; both curves are measured, on a scale of
doubling times, for all sources together, and every source is drawn to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.predict.interest import Prior
from salticus.predict.rhythm import Week
from salticus.types import Columns, Floats, Floats32, Harvest, Ints, Times
from salticus.types.dates import DAY_US
from salticus.types.prospects import own_time

GAPS = 14  # between visits, each twice the one before
CLASSES = 10  # of how long links stood, and of the time since: each twice as long as the one before
_MEMORY = 14.0  # days
_GROWTH = 0.7  # by which links grow with the gap, as a power, before anything is known
_STANDS = 1.01 / 24.0  # days for which links stand as a rule: up to there all are seen
_LINKS = 10.0  # of a gap that it takes to believe them more than that
_SOURCE = 0.5  # links of a source that it takes to believe them more than other sources
_PAGES = 5.0  # the same of pages, each as different from others as its mean
_ROUNDS = 8
_TELLS = 3.0 / 24.0  # days up to which a gap tells at what hour links appeared


class Finds:
    """How many new links a visit finds: C·φ(gap), C of each source and φ of all together.

    φ grows with the gap, but not faster: a link that appeared has a smaller chance to stand yet. A
    source is drawn to the mean of all, and that in proportion to the links that it showed at its
    first visit. Before anything is known, a visit `usual` days after another finds one. What was
    found fades over 14 days. Gaps are of own time, which runs as links appear through the week on
    all sources together (`Week`). Cost: linear in visits; to solve, in sources.
    """

    def __init__(self, sources: int, *, shortest: float, usual: float) -> None:
        self.gaps: Floats = np.asarray(shortest * 2.0 ** np.arange(GAPS))
        self.usual = usual
        self.new_: Floats = np.zeros((sources, GAPS))
        self.visits_: Floats = np.zeros((sources, GAPS))
        self.shown_: Floats = np.full(sources, np.nan)
        self.week = Week()
        self.told_: Floats = self.solve()

    def grow(self, sources: int) -> None:
        """Make room for so many sources."""
        more = sources - len(self.shown_)
        self.new_, self.visits_ = (
            np.pad(table, ((0, more), (0, 0))) for table in (self.new_, self.visits_)
        )
        self.shown_ = np.pad(self.shown_, (0, more), constant_values=np.nan)
        self.told_ = self.solve()

    def met(self, source: Ints, shown: Floats) -> None:
        """First visits: so many links were there, all old."""
        self.shown_[source] = shown

    def learn(self, source: Ints, days: Floats, new: Floats, at: Times | None = None) -> None:
        """Visits so many days after the ones before, which found so many links; no source twice. If
        it is not said when they were `at`, nothing is learnt of the week."""
        if at is not None and len(source):
            days = self._own(source, days, new, at)
        fade = np.exp(-days / _MEMORY)[:, None]
        place = np.clip(np.log2(np.maximum(days, 1e-12) / self.gaps[0]), 0.0, GAPS - 1.0)
        low = np.minimum(place.astype(np.int64), GAPS - 2)
        for table, told in ((self.new_, new), (self.visits_, np.ones(len(new)))):
            table[source] *= fade
            table[source, low] += (1.0 - place + low) * told
            table[source, low + 1] += (place - low) * told

    def _own(self, source: Ints, days: Floats, new: Floats, at: Times) -> Floats:
        """The days until each visit in own time, having learnt what these visits say of it."""
        own = own_time(self.week.table_[0], at, days)
        told = Harvest(self.gaps, self.told_, self.told_).at(source, own)[0]
        end = at.view(np.int64)
        start = end - (days * DAY_US).astype(np.int64)
        says = np.minimum(_TELLS / days, 1.0)  # else what was supposed first stays for long
        rate = says * told / own
        self.week.learn(np.zeros(len(at), dtype=np.int64), start, end, rate, says * new)
        return own

    def solve(self) -> Floats:
        """Links that a visit to each source finds after each of the gaps.

        C and φ by turns, each the likeliest for the other, links being Poisson's.
        """
        growth = np.where(self.gaps[1:] <= _STANDS, 1.0, _GROWTH)
        curve: Floats = np.asarray(2.0 ** np.append(0.0, np.cumsum(growth)))
        found, met = self.new_.sum(axis=1), np.isfinite(self.shown_)
        usual = (self.shown_[met] + 1.0).mean() if met.any() else 1.0
        beside = np.where(met, (self.shown_ + 1.0) / usual, 1.0)
        for _ in range(_ROUNDS):
            meant = self.visits_ @ curve
            one = np.interp(self.usual, self.gaps, curve)
            every = (found.sum() + 1.0) / (meant.sum() + one)
            known = meant > 0.0
            every = ((found[known] / meant[known]).sum() + every) / (known.sum() + 1.0)
            scale = (_SOURCE + found) / (_SOURCE / (every * beside) + meant)
            told = (scale @ self.visits_) * curve
            curve *= (self.new_.sum(axis=0) + _LINKS) / (told + _LINKS)
            steps = np.clip(np.diff(np.log2(curve)), 0.0, 1.0)
            curve = np.asarray(2.0 ** np.concatenate([[0.0], np.cumsum(steps)]))
        self.curve_ = curve
        self.told_ = np.asarray(scale[:, None] * curve)
        return self.told_

    def stays(self) -> Floats:
        """Of the links found after each gap but the last, the share that stands for as long again:
        those that a visit after twice the gap would find besides those of its second half."""
        return np.diff(self.curve_) / self.curve_[:-1]


@dataclass(frozen=True, slots=True)
class HeldPages(Columns):
    """Pages of which a copy is held, each found on a `source`, and the clicks on them in some time.

    Their links appeared `age` days before the middle of that time, were last seen before the visit
    `since` days before it, and had stood then as long as `standing` says (`Yields.standing`).
    """

    source: Ints
    age: Floats
    standing: Ints
    since: Floats
    clicks: Floats


class Yields:
    """How many clicks a found page gets from when its link was last seen: by source, and by how
    long the link had stood then.

    Clicks are counted by the time since, of pages that are held, and with them the share of each
    time through which pages were watched; so that pages visited late, or lately, bias nothing. The
    curve of each class of standing is that of all sources, drawn to that of all classes. A source
    has a factor on it, and each of its classes one more, as far as its own pages tell: a prior of 5
    pages, or of as many more as it takes to make 5 clicks. Cost: linear in pages watched; to solve,
    in sources, of which each takes 800 bytes.
    """

    def __init__(self, sources: int, *, resolution: float, prior: Prior) -> None:
        self.edges = np.concatenate([[0.0], resolution * 2.0 ** np.arange(CLASSES)])
        self.prior = prior
        self.clicks_: Floats32 = np.zeros((sources, CLASSES, CLASSES), dtype=np.float32)
        self.watched_: Floats32 = np.zeros((sources, CLASSES, CLASSES), dtype=np.float32)
        self.solve()

    def grow(self, sources: int) -> None:
        """Make room for so many sources."""
        more = ((0, sources - len(self.clicks_)), (0, 0), (0, 0))
        self.clicks_, self.watched_ = (np.pad(t, more) for t in (self.clicks_, self.watched_))

    def standing(self, stood: Floats) -> Ints:
        """The class of links that stood for so many days."""
        return np.clip(np.searchsorted(self.edges, stood, side="right") - 1, 0, CLASSES - 1)

    def watch(self, pages: HeldPages, days: float) -> None:
        """Learn how often pages were clicked in so many days."""
        bins = np.searchsorted(self.edges, pages.since, side="right") - 1
        fits = np.flatnonzero(bins < CLASSES)
        at = pages.source[fits], pages.standing[fits], bins[fits]
        np.add.at(self.clicks_, at, pages.clicks[fits].astype(np.float32))
        width = np.diff(self.edges)[bins[fits]]
        np.add.at(self.watched_, at, (days / width).astype(np.float32))

    def solve(self) -> None:
        """Work out what all that was learnt says."""
        first = self.prior.profit * -np.diff(np.exp(-self.prior.decay * self.edges))
        clicks, watched = (
            table.sum(axis=0, dtype=np.float64) for table in (self.clicks_, self.watched_)
        )
        every = _drawn(clicks.sum(axis=0), watched.sum(axis=0), first, _weight(first.sum()))
        weight = _weight(every.sum())
        curve = _drawn(clicks, watched, every, weight)  # clicks on a page, by class and time since
        each = curve.sum(axis=1)
        self.later_ = np.hstack([curve[:, ::-1].cumsum(axis=1)[:, ::-1], np.zeros((CLASSES, 1))])
        self.later_ /= each[:, None]
        got = self.clicks_.sum(axis=2, dtype=np.float64)
        meant = np.einsum("icb,cb->ic", self.watched_, curve)
        factor = _ratio(got.sum(axis=1), meant.sum(axis=1), weight * every.sum())[:, None]
        alike = factor * each
        self.worth_: Floats = alike * _ratio(got, factor * meant, weight * alike)

    def remaining(self, source: Ints, stood: Floats, since: Floats) -> Floats:
        """Clicks that pages of these sources will get yet, whose links `stood` for so many days
        when they were last seen, so many days ago."""
        standing = self.standing(stood)
        left = np.empty(len(source))
        for kind in range(CLASSES):
            some = np.flatnonzero(standing == kind)
            left[some] = np.interp(since[some], self.edges, self.later_[kind])
        return np.asarray(self.worth_[source, standing] * left)

    def by_gap(self, gaps: Floats) -> Floats:
        """Clicks on each page that a visit finds after each of these gaps, days: its link has stood
        for half of it, as far as one knows. Within the first class, whose links stood for half of
        it on average, they fade as they do from when a link was last seen."""
        stood = 0.5 * gaps
        fresh = np.minimum(stood, self.edges[1])
        half = np.where(stood < self.edges[1], 0.5 * self.edges[1], self.edges[1])
        fades = np.interp([fresh, half], self.edges, self.later_[0])
        return np.asarray(self.worth_[:, self.standing(stood)] * (fades[0] / fades[1]))


def _weight(clicks: float) -> float:
    """Pages that what others say counts for, if a page gets so many clicks on average."""
    return _PAGES * (1.0 + 1.0 / clicks)


def _drawn(clicks: Floats, watched: Floats, usual: Floats, weight: float) -> Floats:
    return np.asarray((clicks + weight * usual) / (watched + weight))


def _ratio(got: Floats, meant: Floats, weight: Floats | float) -> Floats:
    return np.asarray((got + weight) / (meant + weight))
