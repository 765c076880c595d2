"""The whole study, on a synthetic market or on a log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.lab.studies.han2019.patterns import (
    claims_of_correlation,
    pattern_claims,
    pattern_tables,
)
from salticus.lab.studies.han2019.requests import (
    Replays,
    Strategy,
    figure_10,
    figure_11,
    replay_all,
    saved,
    saving_claims,
    train_strategies,
)
from salticus.lab.studies.han2019.tables import prediction_claims, prediction_tables
from salticus.lab.studies.paper import PaperTable, Row, log_or_market, report_of, scale_of
from salticus.lab.studies.prediction.arena import ArenaSettings, Told
from salticus.lab.studies.prediction.changes import HOURS
from salticus.lab.worlds.market import MarketSize
from salticus.models.training.recipe import SPLITS, Recipe, log_span, shrunk, spans_of
from salticus.models.training.run import usual_kind
from salticus.types import moment
from salticus.types.dates import DAY_US

_DAY = timedelta(days=1)
_HISTORY = 60 * _DAY
_PERIODS, _PERIOD = 10, 5 * _DAY


@dataclass(frozen=True, slots=True)
class Scale:
    """How big a study is: the market, the examples of a span, the pages whose clicks are replayed,
    and the shares that gates are tried at; `quick` models only show that all works."""

    offers: int
    days: int
    examples: int
    pages: int | None
    shares: tuple[float, ...]
    quick: bool = False


SCALES = {
    "tiny": Scale(200, 30, 3000, 80, (0.3,), quick=True),
    "small": Scale(4000, 147, 500_000, 1000, (0.1, 0.2, 0.4, 0.65)),
    "full": Scale(
        50_000, 147, 5_000_000, 10_000, (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    ),
}


def study(
    scale: str,
    *,
    log: Path | None = None,
    jobs: int = 1,
    seed: int = 0,
    told: Told = lambda step: None,
) -> Row:
    """Everything that the log, or a market of the scale, allows. The same seed gives the same."""
    size = scale_of(SCALES, scale)
    with TemporaryDirectory(prefix="salticus-study-") as space:
        plan = ArenaSettings(Path(space), size.examples, seed, quick=size.quick)
        place = log_or_market(log, MarketSize(size.offers, size.days), "han2019", plan, told)
        protocol = {"scale": scale, "log": place.about.name, "seed": seed}
        return _studied(place, plan, size, (protocol, jobs, told))


def _studied(log: Log, plan: ArenaSettings, size: Scale, how: tuple[Row, int, Told]) -> Row:
    protocol, jobs, told = how
    told("Figures 2 to 5")
    tables, notes = pattern_tables(log)
    claims = [*pattern_claims(log), *claims_of_correlation(tables)]
    if usual_kind() != "dnn":
        notes.append("JAX is not installed: trees stand for the networks of the paper")
    if not (log.has("values") and log.has("visits")):
        notes.append("Tables 2, 3: there must be values.parquet (truth) and visits.parquet")
    else:
        told("Tables 2 and 3")
        more, aucs = prediction_tables(log, plan, told)
        tables += more
        claims += prediction_claims(aucs)
    if not all(log.has(table) for table in ("values", "visits", "requests")):
        notes.append(
            "Figures 10, 11: there must be values.parquet, visits.parquet, requests.parquet"
        )
    else:
        more, found = _gates(log, plan, size, (jobs, told))
        tables += more
        claims += found
    title = "Predictive crawling for commercial web content, as Han et al. (2019) did"
    return report_of(title, protocol, tables, claims, list(dict.fromkeys(notes)))


def _gates(
    log: Log, plan: ArenaSettings, size: Scale, how: tuple[int, Told]
) -> tuple[list[PaperTable], list[Row]]:
    """Figures 10 and 11: models learn until the clicks that are replayed begin."""
    jobs, told = how
    ends = log_span(log)
    split = shrunk(SPLITS["han2019"], *ends)
    recipe = Recipe(
        edges=(HOURS,), observe="partial", split=split, examples=plan.examples, seed=plan.seed
    )
    models = train_strategies(log, recipe, plan, told)
    place = replace(_clicks_from(log, recipe), models=models, shares=size.shares, pages=size.pages)
    told("replaying clicks")
    found = replay_all(place, jobs, told)
    rows = saved(place, found)
    tables = [figure_10(found[Strategy("uniform")]), *figure_11(rows)]
    return tables, list(saving_claims(rows))


def _clicks_from(log: Log, recipe: Recipe) -> Replays:
    """Clicks from the end of training on: as many days of warm-up as of validation less one, then
    ten periods of five days, or shorter ones if the log is."""
    first, end = log_span(log)
    train = spans_of(recipe.split, first, end)[0]
    crawl, last = moment(np.datetime64(train.stop, "us")), end // DAY_US * DAY_US
    warmup = max(1, recipe.split.validation // _DAY - 1) * _DAY
    left = (moment(np.datetime64(last, "us")) - crawl - warmup) // _DAY
    if left < 2:
        raise InputError(f"{log.folder}: the log ends before clicks could be replayed")
    period = min(_PERIOD, max(1, left // _PERIODS) * _DAY)
    days = min(_PERIODS, left // (period // _DAY)) * (period // _DAY)
    history = min(_HISTORY, (train.stop - train.start) // DAY_US * _DAY)
    return Replays(log.folder, Path(), crawl, history, warmup, days, period, (), None, recipe.seed)
