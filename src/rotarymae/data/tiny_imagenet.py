"""Tiny ImageNet: pictures of 64 × 64 pixels in 200 classes (Le and Yang, CS 231N, 2015), from the official zip.

The zip is read as it is. In it, `wnids.txt` lists the classes, `train/CLASS/images/*.JPEG` are training pictures, and
`val/val_annotations.txt` says the class of each of `val/images/*.JPEG`. The test pictures have no labels and are not
read. Some pictures are grey; they become three equal channels.
"""

from __future__ import annotations

import zipfile
import zlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from rotarymae.data.sources import missing
from rotarymae.errors import InputError

FILE = "tiny-imagenet-200.zip"
SIDE = 64


@dataclass(frozen=True, eq=False)
class Pictures:
    """What the zip holds of some classes, in the order of its names.

    Attributes:
        train, validation: pixels uint8 [N, 64, 64, 3], red, green, blue.
        train_labels, validation_labels: numbers of classes, int64 [N].
        classes: WordNet id of each class.
        words: in English.
    """

    train: np.ndarray
    train_labels: np.ndarray
    validation: np.ndarray
    validation_labels: np.ndarray
    classes: tuple[str, ...]
    words: tuple[str, ...]


def read(folder: str | Path, classes: int | None = None, per_class: int | None = None) -> Pictures:
    """The pictures in FOLDER/tiny-imagenet-200.zip.

    Args:
        folder: where the zip lies.
        classes: only the first so many of wnids.txt; None reads all.
        per_class: only the first so many training pictures of each class; None reads all.

    Raises:
        InputError: a zip that is missing (it says where to get it), damaged, or laid out otherwise; a number of
            classes that it does not have.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        raise missing(path, "tiny_imagenet")
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, classes, per_class)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, KeyError, ValueError) as error:
        raise InputError(f"{path} is damaged, or another zip ({error}); remove it and fetch it anew.") from error


def _read(archive: zipfile.ZipFile, classes: int | None, per_class: int | None) -> Pictures:
    names = archive.namelist()
    top = names[0].partition("/")[0]
    within: dict[str, list[str]] = defaultdict(list)  # folder → files
    for name in names:
        within[name.rpartition("/")[0]].append(name)

    def text(name: str) -> str:
        return archive.read(f"{top}/{name}").decode("utf-8")

    known = text("wnids.txt").split()
    if classes is not None and not 2 <= classes <= len(known):
        raise InputError(f"{classes} classes of {len(known)}; wanted 2 to {len(known)}.")
    chosen = {name: number for number, name in enumerate(known[:classes])}
    train, train_labels = [], []
    for name, number in chosen.items():
        pictures = [one for one in within[f"{top}/train/{name}/images"] if not one.endswith("/")]
        for one in sorted(pictures, key=lambda name: (len(name), name))[:per_class]:  # _2 before _10
            train.append(_picture(archive, one))
            train_labels.append(number)
    validation, validation_labels = [], []
    for line in text("val/val_annotations.txt").splitlines():
        name, kind = line.split("\t")[:2]
        if kind in chosen:
            validation.append(_picture(archive, f"{top}/val/images/{name}"))
            validation_labels.append(chosen[kind])
    words = dict(line.split("\t", 1) for line in text("words.txt").splitlines() if "\t" in line)
    return Pictures(
        np.stack(train),
        np.array(train_labels, np.int64),
        np.stack(validation),
        np.array(validation_labels, np.int64),
        tuple(chosen),
        tuple(words.get(name, name) for name in chosen),
    )


def _picture(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """uint8 [64, 64, 3]."""
    try:
        with archive.open(name) as file, Image.open(file) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError) as error:
        raise InputError(f"{name} is no whole picture ({error}).") from error
