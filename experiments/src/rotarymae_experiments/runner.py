"""Run a recipe: train each of its cases from several seeds, and write one file of results.

A recipe is a file with a `RECIPE`. It has two settings, "paper" (the paper's hyper-parameters) and "ours", and three
scales: "smoke" (seconds: does it run?), "small" (what a CPU manages) and "paper" (the paper's epochs, sizes and seeds).
Each trial has a folder of its own with checkpoints, so that the same command continues a run that was stopped.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
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
from rotarymae.system import Reporter, hardware, plain_json, replacing, versions, write_text
from rotarymae.train import FitResult
from rotarymae.training import Objective, TrainConfig, TrainResult, fit
from rotarymae.training.fit_config import FitConfig
from rotarymae_experiments.checkout import commit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES = ("smoke", "small", "paper")
SETTINGS = ("paper", "ours")
Result = dict[str, Any]
Figures = dict[str, "Figure"]  # by name
Changes = Mapping[str, Any]
Config = TypeVar("Config", TrainConfig, FitConfig)
Training = TypeVar("Training", TrainResult, FitResult)
# The sizes of an autoencoder that only has to show that everything runs.
SMOKE: dict[str, Any] = {
    "embed_dim": 24,
    "num_heads": 2,
    "depth": 1,
    "decoder_embed_dim": 24,
    "decoder_num_heads": 2,
    "decoder_depth": 1,
}


@dataclass(frozen=True)
class Setup:
    """The settings that every recipe's configuration has; a recipe adds its model, its training and its data.

    Attributes:
        cases: Run these parts of the experiment, by name.
        seeds: Train each case once from each of these seeds.
    """

    cases: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)

    def but(self, **changes: Any) -> Self:
        """Return a copy with changed fields; a dictionary changes fields of a field, such as `train={"epochs": 2}`."""
        merged = {
            name: _changed(getattr(self, name), value) if isinstance(value, dict) else value
            for name, value in changes.items()
        }
        return replace(self, **merged)


def _changed(value: Any, changes: dict[str, Any]) -> Any:
    """Return a copy of a setup, or of another dataclass, with these fields changed."""
    return value.but(**changes) if isinstance(value, Setup) else replace(value, **changes)


@dataclass(frozen=True)
class Row:
    """A line of the table of results: a metric of a case, next to what others published.

    Attributes:
        what: the quantity, with its unit.
        case, metric: where in a result file it is, "cases/…/metrics/…".
        paper: the figure as the paper prints it; "–" if it has none.
        best: the best published figure of others, with its name; "–" for none.
        simple: name of a metric of the same case that a simple method, or the exact optimum, scores; "" for none.
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
class Score:
    """The outcome of one trial.

    Attributes:
        metrics: numbers by name, those of simple methods and of the exact optimum included.
        curves: by name, lists, arrays or dictionaries of numbers for figures.
        parameters: number of parameters of the model; None without one.
    """

    metrics: dict[str, float]
    curves: dict[str, Any] = field(default_factory=dict)
    parameters: int | None = None


@dataclass(frozen=True)
class Recipe:
    """An experiment. The docstring of its file says what it asks, how to run it, what to expect and how long it takes.

    Attributes:
        name: as in `rotarymae-experiments run NAME`.
        run: a function of configuration, case and trial that trains and scores one case from one seed.
        ours: the configuration in our setting, at the paper's scale.
        paper: the same with the paper's hyper-parameters; None: there is but one setting.
        small, paper_small, ours_small: changes at scale small: of both settings, and further ones of each.
        smoke: changes of what is small at scale smoke.
        rows: the lines of the table of results.
        table: where the experiment stands in the paper.
        figures: a function that draws from the result file's content, and returns {name: figure}; None for none.
        trains: False when nothing is learnt, so no loss can fall.
        not_at_hand: the cases whose data this project does not have, so that nobody has run them yet.
    """

    name: str
    run: Callable[[Any, str, Trial], Score]
    ours: Setup
    paper: Setup | None = None
    small: Changes = field(default_factory=dict)
    paper_small: Changes = field(default_factory=dict)
    ours_small: Changes = field(default_factory=dict)
    smoke: Changes = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    table: str = "–"
    figures: Callable[[Result], Figures] | None = None
    trains: bool = True
    not_at_hand: tuple[str, ...] = ()

    def describe(self) -> tuple[str, str]:
        """Return the first line of the docstring of the recipe's file, which is its question, and the rest."""
        question, _, rest = (inspect.getdoc(inspect.getmodule(self.run)) or "").partition("\n\n")
        return question.strip(), rest.strip()

    def configure(self, scale: str, setting: str) -> Setup:
        """Return the configuration of a scale ("smoke", "small", "paper") and a setting ("paper", "ours").

        A recipe without the paper's setting has one configuration for both. Raises InputError for an unknown name.
        """
        for kind, given, known in (("scale", scale, SCALES), ("setting", setting, SETTINGS)):
            if given not in known:
                raise InputError(f"no {kind} {given!r}; there are {', '.join(known)}.{did_you_mean(given, known)}")
        setup = self.ours if setting == "ours" or self.paper is None else self.paper
        if scale != "paper":
            setup = setup.but(**self.small).but(**(self.ours_small if setting == "ours" else self.paper_small))
        return setup.but(**self.smoke) if scale == "smoke" else setup


