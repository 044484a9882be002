"""Tiny ImageNet: pictures of 64 × 64 pixels in 200 classes (Le and Yang, CS 231N, 2015), from the official zip.

The zip is read as it is. In it, `wnids.txt` lists the classes, `train/CLASS/images/*.JPEG` are training pictures, and
`val/val_annotations.txt` says the class of each of `val/images/*.JPEG`. The test pictures have no labels and are not
read. Some pictures are grey; they become three equal channels.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from rotarymae.errors import InputError, listed
from rotarymae_experiments.data.download import safe_parts
from rotarymae_experiments.data.sources import missing

FILE = "tiny-imagenet-200.zip"
SIDE = 64
LARGEST = 1 << 20  # bytes unpacked; the largest picture has 8 kB, the longest text 3 MB
LONGEST = 1 << 24


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


def read(folder: str | Path, classes: tuple[int, int] | None = None, per_class: int | None = None) -> Pictures:
    """The pictures in FOLDER/tiny-imagenet-200.zip.

    Args:
        folder: where the zip lies.
        classes: only those of wnids.txt from the first of two numbers, counted from 0, to before the second; None
            reads all.
        per_class: only the first so many training pictures of each class; None reads all.

    Raises:
        InputError: a zip that is missing (it says where to get it), damaged, or lacks a file; names in it that lead
            elsewhere; a file that unpacks to far more than such a file holds; a picture that is none, or of another
            size; a class or picture of val_annotations.txt that is not there, by its line.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        raise missing(path, "tiny_imagenet")
    try:
        with zipfile.ZipFile(path) as archive:
            return _Zip(path, archive).read(classes, per_class)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{path} is damaged ({error}); remove it and fetch it anew.") from error


class _Zip:
    """The files of the zip, by their place in its one folder."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self.archive = path, archive
        self.entries: dict[tuple[str, ...], zipfile.ZipInfo] = {}
        for entry in archive.infolist():
            parts = safe_parts(path, entry.filename)
            if not entry.is_dir() and parts[1:]:
                self.entries[parts[1:]] = entry

    def read(self, classes: tuple[int, int] | None, per_class: int | None) -> Pictures:
        known = self.text("wnids.txt")
        first, end = classes or (0, len(known))
        if classes is not None and not 0 <= first <= end - 2 <= len(known) - 2:
            raise InputError(
                f"classes {first} to {end} of {len(known)} in {self.path}; wanted two or more within 0 to {len(known)}."
            )
        chosen = {name: number for number, name in enumerate(known[first:end])}
        strange = {parts[1] for parts in self.entries if parts[0] == "train" and len(parts) > 1} - set(known)
        if strange:
            raise InputError(
                f"{self.path}: train/ has classes that wnids.txt does not name: {listed(sorted(strange))}."
            )
        train, train_labels = [], []
        for name, number in chosen.items():
            own = sorted(parts for parts in self.entries if parts[:3] == ("train", name, "images"))
            own = sorted(own, key=lambda parts: (len(parts[-1]), parts[-1]))[:per_class]  # _2 before _10
            if not own:
                raise InputError(f"{self.path}: class {name} of wnids.txt has no pictures in train/{name}/images.")
            train += [self.picture(parts) for parts in own]
            train_labels += [number] * len(own)
        validation, validation_labels = [], []
        for line, text in enumerate(self.text("val", "val_annotations.txt"), start=1):
            where = f"{self.path}: val/val_annotations.txt, line {line}"
            name, _, rest = text.partition("\t")
            kind = rest.partition("\t")[0]
            if kind not in known:
                raise InputError(f"{where}: the class {kind!r} of {name!r} is not in wnids.txt.")
            parts = ("val", "images", name)
            if parts not in self.entries:
                raise InputError(f"{where}: there is no picture val/images/{name}.")
            if kind in chosen:
                validation.append(self.picture(parts))
                validation_labels.append(chosen[kind])
        if not validation:
            raise InputError(f"{self.path}: val/val_annotations.txt names no picture of the {len(chosen)} classes.")
        named = dict(line.split("\t", 1) for line in self.text("words.txt") if "\t" in line)
        return Pictures(
            np.stack(train),
            np.array(train_labels, np.int64),
            np.stack(validation),
            np.array(validation_labels, np.int64),
            tuple(chosen),
            tuple(named.get(name, name) for name in chosen),
        )

    def text(self, *parts: str) -> list[str]:
        """The lines of a text that are not empty."""
        try:
            return [line for line in self.bytes(parts, LONGEST).decode("utf-8").splitlines() if line.strip()]
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path}: {'/'.join(parts)} is no text ({error}).") from error

    def picture(self, parts: tuple[str, ...]) -> np.ndarray:
        """uint8 [64, 64, 3]."""
        content = self.bytes(parts, LARGEST)
        try:
            with Image.open(io.BytesIO(content)) as image:
                if image.size == (SIDE, SIDE):  # before anything is decoded
                    return np.asarray(image.convert("RGB"))
                size = "×".join(map(str, image.size))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise InputError(f"{self.path}: {'/'.join(parts)} is no whole picture ({error}).") from error
        raise InputError(f"{self.path}: {'/'.join(parts)} has {size} pixels; wanted {SIDE}×{SIDE}.")

    def bytes(self, parts: tuple[str, ...], limit: int) -> bytes:
        name = "/".join(parts)
        if parts not in self.entries:
            raise InputError(f"{self.path} holds no {name}; wanted the layout of the official tiny-imagenet-200.zip.")
        entry = self.entries[parts]
        if entry.file_size > limit:
            raise InputError(f"{self.path}: {name} unpacks to {entry.file_size:,} bytes; at most {limit:,} are read.")
        try:
            return self.archive.read(entry)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise InputError(f"{self.path}: {name} is damaged ({error}); remove the zip and fetch it anew.") from error
