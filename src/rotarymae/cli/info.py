"""rotarymae info: what is in a table, and the command that trains."""

from __future__ import annotations

import shlex
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from rotarymae import series, tables
from rotarymae.cli.inputs import Columns, TablePath
from rotarymae.errors import InputError, InputWarning, gathered_warnings, printable
from rotarymae.series.mapped import is_mapped, row_chunks
from rotarymae.tables.schema import option

MAX_CHANNELS_SHOWN = 12  # channels
ROWS_SHOWN = 5
DESCRIBED_OBSERVATIONS = 1 << 22  # observations of a table larger than memory whose values are described


def info_command(table: Positional[TablePath], columns: Columns) -> None:
    """Print what is in a table, without training: columns, series, gaps, ranges, first rows, and the command for a fit.

    For example: rotarymae info observations.csv. Columns that no option names are proposed.

    Args:
        table: The observations, one per row: a file, a folder of files, a quoted pattern, or - for standard input.
    """
    named = {name for name, value in asdict(columns).items() if value or value == ""}
    with gathered_warnings() as raised:
        source = tables.open_source(table, columns.header_row)
        proposal = tables.propose(source, tables.TableSchema.resolve(asdict(columns)), named)
        schema, label, unsure = proposal.schema, proposal.label, list(proposal.unsure)
        source = tables.open_source(source, numbered=schema.numbered)
        labelled = source.columns
        if schema.objects is not None:
            objects = tables.open_source(schema.objects)
            labelled = objects.columns
            label, static, doubts = tables.propose_objects(objects, schema.id, label)
            taken = {name for _, name in schema.roles}  # as the mean flux of each object, next to the flux of each row
            static = [name for name in static if name not in taken]
            schema, unsure = replace(schema, static=(*schema.static, *static)), [*unsure, *doubts]
            proposal.given.update({"static": schema.static} if static else {})
        if label is None and proposal.given.pop("static", ()):
            text = f"{option('static', *schema.static)} is left out, as it has no effect without labels"
            unsure.append(f"{text}; with --label or --labels, add what of it is known beforehand")
            schema = replace(schema, static=())
        event = tables.status_of(label or "", labelled)
        others = tuple(name for name in (label, event, proposal.split) if name and name in source.columns)
        dataset, merged = _read(source, schema, others)
        schema = schema.with_values_of(dataset)
    lines = [("table", str(table))]
    if proposal.given:
        said = ", ".join(f"{name} {_words(value)}".strip() for name, value in proposal.given.items())
        said += "".join(f", {role} {name}" for role, name in (("label", label), ("event", event)) if name)
        lines.append(("proposed", said))
    lines += [("rows", str(dataset.reading)), *_contents(dataset)]
    lines += [("unsure", text) for text in [*unsure, *merged]]
    texts = dict.fromkeys(str(one.message) for one in raised if issubclass(one.category, InputWarning))
    lines += [("warning", text) for text in texts]
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        print(printable(f"{name:<{width}}  {text}"))
    print("\nthe first rows, as they are understood:")
    print(printable(_first_rows(dataset, schema)))
    print(f"\nto train:\n{printable(_command(table, schema, label, event))}")


def _read(
    source: tables.Source, schema: tables.TableSchema, others: tuple[str, ...]
) -> tuple[series.SeriesDataset, list[str]]:
    """Read a table; return the data set, and a list of what a fit would refuse, in words.

    A fit refuses a table in which more than 1 % of the rows (any row, if `schema.strict`) repeat the series, time and
    channel of others, with other values. The list then has one text, which says so, and the data set has the means of
    such rows. Otherwise the list is empty.

    Args:
        source: the table.
        schema: its columns.
        others: names of columns that are no values, such as that of labels.

    Raises:
        InputError: anything else that `tables.read_table` refuses.
    """
    try:
        return tables.read_table(source, schema, others=others), []
    except InputError as error:
        if error.code != "duplicates":
            raise
        dataset = tables.read_table(source, replace(schema, duplicates="mean"), others=others)
        assert dataset.reading is not None
        merged, total = dataset.reading.merged, dataset.reading.total
        advice = "a column that tells them apart may be missing" if merged > total / 20 else "a choice is yours"
        text = f"{merged:,} of {total:,} rows ({merged / total:.0%}) repeat the series, time and channel of another: "
        text += f"{advice} (--channel, --positions; else --duplicates mean, first or last). `fit` refuses them: "
        return dataset, [text + error.message]


