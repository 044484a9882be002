"""The fate of a table's rows: how many were kept, and for which reason each of the others was not."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from rotarymae.errors import InputError, listed

NO_ZONE = "times have no zone and are taken as UTC"
MAX_REASONS = 12  # that one line names


@dataclass(frozen=True)
class ReadingReport:
    """Counts of a table's rows: how many were used, and how many were left out for which reason.

    Attributes:
        total: rows of the table, or entries of its lists; in a wide table, its cells.
        missing: {reason: rows} in which nothing was observed: {"'flux' is missing": 3}.
        left_out: {reason: rows} with a cell that cannot be used: {"'flux' is infinite": 2}.
        doubts: {sentence: count} of what is used but may be wrong or was changed: {"series had times that were not
            ascending, and have been sorted": 1}. The sentence goes on after the count.
        first: {reason or sentence: first row or series} for all in `missing`, `left_out` and `doubts`.
        limits: {column: number of cells} that give only a limit of the value, such as "<5": {"lactate": 12}.
        words: {column: {text: count}} of texts among numbers: {"value": {"NEG": 3}}. They count as missing values.
        lost: values that were observed and are dropped because another value of their row is missing.
        merged: rows that are merged into another one of the same series, time, further positions and channel.
        series: number of series, also of those without a row that could be used.
        empty: ids of series that are left out because none of their rows could be used.
        unread: names of the columns that are not read.
        notes: sentences on how the file was read, where that was guessed.
        units: {column: unit}, as far as the file gives units.
        counted: what `total` and the reasons count: "rows", or "cells" of a wide table.
    """

    total: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    doubts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    words: dict[str, dict[str, int]] = field(default_factory=dict)
    lost: int = 0
    merged: int = 0
    series: int = 0
    empty: tuple[Any, ...] = ()
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    units: dict[str, str] = field(default_factory=dict)
    counted: Literal["rows", "cells"] = "rows"

    @property
    def dropped(self) -> int:
        """Number of rows that were not read, those of `missing` and `left_out`; merged ones do not count."""
        return sum(self.missing.values()) + sum(self.left_out.values())

    @property
    def kept(self) -> int:
        """Number of observations that were read: `total` without `dropped` rows and those merged into another."""
        return self.total - self.merged - self.dropped

    def __add__(self, other: ReadingReport) -> ReadingReport:
        """Add another report: on other series of the same table, or on another step of reading it.

        Numbers are added, also those of each reason or column. Ids, names and notes of both are joined without repeats.
        Where the reports have different texts in `first`, `units` or `counted`, the text of this one is kept.
        """
        return ReadingReport(
            **{one.name: _sum(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        )

    def __str__(self) -> str:
        """Return one line, such as "351 of 4,485 rows dropped: 'mag' is missing in 351".

        Numbers of limits ("<5"), of merged rows and of series left out follow, if there are any; then the columns that
        are not read, and the notes.
        """
        dropped = f"{self.dropped:,} of {self.total:,} {self.counted} dropped: {self._reasons()}"
        parts = [dropped if self.dropped else f"none of {self.total:,} {self.counted} dropped"]
        limits = [f"{count:,} of {name!r}" for name, count in self.limits.items()]
        parts += [f"limits: {', '.join(limits[:MAX_REASONS])}"] if limits else []
        parts += [f"{self.merged:,} duplicates merged"] if self.merged else []
        parts += [f"{len(self.empty):,} series without observations left out"] if self.empty else []
        parts += [f"columns not read: {listed(self.unread)}"] if self.unread else []
        return "; ".join([*parts, *self.notes])

    def _reasons(self) -> str:
        """Return the reasons for which rows are missing or left out as one text: "'mag' is missing in 351, ...".

        It names the first twelve, and if there are more, how many there are.
        """
        reasons = [f"{reason} in {count:,}" for reason, count in {**self.missing, **self.left_out}.items()]
        more = f", ... ({len(reasons)} reasons in all)" if len(reasons) > MAX_REASONS else ""
        return ", ".join(reasons[:MAX_REASONS]) + more

    def refuse_words(self) -> None:
        """Raise InputError (code "unusable-cell") if a column of numbers had texts that are not numbers (`words`)."""
        if self.words:
            said = "; ".join(self._words_by_column())
            raise InputError(
                f"{said}. Numbers are wanted there; correct these cells, or read without strict (--strict): then these "
                "values are left out.",
                code="unusable-cell",
            )

    def _words_by_column(self) -> list[str]:
        """Return sentences that count texts among numbers: "3 cells of 'value' cannot be read: 'NEG' 2, 'OFF' 1".

        Columns with the same texts share a sentence, which adds up their counts and names the first twelve texts.
        """
        sentences, alike = [], {}
        for column, words in self.words.items():
            alike.setdefault(frozenset(words), []).append(column)
        for columns in alike.values():
            words = sum((Counter(self.words[column]) for column in columns), Counter())
            first = ", ".join(f"{word!r} {count:,}" for word, count in list(words.items())[:MAX_REASONS])
            more = f", ... ({len(words)} different ones)" if len(words) > MAX_REASONS else ""
            sentences.append(f"{words.total():,} cells of {listed(columns)} cannot be read: {first}{more}")
        return sentences

    def losses(self) -> list[str]:
        """Return sentences on losses and changes that a user would not expect, such as rows with an infinite value.

        They come from `lost`, `left_out`, `words`, `empty` and `doubts`, in this order. Rows in which nothing was
        observed are no loss. The list is empty if nothing was lost or changed.
        """
        sentences = []
        if self.lost:
            sentences.append(
                f"{self.lost:,} observed values are dropped, as another value of their row is missing "
                f"({self._reasons()} of {self.total:,} {self.counted}). A row needs all of its values; leave out the "
                "column that lacks most, if you can do without it, or read each column as a channel with times of its "
                "own (--wide --tokens channel)."
            )
        if self.left_out:
            each = [f"{reason} in {count:,} (first: {self.first[reason]})" for reason, count in self.left_out.items()]
            sentences.append(
                f"{sum(self.left_out.values()):,} of {self.total:,} {self.counted} are left out: "
                f"{'; '.join(each[:MAX_REASONS])}."
            )
        words = sum(map(Counter, self.words.values()), Counter())
        na = [word for word, _ in words.most_common(20)]
        remedy = f" If they mean missing, name them (--na {shlex.join(na)})." if na else ""
        sentences += [f"{text}; they are left out.{remedy}" for text in self._words_by_column()]
        if self.empty:
            sentences.append(f"{len(self.empty):,} series have no observation and are left out: {listed(self.empty)}.")
        doubts = self.doubts.items()
        return sentences + [f"{count:,} {reason} (first: {self.first[reason]})." for reason, count in doubts]

    def as_json(self) -> dict[str, Any]:
        """Return {name: value} for metrics.json: all fields, the count `kept`, and "summary" (`str`, one line)."""
        return {"summary": str(self), **asdict(self), "kept": self.kept}


def _sum(one: Any, other: Any) -> Any:
    """Add two values of a field: numbers are added, dictionaries by key, tuples are joined without repeats.

    Of two texts the first is returned.
    """
    if isinstance(one, dict):
        both = one.keys() & other.keys()
        return {**one, **other, **{key: _sum(one[key], other[key]) for key in both}}
    if isinstance(one, tuple):
        return tuple(dict.fromkeys(one + other))
    return one if isinstance(one, str) else one + other
