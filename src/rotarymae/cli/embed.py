"""rotarymae embed: one vector per series."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from rotarymae.cli.answer import answer
from rotarymae.cli.folders import FolderReading
from rotarymae.cli.table import Columns, Model, Table
from rotarymae.config import Precision


def embed(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    columns: Columns,
    folder: FolderReading,
    pool: Literal["auto", "mean", "max", "cls"] = "auto",
    stage: Literal["pretrained", "finetuned"] = "pretrained",
    precision: Precision = "auto",
    workers: int = 1,
    quiet: bool = False,
) -> None:
    """Turn every series of a table into one vector.

    For example: rotarymae embed run new.csv --out vectors.parquet

    Args:
        model: This folder was written by `fit`, or is a model directory.
        table: This table of observations is laid out as in training, unless options say otherwise; or it is a folder.
        out: The embeddings go to this new .csv or .parquet file, as id and the columns e0, e1, and so on; of a folder
            of tables they go to this folder, a file for each, and what is there already is not done again.
        pool: The embedding is the mean or maximum over a series' tokens, the [CLS] token, or what the model was trained
            to use.
        stage: This model of the folder that `fit` wrote makes the embedding.
        precision: Matrix products are computed in this precision; "auto" takes bf16 where the hardware has units for
            it.
        workers: So many processes share a folder of tables; more may run the same command elsewhere.
        quiet: Print only what goes wrong.
    """
    from rotarymae.scale import Embedding, Job

    def what(job: Job) -> str:
        return f"embeddings of {len(job.schema or ())} numbers"

    opened = partial(Embedding.open, model, stage, pool, precision)
    options = {"stage": stage, "pool": pool, "precision": precision}
    answer(opened, "embed", what, model, options, table, out, columns, folder, workers, quiet)
