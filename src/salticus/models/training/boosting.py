"""Boosted trees as scikit-learn or LightGBM grow them, laid out as our own arrays.

Both are imported where they are used: that takes a second, and LightGBM need not be there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from salticus.errors import ConfigError
from salticus.models.trees import Forest
from salticus.types import Floats, Floats32
from salticus.types.arrays import Columns

_FEW = 20_000  # rows below which threads wait for one another longer than they work
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


@dataclass(frozen=True, slots=True)
class RiskRows(Columns):
    """Examples at risk of one horizon."""

    x: Floats32
    y: Floats
    weight: Floats


Grown = tuple[list[Any], float]
"""Trees, each an array of nodes with named columns as scikit-learn has them, and the baseline."""


def grow(own: RiskRows, later: RiskRows, signs: list[int], settings: TreesSettings) -> Forest:
    """Trees, stopped early by `later` examples if any; `signs` are as in `monotonic_cst`."""
    engine = {"sklearn": _sklearn, "lightgbm": _lightgbm}.get(settings.engine)
    if engine is None:
        raise ConfigError(f"engine {settings.engine!r}: sklearn or lightgbm")
    return forest_of(*engine(own, later, signs, settings))


def _sklearn(own: RiskRows, later: RiskRows, signs: list[int], settings: TreesSettings) -> Grown:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    stops = bool(len(later))
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
    given: dict[str, Any] = {"X_val": later.x, "y_val": later.y} if stops else {}
    given |= {"sample_weight_val": _unless_equal(later.weight)} if stops else {}
    with threadpool_limits(1 if len(own) < _FEW else None):
        model.fit(own.x, own.y, _unless_equal(own.weight), **given)
    best = int(np.argmax(model.validation_score_)) if stops else model.n_iter_
    nodes = [trees[0].nodes for trees in model._predictors[:best]]
    return nodes, float(np.ravel(model._baseline_prediction)[0])


def _unless_equal(weight: Floats) -> Floats | None:
    """Weights, or nothing where all count alike: binning by weight takes forty times as long."""
    return None if (weight == 1.0).all() else weight


def _lightgbm(own: RiskRows, later: RiskRows, signs: list[int], settings: TreesSettings) -> Grown:
    """The baseline is 0: the mean is in the first of the trees."""
    try:
        import lightgbm
    except ImportError:
        raise ConfigError(
            "engine lightgbm: install `salticus[lightgbm]`, or take engine sklearn"
        ) from None

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
    checks = [data.create_valid(later.x, later.y, weight=later.weight)] if len(later) else []
    stop: list[Any]
    stop = [lightgbm.early_stopping(settings.patience, verbose=False)] if checks else []
    model = lightgbm.train(given, data, settings.trees, valid_sets=checks, callbacks=stop)
    best = model.best_iteration if checks else settings.trees
    told = model.dump_model(num_iteration=best)["tree_info"]
    return [told_nodes(tree["tree_structure"]) for tree in told], 0.0


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
