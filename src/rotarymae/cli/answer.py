"""What `embed` and `predict` have in common: a table, a folder of tables, or a folder of pictures or sounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rotarymae.cli.folders import FolderReading, read_folder
from rotarymae.cli.output import are_shards, check_new, new_reporter
from rotarymae.cli.table import Columns

if TYPE_CHECKING:
    from rotarymae.scale import Job


def answer(
    open_job: Callable[[], Job],
    command: str,
    what: Callable[[Job], str],
    model: Path,
    options: dict[str, Any],
    table: Path,
    out: Path,
    columns: Columns,
    folder: FolderReading,
    workers: int,
    quiet: bool,
) -> None:
    """Writes what a model says of each series or file, and says how many there are.

    Args:
        open_job: loads the model; also called in each worker process.
        command: "embed" or "predict".
        what: its answers, in words.
        options: those of the job, for the manifest of a folder of shards.
    """
    from rotarymae.arrays import ArrayPreprocessor
    from rotarymae.scale import ShardedJob, answer_arrays, answer_file, answer_shards
    from rotarymae.series import TableLayout

    reporter, sharded = new_reporter(quiet), are_shards(table, out, workers)
    title = {"embed": "embedding", "predict": "predicting"}[command]
    with reporter.catching_warnings():
        job = open_job()
        if isinstance(job.directory.preprocessor, ArrayPreprocessor):
            check_new(out)
            with reporter.bar("reading") as on_file:
                files = read_folder(table, job.directory.preprocessor, folder, on_file).dataset
            with reporter.bar(title) as on_step:
                totals = answer_arrays(job, files, out, on_step)
        else:
            layout = TableLayout.for_model(job.directory.of_series(), asdict(columns))
            if sharded:
                work = ShardedJob(open_job, command, model, options, layout)
                with reporter.bar("shards") as on_step:
                    done = answer_shards(work, table, out, workers, on_step)
                before = f", {done.before:,} of them before" if done.before else ""
                reporter.say(f"{done.rows:,} {what(job)} from {done.shards:,} shards{before} → {out}")
                return
            with reporter.bar(title) as on_step:
                totals = answer_file(job, table, out, layout, on_step)
    reporter.say(f"{totals.answered:,} {what(job)} → {out}{totals.said_of_empty}")
