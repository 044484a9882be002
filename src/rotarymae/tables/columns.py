"""Columns of a table as a sample of its rows shows them: the words of their names, and what their cells hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, shortened
from rotarymae.series import cells, dates
from rotarymae.series.dates import ELAPSED, ISO, JOINED, formats_of, is_written
from rotarymae.tables.source import STATISTICS, Source, without_headers

MIN_POINTED = 20  # different cells such as 8.15 that are times of day under any name
ROWS = 20_000  # from which a table is guessed
MAX_CHANNELS = 2_000
MIN_ASCENDING = 10  # different numbers of a column that may be the time, as it ascends
MAX_CODES = 20  # different whole numbers of a column that may number channels or classes
MOST = 0.95  # of the cells of a column, which show what it holds
MOST_STATES = 4  # texts in blocks of one each; of more of them, a state would come back
MOST_SHOWN = 6  # different cells, which are shown one by one
HELD = 42  # characters that say what a column holds
MIN_RUN = 3  # rows of a block, on average, that make a column look like one of ids
IDS = ("object", "obj", "oid", "star", "series", "stay", "hospitalization", "encounter", "subject", "patient", "record",
       "participant", "person", "paciente", "paziente", "identifiant", "kennung",
       "symbol", "ticker", "source", "station", "device", "unit", "machine", "kic", "tic", "case", "animal", "id",
       "name")  # fmt: skip
NO_IDS = {"exposure", "visit", "transit", "ccd", "detector", "field", "night", "image", "filter", "item", "code",
          "row", "order", "candidate", "candid", "parent", "concept", "program", "variable", "parameter", "channel",
          "analyte", "metric", "fid", "tid", "bid", "mid", "qid", "grid"}  # fmt: skip
ID_WORD = re.compile(r"(obj|[eou]|[^aeiou]{1,3})?id|identifier")  # the last word of stay_id, uid and STID
CODE = re.compile(r"(?<!ac|um|lu|ol|al|qu|ov|ip)(id|num|idx|index|nr|no|code|key|serial)$")  # ends bikeid; no acid
MIN_CODE = 1000  # the largest number of a column called so, which no measure such as a UV index reaches
MIN_APART = 1000  # times as wide as their count is the range of whole numbers that are codes, as of MMSI
NUMBERINGS = {"id", "identifier", "ident", "number", "nr", "no",
              "num", "index", "idx", "code", "tag", "table", "key", "serial"}  # fmt: skip
# Words for errors that need no name of a value next to them.
ERRORS_ALONE = {"sigma", "unc", "uncertainty", "stddev", "stdev", "sdev", "stderr", "fehler", "unsicherheit", "erreur",
                "incertitude", "incertidumbre", "errore", "incertezza", "误差", "誤差"}  # fmt: skip
ERRORS = {"err", "error", "errors", "sig", "std", "sd", *ERRORS_ALONE}
STANDARD_ERRORS = ("se", "sem")  # at the end of a name, where another column has the rest; Se is selenium
COUNTS = {"n", "nb", "num", "number", "nr", "no", "count", "size", "anzahl"}
COUNTED = {"points", "pts", "obs", "observations", "samples", "sample", "measurements", "readings", "scans", "images",
           "image", "beat", "beats", "replicates"}  # fmt: skip
FLAG = re.compile(
    r"(flag|flags|quality|qualität|güte|qc)\b|\bqn\b|"
    r"\b(quali\w+|calidad|kwaliteit|качество|qual|validity|bad|procstatus|rejected|invalid|outlier|suspect|saturated)\b"
)
OUTCOMES = {"futime", "survtime", "survival", "followup", "tte", "died", "death", "dead", "status", "event", "outcome",
            "mortality", "censor", "censored", "deathtime", "target", "label", "discharge", "los", "stay"}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """The words by which columns of one role, such as times, are recognised by their names.

    Attributes:
        words: words of names such as "time", the likeliest first; a name may be one of them or contain it.
        better: words that make a name with a word of `words` fit better, if it has them too.
        never: words that exclude a name.
    """

    words: tuple[str, ...]
    better: tuple[str, ...] = ()
    never: frozenset[str] = frozenset()

    def rank(self, words: Sequence[str]) -> float:
        """Return how well a column's name, split into `words` by `pieces`, fits this rule: the smaller the better.

        - It is the least index of the name's words in `self.words`, which begin with the likeliest. A single letter
          counts only if it is the whole name: t is a time, and T_Reactor is none.
        - With a word of `self.better`, a name fits much better: half the number of `self.words` is subtracted.
        - Of names with the same word, the shortest fits best: 0.25 + 0.01 n is added for n > 1 words.
        - It is infinity for a name without any of `self.words`, or with one of `self.never`: time_err is no time.
        """
        alone = len(words) == 1  # as t is a time, and T_Reactor none
        places = [self.words.index(word) for word in words if word in self.words and (alone or len(word) > 1)]
        if not places or set(words) & self.never:
            return np.inf
        bonus = 0.5 * any(word in self.better for word in words) * len(self.words)
        return min(places) - bonus + (0 if alone else 0.25 + 0.01 * len(words))

    def fits(self, words: Sequence[str]) -> bool:
        """Return whether a column's name, split into `words` by `pieces`, fits this rule: its `rank` is finite."""
        return self.rank(words) < np.inf


