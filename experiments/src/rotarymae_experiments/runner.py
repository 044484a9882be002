"""Experiments: a recipe, its cases, each trained from several seeds, and the file that says what came out.

A recipe is a file in `recipes/` with a `RECIPE`. It has two settings, "paper" (the paper's hyper-parameters) and
"ours", and three scales: "smoke" (seconds: does it run?), "small" (what a CPU manages) and "paper" (the paper's
epochs, sizes and seeds). `run` trains every case from every seed, each in its own folder with checkpoints, so that a
run that was stopped goes on where it was; and writes one JSON file.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import torch
from torch import nn

from rotarymae.batch import Examples
from rotarymae.errors import InputError, did_you_mean
from rotarymae.system import Reporter, commit, hardware, replacing, versions, write_text
from rotarymae.tasks import FitConfig, Trained
from rotarymae.training import Objective, TrainConfig, TrainResult, fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES = ("smoke", "small", "paper")
SETTINGS = ("paper", "ours")
Result = dict[str, Any]
Figures = dict[str, "Figure"]  # by name; matplotlib's own
Config = TypeVar("Config", TrainConfig, FitConfig)
Found = TypeVar("Found", TrainResult, Trained)


@dataclass(frozen=True)
class Setup:
    """What every recipe's configuration has; a recipe adds its model, its training and its data.

    Attributes:
        cases: Run these parts of the experiment, by name.
        seeds: Train each case once from each of these seeds.
    """

    cases: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)

    def but(self, **changes: Any) -> Self:
        """The same with other fields; a dictionary changes fields of a field, such as `train={"epochs": 2}`."""
        for name, value in changes.items():
            if isinstance(value, dict):
                changes[name] = replace(getattr(self, name), **value)
        return replace(self, **changes)


@dataclass(frozen=True)
class Row:
    """A line of the table of results: a metric of a case, beside what others published.

    Attributes:
        what: the quantity, with its unit.
        case, metric: where in a result file it is; "cases/…/metrics/…".
        paper: as the paper prints it.
        best: the best published figure of others, with its name.
        simple: a metric of the same case that a simple method, or the exact optimum, scores.
        doubt: why a published figure is in doubt; empty when it is not.
        aim: what this project wants to reach.
    """

    what: str
    case: str
    metric: str
    paper: str = "–"
    best: str = "–"
    simple: str = ""
    doubt: str = ""
    aim: str = ""


@dataclass(frozen=True)
class Recipe:
    """An experiment.

    Attributes:
        name: as in `rotarymae-experiments run NAME`.
        expect: the metric and what to expect of it.
        setup: (scale, setting) → configuration, or one configuration for all of them.
        run: trains and scores one case from one seed.
        rows: the lines of the table of results.
        table: where the experiment stands in the paper.
        hours: duration of `small` by setting: the trials run so far, one thread each on a shared machine, times the
            number of trials; None where some were never run.
        figures: draws from the result file's content; a figure by name.
        compare: draws from the contents of both settings' files, by setting; for the page of results.
        trains: False when nothing is learnt, so no loss can fall.
        not_at_hand: the cases whose data this project has not, so that nobody has run them yet.
    """

    name: str
    expect: str
    setup: Callable[[str, str], Setup] | Setup
    run: Callable[[Any, str, Trial], Score]
    rows: tuple[Row, ...] = ()
    table: str = "–"
    hours: Mapping[str, float | None] = field(default_factory=dict)
    figures: Callable[[Result], Figures] | None = None
    compare: Callable[[Mapping[str, Result]], Figures] | None = None
    trains: bool = True
    not_at_hand: tuple[str, ...] = ()

    def describe(self) -> str:
        """The docstring of the recipe's file: what it is, what to expect."""
        return (inspect.getdoc(inspect.getmodule(self.run)) or "").strip()

    def configure(self, scale: str, setting: str) -> Setup:
        """The configuration of a scale and a setting. Raises InputError for an unknown one."""
        for kind, given, known in (("scale", scale, SCALES), ("setting", setting, SETTINGS)):
            if given not in known:
                raise InputError(f"no {kind} {given!r}; there are {', '.join(known)}.{did_you_mean(given, known)}")
        return self.setup if isinstance(self.setup, Setup) else self.setup(scale, setting)


@dataclass(frozen=True)
class Score:
    """What one trial found.

    Attributes:
        metrics: numbers by name, the simple methods' and the exact optimum's among them.
        curves: lists of numbers by name, for figures.
        parameters: of the model.
    """

    metrics: dict[str, float]
    curves: dict[str, Any] = field(default_factory=dict)
    parameters: int | None = None


