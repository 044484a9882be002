"""From a table's columns, or lists of arrays, to checked arrays: ids, times, channels, static values.

What is refused is named by column, series and row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rotarymae.errors import InputError, choose, listed
from rotarymae.series import tables
from rotarymae.system import unmasked

ERROR_ENDINGS = ("_err", "_error", "err")


@dataclass(frozen=True)
class FrameColumns:
    """Which columns of a long data frame hold what; as the arguments of `SeriesDataset.from_frame`."""

    id: str = "id"
    time: str = "time"
    channel: str | None = None
    values: tuple[str, ...] = ("value",)
    static: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading(FrameColumns):
    """How a table is read; as the arguments of `SeriesDataset.from_file`."""

    flags: tuple[str, ...] = ()
    wide: bool = False
    unknown_channels: Literal["error", "drop"] = "drop"
    tokens: Literal["channel", "time"] = "channel"
    missing: Literal["error", "drop"] = "drop"
    duplicates: Literal["error", "mean", "first"] = "error"


def choose_options(tokens: str, missing: str, duplicates: str, unknown_channels: str = "error") -> None:
    choose("tokens", tokens, ("channel", "time"))
    choose("missing", missing, ("error", "drop"))
    choose("duplicates", duplicates, ("error", "mean", "first"))
    choose("unknown_channels", unknown_channels, ("error", "drop"))


def names_of(names: Sequence[str] | str, what: str, empty: bool = False) -> tuple[str, ...]:
    """Column names as a tuple; one string is one name."""
    if not isinstance(names, str | Iterable):
        raise InputError(f"{what} is {names!r}; give column names.")
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names and not empty:
        raise InputError(f"{what} is empty; give at least one name.")
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise InputError(f"{what} holds {listed(wrong)}, which is no string; give column names.")
    return names


def error_columns(names: Sequence[str]) -> list[tuple[str, str]]:
    """(column, column of its standard errors) among value columns: NAME has them in NAME_err, NAME_error or NAMEerr, in
    capitals or not."""
    found = {name.lower(): name for name in names}
    pairs = [(name, found.get(name.lower() + ending)) for name in names for ending in ERROR_ENDINGS]
    return [(name, error) for name, error in pairs if error is not None]


def channel_index(observed: Any) -> np.ndarray:
    """The channel of each observation of a series, or of several, from 0; 0 throughout where they have no channels."""
    return np.zeros(len(observed.times), np.int64) if observed.channels is None else np.asarray(observed.channels)


def refuse_times_within(times: np.ndarray, series: np.ndarray, ids: np.ndarray, offsets: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(times))
    if len(bad):
        which = series[bad[0]]
        what = "missing" if np.isnan(times[bad[0]]) else "infinite"
        raise InputError(
            f"times of series {listed([ids[which]])}: the time of its observation {bad[0] - offsets[which]} (counted "
            f"from 0) is {what}; {len(bad)} times in all. Correct or drop them."
        )


def encode_channels(
    labels: pa.Array,
    given: Sequence[Any] | np.ndarray | None,
    series: np.ndarray,
    ids: np.ndarray,
    where: str,
    unknown: str = "error",
) -> tuple[np.ndarray, tuple[Any, ...], dict[str, int]]:
    """Channel labels [n] as (int32 indices [n], names, rows of each unknown channel).

    Names are sorted, or as given and nothing else; with unknown="drop" another channel has the index -1.
    """
    codes, distinct = tables.encode(labels)
    found = distinct.tolist()
    names = tuple(sorted(found)) if given is None else channel_names_of(given)
    # Whether a text file's 1 is a number or a text depends on what else stands in its column.
    place = {tables.as_text(name): k for k, name in enumerate(names)} | {name: k for k, name in enumerate(names)}
    at = [place.get(name, place.get(tables.as_text(name), -1)) for name in found]
    strange = [k for k, place in enumerate(at) if place < 0]
    if strange and unknown == "error":
        first = ids[series[np.argmax(codes == strange[0])]]
        raise InputError(
            f"{where}: channel {listed(found[k] for k in strange)} (first in series {listed([first])}) is not known; "
            f"known channels are {listed(names, 20)}.{tables.did_you_mean(found[strange[0]], names)} "
            "Train with that channel, or drop those rows.",
            code="unknown-channel",
            settings=[("unknown_channels", "drop")],
        )
    counts = np.bincount(codes, minlength=len(found))
    index = np.array(at, dtype=np.int32)[codes]
    return index, names, {str(found[k]): int(counts[k]) for k in strange}


def channel_names_of(given: Sequence[Any] | np.ndarray) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"channel_names is {given!r}; give a list of channels.")
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in given)
    if len(set(names)) != len(names):
        raise InputError(f"channel_names {listed(names)} names a channel twice; each must be given once.")
    return names


def static_column(column: pa.Array, name: str, series: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """One value per series [S] from a column that repeats it on each row of the series."""
    column = tables.trimmed(column)
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(ids), np.nan)
    whole = pa.types.is_integer(kind) and not column.null_count
    if not whole and (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)) and not pa.types.is_boolean(kind):
        cells = tables.numbers(column, name)
    else:
        there = column.is_valid().to_numpy(zero_copy_only=False)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            there = there & (column.to_numpy(zero_copy_only=False) != "")  # an empty cell of a text file
        cells = tables.label_values(tables.label_array(column.filter(pa.array(there)), name))
        if not there.all():  # a category may be missing
            some, cells = cells, np.full(len(column), None, object)
            cells[there] = some
    _, first = np.unique(series, return_index=True)
    kept = cells[first]
    differs = cells != kept[series]
    if cells.dtype.kind == "f":
        differs &= ~(np.isnan(cells) & np.isnan(kept[series]))
        if np.isinf(kept).any():
            raise InputError(f"static column {name!r} is infinite in series {listed(ids[np.isinf(kept)])}.")
    if differs.any():
        row = np.argmax(differs)
        raise InputError(
            f"static column {name!r} changes within series {listed([ids[series[row]]])}: "
            f"{listed([kept[series[row]]])}, then {listed([cells[row]])} ({len(np.unique(series[differs]))} series in "
            "all); make it a value column, or fill in one value per series."
        )
    return kept


def listed_column(values: Any, name: str) -> pa.Array:
    """A list or array as an Arrow array, refusing mixed types."""
    try:
        return tables.to_arrow(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} is of mixed type, or of one that no table holds ({str(error).splitlines()[0]}); give one."
        ) from error


def own_ids(ids: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Ids [S], refusing mixed types, missing ones and repeats."""
    labels = listed_column(ids if isinstance(ids, np.ndarray) else list(ids), "ids")
    codes, distinct = tables.encode(tables.label_array(labels, "ids"))
    if len(distinct) != len(codes):
        twice = distinct[np.bincount(codes) > 1]
        raise InputError(f"{len(twice)} ids are given to more than one series: {listed(twice)}; ids must differ.")
    return distinct