HOURS = {"hour", "hr", "hh", "stunde", "heure", "hora", "ora"}
CALLED_DATES = {"date", "dates", "day", "dt", "datum", "fecha", "data", "дата", "日期", "日付", "yymmdd", "ymd"}
CLOCK = Rule(("clock", "time", "uhrzeit", "zeit", "tod", *sorted(HOURS)), never=frozenset(STATISTICS))  # of a maximum


def pieces(name: str) -> list[str]:
    """Split the name of a column into words in lower case: "lc.midpointMjdTai (d)" gives ["midpoint", "mjd", "tai"].

    It is split between a small letter or digit and a capital, between letters and digits, and at all other signs. What
    stands before the last point is left out, and so are units in brackets at the end. A few glued endings are split
    off: "magpsf" gives ["mag", "psf"], and "stayid" gives ["stay", "id"].
    """
    name = re.sub(r"(?<=\w)(\s*[(\[][^()\[\]]*[)\]])+$", "", name)  # a unit is none of its words
    name = re.sub(r"(?<=[_ ])1[_ ]?(?=(sd|sig|sigma|std)\b)", "", name)  # the errors of flux in flux_1sd
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name.rpartition(".")[2])
    words = " ".join(re.findall(r"[^\W\d_]+|\d+", split)).lower()
    # Glued names, such as magpsf, sigmapsf, observationoffset and patientunitstayid.
    words = re.sub(r"(?<=[a-z])(psf|sap|mpro|offset)\b", r" \1", words)
    return re.sub(r"(?<=stay|ient|ject|urce|vice|case|sion|odic|vent|able|eter|nnel|nsor)id\b", " id", words).split()


def looks_like_id(name: str) -> bool:
    """Return whether the name of a column suggests ids of objects, such as patients: objectId, stay_id, patient.

    - It does if its last word means an id (stay_id), if its only word is a kind of object (patient), if it asks for the
      name of an object (station_name), or if it asks for a serial number (serial_no).
    - It does not if any word means something else than an object, as in image_id, night_id and item_id.
    """
    words = pieces(name)
    if {*words, *(word.removesuffix("id") for word in words)} & NO_IDS:  # ccdid, too
        return False
    numbers = "serial" in words and NUMBERINGS.issuperset(words)
    numbers = numbers or (words[-1:] == ["name"] and not {*IDS[:-2], "target"}.isdisjoint(words[:-1]))
    return numbers or any(map(ID_WORD.fullmatch, words[-1:])) or (len(words) == 1 and words[0] in IDS[:-2])


