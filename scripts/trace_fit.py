"""Count the files, and the moves between files, that a small `rotarymae fit` passes before its first forward pass.

    python scripts/trace_fit.py [--files]

A move is a call from a function in one file of ours to a function in another; what modules do while they are imported
is not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import rotarymae
from rotarymae.cli.main import main as command
from rotarymae.transformer import Transformer

SOURCE = str(Path(rotarymae.__file__).parent)
SIZES = "--embed-dim 24 --num-heads 2 --depth 1 --decoder-embed-dim 12 --decoder-num-heads 1 --decoder-depth 1"
FIT = (
    f"--channel band --label kind --min-steps 0 --batch-size 8 {SIZES} --pretrain-epochs 1 --finetune-epochs 1 --quiet"
)


class FirstForward(BaseException):
    """Ends the command; no `except Exception` takes it."""


class Trace:
    """What was called, in order: calls, distinct functions, files, and moves between files."""

    def __init__(self) -> None:
        self.calls = self.moves = self.importing = 0
        self.functions: set[tuple[str, str]] = set()
        self.files: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.here: list[str] = []

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>" or code.co_filename.startswith("<frozen importlib"):
            self.importing += {"call": 1, "return": -1}.get(event, 0)
            return
        if self.importing or not code.co_filename.startswith(SOURCE):
            return
        file = code.co_filename.removeprefix(SOURCE + "/")
        if event == "call":
            self.calls += 1
            self.functions.add((file, code.co_qualname))
            self.files[file] += 1
            if self.here and self.here[-1] != file:
                self.moves += 1
                self.pairs[self.here[-1], file] += 1
            self.here.append(file)
        elif event == "return" and self.here:
            self.here.pop()


def table(path: Path) -> None:
    """Write 24 series of two kinds, in two channels."""
    draw = np.random.default_rng(0)
    rows = ["id,time,band,value,kind"]
    for i in range(24):
        for time in np.sort(draw.uniform(0, 30, 10)):
            rows.append(f"s{i},{time:.4f},{'gr'[draw.integers(2)]},{np.sin((i % 2 + 0.3) * time):.5f},{'ab'[i % 2]}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def measure() -> Trace:
    """Trace a `fit` until its first forward pass."""
    trace = Trace()
    forward = Transformer.forward

    def first(*arguments: Any, **named: Any) -> Any:
        sys.setprofile(None)
        raise FirstForward

    with tempfile.TemporaryDirectory() as folder:
        table(Path(folder) / "table.csv")
        words = ["fit", f"{folder}/table.csv", "--out", f"{folder}/run", *FIT.split()]
        Transformer.forward = first  # type: ignore[method-assign]
        sys.setprofile(trace)
        try:
            command(words)
        except FirstForward:
            pass
        finally:
            sys.setprofile(None)
            Transformer.forward = forward  # type: ignore[method-assign]
    return trace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="list the files, and the pairs with most moves")
    options = parser.parse_args()
    trace = measure()
    print(
        f"{trace.calls:,} calls of {len(trace.functions)} functions in {len(trace.files)} files, "
        f"{trace.moves} moves between files"
    )
    if options.files:
        for file, calls in trace.files.most_common():
            print(f"{calls:6,}  {file}")
        for (one, other), moves in trace.pairs.most_common(30):
            print(f"{moves:6,}  {one} -> {other}")


if __name__ == "__main__":
    main()
