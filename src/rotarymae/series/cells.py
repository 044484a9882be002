"""Columns of tables as plain arrays of labels and numbers.

A text that is no number becomes NaN, and is counted by what it was; a label that is missing becomes null. A column is
refused if its type cannot hold what is wanted, if it has texts but no number, or if its labels are too large to be
exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, listed

_WORDS = ("", "NA", "N/A", "NaN", "-NaN", "Null", "None", "<NA>", "#N/A", "#NA", "#VALUE!", "-", "--", "---", ".")
MISSING = tuple({spelt: word for word in _WORDS for spelt in (word, word.upper(), word.lower())})  # Na is sodium
MISSING_NUMBER = "MM"  # as meteorologists write it, but among lengths "mm" is a unit
NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^[-+]?(?i:inf|infinity)$"
DECIMAL_COMMA = r"^[-+]?\d*,\d+([eE][-+]?\d+)?$"
THOUSANDS = r"^[-+]?[1-9]\d{0,2}(,\d{3})+$"  # where there is one comma, it may be a decimal comma, too
MIN_THOUSANDS = 10  # such cells, next to whole numbers below 1,000, that show what the comma is
MIN_CODED, MAX_CODES = 20, 3  # cells such as 10127,5 whose last digits are different codes rather than tenths
SPACED = r"^[-+]?\d{1,3}([ '’\x{00a0}\x{202f}]\d{3})+([.,]\d+)?$"  # 1 234,5 and 1'234.5
MARKED = r"[-+]?[.,]?\d(?:[\d.,'’ \x{00a0}\x{202f}]*[\d.,])?(?:[eE][-+]?\d+)?"  # a number with any marks
BEFORE_UNIT = rf"^({MARKED})\s*([%°µμA-Za-z\p{{Sc}};][^\d]{{0,15}})$"  # 5.1 mg/dL, 5,10 € and 5.1;
MINUS_BEHIND = r"^([.,]?\d[\d.,'’ \x{00a0}\x{202f}]*?)\s?[-−–]$"  # 1.234,56- as SAP writes it
UPPER, LOWER = (rf"^[{mark}]=?\s*([-+−]?[.,]?\d.*)$" for mark in ("<≤", ">≥"))  # limits: the rest is a number
OTHER_LETTERS = re.compile(r"[^\W\d_年月日時分秒]")
MAX_WORD = 60  # characters of a cell that is named


@dataclass(frozen=True)
class Numbers:
    """A column of n cells as numbers.

    Attributes:
        values: [n], NaN where a cell is missing or no number; float32 if the column was, else float64. They may be
            Arrow's memory, which is read-only.
        words: {text: count} of the cells that are neither numbers nor missing; texts are cut to 60 characters.
        note: a text on what was assumed of decimal marks or units; None if nothing was.
        sides: int8 [n], -1 where the cell says that the quantity lies below `values` ("<0.01"), 1 where it lies above
            (">0.01"), 0 elsewhere. None if no cell is such a limit.
    """

    values: np.ndarray
    words: dict[str, int] = field(default_factory=dict)
    note: str | None = None
    sides: np.ndarray | None = None


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is a string type: string, large_string or string_view."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def is_list(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is a list type, of variable or fixed length."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def is_numeric(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is integer, floating point or decimal; bool is not."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def to_arrow(values: Any) -> pa.Array:
    """Convert values to one contiguous Arrow array.

    Dictionary-encoded values are decoded, string_view becomes large_string, and numpy's dates and durations in units
    longer than a second become timestamps and durations in seconds. None becomes null; NaN in numpy arrays stays NaN.

    Args:
        values: a numpy array, a list, or an Arrow array, chunked or not.

    Raises:
        ArrowException, TypeError, ValueError, OverflowError: raised by pyarrow.array for values of mixed types, of a
            type that Arrow lacks, or with several axes.
    """
    if isinstance(values, np.ndarray) and values.dtype.byteorder in "<>":
        values = values.astype(values.dtype.newbyteorder("="))  # FITS files are big-endian, Arrow never is
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM" and np.datetime_data(values.dtype)[0] in "YMWDhm":
        values = values.astype(f"{values.dtype.kind}8[s]")  # Arrow has dates of days, and spans of seconds or less
    array: Any = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    if is_list(array.type) and pa.types.is_dictionary(array.type.value_type):
        array = array.cast(pa.large_list(array.type.value_type.value_type))
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # beyond 2 GB of text
        array = array.cast(pa.large_string()).combine_chunks()
    array = array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array
    return array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array


def trimmed(column: pa.Array) -> pa.Array:
    """Strip whitespace from both ends of each text in a column; return a column of another type unchanged."""
    return pc.call_function("utf8_trim_whitespace", [column]) if is_text(column.type) else column


def with_usual_digits(column: pa.Array) -> pa.Array:
    """Write digits of other scripts in a column of texts as 0 to 9, and their decimal marks as "." and ",".

    Texts with letters are unchanged (年, 月, 日, 時, 分 and 秒 of dates are no letters here), as are other columns.
    """
    if not is_text(column.type) or pc.all(pc.string_is_ascii(column)).as_py() in (True, None):  # pyright: ignore
        return column
    codes, texts = encode(column)
    plain = [text if OTHER_LETTERS.search(text) else _usual_digits(text) for text in texts.to_pylist()]
    return pa.array([*plain, None], column.type).take(pa.array(np.where(codes < 0, len(plain), codes)))


def _usual_digits(text: str) -> str:
    """Write digits of any script in a text as 0 to 9, and Arabic and full-width marks as ".", "," and the like.

    Full-width signs are those of East Asian keyboards, such as "：" and "／".
    """
    text = re.sub(r"\d", lambda digit: str(int(digit[0])), text).replace("٫", ".").replace("٬", ",")
    return re.sub("[！-～]", lambda sign: chr(ord(sign[0]) - ord("！") + ord("!")), text)


def matches(column: pa.Array, pattern: str) -> np.ndarray:
    """Return a mask [n], True where a text contains a match of a regular expression (RE2); False where it is null."""
    return pc.match_substring_regex(column, pattern).fill_null(False).to_numpy(zero_copy_only=False)  # pyright: ignore


def where(mask: np.ndarray, column: pa.Array) -> pa.Array:
    """Replace the cells of a column [n] by null where the mask, bool [n], is False."""
    return pc.if_else(pa.array(mask), column, pa.scalar(None, column.type))  # pyright: ignore


def without(column: pa.Array, words: Sequence[str]) -> pa.Array:
    """Replace each cell that equals one of the words, letter by letter, by null."""
    wrong = pc.is_in(column, value_set=pa.array(words, column.type))  # pyright: ignore
    return pc.if_else(wrong, pa.scalar(None, column.type), column)  # pyright: ignore


def without_missing(column: pa.Array, na: Sequence[str] = ()) -> pa.Array:
    """Replace cells of a column of texts that mean "missing" by null.

    These cells equal a word of `MISSING`, such as "", "NA", "null" and "-", or of `na`, letter by letter: " NA" stays.
    """
    return without(column, (*MISSING, *na))


def counted(cells: pa.Array, mask: np.ndarray) -> dict[str, int]:
    """Count equal texts where the mask, bool [n], is True; return {text: count}, the most frequent first.

    None of these texts may be null. They are cut to 60 characters before they are counted.
    """
    table = pc.value_counts(pc.utf8_slice_codeunits(cells.filter(pa.array(mask)), 0, MAX_WORD))  # pyright: ignore
    pairs = [(entry["values"], entry["counts"]) for entry in table.to_pylist()]
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def numbers(column: pa.Array, name: str, na: Sequence[str] = (), limits: bool = False) -> Numbers:
    """Convert a column of numbers, booleans or texts to floats; true and false become 1 and 0.

    Texts may have decimal commas, marks between thousands, or a unit ("1.234,5", "5 mg"), if the column as a whole
    shows what these mean. The texts "true" and "false" become 1 and 0 if the column has no other texts.

    Args:
        column: a column of numbers, booleans, texts or nulls.
        name: of the column, for messages.
        na: further cells that mean "missing", next to `MISSING` ("NA", "-", ...): texts, compared letter by letter, or
            numbers in any spelling ("-999" also stands for -999.0; "5" does not stand for the limit "<5"). "MM" means
            "missing" in any column that has numbers.
        limits: True reads a text such as "<0.01" as a limit of the value; False counts it as no number.

    Returns:
        `Numbers`: the values, NaN where a cell is missing or no number; the count of each text that is neither
        (`words`); a note on marks and units; and for each value whether it is a limit (`sides`).

    Raises:
        InputError: a column of texts has no number, and some of its texts are not missing; or the column is of another
            type, such as dates (code "not-numeric").
    """
    kind = column.type
    if is_text(kind):
        read = _parse_numbers(column, name, na, limits)
    elif pa.types.is_float32(kind):
        read = Numbers(column.to_numpy(zero_copy_only=False))
    elif is_numeric(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        column = column.cast(pa.int8()) if pa.types.is_boolean(kind) else column
        read = Numbers(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    else:
        raise InputError(f"column {name!r} is not numeric but {kind}; convert it to numbers.", code="not-numeric")
    kind = read.values.dtype
    if codes := [np.asarray(float(code)).astype(kind) for code in na if is_number(code)]:
        gone = np.isin(read.values, codes) & (True if read.sides is None else read.sides == 0)
        read = replace(read, values=np.where(gone, np.nan, read.values).astype(kind))
    return read


def _parse_numbers(column: pa.Array, name: str, na: Sequence[str], limits: bool) -> Numbers:
    """Convert a column of texts to `Numbers`: numbers, limits ("<0.01", if `limits` is True) and missing cells.

    It does the part of `numbers` for texts; the spellings are explained there. Other texts become NaN, and are counted.
    Cells that equal a word of `MISSING` or `na` are missing; but numbers among these words, such as "-999", may still
    be numbers in the result, and `numbers` removes them. `name` is the column's name, for messages. Raises InputError
    (code "not-numeric") if some texts are not missing, and none of them is a number.
    """
    for cells in (column, without_missing(trimmed(column), na)):
        with suppress(pa.ArrowInvalid):
            return Numbers(cells.cast(pa.float64()).to_numpy(zero_copy_only=False))
    if (truths := matches(cells, "^(?i:true|false)$")).any() and truths.sum() == len(cells) - cells.null_count:
        return numbers(cells.cast(pa.bool_()), name)
    texts, sides = cells, np.zeros(len(cells), np.int8)
    for side, pattern in ((-1, UPPER), (1, LOWER)) if limits else ():
        sides[matches(cells, pattern)] = side
        cells = _replaced(cells, pattern, r"\1")
    cells = _replaced(cells, "^[−–]", "-")
    behind = matches(cells, MINUS_BEHIND).any() and not matches(cells, r"\d\+$").any()  # but marks such as 2+ and 2-
    cells = _replaced(cells, MINUS_BEHIND, r"-\1") if behind else cells
    cells = _replaced(cells, r"^([-+]?\d*\.?\d*)[dD]([-+]?\d+)$", r"\1e\2")  # Fortran's 1.5D+02
    cells, unit = _without_unit(cells)
    cells, marks = _with_points(cells)
    signs = "minus signs behind numbers" if behind else None
    good, note = matches(cells, NUMBER), ", ".join(filter(None, (signs, unit, marks)))
    note = f"column {name!r}: {note}" if note else None
    strange = ~good & cells.is_valid().to_numpy(zero_copy_only=False)
    strange &= ~(good.any() & matches(cells, f"^{MISSING_NUMBER}$"))
    if not good.any() and strange.any():
        words = listed(list(counted(cells, strange))[:5])
        raise InputError(
            f"column {name!r} holds text and no numbers: {words}; convert it, or name another column.",
            code="not-numeric",
        )
    values = where(good, cells).cast(pa.float64()).to_numpy(zero_copy_only=False)
    sides[~good] = 0
    return Numbers(values, counted(texts, strange), note, sides if sides.any() else None)


def _replaced(column: pa.Array, pattern: str, by: str, only: str | None = None) -> pa.Array:
    """Replace each match of the regular expression `pattern` in a column of texts by `by`, which may refer to groups.

    If `only` is given, another regular expression, then only texts that have a match of it are changed.
    """
    replaced = pc.replace_substring_regex(column, pattern, by)  # pyright: ignore
    return replaced if only is None else pc.if_else(pa.array(matches(column, only)), replaced, column)  # pyright: ignore


def _without_unit(cells: pa.Array) -> tuple[pa.Array, str | None]:
    """Remove the unit behind the numbers in a column of texts, or the currency before them: "5 mg" and "$5" become "5".

    - If every number has a unit, and all have the same one, it is removed.
    - Otherwise units stay, but a currency is moved behind its number ("$5" becomes "5 $").

    Texts that are no numbers stay, and do not matter.

    Returns:
        The texts, and a note that names the unit; None if no unit was removed.
    """
    cells = _replaced(cells, r"^([-+]?)([A-Z]{0,3}\p{Sc})\s*(\d.*)$", r"\1\3 \2")  # -$5 and US$5
    measured, bare = matches(cells, BEFORE_UNIT), matches(cells, rf"^{MARKED}$")
    if not measured.any() or bare.any():
        return cells, None
    units = counted(pc.replace_substring_regex(cells, BEFORE_UNIT, r"\2"), measured)  # pyright: ignore
    if len(units) > 1:
        return cells, None
    return _replaced(cells, BEFORE_UNIT, r"\1"), f"cells are in {next(iter(units))}"


def alike(labels: pa.Array) -> list[Any]:
    """Return the labels that differ from another label only by case, in their order: ["g", "r", "G"] → ["g", "G"].

    Args:
        labels: distinct labels without nulls. If they are no texts, the list is empty.
    """
    if not is_text(labels.type):
        return []
    codes, _ = encode(pc.utf8_lower(labels))  # pyright: ignore
    return labels.filter(pa.array(np.bincount(codes)[codes] > 1)).to_pylist()


def _with_points(cells: pa.Array) -> tuple[pa.Array, str | None]:
    """Convert numbers such as "1.234,5" or "1,234.5" to "1234.5", where the column shows which mark is the decimal one.

    If it does not, commas stay, as "1,234" by itself may be one thousand or not. Blanks and apostrophes between
    thousands ("1 234") are removed in any case.

    Returns:
        The texts, and a note on which marks were assumed; None if no text was changed.
    """
    note = None
    if matches(cells, SPACED).any():
        cells, note = _replaced(cells, r"[ '’\x{00a0}\x{202f}]", "", SPACED), "marks between thousands"
    grouped = matches(cells, THOUSANDS)
    english = matches(cells, r"^[-+]?\d{1,3}(,\d{3})+\.\d+$|^[-+]?\d{1,3}(,\d{3}){2,}$").any()
    german = matches(cells, r"^[-+]?\d{1,3}(\.\d{3})+,\d+$|^[-+]?\d{1,3}(\.\d{3}){2,}$").any()
    decimal = (matches(cells, DECIMAL_COMMA) & ~grouped).any() and not _have_codes(cells)
    pointed = matches(cells, r"\d\.\d").any()
    if not (english or german or decimal or pointed):
        small = matches(cells, r"^[-+]?\d{1,3}$")
        english = bool(grouped.sum() >= MIN_THOUSANDS and small.any() and not matches(cells, r"^[-+]?\d{4,}$").any())
    if english and not (german or decimal):
        return _replaced(cells, ",", "", r"^[-+]?\d{1,3}(,\d{3})+(\.\d*)?$"), "commas between thousands"
    if german and not english:
        cells = _replaced(cells, r"\.", "", r"^[-+]?\d{1,3}(\.\d{3})+(,\d*)?$")
        return _replaced(cells, ",", ".", DECIMAL_COMMA), "points between thousands, decimal commas"
    if decimal and not pointed:
        return _replaced(cells, ",", "."), "decimal commas"
    if decimal and (matches(cells, r"^[-+]?\d*\.\d+$") & ~matches(cells, r"^[-+]?[1-9]\d{0,2}\.\d{3}$")).any():
        with_points = pc.replace_substring(cells, ",", ".")  # pyright: ignore
        alone = matches(cells, DECIMAL_COMMA) & ~grouped  # as in the texts of a sheet that has numbers, too
        return pc.if_else(pa.array(alone), with_points, cells), "decimal points and commas"  # pyright: ignore
    return cells, note


def have_decimal_commas(texts: Iterable[str], between_commas: bool) -> bool:
    """Return whether the texts of a table show that its decimal mark is the comma.

    They do if one is a number with a comma, such as 1,5, and none has a decimal point, such as 1.5. A point as in 1.234
    may separate thousands, and does not count. If some number has both marks, as 1.234,5, points are ignored.

    Args:
        texts: cells of all columns, without blanks around them; a minus may stand behind a number ("1,5-").
        between_commas: whether commas also separate the cells, so that a comma within quotes must be unmistakable.
            Numbers such as 1,234 (perhaps one thousand) and 10127,5 (perhaps a number and a code) then do not count.
    """
    comma = r"-?(0|[1-9]\d*)?,\d+" if between_commas else r"-?\d*,\d+([eE][-+]?\d+)?"
    unlike = r"\d{4,},\d|-?[1-9]\d{0,2},\d{3}" if between_commas else "(?!)"
    point = r"-?(?![1-9]\d{0,2}(\.\d{3})+$)\d*\.\d+([eE][-+]?\d+)?"  # 1.234 may be one thousand
    plain = {text.removesuffix("-").rstrip() for text in texts}
    with_comma = any(re.fullmatch(comma, text) and not re.fullmatch(unlike, text) for text in plain)
    with_both = any(re.fullmatch(r"-?\d{1,3}(\.\d{3})+,\d+", text) for text in plain)
    return with_comma and (with_both or not any(re.fullmatch(point, text) for text in plain))


def _have_codes(cells: pa.Array) -> bool:
    """Return whether texts such as "10127,5" are two numbers, the second a quality code, rather than decimal numbers.

    The answer is True in each of these cases:

    - A first number begins with a 0, as in "+0146,5".
    - At least 20 texts have a comma, all of them like "10127,5" (four digits or more, a comma, one digit), and the last
      digits are at most three different ones, none of them 0: tenths would include 0.
    """
    if matches(cells, r"^[-+]?0\d+,").any():
        return True
    coded, commas = (cells.filter(pa.array(matches(cells, each))) for each in (r"^[-+]?\d{4,},\d$", DECIMAL_COMMA))
    codes = pc.utf8_slice_codeunits(coded, -1).unique().to_pylist()  # pyright: ignore
    return len(commas) == len(coded) >= MIN_CODED and len(codes) <= MAX_CODES and "0" not in codes


def is_code(number: float) -> bool:
    """Return whether a number is written as two to ten nines, such as -999 or 99.99, a code for "not observed"."""
    return re.fullmatch(r"-?9*\.?9+", text := f"{number:.10g}") is not None and text.count("9") > 1


def is_number(cell: Any) -> bool:
    """Return whether Python's float() accepts the cell, such as "1e5", "nan" and " 7 "."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


