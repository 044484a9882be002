"""The content of the page of a run: words, numbers and figures, in the order of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Best(float):
    """The best value of its kind in a table, which is shown in bold."""


@dataclass(frozen=True)
class Table:
    """A table of named rows.

    Attributes:
        rows: (name, {column: value}) of each row; a row may lack columns of others.
        title: above the table.
        first: head of the column of names; "" for a table without a head.
        caption: a note, above the table on the page, and below it where the command prints it.
    """

    rows: Sequence[tuple[str, Mapping[str, object]]]
    title: str = ""
    first: str = ""
    caption: str = ""

    @property
    def columns(self) -> list[str]:
        """Names of all columns, in the order in which they first occur in the rows."""
        return list(dict.fromkeys(column for _, row in self.rows for column in row))


@dataclass(frozen=True)
class Drawing:
    """A figure, a description for readers who cannot see it (`alt`), a caption below it, and a heading above it."""

    figure: Figure
    alt: str
    caption: str = ""
    heading: str = ""


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes:
        name: anchor, to which links lead.
        title: its heading.
        explanation: text below the heading, which says how to read the section.
        drawings, tables: its figures and tables.
        items: sentences of a list.
        code: a command, shown as such.
    """

    name: str
    title: str
    explanation: str
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()
    items: Sequence[str] = ()
    code: str = ""


def cell_text(value: object) -> str:
    """Return a value as text for a table's cell, such as 12,345 or 0.7035 or 3.21e-05; None and NaN become a dash.

    Integers have all their digits. Other numbers have four significant digits; from 1,000 to 10 million they are
    rounded to whole numbers. Booleans become yes and no. Lists and tuples become "a, b", dictionaries "a: 1, b: 2"; an
    empty one becomes a dash. Anything else becomes str(value).
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {cell_text(one)}" for name, one in value.items()) or "–"
    if isinstance(value, list | tuple):
        return ", ".join(map(cell_text, value)) or "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        return "–" if math.isnan(value) else f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"
    return "–" if value is None else str(value)
