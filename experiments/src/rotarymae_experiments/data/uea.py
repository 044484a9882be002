"""UEA archive: multivariate time series of a class each (Bagnall et al., arXiv:1811.00075), and gaps made in them.

Reads the archive's own `.ts` files. A time is its number in the series, from 0; one row is one time, with a value for
every dimension. `without_times` leaves out a share of the times of each series, as the papers on irregular series do
(Table 6 of arXiv:2505.20535; the protocol of ContiFormer, NeurIPS 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rotarymae.errors import InputError
from rotarymae.series import SeriesDataset
from rotarymae_experiments.data.sources import missing


@dataclass(frozen=True)
class Problem:
    """A classification problem of the archive, in its official parts.

    Attributes:
        train, test: the series; ids count from 0 in each part.
        train_labels, test_labels: [S] names of classes, as strings.
    """

    train: SeriesDataset
    train_labels: np.ndarray
    test: SeriesDataset
    test_labels: np.ndarray


def read(folder: str | Path, name: str) -> Problem:
    """The problem `name`, from FOLDER/NAME/NAME_TRAIN.ts and NAME_TEST.ts.

    Raises:
        InputError: a file that is missing (it says where to get it); as `read_ts`; a test part with other dimensions
            or classes than the training part.
    """
    parts = []
    for part in ("TRAIN", "TEST"):
        path = Path(folder) / name / f"{name}_{part}.ts"
        if not path.is_file():
            raise missing(path, "uea")
        parts.append(read_ts(path))
    (train, train_labels), (test, test_labels) = parts
    if train.value_names != test.value_names:
        raise InputError(
            f"{name} has {len(train.value_names)} dimensions in training and {len(test.value_names)} in test."
        )
    strange = sorted(set(test_labels.tolist()) - set(train_labels.tolist()))
    if strange:
        raise InputError(f"{name}: classes {', '.join(strange)} are tested and never trained on.")
    return Problem(train, train_labels, test, test_labels)


def read_ts(path: str | Path) -> tuple[SeriesDataset, np.ndarray]:
    """(series, labels [S]) of one file: a series a line, dimensions parted by colons, the class behind the last.

    A "?" is a value that is missing: a time is left out where all dimensions lack it, and refused where only some do.

    Raises:
        InputError: no such file; no classes; time stamps in the file; a line that is not as it should be, by number.
    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}); wanted a .ts file of the UEA archive.") from error
    head, start = _header(path, lines)
    classes = head.get("classlabel", "false").split()
    if len(classes) < 2 or classes[0].lower() != "true":
        raise InputError(f"{path} has no classes (@classLabel true ...); only classification problems are read.")
    if head.get("timestamps", "false").lower() == "true":
        raise InputError(f"{path} has time stamps (@timeStamps true), which are not read; make a table of it.")
    cases: list[np.ndarray] = []
    labels: list[str] = []
    for number, line in enumerate(lines[start:], start + 1):
        if not line.strip() or line.startswith(("#", "%")):
            continue
        *dimensions, label = (part.strip() for part in line.split(":"))
        try:
            case = np.array([[float(value.replace("?", "nan")) for value in text.split(",")] for text in dimensions])
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: {error}; wanted as many numbers of every dimension, or ? for a missing one."
            ) from error
        if label not in classes[1:] or not dimensions or len(case) != len((cases or [case])[0]):
            raise InputError(
                f"{path}, line {number}: {len(case)} dimensions of the class {label!r}; the classes are "
                f"{', '.join(classes[1:])}, and the first series has {len((cases or [case])[0])} dimensions."
            )
        if np.isinf(case).any() or np.isnan(case).all() or (np.isnan(case).any(0) != np.isnan(case).all(0)).any():
            raise InputError(
                f"{path}, line {number}: an infinite value, or a ? where other dimensions have a number, or nothing "
                "but ?; a time can only lack all dimensions."
            )
        cases.append(case)
        labels.append(label)
    if not cases:
        raise InputError(f"{path} holds no series behind @data.")
    padded = np.full((len(cases), len(cases[0]), max(case.shape[1] for case in cases)), np.nan)
    for i, case in enumerate(cases):
        padded[i, :, : case.shape[1]] = case
    names = [f"dimension_{d}" for d in range(padded.shape[1])]
    return SeriesDataset.from_padded(padded, channel_names=names), np.array(labels)


def without_times(dataset: SeriesDataset, share: float, draw: np.random.Generator) -> SeriesDataset:
    """int(share · L) times of every series of L left out, uniformly drawn; the others keep their positions.

    Raises:
        InputError: a share outside 0 to 1.
    """
    if not 0 <= share < 1:
        raise InputError(f"share is {share}; wanted at least 0 and less than 1, of the times to leave out.")
    keep = np.ones(len(dataset.times), bool)
    for first, length in zip(dataset.offsets[:-1], dataset.lengths, strict=True):
        keep[first + draw.choice(length, int(share * length), replace=False)] = False
    return dataset.mask_observations(keep)


def _header(path: Path, lines: list[str]) -> tuple[dict[str, str], int]:
    """What stands behind each @name, in small letters, and where the series begin."""
    head: dict[str, str] = {}
    for number, line in enumerate(lines):
        if line.strip().lower() == "@data":
            return head, number + 1
        if line.startswith("@"):
            name, _, value = line[1:].strip().partition(" ")
            head[name.lower()] = value.strip()
    raise InputError(f"{path} has no line @data; wanted a .ts file of the UEA archive.")
