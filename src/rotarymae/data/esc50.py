"""ESC-50: five-second recordings of 50 classes of sound in five folds, and ESC-10, ten classes of it (Piczak, 2015).

`read` takes the official layout, `audio/FOLD-CLIP-TAKE-TARGET.wav` (or .ogg) and `meta/esc50.csv`; `read_pictures` the
same clips as 8-bit log-mel pictures. In either case a clip becomes a spectrogram [frames, 128, 1]: the natural
logarithm of mel energies by Kaldi's filterbank, or decibels below the clip's loudest cell.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rotarymae.arrays import ArrayDataset, resampled
from rotarymae.data.sources import missing
from rotarymae.errors import InputError, import_extra
from rotarymae.series import read_table

RATE = 44_100  # Hz
FOLDS = 5
PATCH = 16
PICTURES = "esc50_specs_magma_index.npz"
STEP = 80 / 255  # decibels from one colour to the next
BINS = 128


@dataclass(frozen=True, eq=False)
class Sounds:
    """Spectrograms of S clips.

    Attributes:
        spectrograms: [frames, 128, 1] each, in patches of 16 × 16; ids are the file names.
        labels: numbers of classes, int64 [S].
        folds: 1 to 5, int64 [S].
    """

    spectrograms: ArrayDataset
    labels: np.ndarray
    folds: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: np.ndarray) -> Sounds:
        """The clips of these rows."""
        return replace(
            self, spectrograms=self.spectrograms.select(rows), labels=self.labels[rows], folds=self.folds[rows]
        )


def read(folder: str | Path, esc10: bool = False, sample_rate: int = RATE) -> Sounds:
    """The clips of FOLDER/meta/esc50.csv, from FOLDER/audio.

    Args:
        folder: where they lie.
        esc10: only those that the column esc10 calls True.
        sample_rate: resample to this rate, in Hz, before the filterbank.

    Raises:
        InputError: a file that is missing (it says where to get it); a csv with other columns; a recording that is
            damaged, or too short.
        MissingExtra: without the extra `audio`.
    """
    folder = Path(folder)
    path = folder / "meta" / "esc50.csv"
    if not path.is_file():
        raise missing(path, "esc50")
    table = read_table(path, columns=["filename", "fold", "target", *(["esc10"] if esc10 else [])])
    rows = [row for row in table.to_pylist() if not esc10 or row["esc10"]]

    arrays, names = [], [row["filename"] for row in rows]
    for name in names:  # one after the other: all waveforms together can be larger than the memory
        waveform, rate = _open(folder / "audio" / name)
        sounds = [resampled(waveform, rate, sample_rate)]
        arrays += ArrayDataset.from_waveforms(sounds, sample_rate, PATCH, [name]).arrays
    spectrograms = ArrayDataset(tuple(arrays), (PATCH, PATCH), np.array(names), sample_rate)
    labels, folds = (np.array([row[name] for row in rows]) for name in ("target", "fold"))
    return Sounds(spectrograms, labels, folds)


def _open(path: Path) -> tuple[np.ndarray, int]:
    """(float32 [n], the mean of the channels; rate) of a recording."""
    soundfile = import_extra("soundfile", "audio")
    if not path.is_file():
        raise missing(path, "esc50")
    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except soundfile.SoundFileError as error:
        raise InputError(f"{path} cannot be read ({error}); is it a whole recording?") from error
    return samples.mean(1), rate


def read_pictures(folder: str | Path) -> Sounds:
    """The clips of FOLDER/esc50_specs_magma_index.npz: X uint8 [S, 181, columns], low to high; y, fold, name [S].

    A picture's 181 rows repeat some of the 128 mel bins; every bin is taken once. Values are decibels, 0 for the
    clip's loudest cell and −80 for 80 dB below it or less.

    Raises:
        InputError: a file that is missing or damaged.
    """
    path = Path(folder) / PICTURES
    if not path.is_file():
        raise missing(path, "esc50_logmel")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:  # numpy leaves a damaged one open
            x, y, fold, name = (file[key] for key in ("X", "y", "fold", "name"))
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is damaged, or another file ({error}); wanted arrays X, y, fold and name.") from error
    bins = ((np.arange(BINS) + 0.5) * x.shape[1] / BINS).astype(int)
    decibels = (x[:, bins].swapaxes(1, 2).astype(np.float32) - 255) * np.float32(STEP)
    spectrograms = ArrayDataset.from_arrays(decibels, PATCH, name)
    return Sounds(spectrograms, y.astype(np.int64), fold.astype(np.int64))
