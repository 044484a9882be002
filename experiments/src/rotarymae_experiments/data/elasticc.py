"""ELAsTiCC: simulated LSST light curves of 20 kinds of transient and variable objects, with their alerts.

The training set of the Extended LSST Astronomical Time-series Classification Challenge (DESC, 2022), in the simulator's
own FITS files: one folder per model, ELASTICC_TRAIN_MODEL, with pairs ..._HEAD.FITS.gz (one row per object) and
..._PHOT.FITS.gz (its observations). `read` gives one series per object: `times` in days since its first observation,
channels the six passbands u g r i z Y, and per observation

    flux       calibrated flux (FLUXCAL, zero point 27.5 mag; may be negative)
    flux_err   its 1-sigma error, same scale (FLUXCALERR)
    detected   1 where the survey's pipeline detected a change, else 0

The 32 models make 20 classes, `CLASSES`, and of one band at most 65 observations are kept, as ATAT does
(arXiv:2405.03078), with which Table 4 of arXiv:2505.20535 compares. ATAT reads what an alert holds, the paper the whole
light curve: `view`.
"""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rotarymae.errors import InputError, choose, import_extra, listed
from rotarymae.series import SeriesDataset
from rotarymae_experiments.data.sources import missing

BANDS = ("u", "g", "r", "i", "z", "Y")
VALUES = ("flux", "flux_err", "detected")
VIEWS = ("photometry", "alert")
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

# Bits and values of PHOTFLAG.
SATURATED, DETECTED, FIRST_DETECTION = 1024, 4096, 4096 + 2048
BEFORE = 30.0  # days of forced photometry that an alert has from before the first detection


