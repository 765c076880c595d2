"""Laws of the replay of requests, on random small logs and against a plain loop."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.checks.samples import some_pages
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import Truth, read_truth
from salticus.lab.simulate import SimulationSettings
from salticus.lab.simulate.clicking import by_window, read_requests, true_values
from salticus.lab.simulate.gates import GateContest, replay_requests
from salticus.lab.simulate.run import Frozen
from salticus.lab.studies.calibration.statistics import found_fresh
from salticus.predict.poisson import PoissonSurvival
from salticus.types import Bools, Floats, Ints, Outcomes, Pages, Survival, Times

START = datetime(2018, 8, 1, tzinfo=UTC)
END = START + timedelta(days=2)
BEFORE, DURING = range(-600, 0), range(1, 2880)  # minutes from the start, to before the end
MINUTES = st.integers(BEFORE.start, DURING.stop - 1)
AT = pl.Datetime("us", "UTC")
ABOUT = {"name": "r", "resolution": "1m", "span": ["2018-07-31", "2018-08-03"]}


@st.composite
def worlds(
    draw: Any, *, old: bool = False
) -> tuple[dict[int, list[tuple[int, str]]], list[tuple[int, int]]]:
    """The values of a few pages by minute after the start, and requests (page, minute).

    If they are `old`, the pages are born before the start, and nothing happens right at it.
    """
    n = draw(st.integers(1, 4))
    truth = {}
    for page in range(n):
        minutes = sorted(draw(st.sets(MINUTES, min_size=1, max_size=6)))
        if old:
            minutes = [BEFORE[page], *(m for m in minutes if m in DURING)]
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


@dataclass(frozen=True)
class Asked:
    """The requests of a log: when which page was asked for, what was true, what was copied."""

    page: Ints
    at: Times
    true: Ints
    first: Ints

    def __len__(self) -> int:
        return len(self.page)

    def found(self, brought: Bools) -> Bools:
        return found_fresh(self.page, self.true, self.first, brought)

    def windows(self, brought: Bools) -> Floats:
        return by_window(self.at, self.found(brought), START, END)


def replayed(log: Log) -> tuple[Truth, Asked]:
    truth = read_truth(log)
    page, at = read_requests(log, truth, START, END)
    true, first = true_values(truth, page, at, START)
    return truth, Asked(page, at, true, first[page])


def plainly(world: Any, truth: Truth, requests: Asked, sent: Any) -> list[bool]:
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


@settings(max_examples=50, deadline=None)
@given(worlds(), st.integers(0, 2**20))
def test_the_plain_loop_finds_the_same(
    tmp_path_factory: pytest.TempPathFactory, world: Any, bits: int
) -> None:
    log = written(tmp_path_factory.mktemp("log"), world)
    truth, requests = replayed(log)
    sent = np.array([bool(bits >> i & 1) for i in range(len(requests))], dtype=bool)
    assert requests.found(sent).tolist() == plainly(world, truth, requests, sent)


@settings(max_examples=50, deadline=None)
@given(worlds())
def test_requests_outside_the_span_or_before_the_birth_are_left_out(
    tmp_path_factory: pytest.TempPathFactory, world: Any
) -> None:
    values, asked = world
    _, requests = replayed(written(tmp_path_factory.mktemp("log"), world))
    kept = [(p, m) for p, m in asked if m >= 0 and m >= values[p][0][0]]
    assert len(requests) == len(kept)


@settings(max_examples=10, deadline=None)
@given(worlds(old=True), st.sampled_from([1, 6, 48]))
def test_the_loop_finds_what_is_sent_at_once(
    tmp_path_factory: pytest.TempPathFactory, world: Any, hours: int
) -> None:
    """Nothing or all sent: the freshness of every 6 h is that of the running maximum."""
    log = written(tmp_path_factory.mktemp("log"), world)
    rows = through_the_loop(log, tick=timedelta(hours=hours))
    _, requests = replayed(log)
    for row, every in zip(rows, (False, True), strict=True):
        windows = requests.windows(np.full(len(requests), every))
        assert row["requests"] == len(requests)
        assert row["resource"] == (every and len(requests) > 0)
        assert row["windows"] == [None if np.isnan(f) else f for f in windows.tolist()]


def through_the_loop(log: Log, tick: timedelta = timedelta(hours=2)) -> list[dict[str, Any]]:
    """What becomes of sending nothing, and all."""
    nothing = timedelta(0)
    rules = SimulationSettings(
        start=START, history=nothing, warmup=nothing, days=2, tick=tick, predictor="gamma",
    )  # fmt: skip
    return list(replay_requests(log, rules, GateContest((0.0, 1.0)))["rows"])


# -------------------------------------------------------------------------------------- by hand


WORLD = ({0: [(-60, "a"), (60, "b"), (200, "a")], 1: [(-30, "x"), (90, "y")]},
         [(0, 10), (0, 70), (0, 100), (0, 300), (1, 40), (1, 100), (1, 120)])  # fmt: skip


def test_freshness_is_scored_before_the_decision(tmp_path: Path) -> None:
    _, requests = replayed(written(tmp_path, WORLD))
    every, none = (requests.found(np.full(7, sent)) for sent in (True, False))
    assert every.tolist() == [True, False, True, False, True, False, True]
    assert none.tolist() == [True, False, False, True, True, False, False]


def test_a_visit_that_fails_brings_nothing(tmp_path: Path) -> None:
    none, every = through_the_loop(written(tmp_path, WORLD, failure=1.0))
    assert none["windows"] == every["windows"]
    assert none["windows"][0] == 3 / 7
    assert every["resource"] == 1.0


def test_a_page_born_later_has_no_copy_until_a_click_brings_one(tmp_path: Path) -> None:
    world = ({0: [(-60, "a")], 1: [(130, "x")]}, [(0, 10), (1, 250), (1, 300)])
    none, every = through_the_loop(written(tmp_path, world))
    assert (none["windows"][0], every["windows"][0]) == (1 / 3, 2 / 3)


def test_a_log_without_requests_says_so(tmp_path: Path) -> None:
    log = written(tmp_path, WORLD)
    log.path("requests").unlink()
    with pytest.raises(InputError, match=r"requests\.parquet"):
        replayed(log)


class Told:
    """A predictor that counts what it is told, and whom it met."""

    def __init__(self) -> None:
        self.met = self.learnt = 0

    def meet(self, pages: Pages, now: datetime) -> None:
        self.met += len(pages)

    def survival(self, pages: Pages, now: datetime) -> Survival:
        return PoissonSurvival(np.ones(len(pages)))

    def learn(self, outcomes: Outcomes) -> None:
        self.learnt += 1


def test_a_frozen_predictor_meets_pages_and_is_told_nothing() -> None:
    predictor = Told()
    frozen = Frozen(predictor)
    frozen.meet(some_pages(3), START)
    frozen.learn(Outcomes.known(page=np.arange(3), at=np.datetime64("2018-08-01", "us")))
    assert (predictor.met, predictor.learnt) == (3, 0)
    assert frozen.survival(some_pages(3), START).rates().tolist() == [1.0] * 3
