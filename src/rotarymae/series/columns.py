"""Names of columns, and lists of arrays, one per series, as columns; what is refused is named by series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rotarymae.errors import InputError, listed, names_of
from rotarymae.series import cells
from rotarymae.system import unmasked

ERROR_ENDINGS = ("_err", "_error", "err")


def refuse_twice(names: Sequence[str], where: str) -> None:
    """Raise InputError for a name that occurs twice; `where` names the list of names in the message."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"{where} names {listed(twice)} more than once; each column must have a name of its own.")


def free_name(name: str, *taken: Iterable[str]) -> str:
    """Return `name`, with as many marks (') added as it takes to be in none of the collections `taken`."""
    return name if not any(name in names for names in taken) else free_name(f"{name}'", *taken)


def error_columns(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs (value column, column of its standard errors), recognised by name.

    The errors of NAME are in NAME_err, NAME_error or NAMEerr, in any case; a value without such a column is in no pair.

    Args:
        names: of all columns of values.
    """
    by_name = {name.lower(): name for name in names}
    pairs = [(name, by_name.get(name.lower() + ending)) for name in names for ending in ERROR_ENDINGS]
    return [(name, error) for name, error in pairs if error is not None]


def channel_index(observed: Any) -> np.ndarray:
    """Return the channel number of each observation, int [n] from 0; zeros without channels.

    Args:
        observed: a data set or a series.
    """
    return np.zeros(len(observed.times), np.int64) if observed.channels is None else np.asarray(observed.channels)


def channel_names_of(given: Sequence[Any] | np.ndarray) -> tuple[Any, ...]:
    """Return given channel names as a tuple of Python values. Raises InputError for no list or repeated names."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"channel_names is {given!r}; give a list of channels.")
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in given)
    if len(set(names)) != len(names):
        raise InputError(f"channel_names {listed(names)} names a channel twice; each must be given once.")
    return names


# ── lists of arrays ─────────────────────────────────────────────────────────────────────────────────────────────────


def listed_column(values: Any, name: str) -> pa.Array:
    """Return a list or array as an Arrow array.

    Args:
        name: of the values, for messages.

    Raises:
        InputError: values of mixed type, or of one that no table holds.
    """
    try:
        return cells.to_arrow(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name}: the values are of mixed type, or of one that no table holds ({str(error).splitlines()[0]}); give "
            "numbers, strings, dates or booleans alone."
        ) from error


def distinct_ids(ids: Sequence[Any] | np.ndarray) -> pa.Array:
    """Return ids [S] as an Arrow array. Raises InputError for mixed types, missing ids and repeats."""
    labels = cells.labels(listed_column(ids if isinstance(ids, np.ndarray) else list(ids), "ids"), "ids")
    if labels.null_count:
        row = labels.is_null().index(True).as_py()
        raise InputError(
            f"{labels.null_count} of the 'ids' are missing, first that of series {row} (counted from 0); give every "
            "series an id."
        )
    if len(labels.unique()) != len(labels):
        twice = [entry["values"] for entry in labels.value_counts().to_pylist() if entry["counts"] > 1]
        raise InputError(f"{len(twice)} ids are given to more than one series: {listed(twice)}; ids must differ.")
    return labels


def numeric(values: Any, what: str, id: Any, axes: int = 2, kinds: str = "fiub") -> np.ndarray:
    """Return one series' values as an array [n, V], or its times as [n] with axes=1.

    Masked values become NaN, and objects float64; another type is kept.

    Args:
        what: what the values are, for messages.
        id: name of the series, for messages.
        axes: the number of axes of the result; values [n] get a second one.
        kinds: the kinds of numpy types that are accepted.

    Raises:
        InputError: no array of these kinds, or with more axes or none.
    """
    try:
        array = unmasked(values)
        array = array.astype(np.float64) if array.dtype == object or array.size == 0 else array
    except (TypeError, ValueError) as error:
        raise InputError(f"series {listed([id])}: {what} is no array of numbers ({error}).") from error
    if not 0 < array.ndim <= axes or array.dtype.kind not in kinds:
        raise InputError(f"series {listed([id])}: {what} is {array.dtype} of shape {array.shape}; wanted numbers [n].")
    return array[:, None] if array.ndim < axes else array


def flat_features(
    arrays: Sequence[Any], what: str, names: Sequence[str] | None, lengths: np.ndarray, ids: Sequence[Any]
) -> dict[str, pa.Array]:
    """Join the arrays [n_i] or [n_i, V] of all S series into V flat columns: {name: column of all rows}.

    Columns are float32 if every array is, else float64.

    Args:
        what: what a feature is called in messages. Names that are not given are `what`_0, `what`_1, ..., but plainly
            "value" for a single value.
        names: V names; None for the usual ones.
        lengths: [S], the number of rows n_i that each array must have.
        ids: [S], names of the series for messages.

    Raises:
        InputError: an array of another shape or without numbers; names that repeat, or are not V.
    """
    each = [numeric(part, f"{what}s", ids[i]) for i, part in enumerate(arrays)]
    width = each[0].shape[1]
    for i, part in enumerate(each):
        if part.shape != (lengths[i], width):
            raise InputError(
                f"series {listed([ids[i]])}: {what}s has the shape {part.shape}, wanted ({lengths[i]}, {width}): one "
                "row per time, and as many columns as the first series."
            )
    usual = [what] if width == 1 and what == "value" else [f"{what}_{v}" for v in range(width)]
    names = names_of(usual if names is None else names, f"{what}_names")
    refuse_twice(names, f"{what}_names")
    if len(names) != width:
        raise InputError(f"{what}_names has {len(names)} names for {width} features; give one each.")
    flat = np.concatenate([part if part.dtype == np.float32 else part.astype(np.float64) for part in each])
    return dict(zip(names, map(pa.array, flat.T.copy()), strict=True))


def flat_labels(channels: Sequence[Any], lengths: np.ndarray, ids: Sequence[Any]) -> pa.Array:
    """Join the channel labels [n_i] of all S series into one Arrow array of one type.

    Args:
        lengths: [S], the number of labels n_i that each series must have.
        ids: [S], names of the series for messages.

    Raises:
        InputError: another number of labels, a missing one, or labels of several types.
    """
    parts = []
    for i, part in enumerate(channels):
        name = f"channels of series {listed([ids[i]])}"
        column = cells.labels(listed_column(part, name), name)
        if len(column) != lengths[i]:
            raise InputError(f"{name}: {len(column)} labels for {lengths[i]} observations; give one for each.")
        if column.null_count:
            raise InputError(f"{name}: {column.null_count} labels are missing; give one for each observation.")
        if parts and column.type != parts[0].type:
            raise InputError(f"{name} are {column.type}, those of series before {parts[0].type}; give all in one type.")
        parts.append(column)
    return pa.concat_arrays(parts)
