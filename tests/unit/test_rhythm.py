"""The week of each merchant: learnt from visits, looked ahead at, worth it in a simulation."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from salticus.checks.samples import some_outcomes, some_pages
from salticus.config import Budget
from salticus.exchange.folder import Log
from salticus.exchange.write import write_log
from salticus.lab.simulate import SimulationSettings
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import set_stage
from salticus.predict.base import ask
from salticus.predict.rhythm import HOUR_US, Rhythm, RhythmSurvival, _running
from salticus.predict.worth import gamma_worth
from salticus.testing import blank_pages
from salticus.types import DAY, Bools, Floats, Ints, Outcomes, instant
from salticus.types.state import pack, unpack

MONDAY = datetime.fromisoformat("2026-01-05T00:00+00:00")
_US = int(DAY.astype(np.int64))
ONE_DAY = timedelta(days=1)


def watched(page: Ints, since: Floats, until: Floats, changed: Bools) -> Outcomes:
    """Answered visits, times in days since a Monday."""
    n = len(page)
    return replace(
        some_outcomes(some_pages(n)),
        page=np.asarray(page, dtype=np.int64),
        since=instant(MONDAY) + (since * _US).astype("m8[us]"),
        at=instant(MONDAY) + (until * _US).astype("m8[us]"),
        changed=changed.astype(np.int8),
        made=np.ones(n, dtype=np.bool_),
        status=np.zeros(n, dtype=np.int8),
    )


class Shops:
    """Merchants whose pages change by a profile: changes expected in each hour of the week."""

    def __init__(self, profile: Floats, pages: int, *, seed: int = 0) -> None:
        self.profile = profile
        self.pages = replace(
            blank_pages(len(profile) * pages),
            merchant=np.repeat(np.arange(len(profile)), pages),
            last_answer=np.full(len(profile) * pages, instant(MONDAY)),
        )
        self.last = np.zeros(len(self.pages))
        self._rng = np.random.default_rng(seed)
        self._hours = np.concatenate(
            [np.zeros((len(profile), 1)), np.cumsum(profile, axis=1)], axis=1
        )

    def until(self, page: Ints, day: float) -> Floats:
        """Changes expected of each page since Monday 00:00, up to the start of an hour."""
        weeks, hour = divmod(round(day * 24), 168)
        row = self._hours[self.pages.merchant[page]]
        return np.asarray(weeks * row[:, -1] + row[:, hour])

    def visit(self, page: Ints, day: float) -> Outcomes:
        expected = self.until(page, day)
        for k, since in enumerate(self.last[page].tolist()):
            expected[k] -= self.until(page[k : k + 1], since)[0]
        changed = self._rng.random(len(page)) < -np.expm1(-expected)
        outcomes = watched(page, self.last[page], np.full(len(page), float(day)), changed)
        self.last[page] = day
        return outcomes


def hours(days: list[float], within: list[float] | None = None) -> Floats:
    """A week of hours from what is expected in each day, spread over some hours of it alike."""
    shape = np.ones(24) if within is None else np.array(within)
    return np.asarray(np.outer(days, shape / shape.sum()).ravel(), dtype=np.float64)


WEDNESDAYS, WORKDAYS = [0.0, 0, 0.7, 0, 0, 0, 0], [0.3, 0.3, 0.3, 0.3, 0.3, 0, 0]
BY_DAY = [0.3] * 7
OFFICE = [float(9 <= h < 15) for h in range(24)]


def by_day(model: Rhythm) -> Floats:
    """Mean pace of each weekday, one row a merchant."""
    return np.asarray(model.week_.pace_[1:].reshape(-1, 7, 24).mean(axis=2))


# -------------------------------------------------------------------------------------- learning


def test_daily_visits_find_the_days_of_each_merchant() -> None:
    shops, model = (
        Shops(np.array([hours(WEDNESDAYS), hours(WORKDAYS), hours(BY_DAY)]), 40),
        Rhythm(),
    )
    ask(model, shops.pages, MONDAY)
    for day in range(1, 92):
        model.learn(shops.visit(shops.pages.ids, day))
    pace = by_day(model)
    assert pace[0, 2] > 5.5
    assert np.delete(pace[0], 2).max() < 0.4
    assert pace[1] == pytest.approx([1.4] * 5 + [0, 0], abs=0.25)
    assert pace[2] == pytest.approx(np.ones(7), abs=0.25)
    assert model.week_.pace_.mean(axis=1) == pytest.approx(np.ones(4), rel=1e-12)
    assert model.rates(shops.pages.ids).reshape(3, 40).mean(axis=1) == pytest.approx(
        [0.1, 1.5 / 7, 0.3], rel=0.2
    )


def test_visits_days_apart_find_them_too() -> None:
    """No visit sees a single day: which it was comes from how the visits overlap."""
    shops, model = Shops(np.array([hours(WEDNESDAYS), hours(BY_DAY)]), 80), Rhythm()
    ask(model, shops.pages, MONDAY)
    rng = np.random.default_rng(1)
    due = rng.integers(1, 4, 160)
    for day in range(1, 140):
        page = np.flatnonzero(due == day)
        model.learn(shops.visit(page, day))
        due[page] = day + rng.integers(2, 4, len(page))
    pace = by_day(model)
    assert pace[0, 2] > 4.5
    assert np.delete(pace[0], 2).max() < 1.0
    assert pace[1] == pytest.approx(np.ones(7), abs=0.4)


def test_visits_through_the_day_find_the_hours() -> None:
    office = [3 * x for x in BY_DAY]
    shops, model = Shops(np.array([hours(office, OFFICE), hours(BY_DAY)]), 40), Rhythm()
    ask(model, shops.pages, MONDAY)
    for tick in range(1, 8 * 42):
        model.learn(shops.visit(shops.pages.ids, tick / 8))
    pace = model.week_.pace_[1].reshape(7, 8, 3).mean(axis=(0, 2))
    assert pace[3:5] == pytest.approx([4.0, 4.0], rel=0.15)
    assert np.delete(pace, [3, 4]).max() < 0.15


@pytest.mark.parametrize("visits", [0, 1])
def test_a_merchant_with_few_visits_follows_the_others(visits: int) -> None:
    profile = np.array([hours(WEDNESDAYS)] * 4)
    shops, model = Shops(profile, 40), Rhythm()
    ask(model, shops.pages, MONDAY)
    known = shops.pages.ids[shops.pages.merchant != 3]
    for day in range(1, 71):
        model.learn(shops.visit(known, day))
    model.learn(shops.visit(shops.pages.ids[:visits] + 120, 71.0))
    ask(model, shops.pages, MONDAY + timedelta(days=71))
    assert by_day(model)[3, 2] > 5.0


def test_a_merchant_of_its_own_leaves_the_others_way() -> None:
    days = np.array([hours(WEDNESDAYS)] * 3 + [hours([0.7, 0, 0, 0, 0, 0, 0])])
    shops, model = Shops(days, 40), Rhythm()
    ask(model, shops.pages, MONDAY)
    for day in range(1, 92):
        model.learn(shops.visit(shops.pages.ids, day))
    assert by_day(model)[3, 0] > 5.5
    assert by_day(model)[3, 2] < 1.6


def test_survival_knows_the_day_on_which_things_change() -> None:
    shops, model = Shops(np.array([hours(WEDNESDAYS)]), 60), Rhythm()
    ask(model, shops.pages, MONDAY)
    for day in range(1, 92):
        model.learn(shops.visit(shops.pages.ids, day))
    last = np.full(60, instant(MONDAY) + 91 * DAY)  # a Monday
    survival = ask(model, replace(shops.pages, last_answer=last), MONDAY + timedelta(days=92))
    still = [survival.unchanged(np.full(60, age)).mean() for age in (1.0, 2.0, 3.0, 7.0, 10.0)]
    assert min(still[:2]) > 0.97
    assert still[2:4] == pytest.approx([np.exp(-0.7)] * 2, abs=0.06)
    assert still[4] == pytest.approx(np.exp(-1.4), abs=0.06)


def test_a_page_never_visited_lives_in_plain_time() -> None:
    table = _running(np.repeat([7.0, 0, 0, 0, 0, 0, 0], 24)[None, :])
    one, zero = np.ones(1), np.zeros(1, dtype=np.int64)
    never = RhythmSurvival(one, one, zero, np.array([np.iinfo(np.int64).min]), 0, table)
    assert never.unchanged(one * 3.0).tolist() == [0.25]
    assert never.worth(np.zeros(1), 1.0).tolist() == [0.0]


def test_the_week_comes_back_from_its_state() -> None:
    shops, model = Shops(np.array([hours(WEDNESDAYS), hours(BY_DAY)]), 20), Rhythm()
    ask(model, shops.pages, MONDAY)
    for day in range(1, 40):
        model.learn(shops.visit(shops.pages.ids, day))
    again = Rhythm()
    again.restore(unpack(pack({"predictor": model.state()}))["predictor"])
    assert np.array_equal(again.week_.pace_, model.week_.pace_)
    said = shops.visit(shops.pages.ids, 41.0)
    for each in (model, again):
        each.learn(said)
    later = MONDAY + timedelta(days=42)
    ages = np.full(len(shops.pages), 2.5)
    one, other = (ask(m, shops.pages, later) for m in (model, again))
    assert np.array_equal(one.unchanged(ages), other.unchanged(ages))
    assert np.array_equal(one.worth(ages, 0.5), other.worth(ages, 0.5))  # type: ignore[attr-defined]


def test_a_new_page_after_a_restart_lives_by_its_merchants_week() -> None:
    """The numbers of the merchants are others then."""
    shops, model = Shops(np.array([hours(WEDNESDAYS), hours(BY_DAY)]), 30), Rhythm()
    ask(model, shops.pages, MONDAY)
    for day in range(1, 92):
        model.learn(shops.visit(shops.pages.ids, day))
    again = Rhythm()
    again.restore(unpack(pack({"predictor": model.state()}))["predictor"])
    more = replace(
        blank_pages(62),
        merchant=np.append(1 - shops.pages.merchant, [1, 0]),  # one new page each
        last_answer=np.full(62, instant(MONDAY) + 91 * DAY),  # a Monday
    )
    survival = ask(again, more, MONDAY + timedelta(days=92))
    quiet, busy = survival.unchanged(np.full(62, 1.9))[[60, 61]]
    assert quiet > 0.95
    assert busy < 0.75


def test_what_is_long_ago_counts_less() -> None:
    """A merchant moves from Wednesdays to Fridays; within some months its week has moved too."""
    shops, model = Shops(np.array([hours(WEDNESDAYS)]), 40), Rhythm()
    ask(model, shops.pages, MONDAY)
    for day in range(1, 92):
        model.learn(shops.visit(shops.pages.ids, day))
    moved = Shops(np.array([hours([0.0, 0, 0, 0, 0.7, 0, 0])]), 40)
    moved.last += 91.0
    for day in range(92, 274):
        model.learn(moved.visit(moved.pages.ids, day))
    assert by_day(model)[0, 4] > 4.0 > 3.0 > by_day(model)[0, 2]


# ----------------------------------------------------------------------------- looking ahead

# expected changes by weekday, up to a factor
WEEKS = {
    "even": [1.0] * 7,
    "mild": [2.0, 1, 1, 1, 1, 0.5, 0.5],
    "workdays": [1.0] * 5 + [0.01] * 2,
    "weekend": [0.1] * 5 + [3.0] * 2,
    "one day": [1.0] + [0.001] * 6,
    "two days": [1.0, 0.001, 0.001, 1.0, 0.001, 0.001, 0.001],
    "zigzag": [3.0, 0.2, 2.0, 0.1, 1.0, 0.1, 4.0],
}
LONGEST = 84  # days since the last visit that are told apart


class OnePage:
    """One page in daily ticks at a price a visit: fresh days less what is paid, a day.

    A state is the weekday and the days since the last visit; every day it is visited or not, and
    then read. Times are those of the visits: at a visit all changes before it have been seen.
    """

    def __init__(self, week: list[float], rate: float, price: float) -> None:
        pace = np.array(week) * 7 / np.sum(week)
        past = np.concatenate([[0.0], np.cumsum(np.tile(pace, LONGEST // 7 + 2))])
        today = LONGEST + np.arange(7)[:, None]
        self.own = past[today] - past[today - np.arange(LONGEST + 1)]
        self.table = _running(np.repeat(pace, 24)[None, :])
        self.still, self.rate, self.price = np.exp(-rate * self.own), rate, price

    def best(self) -> float:
        """The most that any rule earns, by value iteration over six hundred weeks."""
        tomorrow = (np.arange(7) + 1) % 7
        older = np.minimum(np.arange(LONGEST + 1) + 1, LONGEST)
        value, half = np.zeros_like(self.still), np.zeros_like(self.still)
        for day in range(4200):
            if day == 2100:
                half = value
            visited = 1.0 - self.price + value[tomorrow][:, 1:2]
            value = np.maximum(visited, self.still + value[tomorrow][:, older])
        return float((value - half)[0, 1]) / 2100

    def earned(self, visited: Bools) -> float:
        """What a rule earns in the long run."""
        weekday, age = 0, 1
        met: dict[tuple[int, int], int] = {}
        gains: list[float] = []
        while (weekday, age) not in met:
            met[weekday, age] = len(gains)
            now = bool(visited[weekday, age])
            gains.append(1.0 - self.price if now else float(self.still[weekday, age]))
            weekday, age = (weekday + 1) % 7, 1 if now else min(age + 1, LONGEST)
        return float(np.mean(gains[met[weekday, age] :]))

    def rule(self, *, look: bool) -> Bools:
        """Visit when the worth of a visit reaches the price, as leap does; the rate is known."""
        visited = np.zeros((7, LONGEST + 1), dtype=np.bool_)
        ages = np.arange(1.0, LONGEST + 1)
        sure = np.full(LONGEST, 1e8)
        for weekday in range(7):
            now = (4 + 7 * 3000 + weekday) * 24 * HOUR_US
            last = now - np.arange(1, LONGEST + 1) * 24 * HOUR_US
            row = np.zeros(LONGEST, dtype=np.int64)
            curve = RhythmSurvival(sure, sure / self.rate, row, last, now, self.table)
            plain = gamma_worth(curve.a, curve.b, curve.own(ages), 1.0)
            visited[weekday, 1:] = (curve.worth(ages, 1.0) if look else plain) >= self.price
        return visited


def shares(name: str, rates: list[float], prices: list[float]) -> tuple[Floats, Floats]:
    """What leap's rule earns of the optimum, and what V in own time without looking ahead does."""
    pages = [OnePage(WEEKS[name], rate, price) for rate in rates for price in prices]
    best = np.array([page.best() for page in pages])
    found = [[page.earned(page.rule(look=look)) for page in pages] for look in (True, False)]
    some = best > 0.05
    return np.array(found[0])[some] / best[some], np.array(found[1])[some] / best[some]


