"""A synthetic market: a world of offers, calibrated to published figures."""

from salticus.lab.worlds.market.make import MarketSize, make_market
from salticus.lab.worlds.market.presets import PRESETS

__all__ = ["PRESETS", "MarketSize", "make_market"]
