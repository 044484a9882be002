"""Processes and devices of a run: sums over them, the precision they compute in, and signals that end them."""

from __future__ import annotations

import atexit
import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import broadcast_object_list

from rotarymae.config import Precision
from rotarymae.system import handled_signals
from rotarymae.training.fit_config import TrainConfig

T = TypeVar("T")

_SINGLE_PROCESS = ContextVar("single_process", default=False)


def is_main_process() -> bool:
    """Return whether this process is the one that writes files."""
    return _processes().is_main_process


def broadcast_from_main(value: T) -> T:
    """Return the value of the main process in every process."""
    if _processes().num_processes == 1:
        return value
    values = [value]
    broadcast_object_list(values)
    return values[0]


@contextmanager
def single_process() -> Iterator[None]:
    """Compute in this process only, as if there were no others."""
    token = _SINGLE_PROCESS.set(True)
    try:
        yield
    finally:
        _SINGLE_PROCESS.reset(token)


def are_several(accelerator: Accelerator) -> bool:
    """Return whether batches are shared among processes."""
    return accelerator.num_processes > 1 and not _SINGLE_PROCESS.get()


def _processes() -> PartialState:
    # Launchers say how many processes there are, not that they have no device.
    return PartialState(cpu=not torch.accelerator.is_available())


def make_accelerator() -> Accelerator:
    """Create the Accelerator. Mixed precision comes from TrainConfig, not from the launcher."""
    _processes()
    accelerator = Accelerator(mixed_precision="no")
    if accelerator.num_processes > 1:
        # A process that ends while gloo's threads still run is aborted, and the launcher takes that for a failure.
        # Registering several times is harmless: the group is destroyed once.
        atexit.register(_destroy_process_group)
    return accelerator


def _destroy_process_group() -> None:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()  # models wrapped for the exchange of gradients hold the group's threads, in cycles
        torch.distributed.destroy_process_group()


def total(accelerator: Accelerator, numbers: list[float]) -> list[float]:
    """Sum each number over all processes."""
    if accelerator.num_processes == 1:
        return numbers
    reduced = accelerator.reduce(torch.tensor(numbers, dtype=torch.float64, device=accelerator.device), "sum")
    return reduced.tolist()  # type: ignore[union-attr]


def autocast_dtype(config: TrainConfig, device: torch.device) -> torch.dtype | None:
    """Return the precision of matrix products under autocast, or None for that of the weights."""
    return torch.bfloat16 if taken_precision(config.precision, device) == "bf16" else None


def taken_precision(precision: Precision, device: torch.device | None = None) -> Precision:
    """Return the precision for a device (default: this process's); "auto" is bf16 where the hardware has it."""
    if precision != "auto":
        return precision
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


@contextmanager
def watched_signals(watch: bool = True) -> Iterator[Callable[[], int]]:
    """Yield a function that returns the number of a signal (SIGTERM, SIGINT) that has arrived, or 0.

    The training loop asks it, and saves before it ends. The same signal a second time has its usual effect; the other
    one is ignored, because launchers pass Ctrl-C on as SIGTERM.
    """
    arrived = 0

    def note(signum: int, former: dict[int, Any]) -> None:
        """Remember the signal; pass it on to the former handler if it arrives again."""
        nonlocal arrived
        if arrived == signum:
            signal.signal(signum, former[signum])
            os.kill(os.getpid(), signum)
        arrived = arrived or signum

    with handled_signals(note) if watch else nullcontext():
        yield lambda: arrived
