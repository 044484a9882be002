"""ELAsTiCC: simulated LSST light curves of 20 kinds of transient and variable objects.

The training set of the Extended LSST Astronomical Time-series Classification Challenge (DESC, 2022), in the simulator's
own FITS files: one folder per model, ELASTICC_TRAIN_MODEL, with pairs ..._HEAD.FITS.gz (one row per object) and
..._PHOT.FITS.gz (its observations). `read` gives one series per object: `times` in days since its first observation,
channels the six passbands u g r i z Y, and per observation

    flux       calibrated flux (FLUXCAL, zero point 27.5 mag; may be negative)
    flux_err   its 1-sigma error, same scale (FLUXCALERR)
    detected   1 where the survey's pipeline detected a change, else 0

The 32 models make 20 classes, `CLASSES`, and of one band at most 65 observations are kept, as ATAT does
(arXiv:2405.03078), with which Table 4 of arXiv:2505.20535 compares.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rotarymae.errors import InputError, choose, import_extra
from rotarymae.series import SeriesDataset
from rotarymae_experiments.data.shared import Parts
from rotarymae_experiments.data.sources import missing, reading

BANDS = ("u", "g", "r", "i", "z", "Y")
VALUES = ("flux", "flux_err", "detected")
MOST = 65  # observations of a band

# Class → the models of it, as the folders are named behind ELASTICC_TRAIN_.
CLASSES: dict[str, tuple[str, ...]] = {
    "AGN": ("AGN",),
    "CART": ("CART",),
    "Cepheid": ("Cepheid",),
    "Delta Scuti": ("d-Sct",),
    "Dwarf Novae": ("dwarf-nova",),
    "EB": ("EB",),
    "ILOT": ("ILOT",),
    "KN": ("KN_B19", "KN_K17"),
    "M-dwarf Flare": ("Mdwarf-flare",),
    "PISN": ("PISN",),
    "RR Lyrae": ("RRL",),
    "SLSN": ("SLSN-I+host", "SLSN-I_no_host"),
    "91bg": ("SNIa-91bg",),
    "Ia": ("SNIa-SALT2",),
    "Iax": ("SNIax",),
    "Ib/c": ("SNIb+HostXT_V19", "SNIb-Templates", "SNIc+HostXT_V19", "SNIc-Templates", "SNIcBL+HostXT_V19"),
    "II": ("SNII+HostXT_V19", "SNII-NMF", "SNII-Templates", "SNIIn+HostXT_V19", "SNIIn-MOSFIT"),
    "SN-like/Other": ("SNIIb+HostXT_V19",),
    "TDE": ("TDE",),
    "uLens": ("uLens-Binary", "uLens-Single-GenLens", "uLens-Single_PyLIMA"),
}
CLASS_OF = {model.lower(): name for name, models in CLASSES.items() for model in models}
# Identifiers of these two collide with those of other models, so they get a prefix.
PREFIX = {"cepheid": "1000000", "d-sct": "2000000"}

DETECTED = 4096  # a bit of PHOTFLAG, of which the higher ones are set for detections alone


class _Part(NamedTuple):
    """The objects of one pair of files: ids [s], lengths [s], and flat times, bands [n] and values [n, 3]."""

    ids: np.ndarray
    lengths: np.ndarray
    times: np.ndarray
    bands: np.ndarray
    values: np.ndarray


def read(folder: str | Path, most_per_model: int | None = None) -> tuple[SeriesDataset, np.ndarray]:
    """Read the official training files: of every object at most 65 observations per band, and none of flux 0.

    Args:
        folder: where FULL_ELASTICC_TRAIN.tar was unpacked, or the folder of the folders ELASTICC_TRAIN_MODEL itself.
        most_per_model: keep only the first objects of each of the 32 models, this many; None keeps all 1.8 million.

    Returns:
        dataset: S objects in the order of folders and files; values float32 [n, 3], see the top of this file.
        labels: [S] names of classes, keys of `CLASSES`.

    Raises:
        MissingExtra: without the extra `survey`.
        InputError: no such folders (it says where to get them), a model that is none of the 32, a file that is missing
            or not as published, no object with a flux, or one of them twice.
    """
    parts: list[_Part] = []
    labels: list[str] = []
    for model, files in _models(Path(folder)):
        left = most_per_model
        for head in files:
            part = _read_pair(head, left, PREFIX.get(model, ""))
            parts.append(part)
            labels += [CLASS_OF[model]] * len(part.ids)
            left = None if left is None else left - len(part.ids)
            if left == 0:
                break
    whole = _Part(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    if not len(whole.ids) or len(np.unique(whole.ids)) < len(whole.ids):
        raise InputError(f"{folder} holds no object with a flux, or one of them twice; remove it and fetch it anew.")
    dataset = SeriesDataset(
        times=whole.times,
        values=whole.values,
        offsets=np.concatenate([[0], np.cumsum(whole.lengths)]),
        ids=whole.ids,
        value_names=VALUES,
        channels=whole.bands,
        channel_names=BANDS,
        time_unit="day",
    )
    return dataset, np.array(labels)


def splits(labels: np.ndarray, test_per_class: int = 1000, folds: int = 5) -> tuple[Parts[np.ndarray], ...]:
    """Return `folds` splits into training, validation and test objects, which share the test part, as ATAT does.

    The test part has `test_per_class` objects of each class, drawn with seed 0. The others make stratified folds, each
    of which validates once. (The very partition of ATAT is a file that cannot be had; it depends on the order of the
    objects.)

    Args:
        labels: class of each object.
        test_per_class: number of test objects of each class.
        folds: number of splits.

    Returns:
        For each split the indices of the objects in each part, int arrays, ascending.

    Raises:
        InputError: a class with too few objects to leave `folds` of them after the test part is taken.
    """
    from sklearn.model_selection import StratifiedKFold

    draw = np.random.default_rng(0)
    classes, counts = np.unique(labels, return_counts=True)
    if counts.min() < test_per_class + folds:
        raise InputError(
            f"class {classes[counts.argmin()]} has {counts.min()} objects; {test_per_class} to test and {folds} folds "
            f"need {test_per_class + folds}. Test on fewer (test_per_class), or read more objects."
        )
    chosen = [draw.choice(np.flatnonzero(labels == name), test_per_class, replace=False) for name in classes]
    test = np.sort(np.concatenate(chosen))
    rest = np.setdiff1d(np.arange(len(labels)), test)
    parts = StratifiedKFold(folds, shuffle=True, random_state=0).split(rest, labels[rest])
    return tuple(Parts(rest[train], rest[validation], test) for train, validation in parts)


def _models(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield each model's name, in small letters, and the paths of its HEAD files, both sorted by name.

    A folder without a HEAD file yields the path of a missing one, which the reader then reports. Raises InputError for
    a folder without models, and for a model that is none of the 32.
    """
    inner = folder / "FULL_ELASTICC_TRAIN"  # as the archive has it
    folders = sorted(path for path in (inner if inner.is_dir() else folder).glob("ELASTICC_TRAIN*_*") if path.is_dir())
    if not folders:
        raise missing(folder / "ELASTICC_TRAIN_AGN", "elasticc")
    for path in folders:
        model = re.sub(r"^ELASTICC_TRAIN(FIX)?_", "", path.name).lower()
        choose("model", model, list(CLASS_OF))
        files = sorted(path.glob("*_HEAD.FITS*"))
        yield model, files or [path / "HEAD.FITS.gz"]  # which is then found missing


