"""Tables larger than memory: sorted columns on disk, written once and memory-mapped ever after.

`map_table` streams a file twice: once to count the rows of each series, and once to spread them over parts that hold
whole series. Each part is then read, checked and sorted as any table is, and appended to one file per column.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rotarymae.errors import InputError, InputWarning, NoObservations, gathered_warnings
from rotarymae.series import tables
from rotarymae.series.files import TableFile, are_integers, as_integers
from rotarymae.series.reading import NO_ZONE, ReadingReport
from rotarymae.system import free_memory, remove_leftovers, replacing_folder

if TYPE_CHECKING:
    from rotarymae.series.dataset import SeriesDataset

CHUNK = 1 << 20  # observations that are handled at a time
PARTS = 256  # at most, as each is an open file
COPIES = 4  # what reading and sorting a table takes at its peak, over the bytes of its numbers (measured: 3.6)
LEFT_AFTER = 3600  # seconds without a change, after which half written columns are those of a killed process
FORMAT = 5  # of the folders below


class Columns(NamedTuple):
    """The columns of n observations: times [n], channels [n], values [n, V], further positions [n, P]."""

    times: np.ndarray
    channels: np.ndarray | None
    values: np.ndarray
    positions: np.ndarray | None

    def take(self, rows: Any) -> Columns:
        """Select the rows of a mask, an order or a slice."""
        channels = None if self.channels is None else self.channels[rows]
        positions = None if self.positions is None else self.positions[rows]
        return Columns(self.times[rows], channels, self.values[rows], positions)


def too_large(source: TableFile, columns: Sequence[str], memory: float | None = None) -> bool:
    """Whether reading some columns of a table takes more than `memory` bytes (half of what is free, if None)."""
    memory = free_memory() / 2 if memory is None else memory
    return source.observations(columns) * len(columns) * 8 * COPIES > memory


# ── columns on disk ─────────────────────────────────────────────────────────────────────────────────────────────────


def is_mapped(column: np.ndarray) -> bool:
    return isinstance(column, np.memmap)


def series_chunks(offsets: np.ndarray) -> Iterator[slice]:
    """The series one after another, in runs of about `CHUNK` observations or one longer series."""
    start, last = 0, len(offsets) - 1
    while start < last:
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + CHUNK, side="right")) - 1)
        yield slice(start, stop)
        start = stop


def map_parts(dataset: SeriesDataset, parts: Iterable[Columns]) -> Columns:
    """Mapped columns of parts of a mapped data set, in temporary files beside its own."""
    folder = Path(str(dataset.times.filename)).parent.parent  # pyright: ignore[reportAttributeAccessIssue]
    # The system keeps a removed file for as long as it is mapped; on Windows it cannot be removed until then.
    with tempfile.TemporaryDirectory(".00000000.part", ".selected-", folder, ignore_cleanup_errors=True) as beside:
        return _write_columns(Path(beside), parts)


def _write_columns(folder: Path, parts: Iterable[Columns]) -> Columns:
    """Appends columns to files of a folder, such as `times.f8`, and maps them."""
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
    names = Columns._fields
    found = {path.stem: np.memmap(path, path.suffix[1:], "r") for name in names for path in folder.glob(f"{name}.*")}
    positions, n = found.get("positions"), len(found["times"])
    positions = None if positions is None else positions.reshape(n, -1)
    return Columns(found["times"], found.get("channels"), found["values"].reshape(n, -1), positions)


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def map_table(
    source: TableFile,
    columns: list[str],
    id: str,
    channel: str | None,
    build: Callable[[pa.Table, tuple[Any, ...] | None], SeriesDataset],
    options: dict[str, Any],
    folder: Path | None = None,
) -> SeriesDataset:
    """The data set that `build` makes of a whole table, with memory-mapped columns and the series in the same order.

    Args:
        columns: those of the table that `build` needs.
        id, channel: of these, the columns of ids and of channels.
        build: (a part of the table with whole series, all channels there are) → data set.
        options: all that the result depends on beside the table, as JSON.
        folder: where columns are kept; a folder of the table's name beside it, if None.

    Raises:
        InputError: as `build`; a folder that cannot be written.
    """
    path = source.paths[0]
    folder = path.with_name(f"{path.name}.columns") if folder is None else folder
    target = folder / _fingerprint(source, {"format": FORMAT, "columns": columns, **options})
    if target.is_dir():
        found = _load(target)
        assert found.reading is not None
        for loss in found.reading.losses():
            warnings.warn(loss, InputWarning, stacklevel=4)
        return found
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder, after=LEFT_AFTER)
        with replacing_folder(target) as beside:
            _write(beside, source, columns, id, channel, build)
    except OSError as error:
        raise InputError(
            f"{path} is larger than memory; its sorted columns cannot be written to {folder} ({error}). Make room "
            "there, or put the table (or a link to it) into a folder that can be written."
        ) from error
    return _load(target)


def _write(
    beside: Path,
    source: TableFile,
    columns: list[str],
    id: str,
    channel: str | None,
    build: Callable[[pa.Table, tuple[Any, ...] | None], SeriesDataset],
) -> None:
    labels = [id] if channel is None else [id, channel]
    lists = [name for name in columns if name in source.list_columns()]
    ranks: dict[Any, int] = {}  # of the series, by first appearance
    counts, channels, done = np.zeros(0, np.int64), set(), 0
    also = lists[:1] or [name for name in columns if name not in labels][:1]  # of no column a file has no rows
    for piece in source.stream(list(dict.fromkeys([*labels, *also])), labels):
        try:
            codes, ids = tables.encode(tables.label_array(piece[id], id))
            if channel is not None:
                each = piece[channel].flatten() if channel in lists else piece[channel]
                channels |= set(tables.encode(tables.label_array(each, channel))[1].tolist())
        except InputError as error:
            raise error.within(f"rows counted from row {done}") from error
        rank = np.array([ranks.setdefault(name, len(ranks)) for name in ids.tolist()])
        counts = np.concatenate([counts, np.zeros(len(ranks) - len(counts), np.int64)])
        weights = np.maximum(tables.list_lengths(piece[lists[0]]), 1) if lists else None
        counts += np.bincount(rank[codes], weights, minlength=len(ranks)).astype(np.int64)
        done += len(codes)
    # The labels of a CSV file are text, unless all of them are written as integers.
    seen = [(id, ranks), (channel, channels)] if source.format in ("csv", "tsv") else []
    integers = [name for name, found in seen if name is not None and are_integers(found)]
    known = tuple(sorted(int(name) if channel in integers else name for name in channels)) or None
    part_of = (np.cumsum(counts) - counts) // max(CHUNK, -(-int(counts.sum()) // PARTS))
    with contextlib.ExitStack() as stack:
        writers: dict[int, Any] = {}
        for piece in source.stream(columns, labels):
            codes, ids = tables.encode(tables.label_array(piece[id], id))
            part = part_of[np.array([ranks[name] for name in ids.tolist()])][codes]
            order = np.argsort(part, kind="stable")
            numbered, starts = np.unique(part[order], return_index=True)
            table = pa.table(piece).take(pa.array(order))
            for k, start, stop in zip(numbered.tolist(), starts, [*starts[1:], len(order)], strict=True):
                if k not in writers:
                    writers[k] = stack.enter_context(pa.ipc.new_stream(beside / f"part-{k}", table.schema))
                writers[k].write_table(table.slice(start, stop - start))
    ids, lengths, static, about = [], [], [], {}
    reports: list[ReadingReport] = []

    def parts() -> Iterator[Columns]:
        for k in sorted(writers):
            file = beside / f"part-{k}"
            try:
                with pa.memory_map(str(file)) as source:
                    dataset = build(as_integers(pa.ipc.open_stream(source).read_all(), integers), known)
            except NoObservations as error:
                if k == max(writers) and not ids:
                    raise
                reports.append(error.reading)
                continue
            finally:
                file.unlink()
            ids.append(dataset.ids)
            lengths.append(dataset.lengths)
            static.append(dataset.static)
            assert dataset.reading is not None
            reports.append(dataset.reading)
            kept = ("value_names", "channel_names", "position_names", "time_unit", "time_zone", "id_name")
            about.update({name: getattr(dataset, name) for name in kept})
            yield dataset.columns

    with gathered_warnings() as raised:
        _write_columns(beside, parts())
    report = tell_once(reports, raised, len(writers), source.name, len(about["value_names"]))
    columns_of = {"id": np.concatenate(ids), "length": np.concatenate(lengths)}
    columns_of |= {f"static {name}": np.concatenate([one[name] for one in static]) for name in static[0]}
    pyarrow.parquet.write_table(pa.table(columns_of), beside / "series.parquet")
    about["reading"] = asdict(report)
    (beside / "about.json").write_text(json.dumps(about, default=tables.plain), encoding="utf-8")


def tell_once(
    reports: list[ReadingReport], raised: list[warnings.WarningMessage], parts: int, name: str, values: int
) -> ReadingReport:
    """The reading of a table from those of its parts; warns of what the parts warned of, once for the table.

    Raises:
        InputError: what a table in memory is refused for, and no part shows: times of which some have a zone; rows of
            which most would be dropped for lack of some of their `values`.
    """
    report = sum(reports[1:], reports[0])
    if len({NO_ZONE in part.notes for part in reports}) > 1:
        raise InputError(
            f"some of the times of {name} are dates with a zone or an offset, and some without; give all in one way."
        )
    report.refuse_costly(values)
    of_parts = {loss for part in reports for loss in part.losses()}
    raised = [warning for warning in raised if str(warning.message) not in of_parts]
    for loss in report.losses():
        warnings.warn(loss, InputWarning, stacklevel=5)
    if raised:
        more = "" if parts == 1 else f" ({len(raised)} of {parts} parts of {name} warn like this.)"
        warnings.warn(f"{raised[0].message}{more}", InputWarning, stacklevel=5)
    return report


def _load(folder: Path) -> SeriesDataset:
    from rotarymae.series.dataset import SeriesDataset

    about: dict[str, Any] = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    about["reading"] |= {name: tuple(about["reading"][name]) for name in ("empty", "notes")}
    table = pyarrow.parquet.read_table(folder / "series.parquet")
    found = {name: tables.label_values(tables.to_arrow(table[name])) for name in table.column_names}
    return SeriesDataset(
        **_map_columns(folder)._asdict(),
        offsets=np.concatenate([[0], np.cumsum(found["length"])]),
        ids=found["id"],
        value_names=tuple(about["value_names"]),
        position_names=tuple(about["position_names"]),
        channel_names=None if about["channel_names"] is None else tuple(about["channel_names"]),
        static={name.removeprefix("static "): column for name, column in list(found.items())[2:]},
        time_unit=about["time_unit"],
        time_zone=about["time_zone"],
        id_name=about["id_name"],
        reading=ReadingReport(**about["reading"]),
    )


def _fingerprint(source: TableFile, options: dict[str, Any]) -> str:
    """A digest of the options, of how the files are read, and of each one's size, time of change and 64 pieces."""
    how = [source.format, source.text, source.missing, source.times, source.of_file and source.file_ids]
    digest = hashlib.sha256(json.dumps([options, how], default=str).encode())
    for path in source.paths:
        about = path.stat()
        digest.update(json.dumps([path.name, about.st_size, about.st_mtime_ns]).encode())
        with path.open("rb") as file:
            for place in np.linspace(0, max(about.st_size - 4096, 0), 64, dtype=np.int64):
                file.seek(int(place))
                digest.update(file.read(4096))
    return digest.hexdigest()[:16]
