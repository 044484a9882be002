"""ESC-50: five-second recordings of 50 classes of sound in five folds, and ESC-10, ten classes of it (Piczak, 2015).

`read` takes the official layout, `audio/FOLD-CLIP-TAKE-TARGET.wav` (or .ogg) and `meta/esc50.csv`; `read_pictures` the
same clips as 8-bit log-mel pictures. In either case a clip becomes a spectrogram [frames, 128, 1]: the natural
logarithm of mel energies by Kaldi's filterbank, or decibels below the clip's loudest cell.
"""

from __future__ import annotations

import csv
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rotarymae.arrays import ArrayDataset, resampled
from rotarymae.errors import InputError, import_extra
from rotarymae_experiments.data.sources import missing

RATE = 44_100  # Hz
FOLDS = 5
COLUMNS = ("filename", "fold", "target", "category")
LONGEST = 60.0  # seconds; the clips have about 5
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
        InputError: a file that is missing (it says where to get it); a line of the csv with a wrong number of cells,
            fold or target, or whose file is missing or is named otherwise; a recording that is damaged, empty, too
            long, not mono, not of 44.1 kHz, or that holds NaN.
        MissingExtra: without the extra `audio`.
    """
    folder = Path(folder)
    rows = _rows(folder / "meta" / "esc50.csv", esc10)

    arrays = []
    for where, name, _, _ in rows:  # one after the other: all waveforms together can be larger than the memory
        path = folder / "audio" / name
        if not path.is_file():
            raise InputError(f"{where}: {missing(path, 'esc50')}")
        waveform, rate, channels = _open(path)
        if rate != RATE or channels != 1:
            kind = "mono" if channels == 1 else f"{channels} channels"
            raise InputError(f"{path} has {rate} Hz, {kind}; wanted {RATE} Hz, mono.")
        if len(waveform) > LONGEST * rate:
            raise InputError(f"{path} lasts {len(waveform) / rate:.3g} s; wanted at most {LONGEST:g}.")
        sounds = [resampled(waveform, rate, sample_rate)]
        arrays += ArrayDataset.from_waveforms(sounds, sample_rate, PATCH, [name]).arrays
    _, names, folds, targets = (np.array(column) for column in zip(*rows, strict=True))
    return Sounds(ArrayDataset(tuple(arrays), (PATCH, PATCH), names, sample_rate), targets, folds)


def _rows(path: Path, esc10: bool) -> list[tuple[str, str, int, int]]:
    """(where, file name, fold, target) of each line."""
    try:
        lines = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except FileNotFoundError:
        raise missing(path, "esc50") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read ({error}).") from error
    head = lines[0] if lines else []
    for column in (*COLUMNS, *(["esc10"] if esc10 else [])):
        if column not in head:
            raise InputError(f"{path} has no column {column!r}; it has {', '.join(head) or 'none'}.")
    rows = []
    for number, cells in enumerate(lines[1:], start=2):
        where = f"{path}, line {number}"
        if len(cells) != len(head):
            raise InputError(f"{where}: {len(cells)} cells; the first line names {len(head)}.")
        row = dict(zip(head, cells, strict=True))
        if esc10 and row["esc10"] != "True":
            continue
        name, fold, target = row["filename"], row["fold"], row["target"]
        if fold not in map(str, range(1, FOLDS + 1)):
            raise InputError(f"{where}: the fold is {fold!r}; wanted 1 to {FOLDS}.")
        if not target.isdigit() or int(target) >= 50:
            raise InputError(f"{where}: the target is {target!r}; wanted 0 to 49.")
        stem = Path(name).stem.split("-")
        if Path(name).name != name or len(stem) != 4 or (stem[0], stem[3]) != (fold, target):
            raise InputError(f"{where}: the file name {name!r} does not say fold {fold} and target {target}.")
        rows.append((where, name, int(fold), int(target)))
    if not rows:
        raise InputError(f"{path} names no clips.")
    return rows


def _open(path: Path, seconds: float = 2 * LONGEST) -> tuple[np.ndarray, int, int]:
    """(float32 [n], the mean of the channels; rate; channels) of at most so many seconds."""
    soundfile = import_extra("soundfile", "audio")
    try:
        with soundfile.SoundFile(path) as opened:
            samples = opened.read(round(seconds * opened.samplerate), dtype="float32", always_2d=True)
            if len(samples) == 0:
                raise InputError(f"{path} lasts 0 s; leave it out.")
            return samples.mean(1), opened.samplerate, opened.channels
    except soundfile.SoundFileError as error:
        raise InputError(f"{path} cannot be read ({error}); is it a whole recording?") from error


def read_pictures(folder: str | Path) -> Sounds:
    """The clips of FOLDER/esc50_specs_magma_index.npz: X uint8 [S, 181, columns], low to high; y, fold, name [S].

    A picture's 181 rows show 125 bins of pitch, each by one row or two, more often by two where it is low. They become
    128 that count evenly through these 125, of which three come twice. Values are decibels, 0 for the
    clip's loudest cell and −80 for 80 dB below it or less.

    Raises:
        InputError: a file that is missing, damaged, or holds other arrays than these.
    """
    path = Path(folder) / PICTURES
    if not path.is_file():
        raise missing(path, "esc50_logmel")
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > 1 << 30:
            raise InputError(f"{path} unpacks to {size:,} bytes; at most {1 << 30:,} are read.")
        with np.load(path, allow_pickle=False) as file:
            x, y, fold, name = (file[key] for key in ("X", "y", "fold", "name"))
    except KeyError as error:
        raise InputError(f"{path} has no array {error}; wanted X, y, fold and name.") from None
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is damaged ({error}).") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} holds what is no plain array ({error}).") from error
    if x.dtype != np.uint8 or x.ndim != 3 or x.shape[1] != 181 or not x.size:
        raise InputError(f"{path}: X is {x.dtype} {x.shape}; wanted uint8 [clips, 181, columns].")
    for key, array in (("y", y), ("fold", fold), ("name", name)):
        if array.shape != x.shape[:1]:
            raise InputError(f"{path}: {key} has the shape {array.shape}; wanted {x.shape[:1]}.")
    for key, array, low, high in (("y", y, 0, 49), ("fold", fold, 1, FOLDS)):
        if array.dtype.kind not in "iu" or array.min() < low or array.max() > high:
            raise InputError(
                f"{path}: {key} holds {array.dtype} {array.min()} to {array.max()}; wanted {low} to {high}."
            )
    repeated = (x[:, 1:] == x[:, :-1]).all(axis=(0, 2))
    distinct = np.flatnonzero(np.concatenate([[True], ~repeated]))
    bins = distinct[np.linspace(0, len(distinct) - 1, BINS).round().astype(int)]
    decibels = (x[:, bins].swapaxes(1, 2).astype(np.float32) - 255) * np.float32(STEP)
    spectrograms = ArrayDataset.from_arrays(decibels, PATCH, name)
    return Sounds(spectrograms, y.astype(np.int64), fold.astype(np.int64))
