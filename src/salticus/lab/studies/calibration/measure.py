"""Every statistic that a preset is held to, measured on a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from salticus.exchange.folder import Log
from salticus.lab.studies.calibration.auc import HORIZON, feature_aucs
from salticus.lab.studies.calibration.freshness import uniform_freshness
from salticus.lab.studies.calibration.lifts import request_lifts
from salticus.lab.studies.calibration.market import MarketHistory, read_market
from salticus.lab.studies.calibration.patterns import patterns
from salticus.lab.studies.calibration.published import BUDGETS, Measured
from salticus.lab.studies.calibration.shares import change_within, daily_shares, returning

POINTS = 2_000_000  # predictions; 40,000 positives, 2,000 a subset
Tell = Callable[[str], None]


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
