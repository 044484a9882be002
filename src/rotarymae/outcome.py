"""The results of a run: `score` fills them in, tables and the report are written from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rotarymae.datasets import AnyDataset
from rotarymae.interpolation import Interpolation
from rotarymae.pipeline import Pipeline
from rotarymae.reconstruction import ReconstructedArray
from rotarymae.series import SeriesDataset
from rotarymae.splits import Split
from rotarymae.train import FitResult
from rotarymae.training.fit_config import FitConfig


@dataclass
class Outcome:
    """All results of a run: `scoring.score` fills them in; the tables and the report are written from them.

    Attributes:
        dataset: the S series or arrays.
        config: the options of the fit.
        fit: the trained pipeline, and how its training went.
        metrics: content of metrics.json under "split", "series", "scored_on", "noun", "sample", "classification",
            "regression", "survival", "intervals", "predictor", "folds", "interpolation" and "reconstruction", as far as
            the run has it.
        visible, hidden: the scored series' observations that interpolation saw, and those that it predicted; None if
            nothing was interpolated.
        interpolated: predictions at the hidden observations, in their order; None if nothing was interpolated.
        reconstructions: one for each scored array of several patches, in their order.
        labels: [S] classes, numbers or times to an event; None without.
        predicted: probabilities [S, classes] (of intervals, for times to an event) or values [S, outputs] for all
            series; None without labels.
        baselines: {method: predictions [scored series, K]} of the methods that were not chosen to predict.
        embeddings: [S, D] of all series; None in a cross-validation.
        half_widths: half the width of a regression's intervals, [S, outputs] or [outputs]; None without intervals.
        fold_of: [S] in a cross-validation, the fold of each series, from 1; 0 where it has no label. Else None.
        fold_weights: [S, classes] in a cross-validation of a classifier, the factors of each series' probabilities
            before the largest decides its class. Else None.
        seconds: wall time of the run so far.
        command: the command line that was typed.
        warnings: texts of the warnings that were shown.
        long_names: {class: longer name for people}; a class that it lacks keeps its name.
    """

    dataset: AnyDataset
    config: FitConfig
    fit: FitResult
    metrics: dict[str, Any] = field(default_factory=dict)
    visible: SeriesDataset | None = None
    hidden: SeriesDataset | None = None
    interpolated: Interpolation | None = None
    reconstructions: list[ReconstructedArray] = field(default_factory=list)
    labels: np.ndarray | None = None
    predicted: np.ndarray | None = None
    baselines: dict[str, np.ndarray] = field(default_factory=dict)
    embeddings: np.ndarray | None = None
    half_widths: np.ndarray | None = None
    fold_of: np.ndarray | None = None
    fold_weights: np.ndarray | None = None
    seconds: float = 0.0
    command: str = ""
    warnings: list[str] = field(default_factory=list)
    long_names: Mapping[Any, str] = field(default_factory=dict)

    def sample(self, rows: np.ndarray, most: int) -> Outcome:
        """Return a copy of the results for a selection of the series; call it before scoring, if time is short.

        The selection has the series `rows`. The first training series, the first scored one, and the first training
        series of each class are added, so that no part is empty and no class is missing in training. Data set, labels,
        split and validation outputs are reduced to the selection. The metrics get the entry "sample", a dictionary:
        "series", the number of selected series; "scored", how many are scored; and "stretch", the number of
        observations to which longer series were cut (`most`), or None if none was cut.

        Args:
            rows: indices of the series to keep.
            most: largest number of observations of a series. A longer one is cut to this number of consecutive
                observations, from a place drawn at random by the seed of the fit. Arrays, such as pictures, are never
                cut.
        """
        split, labels = self.split, None if self.labels is None else np.asarray(self.labels)
        kept = [rows, split.train[:1], split.scored[:1]]
        if self.classes and labels is not None:
            kept.append(split.train[np.unique(labels[split.train].astype(str), return_index=True)[1]])
        rows = np.unique(np.concatenate(kept))
        parts = {name: np.flatnonzero(np.isin(rows, part)) for name, part in vars(split).items()}
        at = np.flatnonzero(np.isin(split.validation, rows))
        outputs = {name: predicted[at] for name, predicted in self.fit.validation_outputs.items()}
        dataset: Any = self.dataset.select(rows)
        longer = (dataset.lengths > most) & (dataset.kind == "observations")
        if longer.any():
            first = np.random.default_rng(self.config.seed).integers(np.maximum(dataset.lengths - most, 0) + 1)
            place = np.arange(dataset.lengths.sum()) - np.repeat(dataset.offsets[:-1] + first, dataset.lengths)
            dataset = dataset.mask_observations((place >= 0) & (place < most))
        sample = {"series": len(rows), "scored": len(Split(**parts).scored), "stretch": most if longer.any() else None}
        return replace(
            self,
            dataset=dataset,
            labels=None if labels is None else labels[rows],
            fit=replace(self.fit, split=Split(**parts), validation_outputs=outputs),
            metrics={**self.metrics, "sample": sample},
        )

    @property
    def pipeline(self) -> Pipeline:
        """The trained pipeline of the run."""
        return self.fit.pipeline

    @property
    def split(self) -> Split:
        """Indices of the series for training, for choosing the epoch (validation), and for scoring (test).

        Raises AssertionError if the fit has no split.
        """
        assert self.fit.split is not None, "a run has a split"
        return self.fit.split

    def weights(self, rows: np.ndarray) -> Any:
        """Return the weights by which class probabilities are multiplied before the largest product decides the class.

        They are [classes]; or () for equal weights and for other tasks than a classification. In a cross-validation of
        a classifier they are [n, classes], because each fold has its own.

        Args:
            rows: [n] indices of series; used in a cross-validation only.
        """
        return getattr(self.pipeline.labels, "weights", ()) if self.fold_weights is None else self.fold_weights[rows]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes of a classifier, in the order of the probabilities; () for other tasks and without labels."""
        return getattr(self.pipeline.labels, "classes", ())

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the `classes` for people: each is the entry of `long_names`, or without one the class as text."""
        return tuple(self.long_names.get(name, str(name)) for name in self.classes)
