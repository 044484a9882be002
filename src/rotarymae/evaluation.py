"""A model on examples it does not learn from: the mean loss, or whatever is read from its output."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn

from rotarymae.batches import Batch, Examples, by_length
from rotarymae.objectives import Objective
from rotarymae.processes import make_accelerator, total
from rotarymae.train_config import TrainConfig


def evaluate(
    objective: Objective, examples: Examples, config: TrainConfig, accelerator: Accelerator | None = None
) -> float:
    """The mean loss over all real targets of all examples; every example counts by its own targets, not by batch.

    The model's mode is restored. Batches are shared among the processes; a process without any takes part all the
    same.
    """
    loss = evaluate_until(objective, examples, config, accelerator or make_accelerator(), lambda: False)
    assert loss is not None, "nobody asked it to end"
    if accelerator is None:
        objective.to("cpu")
    return loss


def evaluate_until(
    objective: Objective,
    examples: Examples,
    config: TrainConfig,
    accelerator: Accelerator,
    terminated: Callable[[], bool],
) -> float | None:
    """As `evaluate`; None, on all processes, when one of them was asked to end."""
    was_training = objective.training
    objective.to(accelerator.device).eval()
    loss, count, ended = 0.0, 0.0, False
    try:
        with torch.no_grad():
            for index in _own_batches(examples, config, accelerator):
                ended = terminated()
                if ended:
                    break
                batch = examples.batch(index, None)
                count += objective.count(batch)
                with config.autocast(accelerator.device):
                    loss += float(objective(batch.to(accelerator.device)))
    finally:
        objective.train(was_training)
    loss, count, stopped = total(accelerator, [loss, count, float(ended)])
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
    """read(model, batch) for every example, once each, in input order, on every process.

    `read` gives a list with one entry for each row of the batch. The model is put in evaluation mode and its mode
    restored.
    """
    accelerator = make_accelerator()
    was_training = model.training
    model.to(accelerator.device).eval()
    found: list[tuple[int, Any]] = []
    batches = _own_batches(examples, config, accelerator)
    try:
        with torch.no_grad():
            for i, index in enumerate(batches):
                batch = examples.batch(index, None)
                found += zip(index.tolist(), read(model, batch.to(accelerator.device)), strict=True)
                if on_step is not None:
                    on_step(i + 1, len(batches))
    finally:
        model.train(was_training)
        model.to("cpu")
    if accelerator.num_processes > 1:
        found = gather_object(found)
    ordered: list[Any] = [None] * len(found)
    for place, result in found:
        ordered[place] = result
    return ordered


def _own_batches(examples: Examples, config: TrainConfig, accelerator: Accelerator) -> list[np.ndarray]:
    """This process's share of the evaluation batches, which group examples by length."""
    blocks = getattr(examples, "blocks", None)
    batches = by_length(examples.lengths, config.batch_size, config.batch_tokens, blocks)
    return batches[accelerator.process_index :: accelerator.num_processes]
