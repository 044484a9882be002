"""Read result files, and set what was measured here next to what others published, on a page."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rotarymae.errors import InputError
from rotarymae_experiments.runner import SCALES, SETTINGS, Recipe, Result, Row

KINDS = {"recipe": str, "setting": str, "scale": str, "date": str, "hardware": str, "hours": float, "config": dict}
KINDS |= {"cases": dict, "command": str, "versions": dict}
NOT_AT_HAND = "data not at hand; command ready"


@dataclass(frozen=True)
class Line:
    """One row of the table.

    Attributes:
        recipe: its name.
        row: what it is, and what others published.
        simple: the figure of the simple method, or of the exact optimum, with its name.
        measured: by setting, the figure with spread, seeds and scale, or why there is no figure.
        outcome: the state of a published figure: in doubt or not, and the largest scale at which it was measured
            here, or why it was not. Empty where nothing was published.
    """

    recipe: str
    row: Row
    simple: str
    measured: dict[str, str]
    outcome: str

    def cells(self) -> dict[str, str]:
        """Return the columns of the table by their headings; doubts are listed below it."""
        row = self.row
        return {
            "what": row.what,
            "paper": row.paper,
            "best other": row.best,
            "simple or optimum": self.simple,
            "`paper` here": self.measured["paper"],
            "`ours` here": self.measured["ours"],
            "aim": row.aim,
        }


def read(folder: Path) -> list[tuple[Path, Result]]:
    """Return (path, content) of each result file of a folder, sorted by name; files of benchmarks are left out.

    Raises:
        InputError: the folder is missing; another JSON file in it is not a result file of this library.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; `rotarymae-experiments run NAME` writes result files to results/.")
    # The benchmarks' files have a format of their own.
    return [(path, read_file(path)) for path in sorted(folder.glob("*.json")) if not path.match("benchmark*")]


def read_file(path: Path) -> Result:
    """Return the content of a result file. Raises InputError if the file cannot be read or is none."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    version = result.get("format") if isinstance(result, dict) else None
    if version != 1:
        raise InputError(f"{path} is no result file of this library (format {version!r}; wanted 1).")
    for key, kind in KINDS.items():
        if not isinstance(result.get(key), kind):
            raise InputError(f"{path} is no whole result file: {key} is {result.get(key)!r:.60}.")
    return result


def table(recipes: Sequence[Recipe], results: Sequence[Result]) -> list[Line]:
    """Return a line of the table of results for every row of every recipe, in their order.

    A row takes, for each setting, the newest of the runs at the largest scale that measured it; smoke runs never count.
    """
    lines = []
    for recipe in recipes:
        for row in recipe.rows:
            runs = {setting: _chosen(results, recipe.name, setting, row) for setting in SETTINGS}
            absent = NOT_AT_HAND if row.case in recipe.not_at_hand else "not run"
            measured = {name: absent if run is None else _measured(run, row) for name, run in runs.items()}
            simple = next((_simple(run, row) for run in reversed(runs.values()) if run is not None), "")
            scales = [run["scale"] for run in runs.values() if run is not None]
            if row.paper == Row.paper:  # nothing was published
                outcome = ""
            elif scales:
                doubt = "in doubt, and " if row.doubt else ""
                outcome = f"{doubt}measured at scale {max(scales, key=SCALES.index)}"
            else:
                outcome = absent if absent == NOT_AT_HAND else f"{absent}; command ready"
            lines.append(Line(recipe.name, row, simple, measured, outcome))
    return lines


def _chosen(results: Sequence[Result], name: str, setting: str, row: Row) -> Result | None:
    """Return the run that counts for a row of the recipe `name` in a setting: at the largest scale, of these the last.

    None if no run, other than at scale smoke, has the row's metric.
    """
    runs = [
        result
        for result in results
        if (result["recipe"], result["setting"]) == (name, setting)
        and result["scale"] != "smoke"
        and row.metric in result["cases"].get(row.case, {"metrics": {}})["metrics"]
    ]
    return max(runs, key=lambda result: (SCALES.index(result["scale"]), result["date"]), default=None)


def _simple(result: Result, row: Row) -> str:
    """Return name and measured mean of a row's simple method in a run, such as "MSE of lines 0.44"; "" without one."""
    metrics = result["cases"][row.case]["metrics"]
    return f"{row.simple} {_number(metrics[row.simple]['mean'])}" if row.simple in metrics else ""


def _measured(result: Result, row: Row) -> str:
    """Return a row's measured mean in a run as text, such as "0.29 ± 0.01 (5 seeds, small)"; one seed has no spread."""
    numbers = result["cases"][row.case]["metrics"][row.metric]
    seeds = sum(value is not None for value in numbers["each"])
    spread = "" if numbers["std"] is None else f" ± {_number(numbers['std'], 2)}"
    return f"{_number(numbers['mean'])}{spread} ({seeds} seed{'s' if seeds > 1 else ''}, {result['scale']})"


def _number(value: float, digits: int = 4) -> str:
    """Return a number as text with this many significant digits; from 1e5 on with an exponent and three digits."""
    return f"{value:.{digits}g}" if abs(value) < 1e5 else f"{value:.2e}"


