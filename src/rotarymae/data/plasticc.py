"""PLAsTiCC: simulated LSST light curves of 14 kinds of transient and variable objects.

A stratified sample ships with the library, `sample()`, from the training set of the Photometric LSST Astronomical
Time-series Classification Challenge (PLAsTiCC team and collaborators, doi:10.5281/zenodo.2539456, CC BY 4.0), as a
`SeriesDataset`: one series per object, `times` in days (MJD, 59580 to 60674), channels the six passbands u g r i z y,
and per observation

    flux       calibrated flux (arbitrary linear scale, zero point 27.5 mag; -1.1e6 to 2.4e6)
    flux_err   its 1-sigma error, same scale
    detected   1 where the survey's pipeline would have called it a detection (over 3 sigma off the template), else 0

Labels are the challenge's class codes, see `CLASSES`.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

import numpy as np

from rotarymae.series import SeriesDataset
from rotarymae.tables import align_labels

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


def sample() -> tuple[SeriesDataset, np.ndarray]:
    """Load the sample in the package, about 1,400 light curves of all 14 classes, mostly from the wide survey.

    Returns:
        dataset: S objects as a `SeriesDataset` with the value columns `VALUES` and the channels `BANDS`.
        labels: int64 [S] class codes, keys of `CLASSES`, in the order of the objects. Rare classes are more frequent
            than in the full set.

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
        labels = align_labels(dataset, labelled, id="object_id", label="label")
    return dataset, labels
