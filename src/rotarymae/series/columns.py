"""From a table's columns, or lists of arrays, to checked arrays: ids, times, channels, static values.

What is refused is named by column, series and row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, did_you_mean, listed
from rotarymae.series import cells as tables
from rotarymae.system import unmasked

ERROR_ENDINGS = ("_err", "_error", "err")
MAX_CHANGING = 0.01  # of the series; more that change a static column make it none


def names_of(names: Sequence[str] | str, what: str, empty: bool = False) -> tuple[str, ...]:
    """Return column names as a tuple; a single string is one name. Raises InputError for anything else."""
    if not isinstance(names, str | Iterable):
        raise InputError(f"{what} is {names!r}; give column names.")
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names and not empty:
        raise InputError(f"{what} is empty; give at least one name.")
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise InputError(f"{what} holds {listed(wrong)}, which is no string; give column names.")
    return names


def refuse_twice(names: Sequence[str], where: str) -> None:
    """Raise InputError where a name occurs twice."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"{where} names {listed(twice)} more than once; each column must have a name of its own.")


def free_name(name: str, *taken: Iterable[str]) -> str:
    """Return a name for a column, with a mark added where the name is taken."""
    return name if not any(name in names for names in taken) else free_name(f"{name}'", *taken)


def error_columns(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs (value column, column of its standard errors), recognised by name.

    The errors of NAME are in NAME_err, NAME_error or NAMEerr, in either case.
    """
    by_name = {name.lower(): name for name in names}
    pairs = [(name, by_name.get(name.lower() + ending)) for name in names for ending in ERROR_ENDINGS]
    return [(name, error) for name, error in pairs if error is not None]


def channel_index(observed: Any) -> np.ndarray:
    """Return the channel number of each observation, from 0; zeros without channels."""
    return np.zeros(len(observed.times), np.int64) if observed.channels is None else np.asarray(observed.channels)


def channel_numbers(
    codes: np.ndarray,
    distinct: np.ndarray,
    given: Sequence[Any] | np.ndarray | None,
    where: str,
    unknown: str = "error",
    whose: Callable[[int], str] = lambda row: f"row {row}",
) -> tuple[np.ndarray, tuple[Any, ...], dict[str, int]]:
    """Number the channels of a table by name.

    Parameters
    ----------
    codes, distinct
        The channel of each row, as `encode` returns them.
    given
        The known channels, in their order; None sorts those that occur.
    unknown
        "error" raises for a channel that is not known; "drop" marks its rows.
    whose
        Names a row, for messages.

    Returns
    -------
    tuple
        Indices int32 [n], -1 where the label is missing and -2 where it is unknown; the names; and {unknown channel:
        rows}.
    """
    present = distinct.tolist()
    names = tuple(sorted(present)) if given is None else channel_names_of(given)
    # Whether a text file's 1 is a number or a text depends on what else stands in its column.
    place = {tables.as_text(name): k for k, name in enumerate(names)} | {name: k for k, name in enumerate(names)}
    at = [place.get(name, place.get(tables.as_text(name), -2)) for name in present]
    counts = np.bincount(codes[codes >= 0], minlength=len(present))
    strange = [k for k, place in enumerate(at) if place < 0 and counts[k]]
    if strange and unknown == "error":
        first = whose(int(np.argmax(codes == strange[0])))
        raise InputError(
            f"{where}: channel {listed(present[k] for k in strange)} (first in {first}) is not known; known channels "
            f"are {listed(names, 20)}.{did_you_mean(present[strange[0]], names)} Drop those rows, or train with that "
            "channel.",
            code="unknown-channel",
            settings=[("unknown_channels", "drop")],
        )
    index = np.array([*at, -1], dtype=np.int32)[codes]
    return index, names, {str(present[k]): int(counts[k]) for k in strange}


def channel_names_of(given: Sequence[Any] | np.ndarray) -> tuple[Any, ...]:
    """Return given channel names as a tuple of Python values. Raises InputError for no list or repeated names."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"channel_names is {given!r}; give a list of channels.")
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in given)
    if len(set(names)) != len(names):
        raise InputError(f"channel_names {listed(names)} names a channel twice; each must be given once.")
    return names


def plain_cells(column: pa.Array, name: str, na: Sequence[str], parse: bool, words: bool) -> pa.Array:
    """Return a column as labels or numbers, null where a cell is missing.

    Parameters
    ----------
    na
        Cells that mean "missing": texts, or numbers in any spelling.
    parse
        Whether texts that all look like numbers become numbers, as cells of text files should.
    words
        Whether the usual words for "missing", such as NA, mean that too.
    """
    column = tables.trimmed(column)
    if tables.is_text(column.type):
        column = tables.without(column, ("", *na))
        if parse and tables.are_numbers(column):
            column = tables.without_missing(column)
            return column.cast(pa.int64() if tables.are_integers(column) and not words else pa.float64())
        return tables.without_missing(column) if parse and words else column
    if tables.is_numeric(column.type):
        codes = pa.array([float(code) for code in na if tables.is_number(code)], pa.float64())
        gone = pc.or_(pc.is_in(column.cast(pa.float64(), safe=False), codes), column.is_null(nan_is_null=True))  # pyright: ignore
        column = pc.if_else(gone, pa.scalar(None, column.type), column)  # pyright: ignore
        column = column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
        return column.cast(pa.int64()) if pa.types.is_integer(column.type) and column.type != pa.uint64() else column
    return tables.labels(column, name)


