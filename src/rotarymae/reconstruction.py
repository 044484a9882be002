"""Reconstruct hidden patches with a pre-trained model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from rotarymae.arrays import ArrayDataset, crop
from rotarymae.batch import Batch
from rotarymae.masking import Masking
from rotarymae.model import MaskedAutoencoder
from rotarymae.prediction import inference
from rotarymae.preprocess import DatasetExamples
from rotarymae.tokenizers import unpatchify
from rotarymae.training import predict

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline


@dataclass(frozen=True, eq=False)
class ReconstructedArray:
    """The N patches of one array, of which M were hidden and predicted; values are standardised, V for each patch.

    Attributes:
        hidden: bool [N], True for the hidden patches, which are numbered with the last axis of the array fastest.
        truth, predicted: [M, V] true and predicted values of the hidden patches, in the order of their numbers.
        visible: [N - M, V] values of the other patches, likewise.
    """

    hidden: np.ndarray
    truth: np.ndarray
    predicted: np.ndarray
    visible: np.ndarray


def reconstruct(
    pipeline: Pipeline,
    dataset: ArrayDataset,
    masking: Masking,
    on_step: Any = None,
) -> list[ReconstructedArray]:
    """Hide patches of every array and predict them; return one result per array, in their order.

    Each call hides the same patches: the random numbers depend only on the index of an array in the data set.

    Args:
        pipeline: has a MaskedAutoencoder of arrays and its preprocessor.
        dataset: the arrays. If nothing can be hidden, because an array is a single patch, its result has 0 hidden
            patches.
        masking: how patches are chosen.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Raises:
        InputError: a model that is not a MaskedAutoencoder, or that was trained on another kind of data; arrays that do
            not fit its preprocessor.

    Warns:
        InputWarning: arrays that seem to be in another unit than those of training.
    """
    autoencoder = pipeline.require_autoencoder()
    preprocessor = pipeline.require_arrays()
    preprocessor.check(dataset)
    examples = DatasetExamples(dataset, preprocessor, masking=masking)

    def read(model: torch.nn.Module, batch: Batch) -> list[ReconstructedArray]:
        """Predict the hidden patches of a batch; return a ReconstructedArray for each of its arrays, in order."""
        assert isinstance(model, MaskedAutoencoder) and batch.masked is not None
        predicted = model.predict(batch.inputs, batch.masked).predicted.float().cpu().numpy()
        seen, masked = batch.inputs.to("cpu"), batch.masked.to("cpu")
        rows = []
        for i in range(len(predicted)):
            at, left = masked.real[i].numpy(), seen.real[i].numpy()
            # Positions count patches from 1 on each axis, and the last axis runs fastest.
            both = torch.cat([masked.positions[i, at], seen.positions[i, left]]).long().numpy() - 1
            numbers = np.ravel_multi_index(tuple(both[: int(at.sum())].T), tuple(both.max(0) + 1))
            hidden = np.zeros(int(at.sum() + left.sum()), bool)
            hidden[numbers] = True
            truth, visible = masked.values[i].numpy()[at], seen.values[i].numpy()[left]
            rows.append(ReconstructedArray(hidden, truth, predicted[i, at], visible))
        return rows

    return predict(autoencoder, examples, read, inference(pipeline), on_step)


def drawn(
    pipeline: Pipeline, array: np.ndarray, hidden: ReconstructedArray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays to draw: the original, a copy with NaN at hidden patches, and one with predictions there.

    They are float32 [*sizes, C], in the array's units, cropped to whole patches; C is the number of channels.

    Args:
        pipeline: the one that predicted.
        array: the original, [*sizes, C].
        hidden: the result of `reconstruct` for this array.
    """
    preprocessor = pipeline.require_arrays()
    patch_size = preprocessor.patch_size
    original = crop(np.asarray(array, np.float32), patch_size)
    patches = np.empty((2, len(hidden.hidden), preprocessor.features), np.float32)
    patches[:, ~hidden.hidden] = hidden.visible
    patches[0, hidden.hidden], patches[1, hidden.hidden] = np.nan, hidden.predicted
    masked, filled = (
        preprocessor.unscale(part)
        for part in unpatchify(torch.from_numpy(patches), original.shape[:-1], patch_size).numpy()
    )
    return original, masked, filled
