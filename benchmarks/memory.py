"""Peak memory of one training step, in a process of its own: `python -m benchmarks.memory LENGTH`; prints bytes.

One series, of which a tenth is padding. On a CPU the figure is the largest resident size during the step less that
before it, after a step of 64 tokens has brought what is there once and for all; on a GPU what torch allocated.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.measure import Settings
from benchmarks.workload import Ours, equal_tokens, pad_to
from rotarymae import RoMAEConfig

STATUS = Path("/proc/self/status")


def peak(length: int, settings: Settings, size: str = "tiny") -> int:
    ours = Ours(RoMAEConfig.named(size, axes=2, features=2), settings)

    def step(length: int) -> None:
        ours.train(pad_to(equal_tokens(1, length - length // 10, settings), length))

    step(64)
    if settings.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step(length)
        return torch.cuda.max_memory_allocated() - before
    return peak_during(lambda: step(length))


def peak_during(call: Callable[[], object]) -> int:
    """Bytes by which the largest resident size during a call is above that before it."""
    # Where the system cannot start its count anew it still holds the peak of start-up, and the figure is too small.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _largest()
    call()
    return _largest() - before


def _largest() -> int:
    """The largest resident size so far, in bytes."""
    if STATUS.exists():
        lines = STATUS.read_text(encoding="utf-8").splitlines()
        found = [line.split()[1] for line in lines if line.startswith("VmHWM")]
        if found:
            return int(found[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("length", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--size", default="tiny")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    print(peak(given.length, Settings(device=given.device), given.size))
