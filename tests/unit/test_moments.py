"""When predictions are made and what came of them, against definitions written out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.errors import InputError
from salticus.exchange.truth import GONE
from salticus.features.metadata import hashes
from salticus.models.training.labels import (
    Answers,
    ChangePoints,
    Moments,
    changes,
    make_points,
    stale,
)
from salticus.models.training.moments import SPACING_US, Sampler, VisitsByDay
from salticus.models.training.recipe import (
    PARTS,
    SPLITS,
    Recipe,
    TimeSplit,
    click_weights,
    seen_pages,
    shrunk,
    spans_of,
)
from salticus.types import Bools, Ints
from salticus.types.dates import DAY_US, HOUR_US

DAY = timedelta(days=1)
SPLIT = TimeSplit(DAY, DAY, DAY)
STEP_US = 300_000_000  # times of these tests lie on five minutes
DAYS = 3 * DAY_US // STEP_US

History = list[tuple[int, int]]
"""Times and values of a page, in order of time."""


def points_of(histories: list[History], end: int = 3 * DAY_US) -> ChangePoints:
    first = np.cumsum([0, *(len(each) for each in histories)])
    at = np.array([when for each in histories for when, _ in each], dtype=np.int64)
    value = np.array([code for each in histories for _, code in each], dtype=np.int64)
    return make_points(first, at, value, np.full(len(histories), end))


class Told(VisitsByDay):
    """Visits that are told, and not on disk."""

    def __init__(self, page: list[int], at: list[int]) -> None:
        super().__init__(Path())
        order = np.lexsort((at, page))
        self.page, self.at = (
            np.array(page, dtype=np.int64)[order],
            np.array(at, dtype=np.int64)[order],
        )

    def on(self, day: int) -> tuple[Ints, Ints, Bools]:
        today = self.at // DAY_US == day
        return self.page[today], self.at[today], np.ones(today.sum(), dtype=np.bool_)


def sampler_of(recipe: Recipe, points: ChangePoints) -> Sampler:
    pages = len(points.end)
    every = np.ones(pages, dtype=np.bool_)
    return Sampler(recipe, hashes(range(pages)), points, dict.fromkeys(PARTS, every))


def drawn(
    recipe: Recipe, points: ChangePoints, visits: VisitsByDay | None = None
) -> list[tuple[str, Moments, int]]:
    sampler, spans = sampler_of(recipe, points), spans_of(recipe.split, 0, 3 * DAY_US)
    rates = {part: rate for part, (rate, _) in sampler.rates(spans, visits).items()}
    return [
        (piece.part, moments, piece.limit)
        for piece, moments in sampler.moments(spans, visits, rates)
    ]


# ------------------------------------------------------------------------------- by the definition


def there(history: History, when: int) -> bool:
    before = [value for at, value in history if at < when]
    now = [value for at, value in history if at <= when]
    return (bool(before) and before[-1] != GONE) or (
        bool(now) and now[-1] != GONE and now != before
    )


def ahead(history: History, when: int) -> History:
    """The points from a moment on; a birth or return at the very moment is not ahead."""
    before = [value for at, value in history if at < when]
    alive = bool(before) and before[-1] != GONE
    return [(at, value) for at, value in history if at > when or (at == when and alive)]


def label_of(history: History, when: int, low: int, high: int, limit: int) -> int:
    """1, 0 or -1 for the stretch [when + low, when + high) in hours."""
    start, stop = when + low * HOUR_US, when + high * HOUR_US
    future = ahead(history, when)
    if stop > limit or any(value == GONE and at < stop for at, value in future):
        return -1
    if any(at < start for at, _ in future):
        return -1
    return int(any(start <= at < stop for at, _ in future))


def moments_of(history: History, visits: list[int], every: int) -> list[int]:
    """Greedily: every candidate that is at least 15 minutes after the one before."""
    kept: list[int] = []
    for when in sorted({*range(0, 3 * DAY_US, every), *visits}):
        if there(history, when) and (not kept or when - kept[-1] >= SPACING_US):
            kept.append(when)
    return kept


times = st.integers(0, DAYS - 1).map(lambda n: n * STEP_US)


@st.composite
def histories(draw: st.DrawFn) -> History:
    found: History = []
    for when in sorted(draw(st.sets(times, max_size=8))):
        value = draw(st.sampled_from([GONE, 0, 1, 2]))
        if not found or found[-1][1] != value:
            found.append((when, value))
    return found[1:] if found and found[0][1] == GONE else found


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(histories(), st.lists(times, max_size=12)), min_size=1, max_size=3))
def test_moments_and_labels_are_what_their_definitions_say(
    pages: list[tuple[History, list[int]]],
) -> None:
    """Births, changes and back, deaths, returns, ends of spans, visits close together."""
    recipe = Recipe(edges=(6, 24), split=SPLIT, every=timedelta(hours=1), examples=10**6)
    points = points_of([history for history, _ in pages])
    visits = Told(
        [page for page, (_, at) in enumerate(pages) for _ in at],
        [each for _, at in pages for each in at],
    )
    found, wanted = {}, {}
    for _, moments, limit in drawn(recipe, points, visits):
        label = changes(points, moments, recipe.edges, limit)
        rows = zip(moments.page.tolist(), moments.at.tolist(), label.tolist(), strict=True)
        found.update({(page, at): told for page, at, told in rows})
    for page, (history, seen) in enumerate(pages):
        for when in moments_of(history, seen, HOUR_US):
            limit = (when // DAY_US + 1) * DAY_US
            label = [label_of(history, when, *edge, limit) for edge in ((0, 6), (6, 24))]
            if label[0] >= 0:
                wanted[page, when] = label
    assert found == wanted


def test_a_change_and_back_counts_and_so_does_one_at_the_very_moment() -> None:
    hour = HOUR_US
    points = points_of([[(0, 0), (10 * hour, 1), (11 * hour, 0)]])
    moments = Moments(np.array([0, 0, 0]), np.array([9, 10, 12]) * hour, np.array([1, 1, 3]))
    assert changes(points, moments, (6,), FAR).T.tolist() == [[1, 1, 0]]


def test_what_comes_after_the_end_is_not_known() -> None:
    hour = HOUR_US
    points = points_of(
        [[(0, 0)], [(0, 0), (8 * hour, GONE)], [(0, 0), (4 * hour, 1), (5 * hour, GONE)]]
    )
    page, at = np.array([0, 1, 2]), np.full(3, 3 * hour)
    moments = Moments(page, at, points.first[page] + 1)
    assert changes(points, moments, (2, 6), FAR).tolist() == [[0, 0], [0, -1], [1, -1]]
    assert changes(points, moments, (2, 6), 8 * hour).tolist() == [[0, -1], [0, -1], [1, -1]]
    clipped = points._replace(end=np.array([4, 4, 4]) * hour)
    assert (changes(clipped, moments, (2, 6), FAR) == -1).all()


FAR = 10**18


# ------------------------------------------------------------------------------------- the sample


def many(pages: int = 40) -> ChangePoints:
    return points_of([[(0, 0), (page * HOUR_US + STEP_US, 1)] for page in range(pages)])


def as_set(found: list[tuple[str, Moments, int]]) -> set[tuple[str, int, int]]:
    return {
        (part, page, at)
        for part, moments, _ in found
        for page, at in zip(moments.page.tolist(), moments.at.tolist(), strict=True)
    }


def test_no_part_has_more_than_was_asked_for_and_a_sample_is_part_of_a_larger_one() -> None:
    small, large = (
        as_set(drawn(Recipe(split=SPLIT, examples=examples), many())) for examples in (50, 200)
    )
    for part in PARTS:
        assert 30 < sum(each[0] == part for each in small) <= 50
        assert 150 < sum(each[0] == part for each in large) <= 200
    assert small < large


def test_a_page_has_the_same_moments_whoever_else_is_there() -> None:
    recipe = Recipe(split=SPLIT, examples=10**6)
    few, all_ = as_set(drawn(recipe, many(5))), as_set(drawn(recipe, many()))
    assert few == {each for each in all_ if each[1] < 5}


def test_another_seed_gives_another_sample() -> None:
    one, other = (
        as_set(drawn(Recipe(split=SPLIT, examples=100, seed=seed), many())) for seed in (0, 1)
    )
    assert len(one & other) < len(one) / 2


def test_visits_count_only_if_the_recipe_says_so() -> None:
    visits = Told([0, 0], [30 * STEP_US + 1, 31 * STEP_US])
    for wanted in (True, False):
        recipe = Recipe(split=SPLIT, visits=wanted, examples=10**6)
        assert (("train", 0, 30 * STEP_US + 1) in as_set(drawn(recipe, many(), visits))) is wanted


def test_labels_of_the_day_ahead_stay_in_their_span() -> None:
    """A click label is of the UTC day that begins next, so it needs two days of a span."""
    recipe = Recipe(task="click", split=TimeSplit(DAY, DAY, DAY), examples=10**6)
    found = as_set(drawn(recipe, many()))
    assert {at for _, _, at in found} == {0, DAY_US, 2 * DAY_US}, "midnights alone"


# -------------------------------------------------------------------------------------- the split


def test_spans_follow_one_another_and_are_cut_at_midnights() -> None:
    spans = spans_of(TimeSplit(1.5 * DAY, DAY, 9 * DAY), 5 * DAY_US - 1, 9 * DAY_US)
    assert [span.part for span in spans] == list(PARTS)
    assert spans[0].start == 5 * DAY_US
    assert [a.stop for a in spans[:-1]] == [b.start for b in spans[1:]]
    assert spans[-1].stop == 9 * DAY_US, "the log is shorter than the split"
    pieces = [piece for span in spans for piece in span.pieces()]
    assert [piece.day for piece in pieces[:3]] == ["1970-01-06", "1970-01-07", "1970-01-07"]
    assert all(piece.start // DAY_US == (piece.stop - 1) // DAY_US for piece in pieces)
    assert pieces[1].limit == pieces[1].stop == pieces[2].start


def test_a_log_that_is_too_short_is_refused_and_a_split_can_shrink() -> None:
    with pytest.raises(InputError, match="validation"):
        spans_of(SPLITS["han2019"], 0, 41 * DAY_US)
    assert (
        spans_of(shrunk(SPLITS["han2019"], 0, 41 * DAY_US), 0, 41 * DAY_US)[-1].stop == 41 * DAY_US
    )
    assert shrunk(SPLITS["han2019"], 0, 123 * DAY_US) is SPLITS["han2019"]
    early = TimeSplit(start=datetime(1969, 1, 1, tzinfo=UTC))
    with pytest.raises(InputError, match="before the log"):
        spans_of(early, 0, 500 * DAY_US)


def test_a_quarter_of_the_pages_is_held_out_by_their_ids_alone() -> None:
    key = hashes(range(4000))
    seen = seen_pages(key, Recipe())
    assert 0.72 < seen.mean() < 0.78
    assert np.array_equal(seen[1000:], seen_pages(key[1000:], Recipe()))
    assert not np.array_equal(seen, seen_pages(key, Recipe(seed=1)))
    assert seen_pages(key, Recipe(unseen=0.0)).all()


def test_click_weights_make_a_mixture_look_uniform() -> None:
    """Law: weighted means over both strata are those of the uniform one."""
    rng = np.random.default_rng(3)
    rate = np.exp(0.7 * rng.normal(size=60_000))
    clicked = rng.random(len(rate)) < 0.05 * rate
    uniform = ~clicked & (rng.random(len(rate)) < 0.1)
    kept = clicked | uniform
    days = np.full(kept.sum(), 200.0)
    clicks = rng.poisson(rate[kept] * 200).astype(np.float64)
    weight = click_weights(clicks, days, np.ones(kept.sum(), dtype=np.bool_), uniform[kept])
    true, plain = rate[uniform].mean(), rate[kept].mean()
    assert plain > 1.15 * true
    assert np.average(rate[kept], weights=weight) == pytest.approx(true, rel=0.03)
    assert weight.mean() == pytest.approx(1.0, rel=0.03)


def test_without_clicks_in_the_uniform_stratum_all_weigh_alike() -> None:
    some = np.array([True, False])
    assert click_weights(np.array([0.0, 9.0]), np.ones(2), ~(some & ~some), some).tolist() == [1, 1]


# ------------------------------------------------------------------------------- the task `stale`


def test_stale_is_against_the_last_answer_of_an_earlier_hour() -> None:
    hour = HOUR_US
    points = points_of([[(0, 0), (25 * hour, 1), (27 * hour, 0)], [(0, 0)]])
    answers = Answers(2)
    answers.learn(np.array([0]), np.array([4 * hour]))
    answers.learn(np.array([0, 0]), np.array([25 * hour + 1, 26 * hour + 1]))
    page, at = np.array([0, 0, 0, 0, 1]), np.array([25.5, 26.5, 27, 28, 28]) * hour
    moments = Moments(page, at.astype(np.int64), np.zeros(5, dtype=np.int64))
    since = answers.since(page, moments.at)
    assert since.tolist() == [4 * hour, 25 * hour + 1, 26 * hour + 1, 26 * hour + 1, -1]
    assert stale(points, moments, since)[:, 0].tolist() == [1, 0, 1, 1, -1]
