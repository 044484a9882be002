"""Peak memory of one training step, in a process of its own: `python -m benchmarks.memory LENGTH`; prints bytes.

Tiny, batch 1, a tenth of the tokens padding, among the visible and the hidden ones alike. On a CPU the figure is the
largest resident size during the step less that before it, after a step of 64 tokens has brought what is there once and
for all; on a GPU what torch allocated.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import sys
from pathlib import Path

import torch

from benchmarks.measure import Settings
from benchmarks.workload import Ours, Paper, equal_tokens, masked_batch, pad_to, widened
from rotarymae.config import RoMAEConfig

STATUS = Path("/proc/self/status")


def peak(length: int, settings: Settings, reference: bool, size: str = "tiny") -> int:
    config = RoMAEConfig.named(size, axes=2, features=2)
    contender = Paper(config, settings) if reference else Ours(config, settings)

    def step(length: int) -> None:
        more = length // 10
        tokens = equal_tokens(1, length - more, settings)
        if isinstance(contender, Paper):
            contender.train(pad_to(tokens, length))
        else:
            contender.train_batch(widened(masked_batch(tokens), more // 4, more - more // 4))

    step(64)
    if settings.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step(length)
        return torch.cuda.max_memory_allocated() - before
    before = _reset()
    step(length)
    return _largest() - before


def _reset() -> int:
    """Makes the largest resident size start anew where the system can (Linux), and gives it, in bytes."""
    # Where it cannot, it still holds the peak of start-up, and the figure comes out too small.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _largest()


def _largest() -> int:
    if STATUS.exists():
        found = [
            line.split()[1] for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM")
        ]
        if found:
            return int(found[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("length", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--size", default="tiny")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    print(peak(given.length, Settings(device=given.device), given.reference, given.size))
