"""How much memory this process may still take: a container or a shell may allow less than the computer has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil


def free_memory(root: Path = Path("/")) -> float:
    """Return the bytes that are free: on the computer, within the control groups, or of the address space.

    Args:
        root: where /proc and /sys are.
    """
    least = min([psutil.virtual_memory().available, *_left_in_groups(root), *_left_of_addresses()])
    return max(float(least), 0.0)


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield what the process's control group (version 2) and each above it have left; cached files count as free."""
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


def _left_of_addresses() -> Iterator[int]:
    if sys.platform != "win32":
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            yield most - psutil.Process().memory_info().vms
