"""A table as series: at once, or part after part with whole series in each, so that any table fits into memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, InputWarning, NoObservations, gathered_warnings, listed
from rotarymae.series import tables
from rotarymae.series.columns import Reading, choose_options
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.files import ROWS, TableFile, are_integers, as_integers
from rotarymae.series.ingest import long_table
from rotarymae.series.memmap import map_table, tell_once, too_large
from rotarymae.series.reading import ReadingReport

MERGED = 1 << 20  # labels that are collected before repeats are removed


@dataclass(frozen=True, eq=False)
class Part:
    """Some series of a table, in the order in which they first appear there.

    Attributes:
        ids: [S] in the table's type.
        observed: bool [S], whether a series has observations.
        dataset: the series that have; None if none has.
        why: why none has.
    """

    ids: pa.Array
    observed: np.ndarray
    dataset: SeriesDataset | None
    why: NoObservations | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class TableReader(Reading):
    """What `SeriesDataset.from_file` reads, and how; its arguments have the same names and meanings there.

    Attributes:
        source: the table.
        channel_names: those known from training.
        value_names: what the columns of values are called in the data set, if not by their own names.
        id_name: what the ids are called there, likewise.
    """

    source: TableFile
    unknown_channels: Literal["error", "drop"] = "error"
    channel_names: tuple[Any, ...] | None = None
    value_names: tuple[str, ...] | None = None
    id_name: str | None = None

    def __post_init__(self) -> None:
        if self.wide and self.flags:
            raise InputError(
                f"flags {listed(self.flags)} are of observations, and a wide table has several per row; put an empty "
                "cell where a value is not to be used."
            )
        if self.wide and (self.channel is not None or self.missing == "error"):
            given = f"channel={self.channel!r}" if self.channel is not None else "missing='error'"
            raise InputError(
                f"{given} is of long tables; in a wide one each value column is a channel, and its cells may be empty."
            )

    @cached_property
    def absent(self) -> tuple[str, ...]:
        """Channels of a wide table that it has no column of."""
        names = self.source.column_names()
        forgiving = self.wide and self.unknown_channels == "drop"
        return tuple(name for name in self.values if forgiving and name not in names)

    @property
    def labels(self) -> list[str]:
        """The columns of ids and of channels."""
        return [self.id] if self.channel is None else [self.id, self.channel]

    @property
    def columns(self) -> list[str]:
        """Those that are read."""
        wanted = [*self.labels, self.time, *self.values, *self.static, *self.flags]
        return [name for name in dict.fromkeys(wanted) if name not in self.absent]

    def build(self, table: pa.Table, channels: Sequence[Any] | None = None, part: bool = False) -> SeriesDataset:
        """The series of rows of the table, or of a part of it. Raises as `SeriesDataset.from_frame`."""
        for name in self.absent:
            table = table.append_column(name, pa.nulls(len(table)))
        if self.wide:
            options: Any = {"tokens": self.tokens, "duplicates": self.duplicates}
            dataset = SeriesDataset.from_wide(table, self.id, self.time, self.values, self.static, **options)
            return replace(dataset, id_name=self.id_name or self.id)
        choose_options(self.tokens, self.missing, self.duplicates, self.unknown_channels)
        roles = (self.id, self.time, self.channel, self.values, self.static)
        found = long_table(table, *roles, channels, self.unknown_channels, self.flags)
        dataset = SeriesDataset.of_rows(found, self.tokens, self.missing, self.duplicates, part=part)
        names = {"id_name": self.id_name or self.id, "value_names": self.value_names or dataset.value_names}
        return replace(dataset, **names)

    # ── at once ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, memory: float | None = None, folder: Path | None = None) -> SeriesDataset:
        """All series; of a table larger than memory, with memory-mapped columns."""
        self._warn_of_absent()
        columns = self.columns
        if not self.source.in_memory and too_large(self.source, columns, memory):
            known = None if self.channel_names is None else [tables.plain(name) for name in self.channel_names]
            options = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "source"}
            self.source.need(columns, self.source.column_names())
            dataset = map_table(
                self.source,
                columns,
                self.id,
                self.channel,
                lambda part, found: self.build(part, known or found, part=True),
                options | {"channel_names": known},
                folder,
            )
        else:
            dataset = self.build(self.source.read(columns, self.labels), self.channel_names)
        assert dataset.reading is not None
        return replace(dataset, reading=replace(dataset.reading, notes=(*self.source.notes, *dataset.reading.notes)))

    def _warn_of_absent(self) -> None:
        if self.absent:
            text = f"{self.source.name} has no column {listed(self.absent)}; it is taken as never observed."
            warnings.warn(text, InputWarning, stacklevel=4)

    # ── in parts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def parts(self) -> Iterator[Part]:
        """All series in parts of whole series, as they first appear in the table; what is read goes with its part.

        A table whose rows come series after series, or which has a row of lists for each, is read once. Another one
        that is larger than memory is sorted first, as `read` does.

        Raises:
            InputError: as `read`; but a part in which nothing was observed is no error.

        Warns:
            As `read`, once for the whole table.
        """
        if self.source.observations(self.columns) <= ROWS:
            table = self.source.read(self.columns, self.labels)
            self._warn_of_absent()
            if len(table):
                yield from self._cut(lambda: self.build(table, self.channel_names), _distinct(table[self.id]))
            return
        self.source.need(self.columns, self.source.column_names())
        ids, together, integers = self._scan()
        if together:
            self._warn_of_absent()
            yield from self._streamed(integers)
        else:
            yield from self._cut(self.read, ids)

    def _cut(self, read: Any, ids: pa.Array) -> Iterator[Part]:
        """The parts of what `read()` gives; `ids` are those of the table."""
        try:
            dataset: SeriesDataset = read()
        except NoObservations as error:
            yield Part(ids, np.zeros(len(ids), bool), None, error)
            return
        observed = _observed(ids, dataset, self.id)
        place, start = np.flatnonzero(observed), 0
        for chunk in dataset.series_chunks():
            stop = len(ids) if chunk[-1] == len(dataset) - 1 else int(place[chunk[-1]]) + 1
            whole = len(chunk) == len(dataset)
            yield Part(ids[start:stop], observed[start:stop], dataset if whole else dataset.select(chunk))
            start = stop

    def _streamed(self, integers: list[str]) -> Iterator[Part]:
        reports: list[ReadingReport] = []
        raised: list[warnings.WarningMessage] = []
        count = 0
        for table in self._whole_series():
            count += 1
            table, dataset, why = as_integers(table, integers), None, None
            with gathered_warnings() as caught:
                try:
                    dataset = self.build(table, self.channel_names, part=True)
                except NoObservations as error:
                    why = error
            raised += caught
            reading = why.reading if why is not None else dataset and dataset.reading
            assert isinstance(reading, ReadingReport)
            reports.append(reading)
            ids = _distinct(table[self.id])
            observed = np.zeros(len(ids), bool) if dataset is None else _observed(ids, dataset, self.id)
            yield Part(ids, observed, dataset, why)
        tell_once(reports, raised, count, self.source.name, len(self.values))

    def _whole_series(self) -> Iterator[pa.Table]:
        """The rows as they come, cut between series."""
        pending: list[pa.Table] = []
        for piece in self.source.stream(self.columns, self.labels):
            table = pa.table(piece)
            codes = table[self.id].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
            if not len(codes):
                continue
            new = pending and pending[-1][self.id][-1].as_py() != table[self.id][0].as_py()
            last = np.flatnonzero(np.diff(codes))
            if len(last):  # the last series may go on in the next piece
                cut = int(last[-1]) + 1
                yield pa.concat_tables([*pending, table.slice(0, cut)])
                pending, table = [], table.slice(cut)
            elif new:
                yield pa.concat_tables(pending)
                pending = []
            pending.append(table)
        if pending:
            yield pa.concat_tables(pending)

    def _scan(self) -> tuple[pa.Array, bool, list[str]]:
        """All ids in order of first appearance; whether the rows of each series are together; and of a text file the
        columns of labels that are all written as integers."""
        text = self.source.format in ("csv", "tsv")
        # Of no column at all a file would have no rows.
        wanted = [*(self.labels if text else [self.id]), *([self.time] if self.id == self.source.of_file else [])]
        distinct: dict[str, list[pa.Array]] = {name: [] for name in wanted}
        runs, last, pending = 0, None, 0
        for piece in self.source.stream(wanted, self.labels):
            column = piece[self.id]
            if not len(column):
                continue
            codes = column.dictionary_encode().indices.to_numpy(zero_copy_only=False)
            runs += int((np.diff(codes) != 0).sum()) + (column[0].as_py() != last)
            last = column[-1].as_py()
            for name in distinct:
                distinct[name].append(piece[name].unique())
            pending += len(distinct[self.id][-1])
            if pending > MERGED:
                distinct = {name: [_distinct(pa.chunked_array(parts))] for name, parts in distinct.items()}
                pending = 0
        found = {name: _distinct(pa.chunked_array(parts)) for name, parts in distinct.items()}
        integers = [name for name in self.labels if text and are_integers(found[name].to_pylist())]
        ids = as_integers(pa.table({self.id: found[self.id]}), [name for name in integers if name == self.id])[self.id]
        return tables.to_arrow(ids), runs == len(ids), integers


def _distinct(column: pa.ChunkedArray) -> pa.Array:
    return tables.to_arrow(column.unique())


def _observed(ids: pa.Array, dataset: SeriesDataset, name: str) -> np.ndarray:
    """Which of the ids are among the data set's."""
    if len(ids) == len(dataset):
        return np.ones(len(ids), bool)
    assert dataset.reading is not None
    labels = tables.label_array(ids, name)
    empty = pa.array(list(dataset.reading.empty), labels.type)
    return ~pc.is_in(labels, value_set=empty).to_numpy(zero_copy_only=False)  # pyright: ignore