# ── labels ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def labels(column: pa.Array, name: str) -> pa.Array:
    """Convert a column of ids or channels to int64, double, large_string or bool, with null where a cell is missing.

    Texts lose the whitespace around them. Nulls, empty texts, NaN and infinity are missing; words such as "NA" are
    labels. Floats become int64 if some are missing and all others whole, since pandas makes floats of such integers; a
    column of nulls becomes large_string.

    Args:
        name: of the column, for messages.

    Raises:
        InputError: integers beyond int64; floats beyond 2^53 (float32: 2^24), where whole numbers are not exact; a
            column of another type.
    """
    kind, types = column.type, pa.types
    if is_text(kind):
        column = trimmed(column).cast(pa.large_string())
        return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)  # pyright: ignore
    if types.is_null(kind):
        return column.cast(pa.large_string())
    if types.is_integer(kind):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InputError(f"column {name!r} holds integers beyond 64 bits; convert it to strings.") from error
    if types.is_floating(kind):
        cells = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        missing = ~np.isfinite(cells)
        bits = np.finfo(kind.to_pandas_dtype()).nmant + 1
        rounded = np.flatnonzero(np.abs(np.where(missing, 0, cells)) > 2**bits)
        if len(rounded):
            raise InputError(
                f"column {name!r} holds floating point numbers above 2^{bits} ({cells[rounded[0]]:.20g} in row "
                f"{rounded[0]}), whose last digits are lost, so that different numbers may now be equal; read the "
                "column as integers or as strings."
            )
        # Integers with a gap become floats in pandas.
        whole = missing.any() and (cells[~missing] == np.rint(cells[~missing])).all()
        array = pa.array(np.where(missing, 0, cells), pa.float64(), mask=missing)
        return array.cast(pa.int64()) if whole else array
    if types.is_boolean(kind):
        return column
    raise InputError(
        f"column {name!r} has the type {kind}; labels and ids must be integers, strings, floats or booleans. "
        "Convert the column to strings."
    )


