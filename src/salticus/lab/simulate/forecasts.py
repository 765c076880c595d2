"""What trained models say of a log's pages: from what the crawl's own visits saw, or the log's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np

from salticus.exchange.folder import Log
from salticus.exchange.truth import Truth
from salticus.features.events import EventKind, Events, make_events, runs
from salticus.features.groups import Groups, groups_of
from salticus.features.metadata import Vocabulary
from salticus.features.past import FeatureStream
from salticus.features.seen import demand_events, pages_of, seen_events
from salticus.lab.simulate.clicking import clicks_of
from salticus.lab.simulate.stage import Stage
from salticus.models.file import Saved, load_model
from salticus.types import CHANGED, Floats, Floats32, Inputs, Ints, Outcomes, Times, instant
from salticus.types.dates import DAY_US, HOUR_US
from salticus.types.frames import pl
from salticus.types.state import places

loaded = lru_cache(maxsize=8)(load_model)

LOG_VIEWS = {"full": "full", "logged": "partial"}
"""How the log is seen where estimates do not rest on the policy's own visits."""

_ROWS = 100_000  # pages that are scored at a time
_MONTH = 31 * 24  # hours
_MOST = 1.0 - 1e-6  # of a hazard
_ONE = np.zeros(1, dtype=np.int64)  # the first page, to let time pass


class Forecasts(Protocol):
    """What a model says of pages (rows of the truth) at an hour: hazards in the stretches that end
    `edges` hours ahead, rows × edges. Hours never fall."""

    edges: tuple[int, ...]

    def hazards(self, rows: Ints, hour: int) -> Floats: ...


@dataclass(frozen=True, slots=True)
class KnownPages:
    """What is known of pages without visiting them, in the order of a truth's rows."""

    ids: Ints
    frame: pl.DataFrame
    groups: Groups

    @classmethod
    def of(cls, log: Log, truth: Truth) -> KnownPages:
        names = truth.names.to_frame("page_id")
        frame = names.join(pages_of(log), on="page_id", how="left", maintain_order="left")
        return cls(truth.ids, frame, groups_of(frame))

    def rows(self, ids: Ints) -> Ints:
        return places(self.ids, ids)[0]


class CrawlFeatures:
    """The features of a stage's pages as its crawl itself comes to know them: births, the outcomes
    of its visits, and what the log counted of clicks.

    There is one for all models of a run that look the same hours ahead. A page is born when it is
    there; prices are not told. Law: what is read at an hour depends on what came before it alone.
    """

    def __init__(self, stage: Stage, known: KnownPages, edges: tuple[int, ...]) -> None:
        counted = stage.log.has("demand")
        self.known = known
        self.edges = edges
        self.stream = FeatureStream(known.groups, edges=edges, full=False, demand=counted)
        self.hour = -1  # of the last reading
        births = _hours(stage.truth.born)
        order = np.argsort(births, kind="stable")
        self._births = make_events(EventKind.BORN, births[order], order)
        demand = demand_events(stage.log, known.frame) if counted else Events.none()
        first = int(instant(stage.start).astype(np.int64)) // HOUR_US - _MONTH
        self._demand = demand.take(demand.hour >= first)
        self._counted = 0  # rows of demand that were told

    def learn(self, outcomes: Outcomes) -> None:
        """Visits of pages that are there; what an hour brings counts from the next one on, and what
        comes after the features were read is taken for new."""
        seen = outcomes.take(outcomes.answered)
        rows, at = self.known.rows(seen.page), np.maximum(_hours(seen.at), self.hour)
        gap = ((seen.at - seen.since) / np.timedelta64(HOUR_US, "us")).astype(np.float32)
        events = make_events(EventKind.VISIT, at, rows, gap)
        new = seen.changed == CHANGED
        self._born(int(at.max(initial=0)))
        self.stream.learn(events.join(make_events(EventKind.CHANGE, at[new], rows[new])).ordered())

    def read(self, rows: Ints, hour: int) -> Inputs:
        """The features of pages at an hour that is not before the last one asked about."""
        self._born(hour)
        until = int(np.searchsorted(self._demand.hour, hour))
        self.stream.learn(self._demand.take(np.arange(self._counted, until)))
        self._counted, self.hour = max(self._counted, until), max(self.hour, hour)
        return self.stream.read(rows, np.full(len(rows), hour))

    def _born(self, hour: int) -> None:
        """Let the pages be known that were there by an hour."""
        if not len(self._births) or self._births.hour[0] > hour:
            return
        many = int(np.searchsorted(self._births.hour, hour, side="right"))
        born = self._births.take(np.arange(many))
        self._births = self._births.take(np.arange(many, len(self._births)))
        late = make_events(EventKind.BORN, np.maximum(born.hour, self.hour), born.page)
        self.stream.learn(late.ordered())


