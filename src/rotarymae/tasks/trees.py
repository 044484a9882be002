"""Boosted trees: fitted by scikit-learn, kept as plain arrays.

Arrays are saved as safetensors, so that loading runs no code, and predict the same under every version of scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
AT_ONCE = 128  # trees that are walked together


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
