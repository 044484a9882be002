"""Columns of times → float64 in the table's unit, of dates in days since 1970-01-01; and times as users write them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError

PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# 31.03.2024, 3/31/24, 2024/3/31, and with a time of day; ISO dates, where others of the column are not.
OTHER_DATE = re.compile(r"(\d\d?([./-])\d\d?\2\d{4}|\d\d?([./])\d\d?\3\d\d|\d{4}([./-])\d\d?\4\d\d?)([ T,].*)?$")

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # the years 1 to 9999, in days since 1970-01-01


def times(column: pa.Array, name: str) -> tuple[np.ndarray, str | None]:
    """A time column as float64 [n] and its unit: "day" for dates and durations, None for numbers.

    Dates and timestamps become days since 1970-01-01 UTC (a timestamp without a zone is taken as UTC), durations
    become days. Missing cells become NaN.

    Raises:
        InputError: a column that is neither numeric nor a date; numbers that have lost, or would lose, digits.
    """
    types = pa.types
    kind = column.type
    if types.is_date32(kind):
        whole = column.cast(pa.int32()).cast(pa.float64())
        return whole.to_numpy(zero_copy_only=False), "day"
    if types.is_date64(kind):
        column, kind = column.cast(pa.timestamp("ms")), pa.timestamp("ms")
    if types.is_timestamp(kind) or types.is_duration(kind):
        # Whole days and the rest are divided apart: int64 nanoseconds do not fit into a float64.
        gone = column.is_null().to_numpy(zero_copy_only=False)
        ticks = column.cast(pa.int64()).fill_null(0).to_numpy()
        days, rest = np.divmod(ticks, PER_DAY[kind.unit])
        return np.where(gone, np.nan, days + rest / PER_DAY[kind.unit]), "day"
    if types.is_boolean(kind) or not (types.is_null(kind) or types.is_primitive(kind) or types.is_decimal(kind)):
        raise InputError(f"time column {name!r} is {kind}; wanted numbers or dates.", code="not-numeric")
    if types.is_time(kind):
        raise InputError(
            f"time column {name!r} holds times of day ({kind}) without a day; name the column of days as the time, and "
            "this one as the clock (--time DAY --clock TIME).",
            code="clock-alone",
        )
    found = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if types.is_integer(kind) and np.nanmax(np.abs(found), initial=0) > 2**53:
        _refuse_equal_made(column, name)
    elif not types.is_integer(kind):
        refuse_rounded(found, name)
    return found, None


def parse_iso(column: pa.Array, zone: str | None) -> pa.Array:
    """Return ISO texts as timestamps, null where one is no day that exists."""
    found = []
    for text in column.to_pylist():
        try:
            when = None if text is None else datetime.fromisoformat(text.replace(",", "."))
        except ValueError:
            when = None
        found.append(when)
    return pa.array(found, pa.timestamp("us", zone))


def refuse_other_dates(column: pa.Array, name: str) -> None:
    """Refuse a column of text that is all dates, of which `from_iso` made none."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        there = [text for text in column.unique().to_pylist() if text]
        if there and all(map(OTHER_DATE.match, there)):
            other = next((text for text in there if not re.match(r"\d{4}-", text)), there[0])
            raise InputError(
                f"column {name!r} holds dates such as {other!r}, which come in no order as they are written; write "
                "them as ISO dates, such as 2024-03-31 or 2024-03-31T10:00."
            )