def looks_like_outcome(name: str) -> bool:
    """Return whether a column name suggests an outcome, such as died or status, which is known only after the times.

    False for names that `looks_like_id` accepts, such as stay_id.
    """
    return bool(set(pieces(name)) & OUTCOMES) and not looks_like_id(name)


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table, described by n sampled cells.

    Attributes:
        name: of the column.
        words: its name, split by `pieces`.
        cells: Arrow array [n]; texts are without blanks around them, and a span from one date to another is cut to its
            start.
        dates: whether it holds dates: of a date type, as texts, or as whole numbers such as 20240331.
        clock: whether it holds times of day or durations.
        text: whether its cells are texts that are not read as numbers; they may be dates or times of day.
        formats: strptime formats, each of which reads all its dates; () without dates, and for ISO dates and date
            types.
        listed: whether the cells are the entries of lists in the table.
        codes: int64 [n], number of each cell among the different ones, in the order of first appearance; -1 where it is
            missing.
        numbers: float64 [n], NaN where a cell is missing or no number; None for a column that holds no numbers. A limit
            such as "<0.01" counts as its number.
    """

    name: str
    words: tuple[str, ...]
    cells: pa.Array
    dates: bool
    clock: bool
    text: bool
    formats: tuple[str, ...]
    listed: bool
    codes: np.ndarray
    numbers: np.ndarray | None

    @property
    def numeric(self) -> bool:
        """Whether the column holds numbers, that is, `numbers` is not None."""
        return self.numbers is not None

    @cached_property
    def known(self) -> np.ndarray:
        """The finite numbers in the order of the rows, float64; empty for a column that holds no numbers."""
        return np.array([]) if self.numbers is None else self.numbers[np.isfinite(self.numbers)]

    @cached_property
    def days(self) -> np.ndarray | None:
        """The dates as days since 1970-01-01, float64 [n], NaN where one is missing or unreadable.

        None for a column without dates, and if there are dates, but none can be read.
        """
        with suppress(InputError):
            how = self.formats[0] if self.formats else None
            return dates.times(self.cells, self.name, how).values if self.dates else None
        return None

    @cached_property
    def whole(self) -> bool:
        """Whether the column holds finite numbers, all of which are whole."""
        return bool(len(self.known)) and bool((self.known == np.rint(self.known)).all())

    def holds(self, unit: str = "", names: bool = False) -> str:
        """Return a text on the cells: the first and the last date, the range and median of numbers, or some cells.

        Numbers have a range if more than six are different. Up to six different cells are all listed if they are short;
        else their number and an example are given.

        Args:
            unit: the unit of the numbers; "" if it is not known.
            names: whether numbers only name something, so that cells are given instead of a range. This is always so if
                the column is called like ids.
        """
        if self.distinct > 1 and self.days is not None and len(self.formats) < 2:
            ends = dates.as_dates(np.array([np.nanmin(self.days), np.nanmax(self.days)])).to_pylist()
            return " to ".join(str(end)[:19].removesuffix(" 00:00:00") for end in ends)
        if self.distinct > MOST_SHOWN and len(self.known) and not (names or looks_like_id(self.name)):
            return spread(self.known, unit)
        first = [int((self.codes == code).argmax()) for code in range(min(self.distinct, MOST_SHOWN))]
        cells_of = self.cells.take(pa.array(first, pa.int64()))
        with suppress(pa.ArrowException):  # bytes are no text
            cells_of = cells_of.cast(pa.large_string())
        few = [str(cell) for cell in cells_of.to_pylist()]
        few = sorted(few) if self.numbers is None else [few[k] for k in np.argsort(self.numbers[first])]
        text = ("; " if "," in "".join(few) else ", ").join(few)
        if 1 < self.distinct <= MOST_SHOWN and len(text) <= HELD:
            return text
        start = "one value: " if self.distinct == 1 else f"{self.distinct:,} different, such as "
        return start + shortened(few[0], HELD - len(start)) if few else "empty"

    @property
    def names_classes(self) -> bool:
        """Whether the column repeats few texts or whole numbers, as names of channels or classes do.

        Few are at most 20 different numbers or 2,000 different texts, and at most a third as many as rows. False for
        columns of dates and times of day, and empty ones.
        """
        few = 0 < self.distinct <= (MAX_CODES if self.whole else MAX_CHANNELS) and 3 * self.distinct <= len(self.codes)
        return (self.text or self.whole) and few and not (self.dates or self.clock)

    @property
    def distinct(self) -> int:
        """Number of different cells; missing ones do not count."""
        return int(self.codes.max(initial=-1)) + 1

    @property
    def may_repeat(self) -> bool:
        """Whether filled cells repeat: at most 4 in 5 are different. Also True for fewer than 10, which show little."""
        known = int((self.codes >= 0).sum())
        return 5 * self.distinct <= 4 * known or known < MIN_ASCENDING

    @property
    def runs(self) -> int:
        """Number of runs of consecutive rows with the same cell, missing cells left out; 1 if all are missing."""
        return 1 + int((np.diff(self.codes[self.codes >= 0]) != 0).sum())

    @property
    def in_blocks(self) -> bool:
        """Return whether equal cells mostly stand in one run of rows: there are at most 1.1 runs per different cell."""
        return self.runs <= 1.1 * self.distinct

    @property
    def alternates(self) -> bool:
        """Whether equal cells seldom follow one another, and occur in three rows or more, on average.

        The column has more than four different cells, and changes from row to row at least 0.8 times as often as it
        would in a random order.
        """
        share = np.bincount(self.codes[self.codes >= 0]) / max(len(self.codes), 1)
        several = MOST_STATES < self.distinct <= len(self.codes) / MIN_RUN
        return several and self.runs > 0.8 * len(self.codes) * (1 - (share**2).sum())

    @property
    def is_error(self) -> bool:
        """Whether the column is called like standard errors, as flux_err is, and holds numbers, mostly other than 0."""
        if not self.numeric or 2 * (self.known == 0).sum() > len(self.known):
            return False
        named = bool(set(self.words) & (ERRORS if len(self.words) > 1 else ERRORS_ALONE))
        return named or "".join(self.words[-1:]).endswith("err")

    @property
    def counts_measurements(self) -> bool:
        """Whether the column holds whole numbers, and its name says that they count measurements, as NbPoints does."""
        glued = re.fullmatch("({})({})".format(*map("|".join, (COUNTS, COUNTED))), "".join(self.words[-2:]))
        return self.whole and bool(glued or (COUNTS & {*self.words} and COUNTED & {*self.words}))

    @property
    def is_flag(self) -> bool:
        """Whether the name suggests quality flags, such as temp_qc, and the cells are texts or whole numbers.

        False if the name has a word for an object, such as patient.
        """
        return (self.text or self.whole) and bool(FLAG.search(" ".join(self.words))) and not {*self.words} & {*IDS}

    @property
    def is_code(self) -> bool:
        """Return whether the column holds whole numbers that name something, such as ships, and measure nothing.

        False if all are below 1,000. Otherwise the first rule that applies decides:

        - Texts are codes if some have zeros in front, as in 07005.
        - If the column's name says so, as bikeid does, the numbers are codes, unless they go up and down in small
          steps, as a stock index does.
        - Other numbers are codes if each occurs at least three times on average, and they lie far apart: their range is
          more than 1,000 times their step times the count of different ones. The step is the greatest common divisor of
          their differences. Prices in millionths have a large step, and so are no codes.
        """
        if not self.whole or self.known.max() < MIN_CODE:
            return False
        if cells.is_text(self.cells.type) and cells.matches(self.cells, r"^0\d{3}").any():
            return True
        span, steps = np.ptp(self.known), np.diff(self.known)
        if (match := CODE.search("".join(self.words[-1:]))) and (match.start() > 0 or len(self.words) > 1):
            return self.goes_one_way(np.zeros(len(self.codes))) or bool(np.median(abs(steps)) > span / 10)
        step = np.gcd.reduce(steps.astype(np.int64))
        return bool(1 < self.distinct <= len(self.codes) / 3 and span > step * MIN_APART * self.distinct)

    def repeats_numbers(self, other: Column) -> bool:
        """Return whether the numbers of this column equal those of another one in all rows that have both.

        False if this column has at most two different numbers, or if at most half of the rows have both.
        """
        both = np.isfinite(self.numbers) & np.isfinite(other.numbers)  # pyright: ignore
        equal = (self.numbers[both] == other.numbers[both]).all()  # pyright: ignore
        return bool(self.distinct > 2 and 2 * both.sum() > len(both) and equal)

    @property
    def consecutive_repeated(self) -> bool:
        """Whether the numbers are consecutive integers, at least two, in any order, and some repeat: 3, 1, 2, 1."""
        return self.whole and 1 < np.ptp(self.known) + 1 == len(np.unique(self.known)) < len(self.known)

    @property
    def packs_days(self) -> bool:
        """Whether all numbers are dates written as year, month and day, such as 20240331.5."""
        years, months, days = self.known // 10_000, self.known // 100 % 100, self.known % 100
        dated = (abs(years - 2000) < 200) & (months >= 1) & (months <= 12) & (days >= 1) & (days < 32)
        return len(dated) > 0 and bool(dated.all())

    @property
    def numbers_rows(self) -> bool:
        """Whether the column counts the rows, and may begin again at 0 or 1: 1, 2, 3, 4, 5, 1, 2, ...

        It has more than four different whole numbers, and counts on or begins again in more than 95 % of the rows.
        """
        goes_on = (np.diff(self.known) == 1) | np.isin(self.known[1:], (0, 1))
        return self.whole and self.distinct > MOST_STATES and bool(goes_on.mean() > MOST)

    def goes_one_way(self, groups: np.ndarray) -> bool:
        """Return whether the numbers or dates ascend from row to row, or descend, in more than 95 % of the steps.

        Steps of 0 count as both. Only steps between consecutive rows of one group count, if no number is missing; False
        if there are none. `groups` [n] are codes of each row's group.
        """
        numbers = self.days if self.numbers is None else self.numbers
        if numbers is None:
            return False
        steps = np.diff(numbers)[np.diff(groups) == 0]
        steps = steps[np.isfinite(steps)]
        return max((steps >= 0).sum(), (steps <= 0).sum()) > MOST * len(steps)

    def restarts_times(self, times: np.ndarray | None, series: np.ndarray) -> bool:
        """Return whether the times restart wherever the cell changes, as in series that list one channel after another.

        From row to row with equal cells, the times of a series must run one way, up in all series or down in all.
        Equal times count as such. Where the cell changes, they must go back. Each must hold for more than 95 % of these
        steps.

        False if `times` is None, or steps of either kind do not occur. `times` [n] are numbers, and `series` [n] codes
        of each row's series.
        """
        if times is None:
            return False
        rows = np.argsort(series, kind="stable")
        steps, of_one = np.sign(np.diff(times[rows])), np.diff(series[rows]) == 0
        border = np.diff(self.codes[rows]) != 0
        inside, across = steps[of_one & ~border], steps[of_one & border]
        way = np.sign(np.nansum(inside))
        onwards, back = (inside * way >= 0).sum(), (across * way < 0).sum()
        return bool(onwards > MOST * len(inside) and back > MOST * len(across))

    def is_scale(self, groups: np.ndarray) -> bool:
        """Return whether the numbers place the rows of a group along an axis, as depths do for the rows of one time.

        True if they ascend or descend within groups (`goes_one_way`), and groups have at least three rows on average.
        False for consecutive whole numbers that repeat, as they may number channels. `groups` [n] are codes of groups.
        """
        several = len(groups) >= MIN_RUN * count_keys(groups)
        return several and not self.consecutive_repeated and self.goes_one_way(groups)

    def varies(self, series: np.ndarray) -> bool:
        """Return whether the column has different cells within any series; missing cells do not count.

        `series` [n] are codes of each row's series.
        """
        there = self.codes >= 0
        return count_keys(series[there], self.codes[there]) > count_keys(series[there])


def share_explained(values: Column, by: Column) -> float:
    """Return how far the cells of `by` explain the numbers of `values`: a share of the variance of their ranks, 0 to 1.

    It is 0 if fewer than two rows have a number in `values` and a cell in `by`.
    """
    known = np.isfinite(values.numbers) & (by.codes >= 0)  # pyright: ignore
    if known.sum() < 2:
        return 0.0
    _, place, counts = np.unique(values.numbers[known], return_inverse=True, return_counts=True)  # pyright: ignore
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    sizes = np.bincount(by.codes[known])
    means = np.bincount(by.codes[known], ranks) / np.maximum(sizes, 1)
    between = (sizes * (means - ranks.mean()) ** 2).sum() / known.sum()
    return float(between / max(ranks.var(), 1e-12))


def parts_of_dates(time: Column, columns: Iterable[Column]) -> list[Column]:
    """Return the columns that repeat a part of the dates in `time`, such as the month; [] without dates.

    - Whole numbers do so if they are the year, month, day, hour, weekday or day of the year, plus any constant: 0 to 11
      are months, too.
    - Texts do so if each month in the sample has a text of its own, or each weekday, in any language: Jan, Feb, ...
      There must be more than four texts, and equal ones must not stand together (`in_blocks`).

    Constant columns and those with names like ids are passed over.
    """
    if time.days is None:
        return []
    stamps, known = dates.as_dates(np.nan_to_num(time.days)), np.isfinite(time.days)
    sizes = {"year": 9999, "month": 12, "day": 31, "hour": 24, "day_of_week": 7, "day_of_year": 366}
    parts = [(pc.call_function(part, [stamps]).to_numpy(), size) for part, size in sizes.items()]

    def spread(column: Column, part: np.ndarray, size: int) -> float:
        """Return the range of column - part, modulo `size`; infinity if the column itself has a range of `size`."""
        apart = (column.numbers - part)[known]  # pyright: ignore
        return np.ptp((apart - apart[0] + size / 2) % size) if np.ptp(column.known) < size else np.inf

    varying = [c for c in columns if c.distinct > 1 and not looks_like_id(c.name)]
    texts = [c for c in varying if c.text and c.distinct > MOST_STATES and not c.in_blocks]
    cycles = [part for part, size in parts if size in (7, 12)]
    words = [c for c in texts if any(count_keys(p) == c.distinct == count_keys(p, c.codes) for p in cycles)]
    whole = [c for c in varying if c.whole and known.any()]
    return [c for c in whole if any(spread(c, *part) < 1 for part in parts)] + words


def spread(numbers: np.ndarray, unit: str = "") -> str:
    """Return the range and the median of finite numbers, at least one, as text: "0.1 to 28 mg/dL, median 1.35".

    Numbers have four significant digits; up to 13 if they are large or close together. The median is left out if the
    text would be too long to be shown (`HELD`).
    """
    quantiles = np.quantile(numbers, (0, 0.5, 1))
    largest, width = np.abs(quantiles).max(), np.ptp(quantiles)
    apart = int(np.log10(largest / width)) + 4 if width > 0 else 0
    digits = min(13, max(4, int(np.log10(max(largest, 1))) + 1, apart))
    low, middle, high = (f"{x:.{digits}g}" for x in quantiles)
    text = f"{low} to {high} {unit}".rstrip()
    return text if len(text) + len(middle) > HELD - 9 else f"{text}, median {middle}"


def count_keys(*keys: np.ndarray) -> int:
    """Count the different rows of integer arrays [n] side by side: count_keys([0, 0, 1], [5, 5, 5]) is 2."""
    return len(np.unique(_row_codes(*keys)))


def joint_codes(*keys: np.ndarray) -> np.ndarray:
    """Give each row a number for its combination of codes: int [n], equal for rows that are equal in all keys.

    Each key is an array [n] of integer codes, one per row. The number is -1 if any code of the row is negative.
    """
    return np.where(np.min(keys, axis=0) < 0, -1, _row_codes(*keys))


def _row_codes(first: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Number the rows of integer columns [n]: return int64 [n], the same number for rows that agree in all columns."""
    numbers = first
    for codes in others:  # of numbers, not of pairs, as these are slow to sort
        low, size = codes.min(initial=0), np.ptp(codes) + 1 if len(codes) else 1
        numbers = np.unique(numbers, return_inverse=True)[1] * size + (codes - low)
    return numbers


