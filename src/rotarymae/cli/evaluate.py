"""rotarymae evaluate: scores on a labelled table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rotarymae.cli.folders import FolderReading, known_labels, read_folder
from rotarymae.cli.output import new_reporter, print_metrics
from rotarymae.cli.table import Columns, ComputedIn, LabelColumn, Model, Quiet, Table
from rotarymae.errors import InputError


def evaluate(
    model: Positional[Model],
    table: Positional[Table],
    columns: Columns,
    labels: LabelColumn,
    folder: FolderReading,
    out: Annotated[Path | None, arg(help_behavior_hint="(default: no file)")] = None,
    precision: ComputedIn = "auto",
    quiet: Quiet = False,
) -> None:
    """Score the predictions for a labelled table that the model has not seen.

    For example: rotarymae evaluate run new.csv --labels kinds.csv --label kind --out metrics.json

    Args:
        model: This folder was written by `fit`, or is a model directory.
        table: This table of observations is laid out as in training, unless options say otherwise; or it is a folder
            of pictures or sounds with one folder per class.
        out: The metrics go to this new JSON file as well.
    """
    from rotarymae.arrays import ArrayPreprocessor
    from rotarymae.checkpoints import open_model
    from rotarymae.series import TableLayout
    from rotarymae.system import write_text
    from rotarymae.tasks import Predictor, as_json, evaluate_predictions

    reporter = new_reporter(quiet)
    if out is not None and out.exists():
        raise InputError(f"{out} exists; choose another name, or remove it.")
    with reporter.catching_warnings():
        directory = open_model(model, "finetuned", precision)
        predictor = Predictor.of_run(model, directory)
        of_table = labels.labels is not None or labels.label is not None
        made_of = directory.preprocessor
        with reporter.bar("reading") as on_file:
            if isinstance(made_of, ArrayPreprocessor):
                if of_table:
                    raise InputError("--labels and --label concern tables; a picture's or sound's class is its folder.")
                found = read_folder(table, made_of, folder, on_file)
                dataset, targets = found.dataset, known_labels(found, table, made_of.classes or ())
            else:
                if not of_table:
                    raise InputError(
                        "evaluate needs the true labels: name their column by --label, or their table by --labels."
                    )
                known = directory.of_series()
                layout = TableLayout.for_model(known, asdict(columns))
                dataset = layout.read(table, known.channel_names, labels.beside, known.value_columns)
                targets = labels.read(dataset, layout, table)
        with reporter.bar("predicting") as on_step:
            metrics = evaluate_predictions(directory, predictor, dataset, targets, on_step=on_step)
    if out is not None:
        write_text(out, as_json(metrics))
    print_metrics(metrics, reporter)
