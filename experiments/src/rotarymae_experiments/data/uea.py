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
from rotarymae_experiments.data.sources import missing


class Problem(NamedTuple):
    """A classification problem of the archive, in its official parts; labels [S] are names of classes."""

    train: SeriesDataset
    train_labels: np.ndarray
    test: SeriesDataset
    test_labels: np.ndarray


def read(folder: str | Path, name: str) -> Problem:
    """Read the problem `name`, from FOLDER/NAME/NAME_TRAIN.ts and NAME_TEST.ts.

    Raises:
        InputError: a file that is missing (it says where to get it); as `read_ts`; a test part with other dimensions
            or classes than the training part.
    """
    parts = []
    for part in ("TRAIN", "TEST"):
        path = Path(folder) / name / f"{name}_{part}.ts"
        if not path.is_file():
            raise missing(path, "uea")
        parts += read_ts(path)
    problem = Problem(*parts)
    dimensions = [len(part.value_names) for part in (problem.train, problem.test)]
    if dimensions[0] != dimensions[1]:
        raise InputError(f"{name} has {dimensions[0]} dimensions in training and {dimensions[1]} in test.")
    strange = sorted(set(problem.test_labels.tolist()) - set(problem.train_labels.tolist()))
    if strange:
        raise InputError(f"{name}: classes {', '.join(strange)} are tested and never trained on.")
    return problem


def read_ts(path: Path) -> tuple[SeriesDataset, np.ndarray]:
    """Return (series, labels [S]) of a file: one series per line, dimensions separated by colons, the class last.

    A "?" is a value that is missing: a time is left out where all dimensions lack it, and refused where only some do.

    Raises:
        InputError: a file that cannot be read, has no classes or has time stamps; a wrong line, by its number.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        start = [line.strip().lower() for line in lines].index("@data")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); wanted a .ts file of the UEA archive.") from error
    head = {line.split()[0].lower(): line.split()[1:] for line in lines[:start] if line.startswith("@")}
    labelled, *classes = head.get("@classlabel", ["false"])
    if labelled.lower() != "true" or head.get("@timestamps", ["false"])[0].lower() == "true":
        raise InputError(f"{path} has no classes (@classLabel true ...), or has time stamps (@timeStamps true).")
    cases: list[np.ndarray] = []
    labels: list[str] = []
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if not line.strip() or line.startswith(("#", "%")):
            continue
        *dimensions, label = (part.strip() for part in line.split(":"))
        try:
            case = np.array([[float(value.replace("?", "nan")) for value in text.split(",")] for text in dimensions])
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}; wanted numbers, or ? for a missing one.") from error
        expected = len(cases[0]) if cases else len(case)
        if label not in classes or not dimensions or len(case) != expected:
            raise InputError(
                f"{path}, line {number}: {len(case)} dimensions of the class {label!r}; wanted {expected} of one of "
                f"{', '.join(classes)}."
            )
        absent = np.isnan(case)
        if np.isinf(case).any() or absent.all() or (absent.any(0) != absent.all(0)).any():
            raise InputError(
                f"{path}, line {number}: an infinite value, nothing but ?, or a ? where other dimensions have a number."
            )
        cases.append(case)
        labels.append(label)
    if not cases:
        raise InputError(f"{path} holds no series behind @data.")
    names = [f"dimension_{d}" for d in range(len(cases[0]))]
    times, values = [np.arange(case.shape[1]) for case in cases], [case.T for case in cases]
    dataset = SeriesDataset.from_arrays(times, values, value_names=names, wide=True, tokens="time")
    return dataset, np.array(labels)


def without_times(dataset: SeriesDataset, share: float, draw: np.random.Generator) -> SeriesDataset:
    """Leave out int(share · L) times of every series of L, uniformly drawn; the others keep their positions.

    As the papers on irregular series do (Table 6 of arXiv:2505.20535; the protocol of ContiFormer, NeurIPS 2023).
    """
    if not 0 <= share < 1:
        raise InputError(f"share is {share}; wanted at least 0 and less than 1, of the times to leave out.")
    keep = np.ones(len(dataset.times), bool)
    for first, length in zip(dataset.offsets[:-1], dataset.lengths, strict=True):
        keep[first + draw.choice(length, int(share * length), replace=False)] = False
    return dataset.mask_observations(keep)
