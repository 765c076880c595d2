"""Growing boosted trees: one forest a horizon, stopped early by later examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from salticus.features.names import FeatureSet
from salticus.models.training.boosting import RiskRows, TreesSettings, forest_of, grow
from salticus.models.trees import Derived, Encoding, Forest, TreesModel, dense_frame
from salticus.types import Bools, Examples, Floats, Floats32, Ints, Ints32, Metadata
from salticus.types.coins import coins

PAIRS: tuple[tuple[str, ...], ...] = (
    ("ratio", "page_month", "all_month"),
    ("ratio", "merchant_month", "all_month"),
    ("ratio", "merchant_week", "merchant_month"),
    ("ratio", "merchant_day", "merchant_month"),
    ("ratio", "brand_month", "merchant_month"),
    ("ratio", "all_day", "all_month"),
    ("ratio", "all_week", "all_month"),
    ("ratio", "page_recent", "page_gap"),
    *(
        (f"drawn_{window}", f"page_{window}", "page_age", "merchant_month", "shelf_month")
        for window in ("week", "month", "all")
    ),
)
"""What is taken in relation: rates to the level of the merchant and of all pages, which moves with
the season, and a page's rate drawn to that of its kind by how long it is known."""

PACED = ("week", "month", "all")
"""Windows whose drawn rate is also laid over the hours ahead, as the merchant's week runs."""


def fit_trees(  # noqa: PLR0913 the form that all models share
    train: Examples,
    validation: Examples,
    metadata: Metadata,
    choice: FeatureSet,
    settings: TreesSettings,
    told: Callable[[str], object] = lambda step: None,
) -> TreesModel:
    """Boosted trees for every horizon of the examples; the same every time.

    Training examples get target encodings that their own page took no part in (`out_of_fold`); the
    validation examples, and all that the model scores later, get those of all training pages.
    """
    fields = (*choice.fields(metadata), *(("title",) if choice.titled(metadata) else ()))
    sums = totals(train, len(metadata))
    encoding = encode(sums, metadata, fields, smoothing=settings.smoothing)
    empty = TreesModel(choice.dense, _pairs(choice.dense) if settings.pairs else (), encoding, ())
    signs = _signs(empty, settings)
    forests = []
    for horizon, (own, later) in enumerate(_tables((train, validation), metadata, empty, settings)):
        told(f"trees for horizon {horizon + 1} of {train.label.shape[1]}")
        forests.append(_forest(own, later, signs, settings))
    return replace(empty, forests=tuple(forests))


def refit_trees(
    model: TreesModel,
    parts: tuple[Examples, Examples],
    metadata: Metadata,
    settings: TreesSettings,
    told: Callable[[str], object] = lambda step: None,
) -> TreesModel:
    """The model grown anew on both parts together, as big as it was or `fewest` trees.

    The validation examples have told how many trees there should be, and what log-odds are worth: a
    curve that was learnt for `model` serves for this too. So that the latest days are not drowned,
    there are at most twice as many training examples as validation examples, or half a million.
    """
    train, validation = parts
    parts = _some(train, max(2 * len(validation), _ENOUGH), settings.seed), validation
    signs = _signs(model, settings)
    forests = []
    for horizon, (own, later) in enumerate(_tables(parts, metadata, model, settings)):
        told(f"trees for horizon {horizon + 1} of {len(model.forests)}, with the latest examples")
        size = len(model.forests[horizon].root)
        if not size:  # nothing to learn from, or nothing learnt
            forests.append(model.forests[horizon])
            continue
        kept = _kept(own.x, later.x, settings.drift)
        grown = replace(settings, trees=min(settings.trees, max(size, settings.fewest)))
        nothing = later.take(np.arange(0))
        forests.append(_forest_of(own.join(later), nothing, kept, (signs, grown)))
    return replace(model, forests=tuple(forests))


def _some(examples: Examples, most: int, seed: int) -> Examples:
    """So many of the examples at most, drawn at random: every n-th would favour some pages."""
    if len(examples) <= most:
        return examples
    return examples.take(np.sort(np.random.default_rng(seed).permutation(len(examples))[:most]))