class LogFeatures:
    """The features of a stage's pages as its log tells them to estimates, whoever crawls.

    Law: what is read at an hour depends on what came before it alone.
    """

    def __init__(self, stage: Stage, known: KnownPages, edges: tuple[int, ...], depth: int) -> None:
        log, observe = stage.log, stage.rules.observe
        full, demand = observe == "full", log.has("demand")
        self.known = known
        self.stream = FeatureStream(
            known.groups, edges=edges, full=full, demand=demand, depth=depth
        )
        self._days = seen_events(log, known.frame, LOG_VIEWS[observe], seed=stage.seed)
        self._waiting = next(self._days, None)

    def read(self, rows: Ints, hour: int) -> Inputs:
        """The features of pages at an hour that is not before the last one asked about."""
        while self._waiting is not None and (early := self._waiting.hour < hour).any():
            first = self._waiting.hour[:1] // 24 * 24
            if first >= self.stream.reached:  # what came before may be forgotten
                self.stream.read(_ONE, first)
            self.stream.learn(self._waiting.take(early))
            later = self._waiting.take(~early)
            self._waiting = later if len(later) else next(self._days, None)
        return self.stream.read(rows, np.full(len(rows), hour))


class CrawlForecasts:
    """A model that is asked as a crawl goes on, with what its visits or the log have told."""

    def __init__(self, saved: Saved, features: CrawlFeatures | LogFeatures) -> None:
        self.saved, self.features = saved, features
        self.edges = tuple(saved.manifest["edges"])
        self.metadata = Vocabulary.of(*saved.vocabulary).encode(features.known.frame)

    def hazards(self, rows: Ints, hour: int) -> Floats:
        parts = [
            self.saved.model.hazards(self.features.read(some, hour), self.metadata)
            for some in np.split(rows, range(_ROWS, len(rows), _ROWS))
        ]
        return np.concatenate(parts)


