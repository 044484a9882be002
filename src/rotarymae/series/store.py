"""Observations that stay in their file: read block by block when asked for, with a bounded number of blocks in memory.

A file is a Parquet file, or an Arrow (Feather) file, which is memory-mapped. Its rows are cut at series into *blocks*:
whole series, about a row group or record batch together. A `Store` decodes blocks and keeps the last used ones within a
budget of bytes; a `View` is a choice of its series; a `Column` is one column of a view, indexed like an array.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from rotarymae.errors import InputError, listed
from rotarymae.series import tables

SCAN = 1 << 18  # rows gone through at a time when a file is opened
PIECE = 1 << 20  # rows of a block of an Arrow file whose record batches are longer
CACHE = 1 << 28  # bytes of decoded blocks

Decode = Callable[[pa.Table, int, int], dict[str, np.ndarray]]


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class ParquetRows:
    """Rows of a Parquet file by their number. `starts`: the first row of each row group."""

    def __init__(self, path: Path) -> None:
        self.file = pyarrow.parquet.ParquetFile(path)
        self.schema: pa.Schema = self.file.schema_arrow
        about = self.file.metadata
        lengths = [about.row_group(g).num_rows for g in range(about.num_row_groups)]
        self.edges = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self.starts = self.edges[:-1]

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """All rows of some columns, in order, in short tables."""
        for batch in self.file.iter_batches(SCAN, columns=list(columns)):
            yield pa.Table.from_batches([batch]).select(columns)

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        parts = []
        for g in range(*_overlapping(self.edges, start, stop)):
            low, high = max(start - self.edges[g], 0), min(stop, self.edges[g + 1]) - self.edges[g]
            # Of the last row group only the first pages are decoded: series that began in the one before.
            batches = self.file.iter_batches(int(high), row_groups=[g], columns=list(columns))
            parts.append(_first_rows(batches, int(high)).slice(low))
        return pa.concat_tables(parts).select(columns)


class ArrowRows:
    """Rows of a memory-mapped Arrow IPC (Feather) file by their number. `starts`: of record batches, or pieces."""

    def __init__(self, path: Path) -> None:
        self.mapped = pa.memory_map(str(path))
        whole = pa.ipc.open_file(self.mapped)
        self.schema: pa.Schema = whole.schema
        self.compressed = whole.num_record_batches > 0 and not self._inside(whole.get_batch(0))
        one = self._reader(self.schema.names[:1])
        lengths = [one.get_batch(b).num_rows for b in range(one.num_record_batches)]
        self.edges = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self.starts = np.union1d(self.edges[:-1], np.arange(0, self.edges[-1], PIECE))

    def _inside(self, batch: pa.RecordBatch) -> bool:
        """Whether a batch lies in the mapped file itself; a compressed one does not."""
        self.mapped.seek(0)
        file = self.mapped.read_buffer()
        parts = [buffer.address for column in batch.columns for buffer in column.buffers() if buffer is not None]
        return all(0 <= place - file.address <= file.size for place in parts)

    def _reader(self, columns: Sequence[str]) -> Any:
        # To choose columns costs a copy of them, and saves decompressing the others.
        fields = [self.schema.get_field_index(name) for name in columns] if self.compressed else None
        return pa.ipc.open_file(self.mapped, options=pa.ipc.IpcReadOptions(included_fields=fields))

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """All rows of some columns, in order, in short tables."""
        reader = self._reader(columns)
        for b in range(reader.num_record_batches):
            whole = _validated(pa.Table.from_batches([reader.get_batch(b)]).select(columns))
            yield from (whole.slice(i, SCAN) for i in range(0, len(whole), SCAN))

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        reader, parts = self._reader(columns), []
        for b in range(*_overlapping(self.edges, start, stop)):
            low, high = max(start - self.edges[b], 0), min(stop, self.edges[b + 1]) - self.edges[b]
            parts.append(pa.Table.from_batches([reader.get_batch(b)]).select(columns).slice(low, high - low))
        return _validated(pa.concat_tables(parts))


def _validated(table: pa.Table) -> pa.Table:
    """Arrow trusts the offsets in a file, and a wrong one ends the process when the column is used."""
    try:
        table.validate(full=True)
    except pa.ArrowException as error:
        raise InputError(f"the file is damaged ({error}).") from error
    return table


Rows = ParquetRows | ArrowRows
KINDS = {".parquet": ParquetRows, ".arrow": ArrowRows, ".feather": ArrowRows}


def open_rows(path: Path) -> Rows:
    """The file's rows, none of them read yet.

    Raises:
        InputError: no such file, a file of another kind, a damaged one, one without rows.
    """
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise InputError(
            f"{path}: only Parquet and Arrow files ({', '.join(KINDS)}) can be opened without reading them; read it by "
            "SeriesDataset.from_frame(read_table(path), ...), or convert it."
        )
    if not path.is_file():
        raise InputError(f"{path} is no file; give the path of one Parquet or Arrow file.")
    try:
        rows = kind(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path} cannot be opened as {path.suffix[1:]}: {str(error).splitlines()[0]}. Is it complete? (An Arrow "
            "file must have the IPC file format, which is Feather version 2, not the stream format.)"
        ) from error
    if not rows.edges[-1]:
        raise InputError(f"{path} has no rows (columns: {listed(rows.schema.names)}); there is nothing to learn from.")
    tables.refuse_twice(rows.schema.names, f"the header of {path.name}")
    return rows


def _pieces(rows: Rows, columns: Sequence[str], path: Path) -> Iterator[pa.Table]:
    try:
        yield from rows.pieces(columns)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {str(error).strip().splitlines()[0]}") from error


def scan(rows: Rows, path: Path, id: str, channel: str | None) -> tuple[np.ndarray, np.ndarray, set[Any]]:
    """(offsets [S + 1], ids [S], the channels there are) of a file, from one pass over the two columns.

    Raises:
        InputError: missing or empty labels; a series whose rows are not together.
    """
    columns = [id] if channel is None else [id, channel]
    starts, ids, channels, done, last = [], [], set(), 0, None
    for piece in _pieces(rows, columns, path):
        if not len(piece):
            continue
        try:
            labels = tables.label_array(tables.to_arrow(piece[id]), id)
            if channel is not None:
                distinct = pc.unique(tables.to_arrow(piece[channel]))  # pyright: ignore
                if distinct.null_count == 0:  # otherwise it is the column that is refused, with a row
                    channels |= set(tables.label_array(distinct, channel).to_pylist())
                else:
                    tables.label_array(tables.to_arrow(piece[channel]), channel)
        except InputError as error:
            raise InputError(f"{path.name}, rows counted from row {done}: {error}") from error
        new = np.flatnonzero(pc.not_equal(labels[1:], labels[:-1]).to_numpy(zero_copy_only=False)) + 1  # pyright: ignore
        if labels[0] != last:
            new = np.concatenate([[0], new])
        starts.append(new + done)
        ids.append(labels.take(pa.array(new)))
        last, done = labels[-1], done + len(piece)
    offsets, found = np.concatenate([*starts, [done]], dtype=np.int64), tables.label_values(pa.concat_arrays(ids))
    if not (found[1:] > found[:-1]).all():  # else they are distinct for sure
        _, first = np.unique(found, return_index=True)
        if len(first) < len(found):
            at = int(np.setdiff1d(np.arange(len(found)), first)[0])
            before = int((found == found[at]).argmax())
            raise InputError(
                f"{path.name}: the rows of series {listed([found[at]])} are not together: they begin in row "
                f"{offsets[before]} and again in row {offsets[at]}. {how_to_sort(id)}"
            )
    return offsets, found, channels


def how_to_sort(*columns: str) -> str:
    return (
        f"A file that is opened without reading it must be sorted; sort it by {', '.join(columns)} and write it anew, "
        f"for example with polars: scan_parquet(old).sort({', '.join(map(repr, columns))}).sink_parquet(new)."
    )


def sign(path: Path) -> str:
    """A digest of a file's size, its last MiB (which lists its parts) and 64 pieces of 4 KiB spread over it."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    pieces = [(int(place), 4096) for place in np.linspace(0, max(size - 4096, 0), 64)]
    with path.open("rb") as file:
        for place, length in [*pieces, (max(size - (1 << 20), 0), 1 << 20)]:
            file.seek(place)
            digest.update(file.read(length))
    return digest.hexdigest()


