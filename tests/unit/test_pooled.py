"""Pooled priors and fading memory: known rates, cold starts, shifts, restarts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from salticus.checks.samples import some_outcomes, some_pages
from salticus.predict.base import ask
from salticus.predict.gamma import Gamma
from salticus.predict.pooled import Pooled, pooled_priors
from salticus.predict.rhythm import Rhythm
from salticus.testing import START, blank_pages
from salticus.types import DAY, UNCHANGED, UNKNOWN, Bools, Floats, Ints, Outcomes, Pages, instant
from salticus.types.state import pack, unpack

BOTH = pytest.mark.parametrize("kind", [Pooled, Rhythm])
Kind = type[Pooled]
_US = int(DAY.astype(np.int64))


def watched(page: Ints, since: Floats, until: Floats, changed: Bools) -> Outcomes:
    """Answered visits, times in days since the start of 2026."""
    n = len(page)
    return replace(
        some_outcomes(some_pages(n)),
        page=np.asarray(page, dtype=np.int64),
        since=instant(START) + (np.asarray(since) * _US).astype("m8[us]"),
        at=instant(START) + (np.asarray(until) * _US).astype("m8[us]"),
        changed=np.asarray(changed).astype(np.int8),
        made=np.ones(n, dtype=np.bool_),
        status=np.zeros(n, dtype=np.int8),
    )


def members(merchant: Ints, category: Ints | None = None) -> Pages:
    n = len(merchant)
    category = np.zeros(n, dtype=np.int64) if category is None else category
    last = np.full(n, instant(START))
    return replace(blank_pages(n).answered(last), merchant=merchant, category=category)


def watch(model: Pooled, pages: Pages, rates: Floats, days: range, *, seed: int = 0) -> None:
    """Visit all pages once a day; each changes at its rate."""
    rng = np.random.default_rng(seed)
    n, ids = len(pages), pages.ids
    for day in days:
        changed = rng.random(n) < -np.expm1(-rates)
        model.learn(watched(ids, np.full(n, float(day)), np.full(n, day + 1.0), changed))
        ask(model, pages, START + timedelta(days=day + 1))


# ------------------------------------------------------------------------------------- the rate


@BOTH
def test_a_known_rate_is_recovered(kind: Kind) -> None:
    rates = np.repeat([0.02, 0.1, 0.4, 1.0], 60)
    pages = members(np.arange(240) // 60)
    model = kind()
    watch(model, pages, rates, range(150))
    found = model.rates(pages.ids).reshape(4, 60).mean(axis=1)
    assert found == pytest.approx([0.02, 0.1, 0.4, 1.0], rel=0.3)
    assert found[2:] == pytest.approx([0.4, 1.0], rel=0.05)


@BOTH
def test_a_page_alone_is_recovered_whatever_its_merchant_does(kind: Kind) -> None:
    rates = np.full(100, 0.02)
    rates[50] = 0.5
    pages, model = members(np.zeros(100, dtype=np.int64)), kind()
    watch(model, pages, rates, range(200))
    found = model.rates(pages.ids)
    assert 0.25 < found[50] < 0.75
    assert found[50] > 5 * np.delete(found, 50).max() * 0.5
    assert np.delete(found, 50).mean() == pytest.approx(0.02, rel=0.4)


@BOTH
def test_after_a_shift_the_estimate_follows_within_two_memories(kind: Kind) -> None:
    pages = members(np.arange(200) // 100)
    before, after = np.repeat([0.05, 0.4], 100), np.repeat([0.4, 0.05], 100)
    model = kind(memory_days=30.0)
    watch(model, pages, before, range(120))
    old = model.rates(pages.ids).reshape(2, 100).mean(axis=1)
    assert old == pytest.approx([0.05, 0.4], rel=0.15)
    watch(model, pages, after, range(120, 180), seed=1)
    new = model.rates(pages.ids).reshape(2, 100).mean(axis=1)
    assert new == pytest.approx([0.4, 0.05], abs=0.2 * 0.35), "law: a fifth remains at most"
    remembered = kind(memory_days=1e9)
    watch(remembered, pages, before, range(120))
    watch(remembered, pages, after, range(120, 180), seed=1)
    slow = remembered.rates(pages.ids).reshape(2, 100).mean(axis=1)
    assert (np.abs(np.log(new / [0.4, 0.05])) < np.abs(np.log(slow / [0.4, 0.05]))).all()


# ---------------------------------------------------------------------------------- one long span


@pytest.mark.parametrize("days", [[4.0] * 5, [0.5, 1.5, 18.0], [19.9, 0.1]])
def test_one_long_unchanged_span_says_the_same_as_its_parts(days: list[float]) -> None:
    models = Pooled(), Pooled()
    pages = members(np.zeros(20, dtype=np.int64))
    for model in models:
        watch(model, pages, np.full(20, 0.2), range(30))
    one, several = models
    ends = 30.0 + np.cumsum([0.0, *days])
    page, still = np.array([7]), np.array([False])
    one.learn(watched(page, ends[:1], ends[-1:], still))
    for start, end in zip(ends[:-1], ends[1:], strict=True):
        several.learn(watched(page, np.array([start]), np.array([end]), still))
    for name, column in one.pages_.columns.items():
        assert column == pytest.approx(several.pages_[name], rel=1e-12), name


def test_in_own_time_whole_weeks_say_the_same_one_by_one() -> None:
    """On a clock that stands still: weeks are alike, however the days in them differ."""
    pages = members(np.zeros(20, dtype=np.int64))
    models = Rhythm(), Rhythm()
    for model in models:
        watch(model, pages, np.full(20, 0.2), range(70))
    one, several = models
    page, still = np.array([7]), np.array([False])
    one.learn(watched(page, np.array([70.0]), np.array([98.0]), still))
    table = several.week_.table_
    for start in (70.0, 77.0, 84.0, 91.0):
        several.week_.table_ = table
        several.learn(watched(page, np.array([start]), np.array([start + 7.0]), still))
    for name, column in one.pages_.columns.items():
        assert column == pytest.approx(several.pages_[name], rel=1e-12), name


# ------------------------------------------------------------------------------------ cold starts


@BOTH
def test_a_page_without_history_starts_where_its_kind_stands(kind: Kind) -> None:
    """Merchants differ, and categories within them; the last page of each kind is never visited."""
    merchant, category = np.arange(400) // 100, np.arange(400) // 50 % 2
    rates = np.array([0.02, 0.2, 0.1, 0.6, 0.03, 0.03, 0.5, 0.05]).repeat(50)
    pages = members(merchant, category)
    seen = np.arange(400) % 50 != 49
    model = kind()
    ask(model, pages, START)
    watch(model, pages.take(seen), rates[seen], range(60))
    ask(model, pages, START + timedelta(days=61))
    new = model.rates(pages.ids)[~seen]
    off = np.abs(np.log(new / rates[~seen]))
    assert off.max() < np.log(2.2)
    assert off.mean() < 0.35 * np.abs(np.log(rates[seen].mean() / rates[~seen])).mean()


def test_the_prior_of_its_kind_predicts_a_new_page_better_than_that_of_all() -> None:
    """Log loss of the next day for pages never seen, 40 kinds of pages (as in ALGORITHMS §5)."""
    rng = np.random.default_rng(5)
    kinds = np.repeat(np.arange(40), 30)
    rates = rng.gamma(0.6, 0.5, 40)[kinds] * rng.gamma(4.0, 0.25, 1200)
    seen = np.arange(1200) % 30 < 20
    pages = members(kinds % 8, kinds // 8)
    apart, together, plain = Pooled(), Pooled(), Gamma()
    chance = -np.expm1(-rates[~seen])
    losses = []
    for model, met in ((apart, pages), (together, members(np.zeros(1200, dtype=np.int64)))):
        ask(model, met, START)
        watch(model, met.take(seen), rates[seen], range(60))
        losses.append(log_loss(ask(model, met, START + timedelta(days=61)), ~seen, chance))
    losses.append(log_loss(ask(plain, pages, START), ~seen, chance))
    best = float(-np.mean(chance * np.log(chance) + (1 - chance) * np.log1p(-chance)))
    assert best < losses[0] < losses[1] < losses[2]
    assert losses[0] - best < 0.4 * (losses[1] - best)


def log_loss(survival: object, rows: Bools, chance: Floats) -> float:
    still = survival.unchanged(np.ones(len(rows)))[rows]  # type: ignore[attr-defined]
    return float(-np.mean(chance * np.log1p(-still) + (1 - chance) * np.log(still)))


def test_priors_recover_mean_and_spread() -> None:
    rng = np.random.default_rng(2)
    n, days = 4000, np.full(4000, 50.0)
    for shape, mean in ((0.5, 0.3), (2.0, 0.05), (4.0, 1.0)):
        changes = rng.poisson(rng.gamma(shape, mean / shape, n) * days).astype(np.float64)
        nobody = np.full(n, -1, dtype=np.int64)
        a, b = pooled_priors(changes, days, nobody, nobody)
        assert a[0] / b[0] == pytest.approx(mean, rel=0.1)
        assert a[0] == pytest.approx(shape, rel=0.25)


def test_a_small_group_stays_near_what_it_is_part_of() -> None:
    changes, days = np.full(1000, 5.0), np.full(1000, 50.0)
    changes[-2:] = 50.0
    merchant = np.zeros(1000, dtype=np.int64)
    merchant[-2:] = 1
    nobody = np.full(1000, -1, dtype=np.int64)
    a, b = pooled_priors(changes, days, merchant, nobody)
    assert 0.1 < (a / b)[-1] < 0.4, "law: two pages do not speak for a merchant"
    assert (a / b)[0] == pytest.approx(0.1, rel=0.05)


# --------------------------------------------------------------------- what comes in, and restarts


@BOTH
def test_visits_that_tell_nothing_teach_nothing(kind: Kind) -> None:
    model, pages = kind(), members(np.zeros(3, dtype=np.int64))
    ask(model, pages, START)
    before = model.rates(pages.ids)
    said = watched(np.arange(3), np.zeros(3), np.ones(3), np.ones(3, dtype=np.bool_))
    model.learn(replace(said, made=np.zeros(3, dtype=np.bool_)))
    model.learn(replace(said, changed=np.full(3, UNKNOWN, dtype=np.int8)))
    model.learn(replace(said, since=np.full(3, np.datetime64("NaT", "us"))))
    model.learn(replace(said, since=said.at))
    model.learn(said.take(np.empty(0, dtype=np.int64)))
    assert np.array_equal(model.rates(pages.ids), before)


@BOTH
def test_pages_may_be_learnt_before_they_are_met(kind: Kind) -> None:
    """What is learnt of a page counts for it; its group comes when it is met."""
    pages = members(np.arange(60) // 20)
    early, late = kind(), kind()
    ask(early, pages, START)
    rng = np.random.default_rng(0)
    said = [
        watched(np.arange(60), np.full(60, k), np.full(60, k + 1.0), rng.random(60) < 0.3)
        for k in range(30)
    ]
    for model in (early, late):
        for outcomes in said:
            model.learn(outcomes)
    later = START + timedelta(days=31)
    one, other = (ask(m, pages, later) for m in (early, late))
    rate = one.rates()
    assert rate == pytest.approx(other.rates(), rel=1e-9 if kind is Pooled else 0.05)
    assert np.corrcoef(rate, other.rates())[0, 1] > 0.99


@BOTH
def test_a_restart_with_other_numbers_for_the_merchants_changes_nothing(kind: Kind) -> None:
    pages = members(np.arange(90) // 30, np.arange(90) % 2)
    model = kind()
    watch(model, pages, np.repeat([0.05, 0.3, 0.9], 30), range(40))
    again = kind()
    again.restore(unpack(pack({"predictor": model.state()}))["predictor"])
    other = np.array([2, 0, 1])
    renamed = replace(pages, merchant=other[pages.merchant], category=1 - pages.category)
    watch(model, pages, np.repeat([0.05, 0.3, 0.9], 30), range(40, 45), seed=1)
    watch(again, renamed, np.repeat([0.05, 0.3, 0.9], 30), range(40, 45), seed=1)
    later, ages = START + timedelta(days=46), np.full(90, 2.5)
    one = ask(model, pages, later).unchanged(ages)
    assert one == pytest.approx(ask(again, renamed, later).unchanged(ages), rel=1e-12)


@BOTH
def test_a_restart_changes_nothing_for_merchants_that_were_not_watched_lately(kind: Kind) -> None:
    """One merchant was watched first, then another, and the third never."""
    pages = members(np.arange(90) // 30)
    model = kind()
    ask(model, pages, START)
    rates = np.full(90, 0.4)
    for first, rows in ((0, np.arange(30)), (40, np.arange(30, 60))):
        watch(model, pages.take(rows), rates[rows], range(first, first + 40))
    again = kind()
    again.restore(unpack(pack({"predictor": model.state()}))["predictor"])
    later, ages = START + timedelta(days=81), np.full(90, 2.5)
    one, other = (ask(m, pages, later).unchanged(ages) for m in (model, again))
    assert one == pytest.approx(other, rel=1e-12)


@BOTH
def test_a_new_page_after_a_restart_joins_its_old_merchant(kind: Kind) -> None:
    pages = members(np.arange(60) // 30)
    model = kind()
    watch(model, pages, np.repeat([0.02, 0.8], 30), range(60))
    again = kind()
    again.restore(unpack(pack({"predictor": model.state()}))["predictor"])
    more = members(1 - np.append(np.arange(60) // 30, 1))  # page 60 is of the fast merchant
    ask(again, more, START + timedelta(days=61))
    assert again.rates(np.array([60]))[0] > 0.3


@BOTH
def test_the_state_is_a_copy_of_its_own_after_a_restart(kind: Kind) -> None:
    pages, model = members(np.zeros(5, dtype=np.int64)), kind()
    watch(model, pages, np.full(5, 0.3), range(10))
    again = kind()
    again.restore(model.state())
    kept = model.rates(pages.ids).copy()
    watch(again, pages, np.full(5, 3.0), range(10, 20))
    assert np.array_equal(model.rates(pages.ids), kept)


def test_a_batch_teaches_what_its_visits_teach_one_by_one() -> None:
    rng = np.random.default_rng(3)
    pages = members(np.arange(40) // 10)
    batch, single = Pooled(), Pooled()
    for model in (batch, single):
        watch(model, pages, np.full(40, 0.3), range(10))
    gaps = rng.uniform(0.2, 5.0, 40)
    said = watched(pages.ids, np.full(40, 10.0), 10.0 + gaps, rng.random(40) < 0.5)
    batch.learn(said)
    for row in rng.permutation(40):
        single.learn(said.take(np.array([row])))
    assert batch.rates(pages.ids) == pytest.approx(single.rates(pages.ids), rel=1e-12)


@BOTH
def test_the_order_of_rows_does_not_matter(kind: Kind) -> None:
    """Rows of one batch, several to a page."""
    rng = np.random.default_rng(3)
    page = np.repeat(np.arange(20), 4)
    start = np.tile(np.arange(4) * 2.0, 20)
    said = watched(page, start, start + 2.0, rng.random(80) < 0.5)
    one, other = kind(), kind()
    for model, order in ((one, np.arange(80)), (other, rng.permutation(80))):
        ask(model, members(np.arange(20) // 5), START)
        model.learn(said.take(order))
    assert one.rates(np.arange(20)) == pytest.approx(other.rates(np.arange(20)), rel=1e-12)


@BOTH
def test_nothing_and_nobody(kind: Kind) -> None:
    model = kind()
    assert ask(model, blank_pages(0), START).rates().tolist() == []
    assert ask(model, blank_pages(2), START).rates() == pytest.approx([0.25, 0.25])
    quiet = np.full(2, UNCHANGED, dtype=np.bool_)
    model.learn(watched(np.arange(2), np.zeros(2), np.full(2, 5000.0), quiet))
    later = START + timedelta(days=5001)
    still = ask(model, blank_pages(2), later).unchanged(np.full(2, 1.0))
    assert ((still > 0.95) & (still <= 1.0)).all()


@BOTH
def test_pages_in_another_order_keep_their_curves(kind: Kind) -> None:
    pages, model = some_pages(40, seed=1), kind()
    ask(model, pages, START)
    model.learn(some_outcomes(pages, seed=2))
    ages, order = np.full(40, 2.0), np.random.default_rng(0).permutation(40)
    here = ask(model, pages, START).unchanged(ages)
    there = ask(model, pages.take(order), START).unchanged(ages)
    assert len(np.unique(here)) > 3
    assert np.array_equal(there, here[order])
