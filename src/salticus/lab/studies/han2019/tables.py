"""Tables 2 and 3 of Han et al. (2019): AUC of every model, on seen and on unseen offers."""

from __future__ import annotations

import numpy as np

from salticus.exchange.folder import Log
from salticus.lab.studies.paper import Measured, PaperTable, Row, claim, compared
from salticus.lab.studies.prediction.arena import ArenaSettings, Told
from salticus.lab.studies.prediction.changes import change_study
from salticus.lab.studies.prediction.published import NAMES
from salticus.models.training.run import usual_kind

NETWORKS = {"dnn_both": "trees", "dnn_metadata": "trees_metadata"}
"""The published networks, and what stands for them where JAX is not installed."""

_TITLES = {"seen": "Table 2: AUC on seen offers", "unseen": "Table 3: AUC on unseen offers"}
_SUBSETS = 20
_T = 2.093  # Student's t of 19 degrees of freedom, 97.5 %
_CLOSE = 0.01
_WHY = "Ours is a synthetic market, with some thousand offers instead of a million."


def prediction_tables(log: Log, plan: ArenaSettings, told: Told) -> tuple[list[PaperTable], Row]:
    """Both tables, and the study that they are taken from."""
    keys = tuple(NAMES) if usual_kind() == "dnn" else tuple(NETWORKS.get(k, k) for k in NAMES)
    found = change_study(log, _only(plan, keys), told)
    return [_table(found["rows"], group) for group in _TITLES], found


def _only(plan: ArenaSettings, keys: tuple[str, ...]) -> ArenaSettings:
    return ArenaSettings(plan.work, plan.examples, plan.seed, keys, plan.quick)


def _table(rows: list[Row], group: str) -> PaperTable:
    cells = [row for row in rows if row["group"] == group]
    return PaperTable(
        f"table{2 if group == 'seen' else 3}",
        _TITLES[group],
        "Area under the ROC curve, mean over 20 random subsets of the test examples, with its 95 % "
        "interval; by what is observed of the history.",
        ("model", "observability"),
        [
            compared(
                {"model": row["name"], "observability": row["observe"]},
                _measured(row),
                row["published"],
                bound=_CLOSE,
                why=_WHY,
            )
            for row in cells
        ],
        remarks=("A ceiling is what the true hazards of the synthetic market reach.",),
    )


def _measured(row: Row) -> Measured:
    if row["auc"] is None or row["sd"] is None:
        return Measured(row["auc"])
    off = _T * row["sd"] / np.sqrt(_SUBSETS)
    return Measured(row["auc"], row["auc"] - off, row["auc"] + off)


def prediction_claims(found: Row) -> list[Row]:
    """What the study checks of the published tables."""
    return [
        claim(row["check"], "Tables 2, 3", row["holds"], row["figures"]) for row in found["checks"]
    ]
