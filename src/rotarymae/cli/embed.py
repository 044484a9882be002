"""rotarymae embed: one vector per series."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from rotarymae.cli.folders import FolderReading
from rotarymae.cli.output import check_new, empty_rows, new_reporter
from rotarymae.cli.table import Columns, Model, Table


def embed(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    columns: Columns,
    folder: FolderReading,
    pool: Literal["auto", "mean", "cls"] = "auto",
    stage: Literal["pretrained", "finetuned"] = "pretrained",
    quiet: bool = False,
) -> None:
    """Turn every series of a table into one vector.

    For example: rotarymae embed run new.csv --out vectors.parquet

    Args:
        model: This folder was written by `fit`, or is a model directory.
        table: This table of observations is laid out as in training, unless options say otherwise; or it is a folder.
        out: The embeddings go to this new .csv or .parquet file, as id and the columns e0, e1, and so on.
        pool: The embedding is the mean over a series' tokens, the [CLS] token, or what the model was trained to use.
        stage: This model of the folder that `fit` wrote makes the embedding.
        quiet: Print only what goes wrong.
    """
    from rotarymae.scale import Embedding, answer_file
    from rotarymae.series import TableLayout

    reporter = new_reporter(quiet)
    check_new(out)
    with reporter.catching_warnings():
        job = Embedding.open(model, stage, pool)
        layout = TableLayout.for_model(job.directory.of_series(), asdict(columns))
        with reporter.bar("embedding") as on_step:
            totals = answer_file(job, table, out, layout, on_step)
    reporter.say(f"{totals.series:,} embeddings of {len(job.schema)} numbers → {out}{empty_rows(totals.empty)}")
