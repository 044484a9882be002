"""Evaluation: the mean loss of a model, or whatever is read from its output, without learning."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from rotarymae.batch import Batch, Examples
from rotarymae.training.batching import by_length
from rotarymae.training.device import autocast, default_device
from rotarymae.training.fit_config import TrainConfig
from rotarymae.training.objectives import Objective


def evaluate(
    objective: Objective,
    examples: Examples,
    config: TrainConfig,
    every: int = 1,
    batches: list[np.ndarray] | None = None,
) -> float:
    """Return the mean loss over all targets of all examples, each target with equal weight; NaN without any target.

    Use it for a validation loss. The model predicts without augmentation, on the default device and without gradients;
    its mode and device are then as before. If the objective returns losses at several temperatures, the smallest of
    their means is returned.

    Args:
        objective: the model and its loss.
        examples: data, such as the validation part.
        config: size of the batches, and precision.
        every: evaluate only one in `every` examples, spread evenly over their lengths, but at least about one batch.
        batches: indices of the examples of each batch to evaluate; `every` is then not used. None makes batches of
            similar lengths from the examples that `every` leaves.
    """
    loss, count = torch.zeros(()), 0.0
    with _evaluating(objective, config) as device:
        for index in _batches(examples, config, every) if batches is None else batches:
            part = objective(examples.batch(index, None).to(device))
            loss, count = loss + part.sum.cpu().double(), count + float(part.count)
    return float(loss.min()) / count if count else math.nan


def predict(
    model: nn.Module,
    examples: Examples,
    read: Callable[[nn.Module, Batch], list[Any]],
    config: TrainConfig,
    on_step: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Run a function of the model on all examples, batch by batch, and return one result per example, in input order.

    Args:
        model: is put into evaluation mode and on the default device meanwhile; both are restored.
        examples: the S examples.
        read: called with (model, batch), without gradients and in the precision of `config`; returns a list with one
            result per row of the batch.
        config: size of the batches, and precision.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Returns:
        A list of S results.
    """
    ordered: list[Any] = [None] * len(examples.lengths)
    batches = _batches(examples, config)
    with _evaluating(model, config) as device:
        for done, index in enumerate(batches, start=1):
            results = read(model, examples.batch(index, None).to(device))
            for i, result in zip(index.tolist(), results, strict=True):
                ordered[i] = result
            if on_step is not None:
                on_step(done, len(batches))
    return ordered


@contextmanager
def _evaluating(module: nn.Module, config: TrainConfig) -> Iterator[torch.device]:
    """Put the module on the default device and in evaluation mode; yield the device.

    Within the context no gradients are computed, and matrices are multiplied in the precision of `config`. Afterwards
    the module is on its former device and in its former mode, also after an error.
    """
    device, training = next(module.parameters()).device, module.training
    there = default_device()
    module.to(there).eval()
    try:
        with torch.no_grad(), autocast(config, there):
            yield there
    finally:
        module.train(training).to(device)


def _batches(examples: Examples, config: TrainConfig, every: int = 1) -> list[np.ndarray]:
    """Return batches of similar lengths, shortest first, as arrays of indices.

    Args:
        examples: the S examples.
        config: size of the batches, `batch_size` or `batch_tokens`.
        every: take only one in `every` examples, spread evenly over their lengths, but at least about one batch.
    """
    sizes = (config.batch_size, config.batch_tokens)
    batches = by_length(examples.lengths, *sizes)
    if every > 1:
        step = min(every, len(batches))
        kept = np.argsort(examples.lengths, kind="stable")[step // 2 :: step]
        batches = [kept[batch] for batch in by_length(examples.lengths[kept], *sizes)]
    return batches
