"""Estimate the cost of a training: the memory of its largest step, and the steps that fit into `minutes`.

The steps of a run with `minutes` are kept in its folder, so that a resumed run has the learning rates of the
interrupted one.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from rotarymae.batch import Examples
from rotarymae.config import RoMAEConfig
from rotarymae.errors import InputError
from rotarymae.system import Reporter, free_memory, write_text
from rotarymae.training import Objective, TrainConfig, fit
from rotarymae.training import plan as plan_batches
from rotarymae.training.fit_config import FitConfig

KEPT = 24  # numbers per token, block and unit of width, gradients on the way included
WINDOWS = (8192, 4096, 2048, 1024, 512, 256)  # observations, of which the largest that fits is advised
PLAN = Path("training/plan.json")
Stage = Literal["pre-training", "fine-tuning"]
FOLDERS: dict[Stage, str] = {"pre-training": "pretrain", "fine-tuning": "finetune"}
Schedule = Callable[[Objective, Examples, TrainConfig], TrainConfig]
OnStep = Callable[[int, int, float], None]

# Shares of the minutes at which the stages end; scoring and the report have the rest.
PRETRAINED, TRAINED = 0.25, 0.85
# Seconds that calibration, scoring and report take of even a small table; of very few minutes half are for training.
AFTERWARDS, LEAST_SHARE = 20.0, 0.5
# Steps that are slower than the others, steps that are measured, and seconds after which two of them are enough.
WARMUP_STEPS, MEASURED_STEPS, PATIENCE = 10, 10, 15.0
MIN_STEPS = 100  # fewer are too few to learn from


def largest_step(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray) -> float:
    """Return the bytes of memory for the largest training step on series of these lengths [S], over both stages."""
    return max(_memory(config, sizes, lengths, pretrains) for pretrains in (True, False))


def check_memory(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray, noun: str = "series") -> None:
    """Refuse a training whose largest step does not fit into memory: the first training of the run.

    Args:
        config: how it is trained.
        sizes: the model.
        lengths: [S] tokens of each example.
        noun: what the examples are.

    Raises:
        InputError: with the memory that it would take, and what to do.
    """
    first, free = config.pretrains, _free_memory()
    memory = _memory(config, sizes, lengths, first)
    if memory <= free:
        return
    fits = (n for n in WINDOWS if _memory(config, sizes, np.minimum(lengths, n), first) <= free)
    window, advice = next(fits, None), "Take"
    if noun != "series":
        advice = f"Take larger patches, make the {noun} smaller, or take"
    elif window is not None:
        advice = f"Cut the series into windows of {window} observations, or take"
    raise InputError(
        f"a step of {'pre-training' if first else 'fine-tuning'} would take {memory / 2**30:.3g} GiB of memory, and "
        f"{free / 2**30:.3g} GiB are free: the longest of the {len(lengths):,} {noun} has {lengths.max():,} "
        f"{'observations' if noun == 'series' else 'patches'}. {advice} a smaller size or a smaller batch_size.",
        code="too-little-memory",
        settings=[("window", window)] if window is not None and noun == "series" else [],
    )


def _memory(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray, pretrains: bool) -> float:
    """Return the bytes that the largest batch keeps for the backward pass."""
    batch_size = (config.pretraining() if pretrains else config.finetuning()).batch_size or 1
    tokens = int(lengths.max()) * min(batch_size, len(lengths))
    if not pretrains:
        return 4.0 * KEPT * float(tokens * sizes.depth * sizes.embed_dim)
    encoder = tokens * (1 - np.mean(config.mask_ratio)) * sizes.depth * sizes.embed_dim
    return 4.0 * KEPT * float(encoder + tokens * sizes.decoder_depth * sizes.decoder_embed_dim)


def _free_memory() -> float:
    return float(torch.cuda.mem_get_info()[0]) if torch.cuda.is_available() else free_memory()


class Plan:
    """The steps of both trainings of a run.

    Args:
        out: the run folder.
        config: how the run trains; its `minutes` decide the steps.
        finetunes: whether fine-tuning follows pre-training.
        started: time.monotonic() at the start of the run.
        resume: whether to continue an interrupted run in the folder.
    """

    def __init__(
        self,
        out: Path,
        config: FitConfig,
        finetunes: bool,
        started: float,
        reporter: Reporter,
        resume: bool = False,
    ) -> None:
        """Prepare the plan of a run; a resumed run reads the numbers of steps that it chose before.

        Args:
            finetunes: whether a fine-tuning follows pre-training.
            started: time.monotonic() when the run began, from which `minutes` count.
        """
        self.path, self.config, self.finetunes = out / PLAN, config, finetunes
        self.started, self.reporter, self.resume = started, reporter, resume
        # Of a trained model, epochs say that its pre-training continues.
        names = ("finetune_epochs", "min_steps") + (("pretrain_epochs",) if config.pretrained is None else ())
        given = [name for name in names if getattr(config, name) != getattr(FitConfig, name)]
        if config.minutes is not None and given:
            reporter.warn(f"minutes decide how many steps are made; {', '.join(given)} have no effect with them.")

    def options(self, stage: Stage, on_step: OnStep) -> dict[str, Any]:
        """Return schedule, folder, resume and on_step of a stage, as `train.pretrain` and `train.finetune` need."""
        return {
            "schedule": partial(self.schedule, stage),
            "on_step": on_step,
            "folder": self.path.parent / FOLDERS[stage],
            "resume": "auto" if self.resume else "never",
            "on_resume": self.reporter.say,
        }

    def schedule(self, stage: Stage, objective: Objective, examples: Examples, training: TrainConfig) -> TrainConfig:
        """Return the settings of a stage; with `minutes`, the number of steps is what fits into its share of them."""
        if self.config.minutes is None:
            return training
        per_epoch = len(plan_batches(examples.lengths, training.seed, 0, training.batch_size, training.batch_tokens))
        before = self._read()
        if stage in before:
            return _of_steps(training, before[stage], per_epoch)
        # Evaluations of the validation part come after every epoch; they cost a third of a step, each.
        fraction = self.config.validation_fraction
        per_step = measure_step(objective, examples, training)
        per_step *= 1 + fraction / (1 - fraction) / 3
        # A resumed run does not know what the interrupted one took: no stage gets more than its share.
        end = PRETRAINED if stage == "pre-training" and self.finetunes else TRAINED
        seconds = 60 * self.config.minutes
        seconds *= max(LEAST_SHARE, min(1.0, (seconds - AFTERWARDS) / (seconds * TRAINED)))
        left = seconds * end - (time.monotonic() - self.started)
        before_it = PRETRAINED if stage == "fine-tuning" and self.config.pretrains else 0.0
        most = seconds * (end - before_it)
        steps = max(1, math.floor(min(left, most) / per_step))
        write_text(self.path, json.dumps({**before, stage: steps}) + "\n")
        epochs = math.ceil(steps / per_epoch)
        part = "" if steps >= per_epoch else f" ({steps / per_epoch:.1%} of the training part)"
        self.reporter.say(f"plan: {stage} makes {epochs:,} epochs of {steps // epochs:,} steps{part}")
        if steps < MIN_STEPS:
            few = f"{stage} makes {steps:,} steps, which are few to learn from"
            self.reporter.warn(f"{few}: give more minutes, or a smaller batch_size.")
        return _of_steps(training, steps, per_epoch)

    def _read(self) -> dict[str, int]:
        """Return {stage: steps} that an interrupted run has chosen; {} for a new run."""
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return {stage: steps for stage, steps in kept.items() if type(steps) is int and steps > 0}


def _of_steps(training: TrainConfig, steps: int, per_epoch: int) -> TrainConfig:
    """Return the settings changed to about `steps` steps, in epochs of equal length."""
    epochs = math.ceil(steps / per_epoch)
    return replace(training, epochs=epochs, epoch_steps=steps // epochs, min_steps=0)


def median_step(ends: list[float]) -> float:
    """Return the median seconds per step from the times at which steps ended, without the first ones."""
    seconds = np.diff(ends)
    return float(np.median(seconds[min(WARMUP_STEPS, len(seconds) // 2) :]))


class _Measured(Exception):
    """Raised to end a training that only measures its steps."""


def measure_step(objective: Objective, examples: Examples, training: TrainConfig) -> float:
    """Return the seconds per training step, measured on some steps with a copy of the model."""
    ends: list[float] = []

    def on_step(step: int, steps: int, loss: float) -> None:
        """Note the time of a step; end the training when enough steps are measured."""
        ends.append(time.monotonic())
        late = len(ends) > 3 and ends[-1] - ends[0] > PATIENCE
        if late or len(ends) > WARMUP_STEPS + MEASURED_STEPS:
            raise _Measured

    enough = replace(training, epochs=1, min_steps=WARMUP_STEPS + MEASURED_STEPS + 1, patience=None, keep_best=False)
    with suppress(_Measured):
        fit(copy.deepcopy(objective), examples, enough, on_step=on_step)
    return median_step(ends)
