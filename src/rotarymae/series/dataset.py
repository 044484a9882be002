"""Ragged series: many short histories of different length, as flat columns and offsets.

A `SeriesDataset` holds every observation of every series in one array per column. Series `i` is the slice
`offsets[i]:offsets[i + 1]`, sorted by time (and by channel within one time). Two tokenisations, chosen when built:

    tokens="channel"   one row per (time, channel); the channel is an index    light curves, intensive care
    tokens="time"      one row per time; all channels are features             sensors that are read together

A missing value is a missing observation: it is refused, or dropped where asked, and never becomes zero. Times keep the
unit of the table; dates become days since 1970-01-01 UTC, and `time_unit` is then "day".

A sorted Parquet or Arrow file larger than memory is opened, not read, by `SeriesDataset.open`: the columns are then of
the kind `store.Column`, which reads and checks the rows that are asked for.
"""

from __future__ import annotations

import hashlib
import json
import operator
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, SupportsIndex

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rotarymae.atomic_write import replacing
from rotarymae.errors import InputError, InputWarning, listed
from rotarymae.series import ingest as sources
from rotarymae.series import tables
from rotarymae.series.columns import channel_names_of, choose_options, names_of
from rotarymae.series.decode import Decode, lazy_columns
from rotarymae.series.store import CACHE, Blocks, Column, Store, View, open_rows, scan
from rotarymae.series.tables import read_table
from rotarymae.series.tidy import Observations, offsets_of, refuse_empty, tidy

__all__ = ["Series", "SeriesDataset"]

Tokenisation = Literal["channel", "time"]
Missing = Literal["error", "drop"]
Duplicates = Literal["error", "mean", "first"]


