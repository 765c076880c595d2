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
from salticus.models.file import Saved
from salticus.models.training.metrics import auc, calibration_error, log_loss, reliability
from salticus.predict.base import ask
from salticus.predict.followed import Followed, PastCounts, Sources
from salticus.predict.modelled import Modelled
from salticus.predict.rhythm import Rhythm
from salticus.store.base import Store
from salticus.types import UNKNOWN, Outcomes, Pages, Purpose, Tick
from salticus.types.arrays import NEVER, Bools, Floats, Ints, days_between, instant, moment
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

    def figures(self, which: int) -> dict[str, float | None]:
        """Log loss, AUC and expected calibration error of a predictor; None without meaning."""
        said = self.chances[:, which] if len(self.changed) else np.empty(0)
        found = {
            "log_loss": log_loss(said, self.changed, self.weight),
            "auc": auc(said, self.changed, self.weight),
            "ece": calibration_error(reliability(said, self.changed, self.weight)),
        }
        return {name: float(x) if np.isfinite(x) else None for name, x in found.items()}


async def contest(store: Store, rivals: Sequence[Saved | None], when: JudgedTime) -> Foretold:
    """Replay the stored visits as the loop would have lived through them, with each rival.

    None is the predictor of the cold start. Until `when.start` it alone learns; then each rival
    takes over, as a model does that is promoted. A visit is judged by what was foretold at the
    start of its tick, unless its page had answered meanwhile.
    """
    crowd = _Crowd(await _pages(store, when.start))
    rhythm = Rhythm()
    for now, outcomes in _ticks(store.history(), None, instant(when.start), _DAY):
        rhythm.meet(crowd.pages(now), now)
        rhythm.learn(outcomes)
        crowd.learn(outcomes)
    sources = sources_before(store, when.start)
    predictors = [_rival(rhythm, saved, sources) for saved in rivals]
    counts = PastCounts(store.past_counts(EVER))
    for _ in counts.until(hour_of(when.start)):
        pass  # they have been told
    changed, chances, propensity = [], [], []
    for now, outcomes in _ticks(store.history(), when.start, instant(when.end), when.tick):
        for some in counts.until(hour_of(now)):
            for each in predictors:
                each.followed.count(some)
        pages = crowd.pages(now)
        judged = _judged(outcomes, crowd)
        rows, ages = crowd.rows(judged.page), days_between(judged.since, judged.at)
        curves = [ask(each, pages, now).take(rows) for each in predictors]
        chances.append(np.stack([1.0 - curve.unchanged(ages) for curve in curves], axis=1))
        changed.append(judged.changed == 1)
        explores = judged.purpose == Purpose.EXPLORE
        propensity.append(np.where(explores, judged.propensity, np.nan))
        for each in predictors:
            each.learn(outcomes)
        crowd.learn(outcomes)
    if not changed:
        return Foretold(chances=np.empty((0, len(rivals))))
    weight = _weights(np.concatenate(propensity))
    return Foretold(np.concatenate(changed), np.concatenate(chances), weight)


def sources_before(store: Store, end: datetime) -> Sources:
    """Where models look up what was known of a store's pages at a time."""
    return Sources(
        store.facts,
        lambda: _before(store.history(), end),
        lambda until: PastCounts(store.past_counts(EVER)).until(hour_of(end)),
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


def verdict(found: Foretold, least: int) -> tuple[bool, str]:
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
    better = _losses(found, 1) - _losses(found, 0)
    mean = float(np.average(better, weights=found.weight))
    error = float(np.sqrt(np.sum((found.weight * (better - mean)) ** 2)) / found.weight.sum())
    said = f"log loss {new['log_loss']:.4f} against {old['log_loss']:.4f} on {n} visits"
    if mean <= error:
        word = "worse" if mean <= 0 else "hardly better than chance would have it"
        return False, f"{word}: {said}"
    if (new["auc"] or 0) < (old["auc"] or 0) - SLACK:
        return False, f"it ranks worse: AUC {new['auc']:.4f} against {old['auc']:.4f}"
    if (new["ece"] or 0) > (old["ece"] or 0) + SLACK:
        return False, f"its chances come true less: error {new['ece']:.4f}, not {old['ece']:.4f}"
    return True, f"better: {said}"


def _losses(found: Foretold, which: int) -> Floats:
    said = np.clip(found.chances[:, which], 1e-12, 1 - 1e-12)
    return -np.log(np.where(found.changed, said, 1 - said))


# ------------------------------------------------------------------------------------ the replay


async def _pages(store: Store, at: datetime) -> Pages:
    census = Census(store)
    await census.refresh()
    return census.everyone(Tick(0, at, at), lambda _: 1.0)


class _Crowd:
    """All pages, and when each last answered."""

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


def _judged(outcomes: Outcomes, crowd: _Crowd) -> Outcomes:
    known = np.isin(outcomes.purpose, FAIR) & outcomes.answered
    known &= (outcomes.changed != UNKNOWN) & (outcomes.at > outcomes.since)
    return outcomes.take(known & (crowd.answer[crowd.rows(outcomes.page)] == outcomes.since))


def _rival(rhythm: Rhythm, saved: Saved | None, sources: Sources) -> Modelled:
    rival = Modelled(Followed(sources))
    blank = {f"told_{name}": column for name, column in rival.told_.state().items()}
    state = {name: np.array(column) for name, column in rhythm.state().items()}
    rival.restore({**state, **blank})
    rival.employ(saved)
    return rival


def _ticks(
    history: Iterator[Outcomes], start: datetime | None, end: np.datetime64, length: timedelta
) -> Iterator[tuple[datetime, Outcomes]]:
    """The outcomes of [start, end) tick by tick, from the first on if no start is given."""
    step, waiting = np.timedelta64(length // timedelta(microseconds=1), "us"), None
    now = None if start is None else instant(start)
    for chunk in history:
        some = chunk.take((chunk.at < end) & (chunk.at >= (chunk.at[0] if now is None else now)))
        if not len(some):
            continue
        now = some.at[0] if now is None else now
        waiting = some if waiting is None else waiting.join(some)
        while len(waiting) and waiting.at[-1] >= now + step:
            due = int(np.searchsorted(waiting.at, now + step))
            yield moment(now), waiting.take(np.arange(due))
            waiting, now = waiting.take(np.arange(due, len(waiting))), now + step
    if waiting is not None and now is not None and len(waiting):
        yield moment(now), waiting


def _before(history: Iterator[Outcomes], end: datetime) -> Iterator[Outcomes]:
    for chunk in history:
        yield chunk.take(chunk.at < instant(end))
        if chunk.at[-1] >= instant(end):
            return
