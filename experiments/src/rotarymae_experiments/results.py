"""Reads result files, and sets what was measured here beside what others published: as a table and as a page."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rotarymae.errors import InputError
from rotarymae.system import replacing, write_text
from rotarymae_experiments.runner import SCALES, SETTINGS, Recipe, Result, Row

KINDS = {"recipe": str, "setting": str, "scale": str, "date": str, "hardware": str, "hours": float, "config": dict}
KINDS |= {"cases": dict, "command": str, "versions": dict}
NOT_AT_HAND = "data not at hand; command ready"
UNPUBLISHED = "–"  # as a row says that nothing was


@dataclass(frozen=True)
class Line:
    """One row of the table.

    Attributes:
        recipe: its name.
        row: what it is, and what others published.
        simple: the simple method's figure, or the exact optimum's, with its name.
        measured: by setting, the figure with spread, seeds and scale; where there is none, why.
        outcome: of a published figure: whether it is in doubt, and the largest scale at which it was measured
            here; where there is none, why. Empty where nothing was published.
    """

    recipe: str
    row: Row
    simple: str
    measured: dict[str, str]
    outcome: str


def read(folder: Path) -> list[tuple[Path, Result]]:
    """The result files of a folder, by name.

    Raises:
        InputError: the folder is missing; a file is not a result file of this library.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; `rotarymae-experiments run NAME` writes result files to results/.")
    found = []
    for path in sorted(folder.glob("*.json")):
        if path.name.startswith("benchmark"):  # the benchmarks' own format
            continue
        found.append((path, read_file(path)))
    return found


def read_file(path: Path) -> Result:
    """Raises InputError when the file is not a result file."""
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
    """Every row of every recipe. A run of the largest scale is taken, of these the last; smoke runs never are."""
    lines = []
    for recipe in recipes:
        for row in recipe.rows:
            parts = {setting: _newest(results, recipe, setting, row) for setting in SETTINGS}
            simple = next((_simple(part, row) for part in reversed(parts.values()) if part is not None), "")
            none = NOT_AT_HAND if row.case in recipe.not_at_hand else "not run"
            measured = {
                setting: none if part is None else _measured(part, row.case, row.metric)
                for setting, part in parts.items()
            }
            lines.append(Line(recipe.name, row, simple, measured, _outcome(row, none, list(parts.values()))))
    return lines


def _outcome(row: Row, none: str, runs: Sequence[Result | None]) -> str:
    if row.paper == UNPUBLISHED:
        return ""
    scales = [run["scale"] for run in runs if run is not None]
    if not scales:
        return none if none == NOT_AT_HAND else f"{none}; command ready"
    return f"{'in doubt, and ' if row.doubt else ''}measured at scale {max(scales, key=SCALES.index)}"


def _newest(results: Sequence[Result], recipe: Recipe, setting: str, row: Row) -> Result | None:
    def has(result: Result) -> bool:
        return row.metric in result["cases"].get(row.case, {"metrics": {}})["metrics"]

    return _last([result for result in results if has(result)], recipe.name, setting)


def _last(results: Sequence[Result], name: str, setting: str) -> Result | None:
    """The run of a recipe that counts: of the largest scale, of these the last; smoke runs never."""
    own = [r for r in results if (r["recipe"], r["setting"]) == (name, setting) and r["scale"] != "smoke"]
    return max(own, key=lambda result: (SCALES.index(result["scale"]), result["date"]), default=None)


def _simple(result: Result, row: Row) -> str:
    metrics = result["cases"][row.case]["metrics"]
    if row.simple not in metrics:  # there is none, or what it needs was not installed
        return ""
    return f"{row.simple} {_number(metrics[row.simple]['mean'])}"


def _measured(result: Result, case: str, metric: str) -> str:
    part = result["cases"][case]
    numbers = part["metrics"][metric]
    seeds = sum(value is not None for value in numbers["each"])
    spread = "" if numbers["std"] is None else f" ± {_number(numbers['std'], 2)}"
    return f"{_number(numbers['mean'])}{spread} ({seeds} seed{'s' if seeds > 1 else ''}, {result['scale']})"


