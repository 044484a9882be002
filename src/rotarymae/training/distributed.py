"""The processes of a run: Accelerate's, what they add up, and how they are asked to end."""

from __future__ import annotations

import atexit
import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.tracking import get_available_trackers

from rotarymae.errors import InputError


def make_accelerator(trackers: tuple[str, ...] = (), folder: str | Path | None = None) -> Accelerator:
    """Of this process; precision is the configuration's affair, whatever the launcher says.

    Raises:
        InputError: a tracker that is unknown, not installed, or without the folder it writes to.
    """
    there = [str(getattr(name, "value", name)) for name in get_available_trackers()]
    for name in trackers:
        if name not in ("tensorboard", "wandb"):
            raise InputError(f"tracker {name!r}; wanted 'tensorboard' or 'wandb'.")
        if name not in there:
            raise InputError(f"the tracker {name} is not installed; run `pip install {name}`.")
        if name == "tensorboard" and folder is None:
            raise InputError("tensorboard writes to the folder of the run; give one.")
    kept = None if folder is None else str(folder)
    accelerator = Accelerator(mixed_precision="no", log_with=list(trackers) or None, project_dir=kept)
    if accelerator.num_processes > 1:
        # A process that ends while gloo's threads still run is aborted, and the launcher takes that for a failure.
        # Registering again and again is harmless: leaving is done once.
        atexit.register(_leave)
    return accelerator


def _leave() -> None:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()  # models wrapped for the exchange of gradients hold the group's threads, in cycles
        torch.distributed.destroy_process_group()


def total(accelerator: Accelerator, numbers: list[float]) -> list[float]:
    """Sums over all processes."""
    if accelerator.num_processes == 1:
        return numbers
    reduced = accelerator.reduce(torch.tensor(numbers, dtype=torch.float64, device=accelerator.device), "sum")
    return reduced.tolist()  # type: ignore[union-attr]


def cuda_devices(accelerator: Accelerator) -> list[torch.device]:
    return [accelerator.device] if accelerator.device.type == "cuda" else []


@contextmanager
def termination() -> Iterator[Callable[[], bool]]:
    """Whether SIGTERM has come; the former handler is put back. Outside the main thread signals cannot be watched."""
    asked = False

    def ask(signum: int, frame: Any) -> None:
        nonlocal asked
        asked = True

    try:
        before = signal.signal(signal.SIGTERM, ask)
    except ValueError:
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGTERM, before)
