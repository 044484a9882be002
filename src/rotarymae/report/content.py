"""The content of the page of a run: plain words, numbers and images, in the order of the page.

`build.py` makes a `Report` of an Outcome, and `template.html.j2` makes a page of a `Report`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Headline:
    """One number that sums up the run, with the same number for simpler methods."""

    name: str
    value: float
    baselines: Mapping[str, float] = field(default_factory=dict)
    higher_is_better: bool = True
    note: str = ""  # the unit, or on what it was measured


@dataclass(frozen=True)
class Table:
    """A table of rows (name, {column: value}).

    Bold are the best value of each column in `highest` or `lowest`, or the smallest of each row in the columns
    `across`.
    """

    rows: Sequence[tuple[str, Mapping[str, object]]]
    title: str = ""
    first: str = ""  # head of the column of names
    caption: str = ""
    highest: Sequence[str] = ()
    lowest: Sequence[str] = ()
    across: Sequence[str] = ()

    @property
    def columns(self) -> list[str]:
        """Names of all columns, in the order in which the rows first have them."""
        return list(dict.fromkeys(column for _, row in self.rows for column in row))

    def is_best(self, column: str, row: Mapping[str, object]) -> bool:
        """Return whether a row's value in `column` is to be bold.

        It is if it is the best of a column in `highest` or `lowest`, or the smallest of the row's in `across`; never
        with fewer than two finite numbers to compare, nor in another column.
        """
        if column in self.across:
            others = [row.get(name) for name in self.across]
        elif column in {*self.highest, *self.lowest}:
            others = [each[column] for _, each in self.rows if column in each]
        else:
            return False
        numbers = [x for x in others if isinstance(x, int | float) and math.isfinite(x)]
        return len(numbers) > 1 and row.get(column) == (max if column in self.highest else min)(numbers)


@dataclass(frozen=True)
class Image:
    """An image with heading, caption, and a description for readers who cannot see it."""

    source: str  # data URI
    alt: str
    heading: str = ""
    caption: str = ""
    width: int = 480  # pixels at which its letters have the size of the page's


@dataclass(frozen=True)
class Section:
    """A heading, a sentence on how to read the section, and its content: images, tables, a list, a command."""

    name: str  # anchor
    title: str
    explanation: str
    images: Sequence[Image] = ()
    tables: Sequence[Table] = ()
    items: Sequence[str] = ()
    code: Sequence[str] = ()  # the command, and settings as JSON


@dataclass(frozen=True)
class Report:
    """The content of the page, section by section."""

    title: str
    verdict: str = ""  # one sentence: how good the predictions are, and how good simpler methods
    summary: str = ""
    headlines: Sequence[Headline] = ()
    sections: Sequence[Section] = ()
