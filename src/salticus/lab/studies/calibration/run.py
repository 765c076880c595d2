"""`salticus calibrate`: make the markets, measure them, lay ours beside the published figures."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from salticus.exchange.folder import Log
from salticus.lab.studies.calibration.measure import POINTS, Tell, measure
from salticus.lab.studies.calibration.published import PRESETS, published
from salticus.lab.studies.calibration.table import CalibrationRow, rows
from salticus.lab.worlds.market import MarketSize, make_market


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
