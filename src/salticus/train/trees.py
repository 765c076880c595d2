"""Growing boosted trees: one forest a horizon, stopped early by later examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from salticus.errors import ConfigError
from salticus.features.names import Choice
from salticus.predict.trees import Forest, TreesModel, dense_frame
from salticus.train.encoding import encode, out_of_fold, totals
from salticus.types import Examples, Floats, Floats32, Inputs, Ints, Metadata

PAIRS = (
    ("product", "merchant_weekday", "page_month"),
    ("product", "merchant_weekday", "page_all"),
    ("ratio", "page_month", "all_month"),
    ("ratio", "page_all", "all_month"),
    ("ratio", "merchant_month", "all_month"),
    ("ratio", "page_month", "merchant_month"),
    ("ratio", "merchant_week", "merchant_month"),
    ("ratio", "merchant_day", "merchant_month"),
    ("ratio", "merchant_weekday", "merchant_month"),
    ("ratio", "page_recent", "page_gap"),
)
"""What is taken in relation: a page's rate to the level of its merchant's and of all pages', which
moves with the season, and the published rule merchant's weekday × page's rate."""


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
    examples count by their weight; else one each, and calibration puts the level right.
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
    engine: str = "sklearn"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Rows:
    """Examples at risk of one horizon."""

    x: Floats32
    y: Floats
    weight: Floats


def fit_trees(  # noqa: PLR0913 the form that all models share
    train: Examples,
    validation: Examples,
    metadata: Metadata,
    choice: Choice,
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
    apart = out_of_fold(sums, metadata, fields, smoothing=settings.smoothing, folds=settings.folds)
    pairs = _pairs(choice.dense) if settings.pairs else ()
    frame, later = (_frame(part.inputs, choice.dense, pairs) for part in (train, validation))
    signs = _signs(choice.dense, pairs, encoding.names)
    signs = [sign * settings.monotone for sign in signs]
    forests = []
    for horizon in range(train.label.shape[1]):
        told(f"trees for horizon {horizon + 1} of {train.label.shape[1]}")
        own = _rows(train, frame, apart[horizon], horizon)
        full = encoding.columns(metadata, horizon)
        forests.append(_forest(grow, own, _rows(validation, later, full, horizon), signs, settings))
    return TreesModel(choice.dense, pairs, encoding, tuple(forests))


def _fields(choice: Choice, metadata: Metadata) -> tuple[str, ...]:
    """The chosen fields that there are; every level of a category path is one of its own."""
    wanted = (*choice.metadata,)
    own = (f for f in metadata.fields if f in wanted or f.rpartition("_")[0] in wanted)
    title = "title" in wanted and metadata.words.shape[1] > 0
    return (*(f for f in own if f != "title"), *(("title",) if title else ()))


def _pairs(dense: tuple[str, ...]) -> tuple[tuple[str, str, str], ...]:
    return tuple(pair for pair in PAIRS if pair[1] in dense and pair[2] in dense)


def _frame(
    inputs: Inputs, dense: tuple[str, ...], pairs: tuple[tuple[str, str, str], ...]
) -> Floats32:
    return dense_frame(inputs.dense, inputs.names, dense, pairs)


def _rows(examples: Examples, frame: Floats32, encoded: Floats32, horizon: int) -> _Rows:
    """The examples at risk, their features and encodings; weights are 1 in the mean."""
    label = examples.label[:, horizon]
    risk = np.flatnonzero(label >= 0)
    x = np.hstack([frame[risk], encoded[examples.inputs.page[risk]]])
    weight = examples.weight[risk]
    mean = weight.sum() / max(1, len(weight)) or 1.0
    return _Rows(x, label[risk].astype(np.float64), weight / mean)


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


def _signs(
    dense: tuple[str, ...], pairs: tuple[tuple[str, str, str], ...], encoded: tuple[str, ...]
) -> list[int]:
    """Of each column; a pair has the sign of its first feature, an encoding rises."""
    return [*(_sign(n) for n in dense), *(_sign(one) for _, one, _ in pairs), *(1 for _ in encoded)]


_SAMPLE = 20_000  # rows that tell whether a feature has moved away
_FEW = 20_000  # rows below which threads wait for one another longer than they work

Grown = tuple[list[Any], float]
Grow = Callable[[_Rows, _Rows, list[int], TreesSettings], Grown]


def _forest(
    grow: Grow, own: _Rows, later: _Rows, signs: list[int], settings: TreesSettings
) -> Forest:
    """The forest of a horizon; without trees where all examples are alike."""
    if not settings.weighted:
        own, later = (replace(rows, weight=np.ones(len(rows.y))) for rows in (own, later))
    if len(own.y) == 0 or own.y.min() == own.y.max():
        rate = (own.y.sum() + 0.5) / (len(own.y) + 1.0)
        return forest_of([], float(np.log(rate / (1 - rate))))
    kept = _kept(own.x, later.x, settings.drift)
    own, later = (replace(rows, x=rows.x[:, kept]) for rows in (own, later))
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
        return {"sklearn": _sklearn, "lightgbm": _lightgbm}[name]
    except KeyError:
        raise ConfigError(f"engine {name!r}: sklearn or lightgbm") from None


def _sklearn(own: _Rows, later: _Rows, signs: list[int], settings: TreesSettings) -> Grown:
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
    given = {"X_val": later.x, "y_val": later.y, "sample_weight_val": later.weight} if stops else {}
    with threadpool_limits(1 if len(own.y) < _FEW else None):
        model.fit(own.x, own.y, own.weight, **given)
    best = int(np.argmax(model.validation_score_)) if stops else model.n_iter_
    nodes = [trees[0].nodes for trees in model._predictors[:best]]
    return nodes, float(np.ravel(model._baseline_prediction)[0])


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


def _lightgbm(own: _Rows, later: _Rows, signs: list[int], settings: TreesSettings) -> Grown:
    try:
        import lightgbm
    except ImportError:
        raise ConfigError("engine lightgbm: install lightgbm, or take engine sklearn") from None

    given = {
        "objective": "binary",
        "learning_rate": settings.rate,
        "num_leaves": settings.leaves,
        "max_depth": settings.depth,
        "min_data_in_leaf": settings.least,
        "lambda_l2": settings.l2,
        "feature_fraction_bynode": settings.share,
        "monotone_constraints": signs,
        "deterministic": True,
        "force_row_wise": True,
        "seed": settings.seed,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(own.x, own.y, weight=own.weight)
    checks = [data.create_valid(later.x, later.y, weight=later.weight)] if len(later.y) else []
    stop: list[Callable[..., Any]]
    stop = [lightgbm.early_stopping(settings.patience, verbose=False)] if checks else []
    model = lightgbm.train(given, data, settings.trees, valid_sets=checks, callbacks=stop)
    best = model.best_iteration if checks else settings.trees
    told = model.dump_model(num_iteration=best)["tree_info"]
    return [told_nodes(tree["tree_structure"]) for tree in told], 0.0  # the mean is in tree one


_NODE = [
    ("is_leaf", np.uint8),
    ("feature_idx", np.int64),
    ("num_threshold", np.float64),
    ("missing_go_to_left", np.uint8),
    ("left", np.int64),
    ("right", np.int64),
    ("value", np.float64),
    ("depth", np.int64),
]


def told_nodes(root: dict[str, Any]) -> Any:
    """LightGBM's tree in scikit-learn's form. Where it saw no unknown, it takes 0 for it."""
    queue, rows = [(root, 0)], []
    for node, depth in queue:
        if "leaf_value" in node:
            rows.append((1, 0, 0.0, 0, 0, 0, node["leaf_value"], depth))
            continue
        edge = float(node["threshold"])
        first = node["default_left"] if node["missing_type"] == "NaN" else edge >= 0.0
        left = len(queue)
        queue += [(node["left_child"], depth + 1), (node["right_child"], depth + 1)]
        rows.append((0, node["split_feature"], edge, int(first), left, left + 1, 0.0, depth))
    return np.array(rows, dtype=_NODE)
