"""The training loop, on one device.

A step is a pure function of the weights, the optimiser's state and (seed, epoch, batch number): batches, masks,
augmentation and dropout are all derived from these three, so a resumed run takes the steps the interrupted one would
have taken.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rotarymae.batch import Batch, Examples, plan_batches
from rotarymae.errors import InputError, InputWarning, RotaryMAEError, choose
from rotarymae.training.checkpointing import RunFolder, RunState
from rotarymae.training.evaluation import autocast, default_device, evaluate, taken_precision
from rotarymae.training.fit_config import TrainConfig
from rotarymae.training.objectives import Objective
from rotarymae.transformer import Block, drawing_from

MAX_SKIPPED = 10  # steps with a non-finite loss or gradient, after which a training ends
MANY_SKIPPED = 0.03  # share of skipped steps from which on a warning is given
WORSE = 0.5  # than where it began, at least, before a loss has diverged: data are standardised
MOMENTUM = 0.9  # of SGD
TOO_FEW_STEPS = 20  # below which the first and the last loss are not compared


class TrainingDiverged(RotaryMAEError):
    """Too many steps had a non-finite loss or gradient, or a weight is not finite; the last good checkpoint stays."""


@dataclass
class TrainResult:
    """History and totals of a run.

    Attributes:
        history: dictionaries in the order of time, each with step and epoch, and of one of three kinds: with loss (mean
            of the steps since the last one of this kind) and lr, every `log_every` steps; with validation (the loss),
            after an epoch; with skipped (number of steps skipped so far) and series (names), after a skipped step.
        seconds: wall time of this call's part of the run.
        tokens: number of tokens trained on, without padding.
        steps: number of steps, skipped ones included.
        skipped: number of steps that changed no weight, because the loss or the gradient was not finite.
        best: the best validation loss, or None without one.
        resumed_step: the step after which a resumed run went on; None for a run that began at the start.
    """

    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    tokens: int = 0
    steps: int = 0
    skipped: int = 0
    best: float | None = None
    resumed_step: int | None = None


def fit(
    objective: Objective,
    examples: Examples,
    config: TrainConfig,
    *,
    validation: Examples | None = None,
    folder: str | Path | None = None,
    resume: str = "never",
    on_step: Callable[[int, int, float], None] | None = None,
    on_resume: Callable[[str], None] | None = None,
) -> TrainResult:
    """Train `objective.model` in place, leave it on the CPU in evaluation mode, and return history and totals.

    The training runs on torch's accelerator, or on the CPU if there is none. The model has its last weights afterwards;
    with `keep_best`, those of the best finite validation loss, if there is one.

    Args:
        objective: model and loss.
        examples: training data.
        config: settings of the training.
        validation: data that are evaluated after every epoch, with the same masks each time; None for none. If
            `epoch_steps` shortens an epoch to a part of `examples`, about as large a part of these data is evaluated.
        folder: where log.jsonl and checkpoints are written; None keeps nothing.
        resume: "never" refuses a folder with a run in it; "auto" continues from its checkpoint, if there is one. Data
            and settings must then be the same as before, which is not checked.
        on_step: called after each step with (step, steps in all, running mean loss), for progress bars.
        on_resume: called with a sentence that says where a run with resume="auto" begins; never called without a
            folder.

    Raises:
        InputError: no training examples, or validation examples given but empty; another `resume`; a folder with a run
            in it, if `resume` is "never"; a folder in which another process trains.
        TrainingDiverged: more than ten steps had a non-finite loss or gradient, or a weight is not finite.
            Skipped steps from before a resumption count, but at least one must be new.
        ModelDirectoryError: the checkpoint is damaged or does not fit the model.
        OSError: a checkpoint or the log could not be written; earlier checkpoints stay.

    Warns:
        InputWarning: over 3 % of the steps were skipped; or the loss ended far above where it began.
    """
    choose("resume", resume, ("never", "auto"))
    if len(examples.lengths) == 0:
        raise InputError("there are no training examples; give at least one.")
    if validation is not None and len(validation.lengths) == 0:
        raise InputError("there are no validation examples; give at least one, or validation=None.")
    with with_gradients():
        loop = _Loop(objective, examples, config, validation, folder)
        try:
            compiled = compile_blocks(objective.model) if config.compile else nullcontext()
            with compiled, drawing_from(loop.generator, objective):
                return loop.run(resume, on_step, on_resume)
        finally:
            if loop.run_folder is not None:
                loop.run_folder.close()
            objective.to("cpu").eval()


class _Loop:
    """The state of one call of `fit`: model, optimiser, place in the run, history. Call `run` once to train."""

    def __init__(
        self,
        objective: Objective,
        examples: Examples,
        config: TrainConfig,
        validation: Examples | None,
        folder: str | Path | None,
    ) -> None:
        """Move the model to the default device; create an optimiser and the counters of a new run.

        `objective` is the model with its loss. Without `validation` no epoch is evaluated; without `folder` nothing is
        kept. Nothing is written to the folder before `run`.
        """
        self.objective, self.examples, self.config = objective, examples, config
        self.validation = validation
        self.device = default_device()
        objective.to(self.device)
        self.generator = torch.Generator(self.device)
        self.optimizer = make_optimizer(objective.model, config)
        self.parameters = [p for p in objective.model.parameters() if p.requires_grad]
        self.state = RunState()
        self.run_folder = None if folder is None else RunFolder(Path(folder))
        self.best_weights: dict[str, Tensor] | None = None
        self.result = TrainResult()
        self.last_checkpoint = time.monotonic()
        self.last_skip_message = ""

    def run(
        self,
        resume: str,
        on_step: Callable[[int, int, float], None] | None,
        on_resume: Callable[[str], None] | None,
    ) -> TrainResult:
        """Train all epochs, evaluate after each, and save checkpoints; return the history and totals.

        The model ends with its last weights; with `keep_best`, with those of the best finite validation loss. Without a
        folder no checkpoint is saved, and `resume` and `on_resume` have no effect. Errors and warnings are as in `fit`.

        Args:
            resume: "never" refuses a folder with a run in it; "auto" continues from its checkpoint, if there is one.
            on_step: called after each step with (step, steps in all, running mean loss); None for none.
            on_resume: with "auto", called with a sentence that says where training begins; None for none.
        """
        config, state, started = self.config, self.state, time.monotonic()
        if self.run_folder is not None:
            self._open(self.run_folder, resume, on_resume)
        lengths, sizes = self.examples.lengths, (config.batch_size, config.batch_tokens)
        per_epoch = len(plan_batches(lengths, config.seed, 0, *sizes)[: config.epoch_steps])
        epochs = max(config.epochs, math.ceil(config.min_steps / per_epoch))
        steps = epochs * per_epoch
        while state.epoch < epochs:
            planned = plan_batches(lengths, config.seed, state.epoch, *sizes)
            batches = planned[: config.epoch_steps]
            for index in batches[state.batch_index :]:
                # Epochs can differ by a batch or two; the schedule follows the share of the epoch that is done.
                at = (state.epoch + state.batch_index / len(batches)) * per_epoch
                loss = self._step(self.examples.batch(index, state.epoch), at, steps)
                state.step, state.batch_index = state.step + 1, state.batch_index + 1
                self._log(loss, at / per_epoch)
                if on_step is not None:
                    on_step(min(steps, round(at) + 1), steps, state.running_loss or 0.0)
                self._checkpoint_if_due()
            self._end_epoch(len(planned) // len(batches))
            self._checkpoint_if_due()
        self._save()
        if config.keep_best and self.best_weights is not None:
            self.objective.model.load_state_dict(self.best_weights)
        self._warn_of_a_poor_run()
        self.result.seconds = time.monotonic() - started
        self.result.steps, self.result.skipped = state.step, state.skipped
        self.result.tokens, self.result.best = state.tokens, state.best
        return self.result

    def _open(self, folder: RunFolder, resume: str, on_resume: Callable[[str], None] | None) -> None:
        """Lock the folder of the run; if it has a checkpoint, load it into model, optimiser and counters.

        With `resume` "never" a folder with a run in it is refused by an InputError; with "auto" `on_resume`, if not
        None, is called with a sentence that says where training begins. Raises ModelDirectoryError for a checkpoint
        that is damaged or does not fit the model.
        """
        folder.open(resume)
        if folder.checkpoint.exists():
            restored = folder.restore(self.objective.model, self.optimizer, self.state)
            self.best_weights, self.result.history = restored
            self.result.resumed_step = self.state.step
        if on_resume is not None and resume != "never":
            step = self.result.resumed_step
            on_resume(
                f"{folder.path} has no checkpoint to resume; training begins at step 1."
                if step is None
                else f"{folder.path}: training goes on after step {step}."
            )

    def _step(self, batch: Batch, at: float, steps: int) -> float | None:
        """Set the learning rate, take one optimiser step on a batch, and return its mean loss.

        If the loss or the gradient is not finite, no weight changes, the step is recorded as skipped, and None is
        returned. If the batch has nothing to predict, no weight changes, and None is returned. Tokens and skipped steps
        are counted here; the caller counts steps.

        Args:
            batch: the data of the step.
            at: number of steps before this one in the schedule of the learning rate; may be a fraction.
            steps: number of steps of the whole schedule.
        """
        config, state = self.config, self.state
        drawn = np.random.SeedSequence([config.seed, state.step, 0]).generate_state(1, np.uint64)[0]
        self.generator.manual_seed(int(drawn >> np.uint64(1)))  # torch's seeds are below 2^63
        warmup = config.warmup_fraction * steps if config.warmup_steps is None else config.warmup_steps
        rate = learning_rate(at, steps, warmup, config.base_lr)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.objective.train()
        with autocast(config, self.device):
            loss = self.objective(batch.to(self.device))
        loss.sum.backward()
        summed, count = float(loss.sum.detach()), float(loss.count)
        state.tokens += sum(int(part.real.sum()) for part in (batch.inputs, batch.masked) if part is not None)
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        if gradients and count:
            torch._foreach_mul_(gradients, 1 / count)  # from the sum to the mean over all real terms
        norm = nn.utils.get_total_norm(gradients)
        finite = math.isfinite(summed) and bool(torch.isfinite(norm))
        if finite and count:  # a batch in which nothing was to be predicted teaches nothing
            if config.gradient_clip is not None:
                nn.utils.clip_grads_with_norm_(self.parameters, config.gradient_clip, norm)
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if finite:
            return summed / count if count else None
        series = self.examples.names(batch.series)
        state.skipped += 1
        self.last_skip_message = f"with series {', '.join(series[:5])}{', …' if len(series) > 5 else ''}"
        self._record({"step": state.step + 1, "epoch": state.epoch, "skipped": state.skipped, "series": series})
        return None

    @property
    def _too_many_skipped(self) -> bool:
        """Whether more than ten steps were skipped in the run, and at least one of them by this process.

        A resumed run is therefore not ended by old skipped steps alone.
        """
        return self.state.skipped > MAX_SKIPPED and bool(self.last_skip_message)

    def _save(self) -> None:
        """Save a checkpoint if there is a folder, and end the training by an error if it has diverged.

        Raises:
            TrainingDiverged: a weight is not finite; nothing is saved. Or too many steps were skipped; the checkpoint
                is saved first, as the weights are still good.
            OSError: the checkpoint could not be written.
        """
        state, config = self.state, self.config
        advice = [f"lower base_lr ({config.base_lr:g})"]
        advice += ["set gradient_clip"] if config.gradient_clip is None else []
        for name, parameter in self.objective.model.named_parameters():
            if not torch.isfinite(parameter.detach()).all():
                raise TrainingDiverged(
                    f"the weight {name} is no longer finite after step {state.step}. To train anew, "
                    f"{' or '.join(advice)}.{self._last_good()}"
                )
        if self.run_folder is not None:
            model, best = self.objective.model, self.best_weights
            self.run_folder.save(model, self.optimizer, state, best, self.result.history)
        self.last_checkpoint = time.monotonic()
        if self._too_many_skipped:
            low = taken_precision(config.precision, self.device) == "bf16"
            advice += ["use precision fp32"] if low else []
            raise TrainingDiverged(
                f"{state.skipped} steps had a non-finite loss or gradient (the last time {self.last_skip_message}). "
                f"Look at these series for extreme values, or {', or '.join(advice)}.{self._last_good()}"
            )

    def _last_good(self) -> str:
        """Return the end of an error message, " The last good checkpoint is PATH."; "" if there is no checkpoint."""
        if self.run_folder is None or not self.run_folder.checkpoint.exists():
            return ""
        return f" The last good checkpoint is {self.run_folder.checkpoint}."

    def _warn_of_a_poor_run(self) -> None:
        """Warn (InputWarning) if over 3 % of the steps were skipped; warn also if the loss ended far above its start.

        A step is skipped if its loss or gradient is not finite. "Far above" means that the running mean at the end
        exceeds the first loss by more than the first loss's absolute value, and by more than 0.5; it is not checked for
        fewer than 20 steps.
        """
        state, config = self.state, self.config
        if state.skipped > MANY_SKIPPED * state.step:
            warnings.warn(
                f"{state.skipped} of {state.step} training steps were skipped, because their loss or gradient was not "
                f"finite{f' (the last time {self.last_skip_message})' if self.last_skip_message else ''}. Look for "
                f"extreme values, or lower base_lr ({config.base_lr:g}).",
                InputWarning,
                stacklevel=4,
            )
        first, last = state.first_loss, state.running_loss
        if (
            state.step >= TOO_FEW_STEPS
            and first is not None
            and last is not None
            and last > first + max(abs(first), WORSE)
        ):
            warnings.warn(
                f"training diverged: the loss began at {first:.4g} and ended at {last:.4g}. Lower base_lr "
                f"({config.base_lr:g}).",
                InputWarning,
                stacklevel=4,
            )

    def _log(self, loss: float | None, epoch: float) -> None:
        """Add a step's loss to the running means; every `log_every` steps, record the mean loss and the learning rate.

        The recorded mean is that of the steps since the last record; if none of them had a loss, nothing is recorded.

        Args:
            loss: mean loss of the step; None if it had no finite one.
            epoch: number of epochs done before this step, with the done part of the current one as a fraction.
        """
        state = self.state
        if loss is not None:
            state.loss_sum, state.loss_count = state.loss_sum + loss, state.loss_count + 1
            state.first_loss = loss if state.first_loss is None else state.first_loss
            before = loss if state.running_loss is None else state.running_loss
            state.running_loss = 0.95 * before + 0.05 * loss
        if state.step % self.config.log_every == 0 and state.loss_count:
            rate = self.optimizer.param_groups[0]["lr"]
            mean = state.loss_sum / state.loss_count
            self._record({"step": state.step, "epoch": round(epoch, 4), "loss": mean, "lr": rate})
            state.loss_sum, state.loss_count = 0.0, 0

    def _record(self, line: dict[str, Any]) -> None:
        """Append a dictionary to the history of the run and, if there is a folder, to its file log.jsonl."""
        self.result.history.append(line)
        if self.run_folder is not None:
            self.run_folder.log(line)

    def _end_epoch(self, every: int) -> None:
        """Count the epoch as done; compute and record the validation loss; copy the weights if it is the lowest so far.

        Weights are copied, to `best_weights`, only with the setting `keep_best`. A loss that is not finite is never the
        lowest. Without validation examples the epoch is only counted.

        Args:
            every: k evaluates only one in k validation examples; 1 evaluates all.
        """
        state, config = self.state, self.config
        state.epoch, state.batch_index = state.epoch + 1, 0
        if self.validation is None:
            return
        loss = evaluate(self.objective, self.validation, config, every)
        self._record({"step": state.step, "epoch": state.epoch, "validation": loss})
        if math.isfinite(loss) and (state.best is None or loss < state.best):
            state.best = loss
            if config.keep_best:
                weights = self.objective.model.state_dict()
                self.best_weights = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}

    def _checkpoint_if_due(self) -> None:
        """Save a checkpoint if `checkpoint_minutes` or `checkpoint_steps` ask for it, or after too many skipped steps.

        Saving also checks the run: it raises TrainingDiverged if a weight is not finite or too many steps were skipped.
        """
        state, config = self.state, self.config
        by_step = config.checkpoint_steps is not None and state.step % config.checkpoint_steps == 0
        due = state.batch_index > 0 and by_step
        late = time.monotonic() - self.last_checkpoint > 60 * config.checkpoint_minutes
        if self._too_many_skipped or due or late:
            self._save()


@contextmanager
def with_gradients() -> Iterator[None]:
    """Compute gradients in the `with` block, even if the caller is under `torch.no_grad` or `inference_mode`."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def compile_blocks(model: nn.Module) -> Iterator[None]:
    """Compile a model's transformer blocks with torch.compile; undo it at the end of the `with` block.

    Blocks that were compiled before stay compiled.
    """
    eager = [block for block in model.modules() if isinstance(block, Block) and block._compiled_call_impl is None]
    for block in eager:
        block.compile(dynamic=True)
    try:
        yield
    finally:
        for block in eager:
            block._compiled_call_impl = None


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Return a new optimiser, AdamW or SGD by the settings, for all parameters of a model that require gradients.

    Only matrices get weight decay. The learning rate is `base_lr`; the training loop changes it before each step.
    """
    groups = parameter_groups(model, config.weight_decay)
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.base_lr, momentum=MOMENTUM)
    return torch.optim.AdamW(groups, lr=config.base_lr, betas=config.betas, fused=True)


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return the trainable parameters of a model as parameter groups for torch; only matrices get weight decay.

    Parameters of two or more axes have `weight_decay`; norms, biases and other vectors have 0.0. The result is a list
    of at most two dictionaries with the keys "params" and "weight_decay", those with decay first; a group without
    parameters is left out.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices, others = ([one for one in trained if (one.ndim >= 2) == decays] for decays in (True, False))
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def learning_rate(step: float, steps: int, warmup: float, base_lr: float) -> float:
    """Return the learning rate at a step: a line up to `base_lr` at step `warmup`, then a cosine to zero at `steps`.

    The line begins at base_lr / (warmup + 1) at step 0.

    Args:
        step: steps taken before, from 0; may be a fraction.
        steps: number of steps of the run.
        warmup: number of steps of the warm-up; 0 for none.
        base_lr: highest learning rate.
    """
    if step < warmup:
        return base_lr * (step + 1) / (warmup + 1)
    return base_lr * 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1.0, steps - warmup))))
