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
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, SupportsIndex

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.batch import normalize_index
from rotarymae.errors import InputError, InputWarning, listed
from rotarymae.series.cells import plain
from rotarymae.series.columns import (
    distinct,
    error_columns,
    flat_arrays,
    flat_labels,
    free_name,
    listed_column,
    named_columns,
    refuse_twice,
)
from rotarymae.series.dates import as_dates
from rotarymae.series.mapped import SAMPLE, Columns, is_mapped, map_parts, row_chunks, series_chunks
from rotarymae.series.reading import ReadingReport
from rotarymae.series.tidy import offsets_of

__all__ = ["Series", "SeriesDataset"]


@dataclass(frozen=True, eq=False)
class Series:
    """One series of n observations, as `SeriesDataset.__getitem__` returns it.

    Parameters
    ----------
    id : str, int, float or bool
        The series' id.
    times : ndarray of shape [n]
        float64, ascending, in the table's unit.
    channels : ndarray of shape [n] or None
        int32, index into `channel_names`; None without channels.
    values : ndarray of shape [n, V]
        A column for each of `value_names`.
    channel_names : tuple or None
        Labels of the data set's channels; None without channels.
    static : dict
        {column: the series' value}.
    value_names : tuple of str
        Names of the V columns of `values`.
    time_unit, time_zone : str or None
        Those of the data set.
    positions : ndarray of shape [n, P] or None
        A column for each of `position_names`; None without further positions.
    position_names : tuple of str
        Names of the P columns of `positions`.
    sides : ndarray of shape [n, V] or None
        int8: -1 for upper limits, 1 for lower ones, 0 for measured values; None without limits.
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
    sides: np.ndarray | None = None


@dataclass(frozen=True, eq=False, repr=False)
class SeriesDataset:
    """S ragged series with n observations in all. Make one with `from_frame` or another `from_*`, which check content.

    Parameters
    ----------
    times : ndarray of shape [n]
        float64, ascending within each series, in the table's unit (see `time_unit`).
    values : ndarray of shape [n, V]
        float64, or float32 if every source column was float32. Finite.
    offsets : ndarray of shape [S + 1]
        int64; series i is the slice offsets[i]:offsets[i + 1], never empty.
    ids : ndarray of shape [S]
        The original ids, in order of first appearance.
    value_names : tuple of str
        Names of the V columns of `values`.
    channels : ndarray of shape [n] or None
        int32, index into `channel_names`, from 0; None where one row is one time.
    channel_names : tuple or None
        The original channel labels, sorted, or in the order that was given; of a wide table, that of its columns. None
        without channels.
    static : dict of str to ndarray
        Name → one value for each series, [S]. What was missing is NaN among numbers, NaT among dates, else None.
    time_unit : str or None
        "day" where the times came as dates or durations; None for numbers of any unit.
    time_zone : str or None
        Zone of the dates, "UTC" where they had none; None where times were no dates.
    id_name : str
        Name of the table's column of ids, which tables of answers use, too.
    reading : ReadingReport or None
        What became of the rows of the whole table that was read; selections keep it.
    positions : ndarray of shape [n, P] or None
        Further positions of each observation (latitude, depth, ...) in the table's units; None where there are none.
        Finite.
    position_names : tuple of str
        Names of the P columns of `positions`.
    sides : ndarray of shape [n, V] or None
        int8: -1 where a value is known only to lie below the number in `values` (an upper limit), 1 where it lies above
        (a lower limit), 0 where it was measured. None where all were.
    errors : mapping
        {value column: column of its standard errors}, as they were named when the table was read; empty where none were
        named. `error_of` adds those that are recognised by their names.

    Raises
    ------
    InputError
        Arrays whose shapes do not fit together; offsets that do not ascend; columns or their names alone.
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
    sides: np.ndarray | None = None
    errors: Mapping[str, str] = field(default_factory=dict)

    noun: ClassVar[str] = "series"  # what messages call its members
    kind: ClassVar[str] = "observations"  # that of its preprocessor

    def __post_init__(self) -> None:
        """Check that shapes, offsets and names fit together. Raises InputError where they do not."""
        n, count = len(self.times), len(self.ids)
        shapes = {"times": (n,), "values": (n, len(self.value_names)), "offsets": (count + 1,)}
        shapes |= {"channels": (n,), "positions": (n, len(self.position_names)), "sides": shapes["values"]}
        for name, shape in shapes.items():
            actual = shape if getattr(self, name) is None else getattr(self, name).shape
            if actual != shape:
                text = f"{name} has the shape {actual}, wanted {shape}; build with SeriesDataset.from_arrays."
                raise InputError(text)
        for column, names, none in (("channels", "channel_names", None), ("positions", "position_names", ())):
            absent = getattr(self, column) is None
            if absent != (getattr(self, names) == none):
                given, lacking = (names, column) if absent else (column, names)
                raise InputError(f"{given} are given without {lacking}; give both or neither.")
        wrong = np.append(self.offsets[0] != 0, np.diff(self.offsets) < 1)
        wrong[-1] |= self.offsets[-1] != n
        if wrong.any():
            first = int(wrong.argmax())
            raise InputError(
                f"offsets[{first}] is {self.offsets[first]}: offsets must begin at 0, rise, and end at {n}, the number "
                "of observations, as no series is empty; build with SeriesDataset.from_arrays."
            )
        for name, column in self.static.items():
            if column.shape != (count,):
                raise InputError(
                    f"static {name!r} has the shape {column.shape}, wanted one value per series, ({count},)."
                )

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        """Return the number of series."""
        return len(self.ids)

    def __getitem__(self, index: SupportsIndex) -> Series:
        """Return one series by its index; negative ones count from the end. Its arrays are views of the data set's.

        Raises TypeError for anything but an integer, and IndexError for a series that does not exist.
        """
        try:
            at = operator.index(index)
        except TypeError:
            raise TypeError(
                f"a series is taken by one integer, not by {type(index).__name__}; use select(...) for several"
            ) from None
        if not -len(self) <= at < len(self):
            raise IndexError(f"there is no series {at}; the data set has {len(self)}, counted from 0")
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
        """Iterate over the series, in their order."""
        return (self[i] for i in range(len(self)))

    @property
    def columns(self) -> Columns:
        """Return the columns of all n observations; the arrays themselves, not copies."""
        return Columns(self.times, self.channels, self.values, self.positions, self.sides)

    @property
    def lengths(self) -> np.ndarray:
        """Return the number of observations of each series, int64 [S]."""
        return np.diff(self.offsets)

    @property
    def tokens(self) -> Literal["channel", "time"]:
        """Return "channel" if a row is an observation of one channel, "time" if a row is one time of all channels."""
        return "time" if self.channels is None else "channel"

    @property
    def error_of(self) -> dict[str, str]:
        """Return {value column: column of its standard errors}: those in `errors`, or recognised by `error_columns`."""
        pairs = {**dict(error_columns(self.value_names)), **self.errors}
        return {name: error for name, error in pairs.items() if {name, error} <= {*self.value_names}}

    def __repr__(self) -> str:
        """Return "SeriesDataset(...)" with the line of `describe` in the brackets."""
        return f"SeriesDataset({self.describe()})"

    def describe(self) -> str:
        """Describe the counts, names and ranges in words.

        Returns
        -------
        str
            One line, such as "2 series, 9 observations, values 'flux', times 0 to 3, 4 to 5 per series".
        """
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
        """Hash content, names and ids.

        Returns
        -------
        str
            SHA-256 as 64 hex digits, the same for two data sets if, and only if, they are equal, types included, in
            all but `time_zone`, `id_name`, `reading` and the order of `static`.
        """
        digest = hashlib.sha256()
        names: list[Any] = [self.value_names, self.channel_names, self.time_unit, *self.position_names]
        names += sorted(self.errors.items())
        columns = {"times": self.times, "values": self.values, "offsets": self.offsets, "ids": self.ids}
        optional = {"channels": self.channels, "positions": self.positions, "sides": self.sides}
        columns |= {name: column for name, column in optional.items() if column is not None}
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

    def warn_constant_channels(self, errors: Sequence[str] = ()) -> tuple[str, ...]:
        """Warn of value columns that are constant within a channel, and of channels without observations.

        A model learns nothing from them. Call this on training data: construction does not, as each subset would warn
        again.

        Parameters
        ----------
        errors : sequence of str
            Columns of standard errors, which may be the same throughout.

        Returns
        -------
        tuple of str
            A text for each channel and column in which all values are the same (or there is only one): "channel 'u',
            column 'flux'", or "column 'flux'" without channels. Channels without observations are not among them.

        Warns
        -----
        InputWarning
            Once for what is constant and once for what was never observed, naming it all.
        """
        shape = (len(self.channel_names or (None,)), len(self.value_names))
        low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
        for rows in row_chunks(self.offsets):
            channel = np.zeros(rows.stop - rows.start, int) if self.channels is None else self.channels[rows]
            np.minimum.at(low, channel, self.values[rows])
            np.maximum.at(high, channel, self.values[rows])
        names = self.channel_names
        constant = tuple(
            f"{'' if names is None else f'channel {names[c]!r}, '}column {self.value_names[v]!r}"
            for c, v in np.argwhere(low == high)
            if self.value_names[v] not in errors
        )
        never = [] if names is None else [names[c] for c in np.flatnonzero((low > high).all(1))]
        if never:
            text = f"channel {listed(never)} was never observed: predictions for it are guesses; leave it out."
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
        """Select series by their indices or by a mask.

        Parameters
        ----------
        indices : sequence of int, or bool array of shape [S]
            Indices of series, which come in this order and may repeat; negative ones count from the end. Or a mask,
            True for each series to keep.

        Returns
        -------
        SeriesDataset
            The selected series; their columns are copies, memory-mapped if they are large and were mapped.

        Raises
        ------
        InputError
            An index that does not exist or is no integer, a mask of the wrong length, nothing selected.
        """
        at = normalize_index(indices, len(self), "series")
        offsets = offsets_of(self.lengths[at])
        static = {name: column[at] for name, column in self.static.items()}
        kept: dict[str, Any] = {"offsets": offsets, "ids": self.ids[at], "static": static}
        return replace(self, **self.columns.pieces(self.offsets[at], np.diff(offsets))._asdict(), **kept)

    def series_chunks(self) -> Iterator[np.ndarray]:
        """Divide the series into runs of at most 262,144 observations; a longer series is a run by itself.

        Returns
        -------
        iterator of ndarray
            For each run the indices of its k consecutive series, int [k]; all runs together are all series in order.
        """
        return (np.arange(part.start, part.stop) for part in series_chunks(self.offsets))

    def gather(self, index: np.ndarray) -> Columns:
        """Copy the columns of some series into memory.

        Parameters
        ----------
        index : int array of shape [k]
            The series, from 0.

        Returns
        -------
        Columns
            Their observations, one series behind the other, in the order of `index`.
        """
        return self.columns.runs(self.offsets[index], self.offsets[index + 1] - self.offsets[index])

    def sample(self, observations: int = SAMPLE) -> SeriesDataset:
        """Draw random series of a large data set, the same ones every time.

        Parameters
        ----------
        observations : int
            Series are drawn until they have at least this many observations together.

        Returns
        -------
        SeriesDataset
            The drawn series, each whole, in the order of this data set; this data set itself if it has no more than
            `observations`.
        """
        if len(self.times) <= observations:
            return self
        order = np.random.default_rng(0).permutation(len(self))
        enough = int(np.searchsorted(np.cumsum(self.lengths[order]), observations)) + 1
        return self.select(np.sort(order[:enough]))

    def with_values(self, names: Sequence[str]) -> SeriesDataset:
        """Keep only some value columns.

        Parameters
        ----------
        names : sequence of str
            The columns to keep, in their new order.

        Returns
        -------
        SeriesDataset
            The same observations with these columns; this data set itself if it has just these in this order.

        Raises
        ------
        InputError
            A column that is not there.
        """
        for name in names:
            if name not in self.value_names:
                raise InputError(f"there is no value column {name!r}; choose among {listed(self.value_names)}.")
        if tuple(names) == tuple(self.value_names):
            return self
        places = [self.value_names.index(name) for name in names]
        first = places == list(range(len(places)))  # a view, of mapped columns too
        chosen: Any = slice(len(places)) if first else places
        sides = None if self.sides is None else self.sides[:, chosen]
        return replace(self, values=self.values[:, chosen], value_names=tuple(names), sides=sides)

    def with_errors(self, names: Sequence[str]) -> SeriesDataset:
        """Name the columns that hold standard errors.

        Parameters
        ----------
        names : sequence of str
            Columns with the errors of the first columns of values, in their order.

        Returns
        -------
        SeriesDataset
            The same observations with these `errors`; this data set itself if `names` is empty.
        """
        return replace(self, errors=dict(zip(self.value_names, names, strict=False))) if names else self

    def with_limits(self, kept: bool) -> SeriesDataset:
        """Keep limits (values known only as "<5" or ">5") for a model that reads them, or leave them out.

        Parameters
        ----------
        kept : bool
            True for a model that reads limits: if `sides` is None, it becomes an array of zeros. False for others:
            observations with a limit in any value column are left out, and `sides` becomes None.

        Returns
        -------
        SeriesDataset
            The same series; this data set itself if there is nothing to change.

        Raises
        ------
        InputError
            Limits are left out, and a series has nothing but limits.

        Warns
        -----
        InputWarning
            Limits are left out: how many.
        """
        if kept:
            return replace(self, sides=np.zeros(self.values.shape, np.int8)) if self.sides is None else self
        if self.sides is None:
            return self
        limits = (self.sides != 0).any(1)
        if limits.any():
            text = f"{limits.sum():,} limits are left out, values such as <5, as the model was trained without."
            warnings.warn(text, InputWarning, stacklevel=2)
        return replace(self.mask_observations(~limits), sides=None)

    def mask_observations(self, keep: np.ndarray) -> SeriesDataset:
        """Keep only some observations of each series.

        Parameters
        ----------
        keep : bool array of shape [n]
            True for each observation to keep.

        Returns
        -------
        SeriesDataset
            The same series with these observations; columns are copies, memory-mapped if they are large and were
            mapped.

        Raises
        ------
        InputError
            A mask of the wrong type or length; series that would become empty, which are named.
        """
        keep = np.asarray(keep)
        if keep.dtype != np.bool_ or keep.shape != self.times.shape:
            raise InputError(f"keep must be bool of shape {self.times.shape}, not {keep.dtype} of shape {keep.shape}.")
        lengths = np.add.reduceat(keep.astype(np.int64), self.offsets[:-1])
        if not lengths.all():
            empty = self.ids[lengths == 0]
            raise InputError(
                f"{len(empty)} of {len(self)} series have no observation left: {listed(empty)}. Keep an observation of "
                "each series, or first leave these series out by select(...)."
            )
        if is_mapped(self.times) and lengths.sum() > SAMPLE:
            kept = map_parts(self.columns.take(rows).take(keep[rows]) for rows in row_chunks(self.offsets))
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
        values: Sequence[str] | None = None,
        static: Sequence[str] = (),
        *,
        channel_names: Sequence[Any] | np.ndarray | None = None,
        memory: float | None = None,
        **options: Any,
    ) -> SeriesDataset:
        """Read a table: one row per observation, rows in any order.

        With wide=True a row is a time with a column for each channel. A row may also hold lists with an entry per
        observation; a column without lists then holds for all observations of its row. "lc.time" is the field `time`
        of a nested column `lc`. A series without any standard error gets the median error of the others. A file larger
        than memory is sorted on disk, and its columns are memory-mapped; the data set is the same.

        Parameters
        ----------
        source : str, Path or DataFrame
            A file, a folder, a pattern, "-" for standard input, or a pandas, polars, Arrow or astropy table.
        id : str or None
            Column that says which series a row belongs to. None makes each file one series; so does "id" if a table has
            no such column, and no other one that looks like ids.
        time : str
            Column of times: numbers in any unit, durations, which become days, or dates, days since 1970-01-01 UTC.
        channel : str or None
            Column of channels (band, sensor, ...); without it each row is one time.
        values : sequence of str or None
            One or more numeric columns; "value", or of a wide table all others, if None.
        static : sequence of str
            Columns with one value per series, which the table repeats on each of its rows.
        channel_names : sequence or None
            The channels that a model was trained on, in that order; rows of others are left out and counted. For a
            wide table they are the `values`.
        memory : float or None
            Bytes that reading may take; half of what is free, if None.
        **options : Any
            Other fields of `rotarymae.tables.TableSchema` (TypeError for other names): positions, errors, flags, wide,
            na, duplicates, strict, ...

        Returns
        -------
        SeriesDataset
            The series, in order of first appearance; `reading` says what became of the rows.

        Raises
        ------
        InputError
            A file that cannot be read; columns that are missing, given twice or not numeric; ids or channels that are
            dates or decimals; `channel_names` without `channel`, or next to other `values` of a wide table; many
            duplicates; a static column that varies within a series or is infinite; no observation at all; with
            strict=True, any cell that cannot be used.

        Warns
        -----
        InputWarning
            Once for each kind of row that is left out or changed, and once for each kind of value or time that looks
            wrong.
        """
        tables = importlib.import_module("rotarymae.tables")  # which builds on this package
        known = None if channel_names is None else tuple(distinct(channel_names, "channel_names").to_pylist())
        if values is None:
            values = (known or ()) if options.get("wide") else ("value",)
        id_name, id = id or "id", "file" if id is None else id
        schema = tables.TableSchema(id=id, time=time, channel=channel, values=values, static=static, **options)
        if known is not None and schema.wide and schema.values != known:
            raise InputError(
                f"channel_names are {listed(known)} and values {listed(schema.values)}, but each value column of a "
                "wide table is a channel; leave out one of the two, or give both the same names."
            )
        if channel is None and known is not None and not schema.wide:
            raise InputError(f"channel_names {listed(known)} need a channel column; give channel=...")
        return tables.TableReader.open(source, schema, known, id_name=id_name).read(memory)

    from_frame = from_file  # a data frame is read as a file is

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
        **options: Any,
    ) -> SeriesDataset:
        """Make a data set from lists with one array per series.

        No series is left out, so that labels in the same order fit. A row with NaN among its V values is left
        out, and equal rows become one; anything else that cannot be used is refused. Standard errors (NAME_err) that
        are NaN in all of a series become the median error of the other series.

        Parameters
        ----------
        times : sequence of arrays of shape [n_i]
            Numbers, dates (with a time zone: in UTC) or durations for each of S series, in any order.
        values : sequence of arrays of shape [n_i] or [n_i, V]
            Numbers for each series.
        channels : sequence of arrays of shape [n_i] or None
            Channel labels (not indices, unless the labels are integers).
        ids : sequence or array of shape [S] or None
            Distinct ids; 0 to S - 1 if None.
        value_names : sequence of str or None
            V names; "value", or "value_0", "value_1", ... if None.
        channel_names : sequence or None
            All channels that may occur, in the order to use; those that occur, sorted, if None.
        positions : sequence of arrays of shape [n_i] or [n_i, P], or None
            Further positions (latitude, depth, ...), finite numbers.
        position_names : sequence of str or None
            P names; "position_0", "position_1", ... if None.
        static : mapping or None
            Name → S values.
        **options : Any
            Other fields of `rotarymae.tables.TableSchema`: tokens, duplicates, wide. With wide=True each of the V
            columns is a channel, and a row with a NaN loses only this value. With tokens="time" as well, all
            values of a row become one observation, and a row with a NaN is left out.

        Returns
        -------
        SeriesDataset
            The series, in the order of the lists.

        Raises
        ------
        InputError
            No series; lists or arrays whose lengths differ; arrays without numbers; names without their arrays; ids
            that are missing; ids or names that repeat; a series without observations, or without values; a time,
            channel or position that is missing; dates outside the years 1 to 9999; numbers that are infinite (in
            `static`, too) or beyond 32 bits; negative standard errors; a channel that is none of `channel_names`;
            different values of one series, time and channel, unless `duplicates` says which counts.

        Warns
        -----
        InputWarning
            Once for each kind of what is left out, changed or looks wrong, such as times that were not ascending and
            have been sorted.
        """
        tables = importlib.import_module("rotarymae.tables")
        count = len(times) if hasattr(times, "__len__") else 0
        if not count:
            raise InputError("times holds no series; give a list with an array of times per series, at least one.")
        static = {} if static is None else dict(static)
        given = [("values", values), ("channels", channels), ("ids", ids), ("positions", positions)]
        for name, part in [*given, *static.items()]:
            entries = len(part) if hasattr(part, "__len__") else "no"
            if part is not None and entries != count:
                raise InputError(f"{name} has {entries} entries, times has {count}; give one entry per series in both.")
        for what, part, names in (("channels", channels, channel_names), ("positions", positions, position_names)):
            if part is None and names is not None:
                raise InputError(
                    f"the names {listed(names)} come without arrays; give {what}=[...], one array per series."
                )
        labels = distinct(np.arange(count) if ids is None else ids, "ids")
        known = labels.to_pylist()
        when = flat_arrays(times, "times", known, axes=1)
        lengths = [len(part) for part in times]
        if 0 in lengths:
            empty = [known[i] for i in range(count) if not lengths[i]]
            text = f"{len(empty)} of {count} series have no observation: {listed(empty)}. Leave these series out."
            raise InputError(text)
        each = pa.array(np.repeat(np.arange(count), lengths))
        of_values = named_columns(flat_arrays(values, "values", known, lengths=lengths), "value", value_names)
        where = {}
        if positions is not None:
            flat = flat_arrays(positions, "positions", known, lengths=lengths)
            where = named_columns(flat, "position", position_names)
        fixed = {name: listed_column(column, name).take(each) for name, column in static.items()}
        named = tables.TableSchema(
            id=free_name("id", of_values, where, fixed),
            time=free_name("time", of_values, where, fixed),
            channel=None if channels is None else free_name("channel", of_values, where, fixed),
            values=tuple(of_values),
            positions=tuple(where),
            static=tuple(fixed),
            strict=True,
            **options,
        )
        columns = {named.id: labels.take(each), named.time: listed_column(when, "times")}
        columns |= {} if channels is None else {named.channel: flat_labels(channels, lengths, known)}
        table = pa.table({**columns, **of_values, **where, **fixed})
        names = None if channel_names is None else distinct(channel_names, "channel_names").to_pylist()
        return tables.TableReader.open(table, named, names, id_name="id").read(refuse_empty=True)

    # ── to tables ───────────────────────────────────────────────────────────────────────────────────────────────────

    def to_arrow(self, id: str | None = None, time: str = "time", channel: str = "channel") -> pa.Table:
        """Make a table with one row per observation, which `from_frame` reads back if it gets the names of the columns.

        Its columns are id, time, positions, channel (if any), values and static columns, in this order. Times are
        numbers, also where they were dates: read back, `time_unit` is None. A column of values that has limits becomes
        texts ("<0.01").

        Parameters
        ----------
        id : str or None
            Name of the column of ids; `id_name` if None.
        time : str
            Name of the column of times.
        channel : str
            Name of the column of channels.

        Returns
        -------
        pyarrow.Table
            One row per observation.

        Raises
        ------
        InputError
            A column name that would occur twice.
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
        for v, name in enumerate(self.value_names):
            if self.sides is not None and self.sides[:, v].any():
                marks = pa.array(np.array(["<", "", ">"])[self.sides[:, v] + 1])
                texts = columns[names.index(name)].cast(pa.string())
                columns[names.index(name)] = pc.binary_join_element_wise(marks, texts, "")  # pyright: ignore
        columns += [pa.array(column).take(pa.array(each)) for column in self.static.values()]
        return pa.Table.from_arrays(columns, names=names)
