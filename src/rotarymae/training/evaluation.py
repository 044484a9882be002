"""The device and the precision of a run; and evaluation: a model's mean loss, or what is read from its output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

from rotarymae.batch import Batch, Examples, by_length
from rotarymae.config import Precision
from rotarymae.training.fit_config import TrainConfig
from rotarymae.training.objectives import Objective


def default_device() -> torch.device:
    """Return the device to train and predict on: the accelerator (such as a GPU) if torch sees one, else the CPU."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator or torch.device("cpu")


def taken_precision(precision: Precision, device: torch.device | None = None) -> Precision:
    """Return the number format of matrix products, "fp32" or "bf16", that a setting means on a device.

    Args:
        precision: "fp32" or "bf16" stay as they are. "auto" becomes "bf16" on an NVIDIA GPU or a processor that has
            hardware for bf16 products, else "fp32".
        device: where the products are computed; None means `default_device()`.
    """
    if precision != "auto":
        return precision
    kind = (device or default_device()).type
    has_units = (
        torch.cuda.is_bf16_supported(including_emulation=False)
        if kind == "cuda"
        else kind == "cpu" and has_matrix_units()
    )
    return "bf16" if has_units else "fp32"


def has_matrix_units() -> bool:
    """Return whether the processor has AMX, units that multiply tiles of bf16 matrices (avx512_bf16 is not enough)."""
    return torch.cpu._is_amx_tile_supported()


def autocast(config: TrainConfig, device: torch.device) -> Any:
    """Return a context manager in which torch multiplies matrices on a device in the precision of the settings.

    For bf16 it is `torch.autocast`; for fp32 it does nothing.

    Args:
        config: its field `precision` is used: "fp32", "bf16", or "auto" for bf16 where the hardware has it.
        device: where the matrices are.
    """
    low = taken_precision(config.precision, device) == "bf16"
    return torch.autocast(device.type, torch.bfloat16) if low else nullcontext()


def evaluate(
    objective: Objective,
    examples: Examples,
    config: TrainConfig,
    every: int = 1,
    batches: list[np.ndarray] | None = None,
) -> float:
    """Return the mean loss over all targets of all examples, such as the validation loss; NaN if there is no target.

    Each target has equal weight, whatever its batch. The model predicts without augmentation and without gradients on
    the default device; its mode and device are restored. If the objective returns several losses, one for each
    temperature (see `Objective.forward`), the smallest mean counts.

    Args:
        objective: the model and its loss.
        examples: data, such as the validation part.
        config: size of the batches, and precision.
        every: a number k above 1 evaluates only one in k examples, spread evenly over their lengths, but at least about
            one batch.
        batches: the batches to evaluate, as arrays of indices; `every` is then not used. None makes batches of similar
            lengths.
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
    """Apply a function of the model to all examples, batch by batch, and return one result per example, in input order.

    Args:
        model: is put into evaluation mode and on the default device; both are restored afterwards.
        examples: the S examples.
        read: called with (model, batch), without gradients and in the precision of `config`; returns a list with one
            result per example of the batch.
        config: size of the batches, and precision.
        on_step: called with (batches done, batches in all), for progress bars; None for none.
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
    """Prepare a module for evaluation within the `with` block; yield the default device, where the module then is.

    It is in evaluation mode, no gradients are computed, and matrices are multiplied in the precision of `config`.
    Device, mode and precision are restored afterwards, also after an error.
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
    """Sort examples by length and cut them into batches; return these as arrays of indices, shortest examples first.

    Args:
        examples: the S examples.
        config: size of the batches, `batch_size` or `batch_tokens`.
        every: a number k above 1 takes only one in k examples, spread evenly over their lengths, but at least about one
            batch.
    """
    sizes = (config.batch_size, config.batch_tokens)
    batches = by_length(examples.lengths, *sizes)
    if every > 1:
        step = min(every, len(batches))
        kept = np.argsort(examples.lengths, kind="stable")[step // 2 :: step]
        batches = [kept[batch] for batch in by_length(examples.lengths[kept], *sizes)]
    return batches
