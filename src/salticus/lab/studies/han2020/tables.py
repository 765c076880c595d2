"""Tables 4 to 6 of Han et al. (2020)."""

from __future__ import annotations

import numpy as np

from salticus.exchange.folder import Log
from salticus.lab.simulate.compare import paired_gains
from salticus.lab.studies.han2020.crawls import Crawled
from salticus.lab.studies.han2020.published import (
    BASE,
    CLICK_INCREASES,
    CLICKS,
    PAGE_INCREASES,
    PAGES,
    at,
    group_of,
)
from salticus.lab.studies.paper import Measured, PaperTable, Row, compared, median_of
from salticus.lab.studies.prediction.arena import ArenaSettings, Told
from salticus.lab.studies.prediction.entrants import TASKS, Entrant
from salticus.lab.studies.prediction.run import task_study

METRICS = {
    "clicks": ("Table 5: click-weighted freshness", CLICKS, CLICK_INCREASES),
    "midnight": ("Table 6: offer-level freshness", PAGES, PAGE_INCREASES),
}
"""The daily figures of both tables (Han 2020, eq. 4 and 3), by their names in a score."""

OTHERS = (
    "Ours is a synthetic market of some thousand offers, the paper's are 1.3 million real ones."
)
WHY = {
    "Uniform": OTHERS,
    "History": f"{OTHERS} What history tells depends on how clicks and changes concentrate.",
    "Predictive models": f"{OTHERS} Models learn from fewer examples.",
    "Adversarial bandit": f"{OTHERS} Rewards of ours have a common denominator.",
}
_NETWORKS = TASKS[:3]
_SUBSETS = 20
_T = 2.093  # Student's t of 19 degrees of freedom, 97.5 %
_LEVEL = 0.05
_CLOSE = 0.01


def table_4(
    log: Log, plan: ArenaSettings, told: Told, *, networks: bool
) -> tuple[PaperTable, list[Row]]:
    """AUC of three tasks × three kinds of features; and what the paper says of them."""
    entrants = _NETWORKS if networks else tuple(map(_trees, _NETWORKS))
    found = task_study(log, plan, told, entrants)
    rows = found["rows"]
    cells = {(row["task"], row["model"]): row for row in rows}
    told_rows = [
        compared(
            {"task": row["task"], "features": row["model"], "significant": _marks(row, cells)},
            _interval(row),
            row["published"],
            bound=_CLOSE,
            why=OTHERS,
        )
        for row in rows
    ]
    table = PaperTable(
        "table4",
        "Table 4: AUC of predictive models",
        "Area under the ROC curve, mean over 20 random subsets of the test examples, with its 95 % "
        "interval.",
        ("task", "features", "significant"),
        told_rows,
        remarks=("Significant: p < 0.05 by Welch's test over the 20 subsets; the paper does not "
                 "name its test.",),
    )  # fmt: skip
    return table, found["checks"]


def _trees(network: Entrant) -> Entrant:
    """What stands for a network where there is none."""
    kind = network.features
    return Entrant(kind, f"trees ({kind})", "trees", network.preset, kind)


def _interval(row: Row) -> Measured:
    if row["auc"] is None or row["sd"] is None:
        return Measured(row["auc"])
    off = _T * row["sd"] / np.sqrt(_SUBSETS)
    return Measured(row["auc"], row["auc"] - off, row["auc"] + off)


def _marks(row: Row, cells: dict[tuple[str, str], Row]) -> str:
    """Bold and italic numbers of the paper, in words."""
    others = [kind for kind in ("history", "metadata") if kind != row["model"]]
    better = [kind for kind in others if _better(row, cells[row["task"], kind])]
    return f"above {' and '.join(better)}" if better else ""


def _better(row: Row, other: Row) -> bool:
    from scipy.stats import ttest_ind_from_stats

    figures = row["auc"], row["sd"], other["auc"], other["sd"]
    if any(each is None for each in figures) or row["auc"] <= other["auc"]:
        return False
    mean, sd, mean_2, sd_2 = figures
    found = ttest_ind_from_stats(mean, sd, _SUBSETS, mean_2, sd_2, _SUBSETS, equal_var=False)
    return bool(found.pvalue < _LEVEL)


def freshness_table(crawled: Crawled, name: str) -> PaperTable:
    """Table 5 or 6: the median of a daily figure over runs and days, and its interval."""
    title, published, _ = METRICS[name]
    rows = [
        compared(
            {"group": group_of(policy), "policy": policy, "budget": budget},
            median_of(entry.values(name)),
            at(published, policy, budget),
            bound=_CLOSE,
            why=WHY.get(group_of(policy), ""),
        )
        for (policy, budget), entry in crawled.items()
    ]
    return PaperTable(
        f"table{5 if name == 'clicks' else 6}",
        title,
        "Medians over runs × days with 95 % intervals of the median, as if days were independent, "
        "which they are not quite. Policies draw pages by coins, as published, but leap, which "
        "chooses pages itself, and those named @even.",
        ("group", "policy", "budget"),
        rows,
    )


def increase_table(crawled: Crawled, name: str) -> PaperTable:
    """The last row of Table 5 or 6, for every policy: its paired increases over λ with models."""
    title, _, published = METRICS[name]
    rows = []
    for (policy, budget), entry in crawled.items():
        if policy == BASE:
            continue
        gains, p_value = paired_gains(entry, crawled[BASE, budget], name)
        about = {"policy": policy, "budget": budget, "significant": mark(gains, p_value)}
        why = WHY["Adversarial bandit"]
        theirs = at(published, policy, budget)
        row = compared(about, median_of(gains), theirs, bound=0.001, why=why)
        rows.append({**row, "p_value": p_value})
    return PaperTable(
        f"table{5 if name == 'clicks' else 6}_increases",
        f"{title}: increase over {BASE}",
        "Median of the increases paired by run and day, with its 95 % interval.",
        ("policy", "budget", "significant"),
        rows,
        remarks=("Significant: p < 0.05 by the Wilcoxon signed-rank test.",),
    )


def mark(gains: np.ndarray, p_value: float | None) -> str:
    """Whether gains are significant, and which way.

    >>> mark(np.array([0.1, 0.2]), 0.01), mark(np.array([-0.1]), 0.01), mark(np.array([0.1]), 0.2)
    ('above', 'below', '')
    """
    if p_value is None or p_value >= _LEVEL:
        return ""
    return "above" if np.median(gains) > 0 else "below"
