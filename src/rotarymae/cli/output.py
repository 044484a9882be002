"""Output of the commands, which nothing overwrites. Heavy modules are imported inside."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rotarymae import system
from rotarymae.errors import InputError, printable

if TYPE_CHECKING:
    from rotarymae.outcome import Outcome
    from rotarymae.report.content import Table


MOST_COLUMNS = 6  # of a printed table


def typed_command() -> str:
    """Return the command line of this process, quoted for a shell, with "rotarymae" as its first word."""
    return shlex.join(["rotarymae", *sys.argv[1:]])


def check_new(out: Path) -> None:
    """Raise InputError for an output file that exists, ends in neither .csv nor .parquet, or cannot be written.

    "-" (standard output) is always accepted.
    """
    from rotarymae.run_folder import check_output

    check_output(out)
    if str(out) != "-" and out.exists():
        raise InputError(f"{out} exists, and is not overwritten; choose another name, or remove it.")


def are_shards(table: Path, out: Path, workers: int) -> bool:
    """Return whether each table of a folder gets a separate output file, in the folder `out`.

    True if `out` has no suffix, `table` is not an existing file, and neither is "-" (standard input or output).

    Args:
        table: a file, a folder, a pattern or "-".
        out: a file, a folder or "-"; it need not exist.
        workers: number of processes, as typed.

    Raises:
        InputError: fewer than one worker where the result would be True; any number but one where it would be False.
    """
    if out.suffix == "" and "-" not in (str(out), str(table)) and not table.is_file():
        if workers < 1:
            raise InputError(f"--workers is {workers}; wanted at least 1.")
        return True
    if workers != 1:
        raise InputError(
            f"--workers {workers} is for a folder of tables, and TABLE or --out is a single file; give folders as "
            "both, or leave --workers out."
        )
    return False


def print_metrics(metrics: dict[str, Any], reporter: system.Reporter) -> None:
    """Print the tables that compare methods, of the content of a metrics.json, unless `reporter` is quiet."""
    from rotarymae.report.content import comparisons

    for table in comparisons(metrics):
        print_table(table, reporter)


def print_table(table: Table, reporter: system.Reporter) -> None:
    """Print a table, its title and its caption to standard output, unless `reporter` is quiet.

    As a terminal is narrow, a table of at most 6 rows is transposed: its columns become rows. Where a row lacks a
    column, the cell is empty. Names are printed as they are, but for control codes, which are escaped.
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
    grid = Grid("", title=printable(table.title), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in columns:
        grid.add_column(printable(column), justify="right", overflow="fold")
    for name, row in rows.items():
        grid.add_row(printable(name), *(printable(cell_text(row.get(column, ""))) for column in columns))
    console = Console(highlight=False, markup=False, emoji=False)  # on standard output; names may hold brackets
    console.print(grid)
    if table.caption:
        console.print(table.caption)


def print_outcome(outcome: Outcome, page: Path, reporter: system.Reporter) -> None:
    """Print the metrics of a run, how long it took, and the path `page` of its report, or that there is none.

    Nothing is printed if `reporter` is quiet.
    """
    print_metrics(outcome.metrics, reporter)
    where = f"the report is {page}" if page.exists() else f"there is no {page}"
    reporter.say(f"took {system.duration(outcome.seconds)}; {where}")
