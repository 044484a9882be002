"""What became of a table's rows: how many were kept, and for which reason each of the others was not."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from rotarymae.errors import InputError, listed

NO_ZONE = "times have no zone and are taken as UTC"


@dataclass(frozen=True)
class ReadingReport:
    """The rows of a table, each of which is kept or counted under one reason.

    Attributes:
        total: rows of the table; where each column is a channel, its cells.
        missing: rows dropped because a value is missing.
        missing_by_column: the same by column; a row that lacks two values counts in both columns.
        incomplete: of `missing`, the rows in which another value was there and is lost.
        unknown: rows dropped because the model does not know their channel, by channel.
        flagged: rows dropped because a column of flags says so, by column; a row counts under the first that does.
        merged: rows that repeated the series, time and channel of another.
        counted: what the numbers count.
        lists: rows with lists, whose entries are the `total`; 0 where no column holds lists.
        empty: ids of the series that are left out, as none of their rows was kept.
        suspects: values that look like a code for "not observed", as a text, with their number.
        notes: how the file was read, where that was guessed.
    """

    total: int
    missing: int = 0
    missing_by_column: dict[str, int] = field(default_factory=dict)
    incomplete: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    flagged: dict[str, int] = field(default_factory=dict)
    merged: int = 0
    counted: Literal["rows", "cells"] = "rows"
    lists: int = 0
    empty: tuple[Any, ...] = ()
    suspects: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> int:
        return self.total - self.merged - self._dropped

    @property
    def _dropped(self) -> int:
        return self.missing + sum(self.unknown.values()) + sum(self.flagged.values())

    def __add__(self, other: ReadingReport) -> ReadingReport:
        """Of two parts of one table that share no series."""
        summed = ("total", "missing", "incomplete", "merged", "lists", "empty")
        counted = ("missing_by_column", "unknown", "flagged", "suspects")
        sums = {name: getattr(self, name) + getattr(other, name) for name in summed}
        counts = {name: dict(Counter(getattr(self, name)) + Counter(getattr(other, name))) for name in counted}
        return replace(self, **sums, **counts, notes=tuple(dict.fromkeys(self.notes + other.notes)))

    def __str__(self) -> str:
        """ "351 of 4,485 rows dropped: mag missing 351, magerr missing 20": one line for the terminal."""
        parts = []
        dropped = self._dropped
        if dropped:
            reasons = [f"{name} missing {count:,}" for name, count in self.missing_by_column.items()]
            reasons += [f"channel {name} unknown {count:,}" for name, count in self.unknown.items()]
            reasons += [f"flagged by {name} {count:,}" for name, count in self.flagged.items()]
            more = f", ... ({len(reasons)} reasons in all)" if len(reasons) > 12 else ""
            parts.append(f"{dropped:,} of {self.total:,} {self.counted} dropped: {', '.join(reasons[:12])}{more}")
        else:
            parts.append(f"none of {self.total:,} {self.counted} dropped")
        parts += [f"{self.merged:,} duplicates merged"] if self.merged else []
        parts += [f"{self.lists:,} rows with lists are {self.total:,} observations"] if self.lists else []
        parts += [f"{len(self.empty):,} series without observations left out"] if self.empty else []
        return "; ".join([*parts, *self.notes])

    def refuse_costly(self, values: int) -> None:
        """Refuses to drop most of what was observed because another of the so many values of its row is missing.

        It is for whole tables: of a part that is read by itself it may hold what does not hold for all.

        Raises:
            InputError: naming the columns that lack a value.
        """
        counts = self.missing_by_column
        lost = values * self.missing - sum(counts.values())
        if self.incomplete and lost > values * (self.kept + self.merged):
            each = ", ".join(f"{name!r} is missing in {count:,}" for name, count in counts.items())
            raise InputError(
                f"{self.missing:,} of {self.total:,} rows lack a value ({each}), and a row needs all of its {values}: "
                "most of what was observed would be dropped. If each of these columns is a channel of its own, "
                "observed at times of its own, read the table as wide (SeriesDataset.from_wide, --wide); else leave "
                f"out the column that lacks most, {max(counts, key=counts.__getitem__)!r}."
            )

    def losses(self) -> list[str]:
        """Sentences on what a user would not expect to be lost or changed; a missing value alone is none."""
        found = []
        if self.incomplete:
            columns = ", ".join(f"{name!r} in {count:,}" for name, count in self.missing_by_column.items())
            found.append(
                f"{self.incomplete:,} of {self.total:,} rows are dropped although they hold a value, because another "
                f"one is missing ({columns}). A row needs all of its values; leave out the column that lacks most, if "
                "you can do without it."
            )
        if self.unknown:
            count = sum(self.unknown.values())
            found.append(
                f"{count:,} of {self.total:,} rows are dropped: the model does not know their channel "
                f"({', '.join(f'{name} in {n:,}' for name, n in self.unknown.items())})."
            )
        if self.empty:
            found.append(f"{len(self.empty):,} series have no observation and are left out: {listed(self.empty)}.")
        for text, count in self.suspects.items():
            found.append(
                f'{text} in {count:,} {self.counted}: if that means "not observed", read it as missing (--na).'
            )
        return found

    def as_json(self) -> dict[str, Any]:
        """The numbers under their names, the kept rows and the sentence, for metrics.json."""
        return {"summary": str(self), **asdict(self), "kept": self.kept, "empty": list(self.empty)}
