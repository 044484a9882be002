"""Tables of the metrics of a run, next to simpler methods, as the report and the command show them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
from rotarymae.report.content import Best, Table

CHANNEL_ROWS = 20  # rows of a table of channels


def comparisons(metrics: Mapping[str, Any]) -> list[Table]:
    """Return the tables that compare the methods of a run by their scores; [] if nothing was scored.

    Tables for classes, numbers, times to an event, early predictions, and hidden patches have one row per method. With
    a cross-validation, tables of means and deviations over folds follow. Tables of errors at hidden observations have a
    row per value column or channel, and a column per method (see `error_table`).

    Args:
        metrics: the content of a metrics.json. Tables are made for the scores that it has.
    """
    ahead = metrics.get("horizon")
    tables, where = [], f"on {scored_words(metrics)}" if ahead is None else f"up to {ahead} ahead"
    for task, name in (("classification", "Classes"), ("regression", "Regression"), ("survival", "Time to event")):
        if task in metrics:
            tables.append(_methods(f"{name}, {where}", metrics[task], interval_words(metrics)))
            if "folds" in metrics:
                rows = list(fold_rows(metrics).items())
                tables.append(Table(rows, "Mean and standard deviation over folds", "method"))
    if "early" in metrics:
        early = metrics["early"]
        known = f"by the time since the first {early['first']}, {early['series']:,} series"
        tables += [
            Table([*rows.items()], f"{metric}, {known}", "method") for metric, rows in early_rows(metrics).items()
        ]
    tables += _interpolations(metrics.get("interpolation", {}), where)
    if "reconstruction" in metrics:
        scores = metrics["reconstruction"]
        title = f"{scores['hidden_patches']:,} hidden patches, {where}"
        tables.append(_methods(title, scores["methods"], "Scaled: to mean 0 and deviation 1, channel by channel."))
    return tables


def _interpolations(values: Mapping[str, Any], where: str) -> Iterator[Table]:
    """Yield two tables of root mean squared errors at hidden observations, one scaled, one in units; see `error_table`.

    The first has a row per value column, with errors that are scaled and taken over all channels. The second has a row
    per value column and channel (without channels: per value column), with errors in the column's unit. Of more than 20
    rows, only the 20 with the model's largest scaled errors are shown, the largest first.

    Args:
        values: {value column: scores}, the entry "interpolation" of metrics.json; {} yields no table.
        where: words for the series that were scored, for the titles.
    """
    if not values:
        return
    caption = "Root mean squared errors, scaled as described under what was done to the data: much less than 1 is good."
    yield error_table(f"Hidden observations, {where}", values.items(), SCALED_RMSE, caption)
    each = []
    for name, scores in values.items():
        channels = scores.get("channels")
        each += [(name, scores)] if channels is None else [(f"{name} of {c}", part) for c, part in channels.items()]
    caption, count = "Root mean squared errors, each in its own unit.", len(each)
    if count > CHANNEL_ROWS:
        each = sorted(each, key=lambda row: -np.nan_to_num(row[1]["methods"]["model"][SCALED_RMSE], nan=-1.0))
        caption += f" Of {count:,}, the {CHANNEL_ROWS} with the largest scaled errors; all are in metrics.json."
    yield error_table(f"In the table's units, {where}", each[:CHANNEL_ROWS], RMSE, caption)


def error_table(title: str, parts: Iterable[tuple[str, Any]], error: str, caption: str) -> Table:
    """Return a table of errors at hidden observations, with a column per method; the smallest error of a row is bold.

    Further columns hold the share of hidden observations inside each predicted band, such as that of 95 % (none without
    bands), and the number of hidden observations.

    Args:
        title, caption: of the table.
        parts: pairs (name, scores), one for each row: a value column, channel or distance, with scores as in
            metrics.json.
        error: name of the metric to show, as in metrics.json.
    """
    rows = []
    for name, scores in parts:
        row = _with_best({method_words(method): errors[error] for method, errors in scores["methods"].items()}, min)
        inside = scores.get("share_inside_band", {})
        row |= {f"inside {100 * float(share):.0f} % band": x for share, x in inside.items()}
        rows.append((name, row | {"hidden": scores["hidden_observations"]}))
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
