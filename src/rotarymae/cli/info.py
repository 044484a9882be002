"""rotarymae info: what is in a table, what a training would cost, and the command that trains."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from rotarymae import series, system
from rotarymae.cli.inputs import Columns, Table
from rotarymae.cli.output import new_reporter
from rotarymae.errors import InputError, listed, printable
from rotarymae.training.fit_config import FitConfig

SHOWN = 12  # channels
TRANSFORMED = {"standard": "standardised", "asinh": "compressed by asinh", "none": "as they are"}


def info(table: Positional[Table], columns: Columns) -> None:
    """Look at a table before any training: its columns, series, gaps and ranges, and what a fit would take.

    For example: rotarymae info observations.csv

    Args:
        table: This table of observations is read; columns that no option names are guessed by their names.
    """
    reporter = new_reporter(quiet=True)
    given = asdict(columns)
    with reporter.catching_warnings():
        guessed, label = _guess(table, given)
    # Duplicates are counted, not refused as `fit` would: whoever looks wants to know.
    options = {"duplicates": "mean", **guessed, **{name: value for name, value in given.items() if value}}
    layout = series.TableLayout.resolve(options)
    with reporter.catching_warnings():
        dataset = layout.read(table, None, (label,) if label else ())
    layout = layout.with_values_of(dataset)
    if not given["duplicates"] and not (dataset.reading and dataset.reading.merged):
        layout = replace(layout, duplicates="error")
    lines = [("table", str(table))]
    if guessed:
        lines.append(("guessed", ", ".join(f"{name} {_words(value)}".strip() for name, value in guessed.items())))
    lines += [("rows", str(dataset.reading)), *_contents(dataset), *_training(dataset)]
    roles = {layout.id, layout.time, layout.channel, *layout.values, *layout.flags, label}
    source = layout.open(table)
    unused = [name for name in source.column_names() if name not in roles]
    if unused:
        lines.append(("not used", f"{listed(unused, 20)}; --static reads a column with one value per series"))
    if texts := [name for name in unused if name not in source.numeric_columns()]:
        lines.append(("text", f"{listed(texts, 20)}; where a word stands for a missing number, say so by --na WORD"))
    if constant := _constant(dataset):
        lines.append(("constant", f"{listed(constant, 20)} in every series: read them by --static, not as channels"))
    lines += [("warning", text) for text in reporter.warnings]
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        print(printable(f"{name:<{width}}  {text}"))
    print(f"\nto train:\n{printable(_command(table, layout, label))}")


def _guess(table: Path, given: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The options that are not given, by the names of the columns, the time also as the only dates; and a column of
    labels, if there is one.

    Raises:
        InputError: no column that could hold times or values.
    """
    from pyarrow.types import is_temporal

    source = replace(series.TableLayout(), na=given["na"]).open(table)
    used = {given["id"], given["time"], given["channel"], *given["values"], *given["flags"]}
    rest = [name for name in source.column_names() if name not in used]
    found = series.suggest_columns(rest, source.numeric_columns())
    dates = [name for name in rest if is_temporal(source.type_of(name))]
    if len(dates) == 1:
        found.setdefault("time", dates[0])
    label = found.pop("label", None)
    if given["values"] or given["channel"] or given["wide"]:
        found.pop("wide", None)
    if given["wide"]:
        found.pop("channel", None)
    guessed = {option: value for option, value in found.items() if not given[option]}
    for option in ("time", "values"):
        if not given[option] and option not in guessed:
            raise InputError(f"no column looks like {option}; name it by --{option}. There are {listed(rest, 20)}.")
    return guessed, label


