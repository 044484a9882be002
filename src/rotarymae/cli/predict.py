"""rotarymae predict: the label of every series."""

from __future__ import annotations

from pathlib import Path

from tyro.conf import Positional

from rotarymae.cli.folders import FolderReading, read_any
from rotarymae.cli.output import check_new, empty_rows, new_reporter
from rotarymae.cli.table import Columns, Model, Table
from rotarymae.errors import InputError
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
    import pyarrow as pa

    from rotarymae.checkpoints import open_model
    from rotarymae.heads import Classifier, Regressor
    from rotarymae.tasks import (
        Predictor,
        predict_probabilities,
        predict_values,
        prediction_columns,
        with_empty_rows,
        write_table,
    )

    reporter = new_reporter(quiet)
    check_new(out)
    with reporter.catching_warnings():
        directory = open_model(model, "finetuned")
        if not isinstance(directory.model, Classifier | Regressor):
            raise InputError(
                f"{model} is a {type(directory.model).__name__}; predictions need a fine-tuned Classifier or "
                "Regressor, which `rotarymae fit` with --labels makes."
            )
        chosen = Predictor.of_run(model, directory)
        chosen.check(predictor)
        with reporter.bar("reading") as on_file:
            dataset = read_any(directory, table, columns, folder, on_file)
        job = predict_probabilities if isinstance(directory.model, Classifier) else predict_values
        with reporter.bar("predicting") as on_step:
            found = chosen.predict(job(directory, dataset, on_step=on_step), dataset, predictor)
        answers = pa.table({"id": pa.array(dataset.ids.tolist()), **prediction_columns(directory, found)})
        write_table(with_empty_rows(answers, dataset), out)
    reporter.say(f"{len(dataset)} predictions → {out}{empty_rows(dataset)}")
