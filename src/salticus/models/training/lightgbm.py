"""Trees grown by LightGBM, where that is installed, in scikit-learn's form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from salticus.errors import ConfigError

if TYPE_CHECKING:
    from salticus.models.training.trees import Grown, RiskRows, TreesSettings


def grow_lightgbm(
    own: RiskRows, later: RiskRows, signs: list[int], settings: TreesSettings
) -> Grown:
    """The nodes of the trees, and 0: the mean is in the first of them."""
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
    checks = [data.create_valid(later.x, later.y, weight=later.weight)] if len(later.y) else []
    stop: list[Callable[..., Any]]
    stop = [lightgbm.early_stopping(settings.patience, verbose=False)] if checks else []
    model = lightgbm.train(given, data, settings.trees, valid_sets=checks, callbacks=stop)
    best = model.best_iteration if checks else settings.trees
    told = model.dump_model(num_iteration=best)["tree_info"]
    return [told_nodes(tree["tree_structure"]) for tree in told], 0.0


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
