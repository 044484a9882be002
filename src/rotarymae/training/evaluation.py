"""A model on examples it does not learn from: the mean loss, or whatever is read from its output."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn

from rotarymae.batch import Batch, Examples
from rotarymae.training.batching import by_length
from rotarymae.training.config import TrainConfig
from rotarymae.training.distributed import make_accelerator, total
from rotarymae.training.lanes import INFERENCE, Lanes, compiled, cut, lanes_for
from rotarymae.training.objectives import Objective

T = TypeVar("T")


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

    def both(index: np.ndarray) -> tuple[float, float]:
        batch = examples.batch(index, None)
        with torch.no_grad(), config.autocast(accelerator.device):
            return float(objective(batch.to(accelerator.device))), objective.count(batch)

    try:
        for found in _in_lanes(objective, both, examples, _own_batches(examples, config, accelerator), accelerator):
            for own, terms in found:
                loss, count = loss + own, count + terms
            ended = terminated()
            if ended:
                break
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
    restored. On the CPU `read` may be called by several threads at a time.
    """
    accelerator = make_accelerator()
    was_training = model.training
    model.to(accelerator.device).eval()
    found: list[tuple[int, Any]] = []

    def one(index: np.ndarray) -> list[tuple[int, Any]]:
        batch = examples.batch(index, None)
        with torch.no_grad():
            return list(zip(index.tolist(), read(model, batch.to(accelerator.device)), strict=True))

    batches = _own_batches(examples, config, accelerator)
    done = 0
    try:
        for several in _in_lanes(model, one, examples, batches, accelerator):
            found += itertools.chain.from_iterable(several)
            done += len(several)
            if on_step is not None:
                on_step(done, len(batches))
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
    """This process's share of the evaluation batches, which group examples by length; on the CPU, small ones."""
    batches = by_length(examples.lengths, config.batch_size, config.batch_tokens)
    own = batches[accelerator.process_index :: accelerator.num_processes]
    if accelerator.device.type != "cpu":
        return own
    return [part for batch in own for part in cut(batch, examples.lengths, INFERENCE)]


def _in_lanes(
    model: nn.Module,
    work: Callable[[np.ndarray], T],
    examples: Examples,
    batches: Iterable[np.ndarray],
    accelerator: Accelerator,
) -> Iterator[list[T]]:
    """work(batch) of all batches, in order, as many at a time as are computed side by side."""
    keeps = accelerator.num_processes > 1 or compiled(model)
    count = 1 if keeps else lanes_for(accelerator.device, int(examples.lengths.sum()))
    ahead = iter(batches)
    with Lanes(count) as lanes:
        while several := list(itertools.islice(ahead, count)):
            yield lanes.map(work, several)
