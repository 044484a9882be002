"""The fate of a table's rows: how many were kept, and for which reason each of the others was not."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from rotarymae.errors import InputError, listed
from rotarymae.series.cells import LIMIT_MARKS

NO_ZONE = "times have no zone and are taken as UTC"
MAX_REASONS = 12  # that one line names


@dataclass(frozen=True)
class LeftOut:
    """Rows left out for one reason: `column` "is" `reason`, for example "infinite"; `first` names the first row."""

    column: str
    reason: str
    count: int
    first: str

    def __str__(self) -> str:
        return f"{self.column!r} {self.reason} in {self.count:,} (first: {self.first})"


@dataclass(frozen=True)
class ReadingReport:
    """Counts of a table's rows: how many were used, and how many were left out for which reason.

    Attributes:
        total: rows of the table; in a wide table, its cells.
        missing: rows dropped because a value is missing.
        missing_by_column: the same by column; a row that lacks two values counts in both columns.
        incomplete: those of `missing` in which another value was present and is lost.
        left_out: rows dropped because a cell cannot be used, by column and reason; a row counts for its first reason.
        words: texts among numbers, by column: {"value": {"<0.01": 3}}. They count as missing values.
        unknown: {channel: rows} dropped because the model does not know the channel.
        flagged: {column: rows} dropped because of a flag; a row counts for its first flag.
        merged: rows with the same series, time and channel as another row.
        counted: what the numbers count.
        lists: rows with lists, whose entries are the `total`; 0 without lists.
        series: number of series.
        unsorted: number of series whose times did not ascend and were sorted; `unsorted_ids` are the first of them.
        empty: ids of series that are left out because none of their rows could be used.
        suspects: {text: count} of values that look like a code for "not observed".
        cautions: sentences on what may be wrong: times far from all others, times of 32 bits, series without errors.
        notes: sentences on how the file was read, where that was guessed.
        units: {column: unit}, as far as the file gives units.
    """

    total: int
    missing: int = 0
    missing_by_column: dict[str, int] = field(default_factory=dict)
    incomplete: int = 0
    left_out: tuple[LeftOut, ...] = ()
    words: dict[str, dict[str, int]] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    flagged: dict[str, int] = field(default_factory=dict)
    merged: int = 0
    counted: Literal["rows", "cells"] = "rows"
    lists: int = 0
    series: int = 0
    unsorted: int = 0
    unsorted_ids: tuple[Any, ...] = ()
    empty: tuple[Any, ...] = ()
    suspects: dict[str, int] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    units: dict[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        return self.total - self.merged - self.dropped

    @property
    def dropped(self) -> int:
        """Number of rows that are left out, without merged ones."""
        lost = sum(one.count for one in self.left_out)
        return self.missing + lost + sum(self.unknown.values()) + sum(self.flagged.values())

    def __add__(self, other: ReadingReport) -> ReadingReport:
        """Add the counts of two parts of one table that share no series."""
        summed = ("total", "missing", "incomplete", "merged", "lists", "series", "unsorted", "unsorted_ids", "empty")
        counted = ("missing_by_column", "unknown", "flagged", "suspects")
        sums = {name: getattr(self, name) + getattr(other, name) for name in summed}
        counts = {name: dict(Counter(getattr(self, name)) + Counter(getattr(other, name))) for name in counted}
        texts = {
            name: tuple(dict.fromkeys(getattr(self, name) + getattr(other, name))) for name in ("notes", "cautions")
        }
        words = {
            column: dict(Counter(self.words.get(column, {})) + Counter(other.words.get(column, {})))
            for column in {**self.words, **other.words}
        }
        reasons: dict[tuple[str, str], LeftOut] = {}
        for one in (*self.left_out, *other.left_out):
            before = reasons.get((one.column, one.reason))
            reasons[one.column, one.reason] = one if before is None else replace(before, count=before.count + one.count)
        sums["unsorted_ids"] = sums["unsorted_ids"][:4]
        return replace(self, **sums, **counts, **texts, words=words, left_out=tuple(reasons.values()))

    def __str__(self) -> str:
        """Return one line: "351 of 4,485 rows dropped: mag missing 351, magerr missing 20"."""
        parts = []
        if self.dropped:
            reasons = [f"{name} missing {count:,}" for name, count in self.missing_by_column.items()]
            reasons += [f"{one.column} {one.reason} {one.count:,}" for one in self.left_out]
            reasons += [f"channel {name} unknown {count:,}" for name, count in self.unknown.items()]
            reasons += [f"flagged by {name} {count:,}" for name, count in self.flagged.items()]
            more = f", ... ({len(reasons)} reasons in all)" if len(reasons) > MAX_REASONS else ""
            said = ", ".join(reasons[:MAX_REASONS])
            parts.append(f"{self.dropped:,} of {self.total:,} {self.counted} dropped: {said}{more}")
        else:
            parts.append(f"none of {self.total:,} {self.counted} dropped")
        parts += [f"{self.merged:,} duplicates merged"] if self.merged else []
        parts += [f"{self.lists:,} rows with lists are {self.total:,} observations"] if self.lists else []
        parts += [f"{len(self.empty):,} series without observations left out"] if self.empty else []
        return "; ".join([*parts, *self.notes])

    def refuse_costly(self, values: int) -> None:
        """Raise InputError where most rows would be dropped because one of their several values is missing.

        It is meant for whole tables, as a part of one may be untypical.

        Args:
            values: number of value columns.
        """
        counts = self.missing_by_column
        lost = values * self.missing - sum(counts.values())
        if self.incomplete and lost > values * (self.kept + self.merged):
            each = ", ".join(f"{name!r} is missing in {count:,}" for name, count in counts.items())
            raise InputError(
                f"{self.missing:,} of {self.total:,} rows lack a value ({each}), and a row needs all of its {values}: "
                "most of what was observed would be dropped. If each of these columns is a channel of its own, "
                "observed at times of its own, read the table as wide (SeriesDataset.from_wide, --wide); else leave "
                f"out the column that lacks most, {max(counts, key=counts.__getitem__)!r}.",
                code="mostly-dropped",
            )

    def refuse_any(self) -> None:
        """Raise InputError ("unusable-cell") where any cell could not be used, for a strict reading."""
        reasons = [str(one) for one in self.left_out] + self._words_by_column()
        if reasons:
            raise InputError("; ".join(reasons) + ". Correct them, or read without strict.", code="unusable-cell")

    def _words_by_column(self) -> list[str]:
        """Return sentences on texts among numbers: which words, how often, in which column."""
        sentences = []
        for column, words in self.words.items():
            first = ", ".join(f"{word!r} {count:,}" for word, count in list(words.items())[:MAX_REASONS])
            more = f", ... ({len(words):,} words)" if len(words) > MAX_REASONS else ""
            sentences.append(f"{sum(words.values()):,} cells of {column!r} cannot be read: {first}{more}")
        return sentences

    @property
    def na(self) -> list[str]:
        """Return the words that stand among numbers, without limits such as "<0.01": candidates for `--na`."""
        words = Counter[str]()
        for counts in self.words.values():
            words.update(counts)
        return [word for word, _ in words.most_common() if not word.startswith(LIMIT_MARKS)]

    def losses(self) -> list[str]:
        """Return sentences on losses and changes that a user would not expect; ordinary missing values are left out."""
        sentences = []
        if self.unsorted:
            sentences.append(
                f"times were not ascending in {self.unsorted:,} of {self.series:,} series "
                f"({listed(self.unsorted_ids[:3])}{', ...' if self.unsorted > 3 else ''}); they have been sorted."
            )
        if self.incomplete:
            columns = ", ".join(f"{name!r} in {count:,}" for name, count in self.missing_by_column.items())
            sentences.append(
                f"{self.incomplete:,} of {self.total:,} rows are dropped although they hold a value, because another "
                f"one is missing ({columns}). A row needs all of its values; leave out the column that lacks most, if "
                "you can do without it."
            )
        if self.left_out:
            count = sum(one.count for one in self.left_out)
            each = "; ".join(map(str, self.left_out[:MAX_REASONS]))
            sentences.append(f"{count:,} of {self.total:,} {self.counted} are left out: {each}.")
        for text in self._words_by_column():
            limits = sum(
                count for words in self.words.values() for word, count in words.items() if word[0] in LIMIT_MARKS
            )
            remedy = f" If they mean missing: --na {' '.join(map(shlex.quote, self.na[:20]))}." if self.na else ""
            remedy += f" {limits:,} are limits: --limits number reads them as their number." if limits else ""
            sentences.append(f"{text}; they are left out.{remedy}")
        if self.unknown:
            count = sum(self.unknown.values())
            sentences.append(
                f"{count:,} of {self.total:,} rows are dropped: the model does not know their channel "
                f"({', '.join(f'{name} in {n:,}' for name, n in self.unknown.items())})."
            )
        if self.empty:
            sentences.append(f"{len(self.empty):,} series have no observation and are left out: {listed(self.empty)}.")
        for text, count in self.suspects.items():
            value = text.rpartition(" ")[2]
            sentences.append(
                f'{text} in {count:,} {self.counted}, far from all others: if that means "not observed", read it as '
                f"missing (--na {value})."
            )
        return [*sentences, *self.cautions]

    def as_json(self) -> dict[str, Any]:
        """Return the counts by name, the number of used rows and the sentence, for metrics.json."""
        return {"summary": str(self), **asdict(self), "kept": self.kept}
