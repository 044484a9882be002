"""What a model says of series: class probabilities, values, embeddings. For values at any time see `interpolation`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.batch import Batch
from rotarymae.checkpoints import ModelDirectory
from rotarymae.errors import InputError
from rotarymae.heads import Classifier, Regressor, embedding
from rotarymae.series import Windows
from rotarymae.tasks.data import AnyDataset, make_examples, windowed
from rotarymae.tasks.targets import task_of
from rotarymae.training import TrainConfig, predict


def inference(directory: ModelDirectory) -> TrainConfig:
    """How predictions of a model are batched and computed."""
    return TrainConfig(batch_size=None, batch_tokens=8192, precision=directory.precision)


def predict_probabilities(
    directory: ModelDirectory, dataset: AnyDataset, config: TrainConfig | None = None, on_step: Any = None
) -> np.ndarray:
    """Class probabilities [S, classes] of a fine-tuned classifier, in the order of `preprocessor.classes`."""
    if not isinstance(directory.model, Classifier):
        raise InputError(
            f"the model is a {type(directory.model).__name__}; probabilities need a fine-tuned Classifier."
        )
    return _decode(directory, *_run(directory, dataset, _outputs, config, on_step))


def predict_values(directory: ModelDirectory, dataset: AnyDataset, on_step: Any = None) -> np.ndarray:
    """Values [S, outputs] of a fine-tuned regressor, in the unit of its training targets."""
    if not isinstance(directory.model, Regressor):
        raise InputError(f"the model is a {type(directory.model).__name__}; values need a fine-tuned Regressor.")
    return _decode(directory, *_run(directory, dataset, _outputs, on_step=on_step))


def predict_labels(directory: ModelDirectory, dataset: AnyDataset, on_step: Any = None) -> np.ndarray:
    """Class probabilities of a classifier, or values of a regressor; as the function for either says."""
    job = predict_probabilities if isinstance(directory.model, Classifier) else predict_values
    return job(directory, dataset, on_step=on_step)


def predict_and_embed(
    directory: ModelDirectory, dataset: AnyDataset, on_step: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """(predictions, embeddings) of a fine-tuned model, as the other functions give them, in one pass."""

    def read(model: torch.nn.Module, batch: Batch) -> list[tuple[Tensor, Tensor]]:
        assert isinstance(model, Classifier | Regressor)
        vector = model.vector(batch.inputs)
        return list(zip(model.from_vector(vector, batch.static).cpu(), vector.float().cpu(), strict=True))

    windows, found = _run(directory, dataset, read, on_step=on_step)
    outputs, embeddings = zip(*found, strict=True)
    return _decode(directory, windows, outputs), windows.mean(_finite(embeddings).numpy())


def embed(
    directory: ModelDirectory,
    dataset: AnyDataset,
    pool: str | None = None,
    config: TrainConfig | None = None,
    on_step: Any = None,
) -> np.ndarray:
    """Embeddings [S, D]: the mean over a series' tokens, with pool="max" the maximum, with pool="cls" the [CLS] token.

    The default is what a fine-tuned model's head pools, else "mean": pre-training gives [CLS] no task of its own.
    """
    model = directory.model
    how = pool or getattr(model, "pool", "mean")

    def read(model: torch.nn.Module, batch: Batch) -> list[Tensor]:
        return list(embedding(model, batch.inputs, how).float().cpu())

    windows, found = _run(directory, dataset, read, config, on_step)
    return windows.mean(_finite(found).numpy())


def _outputs(model: torch.nn.Module, batch: Batch) -> list[Tensor]:
    return list(model(batch.inputs, batch.static).cpu())


def _decode(directory: ModelDirectory, windows: Windows, outputs: Sequence[Tensor]) -> np.ndarray:
    """Probabilities, or values in their own units; of a series in windows the mean over them."""
    task, preprocessor = task_of(directory.model), directory.preprocessor
    assert task is not None and preprocessor is not None
    return windows.mean(task.decode(preprocessor, _finite(outputs)))


def _finite(outputs: Sequence[Tensor]) -> Tensor:
    """One row per series [S, K]; an answer that is no number is refused rather than written down as a prediction."""
    stacked = torch.stack(list(outputs))
    bad = ~stacked.isfinite().all(1)
    if bad.any():
        raise InputError(
            f"the model's answer to {int(bad.sum())} of {len(bad)} series is NaN or infinite, first to series "
            f"{int(bad.nonzero()[0])} (counted from 0); its weights are damaged, or the values there lie far outside "
            "the training range."
        )
    return stacked


def _run(
    directory: ModelDirectory,
    dataset: AnyDataset,
    read: Callable[[torch.nn.Module, Batch], list[Any]],
    config: TrainConfig | None = None,
    on_step: Any = None,
) -> tuple[Windows, list[Any]]:
    """The windows of the series, and what is read of each."""
    if directory.preprocessor is None:
        raise InputError("the model has no preprocessor; it was not made from a data set.")
    windows = windowed(dataset, directory.preprocessor)
    examples = make_examples(windows.dataset, directory.preprocessor)
    return windows, predict(directory.model, examples, read, config or inference(directory), on_step)
