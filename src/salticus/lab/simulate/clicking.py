"""The clicks of a stage one by one: the log's requests, or drawn from what it counted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from salticus.lab.simulate.requests import read_requests, true_values
from salticus.lab.simulate.stage import Stage
from salticus.lab.worlds.replay import ClickStream
from salticus.types import Ints, Tick, Times, instant


def clicks_of(stage: Stage) -> ClickStream:
    """The clicks from the start of the crawl on, in order of time.

    They are the requests of the log if it has any and is read by its own readers. Otherwise so many
    are drawn (Poisson) as the readers click on average, at random times of each tick.
    """
    if stage.log.has("requests") and not stage.readers.synthetic:
        asked = read_requests(stage.log, stage.truth, stage.crawl, stage.end, seed=stage.seed)
        clicks = ClickStream(asked.page, asked.at, asked.true)
    else:
        clicks = _drawn(stage)
    return clicks.take(np.lexsort((clicks.page, clicks.at)))


def _drawn(stage: Stage) -> ClickStream:
    found = [_of_tick(stage, tick) for tick in _ticks(stage)]
    rows, at = (np.concatenate(column) for column in zip(*found, strict=True))
    born = stage.truth.born[rows] <= at
    rows, at = rows[born], at[born]
    true, _ = true_values(stage.truth, rows, at, stage.crawl)
    return ClickStream(rows, at, true)


def _ticks(stage: Stage) -> Iterator[Tick]:
    length = stage.rules.tick
    for number in range(-(-(stage.end - stage.crawl) // length)):
        start = stage.crawl + number * length
        yield Tick(number, start, start + length)


def _of_tick(stage: Stage, tick: Tick) -> tuple[Ints, Times]:
    rng = np.random.default_rng([stage.seed, tick.number])
    rows, mean = stage.readers.clicks(tick)
    rows = rows.repeat(rng.poisson(mean))
    length = (instant(tick.end) - instant(tick.start)).astype(np.int64)
    return rows, instant(tick.start) + (rng.random(len(rows)) * length).astype("m8[us]")
