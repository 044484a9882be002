"""Columns of data sets larger than memory: one file per column, memory-mapped.

The files are removed as soon as they are mapped: the system keeps them for as long as something reads them.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MAPPED_CHUNK = 1 << 20  # observations that are handled at a time
SAMPLE = 1 << 22  # observations; statistics of a larger set are taken from so many, and larger parts are mapped
LEFTOVER_SECONDS = 86_400.0  # seconds; nothing that is being written stays unchanged for so long


class Columns(NamedTuple):
    """The columns of n observations: times [n], channels [n], values [n, V], further positions [n, P]."""

    times: np.ndarray
    channels: np.ndarray | None
    values: np.ndarray
    positions: np.ndarray | None

    def take(self, rows: Any) -> Columns:
        """Return the rows that a mask, an order or a slice selects."""
        channels = None if self.channels is None else self.channels[rows]
        positions = None if self.positions is None else self.positions[rows]
        return Columns(self.times[rows], channels, self.values[rows], positions)

    def runs(self, starts: np.ndarray, lengths: np.ndarray) -> Columns:
        """Copy runs of consecutive observations into memory, joined; `starts` and `lengths` [k] delimit them."""
        first = np.cumsum(lengths) - lengths
        return self.take(np.repeat(starts - first, lengths) + np.arange(lengths.sum()))

    def pieces(self, starts: np.ndarray, lengths: np.ndarray) -> Columns:
        """Return runs of consecutive observations, joined, as `runs` does.

        Runs of memory-mapped columns with more than `SAMPLE` observations in all stay memory-mapped, in a temporary
        folder.

        Args:
            starts, lengths: int [k], first observation and number of observations of each run.
        """
        if not is_mapped(self.times) or lengths.sum() <= SAMPLE:
            return self.runs(starts, lengths)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return map_parts(self.runs(starts[part], lengths[part]) for part in series_chunks(ends))


def is_mapped(column: np.ndarray) -> bool:
    return isinstance(column, np.memmap)


def series_chunks(offsets: np.ndarray, size: int | None = None) -> Iterator[slice]:
    """Yield slices of consecutive series with at most `size` observations, or one longer series.

    Args:
        offsets: [S + 1], as in `SeriesDataset`.
        size: number of observations; `MAPPED_CHUNK` if None.
    """
    start, last = 0, len(offsets) - 1
    while start < last:
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + (size or MAPPED_CHUNK), side="right")) - 1)
        yield slice(start, stop)
        start = stop


def row_chunks(offsets: np.ndarray) -> Iterator[slice]:
    """Yield slices of observations, each with whole series: at most `MAPPED_CHUNK`, or one longer series."""
    return (slice(offsets[part.start], offsets[part.stop]) for part in series_chunks(offsets))


def map_parts(parts: Iterable[Columns], folder: str | Path | None = None) -> Columns:
    """Write parts of columns to files, and return them joined and memory-mapped; the files are removed at once.

    What killed processes left in `folder` is removed, too. Raises OSError if there is no room.

    Args:
        parts: at least one, all with the same columns.
        folder: where the files go; a temporary folder if None.
    """
    if folder is not None:
        _remove_leftovers(Path(folder))
    # On Windows a file cannot be removed while it is mapped.
    with tempfile.TemporaryDirectory(".columns", ".rotarymae-", folder, ignore_cleanup_errors=True) as temporary:
        return _write_columns(Path(temporary), parts)


def _remove_leftovers(folder: Path) -> None:
    """Remove folders of columns that killed processes left in `folder`, if they did not change for a day.

    Younger ones stay, as another process may be writing them.
    """
    for left in folder.glob(".rotarymae-*.columns"):
        with contextlib.suppress(OSError):
            changed = max(path.lstat().st_mtime for path in (left, *left.iterdir()))
            if not left.is_symlink() and time.time() - changed > LEFTOVER_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _write_columns(folder: Path, parts: Iterable[Columns]) -> Columns:
    """Write columns part by part to files such as `times.f8` in an existing folder, and return them memory-mapped."""
    files: dict[str, tuple[Any, np.dtype]] = {}
    with contextlib.ExitStack() as stack:
        for part in parts:
            for name, column in part._asdict().items():
                if column is None:
                    continue
                if name not in files:
                    path = folder / f"{name}.{column.dtype.str[1:]}"
                    files[name] = (stack.enter_context(path.open("wb")), column.dtype)
                files[name][0].write(np.ascontiguousarray(column, files[name][1]).data)
    return _map_columns(folder)


def _map_columns(folder: Path) -> Columns:
    """Memory-map the columns in a folder, read-only; channels and positions are None without a file."""
    names = Columns._fields
    columns = {path.stem: np.memmap(path, path.suffix[1:], "r") for name in names for path in folder.glob(f"{name}.*")}
    positions, n = columns.get("positions"), len(columns["times"])
    positions = None if positions is None else positions.reshape(n, -1)
    return Columns(columns["times"], columns.get("channels"), columns["values"].reshape(n, -1), positions)
