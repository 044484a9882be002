"""rotarymae predict: the label of every series."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from tyro.conf import Positional

from rotarymae.cli.folders import FolderReading
from rotarymae.cli.output import check_new, empty_rows, new_reporter
from rotarymae.cli.table import Columns, Model, Table
from rotarymae.tasks import Predicting


def predict(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    columns: Columns,
    folder: FolderReading,
    predictor: Predicting = "auto",
    quiet: bool = False,
) -> None:
    """Predict the label of every series in a table.

    For example: rotarymae predict run new.csv --out predictions.csv

    Args:
        model: This folder was written by `fit`, or is a model directory, which has the model alone.
        table: This table of observations is laid out as in training, unless options say otherwise; or it is a folder.
        out: The predictions go to this new .csv or .parquet file: id, predicted, and a probability per class.
        predictor: The model predicts, gradient boosting (features), both (combined), or what `fit` chose (auto).
        quiet: Print only what goes wrong.
    """
    from rotarymae.scale import Predicting as Job
    from rotarymae.scale import answer_file
    from rotarymae.series import TableLayout

    reporter = new_reporter(quiet)
    check_new(out)
    with reporter.catching_warnings():
        job = Job.open(model, predictor)
        layout = TableLayout.for_model(job.directory.of_series(), asdict(columns))
        with reporter.bar("predicting") as on_step:
            totals = answer_file(job, table, out, layout, on_step)
    reporter.say(f"{totals.series:,} predictions → {out}{empty_rows(totals.empty)}")
