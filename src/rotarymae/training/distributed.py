"""Processes and devices of a run: sums over them, and signals that end them."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import torch
from accelerate import Accelerator, PartialState
from accelerate.tracking import get_available_trackers
from accelerate.utils import broadcast_object_list

from rotarymae.errors import InputError

T = TypeVar("T")

_SINGLE_PROCESS = ContextVar("single_process", default=False)


def is_main_process() -> bool:
    """Return whether this process is the one that writes files."""
    return _processes().is_main_process


def broadcast_from_main(value: T) -> T:
    """Return the main process's value, on every process."""
    if _processes().num_processes == 1:
        return value
    values = [value]
    broadcast_object_list(values)
    return values[0]


@contextmanager
def single_process() -> Iterator[None]:
    """Let this process predict by itself; others, if there are any, take no part."""
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


def make_accelerator(trackers: tuple[str, ...] = (), folder: str | Path | None = None) -> Accelerator:
    """Create the Accelerator. Mixed precision comes from TrainConfig, not from the launcher.

    Raises:
        InputError: a tracker that is unknown, not installed, or without the folder it writes to.
    """
    installed = [str(getattr(name, "value", name)) for name in get_available_trackers()]
    for name in trackers:
        if name not in ("tensorboard", "wandb"):
            raise InputError(f"tracker {name!r}; wanted 'tensorboard' or 'wandb'.")
        if name not in installed:
            raise InputError(f"the tracker {name} is not installed; run `pip install {name}`.")
        if name == "tensorboard" and folder is None:
            raise InputError("tensorboard writes to the folder of the run; give one.")
    _processes()
    project = None if folder is None else str(folder)
    accelerator = Accelerator(mixed_precision="no", log_with=list(trackers) or None, project_dir=project)
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


@contextmanager
def watched_signals(watch: bool = True) -> Iterator[Callable[[], int]]:
    """Give a function that tells which of SIGTERM and SIGINT has arrived, or 0: the loop saves before it ends.

    The same signal a second time does what it would have done without us; the other one does not, because launchers
    pass Ctrl-C on as SIGTERM. A signal that the caller ignores stays ignored. Outside the main thread signals cannot
    be watched.
    """
    arrived = 0
    watch = watch and threading.current_thread() is threading.main_thread()
    former = {signum: signal.getsignal(signum) for signum in ((signal.SIGTERM, signal.SIGINT) if watch else ())}
    former = {signum: handler for signum, handler in former.items() if handler not in (None, signal.SIG_IGN)}

    def note(signum: int, frame: Any) -> None:
        nonlocal arrived
        if arrived == signum:
            signal.signal(signum, former[signum])  # pyright: ignore
            os.kill(os.getpid(), signum)
        arrived = arrived or signum

    for signum in former:
        signal.signal(signum, note)
    try:
        yield lambda: arrived
    finally:
        for signum, handler in former.items():
            signal.signal(signum, handler)
