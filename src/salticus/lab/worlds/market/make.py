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
from salticus.exchange.write import write_log
from salticus.lab.worlds.market.blocks import Block, blocks_of
from salticus.lab.worlds.market.catalogue import CONDITIONS
from salticus.lab.worlds.market.changes import GONE
from salticus.lab.worlds.market.geography import COUNTRIES, ZONES
from salticus.lab.worlds.market.presets import PRESETS, Preset
from salticus.lab.worlds.market.scene import Scene, scene_of
from salticus.lab.worlds.market.taxonomy import LEAVES, SERIES
from salticus.types import CHANGED, DAY, UNKNOWN, Codes, Ints, Purpose, Status, Times, instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

_SYLLABLES = (
    "ba", "be", "bo", "da", "de", "di", "do", "fa", "fe", "fi", "ga", "go", "ha", "he", "ka",
    "ke", "ki", "la", "le", "li", "lo", "lu", "ma", "me", "mi", "mo", "na", "ne", "ni", "no",
    "pa", "pe", "ra", "re", "ri", "ro", "sa", "se", "ta", "va",
)  # fmt: skip
_STEP = 7919  # a prime, so that neighbours do not sound alike

_HOUR, _SECOND = DAY // 24, DAY // 86_400
_BLOCK_TABLES = ("values", "demand", "visits", "requests")
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
    import polars as pl

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
            for name, frame in _block_tables(block).items():
                Path(pieces, name).mkdir(exist_ok=True)
                frame.write_parquet(Path(pieces, name, f"{block.first:012d}.parquet"))
            told(block.first + len(block.scene))
        parts = {name: sorted(Path(pieces, name).iterdir()) for name in _BLOCK_TABLES}
        written = {name: pl.scan_parquet(files) for name, files in parts.items()}
        about = _about(chosen, size, seed)
        return write_log(folder, {"pages": pages_table(scene), **written}, about)


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


def pages_table(scene: Scene) -> pl.DataFrame:
    """What is known of the offers without visiting them, and how probably a visit fails."""
    import polars as pl

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
    import polars as pl

    start = instant(block.scene.preset.start)
    points, demand, asked = block.points, block.demand, block.requests
    return {
        "values": pl.DataFrame(
            {
                "page_id": block.first + points.row,
                "at": _at(start + points.hour * _HOUR),
                "value": texts(points.code, block.scene.catalogue.country[points.row]),
            }
        ),
        "demand": pl.DataFrame(
            {
                "page_id": block.first + demand.row,
                "at": _at(start + demand.day * DAY),
                "clicks": demand.clicks,
                "impressions": demand.impressions,
            }
        ),
        "visits": _visits(block),
        "requests": pl.DataFrame(
            {"page_id": block.first + asked.row, "at": _at(start + asked.second * _SECOND)}
        ),
    }


def _visits(block: Block) -> pl.DataFrame:
    """Visits; a value is given where it is new, as in the export of a store."""
    import polars as pl

    visits, scene = block.visits, block.scene
    first = (visits.changed == UNKNOWN) & (visits.status == Status.OK)
    new = first | (visits.changed == CHANGED)
    changed = pl.Series(visits.changed == CHANGED)
    country = scene.catalogue.country[visits.row]
    policies = [_POLICY.get(purpose, "") for purpose in Purpose]
    return pl.DataFrame(
        {
            "page_id": block.first + visits.row,
            "at": _at(instant(scene.preset.start) + visits.second * _SECOND),
            "purpose": _pick([purpose.label for purpose in Purpose], visits.purpose),
            "policy": _pick(policies, visits.purpose),
            "status": _pick([status.label for status in Status], visits.status),
            "changed": changed.set(pl.Series(visits.changed == UNKNOWN), None),
            "value": texts(np.where(new, visits.code, GONE), country),
        }
    )


def texts(code: Ints, country: Ints) -> pl.Series:
    """The values that codes stand for, as the mall writes them; null if gone.

    >>> texts(np.array([2 * 1990 + 1, 2 * 2000, GONE]), np.array([5, 5, 5])).to_list()
    ['19.9 EUR InStock', '20 EUR OutOfStock', None]
    >>> texts(np.array([2 * 2000 + 1]), np.array([13])).to_list()
    ['2000 JPY InStock']
    """
    import polars as pl

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
    return [_name(number * _STEP % base**length, length) + ending for number in range(count)]


def _name(number: int, length: int) -> str:
    digits = (number // len(_SYLLABLES) ** place % len(_SYLLABLES) for place in range(length))
    return "".join(_SYLLABLES[digit] for digit in reversed([*digits])).capitalize()


def _pick(words: Sequence[str], places: Ints | Codes) -> pl.Series:
    """The word at each place; kept once, however often it is picked."""
    import polars as pl

    return pl.Series(words, dtype=pl.String).gather(places.astype(np.int64))


def _at(times: Times) -> pl.Series:
    import polars as pl

    return pl.Series(times.astype("datetime64[us]")).dt.replace_time_zone("UTC")
