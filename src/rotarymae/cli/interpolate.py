"""rotarymae interpolate: values at any times."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rotarymae.cli.output import check_new, new_reporter
from rotarymae.cli.table import Columns, Model, Table
from rotarymae.config import Precision
from rotarymae.errors import InputError


def interpolate(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    columns: Columns,
    at: Annotated[Path | None, arg(help_behavior_hint="(default: no table)")] = None,
    times: Annotated[tuple[str, ...], arg(help_behavior_hint="(default: no times)")] = (),
    grid: Annotated[int | None, arg(help_behavior_hint="(default: 100, if no times are given)")] = None,
    precision: Precision = "auto",
    quiet: bool = False,
) -> None:
    """Predict values at any times, with standard deviations and 68 and 95 % bands.

    For example: rotarymae interpolate run new.csv --times 0 0.5 1 --out values.csv

    Args:
        model: This folder was written by `fit`, or is the directory of a pre-trained model.
        table: This table of observations is laid out as in training, unless options say otherwise.
        out: The answers go to this new .csv or .parquet file, with the mean, deviation and bands of each value.
        at: This table holds the wanted times, with columns of ids, times and channels; without channels, of all.
            With the columns of errors that fit was given, bands are those of an observation, and not of the curve.
        times: These numbers or dates (2024-03-31T10:00) are the wanted times of every series and channel.
        grid: So many even times are wanted, from each series' first to its last observation, for every channel.
        precision: Matrix products are computed in this precision; "auto" takes bf16 where the hardware has units for
            it.
        quiet: Print only what goes wrong.
    """
    from rotarymae.checkpoints import open_model
    from rotarymae.scale import Interpolating, answer_file
    from rotarymae.series import TableLayout
    from rotarymae.tasks import QueryTable

    reporter = new_reporter(quiet)
    check_new(out)
    if sum([at is not None, bool(times), grid is not None]) > 1:
        raise InputError("give one of --at, --times and --grid.")
    with reporter.catching_warnings():
        directory = open_model(model, "pretrained", precision)
        layout = TableLayout.for_model(directory.of_series(), asdict(columns))
        asked = None if at is None else QueryTable.read(at, layout)
        job = Interpolating(directory, 100 if grid is None else grid, times, asked)
        with reporter.bar("interpolating") as on_step:
            totals = answer_file(job, table, out, layout, on_step)
    values, observed = totals.rows - totals.empty, totals.answered
    said = f"{values:,} values of {observed if asked is None else len(asked.ids):,} series"
    said += f", {totals.extrapolated:,} of them extrapolated" if totals.extrapolated else ""
    reporter.say(f"{said} → {out}{totals.said_of_empty}")
