"""Ask a model of whole series: class probabilities, values, embeddings, and which observations matter to them.

For values at any time see `interpolation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.batch import Batch
from rotarymae.datasets import AnyDataset
from rotarymae.errors import InputError, listed
from rotarymae.heads import Classifier, Regressor, embedding
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor, hide_units
from rotarymae.preprocess.observations import opens_token
from rotarymae.series import SeriesDataset, Windows
from rotarymae.tokens import Tokens
from rotarymae.training import TrainConfig, predict

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline


def inference(pipeline: Pipeline) -> TrainConfig:
    """Return the settings with which a model predicts: batches of at most 8,192 tokens, in the pipeline's precision.

    An example of more tokens makes a batch by itself.
    """
    return TrainConfig(batch_size=None, batch_tokens=8192, precision=pipeline.precision)


def predict_and_embed(pipeline: Pipeline, dataset: AnyDataset, on_step: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a fine-tuned network's predictions [S, K] and embeddings [S, D] of S series, computed in one pass.

    The K columns are probabilities of classes, not calibrated; for times to an event, probabilities of intervals of
    time; or for a regression, values in the targets' units. Other methods in the pipeline (boosted trees) are not used.
    An embedding is the vector that the head of the network reads; of several networks, the head of the first. For a
    series longer than the model reads at once, both are means over its pieces, weighted by their lengths.

    Args:
        pipeline: has the fine-tuned network.
        dataset: the S series or arrays.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Raises:
        InputError: a model without a head; series unlike those of training; predictions that are NaN or infinite.
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
    """Cut long series into pieces (windows), and run a function of the model on batches of all pieces.

    Args:
        pipeline: has the model and its preprocessor.
        dataset: the S series or arrays.
        read: called with (model, batch), without gradients; returns a list with one result per row of the batch.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Returns:
        A pair: the W pieces, with the index of the series of each (a short series is one piece); and a list with the
        result for each piece.

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
    examples = DatasetExamples(windows.dataset, preprocessor)
    return windows, predict(pipeline.model, examples, read, inference(pipeline), on_step)


def importance(pipeline: Pipeline, dataset: SeriesDataset, on_step: Any = None) -> list[np.ndarray]:
    """Return how much each observation matters to the network: a list with an array [n] per series, in order of time.

    Each of a series' n observations is left out in turn; its importance is the change of the network's prediction:

    - Classes: the fall of the log-probability (not calibrated, in nats) of the class that is most probable with all
      observations. It is negative for observations that speak against this class.
    - Numbers: how far the prediction moves, in standard deviations of the training targets (root mean square over
      outputs).
    - Time to an event: by how much the expected time gets shorter without it, in the table's unit. It is negative for
      observations that raise the risk.

    A series of a single observation gets [NaN]. Other methods in the pipeline (boosted trees) are not used.

    Args:
        pipeline: has the fine-tuned model.
        dataset: the series.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Raises:
        InputError: a model without a head, or of arrays; series longer than the model reads in one piece; series with
            other columns or channels than those of training, a negative standard error, NaN, or limits ("<5") that the
            model does not know.

    Warns:
        InputWarning: series that look unlike those of training, as in another unit.
    """
    labels = pipeline.require_labels()
    preprocessor = pipeline.require_series()
    longer = np.flatnonzero(dataset.lengths > (preprocessor.window or np.inf))
    if len(longer):
        raise InputError(
            f"series {listed(dataset.ids[longer])} have more than {preprocessor.window} observations, the most that "
            "the model reads at a time; keep fewer by SeriesDataset.mask_observations."
        )
    preprocessor.check(dataset)
    # Predictions that differ by one observation are distinguishable in float32 only.
    config = inference(replace(pipeline, precision="fp32"))
    most_tokens = config.batch_tokens or 8192

    def read(model: torch.nn.Module, batch: Batch) -> list[np.ndarray]:
        """Return the importances [n] of each series in the batch, as a list; [NaN] for a series of one observation."""
        whole, rows = model(batch.inputs, batch.static).float(), []
        for row, i in enumerate(batch.series):
            if dataset.lengths[i] < 2:
                rows.append(np.full(1, np.nan))
                continue
            copies, without = _without_each(dataset, preprocessor, int(i)).to(whole.device), []
            for some in torch.arange(copies.batch, device=whole.device).split(max(1, most_tokens // copies.length)):
                static = None if batch.static is None else batch.static[[row]].expand(len(some), -1)
                without.append(model(copies.rows(some), static).float())
            rows.append(labels.change(whole[[row]], torch.cat(without)))
        return rows

    return predict(pipeline.model, DatasetExamples(dataset, preprocessor), read, config, on_step)


def _without_each(dataset: SeriesDataset, preprocessor: ObservationPreprocessor, i: int) -> Tokens:
    """Return n rows of tokens for a series of n observations: row k has all observations but the k-th.

    Args:
        dataset: the series.
        preprocessor: makes the tokens.
        i: index of the series in `dataset`.
    """
    one = dataset.select([i])
    tokens, n = preprocessor.tokens_of(one, np.array([0])), int(dataset.lengths[i])
    left_out = torch.zeros(n, tokens.length, tokens.features, dtype=torch.bool)
    if preprocessor.join_times:  # a token holds all channels of a time
        assert one.channels is not None, "joined times are those of channels"
        token = torch.from_numpy(np.cumsum(opens_token(one)) - 1)
        width = len(preprocessor.value_columns)  # one observation's features, side by side
        first = torch.from_numpy(np.asarray(one.channels, np.int64)) * width
        for feature in range(width):
            left_out[torch.arange(n), token, first + feature] = True
    else:
        left_out[torch.arange(n), torch.arange(n)] = True
        left_out = left_out[..., 0]
    visible, _ = hide_units(tokens.rows(torch.zeros(n, dtype=torch.int64)), left_out.flatten(1))
    return preprocessor.complete(visible)
