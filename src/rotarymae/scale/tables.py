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
from rotarymae.scale.answers import (
    Answers,
    ModelStage,
    Question,
    embeddings,
    open_embeddings,
)
from rotarymae.series import as_text
from rotarymae.tables import Part, TableReader, TableSchema

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Totals:
    """Numbers of a table: its series, those without any observation (`empty`), and the rows written.

    `what` names the empty ones in a message.
    """

    series: int = 0
    empty: int = 0
    rows: int = 0
    what: str = "series without observations"

    @property
    def answered(self) -> int:
        """Number of series with an answer."""
        return self.series - self.empty

    @property
    def said_of_empty(self) -> str:
        """Return "; 3 series without observations have an empty row" to end a sentence; "" where none is empty."""
        return f"; {self.empty:,} {self.what} have an empty row" if self.empty else ""


def answer_file(
    question: Question, table: Path | pa.Table, out: Path, layout: TableSchema, on_step: OnProgress | None = None
) -> Totals:
    """Write the answers for a table to a .csv or .parquet file, which appears only when it is complete.

    A question with a table of query times (`question.at`) is answered in the order of that table.

    Args:
        table: a file, folder or pattern, or an Arrow table.
        layout: the columns of the table.
        on_step: called with (observations done, observations in all).

    Returns:
        How many series and rows were written.

    Raises:
        InputError: a table that cannot be read, or in which no series has an observation; the message names the table.
    """
    totals, reader = Totals(), question.pipeline.reader(table, layout)

    def tables() -> Iterator[pa.Table]:
        """Yield the answers part by part and count them in `totals`; raise at the end if no series was answered."""
        nonlocal totals
        reason = NoObservations("it has no rows; there is nothing to answer for")
        for part, answers in answer_parts(question, reader, on_step):
            empty = totals.empty + int((~part.observed).sum())
            totals, reason = (
                Totals(totals.series + len(part.ids), empty, totals.rows + len(answers)),
                part.why or reason,
            )
            yield answers
        if totals.empty == totals.series:
            raise reason

    try:
        write_parts(tables() if question.at is None else [question.at.in_order(pa.concat_tables(tables()))], out)
        if not totals.series:
            list(tables())  # which raises: without a part nothing was written
    except InputError as error:
        raise error.within(table) from error
    return totals


