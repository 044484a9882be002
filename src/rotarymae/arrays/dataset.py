"""Arrays of any number of regular axes, of equal or unequal sizes, that are cut into patches of one size.

A grey picture is [H, W, 1], a coloured one [H, W, 3], a video [T, H, W, C], a sound a spectrogram [frames, bins, 1].
Sizes need not be whole numbers of patches: what is left over is cropped, evenly on both sides of an axis, so that no
patch is padded.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from rotarymae.arrays.filterbank import BINS, FRAME_SECONDS, STEP_SECONDS, filterbank
from rotarymae.batch import normalize_index
from rotarymae.errors import InputError
from rotarymae.series.cells import plain
from rotarymae.system import unmasked

NOUNS = {2: "pictures", 3: "videos"}  # by number of axes
SOUND_PATCH = (8, BINS)  # all pitches of 80 ms, so that a sound of a fifth of a second has two


@dataclass(frozen=True)
class FilesReport:
    """How the files of a folder were read.

    Attributes:
        notes: for people, such as "12 of 14 pictures read"; no names of files.
        left_out: the ids of files that could not be read.
    """

    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the notes on one line, joined by "; "."""
        return "; ".join(self.notes)

    def as_json(self) -> dict[str, Any]:
        """Return the report as {"summary": the notes as text, "left out": list of ids}, for metrics.json."""
        return {"summary": str(self), "left out": list(self.left_out)}


