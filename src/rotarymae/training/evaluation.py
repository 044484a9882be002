"""Evaluation: the mean loss of a model, or whatever is read from its output, without learning."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn

from rotarymae.batch import Batch, Examples
from rotarymae.training.batching import by_length
from rotarymae.training.distributed import are_several, autocast, make_accelerator, total
from rotarymae.training.fit_config import TrainConfig
from rotarymae.training.objectives import Objective


def evaluate(
    objective: Objective,
    examples: Examples,
    config: TrainConfig,
    accelerator: Accelerator | None = None,
    stop: Callable[[], Any] = lambda: False,
    every: int = 1,
) -> float | None:
    """Return the mean loss over all targets of all examples; every target has equal weight.

    The model's mode and device are restored. Batches are shared among the processes; a process without batches must
    still call this function.

    Args:
        stop: asked between batches; when it is true in one process, all return None.
        every: evaluate only one in `every` examples, spread evenly over their lengths.
    """
    accelerator = accelerator or make_accelerator()
    loss = count = 0.0
    stopped = False
    with _evaluating(objective, config, accelerator):
        for index in _own_batches(examples, config, accelerator, every):
            part = objective(examples.batch(index, None).to(accelerator.device))
            loss, count = loss + float(part.sum), count + float(part.count)
            stopped = bool(stop())
            if stopped:
                break
    loss, count, stopped = total(accelerator, [loss, count, float(stopped)])
    if stopped:
        return None
    return loss / count if count else math.nan


def predict(
    model: nn.Module,
    examples: Examples,
    read: Callable[[nn.Module, Batch], list[Any]],
    config: TrainConfig,
    on_step: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Run `read(model, batch)` on all examples; return one result per example, in input order, in every process.

    `read` returns a list with one entry per row of the batch. It is called in evaluation mode, without gradients, in
    the precision of `config`. The model's mode and device are restored.
    """
    accelerator = make_accelerator()
    rows: list[tuple[int, Any]] = []
    batches = _own_batches(examples, config, accelerator)
    with _evaluating(model, config, accelerator):
        for done, index in enumerate(batches, start=1):
            results = read(model, examples.batch(index, None).to(accelerator.device))
            rows += zip(index.tolist(), results, strict=True)
            if on_step is not None:
                on_step(done, len(batches))
    if are_several(accelerator):
        rows = gather_object(rows)
    ordered: list[Any] = [None] * len(rows)
    for i, result in rows:
        ordered[i] = result
    return ordered


@contextmanager
def _evaluating(module: nn.Module, config: TrainConfig, accelerator: Accelerator) -> Iterator[None]:
    """Compute on the accelerator's device, in evaluation mode, without gradients; restore mode and device."""
    device, training = next(module.parameters()).device, module.training
    there = accelerator.device
    module.to(there).eval()
    try:
        with torch.no_grad(), autocast(config, there):
            yield
    finally:
        module.train(training).to(device)


def _own_batches(examples: Examples, config: TrainConfig, accelerator: Accelerator, every: int = 1) -> list[np.ndarray]:
    """Return this process's share of the batches, made of one in `every` examples and grouped by length."""
    sizes = (config.batch_size, config.batch_tokens)
    batches = by_length(examples.lengths, *sizes)
    if every > 1:  # of every length, and about a batch at least
        step = min(every, len(batches))
        kept = np.argsort(examples.lengths, kind="stable")[step // 2 :: step]
        batches = [kept[batch] for batch in by_length(examples.lengths[kept], *sizes)]
    return batches[accelerator.process_index :: accelerator.num_processes] if are_several(accelerator) else batches
