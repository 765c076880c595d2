"""InstaCrawl requests with a gate: how fresh is the copy that each request finds?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from salticus import plugins, predict
from salticus.allocate.gate import BUILTIN as GATES
from salticus.allocate.gate.base import Decisions, Gate
from salticus.exchange.folder import Log
from salticus.exchange.truth import read_truth
from salticus.lab.simulate.compare import ContestEntry, savings, spread
from salticus.lab.simulate.contest import Told, plain, spans
from salticus.lab.simulate.referee import Score
from salticus.lab.simulate.requests import WINDOW, Requests, judged, read_requests
from salticus.lab.simulate.run import Frozen, teach
from salticus.lab.simulate.stage import SimulationSettings, Stage, runs_of, set_stage
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

BASELINE = "uniform"
Found = dict[tuple[str, float], list[dict[str, Any]]]


def replay_requests(
    log: Log,
    rules: SimulationSettings,
    shares: Sequence[float],
    gates: Sequence[str] = (BASELINE,),
    told: Told = lambda step: None,
) -> dict[str, Any]:
    """Replay the log's requests through gates that send a share of them each.

    A row for each gate and share: the resource R = sent / requests, the freshness that requests
    find, of 6 h each from the end of the warm-up on (Han 2019, eq. 2, 3, Fig. 10), and the visits
    that found a change. `savings`: resources saved at the freshness of the uniform gate (Fig. 11).
    """
    for gate in gates:
        plugins.load("gate", gate, GATES)
    told("reading the log")
    truth = read_truth(log, seed=rules.seed)
    runs = runs_of(log, rules)
    found: Found = {(gate, share): [] for gate in dict.fromkeys(gates) for share in shares}
    for number in range(runs):
        stage = set_stage(log, rules, run=number, truth=truth)
        for (gate, share), row in _run(stage, found):
            told(f"{gate}, share {share:g}, run {number + 1} of {runs}")
            found[gate, share].append(row)
    return {
        "log": {"name": log.about.name, "folder": str(log.folder), "pages": len(stage.truth)},
        "rules": plain({**asdict(rules), **spans(stage), "runs": runs}),
        "rows": [_row(gate, share, rows) for (gate, share), rows in found.items()],
        "savings": _savings(found),
        "notes": [
            "every copy is fresh when the crawl starts; each request is scored before it is "
            "sent or not"
        ],
    }


def _run(stage: Stage, wanted: Found) -> Iterator[tuple[tuple[str, float], dict[str, Any]]]:
    """The row of every gate and share in one run."""
    requests = read_requests(stage.log, stage.truth, stage.crawl, stage.end, seed=stage.seed)
    settled = (stage.score - stage.crawl) // WINDOW
    scorer: Predictor | None = None
    for gate, share in wanted:
        if gate == BASELINE:
            sent = requests.chance < share
        else:
            scorer = scorer or taught(stage)
            made: Gate = plugins.make("gate", gate, GATES, share=share)
            sent = sent_through(made, stage, requests, deepcopy(scorer))
        row = judged(requests, sent, stage.crawl, stage.end)
        yield (gate, share), {**row, "settled": row["windows"][settled:]}


def _row(gate: str, share: float, runs: list[dict[str, Any]]) -> dict[str, Any]:
    windows = np.array([row["windows"] for row in runs], dtype=np.float64)
    middle = [None if np.isnan(w).all() else float(np.nanmedian(w)) for w in windows.T]
    return {
        "gate": gate,
        "budget": f"{share:g}",
        "runs": len(runs),
        "requests": runs[0]["requests"],
        "resource": _mean(runs, "resource"),
        "freshness": spread(np.concatenate([_settled(row) for row in runs])),
        "found": _mean(runs, "found"),
        "windows": middle,
    }


def _mean(runs: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([row[name] or 0.0 for row in runs]))


def _settled(row: dict[str, Any]) -> Floats:
    return np.array(row["settled"], dtype=np.float64)


def _savings(found: Found) -> list[dict[str, Any]]:
    """Resources that each gate saves at the freshness of the uniform one; none without it."""
    entries = [
        ContestEntry(gate, _mean(runs, "resource"), f"{share:g}", tuple(map(_score, runs)))
        for (gate, share), runs in found.items()
        if share > 0
    ]
    base = [entry for entry in entries if entry.policy == BASELINE]
    known = base and all(np.isfinite(entry.values("clicks")).any() for entry in entries)
    others = [entry for entry in entries if entry.policy != BASELINE]
    rows = [_renamed(row) for row in savings([*base, *others])] if known else []
    gates = [gate for gate, _ in found]
    return sorted(rows, key=lambda row: gates.index(row["gate"]))


def _score(row: dict[str, Any]) -> Score:
    """The windows as if they were days, so that gates are compared as policies are."""
    return Score(clicks=_settled(row).tolist())


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    return {"gate": row["policy"], **{k: v for k, v in row.items() if k != "policy"}}


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
