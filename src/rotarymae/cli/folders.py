"""A folder of pictures or sounds that a command is given instead of a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rotarymae.cli.table import Columns
from rotarymae.errors import InputError, listed

if TYPE_CHECKING:
    from rotarymae.arrays import ArrayPreprocessor, FolderData


@dataclass(frozen=True)
class FolderReading:
    """How a folder of pictures or sounds is read."""

    broken: Literal["skip", "error"] = "skip"
    """A file that cannot be read, or that is smaller than a patch, is left out and named, or is an error."""
    resample: bool = False
    """Sounds of another sample rate than the first one's (the model's) are resampled; without it they are refused."""


@dataclass(frozen=True)
class FolderOptions(FolderReading):
    """A folder of pictures or sounds instead of a table; a file's class is the name of the folder in which it lies."""

    images: bool = False
    """TABLE is a folder of pictures (PNG, JPEG, ...)."""
    audio: bool = False
    """TABLE is a folder of sounds (WAV, FLAC, OGG, ...), which become spectrograms of 128 bins every 10 ms."""
    patch_size: tuple[int, ...] = (16,)
    """A patch has so many rows and columns (frames and bins); one number is both."""
    longest_side: int = 224
    """Larger pictures are scaled down to so many pixels on their longer side."""

    @property
    def given(self) -> bool:
        return self.images or self.audio

    def check(self, columns: Columns, others: dict[str, Any]) -> None:
        """Raises InputError for options of tables beside a folder, by name; and for both kinds of folders at once."""
        if self.images and self.audio:
            raise InputError("give one of --images and --audio.")
        others = {**asdict(columns), **others}
        tables = [f"--{name.replace('_', '-')}" for name, value in others.items() if value]
        if tables:
            kind = "--images" if self.images else "--audio"
            raise InputError(f"{', '.join(tables)} concern tables; leave them out with {kind}.")
        if len(self.patch_size) not in (1, 2):
            raise InputError(f"--patch-size has {len(self.patch_size)} numbers; wanted one or two.")

    def read(self, folder: Path, start: ArrayPreprocessor | None, on_file: Any) -> FolderData:
        """The files of the folder; `start` is the preprocessor of a model that was trained already."""
        if start is not None:
            return read_folder(folder, start, self, on_file)
        from rotarymae.arrays import read_pictures, read_sounds

        patch = self.patch_size if len(self.patch_size) == 2 else self.patch_size[0]
        if self.audio:
            return read_sounds(folder, patch, None, self.resample, self.broken, on_file)
        return read_pictures(folder, patch, self.longest_side, None, self.broken, on_file)


def read_folder(folder: Path, preprocessor: ArrayPreprocessor, how: FolderReading, on_file: Any) -> FolderData:
    """The files of a folder for a model that was made from others."""
    from rotarymae.arrays import read_pictures, read_sounds

    patch = preprocessor.patch_size
    if preprocessor.sample_rate is not None:
        return read_sounds(folder, patch, preprocessor.sample_rate, how.resample, how.broken, on_file)
    if len(patch) != 2:
        raise InputError(f"the model was made from {preprocessor.noun}, which are not read from folders.")
    return read_pictures(folder, patch, preprocessor.longest_side, preprocessor.channels, how.broken, on_file)


def known_labels(found: FolderData, folder: Path, classes: tuple[Any, ...]) -> Any:
    """The labels of a folder's files. Raises InputError, naming a file, for one that is no class of the model."""
    if found.labels is None:
        raise InputError(f"{folder} has no folders inside, whose names would be the classes; nothing can be scored.")
    for name, label in zip(found.dataset.ids, found.labels, strict=True):
        if label is not None and label not in classes:
            raise InputError(
                f"{folder / name} lies in the folder {str(label)!r}, which is no class of the model; its classes are "
                f"{listed(classes, 20)}."
            )
    return found.labels
