"""Requests through a gate that looks at what was observed: step by step, in order of time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from salticus import plugins, predict
from salticus.allocate.gate.base import Decisions, Gate
from salticus.lab.simulate.requests import Requests
from salticus.lab.simulate.run import Frozen, teach
from salticus.lab.simulate.stage import Stage
from salticus.lab.worlds.replay import Replay
from salticus.predict.base import Predictor, ask
from salticus.types import (
    CHANGED,
    UNCHANGED,
    UNKNOWN,
    Bools,
    Floats,
    Ints,
    Outcomes,
    Pages,
    Purpose,
    Status,
    Tick,
    instant,
)
from salticus.types.state import rank_within


def taught(stage: Stage) -> Predictor:
    """The predictor of the rules, with what the history teaches."""
    predictor: Predictor = plugins.make("predictor", stage.rules.predictor, predict.BUILTIN)
    teach(stage, Replay(stage.truth, stage.readers, seed=stage.seed), predictor)
    return predictor


def sent_through(gate: Gate, stage: Stage, requests: Requests, predictor: Predictor) -> Bools:
    """Which of the requests a gate sends. Its score is 1 − S(age): the predicted probability that
    the page has changed since its last answer.

    Time goes in ticks. The requests of a tick are scored with what is known at its start; those of
    one page come one after another, and a visit sent is known to the next. Then the predictor
    learns what the visits of the tick brought, and nothing else. A page born within the tick has
    just been copied: its score is 0.
    """
    if stage.rules.frozen:
        predictor = Frozen(predictor)
    return asyncio.run(_Gated(gate, stage, requests, predictor).run())


class _Gated:
    """One replay: what is held of each page, and what was sent so far."""

    def __init__(self, gate: Gate, stage: Stage, requests: Requests, predictor: Predictor) -> None:
        self.gate = gate
        self.stage = stage
        self.requests = requests
        self.predictor = predictor
        self.world = Replay(stage.truth, stage.readers, seed=stage.seed)
        self.answered = self.world.last_answer_
        self.answered[:] = np.maximum(stage.truth.born, instant(stage.crawl))
        self.held = np.zeros(len(stage.truth), dtype=np.int64)
        self.held[requests.page] = requests.first
        self.sent = np.zeros(len(requests), dtype=np.bool_)

    async def run(self) -> Bools:
        for tick, rows in self._ticks():
            pages = await self.world.pages(tick)
            survival = ask(self.predictor, pages, tick.start)
            pages = replace(pages, survival=survival)
            news = [self._ask(some, pages) for some in self._rounds(rows)]
            for outcomes in news:
                self.predictor.learn(outcomes)
        return self.sent

    def _ticks(self) -> Iterator[tuple[Tick, Ints]]:
        """The ticks in which somebody asks, and who, in order of time."""
        length, at = self.stage.rules.tick, self.requests.at
        number = (at - instant(self.stage.crawl)) // np.timedelta64(length)
        order = np.lexsort((self.requests.page, at))
        for rows in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
            if len(rows):
                k = int(number[rows[0]])
                start = self.stage.crawl + k * length
                yield Tick(k, start, start + length), rows

    def _rounds(self, rows: Ints) -> Iterator[Ints]:
        """The requests in rounds in which no page occurs twice."""
        rank = rank_within(self.requests.page[rows])
        for k in range(int(rank.max()) + 1):
            yield rows[rank == k]

    def _ask(self, rows: Ints, pages: Pages) -> Outcomes:
        """Let the gate decide on requests of different pages; what the visits taught."""
        decisions = self.gate.send(self._scores(rows, pages), self.requests.chance[rows])
        self.sent[rows] = decisions.sent
        return self._visited(rows, decisions)

    def _scores(self, rows: Ints, pages: Pages) -> Floats:
        """How likely each copy is out of date; `pages` holds a view of when they answered."""
        page = self.requests.page[rows]
        met = page < len(pages)
        scores = np.zeros(len(rows))
        scores[met] = pages.outdated(self.requests.at[rows[met]], page[met])
        return scores

    def _visited(self, rows: Ints, decisions: Decisions) -> Outcomes:
        decisions, rows = decisions.take(decisions.sent), rows[decisions.sent]
        page, true = self.requests.page[rows], self.requests.true[rows]
        at, failed = self.requests.at[rows], self.requests.failed[rows]
        held = self.held[page]
        told = np.where(held == true, UNCHANGED, CHANGED)
        comparable = ~failed & (held >= 0) & (true >= 0)
        status = np.where(failed, Status.TIMEOUT, np.where(true < 0, Status.GONE, Status.OK))
        outcomes = Outcomes.known(
            page=self.stage.truth.ids[page],
            at=at,
            status=status.astype(np.int8),
            changed=np.where(comparable, told, UNKNOWN).astype(np.int8),
            since=self.answered[page],
            purpose=Purpose.INSTA,
            propensity=decisions.propensity,
        )
        self.held[page[~failed]] = true[~failed]
        self.answered[page[~failed]] = at[~failed]
        return outcomes
