"""Examples made of a small market: who is in which part, what each row may know, and resuming."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.write import write_log
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.models.training.examples import make_examples
from salticus.models.training.moments import SPACING_US
from salticus.models.training.recipe import PARTS, Recipe, TimeSplit
from salticus.models.training.shards import Shards, read_shard
from salticus.types import Ints
from salticus.types.dates import DAY_US, HOUR_US

DAY = timedelta(days=1)
START = datetime(2018, 5, 1, tzinfo=UTC)
RECIPE = Recipe(split=TimeSplit(7 * DAY, 2 * DAY, 3 * DAY), edges=(6, 24), examples=10**6)
SOME = replace(RECIPE, examples=1500)


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples") / "log"
    make_market(folder, MarketSize(offers=90, days=12), seed=5)
    return folder


@pytest.fixture(scope="module", params=["full", "partial"])
def whole(
    request: pytest.FixtureRequest, market: Path, tmp_path_factory: pytest.TempPathFactory
) -> Shards:
    """Every moment, for one who sees all and for the log's crawler."""
    folder = tmp_path_factory.mktemp("whole")
    return make_examples(Log(market), replace(RECIPE, observe=request.param, depth=3), folder)


def span(shards: Shards, part: str) -> tuple[int, int]:
    ends = (datetime.fromisoformat(each) for each in shards.about["spans"][part])
    start, stop = (round(each.timestamp()) * 1_000_000 for each in ends)
    return start, stop


def micros(frame: pl.DataFrame) -> Ints:
    return frame["at"].dt.epoch("us").to_numpy()


# ------------------------------------------------------------------------------------------ parts


def test_parts_do_not_overlap_and_no_label_reaches_into_the_next(whole: Shards) -> None:
    for part in PARTS:
        start, stop = span(whole, part)
        at, label = whole.times(part), whole.part(part).label
        assert len(at) == whole.rows(part) > 1000
        assert (np.diff(at) >= 0).all()
        assert at.min() >= start
        for n, edge in enumerate(RECIPE.edges):
            assert (at[label[:, n] >= 0] + edge * HOUR_US <= stop).all()
        assert (label[:, 0] >= 0).all(), "rows whose first label is not known are left out"
    assert span(whole, "train")[1] == span(whole, "validation")[0]
    assert span(whole, "validation")[1] == span(whole, "test")[0]


def test_training_never_touches_unseen_pages_and_tests_are_of_the_uniform_stratum(
    whole: Shards,
) -> None:
    parts = {part: whole.part(part) for part in PARTS}
    assert parts["train"].seen.all()
    assert not parts["train"].uniform.all()
    for part in ("validation", "test"):
        assert parts[part].uniform.all()
        assert not parts[part].seen.all()
        assert parts[part].seen.any()
    for rows in parts.values():
        for name in ("seen", "uniform"):
            told = whole.pages[name].to_numpy()[rows.inputs.page]
            assert np.array_equal(getattr(rows, name), told)
    held_out = set(np.flatnonzero(~whole.pages["seen"].to_numpy()).tolist())
    assert held_out
    assert not held_out & set(parts["train"].inputs.page.tolist())


def test_moments_of_a_page_are_a_quarter_of_an_hour_apart(whole: Shards) -> None:
    page = np.concatenate([whole.part(part).inputs.page for part in PARTS])
    at = np.concatenate([whole.times(part) for part in PARTS])
    order = np.lexsort((at, page))
    gap, same = np.diff(at[order]), np.diff(page[order]) == 0
    assert gap[same].min() >= SPACING_US
    assert (at % HOUR_US != 0).any(), "some are at visits"