def look(source: Source, na: Sequence[str] = (), names: Sequence[str] | None = None) -> dict[str, Column]:
    """Describe columns of a table by a sample of its rows: return {name: column}, all with the same number of cells.

    The sample has at most 20,000 rows, spread over the table; or 200 if any column holds lists. Each entry of a list is
    then a cell of its own, and the cells of other columns are repeated for each entry. Rows of a text file that repeat
    its header are left out.

    Args:
        source: the table.
        na: texts that mean "missing", besides the usual ones.
        names: the columns to describe; all if None.

    Raises:
        InputError: as `Source.read` does; or the file holds several tables ("several-tables").
    """
    names = list(source.kinds if names is None else names)
    lists = {name for name in names if cells.is_list(source.kinds[name])}
    read = source.sample(ROWS // 100 if lists else ROWS).read(names, equal=False) if names else {}
    read = without_headers(read, source.name)[0] if source.is_text else read
    return {name: _column(name, column, name in lists, na) for name, column in read.items()}


def _column(name: str, column: pa.Array, of_lists: bool, na: Sequence[str]) -> Column:
    """Describe a column by its name and some of its cells, which are dates, times of day, numbers or texts.

    - Texts are ISO dates or times of day if more than half of the filled cells are written so.
    - Texts are numbers if at least as many cells hold numbers as words, or if there are more than two different numbers
      for each different word.
    - Texts and whole numbers are other dates if all cells fit one format (`_formats`).
    - If all numbers are the same negative number of nines, such as -999, they count as missing.

    Args:
        name: the column's name. If it is one for a date or a time of day, more ways of writing these are recognised.
        column: Arrow array [n] of the cells as they were read.
        of_lists: whether the cells are the entries of lists.
        na: texts that mean "missing", besides the usual ones.
    """
    kind, numbers = column.type, None
    column, text = dates.starts_of(cells.trimmed(column)), cells.is_text(kind)
    is_date = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    is_clock = pa.types.is_time(kind) or pa.types.is_duration(kind)
    codes = np.zeros(len(column), np.int64)
    with suppress(InputError, pa.ArrowException):
        codes = cells.encode(cells.without_missing(column.cast(pa.large_string()), na))[0]
    words = text and not cells.matches(column.unique(), r"^([A-Z]{1,3}\p{Sc})?\W*\d|^(?i:true|false)$").any()
    if text and not words:
        half = max(1, len(cells.without_missing(column).drop_null())) / 2
        is_date, is_clock = (bool(cells.matches(column, pattern).sum() > half) for pattern in (ISO, ELAPSED))
    if not is_date and not is_clock and not words:
        with suppress(InputError):
            read = cells.numbers(column, name, na, limits=True)
            known = read.values[~np.isnan(read.values)]  # many of which, or different ones next to a word or two
            mostly = len(known) >= sum(read.words.values()) or len(np.unique(known)) > 2 * len(read.words)
            numbers = read.values.astype(np.float64) if mostly or not text else None
            if numbers is not None and len(known) and known[0] < 0 and np.ptp(known) == 0 and cells.is_code(known[0]):
                numbers, codes = np.full(len(numbers), np.nan), np.full(len(codes), -1)  # -999 all through is empty
    called = pieces(name)
    formats = () if is_date or is_clock or of_lists else _formats(column, numbers, not CALLED_DATES.isdisjoint(called))
    numbers = None if formats else numbers
    text = text and numbers is None
    is_clock = is_clock or (CLOCK.fits(called) and _is_clock(column, numbers, bool(HOURS & {*called})))
    is_clock = is_clock or (numbers is not None and _has_points(column))
    is_date = is_date or bool(formats)
    return Column(name, tuple(called), column, is_date, is_clock, text, formats, of_lists, codes, numbers)


def _formats(column: pa.Array, numbers: np.ndarray | None, named: bool) -> tuple[str, ...]:
    """Return the strptime formats that can each read all cells of a column as dates; () if there is none.

    There are several if day and month could be swapped (`formats_of`). Texts without digits are passed over. Only texts
    and whole numbers have formats.

    Args:
        column: Arrow array [n].
        numbers: its cells as numbers, float64 [n]; None for texts. Numbers are dates only if all of them look like
            20240331: they begin with 19 or 20 and have 7, 8, 10, 12 or 14 digits.
        named: whether the column is called like a date. If so, numbers are also dates if all have six digits, such as
            240331.
    """
    if not (cells.is_text(column.type) or (pa.types.is_integer(column.type) and numbers is not None)):
        return ()
    formats: list[str] = []
    for some in (column[:100], column):  # the first are soon seen to be none
        texts = cells.without_missing(some.cast(pa.large_string()).unique()).drop_null().to_pylist()
        dated = numbers is None or all(text.startswith(("19", "20")) and len(text) in JOINED for text in texts)
        formats = formats_of(texts) if dated else []
        if named and numbers is not None and all(len(text) == 6 and is_written(text, "%y%m%d") for text in texts):
            formats = ["%y%m%d"]
        if texts and not formats:
            break
    return tuple(formats)


def _has_points(column: pa.Array) -> bool:
    """Return whether a column of texts holds times of day written as 8.15, for 08:15, and not decimal numbers.

    It does if all cells are written so, and it has at least 20 different ones, in at least 4 different hours. Among as
    many decimal numbers, some would end in .60 to .99.
    """
    known = cells.without_missing(column).drop_null().unique() if cells.is_text(column.type) else []
    if len(known) < MIN_POINTED or not cells.matches(known, r"^([01]?\d|2[0-3])\.[0-5]\d$").all():
        return False
    return len(pc.floor(known.cast(pa.float64())).unique()) > MOST_STATES - 1  # pyright: ignore


def _is_clock(column: pa.Array, numbers: np.ndarray | None, hours: bool) -> bool:
    """Return whether a column that is called like a clock holds times of day.

    - Texts are times of day if more than 95 % look like 18.00.00.
    - If the name says hours, numbers are times of day if all are whole, from 0 to 24.
    - Other numbers are times of day if `_are_hours_and_minutes` accepts them.

    Args:
        column: Arrow array [n] of its cells.
        numbers: the cells as numbers, float64 [n]; None for texts.
        hours: whether the name says hours.
    """
    if numbers is None or np.isnan(numbers).all():
        known = column.drop_null() if cells.is_text(column.type) else []
        return len(known) > 0 and bool(cells.matches(known, r"^([01]?\d|2[0-4])(\.[0-5]\d){2}$").mean() > MOST)
    if hours:
        return bool(np.nanmin(numbers) >= 0 and np.nanmax(numbers) <= 24 and not (np.nan_to_num(numbers) % 1).any())
    return _are_hours_and_minutes(numbers[~np.isnan(numbers)])


def _are_hours_and_minutes(numbers: np.ndarray) -> bool:
    """Return whether numbers, at least one, are times of day without a colon: 915 and 2350 for 09:15 and 23:50.

    All must be readable so, and one must be 100 (01:00) or more. Full hours such as 0, 100, 200 could be elapsed times,
    so there must be at least three different minutes, or the largest number must be 2300, as in hourly data.
    """
    minutes = numbers % 100
    likely = numbers.max() >= 100 and (len(np.unique(minutes)) >= MIN_RUN or numbers.max() == 2300)
    return bool(likely and ((numbers >= 0) & (numbers <= 2400) & (minutes < 60) & (minutes % 1 == 0)).all())