def _overlapping(edges: np.ndarray, start: int, stop: int) -> tuple[int, int]:
    """First and one past the last part that holds rows from `start` to `stop`."""
    return int(np.searchsorted(edges, start, side="right")) - 1, int(np.searchsorted(edges, stop, side="left"))


def _first_rows(batches: Iterator[pa.RecordBatch], count: int) -> pa.Table:
    found, have = [], 0
    for batch in batches:
        found.append(batch)
        have += len(batch)
        if have >= count:
            break
    return pa.Table.from_batches(found).slice(0, count)


# ── what is in memory of it ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Blocks:
    """Where examples lie, for an order that reads each block about once.

    Attributes:
        of: [S] the block of each example.
        rows: [K] the observations in each block.
        window: a window is as many blocks as begin within so many observations; they fit into memory together.
    """

    of: np.ndarray
    rows: np.ndarray
    window: int

    def windows(self, order: np.ndarray, key: np.ndarray) -> list[np.ndarray]:
        """The examples of each window when blocks [K] are taken in this order; by `key` [S] within a window."""
        rows = self.rows[order]
        number = np.empty(len(order), np.int64)
        number[order] = (np.cumsum(rows) - rows) // self.window
        window = number[self.of]
        examples = np.lexsort((key, window))
        return np.split(examples, np.flatnonzero(np.diff(window[examples])) + 1)


