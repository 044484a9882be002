"""PLAsTiCC: simulated LSST light curves of 14 kinds of transient and variable objects.

The training set of the Photometric LSST Astronomical Time-series Classification Challenge (PLAsTiCC team and
collaborators, doi:10.5281/zenodo.2539456, CC BY 4.0) as a `SeriesDataset`: one series per object, `times` in days (MJD,
59580 to 60674), channels the six passbands u g r i z y, and per observation

    flux       calibrated flux (arbitrary linear scale, zero point 27.5 mag; may be negative; up to ±2e6)
    flux_err   its 1-sigma error, same scale
    detected   1 where the survey's pipeline would have called it a detection (over 3 sigma off the template), else 0

Labels are the challenge's class codes, see `CLASSES`. A stratified sample ships with the library: `sample()`.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow as pa

from rotarymae.data.sources import missing
from rotarymae.errors import InputError, listed
from rotarymae.series import SeriesDataset, align_labels, read_table

BANDS = ("u", "g", "r", "i", "z", "y")
VALUES = ("flux", "flux_err", "detected")

CLASSES = {
    6: "mu-Lens-Single",
    15: "TDE",
    16: "EB",
    42: "SNII",
    52: "SNIax",
    53: "Mira",
    62: "SNIbc",
    64: "KN",
    65: "M-dwarf",
    67: "SNIa-91bg",
    88: "AGN",
    90: "SNIa",
    92: "RRL",
    95: "SLSN-I",
}


def read(folder: str | Path) -> tuple[SeriesDataset, np.ndarray, pa.Table]:
    """Read the official training files, plasticc_train_lightcurves.csv.gz and plasticc_train_metadata.csv.gz.

    Args:
        folder: where they lie (unpacked .csv files will do).

    Returns:
        dataset: S objects in the files' order; values float64 [n, 3], see the top of this file.
        labels: int64 [S] class codes, keys of `CLASSES`.
        metadata: the metadata table, row i for series i (position, redshifts, `ddf_bool` for the deep fields, ...).

    Raises:
        InputError: files that are missing (it says where to get them) or cannot be read, a passband other than 0 to
            5, an unknown class code, light curves and metadata that do not name the same objects.
    """
    dataset = SeriesDataset.from_frame(
        read_table(_find(folder, "plasticc_train_lightcurves.csv")),
        id="object_id",
        time="mjd",
        channel="passband",
        values=["flux", "flux_err", "detected_bool"],
        channel_names=range(len(BANDS)),
        missing="error",
    )
    dataset = replace(dataset, channel_names=BANDS, value_names=VALUES)
    metadata = read_table(_find(folder, "plasticc_train_metadata.csv"))
    dark = sorted(set(metadata["object_id"].to_pylist()) - set(dataset.ids.tolist()))
    if dark:
        raise InputError(
            f"{len(dark)} objects of the metadata have no light curve: {listed(dark)}; are both files whole?"
        )
    labels = align_labels(dataset, metadata, id="object_id", label="target")
    _refuse_unknown_classes(labels)
    numbered = metadata.append_column("__row__", pa.array(np.arange(len(metadata))))
    rows = align_labels(dataset, numbered, id="object_id", label="__row__")
    return dataset, labels, metadata.take(pa.array(rows))


def sample() -> tuple[SeriesDataset, np.ndarray]:
    """The sample that ships with the library: some 1,400 objects, all 14 classes, mostly from the wide survey.

    Returns:
        dataset: S objects; values float32 [n, 3], see the top of this file.
        labels: int64 [S] class codes, keys of `CLASSES`. Rare classes are more frequent than in the full set.

    Raises:
        InputError: the files are missing from the installation.
    """
    folder = resources.files("rotarymae.data") / "samples"
    with (
        resources.as_file(folder / "plasticc.parquet") as observations,
        resources.as_file(folder / "plasticc_labels.parquet") as labelled,
    ):
        stored = (*BANDS[:-1], "Y")  # as PLAsTiCC calls it; surveys write y
        dataset = SeriesDataset.from_file(observations, "object_id", "mjd", "passband", VALUES, channel_names=stored)
        dataset = replace(dataset, channel_names=BANDS)
        labels = align_labels(dataset, read_table(labelled), id="object_id", label="label")
    _refuse_unknown_classes(labels)
    return dataset, labels


def since_first_detection(dataset: SeriesDataset) -> SeriesDataset:
    """The same light curves with times in days since each object's first detection (its first observation if none).

    What an explosion looks like depends on the time since it was found, not on the night the survey began.
    """
    detected = np.asarray(dataset.values)[:, dataset.value_names.index("detected")] > 0
    found = np.minimum.reduceat(np.where(detected, dataset.times, np.inf), dataset.offsets[:-1])
    start = np.where(np.isfinite(found), found, dataset.times[dataset.offsets[:-1]])
    return replace(dataset, times=dataset.times - np.repeat(start, dataset.lengths))


def _find(folder: str | Path, name: str) -> Path:
    """The file, packed or not."""
    for path in (Path(folder) / f"{name}.gz", Path(folder) / name):
        if path.is_file():
            return path
    advice = "rotarymae.data.plasticc.sample() needs no download."
    raise InputError(f"{missing(Path(folder) / f'{name}.gz', 'plasticc')} {advice}")


def _refuse_unknown_classes(labels: np.ndarray) -> None:
    unknown = sorted(set(labels.tolist()) - set(CLASSES))
    if unknown:
        raise InputError(
            f"class codes {unknown} are not among the 14 of PLAsTiCC, {sorted(CLASSES)}; check the labels."
        )