def answer_parts(
    question: Question, reader: TableReader, on_step: OnProgress | None = None
) -> Iterator[tuple[Part, pa.Table]]:
    """Answer a question for a table in parts that fit into memory; yield (part, answers), in the table's order.

    Each `answers` is an Arrow table with the id column and the same further columns in every part. A part is yielded
    without its data set, which has been answered. A series without an answer has a row with its id alone. Parts wait
    until the columns are known, from the question or from the first answer. A table without rows yields nothing.

    Args:
        on_step: called with (observations done, observations in all).

    Raises:
        InputError: as `TableReader.parts` and the question; no series has an answer, and so the columns are unknown.

    Warns:
        InputWarning: those of the question, the first of each kind, after the last part.
    """
    total, done = reader.source.observations(reader.columns), 0
    schema = question.schema
    held: list[tuple[Part, Answers | None]] = []  # until the columns are known
    raised: list[InputWarning] = []
    parts = _checked(question, reader)
    if question.at_a_time is not None:
        parts = (piece for part in parts for piece in _pieces(part, question.at_a_time))
    for part in parts:
        part_answers = None
        if part.dataset is not None:
            size = len(part.dataset.times)
            # Called with k of n parts of this part, it reports progress in the table.
            step = on_step and (lambda k, n, at=done, size=size: on_step(min(at + size * k // n, total), total))
            with gathered_warnings() as caught:
                part_answers = question.answer(part.dataset, step)
            raised += [warning.message for warning in caught if isinstance(warning.message, InputWarning)]
            done += size
            if schema is None and part_answers is not None and part_answers.columns.num_columns:
                schema = part_answers.columns.schema
        held.append((replace(part, dataset=None), part_answers))
        if schema is not None:
            named = schema, reader.id_name or reader.id
            yield from ((one, _rows(one.ids, one.observed, answers, *named)) for one, answers in held)
            held = []
    for warning in _once(raised):
        warnings.warn(warning, stacklevel=3)
    if held:
        raise held[0][0].why or NoObservations("none of the series that are asked for can be answered")


def _pieces(part: Part, size: int) -> Iterator[Part]:
    """Yield a part of a table in pieces of whole series, each with about `size` observations or one series."""
    if part.dataset is None:
        yield part
        return
    lengths = np.zeros(len(part.ids), np.int64)
    lengths[part.observed] = part.dataset.lengths
    piece = (np.cumsum(lengths) - lengths) // size
    number = np.cumsum(part.observed) - part.observed  # of each series in the data set
    for k in np.unique(piece):
        inside = piece == k
        chosen = number[inside & part.observed]
        yield replace(
            part,
            ids=part.ids.filter(pa.array(inside)),
            observed=part.observed[inside],
            dataset=part.dataset.select(chosen) if len(chosen) else None,
        )


def _rows(ids: pa.Array, observed: np.ndarray, answers: Answers | None, schema: pa.Schema, name: str) -> pa.Table:
    """Return the answers of one part with an id column in front, for all its series in their order.

    Args:
        ids: [S] of all series.
        observed: bool [S], which series have answers; the others get one row with their id and empty cells.
        answers: for the observed series, in their order; None if there are none.
        schema: columns of the answers, for a part without any.
        name: of the id column.
    """
    lengths = np.ones(len(ids), np.int64)
    columns = schema.empty_table() if answers is None or not answers.columns.num_columns else answers.columns
    if answers is not None:
        lengths[observed] = answers.rows
    if answers is None or not observed.all():
        there = np.repeat(observed, lengths)
        columns = columns.take(pa.array(np.cumsum(there) - 1, mask=~there))
    if (lengths != 1).any():
        ids = ids.take(pa.array(np.repeat(np.arange(len(lengths)), lengths)))
    return with_ids(columns, ids, name)


def answer_arrays(question: Question, dataset: ArrayDataset, out: Path, on_step: OnProgress | None = None) -> Totals:
    """Write the answers for pictures or sounds to a .csv or .parquet file; return how many rows that are.

    Files that could not be read get a row with their name alone, at the end; in the totals they are `empty`.

    Args:
        on_step: handed to the question.
    """
    ids = pa.array([*dataset.ids.tolist(), *dataset.reading.left_out])
    answers = question.answer(dataset, on_step)
    observed = np.arange(len(ids)) < len(dataset)
    write_parts([_rows(ids, observed, answers, answers.columns.schema, dataset.id_name)], out)
    return Totals(len(ids), len(dataset.reading.left_out), len(ids), what="files that cannot be read")


def _once(raised: list[InputWarning]) -> Iterator[InputWarning]:
    """Yield the first warning of each kind, with the number of other texts of that kind at its end.

    A kind is a code, or for the code "invalid" a text.
    """
    kinds: dict[str, list[str]] = {}
    for warning in raised:
        texts = kinds.setdefault(str(warning) if warning.code == "invalid" else warning.code, [])
        if str(warning) not in texts:
            texts.append(str(warning))
    for texts in kinds.values():
        more = len(texts) - 1
        yield InputWarning(texts[0] + (f" ({more} more warnings are like this.)" if more else ""))


def _checked(question: Question, reader: TableReader) -> Iterator[Part]:
    """Yield the parts of a table, as the question needs them.

    For a question with a table of query times, series without observations that it does not ask for are left out of
    the part's ids; series with observations stay, as they simply get no row.

    Raises:
        InputError: after the last part, where the table of query times names a series that was not in any part.
    """
    seen: list[Any] = []
    query_table = question.at
    query_ids = set() if query_table is None else set(map(as_text, query_table.ids))
    for part in reader.parts():
        if query_table is not None:
            ids = part.ids.to_pylist()
            seen += ids
            # One with observations has as many rows as it is asked for.
            kept = part.observed | np.array([as_text(name) in query_ids for name in ids], bool)
            part = replace(part, ids=part.ids.filter(pa.array(kept)), observed=part.observed[kept])
        yield part
    if query_table is not None:
        query_table.refuse_others(seen)


# ── for Arrow tables ────────────────────────────────────────────────────────────────────────────────────────────────


def embed_table(
    table: pa.Table,
    model: str | Path | Pipeline,
    layout: TableSchema | None = None,
    *,
    pool: AutoPool = "auto",
    stage: ModelStage = "pretrained",
) -> pa.Table:
    """Return one vector per series of a table, as a table: the ids, and the columns e0, e1, ... (float32).

    Rows are in the order in which the series first appear.

    Args:
        table: long, wide or nested.
        model: a pipeline, or what `Pipeline.load` reads.
        layout: columns of the table; None means as the pipeline's training table. `Pipeline.layout` changes single
            columns of it.
        pool: the mean or maximum over a series' observations, the [CLS] token, or what the model was trained to use
            ("auto").
        stage: the pre-trained or the fine-tuned model of a folder; a `Pipeline` is taken as it is.

    Raises:
        InputError: a table that cannot be read; stage "finetuned" of a folder without such a model.
        ModelDirectoryError: a folder that is no whole model.
    """
    question = embeddings(model, pool) if isinstance(model, Pipeline) else open_embeddings(model, stage, pool)
    return answer_arrow(question, table, layout)


def answer_arrow(question: Question, table: pa.Table, layout: TableSchema | None = None) -> pa.Table:
    """Return the answers for an Arrow table: the ids, and the columns of the question.

    Rows are in the order in which the series first appear, or in that of the table of query times (`question.at`).

    Args:
        layout: columns of the table; None means as the training table of the question's pipeline.

    Raises:
        InputError: a table that cannot be read, or that the question cannot answer.
    """
    layout = layout or question.pipeline.layout()
    answers = pa.concat_tables(answer_table(question, question.pipeline.reader(table, layout)))
    return answers if question.at is None else question.at.in_order(answers)


def answer_table(question: Question, reader: TableReader) -> Iterator[pa.Table]:
    """Yield the answers for a table in parts, each with the id column; at least one, without rows for an empty table.

    Raises:
        InputError: as `answer_parts`; a table without rows where the columns depend on the rows.
    """
    empty = True
    for _, answers in answer_parts(question, reader):
        empty = False
        yield answers
    if empty:
        if question.schema is None:
            raise NoObservations("the table has no rows; there is nothing to answer for.")
        nobody = pa.array([], reader.source.kinds.get(reader.id, pa.string()))
        yield with_ids(question.schema.empty_table(), nobody, reader.id_name or reader.id)
