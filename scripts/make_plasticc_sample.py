"""Draw the PLAsTiCC sample that ships with the library from a folder with the official training CSV files.

    python scripts/make_plasticc_sample.py FOLDER

Writes plasticc.parquet (observations) and plasticc_labels.parquet (object_id, label) into src/rotarymae/data/samples
of this checkout, or into --out. About 1,400 objects: every class gets 60 (or all it has), the rest is shared out in
proportion to the classes' sizes. Wide-field objects come first, as they have a third of the observations of a deep one;
deep-field objects fill up where a class has too few. The same files and seed give the same sample.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rotarymae.series.dataset import SeriesDataset
from rotarymae_experiments.data import plasticc

OBJECTS, FLOOR, SEED = 1400, 60, 2539456
LIMIT = 3_000_000  # bytes, both files together
SAMPLES = Path(__file__).resolve().parents[1] / "src" / "rotarymae" / "data" / "samples"


def shares(available: np.ndarray, total: int = OBJECTS, floor: int = FLOOR) -> np.ndarray:
    """How many of each class to take, int64 [classes]: the floor first, the rest in proportion to what is left."""
    taken = np.minimum(available, floor)
    rest = available - taken
    quota = rest * min(1.0, (total - taken.sum()) / rest.sum()) if rest.sum() else rest.astype(float)
    whole = np.floor(quota).astype(np.int64)
    # Largest remainders get the objects that rounding down left over.
    order = np.argsort(-(quota - whole), kind="stable")
    whole[order[: round(quota.sum()) - whole.sum()]] += 1
    return taken + whole


def draw(labels: np.ndarray, deep: np.ndarray, seed: int = SEED) -> np.ndarray:
    """Indices of the objects to take, ascending: random within each class, wide-field objects before deep ones."""
    noise = np.random.default_rng(seed).random(len(labels))
    codes, available = np.unique(labels, return_counts=True)
    chosen = []
    for code, count in zip(codes, shares(available), strict=True):
        members = np.flatnonzero(labels == code)
        order = np.lexsort((noise[members], deep[members]))
        chosen.append(members[order[:count]])
    return np.sort(np.concatenate(chosen))


def write(dataset: SeriesDataset, labels: np.ndarray, out: Path) -> int:
    """Write both files; returns their size in bytes."""
    dataset = replace(dataset, values=dataset.values.astype(np.float32))
    table = dataset.to_arrow(id="object_id", time="mjd", channel="passband")
    band = table["passband"].dictionary_encode()
    table = table.set_column(table.column_names.index("passband"), "passband", band)
    observations, labelled = out / "plasticc.parquet", out / "plasticc_labels.parquet"
    # Times repeat between objects (one visit sees many): a dictionary packs them best. Fluxes pack best byte by byte.
    packing: Any = {"compression": "zstd", "compression_level": 19, "write_statistics": False}
    columns: Any = {
        "use_dictionary": ["object_id", "mjd", "passband", "detected"],
        "column_encoding": {"flux": "BYTE_STREAM_SPLIT", "flux_err": "BYTE_STREAM_SPLIT"},
    }
    pyarrow.parquet.write_table(table, observations, **packing, **columns)
    names = pa.table({"object_id": dataset.ids, "label": labels})
    pyarrow.parquet.write_table(names, labelled, **packing)
    return observations.stat().st_size + labelled.stat().st_size


def main() -> None:
    """Read, draw, write, and say what was drawn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds plasticc_train_lightcurves.csv.gz and ..._metadata.csv.gz")
    parser.add_argument("--out", type=Path, default=SAMPLES, help="where to write (default: into the package)")
    args = parser.parse_args()
    dataset, labels, metadata = plasticc.read(args.folder)
    deep = metadata["ddf_bool"].to_numpy()
    chosen = draw(labels, deep)
    size = write(dataset.select(chosen), labels[chosen], args.out)
    for code, name in plasticc.CLASSES.items():
        print(f"{code:3d} {name:15s} {(labels[chosen] == code).sum():4d} of {(labels == code).sum()}")
    lengths = dataset.lengths[chosen]
    print(f"{len(chosen)} objects ({deep[chosen].sum()} deep), {lengths.sum():,} observations, {size:,} bytes")
    if size > LIMIT:
        raise SystemExit(f"more than {LIMIT:,} bytes: lower OBJECTS in {Path(__file__).name}")


if __name__ == "__main__":
    main()
