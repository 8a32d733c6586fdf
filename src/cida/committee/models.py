"""Linear and boosted models, fitted by scikit-learn and written down as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge

from cida.array_types import Array
from cida.committee.members import LinearModel, TreeEnsemble

__all__ = ["fit_boosting", "fit_linear"]

MAX_LINEAR_ITERATIONS = 300
BOOSTING_SETTINGS: dict[str, Any] = {
    "early_stopping": False,  # which would draw rows by their order
    "random_state": 0,
}


def fit_linear(columns: Array, y: Array, weight: Array, n_outputs: int) -> LinearModel:
    """A logistic or ridge regression on standardized columns, as scikit-learn has it."""
    share = weight / weight.sum()
    mean = share @ columns
    std = np.sqrt(share @ (columns - mean) ** 2)
    scale = np.where(std > 1e-9 * np.maximum(1.0, np.abs(mean)), std, 1.0)
    scaled, linear = (columns - mean) / scale, LinearModel(columns.shape[1], n_outputs)
    linear.mean, linear.scale = torch.from_numpy(mean), torch.from_numpy(scale)
    if n_outputs == 1:
        model = Ridge().fit(scaled, y, sample_weight=weight)
        linear.weight = torch.from_numpy(np.atleast_2d(model.coef_))
        linear.bias = torch.as_tensor(np.atleast_1d(model.intercept_))
        return linear
    model = LogisticRegression(max_iter=MAX_LINEAR_ITERATIONS)
    model.fit(scaled, y, sample_weight=weight)
    weights, bias = model.coef_, model.intercept_
    if len(weights) == 1:
        weights, bias = np.concatenate([0 * weights, weights]), np.concatenate([0 * bias, bias])
    # A class without a label among these rows is as good as impossible.
    linear.weight, linear.bias = torch.zeros_like(linear.weight), torch.full_like(linear.bias, -30)
    linear.weight[model.classes_] = torch.from_numpy(weights)
    linear.bias[model.classes_] = torch.from_numpy(bias)
    return linear


def fit_boosting(columns: Array, y: Array, weight: Array, n_outputs: int) -> TreeEnsemble:
    """Gradient boosting as scikit-learn has it; missing numbers are NaN."""
    if n_outputs == 1:
        model: Any = HistGradientBoostingRegressor(**BOOSTING_SETTINGS)
        classes = np.zeros(1, dtype=np.int64)
    else:
        model = HistGradientBoostingClassifier(**BOOSTING_SETTINGS)
        classes = np.unique(y)
    # Weighted quantiles take seconds, and equal weights need none.
    model.fit(columns, y, sample_weight=weight if np.ptp(weight) else None)
    rounds = [[tree.nodes for tree in trees] for trees in model._predictors]
    baseline = np.ravel(model._baseline_prediction)
    if n_outputs > 2 and len(classes) < n_outputs:
        return _spread_scores(rounds, baseline, classes, n_outputs)
    return _to_ensemble([nodes for trees in rounds for nodes in trees], baseline, n_outputs)


def _spread_scores(
    rounds: list[list[Any]], baseline: Array, classes: Array, n_outputs: int
) -> TreeEnsemble:
    """The trees where some classes have no label: theirs are empty, and their score is low."""
    empty = np.zeros(1, dtype=rounds[0][0].dtype)
    empty["is_leaf"] = True
    scores = np.full(n_outputs, -30.0)
    if len(classes) == 2:  # of which the second alone has a score
        scores[classes] = 0.0, baseline[0]
        order = [classes[1]]
    else:
        scores[classes], order = baseline, list(classes)
    trees = []
    for row in rounds:
        by_class = dict(zip(order, row, strict=True))
        trees += [by_class.get(k, empty) for k in range(n_outputs)]
    return _to_ensemble(trees, scores, n_outputs)


def _to_ensemble(trees: list[Any], baseline: Array, n_outputs: int) -> TreeEnsemble:
    n_nodes = max(map(len, trees))
    depth = max(int(nodes["depth"].max()) for nodes in trees)
    ensemble = TreeEnsemble(len(trees), n_nodes, depth, n_outputs)
    for k, nodes in enumerate(trees):
        rows, own, is_leaf = slice(len(nodes)), np.arange(len(nodes)), nodes["is_leaf"] == 1
        children = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64)
        children[is_leaf] = own[is_leaf, None]
        ensemble.feature[k, rows] = torch.from_numpy(nodes["feature_idx"].astype(np.int64))
        threshold = np.where(is_leaf, 0.0, nodes["num_threshold"])
        ensemble.threshold[k, rows] = torch.from_numpy(threshold)
        missing_left = nodes["missing_go_to_left"].astype(bool)
        ensemble.missing_left[k, rows] = torch.from_numpy(missing_left)
        ensemble.child[k, rows] = torch.from_numpy(children)
        ensemble.value[k, rows] = torch.from_numpy(nodes["value"].astype(np.float64))
    ensemble.baseline = torch.from_numpy(baseline.astype(np.float64))
    return ensemble
