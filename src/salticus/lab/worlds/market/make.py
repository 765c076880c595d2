"""A market as a log: every block of offers is written as it has been lived."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from salticus.errors import ConfigError
from salticus.exchange.place import check_free
from salticus.exchange.write import write_log
from salticus.lab.worlds.market.blocks import Block, blocks_of
from salticus.lab.worlds.market.catalogue import CONDITIONS
from salticus.lab.worlds.market.changes import GONE
from salticus.lab.worlds.market.geography import COUNTRIES, ZONES
from salticus.lab.worlds.market.presets import PRESETS, Preset
from salticus.lab.worlds.market.scene import Scene, scene_of
from salticus.lab.worlds.market.taxonomy import LEAVES, SERIES
from salticus.types import CHANGED, DAY, UNKNOWN, Codes, Ints, Purpose, Status, instant

_SYLLABLES = (
    "ba", "be", "bo", "da", "de", "di", "do", "fa", "fe", "fi", "ga", "go", "ha", "he", "ka",
    "ke", "ki", "la", "le", "li", "lo", "lu", "ma", "me", "mi", "mo", "na", "ne", "ni", "no",
    "pa", "pe", "ra", "re", "ri", "ro", "sa", "se", "ta", "va",
)  # fmt: skip
_STEP = 7919  # a prime, so that neighbours do not sound alike

_HOUR, _SECOND = DAY // 24, DAY // 86_400
_POLICY = {Purpose.POLICY: "batch", Purpose.INSTA: "instacrawl"}

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
        files: dict[str, list[Path]] = {}
        for block in blocks_of(scene, lives):
            for name, frame in _block_tables(block).items():
                path = Path(pieces, f"{name}-{block.first}.parquet")
                frame.write_parquet(path)
                files.setdefault(name, []).append(path)
            told(block.first + len(block.scene))
        written = {name: pl.scan_parquet(paths) for name, paths in files.items()}
        about = _about(chosen, size, seed)
        return write_log(folder, {"pages": pages_table(scene), **written}, about)


def _about(preset: Preset, size: MarketSize, seed: int) -> dict[str, object]:
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
        "parameters": {name: v for name, v in asdict(preset).items() if name != "start"},
    }


def pages_table(scene: Scene) -> pl.DataFrame:
    """What is known of the offers without visiting them, and how probably a visit fails."""
    offers, shops = scene.catalogue, scene.catalogue.merchants
    shop = names(len(shops), "mart")
    host = [f"www.{name.lower()}.example" for name in shop]
    spoken = [COUNTRIES[c].languages[n] for c, n in zip(shops.country, shops.language, strict=True)]
    table = pl.DataFrame(
        {
            "page_id": np.arange(len(scene)),
            "kind": "offer",
            "merchant": _pick(shop, offers.merchant),
            "brand": _pick(names(offers.brands, "x"), offers.brand),
            "category": _pick([leaf.path for leaf in LEAVES], offers.leaf),
            "condition": _pick(CONDITIONS, offers.condition),
            "country": _pick([country.code for country in COUNTRIES], offers.country),
            "language": _pick(spoken, offers.merchant),
            "timezone": _pick(ZONES, offers.zone),
            "host": _pick(host, offers.merchant),
            "stratum": _pick(("uniform", "click"), offers.clicked.astype(np.int64)),
            "failure": scene.failure,
            "series": _pick(SERIES, offers.series),
        }
    )
    thing = pl.col("category").str.split(" > ").list
    return table.with_columns(
        url=pl.format("https://{}/offers/{}", "host", "page_id"),
        title=pl.format("{} {} {} {}", "brand", "series", thing.last(), 100 + pl.col("page_id")),
        tags=pl.concat_list(thing.first().str.to_lowercase()),
    ).drop("series")


def _block_tables(block: Block) -> dict[str, pl.DataFrame]:
    """What happened to the offers of a block."""
    points, demand, visits, asked = block.points, block.demand, block.visits, block.requests
    counts = {"clicks": demand.clicks, "impressions": demand.impressions}
    value = texts(points.code, block.scene.catalogue.country[points.row])
    return {
        "values": _table(block, points.row, points.hour * _HOUR, value=value),
        "demand": _table(block, demand.row, demand.day * DAY, **counts),
        "visits": _table(block, visits.row, visits.second * _SECOND, **_visits(block)),
        "requests": _table(block, asked.row, asked.second * _SECOND),
    }


def _table(block: Block, row: Ints, since: NDArray[np.timedelta64], **more: Any) -> pl.DataFrame:
    """Offers, times that long after the start of the log, and further columns."""
    at = pl.Series(instant(block.scene.preset.start) + since).dt.replace_time_zone("UTC")
    return pl.DataFrame({"page_id": block.first + row, "at": at, **more})


def _visits(block: Block) -> dict[str, pl.Series]:
    """What visits were, and what they found; a value is given where it is new, as in the export of
    a store."""
    visits = block.visits
    unknown, changed = visits.changed == UNKNOWN, visits.changed == CHANGED
    new = changed | (unknown & (visits.status == Status.OK))
    country = block.scene.catalogue.country[visits.row]
    return {
        "purpose": _pick([purpose.label for purpose in Purpose], visits.purpose),
        "policy": _pick([_POLICY.get(purpose, "") for purpose in Purpose], visits.purpose),
        "status": _pick([status.label for status in Status], visits.status),
        "changed": pl.Series(changed).set(pl.Series(unknown), None),
        "value": texts(np.where(new, visits.code, GONE), country),
    }


def texts(code: Ints, country: Ints) -> pl.Series:
    """The values that codes stand for, as the mall writes them; null if gone.

    >>> texts(np.array([2 * 1990 + 1, 2 * 2000, GONE]), np.array([5, 5, 5])).to_list()
    ['19.9 EUR InStock', '20 EUR OutOfStock', None]
    >>> texts(np.array([2 * 2000 + 1]), np.array([13])).to_list()
    ['2000 JPY InStock']
    """
    digits = np.array([place.digits for place in COUNTRIES])[country]
    rows = np.flatnonzero(code != GONE)
    table = pl.DataFrame(
        {
            "price": code[rows] // 2,
            "cents": digits[rows] > 0,
            "currency": _pick([place.currency for place in COUNTRIES], country[rows]),
            "stock": _pick(("OutOfStock", "InStock"), code[rows] % 2),
        }
    )
    whole, rest = pl.col("price") // 100, (pl.col("price") % 100).cast(pl.String)
    exact = pl.format("{}.{}", whole, rest.str.zfill(2)).str.strip_chars_end("0")
    price = pl.when("cents").then(exact.str.strip_chars_end(".")).otherwise("price")
    made = table.select(pl.format("{} {} {}", price, "currency", "stock")).to_series()
    place = np.full(len(code), len(rows))  # gone: one beyond the last, which is null
    place[rows] = np.arange(len(rows))
    return pl.concat([made, pl.Series([None], dtype=pl.String)]).gather(place)


def names(count: int, ending: str) -> list[str]:
    """So many different names with the same ending.

    >>> names(3, "rix")
    ['Bababarix', 'Desevarix', 'Firotarix']
    """
    base, length = len(_SYLLABLES), 3
    while base**length < count:
        length += 1
    numbers = np.arange(count) * _STEP % base**length
    spelt = zip(*np.unravel_index(numbers, (base,) * length), strict=True)
    return ["".join(_SYLLABLES[k] for k in places).capitalize() + ending for places in spelt]


def _pick(words: Sequence[str], places: Ints | Codes) -> pl.Series:
    """The word at each place; kept once, however often it is picked."""
    return pl.Series(words, dtype=pl.String).gather(places.astype(np.int64))
