"""rotarymae explain: which observations mattered."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from tyro.conf import Positional

from rotarymae.cli.output import check_new, new_reporter
from rotarymae.cli.table import Columns, Model, Table
from rotarymae.tasks import ImportanceMethod


def explain(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    columns: Columns,
    method: ImportanceMethod = "occlusion",
    quiet: bool = False,
) -> None:
    """Say how much each observation matters to the model's prediction.

    For example: rotarymae explain run new.csv --out importance.csv

    Args:
        model: This folder was written by `fit`, or is the directory of a fine-tuned model, which alone is explained.
        table: This table of observations is laid out as in training, unless options say otherwise.
        out: The answers go to this new .csv or .parquet file, with a row per observation: its time, channel and values,
            what the model predicts for the series, and the observation's importance.
        method: Each observation is left out in turn (occlusion, as slow as a prediction per observation), or the
            attention that it gets is taken (attention).
        quiet: Print only what goes wrong.
    """
    from rotarymae.scale import Explaining, answer_file
    from rotarymae.series import TableLayout

    reporter = new_reporter(quiet)
    check_new(out)
    with reporter.catching_warnings():
        job = Explaining.open(model, method)
        layout = TableLayout.for_model(job.directory.of_series(), asdict(columns))
        with reporter.bar("explaining") as on_step:
            totals = answer_file(job, table, out, layout, on_step)
    rows = totals.rows - totals.empty
    reporter.say(f"{rows:,} observations of {totals.answered:,} series → {out}{totals.said_of_empty}")
