"""Two predictors on the visits of a crawl: which one would have foretold the latest better?

Only visits to explore and of the panel count: where a policy looks depends on what was foretold.
Coins do not fall on all pages alike, so each visit to explore weighs one over its chance, 50 times
the usual weight at most; one of the panel weighs as much as they do on average.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np

from salticus.crawl.census import Census
from salticus.errors import InputError
from salticus.features.following import NOWHERE
from salticus.features.places import Places
from salticus.models.file import Saved
from salticus.models.training.metrics import auc, calibration_error, log_loss, reliability
from salticus.models.traits import Traits
from salticus.predict.fitted import Fitted
from salticus.predict.followed import Followed, PastCounts, Sources
from salticus.predict.retrace import ticks
from salticus.predict.rhythm import Rhythm
from salticus.predict.versioned import Versioned
from salticus.store.base import Store
from salticus.types import UNKNOWN, Outcomes, Pages, Purpose, Tick
from salticus.types.arrays import NEVER, Bools, Floats, Ints, days_between, instant
from salticus.types.dates import HOUR_US

EVER = 2**62  # a number above all rows of counts
FAIR = np.array([Purpose.EXPLORE, Purpose.PANEL], dtype=np.int8)
_MOST = 50.0  # times the usual weight
SLACK = 0.01  # by which AUC and calibration error may be worse
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class JudgedTime:
    """The time that is judged, and how long a tick is."""

    start: datetime
    end: datetime
    tick: timedelta


@dataclass
class Foretold:
    """Of judged visits: whether a change was found, what each predictor gave it, its weight."""

    changed: Bools = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    chances: Floats = field(default_factory=lambda: np.empty((0, 0)))
    weight: Floats = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.changed)

    def verdict(self, least: int) -> Decided:
        """See `verdict`."""
        return verdict(self, least)

    def figures(self, which: int) -> Figures:
        """Log loss, AUC and expected calibration error of a predictor; None without meaning."""
        said = self.chances[:, which] if len(self.changed) else np.empty(0)
        found = {
            "log_loss": log_loss(said, self.changed, self.weight),
            "auc": auc(said, self.changed, self.weight),
            "ece": calibration_error(reliability(said, self.changed, self.weight)),
        }
        return {name: float(x) if np.isfinite(x) else None for name, x in found.items()}


Figures = dict[str, float | None]

Decided = tuple[bool, str]
"""Whether one takes over, and why."""

Rival = Saved | Traits | None
"""A model, traits, or nothing but the rhythm."""

Ticks = Iterator[tuple[datetime, Outcomes]]


async def contest(
    store: Store, rivals: Sequence[Rival], when: JudgedTime, places: Places = NOWHERE
) -> Foretold:
    """Replay the stored visits as the loop would have lived through them, with each rival.

    None is the predictor of the cold start. Until `when.start` it alone learns; then each rival
    takes over, as a model does that is promoted. A visit is judged by what was foretold at the
    start of its tick, unless its page had answered meanwhile.
    """
    crowd = Crowd(await everyone(store, when.start))
    rhythm = Rhythm()
    for now, outcomes in ticks(store.history(), _DAY, end=when.start):
        rhythm.meet(crowd.pages(now), now)
        rhythm.learn(outcomes)
        crowd.learn(outcomes)
    sources = sources_before(store, when.start, places)
    predictors = [_rival(rhythm, saved, sources) for saved in rivals]
    later = ticks(store.history(), when.tick, when.start, when.end)
    return foretold(predictors, crowd, _with_counts(later, store, predictors, when.start))


def _with_counts(
    visits: Ticks, store: Store, predictors: Sequence[Versioned], start: datetime
) -> Ticks:
    """The visits, tick by tick; predictors are told what was counted before each."""
    counts = PastCounts(store.past_counts(EVER))
    for _ in counts.until(hour_of(start)):
        pass  # they know of these
    for now, outcomes in visits:
        for some in counts.until(hour_of(now)):
            for each in predictors:
                each.followed.count(some)
        yield now, outcomes


def foretold(predictors: Sequence[Versioned | Fitted], crowd: Crowd, visits: Ticks) -> Foretold:
    """What predictors give visits, tick by tick, while they learn from all of them."""
    changed, chances, propensity = [], [], []
    for now, outcomes in visits:
        pages = crowd.pages(now)
        judged = _judged(outcomes, crowd)
        rows, place = np.unique(crowd.rows(judged.page), return_inverse=True)
        asked, ages = pages.take(rows), days_between(judged.since, judged.at)
        said = []
        for each in predictors:
            each.meet(pages, now)
            said.append(1.0 - each.survival(asked, now).take(place).unchanged(ages))
            each.learn(outcomes)
        chances.append(np.stack(said, axis=1))
        changed.append(judged.changed == 1)
        explores = judged.purpose == Purpose.EXPLORE
        propensity.append(np.where(explores, judged.propensity, np.nan))
        crowd.learn(outcomes)
    if not changed:
        return Foretold(chances=np.empty((0, len(predictors))))
    weight = _weights(np.concatenate(propensity))
    return Foretold(np.concatenate(changed), np.concatenate(chances), weight)


def sources_before(store: Store, end: datetime, places: Places) -> Sources:
    """Where models look up what was known of a store's pages at a time."""
    return Sources(
        store.facts,
        lambda: before(store.history(), end),
        lambda until: PastCounts(store.past_counts(EVER)).until(hour_of(end)),
        places,
    )


