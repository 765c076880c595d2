"""`salticus calibrate`: make the markets, measure them, lay ours beside the published figures."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl

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


def calibrate(
    presets: Iterable[str], *, offers: int, days: int, seed: int, tell: Tell = lambda text: None
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
    tell: Tell = lambda text: None,
) -> list[CalibrationRow]:
    """The tables of an existing log; by default of the preset that it was made with."""
    log = Log(folder)
    told = log.about.rest.get("preset")
    found = []
    for preset in presets or ((told,) if told in PRESETS else PRESETS):
        figures = measure(log, preset, seed=seed, points=points, tell=tell)
        found += rows(published(preset), *figures)
    return found


def measure(
    log: Log, preset: str, *, seed: int, points: int, tell: Tell
) -> tuple[dict[str, Measured], dict[str, float]]:
    """What the log shows of a preset's statistics, by key, and the standard deviations of some."""
    tell(f"{preset}: reading the log")
    market = read_market(log)
    if preset != "han2019":
        tell(f"{preset}: counting offer-days")
        shares = daily_shares(market)
        tell(f"{preset}: crawling uniformly at nine budgets")
        return {**shares, **uniform_freshness(market, BUDGETS, seed=seed)}, {}
    tell(f"{preset}: counting changes")
    change = change_within(market.full, HORIZON, market.start, market.end - HORIZON)
    values = {"change_6h": change, **patterns(market.log), "returning": returning(market)}
    tell(f"{preset}: scoring single features")
    aucs = feature_aucs(market, points=points, seed=seed)
    tell(f"{preset}: replaying requests")
    values |= {key: mean for key, (mean, _) in aucs.items()}
    values |= request_lifts(market, seed=seed)
    return values, {key: spread for key, (_, spread) in aucs.items()}


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
