"""A made-up survey of any size, and what a command takes for it: seconds, series and tokens per second, peak memory.

    python scripts/survey.py make survey --series 1000000
    python scripts/survey.py run survey -- embed src/rotarymae/models/plasticc-ugrizy survey --out vectors

`make` writes Parquet files of 20,000 objects, one row per object with its light curve in lists: 88 observations on
average, from 5 to some 400, in six bands over three years. A file depends on its number alone, so one that is there
already is not made again. `run` runs `rotarymae` with what follows `--` and prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rotarymae.system import hardware, replacing

BANDS = tuple("ugrizy")
MEAN = 88


def light_curves(objects: int, seed: int, first: int = 0) -> pa.Table:
    """One row per object: object_id from `first` on, and the lists mjd, passband, flux and flux_err.

    An object brightens once, by a factor of its own, over days to months, and is else constant with its noise.
    """
    draw = np.random.default_rng(seed)
    # Gamma and Poisson together: most objects have 30 to 150 observations, some several hundred.
    lengths = np.maximum(5, draw.poisson(draw.gamma(2.5, MEAN / 2.5, objects)))
    which = np.repeat(np.arange(objects), lengths)
    n = len(which)
    times = 59_580 + draw.uniform(0, 1095, n)
    times = times[np.lexsort((times, which))]
    bands = draw.integers(0, len(BANDS), n).astype(np.int8)
    peak, width = draw.uniform(59_580, 60_675, objects), draw.lognormal(3, 0.7, objects)
    bright = draw.lognormal(4, 1.5, objects)
    errors = draw.lognormal(1.5, 0.6, n) * (1 + 0.3 * bands)
    flux = bright[which] * np.exp(-np.abs(times - peak[which]) / width[which]) + errors * draw.standard_normal(n)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    columns = {
        "mjd": pa.array(times),
        "passband": pa.DictionaryArray.from_arrays(pa.array(bands), pa.array(BANDS)),
        "flux": pa.array(flux.astype(np.float32)),
        "flux_err": pa.array(errors.astype(np.float32)),
    }
    lists = {name: pa.ListArray.from_arrays(offsets, column) for name, column in columns.items()}
    return pa.table({"object_id": pa.array(np.arange(first, first + objects)), **lists})


def make(folder: Path, series: int, per_file: int) -> None:
    """Writes the files that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, series, per_file)):
        path = folder / f"part-{number:05d}.parquet"
        if not path.exists():
            with replacing(path) as beside:
                pq.write_table(light_curves(min(per_file, series - first), number, first), beside, compression="zstd")


def observations(folder: Path) -> tuple[int, int]:
    """The series and observations of a folder that `make` wrote."""
    series = tokens = 0
    for path in sorted(folder.glob("*.parquet")):
        about = pq.read_metadata(path)
        series += about.num_rows
        tokens += sum(about.row_group(k).column(1).num_values for k in range(about.num_row_groups))  # of times
    return series, tokens


def run(folder: Path, command: list[str]) -> dict[str, object]:
    """Runs the command and measures the process itself; of --workers, each is a process of its own and not counted."""
    start = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "rotarymae", *command])
    _, status, usage = os.wait4(process.pid, 0)
    seconds, processor = time.monotonic() - start, usage.ru_utime + usage.ru_stime
    series, tokens = observations(folder)
    return {
        "command": ["rotarymae", *command],
        "exit code": os.waitstatus_to_exitcode(status),
        "series": series,
        "tokens": tokens,
        "seconds": round(seconds, 1),
        "processor seconds": round(processor, 1),
        "series per second": round(series / seconds, 1),
        "tokens per second": round(tokens / seconds),
        "peak MB": round(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6),
        "hardware": hardware(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="A made-up survey of any size, and what a command takes for it.")
    parts = parser.add_subparsers(required=True, dest="part")
    making = parts.add_parser("make", help="write the files that are not there yet")
    making.add_argument("folder", type=Path)
    making.add_argument("--series", type=int, default=100_000)
    making.add_argument("--per-file", type=int, default=20_000)
    running = parts.add_parser("run", help="run a command on them and measure it")
    running.add_argument("folder", type=Path)
    running.add_argument("command", nargs="+", help="-- and the command, without its first word")
    given = parser.parse_args()
    if given.part == "make":
        make(given.folder, given.series, given.per_file)
        return
    print(json.dumps(run(given.folder, given.command), indent=2))


if __name__ == "__main__":
    main()
