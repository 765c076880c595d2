"""The published statistics that the synthetic market is held to, as data.

Only statistics of the data and of uniform crawling: never the rows of the methods under test,
which a market tuned to them could no longer test.
"""

from __future__ import annotations

from dataclasses import dataclass

WITHIN, ABOVE, SAME = "within", "above", "same"
Measured = float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statistic:
    """One published figure. `key` names what is measured for it.

    `rule` says when ours agrees: `within` (differs by `bound` at most), `above` (exceeds the
    value: only a shape is published) or `same` (the same names, in whatever order).
    """

    key: str
    name: str
    source: str
    preset: str
    value: Measured
    rule: str = WITHIN
    bound: float | None = None
    note: str = ""


def share(positive: float, negative: float) -> float:
    """A published ratio of positive to negative examples as a probability.

    >>> share(1, 20) == 1 / 21
    True
    """
    return positive / (positive + negative)


OFFER_MIX = (
    "the published ratio is of a training mix; of its 100 M examples some 13 M were uniform (8 M "
    "in 91 days of testing), so the click stratum alone lay near"
)

SHAPES_2019 = (
    Statistic(
        "change_6h", "change within 6 h, 1:48", "Han 2019 §4.1.3", "han2019", share(1, 48),
        bound=0.002,
    ),
    Statistic(
        "countries_high", "countries that change most", "Han 2019 Fig. 4", "han2019",
        ("IN", "MX", "BR"), SAME,
    ),
    Statistic(
        "countries_low", "countries that change least", "Han 2019 Fig. 4", "han2019",
        ("US", "JP", "ID"), SAME,
    ),
    Statistic(
        "category_first", "category that changes most", "Han 2019 Fig. 5", "han2019",
        ("Software",), SAME,
    ),
    Statistic(
        "categories_next", "categories that follow", "Han 2019 Fig. 5", "han2019",
        ("Electronics", "Media"), SAME,
    ),
    Statistic(
        "categories_low", "categories that change least", "Han 2019 Fig. 5", "han2019",
        ("Business & Industrial", "Religious & Ceremonial"), SAME,
    ),
    Statistic(
        "midnight", "change at local hour 0 / highest other hour", "Han 2019 Fig. 2", "han2019",
        1.0, ABOVE,
    ),
    Statistic(
        "midnight_mean", "change at local hour 0 / mean hour", "Han 2019 Fig. 2", "han2019",
        1.0, ABOVE,
    ),
    Statistic(
        "weekday", "change on a weekday / on a weekend day", "Han 2019 Fig. 2", "han2019",
        1.0, ABOVE,
    ),
    Statistic(
        "interval_24h", "intervals of 24 h / highest of 22, 23, 25, 26 h", "Han 2019 Fig. 3",
        "han2019", 1.0, ABOVE,
    ),
    Statistic(
        "interval_48h", "intervals of 48 h / highest of 46, 47, 49, 50 h", "Han 2019 Fig. 3",
        "han2019", 1.0, ABOVE,
    ),
    Statistic(
        "returning", "clicked offers accessed in the week before", "Han 2019 §6", "han2019", 0.95,
        bound=0.02,
    ),
)  # fmt: skip

AUC_BOUND = 0.03
AUCS = {  # Han 2019 Table 2, first eight rows: partial, full
    "category_day": ("category, 1 day", 0.560, 0.573),
    "category_week": ("category, 1 week", 0.577, 0.584),
    "category_month": ("category, 1 month", 0.570, 0.583),
    "category_recent": ("category, most recent", 0.569, 0.582),
    "page_day": ("offer, 1 day", 0.642, 0.721),
    "page_week": ("offer, 1 week", 0.769, 0.815),
    "page_month": ("offer, 1 month", 0.791, 0.832),
    "page_recent": ("offer, most recent", 0.789, 0.827),
}

AUCS_2019 = tuple(
    Statistic(
        f"auc_{seen}_{key}", f"AUC, {seen}: {name}", "Han 2019 Table 2", "han2019", value,
        bound=AUC_BOUND,
    )
    for column, seen in enumerate(("partial", "full"))
    for key, (name, *values) in AUCS.items()
    for value in (values[column],)
)  # fmt: skip

LIFTS_2019 = (
    Statistic(
        "lift_first", "InstaCrawl, first 10 % of requests", "Han 2019 Fig. 10", "han2019", 0.381,
        bound=0.05,
    ),
    Statistic(
        "lift_rest", "InstaCrawl, other 90 % of requests", "Han 2019 Fig. 10", "han2019", 0.029,
        bound=0.02,
    ),
)  # fmt: skip

SHARES_2020 = (
    Statistic(
        "change_1d", "change within a day, 1:20", "Han 2020 §4.1.1", "han2020", share(1, 20),
        bound=0.005,
    ),
    Statistic(
        "click_1d", "click within a day, 1:75", "Han 2020 §4.1.1", "han2020", share(1, 75),
        bound=0.0015,
    ),
    Statistic(
        "impression_1d", "impression within a day, 1:6", "Han 2020 §4.1.1", "han2020",
        share(1, 6), bound=0.015,
    ),
    Statistic(
        "click_1d_clicked", "click within a day in the click stratum, 1:1", "Han 2020 §4.1.1",
        "han2020", share(1, 1), bound=0.1, note=f"{OFFER_MIX} 0.58",
    ),
    Statistic(
        "impression_1d_clicked", "impression within a day in the click stratum, 4:1",
        "Han 2020 §4.1.1", "han2020", share(4, 1), bound=0.11, note=f"{OFFER_MIX} 0.90",
    ),
)  # fmt: skip

BUDGETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FRESHNESS_BOUND = 0.05
FRESHNESS = {  # the rows "Uniform" of Han 2020, Tables 5 and 6
    "click": (0.7460, 0.8162, 0.8512, 0.8720, 0.8840, 0.8928, 0.9029, 0.9105, 0.9165),
    "page": (0.7426, 0.8135, 0.8454, 0.8637, 0.8758, 0.8849, 0.8917, 0.8971, 0.9015),
}
_TABLE = {"click": "Table 5", "page": "Table 6"}
_CALLED = {"click": "click-weighted", "page": "offer-level"}

FRESHNESS_2020 = tuple(
    Statistic(
        f"{weight}_freshness_{budget:.0%}", f"uniform, {_CALLED[weight]} freshness at {budget:.0%}",
        f"Han 2020 {_TABLE[weight]}", "han2020", value, bound=FRESHNESS_BOUND,
    )
    for weight, values in FRESHNESS.items()
    for budget, value in zip(BUDGETS, values, strict=True)
)  # fmt: skip

PUBLISHED = (*SHAPES_2019, *AUCS_2019, *LIFTS_2019, *SHARES_2020, *FRESHNESS_2020)
PRESETS = ("han2019", "han2020")


def published(preset: str) -> tuple[Statistic, ...]:
    """The statistics that a preset is held to."""
    return tuple(s for s in PUBLISHED if s.preset == preset)
