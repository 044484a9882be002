"""Lists of arrays and padded arrays, as observations in any order: what `SeriesDataset.from_arrays` and `from_padded`
read.

Labels of arrays are matched by their order, so that nothing is left out: what cannot be used is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rotarymae.errors import InputError, listed
from rotarymae.series import dates
from rotarymae.series.columns import (
    encode_channels,
    error_columns,
    flat_labels,
    listed_column,
    names_of,
    numeric,
    own_ids,
    refuse_times_within,
    refuse_twice,
    static_column,
)
from rotarymae.series.reading import ReadingReport
from rotarymae.series.tidy import Observations, melt, offsets_of, refuse_empty
from rotarymae.system import unmasked

# The observations, and one value per series [S] of every static column.
Found = tuple[Observations, dict[str, np.ndarray]]


def arrays(
    times: Sequence[Any],
    values: Sequence[Any],
    channels: Sequence[Any] | None,
    ids: Sequence[Any] | np.ndarray | None,
    value_names: Sequence[str] | None,
    channel_names: Sequence[Any] | np.ndarray | None,
    static: Mapping[str, Sequence[Any] | np.ndarray],
    positions: Sequence[Any] | None = None,
    position_names: Sequence[str] | None = None,
) -> Found:
    """Check and flatten the lists of `SeriesDataset.from_arrays`."""
    count = len(times)
    if not count:
        raise InputError("times holds no series; give at least one array.")
    given = {"values": values, "channels": channels, "ids": ids, "positions": positions} | dict(static)
    for name, part in given.items():
        if part is not None and len(part) != count:
            raise InputError(f"{name} has {len(part)} entries, times has {count}; give one per series.")
    if channels is None and channel_names is not None:
        raise InputError(f"channel_names {listed(channel_names)} need channels=[...], one array per series.")
    ids = own_ids(np.arange(count) if ids is None else ids)
    when = [numeric(part, "times", ids[i], 1) for i, part in enumerate(times)]
    what = [numeric(part, "values", ids[i], 2) for i, part in enumerate(values)]
    lengths = np.array([len(part) for part in when], dtype=np.int64)
    for i, part in enumerate(what):
        if len(part) != lengths[i] or part.shape[1] != what[0].shape[1]:
            raise InputError(
                f"series {listed([ids[i]])}: values has the shape {part.shape}, wanted "
                f"({lengths[i]}, {what[0].shape[1]}): one row per time, and as many features as the first series."
            )
    refuse_empty(lengths, ids, "Leave them out.")
    series = np.repeat(np.arange(count), lengths)
    if len({part.dtype.kind if part.dtype.kind in "mM" else "" for part in when}) > 1:
        raise InputError("some series have datetimes or durations and others numbers as times; give all in one kind.")
    flat_times, unit = dates.times(listed_column(np.concatenate(when), "times"), "times")
    refuse_times_within(flat_times, series, ids, offsets_of(lengths))
    which, known = None, None
    if channels is not None:
        labels = flat_labels(channels, lengths, ids)
        which, known, _ = encode_channels(
            labels, channel_names, "channels", whose=lambda row: f"series {listed([ids[series[row]]])}"
        )
    flat = np.concatenate(what)
    width = flat.shape[1]
    if value_names is None:
        value_names = ("value",) if width == 1 else tuple(f"value_{v}" for v in range(width))
    value_names = names_of(value_names, "value_names")
    refuse_twice(value_names, "value_names")
    if len(value_names) != width:
        raise InputError(f"value_names has {len(value_names)} names for {width} features; give one each.")
    report = ReadingReport(len(flat))
    where, names = flat_positions(positions, position_names, lengths, ids)
    pairs = dict(error_columns(value_names))
    rows = Observations(
        series, ids, flat_times, which, known, flat, value_names, unit, report, None, where, names, errors=pairs
    )
    each = np.arange(count)
    fixed = {name: static_column(listed_column(c, name), name, each, ids)[0] for name, c in static.items()}
    return rows, fixed


def flat_positions(
    positions: Sequence[Any] | None, names: Sequence[str] | None, lengths: np.ndarray, ids: np.ndarray
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Check and flatten further positions, one array [n_i] or [n_i, P] per series, and their names."""
    if positions is None:
        if names:
            raise InputError(f"position_names {listed(names)} need positions=[...], one array per series.")
        return None, ()
    each = [numeric(part, "positions", ids[i], 2).astype(np.float64) for i, part in enumerate(positions)]
    for i, part in enumerate(each):
        if part.shape != (lengths[i], each[0].shape[1]):
            raise InputError(
                f"series {listed([ids[i]])}: positions has the shape {part.shape}, wanted "
                f"({lengths[i]}, {each[0].shape[1]}): one row per time, and as many columns as the first series."
            )
        if not np.isfinite(part).all():
            raise InputError(
                f"series {listed([ids[i]])}: positions hold NaN or infinity; leave these observations out."
            )
    width = each[0].shape[1]
    names = names_of([f"position_{p}" for p in range(width)] if names is None else names, "position_names")
    refuse_twice(names, "position_names")
    if len(names) != width:
        raise InputError(f"position_names has {len(names)} names for {width} positions; give one each.")
    return np.concatenate(each), names


def padded_array(
    array: np.ndarray,
    times: np.ndarray | None,
    ids: Sequence[Any] | np.ndarray | None,
    channel_names: Sequence[str] | None,
    melted: bool,
) -> Found:
    """Of `SeriesDataset.from_padded`."""
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
    ids = own_ids(np.arange(cases) if ids is None else ids)
    names = names_of(channel_names or [f"channel_{c}" for c in range(width)], "channel_names")
    refuse_twice(names, "channel_names")
    if len(ids) != cases or len(names) != width:
        raise InputError(
            f"array has {cases} cases and {width} channels, but {len(ids)} ids and {len(names)} channel_names came."
        )
    when = np.arange(steps) if times is None else unmasked(times)
    if when.shape not in {(steps,), (cases, steps)}:
        raise InputError(f"times has the shape {when.shape}, wanted ({steps},) or ({cases}, {steps}).")
    flat_times, unit = dates.times(listed_column(np.broadcast_to(when, (cases, steps)).ravel(), "times"), "times")
    flat = array.transpose(0, 2, 1).reshape(cases * steps, width)
    flat = flat if flat.dtype == np.float32 else flat.astype(np.float64)
    there = np.logical_not(np.isnan(flat).all(axis=1))
    series = np.repeat(np.arange(cases), steps)[there]
    refuse_empty(np.bincount(series, minlength=cases), ids, "Leave out the cases that are NaN throughout.")
    found = flat_times[there]
    refuse_times_within(found, series, ids, offsets_of(np.bincount(series, minlength=cases)))
    gone = cases * steps - len(found)
    report = ReadingReport(cases * steps, missing=gone, missing_by_column={name: gone for name in names if gone})
    rows = Observations(series, ids, found, None, None, flat[there], names, unit, report)
    return melt(rows) if melted else rows, {}
