"""`python -m benchmarks` (`make bench`): measures, prints, and writes one JSON file and one Markdown table.

    python -m benchmarks                                   everything, on the CPU, all its cores
    python -m benchmarks --only equal ragged --threads 2   benchmark-equal-ragged.json
    python -m benchmarks --device cuda                     the same on a GPU, in bf16
    python -m benchmarks --quick                           does everything run? Its figures mean nothing

Every ratio is taken in pairs within one run, A, B, A, B …, and is the median of the pairs' ratios. Run it on a machine
that does nothing else; the load at the start is written down.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import Row, Settings, as_json, machine
from benchmarks.sections import SECTIONS


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description="Measures, prints, and writes one JSON file and one Markdown table."
    )
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="small and fast, to see that everything runs")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=0, help="threads of the processor; 0 leaves torch's choice")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the two files")
    given = parser.parse_args(arguments)
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch sees no GPU here; leave the option out to measure on the CPU.")
    if given.threads:
        torch.set_num_threads(given.threads)
    settings = Settings(given.quick, given.device, given.threads)
    about, found, written = machine(settings), [], ""
    for name in given.only or SECTIONS:
        start = time.monotonic()
        part = SECTIONS[name](settings)
        found += part
        print(f"{name} ({time.monotonic() - start:.0f} s)", flush=True)
        for row in part:
            print("  " + " | ".join(_cells(row)), flush=True)
        # Some sections alone have files of their own: they do not take the place of a whole run's.
        name = "-".join(given.only or [given.device])
        written = _write(
            given.out, "quick" if given.quick else name, about, found
        )  # after every section: whoever stops the rest keeps these
    print(f"written: {written}")
    return found


def _write(folder: Path, name: str, about: dict[str, Any], found: list[Row]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    name = f"benchmark-{name}"
    text = json.dumps(as_json(about, found), indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown(about, found), encoding="utf-8")
    return f"{folder / name}.json, {folder / name}.md"


def markdown(about: dict[str, Any], found: list[Row]) -> str:
    """The table, one line per figure, with where and when it was measured."""
    lines = ["# Benchmark", ""]
    if about["quick"]:
        lines += ["**A quick run: it shows that everything runs; its figures mean nothing.**", ""]
    lines += [f"- {key}: {value}" for key, value in about.items() if value is not None]
    lines += ["", "| section | what | figure | unit |", "| --- | --- | ---: | --- |"]
    lines += [f"| {row.section} | " + " | ".join(_cells(row)) + " |" for row in found]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[str]:
    return [row.what, _number(row.value), row.unit]


def _number(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) and abs(value) >= 1000 else f"{value:.3g}"


if __name__ == "__main__":
    main()
