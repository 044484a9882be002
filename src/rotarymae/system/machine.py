"""The machine: versions, processor, and the memory that this process may still take."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

import rotarymae


def versions() -> dict[str, str]:
    """Return {package: version} for rotarymae, torch, numpy and python."""
    import numpy as np
    import torch

    return {
        "rotarymae": rotarymae.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def hardware() -> str:
    """Return the name of the CUDA device; without one, the processor and PyTorch's threads, as "NAME, 8 threads"."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} thread{'s' if threads > 1 else ''}"


@cache
def processor() -> str:
    """Return the processor's model name, or its architecture, such as "x86_64", if the system does not tell it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def free_memory(root: Path = Path("/")) -> float:
    """Return the bytes of memory that this process may still take, at least 0.

    It is the least of three: the computer's free memory; what is left in the control groups of the process, by which
    containers limit memory; and what its limit of address space (`ulimit -v`) leaves.

    Args:
        root: the folder in which proc and sys lie; another one for tests.
    """
    least = min([psutil.virtual_memory().available, *_left_in_groups(root), *_left_of_addresses()])
    return max(float(least), 0.0)


def _left_of_addresses() -> Iterator[int]:
    """Yield the bytes that this process may still map, if its address space is limited (`ulimit -v`); else nothing."""
    with suppress(ImportError):  # Windows has no such limits
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit - psutil.Process().memory_info().vms


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield the bytes of memory that control groups (version 2), such as a container's, leave to this process.

    There is one number for each group with a limit: first the process's group, then the groups above it. Inactive
    cached files count as free. Nothing is yielded on a system without such groups. `root` is the folder in which proc
    and sys lie.
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
