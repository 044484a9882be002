"""A set larger than memory: opens at once, and one process assembles masked batches from it.

    python -m benchmarks.large FOLDER [--series 1800000] [--seconds 20] [--keep]

Generates 1.8 million series of 160 million observations (2.7 GB of Parquet, row group by row group, the same in every
run) in FOLDER, measures in a fresh process, prints JSON and removes the file. Lengths are those of light curves:
log-normal with log-mean 4.2 and log-sd 0.8, clipped to 8..390, mean 89.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROWS = 1 << 20  # in a row group
BANDS = 6
BATCH_TOKENS = 8192


def generate(path: Path, series: int, seed: int = 0) -> dict[str, int]:
    """Writes the file, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(seed)
    lengths = np.clip(draw.lognormal(4.2, 0.8, series), 8, 390).astype(np.int64)
    ends = np.cumsum(lengths)
    types: dict[str, pa.DataType] = {
        "id": pa.int64(),
        "mjd": pa.float64(),
        "band": pa.int8(),
        "flux": pa.float32(),
        "flux_err": pa.float32(),
    }
    schema = pa.schema(list(types.items()))
    beside = path.with_suffix(".part")
    with pq.ParquetWriter(beside, schema, compression="snappy", use_dictionary=["id", "band"]) as writer:
        for start in range(0, int(ends[-1]), ROWS):
            rows = np.arange(start, min(start + ROWS, int(ends[-1])))
            which = np.searchsorted(ends, rows, side="right")
            # A time of its own for each place in the series: row groups need not know where a series began.
            place = rows - (ends - lengths)[which]
            time = 59_000 + which % 1000 + 3.0 * (place + 0.9 * draw.random(len(rows)))
            flux = draw.standard_normal(len(rows), np.float32) * 50 + 100
            error = draw.random(len(rows), np.float32) * 9 + 1
            columns = [which * 3 + 7, time, draw.integers(0, BANDS, len(rows), np.int8), flux, error]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=ROWS)
    beside.rename(path)
    return {"series": series, "observations": int(ends[-1]), "bytes": path.stat().st_size}


def cool(path: Path) -> None:
    """Asks the system to forget what it holds of a file, so that reading it is reading the disk."""
    if not hasattr(os, "posix_fadvise"):
        return
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident() -> dict[str, float]:
    """Megabytes resident now and at most; `file` is what belongs to mapped files and can be given back at any time."""
    lines = Path("/proc/self/status").read_text().splitlines() if Path("/proc/self/status").exists() else []
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("VmRSS", "RssFile"))}
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"now": kilobytes.get("VmRSS", most), "file": kilobytes.get("RssFile", 0), "most": most}
    return {name: round(number / 1024, 1) for name, number in found.items()}


class Clock:
    """Wall and processor seconds since it was made."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return {"wall seconds": round(wall, 3), "processor seconds": round(cpu, 3)}


def measure(path: Path, seconds: float) -> dict[str, object]:
    """Open, fit scalers, plan an epoch, and assemble masked batches for so many seconds, from disk if possible."""
    cool(path)
    clock = Clock()
    import torch

    from rotarymae.masking import Masking
    from rotarymae.series.dataset import SeriesDataset
    from rotarymae.series.examples import SeriesExamples
    from rotarymae.series.scaling import Preprocessor
    from rotarymae.training.batching import padding_waste, plan

    torch.set_num_threads(1)
    found: dict[str, object] = {"import": clock.read() | {"resident MB": resident()}}
    clock = Clock()
    data = SeriesDataset.open(path, id="id", time="mjd", channel="band", values=["flux", "flux_err"])
    found["open"] = clock.read() | {"resident MB": resident(), "series": len(data), "observations": len(data.times)}
    clock = Clock()
    train = data.select(np.random.default_rng(0).random(len(data)) < 0.9)
    found["select 90 %"] = clock.read()
    clock = Clock()
    preprocessor = Preprocessor.fit(train)
    found["fit scalers"] = clock.read()
    clock = Clock()
    examples = SeriesExamples(train, preprocessor, 0, Masking("ratio", 0.75))
    found["examples"] = clock.read()
    clock = Clock()
    batches = plan(examples.lengths, 0, 0, batch_tokens=BATCH_TOKENS, blocks=examples.blocks)
    found["plan an epoch"] = clock.read() | {"batches": len(batches), "padding": padding_waste(train.lengths, batches)}
    view = train._view
    assert view is not None
    clock, before, tokens, made = Clock(), view.store.decoded, 0, 0
    for index in batches:
        batch = examples.batch(index, 0)
        assert batch.masked is not None
        tokens += int(examples.lengths[index].sum())
        made += 1
        if time.perf_counter() - clock.wall > seconds:
            break
    spent = clock.read()
    touched = len(np.unique(view.block[np.concatenate(batches[:made])]))
    found["assemble"] = spent | {
        "batches": made,
        "tokens": tokens,
        "tokens/s (wall)": round(tokens / spent["wall seconds"]),
        "tokens/s (processor)": round(tokens / spent["processor seconds"]),
        "blocks decoded": view.store.decoded - before,
        "blocks touched": touched,
        "resident MB": resident(),
    }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--series", type=int, default=1_800_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--keep", action="store_true", help="leave the file; a later run uses it")
    parser.add_argument("--measure", action="store_true", help="only measure, in this process, a file that is there")
    given = parser.parse_args()
    path = given.folder / f"large-{given.series}.parquet"
    if given.measure:
        print(json.dumps(measure(path, given.seconds)))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        clock, made = Clock(), {}
        if not path.exists():
            about = generate(path, given.series)
            made["generate"] = clock.read() | about
        command = [sys.executable, "-m", "benchmarks.large", str(given.folder), "--measure"]
        command += ["--series", str(given.series), "--seconds", str(given.seconds)]
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        print(json.dumps(made | json.loads(run.stdout), indent=1))
    finally:
        path.with_suffix(".part").unlink(missing_ok=True)
        if not given.keep:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