def _tables(
    parts: tuple[Examples, Examples], metadata: Metadata, model: TreesModel, settings: TreesSettings
) -> Iterator[tuple[RiskRows, RiskRows]]:
    """For each horizon the training and the validation rows at risk."""
    train, validation = parts
    frames = [
        dense_frame(part.inputs.dense, part.inputs.names, model.dense, model.pairs)
        for part in parts
    ]
    sums, names = totals(train, len(metadata)), model.encoding.names
    apart = out_of_fold(sums, metadata, names, smoothing=settings.smoothing, folds=settings.folds)
    for horizon in range(train.label.shape[1]):
        full = model.encoding.columns(metadata, horizon)
        own = _rows(train, frames[0], apart[horizon], horizon)
        later = _rows(validation, frames[1], full, horizon)
        if not settings.weighted:
            own, later = (replace(rows, weight=np.ones(len(rows))) for rows in (own, later))
        yield own, later


def _pairs(dense: tuple[str, ...]) -> Derived:
    """What can be derived of these features."""
    ahead = [name for name in dense if name.startswith("merchant_ahead_")]
    drawn = {pair[0].removeprefix("drawn_"): pair[1:] for pair in PAIRS if pair[0][:5] == "drawn"}
    paced = [(f"paced_{w}", *drawn[w], name) for w in PACED for name in ahead]
    return tuple(pair for pair in (*PAIRS, *paced) if set(pair[1:]) <= set(dense))


def _rows(examples: Examples, frame: Floats32, encoded: Floats32, horizon: int) -> RiskRows:
    """The examples at risk, their features and encodings; weights are 1 in the mean."""
    label = examples.label[:, horizon]
    risk = np.flatnonzero(label >= 0)
    x = np.hstack([frame[risk], encoded[examples.inputs.page[risk]]])
    weight = examples.weight[risk]
    mean = weight.sum() / max(1, len(weight)) or 1.0
    return RiskRows(x, label[risk].astype(np.float64), weight / mean)


_RATES = ("_hours", "_day", "_week", "_month", "_all", "_rate", "_weekday", "_hour", "_changes")
_GROUPS = ("page", "category", "merchant", "host", "brand", "shelf", "all")


def _sign(name: str) -> int:
    """1 for a feature with which the probability may only rise, -1 if it may only fall.

    Rates of the past hold good in a quieter season; what a free tree finds in them does not.
    """
    group = name.partition("_")[0]
    if name in ("page_recent", "page_gap"):
        return -1
    return int(group in _GROUPS and (name.endswith(_RATES) or "_ahead_" in name))


def _signs(model: TreesModel, settings: TreesSettings) -> list[int]:
    """Of each column; what is derived has the sign of its first feature, an encoding rises."""
    first = (*model.dense, *(pair[1] for pair in model.pairs))
    signs = [*(_sign(name) for name in first), *(1 for _ in model.encoding.names)]
    return [sign * settings.monotone for sign in signs]


_RAREST = 1e-6  # a rate of nothing or all has no log-odds
_ENOUGH = 500_000  # examples for some hundred trees
_SAMPLE = 20_000  # rows that tell whether a feature has moved away


def _forest(own: RiskRows, later: RiskRows, signs: list[int], settings: TreesSettings) -> Forest:
    """The forest of a horizon; without trees where all examples are alike."""
    if len(own) == 0 or own.y.min() == own.y.max():
        rate = (own.y.sum() + 0.5) / (len(own) + 1.0)
        return forest_of([], float(np.log(rate / (1 - rate))))
    return _forest_of(own, later, _kept(own.x, later.x, settings.drift), (signs, settings))


def _forest_of(
    own: RiskRows, later: RiskRows, kept: Ints, how: tuple[list[int], TreesSettings]
) -> Forest:
    """The forest that grows of the columns `kept`."""
    signs, settings = how
    own, later = (replace(rows, x=rows.x[:, kept]) for rows in (own, later))
    forest = grow(own, later, [signs[at] for at in kept], settings)
    return replace(forest, feature=kept[forest.feature].astype(np.uint32))


