"""Uniform crawling of the uniform stratum (Han 2020, first rows of Tables 5 and 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from salticus.config import Budget
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import read_truth
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import SimulationSettings, set_stage
from salticus.lab.studies.calibration.market import UNIFORM, MarketHistory
from salticus.types import moment

if TYPE_CHECKING:
    from salticus.lab.simulate.stage import Stage

WARMUP, DAYS = timedelta(days=60), 31  # 2019-01-10 to 03-10, 2019-03-11 to 04-10


def uniform_freshness(
    market: MarketHistory, budgets: Iterable[float], *, seed: int
) -> dict[str, float]:
    """Median click-weighted and offer-level freshness of uniform crawling, by budget."""
    found = {}
    for row in uniform_rows(market, budgets, seed=seed):
        for weight in ("click", "page"):
            found[f"{weight}_freshness_{row['budget']:.0%}"] = row[f"{weight}_freshness"]["median"]
    return found


def uniform_rows(
    market: MarketHistory, budgets: Iterable[float], *, seed: int
) -> Iterator[dict[str, Any]]:
    """A row for each budget (visits an offer and day): ticks of 2 h, visits by coins, offer-level
    freshness at midnight; visits fail as often as `failure` of the offer says."""
    stage = _stage(market, seed)
    for budget in budgets:
        score = run(stage, "uniform", Budget(budget, per_page=True))
        yield {
            "policy": "uniform",
            "budget": budget,
            "click_freshness": {"median": float(np.nanmedian(score.column("clicks")))},
            "page_freshness": {"median": float(np.median(score.column("midnight")))},
        }


def _stage(market: MarketHistory, seed: int) -> Stage:
    """The last 31 days of the log, after as much of the 60 days of warm-up as it has."""
    import polars as pl

    log: Log = market.log
    truth = read_truth(log)
    days = (market.end - market.start) // 24
    if days < 2:
        raise InputError(f"{log.folder}: a log of less than two days cannot be crawled")
    measured = min(DAYS, days // 2)
    warmup = min(WARMUP, timedelta(days=days - measured))
    end = moment(np.datetime64(market.end // 24 * 24, "h"))
    sampled = market.pages.filter(pl.col("stratum") == UNIFORM)["page_id"]
    rules = SimulationSettings(
        start=end - warmup - timedelta(days=measured),
        history=timedelta(0),
        warmup=warmup,
        days=measured,
        spacing="coin",
        predictor="naive",  # uniform visits ask for no estimate, so it need not learn any
        frozen=True,
        seed=seed,
    )
    return set_stage(log, rules, truth=truth.take(truth.names.is_in(sampled.implode()).to_numpy()))
