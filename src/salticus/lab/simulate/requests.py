"""Gate against gate: clicks bring all visits, so how fresh is the copy that each click finds?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from salticus import plugins
from salticus.allocate.gate import BUILTIN as GATES
from salticus.config import Budget
from salticus.crawl.opening import RENDERED
from salticus.exchange.folder import Log
from salticus.lab.simulate.clicking import WINDOW, clicks_of
from salticus.lab.simulate.compare import ContestEntry, savings, spread
from salticus.lab.simulate.contest import Told, stages_of, told_rules
from salticus.lab.simulate.run import run
from salticus.lab.simulate.stage import InstaSettings, SimulationSettings, Stage
from salticus.types import instant

BASELINE = "uniform"


def replay_requests(
    log: Log,
    rules: SimulationSettings,
    shares: Sequence[float],
    gates: Sequence[str] = (BASELINE,),
    told: Told = lambda step: None,
) -> dict[str, Any]:
    """Crawl the log with InstaCrawl alone, through gates that let a share of the clicks through.

    A row for each gate and share, of the scored days: the resource R = sent / requests, the
    freshness that requests find, of 6 h each (Han 2019, eq. 2, 3, Fig. 10), and the visits that
    found a change. `savings`: resources saved at the freshness of the uniform gate (Fig. 11).
    """
    for gate in gates:
        plugins.load("gate", gate, GATES)
    stages = stages_of(log, rules, told)
    budgets = [_plenty(stage) for stage in stages]
    entries = [
        _entry(stages, budgets, InstaSettings(1.0, gate, share), told)
        for gate in dict.fromkeys(gates)
        for share in shares
    ]
    return {
        "log": {"name": log.about.name, "folder": str(log.folder), "pages": len(stages[0].truth)},
        "rules": told_rules(stages),
        "rows": [_row(entry) for entry in entries],
        "savings": _savings(entries),
        "notes": ["each click is scored before it is sent or not"],
    }


def _plenty(stage: Stage) -> Budget:
    """A budget that pays for a visit at every click."""
    number = (clicks_of(stage).at - instant(stage.crawl)) // np.timedelta64(stage.rules.tick)
    most = int(np.bincount(number.astype(np.int64), minlength=1).max()) + 1
    return Budget(most * RENDERED * 86_400 / stage.rules.tick.total_seconds(), per_page=False)


def _entry(
    stages: Sequence[Stage], budgets: Sequence[Budget], insta: InstaSettings, told: Told
) -> ContestEntry:
    scores = []
    for number, (stage, budget) in enumerate(zip(stages, budgets, strict=True), 1):
        told(f"{insta.gate}, share {insta.gate_share:g}, run {number} of {len(stages)}")
        clicked = replace(stage, rules=replace(stage.rules, insta=insta, explore=0.0))
        score = run(clicked, "uniform", budget)  # which has nothing left to spend
        settled = score.windows[(stage.score - stage.crawl) // WINDOW :]
        scores.append(replace(score, clicks=settled))
    sent = float(np.mean([score.visits / max(1, score.clicked) for score in scores]))
    return ContestEntry(insta.gate, sent, f"{insta.gate_share:g}", tuple(scores))


def _row(entry: ContestEntry) -> dict[str, Any]:
    windows = np.array([score.windows for score in entry.scores])
    middle = [None if np.isnan(w).all() else float(np.nanmedian(w)) for w in windows.T]
    return {
        "gate": entry.policy,
        "budget": entry.label,
        "runs": len(entry.scores),
        "requests": entry.scores[0].clicked,
        "resource": entry.budget,
        "freshness": spread(entry.values("clicks")),
        "found": entry.mean("caught"),
        "windows": middle,
    }


def _savings(entries: Sequence[ContestEntry]) -> list[dict[str, Any]]:
    """Resources that each gate saves at the freshness of the uniform one; none without it."""
    sending = [entry for entry in entries if entry.budget > 0]
    base = [entry for entry in sending if entry.policy == BASELINE]
    known = base and all(np.isfinite(entry.values("clicks")).any() for entry in sending)
    others = [entry for entry in sending if entry.policy != BASELINE]
    rows = savings([*base, *others]) if known else []
    gates = [entry.policy for entry in entries]
    rows.sort(key=lambda row: gates.index(row["policy"]))
    return [{"gate": row.pop("policy"), **row} for row in rows]
