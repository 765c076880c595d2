"""Figures 4 to 6 of Han et al. (2020), and the regret of its eq. 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from salticus.charts.arms import arm_points
from salticus.lab.simulate.arms import told_arms
from salticus.lab.simulate.compare import ContestEntry, paired_gains
from salticus.lab.studies.han2020.crawls import Crawled
from salticus.lab.studies.han2020.published import (
    ARMS,
    BANDITS,
    BASE,
    BUDGETS,
    CLICK_INCREASES,
    PAGE_INCREASES,
    STEP_BUDGETS,
    STEPS,
    at,
)
from salticus.lab.studies.han2020.tables import WHY, mark
from salticus.lab.studies.paper import Drawing, PaperTable, Row, compared, mean_of, median_of

NAMES = {"clicks": "click-weighted", "midnight": "offer-level"}
_PUBLISHED = {"clicks": CLICK_INCREASES, "midnight": PAGE_INCREASES}
_TITLES = ("budget, visits per page and day", f"increase over {BASE}")
_ABOUT = ("freshness", "policy", "budget", "significant")


def figure_4(crawled: Crawled) -> PaperTable:
    """KAB5 over λ with models at every budget."""
    rows = _gains(crawled, ["kab5_ml"], [b for p, b in crawled if p == "kab5_ml"])
    shown = [{**row, "log10 budget": float(np.log10(row["budget"]))} for row in rows]
    titles = (f"log10 of the {_TITLES[0]}", _TITLES[1])
    drawing = Drawing("points", "log10 budget:Q", panel="freshness", titles=titles, points=shown)
    words = "Medians of increases paired by run and day, with 95 % intervals; KAB5 in our form."
    return PaperTable("fig4", "Figure 4: KAB5 over λ, by budget", words, _ABOUT, rows, [drawing])


def figure_6(crawled: Crawled) -> PaperTable:
    """KAB2 to KAB5 over λ with models."""
    rows = _gains(crawled, BANDITS[:4], [b for p, b in crawled if p == "kab2_ml"])
    drawing = Drawing("points", "budget:Q", colour="policy", panel="freshness", titles=_TITLES)
    words = "Medians of increases paired by run and day, with 95 % intervals."
    return PaperTable("fig6", "Figure 6: KAB policies over λ", words, _ABOUT, rows, [drawing])


def _gains(crawled: Crawled, policies: Sequence[str], budgets: Sequence[float]) -> list[Row]:
    rows = []
    for name, shown in NAMES.items():
        for policy in policies:
            for budget in sorted(budgets):
                pair = crawled[policy, budget], crawled[BASE, budget]
                gains, p_value = paired_gains(*pair, name)
                about = {"freshness": shown, "policy": policy, "budget": budget}
                about["significant"] = mark(gains, p_value)
                theirs = at(_PUBLISHED[name], policy, budget)
                why = WHY["Adversarial bandit"]
                rows.append(compared(about, median_of(gains), theirs, bound=0.001, why=why))
    return rows


def figure_5(crawled: Crawled) -> PaperTable:
    """The probability of each arm of KAB5 at three steps, for two budgets."""
    rows: list[Row] = []
    points: list[Row] = []
    for budget in (each for each in STEP_BUDGETS if ("kab5_ml", each) in crawled):
        arms = arms_at(crawled["kab5_ml", budget])
        points += arm_points(arms, budget=f"budget {budget:g}")
        last = len(arms["chances"])
        for step in dict.fromkeys(min(step, last) for step in STEPS):
            for name, chance in zip(arms["names"], arms["chances"][step - 1], strict=True):
                rows.append(compared({"budget": budget, "step": step, "arm": name}, chance))
    shown = [{**point, "log10 step": float(np.log10(point["step"]))} for point in points]
    titles = ("log10 of the step", "probability")
    drawing = Drawing(
        "lines", "log10 step:Q", "probability:Q", "arm", "budget", titles, points=shown
    )
    return PaperTable(
        "fig5",
        "Figure 5: probability of each arm of KAB5",
        "Mean over the runs, when the arm was drawn; a step is a tick of the crawl, warm-up "
        "included. The paper draws this figure without printing it.",
        ("budget", "step", "arm"),
        rows,
        [drawing],
        ["γ of ours begins at 1 and falls to the paper's 0.1, so arms part later than printed."],
    )


def arms_at(entry: ContestEntry) -> Row:
    """The arms of a bandit, step by step, mean over the runs."""
    return told_arms([score.arms for score in entry.scores if score.arms is not None])


def regret_table(crawled: Crawled, steps_a_day: float) -> PaperTable:
    """Eq. 1 by single-arm runs: what the best fixed arm would have kept fresh more."""
    rows = []
    for policy in BANDITS:
        for budget in (each for each in BUDGETS if (policy, each) in crawled):
            alone = {arm: crawled[arm, budget].values("clicks") for arm in ARMS}
            best = max(ARMS, key=lambda arm: float(np.nanmean(alone[arm])))
            lost = alone[best] - crawled[policy, budget].values("clicks")
            days = len(crawled[policy, budget].scores[0].days)
            total = float(np.nanmean(lost)) * days * steps_a_day
            about = {"policy": policy, "budget": budget, "best arm": best}
            about["total"] = f"{total:.2f} of {days * steps_a_day:g} steps"
            rows.append(compared(about, mean_of(lost)))
    return PaperTable(
        "regret",
        "Regret of eq. 1",
        "The reward of a step is the share of its clicks that found a fresh copy, which is what "
        "rewards sum up to (§3.2.2); that of an arm is what its own run reached on the same days. "
        "The figure is the regret a step, R / T, over the measured days: the best fixed arm in "
        "hindsight less the bandit. Below 0 the bandit beats every arm.",
        ("policy", "budget", "best arm", "total"),
        rows,
        remarks=(
            "Rewards depend on earlier visits, so an arm's reward along the bandit's own path is "
            "not what that arm alone would have earned; single-arm runs are.",
        ),
    )
