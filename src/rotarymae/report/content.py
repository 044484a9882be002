"""The content of the page of a run: words, figures, and tables of metrics, which the command shows as well."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rotarymae.metrics import (
    RMSE,
    SCALED_RMSE,
    early_rows,
    fold_rows,
    interval_words,
    method_words,
    metric_of,
    rows_in_words,
    scored_words,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANNEL_ROWS = 20  # rows of a table of channels


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


def comparisons(metrics: Mapping[str, Any]) -> list[Table]:
    """Return the tables that compare the methods of a run by their scores; [] if nothing was scored.

    Tables for classes, numbers, times to an event, early predictions, and hidden patches have one row per method. With
    a cross-validation, tables of means and deviations over folds follow. Tables of errors at hidden observations have a
    row per value column or channel, and a column per method (see `error_table`).

    Args:
        metrics: the content of a metrics.json. Tables are made for the scores that it has.
    """
    ahead = metrics.get("horizon")
    tables, scored_on = [], f"on {scored_words(metrics)}" if ahead is None else f"up to {ahead} ahead"
    for task, name in (("classification", "Classes"), ("regression", "Regression"), ("survival", "Time to event")):
        if task in metrics:
            tables.append(_methods(f"{name}, {scored_on}", metrics[task], interval_words(metrics)))
            if "folds" in metrics:
                rows = list(fold_rows(metrics).items())
                tables.append(Table(rows, "Mean and standard deviation over folds", "method"))
    if "early" in metrics:
        early = metrics["early"]
        known = f"by the time since the first {early['first']}, {early['series']:,} series"
        tables += [
            Table([*rows.items()], f"{metric}, {known}", "method") for metric, rows in early_rows(metrics).items()
        ]
    tables += _interpolations(metrics.get("interpolation", {}), scored_on)
    if "reconstruction" in metrics:
        scores = metrics["reconstruction"]
        title = f"{scores['hidden_patches']:,} hidden patches, {scored_on}"
        tables.append(_methods(title, scores["methods"], "Scaled: to mean 0 and deviation 1, channel by channel."))
    return tables


def _interpolations(values: Mapping[str, Any], scored_on: str) -> Iterator[Table]:
    """Yield two tables of root mean squared errors at hidden observations, one scaled, one in units; see `error_table`.

    The first has a row per value column, with errors that are scaled and taken over all channels. The second has a row
    per value column and channel (without channels: per value column), with errors in the column's unit. Of more than 20
    rows, only the 20 with the model's largest scaled errors are shown, the largest first.

    Args:
        values: {value column: scores}, the entry "interpolation" of metrics.json; {} yields no table.
        scored_on: words for the series that were scored, for the titles.
    """
    if not values:
        return
    caption = "Root mean squared errors, scaled as described under what was done to the data: much less than 1 is good."
    yield error_table(f"Hidden observations, {scored_on}", values.items(), SCALED_RMSE, caption)
    each = []
    for name, scores in values.items():
        channels = scores.get("channels")
        each += [(name, scores)] if channels is None else [(f"{name} of {c}", part) for c, part in channels.items()]
    caption, count = "Root mean squared errors, each in its own unit.", len(each)
    if count > CHANNEL_ROWS:
        each = sorted(each, key=lambda row: -np.nan_to_num(row[1]["methods"]["model"][SCALED_RMSE], nan=-1.0))
        caption += f" Of {count:,}, the {CHANNEL_ROWS} with the largest scaled errors; all are in metrics.json."
    yield error_table(f"In the table's units, {scored_on}", each[:CHANNEL_ROWS], RMSE, caption)


def error_table(title: str, parts: Iterable[tuple[str, Any]], error: str, caption: str) -> Table:
    """Return a table of errors at hidden observations, with a column per method; the smallest error of a row is bold.

    Further columns are: per predicted band, such as that of 95 %, the share inside it of those hidden observations that
    are no limits; the number of hidden observations; and, if there are any, how many of these are limits, with a
    sentence in the caption.

    Args:
        title, caption: of the table.
        parts: pairs (name, scores), one per row. A row is for a value column, or for one channel of it. Its scores are
            the entry of metrics.json, with "methods" ({method: {error: number}}) and "hidden_observations".
        error: name of the metric to show, as in metrics.json.
    """
    rows, limits = [], False
    for name, scores in parts:
        row = _with_best({method_words(method): errors[error] for method, errors in scores["methods"].items()}, min)
        inside = scores.get("share_inside_band", {})
        row |= {f"inside {100 * float(share):.0f} % band": x for share, x in inside.items()}
        row |= {"hidden": scores["hidden_observations"]}
        if count := scores.get("limits"):
            row, limits = row | {"of these limits": count}, True
        rows.append((name, row))
    if limits:
        caption += " A prediction that agrees with a limit has no error. Bands are scored on values that are no limits."
    return Table(rows, title, "value", caption)


def _methods(title: str, methods: Mapping[str, Mapping[str, float]], caption: str = "") -> Table:
    """Return a table with a row per method and a column per metric, the best value of each metric in bold.

    A metric has no bold value if neither high nor low is better, or if the trained model has no value of it.

    Args:
        title, caption: of the table.
        methods: {method: {metric: value}}, named as in metrics.json; the trained model is "model" and must be there.
            The table shows longer names.
    """
    rows: dict[str, dict[str, object]] = {name: {**row} for name, row in rows_in_words(methods).items()}
    for metric in (metric_of(name) for name in methods["model"]):
        if metric.lower_is_better is not None:
            column = {name: row[metric.words] for name, row in rows.items() if metric.words in row}
            for name, value in _with_best(column, min if metric.lower_is_better else max).items():
                rows[name][metric.words] = value
    return Table(list(rows.items()), title, "method", caption)


def _with_best(values: Mapping[str, Any], better: Any) -> dict[str, object]:
    """Mark the best number of {name: number} as `Best`, which a table shows in bold; return the result.

    Several equally good ones are all marked. Nothing is marked if fewer than two numbers are finite. `better` is the
    function that chooses the best of a list: min or max.
    """
    finite = [x for x in values.values() if math.isfinite(x)]
    best = better(finite) if len(finite) > 1 else None
    return {name: Best(x) if x == best else x for name, x in values.items()}
