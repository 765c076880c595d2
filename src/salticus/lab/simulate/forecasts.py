"""What trained models say of a log's pages: from what the crawl's own visits saw, or the log's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np

from salticus.exchange.folder import Log
from salticus.exchange.truth import Truth
from salticus.features.events import EventKind, Events, make_events
from salticus.features.groups import Groups, groups_of
from salticus.features.metadata import Vocabulary
from salticus.features.past import FeatureStream
from salticus.features.seen import demand_events, pages_of, seen_events
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
        """Visits of pages that are there; what an hour brings counts from the next one on."""
        seen = outcomes.take(outcomes.answered)
        rows, at = self.known.rows(seen.page), _hours(seen.at)
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
        many = int(np.searchsorted(self._births.hour, hour, side="right"))
        if many:
            born = self._births.take(np.arange(many))
            self._births = self._births.take(np.arange(many, len(self._births)))
            late = make_events(EventKind.BORN, np.maximum(born.hour, self.hour), born.page)
            self.stream.learn(late.ordered())


class CrawlForecasts:
    """A model that is asked with what the crawl's own visits saw."""

    def __init__(self, saved: Saved, features: CrawlFeatures) -> None:
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
    """What a model says at each midnight from the log itself, the same whoever crawls."""

    def __init__(self, edges: tuple[int, ...], first: int, hazards: Floats32) -> None:
        self.edges, self.first = edges, first
        self._hazards = hazards  # days × pages × edges

    def hazards(self, rows: Ints, hour: int) -> Floats:
        day = min(max(hour // 24 - self.first, 0), len(self._hazards) - 1)
        return np.asarray(self._hazards[day, rows], dtype=np.float64)


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
    return _daily(_Seen(folder, stage.log.folder, _days(stage), stage.rules.observe, stage))


def edges_of(folder: Path) -> tuple[int, ...]:
    """The hours ahead of a model that shape its features."""
    return tuple(loaded(folder).manifest["recipe"]["edges"])


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the forecasts of a model on a log depend on; runs of one world share them."""

    model: Path
    log: Path
    days: tuple[int, int]
    observe: str
    stage: Stage

    def __hash__(self) -> int:
        return hash((self.model, self.log, self.days, self.observe))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Seen)
            and (self.model, self.log, self.days, self.observe)
            == (other.model, other.log, other.days, other.observe)
            and np.array_equal(self.stage.truth.ids, other.stage.truth.ids)
        )


def _days(stage: Stage) -> tuple[int, int]:
    """The UTC days, since 1970, on which a model is asked: first, and the one after the last."""
    first, end = (int(instant(t).astype(np.int64)) for t in (stage.weighed, stage.end))
    return first // DAY_US, -(-end // DAY_US)


@lru_cache(maxsize=8)
def _daily(seen: _Seen) -> DailyForecasts:
    saved, known = loaded(seen.model), KnownPages.of(seen.stage.log, seen.stage.truth)
    metadata = Vocabulary.of(*saved.vocabulary).encode(known.frame)
    edges, log = edges_of(seen.model), seen.stage.log
    stream = FeatureStream(
        known.groups,
        edges=edges,
        full=seen.observe == "full",
        demand=log.has("demand"),
        depth=int(saved.manifest["recipe"]["depth"]),
    )
    days = seen_events(log, known.frame, LOG_VIEWS[seen.observe], seed=seen.stage.seed)
    waiting, rows = next(days, None), np.arange(len(known.ids))
    told = len(saved.manifest["edges"])
    hazards = np.empty((seen.days[1] - seen.days[0], len(rows), told), dtype=np.float32)
    for day in range(*seen.days):
        while waiting is not None and waiting.hour[0] < 24 * day:
            stream.read(rows[:1], waiting.hour[:1] // 24 * 24)  # what came before may be forgotten
            stream.learn(waiting)
            waiting = next(days, None)
        for low in range(0, len(rows), _ROWS):
            some = rows[low : low + _ROWS]
            inputs = stream.read(some, np.full(len(some), 24 * day))
            found = saved.model.hazards(inputs, metadata)
            hazards[day - seen.days[0], some] = np.minimum(found, _MOST)
    return DailyForecasts(tuple(saved.manifest["edges"]), seen.days[0], hazards)


def _hours(times: Times) -> Ints:
    return np.asarray(times.view(np.int64) // HOUR_US)