def _contents(dataset: series.SeriesDataset) -> list[tuple[str, str]]:
    import numpy as np

    lengths, times = dataset.lengths, np.asarray(dataset.times)
    low, middle, high = (int(x) for x in np.quantile(lengths, (0, 0.5, 1)))
    lines = [("series", f"{len(dataset):,}, with {low:,} to {high:,} observations each (median {middle:,})")]
    last, first = times[dataset.offsets[1:] - 1], times[dataset.offsets[:-1]]
    gaps = np.diff(times)
    inside = np.ones(len(gaps), bool)
    inside[dataset.offsets[1:-1] - 1] = False
    gaps = gaps[inside & (gaps > 0)]
    unit = "" if dataset.time_unit is None else f" {dataset.time_unit}s"
    ends: list[Any] = [times.min(), times.max()]
    if dataset.time_zone is not None:
        ends = series.as_dates(np.array(ends), dataset.time_zone).to_pylist()
    lines.append(("times", " to ".join(str(end) for end in ends)))
    if len(gaps):
        typical, longest = np.median(gaps), gaps.max()
        span = np.median(last - first)
        lines.append(
            ("gaps", f"median {typical:.4g}{unit}, longest {longest:.4g}{unit}; a series spans {span:.4g}{unit}")
        )
    values = np.asarray(dataset.values)
    columns = {name: values[:, i] for i, name in enumerate(dataset.value_names)}
    if dataset.channel_names is not None:
        channels = np.asarray(dataset.channels)
        counts = np.bincount(channels, minlength=len(dataset.channel_names))
        order = np.argsort(-counts, kind="stable")[:SHOWN]
        shown = ", ".join(f"{dataset.channel_names[i]} {counts[i]:,}" for i in order)
        lines.append(("channels", shown + (f", ... ({len(counts)} in all)" if len(counts) > SHOWN else "")))
        if len(columns) == 1:  # each channel may have a unit of its own
            columns = {str(dataset.channel_names[i]): values[channels == i, 0] for i in order}
    for name, column in columns.items():
        known = column[np.isfinite(column)]
        if not len(known):
            lines.append((name, "never observed"))
            continue
        low, middle, high = np.quantile(known, (0, 0.5, 1))
        missing = f"; {len(column) - len(known):,} missing" if len(known) < len(column) else ""
        lines.append((name, f"{low:.5g} to {high:.5g}, median {middle:.5g}, deviation {known.std():.4g}{missing}"))
    return lines


def _constant(dataset: series.SeriesDataset) -> list[str]:
    """The channels that are observed several times in every series and never change in one, but between series."""
    import numpy as np

    found, times = [], np.repeat(np.arange(len(dataset)), dataset.lengths)
    for c, name in enumerate(dataset.channel_names or ()):
        own = np.asarray(dataset.channels) == c
        values, first = np.asarray(dataset.values)[own, 0], np.flatnonzero(np.diff(times[own], prepend=-1))
        if len(first) < len(dataset) or len(values) < 2 * len(first):
            continue
        low, high = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
        if (low == high).all() and low.min() < high.max():
            found.append(str(name))
    return found


def _training(dataset: series.SeriesDataset) -> list[tuple[str, str]]:
    from rotarymae.train import prepare
    from rotarymae.training.cost import estimate_cost

    config = FitConfig()
    try:
        preprocessor = prepare(dataset, config)
    except InputError as error:
        return [("training", f"refused: {error}")]
    assert isinstance(preprocessor, series.Preprocessor)
    sizes = config.model_config(preprocessor.axes, preprocessor.features, preprocessor.input_features)
    before, after, memory = estimate_cost(config, sizes, preprocessor.lengths(preprocessor.windows(dataset).dataset))
    kinds = zip(preprocessor.value_names, preprocessor.values.transforms, strict=True)
    return [
        ("unit of time", f"{preprocessor.positions.unit:.4g}, as positions are measured"),
        ("values are", ", ".join(f"{name} {TRANSFORMED[kind]}" for name, kind in kinds)),
        ("pre-training", f"about {system.duration(before)} on this computer, with the defaults"),
        ("fine-tuning", f"about {system.duration(after)} with labels; --minutes sets a limit to both"),
        ("memory", f"about {memory / 2**30:.2g} GiB for the largest step, beside the table"),
    ]


def _command(table: Path, layout: series.TableLayout, label: str | None) -> str:
    words = ["rotarymae", "fit", str(table)]
    for name in ("id", "time"):
        if getattr(layout, name) != name:
            words += [f"--{name}", getattr(layout, name)]
    words += ["--wide"] if layout.wide else []
    words += ["--channel", layout.channel] if layout.channel else []
    words += ["--values", *layout.values]
    for name, usual in (("tokens", "channel"), ("missing", "drop"), ("duplicates", "error")):
        words += [f"--{name}", getattr(layout, name)] if getattr(layout, name) != usual else []
    for name in ("flags", "na"):
        words += [f"--{name}", *getattr(layout, name)] if getattr(layout, name) else []
    words += ["--time-format", layout.time_format] if layout.time_format else []
    words += ["--label", label] if label else []
    return shlex.join([*words, "--out", "run"])


def _words(value: Any) -> str:
    return " ".join(value) if isinstance(value, tuple) else ("" if value is True else str(value))