def typed(texts: pa.Array, integers: bool = True) -> pa.Array:
    """Convert a column of texts to numbers if every text is a number without whitespace; null stays null.

    A text with a leading zero, such as "01", is no number; "inf" is one.

    Args:
        integers: True gives int64 if all numbers are whole ("1", but not "1.0") and have at most 18 digits. Otherwise,
            and with False, they become float64.

    Returns:
        The numbers; the column itself if some text is no number, or all cells are null.
    """
    known = texts.drop_null()
    if integers and len(known) and matches(known, r"^(0|-?[1-9][0-9]{0,17})$").all():
        return texts.cast(pa.int64())
    good = matches(known, NUMBER) & ~matches(known, r"^[-+]?0\d")
    return texts.cast(pa.float64()) if len(known) and good.all() else texts


def as_integers(column: pa.Array) -> pa.Array:
    """Convert a column of texts to int64 if every text is a whole number or empty, and at least one is a number.

    A whole number is written as 12, not 012 or 12.0; whitespace may be around it. Empty texts become null. Any other
    column is returned unchanged.
    """
    if not is_text(column.type):
        return column
    head = labels(column[:1000], "").drop_null()
    if len(head) and not pa.types.is_int64(typed(head).type):  # a long column of names
        return column
    coded = column.dictionary_encode()
    whole = typed(labels(coded.dictionary, ""))
    return whole.take(coded.indices) if pa.types.is_int64(whole.type) else column


