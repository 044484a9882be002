"""How much memory this process may still take: a container, a batch system or a shell may allow less than there is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil


def free_memory(root: Path = Path("/")) -> float:
    """Bytes: what the computer has free, or what is left of the limits of its control groups (as Slurm, Docker and
    systemd set them) or of its address space (`ulimit -v`), whichever is least.

    Args:
        root: where /proc and /sys are.
    """
    least = min([psutil.virtual_memory().available, *_left_in_groups(root), *_left_of_addresses()])
    return max(float(least), 0.0)


def _left_in_groups(root: Path) -> Iterator[int]:
    """Of this process' control groups and all above them, versions 1 and 2 of Linux."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers not in ("", "memory"):
                continue
            mount = root / "sys/fs/cgroup" / controllers
            old = controllers == "memory"
            limit, used = ("limit_in_bytes", "usage_in_bytes") if old else ("max", "current")
            at = mount / path.strip("/")
            for folder in (at, *(above for above in at.parents if above.is_relative_to(mount))):
                # A container sees its own group at the mount, whatever its path is outside.
                with suppress(OSError, ValueError):
                    most = int((folder / f"memory.{limit}").read_text())  # "max" is none
                    yield most - int((folder / f"memory.{used}").read_text()) + _reclaimable(folder, old)


def _reclaimable(group: Path, old: bool) -> int:
    """Bytes of files that are kept in memory only for as long as nobody needs it."""
    with suppress(OSError):
        name = "total_inactive_file" if old else "inactive_file"
        for line in (group / "memory.stat").read_text().splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    return 0


def _left_of_addresses() -> Iterator[int]:
    if sys.platform == "win32":
        return
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most != resource.RLIM_INFINITY:
        yield most - psutil.Process().memory_info().vms