def hour_of(when: datetime) -> int:
    """The UTC hour, since 1970."""
    return int(instant(when).astype(np.int64)) // HOUR_US


def _weights(propensity: Floats) -> Floats:
    """One over the chance of each visit, around 1; 1 where there was no coin (NaN).

    >>> _weights(np.array([0.1, 0.2, np.nan])).round(3)
    array([1.333, 0.667, 1.   ])
    """
    weight = 1.0 / np.maximum(propensity, 1e-12)
    if np.isnan(weight).all():
        return np.ones(len(weight))
    weight = np.minimum(weight, _MOST * np.nanmedian(weight))
    return np.nan_to_num(weight / np.nanmean(weight), nan=1.0)


def verdict(found: Foretold, least: int) -> Decided:
    """Whether the first rival takes the place of the second, and why.

    Log loss decides, by more than one standard error of the difference on the same visits; AUC and
    calibration error must not be worse by more than 0.01.
    """
    n, changes = len(found.changed), int(found.changed.sum())
    if n < least or not 0 < changes < n:
        return False, (
            f"not enough yet: {n} visits to explore or of the panel, {changes} of them found a "
            f"change; {least} are needed, with changes and without"
        )
    new, old = found.figures(0), found.figures(1)
    better = losses(found, 1) - losses(found, 0)
    mean = float(np.average(better, weights=found.weight))
    error = float(np.sqrt(np.sum((found.weight * (better - mean)) ** 2)) / found.weight.sum())
    said = f"log loss {new['log_loss']:.4f} against {old['log_loss']:.4f} on {n} visits"
    return decided((mean, error), (new, old), said)


def decided(better: tuple[float, float], figures: tuple[Figures, Figures], said: str) -> Decided:
    """Whether a new one takes over that is better by so much, with this standard error."""
    (mean, error), (new, old) = better, figures
    if mean <= error:
        word = "worse" if mean <= 0 else "hardly better than chance would have it"
        return False, f"{word}: {said}"
    if (new["auc"] or 0) < (old["auc"] or 0) - SLACK:
        return False, f"it ranks worse: AUC {new['auc']:.4f} against {old['auc']:.4f}"
    if (new["ece"] or 0) > (old["ece"] or 0) + SLACK:
        return False, f"its chances come true less: error {new['ece']:.4f}, not {old['ece']:.4f}"
    return True, f"better: {said}"


def losses(found: Foretold, which: int) -> Floats:
    """The log loss of a predictor on each visit."""
    said = np.clip(found.chances[:, which], 1e-12, 1 - 1e-12)
    return -np.log(np.where(found.changed, said, 1 - said))


# ------------------------------------------------------------------------------------ the replay


async def everyone(store: Store, at: datetime) -> Pages:
    """All pages of a store, also those that rest."""
    census = Census(store)
    await census.refresh()
    return census.everyone(Tick(0, at, at), lambda _: 1.0)


class Crowd:
    """Pages, and when each last answered."""

    def __init__(self, pages: Pages) -> None:
        if not len(pages):
            raise InputError("the store has no pages")
        self.answer = np.full(len(pages), NEVER)
        self._pages = pages

    def pages(self, now: datetime) -> Pages:
        return replace(self._pages, tick=Tick(0, now, now)).answered(self.answer)

    def rows(self, ids: Ints) -> Ints:
        return self._pages.rows(ids)

    def learn(self, outcomes: Outcomes) -> None:
        seen = outcomes.take(outcomes.answered)
        self.answer = self.answer.copy()  # curves hold the old one
        self.answer[self.rows(seen.page)] = seen.at


def _judged(outcomes: Outcomes, crowd: Crowd) -> Outcomes:
    known = np.isin(outcomes.purpose, FAIR) & outcomes.answered
    known &= (outcomes.changed != UNKNOWN) & (outcomes.at > outcomes.since)
    return outcomes.take(known & (crowd.answer[crowd.rows(outcomes.page)] == outcomes.since))


def _rival(rhythm: Rhythm, saved: Rival, sources: Sources) -> Versioned:
    rival = Versioned(Followed(sources))
    blank = {f"told_{name}": column for name, column in rival.told_.state().items()}
    state = {name: np.array(column) for name, column in rhythm.state().items()}
    rival.restore({**state, **blank})
    rival.use_model(saved)
    return rival


def before(history: Iterator[Outcomes], end: datetime) -> Iterator[Outcomes]:
    """The outcomes of a history until a time."""
    for chunk in history:
        yield chunk.take(chunk.at < instant(end))
        if chunk.at[-1] >= instant(end):
            return