def numeric(values: Any, what: str, id: Any, ndim: int) -> np.ndarray:
    """One series' times [n] or values [n, V] as a numeric (or, for times, datetime64) array."""
    try:
        array = unmasked(values)
        array = array.astype(np.float64) if array.dtype == object or array.size == 0 else array
    except (TypeError, ValueError) as error:
        raise InputError(f"series {listed([id])}: {what} is no array of numbers ({error}).") from error
    if array.ndim == 1 and ndim == 2:
        array = array[:, None]
    if array.ndim != ndim or array.dtype.kind not in ("fiubMm" if what == "times" else "fiub"):
        raise InputError(
            f"series {listed([id])}: {what} is {array.dtype} of shape {array.shape}; numbers with {ndim} "
            f"{'axis' if ndim == 1 else 'axes'} were wanted."
        )
    as_is = array.dtype == np.float32 or array.dtype.kind in ("Mmiu" if what == "times" else "Mm")
    return array if as_is else array.astype(np.float64)


def flat_labels(channels: Sequence[Any], lengths: np.ndarray, ids: np.ndarray) -> pa.Array:
    """Channel labels of all series in one Arrow array of one type."""
    parts = []
    for i, part in enumerate(channels):
        name = f"channels of series {listed([ids[i]])}"
        column = tables.label_array(listed_column(part, name), name)
        if len(column) != lengths[i]:
            raise InputError(f"{name}: {len(column)} labels for {lengths[i]} times; give one per observation.")
        if parts and column.type != parts[0].type:
            raise InputError(f"{name} are {column.type}, those before {parts[0].type}; give all in one type.")
        parts.append(column)
    return pa.concat_arrays(parts)
