"""Clicks that a model predicts in a crawl: pooled with counts, weighed, and kept over restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from salticus.config import Config
from salticus.crawl.census import Census
from salticus.crawl.parts import followed_in
from salticus.features.metadata import Vocabulary, hashes
from salticus.features.names import all_names
from salticus.models.file import Saved, asked
from salticus.models.model import Calibrated, Curve
from salticus.models.registry import Registry
from salticus.predict.served_demand import ServedDemand
from salticus.testing import START, MemoryStore, a_tick
from salticus.types import Count, NewPage, Observation, Outcomes, Record, Value
from salticus.types.dates import epoch_us
from salticus.types.state import pack, unpack

from .test_serving import judged

DAY = timedelta(days=1)
EDGES = (6, 24)
N = 60
WANTED, REST = 0.8, 0.05  # P(click on a day) of pages of the brand, and of others


class ByBrand:
    """Says much of a brand, and little of others and of pages of which no brand is known."""

    kind = "frequency"

    def logits(self, inputs: Any, metadata: Any) -> Any:
        of_brand = metadata.codes[inputs.page, metadata.fields.index("brand")] == 1
        chance = np.where(of_brand, WANTED, REST)
        return np.log(chance / (1 - chance))[:, np.newaxis]


def a_saved(task: str = "click") -> Saved:
    words = Vocabulary(("brand",), {"brand": hashes(["wanted"])})
    import polars as pl

    metadata = words.encode(pl.DataFrame({"brand": ["wanted"]}))
    about = {"task": task, "edges": [24], "recipe": {"edges": list(EDGES)}}
    about["inputs"] = asked(all_names(EDGES), 0, metadata)
    model: Any = ByBrand()
    return Saved(Calibrated(model, (Curve(),)), (words.settings(), words.arrays()), about)


class Shop:
    """Pages of which every second is of a brand that people click, none of them visited at first,
    a census, and a model of clicks whose numbers are given, not learnt."""

    def __init__(self, folder: Path, monkeypatch: Any) -> None:
        self.registry = Registry(folder / "models" / "click")
        self.registry.path(1).mkdir(parents=True)
        self.registry.judge(1, judged(promoted=True))
        monkeypatch.setattr("salticus.predict.serving.load_version", lambda path: a_saved())
        self.store = MemoryStore()
        self.urls = [f"http://h{n % 2}/{n}" for n in range(N)]
        self.run(self.store.add([NewPage(url, "offer") for url in self.urls], at=epoch_us(START)))
        self.census = self.opened()
        self.visits = 0

    def run(self, work: Any) -> Any:
        return asyncio.run(work)

    def opened(self) -> Census:
        census, followed = Census(self.store), followed_in(Config(), self.store)
        nothing = Registry(self.registry.folder / "nothing")
        census.serve(
            followed,
            ServedDemand("click", self.registry, followed),
            ServedDemand("impression", nothing, followed),
        )
        return census

    def visit(self, pages: range, day: int) -> None:
        """Each page says of which brand it is."""
        seen = []
        for page in pages:
            self.visits += 1
            seen.append(
                Observation(
                    visit=self.visits,
                    page=page + 1,
                    at=epoch_us(START + day * DAY) + self.visits,
                    purpose="policy",
                    propensity=1.0,
                    status="ok",
                    value=Value("offer", "1", {"brand": "wanted" if page % 2 else "other"}),
                    digest="1",
                )  # fmt: skip
            )
        self.run(self.store.record([Record(each) for each in seen]))
        self.census.followed.learn(Outcomes.of(seen))  # type: ignore[union-attr]

    def click(self, pages: Iterator[int] | range, day: int) -> None:
        at = epoch_us(START + day * DAY + DAY / 2)
        self.run(self.store.count([Count(self.urls[page], at, clicks=1) for page in pages]))

    def wanted(self, day: float) -> Any:
        """Demand of all pages at the first tick of a day."""
        self.run(self.census.refresh())
        self.run(self.census.heed())
        tick = replace(a_tick(), start=START + day * DAY, end=START + (day + 0.1) * DAY)
        self.census.foretell(tick.start)
        return self.census.pages(tick, lambda host: 1.0).demand

    def days(self, days: range) -> Any:
        """People click what is of the brand; the demand after the last day."""
        for day in days:
            found = self.wanted(day)
            self.click(range(1, N // 2, 2), day)
        return found

    def state(self) -> dict[str, Any]:
        census = self.census
        parts = {"demand": census.demand, "followed": census.followed, "clicks": census.clicks}
        return {name: part.state() for name, part in parts.items()}  # type: ignore[union-attr]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: Any) -> Shop:
    return Shop(tmp_path, monkeypatch)


def test_offers_that_nobody_clicked_get_the_demand_that_their_brand_tells(shop: Shop) -> None:
    shop.visit(range(N), 0)
    found = shop.days(range(1, 8))
    fresh = found[N // 2 :]  # nobody has ever clicked on any of these
    assert fresh[1::2].min() > 5 * fresh[::2].max()
    assert shop.census.clicks is not None
    shop.registry.pin(0, START)
    plain = shop.wanted(8)[N // 2 :]
    assert np.ptp(plain) < 1e-9, "counts know no difference between them"


def test_a_page_is_asked_about_before_it_answers_and_again_after(shop: Shop) -> None:
    shop.visit(range(N // 2), 0)
    shop.days(range(1, 3))
    clicks = shop.census.clicks
    assert clicks is not None
    late = np.array([N - 1, N])
    assert clicks._told.get("chance", late).round(3).tolist() == [REST, REST]
    shop.visit(range(N - 2, N), 2)
    shop.wanted(2.5)
    assert clicks._told.get("chance", late).round(3).tolist() == [REST, WANTED]


def test_without_a_model_demand_is_that_of_counts_to_the_bit(shop: Shop) -> None:
    shop.registry.pin(0, START)
    shop.visit(range(N), 0)
    shop.days(range(1, 4))
    found = shop.wanted(4)
    shop.census.clicks = None
    assert np.array_equal(shop.wanted(4), found)


def test_a_model_that_misleads_loses_its_weight(shop: Shop) -> None:
    shop.visit(range(N), 0)
    for day in range(1, 40):
        shop.wanted(day)
        shop.click(range(0, N, 2), day)
    clicks = shop.census.clicks
    assert clicks is not None
    weights = clicks.pooled_.trust_.by_known()
    assert weights["10-29"] <= 0.1, weights


def test_of_a_day_no_more_is_remembered_than_will_be_weighed(shop: Shop, monkeypatch: Any) -> None:
    monkeypatch.setattr("salticus.predict.trust._ROWS", N // 10)
    shop.visit(range(N), 0)
    shop.days(range(1, 8))
    clicks = shop.census.clicks
    assert clicks is not None
    told = [column for name, column in clicks.state().items() if name.startswith("said")]
    assert max(column.size for column in told) == N // 10
    outcomes = float(clicks.pooled_.trust_.outcomes_.sum())
    assert 4 * N // 10 < outcomes <= 6 * N // 10, "of each day that is over, all of them"


def test_what_was_given_by_hand_stays(shop: Shop) -> None:
    shop.run(shop.store.add([NewPage(shop.urls[-1], demand=7.0)], at=epoch_us(START)))
    shop.visit(range(N), 0)
    shop.days(range(1, 4))
    found = shop.wanted(4)[-1]
    shop.registry.pin(0, START)
    assert shop.wanted(4)[-1] == found


def test_after_a_kill_demand_is_to_the_bit_what_it_would_have_been(shop: Shop) -> None:
    shop.visit(range(N // 2), 0)
    shop.days(range(1, 6))
    blob = pack(shop.state())
    other = shop.opened()
    for name, part in (
        ("demand", other.demand),
        ("followed", other.followed),
        ("clicks", other.clicks),
    ):
        part.restore(unpack(blob)[name])  # type: ignore[union-attr]
    shop.click(range(1, N, 3), 6)
    mine = shop.census
    one = [shop.wanted(day) for day in (6, 6.5, 7, 9)]
    shop.census = other
    assert all(
        np.array_equal(a, shop.wanted(day)) for a, day in zip(one, (6, 6.5, 7, 9), strict=True)
    )
    kept = pack(shop.state())
    shop.census = mine
    assert pack(shop.state()) == kept


def test_a_model_of_something_else_is_passed_over_loudly(
    shop: Shop, monkeypatch: Any, caplog: Any
) -> None:
    monkeypatch.setattr("salticus.predict.serving.load_version", lambda path: a_saved("change"))
    shop.wanted(1)
    assert "model 1 cannot serve, another will" in caplog.text
    assert shop.census.clicks is not None
    assert shop.census.clicks.version_ == 0
