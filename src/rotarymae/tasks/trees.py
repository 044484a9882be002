"""Boosted trees: fitted by scikit-learn, kept as plain arrays.

Arrays are saved as safetensors, so that loading runs no code, and predict the same under every version of scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rotarymae.errors import InputError

Floats = NDArray[np.float64]
AT_ONCE = 128  # trees that are walked together
# Rare classes have some 30 members. No early stopping, as it would split those; few features per split and a penalty,
# as scikit-learn's defaults diverged on one PLAsTiCC fold (accuracy 0.33 where the others reach 0.74).
COMMON: dict[str, Any] = {
    "max_leaf_nodes": 15,
    "min_samples_leaf": 10,
    "l2_regularization": 1.0,
    "max_features": 0.3,
    "early_stopping": False,
}


def boosted(task: str, features: Floats, truth: NDArray[Any], settings: dict[str, Any], seed: int) -> list[Any]:
    """Fitted HistGradientBoosting models: one of classes, or one of each output.

    Args:
        features: [S, F], NaN where one is missing.
        truth: classes int [S] (0, 1, .., all of them), or numbers [S, outputs] of which some may be NaN.
        settings: beside those in COMMON.

    Raises:
        InputError: a class that no series has, or one class alone.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    settings = COMMON | settings | {"random_state": seed % 2**32}
    if task == "classification":
        if len(np.unique(truth)) < max(2, int(truth.max()) + 1):
            raise InputError("gradient boosting needs two classes, and a series of each, to train on.")
        return [HistGradientBoostingClassifier(**settings).fit(features, truth)]
    found = []
    for column in truth.T:
        there = np.isfinite(column)
        own = features[there]
        own = np.where(np.isnan(own).all(0), 0.0, own)  # scikit-learn fails on a feature that is missing throughout
        found.append(HistGradientBoostingRegressor(**settings).fit(own, column[there]))
    return found


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """T trees of N nodes in all, whose leaves add up to K scores per row.

    Attributes:
        feature, threshold, missing_left: [N] a row goes left where its feature is at most the threshold, or missing
            and `missing_left`.
        left, right: [N] the nodes below; both are the node itself where it is a leaf.
        value: [N] what a leaf adds.
        root, output: [T] each tree's first node, and the score it adds to.
        start: [K] the scores without any tree.
    """

    feature: NDArray[np.int64]
    threshold: Floats
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Floats
    root: NDArray[np.int64]
    output: NDArray[np.int64]
    start: Floats

    @classmethod
    def of(cls, models: list[Any]) -> Self:
        """The trees of fitted HistGradientBoosting models, whose scores stand side by side."""
        parts: dict[str, list[NDArray[Any]]] = {field.name: [] for field in fields(cls)}
        nodes_before = outputs_before = 0
        for model in models:
            start = np.ravel(model._baseline_prediction)
            for trees in model._predictors:
                for k, tree in enumerate(trees):
                    nodes, own = tree.nodes, nodes_before + np.arange(len(tree.nodes))
                    leaf = nodes["is_leaf"].astype(bool)
                    parts["feature"].append(np.where(leaf, 0, nodes["feature_idx"]))
                    parts["threshold"].append(np.where(leaf, 0.0, nodes["num_threshold"]))
                    parts["missing_left"].append(nodes["missing_go_to_left"].astype(bool))
                    parts["left"].append(np.where(leaf, own, nodes_before + nodes["left"].astype(np.int64)))
                    parts["right"].append(np.where(leaf, own, nodes_before + nodes["right"].astype(np.int64)))
                    parts["value"].append(np.where(leaf, nodes["value"], 0.0))
                    parts["root"].append(np.array([nodes_before]))
                    parts["output"].append(np.array([outputs_before + k]))
                    nodes_before += len(nodes)
            parts["start"].append(start)
            outputs_before += len(start)
        return cls(**{name: np.concatenate(arrays) for name, arrays in parts.items()})

    def scores(self, features: Floats) -> Floats:
        """[S, K] of features [S, F]; NaN is missing."""
        out = np.tile(self.start, (len(features), 1))
        rows = np.arange(len(features))[:, None]
        for begin in range(0, len(self.root), AT_ONCE):
            node = np.tile(self.root[begin : begin + AT_ONCE], (len(features), 1))
            while True:
                x = features[rows, self.feature[node]]
                goes_left = np.where(np.isnan(x), self.missing_left[node], x <= self.threshold[node])
                below = np.where(goes_left, self.left[node], self.right[node])
                if (below == node).all():
                    break
                node = below
            np.add.at(out.T, self.output[begin : begin + AT_ONCE], self.value[node].T)
        return out

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