def encode(column: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Number the distinct cells of a column: return codes int64 [n], -1 where null, and the distinct cells.

    A code is the index of its cell among the distinct cells, which are in order of first appearance.
    """
    coded = column.dictionary_encode()
    return coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary


def encode_labels(column: pa.Array, name: str) -> tuple[np.ndarray, pa.Array]:
    """Number the distinct labels (ids or channels) of a column, as the function `labels` of this module converts them.

    Args:
        name: of the column, for messages.

    Returns:
        Codes int64 [n], -1 where a label is missing; and the distinct labels, in order of first appearance, of type
        int64, double, large_string or bool. A code is an index among these.

    Raises:
        InputError: numbers too large to be exact, or a column of a type that holds no labels.
    """
    if not is_text(column.type):
        return encode(labels(column, name))
    codes, texts = encode(column)
    place, distinct = encode(labels(texts, name))
    return np.append(place, -1)[codes], distinct


def label_values(column: pa.Array) -> np.ndarray:
    """Return a column of labels without nulls as a new numpy array: int64, float64, bool, or objects of str."""
    # Not numpy's own strings: all are as wide as the widest, and lose a NUL at their end. Arrow's memory is read-only.
    return column.to_numpy(zero_copy_only=False).copy()


def plain(label: Any) -> Any:
    """Return a label as Python's int, float, bool or str, which JSON can hold; numpy's scalars are converted."""
    return label.item() if isinstance(label, np.generic) else label


def as_text(label: Any) -> str:
    """Return a label as text; a whole float loses its decimal point (7.0 becomes "7")."""
    label = plain(label)
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