def test_rows_tell_the_hour_and_nothing_comes_before_a_birth(market: Path, whole: Shards) -> None:
    values = Log(market).scan("values").collect()
    born = values.group_by("page_id").agg(pl.col("at").min())
    first = dict(zip(born["page_id"].to_list(), micros(born).tolist(), strict=True))
    of_row = np.array([first[each] for each in whole.pages["page_id"].to_list()])
    for part in PARTS:
        rows, at = whole.part(part), whole.times(part)
        assert np.array_equal(rows.inputs.hour, at // HOUR_US)
        assert (at >= of_row[rows.inputs.page]).all()
        assert (rows.known >= 0).all()
    train = whole.part("train")
    assert (train.known == 0).any(), "cold starts"
    assert train.inputs.steps.shape == (len(train), 3, 3)


# ----------------------------------------------------------------------------------------- labels


def test_labels_are_the_changes_of_the_log(market: Path, whole: Shards) -> None:
    values = Log(market).scan("values").sort("page_id", "at").collect()
    rows, at = whole.part("test"), whole.times("test")
    ids = whole.pages["page_id"].to_numpy()
    for n in np.random.default_rng(1).choice(len(rows), 150, replace=False):
        mine = values.filter(pl.col("page_id") == ids[rows.inputs.page[n]])
        when, first = micros(mine), mine["at"].is_first_distinct().to_numpy().copy()
        first[1:] = False  # the birth
        low = at[n]
        for k, edge in enumerate(RECIPE.edges):
            high = at[n] + edge * HOUR_US
            inside = (when >= low) & (when < high) & ~first
            if rows.label[n, k] >= 0:
                assert rows.label[n, k] == inside.any()
            low = high


@pytest.mark.parametrize(("task", "column"), [("click", "clicks"), ("impression", "impressions")])
def test_demand_labels_are_of_the_next_utc_day(
    market: Path, tmp_path: Path, task: str, column: str
) -> None:
    shards = make_examples(Log(market), replace(SOME, task=task, every=6 * DAY / 24), tmp_path)
    demand = Log(market).scan("demand").filter(pl.col(column) > 0).collect()
    some = set(zip(demand["page_id"].to_list(), micros(demand).tolist(), strict=True))
    ids = shards.pages["page_id"].to_list()
    for part in PARTS:
        rows, at = shards.part(part), shards.times(part)
        start = -(-at // DAY_US) * DAY_US
        assert (start + DAY_US <= span(shards, part)[1]).all()
        wanted = [
            (ids[page], day) in some
            for page, day in zip(rows.inputs.page.tolist(), start.tolist(), strict=True)
        ]
        assert rows.label[:, 0].tolist() == wanted
        assert rows.label.shape[1] == 1


@pytest.mark.parametrize("observe", ["partial", "0.5"])
def test_stale_means_another_value_than_at_the_last_answer(
    market: Path, tmp_path: Path, observe: str
) -> None:
    shards = make_examples(Log(market), replace(SOME, task="stale", observe=observe), tmp_path)
    values = Log(market).scan("values").sort("page_id", "at").collect()
    rows, at = shards.part("train", columns=("page_since",)), shards.times("train")
    since = rows.inputs.hour - rows.inputs.column("page_since").astype(np.int64)
    ids = shards.pages["page_id"].to_numpy()
    stale = np.flatnonzero(rows.label[:, 0] == 1)
    assert len(stale) >= 5
    for n in [*stale, *range(0, len(rows), 7)]:
        mine = values.filter(pl.col("page_id") == ids[rows.inputs.page[n]])
        told = mine["value"].to_list()
        now = int(np.searchsorted(micros(mine), at[n], side="right")) - 1
        then = int(np.searchsorted(micros(mine), since[n] * HOUR_US, side="right")) - 1
        assert rows.label[n, 0] == (told[now] != told[then])


# --------------------------------------------------------------------------------------- no leaks


@pytest.mark.parametrize("observe", ["full", "partial"])
def test_what_comes_later_does_not_touch_a_row(market: Path, tmp_path: Path, observe: str) -> None:
    """Law: with everything after a time shuffled, the features of rows before stay, bit by bit.

    The time is that of the most changes, so that a row of that very hour would show them.
    """
    values = Log(market).scan("values").collect()
    middle = values["at"].min() + 7.5 * DAY
    inside = values.filter(pl.col("at").is_between(middle, middle + DAY))
    cut = inside["at"].value_counts(sort=True)["at"][0]
    shuffled = tmp_path / "log"
    shutil.copytree(market, shuffled)
    for table in ("values", "visits", "demand"):
        frame = pl.read_parquet(shuffled / f"{table}.parquet")
        old, new = frame.filter(pl.col("at") < cut), frame.filter(pl.col("at") >= cut)
        new = new.with_columns(pl.col("page_id").shuffle(seed=7)).unique(["page_id", "at"])
        pl.concat([old, new]).sort("page_id", "at").write_parquet(shuffled / f"{table}.parquet")
    recipe = replace(RECIPE, observe=observe, depth=2)
    found = []
    for n, folder in enumerate((market, shuffled)):
        shards = make_examples(Log(folder), recipe, tmp_path / str(n))
        rows = {}
        for part in PARTS:
            part_rows, at = shards.part(part), shards.times(part)
            early = np.flatnonzero(at <= cut.timestamp() * 1e6)
            for row in early.tolist():
                key = (part, int(part_rows.inputs.page[row]), int(at[row]))
                inputs = part_rows.inputs
                rows[key] = inputs.dense[row].tobytes() + inputs.steps[row].tobytes()
        found.append(rows)
    common = found[0].keys() & found[1].keys()
    assert len(common) > 0.95 * len(found[0]) > 1000
    assert {part for part, _, _ in common} == {"train", "validation"}
    assert all(found[0][key] == found[1][key] for key in common)


def test_a_row_of_a_smaller_sample_is_that_of_the_larger_one(
    market: Path, tmp_path: Path, whole: Shards
) -> None:
    recipe = replace(SOME, observe=whole.about["recipe"]["observe"], depth=3)
    small = make_examples(Log(market), recipe, tmp_path)
    for part in PARTS:
        rows, every = small.part(part), whole.part(part)
        where = {
            key: n
            for n, key in enumerate(
                zip(every.inputs.page.tolist(), whole.times(part).tolist(), strict=True)
            )
        }
        keys = zip(rows.inputs.page.tolist(), small.times(part).tolist(), strict=True)
        same = every.take(np.array([where[key] for key in keys]))
        assert same.inputs.dense.tobytes() == rows.inputs.dense.tobytes()
        assert np.array_equal(same.label, rows.label)
        assert np.array_equal(same.known, rows.known)
        assert 1300 < len(rows) <= 1500
        assert rows.weight.sum() == pytest.approx(every.weight.sum(), rel=0.1)


# ------------------------------------------------------------------------- files, and going on


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def test_an_interrupted_run_goes_on_to_the_same_files(market: Path, tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        make_examples(Log(market), replace(SOME, observe="partial"), tmp_path / name, made.append)
    once = files(tmp_path / "one")
    assert files(tmp_path / "two") == once, "the same recipe makes the same files"
    for name in list(once)[1::3]:
        (tmp_path / "two" / name).unlink()
    (tmp_path / "two" / "manifest.json").unlink(missing_ok=True)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "two").glob("*.npz")}
    make_examples(Log(market), replace(SOME, observe="partial"), tmp_path / "two")
    assert files(tmp_path / "two") == once
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items()), "kept as they were"
    assert made


