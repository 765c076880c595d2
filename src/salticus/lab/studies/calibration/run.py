"""`salticus calibrate`: make the markets, measure them, lay ours beside the published figures."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np

from salticus.config import Budget
from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.exchange.truth import read_truth
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import SimulationSettings, Stage, set_stage
from salticus.lab.studies.calibration.market import UNIFORM, MarketHistory, read_market
from salticus.lab.studies.calibration.published import BUDGETS, PRESETS, Measured, published
from salticus.lab.studies.calibration.statistics import (
    HORIZON,
    change_within,
    daily_shares,
    feature_aucs,
    patterns,
    request_lifts,
    returning,
)
from salticus.lab.studies.calibration.table import CalibrationRow, rows
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.types import moment

WARMUP, DAYS = timedelta(days=60), 31  # 2019-01-10 to 03-10, 2019-03-11 to 04-10

POINTS = 2_000_000  # predictions; 40,000 positives, 2,000 a subset
Tell = Callable[[str], None]


def _silently(text: str) -> None:
    """Tell nobody."""


def calibrate(
    presets: Iterable[str], *, offers: int, days: int, seed: int, tell: Tell = _silently
) -> list[CalibrationRow]:
    """The table of each preset, from a market made for it and thrown away."""
    found = []
    for preset in presets:
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
    tell: Tell = _silently,
) -> list[CalibrationRow]:
    """The tables of an existing log; by default of the preset that it was made with."""
    log = Log(folder)
    found = []
    for preset in presets or presets_of(log):
        figures = measure(log, preset, seed=seed, points=points, tell=_prefixed(tell, preset))
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
    log: Log, preset: str, *, seed: int = 0, points: int = POINTS, tell: Tell = _silently
) -> MeasuredFigures:
    """What the log shows of the statistics of a preset."""
    tell("reading the log")
    market = read_market(log)
    figures = MeasuredFigures()
    if preset == "han2019":
        tell("counting changes")
        end = market.end - HORIZON
        figures.values["change_6h"] = change_within(market.full, HORIZON, market.start, end)
        figures.values |= patterns(market.log)
        figures.values["returning"] = returning(market)
        tell("scoring single features")
        for key, (mean, spread) in feature_aucs(market, points=points, seed=seed).items():
            figures.values[key], figures.spreads[key] = mean, spread
        tell("replaying requests")
        figures.values |= request_lifts(market, seed=seed)
    else:
        tell("counting offer-days")
        figures.values |= daily_shares(market)
        tell("crawling uniformly at nine budgets")
        figures.values |= uniform_freshness(market, BUDGETS, seed=seed)
    return figures


def uniform_freshness(
    market: MarketHistory, budgets: Iterable[float], *, seed: int
) -> dict[str, float]:
    """Median click-weighted and offer-level freshness of uniform crawling, by budget.

    Budgets are visits an offer and day. Ticks of 2 h, visits by coins, offer-level freshness at
    midnight; visits fail as often as `failure` of the offer says.
    """
    stage, found = _stage(market, seed), {}
    for budget in budgets:
        score = run(stage, "uniform", Budget(budget, per_page=True))
        found[f"click_freshness_{budget:.0%}"] = float(np.nanmedian(score.column("clicks")))
        found[f"page_freshness_{budget:.0%}"] = float(np.median(score.column("midnight")))
    return found


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