def test_at_an_even_pace_the_rule_is_optimal() -> None:
    ours, plain = shares("even", [0.03, 0.1, 0.3, 1.0], [0.05, 0.3, 1.0])
    assert ours.min() > 0.999
    assert ours == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("name", sorted(WEEKS.keys() - {"even"}))
def test_looking_ahead_earns_almost_the_optimum(name: str) -> None:
    """By dynamic programming, over rates and prices from daily visits to almost none."""
    ours, plain = shares(name, [0.03, 0.1, 0.3, 1.0], [0.1, 0.5, 1.0, 2.0])
    assert ours.mean() > 0.98
    assert ours.min() > 0.85
    assert ours.mean() > plain.mean()
    assert (ours > plain - 0.05).all()


def test_a_page_with_quiet_days_is_visited_after_its_changes() -> None:
    """Seven changes every Monday: a visit on Tuesday is worth almost the week, however fast."""
    page = OnePage(WEEKS["one day"], 1.0, 4.0)
    assert page.best() == pytest.approx(1 - 4 / 7, rel=0.06)
    assert page.earned(page.rule(look=True)) == pytest.approx(page.best(), rel=0.01)
    assert page.earned(page.rule(look=False)) < 0.01


# ------------------------------------------------------------------------------- in a simulation


