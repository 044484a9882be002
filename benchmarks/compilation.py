"""Seconds of compilation and recompilations, in a process of its own: `python -m benchmarks.compilation`; prints JSON.

Nothing is taken from the cache of earlier runs, unless --cached. First a batch without padding and one with, which are
the two kinds of attention; then ten batches of shapes not seen before.
"""

from __future__ import annotations

import argparse
import json
import time

import torch
import torch._inductor.config
from torch._dynamo.utils import counters

from benchmarks.measure import Settings
from benchmarks.workload import Ours, equal_tokens, masked_batch, widened
from rotarymae.config import RoMAEConfig


def compilation(settings: Settings, size: str = "tiny") -> dict[str, float]:
    def graphs() -> int:
        return counters["stats"]["unique_graphs"]

    ours = Ours(RoMAEConfig.named(size, axes=2, features=2), settings, compiled=True)
    plain = Ours(RoMAEConfig.named(size, axes=2, features=2), settings)
    even = masked_batch(equal_tokens(4, 64, settings))
    first = [even, widened(masked_batch(equal_tokens(5, 60, settings)), 3, 9)]
    start = time.perf_counter()
    for batch in first:
        ours.train_batch(batch)
    whole = time.perf_counter() - start
    start = time.perf_counter()
    for batch in first:
        plain.train_batch(batch)
    eager = time.perf_counter() - start
    before = graphs()
    start = time.perf_counter()
    for i in range(10):
        batch = masked_batch(equal_tokens(3 + i, 40 + 17 * i, settings))
        ours.train_batch(batch if i % 2 else widened(batch, 2 + i, 11 + i))
    later = time.perf_counter() - start
    return {"seconds": whole - eager, "graphs": before, "recompilations": graphs() - before, "ten steps": later}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--cached", action="store_true")
    given = parser.parse_args()
    torch._inductor.config.force_disable_caches = not given.cached
    if given.threads:
        torch.set_num_threads(given.threads)
    print(json.dumps(compilation(Settings(device=given.device), given.size)))