class Trial:
    """One case of an experiment from one seed: a folder, a clock, and the training loop.

    Attributes:
        seed: of weights, order and whatever the recipe draws.
        folder: for checkpoints.
        smoke: whether this is only to see that everything runs.
    """

    def __init__(self, seed: int, folder: Path, reporter: Reporter, smoke: bool = False) -> None:
        self.seed, self.folder, self.smoke = seed, folder, smoke
        self.reporter = reporter
        self.losses: dict[str, list[float]] = {}
        self._clock = folder / "seconds.txt"
        self._before = float(self._clock.read_text()) if self._clock.exists() else 0.0
        self._started = self._noted = time.monotonic()

    @property
    def seconds(self) -> float:
        """Wall time of this trial, that of interrupted runs before included (to about 20 s each)."""
        return self._before + time.monotonic() - self._started

    def fit(
        self,
        objective: Objective,
        examples: Examples,
        config: TrainConfig,
        validation: Examples | None = None,
        stage: str = "training",
    ) -> TrainResult:
        """`training.fit` with this trial's seed, in its folder, resuming; the model ends on the CPU, to evaluate."""
        return self.train(stage, fit, objective, examples, self.own(config), validation=validation)

    def train(self, stage: str, call: Callable[..., Found], *arguments: Any, **options: Any) -> Found:
        """A call of `training.fit`, or one of `tasks` that trains, in this trial's folder, resuming.

        Its losses are kept for the result file. An option `folder` takes the place of the trial's own.
        """
        with self.reporter.bar(f"{self.folder.parent.name} {self.seed}") as on_step:

            def step(done: int, total: int, loss: float) -> None:
                on_step(done, total, loss)
                self._note()

            how = {"folder": self.folder / stage, "resume": "auto", "on_step": step}
            found = call(*arguments, **how | options)
        result = found if isinstance(found, TrainResult) else found.result
        self.losses[stage] = [line["loss"] for line in result.history if "loss" in line]
        return found

    def own(self, config: Config) -> Config:
        """With this trial's seed; a smoke run logs every step."""
        return replace(config, seed=self.seed, log_every=1 if self.smoke else config.log_every)

    def _note(self) -> None:
        if time.monotonic() - self._noted > 20:
            self._noted = time.monotonic()
            write_text(self._clock, f"{self.seconds:.0f}\n")


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def run(
    recipe: Recipe,
    scale: str,
    setting: str,
    setup: Setup,
    *,
    out: Path = Path("runs"),
    results: Path = Path("results"),
    command: str = "",
    reporter: Reporter | None = None,
) -> Path:
    """Runs what of an experiment is not done yet, writes its result file and figures, and returns the file's path.

    The file holds all that this run's folder has: cases and seeds of earlier calls too.

    Args:
        recipe: the experiment.
        scale, setting: of which `setup` is the configuration, perhaps with changes; they name folder and file.
        setup: how.
        out: folder of the run's folder, NAME-SETTING-SCALE.
        results: folder of the result file. A file of another run there is left alone: a number is put behind the name.
        command: as typed, for the file.
        reporter: shows progress.

    Raises:
        InputError: the run's folder holds a run of another configuration; an unknown case.
    """
    reporter = reporter or Reporter(quiet=True)
    known = recipe.configure(scale, setting).cases
    for case in setup.cases:
        if case not in known:
            there = f"there are {', '.join(known)}.{did_you_mean(case, known)}"
            raise InputError(f"{recipe.name} has no case {case!r}; {there}")
    if len({_file_name(case) for case in known}) < len(known):
        raise InputError(f"two cases of {recipe.name} would share one folder; name them by letters and digits.")
    if not setup.cases or not setup.seeds:
        raise InputError("nothing to run: give at least one case and one seed.")
    folder = out / f"{recipe.name}-{setting}-{scale}"
    identity = _open(folder, setup)
    for case in setup.cases:
        for seed in setup.seeds:
            _trial(recipe, setup, case, seed, folder, scale, reporter)
    cases = {case: _collect(found) for case in known if (found := _finished(folder, case))}
    result: Result = {
        "format": 1,
        "recipe": recipe.name,
        "setting": setting,
        "scale": scale,
        "command": command,
        "run": identity,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "hardware": hardware(),
        "versions": versions(),
        "hours": sum(sum(part["seconds"]) for part in cases.values()) / 3600,
        "config": _without_choice(setup),
        "cases": cases,
    }
    path = _place(results, f"{recipe.name}-{setting}-{scale}", identity)
    write_text(path, json.dumps(result, indent=1, allow_nan=False) + "\n")
    if recipe.figures is not None:
        for name, figure in recipe.figures(result).items():
            with replacing(path.with_name(f"{path.stem}-{name}.png")) as beside:
                figure.savefig(beside)
    return path


