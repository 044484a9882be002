"""Which column of a table is what, proposed from names, pieces of names, types, and the shape of the data.

A proposal never merges, drops or converts: what is doubtful is said in `remarks` on its columns and in `unsure`, and
left to the user.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, listed
from rotarymae.series import cells, dates
from rotarymae.series.columns import says_magnitude
from rotarymae.tables.columns import (
    CLOCK,
    ERRORS,
    ERRORS_ALONE,
    IDS,
    MAX_CHANNELS,
    MIN_ASCENDING,
    MIN_RUN,
    MOST,
    MOST_STATES,
    NUMBERINGS,
    OUTCOMES,
    ROWS,
    STANDARD_ERRORS,
    Column,
    Rule,
    count_keys,
    joint_codes,
    look,
    looks_like_id,
    looks_like_outcome,
    parts_of_dates,
    pieces,
    share_explained,
)
from rotarymae.tables.formats import MIN_TIME_NAMES, NUMBERED, numbered_names, numbers_in, values_in
from rotarymae.tables.schema import TableSchema, option
from rotarymae.tables.source import DATE_PARTS, Source, dates_in_parts, id_parts, open_source

DATED = re.compile(r"\d+[-/.]\d*[-/.]?\d*")  # the beginning of 2024-03-31 and of 3/31/24
TIME_NAME = re.compile(  # of a column whose cells were measured then: 2024-03-31, 1990, H01, 13:00, Jan
    rf"{DATED.pattern}.*|(19|20)\d\d|(h|hr|hour|day|month)?[ _]?\d\d?(:\d\d|h)?|"
    r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*",
    re.IGNORECASE,
)
OUTCOME = "looks like an outcome"
MIN_NUMBERED = 20  # columns of one stem that make a series of each row
MIN_REPEATED = 4  # of one stem, whose numbers count or ascend, that look like times, as t0, t0.5, ... do
TELLING_SHARE = 0.5  # of the variance of a column's ranks, that another explains which says what was measured
SLACK = 0.005  # of its spread, by which a column of times may differ from the times

NOTHING = re.compile(r"^(__.*__|unnamed:? ?\d*|index|rownames?|row_?(id|number|nr)?|#|level_\d+|)$", re.IGNORECASE)
UNITS = {"unit", "units", "uom", "valueuom", "einheit", "unidad", "unité", "unità", "eenheid"}
ZONES = re.compile(r"\b(tz|tzcd|timezone|time zone)\b")  # in the words of a name
PLACES = {"location", "site"}  # which are ids only where they tell the rows of one time apart
ERROR_MARK = re.compile("^({0})|({0})$".format("|".join(sorted(ERRORS - {"sig"}, key=len, reverse=True))))
MEANS = {"mean", "avg", "average", "median"}  # in the names of values, in the place of marks of errors
NO_FACTS = ERRORS | {"split", "fold", "true"}
MARKS = {"<", ">", "<=", ">=", "≤", "≥"}  # in a column of their own
OPERATORS = {"operator", "qualifier", "relation", "comparator", "nondetect", "nondetects"}  # flags that hold them
CLOCKS = np.array([0.001, 1, 60, 3600, 86_400, 7 * 86_400, 2_629_746, 31_556_952])  # seconds: ms, s, ..., month, year
PACES = np.divide.outer(CLOCKS, CLOCKS)  # of one time by another
LIMIT = re.compile(  # in the words of a name
    r"lim\b|\b(limit|limiting|upperlimit|limmag|limite|límite|lod|loq|mdl|\w+grenze)\b|\b[35] sig(ma)?\b"
)
SKY = {"ra", "dec"}  # coordinates only together, as Dec may be a month
COORDINATES = ("ra", "dec", "lat", "lon", "long", "latitude", "longitude", "depth", "x", "y", "z", "altitude")
OTHER_SENSES = {"discharge", "status", "event", "stay"}  # of a river or a battery, of a device
LABELS_OF_TIMES = {"anomaly", "attack", "fault", "failure", "alarm"}  # in names of columns of 0 and 1

# Words in the names of columns that say how long something lasted, and whether its end was seen.
DURATION = {"time", "days", "weeks", "months", "years", "hours", "duration", "survival", "lifetime", "futime", "tte"}
STATUS_NAMES = {"status", "event", "censored", "censoring", "died", "dead", "death", "failed"}

TIME = Rule(
    ("mjd", "bmjd", "hjd", "bjd", "bkjd", "btjd", "jd", "time", "timestamp", "datetime", "dttm", "dt", "date",
     "day", "days", "hour", "hours", "minute", "minutes", "second", "seconds", "week", "month", "year", "t",
     "offset", "epoch", "zeit", "datum", "cycle", "step", "iculos", "ts", "zeitpunkt", "zeitstempel", "heure",
     "temps", "horodatage", "fecha", "hora", "tiempo", "data", "ora", "tempo", "tijd", "czas", "tid", "дата",
     "время", "时间", "日期", "時間", "日時", "日付", "sec", "secs", "onset", "elapsed", "start"),
    ("mid", "midpoint", "obs", "observed", "chart", "recorded", "collect", "collected", "measured", "start"),
    frozenset(ERRORS | OUTCOMES | {"zone", "to", "id", "unit", "corr"}),
)  # fmt: skip
ID = Rule(IDS)
PASSBANDS = ("passband", "band", "bandpass", "filter", "filt", "flt", "filtercode", "filterid", "fid")  # never ids
CHANNEL = Rule(
    (*PASSBANDS, "category", "channel", "sensor", "variable", "parameter", "test", "itemid", "item", "code", "concept",
     "analyte", "signal", "tag", "metric", "measurement", "lead", "fühler", "messstelle", "messgröße", "kanal", "sonde",
     "capteur", "canal", "voie", "canale", "sensore"),
)  # fmt: skip
VALUE = Rule(
    ("flux", "jy", "mag", "magnitude", "valuenum", "value", "reading", "measurement", "result", "amount", "numeric",
     "wert", "messwert", "valeur", "mesure", "valor", "valore", "waarde", "значение", "数值", "値"),
    ("psf", "pdc", "numeric", "num", "cal", "corr"),
)  # fmt: skip
LABEL = Rule(
    ("label", "target", "class", "kind", "type", "outcome", "died", "diagnosis", "species", "mortality", "death", "y")
)


@dataclass(frozen=True)
class Proposal:
    """The probable layout of a table.

    Attributes:
        schema: the whole layout, with what the user named and what is proposed.
        label: the column that looks like the label of each series; None without one.
        split: a column, such as one of patients, whose cells repeat across series; a random split would put such series
            on both sides. None without one.
        unsure: sentences on what is doubtful about the table as a whole, for the user.
        remarks: {column: what is doubtful about it, in a few words, for the user}.
        columns: {column: some of its cells}, for all that were looked at.
    """

    schema: TableSchema
    label: str | None
    split: str | None
    unsure: tuple[str, ...]
    remarks: dict[str, str]
    columns: dict[str, Column]


class Remarks(dict[str, str]):
    """{column: what is doubtful about it}, in a few words each."""

    def on(self, columns: Iterable[Column], text: str) -> None:
        """Add `text`, a few words for the user, to the remark on each of the columns."""
        self.update({c.name: f"{self[c.name]}; {text}" if c.name in self else text for c in columns})


def _series_per_row(source: Source) -> str | None:
    """Return the stem of numbered columns, "FLUX." for FLUX.1, FLUX.2, ..., if each row is a series; None if not.

    The stem is the beginning that the names share. It is "" if whole names are numbers or dates, such as 1990. It is
    "column " in a table without names, whose columns are called "column 1", "column 2", ... The result is None

    - if there are fewer numbered columns than others, or fewer than 20 (7 if their names are times, such as 1990; 4 if
      the stem is called like a time);
    - if the stem is "", and the numbers neither rise nor fall throughout: they may be names of stations;
    - if another column may be the time. It is called like a time, and does not hold words; or it holds dates or decimal
      numbers that go one way, and at least half as many different ones as there are rows;
    - if the table has no names, and a column holds no numbers, or neighbours in a row may be unrelated: they differ
      more than twice as much as neighbours in a column (medians, without the first column).
    """
    stems = [stem for stem in ("", *_stems(source.kinds)[:1]) if not DATED.match(stem)]
    counts = {stem: numbers_in(source.kinds, stem) for stem in stems}
    stem = max(counts, key=lambda stem: len(counts[stem]))
    names, values = counts[stem], [*counts[stem].values()]
    others = [name for name in source.kinds if name not in names]
    few = MIN_TIME_NAMES if not stem and all(map(TIME_NAME.fullmatch, names)) else MIN_NUMBERED
    few = MIN_REPEATED if TIME.fits(pieces(stem)) else few
    # Names of an axis go one way; those of stations that are called by a number do not.
    axis = bool(stem) or sorted(values) in (values, values[::-1])
    if not axis or len(names) < max(few, len(others)):
        return None
    seen = look(source, names=others).values()
    if any(TIME.fits(c.words) and not (c.text and not c.dates) for c in seen):  # geo\time_period is none
        return None
    if _made_up(source.kinds):  # neighbours in a row, but for the first column, are to differ less than those below
        numbers = [c.numbers for c in look(source).values()]
        if any(each is None for each in numbers):
            return None
        along, down = (np.abs(np.diff(np.stack(numbers[1:], axis=1), axis=axis)) for axis in (1, 0))  # pyright: ignore
        known = np.isfinite(along).any() and np.isfinite(down).any()
        if not known or np.nanmedian(along) > 2 * np.nanmedian(down):
            return None
    axes = (c for c in seen if (c.dates or (c.numeric and not c.whole)) and 2 * c.distinct >= len(c.codes))
    return None if any(c.goes_one_way(np.zeros(len(c.codes))) for c in axes) else stem


def _stems(names: Iterable[str]) -> list[str]:
    """Return the beginnings of numbered names of columns, most frequent first: ["FLUX."] for FLUX.1 and FLUX.2.

    A beginning is what stands before the last number of a name; for a name such as "1990" it is "". Each comes once.
    Names without a number are passed over.
    """
    numbered = Counter((match[1], match[3]) for match in map(NUMBERED.fullmatch, names) if match)
    return list(dict.fromkeys(stem for (stem, _), _ in numbered.most_common()))


def _repeated(names: Iterable[str]) -> dict[str, list[str]]:
    """Return {stem: names} of numbered columns that may hold one quantity at several times: {"x": ["x1", "x2", ...]}.

    A stem is the common beginning of at least four names, and their numbers ascend in the order of the columns. The
    result is empty for a table without names, whose columns are called "column 1", "column 2", ...
    """
    names = list(names)
    numbers = {} if _made_up(names) else {stem: numbers_in(names, stem) for stem in _stems(names)}
    return {
        stem: list(at)
        for stem, at in numbers.items()
        if len(at) >= MIN_REPEATED and all(early < late for early, late in itertools.pairwise(at.values()))
    }


def _doubt_header(source: Source) -> list[str]:
    """Return a sentence for the user if a header leaves more than half of the columns without a name; else []."""
    count, columns = sum(name.startswith("unnamed ") for name in source.kinds), len(source.kinds)
    text = f"{count} of {columns} columns have no name; if another line names them, --header-row"
    return [text] if source.is_text and 2 * count > columns else []


def _made_up(names: Iterable[str]) -> bool:
    """Return whether names are "column 1", "column 2", ..., as the columns of a table without names are called."""
    names = tuple(names)
    return names == numbered_names(len(names))


@np.errstate(invalid="ignore")  # of infinite numbers
def propose(source: Source, schema: TableSchema, named: set[str]) -> Proposal:
    """Propose a column for every role of a schema that the user did not name: id, time, channel, values and so on.

    Some columns are joined first:

    - those of a named id, such as subject+trial;
    - numbered ones to lists, if their stem is named, or no time is named and each row is a series (`_series_per_row`);
    - otherwise year, month, ... to one time: those of a named time, such as year+month, or else those of `_with_dates`.

    Args:
        source: the table, of which some rows are read.
        schema: the fields that the user has named, and the defaults of others; it is not changed.
        named: the names of the fields that the user has named, which stay as they are.

    Raises:
        InputError: a column that the user named is absent ("unknown-column"), other than "id", "file" and static ones,
            which may be in another table; no column could hold times or values ("no-time", "no-values"); dates may be
            in several formats ("time-text"); numbered columns cannot be joined (`Source.with_numbered`); the file
            cannot be read ("unreadable") or holds several tables ("several-tables").
    """
    if joined := id_parts(schema.id, source.kinds) if "id" in named else []:
        source = source.with_id(schema.id)
        source = replace(source, kinds={name: kind for name, kind in source.kinds.items() if name not in joined})
    stem = schema.numbered
    if stem is None and "time" not in named:
        stem = _series_per_row(source)
    if stem is None:
        dated = source.with_time(schema.time) if "time" in named else _with_dates(source)
        return _Proposer(dated, schema, named).propose()
    at = numbers_in(source.kinds, stem)
    others = look(source, names=[name for name in source.kinds if name not in at]).values()
    unique = [c for c in others if len(c.cells.drop_null().unique()) == len(c.cells)]  # as names of rows are
    words = [c for c in unique if cells.is_text(c.cells.type) and cells.matches(c.cells, r"\pL").all()]
    likely = [c for c in unique if looks_like_id(c.name)] + words
    id = likely[0].name if likely else "series"
    fields = {"id": id, "time": "number", "values": (values_in(stem),), "numbered": stem}
    fields = {name: value for name, value in fields.items() if name not in named}
    joined = open_source(source, numbered=stem)
    rest = _Proposer(joined, replace(schema, **fields), {*named, *fields, "channel"}).propose()
    if len(at) < MIN_NUMBERED or _made_up(source.kinds):
        text = f"{listed(at, 3)} are proposed as one series in each row ({option('numbered', stem)})"
        rest = replace(rest, unsure=(*rest.unsure, f"{text}; if each is a sensor, name the column of times (--time)"))
    return replace(rest, unsure=(*_doubt_header(source), *rest.unsure))


def _with_dates(source: Source) -> Source:
    """Return the table with columns year, month, ... joined to one of times; the table itself if it has none.

    - If all parts together make dates in at most 95 % of the sampled rows, the finest ones, such as the minute, are
      left out until the rest does better. At least two parts must be left.
    - If there are several such dates, the one with the most different values is joined.
    - A date whose names have a common beginning, such as VISITYR and VISITMO, may be a date of birth. It counts only if
      no column of the table holds dates, if all its years lie in 1900 to 2100, and if it changes in more than half of
      the steps from row to row or never goes back.
    """
    best, most = source, 0
    for parts in dates_in_parts(source.kinds):
        names, plain = [*parts.values()], parts["year"].lower() in DATE_PARTS["year"][0]
        if not plain and any(c.dates for c in look(source).values()):
            continue
        for joined in ("+".join(names[:count]) for count in range(len(names), 1, -1)):
            read = source.sample(ROWS).with_time(joined).read([joined], equal=False)[joined]
            known = read.drop_null()
            usual = plain or (abs(pc.year(known).to_numpy() - 2000) <= 100).all()  # pyright: ignore
            if usual and len(known) > MOST * len(read):
                steps, different = np.diff(known.cast(pa.int64()).to_numpy()), len(known.unique())
                goes_on = plain or 2 * (steps != 0).sum() > len(steps) or (steps >= 0).all()
                if goes_on and different > most:
                    best, most = source.with_time(joined), different
                break
    return best


class _Proposer:
    """The columns of a table, and what has been proposed of them so far, role after role.

    Attributes:
        source: the table; numbered columns and parts of dates are joined already.
        schema: the schema as the user gave it.
        named: the names of the fields of the schema that the user named.
        columns: {name: column}, without those that are called like numbers of rows ("index", "Unnamed: 0"), unless they
            hold dates or the user named them.
        unused: {name: column} of those that have no role so far.
        given: {field of the schema: what is proposed}.
        doubts: sentences on what is doubtful about the table as a whole, for the user.
        remarks: what is doubtful about single columns.
        rows: number of rows that were looked at.
        time: the column of times, named by the user or proposed.
        times, series: int [rows], codes of the time and of the series of each row.
        time_values: float64 [rows], the times; None where they are neither numbers nor dates.
        varying: those of the unused columns that differ within some series.
        outcomes: those of `varying` that hold numbers and look like outcomes; none if all with numbers look so.
        varying_numbers: the other ones of `varying` that hold numbers.
        errors, limits, flags, coordinates: columns that look like standard errors, limits of what can be seen, quality
            flags and coordinates.
        value_of: {column of errors: column of its values}, where the names tell.
        maybe_values: columns that may be values, as they have no other role.
        values: names of the columns of values, named by the user or proposed.
    """

    def __init__(self, source: Source, schema: TableSchema, named: set[str]) -> None:
        """Look at the columns of a table by a sample of its rows; keep the arguments, those of `guess.propose`.

        Raises:
            InputError: a column that the user named cannot be read, or is absent ("unknown-column"), other than an id
                "id" or "file" and static ones; what `look` raises.
        """
        for role, name in schema.roles:
            if role in named - {"static"} and (role, name) not in (("id", "id"), ("id", "file")):
                source.need([name], advice=f"; name the right one by {option(role)}")
        used = {name for role, name in schema.roles if role in named}
        self.source, self.schema, self.named, self.seen = source, schema, named, look(source, schema.na)
        kept = {name: c for name, c in self.seen.items() if c.dates or name in used or not NOTHING.match(name)}
        self.columns, self.remarks = kept, Remarks()
        self.remarks.on((c for name, c in self.seen.items() if name not in kept and c.distinct), "row numbers")
        self.unused = {name: c for name, c in self.columns.items() if name not in used}
        self.rows = len(next(iter(self.columns.values())).codes) if self.columns else 0
        self.given: dict[str, Any] = {}
        self.doubts = _doubt_header(source)

    def propose(self) -> Proposal:
        """Propose which columns are time, id, channel, values and so on; return this layout, with what is doubtful.

        Call it once: it fills `self.given`, the proposed roles, and `self.doubts` and `self.remarks`. Raises InputError
        as `find_time` and `find_values` do.
        """
        self.find_time()
        self.find_id()
        self.find_varying()
        label, group = self.find_facts()
        self.find_companions()
        self.find_channel()
        self.find_possible_values()
        self.find_values()
        self.find_errors()
        self.find_limits()
        schema = replace(self.schema, **self.given)
        return Proposal(schema, label, group, tuple(self.doubts), self.remarks, self.seen | self.columns)

    @functools.cached_property
    def files(self) -> Column | None:
        """A column with the id of each row's file, if the table has several files and no column of lists; else None."""
        several = len(self.source.paths) > 1 and not any(c.listed for c in self.columns.values())
        return look(self.source.with_ids_of_files(), names=["file"])["file"] if several else None

    def take(self, role: str, column: Column | None) -> None:
        """Propose a column for a role, such as "time": note it in `self.given`, and remove it from `self.unused`.

        It is also taken off the proposed static columns. Nothing is done if it is None, or the user named the role.
        """
        if column is not None and role not in self.named:
            self.given[role] = column.name
            self.unused.pop(column.name, None)
            if "static" in self.given:
                self.given["static"] = tuple(name for name in self.given["static"] if name != column.name)

    def column(self, role: str) -> Column | None:
        """Return the column of a role, such as "time": the proposed one, or else that of the schema.

        None if the role has no column.
        """
        return self.columns.get(self.given.get(role, getattr(self.schema, role)) or "")

    def described(self, columns: Mapping[str, Column]) -> str:
        """Return columns, {name: column}, as text for the end of an error message.

        The text lists their names and what they hold. It also says which columns of the table cannot be read, and why,
        whether most lack a name, and how a text file was read.
        """
        held = [f"{name!r} ({c.holds()})" for name, c in itertools.islice(columns.items(), 20)]
        held += [f"... ({len(columns)} in all)"] if len(columns) > 20 else []
        said = [f" Besides, {text}" for text in self.source.said_unreadable]
        said += [f" {text}." for text in _doubt_header(self.source)]
        if self.source.is_text and self.source.notes:
            said.append(f" The file is read thus: {'; '.join(self.source.notes)}.")
        return f"{', '.join(held) or 'no others'}.{''.join(said)}"

    # ── time ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def find_time(self) -> None:
        """Propose the column of times, the format of its dates, and a column of times of day next to whole days.

        Sets `self.time`, the column; `self.times`, codes of the rows' times; and `self.time_values`, the times as
        numbers, or None. The latter two include the times of day. Columns that only repeat a part of the dates, such as
        the month, are taken off `self.unused`, unless no other column of numbers is left.

        Raises:
            InputError: no column could hold times, or dates lack the year ("no-time"); dates may be written in several
                formats, and the user did not name their column ("time-text").
        """
        if "time" not in self.named:
            self.take("time", self.likely_time())
            self.refuse_dates_without_year()
            if "time" not in self.given:
                melt = sum(bool(TIME_NAME.fullmatch(name)) for name in self.columns) > len(self.columns) / 2
                advice = " The names of its columns are times: make a row of each first (pandas.melt)." if melt else ""
                if (repeated := _repeated(self.columns)) and not melt:
                    stem, *others = repeated
                    advice = f" {listed(repeated[stem], 3)} look like one quantity at several times: make a row of each"
                    advice += f" first (pandas.melt), or a series of each row by {option('numbered', stem)}"
                    advice += f" (or {listed(others)})." if others else "."
                if not (advice or self.source.unreadable) and all(c.numeric for c in self.columns.values()):
                    advice = " If the rows are at even steps, add a column with the time of each."
                for c in (c for c in self.columns.values() if pa.types.is_float32(c.cells.type) and c.distinct == 1):
                    text = f" {c.name!r} has 32 bits, which may have made times equal: write it with 64."
                    advice += text if c.known.max(initial=0) > 2**24 else ""
                raise InputError(
                    f"no column looks like time; name it by --time. There are {self.described(self.columns)}{advice}",
                    code="no-time",
                )
        time = self.time = self.columns[self.given.get("time", self.schema.time)]
        how = self.schema.time_format
        if how and cells.is_text(time.cells.type):  # as that of another calendar, whose dates look like none
            time = self.time = self.columns[time.name] = replace(time, dates=True, formats=(how,), numbers=None)
        if time.formats and "time_format" not in self.named:
            self.find_format()
        if time.numeric and time.clock and CLOCK.fits(time.words) and time.known.max() > 24:
            self.remarks.on([time], "like hours and minutes: write 08:40, next to a column of days (--clock)")
        self.find_clock()
        parts = parts_of_dates(time, self.unused.values())
        self.remarks.on(parts, "a part of the time")
        rest = {name: c for name, c in self.unused.items() if c not in parts}
        if any(c.numeric and c.distinct > 1 and not looks_like_id(name) for name, c in rest.items()):
            self.unused = rest
        clock = self.column("clock")
        self.times = joint_codes(*(c.codes for c in (time, clock) if c is not None))
        self.time_values = time.days if time.numbers is None else time.numbers
        if clock is not None and self.time_values is not None:
            days = dates.Times(self.time_values)
            with suppress(InputError):
                self.time_values = dates.with_clock(days, clock.cells, clock.name).values

    def find_clock(self) -> None:
        """Propose the column of times of day next to the column of times, if that holds whole days.

        It is the first one that is called like a clock. Without such a name, as in other languages, it is the first one
        whose times of day ascend within each day (`ascends_within_days`). Other columns of times of day get a remark.
        """
        if self.time.days is None or (np.nan_to_num(self.time.days) % 1).any():
            return
        clocks = [c for c in self.unused.values() if c.clock]
        named = [c for c in clocks if CLOCK.fits(c.words)]
        others = [c for c in clocks if self.ascends_within_days(c)] if not named else []
        self.take("clock", next(iter(named + others), None))
        self.remarks.on((c for c in clocks if c.name in self.unused), f"--clock, if of {self.time.name!r}")

    def ascends_within_days(self, clock: Column) -> bool:
        """Return whether the column `clock` holds times of day, before 24:00, that ascend within the days of the time.

        Between consecutive rows of the same day, they ascend at least once, and descend in less than 5 % of the steps.
        """
        with suppress(InputError):
            spent = dates.with_clock(dates.Times(np.zeros(self.rows)), clock.cells, clock.name).values
            known = spent[np.isfinite(spent)]
            steps = np.diff(spent)[np.diff(self.time.codes) == 0]
            onwards = (steps > 0).any() and (steps >= 0).mean() > MOST
            return bool(onwards and (known >= 0).all() and (known < 1).all())
        return False

    def refuse_dates_without_year(self) -> None:
        """Raise InputError ("no-time") if the times are days of the month, and the table has a month, but no year.

        The columns of year, month and day are recognised by their names (`DATE_PARTS`). No error is raised if the
        column of months has other numbers than 1 to 12, or that of days others than 1 to 31.
        """
        time = self.column("time")
        names = {name.lower(): name for name in self.columns}
        year, month, day = (next((w for w in DATE_PARTS[p][0] if w in names), "") for p in ("year", "month", "day"))
        if time is None or not time.numeric or time.name != names.get(day) or year or not month:
            return
        if set(self.columns[names[month]].known) <= {*range(1, 13)} and set(time.known) <= {*range(1, 32)}:
            raise InputError(
                f"{names[month]!r} and {time.name!r} are dates without a year: add a column of years, or name another "
                f"column by --time. There are {self.described(self.columns)}",
                code="no-time",
            )

    def likely_time(self) -> Column | None:
        """Return the column that is most likely the time, of those not used so far; None if no column may be.

        Candidates hold dates, or are called like times and hold numbers or times of day. Constant columns are none,
        other than dates in a table with times of day. Numbered columns (`_repeated`) are none, unless they hold dates.
        Columns that are constant within blocks of ids or files, as dates of birth are, are candidates only if there are
        no others. The first of these questions to which candidates differ decides:

        - Is it filled in more than half of the rows?
        - Does it hold something else than times of day? This is asked if another candidate holds dates.
        - Does its name alone tell, as MJD and obs date do?
        - Does it hold dates of one format, and change nearly as often as the candidate that changes most? The dates
          must also be called like times, if any candidate so called holds neither dates nor consecutive integers that
          repeat, such as 1, 2, 3, 1, 2.
        - Does `in_order` accept it?
        - Does its name fit best?

        If the numbers of the likeliest go up and down, the column of `ascending` replaces it, unless that is None.

        Without candidates the result is the first of these that exists: a column of texts that is called like a time;
        the column of `ascending`; a column in which all dates are the same.
        """
        clocks = any(c.clock for c in self.unused.values())  # which tell the times of a single day
        times = [c for c in self.unused.values() if c.distinct > 1 or (c.dates and clocks)]
        repeated = {*itertools.chain(*_repeated(self.columns).values())}  # at several times, of which none is one
        times = [c for c in times if c.name not in repeated or c.dates]
        dated = [c for c in times if c.dates]
        named = [c for c in times if TIME.fits(c.words) and (c.numeric or c.dates or c.clock)]
        if not (named or dated):
            text = next((c for c in self.unused.values() if c.text and TIME.fits(c.words)), None)
            return text or self.ascending() or next((c for c in self.unused.values() if c.dates), None)

        often = 0.9 * max(c.runs for c in named or dated)
        counted = all(c.consecutive_repeated or c.dates for c in named)

        def rank(c: Column) -> tuple[Any, ...]:
            """Return the answers to the questions above, in this order, as a sort key: smaller is likelier."""
            empty, clock = 2 * (c.codes >= 0).sum() <= len(c.codes), not c.dates and bool(dated) and c.clock
            clear = TIME.rank(c.words) < TIME.words.index("time")
            telling = c.dates and (counted or c in named) and len(c.formats) < 2 and c.runs > often
            return empty, clock, not clear, not telling, not self.in_order(c), TIME.rank(c.words)

        blocks = [c for c in self.unused.values() if looks_like_id(c.name) and c.in_blocks and c.distinct > 1]
        blocks += [self.files] if self.files else []
        likely = [*named, *dated]
        best = min([c for c in likely if all(c.varies(block.codes) for block in blocks)] or likely, key=rank)
        if not self.in_order(best):
            if (other := self.ascending()) is not None:
                return other
            self.remarks.on([best], "goes up and down from row to row: is it the time?")
        return best

    def in_order(self, column: Column) -> bool:
        """Return whether a column that is called like a time may be one, by its name or else by its order.

        - An unambiguous name, such as mjd or date, is enough, and so is a column without numbers.
        - Otherwise the numbers must go one way through the table, or within each block of equal cells of some other
          column.
        """
        plain = TIME.rank(column.words) < TIME.words.index("day" if len(column.words) == 1 else "time")
        if plain or not column.numeric:
            return True
        blocks = (c.codes for c in self.columns.values() if c is not column and MIN_RUN * c.runs <= self.rows)
        return any(map(column.goes_one_way, (np.zeros(self.rows), *blocks)))

    def ascending(self) -> Column | None:
        """Return the column of numbers that rises most often from row to row, as times do; None if no column qualifies.

        Columns that are used already are not tried, nor are ids and columns whose cells are lists.

        A column qualifies if it has at least 10 different numbers, and rises in more than 90 % of the steps from row to
        row. If equal cells of a column of texts come in blocks, each may be an object: then steps between blocks do not
        count. If no column qualifies, those do that rise in every step within ids (`ascending_within_ids`).

        A column of days such as 20240331 is returned only if no other one qualifies. If two columns rise equally often,
        one that only counts the rows is returned last. The columns that were compared get a remark.
        """
        numbers = [c for c in self.unused.values() if c.numeric and not (c.listed or looks_like_id(c.name))]
        steps = {c: np.diff(c.numbers) for c in numbers}  # pyright: ignore
        blocks = [c.codes for c in self.columns.values() if c.text and MIN_RUN * c.runs <= self.rows]
        within = np.all([np.diff(codes) == 0 for codes in [np.zeros(self.rows), *blocks]], axis=0)
        share = {c: (each[within] > 0).sum() / max(within.sum(), 1) for c, each in steps.items()}
        likely = [c for c in numbers if c.distinct >= MIN_ASCENDING and share[c] > 0.9]
        likely = likely or self.ascending_within_ids(steps)
        likely = [c for c in likely if not c.packs_days] or likely
        if not likely:
            return None
        best = max(likely, key=lambda c: (share[c], bool((steps[c] != 1).any())))
        self.remarks.on(likely, "ascends, as a time does")
        return best

    def ascending_within_ids(self, steps: Mapping[Column, np.ndarray]) -> list[Column]:
        """Return the columns that rise in every step within each id, and so may be the time; [] without any.

        Columns of ids are tried in turn until one has such columns. One is passed over if yet another column never
        falls within its ids, but stays equal in some steps and rises in others: this may be the time as well. `steps`
        are {column: its differences from row to row, [rows - 1]}.
        """
        for id in self.columns.values():
            if looks_like_id(id.name) and self.rows - id.runs > MIN_RUN:
                inside = {c: each[np.diff(id.codes) == 0] for c, each in steps.items()}
                rising = [c for c, each in inside.items() if (each > 0).all()]
                if rising and rising == [c for c, each in inside.items() if (each >= 0).all() and each.any()]:
                    return rising
        return []

    def find_format(self) -> None:
        """Propose the format in which the dates of the column of times are written.

        - With one possible format (`Column.formats`), this is proposed. If its years have two digits, `self.doubts`
          warns.
        - With several, such as 05/06/24 as day and month in either order, raises InputError ("time-text"). It does not
          if the user named the column; then no format is proposed.
        """
        time = self.time
        texts = time.cells.cast(pa.large_string()).drop_null().unique().to_pylist()
        example = next(text for text in reversed(texts) if re.search(r"\d", text))
        if len(time.formats) == 1:
            [self.given["time_format"]] = time.formats
            if "%y" in time.formats[0]:  # the order of numbers of two digits
                self.doubts.append(f"the times, such as {example!r}, are read as {time.formats[0]} (--time-format)")
        elif "time" in self.given:
            raise InputError(
                f"the times {time.name!r}, such as {example!r}, may be written as {listed(time.formats)}, which differ "
                f"in the order of day, month and year; say which ({option('time', time.name)} "
                "--time-format FORMAT).",
                code="time-text",
            )

    # ── id ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def find_id(self) -> None:
        """Propose the column of ids, unless the user named one; set `self.series`, int [rows], to the series' codes.

        The first of these that exists is proposed:

        - a column that is called like an id (`id_by_name`). If its ids have a single time each, as those of visits do,
          the first of `ids_in_blocks` takes its place that has several times, which go one way within each id;
        - "file", if there are several files, each of which is then a series;
        - a column whose cells look like ids (`id_by_shape`);
        - "file", with a sentence in `self.doubts`: the whole table is one series.

        A remark is added if each proposed id has a single time. With the id "file", the codes are those
        of `files`, or 0 without them.
        """
        several_files = len(self.source.paths) > 1
        if "id" not in self.named:
            best = self.id_by_name()
            if best is not None and not several_files and not self.has_several_times(best):
                visited = [c for c in self.ids_in_blocks() if self.has_several_times(c)]
                visited = [c for c in visited if self.time.goes_one_way(c.codes)]
                self.remarks.on([best] if visited else [], "each has a single time")
                best = next(iter(visited), best)
            self.take("id", best or (None if several_files else self.id_by_shape()))
            if "id" not in self.given:
                self.given["id"] = "file"
                if not several_files:
                    self.doubts.append("no column of ids is seen: the table is read as one series (else --id COLUMN)")
        id = self.column("id")
        known = id or self.files
        self.series = np.zeros(self.rows, np.int64) if known is None else known.codes
        several = count_keys(self.times) > 1 and 1 < count_keys(self.series) < self.rows
        if id is not None and "id" in self.given and several and not self.has_several_times(id):
            self.remarks.on([id], "each has a single time: is it the id of series?")

    def has_several_times(self, column: Column) -> bool:
        """Return whether equal cells of a column, such as an id, stand in rows of different times."""
        return count_keys(column.codes, self.times) > count_keys(column.codes)

    def id_by_name(self) -> Column | None:
        """Return the unused column that is named like an id and best tells series apart; None without one.

        Units of measurement, ISO dates, and ids of rows or times instead of series are passed over.

        - If equal cells follow one another (`Column.in_blocks`) in columns with the best name (`ID.rank`), as those of
          a series often do, only these columns are compared.
        - If not, the columns are compared that best tell apart rows of one time, as these often are of several objects.

        The compared column with the most different cells is returned; of several such, the one with the best name.
        """
        free, n = self.unused.values(), self.rows
        named = [c for c in free if looks_like_id(c.name) and c.distinct > 0 and (c.formats or not c.dates)]
        single = len(self.source.paths) < 2  # of several files, each tells more than what is equal in all
        named = [c for c in named if (c.distinct > 1 or (single and ID.fits(c.words))) and not self.is_unit(c)]
        # An id of every row is none of a series.
        one = (self.times == self.times[0]).all()
        named = [c for c in named if c.distinct < n or one or (self.time.listed and not c.listed)]
        named = [c for c in named if not (c.distinct > n / 2 and len(named) > 1)] or named
        # Nor is one of the rows of each time, such as those of a transit.
        named = [c for c in named if c.distinct == 1 or self.has_several_times(c)] or named
        if not named:
            return None
        # The rows of the best name often come in blocks, and those of who measured them do not.
        likely = min(ID.rank(c.words) for c in named)
        blocks = [c for c in named if c.distinct > 1 and ID.rank(c.words) == likely and c.in_blocks]
        # Where rows of one time are of several objects, their id tells these apart.
        unlike = {c.name: count_keys(c.codes, self.times) for c in named}
        apart = [c for c in named if unlike[c.name] > 0.98 * max(unlike.values())]
        return max(blocks or apart, key=lambda c: (c.distinct, -ID.rank(c.words)))

    def ids_in_blocks(self) -> list[Column]:
        """Return the unused columns whose equal cells come in blocks, as those of ids often do, the likeliest first.

        They hold texts or whole numbers, in blocks of three rows or more on average. They are filled in more than 95 %
        of the rows, and mark no states of one object (`marks_states`). Those in which some id has several times go
        first, then texts, then those with the most different cells.
        """
        blocks = [c for c in self.objects if (c.text or c.whole) and c.distinct > 1 and not c.listed]
        blocks = [c for c in blocks if (c.codes >= 0).mean() > MOST and c.in_blocks and self.rows / c.runs >= MIN_RUN]
        blocks = [c for c in blocks if not self.marks_states(c)]
        return sorted(blocks, key=lambda c: (self.has_several_times(c), c.text, c.distinct), reverse=True)

    def id_by_shape(self) -> Column | None:
        """Return a column, of those not used so far, whose cells look like ids, whatever its name; None without one.

        The first of these that exists is returned, and `self.remarks` gets a remark on it, which says why:

        - the likeliest column whose equal cells come in blocks (`ids_in_blocks`);
        - a column that tells apart rows of the same time (`name_in_time`);
        - a column that changes from row to row, in a log of several objects (`alternating_objects`).
        """
        best, why = next(iter(self.ids_in_blocks()), None), "its rows come in blocks"
        if best is None:
            best, why = self.name_in_time(), "it tells apart rows of one time"
        if best is None:
            best, why = self.alternating_objects(), "its rows alternate, as those of several objects do; else --id file"
        self.remarks.on([best] if best else [], why)
        return best

    @property
    def objects(self) -> list[Column]:
        """The unused columns that may name objects: no dates, times of day, flags, labels, units or passbands."""
        free = [c for c in self.unused.values() if not (c.dates or c.clock or c.is_flag or self.is_unit(c))]
        return [c for c in free if not (LABEL.fits(c.words) or {*c.words} & {*PASSBANDS})]

    def marks_states(self, column: Column) -> bool:
        """Return whether the cells of a column are states of one object, such as its years, not names of objects.

        A column of states lies in blocks of equal cells (`Column.in_blocks`), and time goes on from block to block. At
        another object it would begin again. So the rule is: more than 99 % of all steps of time go in one direction or
        are 0, and more than half of the steps between blocks go in this direction.

        False without blocks or known times. Also False for more than four different texts, which are taken as objects
        that were measured one after the other, unless the column is called like a time.
        """
        objects = column.text and column.distinct > MOST_STATES and not TIME.fits(column.words)
        if self.time_values is None or objects or not column.in_blocks:
            return False
        steps, border = np.sign(np.diff(self.time_values)), np.diff(column.codes) != 0
        onwards = steps * np.sign(np.nansum(steps))
        return bool((onwards >= 0).mean() > 0.99 and (onwards[border] > 0).mean() > 0.5)

    def is_unit(self, column: Column) -> bool:
        """Return whether a column is called like a unit of measurement, and holds a single one, or one per channel."""
        if not self.has_name_of_unit(column):
            return False
        kinds = (c for c in self.unused.values() if CHANNEL.fits(c.words) or LABEL.fits(c.words))
        channels = (c for c in kinds if c.distinct < self.rows)
        return column.distinct == 1 or any(count_keys(c.codes, column.codes) == c.distinct for c in channels)

    def has_name_of_unit(self, column: Column) -> bool:
        """Return whether a column holds texts or codes, and is named for units: uom, or VSORRESU next to VSORRES."""
        other = column.name.removesuffix("U")
        named = {*column.words} & UNITS or (other != column.name and other in self.columns)
        return bool(named) and (column.text or column.is_code)

    def name_in_time(self) -> Column | None:
        """Return the column that names the objects that have rows at one time, such as stations; None without one.

        Candidates are unused columns of texts, of codes (`Column.is_code`), or of whole numbers with a name such as
        site. They are not called like a channel. Each name is in three rows or more on average.

        Time and name together must identify more than 98 % of the rows, and the time alone less than 90 %. If no
        candidate passes, time and channel together are tried in place of the time. Of several, the one with the most
        names is returned.
        """
        names = [c for c in self.objects if not CHANNEL.fits(c.words) and c.distinct > 1]
        names = [c for c in names if c.distinct <= self.rows / MIN_RUN]
        names = [c for c in names if c.text or c.is_code or (c.whole and {*c.words} & PLACES)]
        channels = [c for c in self.unused.values() if c.text and CHANNEL.fits(c.words) and not looks_like_id(c.name)]
        for keys in ([self.times], *([self.times, c.codes] for c in channels)):
            apart = [c for c in names if count_keys(c.codes, *keys) > 0.98 * self.rows]
            if apart and count_keys(*keys) < 0.9 * self.rows:
                return max(apart, key=lambda c: c.distinct)
        return None

    def alternating_objects(self) -> Column | None:
        """Return the text column that names the object of each row, in a log whose rows alternate between objects.

        Its texts alternate (`Column.alternates`), more than 95 % of its cells are filled, and it is not used so far.
        Names of channels alternate, too: so it must not be called like a channel, nor explain more than half of the
        variance of a numeric column's ranks. If there are several, it is the one with the most different texts.
        """
        numbers = [c for c in self.unused.values() if c.numeric and c.distinct > MIN_ASCENDING]
        texts = [c for c in self.objects if c.text and c.alternates and (c.codes >= 0).mean() > MOST]
        texts = [c for c in texts if not CHANNEL.fits(c.words)]
        texts = [c for c in texts if not any(share_explained(number, c) > TELLING_SHARE for number in numbers)]
        return max(texts, key=lambda c: c.distinct, default=None)

    # ── label, groups, facts ────────────────────────────────────────────────────────────────────────────────────────

    def find_varying(self) -> None:
        """Set `self.varying`, `self.outcomes` and `self.varying_numbers`: unused columns that change within series.

        `varying` has all of them; if there is one series, or one per row, all with different cells. Those with numbers
        are either `outcomes`, if they look like one, such as died, or `varying_numbers`. Outcomes get a remark. There
        are none if `varying_numbers` would have only ids.
        """
        one = int(self.series.max(initial=-1)) + 1 in (0, 1, self.rows)  # which does not show what varies
        self.varying = [c for c in self.unused.values() if (c.distinct > 1 if one else c.varies(self.series))]
        numbers = [c for c in self.varying if c.numeric]
        likely = [c for c in numbers if self.called_outcome(c) or _labels_times(c)]
        self.outcomes = likely if any(c not in likely and not looks_like_id(c.name) for c in numbers) else []
        self.varying_numbers = [c for c in numbers if c not in self.outcomes]
        self.remarks.on(self.outcomes, OUTCOME)

    def find_facts(self) -> tuple[str | None, str | None]:
        """Propose static columns among those that are constant within series; return the names of label and groups.

        `_likely_static` chooses them, unless the user named some. The label is the column that looks like one
        (`_likely_label`); the groups are a column of ids that several series share, such as patients, which gets a
        remark. Each is None without such a column.
        """
        count = int(self.series.max(initial=-1)) + 1
        fixed = [c for c in self.unused.values() if c not in self.varying and c.distinct > 0]
        ids = (c for c in fixed if looks_like_id(c.name) and not self.has_name_of_unit(c))
        group = next((c for c in ids if 1 < c.distinct < count), None)
        if group is not None:
            self.remarks.on([group], "repeats across series, which a random split puts on both sides: --split-by?")
        facts = [c for c in fixed if c is not group]
        label = _likely_label(facts, count)
        if (static := _likely_static(facts, count, label, self.remarks)) and "static" not in self.named:
            self.given["static"] = static
        return label, group.name if group else None

    def called_outcome(self, column: Column) -> bool:
        """Return whether a column that changes within series has the name of an outcome, such as died.

        Names such as discharge have other senses, as that of a river. A column with such a name alone counts only if it
        has at most two different cells per series on average, or names few classes (`Column.names_classes`).
        """
        several = count_keys(self.series, column.codes) > 2 * count_keys(self.series) and not column.names_classes
        return looks_like_outcome(column.name) and not (several and OUTCOMES.intersection(column.words) <= OTHER_SENSES)

    # ── channel and values ──────────────────────────────────────────────────────────────────────────────────────────

    def find_companions(self) -> None:
        """Find the columns of errors, limits, flags and coordinates by their names; the other numbers may be values.

        Sets `self.errors`, `limits`, `flags`, `coordinates`; `value_of`, {column of errors: column of its values}; and
        `maybe_values`: the columns of `self.varying_numbers` that are no ids, errors, limits or flags.
        """
        free = self.unused.values()
        self.value_of = _errors_by_name(free)
        means = any(c.words and MEANS.issuperset(c.words) for c in free)  # next to which sd is an error
        bare = [c for c in free if means and c.numeric and {"".join(c.words)} & ERRORS]
        self.errors = [c for c in free if c.is_error or c in self.value_of or c in bare]
        self.limits = [c for c in free if c.numeric and LIMIT.search(" ".join(c.words))]
        flags = [c for c in free if (c.is_flag or {*c.words} & OPERATORS) and c not in self.outcomes]
        self.flags = [c for c in flags if c in self.varying or 0 < (c.codes >= 0).sum() < self.rows]  # in some rows
        places = {c: c.name.rpartition(".")[2].lower() for c in self.varying_numbers}
        known = {*COORDINATES} - (set() if {*places.values()} >= SKY else SKY)
        self.coordinates = [c for c, name in places.items() if name in known]
        others = {*self.errors, *self.limits, *self.flags}
        self.maybe_values = [c for c in self.varying_numbers if c not in others and not looks_like_id(c.name)]

    def find_channel(self) -> None:
        """Propose the column that says what each row measured, such as the band, unless the user set channel or wide.

        It is taken off `self.maybe_values`. If there is one, and rows lack the time, `self.doubts` says so, unless the
        user set untimed.
        """
        if not {"channel", "wide"} & self.named:
            channel = self.likely_channel() or self.fixed_channel()
            self.take("channel", channel)
            if channel is not None and channel not in self.varying:  # which find_facts remarked on
                self.remarks.pop(channel.name, None)
        channel = self.column("channel")
        if channel and "untimed" not in self.named and (untimed := int((self.time.codes < 0).sum())):
            text = f"{untimed:,} of {self.rows:,} rows seen have no time"
            self.doubts.append(f"{text}: static values? (--untimed static)")
        self.maybe_values = [c for c in self.maybe_values if c is not channel]

    def find_possible_values(self) -> None:
        """Narrow `self.maybe_values` down to what may be measured, and propose positions, such as depths.

        `find_scale` proposes these, unless the user named them.

        Codes, classes, counts of measurements, copies of another column or of the time, and coordinates are removed,
        each kind unless no column would be left. If the table has nested columns, which may hold the values,
        coordinates are always removed.
        """
        classes = [c for c in self.maybe_values if LABEL.fits(c.words) and c.names_classes and len(c.name) > 1]
        self.leave_out([c for c in self.maybe_values if c.is_code or c in classes], "codes that name something")
        spread = any(_name_without_error_words(c.words) == "" for c in self.errors)  # of the values next to it
        alone = {"n", "count"} if spread else set()
        counts = [c for c in self.maybe_values if c.counts_measurements or alone & {"".join(c.words)}]
        self.leave_out(counts, "counts measurements")
        kept = {self.time.known.max(initial=0): [self.time]} if self.time.numeric else {}  # by their largest number
        for c in sorted(self.maybe_values, key=lambda c: VALUE.rank(c.words)):
            alike = kept.setdefault(c.known.max(initial=0), [])
            alike += [c] * (not any(map(c.repeats_numbers, alike)))
        again = [c for c in self.maybe_values if c not in kept[c.known.max(initial=0)]]
        self.leave_out(again, "repeats the numbers of another column")
        if "positions" not in self.named:
            self.find_scale()
        self.leave_out([c for c in self.maybe_values if self.repeats_time(c)], "repeats the times")
        nested = any(error.code == "nested" for error in self.source.unreadable.values())  # where the values are
        others = [c for c in self.maybe_values if c not in self.coordinates]
        self.maybe_values = others if others or nested else self.maybe_values

    def leave_out(self, columns: Sequence[Column], text: str) -> None:
        """Drop columns from `self.maybe_values`, with the remark `text`; do nothing if none would remain."""
        if len(columns) < len(self.maybe_values):
            self.maybe_values = [c for c in self.maybe_values if c not in columns]
            self.remarks.on(columns, text)

    def likely_channel(self) -> Column | None:
        """Return the column that most likely says what was measured in each row, such as the band; None without one.

        It holds texts or whole numbers, at most 2,000 different ones, which change within series. Unless called like a
        passband, it marks no states (`marks_states`). Dates, flags, limits, errors and outcomes are passed over. The
        first rule that finds a column decides: its name is that of a channel; its cells tell apart rows of equal series
        and time; its texts explain much of the values' variance, or the times start anew at each text.
        """
        roles = {*self.errors, *self.limits, *self.outcomes, *self.flags}
        usual = [c for c in self.varying if c not in roles and 1 < c.distinct <= MAX_CHANNELS and c.may_repeat]
        usual = [c for c in usual if not (c.dates or c.clock) and (c.text or (c.whole and not TIME.fits(c.words)))]
        usual = [c for c in usual if {*c.words} & {*PASSBANDS} or not self.marks_states(c)]
        classes = [c for c in usual if c.names_classes and (c.codes >= 0).mean() > MOST]
        return self._channel_by_name(usual) or self._channel_by_classes(classes) or self._channel_by_texts(classes)

    def fixed_channel(self) -> Column | None:
        """Return the first column of passbands or "parameter" that is constant within series; None without one.

        It is filled in all rows, names few classes, and is no id, flag or label. Another column must be called like a
        value, as a table without one may be wide.
        """
        fixed = (c for c in self.unused.values() if {*c.words} & {*PASSBANDS, "parameter"} and c not in self.varying)
        fixed = (c for c in fixed if c.distinct > 1 and c.names_classes and (c.codes >= 0).all())
        fixed = (c for c in fixed if not (looks_like_id(c.name) or c.is_flag or LABEL.fits(c.words)))
        return next(fixed, None) if any(VALUE.fits(c.words) for c in self.maybe_values) else None

    def _channel_by_name(self, columns: Iterable[Column]) -> Column | None:
        """Return the column that is called like a channel, such as band or sensor; None without one.

        Two more names count: those of classes, such as type, if the table has a column of units (`is_unit`); and F, as
        ATLAS calls the filter, if it holds texts. Columns that look like ids, units or values are passed over.

        If there are several, those with one unit per channel go first, then those that leave the fewest rows with equal
        series, time and channel, then the one with the best name.
        """
        units = [c for c in self.unused.values() if self.is_unit(c)]
        named = [c for c in columns if CHANNEL.fits(c.words) or (units and LABEL.fits(c.words))]
        named += [c for c in columns if c.words == ("f",) and c.text]  # the filter, in tables of ATLAS
        measured = [c for c in named if c.numeric and VALUE.fits(c.words) and not c.is_code]
        named = [c for c in named if c not in measured and not (looks_like_id(c.name) or self.has_name_of_unit(c))]
        mixed = {c: any(unit.varies(c.codes) for unit in units) for c in named}
        return min(named, key=lambda c: (mixed[c], self.repeated_rows(c.codes), CHANNEL.rank(c.words)), default=None)

    def _channel_by_classes(self, classes: Iterable[Column]) -> Column | None:
        """Return the column of classes that tells apart the rows of equal series and time; None without one.

        More than a twentieth of all rows must repeat the series and time of an earlier row. Less than a twentieth as
        many may repeat its cell, too. A scale, such as depths (`Column.is_scale`), is no channel. If there are several
        columns, the one that leaves the fewest repeated rows is returned. A remark says why it was chosen.
        """
        bare, keys = self.repeated_rows(), joint_codes(self.series, self.times)
        left = {c: self.repeated_rows(c.codes) for c in classes if bare > self.rows / 20}
        telling = [c for c in left if left[c] < bare / 20 and not c.is_scale(keys)]
        best = min(telling, key=lambda c: (left[c], c.distinct), default=None)
        if best is not None:
            self.remarks.on([best], f"tells apart rows of one time; if it names objects, {self.id_option_with(best)}")
        return best

    def _channel_by_texts(self, classes: Iterable[Column]) -> Column | None:
        """Return the column of texts that says what a single column of values measured; None without one.

        The values are the column with the best name of a value; or else the first that has errors; or else the only one
        of numbers. Candidates for the channel are columns of `classes` that hold texts with letters.

        The candidate that explains most of the variance of the values' ranks is returned, if this is more than half;
        otherwise the first at whose texts the times start again (`Column.restarts_times`). A remark says which rule
        applied. If neither did, all candidates get a remark.
        """
        texts = [c for c in classes if cells.is_text(c.cells.type) and cells.matches(c.cells, r"\pL").any()]
        numbers = [c for c in self.maybe_values if c not in texts and not (c.is_code or c in self.coordinates)]
        numbers = [c for c in numbers if not self.repeats_time(c)] if texts else []
        named = sorted((c for c in numbers if VALUE.fits(c.words)), key=lambda c: VALUE.rank(c.words))
        numbers = (named or [c for c in numbers if c in self.value_of.values()])[:1] or numbers
        if len(numbers) != 1:
            return None
        shares = {c: share_explained(numbers[0], c) for c in texts}
        best = max(texts, key=lambda c: shares[c], default=None)
        why = f"{numbers[0].name!r} depends on it; a state, such as on and off, is no channel"
        if best is not None and shares[best] <= TELLING_SHARE:
            best = next((c for c in texts if c.restarts_times(self.time_values, self.series)), None)
            why = f"times begin again at each; if it names objects, {self.id_option_with(best)}" if best else ""
        self.remarks.on([best] if best else [], why)
        self.remarks.on([] if best else texts, "--channel, if it says what was measured")
        return best

    def repeated_rows(self, *keys: np.ndarray) -> int:
        """Return how many rows have the same series, time and `keys`, each int [rows], as an earlier row."""
        return self.rows - count_keys(self.series, self.times, *keys)

    def find_scale(self) -> None:
        """Propose a further position, such as a depth, if many rows have equal series, time and channel.

        Rows repeat if they agree in these with an earlier row; many are more than a twentieth of all rows. The first of
        `self.maybe_values` is proposed that is a scale within rows of equal series, time and channel
        (`Column.is_scale`), is no time of day, and tells all but a twentieth of the repeated rows apart. It is taken
        off `self.maybe_values`.

        Without such a column, `doubt_repeated_rows` says how many rows repeat: in a table with channels only if they
        are many, in others if there is any.
        """
        channel = self.column("channel")
        keys = [] if channel is None else [channel.codes]
        bare, rows = self.repeated_rows(*keys), joint_codes(self.series, self.times, *keys)
        many = bare > self.rows / 20
        scales = (c for c in self.maybe_values if many and c.is_scale(rows) and not c.clock)
        scale = next((c for c in scales if self.repeated_rows(*keys, c.codes) < bare / 20), None)
        if scale is not None:
            self.given["positions"] = (scale.name,)
            self.maybe_values.remove(scale)
        elif many or (bare and channel is None):
            self.doubt_repeated_rows(keys)

    def doubt_repeated_rows(self, keys: Sequence[np.ndarray]) -> None:
        """Add a sentence to `self.doubts` on how many rows have the same series, time and channel as an earlier row.

        If a column of classes (`Column.names_classes`) or coordinates tells all but a twentieth of these rows apart,
        the sentence names it: it may be a part of the id. `keys` holds the codes of the channels, int [rows], if there
        are any.
        """
        bare, what = self.repeated_rows(*keys), "series, time and channel" if keys else "series and time"
        text = f"{bare:,} of {self.rows:,} rows seen repeat the {what} of another"
        texts = [c for c in self.varying if c.text and c not in self.flags and c.name in self.unused]
        classes = (c for c in [*texts, *self.maybe_values] if c.names_classes or c in self.coordinates)
        if apart := next((c for c in classes if self.repeated_rows(*keys, c.codes) < bare / 20), None):
            text += f", but for {apart.name!r}: if it says which object it is, {self.id_option_with(apart)}"
        self.doubts.append(text)

    def id_option_with(self, column: Column) -> str:
        """Return the option that adds a column to the id, "--id subject+trial"; without an id, it is "--id trial"."""
        return option("id", "+".join(c.name for c in (self.column("id"), column) if c is not None))

    def repeats_time(self, column: Column) -> bool:
        """Return whether a column repeats the times in another form, as the end of each interval does.

        It does in each of these cases:

        - Its numbers keep pace with the times (`keeps_pace`), as ages do.
        - Its numbers count the rows and may begin again: 1, 2, 3, 1, 2, 3, as those of trials do.
        - Its numbers are days such as 20240331.5, and go one way (`goes_one_way`) within series.
        - It is called like a time, and goes one way within series, with one number per time.
        - Its numbers are consecutive integers, some of which repeat. They go one way within series, with one number per
          time, and one time per number.
        """
        if column.numbers_rows or (column.packs_days and column.goes_one_way(self.series)):
            return True
        named, codes = TIME.fits(column.words), column.codes
        again = False
        if (named or column.consecutive_repeated) and column.goes_one_way(self.series):  # which is seen soonest
            both = count_keys(self.series, codes, self.times)
            again = both == count_keys(self.series, self.times) and (named or both == count_keys(self.series, codes))
        return again or self.keeps_pace(column)

    def keeps_pace(self, column: Column) -> bool:
        """Return whether a column holds the times in some unit, from any origin in each series, as ages do.

        Small deviations are allowed. False for fewer than 10 different numbers.
        """
        if column.numbers is None or self.time_values is None or column.distinct < MIN_ASCENDING:
            return False
        known = np.isfinite(self.time_values) & np.isfinite(column.numbers) & (self.series >= 0)
        times, numbers, series = (each[known] for each in (self.time_values, column.numbers, self.series))
        sizes = np.maximum(np.bincount(series), 1)
        times, numbers = (each - (np.bincount(series, each) / sizes)[series] for each in (times, numbers))
        pace = (times * numbers).sum() / max((times**2).sum(), np.finfo(float).tiny)
        step = np.diff(np.unique(numbers), prepend=-np.inf).min()  # to which they are rounded
        near = np.std(numbers - pace * times) < max(SLACK * np.std(numbers), step / 3)
        return bool(near and (abs(pace / PACES - 1) < SLACK).any())

    def find_values(self) -> None:
        """Propose the columns of values, and whether the table is wide, with a channel in each; set `self.values`.

        Columns that the user named are kept. Otherwise the first of these rules that applies decides:

        - If the user called the table wide, all possible values, `self.maybe_values`, are proposed.
        - If one stands out (`likely_value`), only this one is proposed.
        - If several are possible and there is no column of channels, all are proposed, as channels of a wide table,
          unless the user set `wide`.
        - Else those that lack at most a tenth of their cells are proposed, or if there are none, those that lack the
          fewest.

        Raises:
            InputError: no column could hold values ("no-values").
        """
        channel = self.column("channel")
        if "values" not in self.named:
            if not self.maybe_values:
                text = f"no column looks like values; name it by --values. There are {self.described(self.unused)}"
                raise InputError(text, code="no-values")
            best = self.likely_value()
            if self.schema.wide:
                read = self.maybe_values
            elif best is not None:
                read = [best]
            elif len(self.maybe_values) > 1 and not channel and "wide" not in self.named:
                read, self.given["wide"] = self.maybe_values, True
            else:
                gaps = {c: int(np.isnan(c.numbers).sum()) for c in self.maybe_values}  # pyright: ignore
                few = max(min(gaps.values()), self.rows // 10)
                read = [c for c, gap in gaps.items() if gap <= few]
                lacking = (c for c in self.maybe_values if c not in read)
                self.remarks.on(lacking, "cells are missing: next to a channel, a row needs all of its values")
            self.given["values"] = tuple(c.name for c in read)
        values = self.values = self.given.get("values", self.schema.values)
        self.say_units()
        id = self.column("id")
        if id is not None and not (channel or self.given.get("wide") or "id" in self.named or looks_like_id(id.name)):
            self.remarks.on([id], "if it names quantities measured, and no objects: --id file, --channel")
        for stem, names in {"": [*filter(TIME_NAME.fullmatch, values)], **_repeated(values)}.items():
            if len(names) > max(MIN_TIME_NAMES - 1, len(values) / 2) and not _made_up(self.source.kinds):
                how = f", or a series of each row by {option('numbered', stem)}" if stem else ""
                text = f"{listed(names, 3)} are read as channels; if the names say times, make a row of each first"
                self.doubts.append(f"{text} (pandas.melt){how}")
        if self.given.get("wide"):
            self.remarks.on(self.errors, "like standard errors, which need a table with one row for each value")

    def likely_value(self) -> Column | None:
        """Return the one of the possible values, `self.maybe_values`, that stands out; None if none does.

        The first of these rules that finds a column decides:

        - It has the best name of a value, such as flux.
        - It has a column of standard errors, while some possible values have none. If several have one, columns of
          means, such as flux_mean, do not count.
        - It changes within the channels of a series, but differs more between channels than within one.
        """
        channel = self.column("channel")
        best = min(self.maybe_values, key=lambda c: VALUE.rank(c.words))
        if VALUE.fits(best.words):
            return best
        paired = [c for c in self.maybe_values if c in {self.value_of.get(error) for error in self.errors}]
        if len(paired) > 1:  # of means, none stands out
            paired = [c for c in paired if not MEANS & {*c.words}]
        if paired and len(paired) < len(self.maybe_values):
            return paired[0]
        if channel is None:
            return None
        # What is the same throughout a channel of a series says something of the channel, and is not measured.
        measured = (c for c in self.maybe_values if c.varies(joint_codes(self.series, channel.codes)))
        return next((c for c in measured if share_explained(c, channel) > TELLING_SHARE), None)

    def say_units(self) -> None:
        """Add remarks for the user to unused columns: that units differ within a channel, or that times have zones.

        The first says that numbers are not converted; the second, that the zones are ignored.
        """
        channel = self.column("channel")
        free = [c for c in self.varying if c.name in self.unused and c not in self.flags]
        units = [c for c in free if channel and self.has_name_of_unit(c) and c.varies(channel.codes)]
        self.remarks.on(units, "units that differ within a channel; the numbers are not converted")
        zones = (c for c in free if c.text and ZONES.search(" ".join(c.words)))
        self.remarks.on(zones, "zones of the times, which are ignored: convert the times to one zone first")

    # ── errors, positions, flags, limits ────────────────────────────────────────────────────────────────────────────

    def find_errors(self) -> None:
        """Propose the column of standard errors of a single column of values: flux_err next to flux, or err.

        Nothing is proposed for several columns of values, or if the user named errors. Nor is a column for which
        --errors would leave out rows: those with a value, but no error, in a series that has errors elsewhere. Limits
        ("<5") need no error. A remark (`self.remarks`) says how many rows these are.

        Coordinates, such as latitude, get a remark with the option --positions that would read them.
        """
        values, given = self.values, self.given.get("positions", ())
        if "positions" not in self.named:
            positions = dict.fromkeys((*given, *(c.name for c in self.coordinates)))
            further = (c for c in self.coordinates if c.name not in (*values, *given))
            self.remarks.on(further, option("positions", *positions) + "?")
        if "errors" in self.named or len(values) > 1 or self.given.get("wide") or self.schema.wide:
            return
        value = self.columns[values[0]]
        likely = (c for c in self.errors if c in self.value_of or not _name_without_error_words(c.words))
        error = next((c for c in likely if self.value_of.get(c, value) is value), None)
        if error is not None:
            there = ~np.isnan(error.numbers)  # pyright: ignore
            known = np.isfinite(np.full(self.rows, np.nan) if value.numbers is None else value.numbers)
            if cells.is_text(value.cells.type):  # limits, such as "<0.01", need no error
                known &= ~cells.matches(value.cells, f"{cells.UPPER}|{cells.LOWER}")
            if lost := int((known & ~there & np.isin(self.series, self.series[there])).sum()):
                self.remarks.on([error], f"missing in {lost:,} of {self.rows:,} rows, which --errors would leave out")
            else:
                self.given["errors"] = (error.name,)

    def find_limits(self) -> None:
        """Propose a column of detection limits, such as limmag, for rows that lack the value.

        Limits of magnitudes, which grow as a source gets fainter, are proposed as "lower_limits"; others as
        "upper_limits". Nothing is proposed if there are several columns of values, if the user named limits, or if no
        row has a limit without a value.

        `self.remarks` gets remarks on the proposed column, and on other columns of limits, flags, and marks such as
        "<", which are not read.
        """
        free, n, values = self.unused.values(), self.rows, self.values
        texts = {c: {*c.cells.unique().to_pylist()} - {None, "", "="} for c in free if c.text}
        flags = [c for c in self.flags if c.name in self.unused]
        marks = [c for c in free if (texts.get(c) and texts[c] <= MARKS) or (c in flags and {*c.words} & OPERATORS)]
        self.remarks.on(marks, "says which values are limits: write its mark before the value, as in <0.01")
        for c in (c for c in flags if c not in marks and c.name not in values):
            marked = int((np.nan_to_num(c.numbers) != 0).sum()) if c.numeric else 0  # pyright: ignore
            text = f"not 0 in {marked:,} of {n:,} rows, which --flags would leave out"
            self.remarks.on([c], text if 0 < marked < n / 2 else "a flag? Leave out the bad rows before reading")
        value = self.columns.get(values[0])
        for c in free:
            if value is not None and value.numbers is not None and cells.is_text(c.cells.type) and c.numeric:
                lost = np.isnan(value.numbers) & cells.matches(c.cells, f"{cells.UPPER}|{cells.LOWER}")
                text = f"limits in {lost.sum():,} rows without {value.name!r}: --values?"
                self.remarks.on([c] if lost.any() else [], text)
        several = len(values) > 1 or self.given.get("wide") or self.schema.wide
        several = several or {"upper_limits", "lower_limits"} & self.named
        for c in self.limits:
            known = None if value is None else value.numbers
            fills = known is not None and (~np.isnan(c.numbers) & np.isnan(known)).any()  # pyright: ignore
            if several or not fills:
                self.remarks.on([c] if c in self.varying_numbers else [], "a detection limit")
                continue
            faint = says_magnitude(c.name) or says_magnitude(values[0])
            role, other = ("lower_limits", "upper_limits") if faint else ("upper_limits", "lower_limits")
            self.take(role, c)
            several = True
            text = f"where {values[0]!r} is missing, it lies {'above' if faint else 'below'} (else {option(other)})"
            self.remarks.on([c], text)


def _labels_times(column: Column) -> bool:
    """Return whether a column labels single times: its name says anomaly, fault .., and it has at most two numbers."""
    return column.whole and column.distinct <= 2 and not LABELS_OF_TIMES.isdisjoint(column.words)


def _name_without_error_words(words: Iterable[str]) -> str:
    """Return the name that a column of values and its errors share, as one word: "psf" for magpsf and sigmapsf.

    The `words` of a column's name are joined. Left out are

    - words for errors, such as "sigma", also at either end of a word: "sigmaflux" gives "flux";
    - "se" and "sem" as the last of several words;
    - "mag" next to other words, as in magpsf; "mag" and "err" still give "mag".

    Words for errors alone give "".
    """
    words = [*words]
    words = words[:-1] if words[1:] and words[-1] in STANDARD_ERRORS else words
    bare = [word for word in (ERROR_MARK.sub("", word) for word in words if word not in {*ERRORS, "e"}) if word]
    return "".join([word for word in bare if word != "mag"] or bare)


def _errors_by_name(columns: Iterable[Column]) -> dict[Column, Column]:
    """Find columns of standard errors by their names, and return {error: the column of its values}.

    Columns without numbers are passed over. Most errors are called like their values, with a mark (err, unc, ...) at
    either end: flux_unc, sigmaflux, e_mag, conc_se. A column holds errors in each of these cases, too:

    - The mark replaces "mean" or "median" in the name of the values, as in flux_std for flux_mean.
    - Without its mark, the name has at least two letters, and exactly one column's name ends in it: errvel for mnvel.
    - It is right behind its values, is called like them with d, e or s in front, and has no negative number.
    - It is right behind its values, is called error, err, sigma or the like, and has at least three different numbers,
      all of them positive.
    """
    columns = [c for c in columns if c.numeric]
    marked = [c for c in columns if c.is_error or any(word == "e" or ERROR_MARK.search(word) for word in c.words)]
    marked += [c for c in columns if c not in marked and c.words[1:] and c.words[-1] in STANDARD_ERRORS]
    values = {}
    for mean in (MEANS, set()):  # of flux and flux_mean, the first has the name
        plain = ((c, [word for word in c.words if word not in mean]) for c in reversed(columns) if c not in marked)
        values |= {stem: c for c, words in plain if (stem := _name_without_error_words(words))}
    pairs = {}
    for c, stem in ((c, _name_without_error_words(c.words)) for c in marked):
        likely = [stem] if stem in values else [name for name in values if len(stem) > 1 and name.endswith(stem)]
        if len(likely) == 1:
            pairs[c] = values[likely[0]]
    for left, c in itertools.pairwise(columns):
        called = "".join(c.words) in (mark + "".join(left.words) for mark in "des") and not (c.known < 0).any()
        alone = len(c.words) == 1 and c.words[0] in {"error", "err", *ERRORS_ALONE}
        bare = alone and c.distinct > 2 and (c.known > 0).all()
        if called or (bare and left not in marked):
            pairs[c] = left
    return pairs


def id_column(table: Source, id: str) -> str:
    """Return the name of the id column of a table that has labels or static columns of series.

    It is `id`, which may join names of columns by "+"; or if the table lacks a single column `id`, its only column that
    looks like an id.

    Raises:
        InputError: the table lacks `id`, and no column or several look like ids, or it lacks a column that `id` joins
            (both "unknown-column"); a column cannot be read (`Source.need`).
    """
    table = table.with_id(id)
    likely = [name for name in table.columns if looks_like_id(name)]
    if id not in table.columns and len(likely) == 1:
        return likely[0]
    table.need([id], advice=", by which its rows belong to series")
    return id


def status_of(label: str, columns: Iterable[str]) -> str | None:
    """Return the first column, other than `label`, whose name may say which durations were cut short: status, died.

    None if there is none, or if the name `label` is not one of a duration, such as survival.
    """
    status = (name for name in columns if name != label and set(pieces(name)) & STATUS_NAMES)
    return next(status, None) if set(pieces(label)) & DURATION else None


@np.errstate(invalid="ignore")  # of infinite numbers
def propose_objects(source: Source, id: str, label: str | None) -> tuple[str | None, tuple[str, ...], dict[str, str]]:
    """Propose the label and the static columns of a table of objects, which has one row per series.

    Args:
        source: the table; a sample of its rows is read.
        id: the id column of the observations, or several joined by "+". If the table of objects lacks a single one,
            its only column that looks like an id takes its place. The columns of the id are not proposed.
        label: the label, if the user named it, which is kept; None to propose one.

    Returns:
        The label, or None if no column looks like one; the static columns; and {column: what is doubtful about it}.

    Raises:
        InputError: no column of ids, or several that look like one ("unknown-column"); what `id_column` and `look`
            raise for a table that they cannot read.
    """
    key, seen, remarks = id_column(source, id), look(source), Remarks()
    ids = {key, *id_parts(key, source.kinds)}
    columns = [c for name, c in seen.items() if name not in ids and c.distinct > 1]
    columns = [c for c in columns if c.dates or not NOTHING.match(c.name)]
    count = max((len(c.codes) for c in seen.values()), default=0)
    label = label or _likely_label(columns, count)
    return label, _likely_static(columns, count, label, remarks), remarks


def _likely_label(columns: Iterable[Column], count: int) -> str | None:
    """Return the name of the label among columns that have one value for each of `count` series; None without one.

    It is the first of these that exists:

    - a column of durations, such as survival, if another column says how they ended, such as died (`status_of`). The
      durations must not be negative, and the other column must have at most two different values.
    - the column with the best name of a class or an outcome, such as species or died. It must have at least two
      different values, and at most half as many as there are series (two are always allowed).
    """
    by_name = {c.name: c for c in columns}
    for c in by_name.values():
        status = by_name.get(status_of(c.name, by_name) or "")
        if c.numeric and not (c.known < 0).any() and status is not None and status.distinct <= 2:
            return c.name
    labels = [c for c in by_name.values() if LABEL.fits(c.words) and 1 < c.distinct <= max(2, count // 2)]
    return min(labels, key=lambda c: LABEL.rank(c.words)).name if labels else None


def _likely_static(columns: Iterable[Column], count: int, label: str | None, remarks: Remarks) -> tuple[str, ...]:
    """Return the names of the static columns among columns that have one value for each of `count` series.

    They are all whose cells differ, except

    - the label, and what may give it away: outcomes, the status (`status_of`), and columns that determine the label
      with at most half as many different cells as series;
    - ids, dates, times of day, and columns called like a standard error, split, fold or true;
    - texts that differ in more than half of the series, and numberings that differ in all.

    `label` is its column's name, or None. What is doubtful is added to `remarks`.
    """
    by_name = {c.name: c for c in columns}
    truth, event = by_name.get(label or ""), status_of(label or "", by_name)
    differing = [c for c in by_name.values() if c.distinct > 1 and c.name not in (label, event)]
    differing = [c for c in differing if not looks_like_id(c.name)]
    outcomes = [c for c in differing if looks_like_outcome(c.name)]
    usable = [c for c in differing if not set(c.words) & NO_FACTS]
    facts = [c for c in usable if not (c.dates or c.clock or c in outcomes)]
    further = [c for c in facts if c.whole and c.distinct >= max(count, 3) and {*c.words} & NUMBERINGS]  # ids
    many = [c for c in facts if c in further or (c.text and 2 * c.distinct > count)]
    leaks = [c for c in facts if truth is not None and truth.distinct <= c.distinct <= count / 2]
    leaks = [c for c in leaks if count_keys(c.codes, truth.codes) == count_keys(c.codes)]  # pyright: ignore
    static = [c for c in facts if c not in (*many, *leaks)]
    maybe = [c for c in usable if label is None and c.names_classes and c.distinct <= max(2, count // 2)]
    remarks.on(static if label is None else (), "one value per series: --static")
    remarks.on(maybe, "the label?")
    remarks.on(many, "differs in most series: --static?")
    remarks.on(leaks, "determines the label")
    remarks.on(outcomes, OUTCOME)
    return tuple(c.name for c in static)
