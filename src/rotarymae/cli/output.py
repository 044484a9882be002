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
    """Return a reporter that prints progress to standard error; with `quiet`, only warnings and errors."""
    return system.Reporter(quiet)


def typed_command() -> str:
    """Return the command line of this process, quoted for a shell."""
    return shlex.join(["rotarymae", *sys.argv[1:]])


def check_new(out: Path) -> None:
    """Raise InputError, before any work, for a file that exists, is no .csv or .parquet, or cannot be made.

    "-" (standard output) is always accepted.
    """
    from rotarymae.run_folder import check_output

    if str(out) == "-":
        return
    check_output(out)
    if out.exists():
        raise InputError(f"{out} exists; choose another name, or remove it.")


@contextmanager
def as_file(out: Path) -> Iterator[Path]:
    """Yield the path to write to: `out` itself, or for "-" a temporary .csv file.

    The temporary file is copied to standard output at the end of the `with` block, unless an error leaves the block.
    """
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

    It does where `out` has no suffix and `table` is no file; a lone "-" is no folder.

    Raises:
        InputError: less than one worker; for a single output, more than one worker, and as `check_new`.
    """
    if out.suffix == "" and "-" not in (str(out), str(table)) and not table.is_file():
        if workers < 1:
            raise InputError(f"--workers is {workers}; wanted at least 1.")
        return True
    check_new(out)
    if workers != 1:
        raise InputError(
            f"--workers {workers} is for a folder of tables, and TABLE or --out is a single file; give folders as "
            "both, or leave it out."
        )
    return False


def print_metrics(metrics: dict[str, Any], reporter: system.Reporter) -> None:
    """Print metrics to standard output, one table per task, with a row per metric and a column per method.

    Args:
        metrics: content of metrics.json; tasks that it lacks are left out.
        reporter: prints nothing if it is quiet.
    """
    from rotarymae.metrics import early_rows, interval_words, rows_in_words, scored_words
    from rotarymae.partners import TASKS

    where = f"on {scored_words(metrics)}"
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
    for name, row in metrics.get("interpolation", {}).items():
        rows = rows_in_words(row["methods"])
        rows["model"] |= {
            f"inside {100 * float(share):.0f} %": inside for share, inside in row.get("share_inside_band", {}).items()
        }
        print_table(f"{name} at {row['hidden_observations']:,} hidden observations, {where}", rows, reporter)
    if "reconstruction" in metrics:
        row = metrics["reconstruction"]
        print_table(f"{row['hidden_patches']:,} hidden patches, {where}", rows_in_words(row["methods"]), reporter)


def print_table(title: str, rows: dict[str, dict[str, float]], reporter: system.Reporter, caption: str = "") -> None:
    """Print a table to standard output, with a row per metric and a column per method; nothing if `reporter` is quiet.

    Args:
        rows: {method: {metric: value}}, among them the method "model", whose metrics are the rows. A metric that
            another method lacks is an empty cell.
        caption: line below the table; "" for none.
    """
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
    """Print how long a run took, and where its report `page` is, if it exists."""
    reporter.say(
        f"took {system.duration(seconds)}; " + (f"the report is {page}" if page.exists() else f"there is no {page}")
    )