def _kept(own: Floats32, later: Floats32, drift: float) -> Ints:
    """The columns that trees may split on.

    Not one without a known number, over which scikit-learn stumbles, nor one that has moved away
    since training, as the age of pages does: it would tell the season, not the page.
    """
    known = [not np.isnan(column).all() for column in own.T]
    rows, others = (x[:: max(1, len(x) // _SAMPLE)] for x in (own, later))
    still = [_distance(a, b) <= drift for a, b in zip(rows.T, others.T, strict=True)]
    kept = np.flatnonzero(np.array(known) & np.array(still))
    return kept if len(kept) else np.flatnonzero(known)


def _distance(one: Floats32, other: Floats32) -> float:
    """Kolmogorov's: the largest gap between two distributions, the unknown apart; 0 if one is none.

    >>> _distance(np.array([1.0, 2.0, np.nan]), np.array([2.0, 3.0]))
    0.5
    """
    one, other = (np.sort(column[~np.isnan(column)]) for column in (one, other))
    if not len(one) or not len(other):
        return 0.0
    at = np.concatenate([one, other])
    below = [np.searchsorted(column, at, side="right") / len(column) for column in (one, other)]
    return float(np.abs(below[0] - below[1]).max())


# ---------------------------------------------------------------------------------- target encoding


@dataclass(frozen=True, slots=True)
class Totals:
    """Over pages: weight of the examples at risk, and of those with the event; × horizons."""

    trials: Floats
    hits: Floats

    def of(self, pages: Bools) -> Totals:
        """As if the other pages had no examples."""
        return Totals(self.trials * pages[:, None], self.hits * pages[:, None])


def totals(examples: Examples, pages: int) -> Totals:
    """Sums over the examples of each of so many pages."""
    page, label = examples.inputs.page, examples.label
    trials = [_sums(page, examples.weight * (column >= 0), pages) for column in label.T]
    hits = [_sums(page, examples.weight * (column == 1), pages) for column in label.T]
    return Totals(np.stack(trials, axis=1), np.stack(hits, axis=1))


def _sums(at: Ints | Ints32, weight: Floats, size: int) -> Floats:
    return np.bincount(at, weights=weight, minlength=size).astype(np.float64)


def encode(
    sums: Totals, metadata: Metadata, names: tuple[str, ...], *, smoothing: float
) -> Encoding:
    """The log-odds of each code and word: as if `smoothing` average pages at the mean rate had it.

    Examples of one page are alike, so that pages are what is counted. A code of which there is no
    example gets the mean. "title" among the names stands for the words.
    """
    fields = tuple(name for name in names if name != "title")
    sizes = tuple(metadata.sizes[metadata.fields.index(field)] for field in fields)
    columns = [metadata.codes[:, [metadata.fields.index(field)]] for field in fields]
    buckets = metadata.buckets if "title" in names else 0
    tables, words = [], []
    for trials, hits in zip(sums.trials.T, sums.hits.T, strict=True):
        told = trials, hits, smoothing * trials.sum() / max(1, np.count_nonzero(trials))
        codes = [_odds(told, c, n) for c, n in zip(columns, sizes, strict=True)]
        tables.append(np.concatenate([np.empty(0), *codes]))
        words.append(_odds(told, metadata.words, buckets))
    return Encoding(
        fields, sizes, np.stack(tables).astype(np.float32), np.stack(words).astype(np.float32)
    )


def _odds(told: tuple[Floats, Floats, float], codes: Ints32, size: int) -> Floats:
    """Log-odds of each of so many codes; `told` are trials, hits (over pages) and prior weight."""
    if not size:
        return np.empty(0)
    trials, hits, prior = told
    mean = hits.sum() / trials.sum() if trials.sum() > 0 else 0.5
    page, at = np.nonzero(codes >= 0)
    code = codes[page, at]
    trials, hits = (_sums(code, column[page], size) for column in (trials, hits))
    weight = trials + prior
    shrunk = (hits + mean * prior) / np.where(weight > 0, weight, 1.0)
    rate = np.clip(np.where(weight > 0, shrunk, mean), _RAREST, 1 - _RAREST)
    return np.asarray(np.log(rate / (1 - rate)))


def out_of_fold(
    sums: Totals, metadata: Metadata, names: tuple[str, ...], *, smoothing: float, folds: int = 5
) -> list[Floats32]:
    """Of each horizon: pages × columns. Law: a page's own labels do not move its row."""
    fold = (coins(0, np.arange(len(metadata)), folds) * folds).astype(np.int64)
    shape = len(metadata), len(names)
    out = [np.empty(shape, np.float32) for _ in range(sums.hits.shape[1])]
    for one in range(folds):
        others = encode(sums.of(fold != one), metadata, names, smoothing=smoothing)
        for horizon, columns in enumerate(out):
            columns[fold == one] = others.columns(metadata.take(fold == one), horizon)
    return out
