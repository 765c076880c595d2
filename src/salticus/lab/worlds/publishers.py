"""A synthetic world of publishers: sources with new links, and people who want what is new.

All that is drawn comes from one generator, so that a seed is a world.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from salticus.errors import ConfigError
from salticus.exchange.linked import Clicked, LinkTruth
from salticus.exchange.place import check_free
from salticus.exchange.write import write_log
from salticus.predict.finder import KnownSources
from salticus.types import Floats, Ints, instant

START = datetime(2026, 1, 5, tzinfo=UTC)  # a Monday
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    """How a world of publishers is.

    Links appear at rates whose logarithms are normal, around `links` a day in the median; a page
    gets `profit` clicks in the median source, half of them within `half_life` hours. In a `steady`
    world links come at any hour alike and stay. In others they come mostly by day, more on working
    days; a source shows its last `shown` links at most, so that those of a busy one vanish; a part
    `again` of them appears on a second source some hours later, and a part `born` of the sources
    begins during the run. People click for `after` days more than links appear.
    """

    sources: int = 3000
    days: int = 21
    after: int = 7
    links: float = 4.0
    profit: float = 5.0
    half_life: float = 8.0
    step: timedelta = timedelta(minutes=10)
    steady: bool = True
    shown: int = 30
    again: float = 0.1
    born: float = 0.05


def publishers(settings: PublisherSettings, seed: int) -> tuple[LinkTruth, KnownSources]:
    """A world, and what is true of its sources."""
    rng = np.random.default_rng(seed)
    n, long = settings.sources, settings.days * _DAY / settings.step
    rate = settings.links * np.exp(rng.normal(0.0, 1.3, n))
    profit = settings.profit * np.exp(rng.normal(0.0, 1.0, n))
    decay = 24.0 * np.log(2.0) / settings.half_life * np.exp(rng.normal(0.0, 0.7, n))
    begin = np.where(rng.random(n) < (0.0 if settings.steady else settings.born), rng.random(n), 0)
    many = rng.poisson(rate * settings.days * (1.0 - begin))
    source = np.repeat(np.arange(n), many)
    at = (begin[source] + (1.0 - begin[source]) * rng.random(len(source))) * settings.days  # days
    if not settings.steady:
        at = _by_day(at, rng.random(n)[source], rng)
    appeared = np.minimum((at * (_DAY / settings.step)).astype(np.int64), int(long) - 1)
    page = np.arange(len(source))
    born = appeared.copy()
    clicks = _clicks(at, profit[source], decay[source], settings, rng)
    if not settings.steady:
        source, page, appeared = _shown_again(source, page, appeared, settings, rng)
    order = np.lexsort((page, appeared, source))
    source, page, appeared = source[order], page[order], appeared[order]
    first = np.searchsorted(source, np.arange(n + 1))
    vanished = np.full(len(source), int(long) - 1)
    if not settings.steady:
        vanished = _pushed_out(source, appeared, settings.shown, vanished)
    truth = LinkTruth(
        names=[f"source {k}" for k in range(n)],
        pages=len(born),
        first=first,
        page=page,
        appeared=appeared,
        vanished=vanished,
        born=born,
        start=START,
        step=settings.step,
        steps=int(long),
        attention=clicks,
    )
    vanish = np.zeros(n) if settings.steady else rate / settings.shown
    return truth, KnownSources(rate, profit, decay, vanish)


def make_publishers(folder: Path, settings: PublisherSettings, seed: int) -> dict[str, int]:
    """Write a world as a log into a new folder; returns rows a table. The same arguments give the
    same bytes. Sources have the first ids; what is true of them stands in columns of `pages`."""
    if min(settings.sources, settings.days) < 1:
        raise ConfigError("publishers need at least one source and one day")
    check_free(folder)
    truth, known = publishers(settings, seed)
    assert isinstance(truth.attention, Clicked)
    pages, steps, clicks = truth.attention.counts()
    source = np.repeat(np.arange(truth.sources), np.diff(truth.first))
    host = pl.format("www.publisher{}.example", (pl.col("page_id") // 10).cast(pl.String))
    sources = pl.DataFrame({"page_id": np.arange(truth.sources), **known._asdict()}).with_columns(
        host=host, kind=pl.lit("source"), url=pl.format("http://{}/{}", host, "page_id")
    )
    articles = pl.DataFrame(
        {"page_id": truth.sources + np.arange(truth.pages), "kind": ["article"] * truth.pages}
    )
    still = truth.vanished >= truth.steps - 1
    links = {
        "source_id": source,
        "page_id": truth.sources + truth.page,
        "appeared": _times(settings, truth.appeared),
        "vanished": _times(settings, truth.vanished).set(pl.Series(still), None),
    }
    demand = {"page_id": truth.sources + pages, "at": _times(settings, steps), "clicks": clicks}
    tables = {
        "pages": pl.concat([sources, articles], how="diagonal"),
        "links": pl.DataFrame(links).sort("appeared", "source_id", "page_id"),
        "demand": pl.DataFrame(demand).sort("at", "page_id"),
    }
    return write_log(folder, tables, _about(settings, seed))


def _about(settings: PublisherSettings, seed: int) -> dict[str, object]:
    return {
        "name": "publishers",
        "span": [START, START + (settings.days + settings.after) * _DAY],
        "resolution": settings.step,
        "demand_bucket": settings.step,
        "licence": "none needed: no real pages",
        "source": "salticus log make publishers",
        "caveats": "synthetic; `rate`, `profit`, `decay`, `vanish` are true of each source, a day",
        "seed": seed,
        "parameters": {name: v for name, v in asdict(settings).items() if name != "step"},
    }


def _times(settings: PublisherSettings, steps: Ints) -> pl.Series:
    times = instant(START) + steps * np.timedelta64(settings.step)
    return pl.Series(times).dt.replace_time_zone("UTC")


def _by_day(at: Floats, phase: Floats, rng: np.random.Generator) -> Floats:
    """Times moved to where publishers work: a hump of twelve hours around an hour of their own, and
    a third fewer links on Saturdays and Sundays, which move to the days before."""
    weekend = (np.floor(at) % 7 >= 5) & (rng.random(len(at)) < 1 / 3)
    day = np.floor(at) - np.where(weekend, 2.0 + np.floor(3.0 * rng.random(len(at))), 0.0)
    hump = 0.25 * (rng.random((3, len(at))).sum(axis=0) - 1.5)  # days, about a bell
    quiet = rng.random(len(at)) < 0.2
    hour = np.where(quiet, rng.random(len(at)), (0.5 + 0.2 * (phase - 0.5) + hump) % 1.0)
    return np.asarray(np.maximum(day, 0.0) + hour)


def _clicks(
    at: Floats,
    profit: Floats,
    decay: Floats,
    settings: PublisherSettings,
    rng: np.random.Generator,
) -> Clicked:
    """Poisson clicks on every page, at exponential ages; pages of a source differ, too."""
    each = rng.poisson(profit * rng.gamma(2.0, 0.5, len(at)))
    page = np.repeat(np.arange(len(at)), each)
    when = at[page] + rng.exponential(1.0, len(page)) / decay[page]
    step = (when * (_DAY / settings.step)).astype(np.int64)
    here = step < (settings.days + settings.after) * _DAY / settings.step
    return Clicked(page[here], step[here], np.ones(int(here.sum())), len(at))


def _shown_again(
    source: Ints, page: Ints, appeared: Ints, settings: PublisherSettings, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """A part of the links on a second source, within half a day."""
    last = int(settings.days * _DAY / settings.step) - 1
    some = np.flatnonzero(rng.random(len(page)) < settings.again)
    other = (source[some] + 1 + rng.integers(0, 9, len(some))) % settings.sources
    later = (rng.random(len(some)) * (0.5 * _DAY / settings.step)).astype(np.int64)
    return (
        np.concatenate([source, other]),
        np.concatenate([page, page[some]]),
        np.concatenate([appeared, np.minimum(appeared[some] + later, last)]),
    )


def _pushed_out(source: Ints, appeared: Ints, shown: int, end: Ints) -> Ints:
    """A link stands until so many newer ones have appeared on its source."""
    vanished = end.copy()
    after = np.arange(len(source)) + shown
    here = np.flatnonzero(after < len(source))
    here = here[source[after[here]] == source[here]]
    vanished[here] = np.maximum(appeared[after[here]] - 1, appeared[here])
    return vanished
