"""Ask a model of whole series: class probabilities, values, embeddings. For values at any time see `interpolation`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.batch import Batch
from rotarymae.datasets import AnyDataset
from rotarymae.errors import InputError
from rotarymae.heads import Classifier, Regressor, embedding
from rotarymae.series import Windows
from rotarymae.training import TrainConfig, predict

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline


def inference(pipeline: Pipeline) -> TrainConfig:
    """Return the settings with which a model predicts: batches of at most 8,192 tokens, in the pipeline's precision.

    An example of more tokens makes a batch by itself.
    """
    return TrainConfig(batch_size=None, batch_tokens=8192, precision=pipeline.precision)


def predict_outputs(pipeline: Pipeline, dataset: AnyDataset, on_step: Any = None) -> np.ndarray:
    """Predict with the fine-tuned network alone: return an array [S, K] for S series.

    The K columns are probabilities of classes, not calibrated; for times to an event, probabilities of intervals of
    time; or for a regression, values in the targets' units. Other methods in the pipeline (boosted trees) are not used.
    For a series longer than the model reads at once, the predictions for its pieces are averaged, weighted by their
    lengths.

    Args:
        pipeline: has the fine-tuned network.
        dataset: the S series or arrays.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Raises:
        InputError: a model without a head; series unlike those of training; predictions that are NaN or infinite.
    """
    return predict_and_embed(pipeline, dataset, on_step)[0]


def predict_and_embed(pipeline: Pipeline, dataset: AnyDataset, on_step: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a fine-tuned network's predictions [S, K] and embeddings [S, D] of S series, computed in one pass.

    Predictions, and errors, are those of `predict_outputs`. An embedding is the vector that the head of the network
    reads; of several networks, the head of the first. For long series it is averaged over their pieces, too.

    Args:
        pipeline: has the fine-tuned network.
        dataset: the S series or arrays.
        on_step: called with (batches done, batches in all), for progress bars; None for none.
    """

    def read(model: torch.nn.Module, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        """Return the pair (the head's outputs [K], the vector [D] that it reads) of each row of a batch, on the CPU."""
        assert isinstance(model, Classifier | Regressor)
        outputs, vector = model.outputs_and_vector(batch.inputs, batch.static)
        return list(zip(outputs.cpu(), vector.float().cpu(), strict=True))

    labels = pipeline.require_labels()
    windows, pairs = _run(pipeline, dataset, read, on_step)
    outputs, embeddings = (_finite(each, windows) for each in zip(*pairs, strict=True))
    return windows.mean(labels.decode(outputs).numpy()), windows.mean(embeddings.numpy())


def embed(pipeline: Pipeline, dataset: AnyDataset, pool: str | None = None, on_step: Any = None) -> np.ndarray:
    """Return a vector of D channels for each of S series, float32 [S, D]: the encoder's tokens, pooled.

    A series longer than the model reads at once gets the mean over its pieces, weighted by their lengths.

    Args:
        pipeline: has the encoder, in a model of any kind.
        dataset: the S series or arrays.
        pool: "mean" or "max" over the tokens; "cls", the [CLS] token; or "attention", if the head of the model pools
            so. None takes the pool of a fine-tuned model's head, and "mean" for a model without a head.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Raises:
        InputError: another pool, or "cls" with an encoder without [CLS]; series unlike those of training; vectors that
            are NaN or infinite.
    """
    how = pool or getattr(pipeline.model, "pool", "mean")

    def read(model: torch.nn.Module, batch: Batch) -> list[Tensor]:
        """Return the pooled vector [D] of each row of a batch, on the CPU."""
        return list(embedding(model, batch.inputs, how).float().cpu())

    windows, vectors = _run(pipeline, dataset, read, on_step)
    return windows.mean(_finite(vectors, windows).numpy())


def _finite(outputs: Sequence[Tensor], windows: Windows) -> Tensor:
    """Stack W vectors [K], one per piece of a series (window), to rows [W, K]; raise InputError for NaN or infinity."""
    stacked = torch.stack(list(outputs))
    bad = np.unique(windows.series[~stacked.isfinite().all(1).numpy()])
    if len(bad):
        raise InputError(
            f"the model's output for {len(bad)} of {windows.series[-1] + 1} series is NaN or infinite, "
            f"first for series {bad[0]} (counted from 0). Either its weights are damaged: load or fit it anew. Or "
            "values of this series lie far outside the training range: check their unit."
        )
    return stacked


def _run(
    pipeline: Pipeline,
    dataset: AnyDataset,
    read: Callable[[torch.nn.Module, Batch], list[Any]],
    on_step: Any = None,
) -> tuple[Windows, list[Any]]:
    """Run a function of the model on batches of all series; long series are cut into pieces (windows) before.

    Args:
        pipeline: has the model and its preprocessor.
        dataset: the S series or arrays.
        read: called with (model, batch), without gradients; returns a list with one result per row of the batch.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Returns:
        A pair: the W pieces, which know their series (a short series is one piece); and a list with the result for each
        piece.

    Raises:
        InputError: a pipeline without a preprocessor; series unlike those of training.
    """
    preprocessor: Any = pipeline.preprocessor
    if preprocessor is None:
        raise InputError(
            "the model has no preprocessor, as it was not trained on a data set; give tokens to `pipeline.model`."
        )
    windows = preprocessor.windows(dataset)
    preprocessor.check(windows.dataset)
    examples = preprocessor.examples(windows.dataset)
    return windows, predict(pipeline.model, examples, read, inference(pipeline), on_step)
