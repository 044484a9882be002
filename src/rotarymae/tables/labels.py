"""One value for each series: labels, splits and static columns, from any table that has the series' ids."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.series import cells, dates
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.reading import ReadingReport
from rotarymae.tables.schema import option
from rotarymae.tables.source import open_source

WORDS_FOR_NO_LABEL = ("na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?", "-")


@dataclass(frozen=True, eq=False)
class Facts:
    """Columns of a table with one value for each of its K different ids, to be looked up by the ids of series.

    Attributes:
        ids: Arrow array [K], the different ids.
        values: {column: Arrow array [K]}, null for an id none of whose rows has a value.
        report: doubts on ids with several values, of which the first counts; on words among numbers; and on words that
            differ in capitals alone.
    """

    ids: pa.Array
    values: dict[str, pa.Array]
    report: ReadingReport

    @classmethod
    def read(
        cls, source: Any, id: str, names: Sequence[str], na: Sequence[str] = (), most: float = 0, floats: bool = False
    ) -> Facts:
        """Read columns of a table that have one value per id; return the ids and these values.

        An id may have several rows, all with the same value. Rows without an id are left out.

        Args:
            source: a file or data frame, as for `open_source`.
            id: its column of ids, or several joined by "+". It may be "id" or "file" without a column of this name:
                then the id of a row is the name of its file.
            names: the columns to read.
            na: cells that mean "missing", besides empty ones: texts, or numbers in any spelling.
            most: share of the ids, 0 to 1, that may have several values of a column, of which the first counts.
            floats: how text files are read. True, for static columns such as age: numbers become floats, and words such
                as NA mean "missing". False, for labels and splits: whole numbers become integers, and words such as NA
                mean "missing" only if all other cells of the column are numbers.

        Raises:
            InputError: a table or column that cannot be read; the column of ids among `names` ("column-twice"); an
                absent column ("unknown-column"); cells of a type that is neither label, number nor date; too many ids
                with several values ("several-values"); an infinite value ("unusable-cell").
        """
        table = open_source(source).with_id(id)
        if id in names:
            raise InputError(
                f"column {id!r} holds the ids of the series, and is also named as label, static column or split; "
                "name another column for that.",
                code="column-twice",
            )
        if id in ("file", "id") and id not in table.columns and {*names} <= {*table.columns}:
            id, table = "file", table.with_ids_of_files()
        columns = table.read([id, *names], distinct=True)
        if table.is_text:
            columns[id] = cells.as_integers(columns[id])
        rows, ids = cells.encode_labels(columns[id], id)
        values, report = {}, ReadingReport()
        for name in names:
            with table.named():
                column = _plain(columns[name], name, na, table.is_text, floats)
                values[name], doubts = _first_of_each(*cells.encode(column), name, rows, ids, most)
            report += doubts + _doubts_on_classes(column, name, table.is_text)
        return cls(ids, values, report)

    def of(self, series: np.ndarray) -> tuple[dict[str, pa.Array], pa.Array]:
        """Look up the values of series by the ids of the series.

        If the ids are texts on one side and numbers on the other, both are compared as texts: one text file's ids may
        be read as integers and another's as texts.

        Args:
            series: the ids of S series.

        Returns:
            {column: Arrow array [S]}, null for a series without a value; and an Arrow array [S] of each series' index
            in `self.ids`, null if its id is not there.
        """
        looked_up, ids = pa.array(series), self.ids
        if cells.is_text(looked_up.type) != cells.is_text(ids.type):
            looked_up, ids = (pa.array(list(map(cells.as_text, each.to_pylist()))) for each in (looked_up, ids))
        if looked_up.type != ids.type and cells.is_numeric(looked_up.type):
            looked_up = looked_up.cast(pa.float64(), safe=False)
        place = pc.index_in(looked_up, value_set=ids.cast(looked_up.type, safe=False))  # pyright: ignore
        return {name: column.take(place) for name, column in self.values.items()}, place

    def add_to(self, dataset: SeriesDataset, table: str) -> SeriesDataset:
        """Return the data set with the columns in `values` as further static columns, matched by the series' ids.

        A missing number is NaN, a missing date NaT, and any other missing cell None. All are missing for a series whose
        id is not in the table. The data set's report counts such series in a sentence of its `doubts`, which names the
        table as `table`. Static columns of equal names are replaced.
        """
        values, place = self.of(dataset.ids)
        report, lost = dataset.reading or ReadingReport(), place.is_null().to_numpy(zero_copy_only=False)
        if lost.any():
            reason = f"series are not in {table}; their static values are missing"
            report += ReadingReport(doubts={reason: int(lost.sum())}, first={reason: listed(dataset.ids[lost][:1])})
        static = {name: _static_values(column) for name, column in values.items()}
        return replace(dataset, static=dataset.static | static, reading=report)


def align_labels(
    dataset: SeriesDataset,
    source: Any,
    id: str = "id",
    label: str = "label",
    unlabelled: Literal["error", "none"] = "error",
    na: tuple[str, ...] = (),
) -> np.ndarray:
    """Read one label for each series of a data set from a table, matched by id.

    Args:
        dataset: S series.
        source: a table with one row per series, or several rows with the same label.
        id: its column of ids, or several joined by "+". If no column is called "id" or "file", this name means
            the name of the row's file.
        label: its column of labels.
        unlabelled: a series without a label is refused ("error"), or gets the label None ("none"). It is always an
            error if no series has a label.
        na: cells that mean "missing", besides empty ones: texts, or numbers in any spelling.

    Returns:
        Labels [S] in the order of the series: numbers, bool, datetime64, timedelta64, or objects for texts and times of
        day. If any series gets None, they are objects.

    Raises:
        InputError: series without a label, with their ids; what `Facts.read` refuses, such as an id with two labels.

    Warns:
        InputWarning: labels whose id is no series; texts such as N/A, which are treated as classes; classes that differ
            in capitals alone; few words among numbers.
    """
    choose("unlabelled", unlabelled, ("error", "none"))
    facts = Facts.read(source, id, [label], na)
    values, place = facts.of(dataset.ids)
    known = facts.ids.filter(facts.values[label].is_valid())
    others = known.filter(pc.invert(pc.is_in(known, value_set=facts.ids.take(place.drop_null())))).to_pylist()  # pyright: ignore
    lost = dataset.ids[values[label].is_null().to_numpy(zero_copy_only=False)]
    if len(lost) and (unlabelled == "error" or len(lost) == len(dataset)):
        text = f" There are labels of {listed(others)}; check that ids are written alike." if others else ""
        raise InputError(
            f"{len(lost)} series have no label in column {label!r}: {listed(lost)}; add their labels, or leave these "
            f"series out.{text}"
        )
    for doubt in facts.report.losses():
        warnings.warn(doubt, InputWarning, stacklevel=2)
    if others:
        text = f"{len(others):,} labels belong to no series and are not used: {listed(others)}."
        warnings.warn(text, InputWarning, stacklevel=2)
    aligned = _values_or_none(values[label])
    texts = Counter(name for name in aligned.tolist() if isinstance(name, str) and name.lower() in WORDS_FOR_NO_LABEL)
    for name, count in texts.items():
        text = f"{count:,} series have the label {name!r}, which is taken as a class; if it says that there is none, "
        warnings.warn(f"{text}read it as missing ({option('na', name)}).", InputWarning, stacklevel=2)
    return aligned


def align_column(
    dataset: SeriesDataset, source: Any, id: str, name: str, na: tuple[str, ...] = ()
) -> tuple[np.ndarray, bool]:
    """Read the values by which series are split, one per series, from a column of a table, matched by id.

    Args:
        dataset: S series.
        source: a table with one row per series, or several rows with the same value.
        name: the column of values. Dates, also as ISO texts, become days since 1970-01-01, and durations days.
        id, na: as for `Facts.read`.

    Returns:
        Values [S] in the order of the series, as objects with None if a series has no value; and whether they are days.

    Raises:
        InputError: no value for any series; times of day; texts that are all dates, but not all ISO dates, or of which
            some have a zone and some not; what `Facts.read` refuses, such as an id with two values.
    """
    values = Facts.read(source, id, [name], na).of(dataset.ids)[0][name]
    known = values.drop_null()
    if not len(known):
        raise InputError(f"no series has a value in column {name!r}; check that the ids are those of the series.")
    as_days = pa.types.is_temporal(values.type)
    if cells.is_text(values.type):
        as_days = bool(cells.matches(known, dates.ISO).all())
        if not as_days:
            dates.refuse_unsortable_dates(values, name)
    return _values_or_none(pa.array(dates.times(values, name).values, from_pandas=True) if as_days else values), as_days


def _static_values(values: pa.Array) -> np.ndarray:
    """Return cells [S] as a numpy array: a missing number is NaN, a missing date NaT, and any other missing cell None.

    Floats, whole numbers with missing ones, and cells of Arrow's type null, which are all missing, become float64.
    Texts, and booleans with missing ones, become objects.
    """
    numbers = cells.is_numeric(values.type) or pa.types.is_null(values.type)
    if numbers and (values.null_count or pa.types.is_floating(values.type)):
        return values.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    return cells.label_values(values)


def _values_or_none(values: pa.Array) -> np.ndarray:
    """Return cells [S] as a numpy array of their type, texts as str objects; as objects with None if any is missing."""
    return np.array(values.to_pylist(), object) if values.null_count else cells.label_values(values)


def _plain(column: pa.Array, name: str, na: Sequence[str], parse: bool, floats: bool) -> pa.Array:
    """Convert a column to labels, numbers or dates: an Arrow array [rows] with null where a cell is missing.

    Args:
        column: Arrow array [rows] as it was read.
        name: of the column, for messages.
        na: as for `Facts.read`.
        parse: whether to look for numbers in texts, as text files need. Texts become numbers if all are numbers, except
            for words such as NA, which become null.
        floats: with `parse`, True makes these numbers floats, never integers, and makes words such as NA null also in a
            column that stays text.

    Raises:
        InputError: cells that are neither texts, numbers, booleans nor dates.
    """
    column = cells.trimmed(column)
    if pa.types.is_temporal(column.type):
        return column
    if cells.is_text(column.type):
        column = cells.without(column, ("", *na))
        if not parse:
            return column
        numbers = cells.typed(cells.without_missing(column), integers=not floats)
        if cells.is_text(numbers.type):
            return numbers if floats else column
        column = numbers
    if not cells.is_numeric(column.type):
        return cells.labels(column, name)
    codes = pa.array([float(code) for code in na if cells.is_number(code)], pa.float64())
    gone = pc.or_(pc.is_in(column.cast(pa.float64(), safe=False), codes), column.is_null(nan_is_null=True))  # pyright: ignore
    column = pc.if_else(gone, pa.scalar(None, column.type), column)  # pyright: ignore
    column = column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) and column.type != pa.uint64() else column


def _doubts_on_classes(column: pa.Array, name: str, parsed: bool) -> ReadingReport:
    """Return a report on texts in a column that are doubtful as classes; an empty one for a column of another type.

    Doubtful are

    - words that differ from other words in capitals alone;
    - words in a column of text files that has more different numbers than different words.

    Args:
        column: Arrow array [rows], null for missing cells.
        name: of the column, for the report.
        parsed: whether the table is of text files, whose columns are searched for numbers.
    """
    if not cells.is_text(column.type):
        return ReadingReport()
    texts = column.unique().drop_null()
    words, alike = texts.filter(pa.array(~cells.matches(texts, cells.NUMBER))).to_pylist(), cells.alike(texts)
    report = ReadingReport()
    if parsed and 0 < 2 * len(words) < len(texts):
        reason = f"different words among the numbers of column {name!r} make all its cells classes; if they mean "
        reason += f"missing, read them so ({option('na', *words[:5])})"
        report += ReadingReport(doubts={reason: len(words)}, first={reason: listed(words[:1])})
    if alike:
        reason = f"words of column {name!r} differ from another in capitals alone, and are classes of their own"
        report += ReadingReport(doubts={reason: len(alike)}, first={reason: listed(alike[:2])})
    return report


def _first_of_each(
    codes: np.ndarray, values: pa.Array, name: str, series: np.ndarray, ids: pa.Array, most: float
) -> tuple[pa.Array, ReadingReport]:
    """Take the first present value of each of K ids, and report the ids that have several values.

    Args:
        codes: int [rows], index of each row's cell in `values`; -1 where the cell is missing.
        values: the different cells of the column.
        name: of the column.
        series: int [rows], index of each row's id in `ids`; -1 where it is missing.
        ids: the K different ids.
        most: share of the ids, 0 to 1, that may have several values.

    Returns:
        An Arrow array [K], null for an id without a value; and a report, empty if each id has one value.

    Raises:
        InputError: more ids than allowed have several values ("several-values"); a value is infinite ("unusable-cell").
    """
    rows = np.flatnonzero((codes >= 0) & (series >= 0))
    if pa.types.is_floating(values.type) and (bad := np.isinf(values.to_numpy())[codes[rows]]).any():
        where = listed([ids[series[rows[bad.argmax()]]].as_py()])
        text = f"column {name!r} has an infinite value, first in series {where}; correct it, or leave the cell empty."
        raise InputError(text, code="unusable-cell")
    first = np.full(len(ids), -1)
    first[series[rows[::-1]]] = codes[rows[::-1]]  # the last that is written is that of the first row
    kept = values.take(pa.array(first, mask=first < 0))
    differs = rows[codes[rows] != first[series[rows]]]
    if not len(differs):
        return kept, ReadingReport()
    several, row = np.unique(series[differs]), differs[0]
    where = f"{listed(values.take([first[series[row]], codes[row]]).to_pylist())} in {ids[series[row]].as_py()!r}"
    if len(several) > most * len(ids):
        raise InputError(
            f"column {name!r} has several values within series {listed(ids.take(several).to_pylist())}: {where} "
            f"({len(several)} series in all); keep one value per series.",
            code="several-values",
        )
    reason = f"series have several values in column {name!r}; the first counts"
    return kept, ReadingReport(doubts={reason: len(several)}, first={reason: where})
