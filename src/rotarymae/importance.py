"""Measure which observations of a series matter to a model, by leaving each of them out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from rotarymae.batch import Batch
from rotarymae.errors import InputError, listed
from rotarymae.prediction import inference
from rotarymae.preprocess import ObservationPreprocessor, hide_units
from rotarymae.preprocess.observations import opens_token
from rotarymae.series import SeriesDataset
from rotarymae.tokens import Tokens
from rotarymae.training import predict

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline


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

    def read(model: nn.Module, batch: Batch) -> list[np.ndarray]:
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

    return predict(pipeline.model, preprocessor.examples(dataset), read, config, on_step)


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
