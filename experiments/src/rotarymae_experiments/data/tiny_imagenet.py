"""Tiny ImageNet: pictures of 64 × 64 pixels in 200 classes (Le and Yang, CS 231N, 2015), from the official zip.

The zip is read as it is. In it, `wnids.txt` lists the classes, `train/CLASS/images/*.JPEG` are training pictures, and
`val/val_annotations.txt` says the class of each of `val/images/*.JPEG`. The test pictures have no labels and are not
read. Some pictures are grey; they become three equal channels.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from rotarymae.errors import InputError
from rotarymae_experiments.data.sources import reading

FILE = "tiny-imagenet-200.zip"
TOP = "tiny-imagenet-200"
SIDE = 64


class Pictures(NamedTuple):
    """The pictures of some classes.

    Attributes:
        train: pixels uint8 [N, 64, 64, 3], red, green, blue, class by class.
        train_labels: number of each picture's class in `classes`, int64 [N].
        validation, validation_labels: the same of the validation pictures, in the order of their list.
        classes: WordNet id of each class.
    """

    train: np.ndarray
    train_labels: np.ndarray
    validation: np.ndarray
    validation_labels: np.ndarray
    classes: tuple[str, ...]


def read(folder: str | Path, classes: tuple[int, int] | None = None, per_class: int | None = None) -> Pictures:
    """Read the pictures in FOLDER/tiny-imagenet-200.zip.

    Args:
        folder: where the zip is.
        classes: (first, end), numbers of the classes in wnids.txt from 0, the end excluded; None reads all.
        per_class: read only the first training pictures of each class, this many; None reads all.

    Raises:
        InputError: a zip that is missing (it says where to get it), damaged, or not as published; fewer than two
            classes, or numbers that do not exist.
    """
    path = Path(folder) / FILE
    with reading(path, "tiny_imagenet"), zipfile.ZipFile(path) as archive:
        known = archive.read(f"{TOP}/wnids.txt").decode().split()
        first, end = classes or (0, len(known))
        if not 0 <= first < end - 1 < len(known):
            raise InputError(f"classes {first} to {end} of {len(known)} in {path}; wanted two or more of them.")
        chosen = {name: number for number, name in enumerate(known[first:end])}
        by_class: dict[str, list[str]] = {name: [] for name in known}
        for name in archive.namelist():
            parts = name.split("/")
            if parts[:2] == [TOP, "train"] and name.endswith(".JPEG"):
                by_class[parts[2]].append(name)
        train = [  # _2 before _10
            (name, number)
            for one, number in chosen.items()
            for name in sorted(by_class[one], key=lambda name: (len(name), name))[:per_class]
        ]
        lines = [line.split("\t") for line in archive.read(f"{TOP}/val/val_annotations.txt").decode().splitlines()]
        validation = [(f"{TOP}/val/images/{line[0]}", chosen[line[1]]) for line in lines if line[1] in chosen]
        parts = []
        for pictures in (train, validation):
            parts.append(np.stack([_pixels(archive, name) for name, _ in pictures]))
            parts.append(np.array([number for _, number in pictures]))
        return Pictures(*parts, tuple(chosen))  # pyright: ignore


def _pixels(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Return the pixels, uint8 [64, 64, 3], of the picture `name` in the zip; raise ValueError for another size."""
    with archive.open(name) as content, Image.open(content) as image:
        if image.size != (SIDE, SIDE):  # before anything is decoded
            raise ValueError(f"{name} has {image.size[0]}×{image.size[1]} pixels; wanted {SIDE}×{SIDE}")
        return np.asarray(image.convert("RGB"))
