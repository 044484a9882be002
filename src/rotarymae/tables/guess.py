"""Which column of a table is what, proposed from names, pieces of names, types, and the shape of the data.

A proposal never merges, drops or converts: what is doubtful is said in `unsure`, and left to the user.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from rotarymae.errors import InputError, listed
from rotarymae.series import cells
from rotarymae.tables.schema import TableSchema
from rotarymae.tables.source import Source

ROWS = 20_000  # from the beginning, from which a table is guessed
MAX_CHANNELS = 2_000
ORDERS = ("%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%Y/%m/%d")
CLOCK_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
TIME_FORMATS = [day.replace("/", mark) + clock for mark in "/.-" for day in ORDERS for clock in CLOCK_TIMES]
MIN_RUN = 3  # rows of a block, on average, that make a column look like one of ids

# Whole names and pieces of names, in the order of preference; "objectId" has the pieces object and id.
IDS = ("object", "obj", "oid", "star", "series", "stay", "hospitalization", "encounter", "subject", "patient", "record",
       "participant", "person", "source", "station", "device", "unit", "machine", "kic", "tic", "case", "animal", "id",
       "name")  # fmt: skip
NO_IDS = {"exposure", "visit", "ccd", "detector", "field", "night", "image", "filter", "item", "code", "row", "order",
          "candidate", "candid", "parent", "concept", "fid", "program", "user", "location", "site"}  # fmt: skip
TIMES = ("mjd", "bmjd", "hjd", "bjd", "bkjd", "btjd", "jd", "time", "timestamp", "datetime", "dttm", "dt", "date",
         "day", "days", "hour", "hours", "minute", "minutes", "second", "seconds", "week", "month", "year", "t",
         "epoch", "zeit", "datum", "cycle", "step", "iculos")  # fmt: skip
BETTER_TIMES = ("mid", "midpoint", "obs", "observed", "chart", "recorded", "collect", "collected", "measured", "start")
CLOCKS = ("clock", "time", "hour", "uhrzeit", "tod")
CHANNELS = ("passband", "band", "bandpass", "filter", "filtercode", "filterid", "fid", "category", "channel", "sensor",
            "variable", "parameter", "test", "itemid", "item", "code", "concept", "analyte", "signal", "tag", "metric",
            "measurement", "lead", "name")  # fmt: skip
VALUES = ("flux", "mag", "magnitude", "value", "valuenum", "reading", "measurement", "result", "amount", "numeric")
BETTER_VALUES = ("psf", "pdc", "numeric", "num", "cal", "corr")
ERRORS = {"err", "error", "errors", "sigma", "unc", "uncertainty", "std", "stddev", "stderr", "e"}
LIMITS = ("lim", "limit", "limiting", "upperlimit", "maglim", "limmag", "diffmaglim")
FLAGS = {"flag", "flags", "quality", "catflags", "qflag", "isdiffpos", "bad", "procstatus", "rb"}
LABELS = (
    "label",
    "target",
    "class",
    "kind",
    "type",
    "outcome",
    "died",
    "diagnosis",
    "species",
    "mortality",
    "death",
    "y",
)
OUTCOMES = {"futime", "survtime", "survival", "followup", "tte", "died", "death", "dead", "status", "event", "outcome",
            "mortality", "censor", "censored", "deathtime", "target", "label"}  # fmt: skip
NOTHING = re.compile(r"^(__.*__|unnamed:? ?\d*|index|rownames?|row_?(id|number|nr)?|#|level_\d+|)$", re.IGNORECASE)


@dataclass(frozen=True)
class Proposal:
    """What a table probably is.

    Attributes
    ----------
    schema
        The columns.
    given
        The fields of it that are proposed, and not told.
    label, split
        Columns that look like a label, and like groups of series that a random split would tear apart.
    unsure
        Sentences on what is doubtful.
    """

    schema: TableSchema
    given: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    split: str | None = None
    unsure: tuple[str, ...] = ()


def pieces(name: str) -> list[str]:
    """Return the words of a column's name: "midpointMjdTai" and "Time (MJD)" have mjd among theirs."""
    name = name.rpartition(".")[2]
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    words = [word.lower() for word in re.findall(r"[A-Za-z]+|\d+", split)]
    for known in ("psf", "sap"):  # glued names, such as magpsf and sigmapsf
        words = [
            part
            for word in words
            for part in ((word[: -len(known)], known) if word.endswith(known) and word != known else (word,))
        ]
    return words


