"""The whole study, on a synthetic market or on a log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from salticus.exchange.folder import Log
from salticus.lab.simulate.stage import SimulationSettings, usual_tick
from salticus.lab.studies.han2020.claims import claims_of
from salticus.lab.studies.han2020.crawls import Crawled, Crawls, crawl_all
from salticus.lab.studies.han2020.figures import figure_4, figure_5, figure_6, regret_table
from salticus.lab.studies.han2020.published import BASE, BUDGETS, COMPETING, TIGHT
from salticus.lab.studies.han2020.tables import (
    METRICS,
    freshness_table,
    increase_table,
    table_4,
)
from salticus.lab.studies.paper import (
    PaperTable,
    Row,
    claim,
    log_or_market,
    report_of,
    scale_of,
)
from salticus.lab.studies.prediction.arena import QUICK, ArenaSettings, Told
from salticus.lab.studies.prediction.run import TASK_RECIPE
from salticus.lab.worlds.market import MarketSize
from salticus.models.training.recipe import Recipe, log_span, shrunk, spans_of
from salticus.models.training.run import ModelSpec, train_tasks, usual_kind
from salticus.types import moment

_DAY = timedelta(days=1)
_HISTORY, _WARMUP, _MEASURED = 60, 60, 31  # days
_STARTS = {
    "none": "There are no copies when the crawls begin: a page is stale until it is visited. The "
    "paper does not say so, but 7 % of the offers fresh by clicks alone (Table 6) imply it.",
    "fresh": "All copies are fresh when the crawls begin, which is not how the paper has it: "
    "there, pages that a strategy never visits are stale (Table 6).",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """How big a study is: the market, the examples of a span, the budgets of the tables and those
    of Figure 4 beside them, and the runs; `quick` models only show that all works."""

    offers: int
    days: int
    examples: int
    budgets: tuple[float, ...]
    tight: tuple[float, ...]
    runs: int
    quick: bool = False


SCALES = {
    "tiny": Scale(900, 42, 20_000, (0.1, 0.5), (0.01,), runs=1, quick=True),
    "small": Scale(2000, 253, 500_000, BUDGETS, (0.001, 0.003, 0.005, 0.01, 0.03), runs=2),
    "full": Scale(10_000, 253, 5_000_000, BUDGETS, TIGHT, runs=10),
}


@dataclass(frozen=True, slots=True)
class Given:
    """What a study is given beside its scale: a log, and models in `change`, `click` and
    `impression`; without them it makes and trains them. `copies` are those at the start of the
    crawls: "none", or "fresh"."""

    log: Path | None = None
    models: Path | None = None
    copies: str = "none"


def study(
    scale: str,
    given: Given | None = None,
    *,
    jobs: int = 1,
    seed: int = 0,
    told: Told = lambda step: None,
) -> Row:
    """Every table and figure of the evaluation. The same seed gives the same."""
    size, given = scale_of(SCALES, scale), given or Given()
    with TemporaryDirectory(prefix="salticus-study-") as space:
        plan = ArenaSettings(Path(space), size.examples, seed, quick=size.quick)
        log = log_or_market(given.log, MarketSize(size.offers, size.days), "han2020", plan, told)
        protocol = {"scale": scale, "log": log.about.name, "seed": seed}
        return _studied(log, plan, size, given, (protocol, jobs, told))


def _studied(
    log: Log, plan: ArenaSettings, size: Scale, given: Given, how: tuple[Row, int, Told]
) -> Row:
    protocol, jobs, told = how
    networks = usual_kind() == "dnn" and not size.quick
    told("Table 4")
    aucs, checks = table_4(log, plan, told, networks=networks)
    split = shrunk(TASK_RECIPE.split, *log_span(log))
    recipe = replace(TASK_RECIPE, split=split, examples=plan.examples, seed=plan.seed)
    models = given.models or plan.work / "models"
    if given.models is None:
        told("training the models that the crawls use")
        train_tasks(log, recipe, _spec(plan, networks=networks), models, told)
    rules = replace(_rules(log, recipe, size, models), copies=given.copies)
    crawled, notes = crawl_all(log.folder, rules, _tasks(size), jobs, told)
    notes.append(_STARTS[given.copies])
    if not networks:
        notes.append("Trees stand for the networks of the paper (no JAX, or --scale tiny).")
    claims = [claim(each["check"], "Table 4", each["holds"], each["figures"]) for each in checks]
    return report_of(
        "Adversarial bandits for crawling commercial content, as Han et al. (2020) did",
        {**protocol, **_told(rules, size)},
        [aucs, *_tables(crawled, size, rules)],
        [*claims, *claims_of(crawled)],
        notes,
    )


def _spec(plan: ArenaSettings, *, networks: bool) -> ModelSpec:
    """The published models on metadata and history, or trees."""
    spec = ModelSpec("dnn", preset="han2020", published=True, examples=plan.work)
    if not networks:
        spec = replace(spec, model="trees", published=False)
    return replace(spec, fitting=QUICK["trees"]) if plan.quick else spec


def _rules(log: Log, recipe: Recipe, size: Scale, models: Path) -> SimulationSettings:
    """Crawls begin where validation ends: sixty days of warm-up, thirty-one that are measured, or
    in that proportion of what the log has left. Estimates see the whole log up to yesterday."""
    test = spans_of(recipe.split, *log_span(log))[2]
    crawl = moment(np.datetime64(test.start, "us"))
    left = recipe.split.test // _DAY
    days = max(1, round(left * _MEASURED / (_WARMUP + _MEASURED)))
    history = min(_HISTORY * _DAY, recipe.split.train + recipe.split.validation)
    return SimulationSettings(
        start=crawl - history,
        tick=usual_tick(log),
        history=history,
        warmup=max(1, left - days) * _DAY,
        days=days,
        spacing="coin",
        models=models,
        observe="full",
        runs=size.runs,
        seed=recipe.seed,
    )


def _tasks(size: Scale) -> list[Crawls]:
    """Who crawls at which budgets; those with most of them first."""
    every = tuple(sorted({*size.tight, *size.budgets}))
    most = (BASE, "kab5_ml")
    rest = (policy for policy in COMPETING if policy not in most)
    return [
        *(Crawls(policy, every) for policy in most),
        *(Crawls(policy, size.budgets) for policy in rest),
    ]


def _tables(crawled: Crawled, size: Scale, rules: SimulationSettings) -> list[PaperTable]:
    order = [(policy, budget) for policy in COMPETING for budget in size.budgets]
    tabled = {key: crawled[key] for key in order}
    tables = [make(tabled, name) for name in METRICS for make in (freshness_table, increase_table)]
    figures = [figure_4(crawled), figure_5(crawled), figure_6(crawled)]
    return [*tables, *figures, regret_table(tabled, _DAY / rules.tick)]


def _told(rules: SimulationSettings, size: Scale) -> Row:
    assert rules.start is not None
    assert rules.history is not None
    assert rules.warmup is not None
    crawl = rules.start + rules.history
    return {
        "crawls from": f"{crawl:%Y-%m-%d}",
        "warm-up days": rules.warmup // _DAY,
        "measured days": rules.days,
        "tick": f"{rules.tick / timedelta(hours=1):g} h",
        "copies at the start": rules.copies,
        "runs": size.runs,
        "estimates": "the whole log up to yesterday",
    }
