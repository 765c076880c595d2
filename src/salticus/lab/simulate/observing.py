"""What estimates may see of a log: the truth, or the visits of the crawler that made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial

from salticus.errors import InputError
from salticus.exchange.truth import Truth
from salticus.lab.simulate.logged import logged_outcomes
from salticus.lab.simulate.stage import Stage
from salticus.lab.worlds.replay import fully_observed
from salticus.predict.base import Meets, Predictor
from salticus.types import Outcomes, Pages, Survival, instant

Observations = Callable[[datetime, datetime], Iterator[Outcomes]]
"""What was seen of a log between two times."""

Watch = Callable[[Truth, datetime, datetime, timedelta], Iterator[Outcomes]]

_DAY = timedelta(days=1)


class LogObserver:
    """A predictor that learns, every midnight, what someone else saw on the day before.

    As in Han et al. (2020), where estimates rest on the whole log whatever a policy visits; what
    the crawl's own visits find teaches nothing.
    """

    def __init__(self, predictor: Predictor, observations: Observations, start: datetime) -> None:
        self.predictor, self.observations = predictor, observations
        self.until = start  # which midnight everything before is known

    def meet(self, pages: Pages, now: datetime) -> None:
        while now - self.until >= _DAY:
            for outcomes in self.observations(self.until, self.until + _DAY):
                self.predictor.learn(outcomes)
            self.until += _DAY
        if isinstance(self.predictor, Meets):
            self.predictor.meet(pages, now)

    def survival(self, pages: Pages, now: datetime) -> Survival:
        return self.predictor.survival(pages, now)

    def learn(self, outcomes: Outcomes) -> None:
        """Nothing."""


def observations_of(stage: Stage, watch: Watch = fully_observed) -> Observations:
    """What the rules of a stage let estimates see of its log between two times.

    Where that is the truth, `watch` tells how the visits are told that see it.
    """
    if stage.rules.observe in ("own", "full"):
        if stage.rules.observe == "full" and stage.truth.imputed:
            raise InputError(
                f"{stage.log.folder}: there is no truth to see in full; use --observe partial"
            )
        return partial(_truth_between, stage, watch)
    if stage.past is not None:
        visits = stage.past.outcomes
    else:
        visits = logged_outcomes(stage.log, stage.truth, stage.start, stage.end)

    def between(start: datetime, end: datetime) -> Iterator[Outcomes]:
        yield visits.take((visits.at >= instant(start)) & (visits.at < instant(end)))

    return between


def _truth_between(
    stage: Stage, watch: Watch, start: datetime, end: datetime
) -> Iterator[Outcomes]:
    """The changes between two times as someone saw them who looked at every step."""
    step = stage.rules.tick
    return watch(stage.truth, max(start - step, stage.start), end, step)
