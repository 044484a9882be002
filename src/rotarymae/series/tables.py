"""Tables of any kind → columns, and columns → plain numpy arrays that have been checked.

Three kinds of column are known: *labels* (ids, channels, classes: integers, floats, strings or booleans, never
missing), *numbers* (NaN where a cell is missing), and the times of `series.dates`.
Every function takes the column's name, so that its error can say where to look. Rows are counted from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, NoObservations, did_you_mean, listed

# ── frames ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_frame(frame: Any, what: str = "frame") -> nw.DataFrame[Any]:
    """A pandas, polars or Arrow table, seen through narwhals.

    Raises:
        InputError: anything else, a lazy frame, a table without rows, a column name used twice.
    """
    if type(frame).__module__.startswith("astropy.table"):
        frame = frame.to_pandas()
    try:
        seen = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputError(
            f"the {what} is of the type {type(frame).__module__}.{type(frame).__name__}; a pandas, polars, Arrow or "
            "astropy table was wanted. Collect a lazy frame with .collect(), make any other kind a data frame first, "
            "and read a file with SeriesDataset.from_file or rotarymae.series.read_table."
        ) from error
    except nw.exceptions.DuplicateError as error:
        twice = " ".join(str(error).split())
        raise InputError(f"the {what} has a column name more than once ({twice}); rename those columns.") from error
    if len(seen) == 0:
        raise NoObservations(
            f"the {what} has no rows (columns: {listed(seen.columns)}); there is nothing to learn from."
        )
    return seen


def is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_nested(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) or (is_list(kind) and pa.types.is_struct(kind.value_type))


def flat(table: pa.Table) -> pa.Table:
    """The fields of structs, and of lists of structs, as columns "column.field"; those of lists are lists."""
    while any(map(_is_nested, table.schema.types)):
        names, columns = [], []
        for name, column in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_struct(column.type):
                names += [f"{name}.{field.name}" for field in column.type.fields]
                columns += column.flatten()
            elif _is_nested(column.type):
                lists = to_arrow(column)
                entries = lists.flatten()
                offsets = pa.array(np.concatenate([[0], np.cumsum(list_lengths(lists))]))
                for i, field in enumerate(entries.type.fields):
                    names.append(f"{name}.{field.name}")
                    entry = pc.struct_field(entries, i)  # pyright: ignore
                    columns.append(pa.LargeListArray.from_arrays(offsets, entry))
            else:
                names.append(name)
                columns.append(column)
        table = pa.table(columns, names=names)
    return table


def decoded(kind: pa.DataType) -> pa.DataType:
    """The type of what a dictionary, or a list of dictionaries, stands for; another as it is."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if is_list(kind) and pa.types.is_dictionary(kind.value_type):
        return pa.large_list(kind.value_type.value_type)
    return kind


def list_lengths(lists: pa.Array) -> np.ndarray:
    """Entries of each list, int64 [n]; 0 where there is none."""
    lengths = pc.list_value_length(lists).fill_null(0)  # pyright: ignore
    return lengths.to_numpy(zero_copy_only=False).astype(np.int64)


def with_fields(frame: nw.DataFrame[Any], names: Sequence[str]) -> nw.DataFrame[Any]:
    """The frame with columns "column.field" for nested columns, where some of `names` are such."""
    tops = {name.split(".")[0] for name in names if isinstance(name, str) and name not in frame.columns}
    tops &= set(frame.columns)
    if not tops:
        return frame
    wanted = [name for name in frame.columns if name in tops or name in names]
    return nw.from_native(flat(pa.table({name: arrow_column(frame, name) for name in wanted})), eager_only=True)


