"""Two models of clicks (or impressions) on the visits of a crawl: which would have foretold better?

Each speaks beside the same counts; counts alone are a rival too. All pages judge, on every day:
unlike changes, clicks are known of pages that nobody visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from salticus.crawl.census import Census
from salticus.crawl.contest import (
    EVER,
    Decided,
    Figures,
    Foretold,
    JudgedTime,
    Rival,
    decided,
    hour_of,
    sources_before,
)
from salticus.features.following import NOWHERE
from salticus.features.places import Places
from salticus.predict.followed import Followed, PastCounts
from salticus.predict.modelled_demand import CountedDemand, ModelledDemand
from salticus.predict.retrace import ticks
from salticus.signals.demand import Demand
from salticus.store.base import Store
from salticus.types import KINDS, Floats, Pages, Tick, instant
from salticus.types.state import places

_DAY = timedelta(days=1)
_LEAST = 1e-6  # clicks a day
_JUDGED = 200_000  # pages that decide at most
_WHICH = {"click": 0, "impression": 1}


@dataclass
class ForetoldDemand:
    """Of judged days: what came of each page, and the rate that each rival gave it, days × pages
    (× rivals). NaN of pages that were not there yet."""

    came: Floats
    rates: Floats

    def __len__(self) -> int:
        """Days of pages that are judged."""
        return int(np.count_nonzero(~np.isnan(self.came)))

    def losses(self, which: int) -> Floats:
        """λ − c·ln λ of c clicks at a rate λ, days × pages (Poisson, but for what is the same for
        all)."""
        rate = np.maximum(self.rates[..., which], _LEAST)
        return np.asarray(rate - self.came * np.log(rate))

    def figures(self, which: int) -> Figures:
        """The mean of the losses; log loss, AUC and calibration error of P(any click on a day)."""
        there = ~np.isnan(self.came)
        came, rate = self.came[there], self.rates[there][:, which]
        found = Foretold(came > 0, -np.expm1(-rate)[:, np.newaxis], np.ones(len(came)))
        loss = float(np.nanmean(self.losses(which))) if len(came) else None
        return {"poisson": loss, **found.figures(0)}

    def verdict(self, least: int) -> Decided:
        """Whether the first rival takes the place of the second, and why.

        The Poisson loss decides, by more than one standard error of the difference, page by page,
        as the days of a page are alike; AUC and calibration error must not be worse by more than
        0.01.
        """
        days, clicked = len(self), int(np.count_nonzero(self.came > 0))
        if days < least or not 0 < clicked < days:
            return False, f"not enough yet: {days} days of pages, {clicked} of them with any"
        better = np.nan_to_num(self.losses(1) - self.losses(0)).sum(axis=0)
        mean = float(better.sum() / days)
        error = float(np.sqrt(np.sum((better - better.mean()) ** 2)) / days)
        new, old = self.figures(0), self.figures(1)
        said = f"Poisson loss {new['poisson']:.4f} against {old['poisson']:.4f}"
        said += f" on {days} days of pages"
        return decided((mean, error), (new, old), said)


async def demand_contest(
    store: Store, task: str, rivals: Sequence[Rival], when: JudgedTime, where: Places = NOWHERE
) -> ForetoldDemand:
    """Replay the whole UTC days of a time as the loop would have lived through them, with each
    rival beside the same counts. None is counts alone."""
    start = _midnight(when.start)
    census = Census(store)
    await census.refresh()
    pages = census.everyone(Tick(0, start, start), lambda _: 1.0)
    pages = pages.take(pages.kind != KINDS.index("source"))
    sources, demand = sources_before(store, start, where), Demand()
    each = [ModelledDemand(task, Followed(sources)) for _ in rivals]
    for part, saved in zip(each, rivals, strict=True):
        part.use_model(saved)
    past = PastCounts(store.past_counts(EVER))
    for some in past.until(hour_of(start)):
        demand.learn(some)
    judged = np.arange(0, len(pages), max(1, -(-len(pages) // _JUDGED)))
    rates, came = [], []
    for now, outcomes in ticks(store.history(), _DAY, start, when.end):
        if now + _DAY > when.end:
            break
        counted = _counted(demand, task, pages, now)
        for part in each:
            part.meet(pages.ids, now, lambda c=counted: c)  # type: ignore[misc]
        rates.append(np.stack([part.rates(pages.ids, counted)[judged] for part in each], axis=1))
        day = np.where(pages.added[judged] > instant(now), np.nan, 0.0)
        for some in past.until(hour_of(now) + 24):
            demand.learn(some)
            for part in each:
                part.followed.count(some)
                part.count(some)
            row, known = places(pages.ids[judged], some.page)
            np.add.at(day, row[known], getattr(some, f"{task}s")[known])
        came.append(day)
        for part in each:
            part.followed.learn(outcomes)
    if not came:
        return ForetoldDemand(np.empty((0, 0)), np.empty((0, 0, len(rivals))))
    return ForetoldDemand(np.stack(came), np.stack(rates))


def _counted(demand: Demand, task: str, pages: Pages, now: datetime) -> CountedDemand:
    which, at = _WHICH[task], instant(now)
    rates = demand.rates(pages.ids, np.minimum(pages.added, at), pages.demand, at)[which]
    return CountedDemand(rates, np.rint(demand.counted(pages.ids, at)[which]).astype(np.int64))


def _midnight(when: datetime) -> datetime:
    """The first midnight (UTC) that is not before."""
    day = when.replace(hour=0, minute=0, second=0, microsecond=0)
    return day if day == when else day + _DAY