@dataclass(frozen=True, eq=False)
class Series:
    """One series: its id, times float64 [n], channels int32 [n] (or None) and values [n, V]."""

    id: Any
    times: np.ndarray
    channels: np.ndarray | None
    values: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class SeriesDataset:
    """S ragged series with n observations in all. Make one with `from_frame` or another `from_*`, which check content.

    `times`, `values` and `channels` of an opened file (`open`) are lazy columns, which are sliced and indexed like
    arrays; `load` and `sample` give arrays.

    Attributes:
        times: float64 [n], ascending within each series, in the table's unit (see `time_unit`).
        values: float64 [n, V], or float32 if every source column was float32. Finite.
        offsets: int64 [S + 1]; series i is the slice offsets[i]:offsets[i + 1], never empty.
        ids: [S] the original ids, in order of first appearance.
        value_names: the V names of the columns of `values`.
        channels: int32 [n] index into `channel_names`, from 0; None where one row is one time.
        channel_names: the original channel labels, sorted (or in the order that was given); None without channels.
        static: one value per series, name → [S]. A number that was missing is NaN.
        time_unit: "day" where the times came as dates or durations, else None (whatever unit the numbers have).

    Raises:
        InputError: arrays whose shapes do not fit together.
    """

    times: np.ndarray
    values: np.ndarray
    offsets: np.ndarray
    ids: np.ndarray
    value_names: tuple[str, ...]
    channels: np.ndarray | None = None
    channel_names: tuple[Any, ...] | None = None
    static: dict[str, np.ndarray] = field(default_factory=dict)
    time_unit: str | None = None

    def __post_init__(self) -> None:
        n, count = len(self.times), len(self.ids)
        shapes = {"times": (n,), "values": (n, len(self.value_names)), "offsets": (count + 1,)}
        shapes |= {} if self.channels is None else {"channels": (n,)}
        for name, wanted in shapes.items():
            came = getattr(self, name).shape
            if came != wanted:
                raise InputError(f"{name} has the shape {came}, wanted {wanted}; build with SeriesDataset.from_arrays.")
        if (self.channels is None) != (self.channel_names is None):
            raise InputError("channels and channel_names come together or not at all; give both or neither.")
        if self.offsets[0] != 0 or self.offsets[-1] != n or (np.diff(self.offsets) < 1).any():
            raise InputError(
                f"offsets must ascend from 0 to {n}, no series empty; build with SeriesDataset.from_arrays."
            )
        for name, column in self.static.items():
            if column.shape != (count,):
                raise InputError(
                    f"static {name!r} has the shape {column.shape}, wanted one value per series, ({count},)."
                )

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: SupportsIndex) -> Series:
        try:
            at = operator.index(index)
        except TypeError:
            raise TypeError(
                f"a series is taken by one integer, not by {type(index).__name__}; use select(...) for several"
            ) from None
        if not -len(self) <= at < len(self):
            raise IndexError(f"series {at} of {len(self)}")
        at %= len(self)
        rows = slice(self.offsets[at], self.offsets[at + 1])
        channels = None if self.channels is None else self.channels[rows]
        return Series(self.ids[at].item(), self.times[rows], channels, self.values[rows])

    def __iter__(self) -> Iterator[Series]:
        return (self[i] for i in range(len(self)))

    @property
    def lengths(self) -> np.ndarray:
        """Observations per series, int64 [S]."""
        return np.diff(self.offsets)

    @property
    def tokens(self) -> Tokenisation:
        """ "channel" where rows carry a channel index, "time" where one row is one time."""
        return "time" if self.channels is None else "channel"

    def __repr__(self) -> str:
        parts = [f"{len(self):,} series", f"{len(self.times):,} observations"]
        if self.channel_names is not None:
            parts.append(f"channels {listed(self.channel_names)}")
        parts.append(f"values {listed(self.value_names)}")
        if self.static:
            parts.append(f"static {listed(self.static)}")
        unit = f" {self.time_unit}" if self.time_unit else ""
        if self._view is None:
            parts.append(f"times {self.times.min():g} to {self.times.max():g}{unit}")
        parts.append(f"{self.lengths.min()} to {self.lengths.max()} per series")
        if self._view is not None:
            parts.append(f"in {self._view.store.path.name}")
        return f"SeriesDataset({', '.join(parts)})"

    def fingerprint(self) -> str:
        """SHA-256 of content, names and ids as 64 hex digits: equal exactly where the datasets are.

        Of an opened file not all content is read: its size, its list of parts (with the statistics that Parquet keeps
        of them) and 64 pieces of 4 KiB count instead. It differs from the fingerprint of the same series in memory.
        """
        digest, view = hashlib.sha256(), self._view
        names: list[Any] = [self.value_names, self.channel_names, self.time_unit]
        columns = {"times": self.times, "values": self.values} if view is None else {}
        columns |= {"offsets": self.offsets, "ids": self.ids}  # which also say where in the file a series is
        if view is not None:
            names += [view.store.signature, view.store.columns]
        elif self.channels is not None:
            columns["channels"] = self.channels
        columns |= {f"static {name}": self.static[name] for name in sorted(self.static)}
        # Strings are hashed as JSON, whose bytes do not depend on the width of the longest one.
        digest.update(json.dumps(names).encode())
        for name, column in columns.items():
            text = column.dtype.kind == "U"
            digest.update(f"{name} {'str' if text else column.dtype.newbyteorder('<').str} {column.shape}".encode())
            little = column if text else np.ascontiguousarray(column, column.dtype.newbyteorder("<"))
            digest.update(json.dumps(column.tolist()).encode() if text else little.tobytes())
        return digest.hexdigest()

    def warn_constant_channels(self) -> tuple[str, ...]:
        """Warn of what never changes: nothing can be learnt from it, and its standard deviation is 0.

        Not called at construction, where a subset would warn again; call it on training data.

        Returns:
            What is constant over all series: "channel 'u', column 'flux'", or "column 'flux'" without channels.

        Warns:
            InputWarning: once, naming them all. Of an opened file only a `sample` is looked at.
        """
        data = self.sample()
        channel = np.zeros(len(data.times), np.int32) if data.channels is None else data.channels
        order = np.argsort(channel, kind="stable")
        seen, starts = np.unique(channel[order], return_index=True)
        ordered = data.values[order]
        constant = np.minimum.reduceat(ordered, starts) == np.maximum.reduceat(ordered, starts)
        found = tuple(
            f"{'' if self.channel_names is None else f'channel {self.channel_names[seen[k]]!r}, '}"
            f"column {self.value_names[v]!r}"
            for k, v in np.argwhere(constant)
        )
        if found:
            warnings.warn(
                f"constant over all observations{'' if data is self else ' of a sample'}: {'; '.join(found)}. Nothing "
                "can be learnt from it; leave it out, or check that the right column was read.",
                InputWarning,
                stacklevel=2,
            )
        return found

    # ── choosing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def select(self, indices: Sequence[int] | np.ndarray) -> SeriesDataset:
        """The series at integer `indices`, in that order (repeats allowed), or where a boolean mask [S] is True.

        Raises:
            InputError: an index that does not exist, a mask of another length, nothing selected.
        """
        at = np.asarray(indices)
        if at.ndim != 1 or (at.size and at.dtype.kind not in "iub"):
            raise InputError(f"indices are a flat list of integers or booleans, not {at.dtype} of shape {at.shape}.")
        if at.dtype.kind == "b":
            if len(at) != len(self):
                raise InputError(f"the mask has {len(at)} entries for {len(self)} series; give one per series.")
            at = np.flatnonzero(at)
        if not at.size:
            raise InputError(f"none of the {len(self)} series is selected; select at least one.")
        at = at.astype(np.int64)
        outside = at[(at < -len(self)) | (at >= len(self))]
        if len(outside):
            raise InputError(f"series {outside[0]} does not exist; there are {len(self)}, counted from 0.")
        at %= len(self)
        offsets, view = offsets_of(self.lengths[at]), self._view
        if view is None:
            times, channels, values = self.gather(at)
        else:
            times, channels, values = lazy_columns(View(view.store, view.starts[at], offsets))
        return replace(
            self,
            times=times,
            values=values,
            channels=channels,
            offsets=offsets,
            ids=self.ids[at],
            static={name: column[at] for name, column in self.static.items()},
        )

    def gather(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """(times, channels or None, values) of the series at `index` [k], one behind the other."""
        starts = self.offsets[index]
        lengths = self.offsets[index + 1] - starts
        first, view = np.cumsum(lengths) - lengths, self._view
        rows = np.repeat((starts if view is None else view.starts[index]) - first, lengths) + np.arange(lengths.sum())
        if view is None:
            return self.times[rows], None if self.channels is None else self.channels[rows], self.values[rows]
        if self.channels is None:
            times, values = view.store.take(rows, ["times", "values"])
            return times, None, values
        times, channels, values = view.store.take(rows, ["times", "channels", "values"])
        return times, channels, values

    # ── of a file that is larger than memory ────────────────────────────────────────────────────────────────────────

    @property
    def _view(self) -> View | None:
        """What of which file this is; None where everything is in memory."""
        return self.times.of if isinstance(self.times, Column) else None

    @property
    def blocks(self) -> Blocks | None:
        """Where in an opened file each series lies; None where any order reads equally fast."""
        return None if self._view is None else self._view.blocks

    def load(self) -> SeriesDataset:
        """The same with every observation in memory."""
        if self._view is None:
            return self
        times, channels, values = self.gather(np.arange(len(self)))
        return replace(self, times=times, channels=channels, values=values)

    def sample(self, observations: int = 1 << 20, parts: int = 16, seed: int = 0) -> SeriesDataset:
        """Of an opened file, random series with about so many observations, from at most so many parts of the file.

        In memory, and a pure function of its arguments. A set that is in memory is its own sample.
        """
        if self._view is None:
            return self
        draw, block = np.random.default_rng(seed), self._view.block
        at = np.flatnonzero(np.isin(block, draw.permutation(np.unique(block))[:parts]))
        at = draw.permutation(at)
        enough = int(np.searchsorted(np.cumsum(self.lengths[at]), observations)) + 1
        return self.select(np.sort(at[:enough])).load()

    @classmethod
    def open(
        cls,
        path: str | Path,
        id: str = "id",
        time: str = "time",
        channel: str | None = None,
        values: Sequence[str] = ("value",),
        *,
        channel_names: Sequence[Any] | np.ndarray | None = None,
        cache_bytes: int = CACHE,
    ) -> SeriesDataset:
        """A long Parquet or Arrow file, opened without reading it: for sets that are larger than memory.

        Only the columns of ids and channels are gone through, in pieces. The others are read and checked in blocks (a
        Parquet row group, an Arrow record batch) when a series in them is asked for. The rows of a series must be
        together and its times ascending; row groups of about a million rows are a good size. Training takes the series
        of some blocks at a time (see `batches.plan`), so that each block is read once an epoch; a small selection of
        the series is better loaded (`select(...).load()`).

        Args:
            id, time, channel, values, channel_names: as in `from_frame`.
            cache_bytes: of blocks that are kept in memory.

        Raises:
            InputError: here: columns that are missing or of a wrong kind; missing ids or channels; a series whose rows
                are not together; row groups larger than `cache_bytes`. When a block is read: values or times that
                are missing or infinite, times that descend, duplicates, channels not among `channel_names`.
        """
        path, values = Path(path), names_of(values, "values")
        rows = open_rows(path)
        roles = [("id", id), ("time", time)] + ([] if channel is None else [("channel", channel)])
        tables.need_columns(
            nw.from_native(rows.schema.empty_table()), roles + [("value", name) for name in values], path.name
        )
        if channel is None and channel_names is not None:
            raise InputError(f"channel_names {listed(channel_names)} need a channel column; give channel=...")
        nothing = {name: tables.to_arrow(rows.schema.empty_table()[name]) for name in (time, *values)}
        _, unit = tables.times(nothing[time], time)
        dtype = np.result_type(*(tables.numbers(nothing[name], name) for name in values))
        offsets, ids, channels = scan(rows, path, id, channel)
        known = None
        if channel is not None:
            known = tuple(sorted(channels)) if channel_names is None else channel_names_of(channel_names)
        kinds = {"times": (np.dtype(np.float64), ()), "values": (dtype, (len(values),))}
        kinds |= {} if channel is None else {"channels": (np.dtype(np.int32), ())}
        columns = [time, *values] + ([] if channel is None else [channel])
        decode = Decode(id, time, channel, values, known, offsets, ids)
        store = Store(path.resolve(), rows, columns, offsets, decode, kinds, cache_bytes)
        lazy, which, what = lazy_columns(View(store, offsets[:-1], offsets))
        return cls(lazy, what, offsets, ids, values, which, known, time_unit=unit)

    def mask_observations(self, keep: np.ndarray) -> SeriesDataset:
        """The same series with only the observations where `keep` (bool [n]) is True.

        Raises:
            InputError: a mask of another type or length; series that would become empty, named.
        """
        if self._view is not None:
            return self.load().mask_observations(keep)
        keep = np.asarray(keep)
        if keep.dtype != np.bool_ or keep.shape != self.times.shape:
            raise InputError(f"keep must be bool of shape {self.times.shape}, not {keep.dtype} of shape {keep.shape}.")
        lengths = np.add.reduceat(keep.astype(np.int64), self.offsets[:-1])
        refuse_empty(lengths, self.ids, "Keep one observation of each, or leave them out with select(...) first.")
        return replace(
            self,
            times=self.times[keep],
            values=self.values[keep],
            channels=None if self.channels is None else self.channels[keep],
            offsets=offsets_of(lengths),
        )

    # ── from tables ─────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        id: str = "id",
        time: str = "time",
        channel: str | None = None,
        values: Sequence[str] = ("value",),
        static: Sequence[str] = (),
        *,
        channel_names: Sequence[Any] | np.ndarray | None = None,
        tokens: Tokenisation = "channel",
        missing: Missing = "error",
        duplicates: Duplicates = "error",
    ) -> SeriesDataset:
        """From a long pandas, polars or Arrow table: one row per observation, rows in any order.

        Args:
            frame: the table. Rows of one series need not be together.
            id: column that says which series a row belongs to: integers or strings.
            time: column of times: numbers in any unit, or dates, which become days since 1970-01-01 UTC.
            channel: column of channels (band, sensor, ...); without it each row is one time.
            values: one or more numeric columns.
            static: columns with one value per series, repeated on each of its rows.
            channel_names: the channels known from training, in that order; others are then refused.
            tokens: "channel", or "time" for all channels of one time as one row (V = channels × values).
            missing: "error", or "drop" for dropping observations in which a value is missing (null or NaN).
            duplicates: what two rows of one series, time and channel become: "error", "mean", or "first".

        Raises:
            InputError: naming column, series, row or count: columns that are missing, given twice or not numeric; ids,
                times or channels that are missing; values that are missing or infinite; duplicates; channels not
                among `channel_names`; a series without observations; times that lack some features (tokens="time").

        Warns:
            InputWarning: once, where times were not ascending and have been sorted.
        """
        choose_options(tokens, missing, duplicates)
        found = sources.long_table(frame, id, time, channel, values, static, channel_names)
        return cls._of(found, tokens, missing, duplicates)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        id: str = "id",
        time: str = "time",
        channel: str | None = None,
        values: Sequence[str] = ("value",),
        static: Sequence[str] = (),
        *,
        channel_names: Sequence[Any] | np.ndarray | None = None,
        tokens: Tokenisation = "channel",
        missing: Missing = "error",
        duplicates: Duplicates = "error",
    ) -> SeriesDataset:
        """From a CSV file (tab-separated if its name ends in .tsv or .tsv.gz; .gz is unpacked): see `from_frame`."""
        kind = "tsv" if str(path).lower().endswith((".tsv", ".tsv.gz")) else "csv"
        options: Any = {"channel_names": channel_names, "tokens": tokens, "missing": missing, "duplicates": duplicates}
        return cls.from_frame(read_table(path, kind), id, time, channel, values, static, **options)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        id: str = "id",
        time: str = "time",
        channel: str | None = None,
        values: Sequence[str] = ("value",),
        static: Sequence[str] = (),
        *,
        channel_names: Sequence[Any] | np.ndarray | None = None,
        tokens: Tokenisation = "channel",
        missing: Missing = "error",
        duplicates: Duplicates = "error",
    ) -> SeriesDataset:
        """From a Parquet file: see `from_frame`."""
        options: Any = {"channel_names": channel_names, "tokens": tokens, "missing": missing, "duplicates": duplicates}
        return cls.from_frame(read_table(path, "parquet"), id, time, channel, values, static, **options)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        id: str = "id",
        time: str = "time",
        channels: Sequence[str] = (),
        static: Sequence[str] = (),
        *,
        tokens: Tokenisation = "channel",
        duplicates: Duplicates = "error",
    ) -> SeriesDataset:
        """From a wide table: one row per time, one column per channel; a missing cell is a missing observation.

        Args:
            channels: the value columns; they become `channel_names` (tokens="channel", where the one value is called
                "value") or `value_names` (tokens="time"), in this order.
            tokens: with "time", a row without any value is dropped and a row with only some is refused.

        Raises:
            InputError: as `from_frame`.

        Warns:
            InputWarning: once, where times were not ascending and have been sorted.
        """
        choose_options(tokens, "drop", duplicates)
        found = sources.wide_table(frame, id, time, channels, static, melted=tokens == "channel")
        return cls._of(found, tokens, "drop", duplicates)

    # ── from arrays ─────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def from_arrays(
        cls,
        times: Sequence[Any],
        values: Sequence[Any],
        channels: Sequence[Any] | None = None,
        ids: Sequence[Any] | np.ndarray | None = None,
        *,
        value_names: Sequence[str] | None = None,
        channel_names: Sequence[Any] | np.ndarray | None = None,
        static: Mapping[str, Sequence[Any] | np.ndarray] | None = None,
        tokens: Tokenisation = "channel",
        missing: Missing = "error",
        duplicates: Duplicates = "error",
    ) -> SeriesDataset:
        """From lists with one array per series.

        Args:
            times: S arrays [n_i] of numbers or datetime64.
            values: S arrays [n_i] or [n_i, V].
            channels: S arrays [n_i] of channel labels (not indices, unless the labels are integers), or None.
            ids: S distinct ids; 0 to S - 1 if not given.
            value_names: V names; "value", or "value_0", "value_1", ... if not given.
            static: name → S values.
            channel_names, tokens, missing, duplicates: as in `from_frame`.

        Raises:
            InputError: as `from_frame`, and for lists or arrays whose lengths differ, naming the series.

        Warns:
            InputWarning: once, where times were not ascending and have been sorted.
        """
        choose_options(tokens, missing, duplicates)
        found = sources.arrays(times, values, channels, ids, value_names, channel_names, static or {})
        return cls._of(found, tokens, missing, duplicates)

    @classmethod
    def from_padded(
        cls,
        array: np.ndarray,
        times: np.ndarray | None = None,
        tokens: Tokenisation = "time",
        ids: Sequence[Any] | np.ndarray | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> SeriesDataset:
        """From an array [cases, channels, time] in which NaN means that nothing was observed.

        Args:
            times: [time], or [cases, time] (may be NaN where a case has no values); 0, 1, 2, ... if not given.
            tokens: "time" (values [n, channels]; a time with only some channels is refused), or "channel".
            channel_names: names of the channels; "channel_0", "channel_1", ... if not given.

        Raises:
            InputError: other shapes, a case without observations, infinite values, a time with only some channels.

        Warns:
            InputWarning: once, where times were not ascending and have been sorted.
        """
        choose_options(tokens, "drop", "error")
        found = sources.padded_array(array, times, ids, channel_names, melted=tokens == "channel")
        return cls._of(found, tokens, "drop", "error")

    @classmethod
    def _of(
        cls, found: tuple[Observations, dict[str, np.ndarray]], tokens: str, missing: str, duplicates: str
    ) -> SeriesDataset:
        rows, static = tidy(found[0], tokens, missing, duplicates), found[1]
        return cls(
            times=rows.times,
            values=np.ascontiguousarray(rows.values),
            offsets=offsets_of(rows.lengths),
            ids=rows.ids,
            value_names=rows.value_names,
            channels=rows.channels,
            channel_names=rows.channel_names,
            static=static,
            time_unit=rows.time_unit,
        )

    # ── to tables ───────────────────────────────────────────────────────────────────────────────────────────────────

    def to_arrow(self, id: str = "id", time: str = "time", channel: str = "channel") -> pa.Table:
        """The long Arrow table that `from_frame` reads back: id, time, channel (if any), values, static columns.

        Times are numbers, also where they came as dates: read back, `time_unit` is None.

        Raises:
            InputError: a column name that would occur twice.
        """
        if self._view is not None:
            return self.load().to_arrow(id, time, channel)
        names = [id, time] + ([] if self.channels is None else [channel]) + [*self.value_names, *self.static]
        tables.refuse_twice(names, "the table to write")
        each = np.repeat(np.arange(len(self)), self.lengths)
        columns = [pa.array(self.ids).take(pa.array(each)), pa.array(self.times)]
        if self.channels is not None and self.channel_names is not None:
            columns.append(pa.array(list(self.channel_names)).take(pa.array(self.channels)))
        columns += [pa.array(column) for column in self.values.T]
        columns += [pa.array(column).take(pa.array(each)) for column in self.static.values()]
        return pa.Table.from_arrays(columns, names=names)

    def write_parquet(self, path: str | Path, id: str = "id", time: str = "time", channel: str = "channel") -> None:
        """Write `to_arrow(id, time, channel)` to a Parquet file: beside it first, then renamed, so never half a file.

        Raises:
            InputError: a folder that does not exist, a column name that would occur twice.
        """
        path = Path(path)
        if not path.parent.is_dir():
            raise InputError(f"the folder {path.parent} does not exist; make it first.")
        table = self.to_arrow(id, time, channel)
        with replacing(path) as beside:
            pyarrow.parquet.write_table(table, beside, compression="zstd")