class Store:
    """Columns of a file by row number, decoded block by block; the last used blocks are kept.

    Threads may share one: whoever asks for a block that is not there reads it while the others wait. A copy in another
    process (by pickle) opens the file anew and starts with nothing kept.

    Args:
        path: the file.
        columns: those of the file that `decode` needs.
        offsets: [S + 1] the row where each series begins.
        decode: (table of a block's rows, first series, one past its last) → the columns below, checked.
        kinds: name → (type, shape of one row) of what `decode` gives.
        cache_bytes: of blocks that are kept; one block is always kept.
    """

    def __init__(
        self,
        path: Path,
        rows: Rows,
        columns: Sequence[str],
        offsets: np.ndarray,
        decode: Decode,
        kinds: dict[str, tuple[np.dtype, tuple[int, ...]]],
        cache_bytes: int = CACHE,
    ) -> None:
        self.path, self.columns, self.offsets = path, list(columns), offsets
        self.decode, self.kinds, self.cache_bytes = decode, kinds, cache_bytes
        self.signature = sign(path)
        # A block is the series that begin in one part of the file; none may begin in a part of one long series.
        self.first = np.unique(np.searchsorted(offsets[:-1], [0, *rows.starts[1:], offsets[-1]]))
        self.cuts = offsets[self.first]
        row_bytes = sum(dtype.itemsize * int(np.prod(shape)) for dtype, shape in kinds.values())
        self.room = cache_bytes // row_bytes  # observations
        longest = int(np.diff(self.cuts).max())
        if longest > self.room:
            raise InputError(
                f"{path.name} has parts (row groups or record batches) of up to {longest:,} rows, which take "
                f"{longest * row_bytes:,} bytes when read; cache_bytes is {cache_bytes:,}. Write the file anew with "
                "row groups of about a million rows, or give a larger cache_bytes."
            )
        self.window = max(1, self.room - longest)  # up to one block is added to it
        self._start(rows)

    def _start(self, rows: Rows | None) -> None:
        self._rows = rows
        self._kept: OrderedDict[int, dict[str, np.ndarray]] = OrderedDict()
        self._lock = threading.Lock()
        self.kept_bytes = 0
        self.decoded = 0  # blocks, so far

    def __getstate__(self) -> dict[str, Any]:
        gone = ("_rows", "_kept", "_lock", "kept_bytes", "decoded")
        return {name: value for name, value in vars(self).items() if name not in gone}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start(None)

    def take(self, rows: np.ndarray, names: Sequence[str]) -> list[np.ndarray]:
        """Some columns at row numbers [n], in any order."""
        block = np.searchsorted(self.cuts, rows, side="right") - 1
        order = np.argsort(block, kind="stable")
        edges = np.flatnonzero(np.diff(block[order], prepend=-1, append=-1))
        out = [np.empty((len(rows), *self.kinds[name][1]), self.kinds[name][0]) for name in names]
        for low, high in pairwise(edges):
            here = order[low:high]
            k = int(block[here[0]])
            found, at = self._block(k), rows[here] - self.cuts[k]
            for name, column in zip(names, out, strict=True):
                column[here] = found[name][at]
        return out

    def _block(self, k: int) -> dict[str, np.ndarray]:
        with self._lock:
            if k in self._kept:
                self._kept.move_to_end(k)
                return self._kept[k]
            start, stop = int(self.cuts[k]), int(self.cuts[k + 1])
            try:
                found = self.decode(self._open().read(self.columns, start, stop), self.first[k], self.first[k + 1])
            except InputError as error:
                raise InputError(f"{self.path.name}, rows {start} to {stop - 1}: {error}") from error
            except (pa.ArrowException, OSError) as error:
                raise InputError(f"{self.path}, rows {start} to {stop - 1}, cannot be read: {error}") from error
            self.decoded += 1
            self._kept[k] = found
            self.kept_bytes += _bytes(found)
            while len(self._kept) > 1 and self.kept_bytes > self.cache_bytes:
                self.kept_bytes -= _bytes(self._kept.popitem(last=False)[1])
            return found

    def _open(self) -> Rows:
        if self._rows is None:
            rows = open_rows(self.path)
            if sign(self.path) != self.signature:
                raise InputError("the file is not the one that was opened; open it anew.")
            self._rows = rows
        return self._rows


