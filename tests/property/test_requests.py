"""Laws of the replay of requests, on random small logs and against a plain loop."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.allocate.gate.base import Decisions
from salticus.allocate.gate.uniform import UniformGate
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import Truth, read_truth
from salticus.lab.simulate import SimulationSettings
from salticus.lab.simulate.insta import sent_through
from salticus.lab.simulate.requests import (
    Requests,
    fresh_at_requests,
    read_requests,
    replay_uniform,
)
from salticus.lab.simulate.stage import set_stage
from salticus.predict.poisson import PoissonSurvival
from salticus.types import (
    CHANGED,
    UNCHANGED,
    UNKNOWN,
    Floats,
    Outcomes,
    Pages,
    Survival,
    days_between,
    instant,
)

START = datetime(2018, 8, 1, tzinfo=UTC)
END = START + timedelta(days=2)
MINUTES = st.integers(-600, 2879)  # from before the start to before the end
AT = pl.Datetime("us", "UTC")
ABOUT = {"name": "r", "resolution": "1m", "span": ["2018-07-31", "2018-08-03"]}


@st.composite
def worlds(draw: Any) -> tuple[dict[int, list[tuple[int, str]]], list[tuple[int, int]]]:
    """The values of a few pages by minute after the start, and requests (page, minute)."""
    n = draw(st.integers(1, 4))
    truth = {}
    for page in range(n):
        minutes = sorted(draw(st.sets(MINUTES, min_size=1, max_size=6)))
        truth[page] = [(m, draw(st.sampled_from("ab"))) for m in minutes]
    asked = st.tuples(st.integers(0, n - 1), MINUTES)
    return truth, draw(st.lists(asked, max_size=20, unique=True))


def written(folder: Path, world: Any, failure: float = 0.0) -> Log:
    truth, asked = world
    values = [(p, START + timedelta(minutes=m), v) for p, rows in truth.items() for m, v in rows]
    requests = [(p, START + timedelta(minutes=m)) for p, m in asked]
    pages = pl.DataFrame({"page_id": list(truth), "failure": [failure] * len(truth)})
    pages.write_parquet(folder / "pages.parquet")
    kinds = {"page_id": pl.Int64, "at": AT}
    pl.DataFrame(values, schema=kinds | {"value": pl.String}, orient="row").write_parquet(
        folder / "values.parquet"
    )
    pl.DataFrame(requests, schema=kinds, orient="row").write_parquet(folder / "requests.parquet")
    (folder / "log.json").write_text(json.dumps(ABOUT))
    return Log(folder)


def replayed(log: Log, seed: int = 0) -> tuple[Truth, Requests]:
    truth = read_truth(log)
    return truth, read_requests(log, truth, START, END, seed=seed)


def plainly(world: Any, truth: Truth, requests: Requests, sent: Any) -> list[bool]:
    """Every page by a loop over its requests; what is held is what the last sent one found."""
    values, _ = world
    fresh, held = [], {}
    for i, row in enumerate(requests.page):
        rows = values[truth.names[int(row)]]
        minute = (requests.at[i] - np.datetime64(START.replace(tzinfo=None))) // np.timedelta64(
            1, "m"
        )
        copied = max(0, rows[0][0])
        held.setdefault(row, [v for m, v in rows if m <= copied][-1])
        true = [v for m, v in rows if m <= minute][-1]
        fresh.append(held[row] == true)
        if sent[i]:
            held[row] = true
    return fresh


@settings(max_examples=100, deadline=None)
@given(worlds(), st.integers(0, 2**20))
def test_the_plain_loop_finds_the_same(
    tmp_path_factory: pytest.TempPathFactory, world: Any, bits: int
) -> None:
    log = written(tmp_path_factory.mktemp("log"), world)
    truth, requests = replayed(log)
    sent = np.array([bool(bits >> i & 1) for i in range(len(requests))], dtype=bool)
    assert fresh_at_requests(requests, sent).tolist() == plainly(world, truth, requests, sent)


@settings(max_examples=50, deadline=None)
@given(worlds())
def test_requests_outside_the_span_or_before_the_birth_are_left_out(
    tmp_path_factory: pytest.TempPathFactory, world: Any
) -> None:
    values, asked = world
    _, requests = replayed(written(tmp_path_factory.mktemp("log"), world))
    kept = [(p, m) for p, m in asked if m >= 0 and m >= values[p][0][0]]
    assert len(requests) == len(kept)


@settings(max_examples=50, deadline=None)
@given(worlds(), st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_more_probability_sends_more_and_windows_add_up(
    tmp_path_factory: pytest.TempPathFactory, world: Any, probabilities: list[float]
) -> None:
    _, requests = replayed(written(tmp_path_factory.mktemp("log"), world))
    rows = list(replay_uniform(requests, [0.0, *sorted(probabilities), 1.0], START, END))
    assert all(len(row["windows"]) == 8 for row in rows)
    if len(requests):
        used = [row["resource"] for row in rows]
        assert used == sorted(used)
        assert (used[0], used[-1]) == (0.0, 1.0)
    else:
        assert all(row["freshness"] is None for row in rows)


# -------------------------------------------------------------------------------------- by hand


WORLD = ({0: [(-60, "a"), (60, "b"), (200, "a")], 1: [(30, "x"), (90, "y")]},
         [(0, 10), (0, 70), (0, 100), (0, 300), (1, 40), (1, 100), (1, 120)])  # fmt: skip


def test_freshness_is_scored_before_the_decision(tmp_path: Path) -> None:
    _, requests = replayed(written(tmp_path, WORLD))
    every, none = (fresh_at_requests(requests, np.full(7, sent)) for sent in (True, False))
    assert every.tolist() == [True, False, True, False, True, False, True]
    assert none.tolist() == [True, False, False, True, True, False, False]


def test_a_visit_that_fails_brings_nothing(tmp_path: Path) -> None:
    _, requests = replayed(written(tmp_path, WORLD, failure=1.0))
    rows = list(replay_uniform(requests, (0.0, 1.0), START, END))
    assert rows[0]["windows"] == rows[1]["windows"]
    assert rows[0]["windows"][0] == 3 / 7
    assert rows[1]["resource"] == 1.0


def test_the_decision_of_a_request_does_not_depend_on_other_pages(tmp_path: Path) -> None:
    truth, requests = replayed(written(tmp_path, WORLD), seed=3)
    alone = truth.take(truth.ids == 1)
    some = read_requests(Log(tmp_path), alone, START, END, seed=3)
    assert some.chance.tolist() == requests.chance[requests.page == 1].tolist()


def test_a_log_without_requests_says_so(tmp_path: Path) -> None:
    log = written(tmp_path, WORLD)
    log.path("requests").unlink()
    with pytest.raises(InputError, match=r"requests\.parquet"):
        replayed(log)


# ------------------------------------------------------------------------ a gate that looks at ages


class Steady:
    """A predictor for which every page changes once a day; keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, Any, Any, int]] = []

    def survival(self, pages: Pages, now: datetime) -> Survival:
        return PoissonSurvival(np.ones(len(pages)))

    def learn(self, outcomes: Outcomes) -> None:
        columns = (outcomes.page, outcomes.since, outcomes.at, outcomes.changed)
        self.told += zip(*(column.tolist() for column in columns), strict=True)


