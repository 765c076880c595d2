"""Tables 5 and 6 of Han et al. (2020), as data, and who is compared."""

from __future__ import annotations

BUDGETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Visits per page and day."""

TIGHT = tuple(k / 1000 for k in range(1, 10)) + tuple(k / 100 for k in range(1, 10))
"""The budgets of Figure 4 below those of the tables."""

STEPS, STEP_BUDGETS = (1, 100, 1000), (0.01, 0.1)
"""Of Figure 5."""

BASE = "lambda_ml"
"""Whom others are measured against."""

ARMS = ("uniform", "delta_ml", "mu_ml", "nu_ml", "lambda_ml")
"""The arms of KAB5 by themselves, as they are typed."""


def _rows(text: str) -> dict[str, tuple[float, ...]]:
    lines = (line.split() for line in text.strip().splitlines())
    return {name: tuple(int(part) / 10_000 for part in parts) for name, *parts in lines}


CLICKS = _rows("""
uniform   7460 8162 8512 8720 8840 8928 9029 9105 9165
delta_h   1951 2508 2817 3007 3171 3294 3412 3507 3549
mu_h      8840 8933 8978 9006 9030 9051 9068 9083 9097
nu_h      9013 9153 9224 9266 9295 9314 9328 9341 9351
lambda_h  8843 9079 9184 9244 9291 9322 9350 9371 9385
delta_ml  4067 5177 5857 6339 6664 6935 7159 7344 7483
mu_ml     8976 9098 9199 9251 9357 9380 9437 9463 9494
nu_ml     8835 9054 9222 9301 9320 9362 9409 9435 9461
lambda_ml 8983 9152 9284 9384 9424 9456 9486 9505 9518
kab5_ml   9027 9238 9373 9425 9478 9497 9517 9533 9543
""")
"""Table 5: click-weighted freshness, medians; a column a budget."""

PAGES = _rows("""
uniform   7426 8135 8454 8637 8758 8849 8917 8971 9015
delta_h   1589 2031 2268 2423 2539 2632 2713 2782 2846
mu_h      0724 1008 1269 1513 1746 1966 2175 2375 2565
nu_h      1239 1582 1792 1946 2063 2157 2237 2304 2363
lambda_h  3424 4884 5722 6247 6630 6921 7130 7291 7427
delta_ml  4611 5779 6404 6812 7106 7333 7513 7662 7786
mu_ml     4447 5894 6608 7033 7314 7528 7693 7830 7943
nu_ml     6033 7095 7584 7875 8082 8233 8351 8446 8523
lambda_ml 6550 7561 8023 8289 8463 8588 8684 8759 8818
kab5_ml   6604 7635 8064 8319 8495 8612 8709 8782 8845
""")
"""Table 6: offer-level freshness, medians; a column a budget."""

CLICK_INCREASES = _rows("kab5_ml 93 71 44 35 33 28 23 22 15")
PAGE_INCREASES = _rows("kab5_ml 107 109 72 49 44 36 38 34 35")
"""Medians of the paired increases of KAB5 over λ with models."""

GROUPS = {
    "Uniform": ("uniform",),
    "History": ("delta_h", "mu_h", "nu_h", "lambda_h"),
    "Predictive models": ("delta_ml", "mu_ml", "nu_ml", "lambda_ml"),
    "Adversarial bandit": ("kab2_ml", "kab3_ml", "kab4_ml", "kab5_ml"),
    "Bandit, other forms": ("kab5_printed_ml", "kab5_contextual_ml"),
    "Ours": ("leap_ml", "leap_mix"),
    "Even spacing": ("uniform@even", "lambda_ml@even"),
}
"""Who competes, by groups as in the tables; of the last three nothing is published."""

COMPETING = tuple(policy for group in GROUPS.values() for policy in group)
BANDITS = tuple(name for name in COMPETING if name.startswith("kab"))


def at(rows: dict[str, tuple[float, ...]], policy: str, budget: float) -> float | None:
    """The published figure of a policy at a budget, if there is one.

    >>> at(CLICKS, "lambda_ml", 0.5), at(CLICKS, "leap_ml", 0.5), at(CLICKS, "uniform", 0.01)
    (0.9424, None, None)
    """
    return rows[policy][BUDGETS.index(budget)] if policy in rows and budget in BUDGETS else None


def group_of(policy: str) -> str:
    """The group in which a policy stands.

    >>> group_of("nu_h")
    'History'
    """
    return next(group for group, names in GROUPS.items() if policy in names)