def looks_like_id(name: str) -> bool:
    """Return whether a column's name says that it holds ids of objects."""
    words, plain = pieces(name), name.rpartition(".")[2].lower().replace("_", "")
    if set(words) & NO_IDS:
        return False
    return words[-1:] == ["id"] or plain in ("oid", "objid", "kic", "tic") or (len(words) == 1 and words[0] in IDS[:-2])


@dataclass(frozen=True, eq=False)
class Column:
    """A column as the beginning of a table shows it.

    `codes` [n] number its different cells, -1 where it is missing; `numbers` are its numbers, or None.
    """

    name: str
    words: tuple[str, ...]
    numeric: bool
    dates: bool
    clock: bool
    text: bool
    listed: bool
    codes: np.ndarray
    numbers: np.ndarray | None
    problem: str | None = None

    @property
    def distinct(self) -> int:
        return int(self.codes.max(initial=-1)) + 1

    def rank(self, known: Sequence[str], better: Sequence[str] = ()) -> float:
        """Return how well the name fits, the lowest best; infinity where no piece of it is known."""
        places = [known.index(word) for word in self.words if word in known]
        if not places:
            return np.inf
        bonus = 0.5 * any(word in better for word in self.words) * len(known)
        exact = 0 if len(self.words) == 1 else 0.25 + 0.01 * len(self.words)
        return min(places) - bonus + exact


