"""The device of a run, and the precision it computes in."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch

from rotarymae.config import Precision
from rotarymae.training.fit_config import TrainConfig


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