def refuse_twice(names: Sequence[str], where: str) -> None:
    """Refuse a name that occurs twice."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"{where} names {listed(twice)} more than once; each column must have a name of its own.")


def need_columns(frame: nw.DataFrame[Any], roles: Sequence[tuple[str, str]], what: str = "frame") -> None:
    """Refuse a table that lacks a column, or a column that is asked for in two roles.

    Args:
        roles: (role, column name) pairs, e.g. ("time", "mjd").
    """
    wrong = [f"{role}={name!r}" for role, name in roles if not isinstance(name, str)]
    if wrong:
        raise InputError(f"column names are strings, but {', '.join(wrong)} came; give the name of a column.")
    missing = [(role, name) for role, name in roles if name not in frame.columns]
    if missing:
        said = " ".join(
            f"{role} column {name!r} is missing.{did_you_mean(name, frame.columns)}" for role, name in missing
        )
        raise InputError(f"{said} The {what} has the columns {listed(frame.columns, 20)}.")
    taken: dict[str, str] = {}
    for role, name in roles:
        if name in taken:
            raise InputError(f"column {name!r} is given twice, as {taken[name]} and as {role}; name each column once.")
        taken[name] = role


def arrow_column(frame: nw.DataFrame[Any], name: str) -> pa.Array:
    """One column as an Arrow array in one piece; refuses one of mixed type, or of a kind that Arrow cannot hold."""
    try:
        return to_arrow(frame.get_column(name).to_arrow())
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"column {name!r} holds values of mixed type, or of a type no table column can have ({reason}); "
            "convert the whole column to one type, for example all to strings or all to numbers."
        ) from error


def to_arrow(values: Any) -> pa.Array:
    """An Arrow array in one piece from an Arrow array, a numpy array or a list; codes of dictionaries are decoded."""
    if isinstance(values, np.ndarray) and values.dtype.byteorder in "<>":
        values = values.astype(values.dtype.newbyteorder("="))  # FITS files are big-endian, Arrow never is
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] in "YMWDhm":
        values = values.astype(f"{values.dtype.kind}8[s]")  # Arrow has dates of days, and spans of seconds or less
    array: Any = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    if is_list(array.type) and pa.types.is_dictionary(array.type.value_type):
        array = array.cast(pa.large_list(array.type.value_type.value_type))
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


# ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def missing_rows(column: pa.Array) -> np.ndarray:
    """Rows that are null or NaN, int64 [k]."""
    if not column.null_count and not pa.types.is_floating(column.type):
        return np.zeros(0, np.int64)
    return np.flatnonzero(column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))


def absent_labels(column: pa.Array) -> np.ndarray:
    """Where labels are missing: null, NaN or empty, bool [n]."""
    gone = np.zeros(len(column), bool)
    gone[missing_rows(column)] = True
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        gone |= pc.equal(column, "").fill_null(True).to_numpy(zero_copy_only=False)  # pyright: ignore
    return gone


def trimmed(column: pa.Array) -> pa.Array:
    """A column without the blanks around its texts; one that holds no text as it is."""
    kind = column.type
    if pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    return pc.call_function("utf8_trim_whitespace", [column])


def label_array(column: pa.Array, name: str, amounts: bool = False) -> pa.Array:
    """Labels (ids, channels, classes) as int64, double, string or bool, none of them missing.

    Args:
        amounts: they may be numbers to learn, and floats of any size; what tells series apart must be exact.

    Raises:
        InputError: null, NaN, infinite or empty labels (naming the first row and the count), floats above 2^53, or
            another type.
    """
    types = pa.types
    kind = column.type
    gone = missing_rows(column)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        column = column.cast(pa.large_string())
        if not len(gone):
            gone = np.flatnonzero(pc.equal(column, "").to_numpy(zero_copy_only=False))  # pyright: ignore
    if len(gone):
        raise InputError(
            f"column {name!r} is missing (null, NaN or empty) in {len(gone)} of {len(column)} rows, the first in row "
            f"{gone[0]}; fill the column or drop those rows."
        )
    if types.is_integer(kind):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InputError(f"column {name!r} holds integers beyond 64 bits; convert it to strings.") from error
    if types.is_floating(kind):
        column = column.cast(pa.float64())
        endless = np.flatnonzero(np.isinf(column.to_numpy()))
        if len(endless):
            raise InputError(f"column {name!r} is infinite in row {endless[0]}; a label must be finite.")
        rounded = [] if amounts else np.flatnonzero(np.abs(column.to_numpy()) > 2**53)
        if len(rounded):
            raise InputError(
                f"column {name!r} holds floating point numbers above 2^53 ({column[rounded[0]].as_py():.20g} in row "
                f"{rounded[0]}), which have lost their last digits, so that labels that differed may be one; read the "
                "column as integers or as strings."
            )
        return column
    if types.is_boolean(kind) or types.is_large_string(column.type):
        return column
    raise InputError(
        f"column {name!r} has the type {kind}; labels and ids must be integers, strings, floats or booleans. "
        "Convert the column to strings."
    )


def encode(labels: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Labels as numbers: (codes int64 [n], distinct labels [K] in order of first appearance)."""
    coded = labels.dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), label_values(coded.dictionary)


