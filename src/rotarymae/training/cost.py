"""Estimate the cost of a run: the memory of its largest step, and what fits into `minutes`.

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

from rotarymae.batch import Examples, plan_batches
from rotarymae.config import RoMAEConfig
from rotarymae.errors import InputError
from rotarymae.system import Reporter, duration, free_memory, moment, write_text
from rotarymae.training import Objective, TrainConfig, evaluate, fit
from rotarymae.training.fit_config import FitConfig

KEPT = 24  # numbers per token, block and unit of width, gradients on the way included
WINDOW_SIZES = (8192, 4096, 2048, 1024, 512, 256)  # observations, of which the largest that fits is advised
PLAN = Path("training/plan.json")
Stage = Literal["pre-training", "fine-tuning"]
FOLDERS: dict[Stage, str] = {"pre-training": "pretrain", "fine-tuning": "finetune"}
Schedule = Callable[[Objective, Examples, Examples | None, TrainConfig], TrainConfig]
OnStep = Callable[[int, int, float], None]

# Seconds that calibration, and tables with the report, take of any table on a processor of their own; and at most how
# many times that where other work uses it, too.
CALIBRATION, REPORT, MOST_SHARED = 6.0, 8.0, 5.0
# Shares of what is left that pre-training (where fine-tuning follows), partners and answers get at most.
PRETRAINED, PARTNERS, ANSWERS = 0.25, 0.25, 0.2
LATE = 0.05  # of the minutes; answers of all series may take so much longer than planned
COMPARED = 500  # series and copies per minute of a processor that partners learn from when methods are compared
LEAST_ANSWERED = 2000  # observations of a series that are answered in any case
# Steps that are slower than the others, steps that are measured, and seconds after which two of them are enough.
WARMUP_STEPS, MEASURED_STEPS, PATIENCE = 10, 10, 5.0
EVALUATED = 16_384  # tokens that are evaluated to measure one
MIN_STEPS = 100  # fewer are too few to learn from


def check_memory(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray, noun: str = "series") -> None:
    """Raise InputError if the largest training step of a run would probably not fit into free memory.

    The step is one of pre-training, or of fine-tuning if the run has no pre-training. Memory is that of the GPU, if
    torch sees one, else the computer's. The message says how much the step would take, and what to change. For series
    it advises to cut them into windows (pieces) of the greatest length, of 8,192, 4,096, ... 256 observations, with
    which the step fits. The error's `settings` are then [("window", this length)]. Otherwise they are [].

    Args:
        config: options of the fit; batch sizes and mask ratio are used.
        sizes: configuration of the model.
        lengths: [S] number of tokens of each example.
        noun: what the message calls the examples: "series", or another word, such as "images", for data that are cut
            into patches.
    """
    first = config.pretrains
    free = float(torch.cuda.mem_get_info()[0]) if torch.cuda.is_available() else free_memory()
    memory = _memory(config, sizes, lengths, first)
    if memory <= free:
        return
    fits = (n for n in WINDOW_SIZES if _memory(config, sizes, np.minimum(lengths, n), first) <= free)
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
    """Estimate the bytes that a training step keeps for its backward pass, if every example is as long as the longest.

    Args:
        config: options of the fit; batch sizes and mask ratio are used.
        sizes: configuration of the model.
        lengths: [S] number of tokens of each example.
        pretrains: True for pre-training, in which the encoder reads visible tokens only and a decoder follows; False
            for fine-tuning.
    """
    batch_size = (config.pretraining() if pretrains else config.finetuning()).batch_size or 1
    tokens = int(lengths.max()) * min(batch_size, len(lengths))
    if not pretrains:
        return 4.0 * KEPT * float(tokens * sizes.depth * sizes.embed_dim)
    encoder = tokens * (1 - np.mean(config.mask_ratio)) * sizes.depth * sizes.embed_dim
    return 4.0 * KEPT * float(encoder + tokens * sizes.decoder_depth * sizes.decoder_embed_dim)


class Plan:
    """Divides the time of a run among its stages, if the option `minutes` limits it.

    The stages are
    - pre-training, with a share of the time that is left after reading;
    - the partners (methods trained next to the network, such as boosting), with another share;
    - fine-tuning, with the rest, minus what follows: a prediction of all series, one of the scored series, the report.

    If these predictions would take more than `ANSWERS` of the time, fewer series are predicted. Without `minutes`
    nothing is limited, and the plan only knows the folders of the trainings.
    """

    def __init__(
        self,
        folder: Path,
        config: FitConfig,
        started: float | None = None,
        reporter: Reporter | None = None,
        resume: bool = False,
    ) -> None:
        """Start the clock of a run; warn if numbers of epochs or steps are given, but overridden by `minutes`.

        No warning is given for `pretrain_epochs` with a trained model to start from, because it means there that
        pre-training continues.

        Args:
            folder: the run folder; each training, and plan.json, is kept in its subfolder "training".
            config: options of the fit; its `minutes` are those of the whole run, None for no limit.
            started: time.monotonic() at the start of the run; now if None.
            reporter: says how long the run will take, and shows warnings; None shows warnings only.
            resume: whether to continue an interrupted run in the folder.
        """
        self.folder, self.config, self.resume = folder, config, resume
        self.reporter = reporter or Reporter(quiet=True)
        self.started = time.monotonic() if started is None else started
        self.began = time.monotonic(), time.process_time()
        self.token = 0.0  # seconds to answer a token, once a training has measured it
        # Of the data, set after the split: tokens of each series, series that are scored, those of fine-tuning (None
        # without it), and the number of networks, each of which predicts all series.
        self.lengths, self.scored = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.finetuned: np.ndarray | None = None
        self.members = 1
        # Of a trained model, epochs say that its pre-training continues.
        names = ("finetune_epochs", "min_steps") + (("pretrain_epochs",) if config.pretrained is None else ())
        given = [name for name in names if getattr(config, name) != getattr(FitConfig, name)]
        if config.minutes is not None and given:
            self.reporter.warn(
                f"{', '.join(given)} have no effect, as minutes decide how many steps are made; leave them out."
            )

    @property
    def seconds(self) -> float:
        """Number of seconds that the whole run may take; infinite without the option `minutes`."""
        return 60 * (self.config.minutes or math.inf)

    @property
    def left(self) -> float:
        """Number of seconds until the run should end; negative if it is late, infinite without the option `minutes`."""
        return self.seconds - (time.monotonic() - self.started)

    @property
    def prediction_seconds(self) -> float:
        """Estimated seconds that the predictions at the end of a run take.

        Each network predicts all series; then the series that are scored are predicted once more. The estimate is 0
        until `schedule` has measured the time per token, so without the option `minutes` it is always 0.
        """
        return self.token * float(self.members * self.lengths.sum() + self.lengths[self.scored].sum())

    @property
    def slowdown(self) -> float:
        """How many times longer work takes than on a processor that no other program uses.

        It is the wall time since this object was made, divided by the processor time that this process got since then,
        and limited to 1 to 5.
        """
        wall, processor = time.monotonic() - self.began[0], time.process_time() - self.began[1]
        return min(max(1.0, wall / max(processor, 1e-3)), MOST_SHARED)

    def report_seconds(self, calibrates: bool = False) -> float:
        """Estimate the seconds that a run's report takes; with `calibrates`, also the calibration of prediction bands.

        The estimate does not depend on the data, but grows if other programs use the processor, too.
        """
        return self.slowdown * (REPORT + (CALIBRATION if calibrates else 0.0))

    # ── trainings ───────────────────────────────────────────────────────────────────────────────────────────────────

    def options(self, stage: Stage, on_step: OnStep) -> dict[str, Any]:
        """Return the keyword arguments that say how a stage is trained, for `train.pretrain` or `train.finetune`.

        Args:
            stage: "pre-training" or "fine-tuning".
            on_step: shows progress; called with (step, steps in all, running mean loss).

        Returns:
            A dictionary with schedule (the method `schedule` of this stage, which sets the number of steps), on_step
            (as given), folder (where the stage's log and checkpoint are kept), resume ("auto" if the run is resumed,
            else "never") and on_resume (prints a sentence that says where a resumed training begins).
        """
        return {
            "schedule": partial(self.schedule, stage),
            "on_step": on_step,
            "folder": self.folder / PLAN.parent / FOLDERS[stage],
            "resume": "auto" if self.resume else "never",
            "on_resume": self.reporter.say,
        }

    def schedule(
        self,
        stage: Stage,
        objective: Objective,
        examples: Examples,
        validation: Examples | None,
        training: TrainConfig,
    ) -> TrainConfig:
        """Set the number of steps of a training so that it ends in time; return its settings with that number.

        Without the option `minutes` the settings are returned unchanged, and nothing else happens. Otherwise the times
        of a token and of a step are measured (weights do not change); the number of steps, at least 1, is stored in
        plan.json, and printed with the time at which the run will end. Fewer than 100 steps give a warning. A resumed
        run takes the number from plan.json, and prints nothing.

        Args:
            stage: "pre-training" or "fine-tuning".
            objective: the model and its loss; its weights do not change.
            examples: training data.
            validation: data that are evaluated after each epoch, which takes time, too; None for none.
            training: the settings; their fields epochs, epoch_steps and min_steps are replaced.

        Returns:
            The changed settings. If several networks are trained, each of them is trained with these.
        """
        if self.config.minutes is None:
            return training
        per_epoch = len(plan_batches(examples.lengths, training.seed, 0, training.batch_size, training.batch_tokens))
        self.token = measure_token(objective, examples, training)
        kept = self._planned()["steps"].get(stage)
        if kept is not None:
            return _with_steps(training, kept, per_epoch)
        step = measure_step(objective, examples, training)
        if validation is not None:  # it is evaluated after every epoch; of a part of an epoch, as large a part of it
            step += self.token * float(validation.lengths.sum()) / per_epoch
        fixed = self.report_seconds(calibrates=stage == "pre-training")
        reserve = min(fixed + min(self.prediction_seconds, ANSWERS * self.left), self.left / 2)
        share = PRETRAINED if stage == "pre-training" and self.finetuned is not None else 1.0
        # A resumed run does not know what the interrupted one took: fine-tuning gets no more than its share.
        most = self.seconds * (1 - PRETRAINED if stage == "fine-tuning" and self.config.pretrains else 1.0)
        step *= self.members
        steps = self._store("steps", stage, max(1, math.floor(min(share * (self.left - reserve), most) / step)))
        training = _with_steps(training, steps, per_epoch)
        each = training.epoch_steps or per_epoch
        made = training.epochs * each
        part = "" if made >= per_epoch else f" ({made / per_epoch:.1%} of the training part)"
        self.reporter.say(f"plan: {stage} makes {training.epochs:,} epochs of {each:,} steps{part}")
        if made < MIN_STEPS:
            few = f"{stage} makes {made:,} steps, which are few to learn from"
            self.reporter.warn(f"{few}: give more minutes, or a smaller batch_size or window.")
        ahead = step * steps / share + fixed
        ahead += min(self.prediction_seconds, max(self.left - ahead, LATE * self.seconds))
        whole = time.monotonic() - self.started + ahead
        self.reporter.say(f"the run takes about {duration(whole)} in all, until {moment(ahead)}")
        return training

    # ── partners, and answers ───────────────────────────────────────────────────────────────────────────────────────

    @property
    def max_rows_to_compare(self) -> float:
        """Largest number of rows from which a method such as boosting learns when it is compared with the network.

        Rows are series and the copies of them that a method makes. The number is 500 per minute of the run, divided by
        `slowdown` (how many times longer work takes because other programs use the processor), and rounded up; it is
        infinite without the option `minutes`.
        """
        return math.inf if self.config.minutes is None else math.ceil(COMPARED * self.config.minutes / self.slowdown)

    def max_rows_to_learn(self, name: str, compared: int, seconds: float) -> float:
        """Return the number of rows from which a method such as boosting can learn in a quarter of the time left.

        It is estimated from an earlier fit, as if time were proportional to the number of rows, and stored in
        plan.json; a resumed run takes it from there. Rows are series and the copies of them that a method makes.

        Args:
            name: name of the method.
            compared: number of rows of the earlier fit.
            seconds: duration of the earlier fit.

        Returns:
            A whole number, at least `compared`; infinity without the option `minutes`.
        """
        if self.config.minutes is None:
            return math.inf
        fit = PARTNERS * self.left / max(seconds, 1e-9) * compared
        return self._planned()["rows"].get(name) or self._store("rows", name, int(max(compared, fit)))

    def series_to_predict(self) -> tuple[np.ndarray, int] | None:
        """Return the series that there is time to predict at the end of a run, and the length to cut them to.

        If there is no time for all:

        - Without fine-tuning, long series are cut to the length at which there is time to predict four series (all, if
          there are fewer) twice: for the results, and to score them. The length is at least 2,000 observations.
        - With fine-tuning, series stay whole, because a label belongs to a whole series.
        - In both cases as many series as there is time for, at least one, are drawn at random by the seed of the fit.

        Returns:
            Ascending indices of the series, and the largest number of observations of a series. None if there is time
            to predict all series whole; always None without the option `minutes`.
        """
        left = self.left - self.report_seconds()
        if self.config.minutes is None or self.prediction_seconds <= left + LATE * self.seconds:
            return None
        draw = np.random.default_rng(self.config.seed)
        room = max(left, LATE * self.seconds) / self.token
        most = int(self.lengths.max())
        if self.finetuned is None:  # a class or number is of the whole series
            most = max(LEAST_ANSWERED, int(room / (2 * min(4, len(self.lengths)))))
        cost = np.minimum(self.lengths, most) * (self.members + np.isin(np.arange(len(self.lengths)), self.scored))
        order = draw.permutation(len(cost))
        count = max(1, int(np.searchsorted(np.cumsum(cost[order]), room, side="right")))
        whole = count == len(order) and most >= self.lengths.max()
        return None if whole else (np.sort(order[:count]), most)

    # ── plan.json ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _store(self, kind: Literal["steps", "rows"], name: str, number: int) -> int:
        """Add a planned number, at least 1, to plan.json, so that a resumed run has the same; return the number.

        It is a number of "steps" of a stage of training, or of "rows" from which a method such as boosting learns; the
        stage or the method is called `name`.
        """
        planned = self._planned()
        planned[kind][name] = number
        write_text(self.folder / PLAN, json.dumps(planned) + "\n")
        return number

    def _planned(self) -> dict[str, dict[str, int]]:
        """Read plan.json: return {"steps": {stage: training steps}, "rows": {method: rows that it may learn from}}.

        Only whole numbers of 1 or more are returned. Both dictionaries are empty if the file is missing, damaged or of
        an older version.
        """
        try:
            kept = json.loads((self.folder / PLAN).read_text(encoding="utf-8"))
            parts = {kind: dict(kept[kind]).items() for kind in ("steps", "rows")}
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return {"steps": {}, "rows": {}}
        return {kind: {name: n for name, n in part if type(n) is int and n > 0} for kind, part in parts.items()}


def _with_steps(training: TrainConfig, steps: int, per_epoch: int) -> TrainConfig:
    """Return a training's settings, changed to about `steps` steps, never more, in epochs of equal length.

    An epoch is a whole pass over all examples, or a part of a pass if the total then comes nearer to `steps`.

    Args:
        training: the settings; epochs, epoch_steps and min_steps are replaced in a copy.
        steps: at least 1.
        per_epoch: number of steps of a pass over all examples.
    """
    more = math.ceil(steps / per_epoch)
    epochs, each = max((steps // per_epoch, per_epoch), (more, steps // more), key=math.prod)
    return replace(training, epochs=epochs, epoch_steps=each, min_steps=0)


class _Measured(Exception):
    """Raised to end a training that only measures its steps."""


def measure_step(objective: Objective, examples: Examples, training: TrainConfig) -> float:
    """Measure the seconds of a training step: the median of ten steps after ten others, of fewer if steps are slow.

    Args:
        objective: the model and its loss; a copy is trained, so its weights do not change.
        examples: training data.
        training: settings of the training, such as the batch size.
    """
    ends: list[float] = []

    def on_step(step: int, steps: int, loss: float) -> None:
        """Note the time at which a step ended; raise _Measured when enough are measured. Arguments are not used."""
        ends.append(time.monotonic())
        if len(ends) > WARMUP_STEPS + MEASURED_STEPS or (len(ends) > 3 and ends[-1] - ends[0] > PATIENCE):
            raise _Measured

    some = replace(training, epochs=1, min_steps=WARMUP_STEPS + MEASURED_STEPS + 1, keep_best=False)
    with suppress(_Measured):
        fit(copy.deepcopy(objective), examples, some, on_step=on_step)
    seconds = np.diff(ends)
    return float(np.median(seconds[min(WARMUP_STEPS, len(seconds) // 2) :]))


def measure_token(objective: Objective, examples: Examples, training: TrainConfig) -> float:
    """Measure how many seconds a forward pass without gradients takes per token.

    It reads training batches with about 16,000 tokens in all, or all tokens if there are fewer.

    Args:
        objective: the model and its loss; its weights do not change.
        examples: training data.
        training: settings of the training; seed, size of the batches and precision are used.
    """
    every = plan_batches(examples.lengths, training.seed, 0, training.batch_size, training.batch_tokens)
    tokens = np.cumsum([examples.lengths[index].sum() for index in every])
    some = every[: int(np.searchsorted(tokens, EVALUATED)) + 1]
    evaluate(objective, examples, training, batches=every[:1])  # the first pass is slower
    started = time.monotonic()
    evaluate(objective, examples, training, batches=some)
    return (time.monotonic() - started) / float(tokens[len(some) - 1])
