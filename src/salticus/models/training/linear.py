"""Fitting the baselines: a line through logarithms of frequencies, or a prior for Gamma rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from salticus.features.names import FeatureSet
from salticus.models.linear import GAMMA, LinearModel, gamma_evidence, gamma_logits, straight
from salticus.types import Bools, Examples, Floats, Metadata

_GENTLEST = 1e-3  # slope of a single feature: it may not be turned round
_ENOUGH = 200_000  # rows that tell a prior of three numbers


@dataclass(frozen=True, slots=True)
class LinearSettings:
    """Which baseline (`predict.linear.NAMES`, or a feature), and the ends of the stretches, hours.

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
        return np.full(len(mean), _GENTLEST), np.full(len(mean), _GENTLEST) * mean, _mean_odds(y)
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


def _mean_odds(y: Bools) -> float:
    rate = (y.sum() + 0.5) / (len(y) + 1.0)
    return float(np.log(rate / (1.0 - rate)))


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