def _number(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if abs(value) < 1e5 else f"{value:.2e}"


def page(recipes: Sequence[Recipe], found: Sequence[tuple[Path, Result]], beside: Path) -> str:
    """Markdown: for each recipe its rows and figures, what is in doubt about published figures, what it is, its runs.

    Links to figures lead from the page `beside` to the result files' folder.
    """
    lines = ["# Results", "", *INTRODUCTION]
    rows = table(recipes, [result for _, result in found])
    lines += _overview(recipes, rows)
    for recipe in recipes:
        own = [line for line in rows if line.recipe == recipe.name]
        question, _, about = recipe.describe().partition("\n\n")
        lines += ["", f"## {recipe.name}: {recipe.table}", "", question, ""]
        lines += ["| what | paper | best other | simple or optimum | `paper` here | `ours` here | aim |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
        for line in own:
            row, measured = line.row, line.measured
            cells = [row.what, row.paper, row.best, line.simple, measured["paper"], measured["ours"], row.aim]
            lines.append("| " + " | ".join(cells) + " |")
        for figure in sorted((beside.parent / COMPARED).glob(f"{recipe.name}-*.png")):
            lines += ["", f"![{figure.stem}: both settings]({_link(figure, beside)})"]
        own_runs = [(path, result) for path, result in found if result["recipe"] == recipe.name]
        stems = [path.stem for path, _ in own_runs]
        figures = [
            figure
            for path, _ in own_runs
            for figure in sorted(path.parent.glob(f"{path.stem}-*.png"))
            # Not those of a further run, NAME-2.
            if not any(figure.stem.startswith(f"{stem}-") for stem in stems if len(stem) > len(path.stem))
        ]
        for figure in figures:
            lines += ["", f"![{figure.stem}]({_link(figure, beside)})"]
        for doubt in dict.fromkeys(line.row.doubt for line in own if line.row.doubt):
            of = ", ".join(line.row.what for line in own if line.row.doubt == doubt)
            lines += ["", f"In doubt ({of}): {doubt}"]
        lines += ["", about] if about else []
        lines += ["", *(_run(path, result, beside) for path, result in own_runs)] if own_runs else []
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
    """What came of the paper's figures: a line per recipe that the paper has."""
    lines = ["", "| in the paper | recipe | its published figures |", "| --- | --- | --- |"]
    for recipe in recipes:
        outcomes = Counter(line.outcome for line in rows if line.recipe == recipe.name and line.outcome)
        if outcomes:
            said = "; ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
            lines.append(f"| {recipe.table} | [{recipe.name}](#{_anchor(recipe)}) | {said} |")
    return lines


def _anchor(recipe: Recipe) -> str:
    """Of a recipe's headline, as Markdown makes it."""
    words = f"{recipe.name} {recipe.table}".lower()
    return "-".join("".join(c if c.isalnum() or c in "_-" else " " * (c == " ") for c in words).split())


def _run(path: Path, result: Result, beside: Path) -> str:
    cases = [f"{case} (seeds {', '.join(map(str, part['seeds']))})" for case, part in result["cases"].items()]
    # Of the trials, where they say so: the file's own is that of the last call.
    known = sorted({one for part in result["cases"].values() for one in part.get("commits", ()) if one})
    commits = ", ".join(known) or result.get("commit")
    return (
        f"- {result['setting']}, {result['scale']}; {', '.join(cases)}; {result['hours']:.2f} hours on "
        f"{result['hardware']}, commit {commits}, torch {result['versions'].get('torch')}, "
        f"{result['date'][:10]}; last call `{result['command']}`; [{path.name}]({_link(path, beside)})"
    )


def _link(path: Path, beside: Path) -> str:
    return Path(os.path.relpath(path.resolve(), beside.resolve().parent)).as_posix()


COMPARED = Path("images/results")  # beside the page: figures that show both settings


def write_page(recipes: Sequence[Recipe], folder: Path, path: Path) -> None:
    """The page, and the figures that compare settings in images/results beside it. Raises InputError as `read`."""
    found = read(folder)
    for recipe in recipes:
        runs = {setting: _last([r for _, r in found], recipe.name, setting) for setting in SETTINGS}
        both = {setting: result for setting, result in runs.items() if result is not None}
        if recipe.compare is not None and len(both) == len(SETTINGS):
            for name, figure in recipe.compare(both).items():
                with replacing(path.parent / COMPARED / f"{recipe.name}-{name}.png") as beside:
                    figure.savefig(beside)
    write_text(path, page(recipes, found, path))
