"""A market as a log: every block of offers is written as it has been lived."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from salticus.errors import ConfigError
from salticus.exchange.place import check_free
from salticus.exchange.tables import write_log
from salticus.lab.worlds.market.blocks import Block, blocks_of
from salticus.lab.worlds.market.presets import PRESETS, Preset
from salticus.lab.worlds.market.scene import Scene, scene_of
from salticus.lab.worlds.market.tables import block_tables, pages_table

if TYPE_CHECKING:
    import polars as pl

Told = Callable[[int], None]

_CAVEATS = (
    "synthetic; prices change on whole hours; `failure` is the probability that a visit of the "
    "page fails; visits are what a production crawler would have seen"
)


@dataclass(frozen=True, slots=True)
class MarketSize:
    """How big a market is."""

    offers: int
    days: int


def make_market(
    folder: Path,
    size: MarketSize,
    *,
    seed: int = 0,
    preset: str = "han2020",
    told: Told = lambda offers: None,
) -> dict[str, int]:
    """Write a market of that size into a new folder; returns rows a table.

    The same arguments give the same bytes. `told` hears how many offers are done. Cost: linear in
    offers × days; memory: that of a block of offers, and the writer's.
    """
    if preset not in PRESETS:
        raise ConfigError(f"no preset is called {preset!r}; known: {', '.join(PRESETS)}")
    if size.offers < 1 or size.days < 1:
        raise ConfigError("a market needs at least one offer and one day")
    check_free(folder)
    chosen = PRESETS[preset]
    scenery, lives = np.random.SeedSequence(seed).spawn(2)
    scene = scene_of(chosen, size.offers, size.days, scenery)
    with tempfile.TemporaryDirectory(prefix="salticus-market-") as pieces:
        for block in blocks_of(scene, lives):
            _write(Path(pieces), scene, block)
            told(block.first + block.offers)
        return write_log(folder, _tables(Path(pieces), scene), _about(chosen, size, seed))


def _write(pieces: Path, scene: Scene, block: Block) -> None:
    """Write the rows of a block, one file a table."""
    rows = slice(block.first, block.first + block.offers)
    for table, frame in block_tables(scene.block(rows), block).items():
        (pieces / table).mkdir(exist_ok=True)
        frame.write_parquet(pieces / table / f"{block.first:012d}.parquet")


def _tables(pieces: Path, scene: Scene) -> dict[str, pl.DataFrame | pl.LazyFrame]:
    import polars as pl

    names = ("values", "demand", "visits", "requests")
    parts = {name: pl.scan_parquet(sorted((pieces / name).iterdir())) for name in names}
    return {"pages": pages_table(scene), **parts}


def _about(preset: Preset, size: MarketSize, seed: int) -> dict[str, object]:
    parameters = {name: value for name, value in asdict(preset).items() if name != "start"}
    return {
        "name": "market",
        "span": [preset.start, preset.start + timedelta(days=size.days)],
        "resolution": "1h",
        "demand_bucket": "1d",
        "licence": "none needed: no real offers",
        "source": "salticus log make market",
        "caveats": _CAVEATS,
        "preset": preset.name,
        "seed": seed,
        **asdict(size),
        "parameters": parameters,
    }