def one_per_series(
    column: pa.Array, name: str, series: np.ndarray, ids: np.ndarray, tolerated: float = 0.0
) -> tuple[pa.Array, str | None]:
    """Return the first present cell of each series [S], null where there is none, and a warning text or None.

    Raises
    ------
    InputError
        Cells differ within more than the tolerated share of the series ("several-values").
    """
    codes = tables.encode(column)[0]
    rows = np.flatnonzero((codes >= 0) & (series >= 0))
    which, place = np.unique(series[rows], return_index=True)
    first = np.full(len(ids), -1)
    first[which] = rows[place]
    kept = column.take(pa.array(first, mask=first < 0))
    differs = codes[rows] != codes[first[series[rows]]]
    if not differs.any():
        return kept, None
    row = int(rows[np.argmax(differs)])
    several = np.unique(series[rows][differs])
    text = (
        f"column {name!r} has several values within series {listed(ids[several])}: "
        f"{listed(column.take(pa.array([first[series[row]], row])).to_pylist())} in {ids[series[row]]!r} "
        f"({len(several)} series in all)"
    )
    if len(several) > tolerated * len(ids):
        raise InputError(f"{text}; keep one value per series.", code="several-values")
    return kept, f"{text}; the first counts."


def static_values(cells: pa.Array) -> np.ndarray:
    """Return static cells as a numpy array; missing numbers are NaN, other missing cells None."""
    if tables.is_numeric(cells.type) and (cells.null_count or pa.types.is_floating(cells.type)):
        return cells.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    if pa.types.is_null(cells.type):
        return np.full(len(cells), np.nan)
    return tables.label_values(cells)


def static_column(
    column: pa.Array, name: str, series: np.ndarray, ids: np.ndarray, na: Sequence[str] = (), parse: bool = False
) -> tuple[np.ndarray, str | None]:
    """Return one value per series [S] of a column that repeats it on every row, and a warning text or None.

    Missing cells are ignored. Where a few series have different values their first one counts; many raise InputError.
    """
    cells = tables.by_distinct_text(column, lambda column: plain_cells(column, name, na, parse, words=True))
    if pa.types.is_floating(cells.type):
        infinite = np.isinf(cells.to_numpy(zero_copy_only=False)) & (series >= 0)
        if infinite.any():
            where = ids[np.unique(series[infinite])]
            raise InputError(f"static column {name!r} is infinite in series {listed(where)}.", code="unusable-cell")
    kept, caution = one_per_series(cells, name, series, ids, MAX_CHANGING)
    return static_values(kept), caution


# ── lists of arrays ─────────────────────────────────────────────────────────────────────────────────────────────────


def listed_column(values: Any, name: str) -> pa.Array:
    """Return a list or array as an Arrow array. Raises InputError for mixed types."""
    try:
        return tables.to_arrow(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} is of mixed type, or of one that no table holds ({str(error).splitlines()[0]}); give one."
        ) from error


def distinct_ids(ids: Sequence[Any] | np.ndarray) -> pa.Array:
    """Return ids [S] as an Arrow array. Raises InputError for mixed types, missing ids and repeats."""
    labels = tables.labels(listed_column(ids if isinstance(ids, np.ndarray) else list(ids), "ids"), "ids")
    if labels.null_count:
        row = labels.is_null().index(True).as_py()
        raise InputError(f"'ids' has {labels.null_count} that are missing, the first in row {row}.")
    if len(labels.unique()) != len(labels):
        twice = [entry["values"] for entry in labels.value_counts().to_pylist() if entry["counts"] > 1]
        raise InputError(f"{len(twice)} ids are given to more than one series: {listed(twice)}; ids must differ.")
    return labels


def numeric(values: Any, what: str, id: Any, ndim: int) -> np.ndarray:
    """Return one series' times [n] or values [n, V] as an array of numbers; times may be datetime64."""
    try:
        array = unmasked(values)
        array = array.astype(np.float64) if array.dtype == object or array.size == 0 else array
    except (TypeError, ValueError) as error:
        raise InputError(f"series {listed([id])}: {what} is no array of numbers ({error}).") from error
    array = array[:, None] if array.ndim == 1 and ndim == 2 else array
    if array.ndim != ndim or array.dtype.kind not in ("fiubMm" if what == "times" else "fiub"):
        raise InputError(
            f"series {listed([id])}: {what} is {array.dtype} of shape {array.shape}; numbers with {ndim} "
            f"{'axis' if ndim == 1 else 'axes'} were wanted."
        )
    as_is = array.dtype == np.float32 or array.dtype.kind in ("Mmiu" if what == "times" else "Mm")
    return array if as_is else array.astype(np.float64)


def flat_features(
    arrays: Sequence[Any], what: str, names: Sequence[str] | None, lengths: np.ndarray, ids: Sequence[Any]
) -> dict[str, pa.Array]:
    """Join arrays [n_i] or [n_i, V] of all series into V flat columns.

    Their names are `names`, or else `what`, or `what`_0, `what`_1, ... for several.
    """
    each = [numeric(part, f"{what}s", ids[i], 2) for i, part in enumerate(arrays)]
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
    return dict(zip(names, map(pa.array, np.concatenate(each).T.copy()), strict=True))


def flat_labels(channels: Sequence[Any], lengths: np.ndarray, ids: Sequence[Any]) -> pa.Array:
    """Join the channel labels of all series into one Arrow array of one type."""
    parts = []
    for i, part in enumerate(channels):
        name = f"channels of series {listed([ids[i]])}"
        column = tables.labels(listed_column(part, name), name)
        if len(column) != lengths[i] or column.null_count:
            raise InputError(f"{name}: {len(column)} labels for {lengths[i]} times; give one per observation.")
        if parts and column.type != parts[0].type:
            raise InputError(f"{name} are {column.type}, those before {parts[0].type}; give all in one type.")
        parts.append(column)
    return pa.concat_arrays(parts)