def zone(column: pa.Array) -> str | None:
    """The time zone of a column of dates, "" where they have none; None for numbers and durations."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return kind.tz or ""
    return "" if pa.types.is_date(kind) else None


def as_dates(days: np.ndarray, zone: str = "UTC") -> pa.Array:
    """Return days since 1970-01-01 UTC as timestamps of a zone, to the microsecond: what `times` made numbers of.

    Beyond 2149 a microsecond is less than the last digit of days; whole seconds and milliseconds are met exactly.
    """
    days = np.asarray(days, np.float64)
    ticks = np.rint(days * PER_DAY["us"]).astype(np.int64)
    for unit, size in (("ms", 1000), ("s", 1_000_000)):
        coarse = np.rint(days * PER_DAY[unit]).astype(np.int64)
        whole, rest = np.divmod(coarse, PER_DAY[unit])
        ticks = np.where(whole + rest / PER_DAY[unit] == days, coarse * size, ticks)
    return pa.array(ticks).cast(pa.timestamp("us", tz=zone))


def parse_time(text: str, zone: str | None) -> float:
    """A time as a user writes it: a number, or where times are dates (of a `zone`) also an ISO date, as days.

    Raises:
        InputError: neither.
    """
    if zone is None:
        try:
            return float(text)
        except ValueError:
            raise InputError(f"{text!r} is no number; the times of this table are numbers, so give one.") from None
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        with suppress(ValueError):
            if FIRST_DAY <= float(text) <= LAST_DAY:
                return float(text)
        raise InputError(f"{text!r} is neither a number nor a date such as 2024-03-31 or 2024-03-31T10:00.") from error
    if when.tzinfo is None:
        return float(in_zone(times(pa.array([when], pa.timestamp("us")), "time")[0], zone)[0])
    return float(times(pa.array([when], pa.timestamp("us", tz="UTC")), "time")[0][0])


def in_zone(days: np.ndarray, zone: str | None) -> np.ndarray:
    """Days of dates that say no zone, as `times` has them, as days of what a zone's clocks show then.

    Raises:
        InputError: a date that these clocks skip or show twice.
    """
    if not zone or zone == "UTC":
        return days
    shown = as_dates(days).cast(pa.timestamp("us"))
    try:
        return times(pc.assume_timezone(shown, zone), "time")[0]  # pyright: ignore
    except pa.ArrowInvalid:
        earliest = pc.assume_timezone(shown, zone, ambiguous="earliest", nonexistent="earliest")  # pyright: ignore
        latest = pc.assume_timezone(shown, zone, ambiguous="latest", nonexistent="latest")  # pyright: ignore
        text = shown.filter(pc.not_equal(earliest, latest))[0].as_py().isoformat()  # pyright: ignore
        raise InputError(
            f"{text!r} is no time, or two, in {zone}: the clocks change there. Give its offset: {text}+01:00."
        ) from None


def parse_times(column: pa.Array, name: str, how: str) -> pa.Array:
    """A column of text as timestamps, by a strptime format such as "%d.%m.%Y %H:%M"; dates as they are.

    Raises:
        InputError: naming the first cell that is written otherwise, or that is no day, as 31 February.
    """
    if pa.types.is_temporal(column.type):
        return column  # a table of another format may hold dates
    if "%Z" in how:
        raise InputError(
            f"the format {how!r} of the times {name!r} has %Z, a zone by name such as CEST, which would be left out; "
            "names of zones are not unique. Write offsets, which %z reads."
        )
    cells = column.cast(pa.string()).to_pylist()
    found = pa.array([_parsed(cell, how) for cell in cells], pa.timestamp("us", "UTC" if "%z" in how else None))
    wrong = [row for row in np.flatnonzero(found.is_null()).tolist() if (cells[row] or "").strip()]
    if wrong:
        raise InputError(
            f"time column {name!r} holds {cells[wrong[0]]!r} in row {wrong[0]}, which is not written as {how!r}, or is "
            f"no day that exists ({len(wrong)} such cells); correct the format, in which %Y is the year, %m the month, "
            "%d the day, %H:%M:%S the time, %f fractions of a second and %z the zone."
        )
    return found


def _parsed(cell: str | None, how: str) -> datetime | None:
    try:
        return None if cell is None else datetime.strptime(cell.strip(), how)
    except ValueError:
        return None


def _refuse_equal_made(column: pa.Array, name: str) -> None:
    """Refuse integers that become equal as float64, which holds 53 bits of them."""
    whole = np.array(column.drop_null().unique())
    order = np.sort(whole)
    same = np.flatnonzero(order[1:].astype(np.float64) == order[:-1].astype(np.float64))
    if len(same):
        raise InputError(
            f"time column {name!r} holds the integers {order[same[0]]} and {order[same[0] + 1]}, which become the same "
            f"64-bit floating point number ({len(same)} such pairs). Subtract the first time from all, or convert the "
            "column to datetimes."
        )


def refuse_rounded(found: np.ndarray, name: str) -> None:
    """Refuse numbers that may have been 64-bit integers, and have become equal as floating point numbers."""
    rounded = np.flatnonzero((np.abs(found) > 2**53) & (np.abs(found) <= 2**63))
    if len(rounded):
        raise InputError(
            f"time column {name!r} holds {found[rounded[0]]:.20g} in row {rounded[0]}, a floating point number of a "
            "size at which neighbouring integers are the same one. (Of a text file that is larger than memory, "
            "integers are read so.) Subtract the first time from all, or convert the column to datetimes."
        )
