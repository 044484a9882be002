"""ESC-50: five-second recordings of 50 classes of sound in five folds, and ESC-10, ten classes of it (Piczak, 2015).

`read` takes the official layout, `audio/FOLD-CLIP-TAKE-TARGET.wav` (or .ogg) and `meta/esc50.csv`; `read_pictures` the
same clips as 8-bit log-mel pictures. In either case a clip becomes a spectrogram [frames, 128, 1]: the natural
logarithm of mel energies by Kaldi's filterbank, or decibels below the clip's loudest cell.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rotarymae.arrays import ArrayDataset, resampled
from rotarymae.errors import import_extra
from rotarymae_experiments.data.sources import reading

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
        spectrograms: [frames, 128, 1] each, to be cut into patches of 16 × 16; ids are the file names.
        labels: numbers of classes, int64 [S].
        folds: 1 to 5, int64 [S].
    """

    spectrograms: ArrayDataset
    labels: np.ndarray
    folds: np.ndarray

    def __len__(self) -> int:
        """Return the number of clips."""
        return len(self.labels)

    def select(self, rows: np.ndarray) -> Sounds:
        """Return the sounds at the indices `rows`, in their order."""
        return Sounds(self.spectrograms.select(rows), self.labels[rows], self.folds[rows])


def read(folder: str | Path, esc10: bool = False, sample_rate: int = RATE) -> Sounds:
    """Read the clips that FOLDER/meta/esc50.csv lists, from FOLDER/audio, as natural logarithms of mel energies.

    Args:
        folder: where they are.
        esc10: read only the clips of ESC-10, of which the column esc10 is True.
        sample_rate: resample to this rate, in Hz, before the filterbank.

    Raises:
        InputError: a file that is missing (it says where to get it) or not as published.
        MissingExtra: without the extra `audio`.
    """
    soundfile = import_extra("soundfile", "audio")
    table = Path(folder) / "meta" / "esc50.csv"
    with reading(table, "esc50"):
        rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
        rows = [row for row in rows if not esc10 or row["esc10"] == "True"]
        names, folds = [row["filename"] for row in rows], np.array([int(row["fold"]) for row in rows])
        targets = np.array([int(row["target"]) for row in rows])
        _check(targets, folds)
    arrays: list[np.ndarray] = []
    for name in names:  # one after the other: all waveforms together can be larger than the memory
        path = Path(folder) / "audio" / Path(name).name
        with reading(path, "esc50"):
            waveform, rate = soundfile.read(path, dtype="float32")
            if waveform.ndim > 1 or rate != RATE:
                raise ValueError(f"{rate} Hz, shape {waveform.shape}; wanted {RATE} Hz, mono")
        sounds = [resampled(waveform, rate, sample_rate)]
        arrays += ArrayDataset.from_waveforms(sounds, sample_rate, PATCH, [name]).arrays
    return Sounds(ArrayDataset(tuple(arrays), (PATCH, PATCH), np.array(names), sample_rate), targets, folds)


def read_pictures(folder: str | Path) -> Sounds:
    """Read the clips of FOLDER/esc50_specs_magma_index.npz as decibels: 0 for a clip's loudest cell, at least -80.

    The file has X uint8 [S, 181, columns], low pitches first, and y (class), fold and name [S]. A picture's 181 rows
    show 125 bins of pitch, each by one row or two, more often by two where it is low. They become 128 that count evenly
    through these 125, of which three come twice.

    Raises:
        InputError: a file that is missing, damaged, or holds other arrays than these.
    """
    path = Path(folder) / PICTURES
    with reading(path, "esc50_logmel"), np.load(path, allow_pickle=False) as file:
        x, y, fold, name = (file[key] for key in ("X", "y", "fold", "name"))
        if x.dtype != np.uint8 or x.ndim != 3 or x.shape[1] != 181 or not len(x) == len(y) == len(fold) == len(name):
            raise ValueError(f"X is {x.dtype} {x.shape}, y {y.shape}; wanted uint8 [clips, 181, columns], [clips]")
        _check(y, fold)
    repeated = (x[:, 1:] == x[:, :-1]).all(axis=(0, 2))
    distinct = np.flatnonzero(np.concatenate([[True], ~repeated]))
    bins = distinct[np.linspace(0, len(distinct) - 1, BINS).round().astype(int)]
    decibels = (x[:, bins].swapaxes(1, 2).astype(np.float32) - 255) * np.float32(STEP)
    spectrograms = ArrayDataset.from_arrays(decibels, PATCH, name)
    return Sounds(spectrograms, y.astype(np.int64), fold.astype(np.int64))


def _check(targets: np.ndarray, folds: np.ndarray) -> None:
    """Raise ValueError for classes (`targets`) outside 0 to 49, folds outside 1 to 5, or no clips."""
    if not len(targets) or targets.min() < 0 or targets.max() >= 50 or folds.min() < 1 or folds.max() > FOLDS:
        raise ValueError(f"targets outside 0 to 49, folds outside 1 to {FOLDS}, or no clips")
