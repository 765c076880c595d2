"""What Han et al. (2020) say of their tables and figures, and whether it holds here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from salticus.lab.simulate.compare import paired_gains
from salticus.lab.studies.han2020.crawls import Crawled
from salticus.lab.studies.han2020.figures import arms_at
from salticus.lab.studies.han2020.published import BASE, BUDGETS, GROUPS, STEP_BUDGETS
from salticus.lab.studies.paper import Row, claim

_PAPER = (*GROUPS["Uniform"], *GROUPS["History"], *GROUPS["Predictive models"])
_KAB = GROUPS["Adversarial bandit"]
_NAMES = {"clicks": "clicks", "midnight": "offers"}


def claims_of(crawled: Crawled) -> list[Row]:
    """Every ordering, with the figures at all budgets."""
    budgets = [budget for budget in BUDGETS if (BASE, budget) in crawled]

    def median(policy: str, budget: float, name: str) -> float:
        return float(np.nanmedian(crawled[policy, budget].values(name)))

    compare = _Compare(budgets, median)
    return [
        compare.above("lambda_ml", "lambda_h", "clicks", "Table 5"),
        compare.above("mu_ml", "mu_h", "clicks", "Table 5"),
        compare.above("nu_h", "mu_h", "clicks", "Table 5"),
        compare.extreme("Δ-weighted is worst", ("delta_h", "delta_ml"), "clicks", worst=True),
        compare.extreme("uniform is best", ("uniform",), "midnight", worst=False),
        compare.above("kab5_ml", BASE, "clicks", "Table 5"),
        compare.above("kab5_ml", BASE, "midnight", "Table 6"),
        compare.above("kab3_ml", "kab2_ml", "midnight", "Fig. 6"),
        compare.above("kab3_ml", BASE, "clicks", "Fig. 6"),
        compare.above("leap_ml", "kab5_ml", "clicks", "ours"),
        compare.above("leap_mix", "kab5_ml", "clicks", "ours"),
        *_tight(crawled),
        *_arms(crawled),
    ]


class _Compare:
    """Comparisons of medians at every budget."""

    def __init__(
        self, budgets: Sequence[float], median: Callable[[str, float, str], float]
    ) -> None:
        self.budgets, self.median = budgets, median

    def above(self, high: str, low: str, name: str, source: str) -> Row:
        """Whether a policy is at least as fresh as another."""
        pairs = [(self.median(high, b, name), self.median(low, b, name)) for b in self.budgets]
        told = "; ".join(
            f"{budget:.0%}: {a:.4f} to {b:.4f}"
            for budget, (a, b) in zip(self.budgets, pairs, strict=True)
        )
        what = f"{high} ≥ {low}, {_NAMES[name]}, at every budget"
        return claim(what, source, all(a >= b for a, b in pairs), told)

    def extreme(self, what: str, names: tuple[str, ...], name: str, *, worst: bool) -> Row:
        """Whether one of some policies is the worst, or the best, of its kind of estimates."""
        sign = -1.0 if worst else 1.0
        holds, told = True, []
        for budget in self.budgets:
            for mine in names:
                others = [each for each in _rivals(mine) if each != mine]
                best = max(others, key=lambda p: sign * self.median(p, budget, name))
                figures = self.median(mine, budget, name), self.median(best, budget, name)
                holds &= sign * figures[0] >= sign * figures[1]
                told.append(f"{budget:.0%}: {mine} {figures[0]:.4f}, {best} {figures[1]:.4f}")
        source = "Table 5" if name == "clicks" else "Table 6"
        return claim(f"{what}, {_NAMES[name]}, at every budget", source, holds, "; ".join(told))


def _rivals(policy: str) -> Sequence[str]:
    """Whom a policy is compared with: those of its own estimates, or all."""
    for group in ("History", "Predictive models"):
        if policy in GROUPS[group]:
            return GROUPS[group]
    return (*_PAPER, *_KAB)


def _tight(crawled: Crawled) -> Iterator[Row]:
    """The gain of KAB5 is above 0 at all budgets, and larger below 1 %."""
    for name, shown in _NAMES.items():
        found = {}
        for budget in sorted(budget for policy, budget in crawled if policy == "kab5_ml"):
            pair = crawled["kab5_ml", budget], crawled[BASE, budget]
            found[budget] = float(np.median(paired_gains(*pair, name)[0]))
        told = "; ".join(f"{budget:.2%}: {gain:+.2%}" for budget, gain in found.items())
        above = all(gain > 0 for gain in found.values())
        yield claim(f"KAB5 gains on λ at every budget, {shown}", "Fig. 4", above, told)
        low, high = (
            [g for b, g in found.items() if (b < 0.01) == tight] for tight in (True, False)
        )
        if low:
            more = float(np.mean(low)) > float(np.mean(high))
            told = f"mean gain below 1 %: {np.mean(low):+.2%}; from 1 %: {np.mean(high):+.2%}"
            yield claim(f"KAB5 gains most below 1 %, {shown}", "Fig. 4", more, told)


def _arms(crawled: Crawled) -> Iterator[Row]:
    """λ and μ are drawn more often than at first, μ most often."""
    for budget in (each for each in STEP_BUDGETS if ("kab5_ml", each) in crawled):
        arms = arms_at(crawled["kab5_ml", budget])
        last = dict(zip(arms["names"], arms["chances"][-1], strict=True))
        click, best = last["demand_proportional"], last["lambdacrawl"]
        told = ", ".join(f"{name} {chance:.3f}" for name, chance in last.items())
        even = 1.0 / len(last)
        what = f"at the end, budget {budget:.0%}"
        yield claim(f"λ and μ are above {even:g} {what}", "Fig. 5", min(click, best) > even, told)
        yield claim(f"μ is preferred to λ {what}", "Fig. 5", click > best, told)
