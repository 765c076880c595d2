"""Figures 10 and 11 of Han et al. (2019): what a gate for clicks keeps fresh, and what it saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from salticus.exchange.folder import Log
from salticus.lab.simulate.contest import stages_of
from salticus.lab.simulate.gates import (
    BASELINE,
    GateContest,
    GateEntry,
    by_period,
    gate_entries,
    groups_of,
    savings_of,
)
from salticus.lab.simulate.named import Estimates
from salticus.lab.simulate.stage import SimulationSettings
from salticus.lab.studies.han2019.published import LEVELS, LIFTS, METADATA, SAVINGS, SHARES
from salticus.lab.studies.han2019.tables import NETWORKS
from salticus.lab.studies.paper import (
    Drawing,
    Measured,
    PaperTable,
    Row,
    claim,
    compared,
    figure,
    in_processes,
)
from salticus.lab.studies.prediction.arena import QUICK, ArenaSettings, Told
from salticus.lab.studies.prediction.changes import HOURS
from salticus.lab.studies.prediction.published import NAMES
from salticus.models.training.recipe import Recipe
from salticus.models.training.run import ModelSpec, train_model, usual_kind
from salticus.types import Floats

STRATEGIES = {
    "dnn_both": ModelSpec("dnn", published=True),
    "dnn_metadata": ModelSpec("dnn", features="metadata", published=True),
    "combined": ModelSpec("frequency", baseline="combined"),
}
"""The models whose scores decide (§6.1.3)."""


class Sight(NamedTuple):
    """What history is observed of, by the name that simulations give it, and what clicks are scored
    by: the chance of a change within so many hours, or, of none, that the copy is out of date."""

    observe: str = "logged"
    hours: int | None = HOURS


SIGHTS = {
    Sight("logged"): "logged",
    Sight("partial"): "own visits",
    Sight("logged", None): "logged, by 1 − S",
}
"""The log's crawler throughout, or the gate's own visits from the first click on; then ours."""

_GROUPS = ("seen", "unseen")
_WHY = "The market is synthetic, with a strong midnight, and models learn of some thousand offers."
_TOO_SOON = (
    "A score of what comes in the next 6 h is highest before local midnight, where a third of the "
    "changes come: a model that knows the hour has copies taken just before they go stale, however "
    "well it predicts. A frequency does not know the hour. 1 − S asks what has come since the "
    "last answer instead, and has no such fault."
)


@dataclass(frozen=True, slots=True)
class Replays:
    """Where clicks are replayed: a log, from when on, and the models that may decide.

    `shares` are those of the clicks that gates with models are tried at; `pages` a sample.
    """

    log: Path
    models: Path
    crawl: datetime
    history: timedelta
    warmup: timedelta
    days: int
    period: timedelta
    shares: Sequence[float]
    pages: int | None
    seed: int

    def rules(self, observe: str, model: str) -> SimulationSettings:
        """How one strategy's replay is run; every copy is fresh at the start."""
        return SimulationSettings(
            start=self.crawl - self.history,
            tick=timedelta(hours=1),
            history=self.history,
            warmup=self.warmup,
            days=self.days,
            pages=self.pages,
            estimates=Estimates(change=str(self.models / model)),
            observe=observe,
            copies="fresh",
            seed=self.seed,
        )


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to decide on clicks: by the score of a model, with a history; or by chance alone."""

    name: str
    sight: Sight = Sight()

    def entries(self, place: Replays) -> list[GateEntry]:
        """What it does at every share, under its name."""
        by_chance = self.name == BASELINE
        shares = sorted({*SHARES, *LEVELS}) if by_chance else place.shares
        hours = self.sight.hours
        horizon = None if by_chance or hours is None else timedelta(hours=hours)
        gate = BASELINE if by_chance else "instacrawl"
        rules = place.rules(self.sight.observe, "combined" if by_chance else self.name)
        stages = stages_of(Log(place.log), rules, lambda step: None)
        contest = GateContest(shares, [gate], horizon, place.period)
        found = gate_entries(stages, contest)
        return [replace(each, told=replace(each.told, policy=self.name)) for each in found]


def train_strategies(log: Log, recipe: Recipe, plan: ArenaSettings, told: Told) -> Path:
    """Train the models that decide, on the examples of Tables 2 and 3; the folder of them."""
    folder = plan.work / "models"
    for name, wanted in STRATEGIES.items():
        spec = wanted
        if usual_kind() != "dnn" and name in NETWORKS:
            spec = ModelSpec("trees", features=wanted.features)
        if plan.quick:
            spec = replace(spec, fitting=QUICK.get(str(spec.model), {}))
        told(f"training {NAMES[name]}")
        train_model(log, recipe, replace(spec, examples=plan.work / "partial"), folder / name)
    return folder


def replay_all(place: Replays, jobs: int, told: Told) -> dict[Strategy, list[GateEntry]]:
    """Every strategy at every share, in so many processes."""
    tasks = [Strategy(BASELINE), *(Strategy(n, see) for see in SIGHTS for n in STRATEGIES)]
    work, found = partial(Strategy.entries, place=place), {}
    for task, entries in zip(tasks, in_processes(work, tasks, jobs), strict=True):
        told(f"replayed clicks: {task.name}, {SIGHTS[task.sight]}")
        found[task] = entries
    return found


# --------------------------------------------------------------------------------------- figure 10


def figure_10(entries: Sequence[GateEntry]) -> PaperTable:
    """Freshness of uniform strategies in windows of 6 h, and what more visits bring."""
    lines = {float(entry.told.label): entry for entry in entries}
    points = [
        {"day": k / 4, "p_u": share, "fresh": fresh}
        for share in SHARES
        for k, fresh in enumerate(lines[share].told.scores[0].windows)
        if np.isfinite(fresh)
    ]
    rows = [compared({"figure": f"freshness at p_u = {s:g}"}, _freshness(lines[s])) for s in SHARES]
    for (low, high), published in LIFTS.items():
        about = {"figure": f"gain from p_u = {low:g} to {high:g}"}
        gain = _gain(lines[low], lines[high])
        rows.append(compared(about, gain, published, bound=0.02, why=_WHY))
    titles = ("days since all copies were fresh", "clicks that find a fresh copy")
    return PaperTable(
        "fig10",
        "Figure 10: freshness over time of uniform strategies",
        "The share of clicks that find a fresh copy, in windows of 6 h; all copies are fresh at "
        "the start. Means are of the days after the first four, with 95 % intervals by periods.",
        ("figure",),
        rows,
        [Drawing("lines", "day:Q", "fresh:Q", "p_u", titles=titles, points=points)],
    )


def _measured(value: Floats, half: Floats) -> Measured:
    middle, off = float(value[0]), float(half[0])
    return Measured(middle, middle - off, middle + off)


def _freshness(entry: GateEntry) -> Measured:
    return _measured(*by_period(entry.tally.freshness, entry.tally.clicks.shape[1]))


def _gain(low: GateEntry, high: GateEntry) -> Measured:
    def gain(without: int | None) -> Floats:
        return high.tally.freshness(without) - low.tally.freshness(without)

    return _measured(*by_period(gain, low.tally.clicks.shape[1]))


# --------------------------------------------------------------------------------------- figure 11


def saved(place: Replays, found: dict[Strategy, list[GateEntry]]) -> list[Row]:
    """The savings of every strategy and sight at every level, of seen and of unseen offers."""
    stage = stages_of(Log(place.log), place.rules("logged", "combined"), lambda step: None)[0]
    groups = list(groups_of(stage))
    base = found[Strategy(BASELINE)]
    rows = []
    for task, entries in found.items():
        for row in savings_of([*base, *entries], groups):
            if float(row["at_budget"]) in LEVELS and row["group"] in _GROUPS:
                rows.append({**row, "history": SIGHTS[task.sight]})
    return rows


def figure_11(rows: Sequence[Row]) -> list[PaperTable]:
    """Savings at the four levels of freshness, and the largest of each."""
    told = [
        compared(
            {
                "offers": row["group"],
                "history": row["history"],
                "model": NAMES[row["gate"]],
                "level": f"{float(row['at_budget']):.0%}",
                "freshness": row["freshness"],
            },
            Measured(row["saving"], row["low"], row["high"]),
        )
        for row in rows
    ]
    drawings = []
    for history in SIGHTS.values():
        points = [row for row in told if row["history"] == history and row["ours"] is not None]
        titles = (f"as fresh as uniform visits at this share ({history})", "visits saved")
        if points:
            drawings.append(
                Drawing("points", "level:N", "ours:Q", "model", "offers", titles, points=points)
            )
    words = (
        "The share of the visits that a strategy saves at the freshness of the uniform one, which "
        "sends 20, 40, 60 or 80 % of the clicks; with 95 % intervals by periods (jackknife). The "
        "paper draws this figure and prints only the largest savings."
    )
    about = ("offers", "history", "model", "level", "freshness")
    title = "Figure 11: visits saved at equal freshness"
    whole = PaperTable("fig11", title, words, about, told, drawings, [_TOO_SOON])
    return [whole, _largest(rows)]


def _largest(rows: Sequence[Row]) -> PaperTable:
    """The largest saving of each model, of each group and history."""
    best: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        key = row["gate"], row["group"], row["history"]
        if row["saving"] is not None and row["saving"] > best.get(key, {"saving": -9.0})["saving"]:
            best[key] = row
    published = SAVINGS | {("dnn_metadata", "unseen"): METADATA}
    return PaperTable(
        "fig11_largest",
        "Figure 11: the largest savings (§6.2.2)",
        "The largest of the four savings of each model.",
        ("model", "offers", "history"),
        [
            compared(
                {"model": NAMES[name], "offers": group, "history": history},
                Measured(row["saving"], row["low"], row["high"]),
                published.get((name, group)),
                why=_WHY,
            )
            for (name, group, history), row in best.items()
        ],
    )


def saving_claims(rows: Sequence[Row]) -> Iterator[Row]:
    """What the paper says of Figure 11, for each history."""
    for history in SIGHTS.values():
        some = {
            (row["gate"], row["group"], row["at_budget"]): row["saving"]
            for row in rows
            if row["history"] == history
        }
        for group in _GROUPS:
            levels = [f"{level:g}" for level in LEVELS]
            cells = {n: [some.get((n, group, level)) for level in levels] for n in STRATEGIES}
            both, frequency = cells["dnn_both"], cells["combined"]
            what = f"{group} offers, {history}"
            yield _above(f"DNN (both) saves more than frequency: {what}", both, frequency)
            yield _above(f"frequency saves something: {what}", frequency, [0.0] * len(levels))
            metadata = cells["dnn_metadata"]
            yield _above(f"DNN (metadata) saves something: {what}", metadata, [0.0] * len(levels))


def _above(what: str, ours: list[float | None], others: Sequence[float | None]) -> Row:
    """Whether figures are above others at every level."""
    pairs = list(zip(ours, others, strict=True))
    told = "; ".join(f"{_shown(a)} to {_shown(b)}" for a, b in pairs)
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    holds = None if len(known) < len(pairs) else all(a > b for a, b in known)
    return claim(f"{what}, at all four levels", "Fig. 11", holds, told)


def _shown(value: float | None) -> str:
    return "–" if figure(value) is None else f"{value:.3f}"
