"""Growing boosted trees: one forest a horizon, stopped early by later examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from salticus.errors import ConfigError
from salticus.features.names import FeatureSet
from salticus.models.training.encoding import encode, out_of_fold, totals
from salticus.models.training.lightgbm import grow_lightgbm
from salticus.models.trees import Derived, Forest, TreesModel, dense_frame
from salticus.types import Examples, Floats, Floats32, Inputs, Ints, Metadata

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


@dataclass(frozen=True, slots=True)
class TreesSettings:
    """How the trees are grown.

    At most `trees` of `leaves` leaves and `depth` steps, each adding `rate` of what it would; a
    leaf has at least `least` examples; every split looks at a `share` of the features. Growing ends
    after `patience` trees that do not improve the log loss of the validation examples, and the best
    number of trees is kept. `smoothing`: pages at the mean rate that each code is thought to have.
    `monotone`: with rates the probability may only rise, with the time since a change only fall.
    `pairs`: ratios and products of features besides (`PAIRS`). A feature whose distribution moved
    by more than `drift` (Kolmogorov's distance) from training to validation is left out. `weighted`
    examples count by their weight; else one each, and calibration puts the level right. `refit`:
    once calibrated, the trees are grown anew with the validation examples (`refit_trees`), and are
    `fewest` then if they were fewer: days unlike those before them stop the growing early, but the
    trees that have learnt from those days too can be more.
    `engine`: sklearn, or lightgbm if that is installed.
    """

    trees: int = 300
    rate: float = 0.06
    leaves: int = 15
    depth: int = 6
    least: int = 200
    l2: float = 10.0
    share: float = 0.5
    patience: int = 30
    smoothing: float = 20.0
    folds: int = 5
    monotone: bool = True
    pairs: bool = True
    drift: float = 0.65
    weighted: bool = False
    refit: bool = True
    fewest: int = 100
    engine: str = "sklearn"
    seed: int = 0


class RiskRows(NamedTuple):
    """Examples at risk of one horizon."""

    x: Floats32
    y: Floats
    weight: Floats


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
    grow = _engine(settings.engine)
    fields = _fields(choice, metadata)
    sums = totals(train, len(metadata))
    encoding = encode(sums, metadata, fields, smoothing=settings.smoothing)
    pairs = _pairs(choice.dense) if settings.pairs else ()
    empty = TreesModel(choice.dense, pairs, encoding, ())
    signs = [sign * settings.monotone for sign in _signs(choice.dense, pairs, encoding.names)]
    forests = []
    for horizon, (own, later) in enumerate(_tables((train, validation), metadata, empty, settings)):
        told(f"trees for horizon {horizon + 1} of {train.label.shape[1]}")
        forests.append(_forest(grow, own, later, signs, settings))
    return replace(empty, forests=tuple(forests))


def refit_trees(
    model: TreesModel,
    parts: tuple[Examples, Examples],
    metadata: Metadata,
    settings: TreesSettings,
    told: Callable[[str], object] = lambda step: None,
) -> TreesModel:
    """The model grown anew on training and validation examples together, as big as it was or
    `fewest` trees.

    What is to be foretold comes after both. The validation examples have told how many trees there
    should be, and what log-odds are worth: a curve that was learnt for `model` serves for this too.
    So that the latest days are not drowned, there are at most twice as many training examples as
    validation examples, or half a million.
    """
    train, validation = parts
    parts = _some(train, max(2 * len(validation), _ENOUGH), settings.seed), validation
    grow = _engine(settings.engine)
    names = model.encoding.names
    signs = [s * settings.monotone for s in _signs(model.dense, model.pairs, names)]
    forests = []
    for horizon, (own, later) in enumerate(_tables(parts, metadata, model, settings)):
        told(f"trees for horizon {horizon + 1} of {len(model.forests)}, with the latest examples")
        size = len(model.forests[horizon].root)
        if not size:  # nothing to learn from, or nothing learnt
            forests.append(model.forests[horizon])
            continue
        both = _joined(own, later)
        nothing = RiskRows(both.x[:0], both.y[:0], both.weight[:0])
        kept = _kept(own.x, later.x, settings.drift)
        grown = replace(settings, trees=min(settings.trees, max(size, settings.fewest)))
        forests.append(_forest_of(grow, both, nothing, kept, (signs, grown)))
    return replace(model, forests=tuple(forests))


def _some(examples: Examples, most: int, seed: int) -> Examples:
    """So many of the examples at most, drawn at random: every n-th would favour some pages."""
    if len(examples) <= most:
        return examples
    return examples.take(np.sort(np.random.default_rng(seed).permutation(len(examples))[:most]))


def _tables(
    parts: tuple[Examples, Examples],
    metadata: Metadata,
    model: TreesModel,
    settings: TreesSettings,
) -> Iterator[tuple[RiskRows, RiskRows]]:
    """For each horizon the training and the validation rows at risk."""
    train, validation = parts
    frames = [_frame(part.inputs, model.dense, model.pairs) for part in parts]
    apart = out_of_fold(
        totals(train, len(metadata)),
        metadata,
        model.encoding.names,
        smoothing=settings.smoothing,
        folds=settings.folds,
    )
    for horizon in range(train.label.shape[1]):
        full = model.encoding.columns(metadata, horizon)
        own = _rows(train, frames[0], apart[horizon], horizon)
        later = _rows(validation, frames[1], full, horizon)
        yield (own, later) if settings.weighted else (_equal(own), _equal(later))


def _fields(choice: FeatureSet, metadata: Metadata) -> tuple[str, ...]:
    """The chosen fields that there are; every level of a category path is one of its own."""
    wanted = (*choice.metadata,)
    own = (f for f in metadata.fields if f in wanted or f.rpartition("_")[0] in wanted)
    title = "title" in wanted and metadata.words.shape[1] > 0
    return (*(f for f in own if f != "title"), *(("title",) if title else ()))


def _pairs(dense: tuple[str, ...]) -> Derived:
    """What can be derived of these features."""
    ahead = [name for name in dense if name.startswith("merchant_ahead_")]
    drawn = {pair[0].removeprefix("drawn_"): pair[1:] for pair in PAIRS if pair[0][:5] == "drawn"}
    paced = [(f"paced_{w}", *drawn[w], name) for w in PACED for name in ahead]
    return tuple(pair for pair in (*PAIRS, *paced) if set(pair[1:]) <= set(dense))


def _frame(inputs: Inputs, dense: tuple[str, ...], pairs: Derived) -> Floats32:
    return dense_frame(inputs.dense, inputs.names, dense, pairs)


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


def _signs(dense: tuple[str, ...], pairs: Derived, encoded: tuple[str, ...]) -> list[int]:
    """Of each column; what is derived has the sign of its first feature, an encoding rises."""
    return [*(_sign(n) for n in dense), *(_sign(pair[1]) for pair in pairs), *(1 for _ in encoded)]


_ENOUGH = 500_000  # examples for some hundred trees
_SAMPLE = 20_000  # rows that tell whether a feature has moved away
_FEW = 20_000  # rows below which threads wait for one another longer than they work

Grown = tuple[list[Any], float]
Grow = Callable[[RiskRows, RiskRows, list[int], TreesSettings], Grown]


def _joined(one: RiskRows, other: RiskRows) -> RiskRows:
    return RiskRows(
        np.concatenate([one.x, other.x]),
        np.concatenate([one.y, other.y]),
        np.concatenate([one.weight, other.weight]),
    )


def _equal(rows: RiskRows) -> RiskRows:
    """The rows, each counting as much as any."""
    return rows._replace(weight=np.ones(len(rows.y)))


def _forest(
    grow: Grow, own: RiskRows, later: RiskRows, signs: list[int], settings: TreesSettings
) -> Forest:
    """The forest of a horizon; without trees where all examples are alike."""
    if len(own.y) == 0 or own.y.min() == own.y.max():
        rate = (own.y.sum() + 0.5) / (len(own.y) + 1.0)
        return forest_of([], float(np.log(rate / (1 - rate))))
    return _forest_of(grow, own, later, _kept(own.x, later.x, settings.drift), (signs, settings))


def _forest_of(
    grow: Grow, own: RiskRows, later: RiskRows, kept: Ints, how: tuple[list[int], TreesSettings]
) -> Forest:
    """The forest that grows of the columns `kept`."""
    signs, settings = how
    own, later = (rows._replace(x=rows.x[:, kept]) for rows in (own, later))
    forest = forest_of(*grow(own, later, [signs[at] for at in kept], settings))
    return replace(forest, feature=kept[forest.feature].astype(np.uint32))


def _kept(own: Floats32, later: Floats32, drift: float) -> Ints:
    """The columns that trees may split on.

    Not one of which nothing is known: scikit-learn stumbles over it. Not one that has moved away
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


def _engine(name: str) -> Grow:
    try:
        return {"sklearn": _sklearn, "lightgbm": grow_lightgbm}[name]
    except KeyError:
        raise ConfigError(f"engine {name!r}: sklearn or lightgbm") from None


def _sklearn(own: RiskRows, later: RiskRows, signs: list[int], settings: TreesSettings) -> Grown:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    stops = bool(len(later.y))
    model = HistGradientBoostingClassifier(
        max_iter=settings.trees,
        learning_rate=settings.rate,
        max_leaf_nodes=settings.leaves,
        max_depth=settings.depth,
        min_samples_leaf=settings.least,
        l2_regularization=settings.l2,
        max_features=settings.share,
        monotonic_cst=signs,
        early_stopping=stops,
        n_iter_no_change=settings.patience,
        tol=0.0,
        random_state=settings.seed,
    )
    given = (
        {"X_val": later.x, "y_val": later.y, "sample_weight_val": _unless_equal(later.weight)}
        if stops
        else {}
    )
    with threadpool_limits(1 if len(own.y) < _FEW else None):
        model.fit(own.x, own.y, _unless_equal(own.weight), **given)
    best = int(np.argmax(model.validation_score_)) if stops else model.n_iter_
    nodes = [trees[0].nodes for trees in model._predictors[:best]]
    return nodes, float(np.ravel(model._baseline_prediction)[0])


def _unless_equal(weight: Floats) -> Floats | None:
    """Weights, or nothing where all count alike: binning by weight takes forty times as long."""
    return None if (weight == 1.0).all() else weight


def forest_of(trees: list[Any], baseline: float) -> Forest:
    """A forest of trees in scikit-learn's form: arrays of nodes with named columns."""
    laid = [_laid(nodes) for nodes in trees]
    sizes = np.cumsum([0, *(len(tree["value"]) for tree in laid)])

    def column(name: str, kind: Any) -> Any:
        return np.concatenate([np.empty(0), *(tree[name] for tree in laid)]).astype(kind)

    shift = np.repeat(sizes[:-1], np.diff(sizes))
    return Forest(
        feature=column("feature", np.uint32),
        threshold=column("threshold", np.float32),
        unknown_first=column("unknown_first", np.bool_),
        first=(column("first", np.int64) + shift).astype(np.uint32),
        value=column("value", np.float64),
        root=sizes[:-1].astype(np.uint32),
        depth=np.array([tree["depth"].max() for tree in laid], dtype=np.int64),
        baseline=baseline,
    )


def _laid(nodes: Any) -> dict[str, Any]:
    """The nodes in an order in which the two children of a node are neighbours."""
    order, first = [0], []
    for place in order:
        leaf = bool(nodes["is_leaf"][place])
        first.append(len(order))
        order += [] if leaf else [int(nodes["left"][place]), int(nodes["right"][place])]
    leaf = nodes["is_leaf"][order].astype(np.bool_)
    return {
        "feature": np.where(leaf, 0, nodes["feature_idx"][order]),
        "threshold": np.where(leaf, np.inf, _down(nodes["num_threshold"][order])),
        "unknown_first": np.where(leaf, 1, nodes["missing_go_to_left"][order]),
        "first": np.where(leaf, np.arange(len(order)), first),
        "value": nodes["value"][order],
        "depth": nodes["depth"][order],
    }


def _down(threshold: Floats) -> Floats32:
    """The largest narrow floats not above: narrow features compare with them as with the wide."""
    with np.errstate(over="ignore"):
        narrow = threshold.astype(np.float32)
    return np.where(narrow > threshold, np.nextafter(narrow, np.float32(-np.inf)), narrow)