def test_another_recipe_or_log_makes_the_days_anew(market: Path, tmp_path: Path) -> None:
    folder = tmp_path / "examples"
    one = make_examples(Log(market), SOME, folder)
    assert make_examples(Log(market), SOME, folder).about == one.about
    other = make_examples(Log(market), replace(SOME, seed=1), folder)
    assert other.about["fingerprint"] != one.about["fingerprint"]
    short = replace(SOME, seed=1, split=TimeSplit(6 * DAY, 2 * DAY, 2 * DAY))
    fewer = make_examples(Log(market), short, folder)
    assert {shard.file for shard in fewer.shards} == {path.name for path in folder.glob("*.npz")}


def test_parts_are_read_whole_by_column_and_by_day(whole: Shards) -> None:
    every = whole.part("test")
    assert every.inputs.names == whole.names
    days = list(whole.days("test"))
    assert len(days) == 3
    assert np.array_equal(
        np.concatenate([day.inputs.dense for day in days]), every.inputs.dense, equal_nan=True
    )
    two = ("page_recent", "hour")
    some = whole.part("test", columns=two)
    assert some.inputs.names == two
    assert np.array_equal(some.inputs.dense, every.inputs.select(two), equal_nan=True)


def test_what_cannot_be_read_is_named(market: Path, tmp_path: Path) -> None:
    shards = make_examples(Log(market), SOME, tmp_path)
    with pytest.raises(InputError, match="nosuch"):
        shards.part("nosuch")
    with pytest.raises(InputError, match="colour"):
        shards.part("train", columns=("colour",))
    first = tmp_path / shards.shards[0].file
    first.write_bytes(first.read_bytes()[:100])
    with pytest.raises(InputError, match=first.name):
        shards.part("train")
    (tmp_path / "manifest.json").write_text(json.dumps({**shards.about, "format": 0}))
    with pytest.raises(InputError, match="make them again"):
        Shards(tmp_path)
    with pytest.raises(InputError, match="manifest"):
        Shards(tmp_path / "elsewhere")
    assert "fingerprint" in read_shard(tmp_path / shards.shards[1].file)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"task": "sell"}, "sell"),
        ({"edges": (24, 6)}, "ascending"),
        ({"edges": ()}, "edge"),
        ({"every": timedelta(0)}, "every"),
        ({"unseen": 1.0}, "unseen"),
        ({"examples": 0}, "examples"),
        ({"task": "stale"}, "sees all"),
        ({"split": TimeSplit(90 * DAY, DAY, DAY)}, "validation"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(
    market: Path, tmp_path: Path, wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        make_examples(Log(market), replace(RECIPE, **wrong), tmp_path)


# ------------------------------------------------------------------------------ logs made by hand


def daily(folder: Path, about: dict[str, Any]) -> Log:
    """Two merchants with daily prices over twelve days; one is looked at for eight of them."""
    rows = [
        (page, START + day * DAY + timedelta(hours=9), f"{day}.50 EUR")
        for page in range(20)
        for day in range(page % 3, 8 if page < 10 else 12, 1 + page % 3)
    ]
    values = pl.DataFrame(
        rows, schema={"page_id": pl.Int64, "at": pl.Datetime("us", "UTC"), "value": pl.String},
        orient="row",
    )  # fmt: skip
    pages = pl.DataFrame({"page_id": range(20), "merchant": ["short"] * 10 + ["long"] * 10})
    span = ["2018-05-01", "2018-05-12"]
    write_log(
        folder, {"pages": pages, "values": values}, {"resolution": "1d", "span": span, **about}
    )
    return Log(folder)


DAILY = Recipe(
    split=TimeSplit(4 * DAY, 3 * DAY, 5 * DAY), edges=(24,), every=DAY, visits=False, unseen=0.0
)


def last_days(shards: Shards) -> tuple[int, int]:
    page, at = shards.part("test").inputs.page, shards.times("test")
    return tuple(int(at[some].max() // DAY_US) for some in (page < 10, page >= 10))  # type: ignore[return-value]


def test_merchants_end_with_their_last_change_if_the_log_says_so(tmp_path: Path) -> None:
    start = int(START.timestamp() * 1e6) // DAY_US
    told = daily(tmp_path / "told", {"merchants_end": "each at its own last change"})
    silent = daily(tmp_path / "silent", {})
    found = {
        name: last_days(make_examples(log, replace(DAILY, clip=clip), tmp_path / name))
        for name, log, clip in (
            ("a", told, None), ("b", told, False), ("c", silent, None), ("d", silent, True),
        )
    }  # fmt: skip
    clipped, whole = (start + 7, start + 11), (start + 11, start + 11)
    assert found == {"a": clipped, "b": whole, "c": whole, "d": clipped}


def test_a_page_that_came_after_the_training_is_unseen(tmp_path: Path) -> None:
    """The pages of every third number begin on the third day."""
    recipe = replace(DAILY, split=TimeSplit(2 * DAY, 3 * DAY, 5 * DAY))
    rows = make_examples(daily(tmp_path / "log", {}), recipe, tmp_path / "examples").part("test")
    assert (rows.seen == (rows.inputs.page % 3 != 2)).all()
    assert 0 < rows.seen.mean() < 1


def test_a_log_without_strata_visits_or_demand_has_examples(tmp_path: Path) -> None:
    log = daily(tmp_path / "log", {})
    shards = make_examples(log, replace(DAILY, visits=True), tmp_path / "examples")
    assert shards.pages["uniform"].all()
    assert not shards.about["weighted_by_clicks"]
    for part in PARTS:
        rows = shards.part(part)
        assert (rows.weight == 1.0).all(), "all of them are here"
        assert (shards.times(part) % DAY_US == 0).all()
    with pytest.raises(InputError, match="demand"):
        make_examples(log, replace(DAILY, task="click"), tmp_path / "clicks")
    with pytest.raises(InputError, match="visits"):
        make_examples(log, replace(DAILY, observe="partial"), tmp_path / "partial")
