"""Made-up tables of any size, and what a command takes for them: seconds, series and tokens per second, peak memory.

    python scripts/survey.py make survey --series 1000000
    python scripts/survey.py run survey -- embed src/rotarymae/models/plasticc-ugrizy survey --out vectors
    python scripts/survey.py log log.parquet --rows 1000000
    python scripts/survey.py run log.parquet -- fit log.parquet --channel sensor --minutes 3 --out logged

`make` writes Parquet files of 20,000 objects, one row per object with its light curve in lists: 88 observations on
average, from 5 to some 400, in six bands over three years. A file depends on its number alone, so one that is there
already is not made again. `log` writes one long series of five sensors. `run` runs `rotarymae` with what follows `--`
and prints one JSON object; figures per second are of all that the table holds.
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


def light_curves(objects: int, seed: int, first: int = 0, mean: float = MEAN) -> pa.Table:
    """One row per object: object_id from `first` on, and the lists mjd, passband, flux and flux_err.

    An object brightens once, by a factor of its own, over days to months, and is else constant with its noise.
    """
    draw = np.random.default_rng(seed)
    # Gamma and Poisson together: most objects have 30 to 150 observations, some several hundred.
    lengths = np.maximum(min(5, mean), draw.poisson(draw.gamma(2.5, mean / 2.5, objects))).astype(np.int64)
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


def make(folder: Path, series: int, per_file: int, mean: float = MEAN) -> None:
    """Writes the files that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, series, per_file)):
        path = folder / f"part-{number:05d}.parquet"
        if not path.exists():
            with replacing(path) as beside:
                table = light_curves(min(per_file, series - first), number, first, mean)
                pq.write_table(table, beside, compression="zstd")


def sensor_log(rows: int, seed: int = 0) -> pa.Table:
    """One row per reading: time, sensor and value; at uneven times one of five sensors is read, each of which swings
    at two rates of its own, from a hundred to a few thousand readings per swing."""
    draw = np.random.default_rng(seed)
    times, sensor = np.cumsum(draw.exponential(1.0, rows)), draw.integers(0, 5, rows)
    rates, phases = 1 / draw.uniform(20, 500, (5, 2)), draw.uniform(0, 6, (5, 2))
    value = np.sin(times[:, None] * rates[sensor] + phases[sensor]).sum(1) + 0.1 * draw.standard_normal(rows)
    names = pa.array([f"sensor {i}" for i in range(5)])
    return pa.table({"time": times, "sensor": names.take(pa.array(sensor)), "value": value})


def observations(path: Path) -> tuple[int, int]:
    """The series and observations of a folder that `make` wrote, or of a file that `log` wrote."""
    if path.is_file():
        return 1, pq.read_metadata(path).num_rows
    series = tokens = 0
    for one in sorted(path.glob("*.parquet")):
        about = pq.read_metadata(one)
        series += about.num_rows
        tokens += sum(about.row_group(k).column(1).num_values for k in range(about.num_row_groups))  # of times
    return series, tokens


def run(table: Path, command: list[str]) -> dict[str, object]:
    """Runs the command and measures the process itself; of --workers, each is a process of its own and not counted."""
    start = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "rotarymae", *command])
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except KeyboardInterrupt:  # which the command got, too
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)  # else it warns, when it is collected, that it still runs
    seconds, processor = time.monotonic() - start, usage.ru_utime + usage.ru_stime
    series, tokens = observations(table)
    return {
        "command": ["rotarymae", *command],
        "exit code": process.returncode,
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
    making.add_argument("--mean", type=float, default=MEAN, help="observations per object")
    logging = parts.add_parser("log", help="write one long series")
    logging.add_argument("file", type=Path)
    logging.add_argument("--rows", type=int, default=1_000_000)
    running = parts.add_parser("run", help="run a command on them and measure it")
    running.add_argument("table", type=Path)
    running.add_argument("command", nargs="+", help="-- and the command, without its first word")
    given = parser.parse_args()
    if given.part == "make":
        make(given.folder, given.series, given.per_file, given.mean)
    elif given.part == "log":
        pq.write_table(sensor_log(given.rows), given.file)
    else:
        print(json.dumps(run(given.table, given.command), indent=2))


if __name__ == "__main__":
    main()