class DailyForecasts:
    """What a model says at each midnight from the log itself, the same whoever crawls; and in the
    hours of clicks of the pages that are clicked, if it was asked then (`ClickForecasts`)."""

    def __init__(
        self,
        edges: tuple[int, ...],
        first: int,
        hazards: Floats32,
        clicked: ClickForecasts | None = None,
    ) -> None:
        self.edges, self.first = edges, first
        self.clicked = clicked
        self._hazards = hazards  # days × pages × edges

    def hazards(self, rows: Ints, hour: int) -> Floats:
        day = min(max(hour // 24 - self.first, 0), len(self._hazards) - 1)
        found = np.asarray(self._hazards[day, rows], dtype=np.float64)
        if self.clicked is not None:
            place, known = places(self.clicked.keys, self.clicked.key(rows, hour))
            found[known] = self.clicked.hazards[place[known]]
        return found


class ClickForecasts:
    """The hours in which pages are clicked, and what a model says then."""

    def __init__(self, rows: Ints, hours: Ints, pages: int, edges: int) -> None:
        self.pages = pages
        self.keys = np.unique(self.key(rows, hours))
        self.hazards: Floats32 = np.empty((len(self.keys), edges), dtype=np.float32)

    def key(self, rows: Ints, hours: Ints | int) -> Ints:
        """One number for each page in an hour, ordered by hour."""
        return np.asarray(hours * self.pages + rows)

    def ask(self, model: CrawlForecasts, start: int, end: int) -> None:
        """Ask the model about the clicks from one hour to before another, hour by hour."""
        low, high = np.searchsorted(self.keys, [start * self.pages, end * self.pages])
        hours, rows = np.divmod(self.keys[low:high], self.pages)
        for first, last in runs(hours):
            found = model.hazards(rows[first:last], int(hours[first]))
            self.hazards[low + first : low + last] = np.minimum(found, _MOST)


class OracleForecasts:
    """An oracle in the place of a model: hazards at rates that are known, changes a day."""

    def __init__(self, rates: Floats) -> None:
        self.rates = rates
        self.edges: tuple[int, ...] = (24, 168)

    def hazards(self, rows: Ints, hour: int) -> Floats:
        days = np.diff(self.edges, prepend=0) / 24.0
        return np.minimum(-np.expm1(-self.rates[rows, None] * days), 1.0 - 1e-12)


def forecasts_of(stage: Stage, folder: Path, features: CrawlFeatures | None = None) -> Forecasts:
    """What the model of a folder says of a stage's pages; from the features of its own crawl where
    they are given, else from the log as the rules let estimates see it."""
    if features is not None:
        return CrawlForecasts(loaded(folder), features)
    insta = stage.rules.insta
    clicks = None if insta is None or insta.horizon is None else stage.seed
    seen = _Seen(folder, stage.log.folder, _days(stage), stage.rules.observe, clicks, stage)
    return _daily(seen)


def edges_of(folder: Path) -> tuple[int, ...]:
    """The hours ahead of a model that shape its features."""
    return tuple(loaded(folder).manifest["recipe"]["edges"])


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the forecasts of a model on a log depend on; runs of one world share them. `clicks` is
    the seed of its clicks, if the model is asked about these."""

    model: Path
    log: Path
    days: tuple[int, int]
    observe: str
    clicks: int | None
    stage: Stage

    @property
    def _key(self) -> tuple[object, ...]:
        return self.model, self.log, self.days, self.observe, self.clicks

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Seen)
            and self._key == other._key
            and np.array_equal(self.stage.truth.ids, other.stage.truth.ids)
        )


def _days(stage: Stage) -> tuple[int, int]:
    """The UTC days, since 1970, on which a model is asked: first, and the one after the last."""
    first, end = (int(instant(t).astype(np.int64)) for t in (stage.weighed, stage.end))
    return first // DAY_US, -(-end // DAY_US)


@lru_cache(maxsize=8)
def _daily(seen: _Seen) -> DailyForecasts:
    stage, saved = seen.stage, loaded(seen.model)
    known, depth = KnownPages.of(stage.log, stage.truth), int(saved.manifest["recipe"]["depth"])
    model = CrawlForecasts(saved, LogFeatures(stage, known, edges_of(seen.model), depth))
    first, end = seen.days
    rows, clicked = np.arange(len(known.ids)), None
    hazards = np.empty((end - first, len(rows), len(model.edges)), dtype=np.float32)
    if seen.clicks is not None:
        clicks = clicks_of(stage)
        clicked = ClickForecasts(clicks.page, _hours(clicks.at), len(rows), len(model.edges))
    for day in range(first, end):
        hazards[day - first] = np.minimum(model.hazards(rows, 24 * day), _MOST)
        if clicked is not None:
            clicked.ask(model, 24 * day, 24 * day + 24)
    return DailyForecasts(model.edges, first, hazards, clicked)


def _hours(times: Times) -> Ints:
    return np.asarray(times.view(np.int64) // HOUR_US)
