"""In what precision a model computes, and by which of torch's kernels."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from rotarymae.config import Precision
from rotarymae.system import processor
from rotarymae.training.config import TrainConfig
from rotarymae.training.distributed import make_accelerator

# Up to so many tokens per series, attention in few large products is faster than in the many small ones of the flash
# kernel, and takes less than half as much memory again; at 2,000 tokens it is slower and takes twice the memory.
LONGEST = 400


def autocast_dtype(config: TrainConfig, device: torch.device) -> torch.dtype | None:
    """The precision of matrix products under autocast, or None for that of the weights."""
    return {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[taken_precision(config.precision, device)]


def taken_precision(asked: Precision, device: torch.device | None = None) -> Precision:
    """What "auto" is on a device, by default this process's: bf16 where it has units for it, elsewhere fp32."""
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
    """Whether the processor has units that multiply whole tiles of bf16 matrices (AMX; avx512_bf16 is no such unit)."""
    return torch.cpu._is_amx_tile_supported()


def autocast(config: TrainConfig, device: torch.device) -> Any:
    """A context in which a model computes as `config.precision` says."""
    dtype = autocast_dtype(config, device)
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype)


_CHANGING = threading.Lock()
_KERNELS = ExitStack()
_runs = 0


@contextmanager
def fast_products(config: TrainConfig, device: torch.device, lengths: np.ndarray) -> Iterator[None]:
    """Within, oneDNN multiplies float32 matrices on processors where MKL, which torch takes, needs twice the time.

    Kernels are chosen for the whole process. Runs of several threads therefore share the change: the first one makes
    it, the last one takes it back.

    Args:
        lengths: [S], tokens of the series; with one longer than `LONGEST` nothing is changed.
    """
    global _runs
    in_float32 = device.type == "cpu" and autocast_dtype(config, device) is None
    if not (in_float32 and _prefers_onednn() and lengths.max(initial=0) <= LONGEST):
        yield
        return
    with _CHANGING:
        if _runs == 0:
            _KERNELS.enter_context(_onednn())
        _runs += 1
    try:
        yield
    finally:
        with _CHANGING:
            _runs -= 1
            if _runs == 0:
                _KERNELS.close()


def _prefers_onednn() -> bool:
    """AMD's processors with AVX-512, which MKL does not use there, and without matrix units."""
    return torch.backends.cpu.get_cpu_capability() == "AVX512" and "AMD" in processor() and not has_matrix_units()


@contextmanager
def _onednn() -> Iterator[None]:
    # torch leaves float32 to oneDNN only where it may round to bf16. It rounds for matrix units alone; elsewhere its
    # products are as exact as MKL's.
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # the user has set torch's newer switches, which do not go with this one
        yield
        return
    torch.set_float32_matmul_precision("medium")
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
