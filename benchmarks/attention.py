"""What attention costs by length, of series that are read whole and in windows: `python -m benchmarks.attention`.

    python -m benchmarks.attention                                  everything; hours on a core
    python -m benchmarks.attention --lengths 1024 4096 --kinds whole
    python -m benchmarks.attention --figure                         draws what has been measured

One series, the encoder of `fit` (size light), one thread, float32, no dropout. Each figure is taken in a process of its
own and added to results/benchmark-attention.json; what stands there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from benchmarks.measure import Settings, machine
from benchmarks.memory import peak_during
from benchmarks.workload import equal_tokens
from rotarymae import Encoder, RoMAEConfig
from rotarymae.plots import style_of, styled

FILE, PICTURE = Path("results/benchmark-attention.json"), Path("docs/images/attention.png")
KINDS = {"whole": 0, "windows of 4,096": 4096}  # observations of a window
LENGTHS = (1024, 4096, 16384)
# A series of 4,000 observations, whole and in windows.
WHOLE = 4000
EMBEDDED = {"whole": 0, "windows of 1,024": 1024}
LABELS = ("processor seconds of a pass", "peak memory (MiB)")
BATCH = 8192  # tokens of windows at a time
ENOUGH = 2.0  # seconds, above which one pass is measured, and below which the median of three is


def measure(length: int, window: int, backward: int) -> dict[str, float]:
    """Processor seconds and bytes of a forward pass, and `backward` of the gradients; windows share a sixteenth."""
    settings = Settings(threads=1)
    encoder = Encoder(RoMAEConfig.named("light"))
    shared = window // 16
    rows, each = (-(-(length - shared) // (window - shared)), window) if 0 < window < length else (1, length)
    at_a_time = max(1, BATCH // each)
    parts = [equal_tokens(min(at_a_time, rows - i), each, settings, 1, 1) for i in range(0, rows, at_a_time)]

    def run() -> None:
        for tokens in parts:
            with torch.set_grad_enabled(bool(backward)):
                out = encoder(tokens).tokens.sum()
            if backward:
                out.backward()
                encoder.zero_grad()

    encoder(equal_tokens(1, 64, settings, 1, 1)).tokens.sum().backward()  # brings what is there once and for all
    seconds: list[float] = []

    def timed() -> None:
        start = time.process_time()  # of one thread: what else the processor does counts little
        run()
        seconds.append(time.process_time() - start)

    memory = peak_during(timed)
    if seconds[0] < ENOUGH:
        seconds.clear()
        for _ in range(3):
            timed()
    return {"seconds": statistics.median(seconds), "bytes": memory}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.attention", description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS))
    parser.add_argument("--embed", action="store_true", help=f"embed a series of {WHOLE} instead, whole and in windows")
    parser.add_argument("--figure", action="store_true")
    parser.add_argument("--one", nargs=3, type=int, metavar=("LENGTH", "WINDOW", "BACKWARD"), help="in this process")
    given = parser.parse_args()
    if given.one:
        torch.set_num_threads(1)
        print(json.dumps(measure(*given.one)))
        return
    if given.figure:
        draw(json.loads(FILE.read_text())["rows"]).savefig(PICTURE, dpi=150)
        return
    jobs = [("embed", name, WHOLE) for name in EMBEDDED]
    if not given.embed:
        jobs = [("step", name, length) for length in given.lengths for name in given.kinds]
    for job in jobs:
        measured = (
            json.loads(FILE.read_text()) if FILE.exists() else {"about": machine(Settings(threads=1)), "rows": []}
        )
        if any((row["pass"], row["kind"], row["length"]) == job for row in measured["rows"]):
            continue
        what, name, length = job
        window = (KINDS if what == "step" else EMBEDDED)[name]
        call = [sys.executable, "-m", "benchmarks.attention", "--one", length, window, int(what == "step")]
        done = subprocess.run([str(part) for part in call], stdout=subprocess.PIPE, text=True, check=True)
        row = {"pass": what, "kind": name, "length": length, **json.loads(done.stdout)}
        print(f"{what}, {name}, {length:,}: {row['seconds']:.3g} s, {row['bytes'] / 2**20:,.0f} MiB", flush=True)
        measured["rows"].append(row)
        FILE.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


@styled
def draw(rows: list[dict[str, Any]]) -> Figure:
    """Draw seconds and memory of a step by length, on logarithmic axes."""
    drawing = Figure((8.0, 3.4))
    for axes, key, unit, label in zip(drawing.subplots(1, 2), ("seconds", "bytes"), (1, 2**20), LABELS, strict=True):
        for i, name in enumerate(KINDS):
            steps = [row for row in rows if (row["pass"], row["kind"]) == ("step", name)]
            points = sorted((row["length"], row[key] / unit) for row in steps)
            colour, marker = style_of(i)
            axes.loglog(*zip(*points, strict=True), color=colour, marker=marker, markersize=5, label=name)
        axes.set(xlabel="observations of the series", ylabel=label)
        axes.set_xticks(LENGTHS, [f"{length // 1024}k" for length in LENGTHS])
        axes.minorticks_off()
    drawing.axes[0].legend()
    return drawing


if __name__ == "__main__":
    main()
