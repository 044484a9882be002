"""Which column of a table is what, proposed from names, pieces of names, types, and the shape of the data.

A proposal never merges, drops or converts: what is doubtful is said in `unsure`, and left to the user.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, listed
from rotarymae.series import cells, dates
from rotarymae.series.dates import ELAPSED, ISO, JOINED, PER_DAY, formats_of
from rotarymae.tables.formats import MIN_TIME_NAMES, numbers_in, values_in
from rotarymae.tables.schema import TableSchema, option
from rotarymae.tables.source import DATE_PARTS, NUMBERED, Source, date_parts, open_source

ROWS = 20_000  # from which a table is guessed
MAX_CHANNELS = 2_000
DATED = re.compile(r"\d+[-/.]\d*[-/.]?\d*")  # the beginning of 2024-03-31 and of 3/31/24
TIME_NAME = re.compile(  # of a column whose cells were measured then: 2024-03-31, 1990, H01, 13:00, Jan
    rf"{DATED.pattern}.*|(19|20)\d\d|(h|hr|hour|day|month)?[ _]?\d\d?(:\d\d|h)?|"
    r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*",
    re.IGNORECASE,
)
MIN_NUMBERED = 20  # columns of one stem that make a series of each row
MIN_ASCENDING = 10  # different numbers of a column that may be the time, as it ascends
MAX_CODES = 20  # different whole numbers of a column that may number channels or classes
TELLING_SHARE = 0.5  # of the variance of a column's ranks, that another explains which says what was measured
MOST = 0.95  # of the cells of a column, which show what it holds
MIN_RUN = 3  # rows of a block, on average, that make a column look like one of ids

LIKE_OUTCOMES = "look like outcomes, and are not read: a model would see what it is to predict"
NOTHING = re.compile(r"^(__.*__|unnamed:? ?\d*|index|rownames?|row_?(id|number|nr)?|#|level_\d+|)$", re.IGNORECASE)
IDS = ("object", "obj", "oid", "star", "series", "stay", "hospitalization", "encounter", "subject", "patient", "record",
       "participant", "person", "paciente", "paziente", "identifiant", "kennung",
       "symbol", "ticker", "source", "station", "device", "unit", "machine", "kic", "tic", "case", "animal", "id",
       "name")  # fmt: skip
NO_IDS = {"exposure", "visit", "transit", "ccd", "detector", "field", "night", "image", "filter", "item", "code",
          "row", "order", "candidate", "candid", "parent", "concept", "fid", "program", "user", "location",
          "site"}  # fmt: skip
NUMBERINGS = {"id", "identifier", "ident", "number", "nr", "no",
              "num", "index", "idx", "code", "tag", "table", "key", "serial"}  # fmt: skip
ERRORS = {"err", "error", "errors", "sigma", "unc", "uncertainty", "std", "stddev", "stderr", "e"}
MARKS = {"<", ">", "<=", ">=", "≤", "≥"}  # in a column of their own
LIMITS = {"lim", "limit", "limiting", "upperlimit", "maglim", "limmag", "diffmaglim"}
FLAGS = {"flag", "flags", "quality", "qc", "catflags", "qflag", "bad", "procstatus", "rb", "rejected", "invalid",
         "outlier", "suspect", "saturated"}  # fmt: skip
SKY = {"ra", "dec"}  # coordinates only together, as Dec may be a month
COORDINATES = ("ra", "dec", "lat", "lon", "long", "latitude", "longitude", "depth", "x", "y", "z", "altitude")
OUTCOMES = {"futime", "survtime", "survival", "followup", "tte", "died", "death", "dead", "status", "event", "outcome",
            "mortality", "censor", "censored", "deathtime", "target", "label", "discharge", "los", "stay"}  # fmt: skip

# Words in the names of columns that say how long something lasted, and whether its end was seen.
DURATION = {"time", "days", "weeks", "months", "years", "hours", "duration", "survival", "lifetime", "futime", "tte"}
STATUS_NAMES = {"status", "event", "censored", "censoring", "died", "dead", "death", "failed"}


@dataclass(frozen=True)
class Rule:
    """How columns of a role are recognised by their names.

    Names are whole ones or words of them, the best first ("objectId" has the words object and id). Words in `better`
    make a name with one of these fit better; a name with a word in `never` does not fit.
    """

    words: tuple[str, ...]
    better: tuple[str, ...] = ()
    never: frozenset[str] = frozenset()

    def rank(self, words: Sequence[str]) -> float:
        """Return how well a column's name, split into `words`, fits: the smaller the better.

        It is infinity if no word of the rule is in the name, or one that the rule excludes.
        """
        places = [self.words.index(word) for word in words if word in self.words]
        if not places or set(words) & self.never:
            return np.inf
        bonus = 0.5 * any(word in self.better for word in words) * len(self.words)
        return min(places) - bonus + (0 if len(words) == 1 else 0.25 + 0.01 * len(words))


TIME = Rule(
    ("mjd", "bmjd", "hjd", "bjd", "bkjd", "btjd", "jd", "time", "timestamp", "datetime", "dttm", "dt", "date",
     "day", "days", "hour", "hours", "minute", "minutes", "second", "seconds", "week", "month", "year", "t",
     "offset", "epoch", "zeit", "datum", "cycle", "step", "iculos", "ts", "zeitpunkt", "zeitstempel", "heure",
     "temps", "horodatage", "fecha", "hora", "tiempo", "data", "ora", "tempo", "tijd", "czas", "tid", "дата",
     "время", "时间", "日期", "時間", "日時", "日付", "sec", "secs", "onset", "elapsed"),
    ("mid", "midpoint", "obs", "observed", "chart", "recorded", "collect", "collected", "measured", "start"),
    frozenset(ERRORS | OUTCOMES | {"zone", "to", "id", "unit", "corr", "timecorr"}),
)  # fmt: skip
HOURS = {"hour", "hr", "hh", "stunde", "heure", "hora", "ora"}
CLOCK = Rule(("clock", "time", "uhrzeit", "zeit", "tod", *sorted(HOURS)))
CHANNEL = Rule(
    ("passband", "band", "bandpass", "filter", "flt", "filtercode", "filterid", "fid", "category", "channel", "sensor",
     "variable", "parameter", "test", "itemid", "item", "code", "concept", "analyte", "signal", "tag", "metric",
     "measurement", "lead", "fühler", "messstelle", "messgröße", "kanal", "sonde", "capteur", "canal", "voie", "canale",
     "sensore", "name"),
)  # fmt: skip
BAND_WORDS = {"passband", "band", "bandpass", "filter", "flt", "filtercode", "filterid", "fid"}  # never ids
VALUE = Rule(
    ("flux", "mag", "magnitude", "valuenum", "value", "reading", "measurement", "result", "amount", "numeric",
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
        schema: the columns.
        given: the fields of it that are proposed, as the user did not name them.
        label, split: columns that look like a label, and like groups of series that a random split would tear apart.
        unsure: sentences on what is doubtful.
    """

    schema: TableSchema
    given: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    split: str | None = None
    unsure: tuple[str, ...] = ()


