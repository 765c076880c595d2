"""How good probabilities are: do they rank rightly, and do they mean what they say.

Every figure takes weights: a row that was sampled with probability q stands for 1/q rows.
scikit-learn computes what it has; it is imported where it is used, because that takes a second.
The AUC is our own: it is taken of many small subsets, and theirs takes 5 ms for twenty rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.types import Bools, Floats, Ints

SUBSETS = 20
"""Of the test rows, over which the AUC's mean and standard deviation are taken (Han 2019 §5.1)."""

BINS = 20
"""Of a reliability table."""

_LEAST = 1e-12  # a probability is never taken to be nearer to 0 or 1, so that a loss is finite


def auc(scores: Floats, positive: Bools, weight: Floats | None = None) -> float:
    """Probability that a positive outranks a negative, ties counting half; NaN without both.

    With weights, positives and negatives are drawn in proportion to them.

    >>> auc(np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, False, True, True]))
    0.875
    """
    if not (_weighs(positive, weight) and _weighs(~positive, weight)):
        return float("nan")
    heavy = np.ones(len(scores)) if weight is None else weight
    _, tie = np.unique(scores, return_inverse=True)
    above, below = (np.bincount(tie, np.where(kind, heavy, 0.0)) for kind in (positive, ~positive))
    outranked = np.cumsum(below) - below / 2
    return float(above @ outranked / (above.sum() * below.sum()))


def pr_auc(scores: Floats, positive: Bools, weight: Floats | None = None) -> float:
    """Area under precision against recall, by steps (average precision); NaN without positives.

    A constant score has the share of positives.

    >>> pr_auc(np.array([1.0, 2.0, 3.0]), np.array([False, True, True]))
    1.0
    """
    if not _weighs(positive, weight):
        return float("nan")
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(positive, scores, sample_weight=weight))


def log_loss(probability: Floats, positive: Bools, weight: Floats | None = None) -> float:
    """Mean of -ln(probability given to what came), in nats; NaN without rows.

    >>> round(log_loss(np.array([0.5, 0.5]), np.array([True, False])), 4)
    0.6931
    """
    if not len(probability):
        return float("nan")
    from sklearn.metrics import log_loss as mean_loss

    both = np.clip(np.stack([1.0 - probability, probability], axis=1), _LEAST, 1.0)
    return float(mean_loss(positive, both, sample_weight=weight, labels=[False, True]))


def brier(probability: Floats, positive: Bools, weight: Floats | None = None) -> float:
    """Mean squared distance of the probability from 0 or 1, whichever came; NaN without rows.

    >>> brier(np.array([0.5, 1.0]), np.array([True, True]))
    0.125
    """
    if not len(probability):
        return float("nan")
    from sklearn.metrics import brier_score_loss

    return float(brier_score_loss(positive, probability, sample_weight=weight, pos_label=True))


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Rows of similar probability: what was said of them, and what came."""

    low: float
    high: float
    predicted: float
    observed: float
    share: float  # of all rows
    rows: int


def reliability(
    probability: Floats,
    positive: Bools,
    weight: Floats | None = None,
    *,
    bins: int = BINS,
    equal: str = "count",
) -> list[ReliabilityBin]:
    """What was said and what came, bin by bin; empty bins are left out.

    Bins hold equal shares of the rows (`equal` = "count") or are equally wide ("width"). Where most
    pages hardly ever change, nearly all rows would fall into the first of the equally wide bins,
    so equal shares are ours. Rows of one probability always share a bin, so order means nothing.
    """
    if not len(probability):
        return []
    heavy = np.ones(len(probability)) if weight is None else weight
    if equal == "width":
        place = np.minimum((probability * bins).astype(np.int64), bins - 1)
    else:
        place = _equal_shares(probability, heavy, bins)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    columns = np.stack([heavy, heavy * probability, heavy * positive], axis=1)
    sums = np.add.reduceat(columns[order], starts).tolist()
    low = np.minimum.reduceat(probability[order], starts).tolist()
    high = np.maximum.reduceat(probability[order], starts).tolist()
    counts, total = np.diff(starts, append=len(order)).tolist(), float(heavy.sum())
    return [
        ReliabilityBin(a, b, p / w, y / w, w / total, n)
        for a, b, (w, p, y), n in zip(low, high, sums, counts, strict=True)
        if w > 0
    ]


def calibration_error(table: list[ReliabilityBin]) -> float:
    """Expected calibration error: mean of |said - came| over the rows; NaN without any.

    >>> calibration_error(reliability(np.array([0.2] * 5), np.array([True] + [False] * 4)))
    0.0
    """
    if not table:
        return float("nan")
    return sum(each.share * abs(each.predicted - each.observed) for each in table)


def subset_aucs(
    scores: Floats, positive: Bools, weight: Floats | None = None, *, seed: int = 0
) -> tuple[float, float]:
    """Mean and standard deviation of the AUC over 20 even random subsets (Han 2019 §5.1).

    Subsets without both kinds of rows are left out; NaN if fewer than two are left.
    """
    parts = np.array_split(np.random.default_rng(seed).permutation(len(scores)), SUBSETS)
    heavy = np.ones(len(scores)) if weight is None else weight
    each = np.array([auc(scores[part], positive[part], heavy[part]) for part in parts])
    known = each[~np.isnan(each)]
    if len(known) < 2:
        return float("nan"), float("nan")
    return float(known.mean()), float(known.std(ddof=1))


def _weighs(rows: Bools, weight: Floats | None) -> bool:
    """Whether there are such rows at all, and their weight is not nothing."""
    return bool(rows.any() if weight is None else weight[rows].sum() > 0)


def _equal_shares(probability: Floats, weight: Floats, bins: int) -> Ints:
    """The bin of each row: where the middle of its ties lies among all rows."""
    order = np.argsort(probability, kind="stable")
    starts = np.flatnonzero(np.diff(probability[order], prepend=-1.0))
    sums = np.add.reduceat(weight[order], starts)
    middle = (np.cumsum(sums) - sums / 2) / max(float(sums.sum()), np.finfo(float).tiny)
    bin_of_tie = np.minimum((middle * bins).astype(np.int64), bins - 1)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.repeat(bin_of_tie, np.diff(starts, append=len(order)))
    return place