def a_log(folder: Path, shops: int, pages: int, days: int) -> Log:
    """Every merchant changes its prices on one weekday of its own, at night."""
    rng = np.random.default_rng(0)
    rows = np.arange(shops * pages)
    chance = rng.uniform(0.2, 0.9, len(rows))
    page, at = [rows], [np.full(len(rows), instant(MONDAY) - DAY // 24)]
    for day in range(days):
        now = rows[(rows // pages == day % 7 % shops) & (day % 7 < shops)]
        now = now[rng.random(len(now)) < chance[now]]
        night = (rng.uniform(1, 5, len(now)) * HOUR_US).astype("m8[us]")
        page.append(now)
        at.append(instant(MONDAY) + day * DAY + night)
    columns = {"page_id": np.concatenate(page), "at": np.concatenate(at)}
    values = pl.DataFrame({**columns, "value": np.arange(len(columns["at"]))}).sort("page_id", "at")
    values = values.with_columns(
        pl.col("at").dt.replace_time_zone("UTC"), pl.col("value").cast(pl.String)
    )
    merchant = [f"shop {row // pages}" for row in rows]
    about = {
        "name": "weekdays",
        "resolution": timedelta(seconds=1),
        "span": [MONDAY - timedelta(hours=1), MONDAY + days * ONE_DAY],
        "source": "drawn at random",
    }
    tables = {"pages": pl.DataFrame({"page_id": rows, "merchant": merchant}), "values": values}
    write_log(folder, tables, about)
    return Log(folder)


def test_who_knows_the_week_keeps_copies_fresher(tmp_path: Path) -> None:
    log = a_log(tmp_path / "log", shops=4, pages=50, days=98)
    stale = {}
    for predictor in ("rhythm", "pooled", "gamma"):
        rules = SimulationSettings(
            start=MONDAY,
            tick=ONE_DAY / 2,
            history=42 * ONE_DAY,
            warmup=14 * ONE_DAY,
            days=42,
            predictor=predictor,
            demand="zipf:0.6",
        )
        score = run(set_stage(log, rules), "leap", Budget(0.1, per_page=True))
        stale[predictor] = 1.0 - float(np.nanmean(score.column("clicks")))
        assert score.visits == pytest.approx(0.1 * 200 * 42, rel=0.02)
    assert stale["rhythm"] < 0.75 * stale["gamma"]
    assert stale["rhythm"] < 0.75 * stale["pooled"]