def look(source: Source, rows: int = ROWS, na: Sequence[str] = ()) -> dict[str, Column]:
    """Return the columns of a table as its first rows show them; nested ones entry by entry."""
    names = [name for name in source.kinds if not NOTHING.match(name)]
    lists = {name for name in names if cells.is_list(source.kinds[name])}
    read = source.read(names, max(1, rows // 100) if lists else rows)
    lengths = cells.list_lengths(read[min(lists)]) if lists else None
    found = {}
    for name, column in read.items():
        if name in lists:
            column = cells.to_arrow(column.flatten())
        elif lengths is not None:
            column = column.take(pa.array(np.repeat(np.arange(len(lengths)), lengths)))
        found[name] = _column(name, column, name in lists, na)
    return found


def _column(name: str, column: pa.Array, listed: bool, na: Sequence[str]) -> Column:
    kind, numbers, problem = column.type, None, None
    dates = clock = False
    text = cells.is_text(kind)
    if text:
        column = cells.trimmed(column)
        there = ~cells.missing_texts(column)
        count = max(1, int(there.sum()))
        dates = bool(2 * (cells.matches(column, cells.ISO) & there).sum() > count) and bool(there.any())
        clock = bool(2 * cells.matches(column, cells.ELAPSED).sum() > count)
    elif pa.types.is_temporal(kind):
        clock, dates = (
            pa.types.is_time(kind) or pa.types.is_duration(kind),
            pa.types.is_date(kind) or pa.types.is_timestamp(kind),
        )
    if not dates and not clock:
        try:
            read = cells.numbers(column, name, na)
            good, words = int((~np.isnan(read.values)).sum()), sum(read.words.values())
            numbers = read.values.astype(np.float64) if good >= words or not text else None
            if read.words and numbers is not None:
                problem = f"{name!r} has {words:,} cells that are no numbers ({', '.join(list(read.words)[:5])})"
        except InputError:
            numbers = None
    try:
        codes = cells.encode(
            cells.labels(column, name, amounts=True)
            if not pa.types.is_temporal(kind)
            else column.cast(pa.large_string())
        )[0]
    except (InputError, pa.ArrowException):
        codes = np.zeros(len(column), np.int64)
    if numbers is not None and text:
        text = False
    return Column(name, tuple(pieces(name)), numbers is not None, dates, clock, text, listed, codes, numbers, problem)


def propose(source: Source, schema: TableSchema, told: set[str]) -> Proposal:
    """Propose what is not told of a schema.

    Parameters
    ----------
    told
        The fields of the schema that the user has named.

    Raises
    ------
    InputError
        No column that could hold times or values ("no-time", "no-values").
    """
    columns = look(source, na=schema.na)
    used = {name for role, name in schema.roles if role in told}
    unsure: list[str] = []
    given: dict[str, Any] = {}
    free = {name: column for name, column in columns.items() if name not in used}
    n = len(next(iter(columns.values())).codes) if columns else 0

    def take(option: str, column: Column | None) -> None:
        if column is not None and option not in told:
            given[option] = column.name
            free.pop(column.name, None)

    # ── time: by name, by type, and the only one that could be ──────────────────────────────────────────────────────
    if "time" not in told:
        take("time", _time(free, unsure))
        if "time" not in given:
            raise InputError(
                f"no column looks like time; name it by --time. There are {listed(columns, 20)}.", code="no-time"
            )
    time = columns.get(given.get("time", schema.time))
    if "time_format" not in told and time is not None and time.text and time.name in source.kinds:
        formats, example = _time_formats(source, time.name)
        if len(formats) == 1:
            given["time_format"] = formats[0]
            unsure.append(f"the times, such as {example!r}, are all dates as {formats[0]!r} alone (--time-format)")
    # ── id ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    groups: list[Column] = []
    if "id" not in told:
        own, groups = _id(free, n, unsure, several_files=len(source.paths) > 1)
        take("id", own)
        if own is None:
            given["id"] = "file"
            if len(source.paths) <= 1:
                unsure.append("no column of ids is seen: the table is read as one series (--id COLUMN otherwise)")
    name = given.get("id", schema.id)
    if name in columns:
        series = columns[name].codes
    elif len(source.paths) > 1 and time is not None and not time.listed:
        series = cells.encode(source.with_ids_of_files().read(["file", time.name], ROWS)["file"])[0]
    else:
        series = np.zeros(n, np.int64)
    if "clock" not in told and time is not None and time.dates:
        clocks = [column for column in free.values() if column.clock and column.rank(CLOCKS) < np.inf]
        whole = _only_days(source, time)
        if clocks and whole:
            take("clock", clocks[0])
    # ── what is the same throughout each series ─────────────────────────────────────────────────────────────────────
    varying = {name: column for name, column in free.items() if _varies(column, series)}
    fixed = {name: column for name, column in free.items() if name not in varying and column.distinct > 0}
    if int(series.max(initial=0)) == 0:  # one series shows nothing
        varying, fixed = free, {}
    # ── label, groups, facts ────────────────────────────────────────────────────────────────────────────────────────
    count = int(series.max(initial=-1)) + 1
    labels = [c for c in fixed.values() if c.rank(LABELS) < np.inf and 1 < c.distinct <= max(2, count // 2)]
    label = min(labels, key=lambda c: c.rank(LABELS)).name if labels else None
    group = next((c for c in groups if c.name in fixed and 1 < c.distinct < count), None)
    if group is None:
        group = next((c for c in fixed.values() if looks_like_id(c.name) and 1 < c.distinct < count), None)
    if group is not None:
        unsure.append(
            f"{group.name!r} repeats across series: a random split would put the same {group.name} on both sides; "
            f"--split-by {group.name}?"
        )
    outcomes = [c.name for c in fixed.values() if set(c.words) & OUTCOMES and c.name != label]
    changing = {c.name for c in varying.values() if c.numeric and set(c.words) & OUTCOMES}
    if any(c.numeric and c.name not in changing for c in varying.values()):
        outcomes += [name for name in varying if name in changing]
    if outcomes:
        unsure.append(
            f"{listed(outcomes)} look like outcomes, and are not read: a model would see what it is to predict"
        )
    left = {label, *(c.name for c in groups), *outcomes, group.name if group else None}
    static = [
        c
        for c in fixed.values()
        if c.name not in left and not looks_like_id(c.name) and c.distinct > 1 and not c.dates and not c.clock
    ]
    many = [c.name for c in static if c.text and 2 * c.distinct > count]
    if many:
        unsure.append(f"{listed(many)} have a different text for most series, and are not read")
    static = [c.name for c in static if c.name not in many]
    # ── errors, limits, flags ───────────────────────────────────────────────────────────────────────────────────────
    numeric = {name: c for name, c in varying.items() if c.numeric and name not in outcomes}
    errors = {
        name
        for name, c in free.items()
        if c.numeric
        and ((set(c.words) & ERRORS and len(c.words) > 1) or (c.words[-1:] and c.words[-1].endswith("err")))  # pyright: ignore
    }
    limits = [name for name, c in numeric.items() if any(word in LIMITS or word.endswith("lim") for word in c.words)]
    flags = [name for name, c in numeric.items() if set(c.words) & FLAGS or set("".join(c.words).split()) & FLAGS]
    coordinates = [
        name
        for name, c in numeric.items()
        if name.lower()
        in ("ra", "dec", "lat", "lon", "long", "latitude", "longitude", "depth", "x", "y", "z", "altitude")
    ]
    # ── channel and values ──────────────────────────────────────────────────────────────────────────────────────────
    channel = None
    times = time.codes if time is not None else np.arange(n)
    if not {"channel", "wide"} & told:
        channel = _channel(varying, series, times, set(errors) | set(limits), unsure)
        take("channel", channel)
    if channel is not None:
        numeric.pop(channel.name, None)
    known = channel.name if channel is not None else schema.channel
    others = [
        name
        for name in numeric
        if name not in errors and name not in limits and name not in flags and not looks_like_id(name)
    ]
    if "values" not in told:
        named = [name for name in others if numeric[name].rank(VALUES) < np.inf]
        best = sorted(named, key=lambda name: numeric[name].rank(VALUES, BETTER_VALUES))
        others = [name for name in others if name not in coordinates] or others
        if best and (known or len(best) == len(others) or not schema.wide):
            given["values"] = tuple(best[:1])
            if len(best) > 1:
                unsure.append(f"{listed(best[1:])} could be values, too (--values)")
        elif others:
            given["values"] = tuple(others)
            if len(others) > 1 and not known and "wide" not in told:
                given["wide"] = True
            problems = [numeric[name].problem for name in others]
            unsure += [problem for problem in problems if problem]
        else:
            words = [c.problem or c.name for c in varying.values()]
            raise InputError(
                f"no column looks like values; name it by --values. There are {listed(free, 20)} ({listed(words)}).",
                code="no-values",
            )
    values = given.get("values", schema.values)
    if coordinates and "positions" not in told and not set(coordinates) <= set(values):
        unsure.append(
            f"{listed(coordinates)} could be positions of each observation: --positions {' '.join(coordinates)}"
        )
    if "errors" not in told and len(values) == 1 and not given.get("wide") and not schema.wide:
        own = [name for name in errors if _stem(name) == _stem(values[0])]
        if own:
            given["errors"] = tuple(own[:1])
    unused = [name for name in flags if name not in values]
    for name in unused:
        count_of = int((np.nan_to_num(varying[name].numbers) != 0).sum()) if varying[name].numbers is not None else 0  # pyright: ignore
        if name.lower() != "isdiffpos" and 0 < count_of < n / 2:
            unsure.append(f"{name!r} is not 0 in {count_of:,} of {n:,} rows: --flags {name} would leave them out")
    if limits:
        unsure.append(f"{listed(limits)} are limits of what could be seen, and are not read as values")
    if static and "static" not in told:
        given["static"] = tuple(static)
    lists = {"values", "errors", "static"}
    fields = {name: value for name, value in given.items() if name != "static"}
    proposal = replace(
        schema,
        **{name: tuple(value) if name in lists else value for name, value in fields.items()},
        static=schema.static or tuple(given.get("static", ())),
    )
    return Proposal(proposal, given, label, group.name if group else None, tuple(unsure))


def _time(free: dict[str, Column], unsure: list[str]) -> Column | None:
    """Return the column of times: that of the best name, or the only one of dates."""
    dates = [c for c in free.values() if c.dates and c.distinct > 1]
    named = [
        c for c in free.values() if c.rank(TIMES) < np.inf and c.distinct > 1 and (c.numeric or c.dates or c.clock)
    ]
    named = [
        c
        for c in named
        if not set(c.words) & (ERRORS | OUTCOMES | {"zone", "to", "id", "unit", "corr"})
        and c.name.lower() not in ("timecorr",)
    ]
    best = sorted(named, key=lambda c: (not c.dates and bool(dates) and c.clock, c.rank(TIMES, BETTER_TIMES)))
    if not best and dates:
        best = dates
    if not best:
        texts = [c for c in free.values() if c.text and c.rank(TIMES) < np.inf]
        return texts[0] if texts else None
    others = [c.name for c in dates if c is not best[0]]
    if best[0].dates and others:
        unsure.append(f"{listed(others)} hold times, too; {best[0].name!r} is proposed (--time)")
    return best[0]


def _time_formats(source: Source, name: str) -> tuple[list[str], str]:
    """Return the notations in which all of the first times are dates, and the last of these times."""
    texts = [text.strip() for text in source.read([name], ROWS)[name].unique().to_pylist() if text and text.strip()]
    formats = []
    for written in TIME_FORMATS:
        with suppress(ValueError):
            for text in texts:
                datetime.strptime(text, written)
            formats.append(written)
    return (formats, texts[-1]) if texts else ([], "")


def _id(free: dict[str, Column], n: int, unsure: list[str], several_files: bool) -> tuple[Column | None, list[Column]]:
    """Return the column of ids, and other columns of ids, whose objects have several series.

    Without a column that is named as one, each of several files is a series: equal numbers in two are no sign.
    """
    named = [c for c in free.values() if looks_like_id(c.name) and c.distinct > 0 and not c.dates]
    # An id of every row is none of a series.
    named = [c for c in named if c.distinct < n or n == 1 or (not c.listed and any(o.listed for o in free.values()))]
    named = [c for c in named if not (c.distinct > n / 2 and len(named) > 1)] or named
    if named:
        best = max(named, key=lambda c: (c.distinct, -c.rank(IDS)))
        same = [c for c in named if c.distinct == best.distinct]
        best = min(same, key=lambda c: c.rank(IDS))
        return best, [c for c in named if c not in same]
    if several_files:
        return None, []
    blocks = []
    for c in free.values():
        if (c.text or (c.numeric and c.numbers is not None and _whole(c.numbers))) and c.distinct > 1 and not c.listed:
            runs = 1 + int((np.diff(c.codes) != 0).sum())
            if runs <= 1.1 * c.distinct and n / runs >= MIN_RUN and (c.codes >= 0).all():
                blocks.append(c)
    if not blocks:
        return None, []
    best = max(blocks, key=lambda c: (c.text, c.distinct))
    unsure.append(f"{best.name!r} is proposed as the id, as its rows come in blocks (--id)")
    return best, []


def _whole(numbers: np.ndarray) -> bool:
    known = numbers[np.isfinite(numbers)]
    return bool(len(known)) and bool((known == np.rint(known)).all())


def _varies(column: Column, series: np.ndarray) -> bool:
    """Return whether a column has more than one value in some series."""
    there = column.codes >= 0
    if not there.any():
        return False
    pairs = np.unique(np.stack([series[there], column.codes[there]]), axis=1)
    return pairs.shape[1] > len(np.unique(series[there]))


def _repeats(series: np.ndarray, times: np.ndarray, channel: np.ndarray | None) -> int:
    keys = [series, times] if channel is None else [series, times, channel]
    return len(series) - np.unique(np.stack(keys), axis=1).shape[1]


def _channel(
    varying: dict[str, Column], series: np.ndarray, times: np.ndarray, others: set[str], unsure: list[str]
) -> Column | None:
    """Return the column of channels: a known name of few words, or what tells rows of one time apart."""
    usual = [
        c
        for c in varying.values()
        if 1 < c.distinct <= MAX_CHANNELS and not c.dates and not c.clock and c.name not in others
    ]
    usual = [c for c in usual if c.text or (c.numbers is not None and _whole(c.numbers))]
    named = [
        c
        for c in usual
        if c.rank(CHANNELS) < np.inf and not looks_like_id(c.name) and not (c.numeric and c.rank(VALUES) < np.inf)
    ]
    bare = _repeats(series, times, None)
    if named:
        scored = [(_repeats(series, times, c.codes), c.rank(CHANNELS) + len(c.words) / 100, c) for c in named]
        return min(scored, key=lambda one: one[:2])[2]
    texts = [c for c in usual if c.text and c.distinct < len(series) / 3]
    telling = [(count, c.distinct, c) for c in texts if (count := _repeats(series, times, c.codes)) < bare / 20]
    if bare > len(series) / 20 and telling:
        best = min(telling, key=lambda one: one[:2])[2]
        unsure.append(f"{best.name!r} is proposed as the channel, as it tells rows of one time apart (--channel)")
        return best
    if bare:
        unsure.append(f"{bare:,} of the first {len(series):,} rows repeat the series and time of another")
    return None


def _only_days(source: Source, time: Column) -> bool:
    column = source.read([time.name], ROWS)[time.name]
    if pa.types.is_date(column.type):
        return True
    return cells.is_text(column.type) and not cells.matches(column, ":").any()


def _stem(name: str) -> str:
    """Return what a value and its errors have in common: "flux" of flux_err, "psf" of magpsf and sigmapsf."""
    words = [re.sub(r"(err|error|sigma)$", "", word) for word in pieces(name) if word not in ERRORS]
    words = [word for word in words if word]
    stems = [word for word in words if word not in ("mag",)]
    return "".join(stems or words)


def propose_objects(
    source: Source, id: str, label: str | None, count: int
) -> tuple[str | None, tuple[str, ...], list[str]]:
    """Propose the label and the static columns of the objects' table, and say what is doubtful about them."""
    columns = {name: c for name, c in look(source).items() if name != id and c.distinct > 1}
    if label is None:
        labels = [c for c in columns.values() if c.rank(LABELS) < np.inf and c.distinct <= max(2, count // 2)]
        label = min(labels, key=lambda c: c.rank(LABELS)).name if labels else None
    static, leaks = [], []
    for name, c in columns.items():
        if (
            name == label
            or looks_like_id(name)
            or c.dates
            or c.clock
            or set(c.words) & (OUTCOMES | ERRORS | {"split", "fold", "true"})
        ):
            continue
        if label in columns and 2 * c.distinct < len(c.codes):
            pairs = np.unique(np.stack([c.codes, columns[label].codes]), axis=1)
            if pairs.shape[1] == len(np.unique(c.codes)) and c.distinct >= columns[label].distinct:
                leaks.append(name)
                continue
        if not (c.text and 2 * c.distinct > len(c.codes)):
            static.append(name)
    unsure = [f"{listed(leaks)} say the label itself, and are not read"] if leaks else []
    return label, tuple(static), unsure