def label_values(labels: pa.Array) -> np.ndarray:
    """Labels as a numpy array: int64, float64, bool, or str objects (numpy's own strings are all as wide as the widest,
    and lose a NUL at their end)."""
    return labels.to_numpy(zero_copy_only=False).copy()  # Arrow's own memory is read-only


def numbers(column: pa.Array, name: str) -> np.ndarray:
    """A numeric column as float32 (if it was) or float64 [n], NaN where a cell is missing; booleans are 0 and 1.

    Raises:
        InputError: a column that is not numeric, naming its type and the first cell that is no number.
    """
    types = pa.types
    kind = column.type
    if types.is_float32(kind):
        return column.to_numpy(zero_copy_only=False)
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        raise InputError(
            f"column {name!r} is not numeric but {kind}{_first_text(column)}; convert it to numbers, or say that this "
            "means missing (missing_cells of SeriesDataset.from_file, --na)."
        )
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def without(column: pa.Array, codes: Sequence[str]) -> pa.Array:
    """The column, or the entries of its lists, with nulls for cells that are one of `codes`: as text, or as a number of
    the same value."""
    kind, compared = column.type, column
    if is_list(kind):
        offsets = pa.array(np.concatenate([[0], np.cumsum(list_lengths(column))]))
        return pa.LargeListArray.from_arrays(offsets, without(column.flatten(), codes))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        compared = column if pa.types.is_float32(kind) else column.cast(pa.float64(), safe=False)
        wanted = pa.array([float(code) for code in codes if is_number(code)], pa.float64()).cast(compared.type)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        wanted = pa.array(codes, kind)
    else:
        return column
    gone = pc.is_in(compared, value_set=wanted)  # pyright: ignore
    return pc.if_else(gone, pa.scalar(None, kind), column)  # pyright: ignore


def is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _first_text(column: pa.Array) -> str:
    """ " ('n/a' in row 3)": the first cell of a text column that cannot be read as a number."""
    for row, cell in enumerate(column.to_pylist()):
        if cell is not None and cell != "" and not is_number(cell):
            return f" ({cell!r} in row {row})"
    return ""


def explode(columns: dict[str, pa.Array]) -> tuple[dict[str, pa.Array], np.ndarray | None]:
    """Columns of lists as one row per entry, and the row [n] that each is from; columns without lists as they are.

    Raises:
        InputError: lists of one row that differ in length.
    """
    lists = [name for name, column in columns.items() if is_list(column.type)]
    if not lists:
        return columns, None
    lengths = {name: list_lengths(columns[name]) for name in lists}
    for name in lists[1:]:
        differs = np.flatnonzero(lengths[name] != lengths[lists[0]])
        if len(differs):
            row = differs[0]
            raise InputError(
                f"row {row} has {lengths[lists[0]][row]} entries in column {lists[0]!r} but {lengths[name][row]} in "
                f"{name!r}; the lists of a row must be equally long ({len(differs)} rows are not)."
            )
    rows = np.repeat(np.arange(len(lengths[lists[0]])), lengths[lists[0]])
    at = pa.array(rows)
    return {name: column.flatten() if name in lists else column.take(at) for name, column in columns.items()}, rows


def plain(label: Any) -> Any:
    """A label as JSON keeps it."""
    return label.item() if isinstance(label, np.generic) else label


def as_text(label: Any) -> str:
    """A label as a text file has it; a whole number without a point."""
    label = plain(label)
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
