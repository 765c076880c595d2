"""The baselines: change frequencies as they are, in a line together, or as a Gamma posterior.

Lines are fitted by scikit-learn, which is imported where it is used: scoring needs NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from salticus.features.names import FeatureSet
from salticus.types import Bools, Examples, Floats, Floats32, Inputs, Metadata
from salticus.types.state import State

_WINDOWS = ("day", "week", "month", "recent")
HAN2019 = tuple(f"{group}_{window}" for group in ("page", "category") for window in _WINDOWS)
"""The single-feature models of Han 2019, Table 2."""

COMBINED, GAMMA, RULE = "combined", "gamma", "rule"
NAMES = (*HAN2019, COMBINED, GAMMA, RULE)

_GENTLEST = 1e-3  # slope of a single feature: it may not be turned round
_ENOUGH = 200_000  # rows that tell a prior of three numbers
_LEAST = 1e-5  # changes an hour, below which rates are alike: one in eleven years


def columns_of(which: str) -> tuple[str, ...]:
    """The features that a baseline reads; any other name is a feature by itself."""
    return {
        COMBINED: HAN2019,
        GAMMA: ("page_changes", "page_age", "page_rate", "page_month"),
        RULE: ("merchant_weekday", "page_month"),
    }.get(which, (which,))


def straight(inputs: Inputs, which: str) -> Floats:
    """What a line is fitted to: logarithms that rise with the change rate, NaN where unknown."""
    columns = [_log(inputs.column(name), name) for name in columns_of(which)]
    out = np.stack(columns, axis=1)
    return out.sum(axis=1, keepdims=True) if which == RULE else out


def _log(column: Floats32, name: str) -> Floats:
    wide = np.maximum(column.astype(np.float64), 0.0)
    return -np.log1p(wide) if name.endswith("recent") else np.log(wide + _LEAST)


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A baseline of Han 2019 §4.3.1: P from one frequency, or from several in a line.

    `slope` is horizons × columns, `intercept` of each horizon; `unknown` is horizons × columns:
    what a column adds where it is not known. Of one column the slope is positive, so that the
    order of the pages, and the AUC, is the feature's own. The Gamma baseline has a `prior` instead
    (changes, hours, and the memory in hours) and `edges`, the ends of the stretches in hours.
    """

    kind: ClassVar[str] = "frequency"
    which: str
    edges: tuple[int, ...]
    slope: Floats
    unknown: Floats
    intercept: Floats
    prior: Floats

    def logits(self, inputs: Inputs, metadata: Metadata) -> Floats:
        if self.which == GAMMA:
            return gamma_logits(gamma_evidence(inputs), self.prior, self.edges)
        x = straight(inputs, self.which)
        out = np.tile(self.intercept, (len(inputs), 1))
        for at in range(x.shape[1]):  # column by column: a row's sum is the same in any company
            column = x[:, at, None]
            out += np.where(np.isnan(column), self.unknown[:, at], self.slope[:, at] * column)
        return out

    def settings(self) -> dict[str, Any]:
        return {"which": self.which, "edges": list(self.edges)}

    def arrays(self) -> State:
        return {name: getattr(self, name) for name in ("slope", "unknown", "intercept", "prior")}

    @classmethod
    def of(cls, settings: dict[str, Any], arrays: State) -> Self:
        return cls(settings["which"], tuple(settings["edges"]), **arrays)


def gamma_evidence(inputs: Inputs) -> tuple[Floats, Floats]:
    """Changes and hours of each page: (0, 0) where nothing is known.

    Visits miss what changes twice between them. The month's rate by Cho & Garcia-Molina (2003),
    `page_rate`, over the rate as found says by how much; all changes found are scaled up by it.
    """
    columns = (inputs.column(name).astype(np.float64) for name in columns_of(GAMMA))
    changes, age, rate, found = columns
    with np.errstate(divide="ignore", invalid="ignore"):
        missed = np.where(found > 0, rate / found, 1.0)
    missed = np.where(np.isfinite(missed), np.clip(missed, 1.0, 24.0), 1.0)
    known = ~np.isnan(changes) & ~np.isnan(age)
    return np.where(known, changes * missed, 0.0), np.where(known, age, 0.0)