def _bytes(block: dict[str, np.ndarray]) -> int:
    return sum(column.nbytes for column in block.values())


@dataclass(frozen=True, eq=False)
class View:
    """Some series of a store, in any order: `starts` [S] in the file, `offsets` [S + 1] as the view counts."""

    store: Store
    starts: np.ndarray
    offsets: np.ndarray

    def stored(self, rows: np.ndarray) -> np.ndarray:
        """The rows in the file of rows of the view."""
        series = np.searchsorted(self.offsets, rows, side="right") - 1
        return rows - self.offsets[series] + self.starts[series]

    @property
    def block(self) -> np.ndarray:
        """[S] the block of each series."""
        return np.searchsorted(self.store.cuts, self.starts, side="right") - 1

    @property
    def blocks(self) -> Blocks | None:
        """Where the series lie; None if the whole file fits into memory, and any order will do."""
        store = self.store
        return None if store.cuts[-1] <= store.room else Blocks(self.block, np.diff(store.cuts), store.window)


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a view, indexed by a slice, a row or rows [n] like an array. What is read is checked then."""

    of: View
    name: str

    def __len__(self) -> int:
        return int(self.of.offsets[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self.of.store.kinds[self.name][1])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        return self.of.store.kinds[self.name][0]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            rows = np.arange(*key.indices(len(self)))
        else:
            rows = np.asarray(key)
            if rows.dtype.kind not in "iu" or rows.ndim > 1:
                raise InputError(
                    f"rows of an opened file are chosen by a slice or integers, not {rows.dtype} of shape {rows.shape}."
                )
            if rows.size and not (-len(self) <= rows.min() and rows.max() < len(self)):
                raise IndexError(f"row {rows.min()} to {rows.max()} of {len(self)}")
            rows = np.where(rows < 0, rows + len(self), rows)
        found = self.of.store.take(self.of.stored(np.atleast_1d(rows)), [self.name])[0]
        return found if rows.ndim else found[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        need = len(self) * self.dtype.itemsize * int(np.prod(self.shape[1:]))
        if need > 4 * self.of.store.cache_bytes:
            raise InputError(
                f"this needs the whole column {self.name!r} of {self.of.store.path.name} in memory ({need:,} bytes). "
                "Work on some series: dataset.sample(), or dataset.select(...).load()."
            )
        return np.asarray(self[:], dtype)
