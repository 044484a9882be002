"""rotarymae features: a table of named numbers for each series, without any training."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rotarymae import system, tables
from rotarymae.cli.inputs import Columns, Quiet, TablePath
from rotarymae.cli.output import check_new


def features_command(
    table: Positional[TablePath],
    out: Path,
    columns: Columns,
    errors: Annotated[tuple[str, ...], arg(help_behavior_hint="(default: none)")] = (),
    static: Annotated[tuple[str, ...], arg(help_behavior_hint="(default: none)")] = (),
    quiet: Quiet = False,
) -> None:
    """Compute features of each series (levels, shapes, outbursts, periods, noise, colours), and write one row for each.

    For example: rotarymae features stars.csv --id star --time day --channel band --values flux --out features.parquet.
    Nothing is trained. A feature that a series does not have, such as a period of two observations, is an empty cell.

    Args:
        table: The observations, one per row: a file, a folder of files, a quoted pattern, or - for standard input.
        out: New .csv or .parquet file: the ids of the series and a column per feature; - prints CSV.
        errors: Reading: columns with the standard errors of the values, in the order of --values. Name them if the
            table has them: there are further features then, and the peak is the largest value less its error.
        static: Reading: columns with one value per series, of the table or of --objects, that hold the redshift and the
            reddening E(B - V) of light curves. Their features are then those at rest, without the dust.
    """
    reporter = system.Reporter(quiet)
    check_new(out)
    layout = replace(tables.TableSchema.resolve(asdict(columns)), errors=errors, static=static)
    with reporter.catching_warnings(), reporter.bar("reading"):
        dataset = tables.read_table(table, layout)
    import numpy as np
    import pyarrow as pa

    from rotarymae.partners import BoostedFeatures
    from rotarymae.partners import features as compute
    from rotarymae.run_folder import with_ids, write_parts

    if note := BoostedFeatures.note_for_user(dataset, static):
        reporter.say(note)
    with reporter.bar("features"):
        numbers, names = compute(dataset)
    arrays = {name: pa.array(column, mask=np.isnan(column)) for name, column in zip(names, numbers.T, strict=True)}
    write_parts([with_ids(pa.table(arrays), pa.array(dataset.ids.tolist()), dataset.id_name)], out)
    reporter.say(f"{len(names)} features of {len(dataset):,} series → {out}")