def gamma_logits(evidence: tuple[Floats, Floats], prior: Floats, edges: tuple[int, ...]) -> Floats:
    """Rows × horizons, from S(u) = (b/(b+u))^a with the posterior Gamma(a, b) of each page.

    a and b are the prior's and the page's changes and hours, of which no more than the memory
    counts (ALGORITHMS §5).
    """
    (changes, hours), (a0, b0, memory) = evidence, prior
    kept = memory / np.maximum(hours, memory)
    a, b = a0 + kept * changes, b0 + kept * hours
    ends = np.array((0, *edges), dtype=np.float64)
    stays = -a[:, None] * np.log1p(ends / b[:, None])  # ln S
    risk = np.maximum(stays[:, :-1] - stays[:, 1:], 1e-12)  # -ln(1 - p)
    return np.asarray(np.log(np.expm1(np.minimum(risk, 700.0))))


# ---------------------------------------------------------------------------------------- fitting


@dataclass(frozen=True, slots=True)
class LinearSettings:
    """Which baseline (`NAMES`, or a feature), and the ends of the stretches, hours.

    `l2` is the strength of the pull of standardised coefficients to zero, in examples.
    """

    which: str = "combined"
    edges: tuple[int, ...] = (6,)
    l2: float = 1.0


def fit_linear(  # noqa: PLR0913 the form that all models share
    train: Examples,
    validation: Examples,
    metadata: Metadata,
    choice: FeatureSet,
    settings: LinearSettings,
    told: Callable[[str], object] = lambda step: None,
) -> LinearModel:
    """The baseline; metadata, choice and the validation examples play no part in it."""
    told(f"fitting {settings.which}")
    horizons = train.label.shape[1]
    if settings.which == GAMMA:
        none = np.zeros((horizons, 0))
        prior = fit_prior(train, settings.edges)
        return LinearModel(GAMMA, settings.edges, none, none, np.zeros(horizons), prior)
    x = straight(train.inputs, settings.which)
    lines = [_line(x, train, horizon, settings.l2) for horizon in range(horizons)]
    slope, unknown, intercept = (np.array(part) for part in zip(*lines, strict=True))
    return LinearModel(settings.which, settings.edges, slope, unknown, intercept, np.empty(0))


def _line(x: Floats, train: Examples, horizon: int, l2: float) -> tuple[Floats, Floats, float]:
    """Slopes, what is added where a column is unknown, and the intercept."""
    from sklearn.linear_model import LogisticRegression

    risk = (train.label[:, horizon] >= 0) & (train.weight > 0)
    y, weight = train.label[risk, horizon] == 1, train.weight[risk]
    known = ~np.isnan(x[risk])
    mean, scale = _standard(x[risk], known)
    if not y.any() or y.all():
        gentle, rate = np.full(len(mean), _GENTLEST), (y.sum() + 0.5) / (len(y) + 1.0)
        return gentle, gentle * mean, float(np.log(rate / (1.0 - rate)))
    columns = np.hstack([np.where(known, (x[risk] - mean) / scale, 0.0), ~known])
    model = LogisticRegression(C=1.0 / l2, max_iter=1000, tol=1e-8)
    model.fit(columns, y, weight / weight.mean())
    slope, absent = np.split(model.coef_[0], 2)
    slope = np.maximum(slope, _GENTLEST) if len(slope) == 1 else slope
    slope = slope / scale
    return slope, slope * mean + absent, float(model.intercept_[0] - slope @ mean)


def _standard(x: Floats, known: Bools) -> tuple[Floats, Floats]:
    """Mean and spread of what is known in each column; 0 and 1 where nothing is."""
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, x, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, x - mean, 0.0) ** 2).sum(axis=0) / count)
    return mean, np.where(spread > 0, spread, 1.0)


def fit_prior(train: Examples, edges: tuple[int, ...]) -> Floats:
    """Changes, hours and memory in hours of the prior under which the labels are likeliest.

    Empirical Bayes (ALGORITHMS §5): what a page without a past does, and how fast a past fades.
    """
    from scipy.optimize import minimize

    step = max(1, len(train) // _ENOUGH)
    part = train.take(np.arange(0, len(train), step))
    evidence = gamma_evidence(part.inputs)
    weight = (part.label >= 0) * part.weight[:, None]
    happened = part.label == 1

    def loss(logs: Floats) -> float:
        odds = gamma_logits(evidence, np.exp(np.clip(logs, -12.0, 12.0)), edges)
        unlikely = np.logaddexp(0.0, np.where(happened, -odds, odds))
        return float((weight * unlikely).sum() / max(weight.sum(), 1e-300))

    start = np.log([0.5, 100.0, 1000.0])
    found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-9})
    return np.asarray(np.exp(np.clip(found.x, -12.0, 12.0)))
