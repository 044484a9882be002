"""Blocks of an opened file, as a store reads them, into the checked columns of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError
from rotarymae.series import tables
from rotarymae.series.columns import encode_channels, frame_times
from rotarymae.series.store import Column, View, how_to_sort
from rotarymae.series.tidy import Observations, merge_duplicates, refuse_infinite, refuse_missing, sort


@dataclass(frozen=True, eq=False)
class Decode:
    """From a block of an opened file to checked columns; the fields are as in `SeriesDataset.open`."""

    id: str
    time: str
    channel: str | None
    value_names: tuple[str, ...]
    channel_names: tuple[Any, ...] | None
    offsets: np.ndarray
    ids: np.ndarray

    def __call__(self, table: pa.Table, first: int, last: int) -> dict[str, np.ndarray]:
        series = np.repeat(np.arange(last - first), np.diff(self.offsets[first : last + 1]))
        ids = self.ids[first:last]
        when, _ = frame_times(nw.from_native(table, eager_only=True), self.time, series, ids)
        which = None
        if self.channel is not None:
            labels = tables.label_array(tables.to_arrow(table[self.channel]), self.channel)
            which = self._channels(labels, series, ids)
        columns = [tables.numbers(tables.to_arrow(table[name]), name) for name in self.value_names]
        values = np.stack(columns, axis=1)
        rows = Observations(series, ids, when, which, self.channel_names, values, self.value_names, None)
        refuse_infinite(rows)
        absent = np.isnan(values)
        if absent.any():
            refuse_missing(rows, absent, "Drop those rows and write the file anew.")
        backwards = (series[1:] == series[:-1]) & (when[1:] < when[:-1])
        if backwards.any():
            row = int(backwards.argmax()) + 1
            raise InputError(f"{rows.name(row)}, comes after a later one. {how_to_sort(self.id, self.time)}")
        rows = merge_duplicates(sort(rows), "error", "Merge them and write the file anew.")
        found = {"times": rows.times, "values": rows.values}
        return found if rows.channels is None else found | {"channels": rows.channels}

    def _channels(self, labels: pa.Array, series: np.ndarray, ids: np.ndarray) -> np.ndarray:
        names = self.channel_names or ()
        try:
            found = pc.index_in(labels, pa.array(names, labels.type))  # pyright: ignore
        except (pa.ArrowException, TypeError):  # names of another type than the column's
            found = pa.nulls(1)
        if found.null_count:
            encode_channels(labels, names, series, ids, f"column {self.channel!r}")
        return found.to_numpy().astype(np.int32)


def lazy_columns(view: View) -> tuple[Any, Any, Any]:
    """Lazy times, channels (or None) and values. Typed Any: to a reader they are arrays."""
    channels = Column(view, "channels") if "channels" in view.store.kinds else None
    return Column(view, "times"), channels, Column(view, "values")
