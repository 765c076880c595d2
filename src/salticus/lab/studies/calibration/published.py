"""The published statistics that the synthetic market is held to, as data.

Only statistics of the data and of uniform crawling: never the rows of the methods under test,
which a market tuned to them could no longer test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from salticus.lab.studies.prediction.published import SEEN

Measured = float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statistic:
    """One published figure. `key` names what is measured for it.

    Ours agrees if it differs by `bound` at most; without a bound, if it exceeds the value (only a
    shape is published). Names agree if they are the same, in whatever order.
    """

    key: str
    name: str
    source: str
    preset: str
    value: Measured
    bound: float | None = None
    note: str = ""


def _of(paper: str, *rows: tuple[Any, ...]) -> tuple[Statistic, ...]:
    """Statistics of a paper: key, name, where it stands, value, bound, and perhaps a note."""
    preset = paper.lower().replace(" ", "")
    return tuple(
        Statistic(key, name, f"{paper} {where}", preset, *rest) for key, name, where, *rest in rows
    )


def share(positive: float, negative: float) -> float:
    """A published ratio of positive to negative examples as a probability.

    >>> share(1, 20) == 1 / 21
    True
    """
    return positive / (positive + negative)


AUC_BOUND, FRESHNESS_BOUND = 0.03, 0.05
AUC_NAMES = {  # Han 2019 Table 2, first eight rows
    "category_day": "category, 1 day",
    "category_week": "category, 1 week",
    "category_month": "category, 1 month",
    "category_recent": "category, most recent",
    "page_day": "offer, 1 day",
    "page_week": "offer, 1 week",
    "page_month": "offer, 1 month",
    "page_recent": "offer, most recent",
}
OFFER_MIX = (
    "the published ratio is of a training mix; of its 100 M examples some 13 M were uniform (8 M "
    "in 91 days of testing), so the click stratum alone lay near"
)
BUDGETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FRESHNESS = {  # the rows "Uniform" of Han 2020
    ("click", "click-weighted", "Table 5"):
        (0.7460, 0.8162, 0.8512, 0.8720, 0.8840, 0.8928, 0.9029, 0.9105, 0.9165),
    ("page", "offer-level", "Table 6"):
        (0.7426, 0.8135, 0.8454, 0.8637, 0.8758, 0.8849, 0.8917, 0.8971, 0.9015),
}  # fmt: skip

HAN_2019 = _of(
    "Han 2019",
    ("change_6h", "change within 6 h, 1:48", "§4.1.3", share(1, 48), 0.002),
    ("countries_high", "countries that change most", "Fig. 4", ("IN", "MX", "BR"), None),
    ("countries_low", "countries that change least", "Fig. 4", ("US", "JP", "ID"), None),
    ("category_first", "category that changes most", "Fig. 5", ("Software",), None),
    ("categories_next", "categories that follow", "Fig. 5", ("Electronics", "Media"), None),
    (
        "categories_low", "categories that change least", "Fig. 5",
        ("Business & Industrial", "Religious & Ceremonial"), None,
    ),
    ("midnight", "change at local hour 0 / highest other hour", "Fig. 2", 1.0, None),
    ("midnight_mean", "change at local hour 0 / mean hour", "Fig. 2", 1.0, None),
    ("weekday", "change on a weekday / on a weekend day", "Fig. 2", 1.0, None),
    ("interval_24h", "intervals of 24 h / highest of 22, 23, 25, 26 h", "Fig. 3", 1.0, None),
    ("interval_48h", "intervals of 48 h / highest of 46, 47, 49, 50 h", "Fig. 3", 1.0, None),
    ("returning", "clicked offers accessed in the week before", "§6", 0.95, 0.02),
    *(
        (f"auc_{seen}_{key}", f"AUC, {seen}: {name}", "Table 2", SEEN[key][column].auc, AUC_BOUND)
        for column, seen in enumerate(("partial", "full"))
        for key, name in AUC_NAMES.items()
    ),
    ("lift_first", "InstaCrawl, first 10 % of requests", "Fig. 10", 0.381, 0.05),
    ("lift_rest", "InstaCrawl, other 90 % of requests", "Fig. 10", 0.029, 0.02),
)  # fmt: skip

HAN_2020 = _of(
    "Han 2020",
    ("change_1d", "change within a day, 1:20", "§4.1.1", share(1, 20), 0.005),
    ("click_1d", "click within a day, 1:75", "§4.1.1", share(1, 75), 0.0015),
    ("impression_1d", "impression within a day, 1:6", "§4.1.1", share(1, 6), 0.015),
    *(
        (
            f"{what}_1d_clicked", f"{what} within a day in the click stratum, {ratio}:1",
            "§4.1.1", share(ratio, 1), bound, f"{OFFER_MIX} {near}",
        )
        for what, ratio, bound, near in (("click", 1, 0.1, "0.58"), ("impression", 4, 0.11, "0.90"))
    ),
    *(
        (
            f"{weight}_freshness_{budget:.0%}", f"uniform, {called} freshness at {budget:.0%}",
            table, value, FRESHNESS_BOUND,
        )
        for (weight, called, table), values in FRESHNESS.items()
        for budget, value in zip(BUDGETS, values, strict=True)
    ),
)  # fmt: skip

PUBLISHED = (*HAN_2019, *HAN_2020)
PRESETS = ("han2019", "han2020")


def published(preset: str) -> tuple[Statistic, ...]:
    """The statistics that a preset is held to."""
    return tuple(s for s in PUBLISHED if s.preset == preset)
