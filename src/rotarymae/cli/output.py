"""Output of the commands, which nothing overwrites. Heavy modules are imported inside."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rotarymae import system
from rotarymae.errors import InputError

if TYPE_CHECKING:
    from rotarymae.report.content import Table


MOST_COLUMNS = 6  # of a printed table


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

    check_output(out)
    if str(out) != "-" and out.exists():
        raise InputError(f"{out} exists; choose another name, or remove it.")


def are_shards(table: Path, out: Path, workers: int) -> bool:
    """Return whether each file of a folder of tables gets an output file of its own, in the folder `out`.

    This is so where `out` has no suffix and `table` is not a single file; neither may be "-". If it is not so, `out`
    must be a file that can be written.

    Args:
        table: a file, a folder of tables, a pattern, or "-" for standard input.
        out: a file, a folder, or "-" for standard output.
        workers: number of processes that the user asks for; more than one needs a folder of tables.

    Raises:
        InputError: fewer than one worker; for a single output more than one, or an `out` that `check_new` refuses.
    """
    if out.suffix == "" and "-" not in (str(out), str(table)) and not table.is_file():
        if workers < 1:
            raise InputError(f"--workers is {workers}; wanted at least 1.")
        return True
    check_new(out)
    if workers != 1:
        raise InputError(
            f"--workers {workers} is for a folder of tables, and TABLE or --out is a single file; give folders as "
            "both, or leave --workers out."
        )
    return False


def print_metrics(metrics: dict[str, Any], reporter: system.Reporter) -> None:
    """Print the tables of metrics that a report shows to standard output; nothing if `reporter` is quiet.

    Args:
        metrics: content of metrics.json.
    """
    from rotarymae.report.comparisons import comparisons

    for table in comparisons(metrics):
        print_table(table, reporter)


def print_table(table: Table, reporter: system.Reporter) -> None:
    """Print a table and its caption to standard output; nothing if `reporter` is quiet.

    A table of at most 6 rows, such as methods, is turned, with its columns as rows, as a terminal is narrow. A column
    that a row lacks is an empty cell.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as Grid

    from rotarymae.report.content import cell_text

    if reporter.quiet:
        return
    rows, columns = dict(table.rows), table.columns
    if len(rows) <= MOST_COLUMNS:
        rows, columns = {name: {method: row.get(name, "") for method, row in rows.items()} for name in columns}, [*rows]
    grid = Grid("", title=table.title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        grid.add_column(column, justify="right", overflow="fold")
    for name, row in rows.items():
        cells = (row.get(column, "") for column in columns)
        grid.add_row(name, *map(cell_text, cells))
    console = Console()  # results go to standard output, progress to standard error
    console.print(grid)
    if table.caption:
        console.print(table.caption, highlight=False, markup=False)


def print_end(seconds: float, page: Path, reporter: system.Reporter) -> None:
    """Print how long a run took, and where its report is; nothing if the reporter is quiet.

    Args:
        seconds: duration of the run.
        page: path of the report, which may not exist.
        reporter: prints the line to standard error.
    """
    reporter.say(
        f"took {system.duration(seconds)}; " + (f"the report is {page}" if page.exists() else f"there is no {page}")
    )
