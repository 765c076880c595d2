"""Planted hazards: a world whose every hazard is known, and a model that has to find them.

Pages change by Poisson processes whose rate is merchant × hour of the merchant's week × brand ×
the page's own. The model sees what happened, never a rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from salticus.exchange.folder import Log
from salticus.exchange.write import write_log
from salticus.features.metadata import Vocabulary
from salticus.features.names import METADATA, FeatureSet, ahead
from salticus.models.training.boosting import TreesSettings
from salticus.models.training.calibrate import calibrate
from salticus.models.training.examples import make_examples
from salticus.models.training.recipe import HAZARD, PARTS, Recipe, TimeSplit
from salticus.models.training.trees import fit_trees
from salticus.types import Examples, Floats, Ints

PAGES, DAYS, MERCHANTS, BRANDS = 6000, 90, 12, 10
START = datetime(2024, 1, 1, tzinfo=UTC)  # a Monday
FIRST = int(START.timestamp()) // 3600
DAY = timedelta(days=1)


def chosen_of(edges: tuple[int, ...]) -> FeatureSet:
    """A few features: what fits the planted hazards, and nothing that is a rate of theirs."""
    week = (name for name in ahead(edges) if name.startswith("merchant"))
    dense = (
        "page_month", "page_all", "page_recent", "page_age", "merchant_month", "shelf_month",
        "brand_month",
        "merchant_weekday", "merchant_hour", *week, "weekday", "hour",
    )  # fmt: skip
    return FeatureSet(dense, ("merchant", "brand"))


@dataclass(frozen=True)
class Planted:
    """A world's true hazards, integrated from its start: pages × hours + 1."""

    whole: Floats

    def ahead(self, page: Ints, hour: Ints, near: int, far: int) -> Floats:
        """The integral of each page's hazard from `near` to `far` hours after `hour`."""
        start = hour - FIRST
        return np.asarray(self.whole[page, start + far] - self.whole[page, start + near])