def page(recipes: Sequence[Recipe], files: Sequence[tuple[Path, Result]], path: Path, notes: Path) -> str:
    """Return the page of results as Markdown: for each recipe its rows, pictures, doubts, text, notes, and runs.

    Args:
        recipes: in the order of the page.
        files: (path, content) of the result files; pictures lie next to them.
        path: where the page will be written, from where its links lead.
        notes: folder of the files NAME.md, which are copied into the page; one may be missing.
    """
    rows = table(recipes, [result for _, result in files])
    lines = ["# Results", "", *INTRODUCTION, *_overview(recipes, rows)]
    for recipe in recipes:
        group = [line for line in rows if line.recipe == recipe.name]
        question, about = recipe.describe()
        lines += ["", f"## {recipe.name}: {recipe.table}", "", question, ""]
        lines += _markdown([line.cells() for line in group])
        runs = [(file, result) for file, result in files if result["recipe"] == recipe.name]
        figures: list[Path] = []
        stems = [file.stem for file, _ in runs]
        for stem, (file, _) in zip(stems, runs, strict=True):
            longer = [f"{other}-" for other in stems if len(other) > len(stem)]  # those of a further run, NAME-2
            figures += [
                figure
                for figure in sorted(file.parent.glob(f"{stem}-*.png"))
                if not figure.stem.startswith(tuple(longer))
            ]
        for figure in figures:
            lines += ["", f"![{figure.stem}]({_link(figure, path)})"]
        for doubt in dict.fromkeys(line.row.doubt for line in group if line.row.doubt):
            of = ", ".join(line.row.what for line in group if line.row.doubt == doubt)
            lines += ["", f"In doubt ({of}): {doubt}"]
        note = notes / f"{recipe.name}.md"
        more = note.read_text(encoding="utf-8").strip() if note.exists() else ""
        lines += [line for text in (about, more) if text for line in ("", text)]
        lines += ["", *(_run(file, result, path) for file, result in runs)] if runs else []
    return "\n".join(lines) + "\n"


INTRODUCTION = (
    "Made by `rotarymae-experiments results --page docs/results.md` from the files in `results/`; do not edit it.",
    "Commands measured before November 2026 say `rotarymae run`, as the command was called then. Figures are the",
    "mean over seeds ± their standard deviation. `paper` is the paper's setting, `ours` is ours; `small` is a scale a",
    "CPU manages, with fewer epochs, seeds or samples than the paper's. Below each table stand its pictures, what is",
    "doubtful about published figures and why, what the experiment is, and the runs behind the figures.",
    "",
    "The sizes of Table 8 are `RoMAEConfig.named`'s; a test compares their numbers of parameters with the table's.",
    "Figures 1 and 6 of the paper show the method and a training example, not results.",
)


def _overview(recipes: Sequence[Recipe], rows: Sequence[Line]) -> list[str]:
    """Return the lines of a Markdown table: how many published figures of each recipe were measured, at what scale.

    Recipes without published figures are left out.
    """
    cells = []
    for recipe in recipes:
        outcomes = Counter(line.outcome for line in rows if line.recipe == recipe.name and line.outcome)
        if outcomes:
            figures = "; ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
            link = f"[{recipe.name}](#{_anchor(recipe)})"
            cells.append({"in the paper": recipe.table, "recipe": link, "its published figures": figures})
    return ["", *_markdown(cells)]


def _markdown(rows: Sequence[dict[str, str]]) -> list[str]:
    """Return the lines of a Markdown table from rows {column: cell}, all with the same columns; none without rows."""
    head = [rows[0].keys(), ["---"] * len(rows[0])] if rows else []
    return [f"| {' | '.join(cells)} |" for cells in (*head, *(row.values() for row in rows))]


def _anchor(recipe: Recipe) -> str:
    """Return the anchor, such as "spirals-table-7", that Markdown makes of a recipe's headline."""
    words = f"{recipe.name} {recipe.table}".lower()
    return "-".join("".join(c if c.isalnum() or c in "_-" else " " * (c == " ") for c in words).split())


def _run(file: Path, result: Result, path: Path) -> str:
    """Return the Markdown line on a run: cases, hours, hardware, commits, command, and a link to its file.

    Args:
        file, result: path and content of the result file.
        path: of the page.
    """
    cases = [f"{case} (seeds {', '.join(map(str, part['seeds']))})" for case, part in result["cases"].items()]
    # Of the trials, where they say so: the file's own is that of the last call.
    known = sorted({one for part in result["cases"].values() for one in part.get("commits", ()) if one})
    commits = ", ".join(known) or result.get("commit")
    return (
        f"- {result['setting']}, {result['scale']}; {', '.join(cases)}; {result['hours']:.2f} hours on "
        f"{result['hardware']}, commit {commits}, torch {result['versions'].get('torch')}, "
        f"{result['date'][:10]}; last call `{result['command']}`; [{file.name}]({_link(file, path)})"
    )


def _link(file: Path, path: Path) -> str:
    """Return the path of a file relative to the page at `path`, with slashes."""
    return Path(os.path.relpath(file.resolve(), path.resolve().parent)).as_posix()