def _open(folder: Path, setup: Setup) -> str:
    """The run's name, from its folder; makes the folder when it is new. Cases and seeds may be added to a run."""
    file, own = folder / "config.json", _without_choice(setup)
    if not file.exists():
        identity = uuid.uuid4().hex
        write_text(file, json.dumps({"run": identity, "config": own}, indent=1) + "\n")
        return identity
    before = json.loads(file.read_text(encoding="utf-8"))
    differ = [name for name in own if before["config"].get(name) != own[name]]
    if differ:
        raise InputError(
            f"{folder} holds a run with another configuration ({', '.join(differ)}); give another --out, or remove it."
        )
    return before["run"]


def _without_choice(setup: Setup) -> dict[str, Any]:
    """The configuration that all trials of a run share: not which of them were asked for, nor where the data lie."""
    unlike = ("cases", "seeds", "data_dir", "pictures_dir")
    return {name: value for name, value in plain(setup).items() if name not in unlike}


def _trial(recipe: Recipe, setup: Setup, case: str, seed: int, folder: Path, scale: str, reporter: Reporter) -> None:
    """Runs a trial and writes its score.json, unless there is one."""
    place = folder / _file_name(case) / f"seed-{seed}"
    file = place / "score.json"
    if file.exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    trial = Trial(seed, place, reporter, scale == "smoke")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would leave the accelerators seeded
        score = recipe.run(setup, case, trial)
    found = {
        "metrics": {name: plain(float(value)) for name, value in score.metrics.items()},
        "curves": plain(score.curves),
        "parameters": score.parameters,
        "seconds": round(trial.seconds, 1),
        "commit": commit(),
        "losses": {stage: _thinned(losses) for stage, losses in trial.losses.items()},
    }
    write_text(file, json.dumps(found, allow_nan=False) + "\n")
    figures = ", ".join(f"{name} {float(value):.4g}" for name, value in list(score.metrics.items())[:6])
    reporter.say(f"{recipe.name}, {case}, seed {seed}, {trial.seconds:.0f} s: {figures}")


def _finished(folder: Path, case: str) -> dict[int, dict[str, Any]]:
    """What every trial of a case found that has ended, by seed."""
    files = (folder / _file_name(case)).glob("seed-*/score.json")
    found = {int(file.parent.name.removeprefix("seed-")): file for file in files}
    return {seed: json.loads(found[seed].read_text(encoding="utf-8")) for seed in sorted(found)}


def _collect(found: dict[int, dict[str, Any]]) -> dict[str, Any]:
    trials, metrics = list(found.values()), {}
    for name in dict.fromkeys(name for trial in trials for name in trial["metrics"]):
        each = [trial["metrics"].get(name) for trial in trials]  # None: NaN, or what it needs was not installed
        known = [value for value in each if value is not None]
        if known:
            spread = float(np.std(known, ddof=1)) if len(known) > 1 else None
            metrics[name] = {"mean": float(np.mean(known)), "std": spread, "each": each}
    return {
        "seeds": list(found),
        "metrics": metrics,
        "seconds": [trial["seconds"] for trial in trials],
        # Of each trial: those of one run may be days apart. The file's own is that of the last call.
        "commits": [trial.get("commit") for trial in trials],
        "parameters": trials[0]["parameters"],
        "losses": [trial["losses"] for trial in trials],
        "curves": [trial["curves"] for trial in trials],
    }


def _place(results: Path, name: str, identity: str) -> Path:
    """Where this run's file is, or may be: never in place of another run's."""
    number, path = 1, results / f"{name}.json"
    while path.exists() and f'"{identity}"' not in path.read_text(encoding="utf-8", errors="replace"):
        number += 1
        path = results / f"{name}-{number}.json"
    return path


def _thinned(losses: list[float], most: int = 200) -> list[float]:
    """At most so many of the losses, the first and the last among them."""
    if len(losses) <= most:
        return losses
    return [losses[i] for i in np.linspace(0, len(losses) - 1, most).round().astype(int)]


def _file_name(case: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in case)


def plain(value: Any) -> Any:
    """As JSON holds it: arrays as lists, five digits of what only figures show, NaN as None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return plain(value.tolist() if value.dtype.kind in "bi" else [_short(v) for v in value.tolist()])
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _short(value: Any) -> Any:
    return [_short(v) for v in value] if isinstance(value, list) else float(f"{value:.5g}")