def pieces(name: str) -> list[str]:
    """Split the name of a column into lower-case words: "lc.midpointMjdTai (d)" gives midpoint, mjd and tai."""
    name = re.sub(r"(?<=\w)(\s*[(\[][^()\[\]]*[)\]])+$", "", name)  # a unit is none of its words
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name.rpartition(".")[2])
    words = " ".join(re.findall(r"[^\W\d_]+|\d+", split)).lower()
    # Glued names, such as magpsf, sigmapsf, observationoffset and patientunitstayid.
    words = re.sub(r"(?<=[a-z])(psf|sap|offset)\b", r" \1", words)
    return re.sub(r"(?<=stay|ient|ject|urce|vice|case|sion|odic|vent)id\b", " id", words).split()


def looks_like_id(name: str) -> bool:
    """Return whether the name of a column suggests ids of objects: objectId and stay_id do, image_id does not."""
    words, plain = pieces(name), name.rpartition(".")[2].lower().replace("_", "")
    if set(words) & NO_IDS:
        return False
    return words[-1:] == ["id"] or plain in ("oid", "objid", "kic", "tic") or (len(words) == 1 and words[0] in IDS[:-2])


def looks_like_outcome(name: str) -> bool:
    """Return whether a column name, such as died, suggests an outcome, which only the future tells; an id is none."""
    return bool(set(pieces(name)) & OUTCOMES) and not looks_like_id(name)


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table, described by some of its rows.

    Attributes:
        name: of the column.
        words: its name, split by `pieces`.
        cells: Arrow array [n].
        dates, clock, text: whether it holds dates, times of day or durations, and texts that are no numbers.
        formats: for strptime, by which its dates may be read; () for ISO dates and those of a type of their own.
        listed: whether the table has lists, whose entries the cells are.
        codes: int [n], number of each cell among the different ones, -1 where it is missing.
        numbers: float64 [n], NaN where a cell is no number; None for a column that is not numeric.
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
        """Whether it holds numbers."""
        return self.numbers is not None

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers."""
        known = np.array([]) if self.numbers is None else self.numbers[np.isfinite(self.numbers)]
        return bool(len(known)) and bool((known == np.rint(known)).all())

    @property
    def names_classes(self) -> bool:
        """Whether it repeats few texts or whole numbers, as names of channels or classes do."""
        few = self.distinct <= (MAX_CODES if self.whole else MAX_CHANNELS) and 3 * self.distinct <= len(self.codes)
        return (self.text or self.whole) and few and not (self.dates or self.clock)

    def numbers_series(self, count: int) -> bool:
        """Return whether it is a further id of the `count` series: by its name, and as each has a number of its own."""
        return self.whole and self.distinct >= max(count, 3) and bool(set(self.words) & NUMBERINGS)

    @property
    def distinct(self) -> int:
        """Number of different cells, without missing ones."""
        return int(self.codes.max(initial=-1)) + 1

    @property
    def repeats(self) -> bool:
        """Whether not nearly each cell is another, as names of channels are none; few rows show nothing."""
        known = int((self.codes >= 0).sum())
        return 5 * self.distinct <= 4 * known or known < MIN_ASCENDING

    @property
    def runs(self) -> int:
        """Number of runs of rows with the same cell."""
        return 1 + int((np.diff(self.codes) != 0).sum())

    @property
    def whole_days(self) -> bool:
        """Whether its dates have no time of day."""
        kind = self.cells.type
        if pa.types.is_timestamp(kind):
            return not (self.cells.cast(pa.int64()).drop_null().to_numpy() % PER_DAY[kind.unit]).any()
        texts = cells.is_text(kind) and not cells.matches(self.cells, ":").any()
        return pa.types.is_date(kind) or pa.types.is_integer(kind) or texts

    @property
    def is_error(self) -> bool:
        """Whether its name suggests standard errors, as flux_err and sigmapsf do."""
        named = bool(set(self.words) & (ERRORS if len(self.words) > 1 else {"sigma", "unc", "uncertainty", "stderr"}))
        return self.numeric and (named or "".join(self.words[-1:]).endswith("err"))

    def rank(self, rule: Rule) -> float:
        """Return how well the column's name fits the role of a rule: the smaller the better, infinity if not at all."""
        return rule.rank(self.words)

    def called(self, rule: Rule) -> bool:
        """Return whether the column's name fits the role of a rule at all."""
        return rule.rank(self.words) < np.inf

    @property
    def counts(self) -> bool:
        """Whether its numbers are consecutive, and come more than once each."""
        known = np.array([]) if self.numbers is None else self.numbers[np.isfinite(self.numbers)]
        return self.whole and 1 < np.ptp(known) + 1 == self.distinct < len(known)

    def says(self, other: np.ndarray, series: np.ndarray, coarse: bool) -> bool:
        """Return whether its numbers say what other codes [n] do, as the end of each time says its begin.

        They tell rows of a series, [n] its code for each row, apart in the same way, or the numbers fewer of them if
        `coarse`, as days do next to minutes; and the numbers go one way.
        """
        if not self.goes_one_way(series):  # which is seen soonest
            return False
        both = _count(series, self.codes, other)
        return both == _count(series, other) and (coarse or both == _count(series, self.codes))

    def goes_one_way(self, groups: np.ndarray) -> bool:
        """Return whether its numbers never fall, or never rise, from row to row of the same group, [n] codes."""
        if self.numbers is None:
            return False
        steps = np.diff(self.numbers)[np.diff(groups) == 0]
        return max((steps >= 0).sum(), (steps <= 0).sum()) > MOST * len(steps)

    @property
    def numbers_rows(self) -> bool:
        """Whether it counts the rows of the table."""
        return self.whole and bool((np.diff(self.numbers) == 1).mean() > MOST)  # pyright: ignore

    @property
    def wanders(self) -> bool:
        """Whether its numbers fall from row to row more often than at the begin of each series, as no times do."""
        return self.numeric and bool((np.diff(self.numbers) < 0).mean() > 1 / MIN_RUN)  # pyright: ignore

    def is_scale(self, groups: np.ndarray) -> bool:
        """Return whether its numbers measure where each row of a group lies, [n] codes, as depths of one time do.

        They go one way in groups of several rows, and do not count from one to the next as numbers of channels do.
        """
        return not self.counts and self.goes_one_way(groups) and len(groups) >= MIN_RUN * _count(groups)

    def varies(self, series: np.ndarray) -> bool:
        """Return whether the column has more than one value within some series; missing cells do not count.

        Args:
            series: [n], the code of each row's series.
        """
        there = self.codes >= 0
        return _count(series[there], self.codes[there]) > _count(series[there])


def _count(*keys: np.ndarray) -> int:
    """Return how many different rows arrays of codes, [n] each, have together: _count([0, 0, 1], [5, 5, 5]) is 2."""
    return np.unique(np.stack(keys), axis=1).shape[1]


