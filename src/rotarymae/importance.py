"""Measure which observations of a series matter to a model, by leaving each of them out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from rotarymae.batch import Batch
from rotarymae.errors import InputError, listed
from rotarymae.labels import Labels
from rotarymae.prediction import inference
from rotarymae.preprocess import SeriesExamples
from rotarymae.series import SeriesDataset
from rotarymae.training import predict

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline


def importance(pipeline: Pipeline, dataset: SeriesDataset, on_step: Any = None) -> list[np.ndarray]:
    """Return how much each observation matters to the model: for each series an array [n], in order of time.

    Each observation is left out in turn, so a series of n observations costs n predictions. For a classifier,
    importance is the drop of the predicted class's log-probability, in nats; it is negative for observations that speak
    against that class. For a regressor, it is how far the prediction moves, in standard deviations of the training
    targets (root mean square over outputs). For a time to an event, it is by how much the observation lengthens the
    expected time; it is negative for observations that raise the risk. A series of one observation gets NaN.

    Args:
        on_step: called with (batches done, batches in all), for progress bars.

    Raises:
        InputError: a model without a head; series longer than the model reads in one piece, or unlike training's.
    """
    labels = pipeline.require_labels()
    preprocessor = pipeline.require_series()
    longer = np.flatnonzero(dataset.lengths > (preprocessor.window or np.inf))
    if len(longer):
        raise InputError(
            f"series {listed(dataset.ids[longer])} have more than the {preprocessor.window} observations that the "
            "model reads at a time; cut them (mask_observations) to ask what mattered."
        )
    preprocessor.check(dataset)
    # Predictions that differ by one observation are distinguishable in float32 only.
    config = inference(replace(pipeline, precision="fp32"))
    examples = SeriesExamples(dataset, preprocessor)
    read = _occlusion(examples, config.batch_tokens or 8192, labels)
    return predict(pipeline.model, examples, read, config, on_step)


def _occlusion(
    examples: SeriesExamples, most_tokens: int, labels: Labels
) -> Callable[[nn.Module, Batch], list[np.ndarray]]:
    """Return a function that computes the importance of every observation in a batch, by leaving out each in turn.

    It returns an array [n] for each series of the batch.

    Args:
        examples: makes the tokens of the shortened series.
        most_tokens: tokens of one forward pass, at most.
        labels: of the pipeline; they say how much a prediction changes.
    """

    def read(model: nn.Module, batch: Batch) -> list[np.ndarray]:
        """Return the importances [n] of each series in the batch."""
        whole = model(batch.inputs, batch.static).float()
        return [
            one(model, int(i), whole[[row]], None if batch.static is None else batch.static[[row]])
            for row, i in enumerate(batch.series)
        ]

    def one(model: nn.Module, i: int, whole: Tensor, static: Tensor | None) -> np.ndarray:
        """Return the importances [n] of series `i`, whose prediction with all observations is `whole` [1, K]."""
        if examples.dataset.lengths[i] < 2:
            return np.full(1, np.nan)
        copies = examples.without_each(i).to(whole.device)
        parts = []
        for rows in torch.arange(copies.batch, device=whole.device).split(max(1, most_tokens // copies.length)):
            parts.append(model(copies.rows(rows), None if static is None else static.expand(len(rows), -1)).float())
        without = torch.cat(parts)
        return labels.change(whole, without)

    return read