@dataclass(frozen=True, eq=False, repr=False)
class ArrayDataset:
    """S arrays with D axes, which are cut into patches. Make one with `from_arrays` or `from_waveforms`.

    Attributes:
        arrays: S arrays [d_1, .., d_D, C] of finite numbers, with C channels last. The sizes d may differ.
        patch_size: p_1 .. p_D, cells of a patch along each axis but that of channels.
        ids: [S] what messages and tables call the arrays.
        sample_rate: of sounds, in Hz; None for anything else.
        longest_side: to which pictures from files were scaled down, in pixels; None where they were not.
        reading: what became of the files they were read from; empty if they are from memory.

    Raises:
        InputError: an array, which the message names, without one axis more than `patch_size`, with other channels than
            the first, smaller than a patch, or with NaN, infinity or no numbers; no arrays; more or fewer ids than
            arrays; a patch size that is not positive.
    """

    arrays: Sequence[np.ndarray]
    patch_size: tuple[int, ...]
    ids: np.ndarray
    sample_rate: int | None = None
    longest_side: int | None = None
    reading: FilesReport = FilesReport()

    id_name: ClassVar[str] = "id"
    kind: ClassVar[str] = "patches"  # that of its preprocessor
    static: ClassVar[dict[str, np.ndarray]] = {}  # which only series have

    def __post_init__(self) -> None:
        """Raise InputError if the patch size is not of positive integers, or arrays or ids are missing or unusable."""
        if not self.patch_size or any(type(p) is not int or p < 1 for p in self.patch_size):
            raise InputError(f"patch_size is {self.patch_size}; wanted a whole number of at least 1 for each axis.")
        if len(self.arrays) == 0:
            raise InputError("there are no arrays; give at least one.")
        if np.shape(self.ids) != (len(self.arrays),):
            raise InputError(
                f"ids have the shape {np.shape(self.ids)} for {len(self.arrays)} arrays; give a list, one id per array."
            )
        for i, array in enumerate(self.arrays):
            self._check(array, i)

    def _check(self, array: np.ndarray, i: int) -> None:
        """Raise InputError, naming the array by its id, unless array number `i`, from 0, can be used.

        It must have one axis more than the patch size, the last for channels, of which there are at least one and as
        many as in the first array. Along each other axis it must have the size of a patch or more. Its type must be
        real numbers, all finite, or booleans.
        """
        name, axes = f"{self.noun[:-1]} {plain(self.ids[i])!r}", len(self.patch_size)
        if array.ndim != axes + 1:
            raise InputError(
                f"{name} has the shape {array.shape}; wanted {axes} axes to divide into patches of {self.patch_size}, "
                "then one of channels. Reshape it, or choose another patch_size."
            )
        if array.shape[-1] != self.arrays[0].shape[-1]:
            raise InputError(
                f"{name} has the shape {array.shape}, with {array.shape[-1]} channels last, and the first array has "
                f"{self.arrays[0].shape[-1]}; give all arrays the same number of channels."
            )
        if array.dtype.kind not in "fiub":
            raise InputError(
                f"{name} holds values of the type {array.dtype}; wanted numbers. Convert it, or leave it out."
            )
        for axis, (size, patch) in enumerate(zip(array.shape, (*self.patch_size, 1), strict=True)):
            if size < patch:
                least = ""
                if self.sample_rate is not None and axis == 0:
                    least = f" It lasts less than {FRAME_SECONDS + (patch - 1) * STEP_SECONDS:.3g} s."
                raise InputError(
                    f"{name} has the size {size} along axis {axis}, less than a patch of {patch}; leave it out, or "
                    f"choose a smaller patch_size.{least}"
                )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InputError(f"{name} holds NaN or infinity. Replace these by finite numbers, or leave {name} out.")

    @classmethod
    def from_arrays(
        cls, arrays: Any, patch_size: int | Sequence[int], ids: Sequence[Any] | np.ndarray | None = None
    ) -> ArrayDataset:
        """Make a data set of pictures, videos, or arrays with any number of axes.

        Args:
            arrays: one array [S, *sizes] or [S, *sizes, C], or a list of S arrays [*sizes] or [*sizes, C] of unequal
                sizes. C is the number of channels. If the first array lacks this axis, all get one of size 1. Masked
                cells count as NaN.
            patch_size: cells of a patch along each axis: (rows, columns) for pictures, (frames, rows, columns) for
                videos. A single number n is (n, n), for pictures.
            ids: S names; None for 0 to S - 1.

        Raises:
            InputError: no arrays; arrays with neither as many axes as `patch_size` nor one more, or some with and
                others without channels; with different numbers of channels, or none; smaller than a patch; with NaN,
                infinity or no numbers; a patch size that is no positive whole numbers; more or fewer ids than arrays.
        """
        patch = patch_shape(patch_size)
        given = []
        for i, array in enumerate(arrays):
            try:
                given.append(unmasked(array))
            except (TypeError, ValueError) as error:
                raise InputError(f"array {i} is no array of numbers ({error}); convert it, or leave it out.") from error
        if len(given) and given[0].ndim == len(patch):
            given = [array[..., None] for array in given]
        elif len(given) and given[0].ndim != len(patch) + 1:
            video = " Videos need three numbers: frames, rows, columns." if given[0].ndim == 4 else ""
            raise InputError(
                f"the first array has the shape {given[0].shape}; patch_size {patch} needs {len(patch)} axes, or "
                f"{len(patch) + 1} with the channels last. Reshape the arrays, or choose another patch_size.{video}"
            )
        return cls(tuple(given), patch, np.arange(len(given)) if ids is None else np.asarray(ids))

    @classmethod
    def from_waveforms(
        cls,
        waveforms: Sequence[Any],
        sample_rate: int,
        patch_size: int | Sequence[int] = SOUND_PATCH,
        ids: Sequence[Any] | np.ndarray | None = None,
    ) -> ArrayDataset:
        """Make a data set of sounds: each waveform becomes a spectrogram [frames, 128, 1] by `filterbank`.

        Args:
            waveforms: S arrays [n_i] of unequal lengths: floats from -1 to 1, or whole numbers of 8, 16 or 32 bits in
                the range of their type.
            sample_rate: of all of them, a whole number of Hz, at least 1000.
            patch_size: (frames, bins) of a patch; a single number is both. There are 128 bins, and 100 frames per
                second.
            ids: S names; None for 0 to S - 1.

        Raises:
            InputError: a waveform of the wrong shape or type, too short for a patch, beyond ±100, or with NaN, which is
                named; a sample rate or a patch size out of range; no waveforms; more or fewer ids than waveforms.
        """
        names = np.arange(len(waveforms)) if ids is None else np.asarray(ids)
        if names.shape != (len(waveforms),):
            raise InputError(
                f"ids have the shape {names.shape} for {len(waveforms)} sounds; give a list, one id per sound."
            )
        spectrograms = []
        for name, waveform in zip(names, waveforms, strict=True):
            try:
                spectrograms.append(filterbank(waveform, sample_rate)[..., None])
            except (TypeError, ValueError) as error:  # InputError, too
                raise InputError(
                    f"sound {plain(name)!r} cannot be read as a waveform, [n] numbers; correct or omit it: {error}"
                ) from None
        return cls(tuple(spectrograms), patch_shape(patch_size, 2), names, int(sample_rate))

    def __len__(self) -> int:
        """Return the number S of arrays."""
        return len(self.ids)

    def __repr__(self) -> str:
        """Return "ArrayDataset(...)" with the line that `describe` returns."""
        return f"ArrayDataset({self.describe()})"

    def describe(self) -> str:
        """Return one line on the data: how many arrays, their sizes, channels, sample rate and numbers of patches.

        For example: "12 pictures, sizes 32×32 to 64×48, 3 channels, 4 to 12 patches of 16×16". The sizes are the
        smallest and the largest along each axis.
        """
        sizes = np.array([array.shape[:-1] for array in self.arrays])
        low, high = ("×".join(map(str, edge)) for edge in (sizes.min(0), sizes.max(0)))
        parts = [f"{len(self):,} {self.noun}", f"sizes {low}" + (f" to {high}" if low != high else "")]
        parts.append(f"{self.channels} channel" + ("s" if self.channels > 1 else ""))
        parts += [f"{self.sample_rate} Hz"] if self.sample_rate is not None else []
        parts.append(f"{self.lengths.min()} to {self.lengths.max()} patches of {'×'.join(map(str, self.patch_size))}")
        return ", ".join(parts)

    @property
    def noun(self) -> str:
        """The plural for messages: "sounds" if there is a sample rate, else "pictures", "videos" or "arrays".

        Pictures have two axes, and videos three, without that of channels.
        """
        return "sounds" if self.sample_rate is not None else NOUNS.get(len(self.patch_size), "arrays")

    @property
    def channels(self) -> int:
        """Number C of channels, the same in all arrays."""
        return self.arrays[0].shape[-1]

    @property
    def lengths(self) -> np.ndarray:
        """Number of whole patches of each array, int64 [S]."""
        counts = (np.floor_divide(one.shape[:-1], self.patch_size) for one in self.arrays)
        return np.array([math.prod(each.tolist()) for each in counts], np.int64)

    def select(self, index: np.ndarray | Sequence[int]) -> ArrayDataset:
        """Return a data set of some arrays, with their ids.

        Args:
            index: whole numbers, in whose order the arrays come; they may repeat, and negative ones count from the end.
                Or a boolean mask [S], True for arrays to keep.

        Raises:
            InputError: an index that does not exist, a mask of the wrong length, nothing selected.
        """
        at = normalize_index(index, len(self), self.noun)
        return replace(self, arrays=tuple(self.arrays[i] for i in at), ids=self.ids[at])

    def fingerprint(self) -> str:
        """Return the SHA-256 of arrays, ids, patch size and sample rate, as 64 hex digits.

        Equal data of the same types give the same digits on any machine.
        """
        digest = hashlib.sha256(repr((self.patch_size, self.sample_rate, self.ids.tolist())).encode())
        for array in self.arrays:
            digest.update(f"{array.dtype.newbyteorder('<').str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()


def as_arrays(data: Any, patch_size: int | Sequence[int] | None, sample_rate: int | None = None) -> ArrayDataset:
    """Turn pictures, videos or waveforms into an `ArrayDataset`.

    Args:
        data: an `ArrayDataset`, which is returned as it is, whatever the other arguments; with `sample_rate`, a list of
            waveforms [n_i]; without it, an array [S, *sizes] or [S, *sizes, channels], or a list of arrays [*sizes] or
            [*sizes, channels] of unequal sizes.
        patch_size: cells of a patch along each axis but that of channels; a single number n is (n, n). None means
            `SOUND_PATCH` for waveforms, and is refused for arrays.
        sample_rate: of waveforms, in Hz; None for pictures and videos.

    Raises:
        InputError: data in another form; a missing patch size; whatever `from_arrays` or `from_waveforms` refuses, such
            as an array smaller than a patch.
    """
    if isinstance(data, ArrayDataset):
        return data
    if not isinstance(data, np.ndarray | list | tuple) or getattr(data, "ndim", 1) == 0:
        what = "waveforms [n]" if sample_rate is not None else "arrays [*sizes] or [*sizes, channels]"
        raise InputError(f"data is of type {type(data).__name__}; give a list of {what}, or one array of them.")
    if sample_rate is not None:
        return ArrayDataset.from_waveforms(list(data), sample_rate, SOUND_PATCH if patch_size is None else patch_size)
    if patch_size is None:
        raise InputError("pictures and videos need patch_size, the cells of a patch along each axis; give a tuple.")
    return ArrayDataset.from_arrays(data, patch_size)


def patch_shape(patch_size: int | Sequence[int], axes: int | None = None) -> tuple[int, ...]:
    """Return the patch size as a tuple of whole numbers, one for each axis.

    A single number n stands for every axis: with `axes` 3 it becomes (n, n, n). If `axes` is None, a single number
    becomes (n, n), and a sequence may have any length. Raises InputError for another number of axes, or for anything
    but whole numbers. Numbers below 1 are not refused.
    """
    try:
        numbers = patch_size if isinstance(patch_size, Sequence | np.ndarray) else (patch_size,) * (axes or 2)
        patch = tuple(operator.index(number) for number in numbers)
    except TypeError:
        raise InputError(f"patch_size is {patch_size!r}; give a whole number for each axis, as in (16, 16).") from None
    if axes not in (None, len(patch)):
        raise InputError(f"patch_size is {patch}; wanted {axes} numbers, one for each axis but that of channels.")
    return patch


def crop(array: np.ndarray, patch_size: Sequence[int]) -> np.ndarray:
    """Cut off the edges of an array so that it divides into whole patches; return a view of what remains.

    The surplus cells along an axis are cut off evenly at both ends; if their number is odd, the end loses one more than
    the beginning.

    Args:
        array: [*sizes, C], with C channels.
        patch_size: cells of a patch along each axis but that of channels.
    """
    cuts = []
    for size, patch in zip(array.shape, patch_size, strict=False):
        left = (size % patch) // 2
        cuts.append(slice(left, left + size - size % patch))
    return array[tuple(cuts)]