def read(
    folder: str | Path, view: Literal["photometry", "alert"] = "photometry", most_per_model: int | None = None
) -> tuple[SeriesDataset, np.ndarray]:
    """Read the official training files.

    Args:
        folder: where FULL_ELASTICC_TRAIN.tar was unpacked, or the folder of the folders ELASTICC_TRAIN_MODEL itself.
        view: "photometry" keeps the observations of all nights, at most 65 per band and none of flux 0. "alert" keeps
            of these what alerts hold: from 30 days before the first detection to the last observation that the
            pipeline has flagged, without saturated ones; objects that were never detected have no alert and are left
            out.
        most_per_model: keep only the first so many objects of each of the 32 models; None keeps all 1.8 million.

    Returns:
        dataset: S objects in the order of folders and files; values float32 [n, 3], see the top of this file.
        labels: [S] names of classes, keys of `CLASSES`.

    Raises:
        MissingExtra: without the extra `survey`.
        InputError: no such folders (it says where to get them), a model that is none of the 32, a file without its
            partner, without a column, or cut short; each by its file.
    """
    choose("view", view, VIEWS)
    if most_per_model is not None and most_per_model < 1:
        raise InputError(f"most_per_model is {most_per_model}; wanted at least 1.")
    parts: list[_Part] = []
    labels: list[np.ndarray] = []
    for model, files in _models(Path(folder)):
        left = most_per_model
        for head in files:
            if left == 0:
                break
            part = _read_pair(head, view, left, PREFIX.get(model, ""))
            parts.append(part)
            labels.append(np.full(len(part.ids), CLASS_OF[model]))
            left = None if left is None else left - len(part.ids)
    ids = np.concatenate([part.ids for part in parts])
    names, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{(counts > 1).sum()} objects of {folder} occur twice: {listed(names[counts > 1])}.")
    if not len(ids):
        raise InputError(f"{folder} holds no object with an observation in this view ({view}).")
    lengths = np.concatenate([part.lengths for part in parts])
    dataset = SeriesDataset(
        times=np.concatenate([part.times for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        ids=ids,
        value_names=VALUES,
        channels=np.concatenate([part.bands for part in parts]),
        channel_names=BANDS,
        time_unit="day",
    )
    return dataset, np.concatenate(labels)


@dataclass(frozen=True)
class Split:
    """Places of the objects [n] of each part, ascending."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def splits(labels: np.ndarray, test_per_class: int = 1000, folds: int = 5) -> tuple[Split, ...]:
    """`folds` splits with the same test part: so many objects of each class, drawn with seed 0, as ATAT draws them.

    The other objects make stratified folds, each of which validates once. (The very partition of ATAT is a file that
    cannot be had; it depends on the order of the objects.)

    Raises:
        InputError: a class with too few objects to leave `folds` of them after the test part is taken.
    """
    from sklearn.model_selection import StratifiedKFold

    labels, draw = np.asarray(labels), np.random.default_rng(0)
    classes, counts = np.unique(labels, return_counts=True)
    if (counts < test_per_class + folds).any():
        least = counts.argmin()
        raise InputError(
            f"class {classes[least]} has {counts[least]} objects; {test_per_class} to test and {folds} folds need "
            f"{test_per_class + folds}. Test on fewer (test_per_class), or read more objects."
        )
    chosen = [draw.choice(np.flatnonzero(labels == name), test_per_class, replace=False) for name in classes]
    test = np.sort(np.concatenate(chosen))
    rest = np.setdiff1d(np.arange(len(labels)), test)
    parts = StratifiedKFold(folds, shuffle=True, random_state=0).split(rest, labels[rest])
    return tuple(Split(rest[train], rest[validation], test) for train, validation in parts)


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────

HEAD_COLUMNS = ("SNID", "PTROBS_MIN", "PTROBS_MAX")
PHOT_COLUMNS = ("MJD", "BAND", "FLUXCAL", "FLUXCALERR", "PHOTFLAG")


@dataclass(frozen=True)
class _Part:
    """The objects of one pair of files: ids [s], lengths [s], and flat times, bands [n] and values [n, 3]."""

    ids: np.ndarray
    lengths: np.ndarray
    times: np.ndarray
    bands: np.ndarray
    values: np.ndarray


def _models(folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """Each model, in small letters, and its files of objects, by name."""
    inner = folder / "FULL_ELASTICC_TRAIN"  # as the archive has it
    found = sorted(path for path in (inner if inner.is_dir() else folder).glob("ELASTICC_TRAIN*_*") if path.is_dir())
    if not found:
        raise missing(folder / "ELASTICC_TRAIN_AGN", "elasticc")
    for path in found:
        model = re.sub(r"^ELASTICC_TRAIN(FIX)?_", "", path.name).lower()
        if model not in CLASS_OF:
            known = [one for models in CLASSES.values() for one in models]
            raise InputError(f"{path} is of a model that is none of the 32 of ELAsTiCC: {', '.join(known)}.")
        files = sorted(one for one in path.iterdir() if re.search(r"_HEAD\.FITS(\.gz)?$", one.name))
        if not files:
            raise InputError(f"{path} holds no file ..._HEAD.FITS.gz; was the archive unpacked whole?")
        yield model, files


def _read_pair(head: Path, view: str, most: int | None, prefix: str) -> _Part:
    """The objects of a HEAD file with their observations from the PHOT file beside it, `prefix` before each id."""
    phot = head.with_name(head.name.replace("_HEAD.FITS", "_PHOT.FITS"))
    if not phot.is_file():
        raise InputError(f"{head} has no {phot.name} beside it; was the archive unpacked whole?")
    objects, rows = _columns(head, HEAD_COLUMNS), _columns(phot, PHOT_COLUMNS)
    ids = _text(objects["SNID"])
    first = objects["PTROBS_MIN"].astype(np.int64) - 1  # counted from 1, both ends included
    lengths = objects["PTROBS_MAX"].astype(np.int64) - first
    wrong = (first < 0) | (lengths < 0) | (first + lengths > len(rows["MJD"]))
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            f"{head}: object {ids[at]} has the rows {first[at] + 1} to {first[at] + lengths[at]}, and {phot.name} has "
            f"{len(rows['MJD'])}; are both files whole?"
        )
    owner = np.repeat(np.arange(len(ids)), lengths)
    at = np.repeat(first - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    times, flux, error, flag = (rows[name][at] for name in ("MJD", "FLUXCAL", "FLUXCALERR", "PHOTFLAG"))
    band = _bands(phot, _text(rows["BAND"][at]))
    bad = ~(np.isfinite(times) & np.isfinite(flux) & np.isfinite(error))
    if bad.any():
        raise InputError(
            f"{phot}: row {at[bad.argmax()] + 1} has a time, flux or error that is no finite number; wanted one in "
            "every row of an object."
        )
    order = np.lexsort((times, band, owner))
    owner, band, times, flux, error, flag = (column[order] for column in (owner, band, times, flux, error, flag))
    keep = _at_most(owner * len(BANDS) + band, MOST) & (flux != 0)
    if view == "alert":
        keep &= _in_alerts(owner, times, flag, keep, len(ids))
    order = np.flatnonzero(keep)
    order = order[np.lexsort((band[order], times[order], owner[order]))]
    owner, band, times, flag = owner[order], band[order], times[order], flag[order]
    lengths = np.bincount(owner, minlength=len(ids))
    seen = np.flatnonzero(lengths)[:most]
    inside = np.isin(owner, seen)
    lengths, times = lengths[seen], times[inside]
    starts = times[np.cumsum(lengths) - lengths]
    values = np.stack([flux[order], error[order], flag >= DETECTED], axis=1).astype(np.float32)
    named = np.char.add(prefix, ids[seen])
    return _Part(named, lengths, times - np.repeat(starts, lengths), band[inside].astype(np.int32), values[inside])


def _at_most(group: np.ndarray, most: int) -> np.ndarray:
    """True [n] at `most` rows, evenly spread, of each run of equal `group`, and at all rows of shorter ones."""
    _, starts, counts = np.unique(group, return_index=True, return_counts=True)
    keep = np.ones(len(group), bool)
    for start, count in zip(starts[counts > most], counts[counts > most], strict=True):
        keep[start : start + count] = False
        keep[start + np.linspace(0, count - 1, most).astype(int)] = True
    return keep


def _in_alerts(owner: np.ndarray, times: np.ndarray, flag: np.ndarray, keep: np.ndarray, objects: int) -> np.ndarray:
    """True [n] where an alert holds the observation, of the rows `keep`."""
    first, last = np.full(objects, np.inf), np.full(objects, -np.inf)
    found = keep & (flag == FIRST_DETECTION)
    np.minimum.at(first, owner[found], times[found])
    flagged = keep & (flag != 0) & (flag != SATURATED)
    np.maximum.at(last, owner[flagged], times[flagged])
    return (times >= first[owner] - BEFORE) & (times <= last[owner]) & (flag != SATURATED)


def _bands(path: Path, names: np.ndarray) -> np.ndarray:
    """The number of each band, from 0."""
    found = np.full(len(names), -1)
    for number, name in enumerate(BANDS):
        found[names == name] = number
    if (found < 0).any():
        raise InputError(f"{path}: band {str(names[(found < 0).argmax()])!r}; wanted one of {', '.join(BANDS)}.")
    return found


def _columns(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """These columns of the table in a FITS file's first extension, in the machine's byte order."""
    fits = import_extra("astropy.io.fits", "survey")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fits.verify.VerifyWarning)  # a damaged file lacks its table; see below
            file = fits.open(path, memmap=False)
        with file:
            table: Any = file[1].data
            lacking = [name for name in names if name not in table.dtype.names]
            if lacking:
                raise InputError(f"{path} lacks the column {lacking[0]}; it has {listed(table.dtype.names)}.")
            columns = {name: np.asarray(table[name]) for name in names}
            texts = {name: column.astype(str) for name, column in columns.items() if column.dtype.kind == "S"}
            columns |= texts
    except (OSError, EOFError, IndexError, TypeError, AttributeError, ValueError, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} cannot be read as FITS ({type(error).__name__}: {error}); is it whole? Remove its folder and "
            "unpack the archive again."
        ) from error
    return {name: column.astype(column.dtype.newbyteorder("=")) for name, column in columns.items()}


def _text(column: np.ndarray) -> np.ndarray:
    """A column of names or numbers as text without spaces around it."""
    return np.char.strip(column.astype(str))
