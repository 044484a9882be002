"""Output of the commands, which nothing overwrites. Heavy modules are imported inside."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rotarymae import system
from rotarymae.errors import InputError


def new_reporter(quiet: bool) -> system.Reporter:
    return system.Reporter(quiet)


def typed_command() -> str:
    return shlex.join(["rotarymae", *sys.argv[1:]])


def check_new(out: Path) -> None:
    """Raise InputError, before any work, where the output file exists or has a suffix that cannot be written."""
    from rotarymae.run_folder import check_output

    if str(out) == "-":
        return
    check_output(out)
    if out.exists():
        raise InputError(f"{out} exists; choose another name, or remove it.")


@contextmanager
def as_file(out: Path) -> Iterator[Path]:
    """Yield the path to write to; for "-" a temporary file, which goes to standard output as CSV at the end."""
    if str(out) != "-":
        yield out
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        yield path
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def are_shards(table: Path, out: Path, workers: int) -> bool:
    """Return whether every file of the folder or pattern `table` gets its own output file in the folder `out`.

    Raises:
        InputError: several workers for a single file; and as `check_new`.
    """
    if out.suffix == "" and "-" not in (str(out), str(table)) and not table.is_file():
        if workers < 1:
            raise InputError(f"--workers is {workers}; wanted at least 1.")
        return True
    check_new(out)
    if workers != 1:
        raise InputError(f"--workers {workers} share a folder of tables; give a folder as TABLE and one as --out.")
    return False


def print_metrics(metrics: dict[str, Any], reporter: system.Reporter) -> None:
    """Print one table of metrics per task, with a column for the model and for each baseline."""
    from rotarymae.metrics import early_rows, interval_words, rows_in_words, scored_words
    from rotarymae.partners import TASKS

    where = "" if "horizon" in metrics else f"on {scored_words(metrics)}"
    for task in TASKS:
        if task in metrics:
            print_table(f"{task}, {where}", rows_in_words(metrics[task]), reporter, interval_words(metrics))
    if "early" in metrics:
        by_method: dict[str, dict[str, float]] = {}
        for metric, methods in early_rows(metrics).items():
            for method, spans in methods.items():
                rows = by_method.setdefault(method, {})
                rows |= {f"{metric}, {span}": score for span, score in spans.items()}
        early = metrics["early"]
        print_table(
            f"what was known so long after the first {early['first']}, {early['series']:,} series", by_method, reporter
        )
    for name, row in (metrics.get("interpolation") or metrics.get("forecasts", {})).items():
        rows = rows_in_words(row["methods"])
        rows["model"] |= {
            f"inside {100 * float(share):.0f} %": inside for share, inside in row.get("share_inside_band", {}).items()
        }
        title = f"{name} at {row['hidden_observations']:,} hidden observations, {where}"
        if "horizon" in metrics:
            title = f"{name} up to {metrics['horizon']} ahead, {row['hidden_observations']:,} forecasts"
        print_table(title, rows, reporter)
    if "reconstruction" in metrics:
        row = metrics["reconstruction"]
        print_table(f"{row['hidden_patches']:,} hidden patches, {where}", rows_in_words(row["methods"]), reporter)


def print_table(title: str, rows: dict[str, dict[str, float]], reporter: system.Reporter, caption: str = "") -> None:
    """Print a table with one row per metric and one column per method, given as {method: {metric: value}}."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    if reporter.quiet:
        return
    table = Table("", title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for method in rows:
        table.add_column(method, justify="right", overflow="fold")
    for metric in rows["model"]:
        table.add_row(metric, *(f"{row[metric]:.4g}" if metric in row else "" for row in rows.values()))
    console = Console()  # results go to standard output, progress to standard error
    console.print(table)
    if caption:
        console.print(caption, highlight=False, markup=False)


def print_end(seconds: float, page: Path, reporter: system.Reporter) -> None:
    reporter.say(
        f"took {system.duration(seconds)}; " + (f"the report is {page}" if page.exists() else f"there is no {page}")
    )