def _read_pair(head: Path, most: int | None, prefix: str) -> _Part:
    """Read the objects of a HEAD file with their observations in the PHOT file next to it.

    Observations of flux 0 are left out, and of each band all but 65 evenly spread ones; times count from the object's
    first one that is kept. Objects without any are left out.

    Args:
        head: the file of objects.
        most: read only the first so many of them; None reads all.
        prefix: text put before each id.

    Raises:
        InputError: a file that is missing or not as published.
    """
    with reading(head, "elasticc"):
        snid, first, end = _columns(head, "SNID", "PTROBS_MIN", "PTROBS_MAX")
    ids, first = np.char.strip(snid.astype(str)), first.astype(np.int64) - 1  # counted from 1, both ends included
    lengths = end.astype(np.int64) - first
    owner = np.repeat(np.arange(len(ids)), lengths)
    at = np.repeat(first - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    phot = head.with_name(head.name.replace("_HEAD.FITS", "_PHOT.FITS"))
    with reading(phot, "elasticc"):
        columns = _columns(phot, "MJD", "BAND", "FLUXCAL", "FLUXCALERR", "PHOTFLAG")
        times, names, flux, error, flag = (column[at] for column in columns)
        match = np.char.strip(names.astype(str))[:, None] == np.array(BANDS)
        if not match.any(1).all():
            raise ValueError(f"band {str(names[~match.any(1)][0])!r}; wanted one of {', '.join(BANDS)}")
        if not np.isfinite(times + flux + error).all():
            raise ValueError("a time, flux or error is no finite number")
    band = match.argmax(1)
    order = np.lexsort((times, band, owner))
    owner, band, times, flux, error, flag = (column[order] for column in (owner, band, times, flux, error, flag))
    keep = _at_most(owner * len(BANDS) + band, MOST) & (flux != 0)
    seen = np.unique(owner[keep])[:most]
    order = np.flatnonzero(keep & np.isin(owner, seen))
    order = order[np.lexsort((band[order], times[order], owner[order]))]
    lengths = np.bincount(owner[order], minlength=len(ids))[seen]
    starts = times[order][np.cumsum(lengths) - lengths]
    values = np.stack([flux, error, flag >= DETECTED], axis=1)[order].astype(np.float32)
    named = np.char.add(prefix, ids[seen])
    return _Part(named, lengths, times[order] - np.repeat(starts, lengths), band[order].astype(np.int32), values)


def _at_most(group: np.ndarray, most: int) -> np.ndarray:
    """Return a mask [n], True at `most` evenly spread rows of each group, and at all rows of smaller groups.

    `group` [n] has the number of each row's group, ascending.
    """
    _, starts, counts = np.unique(group, return_index=True, return_counts=True)
    keep = np.ones(len(group), bool)
    for start, count in zip(starts[counts > most], counts[counts > most], strict=True):
        keep[start : start + count] = False
        keep[start + np.linspace(0, count - 1, most).astype(int)] = True
    return keep


def _columns(path: Path, *names: str) -> list[np.ndarray]:
    """Return the columns `names` of the table in a FITS file's first extension as arrays in the machine's byte order.

    Raises MissingExtra if the extra `survey` is not installed.
    """
    fits = import_extra("astropy.io.fits", "survey")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fits.verify.VerifyWarning)  # a damaged file lacks its table
        with fits.open(path, memmap=False) as file:
            columns = [np.asarray(file[1].data[name]) for name in names]
            return [column.astype(column.dtype.newbyteorder("=")) for column in columns]
