"""UEA archive: multivariate time series of a class each (Bagnall et al., arXiv:1811.00075), and gaps made in them.

Reads the archive's own `.ts` files. A time is its number in the series, from 0; one row is one time, with a value for
every dimension.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from rotarymae.errors import InputError
from rotarymae.series import SeriesDataset
from rotarymae_experiments.data.sources import reading


class Problem(NamedTuple):
    """A classification problem of the archive, in its official parts; labels are the names of classes, text [S]."""

    train: SeriesDataset
    train_labels: np.ndarray
    test: SeriesDataset
    test_labels: np.ndarray


def read(folder: str | Path, name: str) -> Problem:
    """Read the problem `name`, from FOLDER/NAME/NAME_TRAIN.ts and NAME_TEST.ts.

    Raises:
        InputError: a file that is missing (it says where to get it) or not as published.
    """
    paths = [Path(folder) / name / f"{name}_{part}.ts" for part in ("TRAIN", "TEST")]
    problem = Problem(*read_ts(paths[0]), *read_ts(paths[1]))
    with reading(paths[1], "uea"):
        if problem.train.value_names != problem.test.value_names:
            raise ValueError("it has another number of dimensions than the training part")
        if strange := {*problem.test_labels.tolist()} - {*problem.train_labels.tolist()}:
            raise ValueError(f"it has classes that the training part lacks: {sorted(strange)}")
    return problem


def read_ts(path: Path) -> tuple[SeriesDataset, np.ndarray]:
    """Return (series, labels [S]) of a file: one series per line, dimensions separated by colons, the class last.

    A "?" is a value that is missing: a time that all dimensions lack is left out, and one that some lack is refused.

    Raises:
        InputError: a file that is missing (it says where to get it) or not as published.
    """
    with reading(path, "uea"):
        lines = path.read_text(encoding="utf-8").splitlines()
        start = [line.strip().lower() for line in lines].index("@data") + 1
        (classes,) = (line.split()[2:] for line in lines[:start] if line.lower().startswith("@classlabel true"))
        cases, labels = [], []
        for line in lines[start:]:
            if line.strip() and not line.startswith(("#", "%")):
                *dimensions, label = (part.strip() for part in line.split(":"))
                rows = [[float(value.replace("?", "nan")) for value in text.split(",")] for text in dimensions]
                cases.append(np.array(rows))
                labels.append(label)
                absent = np.isnan(cases[-1])
                if label not in classes or (absent.any(0) != absent.all(0)).any():
                    raise ValueError(f"{line[:60]!r} has another class, or a ? where other dimensions have a number")
        names = [f"dimension_{d}" for d in range(len(cases[0]))]
        times, values = [np.arange(case.shape[1]) for case in cases], [case.T for case in cases]
        dataset = SeriesDataset.from_arrays(times, values, value_names=names, wide=True, tokens="time")
    return dataset, np.array(labels)


def without_times(dataset: SeriesDataset, share: float, draw: np.random.Generator) -> SeriesDataset:
    """Return the series without a share of their times: int(share · L) of every series of L, uniformly drawn.

    The others keep their positions. This is what papers on irregular series do (Table 6 of arXiv:2505.20535; the
    protocol of ContiFormer, NeurIPS 2023). Raises InputError unless 0 ≤ share < 1.
    """
    if not 0 <= share < 1:
        raise InputError(f"share is {share}; wanted at least 0 and less than 1, of the times to leave out.")
    keep = np.ones(len(dataset.times), bool)
    for first, length in zip(dataset.offsets[:-1], dataset.lengths, strict=True):
        keep[first + draw.choice(length, int(share * length), replace=False)] = False
    return dataset.mask_observations(keep)
