"""Learning what a model's log-odds are worth, from examples later than those it was trained on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from salticus.models.model import Calibrated, Curve, Model, sigmoid
from salticus.types import Examples, Floats, Ints, Metadata
from salticus.types.coins import coins

_BINS = 200  # of equal numbers of examples, before they are put in order
_FOLDS = 5
_FLAT = 1e-3  # the least slope


def calibrate(
    model: Model, validation: Examples, metadata: Metadata, *, method: str = "best"
) -> Calibrated:
    """The model with a curve for each horizon.

    The weight of an example undoes how it was sampled, so that the probabilities are those of all
    rows that might have been drawn. `method` is platt, isotonic, none or best: whichever of the
    first two predicts the days that it was not fitted on with the smaller log loss.
    """
    if method == "none" or not len(validation):
        return Calibrated(model, (Curve(),) * validation.label.shape[1])
    logits = model.logits(validation.inputs, metadata)
    fold = _folds(validation)
    curves = []
    for horizon, z in enumerate(logits.T):
        risk = (validation.label[:, horizon] >= 0) & (validation.weight > 0)
        y = (validation.label[risk, horizon] == 1).astype(np.float64)
        weight = validation.weight[risk]
        curves.append(fit_curve(z[risk], y, weight, method=method, fold=fold[risk]))
    return Calibrated(model, tuple(curves))


def fit_curve(logits: Floats, y: Floats, weight: Floats, *, method: str, fold: Ints) -> Curve:
    """The curve of one horizon; `fold` parts the examples where the best method is looked for."""
    if not len(y):
        return Curve()
    weight = weight / weight.mean()
    if method == "best":
        losses = {name: _loss_apart(fit, logits, y, weight, fold) for name, fit in _FITS.items()}
        method = min(losses, key=losses.__getitem__)
    return _FITS[method](logits, y, weight)


def platt(logits: Floats, y: Floats, weight: Floats) -> Curve:
    """Slope and intercept of the largest likelihood, by Newton's steps.

    A prior as strong as a few examples pulls them to 1 and 0, so that they are finite where all
    labels are alike. The slope stays positive: a useless model is flat, never turned round.
    """
    x = np.column_stack([logits, np.ones(len(logits))])
    start, pull = np.array([1.0, 0.0]), np.array([1.0, 0.01])

    def loss(beta: Floats) -> float:
        odds = x @ beta
        prior = 0.5 * pull @ (beta - start) ** 2
        return float(weight @ (np.logaddexp(0.0, odds) - y * odds) + prior)

    beta, now = start, loss(start)
    for _ in range(100):
        p = sigmoid(x @ beta)
        slope = x.T @ (weight * (p - y)) + pull * (beta - start)
        curve = (x.T * (weight * p * (1 - p))) @ x + np.diag(pull)
        step = np.linalg.solve(curve, slope)
        while (then := loss(beta - step)) > now and np.abs(step).max() > 1e-10:
            step = step / 2.0
        beta, now = beta - step, then
        if np.abs(step).max() < 1e-9:
            break
    if beta[0] < _FLAT:
        return Curve("platt", _FLAT, float(_odds(y @ weight, weight.sum())))
    return Curve("platt", float(beta[0]), float(beta[1]))


def _odds(hits: Floats, trials: Floats) -> Floats:
    """Log-odds, inside what so many trials could tell."""
    rate = np.clip(hits / trials, 0.5 / (trials + 1.0), 1.0 - 0.5 / (trials + 1.0))
    return np.asarray(np.log(rate / (1.0 - rate)))


def isotonic(logits: Floats, y: Floats, weight: Floats) -> Curve:
    """Pooled adjacent violators over bins of equal size; straight lines between the pools' means.

    The lines keep the order of the rows within a pool, so that no AUC is lost.
    """
    from scipy.optimize import isotonic_regression

    line = platt(logits, y, weight)
    edges = np.unique(np.quantile(logits, np.linspace(0, 1, _BINS + 1)[1:-1]))
    _, bins = np.unique(np.searchsorted(edges, logits), return_inverse=True)  # without a gap
    trials, hits, place = (
        np.bincount(bins, weights=column).astype(np.float64)
        for column in (weight, weight * y, weight * logits)
    )
    pools = isotonic_regression(hits / trials, weights=trials).blocks[:-1]
    trials, hits, place = (np.add.reduceat(column, pools) for column in (trials, hits, place))
    odds = np.maximum.accumulate(_odds(hits, trials))
    return Curve("isotonic", line.slope, line.intercept, place / trials, odds)


Fit = Callable[[Floats, Floats, Floats], Curve]
_FITS: dict[str, Fit] = {"platt": platt, "isotonic": isotonic}


def _loss_apart(fit: Fit, logits: Floats, y: Floats, weight: Floats, fold: Ints) -> float:
    """Log loss of every fold under the curve of the others."""
    total = 0.0
    for one in np.unique(fold):
        out = fold == one
        others = out if out.all() else ~out
        curve = fit(logits[others], y[others], weight[others])
        p = sigmoid(curve(logits[out]))
        total -= weight[out] @ np.where(y[out] == 1, np.log(p), np.log1p(-p))
    return float(total)


def _folds(examples: Examples) -> Ints:
    """Days one after the other, in equal parts; of a single day, pages by their hash."""
    days, day = np.unique(examples.inputs.hour // 24, return_inverse=True)
    if len(days) == 1:
        return (coins(0, examples.inputs.page, _FOLDS) * _FOLDS).astype(np.int64)
    return np.asarray(day * min(_FOLDS, len(days)) // len(days))
