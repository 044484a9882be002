"""Ragged series: many short histories of different length, as flat columns and offsets.

A `SeriesDataset` holds every observation of every series in one array per column. Series `i` is the slice
`offsets[i]:offsets[i + 1]`, sorted by time (and by channel within one time). Two tokenisations, chosen when built:

    tokens="channel"   one row per (time, channel); the channel is an index    light curves, intensive care
    tokens="time"      one row per time; all channels are features             sensors that are read together

A missing value is a missing observation: it is left out and counted (in `reading`), or refused where asked, and never
becomes zero. Times keep the unit of the table; dates become days since 1970-01-01 UTC, and `time_unit` is then "day".

The columns of a table larger than memory are memory-mapped files (see `mapped`); everything here works on them alike.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import operator
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, SupportsIndex

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from rotarymae.batch import normalize_index
from rotarymae.errors import InputError, InputWarning, listed
from rotarymae.series.cells import plain
from rotarymae.series.columns import (
    channel_names_of,
    distinct_ids,
    flat_features,
    flat_labels,
    free_name,
    listed_column,
    names_of,
    numeric,
    refuse_twice,
)
from rotarymae.series.dates import as_dates
from rotarymae.series.mapped import Columns, is_mapped, map_parts, series_chunks
from rotarymae.series.reading import ReadingReport
from rotarymae.series.tidy import offsets_of
from rotarymae.system import replacing, unmasked

__all__ = ["Series", "SeriesDataset"]

Tokenisation = Literal["channel", "time"]
Missing = Literal["error", "drop"]
Duplicates = Literal["error", "mean", "first", "last"]
Unknown = Literal["error", "drop"]

SAMPLE = 1 << 22  # observations that statistics of a larger set are taken from


@dataclass(frozen=True, eq=False)
class Series:
    """One series: its id, times float64 [n], channels int32 [n] (or None) and values [n, V], called `value_names`.

    Channels count from 0 and index `channel_names`; `static` holds its one value of each static column. `positions`
    [n, P], `position_names`, `time_unit` and `time_zone` are as in `SeriesDataset`.
    """

    id: Any
    times: np.ndarray
    channels: np.ndarray | None
    values: np.ndarray
    channel_names: tuple[Any, ...] | None = None
    static: dict[str, Any] = field(default_factory=dict)
    value_names: tuple[str, ...] | None = None
    time_unit: str | None = None
    time_zone: str | None = None
    positions: np.ndarray | None = None
    position_names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class SeriesDataset:
    """S ragged series with n observations in all. Make one with `from_frame` or another `from_*`, which check content.

    Attributes:
        times: float64 [n], ascending within each series, in the table's unit (see `time_unit`).
        values: float64 [n, V], or float32 if every source column was float32. Finite.
        offsets: int64 [S + 1]; series i is the slice offsets[i]:offsets[i + 1], never empty.
        ids: [S] the original ids, in order of first appearance.
        value_names: the V names of the columns of `values`.
        channels: int32 [n] index into `channel_names`, from 0; None where one row is one time.
        channel_names: the original channel labels, sorted (or in the order that was given); None without channels.
        positions: float64 [n, P], further positions of each observation (latitude, depth, ...) in the table's units;
            None where there are none. Finite.
        position_names: the P names of the columns of `positions`.
        static: one value per series, name → [S]. A number that was missing is NaN.
        time_unit: "day" where the times came as dates or durations, else None (whatever unit the numbers have).
        time_zone: the zone of the table's dates ("UTC" where they had none); None where times were no dates, or arrays.
        id_name: what the table calls its column of ids, and what tables of answers call theirs.
        reading: what became of the rows of the whole table this was read from; selections keep it.

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
    time_zone: str | None = None
    id_name: str = "id"
    reading: ReadingReport | None = None
    positions: np.ndarray | None = None
    position_names: tuple[str, ...] = ()

    noun: ClassVar[str] = "series"  # what messages call its members
    kind: ClassVar[str] = "observations"  # that of its preprocessor

    def __post_init__(self) -> None:
        n, count = len(self.times), len(self.ids)
        shapes = {"times": (n,), "values": (n, len(self.value_names)), "offsets": (count + 1,)}
        shapes |= {} if self.channels is None else {"channels": (n,)}
        shapes |= {} if self.positions is None else {"positions": (n, len(self.position_names))}
        for name, shape in shapes.items():
            actual = getattr(self, name).shape
            if actual != shape:
                raise InputError(
                    f"{name} has the shape {actual}, wanted {shape}; build with SeriesDataset.from_arrays."
                )
        if (self.channels is None) != (self.channel_names is None):
            raise InputError("channels and channel_names come together or not at all; give both or neither.")
        if (self.positions is None) != (not self.position_names):
            raise InputError("positions and position_names come together or not at all; give both or neither.")
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
        static = {name: plain(column[at]) for name, column in self.static.items()}
        return Series(
            id=plain(self.ids[at]),
            **self.columns.take(rows)._asdict(),
            channel_names=self.channel_names,
            static=static,
            value_names=self.value_names,
            time_unit=self.time_unit,
            time_zone=self.time_zone,
            position_names=self.position_names,
        )

    def __iter__(self) -> Iterator[Series]:
        return (self[i] for i in range(len(self)))

    @property
    def columns(self) -> Columns:
        """The columns of all observations, as they are kept."""
        return Columns(self.times, self.channels, self.values, self.positions)

    @property
    def lengths(self) -> np.ndarray:
        """Observations per series, int64 [S]."""
        return np.diff(self.offsets)

    @property
    def tokens(self) -> Tokenisation:
        """ "channel" where rows carry a channel index, "time" where one row is one time."""
        return "time" if self.channels is None else "channel"

    def __repr__(self) -> str:
        return f"SeriesDataset({self.describe()})"

    def describe(self) -> str:
        """Return the counts, names and ranges in words."""
        parts = [f"{len(self):,} series", f"{len(self.times):,} observations"]
        if self.channel_names is not None:
            parts.append(f"channels {listed(self.channel_names)}")
        parts.append(f"values {listed(self.value_names)}")
        if self.position_names:
            parts.append(f"positions {listed(self.position_names)}")
        if self.static:
            parts.append(f"static {listed(self.static)}")
        unit = f" {self.time_unit}" if self.time_unit else ""
        first, last = self.times[self.offsets[:-1]].min(), self.times[self.offsets[1:] - 1].max()
        if self.time_zone is None:
            parts.append(f"times {first:g} to {last:g}{unit}")
        else:
            parts.append("times {} to {}".format(*as_dates(np.array([first, last]), self.time_zone).to_pylist()))
        parts.append(f"{self.lengths.min()} to {self.lengths.max()} per series")
        parts += ["memory-mapped"] if is_mapped(self.times) else []
        return ", ".join(parts)

    def fingerprint(self) -> str:
        """SHA-256 of content, names and ids as 64 hex digits: equal exactly where the datasets are."""
        digest = hashlib.sha256()
        names: list[Any] = [self.value_names, self.channel_names, self.time_unit, *self.position_names]
        columns = {"times": self.times, "values": self.values, "offsets": self.offsets, "ids": self.ids}
        columns |= {} if self.channels is None else {"channels": self.channels}
        columns |= {} if self.positions is None else {"positions": self.positions}
        columns |= {f"static {name}": self.static[name] for name in sorted(self.static)}
        # Strings are hashed as JSON, whose bytes do not depend on the width of the longest one.
        digest.update(json.dumps(names).encode())
        for name, column in columns.items():
            text = column.dtype.kind == "O"
            digest.update(f"{name} {'str' if text else column.dtype.newbyteorder('<').str} {column.shape}".encode())
            for start in range(0, len(column), SAMPLE):
                part = column[start : start + SAMPLE]
                little = part if text else np.ascontiguousarray(part, column.dtype.newbyteorder("<"))
                digest.update(json.dumps(part.tolist()).encode() if text else little.tobytes())
        return digest.hexdigest()

    def warn_constant_channels(self) -> tuple[str, ...]:
        """Warn of what never changes or was never observed: nothing can be learnt from it.

        Not called at construction, where a subset would warn again; call it on training data.

        Returns:
            What is constant over all series: "channel 'u', column 'flux'", or "column 'flux'" without channels.

        Warns:
            InputWarning: once for each kind, naming them all.
        """
        shape = (len(self.channel_names or (None,)), len(self.value_names))
        low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
        for rows in self.row_chunks():
            channel = np.zeros(rows.stop - rows.start, int) if self.channels is None else self.channels[rows]
            np.minimum.at(low, channel, self.values[rows])
            np.maximum.at(high, channel, self.values[rows])
        names = self.channel_names
        constant = tuple(
            f"{'' if names is None else f'channel {names[c]!r}, '}column {self.value_names[v]!r}"
            for c, v in np.argwhere(low == high)
        )
        never = [] if names is None else [names[c] for c in np.flatnonzero((low > high).all(1))]
        if never:
            text = f"channel {listed(never)} was never observed: what a model says of it is a guess; leave it out."
            warnings.warn(text, InputWarning, stacklevel=2)
        if constant:
            warnings.warn(
                f"constant over all observations: {'; '.join(constant)}. Nothing can be learnt from it; leave it out, "
                "or check that the right column was read.",
                InputWarning,
                stacklevel=2,
            )
        return constant

    # ── choosing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def select(self, indices: Sequence[int] | np.ndarray) -> SeriesDataset:
        """The series at integer `indices`, in that order (repeats allowed), or where a boolean mask [S] is True.

        Raises:
            InputError: an index that does not exist, a mask of another length, nothing selected.
        """
        at = normalize_index(indices, len(self), "series")
        offsets = offsets_of(self.lengths[at])
        static = {name: column[at] for name, column in self.static.items()}
        kept: dict[str, Any] = {"offsets": offsets, "ids": self.ids[at], "static": static}
        return replace(self, **self.pieces(self.offsets[at], np.diff(offsets))._asdict(), **kept)

    def row_chunks(self) -> Iterator[slice]:
        """All observations, in slices of whole series that fit into memory."""
        return (slice(*self.offsets[[part[0], part[-1] + 1]]) for part in self.series_chunks())

    def series_chunks(self) -> Iterator[np.ndarray]:
        """The indices of all series, in runs of about a million observations."""
        return (np.arange(part.start, part.stop) for part in series_chunks(self.offsets))

    def gather(self, index: np.ndarray) -> Columns:
        """Return the columns of the series at `index` [k], one behind the other, in memory."""
        return self._rows(self.offsets[index], self.offsets[index + 1] - self.offsets[index])

    def pieces(self, starts: np.ndarray, lengths: np.ndarray) -> Columns:
        """Return the columns of `lengths` observations from each start on; long ones of mapped data are mapped, too."""
        offsets = offsets_of(lengths)
        if not is_mapped(self.times) or offsets[-1] <= SAMPLE:
            return self._rows(starts, lengths)
        return map_parts(self._rows(starts[part], lengths[part]) for part in series_chunks(offsets))

    def _rows(self, starts: np.ndarray, lengths: np.ndarray) -> Columns:
        first = np.cumsum(lengths) - lengths
        rows = np.repeat(starts - first, lengths) + np.arange(lengths.sum())
        return self.columns.take(rows)

    def sample(self, observations: int = SAMPLE) -> SeriesDataset:
        """The same set, or of a larger one random series with about so many observations; the same ones every time."""
        if len(self.times) <= observations:
            return self
        order = np.random.default_rng(0).permutation(len(self))
        enough = int(np.searchsorted(np.cumsum(self.lengths[order]), observations)) + 1
        return self.select(np.sort(order[:enough]))

    def with_values(self, names: Sequence[str]) -> SeriesDataset:
        """The same observations with only these value columns, in this order.

        Raises:
            InputError: a column that is not there.
        """
        for name in names:
            if name not in self.value_names:
                raise InputError(f"there is no value column {name!r}; there are {listed(self.value_names)}.")
        if tuple(names) == tuple(self.value_names):
            return self
        places = [self.value_names.index(name) for name in names]
        first = places == list(range(len(places)))  # a view, of mapped columns too
        kept = self.values[:, : len(places)] if first else self.values[:, places]
        return replace(self, values=kept, value_names=tuple(names))

    def mask_observations(self, keep: np.ndarray) -> SeriesDataset:
        """The same series with only the observations where `keep` (bool [n]) is True.

        Raises:
            InputError: a mask of another type or length; series that would become empty, named.
        """
        keep = np.asarray(keep)
        if keep.dtype != np.bool_ or keep.shape != self.times.shape:
            raise InputError(f"keep must be bool of shape {self.times.shape}, not {keep.dtype} of shape {keep.shape}.")
        lengths = np.add.reduceat(keep.astype(np.int64), self.offsets[:-1])
        if not lengths.all():
            empty = self.ids[lengths == 0]
            raise InputError(
                f"{len(empty)} of {len(self)} series have no observation left: {listed(empty)}. Keep one of each, or "
                "leave them out with select(...) first."
            )

        if is_mapped(self.times) and lengths.sum() > SAMPLE:
            kept = map_parts(self.columns.take(rows).take(keep[rows]) for rows in self.row_chunks())
        else:
            kept = self.columns.take(keep)
        return replace(self, **kept._asdict(), offsets=offsets_of(lengths))

    # ── from tables ─────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def from_file(
        cls,
        source: Any,
        id: str | None = "id",
        time: str = "time",
        channel: str | None = None,
        values: Sequence[str] = ("value",),
        static: Sequence[str] = (),
        *,
        channel_names: Sequence[Any] | np.ndarray | None = None,
        unknown_channels: Unknown = "error",
        missing_cells: Sequence[str] = (),
        memory: float | None = None,
        **options: Any,
    ) -> SeriesDataset:
        """Read a table: one row per observation, rows in any order.

        A row may hold lists with an entry per observation, also as fields of a nested column ("lc.time" is the field
        `time` of the column `lc`). A column without lists holds for all observations of its row; an entry without a
        time and without values fills a list up and is no observation. A file larger than memory is sorted on disk, and
        its columns are memory-mapped; the data set is the same.

        Args:
            source: a file, a folder, a pattern, "-" for standard input, or a pandas, polars, Arrow or astropy table.
            id: column that says which series a row belongs to: integers or strings. None makes each file one series
                with the file's name as its id.
            time: column of times: numbers in any unit, or dates, which become days since 1970-01-01 UTC.
            channel: column of channels (band, sensor, ...); without it each row is one time.
            values: one or more numeric columns.
            static: columns with one value per series, repeated on each of its rows.
            channel_names: the channels known from training, in that order.
            unknown_channels: rows of other channels than these are an "error", or "drop": left out and counted; in a
                wide table "drop" takes a channel without a column as one that was never observed.
            missing_cells: cells that mean "missing", also in text: as texts, or as numbers whatever their spelling.
            memory: bytes that reading may take; half of what is free, if None.
            options: other fields of `rotarymae.tables.TableSchema`, such as positions, errors, flags, wide, tokens,
                duplicates and strict.

        Raises:
            InputError: naming column, series, row or count: a file that cannot be read; columns that are missing, given
                twice or not numeric; a column that would cost most of the others; many duplicates; channels not among
                `channel_names`; no observation at all; times that lack some features (tokens="time"); with
                strict=True, any cell that cannot be used.

        Warns:
            InputWarning: once each, where times were not ascending and have been sorted; where rows are left out:
                without id, time or channel, with an infinite value, a negative error, a text among numbers; where a
                value looks like a code for "not observed", or a time like that of a wrong clock.
        """
        tables = importlib.import_module("rotarymae.tables")  # which builds on this package
        schema = tables.TableSchema(
            id="file" if id is None else id,
            time=time,
            channel=channel,
            values=names_of(values, "values", empty=bool(options.get("wide"))),
            static=names_of(static, "static", empty=True),
            unknown_channels=unknown_channels,
            na=tuple(missing_cells),
            **options,
        )
        known = None if channel_names is None else channel_names_of(channel_names)
        if channel is None and known is not None and not schema.wide:
            raise InputError(f"channel_names {listed(known)} need a channel column; give channel=...")
        if schema.wide and unknown_channels == "drop":
            known = schema.values
        return tables.TableReader.open(source, schema, known, id_name=id or "id").read(memory)

    @classmethod
    def from_frame(cls, frame: Any, *columns: Any, **options: Any) -> SeriesDataset:
        """Read a pandas, polars, Arrow or astropy table; arguments and errors as `from_file`."""
        if isinstance(frame, str | os.PathLike):
            raise InputError(f"{str(frame)!r} is a path; read a file with SeriesDataset.from_file.", code="no-frame")
        return cls.from_file(frame, *columns, **options)

    @classmethod
    def from_nested(
        cls,
        frame: Any,
        id: str = "id",
        time: str = "lc.time",
        channel: str | None = None,
        values: Sequence[str] = ("lc.value",),
        static: Sequence[str] = (),
        **options: Any,
    ) -> SeriesDataset:
        """Read a table with one row per object and its observations in lists, as `from_file`, with the names that
        nested-pandas and LSDB use."""
        return cls.from_frame(frame, id, time, channel, values, static, **options)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        id: str = "id",
        time: str = "time",
        channels: Sequence[str] = (),
        static: Sequence[str] = (),
        **options: Any,
    ) -> SeriesDataset:
        """Read a wide table: one row per time, one column per channel; a missing cell is a missing observation.

        Args:
            channels: the value columns, all others if not given; they become `channel_names` (tokens="channel", where
                the one value is called "value") or `value_names` (tokens="time"), in this order.
            options: tokens (with "time", a row without any value is dropped and a row with only some is refused),
                duplicates and others, as in `from_file`.

        Raises, Warns: as `from_file`.
        """
        channels = names_of(channels, "channels", empty=True)
        return cls.from_frame(frame, id, time, None, channels, static, wide=True, **options)

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
        positions: Sequence[Any] | None = None,
        position_names: Sequence[str] | None = None,
        static: Mapping[str, Sequence[Any] | np.ndarray] | None = None,
        tokens: Tokenisation = "channel",
        missing: Missing = "drop",
        duplicates: Duplicates = "error",
    ) -> SeriesDataset:
        """Make a data set of lists with one array per series.

        Labels are matched by order, so that no series, and no cell that cannot be used, is left out.

        Args:
            times: S arrays [n_i] of numbers or datetime64.
            values: S arrays [n_i] or [n_i, V].
            channels: S arrays [n_i] of channel labels (not indices, unless the labels are integers), or None.
            ids: S distinct ids; 0 to S - 1 if not given.
            value_names: V names; "value", or "value_0", "value_1", ... if not given.
            positions: S arrays [n_i] or [n_i, P] of further positions (latitude, depth, ...), finite numbers, or None.
            position_names: P names; "position_0", "position_1", ... if not given.
            static: name → S values.
            channel_names, tokens, missing, duplicates: as in `from_file`.

        Raises:
            InputError: as `from_file`, and for lists or arrays whose lengths differ, naming the series.

        Warns:
            InputWarning: once, where times were not ascending and have been sorted.
        """
        tables = importlib.import_module("rotarymae.tables")
        count = len(times)
        if not count:
            raise InputError("times holds no series; give at least one array.")
        given = {"values": values, "channels": channels, "ids": ids, "positions": positions} | dict(static or {})
        for name, part in given.items():
            if part is not None and len(part) != count:
                raise InputError(f"{name} has {len(part)} entries, times has {count}; give one per series.")
        for what, part, names in (("channels", channels, channel_names), ("positions", positions, position_names)):
            if part is None and names is not None:
                raise InputError(f"names {listed(names)} need {what}=[...], one array per series.")
        labels = distinct_ids(np.arange(count) if ids is None else ids)
        known = labels.to_pylist()
        when = [numeric(part, "times", known[i], 1) for i, part in enumerate(times)]
        if len({part.dtype.kind if part.dtype.kind in "mM" else "" for part in when}) > 1:
            raise InputError("some series have datetimes or durations and others numbers as times; give one kind.")
        lengths = np.array([len(part) for part in when])
        if not lengths.all():
            empty = [known[i] for i in np.flatnonzero(lengths == 0)]
            raise InputError(f"{len(empty)} of {count} series have no observation: {listed(empty)}. Leave them out.")
        each = pa.array(np.repeat(np.arange(count), lengths))
        of_values = flat_features(values, "value", value_names, lengths, known)
        where = {} if positions is None else flat_features(positions, "position", position_names, lengths, known)
        fixed = {name: listed_column(column, name).take(each) for name, column in (static or {}).items()}
        named = tables.TableSchema(
            id=free_name("id", of_values, where, fixed),
            time=free_name("time", of_values, where, fixed),
            channel=None if channels is None else free_name("channel", of_values, where, fixed),
            values=tuple(of_values),
            positions=tuple(where),
            static=tuple(fixed),
            tokens=tokens,
            missing=missing,
            duplicates=duplicates,
            strict=True,
        )
        columns = {named.id: labels.take(each), named.time: listed_column(np.concatenate(when), "times")}
        columns |= {} if channels is None else {named.channel: flat_labels(channels, lengths, known)}
        channel_names = None if channel_names is None else channel_names_of(channel_names)
        return tables.read_arrays({**columns, **of_values, **where, **fixed}, named, channel_names)

    @classmethod
    def from_padded(
        cls,
        array: np.ndarray,
        times: np.ndarray | None = None,
        tokens: Tokenisation = "time",
        ids: Sequence[Any] | np.ndarray | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> SeriesDataset:
        """Make a data set of an array [cases, channels, time] in which NaN means that nothing was observed.

        Args:
            times: [time], or [cases, time] (may be NaN where a case has no values); 0, 1, 2, ... if not given.
            tokens: "time" (values [n, channels]; a time with only some channels is refused), or "channel".
            channel_names: names of the channels; "channel_0", "channel_1", ... if not given.

        Raises:
            InputError: other shapes, a case without observations, infinite values, a time with only some channels.

        Warns:
            InputWarning: once, where times were not ascending and have been sorted.
        """
        tables = importlib.import_module("rotarymae.tables")
        try:
            array = unmasked(array)
        except ValueError as error:
            raise InputError(f"array is no array of numbers ({error}); give one of [cases, channels, time].") from error
        if array.ndim != 3 or array.dtype.kind not in "fiub" or 0 in array.shape:
            raise InputError(
                f"array is {array.dtype} of shape {array.shape}; numbers of shape [cases, channels, time] were wanted, "
                "none of them 0. For one channel use array[:, None, :]."
            )
        cases, width, steps = array.shape
        labels = distinct_ids(np.arange(cases) if ids is None else ids)
        names = names_of(channel_names or [f"channel_{c}" for c in range(width)], "channel_names")
        refuse_twice(names, "channel_names")
        if len(labels) != cases or len(names) != width:
            raise InputError(
                f"array has {cases} cases and {width} channels, but {len(labels)} ids and {len(names)} channel_names."
            )
        when = np.arange(steps) if times is None else unmasked(times)
        if when.shape not in {(steps,), (cases, steps)}:
            raise InputError(f"times has the shape {when.shape}, wanted ({steps},) or ({cases}, {steps}).")
        flat = array.transpose(0, 2, 1).reshape(cases * steps, width)
        flat = flat if flat.dtype == np.float32 else flat.astype(np.float64)
        there = ~np.isnan(flat).all(axis=1)
        series = np.repeat(np.arange(cases), steps)[there]
        if len(empty := np.setdiff1d(np.arange(cases), series)):
            nothing = listed(labels.take(pa.array(empty)).to_pylist())
            raise InputError(f"{len(empty)} of {cases} series are NaN throughout: {nothing}. Leave them out.")
        named = tables.TableSchema(
            id=free_name("id", names),
            time=free_name("time", names),
            values=names,
            wide=True,
            tokens=tokens,
            strict=True,
        )
        columns = {
            named.id: labels.take(pa.array(series)),
            named.time: listed_column(np.broadcast_to(when, (cases, steps)).ravel()[there], "times"),
            **dict(zip(names, map(pa.array, flat[there].T.copy()), strict=True)),
        }
        return tables.read_arrays(columns, named)

    # ── to tables ───────────────────────────────────────────────────────────────────────────────────────────────────

    def to_arrow(self, id: str | None = None, time: str = "time", channel: str = "channel") -> pa.Table:
        """Return the table that `from_frame` reads back: id, time, positions, channel (if any), values, static columns.

        Args:
            id, time, channel: what the columns are called; the ids as in the table they came from, if None.

        Times are numbers, also where they came as dates: read back, `time_unit` is None.

        Raises:
            InputError: a column name that would occur twice.
        """
        id, channels = id or self.id_name, [] if self.channels is None else [channel]
        names = [id, time, *self.position_names, *channels, *self.value_names, *self.static]
        refuse_twice(names, "the table to write")
        each = np.repeat(np.arange(len(self)), self.lengths)
        columns = [pa.array(self.ids).take(pa.array(each)), pa.array(self.times)]
        columns += [] if self.positions is None else [pa.array(column) for column in self.positions.T]
        if self.channels is not None and self.channel_names is not None:
            columns.append(pa.array(list(self.channel_names)).take(pa.array(self.channels)))
        columns += [pa.array(column) for column in self.values.T]
        columns += [pa.array(column).take(pa.array(each)) for column in self.static.values()]
        return pa.Table.from_arrays(columns, names=names)

    def write_parquet(
        self, path: str | Path, id: str | None = None, time: str = "time", channel: str = "channel"
    ) -> None:
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
