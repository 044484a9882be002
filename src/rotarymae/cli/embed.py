"""rotarymae embed: one vector per series."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from rotarymae.cli.folders import FolderReading, read_any
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
    from rotarymae.checkpoints import open_model
    from rotarymae.tasks import embed as run
    from rotarymae.tasks import embedding_table, with_empty_rows, write_table

    reporter = new_reporter(quiet)
    check_new(out)
    with reporter.catching_warnings():
        directory = open_model(model, stage)
        with reporter.bar("reading") as on_file:
            dataset = read_any(directory, table, columns, folder, on_file)
        with reporter.bar("embedding") as on_step:
            found = run(directory, dataset, None if pool == "auto" else pool, on_step=on_step)
        write_table(with_empty_rows(embedding_table(dataset, found), dataset), out)
    reporter.say(f"{len(dataset)} embeddings of {found.shape[1]} numbers → {out}{empty_rows(dataset)}")
