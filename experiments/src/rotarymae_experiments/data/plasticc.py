"""PLAsTiCC's official training files, and light curves that start at an object's first detection.

See `rotarymae.data.plasticc` for the columns, the classes and the sample that ships with the library.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from rotarymae.data.plasticc import BANDS as BANDS
from rotarymae.data.plasticc import CLASSES as CLASSES
from rotarymae.data.plasticc import VALUES as VALUES
from rotarymae.data.plasticc import sample as sample
from rotarymae.errors import InputError, listed
from rotarymae.series import SeriesDataset
from rotarymae.tables import align_labels
from rotarymae_experiments.data.sources import missing


def read(folder: str | Path) -> tuple[SeriesDataset, np.ndarray, pa.Table]:
    """Read the official training files, plasticc_train_lightcurves.csv.gz and plasticc_train_metadata.csv.gz.

    Args:
        folder: where they lie (unpacked .csv files will do).

    Returns:
        dataset: S objects in the files' order; values float64 [n, 3], see `rotarymae.data.plasticc`.
        labels: int64 [S] class codes, keys of `CLASSES`.
        metadata: the metadata table, row i for series i (position, redshifts, `ddf_bool` for the deep fields, ...).

    Raises:
        InputError: files that are missing (it says where to get them) or cannot be read, a passband other than 0 to
            5, an unknown class code, light curves and metadata that do not name the same objects.
    """
    dataset = SeriesDataset.from_frame(
        pyarrow.csv.read_csv(_find(folder, "plasticc_train_lightcurves.csv")),
        id="object_id",
        time="mjd",
        channel="passband",
        values=["flux", "flux_err", "detected_bool"],
        channel_names=range(len(BANDS)),
        strict=True,
    )
    dataset = replace(dataset, channel_names=BANDS, value_names=VALUES)
    metadata = pyarrow.csv.read_csv(_find(folder, "plasticc_train_metadata.csv"))
    dark = sorted(set(metadata["object_id"].to_pylist()) - set(dataset.ids.tolist()))
    if dark:
        raise InputError(
            f"{len(dark)} objects of the metadata have no light curve: {listed(dark)}; are both files whole?"
        )
    labels = align_labels(dataset, metadata, id="object_id", label="target")
    unknown = sorted(set(labels.tolist()) - set(CLASSES))
    if unknown:
        raise InputError(f"class codes {unknown} are none of PLAsTiCC, {sorted(CLASSES)}; check the labels.")
    numbered = metadata.append_column("__row__", pa.array(np.arange(len(metadata))))
    rows = align_labels(dataset, numbered, id="object_id", label="__row__")
    return dataset, labels, metadata.take(pa.array(rows))


def since_first_detection(dataset: SeriesDataset) -> SeriesDataset:
    """Return the light curves with times in days since each object's first detection, or first observation if none.

    The look of an explosion depends on the time since its discovery, not on the night the survey began.
    """
    detected = np.asarray(dataset.values)[:, dataset.value_names.index("detected")] > 0
    first = np.minimum.reduceat(np.where(detected, dataset.times, np.inf), dataset.offsets[:-1])
    start = np.where(np.isfinite(first), first, dataset.times[dataset.offsets[:-1]])
    return replace(dataset, times=dataset.times - np.repeat(start, dataset.lengths))


def _find(folder: str | Path, name: str) -> Path:
    """Return the path of the file `name` in a folder, with .gz or without; raise InputError if neither is there."""
    for path in (Path(folder) / f"{name}.gz", Path(folder) / name):
        if path.is_file():
            return path
    advice = "rotarymae.data.plasticc.sample() needs no download."
    raise InputError(f"{missing(Path(folder) / f'{name}.gz', 'plasticc')} {advice}")
