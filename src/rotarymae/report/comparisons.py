"""Tables of the metrics of a run, next to simpler methods, as the report and the command show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from rotarymae.report.content import Table

ENDS = 10  # of a long table of channels, as many of the worst and of the best are shown


def comparisons(metrics: Mapping[str, Any]) -> list[Table]:
    """Return the tables that compare methods, for what metrics.json holds; [] where nothing was scored.

    Classes, numbers and times to an event have a row per method, and so have scores of early predictions and of hidden
    patches. Errors at hidden observations have a row per column of values and per channel.
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
    """Yield tables of errors at hidden observations: first scaled, over all channels, then per channel in its unit.

    Of more than 20 rows the second table shows those with the ten largest and the ten smallest scaled errors.

    Args:
        values: "interpolation" of metrics.json, {column of values: scores}; {} yields nothing.
        where: on what was scored, for the titles.
    """
    errors = [(name, scores) for name, scores in values.items()]
    caption = "Root mean squared errors, scaled as described under what was done to the data: much less than 1 is good."
    yield from _errors(f"Hidden observations, {where}", errors, SCALED_RMSE, caption)
    each = []
    for name, scores in values.items():
        channels = scores.get("channels")
        each += [(name, scores)] if channels is None else [(f"{name} of {c}", part) for c, part in channels.items()]
    caption, count = "Root mean squared errors, each in its own unit.", len(each)
    if count > 2 * ENDS:
        each = sorted(each, key=lambda row: -np.nan_to_num(row[1]["methods"]["model"][SCALED_RMSE], nan=-1.0))
        caption += (
            f" Of {count:,}, the {ENDS} with the largest scaled errors and the {ENDS} with the smallest; all are in "
            "metrics.json."
        )
        each = each[:ENDS] + each[-ENDS:]
    yield from _errors(f"In the table's units, {where}", each, RMSE, caption)


def _errors(title: str, parts: list[tuple[str, Any]], error: str, caption: str) -> Iterator[Table]:
    """Yield one table with a row per part and a column per method, then shares inside bands and counts; none for [].

    Args:
        parts: pairs (name, scores as in metrics.json) of columns of values or channels.
        error: name of the metric that the columns of methods hold.
    """
    rows = []
    for name, scores in parts:
        row = {method_words(method): errors[error] for method, errors in scores["methods"].items()}
        inside = scores.get("share_inside_band", {})
        row |= {f"inside {100 * float(share):.0f} % band": x for share, x in inside.items()}
        rows.append((name, row | {"hidden": scores["hidden_observations"]}))
    if rows:
        yield Table(rows, title, "value", caption, across=[method_words(name) for name in parts[0][1]["methods"]])


def _methods(title: str, methods: Mapping[str, Mapping[str, float]], caption: str = "") -> Table:
    """Return a table of metrics with a row per method; the best value of each metric with a direction is bold.

    Args:
        methods: {method: {metric: value}}, among them "model", whose metrics are looked at for the best.
    """
    columns = [metric_of(name) for name in methods["model"]]
    lowest = [metric.words for metric in columns if metric.lower_is_better]
    highest = [metric.words for metric in columns if metric.lower_is_better is False]
    return Table(list(rows_in_words(methods).items()), title, "method", caption, highest, lowest)
