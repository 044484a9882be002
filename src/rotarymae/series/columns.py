"""Names of columns, and lists of arrays, one per series, as columns; what is refused is named by series."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from rotarymae.errors import InputError, listed
from rotarymae.series import cells
from rotarymae.system import unmasked

ERROR_ENDINGS = ("_err", "_error", "err", "_unc", "_sigma")
ERROR_BEGINNINGS = ("e_", "err_", "sigma_")
MAGNITUDE = re.compile(r"mags?(?![a-z])|mag(ap|auto|cal|corr|lim|nitud|psf)")
UNIT = re.compile(r"\s*(\[[^]]*\]|\([^)]*\))$")


def refuse_twice(names: Sequence[str], where: str) -> None:
    """Raise InputError if a name occurs twice in `names`; the message calls the list `where`, such as "value_names"."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"{where} names {listed(twice)} more than once; each column must have a name of its own.")


def free_name(name: str, *taken: Iterable[str]) -> str:
    """Append apostrophes to `name` until it is in none of the collections `taken`; return it."""
    return name if not any(name in names for names in taken) else free_name(f"{name}'", *taken)


def error_columns(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs (value column, column of its standard errors), recognised by name, in the order of `names`.

    The errors of NAME are in NAME_err, NAME_error, NAMEerr, NAME_unc, NAME_sigma, e_NAME, err_NAME or sigma_NAME,
    whatever the case, and whatever unit stands behind a name, as in "flux [Jy]". If several of these are there, each
    makes a pair; a value column with none of them is in no pair.
    """
    bare = {name: UNIT.sub("", name).lower() for name in names}
    by_name = {called: name for name, called in bare.items()}
    pairs = []
    for name, called in bare.items():
        marked = [called + end for end in ERROR_ENDINGS] + [beginning + called for beginning in ERROR_BEGINNINGS]
        pairs += [(name, by_name[error]) for error in marked if error in by_name]
    return pairs


def says_magnitude(name: str) -> bool:
    """Return whether a column's name says magnitudes, as mag, Vmag and magpsf do; image and magnetic do not."""
    return MAGNITUDE.search(name.lower()) is not None


def channel_index(observed: Any) -> np.ndarray:
    """Return the channel number of each of n observations, int [n] from 0; zeros if there are no channels.

    Args:
        observed: a `SeriesDataset`, `Series`, `Columns` or `Observations`.
    """
    return np.zeros(len(observed.times), np.int64) if observed.channels is None else np.asarray(observed.channels)


def by_channel(observed: Any) -> list[np.ndarray]:
    """Return for each channel the indices of its observations, int, ascending; without channels, one array of all.

    Args:
        observed: a `SeriesDataset`, `Series`, or `Observations` in which no channel is missing.
    """
    channels = channel_index(observed)
    order = np.argsort(channels, kind="stable")
    return np.split(order, np.searchsorted(channels[order], np.arange(1, len(observed.channel_names or (None,)))))


def measured(observed: Any) -> np.ndarray:
    """Return the values [n, V] with NaN in place of limits, which are only known to lie below or above a number ("<5").

    Without limits, this is the array `observed.values` itself, not a copy.

    Args:
        observed: a `SeriesDataset`, `Series`, `Columns` or `Observations`.
    """
    return observed.values if observed.sides is None else np.where(observed.sides == 0, observed.values, np.nan)


# ── lists of arrays ─────────────────────────────────────────────────────────────────────────────────────────────────


def listed_column(values: Any, name: str) -> pa.Array:
    """Convert a list or array to an Arrow array by `cells.to_arrow`; `name` is its name in messages.

    Raises InputError if it is no list or array, or if its values are of mixed types or of a type that Arrow lacks.
    """
    try:
        return cells.to_arrow(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name}: the values are of mixed types, or of one that no table can hold ({str(error).splitlines()[0]}); "
            "give only numbers, only strings, only dates or only booleans."
        ) from error


def distinct(given: Any, name: str) -> pa.Array:
    """Convert a list of ids or channel names, none of which may repeat, to an Arrow array.

    Its type is int64, double, large_string or bool, see `cells.labels`. Raises InputError, with the list's name `name`,
    if it is no list or an empty one, if an entry is missing or repeats, if types are mixed, or if numbers are too large
    to be exact.
    """
    no_list = isinstance(given, str) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0
    labels = () if no_list else given
    labels = labels if isinstance(labels, np.ndarray) else list(labels)
    if not len(labels):
        raise InputError(f"{name} is {given!r}; give a list with at least one entry.")
    labels = cells.labels(listed_column(labels, name), name)
    twice = [entry["values"] for entry in labels.value_counts().to_pylist() if entry["counts"] > 1]
    if labels.null_count or twice:
        wrong = f"{listed(twice)} is given twice" if twice else f"{labels.null_count:,} are missing"
        raise InputError(
            f"{name} hold repeated or missing entries: {wrong}. Give a list whose entries all differ, none missing."
        )
    return labels


