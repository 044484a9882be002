"""One table in, one table out: the answers for every series of a table, whatever its size.

A table is read, answered and written a part at a time, about 260,000 observations each, so memory does not grow with
it. There is one row per series (of values at any times one per query) in the order in which the series first appear.
The column of ids has the table's name and type. A series without observations has a row with its id alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rotarymae.arrays import ArrayDataset
from rotarymae.config import AutoPool
from rotarymae.errors import InputError, InputWarning, NoObservations, gathered_warnings
from rotarymae.pipeline import Pipeline
from rotarymae.run_folder import with_ids, write_parts
from rotarymae.scale.answers import Computation, ModelStage, Results, embeddings
from rotarymae.series import as_text
from rotarymae.tables import Part, TableReader, TableSchema

OnProgress = Callable[[int, int], None]


@dataclass
class Totals:
    """Numbers of a table that has been answered.

    Attributes:
        series: number of series, or of files of pictures or sounds.
        empty: number of series or files without an answer, as they have no observations or cannot be read.
        rows: number of rows written; of a series without an answer one, also where a table of query times repeats it.
        what: what those without an answer are called in a message.
    """

    series: int = 0
    empty: int = 0
    rows: int = 0
    what: str = "series without observations"

    @property
    def answered(self) -> int:
        """Number of series with a result."""
        return self.series - self.empty

    @property
    def said_of_empty(self) -> str:
        """Text such as "; 3 series without observations have an empty row", to end a sentence; "" if there are none."""
        return f"; {self.empty:,} {self.what} have an empty row" if self.empty else ""


def answer_file(
    computation: Computation, table: Path, out: Path, layout: TableSchema, on_step: OnProgress | None = None
) -> Totals:
    """Compute results for every series of a table, and write them to a .csv or .parquet file.

    The file appears, or replaces an old one, only when it is complete.

    Args:
        computation: what to compute for each series.
        table: a file, folder or pattern; "-" is standard input.
        out: path of the file; "-" is standard output, as CSV.
        layout: the columns of the table.
        on_step: called with (observations done, observations in all); None for none.

    Returns:
        The numbers of series, of series without a result, and of rows written.

    Raises:
        InputError: a table that cannot be read, or in which no series has a result; an `out` of another suffix, or at
            which nothing can be written. The message names the table.
        OSError: the disk is full, or `out` is a folder.
    """
    totals = Totals()
    try:
        write_parts(answer_table(computation, computation.pipeline.reader(table, layout), on_step, totals), out)
    except InputError as error:
        raise error.within(table) from error
    return totals


def answer_table(
    computation: Computation, reader: TableReader, on_step: OnProgress | None = None, totals: Totals | None = None
) -> Iterator[pa.Table]:
    """Compute results for every series of a table, in parts that fit into memory; yield an Arrow table for each part.

    At least one table is yielded, without rows if the input has none. All have the same columns, the ids first. Series
    are in the order in which they first appear; a series without a result has a row with its id alone. If there is a
    table of query times (`computation.at`), there is a single part, with the rows in the order of that table, and with
    its names and its other columns (see `QueryTable.laid_out`).

    Args:
        computation: what to compute for each series.
        reader: the table, with its columns.
        on_step: called with (observations done, observations in all); None for none.
        totals: counts, updated in place as parts are yielded; a table in which no series has a result is then refused.
            None accepts such a table.

    Raises:
        InputError: a table that cannot be read, or that does not suit the computation; no series has a result, and
            `totals` is given or the columns of results are not known in advance (`computation.schema`).

    Warns:
        InputWarning: the warnings of the computation, the first of each kind, after the last part.
    """
    required, totals = totals is not None, totals or Totals()
    parts = _answer_parts(computation, reader, on_step, totals, required)
    yield from parts if computation.at is None else [computation.at.laid_out(pa.concat_tables(parts))]


def _answer_parts(
    computation: Computation, reader: TableReader, on_step: OnProgress | None, totals: Totals, required: bool
) -> Iterator[pa.Table]:
    """Compute and yield the results of each part of a table (see `answer_table`), always in the order of the table.

    `totals` is updated before each part is yielded. If `computation.schema` does not say which columns results have,
    parts are kept back until the first result shows them. Raises InputError, after the last part, if no series has a
    result, and `required` is True or the columns are not known.
    """
    total, done = reader.source.observations(reader.columns), 0
    schema, name = computation.schema, reader.id_name
    held: list[tuple[Part, Results | None]] = []  # until the columns are known
    raised: list[InputWarning] = []
    reason = NoObservations("the table has no rows; check that it is the right one.")
    for part in _parts(computation, reader):
        results = None
        if part.dataset is not None:
            size = len(part.dataset.times)
            # Called with k of n parts of this part, it reports progress in the table.
            step = on_step and (lambda k, n, at=done, size=size: on_step(min(at + size * k // n, total), total))
            with gathered_warnings() as caught:
                results = computation.compute(part.dataset, step)
            raised += [warning.message for warning in caught if isinstance(warning.message, InputWarning)]
            done += size
            if schema is None and results.columns.num_columns:
                schema = results.columns.schema
        reason = part.why or NoObservations("none of the series in the table of queries has observations; name others.")
        totals.series += len(part.ids)
        totals.empty += int((~part.observed).sum())
        held.append((replace(part, dataset=None), results))  # whose data set has been answered
        for one, given in held if schema is not None else ():
            rows = _rows(one.ids, one.observed, given, schema, name)
            totals.rows += len(rows)
            yield rows
        held = held if schema is None else []
    for warning in _once(raised):
        warnings.warn(warning, stacklevel=3)
    if schema is None or (required and not totals.answered):
        raise reason
    if not totals.series:
        yield with_ids(schema.empty_table(), pa.array([], reader.source.kinds.get(reader.schema.id, pa.string())), name)


def _parts(computation: Computation, reader: TableReader) -> Iterator[Part]:
    """Yield a table in parts that the computation can answer at once; no series is split between two parts.

    If `computation.cost` is given, the reader's parts are cut further, so that the costs of a part's series sum to
    about 1. If there is a table of query times, a series without usable observations is yielded only if it is in that
    table. Raises InputError, after the last part, if the table of query times names a series that was in no part.
    """
    seen: list[Any] = []
    asked = None if computation.at is None else set(map(as_text, computation.at.ids))
    for part in reader.parts():
        if asked is not None:
            ids = part.ids.to_pylist()
            seen += ids
            part = _some(part, part.observed | np.array([as_text(id) in asked for id in ids], bool))
        if part.dataset is None or computation.cost is None:
            yield part
            continue
        cost = np.zeros(len(part.ids))
        cost[part.observed] = computation.cost(part.dataset)
        piece = np.floor(np.cumsum(cost) - cost)
        yield from (_some(part, piece == k) for k in np.unique(piece))
    if computation.at is not None:
        computation.at.refuse_others(seen)


def _some(part: Part, keep: np.ndarray) -> Part:
    """Return a part of a table reduced to those of its S series for which the mask `keep`, bool [S], is True.

    The data set of the result is None if none of these series has observations.
    """
    dataset, chosen = part.dataset, keep[part.observed]
    if dataset is not None and not chosen.all():
        dataset = dataset.select(chosen) if chosen.any() else None
    return replace(part, ids=part.ids.filter(pa.array(keep)), observed=part.observed[keep], dataset=dataset)


def _rows(ids: pa.Array, observed: np.ndarray, results: Results | None, schema: pa.Schema, name: str) -> pa.Table:
    """Return the results of one part of a table with an id column in front, for all its series in their order.

    Args:
        ids: [S] ids of all series.
        observed: bool [S], True for series with results; any other gets one row, with its id and empty cells.
        results: the results of the observed series, in their order; None if no series is observed.
        schema: columns of results, used if `results` is None or has none.
        name: name of the id column; it becomes "id" (or "id_value") if the results have a column of this name.
    """
    lengths = np.ones(len(ids), np.int64)
    columns = schema.empty_table() if results is None or not results.columns.num_columns else results.columns
    if results is not None:
        lengths[observed] = results.rows
    if results is None or not observed.all():
        there = np.repeat(observed, lengths)
        columns = columns.take(pa.array(np.cumsum(there) - 1, mask=~there))
    if (lengths != 1).any():
        ids = ids.take(pa.array(np.repeat(np.arange(len(lengths)), lengths)))
    return with_ids(columns, ids, name)


def answer_arrays(
    computation: Computation, dataset: ArrayDataset, out: Path, on_step: OnProgress | None = None
) -> Totals:
    """Compute results for pictures, videos or sounds, and write them to a .csv or .parquet file.

    Files that could not be read get a row with their name alone, at the end.

    Args:
        computation: what to compute for each picture or sound; it gives one row for each.
        dataset: the pictures or sounds.
        out: path of the file; "-" is standard output, as CSV.
        on_step: called with (steps done, steps in all); None for none.

    Returns:
        The numbers of files (`series`), of those that could not be read (`empty`), and of rows, one per file.

    Raises:
        InputError: a path of another suffix, or at which nothing can be written; arrays unlike those of training.
        OSError: the disk is full, or `out` is a folder.
    """
    ids = pa.array([*dataset.ids.tolist(), *dataset.reading.left_out])
    results = computation.compute(dataset, on_step)
    observed = np.arange(len(ids)) < len(dataset)
    write_parts([_rows(ids, observed, results, results.columns.schema, dataset.id_name)], out)
    return Totals(len(ids), len(dataset.reading.left_out), len(ids), what="files that cannot be read")


def _once(raised: list[InputWarning]) -> Iterator[InputWarning]:
    """Reduce warnings to the first of each kind, which also says how many others there are; yield these in order.

    Warnings with the same code are of one kind; but with the general code "invalid", only warnings of the same text
    are. Warnings of the same text count once.
    """
    kinds: dict[tuple[str, str], list[str]] = {}
    for warning in raised:
        texts = kinds.setdefault((warning.code, str(warning) if warning.code == "invalid" else ""), [])
        if str(warning) not in texts:
            texts.append(str(warning))
    for (code, _), texts in kinds.items():
        more = len(texts) - 1
        yield InputWarning(texts[0] + (f" ({more} more warnings are like this.)" if more else ""), code=code)


# ── for Arrow tables ────────────────────────────────────────────────────────────────────────────────────────────────


def embed_table(
    table: pa.Table,
    model: str | Path | Pipeline,
    layout: TableSchema | None = None,
    *,
    pool: AutoPool = "auto",
    stage: ModelStage = "pretrained",
) -> pa.Table:
    """Return one vector (embedding) per series of a table, as a table: the ids, and the columns e0, e1, ... (float32).

    Rows are in the order in which the series first appear. A series without observations has a row with its id alone.

    Args:
        table: long (a row per observation), wide (a column per channel) or nested (a row per series, cells are lists).
        model: a pipeline, or the folder or name of one.
        pool: how the vectors of a series' observations become one: "mean" or "max" over them, "cls" for the [CLS]
            token, or "auto" for what the model was trained to use.
        stage: which model of a pipeline that is loaded is used, "pretrained" or "finetuned".
        layout: columns of the table; None means the same as in the table that the pipeline was trained on.
            `Pipeline.layout` returns these, with changes if wanted.

    Raises:
        InputError: a table that cannot be read; a model, `pool` or `stage` that `embeddings` refuses.
        ModelDirectoryError: a folder that is no whole model.
    """
    return answer_arrow(embeddings(model, pool, stage), table, layout)


def answer_arrow(computation: Computation, table: pa.Table, layout: TableSchema | None = None) -> pa.Table:
    """Compute results for every series of an Arrow table; return a table of ids and results.

    Rows are in the order in which the series first appear; with a table of query times (`computation.at`), in the order
    of that table (see `QueryTable.laid_out`). A series without a result has a row with its id alone.

    Args:
        computation: what to compute for each series.
        table: long (a row per observation), wide (a column per channel) or nested (a row per series, cells are lists).
        layout: columns of the table; None means those of the table that the computation's pipeline was trained on.

    Raises:
        InputError: a table that cannot be read, or that does not suit the computation; no series has a result, and the
            columns of results are not known in advance (`computation.schema`).
    """
    layout = layout or computation.pipeline.layout()
    return pa.concat_tables(answer_table(computation, computation.pipeline.reader(table, layout)))
