"""rotarymae info: what is in a table, and the command that trains."""

from __future__ import annotations

import itertools
import shlex
import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from tyro.conf import Positional

from rotarymae import series, tables
from rotarymae.cli.inputs import Columns, TablePath
from rotarymae.errors import InputError, InputWarning, gathered_warnings, printable, shortened
from rotarymae.series.mapped import is_mapped, row_chunks
from rotarymae.tables.columns import Column, look, spread
from rotarymae.tables.formats import numbers_in, values_in
from rotarymae.tables.schema import option
from rotarymae.tables.source import id_parts

MAX_CHANNELS_SHOWN = 12  # channels
MAX_LINES, WIDTH = 40, 100  # of the table of columns
LONGEST_NAME = 28  # characters
ROWS_SHOWN = 5
DESCRIBED_OBSERVATIONS = 1 << 22  # observations of a table larger than memory whose values are described


def info_command(table: Positional[TablePath], columns: Columns) -> None:
    """Print how a table is read, without training: the role of each column, the series, their gaps, and the first rows.

    For example: rotarymae info observations.csv. Roles are proposed for columns that no option names. The rotarymae fit
    command that trains a model on the table comes last.

    Args:
        table: The observations, one per row: a file, a folder of files, a quoted pattern, or - for standard input.
    """
    named = {name for name, value in asdict(columns).items() if value or value == ""}
    with gathered_warnings() as raised:
        opened = tables.open_source(table, columns.header_row)
        proposal = tables.propose(opened, tables.TableSchema.resolve(asdict(columns)), named)
        schema, label = proposal.schema, proposal.label
        source = tables.open_source(opened, numbered=schema.numbered)
        objects = None if schema.objects is None else tables.open_source(schema.objects)
        remarks_of_objects = {}
        if objects is not None:
            label, static, remarks_of_objects = tables.propose_objects(objects, schema.id, label)
            taken = {name for _, name in schema.roles}  # as the mean flux of each object, next to the flux of each row
            schema = replace(schema, static=(*schema.static, *(name for name in static if name not in taken)))
        schema = schema if label is not None else replace(schema, static=())  # which has no effect without labels
        event = tables.status_of(label or "", (objects or source).columns)
        others = tuple(name for name in (label, event, proposal.split) if name and name in source.columns)
        dataset, merged = _read(source, schema, others)
        schema = schema.with_values_of(dataset)
    labels = [(role, name) for role, name in (("event", event), ("duration" if event else "label", label)) if name]
    there = [(role, name) for role, name in labels if objects is None or name not in objects.columns]
    print(printable(f"table: {table}\n"))
    print(_columns("column", opened, schema.numbered, [*schema.roles, *there], proposal.remarks, proposal.columns))
    if objects is not None:
        key = tables.id_column(objects, schema.id)
        pairs = [("id", key), *(("static", name) for name in schema.static if name not in opened.columns), *labels]
        print("\n" + _columns(f"column of {objects.name}", objects, None, pairs, remarks_of_objects, look(objects)))
    print("\nto take a column as another, name it: --id, --time, --channel, --values, ... (rotarymae fit --help)\n")
    reading = dataset.reading
    assert reading is not None
    lines = [("rows", str(replace(reading, unread=()))), *_contents(dataset, schema)]
    known = [f"leave out of --static what is known only after {label!r}"] if schema.static else []
    lines += [("unsure", text) for text in (*proposal.unsure, *known, *merged)]
    texts = dict.fromkeys(str(one.message) for one in raised if issubclass(one.category, InputWarning))
    lines += [("warning", text) for text in texts]
    width = max(cell_len(name) for name, _ in lines)
    for name, text in lines:
        print(printable(f"{_padded(name, width)}  {text}"))
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