def flat_arrays(
    arrays: Sequence[Any], what: str, ids: Sequence[Any], axes: int = 2, lengths: Sequence[int] | None = None
) -> np.ndarray:
    """Join the arrays of all series, one behind the other, into one array; masked values and None become NaN.

    Args:
        arrays: for each series an array of n_i rows: [n_i], or [n_i, V] with the same V; with axes=1 only [n_i]. At
            least one.
        what: what the arrays hold, such as "times", for messages.
        ids: names of the series, for messages.
        axes: number of axes of the result, 1 or 2; with 1 the numbers may also be dates or durations; dates
            with a time zone are converted to UTC.
        lengths: the number of rows n_i that each array must have; None for any.

    Returns:
        With axes=2 an array [n, V] of the n rows of all series, where V is 1 for arrays [n_i]; with axes=1 an array
        [n]. Its type is numpy's common one for arrays that are not empty.

    Raises:
        InputError: an array without numbers, or with the wrong shape or number of rows; a mix of arrays of numbers,
            dates and durations.
    """
    parts = []
    for i, (id, values) in enumerate(zip(ids, arrays, strict=True)):
        try:
            array = unmasked(values)
            if axes == array.ndim == 1 and array.dtype == object:
                present = [one if one == one else None for one in array.flat]  # NaT is none
                if all(isinstance(one, date | timedelta | None) for one in present):
                    array = listed_column(present, what).to_numpy(zero_copy_only=False)
            array = array.astype(np.float64) if array.dtype == object or array.size == 0 else array
        except (TypeError, ValueError) as error:
            expected = "numbers" if axes == 2 else "numbers, dates or durations"
            text = f"series {listed([id])}: {what} is no array of {expected} ({error}); convert it."
            raise InputError(text) from error
        usual = 0 < array.ndim <= axes and array.dtype.kind in ("fiubMm" if axes == 1 else "fiub")
        array = array[:, None] if usual and array.ndim < axes else array
        first = parts[0] if parts else array
        fits = usual and array.shape[1:] == first.shape[1:] and (lengths is None or len(array) == lengths[i])
        if not fits:
            rows, kind = "n" if lengths is None else lengths[i], "numbers" if axes == 2 else "numbers or times"
            wider = f" or [{rows}, columns], with as many columns in all series" if axes == 2 else ""
            raise InputError(
                f"series {listed([id])}: {what} is {array.dtype} of shape {array.shape}; give {kind} of shape "
                f"[{rows}]{wider}."
            )
        parts.append(array)
    filled = [part for part in parts if len(part)] or parts  # an empty list has no type
    kinds = list(dict.fromkeys({"M": "dates", "m": "durations"}.get(part.dtype.kind, "numbers") for part in filled))
    if len(kinds) > 1:
        raise InputError(f"{what} are {' in some series and '.join(kinds)} in others; give one kind in all series.")
    return np.concatenate(filled)


def named_columns(flat: np.ndarray, what: str, names: Sequence[str] | None) -> dict[str, pa.Array]:
    """Split an array [n, V] into its V columns; return {name: column [n]}.

    Args:
        what: "value" or "position".
        names: V names, or one text if V is 1. None makes names from `what`: value_0, value_1, ..., or position_0, ...;
            a single value column is called "value".

    Raises:
        InputError: a name that repeats; more or fewer names than V.
    """
    usual = [what] if flat.shape[1] == 1 and what == "value" else [f"{what}_{v}" for v in range(flat.shape[1])]
    names = usual if names is None else (names,) if isinstance(names, str) else tuple(names)
    refuse_twice(names, f"{what}_names")
    if len(names) != len(usual):
        raise InputError(f"{what}_names has {len(names)} names for {len(usual)} columns; give one name per column.")
    return dict(zip(names, map(pa.array, flat.T.copy()), strict=True))


def flat_labels(channels: Sequence[Any], lengths: Sequence[int], ids: Sequence[Any]) -> pa.Array:
    """Join the channel labels of all series, one behind the other, into one Arrow array with a label per observation.

    Args:
        channels: for each series a list or array [n_i] of labels.
        lengths: the number of observations n_i of each series.
        ids: names of the series, for messages.

    Raises:
        InputError: more or fewer labels than observations; labels of several types, in one series or between them.
    """
    parts = [listed_column(part, f"channels of series {listed([id])}") for id, part in zip(ids, channels, strict=True)]
    for id, part, length in zip(ids, parts, lengths, strict=True):
        if len(part) != length or part.type != parts[0].type:
            raise InputError(
                f"channels of series {listed([id])}: {len(part)} labels of the type {part.type} for {length} "
                f"observations; give one per observation, all of the type {parts[0].type} of the first series."
            )
    return pa.concat_arrays(parts)