def plant(folder: Path, seed: int = 11) -> Planted:
    """Write a log of changes drawn with known rates."""
    rng = np.random.default_rng(seed)
    merchant, brand = rng.integers(0, MERCHANTS, PAGES), rng.integers(0, BRANDS, PAGES)
    days = rng.gamma(8.0, 1 / 8, (MERCHANTS, 7, 1))
    week = days * rng.gamma(6.0, 1 / 6, (MERCHANTS, 1, 24))
    week = week.reshape(MERCHANTS, 168)
    week /= week.mean(axis=1, keepdims=True)
    daily = np.exp(rng.normal(-0.7, 0.4, MERCHANTS))  # changes a day
    own = daily[merchant] * np.exp(rng.normal(0, 0.3, BRANDS))[brand]
    own = own * np.exp(rng.normal(0, 0.3, PAGES)) / 24
    rate = own[:, None] * np.tile(week, DAYS // 7 + 1)[merchant, : 24 * DAYS]
    page, hour = np.nonzero(rng.random(rate.shape) < -np.expm1(-rate))
    _write(folder, merchant, brand, page, hour)
    return Planted(np.pad(np.cumsum(rate, axis=1), ((0, 0), (1, 0))))


def _write(folder: Path, merchant: Ints, brand: Ints, page: Ints, hour: Ints) -> None:
    ids = np.arange(PAGES)
    number = np.concatenate([np.zeros(PAGES, dtype=np.int64), np.arange(1, len(page) + 1)])
    at = pl.Series(np.concatenate([np.zeros(PAGES, dtype=np.int64), hour]))
    values = pl.DataFrame({"page_id": np.concatenate([ids, page]), "value": number.astype(str)})
    when = pl.lit(START) + pl.duration(hours=at)
    pages = pl.DataFrame(
        {
            "page_id": ids,
            "kind": "offer",
            "url": [f"https://m{m}.example/{i}" for i, m in zip(ids, merchant, strict=True)],
            "merchant": [f"m{m}" for m in merchant],
            "brand": [f"b{b}" for b in brand],
        }
    )
    told = values.with_columns(at=when.dt.cast_time_unit("us")).sort("page_id", "at")
    about = {"resolution": "1h", "span": [START, START + DAYS * DAY]}
    write_log(folder, {"pages": pages, "values": told}, about)


@dataclass(frozen=True)
class Found:
    """A trained model's hazards on the test rows, beside the truth."""

    truth: Planted
    test: Examples
    hazards: Floats


World = tuple[Path, Planted]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("planted")
    return folder, plant(folder / "log")


def trained(world: World, edges: tuple[int, ...], examples: int) -> Found:
    """A hazard model of 46 days, calibrated on 24 more, and what it says later."""
    folder, truth = world
    recipe = Recipe(
        edges=edges,
        split=TimeSplit(46 * DAY, 24 * DAY, 20 * DAY),
        every=timedelta(hours=edges[0]),
        visits=False,
        examples=examples,
    )
    shards = make_examples(Log(folder / "log"), recipe, folder / f"examples-{len(edges)}")
    choice = chosen_of(edges)
    train, later, test = (shards.part(p, columns=choice.dense) for p in PARTS)
    pages = shards.pages
    metadata = Vocabulary.fit(pages, pages["seen"].to_numpy(), METADATA).encode(pages)
    model = fit_trees(train, later, metadata, choice, TreesSettings(trees=70, rate=0.15))
    ready = calibrate(model, later, metadata)
    return Found(truth, test, ready.hazards(test.inputs, metadata))


@pytest.fixture(scope="module")
def curve(world: World) -> Found:
    """Of fourteen days, from few examples."""
    return trained(world, HAZARD, 18_000)


def deciles(said: Floats) -> list[Ints]:
    """The rows by decile of what was said."""
    return [*np.array_split(np.argsort(said, kind="stable"), 10)]


def test_hazards_correlate_with_the_truth(curve: Found) -> None:
    """Of every stretch ahead, among all rows: the model orders them as the truth does."""
    from scipy.stats import spearmanr

    inputs, starts = curve.test.inputs, (0, *HAZARD[:-1])
    for at, (near, far) in enumerate(zip(starts, HAZARD, strict=True)):
        inside = inputs.hour - FIRST + far <= 24 * DAYS
        page, hour = inputs.page[inside], inputs.hour[inside]
        true = curve.truth.ahead(page, hour, near, far)
        said = -np.log1p(-curve.hazards[inside, at])
        least = 0.85 if far < HAZARD[-1] else 0.5  # after a week few pages are left to learn from
        assert spearmanr(said, true).statistic > least
        assert np.corrcoef(np.log(said), np.log(true))[0, 1] > least


def test_the_integrated_hazard_is_unbiased_by_decile(world: World) -> None:
    """Predictions of the next six hours, summed up over the test days, are the true integral."""
    found = trained(world, HAZARD[:1], 300_000)  # with fewer, the lowest decile has few changes
    inputs = found.test.inputs
    said = -np.log1p(-found.hazards[:, 0])
    true = found.truth.ahead(inputs.page, inputs.hour, 0, HAZARD[0])
    ratio = [said[rows].sum() / true[rows].sum() for rows in deciles(said)]
    print("integrated hazard, found / true:", np.round(ratio, 3))
    np.testing.assert_allclose(ratio, 1.0, atol=0.05)


def test_probabilities_are_unbiased_by_decile(curve: Found) -> None:
    """Of a change within each edge, against the true probability."""
    inputs = curve.test.inputs
    within = 1 - np.cumprod(1 - curve.hazards, axis=1)
    for at, edge in enumerate(HAZARD):
        inside = np.flatnonzero(inputs.hour - FIRST + edge <= 24 * DAYS)
        said = within[inside, at]
        true = -np.expm1(-curve.truth.ahead(inputs.page[inside], inputs.hour[inside], 0, edge))
        ratio = [said[rows].mean() / true[rows].mean() for rows in deciles(said)]
        print(f"within {edge} h, said / true:", np.round(ratio, 3))
        np.testing.assert_allclose(ratio, 1.0, atol=0.15)  # 18,000 examples tell no more
