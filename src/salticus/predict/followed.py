"""The features of a crawl's pages, kept once for all models that serve in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from salticus.features.following import NOWHERE, Facts, Following, as_crawled
from salticus.features.metadata import Vocabulary
from salticus.features.places import Places
from salticus.types import Counts, Inputs, Ints, Metadata, Outcomes
from salticus.types.dates import HOUR_US
from salticus.types.frames import pl
from salticus.types.state import State, part_of

Edges = tuple[int, ...]

_ASKED = 50_000  # pages at a time
_WAITING = 1_000_000  # visits
_TRIED = 10_000  # pages by which it is told what is unknown
_ONE = np.zeros(1, dtype=np.int64)  # the first row, to let time pass


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a crawl looks up what it does not keep in memory; every store has all of it."""

    facts: Callable[[Ints], Facts]
    history: Callable[[], Iterator[Outcomes]]
    counts: Callable[[int], Iterator[Counts]] = lambda until: iter(())
    places: Places = NOWHERE

    def __deepcopy__(self, memo: dict[int, object]) -> Sources:
        """The same: a copy of a predictor asks the same store."""
        return self


class Followed:
    """What is known of a crawl's pages, as models look at it: from visits, clicks and facts.

    Each model that serves says so by `follow`, under the name of its task; what nobody follows is
    not kept. Whoever begins finds what visits and clicks before have told: it is made from what is
    stored. Law: what is read depends on visits and clicks alone, not on when it began or how they
    were cut; to be told twice of a visit changes nothing.
    """

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.mark_ = 0  # number of the last row of counts that was told
        self.streams_: dict[Edges, Following] = {}
        self._users: dict[str, Edges] = {}

    def follow(self, task: str, edges: Edges) -> Following:
        """Keep the features that shape themselves by so many hours ahead, for a task."""
        self._users[task] = edges
        if edges not in self.streams_:
            self.streams_[edges] = self._retraced(Following(edges, self.sources.places))
        self._drop()
        return self.streams_[edges]

    def of(self, task: str) -> Following | None:
        """The features that are kept for a task."""
        return self.streams_.get(self._users.get(task, ()))

    def leave(self, task: str) -> None:
        """A task needs none any more."""
        self._users.pop(task, None)
        self._drop()

    def unknown(self, task: str, names: Sequence[str], hour: int) -> list[str]:
        """Those of the features (names) that no page has in an hour, as far as some tell."""
        following = self.of(task)
        if following is None or not len(following):
            return []
        self._place(following)
        found = following.read(np.arange(min(len(following), _TRIED)), hour)
        return [n for n in names if n in found.names and np.isnan(found.column(n)).all()]

    def rebuild(self) -> None:
        """Let all be made anew when it is needed, as the stored past has become another."""
        self.streams_, self._users = {}, {}

    def learn(self, outcomes: Outcomes) -> None:
        for following in self.streams_.values():
            following.learn(outcomes)

    def count(self, counts: Counts) -> None:
        """Take clicks and impressions that were counted since the last time."""
        for following in self.streams_.values():
            following.count(counts)
        self.mark_ = max(self.mark_, counts.last)

    def meet(self, following: Following, ids: Ints, hour: int) -> Ints:
        """Let the pages (ids) be known that there are, and an hour begin; the rows of these."""
        following.meet(ids)
        self._place(following)
        following.read(_ONE[: len(following)], hour)
        return following.rows(ids)[0]

    def inputs(
        self, following: Following, ids: Ints, vocabulary: Vocabulary
    ) -> tuple[Inputs, Metadata]:
        """What a model is asked with of pages that were met, in the last hour that began."""
        found = following.read(following.rows(ids)[0], following.hour)
        metadata = encoded(self.sources.facts(ids), vocabulary, self.sources.places)
        return replace(found, page=np.arange(len(ids))), metadata

    def _drop(self) -> None:
        wanted = set(self._users.values())
        self.streams_ = {edges: kept for edges, kept in self.streams_.items() if edges in wanted}

    def _retraced(self, following: Following) -> Following:
        """With all visits and counts that are stored; from time to time old events are let go."""
        waiting, counts = 0, PastCounts(self.sources.counts(self.mark_))
        for outcomes in self.sources.history():
            following.learn(outcomes)
            waiting += len(outcomes)
            if waiting > _WAITING:
                hour = int(outcomes.at[-1].astype(np.int64)) // HOUR_US
                for some in counts.until(hour):
                    following.count(some)
                self._place(following)
                following.read(_ONE, hour)
                waiting = 0
        for some in counts.until(None):
            following.count(some)
        return following

    def _place(self, following: Following) -> None:
        touched = following.touched()
        for start in range(0, len(touched), _ASKED):
            some = touched[start : start + _ASKED]
            following.place(some, self.sources.facts(some))

    def state(self) -> State:
        kept: State = {"mark": np.array(self.mark_), "places": np.array(repr(self.sources.places))}
        for number, (edges, following) in enumerate(self.streams_.items()):
            kept[f"edges{number}"] = np.array(edges)
            users = [task for task, wanted in self._users.items() if wanted == edges]
            kept[f"users{number}"] = np.array(users, np.str_)
            columns = following.state().items()
            kept |= {f"stream{number}_{name}": column for name, column in columns}
        return kept

    def restore(self, state: State) -> None:
        self.rebuild()
        self.mark_ = int(state["mark"])
        if str(state["places"]) != repr(self.sources.places):
            return  # hosts are of other merchants now, so that all is made anew
        for number in range(sum(name.startswith("edges") for name in state)):
            edges = tuple(state[f"edges{number}"].tolist())
            self._users |= dict.fromkeys(state[f"users{number}"].tolist(), edges)
            self.streams_[edges] = Following(edges, self.sources.places)
            self.streams_[edges].restore(part_of(state, f"stream{number}_"))


class PastCounts:
    """Counts in order of time, told as time goes on."""

    def __init__(self, chunks: Iterator[Counts]) -> None:
        self._chunks = chunks
        self._rest: Counts | None = next(chunks, None)

    def until(self, hour: int | None) -> Iterator[Counts]:
        """Those before a UTC hour (since 1970) that were not told yet; None: all."""
        while (rest := self._rest) is not None:
            hours = rest.at.view(np.int64) // HOUR_US
            early = len(rest) if hour is None else int(np.searchsorted(hours, hour))
            yield rest.take(np.arange(early))
            if early < len(rest):
                self._rest = rest.take(np.arange(early, len(rest)))
                return
            self._rest = next(self._chunks, None)


def encoded(facts: Facts, vocabulary: Vocabulary, places: Places = NOWHERE) -> Metadata:
    """Facts as the numbers of a vocabulary."""
    texts = {name: pl.Series(name, column, dtype=pl.String) for name, column in facts.items()}
    return vocabulary.encode(as_crawled(pl.DataFrame(texts), places))
