"""How many steps a run makes, and when it will be done: planned from a few measured steps before each training.

A plan is kept in the run folder, so that a resumed run has the learning rates of the interrupted one.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rotarymae.batch import Examples
from rotarymae.model import MaskedAutoencoder
from rotarymae.system import Reporter, duration, write_text
from rotarymae.tasks.config import FitConfig
from rotarymae.tasks.cost import step_operations
from rotarymae.training import Objective, TrainConfig, fit, is_main_process, of_main_process
from rotarymae.training import plan as plan_batches

PLAN = Path("training/plan.json")
Stage = Literal["pre-training", "fine-tuning"]
Schedule = Callable[[Objective, Examples, TrainConfig], TrainConfig]

# Shares of the minutes at which the stages end; scoring and the report have the rest.
PRETRAINED, TRAINED = 0.25, 0.85
WARMUP, MEASURED, PATIENCE = 10, 10, 15.0  # steps, steps, seconds; what is measured is soon known well enough
FEW = 100  # steps, which are over before a plan would be of use


class Plan:
    """The epochs of both trainings of a run, or as much of one as fits.

    Args:
        out: the run folder.
        config: how the run trains; its `minutes` decide the steps.
        finetunes: whether fine-tuning follows pre-training.
        started: time.monotonic() at the start of the run.
    """

    def __init__(self, out: Path, config: FitConfig, finetunes: bool, started: float, reporter: Reporter) -> None:
        self.path, self.config, self.finetunes = out / PLAN, config, finetunes
        self.started, self.reporter = started, reporter
        # Of a trained model, epochs say that its pre-training goes on.
        names = ("finetune_epochs", "min_steps") + (("pretrain_epochs",) if config.pretrained is None else ())
        given = [name for name in names if getattr(config, name) != getattr(FitConfig, name)]
        if config.minutes is not None and given:
            reporter.warn(f"minutes decide how many steps are made; {', '.join(given)} have no effect beside them.")

    def schedule(self, stage: Stage, objective: Objective, examples: Examples, training: TrainConfig) -> TrainConfig:
        """The settings of a stage, with the epochs that fit."""
        per_epoch = len(plan_batches(examples.lengths, training.seed, 0, training.batch_size, training.batch_tokens))
        steps = per_epoch * training.passes(per_epoch)
        before = of_main_process(self._read())
        minutes = self.config.minutes
        if stage in before:
            return _of_steps(training, before[stage], per_epoch)
        if minutes is None and steps < FEW:
            return training
        # Evaluations of the validation part come after every epoch; they cost a third of a step, each.
        fraction = self.config.validation_fraction
        per_step = of_main_process(measure_step(objective, examples, training)) * (1 + fraction / (1 - fraction) / 3)
        if minutes is not None:
            # A resumed run does not know what the interrupted one took: no stage gets more than its share.
            end = PRETRAINED if stage == "pre-training" and self.finetunes else TRAINED
            left = 60 * minutes * end - (time.monotonic() - self.started)
            before_it = PRETRAINED if stage == "fine-tuning" and self.config.pretrains else 0.0
            most = 60 * minutes * (end - before_it)
            steps = of_main_process(max(1, math.floor(min(left, most) / per_step)))
            training = _of_steps(training, steps, per_epoch)
            if is_main_process():
                write_text(self.path, json.dumps({**before, stage: steps}) + "\n")
        seconds, epochs = steps * per_step, math.ceil(steps / per_epoch)
        part = "" if steps >= per_epoch else f" ({steps / per_epoch:.1%} of the training part)"
        self.reporter.say(
            f"plan: {stage} makes {epochs:,} epochs of {steps // epochs:,} steps{part} in about {duration(seconds)}; "
            f"{self._end(stage, seconds, per_step, per_epoch, objective, examples)}"
        )
        if minutes is not None and steps < FEW:
            few = f"{stage} makes {steps:,} steps, which are few to learn from"
            self.reporter.warn(f"{few}: give more minutes, or a smaller batch_size.")
        return training

    def _end(
        self, stage: str, seconds: float, per_step: float, per_epoch: int, objective: Objective, examples: Examples
    ) -> str:
        """When the run will be done, in words; `seconds` are those of the stage."""
        if self.config.minutes is not None:
            minutes, epoch = 60 * self.config.minutes, per_epoch * per_step  # which scoring all series takes at most
            total = max(minutes, TRAINED * minutes + epoch) - (time.monotonic() - self.started)
        else:
            if stage == "pre-training" and self.finetunes and isinstance(objective.model, MaskedAutoencoder):
                sizes, lengths = objective.model.config, examples.lengths
                one, other = (step_operations(self.config, sizes, lengths, first).sum() for first in (True, False))
                passes, before = self.config.finetuning().passes(per_epoch), self.config.pretraining().passes(per_epoch)
                seconds *= 1 + passes / before * other / one
            total = seconds / TRAINED
        return f"the whole run ends at about {time.strftime('%H:%M', time.localtime(time.time() + total))}."

    def _read(self) -> dict[str, int]:
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return {stage: steps for stage, steps in found.items() if type(steps) is int and steps > 0}


def _of_steps(training: TrainConfig, steps: int, per_epoch: int) -> TrainConfig:
    """The settings that make about so many steps, in epochs of equal length."""
    epochs = math.ceil(steps / per_epoch)
    return replace(training, epochs=epochs, epoch_steps=steps // epochs, min_steps=0)


class _Measured(Exception):
    """Enough steps have been timed."""


def measure_step(objective: Objective, examples: Examples, training: TrainConfig) -> float:
    """Seconds per step of a training, from some steps of a copy; the objective is left as it is."""
    ends = [time.monotonic()]

    def on_step(step: int, steps: int, loss: float) -> None:
        ends.append(time.monotonic())
        late = len(ends) > 3 and ends[-1] - ends[1] > PATIENCE
        if of_main_process(late or len(ends) > WARMUP + MEASURED + 1):
            raise _Measured

    try:
        long_enough = replace(training, epochs=1, min_steps=WARMUP + MEASURED + 1, patience=None, keep_best=False)
        fit(copy.deepcopy(objective), examples, long_enough, on_step=on_step)
    except _Measured:
        pass
    warm = ends[min(WARMUP, (len(ends) - 1) // 2) :]
    return (warm[-1] - warm[0]) / (len(warm) - 1)
