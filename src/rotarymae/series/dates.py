"""Columns of times → float64 in the table's unit, of dates in days since 1970-01-01; and times as users write them."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, listed
from rotarymae.series import cells
from rotarymae.system.database import connection

HEAD_CELLS = 1000  # cells, in which a column of something else shows it
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d([.,]\d+)?)?)?(Z| UTC| GMT| ?[+-]\d\d(:?\d\d)?)?)?$"
ELAPSED = r"^(?P<sign>-?)(?:(?P<d>\d+) days?,? ?\+?)?(?P<h>\d+)[:hH](?P<m>[0-5]\d)(?::(?P<s>\d\d(?:\.\d+)?))?"
ELAPSED += r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?| ?Uhr)?$"  # 01:30 PM
# 31.03.2024, 3/31/24, 2024/3/31, and with a time of day; ISO dates, where others of the column are not.
OTHER_DATE = re.compile(r"(\d\d?([./-])\d\d?\2\d{4}|\d\d?([./])\d\d?\3\d\d|\d{4}([./-])\d\d?\4\d\d?)([ T,].*)?$")
SPAN = (
    r"^\s*(\d.*\d:\d\d\S*?)\s*(?:-|–|/|\bto\b)\s*\d+[-/.]\d+[-/.]\d+\D.*:\d\d.*$"  # from one date and time to another
)
# How spans become their starts: of 2024-Q1, the first day.
STARTS = {SPAN: r"\1"} | {rf"^\s*(\d{{4}})[-_ ]?[Qq]{k + 1}\s*$": rf"\1-{1 + 3 * k:02d}-01" for k in range(4)}
WITH_COLONS = re.compile(r"(?<![-/.:_\dA-SU-Za-z])\d\d?(:\d\d)+([.,:]\d+)?(?!\d)")  # a time of day in a date
WEEK = re.compile(r"\s*(\d{4})-?W(0[1-9]|[1-4]\d|5[0-3])\s*")  # 2024-W05
UTC_OFFSET = re.compile(r"(?<=:\d\d| \d\d) ?[+-]\d\d:?\d\d$|(?<=\d[.,]\d\d\d) ?[+-]\d\d:?\d\d$")
MIDNIGHT = r"(^|[^\d:])24:00"  # the end of a day
JOINED = {7: "%Y%j", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # by the number of digits
# The beginnings of the names of months in English, German, French, Spanish, Italian, Portuguese and Dutch.
MONTHS = (
    "jan|ene|gen feb|fev|fév mar|mär|mrz|mrt apr|abr|avr may|mai|mei|mag jun|juin|giu jul|juil|lug aug|ago|aou|aoû "
)
MONTHS += "sep|set oct|okt|ott|out nov dec|dez|dic|déc"
DAY_OF_MONTH = rf"(?i)^\d{{1,2}}\.? ?({MONTHS.replace(' ', '|')})\pL{{0,6}}\.?$"  # 01 Jan, without a year
YEAR_1000 = -354_285  # in days since 1970-01-01; %Y of DuckDB takes fewer digits than four, too
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # the years 1 to 9999, in days since 1970-01-01


@dataclass(frozen=True)
class Times(cells.Numbers):
    """A column of n cells as times.

    Attributes:
        values: float64 [n], NaN where a cell is missing or no time; of dates, days since 1970-01-01 UTC; of durations,
            days.
        words: {text: count} of cells that are neither times nor missing.
        note: a sentence on what was assumed; None if nothing was.
        sides: always None.
        unit: "day" for dates and durations; None for numbers.
        zone: time zone of dates, "" if they name none and are taken as UTC; None for numbers and durations.
    """

    unit: str | None = None
    zone: str | None = None


def times(column: pa.Array, name: str, how: str | None = None, na: Sequence[str] = ()) -> Times:
    """Convert a column of times to numbers: dates to days since 1970-01-01 UTC, durations to days; numbers stay.

    Without `how`, a column of texts is read by the first of these rules that applies; other texts become NaN, and are
    counted in `Times.words`:

    - As ISO dates, if more than half of the cells that are not missing are such.
    - As elapsed times ("26:30"), converted to days, if more than half of these cells are such.
    - As numbers.

    A period, such as "2024-Q1" or one date to another, counts as its start.

    Args:
        name: of the column, for messages.
        how: strptime format of dates in texts or in whole numbers (20240331). Not used for a column of another type,
            nor for a column of numbers if one has a fraction.
        na: cells that mean "missing", in addition to `cells.MISSING` ("NA", "-", ...): texts, or numbers in any
            spelling. Not used for a column whose type is one of dates or durations.

    Raises:
        InputError: no text has the format `how`, or texts are to be read as numbers and none is one (code "time-text");
            the column holds times of day ("clock-alone") or is of another type ("not-numeric"); some dates have a zone
            and some do not ("mixed-zones"); a format with %Z; with `how`, whole numbers that are too large to be exact.
    """
    starts = starts_of(column)
    if starts is not column:
        read = times(starts, name, how, na)
        span = column.filter(pc.not_equal(column, starts))[0].as_py()  # pyright: ignore
        notes = (read.note, f"of spans such as {span!r} the start is the time")
        return replace(read, note="; ".join(filter(None, notes)))
    if how is not None and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        with suppress(pa.ArrowInvalid):  # fractions
            # 20240331, also as a float, which pandas makes of it next to a gap.
            column = cells.labels(column, name).cast(pa.int64()).cast(pa.string())
            na = [cells.as_text(float(code)) if cells.is_number(code) else code for code in na]
    if not cells.is_text(column.type):
        return _typed(column, name, na)
    column = cells.without(column, na) if na else column
    # All cells are ISO dates without an offset, or plain numbers: the usual cases, and the fastest.
    for kind in (pa.timestamp("us"), pa.float64()) if how is None else ():
        with suppress(pa.ArrowInvalid):
            column[:HEAD_CELLS].cast(kind)  # a cast that fails costs more than one that does not
            return _typed(column.cast(kind), name, na)
    texts = cells.without_missing(cells.trimmed(column), na)
    there = texts.is_valid().to_numpy(zero_copy_only=False)
    if not there.any():
        return Times(np.full(len(texts), np.nan))
    elapsed = cells.matches(texts, ELAPSED)
    if how is not None:
        stamps = _strptime(texts, name, how)
    elif 2 * cells.matches(texts, ISO).sum() > there.sum():
        stamps = _from_iso(texts, name)
    elif 2 * elapsed.sum() > there.sum():
        note = f"times such as {texts.filter(pa.array(elapsed))[0].as_py()!r} are elapsed hours and minutes"
        values = _elapsed(texts)
        return Times(values, cells.counted(texts, there & np.isnan(values)), note, unit="day")
    else:
        return _from_numbers(texts, name, na)
    read = _typed(stamps, name)
    note = "years of two digits are taken as 1969 to 2068" if how is not None and "%y" in how else None
    return replace(read, words=cells.counted(texts, there & np.isnan(read.values)), note=note)


def starts_of(column: pa.Array) -> pa.Array:
    """Replace each period in a column of texts by its start: "2024-W05" by its Monday, "2024-Q1" by its first day.

    A period may also be written with two ends, as "2024-01-20 00:00 - 2024-01-20 01:00". A column without a period in
    its first 1,000 cells, or of another type than text, is returned itself. So is one in which nothing is replaced.
    """
    if not cells.is_text(column.type):
        return column
    if not any(cells.matches(column[:HEAD_CELLS], span).any() for span in (*STARTS, rf"^{WEEK.pattern}$")):
        return column
    encoded = column.dictionary_encode()
    texts = pa.array(map(start_of, encoded.dictionary.to_pylist()), column.type)
    starts = pa.DictionaryArray.from_arrays(encoded.indices, texts).dictionary_decode()
    return column if starts.equals(column) else starts


def start_of(text: str) -> str:
    """Return the start of the period that a text names; return a text that names no period unchanged.

    A week: "2024-W05" → "2024-01-29". A quarter: "2024-Q2" → "2024-04-01". A start and an end, both with a time of day:
    "2024-04-01 00:00 - 2024-04-01 01:00" → "2024-04-01 00:00".
    """
    for span, start in STARTS.items():
        text = re.sub(span, start, text)
    if week := WEEK.fullmatch(text):
        with suppress(ValueError):  # a week 53 that the year lacks
            return date.fromisocalendar(int(week[1]), int(week[2]), 1).isoformat()
    return text


def _typed(column: pa.Array, name: str, na: Sequence[str] = ()) -> Times:
    """Convert a column whose Arrow type is numeric, a date, a timestamp or a duration to times; nulls become NaN.

    Dates and timestamps become days since 1970-01-01 UTC, durations become days, and numbers stay as they are.

    Args:
        name: of the column, for messages.
        na: numbers, as texts, that mean "missing" in a numeric column; not used for dates and durations.

    Raises:
        InputError: a column of times of day (code "clock-alone") or of any other type ("not-numeric").
    """
    types, kind = pa.types, column.type
    zone = (kind.tz or "") if types.is_timestamp(kind) else "" if types.is_date(kind) else None
    if types.is_date(kind):
        column, kind = column.cast(pa.timestamp("ms")), pa.timestamp("ms")
    if types.is_timestamp(kind) or types.is_duration(kind):
        # Whole days and the rest are divided apart: int64 nanoseconds do not fit into a float64.
        gone = column.is_null().to_numpy(zero_copy_only=False)
        days, rest = np.divmod(column.cast(pa.int64()).fill_null(0).to_numpy(), PER_DAY[kind.unit])
        return Times(np.where(gone, np.nan, days + rest / PER_DAY[kind.unit]), unit="day", zone=zone)
    if types.is_time(kind):
        raise InputError(
            f"time column {name!r} holds times of day ({kind}) without a day; name the column of days as the time, and "
            "this one as the clock (--time DAY --clock TIME).",
            code="clock-alone",
        )
    if not (types.is_null(kind) or cells.is_numeric(kind)):
        raise InputError(f"time column {name!r} is {kind}; convert it to numbers or dates.", code="not-numeric")
    return Times(cells.numbers(column, name, na).values.astype(np.float64))


def _from_numbers(texts: pa.Array, name: str, na: Sequence[str]) -> Times:
    """Convert a column of texts to times: texts that are numbers to these numbers, other texts to NaN.

    Missing cells, words such as NA, and the numbers in `na` become NaN, too. `Times.words` counts only the other texts,
    which may be mistakes. A column of nothing but true and false (and missing cells) becomes 1 and 0.

    Args:
        name: of the column, for messages.
        na: numbers, in any spelling, that mean "missing".

    Raises:
        InputError: the column holds no numbers (code "time-text"): one of the first 1,000 texts is a day without a year
            ("01 Jan"); or no text is a number, and the texts are neither all missing nor all true or false. The message
            says how to give formats of dates.
    """
    if not cells.matches(texts[:HEAD_CELLS], DAY_OF_MONTH).any():  # "Jan" is no unit
        with suppress(InputError):
            read = cells.numbers(texts, name, na)
            return Times(read.values.copy(), read.words, read.note)
    known = texts.drop_null().unique()[:HEAD_CELLS].to_pylist()
    said = " or ".join(f"time_format={how!r}" for how in formats_of(known))
    said = said or "for example time_format='%d.%m.%Y %H:%M'"
    raise InputError(
        f"time column {name!r} holds text ({listed(known[:1])}); say how its dates are written ("
        f"{said}, --time-format), or convert it to numbers, or to datetimes, which are read as days.",
        code="time-text",
    )


def _from_iso(texts: pa.Array, name: str) -> pa.Array:
    """Parse ISO texts as timestamps; null where a text is null or no ISO date, or names a day that does not exist.

    Timestamps are in UTC if the texts have offsets (+02:00, Z, UTC), else without a zone. Raises InputError (code
    "mixed-zones"), with the column's name `name`, if some dates have an offset and some do not.
    """
    texts = cells.where(cells.matches(texts, ISO), pc.replace_substring(texts, ",", "."))  # pyright: ignore
    for written, plain in (
        (" (UTC|GMT)$", "Z"),
        (r" ([+-]\d\d(:?\d\d)?)$", r"\1"),
        (r"([T ]\d\d)($|Z|[+-])", r"\1:00\2"),
    ):
        texts = pc.replace_substring_regex(texts, written, plain)  # pyright: ignore
    offset = cells.matches(texts, r"(Z|\d[+-]\d\d(:?\d\d)?)$") & cells.matches(texts, ":|Z$")
    if offset.any() and offset.sum() < len(texts) - texts.null_count:
        raise InputError(
            f"some of the times {name!r} are dates with a zone or an offset, and some without; write all with one, or "
            "all without.",
            code="mixed-zones",
        )
    return _stamps(texts, "TRY_CAST(c AS TIMESTAMPTZ)" if offset.any() else "TRY_CAST(c AS TIMESTAMP)")


def _stamps(texts: pa.Array, expression: str, **parameters: str) -> pa.Array:
    """Convert texts [n] to timestamps in microseconds by an SQL expression, which DuckDB computes.

    Args:
        expression: such as "try_strptime(c, $how)"; `c` is a text, and $how the parameter of this name.
        parameters: values of the parameters.

    Returns:
        Timestamps [n], of UTC if those of the expression have a zone; null where the expression gives null.
    """
    with connection().cursor() as database:  # a database of its own takes twenty times as long
        database.register("texts", pa.table({"c": texts}))
        stamps = cells.to_arrow(database.sql(f"SELECT {expression} FROM texts", params=parameters).to_arrow_table()[0])
    return stamps.cast(pa.timestamp("us", "UTC" if getattr(stamps.type, "tz", None) else None))


def _strptime(texts: pa.Array, name: str, how: str) -> pa.Array:
    """Parse texts as timestamps by the strptime format `how`; null where a text is null or does not match.

    Dates before the year 1000 count as no match, since %Y would read 24 as the year 24. Months of %b may be written in
    other languages; 24:00 is the end of the day. Timestamps are in UTC if the format has %z, else without a zone.
    `name` is the column's name, for messages.

    Raises:
        InputError: there are texts, and none matches (code "time-text"); the format has %Z, a zone by name.
    """
    if "%Z" in how:
        raise InputError(
            f"the format {how!r} of the times {name!r} has %Z, a zone by name such as CEST, which would be ignored, as "
            "such names are not unique. Write offsets such as +02:00, which %z reads."
        )
    if "%z" in how:
        texts = pc.replace_substring_regex(texts, "[zZ]$", "+00:00")  # pyright: ignore
    if "%b" in how:
        texts, how = _with_short_months(texts), how.replace("%b. ", "%b ")
    stamps, late = pa.nulls(len(texts), pa.timestamp("us")), pa.array(cells.matches(texts, MIDNIGHT))
    texts = pc.replace_substring_regex(texts, MIDNIGHT, r"\100:00")  # pyright: ignore
    with suppress(duckdb.InvalidInputException):  # a format that it does not know
        stamps = _stamps(texts, "try_strptime(c, $how)", how=how)
    stamps = pc.if_else(pc.less(stamps.cast(pa.int64()), YEAR_1000 * PER_DAY["us"]), None, stamps)  # pyright: ignore
    stamps = pc.if_else(late, pc.add(stamps, pa.scalar(PER_DAY["us"], pa.duration("us"))), stamps)  # pyright: ignore
    if stamps.null_count == len(stamps) > texts.null_count:
        raise InputError(
            f"time column {name!r} holds {listed(texts.drop_null()[:1].to_pylist())}, which is not written as {how!r}, "
            "and neither is any other; correct the format, in which %Y is the year (%y of two digits), %m the month, "
            "%d the day, %H:%M:%S the time, %f fractions of a second and %z the zone.",
            code="time-text",
        )
    return stamps


def as_datetimes(texts: Sequence[str], how: str) -> list[datetime | None]:
    """Parse texts as dates by the strptime format `how`; return None for a text that does not match.

    Dates are in UTC if the format has %z, else without a zone. Raises InputError if no text matches, or the format has
    %Z.
    """
    return _strptime(pa.array(texts, pa.string()), "date", how).to_pylist()


def formats_of(texts: Sequence[str]) -> list[str]:
    """Return the strptime formats by which all texts are dates; several if their numbers could be swapped (05/06/24).

    - If day and month are separated by a point, as in 05.06.24, the day comes first where all texts allow it: no
      language writes 5 June as 06.05.
    - Texts without a digit, such as "unknown", are ignored. If they are half of the texts or more, the list is empty.
    - The list is also empty if no format fits all dates, or if a date has no year.
    - Names of months, short or full, may be in seven languages: "5 März 2024" has the format "%d %b %Y". If all texts
      have full English names, it has %B in place of %b. Names of weekdays must be English.
    """
    dated = [text for text in texts if re.search(r"\d", text)]
    if 2 * len(dated) <= len(texts):
        return []
    for some in (dated, _with_short_months(pa.array(dated)).to_pylist()):
        formats = [how for how in _formats(max(some, key=len)) if all(is_written(text, how) for text in some)]
        if formats:
            return formats[:1] if re.search(r"%d\. ?%m", formats[0]) else formats
    return []


def _with_short_months(texts: pa.Array) -> pa.Array:
    """Return texts with names of months, short or full, in seven languages, replaced by English short ones ("Mar").

    Case is ignored. A longer word that begins like the name of a month is replaced as a whole: "Marvin" becomes "Mar".
    A point between a letter and a blank is removed: "Mar. 5" becomes "Mar 5".
    """
    texts = pc.replace_substring_regex(texts, r"(\pL)\. ", r"\1 ")  # pyright: ignore
    for name, begins in zip(calendar.month_abbr[1:], MONTHS.split(), strict=True):
        if cells.matches(texts, f"(?i){begins}").any():  # a hundred times as fast as the next, which is slow to compile
            texts = pc.replace_substring_regex(texts, rf"(?i)(^|[^\pL])({begins})\pL*", rf"\1{name}")  # pyright: ignore
    return texts


def is_written(text: str, how: str) -> bool:
    """Return whether a text is a date in the strptime format `how`; 24:00 counts as the end of a day.

    False for a format that strptime refuses.
    """
    try:
        datetime.strptime(re.sub(MIDNIGHT, r"\g<1>00:00", text), how)
    except (ValueError, re.error):  # of a format with a code twice
        return False
    return True


def _formats(text: str) -> list[str]:
    """Return the strptime formats in which `text` may be a date, one for each possible order of day, month and year.

    Numbers are judged by how many there are and by their digits, not by their size: 99/99/2024 has formats, too, which
    `is_written` then refuses. The list is empty if the text has a word that no date has, or if its numbers fit no date.
    """
    offset = UTC_OFFSET.search(text)
    text = text[: offset.start()] if offset else text
    parts = re.findall(r"\d+|[^\W\d_]+|\W|_", text)
    numbers = [k for k, part in enumerate(parts) if part.isdecimal()]
    of_clock: list[int] = []  # the numbers of 13:00:05.25
    days = re.match(r"\d\d?:\d\d?:\d{4}\b", text)  # 31:03:2024 is no clock
    if with_colons := WITH_COLONS.search(text, days.end() if days else 0):
        before, inside = (len(re.findall(r"\d+", each)) for each in (text[: with_colons.start()], with_colons[0]))
        of_clock = numbers[before : before + inside]
    parts = [_word_code(part.lower()) or part.replace("%", "%%") for part in parts]
    named, half = not {"%b", "%B"}.isdisjoint(parts), "%p" in parts
    words = [part for part in parts if part.isalpha() and (part.isascii() or len(part) > 1)]  # 年 and 月 are marks
    if not {"t", "z", "utc", "gmt"}.issuperset(map(str.lower, words)):
        return []  # 2024-W01 and 2024-Q1 are no months, and März says which one it is
    clock = ("%I" if half else "%H", "%M", "%S", "%f")
    joined = JOINED.get(len(parts[numbers[0]])) if numbers else None
    year = next((k for k in numbers if len(parts[k]) == 4 and parts[k][:2] in ("19", "20") and not joined), None)
    rest = [k for k in numbers if k not in (year, *of_clock)]  # those of the date, and of a clock without colons
    orders: list[tuple[str, ...]] = []
    if joined:
        then = len(parts[numbers[1]]) if len(numbers) > 1 else 0
        orders = [(joined, "%H%M%S"[:then]) if then in (4, 6) else (joined,)]  # 20240331T1230
    elif named:
        orders = [("%d", "%y") if year is None else ("%d",) if rest else ()]
    elif year is not None and rest and len(parts[rest[0]]) == 3:
        orders = [("%j",)]
    elif year is not None and len(rest) == 1:
        orders = [("%m",)]
    elif year is not None and rest:
        orders = [("%d", "%m"), ("%m", "%d")][year < rest[0] :]
    elif re.search(r"\d+([-/. ]+)\d+\1\d+", text):
        orders = [("%d", "%m", "%y"), ("%m", "%d", "%y"), ("%y", "%m", "%d")]
    formats = []
    for order in orders:
        codes, known = (*order, *clock), (*rest, *of_clock)
        if (len(order) == len(rest) or not of_clock) and len(order) <= len(rest) and len(known) <= len(codes):
            at = dict(zip(known, codes, strict=False)) | ({} if year is None else {year: "%Y"})
            zone = "" if offset is None else offset[0].replace(offset[0].strip(), "%z")
            formats.append("".join(at.get(k, part) for k, part in enumerate(parts)) + zone)
    return formats


def _word_code(word: str) -> str | None:
    """Return the strptime code of a word in lower case: %B or %b for a month, %A or %a for a weekday, %p for am and pm.

    The names are English. May counts as the short form. Any other word gives None.
    """
    for names, whole, short in ((calendar.month_name, "%B", "%b"), (calendar.day_name, "%A", "%a")):
        lower = [name.lower() for name in names if name]
        if word in (name[:3] for name in lower):  # also May, which other texts decide
            return short
        if word in lower:
            return whole
    return "%p" if word in ("am", "pm") else None


def _elapsed(texts: pa.Array) -> np.ndarray:
    """Convert durations and times of day, "26:30", "02:30 PM" or "1 days 02:30:00", to days, float64 [n].

    Other texts become NaN. A minus negates all of "-1:30", but only the days of "-1 days +22:30:00", as pandas writes.
    """
    parts, number = pc.extract_regex(texts, ELAPSED), {}  # pyright: ignore
    for part in "dhms":
        digits = pc.struct_field(parts, part)  # pyright: ignore
        digits = pc.if_else(pc.equal(digits, ""), "0", digits)  # pyright: ignore
        number[part] = digits.cast(pa.float64()).to_numpy(zero_copy_only=False)
    hour = number["h"] + 12 * (cells.matches(texts, "(?i)p.?m") & (number["h"] < 12))
    hour -= 12 * (cells.matches(texts, "(?i)a.?m") & (hour == 12))
    clock = hour / 24 + number["m"] / 1440 + number["s"] / 86400
    negative, days = cells.matches(texts, "^-"), cells.matches(texts, "day")
    return np.where(negative, -1.0, 1.0) * number["d"] + np.where(negative & ~days, -clock, clock)


def with_clock(day: Times, clock: pa.Array, name: str) -> Times:
    """Add times of day to times that are whole days.

    Args:
        day: n days.
        clock: the n times of day, in one of these forms:
            - Arrow times.
            - Texts such as 10:15, 10h15 and 10:15 PM; 26:30 is 2:30 of the next day.
            - Texts such as 10.25 for 10:25, if all numbers in the column have two digits below 60 behind a point.
            - Other numbers, also as texts, are hours: 9.5 is 9:30, and 10.25 next to it is 10:15.
            - If one of these is above 24, or a text of four digits, all are hours and minutes: 1015 is 10:15.
        name: name of the column of days, for messages.

    Returns:
        `day` with the times of day added to its values; NaN where the clock is missing or cannot be read.

    Raises:
        InputError: a number that is no time of day, such as -1 or 1075; texts of which none can be read; a column of
            another type.
    """
    clock = _with_colons(cells.trimmed(clock))
    if pa.types.is_time(clock.type):
        ticks = clock.cast(pa.time64("ns")).cast(pa.int64()).cast(pa.float64())
        spent = ticks.to_numpy(zero_copy_only=False) / PER_DAY["ns"]
    elif cells.is_text(clock.type) and cells.matches(clock, r"\d:\d").any():
        spent = _elapsed(clock)
    else:
        given = hours = cells.numbers(clock, f"{name} (clock)").values
        if np.nanmax(given, initial=0) > 24 or (cells.is_text(clock.type) and cells.matches(clock, r"^\d{4}$").any()):
            with np.errstate(invalid="ignore"):  # infinity
                whole, rest = np.divmod(given, 100)
            hours = np.where(rest < 60, whole + rest / 60, np.where(np.isnan(given), np.nan, np.inf))  # 1015
        wrong = given[(hours < 0) | (hours > 24)]
        if len(wrong):
            raise InputError(
                f"the column of times of day that belongs to the days in {name!r} holds {wrong[0]:g}; write hours from "
                "0 to 24, or 10:15:00, or 1015 for 10:15."
            )
        spent = hours / 24
    return replace(day, values=day.values + spent)


def _with_colons(clock: pa.Array) -> pa.Array:
    """Write times of day such as 10h15, 10.15 and 10:15.30 in a column of texts as 10:15 and 10:15:30.

    Points stay if a number in the column is no time of day, such as 9.5. A column of another type is returned
    unchanged.
    """
    if not cells.is_text(clock.type):
        return clock
    clock = pc.replace_substring_regex(clock, r"^(\d\d?)h(\d\d)", r"\1:\2")  # pyright: ignore
    pointed = cells.matches(clock, r"^\d\d?[.:][0-5]\d(\.[0-5]\d)?$")
    if (cells.matches(clock, cells.NUMBER) & ~pointed).any():
        return clock
    return pc.if_else(pa.array(pointed), pc.replace_substring(clock, ".", ":"), clock)  # pyright: ignore


def refuse_unsortable_dates(column: pa.Array, name: str) -> None:
    """Raise InputError if a column of texts holds dates, and some, as 31.03.2024 or 31 Mar 2024, do not sort by time.

    ISO dates (2024-03-31) sort by time; a time of day may follow. Empty and null cells do not count. A column with a
    text that is no date passes. The message has the column's name, `name`.
    """
    there = [text for text in column.unique().to_pylist() if text]
    others = [text for text in there if not re.match(ISO, text)]
    if others and (all(map(OTHER_DATE.match, there)) or any(re.search("%[bB]", how) for how in formats_of(others))):
        raise InputError(
            f"column {name!r} holds dates such as {others[0]!r}, which do not sort by time as texts; write them as ISO "
            "dates, such as 2024-03-31 or 2024-03-31T10:00."
        )


def as_dates(days: np.ndarray, zone: str = "UTC") -> pa.Array:
    """Convert finite days since 1970-01-01 UTC [n] to Arrow timestamps of a time zone, rounded to the microsecond.

    Beyond the year 2149 a microsecond is finer than a float64 of days; whole seconds and milliseconds stay exact.
    """
    days = np.asarray(days, np.float64)
    ticks = np.rint(days * PER_DAY["us"]).astype(np.int64)
    for unit, size in (("ms", 1000), ("s", 1_000_000)):
        coarse = np.rint(days * PER_DAY[unit]).astype(np.int64)
        whole, rest = np.divmod(coarse, PER_DAY[unit])
        ticks = np.where(whole + rest / PER_DAY[unit] == days, coarse * size, ticks)
    return pa.array(ticks).cast(pa.timestamp("us", tz=zone))


def parse_time(text: str, zone: str | None) -> float:
    """Parse a time that a user typed; return a number in the unit of the times.

    Args:
        text: a finite number; where times are dates, an ISO date or a number of days since 1970-01-01 UTC.
        zone: time zone of the table's dates, in which a date without a zone is meant; None where times are numbers.

    Returns:
        The number; of a date, days since 1970-01-01 UTC.

    Raises:
        InputError: the text is neither, or a number of days outside the years 1 to 9999.
    """
    if zone is None:
        if not cells.is_number(text) or not np.isfinite(float(text)):
            raise InputError(f"{text!r} is no number; the times of this table are numbers, so give one.")
        return float(text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        with suppress(ValueError):
            if FIRST_DAY <= float(text) <= LAST_DAY:
                return float(text)
        advice = "such as 2024-03-31 or 2024-03-31T10:00, or days since 1970-01-01"
        raise InputError(f"{text!r} is no time in the years 1 to 9999; give a date, {advice}.") from error
    days = _typed(pa.array([when], pa.timestamp("us", "UTC" if when.tzinfo else None)), "time").values
    return float(days[0] if when.tzinfo else in_zone(days, zone)[0])


def parse_span(text: str, unit: str | None) -> float | None:
    """Parse "+4" or "+4h", a time after each series' first observation; return it in the unit of the times.

    Args:
        unit: unit of the times. With "day", spans may be in d, h, min or s, and become days; a number alone is days.
            With another unit, or None, spans are numbers alone.

    Returns:
        The span; None for a text that is not of this form, such as "4".

    Raises:
        InputError: a span with a unit where that of the times is not "day".
    """
    match = re.fullmatch(r"\+\s*((?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(d|h|min|s)?", text)
    if match is None:
        return None
    if match[2] and unit != "day":
        raise InputError(f"{text!r} is in {match[2]!r}, and the times are numbers without a unit; give +{match[1]}.")
    return float(match[1]) / {"d": 1, "h": 24, "min": 1440, "s": 86_400}.get(match[2], 1)


def span_of(option: str, text: str, unit: str | None) -> float:
    """Return a time span, such as "30" or "6h", as a number in the unit of the times.

    Args:
        option: the option that gives the span, such as "--at", for messages.
        text: a number, which is in the unit of the times, or one with d, h, min or s, such as "6h" (0.25 days). A "+"
            before it is ignored.
        unit: the unit of the times: "day" for dates. With any other, or None, `text` must be a number alone.

    Raises:
        InputError: a text that is no span, a negative one, or one with d, h, min or s where the times are no dates.
    """
    span = parse_span(f"+{text.lstrip('+')}", unit)
    if span is None:
        raise InputError(
            f"{option} {text} is no span of time; give a number of at least 0, also with d, h, min or s, such as 6h."
        )
    return span


def in_zone(days: np.ndarray, zone: str | None) -> np.ndarray:
    """Convert local times of a time zone to UTC; both are finite days since 1970-01-01, float [n].

    Where the clocks show a time twice, the earlier one is meant; a time that they skip becomes the last moment before
    the gap. For UTC or None the days are returned unchanged.
    """
    if not zone or zone == "UTC":
        return days
    shown = as_dates(days).cast(pa.timestamp("us"))
    return _typed(pc.assume_timezone(shown, zone, ambiguous="earliest", nonexistent="earliest"), "time").values  # pyright: ignore
