"""InstaCrawl requests with a gate: how fresh is the copy that each request finds?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from salticus.log.folder import Log
from salticus.log.truth import read_truth
from salticus.simulate.compare import spread
from salticus.simulate.contest import Told, plain, spans
from salticus.simulate.requests import WINDOW, read_requests, replay_uniform
from salticus.simulate.stage import Rules, Stage, runs_of, set_stage


def replay_requests(
    log: Log, rules: Rules, shares: Sequence[float], told: Told = lambda step: None
) -> dict[str, Any]:
    """Replay the log's requests through a gate that sends each with the same probability.

    A row for each of the `shares` to send: the resource R = sent / requests, and the freshness
    that requests find, of 6 h each from the end of the warm-up on (Han 2019, eq. 2, 3, Fig. 10).
    """
    told("reading the log")
    truth = read_truth(log, seed=rules.seed)
    runs = runs_of(log, rules)
    stages = [set_stage(log, rules, run=number, truth=truth) for number in range(runs)]
    told(f"replaying requests, runs: {runs}")
    found = [_run(stage, shares) for stage in stages]
    return {
        "log": {"name": log.about.name, "folder": str(log.folder), "pages": len(stages[0].truth)},
        "rules": plain({**asdict(rules), **spans(stages[0]), "runs": runs}),
        "rows": [_row(share, [rows[k] for rows in found]) for k, share in enumerate(shares)],
        "notes": [
            "every copy is fresh when the crawl starts; each request is scored before it is "
            "sent or not"
        ],
    }


def share_of(text: str) -> float:
    """A share of the requests: ``10%``, 0.1, 0 or 1.

    >>> share_of("10%"), share_of("1")
    (0.1, 1.0)
    """
    number = text.strip()
    share = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    if not 0 <= share <= 1:
        raise ValueError(f"a share of the requests is between 0 and 100%, not {text}")
    return share


def _run(stage: Stage, shares: Sequence[float]) -> list[dict[str, Any]]:
    requests = read_requests(stage.log, stage.truth, stage.crawl, stage.end, seed=stage.seed)
    settled = (stage.score - stage.crawl) // WINDOW
    rows = list(replay_uniform(requests, shares, stage.crawl, stage.end))
    return [{**row, "settled": row["windows"][settled:]} for row in rows]


def _row(share: float, runs: list[dict[str, Any]]) -> dict[str, Any]:
    settled = np.array([row["settled"] for row in runs], dtype=np.float64)
    windows = np.array([row["windows"] for row in runs], dtype=np.float64)
    middle = [None if np.isnan(w).all() else float(np.nanmedian(w)) for w in windows.T]
    return {
        "policy": "uniform",
        "budget": f"{share:g}",
        "runs": len(runs),
        "requests": runs[0]["requests"],
        "resource": float(np.mean([row["resource"] or 0.0 for row in runs])),
        "freshness": spread(settled.ravel()),
        "windows": middle,
    }