class Trial:
    """One case of an experiment from one seed: a folder, a clock, and the training loop.

    Attributes:
        seed: of weights, order and whatever the recipe draws.
        folder: for checkpoints.
        reporter: shows progress.
        smoke: whether this only checks that everything runs.
        losses: {stage: training losses as they were logged}.
    """

    def __init__(self, seed: int, folder: Path, reporter: Reporter, smoke: bool = False) -> None:
        """Store the attributes, and start the clock, on top of the time that earlier calls in `folder` took."""
        self.seed, self.folder, self.smoke, self.reporter = seed, folder, smoke, reporter
        self.losses: dict[str, list[float]] = {}
        self._clock = folder / "seconds.txt"
        self._before = float(self._clock.read_text()) if self._clock.exists() else 0.0
        self._started = self._noted = time.monotonic()

    @property
    def seconds(self) -> float:
        """Wall time of this trial in seconds, including interrupted runs (to about 20 s each)."""
        return self._before + time.monotonic() - self._started

    def fit(
        self,
        objective: Objective,
        examples: Examples,
        config: TrainConfig,
        validation: Examples | None = None,
        stage: str = "training",
    ) -> TrainResult:
        """Call `training.fit` with this trial's seed, in its folder, resuming an interrupted training.

        The model in `objective` is trained in place, and ends on the CPU.

        Args:
            objective, examples, config, validation: as `training.fit` takes them; the seed of `config` is replaced.
            stage: name of the folder of checkpoints inside the trial's, and of the losses.
        """
        return self.train(stage, fit, objective, examples, self.with_seed(config), validation=validation)

    def train(self, stage: str, call: Callable[..., Training], *arguments: Any, **options: Any) -> Training:
        """Call a function that trains, in this trial's folder, resuming an interrupted training; return its result.

        Args:
            stage: name of the folder of checkpoints inside the trial's, and under which the losses are kept.
            call: `training.fit`, or `pretrain` or `finetune` of `rotarymae.train`.
            *arguments, **options: of the call. Options `folder`, `resume` and `on_step` replace those of the trial.
        """
        with self.reporter.bar(f"{self.folder.parent.name} {self.seed}") as on_step:

            def step(done: int, total: int, loss: float) -> None:
                """Report progress, and note the elapsed time in a file every 20 seconds."""
                on_step(done, total, loss)
                if time.monotonic() - self._noted > 20:
                    self._noted = time.monotonic()
                    write_text(self._clock, f"{self.seconds:.0f}\n")

            how = {"folder": self.folder / stage, "resume": "auto", "on_step": step}
            trained = call(*arguments, **how | options)
        result = trained if isinstance(trained, TrainResult) else trained.result
        self.losses[stage] = [line["loss"] for line in result.history if "loss" in line]
        return trained

    def with_seed(self, config: Config) -> Config:
        """Return a copy of the configuration with this trial's seed; in a smoke run every step is logged."""
        return replace(config, seed=self.seed, log_every=1 if self.smoke else config.log_every)


def parameters(model: nn.Module) -> int:
    """Return the number of trainable and other parameters of a model."""
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
    """Run the trials that are not done yet, write the result file and figures, and return the file's path.

    The file holds all that this run's folder has: cases and seeds of earlier calls too.

    Args:
        recipe: the experiment.
        scale, setting: of which `setup` is the configuration, perhaps with changes; they name folder and file.
        setup: the configuration.
        out: parent of the run's folder, NAME-SETTING-SCALE.
        results: folder of the result file. A file of another run there is left alone: a number is added to the name.
        command: as typed, for the file.
        reporter: shows progress.

    Raises:
        InputError: the run's folder holds a run of another configuration; an unknown case.
    """
    reporter = reporter or Reporter(quiet=True)
    known = recipe.configure(scale, setting).cases
    for case in setup.cases:
        if case not in known:
            raise InputError(
                f"{recipe.name} has no case {case!r}; there are {', '.join(known)}.{did_you_mean(case, known)}"
            )
    if len({_file_name(case) for case in known}) < len(known):
        raise InputError(f"two cases of {recipe.name} would share one folder; name them by letters and digits.")
    if not setup.cases or not setup.seeds:
        raise InputError("nothing to run: give at least one case and one seed.")
    name = f"{recipe.name}-{setting}-{scale}"
    identity = _open(out / name, setup)
    for case in setup.cases:
        for seed in setup.seeds:
            _run_trial(recipe, setup, case, seed, out / name, scale, reporter)
    cases = {case: _collect(trials) for case in known if (trials := _finished(out / name, case))}
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
        "config": _shared(setup),
        "cases": cases,
    }
    path = _free_path(results, name, identity)
    write_text(path, json.dumps(result, indent=1, allow_nan=False) + "\n")
    for title, figure in (recipe.figures(result) if recipe.figures else {}).items():
        with replacing(path.with_name(f"{path.stem}-{title}.png")) as temporary:
            figure.savefig(temporary)
    return path