def _contents(dataset: series.SeriesDataset) -> list[tuple[str, str]]:
    """Return what `info` prints on the content of a table, as lines (topic, text).

    They are on series, times, gaps and channels, if there are any, and values. Only the 12 channels with most
    observations are shown. Where there is a single column of values, each of these channels has a line on its values;
    otherwise each column of values has one. For a table larger than memory, gaps and values are those of a sample of
    series, and a line says so.
    """
    import numpy as np

    lengths, times = dataset.lengths, np.asarray(dataset.times)
    low, middle, high = (int(x) for x in np.quantile(lengths, (0, 0.5, 1)))
    lines = [("series", f"{len(dataset):,}, with {low:,} to {high:,} observations each (median {middle:,})")]
    ends: list[Any] = [times.min(), times.max()]
    if dataset.time_zone is not None:
        ends = series.as_dates(np.array(ends), dataset.time_zone).to_pylist()
    lines.append(("times", " to ".join(str(end) for end in ends)))
    counts = np.zeros(len(dataset.channel_names or (None,)), np.int64)
    for part in row_chunks(dataset.offsets):
        counts += np.bincount(series.channel_index(dataset.columns.take(part)), minlength=len(counts))
    some = dataset.sample(DESCRIBED_OBSERVATIONS) if is_mapped(dataset.times) else dataset
    if len(some) < len(dataset):
        lines.append(("sample", f"gaps and values are those of {len(some):,} series"))
    times = some.times
    last, first = times[some.offsets[1:] - 1], times[some.offsets[:-1]]
    gaps = np.diff(times)
    inside = np.ones(len(gaps), bool)
    inside[some.offsets[1:-1] - 1] = False
    gaps = gaps[inside & (gaps > 0)]
    unit = "" if dataset.time_unit is None else f" {dataset.time_unit}s"
    if len(gaps):
        typical, longest = np.median(gaps), gaps.max()
        span = np.median(last - first)
        text = f"median {typical:.4g}{unit}, longest {longest:.4g}{unit}; a series spans {span:.4g}{unit}"
        lines.append(("gaps", text))
    values = series.measured(some)
    columns = {name: values[:, i] for i, name in enumerate(some.value_names)}
    if some.channels is not None and some.channel_names is not None:
        order = np.argsort(-counts, kind="stable")[:MAX_CHANNELS_SHOWN]
        shown = ", ".join(f"{some.channel_names[i]} {counts[i]:,}" for i in order)
        shown += f", ... ({len(counts)} in all)" if len(counts) > MAX_CHANNELS_SHOWN else ""
        lines.append(("channels", shown))
        if len(columns) == 1:  # each channel may have a unit of its own
            columns = {str(some.channel_names[i]): values[some.channels == i, 0] for i in order}
    for name, column in columns.items():
        known = column[np.isfinite(column)]
        if not len(known):
            lines.append((name, f"{len(column):,} limits, and no value" if len(column) else "never observed"))
            continue
        low, middle, high = np.quantile(known, (0, 0.5, 1))
        limits = f"; {len(column) - len(known):,} limits" if len(known) < len(column) else ""
        unit = f" {dataset.reading.units[name]}" if dataset.reading and name in dataset.reading.units else ""
        lines.append((name, f"{low:.5g} to {high:.5g}{unit}, median {middle:.5g}, deviation {known.std():.4g}{limits}"))
    return lines


def _first_rows(dataset: series.SeriesDataset, schema: tables.TableSchema) -> str:
    """Return the first rows of the first series, at most five, as text in aligned columns with their names above.

    There is a row for each observation, also for a wide table, with id, time, positions, channel, values and static
    columns; in a column with limits values are texts, such as "<0.01". Times that are numbers have all their digits;
    other decimal numbers have six significant ones.

    Args:
        dataset: the series.
        schema: how the table was read; it names the columns of times and channels.
    """
    count = min(ROWS_SHOWN, int(dataset.offsets[1]))
    table = dataset.select([0]).to_arrow(time=schema.time, channel=schema.channel or "channel").slice(0, count)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    if dataset.time_zone is not None:
        columns[schema.time] = series.as_dates(dataset.times[:count], dataset.time_zone).to_pylist()
    cells = [
        [name, *(f"{one:.6g}" if isinstance(one, float) and name != schema.time else str(one) for one in column)]
        for name, column in columns.items()
    ]
    widths = [max(map(len, column)) for column in cells]
    return "\n".join("  " + "  ".join(cell.rjust(w) for cell, w in zip(row, widths)) for row in zip(*cells))


def _command(table: Path, schema: tables.TableSchema, label: str | None, event: str | None) -> str:
    """Return the `rotarymae fit` command for a table, quoted for a shell, with `--out run` at its end.

    Args:
        table: the path, as typed.
        schema: its columns and how cells are read; each field but `units` that differs from its default becomes an
            option, and --values is also given for a wide table.
        label: the column of labels or, with `event`, of durations; None for a command without labels.
        event: the column that says which durations ended in an event; None without.
    """
    words, usual = ["rotarymae", "fit", str(table)], tables.TableSchema()
    for field in fields(schema):
        if field.name == "units":
            continue
        value = getattr(schema, field.name)
        if value == getattr(usual, field.name) and not (field.name == "values" and schema.wide):
            continue
        given = value if isinstance(value, tuple) else () if value is True else (str(value),)
        words += [option(field.name), *given]
    words += ["--label" if event is None else "--duration", label] if label else []
    words += ["--event", event] if event else []
    return shlex.join([*words, "--out", "run"])


def _words(value: Any) -> str:
    """Return an option's value as words for a reader: a tuple with spaces between, True, of a flag, as nothing.

    An empty text becomes two quotes; nothing else is quoted.
    """
    return " ".join(value) if isinstance(value, tuple) else ("" if value is True else str(value) or "''")
