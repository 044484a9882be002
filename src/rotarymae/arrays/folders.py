"""Folders of pictures or sounds, with one folder per class inside."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rotarymae.arrays.dataset import SOUND_PATCH, ArrayDataset, FilesReport, patch_shape
from rotarymae.arrays.filterbank import filterbank
from rotarymae.errors import InputError, InputWarning, import_extra, listed

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")
PICTURE_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")  # Pillow knows more, and runs programs for some
SOUNDS = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".aif")
OnFile = Callable[[int, int], object]


@dataclass(frozen=True)
class FolderData:
    """The content of a folder of pictures or sounds.

    Attributes:
        dataset: S arrays; their ids are the files' paths below the folder, with "/".
        labels: [S] the first folder in each id, "cat" for "cat/1.png", or None for a file directly in the folder. If
            all files lie directly in it, None instead of an array.
    """

    dataset: ArrayDataset
    labels: np.ndarray | None


def read_pictures(
    folder: str | Path,
    patch_size: int | Sequence[int],
    longest_side: int | None = None,
    channels: int | None = None,
    on_file: OnFile | None = None,
) -> FolderData:
    """Read all pictures below a folder, in the order of their paths, rotated as their EXIF data say.

    Args:
        folder: with one folder per class, or with pictures alone; hidden files are skipped. Or a single file.
        patch_size: (rows, columns) of a patch; a single number is both.
        longest_side: pictures whose longer side has more pixels are scaled down to this, and keep their proportions; at
            least the longer side of a patch. None keeps sizes.
        channels: 1 for grey or 3 for colours; None takes 1 if all pictures are grey, else 3. Transparency is left out.
        on_file: called with (files read so far, number of files) after each file; None for no call.

    Returns:
        The pictures as arrays [rows, columns, channels], and their labels. Pixels are 0 to 255, in uint8, or float32 if
        grey and of 16 bits; pixels of 32 bits or with fractions keep their numbers.

    Raises:
        InputError: no folder, no picture in it, none that can be read; pictures of 8 or 16 bits together with others of
            32 bits or with fractions; a patch size, `longest_side` or `channels` out of range.
        OSError: a folder that may not be listed.
        MissingExtra: without the extra `images`.

    Warns:
        InputWarning: once for all files that cannot be read, are smaller than a patch, or hold NaN or infinity, which
            are left out, with the first reason; once for all pictures with several frames, whose first one is read.
    """
    image = import_extra("PIL.Image", "images")
    turn = import_extra("PIL.ImageOps", "images").exif_transpose
    patch = patch_shape(patch_size, 2)
    if channels not in (None, 1, 3):
        raise InputError(f"channels is {channels}; wanted 1 (grey) or 3 (colours).")
    if longest_side is not None and longest_side < max(patch):
        raise InputError(f"longest_side is {longest_side}, less than a patch of {patch}; wanted at least {max(patch)}.")

    stacks, depths = [], {}

    def read(path: Path) -> np.ndarray:
        """Read one picture as an array [rows, columns, 1 or 3], rotated, and scaled down to `longest_side` if larger.

        8 bits stay as they are, 16 bits become float32 with white at 255, and 32 bits keep their numbers. Of several
        frames the first is read, and the file's name is added to `stacks`. The name of the first file of each depth is
        kept in `depths`, under such as "32 bits". The last axis is 1 if `channels` is 1, or None and the picture grey.
        Raises InputError for a picture smaller than a patch, or with NaN or infinity. Pillow's errors, of a broken
        file, are not caught.
        """
        with image.open(path, formats=PICTURE_FORMATS) as opened:
            opened.filename = ""  # Pillow maps a TIFF that has one into memory, and mixes up the rows of a turned one
            if getattr(opened, "n_frames", 1) > 1:
                stacks.append(_text(path.name))
            mode = opened.mode
            grey = channels == 1 or (channels is None and mode in (*GREY, *DEEP))
            target_mode = "I" if mode == "I;16B" else mode if mode in DEEP else "L" if grey else "RGB"
            # Bits, numbered colours, what is clear and Pillow's I;16B cannot be averaged. A JPEG is decoded smaller.
            picture = opened if opened.format in ("JPEG", "MPO") else opened.convert(target_mode)
            if longest_side is not None:
                picture.thumbnail((longest_side, longest_side), image.Resampling.LANCZOS)
            array = np.array(turn(picture).convert(target_mode))
            _refuse_unusable(array, patch)
            depths.setdefault(DEPTHS.get(mode, "8 or 16 bits"), _text(path.name))
            if mode.startswith("I;16"):
                array = array.astype(np.float32) / 257  # white is 255, as it is of 8 bits
        array = array[..., None] if array.ndim == 2 else array
        return array if grey else np.broadcast_to(array, (*array.shape[:2], 3))

    arrays, labels, about = _read_all(Path(folder), PICTURE_SUFFIXES, "pictures", read, on_file)
    if stacks:
        text = f"only the first frame or page is read of pictures with several: {listed(stacks)}."
        warnings.warn(text, InputWarning, stacklevel=2)
    if len(depths) > 1:
        each = ", ".join(f"{depth} ({name})" for depth, name in depths.items())
        raise InputError(
            f"the pictures have different depths: {each}; save all with the same number of bits, so that white is the "
            "same number in each."
        )
    if len({array.shape[-1] for array in arrays}) > 1:  # grey among coloured ones
        arrays = [np.broadcast_to(array, (*array.shape[:2], 3)) for array in arrays]
    return FolderData(ArrayDataset(tuple(arrays), patch, longest_side=longest_side, **about), labels)


def read_sounds(
    folder: str | Path,
    patch_size: int | Sequence[int] = SOUND_PATCH,
    sample_rate: int | None = None,
    on_file: OnFile | None = None,
) -> FolderData:
    """Read all sounds below a folder as spectrograms, in the order of their paths; several channels are averaged.

    Args:
        folder: with one folder per class, or with sounds alone; hidden files are skipped. Or a single file.
        patch_size: (frames, bins) of the patches that become the model's tokens, kept in the data set; a single number
            is both.
        sample_rate: in Hz; sounds of another rate are resampled to it. None takes the rate of the first sound that can
            be read.
        on_file: called with (files read so far, number of files) after each file; None for no call.

    Returns:
        A data set of spectrograms, arrays [frames, 128, 1] with a frame per 10 ms, and their labels, None without
        folders of classes.

    Raises:
        InputError: no folder, no sound in it, none that can be read; a sample rate below 1000; a patch size that is not
            one or two whole numbers.
        OSError: a folder that may not be listed.
        MissingExtra: without the extra `audio`.

    Warns:
        InputWarning: once for all files that cannot be read, are shorter than a patch, or hold NaN or infinity, which
            are left out, with the first reason; once for all sounds that were resampled.
    """
    soundfile = import_extra("soundfile", "audio")
    patch = patch_shape(patch_size, 2)
    rate, converted = sample_rate, []

    def read(path: Path) -> np.ndarray:
        """Read one sound as a spectrogram [frames, 128, 1], resampled to `rate` if it has another rate.

        If `rate` is None, it is set to this sound's. Adds the file's name to `converted` if it is resampled. Raises
        InputError for a sound shorter than a patch, or with NaN or infinity. Errors of soundfile are not caught.
        """
        nonlocal rate
        samples, file_rate = soundfile.read(path, dtype="float32", always_2d=True)
        target_rate = file_rate if rate is None else rate
        spectrogram = filterbank(resampled(samples.mean(1), file_rate, target_rate), target_rate)
        _refuse_unusable(spectrogram, patch)
        rate = target_rate
        if file_rate != rate:
            converted.append(_text(path.name))
        return spectrogram[..., None]

    arrays, labels, about = _read_all(Path(folder), SOUNDS, "sounds", read, on_file)
    if converted:
        which = "of the first" if sample_rate is None else "of the model"
        text = f"{len(converted):,} of {len(arrays):,} sounds are resampled to {rate} Hz, the sample rate {which}"
        warnings.warn(f"{text}: {listed(converted)}.", InputWarning, stacklevel=2)
    return FolderData(ArrayDataset(tuple(arrays), patch, sample_rate=rate, **about), labels)


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────

DEPTHS = {"I": "32 bits", "F": "fractions"}
GREY, DEEP = ("1", "L", "LA"), ("I", "I;16", "I;16B", "F")  # Pillow's modes; these of more than 8 bits are grey, too


def _read_all(
    folder: Path,
    kinds: tuple[str, ...],
    noun: str,
    read: Callable[[Path], np.ndarray],
    on_file: OnFile | None,
) -> tuple[list[np.ndarray], np.ndarray | None, dict[str, Any]]:
    """Read every file of some kinds below a folder; files that cannot be read are left out with one warning.

    Args:
        folder: or a single file.
        kinds: suffixes of the files, in lower case.
        noun: "pictures" or "sounds", for messages.
        read: reads one file; any exception but MemoryError means that it cannot be read.
        on_file: called with (files read so far, number of files) after each file; None for no call.

    Returns:
        The S arrays, in the order of their paths; their labels, as in `FolderData`; and {"ids": paths below the folder
        [S], "reading": FilesReport, how many were read and which were left out}.

    Raises:
        InputError: no such file, or none that can be read.
        OSError: a folder that may not be listed.

    Warns:
        InputWarning: some of the files cannot be read.
    """
    paths, others = _list(folder, kinds, noun)
    if folder.is_file():
        folder = folder.parent
    kept, contents, reasons = [], [], {}
    for done, path in enumerate(paths, start=1):
        try:
            contents.append(read(folder / path))
            kept.append(path)
        except MemoryError:
            raise
        except Exception as error:  # whatever a decoder finds wrong with a file
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            reasons[_text(path.as_posix())] = reason.rstrip(".")
        if on_file is not None:
            on_file(done, len(paths))
    notes = [f"{len(kept):,} of {len(paths):,} {noun} read"]
    if others:
        notes.append(f"{others} other files left alone")
    if reasons:
        first, reason = next(iter(reasons.items()))
        text = f"{len(reasons):,} of {len(paths):,} {noun} cannot be read and are left out"
        notes.append(text)  # without names: a report may be anonymous
        if not kept:
            raise InputError(
                f"{folder}: none of its {len(paths):,} {noun} can be read: {listed(reasons)}. The first, {first}: "
                f"{reason}. Replace damaged files, and convert others to {' or '.join(kinds[:2])}."
            )
        warnings.warn(f"{text}: {listed(reasons)}. The first, {first}: {reason}.", InputWarning, stacklevel=3)
    labels = [_text(path.parts[0]) if len(path.parts) > 1 else None for path in kept]
    column = np.array(labels, object if None in labels else None) if any(labels) else None
    ids = np.array([_text(path.as_posix()) for path in kept])
    return contents, column, {"ids": ids, "reading": FilesReport(tuple(notes), tuple(reasons))}


def _list(folder: Path, kinds: tuple[str, ...], noun: str) -> tuple[list[Path], int]:
    """List the files below a folder that have certain suffixes, as sorted relative paths, and count the other files.

    For a single file with such a suffix, its name is the only path. Hidden files and folders are skipped, and not
    counted. Links are followed, but each folder is read once.

    Args:
        folder: or a single file.
        kinds: the suffixes, in lower case; files may have them in any case.
        noun: "pictures" or "sounds", for messages.

    Raises:
        InputError: a folder that does not exist, or has no such file; a single file with another suffix.
        OSError: a folder that cannot be read.
    """
    if folder.is_file() and folder.suffix.lower() in kinds:
        return [Path(folder.name)], 0
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; give a folder of {noun} ({', '.join(kinds)}), or one such file.")
    paths, others, seen = [], 0, set()

    def refuse(error: OSError) -> None:
        """Raise the error of a folder that cannot be listed, which `os.walk` would ignore."""
        raise error

    for place, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        real = Path(place).resolve()
        folders[:] = [] if real in seen else [name for name in folders if not name.startswith(".")]
        if real not in seen:  # no link back
            visible = [Path(place, name) for name in files if not name.startswith(".")]
            readable = [path.relative_to(folder) for path in visible if path.suffix.lower() in kinds]
            paths += readable
            others += len(visible) - len(readable)
        seen.add(real)
    if not paths:
        raise InputError(
            f"{folder} holds no {noun} ({', '.join(kinds)}), but {others:,} other files. Give the folder of the {noun}."
        )
    return sorted(paths), others


def _refuse_unusable(array: np.ndarray, patch: tuple[int, ...]) -> None:
    """Raise InputError if an array is smaller than a patch along an axis, or has NaN or infinity.

    The caller adds the file's name to the message.
    """
    if any(size < p for size, p in zip(array.shape, patch, strict=False)):  # the last axis may be of colours
        array_size, patch_size = ("×".join(map(str, numbers)) for numbers in (array.shape[:2], patch))
        raise InputError(f"{array_size} is smaller than a patch of {patch_size} along an axis; choose a smaller patch")
    if not np.isfinite(array).all():
        raise InputError("it holds NaN or infinity; replace these by finite numbers")


def _text(path: str) -> str:
    """Return a path as text that UTF-8 can hold; a byte that is no UTF-8 becomes a backslash, x and two hex digits."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def resampled(waveform: np.ndarray, before: int, after: int) -> np.ndarray:
    """Resample a waveform [n] from the rate `before` to the rate `after`, whole numbers in Hz; return float32 [m].

    With equal rates the waveform itself is returned.
    """
    if before == after:
        return waveform
    from scipy.signal import resample_poly

    divisor = int(np.gcd(before, after))
    return resample_poly(waveform, after // divisor, before // divisor).astype(np.float32)
