"""rotarymae predict: the label of every series."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tyro.conf import Positional

from rotarymae.cli.answer import answer
from rotarymae.cli.folders import FolderReading
from rotarymae.cli.table import Columns, Model, Table
from rotarymae.config import Precision
from rotarymae.tasks import Predicting


def predict(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    columns: Columns,
    folder: FolderReading,
    predictor: Predicting = "auto",
    surprise: bool = False,
    precision: Precision = "auto",
    workers: int = 1,
    quiet: bool = False,
) -> None:
    """Predict the label of every series in a table.

    For example: rotarymae predict run new.csv --out predictions.csv

    Args:
        model: This folder was written by `fit`, or is a model directory, which has the model alone.
        table: This table of observations is laid out as in training, unless options say otherwise; or it is a folder.
        out: The predictions go to this new .csv or .parquet file: id, predicted, and a probability per class; of a
            folder of tables they go to this folder, a file for each, and what is there already is not done again.
        predictor: The model predicts, gradient boosting (features), both (combined), or what `fit` chose (auto).
        surprise: A column says how badly the pre-trained model foresees each series' observations, a quarter hidden at
            a time (mean negative log-likelihood, in nats): high ones may be anomalies. It takes about five times as
            long. A run without labels has this column alone.
        precision: Matrix products are computed in this precision; "auto" takes bf16 where the hardware has units for
            it.
        workers: So many processes share a folder of tables; more may run the same command elsewhere.
        quiet: Print only what goes wrong.
    """
    from rotarymae.scale import Job, open_predicting

    def what(job: Job) -> str:
        return "predictions" if len(job.schema or ()) > 1 or not surprise else "surprises"

    opened = partial(open_predicting, model, predictor, surprise, precision)
    options = {"predictor": predictor, "surprise": surprise, "precision": precision}
    answer(opened, "predict", what, model, options, table, out, columns, folder, workers, quiet)