def _columns(
    head: str,
    source: tables.Source,
    numbered: str | None,
    named: list[tuple[str, str]],
    remarks: Mapping[str, str],
    seen: Mapping[str, Column],
) -> str:
    """Return what each column of a table is taken as, what it holds, and a remark, as text in aligned columns.

    There is a line for each column. Columns to be joined, such as year and month, have the role and the remark of
    "year+month". Columns that cannot be read come last. If there are more than about 40 lines, similar ones are folded
    into "... N more".

    Args:
        head: the heading above the names of the columns.
        source: the table, in which no columns are joined yet.
        numbered: the common beginning of numbered columns to be joined; None without.
        named: pairs (role, column) in the words of `TableSchema.roles`; joined names, such as "year+month", included.
        remarks: {column or joined name: remark}.
        seen: {column: some of its cells}; cells of other columns are read here.
    """
    parts = {name: id_parts(name, source.kinds) or [name] for _, name in named}
    parts |= {} if numbered is None else {values_in(numbered): [*numbers_in(source.kinds, numbered)]}
    roles = {part: (role.removesuffix("s").replace("_", " "), name) for role, name in named for part in parts[name]}
    taken = ((column, *roles.get(column, ("not read", column))) for column in source.kinds)
    lines = [(column, role, remarks.get(name, "")) for column, role, name in taken]
    for column, error in source.unreadable.items():
        lines.append((column, "not read", error.message.removeprefix(f"column {column!r} ")))
    lines = _folded(lines)
    seen = look(source, names=[name for name, *_ in lines if name in source.kinds and name not in seen]) | {**seen}
    rows = max((len(column.codes) for column in seen.values()), default=0)
    cells = [(shortened(head, LONGEST_NAME), "taken as", f"holds, in {rows:,} rows seen", "remark")]
    for name, role, remark in lines:
        unit, names = source.units.get(name, ""), role in ("id", "channel", "label")
        held = seen[name].holds(unit, names) if name in source.kinds else ""
        cells.append((shortened(printable(name), LONGEST_NAME), role, printable(held), printable(remark)))
    widths = [max(map(cell_len, column)) for column in zip(*cells)]
    text = []
    for *row, remark in cells:
        start = "  ".join(map(_padded, row, widths)) + "  "
        indent = " " * cell_len(start)
        first, *more = textwrap.wrap(remark, max(WIDTH - len(indent), LONGEST_NAME)) or [""]
        text += [(start + first).rstrip(), *(indent + part for part in more)]
    return "\n".join(text)


def _padded(cell: str, width: int) -> str:
    """Return a cell with blanks behind it, as wide as `width` columns of a terminal, of which 値 takes two."""
    return cell + " " * (width - cell_len(cell))


def _folded(lines: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Shorten a list of lines (column, role, remark) to about 40 if it is longer: similar ones become "... 988 more".

    Lines are similar if they have the same role and remark; the first 1 to 16 of such lines are kept. If there are too
    many different remarks, lines of the same role are similar. The order stays.
    """
    groups: dict[tuple[Any, int], list[tuple[str, str, str]]] = {}
    for same, kept in itertools.product((2, 1), (len(lines), 16, 8, 4, 2, 1)):
        counts, groups = Counter[tuple[str, ...]](), {}
        for line in lines:
            key = line[1 : 1 + same]
            counts[key] += 1
            groups.setdefault((key, min(counts[key], kept + 1)), []).append(line)
        if len(groups) <= MAX_LINES:
            break
    more = {key: (f"... {len(alike):,} more", key[0][0], "".join(key[0][1:])) for key, alike in groups.items()}
    return [alike[0] if len(alike) == 1 else more[key] for key, alike in groups.items()]


def _contents(dataset: series.SeriesDataset, schema: tables.TableSchema) -> list[tuple[str, str]]:
    """Return what `info` prints on the content of a table, as lines (topic, text).

    The topics are series, times, gaps and channels, if there are any. Only the 12 channels with most observations are
    shown. If there is a column of channels and a single one of values, each of these channels also has a line on its
    values. For a table larger than memory, gaps and values are those of a sample of series, and a line says so.
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
    if some.channels is not None and some.channel_names is not None:
        order = np.argsort(-counts, kind="stable")[:MAX_CHANNELS_SHOWN]
        shown = ", ".join(f"{some.channel_names[i]} {counts[i]:,}" for i in order)
        shown += f", ... ({len(counts)} in all)" if len(counts) > MAX_CHANNELS_SHOWN else ""
        lines.append(("channels", shown))
        values = series.measured(some)
        for i in order if len(some.value_names) == 1 and schema.channel is not None else ():
            known = values[some.channels == i, 0]
            known = known[np.isfinite(known)]  # limits are none
            lines.append((str(some.channel_names[i]), spread(known) if len(known) else "no value"))
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
    widths = [max(map(cell_len, column)) for column in cells]
    rows = (" " * (width - cell_len(cell)) + cell for row in zip(*cells) for cell, width in zip(row, widths))
    return "\n".join("  " + "  ".join(row) for row in zip(*[rows] * len(cells)))


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
