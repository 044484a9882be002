"""The fate of a table's rows: how many were kept, and for which reason each of the others was not."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from rotarymae.errors import InputError, listed
from rotarymae.series.cells import LIMIT_MARKS

NO_ZONE = "times have no zone and are taken as UTC"
MAX_REASONS = 12  # that one line names


@dataclass(frozen=True)
class ReadingReport:
    """The rows of a table: each is kept, or counted under the first reason why not.

    Attributes:
        total: rows of the table; where each column is a channel, its cells.
        missing: rows in which nothing was observed, by what says so: {"'flux' is missing": 3}.
        left_out: rows with a cell that cannot be used, by what is wrong with it: {"'flux' is infinite": 2}.
        doubts: what is read, and may be wrong or changed: {"series had times that did not ascend": 1}.
        first: each of these reasons, with the first row or series of it.
        words: cells of columns of numbers that are no numbers, by column: {"value": {"<0.01": 3}}. They are missing.
        lost: values that were observed and are dropped with their row, in which another value is missing.
        merged: rows that repeated the series, time and channel of another, with another value or the same.
        lists: rows with lists, whose entries are the `total`; 0 where no column holds lists.
        series: series of the table.
        empty: ids of the series that are left out, as none of their rows was kept.
        notes: how the file was read, where that was guessed.
        units: column → its unit, as far as the file says it.
        counted: what the numbers count.
    """

    total: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    doubts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    words: dict[str, dict[str, int]] = field(default_factory=dict)
    lost: int = 0
    merged: int = 0
    lists: int = 0
    series: int = 0
    empty: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    counted: Literal["rows", "cells"] = "rows"

    @property
    def dropped(self) -> int:
        """Number of rows that are left out, without merged ones."""
        return sum(self.missing.values()) + sum(self.left_out.values())

    @property
    def kept(self) -> int:
        return self.total - self.merged - self.dropped

    def __add__(self, other: ReadingReport) -> ReadingReport:
        """Return the report of two parts of one table that share no series, or of two steps of reading it."""
        return ReadingReport(
            **{one.name: _sum(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        )

    def __str__(self) -> str:
        """ "351 of 4,485 rows dropped: 'mag' is missing in 351": one line for the terminal."""
        dropped = f"{self.dropped:,} of {self.total:,} {self.counted} dropped: {self._reasons()}"
        parts = [dropped if self.dropped else f"none of {self.total:,} {self.counted} dropped"]
        parts += [f"{self.merged:,} duplicates merged"] if self.merged else []
        parts += [f"{self.lists:,} rows with lists are {self.total:,} observations"] if self.lists else []
        parts += [f"{len(self.empty):,} series without observations left out"] if self.empty else []
        return "; ".join([*parts, *self.notes])

    def _reasons(self) -> str:
        reasons = [f"{reason} in {count:,}" for reason, count in {**self.missing, **self.left_out}.items()]
        more = f", ... ({len(reasons)} reasons in all)" if len(reasons) > MAX_REASONS else ""
        return ", ".join(reasons[:MAX_REASONS]) + more

    def refuse_costly(self, values: int) -> None:
        """Raise InputError where most rows would be dropped because one of their several values is missing.

        It is meant for whole tables, as a part of one may be untypical.

        Raises:
            InputError: naming the columns that lack a value ("mostly-dropped").
        """
        if self.lost > values * (self.kept + self.merged):
            raise InputError(
                f"{self._reasons()} of {self.total:,} rows, and a row needs all of its {values} values: most of what "
                "was observed would be dropped. If each of these columns is a channel of its own, observed at times of "
                "its own, read the table as wide (--wide, wide=True); else leave out the column that lacks most.",
                code="mostly-dropped",
            )

    def refuse_words(self) -> None:
        """Refuse texts among numbers. Raises InputError ("unusable-cell")."""
        if self.words:
            said = "; ".join(self._words_by_column())
            raise InputError(f"{said}. Correct them, or read without strict.", code="unusable-cell")

    def _words_by_column(self) -> list[str]:
        """Return sentences on texts among numbers: which words, how often, in which column."""
        sentences = []
        for column, words in self.words.items():
            first = ", ".join(f"{word!r} {count:,}" for word, count in list(words.items())[:MAX_REASONS])
            more = f", ... ({len(words)} different ones)" if len(words) > MAX_REASONS else ""
            sentences.append(f"{sum(words.values()):,} cells of {column!r} cannot be read: {first}{more}")
        return sentences

    def losses(self) -> list[str]:
        """Return sentences on losses and changes that a user would not expect; ordinary missing values are left out."""
        sentences = []
        if self.lost:
            sentences.append(
                f"{self.lost:,} observed values are dropped, as another value of their row is missing "
                f"({self._reasons()} of {self.total:,} {self.counted}). A row needs all of its values; leave out the "
                "column that lacks most, if you can do without it."
            )
        if self.left_out:
            each = [f"{reason} in {count:,} (first: {self.first[reason]})" for reason, count in self.left_out.items()]
            sentences.append(
                f"{sum(self.left_out.values()):,} of {self.total:,} {self.counted} are left out: "
                f"{'; '.join(each[:MAX_REASONS])}."
            )
        words = sum(map(Counter, self.words.values()), Counter())
        limits = sum(count for word, count in words.items() if word.startswith(LIMIT_MARKS))
        na = [word for word, _ in words.most_common() if not word.startswith(LIMIT_MARKS)]
        remedy = f" If they mean missing: --na {' '.join(map(shlex.quote, na[:20]))}." if na else ""
        remedy += f" {limits:,} are limits: --limits number reads them as their number." if limits else ""
        sentences += [f"{text}; they are left out.{remedy}" for text in self._words_by_column()]
        if self.empty:
            sentences.append(f"{len(self.empty):,} series have no observation and are left out: {listed(self.empty)}.")
        doubts = self.doubts.items()
        return sentences + [f"{count:,} {reason} (first: {self.first[reason]})." for reason, count in doubts]

    def as_json(self) -> dict[str, Any]:
        """Return the counts by name, the number of used rows and the sentence, for metrics.json."""
        return {"summary": str(self), **asdict(self), "kept": self.kept}


def _sum(one: Any, other: Any) -> Any:
    """Return counts added key by key, tuples joined without repeats; of two texts the first."""
    if isinstance(one, dict):
        both = one.keys() & other.keys()
        return {**one, **other, **{key: _sum(one[key], other[key]) for key in both}}
    if isinstance(one, tuple):
        return tuple(dict.fromkeys(one + other))
    return one if isinstance(one, str) else one + other
