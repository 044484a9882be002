"""The machine: versions, processor, and the memory that this process may still take."""

from __future__ import annotations

import platform
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil

import rotarymae


def versions() -> dict[str, str]:
    """Return {package: version} for Python and the packages that results depend on."""
    import numpy as np
    import torch

    return {
        "rotarymae": rotarymae.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def hardware() -> str:
    """Return the accelerator's name if there is one, else "processor, n threads" with PyTorch's number of threads."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} thread{'s' if threads > 1 else ''}"


@cache
def processor() -> str:
    """Return the processor's name."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def free_memory(root: Path = Path("/")) -> float:
    """Return the bytes of memory that this process may still take, at least 0.

    It is the least of what is free in the computer and in its control groups, which containers limit.

    Args:
        root: the folder in which proc and sys lie; another one for tests.
    """
    least = min([psutil.virtual_memory().available, *_left_in_groups(root)])
    return max(float(least), 0.0)


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield the bytes left in each limited control group (version 2) of the process, from its own up to the root.

    Cached files count as free. Yields nothing on a system without such groups.
    """
    with suppress(OSError):
        lines = (root / "proc/self/cgroup").read_text().splitlines()
        mount = root / "sys/fs/cgroup"
        group = mount / next((line[3:] for line in lines if line.startswith("0::")), "/").strip("/")
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError):  # "max" is no limit
                limit, used = (int((folder / f"memory.{name}").read_text()) for name in ("max", "current"))
                stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                yield limit - used + int(stat.get("inactive_file", 0))
            if folder == mount:
                return


@contextmanager
def handled_signals(handle: Callable[[int, dict[int, Any]], None]) -> Iterator[None]:
    """Call `handle(signum, former)` when SIGINT or SIGTERM arrives in the `with` block.

    `former` is {signum: handler before the block}, for the signals that are handled; these handlers are back after the
    block. Signals that the process ignores already, as under `nohup`, stay ignored. Outside the main thread, the only
    one that may set handlers, nothing is changed.
    """
    watched = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    former: dict[int, Any] = {signum: signal.getsignal(signum) for signum in watched}
    former = {signum: handler for signum, handler in former.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for signum in former:
            signal.signal(signum, lambda arrived, _: handle(arrived, former))
        yield
    finally:
        for signum, handler in former.items():
            signal.signal(signum, handler)


def _left_of_addresses() -> Iterator[int]:
    """Yield the bytes left of this process's limit on its address space; nothing without a limit, or on Windows."""
    if sys.platform != "win32":
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            yield most - psutil.Process().memory_info().vms
