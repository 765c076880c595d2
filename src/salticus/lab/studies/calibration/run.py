"""`salticus calibrate`: make the markets, measure them, lay ours beside the published figures."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from salticus.config import Budget
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import read_truth
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import SimulationSettings, set_stage
from salticus.lab.studies.calibration.auc import HORIZON, feature_aucs
from salticus.lab.studies.calibration.market import UNIFORM, MarketHistory, read_market
from salticus.lab.studies.calibration.published import BUDGETS, PRESETS, Measured, published
from salticus.lab.studies.calibration.shares import (
    change_within,
    daily_shares,
    patterns,
    request_lifts,
    returning,
)
from salticus.lab.studies.calibration.table import CalibrationRow, rows
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.types import moment

if TYPE_CHECKING:
    from salticus.lab.simulate.stage import Stage

WARMUP, DAYS = timedelta(days=60), 31  # 2019-01-10 to 03-10, 2019-03-11 to 04-10

POINTS = 2_000_000  # predictions; 40,000 positives, 2,000 a subset
Tell = Callable[[str], None]


def calibrate(
    presets: Iterable[str], *, offers: int, days: int, seed: int, tell: Tell | None = None
) -> list[CalibrationRow]:
    """The table of each preset, from a market made for it and thrown away."""
    found = []
    for preset in presets:
        if tell:
            tell(f"{preset}: making {offers:,} offers for {days} days")
        with tempfile.TemporaryDirectory(prefix="salticus-market-") as folder:
            log = Path(folder) / preset
            make_market(log, MarketSize(offers, days), seed=seed, preset=preset)
            found += calibrate_log(log, [preset], seed=seed, tell=tell)
    return found


def calibrate_log(
    folder: Path,
    presets: Iterable[str] | None = None,
    *,
    seed: int = 0,
    points: int = POINTS,
    tell: Tell | None = None,
) -> list[CalibrationRow]:
    """The tables of an existing log; by default of the preset that it was made with."""
    log = Log(folder)
    found = []
    for preset in presets or presets_of(log):
        named = None if tell is None else _prefixed(tell, preset)
        figures = measure(log, preset, seed=seed, points=points, tell=named)
        found += rows(published(preset), figures.values, figures.spreads)
    return found


def presets_of(log: Log) -> tuple[str, ...]:
    """The preset that a log says it was made with; all of them if it does not say."""
    told = log.about.rest.get("preset")
    return (told,) if told in PRESETS else PRESETS


def _prefixed(tell: Tell, preset: str) -> Tell:
    return lambda text: tell(f"{preset}: {text}")


@dataclass
class MeasuredFigures:
    """Measured values by key, and the standard deviations of some."""

    values: dict[str, Measured] = field(default_factory=dict)
    spreads: dict[str, float] = field(default_factory=dict)


def measure(
    log: Log, preset: str, *, seed: int = 0, points: int = POINTS, tell: Tell | None = None
) -> MeasuredFigures:
    """What the log shows of the statistics of a preset."""
    say = tell or (lambda text: None)
    say("reading the log")
    market = read_market(log)
    figures = MeasuredFigures()
    if preset == "han2019":
        _data_2019(market, figures, say)
        _aucs_2019(market, figures, points, seed, say)
        say("replaying requests")
        figures.values |= request_lifts(market, seed=seed)
    else:
        say("counting offer-days")
        figures.values |= daily_shares(market)
        say("crawling uniformly at nine budgets")
        figures.values |= uniform_freshness(market, BUDGETS, seed=seed)
    return figures


def _data_2019(market: MarketHistory, figures: MeasuredFigures, say: Tell) -> None:
    say("counting changes")
    end = market.end - HORIZON
    figures.values["change_6h"] = change_within(market.full, HORIZON, market.start, end)
    figures.values |= patterns(market.log)
    figures.values["returning"] = returning(market)


def _aucs_2019(
    market: MarketHistory, figures: MeasuredFigures, points: int, seed: int, say: Tell
) -> None:
    say("scoring single features")
    for key, (mean, spread) in feature_aucs(market, points=points, seed=seed).items():
        figures.values[key], figures.spreads[key] = mean, spread


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
