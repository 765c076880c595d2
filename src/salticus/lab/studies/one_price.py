"""One price for refreshing and finding, beside the best fixed split of the visits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from salticus.errors import ConfigError
from salticus.exchange.folder import Log
from salticus.exchange.write import spelt
from salticus.lab.simulate.discovery import Learning
from salticus.lab.simulate.joint import (
    JointScore,
    Knowing,
    crawl_both,
    links_beside,
    mean_of,
    spelt_split,
    taught_of,
)
from salticus.lab.simulate.stage import SimulationSettings, set_stage
from salticus.lab.worlds.market import MarketSize, make_market

Told = Callable[[str], None]

BUDGETS = (0.02, 0.05, 0.1, 0.2, 0.5)
SPLITS = tuple(n / 10 for n in range(1, 10))
_DAY = timedelta(days=1)
_LEARNING = Learning(resolve=timedelta(hours=6))


@dataclass(frozen=True, slots=True)
class OnePriceSettings:
    """How big the worlds are: offers of a synthetic market, which gets about as many clicks as the
    articles of so many sources; `runs` of them, each with a seed of its own."""

    offers: int = 2000
    sources: int = 60
    history: int = 30
    warmup: int = 14
    days: int = 14
    tick: timedelta = timedelta(hours=2)
    runs: int = 10
    seed: int = 0


def study(
    settings: OnePriceSettings,
    budgets: Sequence[float] = BUDGETS,
    splits: Sequence[float] = SPLITS,
    told: Told = lambda step: None,
) -> dict[str, Any]:
    """Crawl every world at one price and with every split; the same seed gives the same result.

    Each row has the mean share of the clicks served at one price and by the split that serves the
    most on average over the runs, and the `ratio` of the two.
    """
    if min(settings.offers, settings.sources, settings.runs, len(splits)) < 1:
        raise ConfigError("there must be offers, sources, runs and splits")
    found: dict[tuple[float, float | None], list[JointScore]] = {}
    for seed in range(settings.seed, settings.seed + settings.runs):
        for key, score in _crawls(settings, seed, list(product(budgets, (None, *splits))), told):
            found.setdefault(key, []).append(score)
    rows = [
        {"budget": key[0], **mean_of(key[1], scores), "runs": [score.share for score in scores]}
        for key, scores in found.items()
    ]
    used = {"offers": settings.offers, "sources": settings.sources, "tick": spelt(settings.tick)}
    used |= {"history": settings.history, "warmup": settings.warmup, "days": settings.days}
    return {
        "protocol": {**used, "runs": settings.runs, "seed": settings.seed},
        "table": [_beside(budget, rows) for budget in budgets],
        "rows": rows,
    }


def _crawls(
    settings: OnePriceSettings,
    seed: int,
    wanted: Sequence[tuple[float, float | None]],
    told: Told,
) -> Iterator[tuple[tuple[float, float | None], JointScore]]:
    """Make one world, and crawl it in all ways that are wanted."""
    days = settings.history + settings.warmup + settings.days
    rules = SimulationSettings(
        tick=settings.tick,
        history=settings.history * _DAY,
        warmup=settings.warmup * _DAY,
        days=settings.days,
        seed=seed,
    )
    with TemporaryDirectory(prefix="salticus-study-") as folder:
        told(f"seed {seed}: making the world")
        make_market(Path(folder, "log"), MarketSize(settings.offers, days), seed=seed)
        stage = set_stage(Log(Path(folder, "log")), rules)
        links = links_beside(stage, str(settings.sources))
        knowing = Knowing(taught_of(stage), _LEARNING)
        for budget, split in wanted:
            told(f"seed {seed}: {100 * budget:g} %, {spelt_split(split)}")
            visits = budget * (settings.offers + settings.sources)
            score = crawl_both(stage, links, visits, finding=split, knowing=knowing)
            yield (budget, split), score


def _beside(budget: float, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One price beside the best split, at a budget."""
    here = [row for row in rows if row["budget"] == budget]
    (one,) = (row for row in here if row["split"] is None)
    best = max((row for row in here if row["split"] is not None), key=lambda row: row["share"])
    each = np.array(one["runs"]) / np.array(best["runs"])
    return {
        "budget": budget,
        "one_price": one["share"],
        "best": best["share"],
        "split": best["split"],
        "ratio": one["share"] / best["share"],
        "worst_run": float(each.min()),
        "finding": 1.0 - one["visits"]["offers"] / sum(one["visits"].values()),
    }
