"""Columns of data sets larger than memory: one file per column, memory-mapped.

The files have no name, or lose it at the end of the process: nothing is left of them, however that ends.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MAPPED_CHUNK = 1 << 18  # observations handled at a time; features of so many take some 100 MB on the way
SAMPLE = 1 << 22  # observations; statistics of a larger set are taken from so many, and larger parts are mapped


class Columns(NamedTuple):
    """The columns of n observations of a data set, in memory or memory-mapped.

    Attributes:
        times: float64 [n].
        channels: int32 [n], numbers from 0; None without channels.
        values: float [n, V], a column for each value name.
        positions: float64 [n, P], a column for each further position (depth, ...); None without any.
        sides: int8 [n, V], -1 where a value is known only to lie below the number (an upper limit), 1 where above, else
            0; None without limits.
    """

    times: np.ndarray
    channels: np.ndarray | None
    values: np.ndarray
    positions: np.ndarray | None
    sides: np.ndarray | None = None

    def take(self, rows: Any) -> Columns:
        """Return the rows at a mask [n], indices or a slice, in their order; a slice gives views, the others copies."""
        return Columns(*(None if column is None else column[rows] for column in self))  # pyright: ignore

    def runs(self, starts: np.ndarray, lengths: np.ndarray) -> Columns:
        """Copy runs of consecutive observations into memory, one behind the other in the given order.

        Args:
            starts, lengths: int [k], index of the first observation and number of observations of each run.
        """
        first = np.cumsum(lengths) - lengths
        return self.take(np.repeat(starts - first, lengths) + np.arange(lengths.sum()))

    def pieces(self, starts: np.ndarray, lengths: np.ndarray) -> Columns:
        """Copy runs of consecutive observations, one behind the other, into memory or memory-mapped temporary files.

        Files are used for mapped columns, if the runs have more than `SAMPLE` (4,194,304) observations in all. `starts`
        and `lengths`, int [k], are the index of the first observation and the number of observations of each run.
        """
        if not is_mapped(self.times) or lengths.sum() <= SAMPLE:
            return self.runs(starts, lengths)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return map_parts(self.runs(starts[part], lengths[part]) for part in series_chunks(ends))


def is_mapped(column: np.ndarray) -> bool:
    """Return whether an array is a numpy memmap, which lies in a file rather than in memory."""
    return isinstance(column, np.memmap)


def series_chunks(offsets: np.ndarray) -> Iterator[slice]:
    """Yield slices of consecutive series, in order, with at most `MAPPED_CHUNK` (262,144) observations each.

    A series with more observations has a slice by itself.

    Args:
        offsets: int [S + 1], the index of each series' first observation, then the number of all observations.
    """
    start, last = 0, len(offsets) - 1
    while start < last:
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + MAPPED_CHUNK, side="right")) - 1)
        yield slice(start, stop)
        start = stop


def row_chunks(offsets: np.ndarray) -> Iterator[slice]:
    """Yield slices of a data set's observations, in order, so that large columns can be handled in parts.

    Each slice holds the observations of one slice of whole series from `series_chunks(offsets)`.
    """
    return (slice(offsets[part.start], offsets[part.stop]) for part in series_chunks(offsets))


def map_parts(parts: Iterable[Columns], folder: str | Path | None = None) -> Columns:
    """Write parts of columns to temporary files without names; return them joined and memory-mapped, read-only.

    Args:
        parts: at least one, with an observation in all. A column that is None in one part is None in all. The types of
            the first part are used for all.
        folder: where the files go; the system's temporary folder if None.

    Raises:
        OSError: there is no room, or no such folder.
    """
    files: dict[str, Any] = {}
    first: Columns | None = None
    columns: dict[str, Any] = dict.fromkeys(Columns._fields)
    with contextlib.ExitStack() as stack:
        for part in parts:
            first = part if first is None else first
            for name, column in part._asdict().items():
                if column is None:
                    continue
                if name not in files:
                    files[name] = stack.enter_context(tempfile.TemporaryFile(dir=folder))
                files[name].write(np.ascontiguousarray(column, getattr(first, name).dtype).data)
        for name, file in files.items():
            like = getattr(first, name)
            file.flush()
            columns[name] = np.memmap(file, like.dtype, "r").reshape(-1, *like.shape[1:])
    return Columns(**columns)