def _open(folder: Path, setup: Setup) -> str:
    """Return the identity (hexadecimal digits) of the run in a folder; make a folder without a run one of this setup.

    Cases and seeds may be added to a run. Raises InputError if the folder holds a run of another configuration.
    """
    file, config = folder / "config.json", _shared(setup)
    if not file.exists():
        identity = uuid.uuid4().hex
        write_text(file, json.dumps({"run": identity, "config": config}, indent=1) + "\n")
        return identity
    before = json.loads(file.read_text(encoding="utf-8"))
    differ = [name for name in config if before["config"].get(name) != config[name]]
    if differ:
        raise InputError(
            f"{folder} holds a run with another configuration ({', '.join(differ)}); give another --out, or remove it."
        )
    return before["run"]


def _shared(setup: Setup) -> dict[str, Any]:
    """Return the configuration as JSON holds it, without cases, seeds and folders of data, which calls may change."""
    skipped = ("cases", "seeds", "data_dir", "pictures_dir")
    return {name: value for name, value in plain(setup).items() if name not in skipped}


def _run_trial(
    recipe: Recipe, setup: Setup, case: str, seed: int, folder: Path, scale: str, reporter: Reporter
) -> None:
    """Run the trial of a case and a seed, and write its score to CASE/seed-SEED/score.json, unless it is there.

    Args:
        folder: of the run.
        scale: "smoke" is told to the trial.
        reporter: shows progress and the score.
    """
    file = folder / _file_name(case) / f"seed-{seed}" / "score.json"
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    trial = Trial(seed, file.parent, reporter, scale == "smoke")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would leave the accelerators seeded
        score = recipe.run(setup, case, trial)
    content = {
        "metrics": {name: plain(float(value)) for name, value in score.metrics.items()},
        "curves": plain(score.curves),
        "parameters": score.parameters,
        "seconds": round(trial.seconds, 1),
        "commit": commit(),
        "losses": {stage: _thinned(losses) for stage, losses in trial.losses.items()},
    }
    write_text(file, json.dumps(content, allow_nan=False) + "\n")
    figures = ", ".join(f"{name} {float(value):.4g}" for name, value in list(score.metrics.items())[:6])
    reporter.say(f"{recipe.name}, {case}, seed {seed}, {trial.seconds:.0f} s: {figures}")


def _finished(folder: Path, case: str) -> dict[int, dict[str, Any]]:
    """Return {seed: content of score.json} for the finished trials of a case in a run's folder, seeds ascending."""
    files = {
        int(file.parent.name.removeprefix("seed-")): file
        for file in (folder / _file_name(case)).glob("seed-*/score.json")
    }
    return {seed: json.loads(files[seed].read_text(encoding="utf-8")) for seed in sorted(files)}


def _collect(scores: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Return a case's part of the result file: its metrics over the seeds, and lists with an entry for each seed.

    A metric is {"mean", "std", "each"}: "std" is None for one seed, and "each" has None where a seed has no number. The
    lists are seeds, seconds, commits, losses and curves; "parameters" is the first seed's.

    Args:
        scores: {seed: content of score.json}.
    """
    trials, metrics = list(scores.values()), {}
    for name in dict.fromkeys(name for trial in trials for name in trial["metrics"]):
        each = [trial["metrics"].get(name) for trial in trials]  # None: NaN, or what it needs was not installed
        known = [value for value in each if value is not None]
        if known:
            spread = float(np.std(known, ddof=1)) if len(known) > 1 else None
            metrics[name] = {"mean": float(np.mean(known)), "std": spread, "each": each}
    return {
        "seeds": list(scores),
        "metrics": metrics,
        "seconds": [trial["seconds"] for trial in trials],
        "commits": [trial.get("commit") for trial in trials],  # those of one run may be days apart
        "parameters": trials[0]["parameters"],
        "losses": [trial["losses"] for trial in trials],
        "curves": [trial["curves"] for trial in trials],
    }


def _free_path(results: Path, name: str, identity: str) -> Path:
    """Return the path of this run's result file: RESULTS/NAME.json, or NAME-2.json .. if others' files are there.

    A file is this run's if it has its `identity`.
    """
    number, path = 1, results / f"{name}.json"
    while path.exists() and f'"{identity}"' not in path.read_text(encoding="utf-8", errors="replace"):
        number += 1
        path = results / f"{name}-{number}.json"
    return path


def _thinned(losses: list[float], most: int = 200) -> list[float]:
    """Return at most `most` of the losses, evenly spaced, the first and the last included."""
    return [losses[i] for i in np.linspace(0, len(losses) - 1, min(most, len(losses))).round().astype(int)]


def _file_name(case: str) -> str:
    """Return the name of a case with "_" for letters that file names should not have."""
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in case)


def plain(value: Any) -> Any:
    """Return a value as JSON holds it: dataclasses as dictionaries, arrays as lists of five digits, NaN as None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray) and value.dtype.kind not in "bi":
        value = np.vectorize(lambda v: float(f"{v:.5g}"), otypes=[float])(value)
    return plain_json(value)
