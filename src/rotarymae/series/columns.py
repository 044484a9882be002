"""From a table's columns, or lists of arrays, to checked arrays: ids, times, channels, static values.

What is refused is named by column, series and row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rotarymae.errors import InputError, did_you_mean, listed
from rotarymae.series import cells as tables
from rotarymae.system import unmasked

ERROR_ENDINGS = ("_err", "_error", "err")
MAX_CHANGING = 0.01  # of the series; more that change a static column make it none


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


def refuse_twice(names: Sequence[str], where: str) -> None:
    """Refuse a name that occurs twice."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"{where} names {listed(twice)} more than once; each column must have a name of its own.")


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
    where: str,
    unknown: str = "error",
    whose: Callable[[int], str] = lambda row: f"row {row}",
) -> tuple[np.ndarray, tuple[Any, ...], dict[str, int]]:
    """Return channel labels [n] as (int32 indices [n], names, rows of each unknown channel).

    Names are sorted, or as given and nothing else; with unknown="drop" another channel has the index -2. A missing
    label has the index -1.
    """
    codes, distinct = tables.encode(labels)
    present = distinct.tolist()
    names = tuple(sorted(present)) if given is None else channel_names_of(given)
    # Whether a text file's 1 is a number or a text depends on what else stands in its column.
    place = {tables.as_text(name): k for k, name in enumerate(names)} | {name: k for k, name in enumerate(names)}
    at = [place.get(name, place.get(tables.as_text(name), -2)) for name in present]
    strange = [k for k, place in enumerate(at) if place < 0]
    if strange and unknown == "error":
        first = whose(int(np.argmax(codes == strange[0])))
        raise InputError(
            f"{where}: channel {listed(present[k] for k in strange)} (first in {first}) is not known; known channels "
            f"are {listed(names, 20)}.{did_you_mean(present[strange[0]], names)} Drop those rows, or train with that "
            "channel.",
            code="unknown-channel",
            settings=[("unknown_channels", "drop")],
        )
    counts = np.bincount(codes[codes >= 0], minlength=len(present))
    index = np.array([*at, -1], dtype=np.int32)[codes]
    return index, names, {str(present[k]): int(counts[k]) for k in strange}


def channel_names_of(given: Sequence[Any] | np.ndarray) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"channel_names is {given!r}; give a list of channels.")
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in given)
    if len(set(names)) != len(names):
        raise InputError(f"channel_names {listed(names)} names a channel twice; each must be given once.")
    return names


def static_column(
    column: pa.Array, name: str, series: np.ndarray, ids: np.ndarray, na: Sequence[str] = (), parse: bool = False
) -> tuple[np.ndarray, str | None]:
    """Return one value per series [S] from a column that repeats it on each row of the series, and a caution or None.

    Texts are numbers where they all look so and may be parsed (`parse`), as the cells of text files may. A cell that is
    missing says nothing; of few series with different values the first counts, many are refused.
    """
    column = tables.trimmed(column)
    kind = column.type
    if tables.is_text(kind) and na:
        column = tables.without(column, na)
    numeric = tables.is_numeric(kind) and not pa.types.is_integer(kind)
    if tables.is_text(kind):
        numeric = parse and tables.are_numbers(column)
    if pa.types.is_null(kind) or numeric or (pa.types.is_integer(kind) and column.null_count):
        cells = np.full(len(column), np.nan) if pa.types.is_null(kind) else tables.numbers(column, name, na).values
        if np.isinf(cells[series >= 0]).any():
            where = ids[np.unique(series[np.isinf(cells) & (series >= 0)])]
            raise InputError(f"static column {name!r} is infinite in series {listed(where)}.", code="unusable-cell")
        known = ~np.isnan(cells)
    else:
        labels = tables.labels(column, name)
        known = labels.is_valid().to_numpy(zero_copy_only=False)
        if parse and tables.is_text(kind):
            known = known & ~tables.missing_texts(column)
        cells = np.full(len(column), None, object) if not known.all() else tables.label_values(labels)
        if not known.all():
            cells[known] = tables.label_values(labels.filter(pa.array(known)))
    rows = np.flatnonzero(known & (series >= 0))
    seen, first = np.unique(series[rows], return_index=True)
    kept = np.full(
        len(ids), np.nan if cells.dtype.kind == "f" else None, cells.dtype if cells.dtype.kind == "f" else object
    )
    kept[seen] = cells[rows[first]]
    if len(seen) == len(ids) and cells.dtype != object:
        kept = kept.astype(cells.dtype)
    differs = cells[rows] != kept[series[rows]]
    if not differs.any():
        return kept, None
    row, several = rows[np.argmax(differs)], np.unique(series[rows][differs])
    text = (
        f"static column {name!r} changes within series {listed([ids[series[row]]])}: "
        f"{listed([kept[series[row]]])}, then {listed([cells[row]])} ({len(several)} series in all)"
    )
    if len(several) > MAX_CHANGING * len(ids):
        raise InputError(f"{text}; make it a value column, or fill in one value per series.", code="static-changes")
    return kept, f"{text}; the first counts."


def listed_column(values: Any, name: str) -> pa.Array:
    """A list or array as an Arrow array, refusing mixed types."""
    try:
        return tables.to_arrow(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} is of mixed type, or of one that no table holds ({str(error).splitlines()[0]}); give one."
        ) from error


def _whole(labels: pa.Array, name: str) -> pa.Array:
    """Refuse labels of which some are missing."""
    if labels.null_count:
        row = int(labels.is_null().to_numpy(zero_copy_only=False).argmax())
        raise InputError(
            f"column {name!r} is missing (null, NaN or empty) in {labels.null_count} of {len(labels)} rows, the first "
            f"in row {row}; fill the column or drop those rows.",
            code="missing-label",
        )
    return labels


def own_ids(ids: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Ids [S], refusing mixed types, missing ones and repeats."""
    labels = listed_column(ids if isinstance(ids, np.ndarray) else list(ids), "ids")
    codes, distinct = tables.encode(_whole(tables.labels(labels, "ids"), "ids"))
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
        column = _whole(tables.labels(listed_column(part, name), name), name)
        if len(column) != lengths[i]:
            raise InputError(f"{name}: {len(column)} labels for {lengths[i]} times; give one per observation.")
        if parts and column.type != parts[0].type:
            raise InputError(f"{name} are {column.type}, those before {parts[0].type}; give all in one type.")
        parts.append(column)
    return pa.concat_arrays(parts)
