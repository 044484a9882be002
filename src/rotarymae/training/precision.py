"""The precision in which a model computes."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch

from rotarymae.config import Precision
from rotarymae.training.config import TrainConfig
from rotarymae.training.distributed import make_accelerator


def autocast_dtype(config: TrainConfig, device: torch.device) -> torch.dtype | None:
    """Return the precision of matrix products under autocast, or None for that of the weights."""
    return {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[taken_precision(config.precision, device)]


def taken_precision(asked: Precision, device: torch.device | None = None) -> Precision:
    """Return the precision taken on a device, by default this process's; "auto" is bf16 where it has units for it."""
    if asked != "auto":
        return asked
    kind = (device or make_accelerator().device).type
    has_units = (
        torch.cuda.is_bf16_supported(including_emulation=False)
        if kind == "cuda"
        else kind == "cpu" and has_matrix_units()
    )
    return "bf16" if has_units else "fp32"


def has_matrix_units() -> bool:
    """Return whether the processor multiplies tiles of bf16 matrices (AMX; avx512_bf16 is no such unit)."""
    return torch.cpu._is_amx_tile_supported()


def autocast(config: TrainConfig, device: torch.device) -> Any:
    """Return a context in which a model computes as `config.precision` says."""
    dtype = autocast_dtype(config, device)
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype)