def _joint(*keys: np.ndarray) -> np.ndarray:
    """Number the different rows that arrays of codes, [n] each, have together: int [n]; -1 where a code is."""
    numbers = np.unique(np.stack(keys), axis=1, return_inverse=True)[1].ravel()
    return np.where(np.min(keys, axis=0) < 0, -1, numbers)


def look(source: Source, na: Sequence[str] = ()) -> dict[str, Column]:
    """Read some rows, spread over a table, and describe each column: {name: column}.

    Columns of lists are described by their entries, and others next to them are repeated to their length. Columns with
    names such as "index" or "Unnamed: 0" are left out, unless they hold dates.

    Args:
        source: the table.
        na: cells that mean "missing", besides the usual ones.
    """
    names = list(source.kinds)
    lists = {name for name in names if cells.is_list(source.kinds[name])}
    columns = {}
    for name, column in source.sample(ROWS // 100 if lists else ROWS).read(names, equal=False).items():
        columns[name] = _column(name, column, name in lists, na)
    # The index of a data frame is nothing, unless it has the dates.
    return {name: column for name, column in columns.items() if column.dates or not NOTHING.match(name)}


def _column(name: str, column: pa.Array, of_lists: bool, na: Sequence[str]) -> Column:
    """Describe a column by some of its cells: whether they are dates, times of day, numbers or text, and which repeat.

    Args:
        name: of the column.
        column: its cells, Arrow array [n].
        of_lists: whether these are entries of lists.
        na: cells that mean "missing", besides the usual ones.
    """
    kind, numbers = column.type, None
    column, text = dates.begins_of(cells.trimmed(column)), cells.is_text(kind)
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
            mostly = (~np.isnan(read.values)).sum() >= sum(read.words.values())
            numbers = read.values.astype(np.float64) if mostly or not text else None
    formats = () if is_date or is_clock or of_lists else _formats(column, numbers)
    numbers = None if formats else numbers
    text = text and numbers is None
    called = pieces(name)
    is_clock = is_clock or (CLOCK.rank(called) < np.inf and _is_clock(column, numbers, bool(HOURS & {*called})))
    is_date = is_date or bool(formats)
    return Column(name, tuple(called), column, is_date, is_clock, text, formats, of_lists, codes, numbers)


def _formats(column: pa.Array, numbers: np.ndarray | None) -> tuple[str, ...]:
    """Return the date formats that fit all cells of a column.

    Of numbers, only whole ones may be dates, such as 20240331, if all look like that. Otherwise there is no format.

    Args:
        column: its cells, Arrow array [n].
        numbers: [n], its cells as numbers; None where they are none.
    """
    if not (cells.is_text(column.type) or (pa.types.is_integer(column.type) and numbers is not None)):
        return ()
    formats: list[str] = []
    for some in (column[:100], column):  # the first are soon seen to be none
        texts = cells.without_missing(some.cast(pa.large_string()).unique()).drop_null().to_pylist()
        dated = numbers is None or all(text.startswith(("19", "20")) and len(text) in JOINED for text in texts)
        formats = formats_of(texts) if dated else []
        if texts and not formats:
            break
    return tuple(formats)


def _is_clock(column: pa.Array, numbers: np.ndarray | None, hours: bool) -> bool:
    """Return whether a column that is called like a clock holds times of day: 0915, 18.00.00, or `hours`."""
    if numbers is None or np.isnan(numbers).all():
        known = column.drop_null() if cells.is_text(column.type) else []
        return len(known) > 0 and bool(cells.matches(known, r"^([01]?\d|2[0-4])(\.[0-5]\d){2}$").mean() > MOST)
    if hours:
        return bool(np.nanmin(numbers) >= 0 and np.nanmax(numbers) <= 24 and not (np.nan_to_num(numbers) % 1).any())
    padded = cells.is_text(column.type) and cells.matches(column, r"^0\d{3}$").any()
    return bool(padded and (cells.matches(column, r"^([01]\d|2[0-4])[0-5]\d$") | np.isnan(numbers)).all())


def _series_per_row(source: Source) -> str | None:
    """Return the common beginning of numbered columns ("FLUX." for FLUX.1, FLUX.2, ...), each row of which is a series.

    None if most columns are not such, or if another column is named like a time.
    """
    numbered = (match[1] for match in map(NUMBERED.fullmatch, source.kinds) if match)
    stems = [stem for stem in ("", *dict(Counter(numbered).most_common(1))) if not DATED.match(stem)]
    counts = {stem: numbers_in(source.kinds, stem) for stem in stems}
    stem = max(counts, key=lambda stem: len(counts[stem]))
    names, values = counts[stem], [*counts[stem].values()]
    timed = any(TIME.rank(pieces(name)) < np.inf for name in source.kinds if name not in names)
    few = MIN_TIME_NAMES if not stem and all(map(TIME_NAME.fullmatch, names)) else MIN_NUMBERED
    # Names of an axis go one way; those of stations that are called by a number do not.
    axis = bool(stem) or sorted(values) in (values, values[::-1])
    if timed or not axis or len(names) < few or 2 * len(names) < len(source.kinds):
        return None
    others = [name for name in source.kinds if name not in names]
    read = source.sample(ROWS).read(others) if others else {}
    dated = any(_are_times(_column(name, column, False, ())) for name, column in read.items())
    return None if dated else stem


def _are_times(column: Column) -> bool:
    """Return whether a column holds dates, other ones in most rows, that go one way, as those of a series do."""
    if not column.dates or 2 * column.distinct < len(column.codes):
        return False
    with suppress(InputError):
        read = dates.times(column.cells, column.name, column.formats[0] if column.formats else None)
        return replace(column, numbers=read.values).goes_one_way(np.zeros(len(read.values)))
    return False


def _name_of_rows(source: Source, numbered: Iterable[str]) -> str:
    """Return the first column of ids, or else of texts, with another cell in each row; "series" if there is none.

    Args:
        source: a table with a series in each row.
        numbered: the columns that hold the series.
    """
    names = sorted(source.kinds.keys() - {*numbered}, key=[*source.kinds].index)
    read = source.sample(ROWS).read(names) if names else {}
    for name in sorted(names, key=lambda name: not looks_like_id(name)):
        column = read[name]
        words = (
            cells.is_text(column.type) and cells.matches(column, r"\pL").all() and LABEL.rank(pieces(name)) == np.inf
        )
        if (words or looks_like_id(name)) and len(column.drop_null().unique()) == len(column):
            return name
    return "series"


def _label_among(source: Source, numbered: Sequence[str]) -> list[str]:
    """Return a doubt on the first numbered column where it holds few whole numbers, and the others do not; else []."""
    read = source.sample(ROWS).read(numbered[:MIN_TIME_NAMES]) if numbered else {}
    seen = [_column(name, column, False, ()) for name, column in read.items()]
    if [c.whole and c.names_classes for c in seen] != [True] + [False] * (MIN_TIME_NAMES - 1):
        return []
    text = (
        f"{seen[0].name!r} holds few whole numbers, and the columns behind it others: if it is the label, and no part"
    )
    return [f"{text} of the series, name it so in the first line of the table"]


def propose(source: Source, schema: TableSchema, named: set[str]) -> Proposal:
    """Propose a column for every role of the schema that the user did not name: id, time, channel, values and so on.

    Numbered columns that make a series of each row are joined, and year, month, ... to one time. Nothing is changed in
    `schema`: the result holds a new one, what was proposed in it, and sentences on what is doubtful.

    Args:
        source: the table, of which some rows are read.
        named: the fields of the schema that the user has named, and that stay.

    Raises:
        InputError: no column that could hold times or values ("no-time", "no-values").
    """
    stem = schema.numbered
    if stem is None and "time" not in named:
        stem = _series_per_row(source)
    if stem is None:
        return _propose(source if "time" in named else source.with_time("+".join(_date_parts(source))), schema, named)
    columns = numbers_in(source.kinds, stem)
    fields = {
        "id": _name_of_rows(source, columns),
        "time": "number",
        "values": (values_in(stem),),
        "numbered": stem,
    }
    fields = {name: value for name, value in fields.items() if name not in named}
    rest = _propose(open_source(source, numbered=stem), replace(schema, **fields), {*named, *fields, "channel"})
    doubts = _label_among(source, sorted(columns, key=columns.__getitem__))
    return replace(rest, given={**fields, **rest.given}, unsure=(*rest.unsure, *doubts))


def _date_parts(source: Source) -> list[str]:
    """Return the columns that hold parts of dates by their names and by their cells, from the year on; [] without any.

    Few cells may be something else.
    """
    parts, kept = date_parts(source.kinds), []
    columns = source.sample(ROWS).read(list(parts.values()), equal=False) if parts else {}
    for part, name in parts.items():
        _, low, high = DATE_PARTS[part]
        with suppress(InputError):
            numbers = cells.numbers(columns[name], name).values
            fits = (numbers >= low) & (numbers <= high) & ((numbers % 1 == 0) | (part == "second"))
            kept += [name] if fits.sum() > MOST * (~np.isnan(numbers)).sum() else []
        if name not in kept:
            break
    return kept


def _propose(source: Source, schema: TableSchema, named: set[str]) -> Proposal:
    """Propose the layout of a table whose numbered columns and parts of dates are joined already.

    Args:
        source: the table, of which some rows are read.
        schema: the roles that the user has named; the fields in `named` stay, the others are proposed.
        named: the names of these fields.

    Raises:
        InputError: a column that the user named is absent ("unknown-column"); none could hold times or values
            ("no-time", "no-values").
    """
    for role, name in schema.roles:
        if role in named - {"id", "time", "static"}:
            source.need([name], advice=f"; name the right one by {option(role)}")
    columns = look(source, na=schema.na)
    used = {name for role, name in schema.roles if role in named}
    unsure: list[str] = []
    given: dict[str, Any] = {}
    free = {name: column for name, column in columns.items() if name not in used}
    n = len(next(iter(columns.values())).codes) if columns else 0

    def take(option: str, column: Column | None) -> None:
        """Move a column from `free` to `given`, as the role `option`.

        Nothing is done for None, or a role that the user named.
        """
        if column is not None and option not in named:
            given[option] = column.name
            free.pop(column.name, None)

    # ── time: by name, by type, and the only one that could be ──────────────────────────────────────────────────────
    if "time" not in named:
        take("time", _time(free, unsure))
        if "time" not in given:
            melt = sum(bool(TIME_NAME.fullmatch(name)) for name in columns) > len(columns) / 2
            advice = " The names of its columns are times: make a row of each first (pandas.melt)." if melt else ""
            raise InputError(
                f"no column looks like time; name it by --time. There are {_seen(columns, source)}{advice}",
                code="no-time",
            )
    time = columns.get(given.get("time", schema.time))
    if "time_format" not in named and time is not None and time.formats:
        formats, texts = time.formats, time.cells.cast(pa.large_string()).drop_null().unique().to_pylist()
        example = next(text for text in reversed(texts) if re.search(r"\d", text))
        if len(formats) == 1:
            given["time_format"] = formats[0]
            unsure.append(f"the times, such as {example!r}, are all dates as {formats[0]!r} alone (--time-format)")
        if len(formats) > 1 and "time" in given:
            raise InputError(
                f"the times {time.name!r}, such as {example!r}, may be written as {listed(formats)}, which differ in "
                f"the order of day, month and year; say which (--time {shlex.quote(time.name)} --time-format FORMAT).",
                code="time-text",
            )
    if "clock" not in named and time is not None and time.dates and time.whole_days:
        take("clock", next((c for c in free.values() if c.clock and c.called(CLOCK)), None))
    clock = columns.get(given.get("clock", schema.clock) or "")
    if time is not None and (parts := _parts_of_dates(time, free.values())):
        unsure.append(f"{listed(parts)}: parts of the time, and not read")
        free = {name: c for name, c in free.items() if name not in parts}
    times = np.arange(n) if time is None else _joint(*(c.codes for c in (time, clock) if c is not None))
    # ── id ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    groups: list[Column] = []
    several_files = len(source.paths) > 1
    if "id" not in named:
        chosen, groups = _id(free, times, unsure, several_files)
        take("id", chosen)
        if chosen is None:
            given["id"] = "file"
            if not several_files:
                unsure.append("no column of ids is seen: the table is read as one series (--id COLUMN otherwise)")
    name = given.get("id", schema.id)
    series = columns[name].codes if name in columns else np.zeros(n, np.int64)
    if name not in columns and several_files and time is not None and not time.listed:
        series = cells.encode(source.sample(ROWS).with_ids_of_files().read(["file", time.name])["file"])[0]
    # ── what is the same throughout each series ─────────────────────────────────────────────────────────────────────
    count = int(series.max(initial=-1)) + 1
    one = count <= 1  # which does not show what is the same throughout each
    varying = {name: c for name, c in free.items() if (c.distinct > 1 if one else c.varies(series))}
    fixed = {name: c for name, c in free.items() if name not in varying and c.distinct > 0}
    # ── label, groups, facts ────────────────────────────────────────────────────────────────────────────────────────
    candidates = [*groups, *(c for c in fixed.values() if looks_like_id(c.name))]
    group = next((c.name for c in candidates if c.name in fixed and 1 < c.distinct < count), None)
    if group is not None:
        unsure.append(
            f"{group!r} repeats across series: a random split would put the same {group} on both sides; "
            f"--split-by {group}?"
        )
    changing = [c.name for c in varying.values() if c.numeric and looks_like_outcome(c.name)]
    if not any(c.numeric and c.name not in changing for c in varying.values()):
        changing = []
    label, static = _of_series([c for c in fixed.values() if c not in groups], count, None, unsure, changing)
    if "static" not in named and static:
        given["static"] = static
    # ── channel and values ──────────────────────────────────────────────────────────────────────────────────────────
    numeric = {name: c for name, c in varying.items() if c.numeric and name not in changing}
    pairs = _errors_by_name(free.values())
    errors = [name for name, c in free.items() if c.is_error or name in pairs]
    limits = [name for name, c in free.items() if any(word in LIMITS or word.endswith("lim") for word in c.words)]
    limits = [name for name in limits if free[name].numeric]
    flags = [name for name, c in numeric.items() if set(c.words) & FLAGS]
    coordinates = [name for name in numeric if name.lower() in COORDINATES]
    if not {*map(str.lower, coordinates)} >= SKY:
        coordinates = [name for name in coordinates if name.lower() not in SKY]
    if not {"channel", "wide"} & named:
        take("channel", _channel(varying, series, times, {*errors, *limits}, unsure))
    known = given.get("channel", schema.channel)
    if known and "untimed" not in named and time is not None and (untimed := int((time.codes < 0).sum())):
        unsure.append(f"{untimed:,} of {n:,} rows seen have no time: --untimed static reads them as facts")
    others = [name for name in numeric if name not in (known, *errors, *limits, *flags) and not looks_like_id(name)]
    if "positions" not in named:
        keys = _joint(series, times, *([columns[known].codes] if known in columns else []))
        scale = _scale((numeric[name] for name in others), keys)
        if scale is not None:
            given["positions"] = (scale.name,)
            others.remove(scale.name)
            text = (
                f"{scale.name!r} is proposed as a position of each observation, as it goes one way through the rows of"
            )
            unsure.append(f"{text} one time (--positions)")
        elif not known and (bare := n - _count(keys)):
            unsure.append(f"{bare:,} of {n:,} rows seen repeat the series and time of another")
    if time is not None:
        again = [
            name
            for name, c in numeric.items()
            if (c.called(TIME) or c.counts or c.numbers_rows) and c.says(times, series, c.called(TIME))
        ]
        others = [name for name in others if name not in again] or others
    if "values" not in named:
        best = sorted((c for c in others if numeric[c].called(VALUE)), key=lambda c: numeric[c].rank(VALUE))
        others = [name for name in others if name not in coordinates] or others
        if not others:
            raise InputError(
                f"no column looks like values; name it by --values. There are {_seen(free, source)}", code="no-values"
            )
        if not best:  # what has an error was measured, and next to it what has none may not be
            paired = {pairs[name]: free[name].distinct == 1 for name in errors if pairs.get(name) in others}
            best = sorted(paired, key=paired.__getitem__) if len(paired) < len(others) else []
        if not best and known and (channel := columns.get(known)) is not None:
            # What is the same throughout a channel of a series says something of the channel, and is not measured.
            groups_seen = _joint(series, channel.codes)
            best = [name for name in others if numeric[name].varies(groups_seen)]
            best = [name for name in best if _share_explained(numeric[name].numbers, channel.codes) > TELLING_SHARE]  # pyright: ignore
        if best and (known or len(best) == len(others) or not schema.wide):
            given["values"] = tuple(best[:1])
        else:
            given["values"] = tuple(others)
            if len(others) > 1 and not known and "wide" not in named:
                given["wide"] = True
    if "values" in given and not given.get("wide"):
        given["values"] = _without_gaps([numeric[name] for name in given["values"]], unsure)
    values = given.get("values", schema.values)
    unread = {name: c for name, c in varying.items() if name not in flags}
    unsure += _unread(unread, values, columns.get(known or ""), [*others, *varying.keys() - numeric.keys()])
    if sum(map(bool, map(TIME_NAME.fullmatch, values))) > max(MIN_TIME_NAMES - 1, len(values) / 2):
        text = (
            f"the names of the columns {listed(values)} look like times, and each is read as a channel; for one series"
        )
        unsure.append(f"{text} of all, make a row of each first (pandas.melt)")
    unsure += [f"not all is read: {error.message}" for error in source.unreadable.values()]
    if given.get("wide") and errors:
        unsure.append(f"{listed(errors)} look like standard errors, which are read of tables with a row for each value")
    # ── errors, positions, flags, limits ────────────────────────────────────────────────────────────────────────────
    positions = dict.fromkeys((*given.get("positions", ()), *coordinates))
    if {*positions} - {*values, *given.get("positions", ())} and "positions" not in named:
        unsure.append(
            f"{listed(coordinates)} could be positions of each observation: --positions {' '.join(positions)}"
        )
    if "errors" not in named and len(values) == 1 and not given.get("wide") and not schema.wide:
        of_value = [name for name in errors if pairs.get(name, values[0]) == values[0]]
        of_value = [name for name in of_value if name in pairs or not _stem(name)][:1]
        for name in of_value:
            if lost := _without_error(columns[values[0]], columns[name], series):
                unsure.append(f"{name!r} is missing in {lost:,} of {n:,} rows: --errors {name} would leave them out")
            else:
                given["errors"] = (name,)
    words = {c.name: {*c.cells.unique().to_pylist()} - {None, "", "="} for c in free.values() if c.text}
    marks = [name for name, seen in words.items() if seen and seen <= MARKS]
    if marks:
        unsure.append(
            f"{listed(marks)} says which values are limits, and is not read: write its mark before the value, <0.01"
        )
    for name in flags:
        marked = int((np.nan_to_num(numeric[name].numbers) != 0).sum()) if name in numeric else 0  # pyright: ignore
        if name not in values and 0 < marked < n / 2:
            unsure.append(f"{name!r} is not 0 in {marked:,} of {n:,} rows: --flags {name} would leave them out")
    few = [c.name for c in free.values() if c.text and {*c.words} & FLAGS and 0 < (c.codes >= 0).sum() < n / 2]
    unsure += [f"{listed(few)}: filled in few rows, and not read; if they are bad, leave them out first"] if few else []
    several = len(values) > 1 or given.get("wide") or schema.wide or {"upper_limits", "lower_limits"} & named
    for name in limits:
        if several or not _fills(columns[name], columns.get(values[0])):
            unsure += [f"{name!r} is a limit of what could be seen, and is not read"] if name in numeric else []
            continue
        given |= {"static": tuple(fact for fact in given["static"] if fact != name)} if "static" in given else {}
        faint = "mag" in name.lower() or "mag" in values[0].lower()
        role, other = ("lower_limits", "--upper-limits") if faint else ("upper_limits", "--lower-limits")
        given[role], several = (name,), True
        side = "above" if faint else "below"
        unsure.append(f"where {values[0]!r} is missing, it is taken to lie {side} {name!r} (else {other} {name})")
    read = {*given.values(), *(name for names in given.values() if isinstance(names, tuple) for name in names)}
    for known, how in ((0, "empty"), (1, "one value")):
        alike = [name for name, c in free.items() if c.distinct == known and name not in read]
        unsure += [f"{listed(alike)}: {how} in all rows seen, and not read"] if alike else []
    return Proposal(replace(schema, **given), given, label, group, tuple(unsure))


def _seen(columns: Mapping[str, Column], source: Source) -> str:
    """Return the columns, what some of them hold that are texts, and why others cannot be read, as text."""
    texts = [c for c in columns.values() if c.text and not (c.dates or c.clock)][:3]
    said = [f" {c.name!r} holds texts ({listed(c.cells.drop_null().unique()[:2].to_pylist())})." for c in texts]
    said += [f" Besides, {error.message}" for error in source.unreadable.values()]
    return f"{listed(columns, 20) or 'no others'}.{''.join(said)}"


def _fills(limit: Column, value: Column | None) -> bool:
    """Return whether a column of limits has numbers where the column of values has none."""
    if limit.numbers is None or value is None or value.numbers is None:
        return False
    return bool((~np.isnan(limit.numbers) & np.isnan(value.numbers)).any())


def _without_error(value: Column, error: Column, series: np.ndarray) -> int:
    """Return how many rows have a value, which is no limit, and no error, in series that have errors, [n] codes."""
    if value.numbers is None or error.numbers is None:
        return 0
    known = np.isfinite(value.numbers)
    if cells.is_text(value.cells.type):
        known &= ~cells.matches(value.cells, f"{cells.UPPER}|{cells.LOWER}")
    there = np.isfinite(error.numbers)
    return int((known & ~there & np.isin(series, series[there])).sum())


def _without_gaps(values: Sequence[Column], unsure: list[str]) -> tuple[str, ...]:
    """Return the names of the columns of values that lack the fewest cells, as a row needs all of its values.

    A sentence is added to `unsure` if some are left out.
    """
    gaps = {c.name: int(np.isnan(c.numbers).sum()) for c in values}  # pyright: ignore
    kept = tuple(name for name in gaps if gaps[name] == min(gaps.values()))
    if lacking := [name for name in gaps if name not in kept]:
        text = f"cells of {listed(lacking)} are missing, and these are not read: next to a channel, a row needs all of"
        unsure.append(f"{text} its values (--values)")
    return kept


def _unread(
    varying: dict[str, Column], values: Sequence[str], channel: Column | None, free: Sequence[str]
) -> list[str]:
    """Return sentences on columns that change within series and are not read, and on values that may be codes.

    Columns that say what the channel says, as its unit does, are passed over.

    Args:
        varying: {name: column} of the columns that differ within a series.
        values: names of the columns of values.
        channel: the column of channels, if there is one.
        free: names of the columns of `varying` without another role.
    """
    columns = [c for name, c in varying.items() if name in free and not (c.dates or c.clock or c is channel)]
    if channel is not None:
        columns = [c for c in columns if _count(channel.codes, c.codes) > channel.distinct]
    unread = [c.name for c in columns if c.name not in values]
    codes = [c.name for c in columns if c.names_classes and (c.codes >= 0).all() and not looks_like_id(c.name)]
    as_values, apart = [name for name in codes if name in values], [name for name in codes if name in unread]
    numbers = [c.name for c in columns if c.name in unread and c.name not in codes and c.numeric]
    numbers = [name for name in numbers if not looks_like_id(name)]
    texts = [name for name in unread if name not in codes and varying[name].text]
    said = [f"{listed(numbers)} could be values, too (--values)"] if numbers else []
    said += [f"{listed(texts)}: texts that change within series, not read"] if texts else []
    for names, how in ((as_values if channel is None else [], "read as values"), (apart, "not read")):
        if names:
            text = (
                f"{listed(names)}: few words or whole numbers that change within series, {how}; --channel {names[0]}, "
            )
            said.append(f"{text}if they say what was measured, or --id, if of what")
    return said


def _time(free: dict[str, Column], unsure: list[str]) -> Column | None:
    """Return the column of times among those without a role so far, or None.

    The name that fits best decides. Without such a name it is the first column of dates, and else one that ascends.
    A sentence is added to `unsure` if other columns hold dates, too, or if the times only ascend.
    """
    clocks = any(c.clock for c in free.values())  # which tell the times of a single day
    times = [c for c in free.values() if c.distinct > 1 or (c.dates and clocks)]
    dated = [c for c in times if c.dates]
    named = [c for c in times if c.called(TIME) and (c.numeric or c.dates or c.clock)]
    best = sorted(named, key=lambda c: (not c.dates and bool(dated) and c.clock, c.rank(TIME))) or dated
    # Dates are plainer than numbers, except Julian ones, where they change from row to row like these.
    if best and not best[0].dates and best[0].rank(TIME) >= TIME.words.index("time"):
        usual = named + (dated if best[0].counts or best[0].wanders else [])
        changes = {c.name: (np.diff(c.codes) != 0).sum() for c in usual}
        plain = (c for c in usual if c.dates and len(c.formats) < 2)
        plain = (c for c in plain if changes[c.name] > 0.9 * changes[best[0].name])
        best = [next(plain, best[0])]
    if not best:
        text = next((c for c in free.values() if c.text and c.called(TIME)), None)
        return text or _ascending(free, unsure)
    if best[0].wanders and len(best[0].words) > 1:
        unsure.append(f"the numbers of {best[0].name!r} go up and down from row to row: are they times? (--time)")
    others = [c.name for c in dated if c is not best[0]]
    if best[0].dates and others:
        unsure.append(f"{listed(others)} hold times, too; {best[0].name!r} is proposed (--time)")
    return best[0]


def _parts_of_dates(time: Column, columns: Iterable[Column]) -> list[str]:
    """Return the columns of whole numbers that say year, month, day, hour or weekday of dates, plus a constant."""
    whole = [c for c in columns if c.whole and c.distinct > 1 and not looks_like_id(c.name)]
    if not (whole and time.dates):
        return []
    try:
        read = dates.times(time.cells, time.name, time.formats[0] if time.formats else None).values
    except InputError:  # which reading the table says
        return []
    known, stamps = ~np.isnan(read), dates.as_dates(np.nan_to_num(read))
    sizes = {"year": 9999, "month": 12, "day": 31, "hour": 24, "day_of_week": 7}
    parts = [(pc.call_function(part, [stamps]).to_numpy()[known], size) for part, size in sizes.items()]

    def is_part(numbers: np.ndarray) -> bool:
        """Return whether numbers [n] are a part of each date, plus a constant."""
        apart = ((numbers[known] - part) % size for part, size in parts if np.ptp(numbers) < size)
        return any(known.any() and (one == one[0]).all() for one in apart)

    return [c.name for c in whole if is_part(c.numbers)]  # pyright: ignore


def _ascending(free: dict[str, Column], unsure: list[str]) -> Column | None:
    """Return the first numeric column that ascends from row to row, except where another series may begin; or None.

    A sentence is added to `unsure` if there is such a column.
    """
    for c in free.values():
        if c.numbers is None or c.listed or c.words[-1:] == ("id",) or c.distinct < MIN_ASCENDING:
            continue
        if (np.diff(c.numbers) > 0).mean() > 0.9:
            unsure.append(f"{c.name!r} is proposed as the time, as it ascends (--time)")
            return c
    return None


def _id(
    free: dict[str, Column], times: np.ndarray, unsure: list[str], several_files: bool
) -> tuple[Column | None, list[Column]]:
    """Return the column of ids, or None; and other id columns, whose objects have several series each.

    A name like that of an id decides. Without one, each of several files is a series; in a single file, a column whose
    rows come in blocks, or a text that tells rows of one time apart, is taken.

    Args:
        free: {name: column} without a role so far.
        times: [n], the code of each row's time.
        unsure: list of doubts, to which a sentence is added if the id is not recognised by name.
    """
    n = len(times)
    named = [c for c in free.values() if looks_like_id(c.name) and c.distinct > 0 and (c.formats or not c.dates)]
    # An id of every row is none of a series.
    named = [c for c in named if c.distinct < n or n == 1 or (not c.listed and any(o.listed for o in free.values()))]
    named = [c for c in named if not (c.distinct > n / 2 and len(named) > 1)] or named
    # Nor is one of the rows of each time, such as those of a transit.
    named = [c for c in named if c.distinct == 1 or _count(c.codes, times) > c.distinct] or named
    if named:
        # The rows of the best name often come in blocks, and those of who measured them do not.
        likely = min(c.rank(Rule(IDS)) for c in named)
        blocks = [c for c in named if c.distinct > 1 and c.rank(Rule(IDS)) == likely and c.runs <= 1.1 * c.distinct]
        # Where rows of one time are of several objects, their id tells these apart, and a unit of measurement does not.
        unlike = {c.name: _count(c.codes, times) for c in named}
        apart = [c for c in named if unlike[c.name] > 0.98 * max(unlike.values())]
        best = max(blocks or apart, key=lambda c: (c.distinct, -c.rank(Rule(IDS))))
        groups = [c for c in (named if blocks else apart) if c.distinct != best.distinct]
        whole, parts = best.name, _parts(best, free.values(), times)
        if parts is None:
            return best, groups
        unsure.append(f"{parts.name!r} is proposed as the id, as it tells rows of one {whole} and time apart (--id)")
        return parts, [best, *groups]
    if several_files:
        return None, []
    blocks = [c for c in free.values() if (c.text or c.whole) and c.distinct > 1 and not c.listed]
    blocks = [c for c in blocks if not (set(c.words) & BAND_WORDS or c.dates or c.clock or c.called(LABEL))]
    blocks = [c for c in blocks if (c.codes >= 0).all()]
    blocks = [c for c in blocks if c.runs <= 1.1 * c.distinct and n / c.runs >= MIN_RUN]
    if not blocks:
        apart = [c for c in free.values() if c.text and 1 < c.distinct <= n / MIN_RUN and not c.called(CHANNEL)]
        if _count(times) < 0.9 * n:
            best = next((c for c in apart if _count(c.codes, times) > 0.98 * n and not (c.dates or c.clock)), None)
            if best is not None:
                unsure.append(f"{best.name!r} is proposed as the id, as it tells rows of one time apart (--id)")
                return best, []
        return None, []
    best = max(blocks, key=lambda c: (c.text, c.distinct))
    unsure.append(f"{best.name!r} is proposed as the id, as its rows come in blocks (--id)")
    return best, []


def _parts(whole: Column, free: Iterable[Column], times: np.ndarray) -> Column | None:
    """Return a column that names the parts of each object of `whole`, such as the inverters of a plant, or None.

    Rows with several values are each the state of such a part; its name belongs to one object, and tells its rows of
    one time apart.

    Args:
        whole: the ids of the objects.
        free: the columns without a role so far.
        times: [n], the code of each row's time.
    """
    free, n = list(free), len(times)
    values = [c for c in free if c.numeric and c.distinct > 1 and not (c.is_error or looks_like_id(c.name))]
    single = whole.distinct == 1 and any(c.called(VALUE) for c in values)  # one value in each row, whatever else
    if len(values) < 2 or single or _count(whole.codes, times) > 0.9 * n:
        return None
    names = (c for c in free if c.text and whole.distinct < c.distinct <= n / MIN_RUN and not c.called(CHANNEL))
    names = (c for c in names if _count(whole.codes, c.codes) == c.distinct and not (c.dates or c.clock))
    return next((c for c in names if _count(c.codes, times) > 0.98 * n), None)


def _share_explained(values: np.ndarray, codes: np.ndarray) -> float:
    """Return the share of the variance of the values' ranks that lies between groups, 0 to 1; missing values are out.

    Args:
        values: [n].
        codes: [n] the group of each value; -1 for none.
    """
    known = np.isfinite(values) & (codes >= 0)
    if known.sum() < 2:
        return 0.0
    _, place, counts = np.unique(values[known], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    sizes = np.bincount(codes[known])
    means = np.bincount(codes[known], ranks) / np.maximum(sizes, 1)
    between = (sizes * (means - ranks.mean()) ** 2).sum() / known.sum()
    return float(between / max(ranks.var(), 1e-12))


def _channel(
    varying: dict[str, Column], series: np.ndarray, times: np.ndarray, others: set[str], unsure: list[str]
) -> Column | None:
    """Return the column of channels, or None without one.

    It has a known name and few values. Or else it is a guess: a text, or whole numbers that look like names of classes,
    that tells rows of the same series and time apart; or a text by which the numbers of another column differ much.

    Args:
        varying: {name: column} of the columns that differ within a series.
        series, times: [rows], codes of the series and of the time of each row.
        others: names of columns that have another role, and are never proposed.
        unsure: list of doubts. A sentence is added if the column is a guess, or if there is none and rows repeat a
            time.
    """
    usual = [c for c in varying.values() if 1 < c.distinct <= MAX_CHANNELS and c.repeats and c.name not in others]
    usual = [c for c in usual if (c.text or c.whole) and not c.dates and not c.clock]
    named = [c for c in usual if c.called(CHANNEL) and not looks_like_id(c.name)]
    named = [c for c in named if not (c.numeric and c.called(VALUE))]

    def repeats(*keys: np.ndarray) -> int:
        """Return how many rows have the same series, time and `keys` as another."""
        return len(series) - _count(series, times, *keys)

    if named:
        return min(named, key=lambda c: (repeats(c.codes), c.rank(CHANNEL) + len(c.words) / 100))
    bare = repeats()
    telling = [c for c in usual if (c.distinct < len(series) / 3 if c.text else c.names_classes)]
    telling = [c for c in telling if repeats(c.codes) < bare / 20 and not c.is_scale(_joint(series, times))]
    if bare > len(series) / 20 and telling:
        best = min(telling, key=lambda c: (repeats(c.codes), c.distinct))
        text = f"{best.name!r} is proposed as the channel, as it tells rows of one time apart (--channel)"
        several = "; if it numbers series of one object, join the two columns to one of ids (--id)"
        unsure.append(text + (several if best.whole else ""))
        return best
    texts = [c for c in usual if c.text and c.distinct < len(series) / 3 and cells.matches(c.cells, r"\pL").any()]
    numbers = [c for c in varying.values() if c.name not in others and c.numeric and not c.goes_one_way(series)]
    pairs = [(_share_explained(v.numbers, c.codes), c, v) for c in texts for v in numbers]  # pyright: ignore
    share, best, value = max(pairs, key=lambda pair: (round(pair[0], 1), pair[1].distinct), default=(0.0, None, None))
    if best is not None and value is not None and share > TELLING_SHARE:
        text = f"{best.name!r} is proposed as the channel, as {value.name!r} differs by it (--channel)"
        unsure.append(f"{text}; a state, such as on and off, is none")
        return best
    return None


def _scale(numeric: Iterable[Column], keys: np.ndarray) -> Column | None:
    """Return the first column whose numbers say where each row lies among those of its series, time and channel.

    It is None where such rows are few or none.

    Args:
        numeric: columns that may measure a depth, a height, a wavelength or the like.
        keys: [rows], code of the series, time and channel of each row.
    """
    bare = len(keys) - _count(keys)
    scales = (c for c in numeric if c.is_scale(keys) and len(keys) - _count(keys, c.codes) < bare / 20)
    return next(scales, None) if bare > len(keys) / 20 else None


def _stem(name: str) -> str:
    """Return the common part of a value's and its error's name: "flux" for flux_err, "psf" for magpsf and sigmapsf."""
    words = [re.sub(r"(err|error|sigma)$", "", word) for word in pieces(name) if word not in ERRORS]
    words = [word for word in words if word]
    stems = [word for word in words if word not in ("mag",)]
    return "".join(stems or words)


def _errors_by_name(columns: Iterable[Column]) -> dict[str, str]:
    """Return the columns of standard errors whose names are those of others with a mark of error: {error: value}.

    The mark stands before or behind, such as in flux_unc, sigmaflux and e_mag; so does a "d" before the name of the
    column on the left, dm of m, where no number is negative.
    """
    columns = [c for c in columns if c.numeric]
    plain = {"".join(c.words): c.name for c in reversed(columns) if not c.is_error}
    stems = {_stem(c.name): c.name for c in reversed(columns) if not c.is_error}
    pairs: dict[str, str] = {}
    for left, c in zip([None, *columns], columns, strict=False):
        name = "".join(c.words)
        rests = {cut(mark) for mark in ERRORS - {"e"} for cut in (name.removeprefix, name.removesuffix)} - {name}
        value = next((plain[rest] for rest in rests if rest in plain), stems.get(_stem(c.name)) if c.is_error else None)
        if left is not None and name == "d" + "".join(left.words) and not (c.numbers < 0).any():  # pyright: ignore
            value = left.name
        pairs |= {} if value is None else {c.name: value}
    return pairs


def key_column(table: Source, id: str) -> str:
    """Return the name of the id column of a table of objects: `id`, or else the only one that looks like an id.

    Raises:
        InputError: the table lacks `id`, and none or several others look like ids ("unknown-column").
    """
    likely = [name for name in table.columns if looks_like_id(name)]
    if id not in table.columns and len(likely) == 1:
        return likely[0]
    table.need([id], advice=", by which its rows belong to series")
    return id


def status_of(label: str, columns: Iterable[str]) -> str | None:
    """Return the first column, other than `label`, whose name says whether durations ended in an event.

    None if there is none, or if the name of `label` is not that of a duration.
    """
    status = (name for name in columns if name != label and set(pieces(name)) & STATUS_NAMES)
    return next(status, None) if set(pieces(label)) & DURATION else None


def _duration(columns: Mapping[str, Column]) -> str | None:
    """Return the name of the first column of durations: numbers, none negative, with a status column; None without one.

    The status column is found by its name (`status_of`), wherever it stands, and has at most two values.

    Args:
        columns: {name: column} with one value per series.
    """
    pairs = ((c, columns.get(status_of(name, columns) or "")) for name, c in columns.items() if c.numeric)
    return next(
        (c.name for c, status in pairs if status is not None and status.distinct <= 2 and np.nanmin(c.numbers) >= 0),  # pyright: ignore
        None,
    )


def propose_objects(source: Source, id: str, label: str | None) -> tuple[str | None, tuple[str, ...], list[str]]:
    """Propose the label and the static columns of a table of objects, which has one row per series.

    Args:
        source: the table, of which some rows are read.
        id: the name of the id column in the table of observations. If the table of objects lacks it, the only column
            that looks like an id is taken.
        label: the label, if the user named it, which is kept.

    Returns:
        The label, or None if no column looks like one; the static columns; and sentences on what is doubtful.

    Raises:
        InputError: no column of ids, or several that look like one ("unknown-column").
    """
    key, unsure = key_column(source, id), []
    if key != id:
        unsure.append(f"the ids of {source.name} are read from {key!r}")
    seen = look(source)
    columns = [c for name, c in seen.items() if name != key and c.distinct > 1]
    label, static = _of_series(columns, max((len(c.codes) for c in seen.values()), default=0), label, unsure)
    if label is not None and static:
        unsure.append(f"of {listed(static, 20)}, leave out by --static what is known only after {label!r}")
    return label, static, unsure


def _of_series(
    columns: list[Column], count: int, label: str | None, unsure: list[str], more_outcomes: Sequence[str] = ()
) -> tuple[str | None, tuple[str, ...]]:
    """Propose the label, or None, and the static columns among columns with one value per series.

    Args:
        count: number of series that were seen.
        label: the label, if the user named it, which is kept.
        unsure: list of doubts, to which sentences are added.
        more_outcomes: further names that suggest an outcome, for the sentence on these.
    """
    if label is None:
        labels = [c for c in columns if c.called(LABEL) and 1 < c.distinct <= max(2, count // 2)]
        best = min(labels, key=lambda c: c.rank(LABEL)).name if labels else None
        label = _duration({c.name: c for c in columns}) or best
    truth, event = (
        next((c for c in columns if c.name == label), None),
        status_of(label or "", (c.name for c in columns)),
    )
    columns = [c for c in columns if c.name not in (label, event) and not looks_like_id(c.name)]
    usable = [c for c in columns if c.distinct > 1]
    outcomes = [c.name for c in columns if looks_like_outcome(c.name)]
    no_facts = ERRORS | {"split", "fold", "true"}
    leaks, many, static = [], [], []
    for c in (c for c in usable if not (c.dates or c.clock or c.name in outcomes or set(c.words) & no_facts)):
        if c.numbers_series(count):
            many.append(c.name)
        elif 2 * c.distinct > count:
            (many if c.text else static).append(c.name)
        elif truth is not None and c.distinct >= truth.distinct and _count(c.codes, truth.codes) == _count(c.codes):
            leaks.append(c.name)
        else:
            static.append(c.name)
    outcomes += more_outcomes
    classes = [c for c in usable if c.names_classes and 1 < c.distinct <= max(2, count // 2)]
    maybe = [c.name for c in classes if label is None and not set(c.words) & no_facts]
    if maybe:
        text = "may be the label" if len(maybe) == 1 else "may hold the label"
        text = f"{listed(maybe, 20)} {text} (--label {maybe[0]}?)"
        unsure.append(f"{text}, and then no fact (--static)" if {*maybe} & {*static} else text)
    unsure += (
        [f"{listed(many)}: of {count:,} series seen, half or more have one of their own, and it is not read (--static)"]
        if many
        else []
    )
    unsure += [f"{listed(leaks)} say the label itself, and are not read"] if leaks else []
    unsure += [f"{listed(outcomes)} {LIKE_OUTCOMES}"] if outcomes else []
    return label, tuple(static)
