"""InstaCrawl requests with a gate: how fresh is the copy that each request finds?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict
from typing import Any

import numpy as np

from salticus import plugins
from salticus.allocate.gate import BUILTIN as GATES
from salticus.allocate.gate.base import Gate
from salticus.exchange.folder import Log
from salticus.exchange.truth import read_truth
from salticus.lab.simulate.compare import ContestEntry, savings, spread
from salticus.lab.simulate.contest import Told, plain, spans
from salticus.lab.simulate.gated import sent_through, taught
from salticus.lab.simulate.referee import Score
from salticus.lab.simulate.requests import WINDOW, judged, read_requests
from salticus.lab.simulate.stage import SimulationSettings, Stage, runs_of, set_stage
from salticus.predict.base import Predictor
from salticus.types import Floats

BASELINE = "uniform"
Found = dict[tuple[str, float], list[dict[str, Any]]]


def replay_requests(
    log: Log,
    rules: SimulationSettings,
    shares: Sequence[float],
    gates: Sequence[str] = (BASELINE,),
    told: Told = lambda step: None,
) -> dict[str, Any]:
    """Replay the log's requests through gates that send a share of them each.

    A row for each gate and share: the resource R = sent / requests, the freshness that requests
    find, of 6 h each from the end of the warm-up on (Han 2019, eq. 2, 3, Fig. 10), and the visits
    that found a change. `savings`: resources saved at the freshness of the uniform gate (Fig. 11).
    """
    for gate in gates:
        plugins.load("gate", gate, GATES)
    told("reading the log")
    truth = read_truth(log, seed=rules.seed)
    runs = runs_of(log, rules)
    found: Found = {(gate, share): [] for gate in dict.fromkeys(gates) for share in shares}
    for number in range(runs):
        stage = set_stage(log, rules, run=number, truth=truth)
        for (gate, share), row in _run(stage, found):
            told(f"{gate}, share {share:g}, run {number + 1} of {runs}")
            found[gate, share].append(row)
    return {
        "log": {"name": log.about.name, "folder": str(log.folder), "pages": len(stage.truth)},
        "rules": plain({**asdict(rules), **spans(stage), "runs": runs}),
        "rows": [_row(gate, share, rows) for (gate, share), rows in found.items()],
        "savings": _savings(found),
        "notes": [
            "every copy is fresh when the crawl starts; each request is scored before it is "
            "sent or not"
        ],
    }


def _run(stage: Stage, wanted: Found) -> Iterator[tuple[tuple[str, float], dict[str, Any]]]:
    """The row of every gate and share in one run."""
    requests = read_requests(stage.log, stage.truth, stage.crawl, stage.end, seed=stage.seed)
    settled = (stage.score - stage.crawl) // WINDOW
    scorer: Predictor | None = None
    for gate, share in wanted:
        if gate == BASELINE:
            sent = requests.chance < share
        else:
            scorer = scorer or taught(stage)
            made: Gate = plugins.make("gate", gate, GATES, share=share)
            sent = sent_through(made, stage, requests, deepcopy(scorer))
        row = judged(requests, sent, stage.crawl, stage.end)
        yield (gate, share), {**row, "settled": row["windows"][settled:]}


def _row(gate: str, share: float, runs: list[dict[str, Any]]) -> dict[str, Any]:
    windows = np.array([row["windows"] for row in runs], dtype=np.float64)
    middle = [None if np.isnan(w).all() else float(np.nanmedian(w)) for w in windows.T]
    return {
        "gate": gate,
        "budget": f"{share:g}",
        "runs": len(runs),
        "requests": runs[0]["requests"],
        "resource": _mean(runs, "resource"),
        "freshness": spread(np.concatenate([_settled(row) for row in runs])),
        "found": _mean(runs, "found"),
        "windows": middle,
    }


def _mean(runs: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([row[name] or 0.0 for row in runs]))


def _settled(row: dict[str, Any]) -> Floats:
    return np.array(row["settled"], dtype=np.float64)


def _savings(found: Found) -> list[dict[str, Any]]:
    """Resources that each gate saves at the freshness of the uniform one; none without it."""
    entries = [
        ContestEntry(gate, _mean(runs, "resource"), f"{share:g}", tuple(map(_score, runs)))
        for (gate, share), runs in found.items()
        if share > 0
    ]
    base = [entry for entry in entries if entry.policy == BASELINE]
    known = base and all(np.isfinite(entry.values("clicks")).any() for entry in entries)
    others = [entry for entry in entries if entry.policy != BASELINE]
    rows = [_renamed(row) for row in savings([*base, *others])] if known else []
    gates = [gate for gate, _ in found]
    return sorted(rows, key=lambda row: gates.index(row["gate"]))


def _score(row: dict[str, Any]) -> Score:
    """The windows as if they were days, so that gates are compared as policies are."""
    return Score(clicks=_settled(row).tolist())


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    return {"gate": row["policy"], **{k: v for k, v in row.items() if k != "policy"}}
