"""A rhythm with fitted traits: what each trait does, and that only the past decides them."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from calling import call

from salticus.checks.samples import some_outcomes, some_pages
from salticus.config import Budget
from salticus.exchange.folder import Log
from salticus.exchange.write import write_log
from salticus.lab.simulate import SimulationSettings, simulate
from salticus.lab.simulate.fitted import FittedReplay, SeenSurvival
from salticus.lab.simulate.fitting import fitted, log_loss, rehearsed
from salticus.lab.simulate.named import Estimates
from salticus.lab.simulate.stage import Stage, set_stage
from salticus.models.training.traits import CHOICES, likeliest
from salticus.models.traits import Traits, load_traits
from salticus.predict.base import ask
from salticus.predict.fitted import Fitted, FittedSurvival
from salticus.predict.kin import Kin
from salticus.predict.rhythm import Rhythm, RhythmSurvival
from salticus.testing import blank_pages
from salticus.types import DAY, Bools, Floats, Ints, Outcomes, Pages, Status, instant
from salticus.types.state import pack, unpack

MONDAY = datetime.fromisoformat("2026-01-05T00:00+00:00")
ONE_DAY = timedelta(days=1)
ALL = Traits(20.0, 0.6, 0.3, 2.0, 6.0, 0.3, 3.0)


def pages(n: int, last: float = 0.0) -> Pages:
    """Pages of one merchant, visited so many days after a Monday."""
    merchant = np.zeros(n, dtype=np.int64)
    return replace(blank_pages(n).answered(np.full(n, at(last))), merchant=merchant)


def at(days: float) -> np.datetime64:
    return instant(MONDAY) + np.timedelta64(round(days * 24), "h")


def kin(*group: int) -> Kin:
    return Kin(np.arange(len(group)), np.array(group))


def visited(page: Ints, since: float, until: float, changed: Bools) -> Outcomes:
    """Answered visits; times in days since a Monday."""
    n = len(page)
    return replace(
        some_outcomes(some_pages(n)),
        visit=np.arange(n),
        page=np.asarray(page, dtype=np.int64),
        since=np.full(n, at(since)),
        at=np.full(n, at(until)),
        changed=np.asarray(changed, dtype=np.int8),
        made=np.ones(n, dtype=np.bool_),
        status=np.zeros(n, dtype=np.int8),
    )


def random_visits(n: int, days: int, seed: int = 0) -> list[Outcomes]:
    rng = np.random.default_rng(seed)
    return [visited(np.arange(n), k, k + 1, rng.random(n) < 0.3) for k in range(days)]


def taught(predictor: Rhythm, known: Pages, visits: list[Outcomes]) -> Rhythm:
    ask(predictor, known, MONDAY)
    for outcomes in visits:
        predictor.learn(outcomes)
    return predictor


def changed_by(predictor: Rhythm, known: Pages, days: float) -> Floats:
    """The chance of each page to have changed, so many days after Monday."""
    curves = ask(predictor, known, MONDAY + days * ONE_DAY)
    return np.asarray(1.0 - curves.unchanged((at(days) - known.last_answer) / DAY))


def test_with_the_usual_traits_the_curves_are_those_of_the_rhythm() -> None:
    known, visits = pages(20, 30.0), random_visits(20, 30)
    plain, same = Rhythm(), Fitted(Traits(), kin(*[0] * 20))
    first, second = (
        ask(taught(p, known, visits), known, MONDAY + 33 * ONE_DAY) for p in (plain, same)
    )
    assert isinstance(first, RhythmSurvival)
    assert isinstance(second, FittedSurvival)
    np.testing.assert_allclose(second.a, first.a)
    np.testing.assert_allclose(second.b, first.b)
    ages = np.full(20, 3.0)
    np.testing.assert_allclose(second.worth(ages, 1.0), first.worth(ages, 1.0))


def test_what_kin_did_is_news_of_a_page() -> None:
    known = pages(8).answered(np.array([at(20.0)] * 8))
    told = {}
    for kin_changed in (False, True):
        both = Fitted(Traits(kin_prior=0.3), kin(0, 0, 0, 0, 1, 1, 1, 1))
        taught(both, known, random_visits(8, 20))
        before = changed_by(both, known, 22.0)
        both.learn(visited(np.arange(1, 4), 20.0, 21.0, np.full(3, kin_changed)))
        told[kin_changed] = changed_by(both, known, 22.0)[[0, 4]] / before[[0, 4]]
    assert told[True][0] > 1.1
    assert told[False][0] < 0.95
    np.testing.assert_allclose(told[True][1], 1.0, atol=0.05)  # of no kin


def test_a_change_echoes_and_the_echo_dies_away() -> None:
    known, visits = pages(2, 21.0), random_visits(2, 20)
    visits.append(visited(np.arange(2), 20.0, 21.0, np.array([True, True])))
    quiet, loud = (
        taught(Fitted(Traits(echo=echo, echo_days=0.3), kin(0, 0)), known, visits)
        for echo in (0.0, 1.0)
    )
    soon, late = (
        changed_by(loud, known, day) / changed_by(quiet, known, day) for day in (21.25, 35.0)
    )
    assert (soon > late).all()
    assert (soon > 1.0).all()


def test_a_failed_visit_makes_no_copy_fresh() -> None:
    known = pages(4, 20.0)
    predictor = taught(FittedReplay(Traits(), kin(0, 0, 0, 0)), known, random_visits(4, 20))
    failed = replace(
        visited(np.array([0]), 20.0, 24.0, np.array([False])),
        status=np.array([Status.TIMEOUT], dtype=np.int8),
        changed=np.array([-1], dtype=np.int8),
    )
    now = MONDAY + 25 * ONE_DAY
    before = ask(predictor, known, now)
    predictor.learn(failed)
    last = known.last_visit.copy()
    last[0] = at(24.0)
    curves = ask(predictor, replace(known, last_visit=last), now)
    assert isinstance(before, SeenSurvival)
    assert isinstance(curves, SeenSurvival)
    ages = (at(25.0) - known.last_answer) / DAY
    np.testing.assert_allclose(curves.worth(ages, 1.0), before.worth(ages, 1.0))
    np.testing.assert_allclose(curves.unchanged(ages), before.unchanged(ages))


def test_a_restart_changes_nothing() -> None:
    known, visits = pages(9, 30.0), random_visits(9, 30)
    first = taught(Fitted(ALL, kin(0, 0, 0, 1, 1, 1, 2, 2, 2)), known, visits)
    second = Fitted(ALL, first.kin) if isinstance(first, Fitted) else None
    assert second is not None
    second.restore(unpack(pack({"fitted": first.state()}))["fitted"])
    for day in (31.0, 33.0):
        for predictor in (first, second):
            predictor.learn(visited(np.arange(4), 30.0, day, np.arange(4) % 2 == 0))
        np.testing.assert_allclose(
            changed_by(first, known, day), changed_by(second, known, day), rtol=1e-12
        )


def test_the_likeliest_traits_are_found_one_after_another() -> None:
    best = likeliest(lambda t: abs(math.log(t.memory_days / 20)) + abs(t.echo - 0.6) + t.echo_days)
    assert (best.memory_days, best.echo, best.echo_days) == (20.0, 0.6, 0.1)
    assert set(CHOICES) == set(Traits.__dataclass_fields__)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return staged(tmp_path, seed=0)


def staged(folder: Path, seed: int) -> Stage:
    """Forty pages that change at random, each kin together; after day 30 by another seed."""
    rng, later = np.random.default_rng(0), np.random.default_rng(seed)
    page, day = [], []
    for k in range(60):
        groups = (rng if k < 30 else later).random(10) < 0.2
        moved = np.flatnonzero(np.repeat(groups, 4))
        page += moved.tolist()
        day += [k] * len(moved)
    start = np.datetime64("2026-01-05", "us")
    when = np.append(np.full(40, start), start + np.array(day) * DAY + np.timedelta64(1, "h"))
    values = pl.DataFrame(
        {
            "page_id": np.append(np.arange(40), page),
            "at": pl.Series(when).dt.replace_time_zone("UTC"),
            "value": [str(k) for k in range(len(when))],
        }
    )
    table = pl.DataFrame({"page_id": np.arange(40), "merchant": "a", "brand": np.arange(40) // 4})
    table = table.with_columns(pl.col("brand").cast(pl.String))
    write_log(folder, {"pages": table, "values": values}, {"name": "kin", "resolution": "1d"})
    rules = SimulationSettings(
        start=MONDAY, tick=ONE_DAY, history=30 * ONE_DAY, warmup=5 * ONE_DAY, days=20, runs=1
    )
    return set_stage(Log(folder), rules)


def test_the_traits_of_pages_that_change_with_their_kin(stage: Stage) -> None:
    predictor = fitted(stage)
    assert math.isfinite(predictor.traits.kin_prior)
    rehearsal = rehearsed(stage)
    known = log_loss(rehearsal, Fitted(predictor.traits, predictor.kin))
    assert known < 0.98 * log_loss(rehearsal, Fitted(Traits(), predictor.kin))


def test_a_contest_tells_what_was_fitted(stage: Stage) -> None:
    rules = replace(stage.rules, estimates=Estimates("fitted"))
    heard: list[str] = []
    found = simulate(stage.log, rules, ["leap"], [Budget(0.2, per_page=True)], heard.append)
    assert "fitting a rhythm to the history" in heard
    assert any(re.search(r"fitted to the history: .*kin", note) for note in found.notes)


def test_only_what_came_before_the_crawl_decides(tmp_path: Path) -> None:
    first, second = (fitted(staged(tmp_path / str(seed), seed)) for seed in (1, 2))
    assert first.traits == second.traits


def test_traits_fitted_to_a_log_may_serve_in_a_simulation(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"kin_prior": (0.3, math.inf)}
    monkeypatch.setattr("salticus.models.training.traits.CHOICES", few)
    said = call("train", str(stage.log.folder), "--model", "traits", "--out", str(tmp_path / "t"))
    assert said.code == 0, said
    assert "fitted: kin 0.3" in said.out
    assert load_traits(tmp_path / "t") == Traits(kin_prior=0.3)
    rules = replace(stage.rules, estimates=Estimates(str(tmp_path / "t")))
    found = simulate(stage.log, rules, ["leap"], [Budget(0.2, per_page=True)])
    assert any(note.endswith("kin 0.3") for note in found.notes)


@pytest.mark.parametrize("option", [["--task", "click"], ["--features", "metadata"], ["--hazard"]])
def test_traits_take_no_options_of_models(tmp_path: Path, option: list[str]) -> None:
    said = call("train", str(tmp_path), "--model", "traits", "--out", str(tmp_path / "t"), *option)
    assert said.code == 2
    assert f"{option[0]}: not with traits" in said.err