class Curious:
    """A gate that sends where the last bits of the chance say so; keeps the scores."""

    def __init__(self) -> None:
        self.scores: dict[float, float] = {}

    def send(self, scores: Floats, chances: Floats) -> Decisions:
        self.scores |= dict(zip(chances.tolist(), scores.tolist(), strict=True))
        p = np.where((chances * 2**20).astype(int) % 2 == 0, 1.0, 0.0)
        return Decisions(chances < p, p)


@settings(max_examples=60, deadline=None)
@given(worlds(), st.sampled_from([1, 6, 48]), st.sampled_from([0.0, 0.3]))
def test_a_gate_is_shown_what_a_plain_loop_finds(
    tmp_path_factory: pytest.TempPathFactory, world: Any, hours: int, failure: float
) -> None:
    log = written(tmp_path_factory.mktemp("log"), world, failure)
    tick, nothing = timedelta(hours=hours), timedelta(0)
    rules = SimulationSettings(start=START, history=nothing, warmup=nothing, days=2, tick=tick)
    stage = set_stage(log, rules)
    requests = read_requests(log, stage.truth, stage.crawl, stage.end)
    gate, predictor = Curious(), Steady()
    sent = sent_through(gate, stage, requests, predictor)
    answered = dict(enumerate(np.maximum(stage.truth.born, instant(START))))
    fresh, told = fresh_at_requests(requests, sent), []
    for k, page in enumerate(requests.page.tolist()):
        at = requests.at[k]
        begun = instant(START) + (at - instant(START)) // np.timedelta64(tick) * np.timedelta64(
            tick
        )
        age = float(days_between(answered[page], at))
        known = stage.truth.born[page] <= begun
        assert gate.scores[float(requests.chance[k])] == pytest.approx(known * -np.expm1(-age))
        if sent[k]:
            changed = UNKNOWN if requests.failed[k] else UNCHANGED if fresh[k] else CHANGED
            told.append((int(stage.truth.ids[page]), answered[page].item(), at.item(), changed))
            answered[page] = answered[page] if requests.failed[k] else at
    assert sorted(predictor.told) == sorted(told)


class Introduced(Steady):
    """Answers for pages that it has met in this tick, and for no others."""

    def __init__(self) -> None:
        super().__init__()
        self.met: tuple[datetime, int] | None = None

    def meet(self, pages: Pages, now: datetime) -> None:
        self.met = (now, len(pages))

    def survival(self, pages: Pages, now: datetime) -> Survival:
        assert self.met == (now, len(pages)), "the predictor met the pages of the tick first"
        return super().survival(pages, now)


def test_a_predictor_meets_the_pages_before_it_is_asked(tmp_path: Path) -> None:
    log = written(tmp_path, WORLD)
    nothing = timedelta(0)
    stage = set_stage(log, SimulationSettings(start=START, history=nothing, warmup=nothing, days=2))
    requests = read_requests(log, stage.truth, stage.crawl, stage.end)
    predictor = Introduced()
    assert sent_through(UniformGate(share=1.0), stage, requests, predictor).all()
    assert predictor.met is not None


def test_a_frozen_predictor_is_told_nothing(tmp_path: Path) -> None:
    log = written(tmp_path, WORLD)
    nothing = timedelta(0)
    rules = SimulationSettings(start=START, history=nothing, warmup=nothing, days=2, frozen=True)
    stage = set_stage(log, rules)
    predictor = Steady()
    requests = read_requests(log, stage.truth, stage.crawl, stage.end)
    assert sent_through(UniformGate(share=1.0), stage, requests, predictor).all()
    assert predictor.told == []


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_uniform_gate_sends_step_by_step_what_it_sends_at_once(
    tmp_path: Path, share: float
) -> None:
    log = written(tmp_path, WORLD)
    nothing = timedelta(0)
    stage = set_stage(log, SimulationSettings(start=START, history=nothing, warmup=nothing, days=2))
    requests = read_requests(log, stage.truth, stage.crawl, stage.end, seed=1)
    sent = sent_through(UniformGate(share=share), stage, requests, Steady())
    assert sent.tolist() == (requests.chance < share).tolist()
