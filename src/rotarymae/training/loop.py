"""One training loop for everything, on Accelerate: any number of processes and devices.

A step is a pure function of the weights, the optimiser's state and (seed, epoch, place in the epoch): batches, masks,
augmentation and dropout are all derived from these three, so a resumed run takes the steps the interrupted one would
have taken.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object
from torch import Tensor, nn

from rotarymae.batch import Batch, Examples
from rotarymae.errors import InputError, RotaryMAEError
from rotarymae.training.batching import plan, prefetch
from rotarymae.training.checkpointing import RunFolder, RunState
from rotarymae.training.config import TrainConfig
from rotarymae.training.distributed import cuda_devices, make_accelerator, termination, total
from rotarymae.training.evaluation import evaluate_until
from rotarymae.training.lanes import TRAINING, Lanes, alone, cut, lanes_for
from rotarymae.training.nonfinite import INPUT, first_non_finite
from rotarymae.training.objectives import Objective
from rotarymae.training.optimizer import learning_rate, make_optimizer
from rotarymae.transformer import Block


class TrainingDiverged(RotaryMAEError):
    """Too many steps had a non-finite loss or gradient; the last good checkpoint stands."""


class Interrupted(RotaryMAEError):
    """The run was asked to end (SIGTERM) and has saved its state."""


@dataclass
class TrainResult:
    """What a run leaves beside the trained model.

    Attributes:
        history: one dictionary for every logged interval and evaluation: step, epoch, and loss and lr, or validation.
        seconds: wall time of this process's part of the run.
        tokens: real tokens (or examples, if the data have no tokens) trained on, over all processes.
        steps, skipped: optimiser steps taken, and steps left out for non-finite numbers.
        best: the best validation loss, or None.
    """

    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    tokens: int = 0
    steps: int = 0
    skipped: int = 0
    best: float | None = None


def fit(
    objective: Objective,
    examples: Examples,
    config: TrainConfig,
    *,
    validation: Examples | None = None,
    folder: str | Path | None = None,
    resume: str = "never",
    on_step: Callable[[int, int, float], None] | None = None,
    trackers: tuple[str, ...] = (),
) -> TrainResult:
    """Trains `objective.model` in place and leaves it on the CPU in evaluation mode.

    Args:
        objective: model and loss.
        examples: training data.
        config: how.
        validation: evaluated after every epoch, with the same masks each time.
        folder: where log.jsonl and checkpoints go, seen by all processes; None keeps nothing.
        resume: "never" (refuses a folder with a run in it), "auto" (goes on from the newest whole checkpoint if there
            is one), "force" (as "auto", also with other data or another configuration).
        on_step: called with (step, steps in all, running mean loss), for progress bars.
        trackers: Accelerate's: "tensorboard" (writes to the folder), "wandb".

    Raises:
        InputError: no training or validation examples; a folder with another run; a tracker that is not installed.
        TrainingDiverged: more than `max_skipped` steps had non-finite numbers.
        Interrupted: SIGTERM came; the state is saved.
        OSError: a checkpoint or the log could not be written; earlier checkpoints stand.
    """
    if len(examples.lengths) == 0:
        raise InputError("there are no training examples.")
    if validation is not None and len(validation.lengths) == 0:
        raise InputError("there are no validation examples; give None to do without.")
    accelerator = make_accelerator(trackers, folder)
    with torch.random.fork_rng(devices=cuda_devices(accelerator)), termination() as terminated:
        loop = _Loop(objective, examples, config, validation, folder, accelerator, terminated)
        try:
            with loop.lanes, compile_blocks(objective.model) if config.compile else nullcontext():
                return loop.run(resume, on_step)
        finally:
            for tracker in accelerator.trackers:  # end_training() would end the process group, too
                tracker.finish()
            objective.to("cpu").eval()


class _Loop:
    """The state of one call of `fit`."""

    def __init__(
        self,
        objective: Objective,
        examples: Examples,
        config: TrainConfig,
        validation: Examples | None,
        folder: str | Path | None,
        accelerator: Accelerator,
        terminated: Callable[[], bool],
    ) -> None:
        self.objective, self.examples, self.config = objective, examples, config
        self.validation, self.accelerator, self.terminated = validation, accelerator, terminated
        self.device = accelerator.device
        objective.to(self.device)
        self.optimizer = make_optimizer(objective.model, config)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=config.dtype(self.device) is torch.float16)
        self.parameters = [p for p in objective.model.parameters() if p.requires_grad]
        self.lanes = Lanes(self._lanes())
        self.state = RunState()
        self.run_folder = None if folder is None else RunFolder(Path(folder), accelerator.is_main_process)
        self.best_weights: dict[str, Tensor] | None = None
        self.result = TrainResult()
        self.last_checkpoint = time.monotonic()
        self.identity: dict[str, Any] = {}
        self.skip = ""

    def run(self, resume: str, on_step: Callable[[int, int, float], None] | None) -> TrainResult:
        config, state, started = self.config, self.state, time.monotonic()
        self.identity = self._identity()
        if self.run_folder is not None:
            self.result.history = self._open(self.run_folder, resume)
            if self.run_folder.restored is not None:
                self.run_folder.restore(self.objective.model, self.optimizer, self.scaler, state)
                self.best_weights = self.run_folder.best_weights(state)
        if self.accelerator.log_with:
            self.accelerator.init_trackers("rotarymae")
        module = self.accelerator.prepare_model(self.objective) if self.accelerator.num_processes > 1 else None
        per_epoch = len(self._plan(0))
        epochs = max(config.epochs, math.ceil(config.min_steps / per_epoch))
        steps = epochs * per_epoch
        while state.epoch < epochs and not state.stopped:
            batches = self._plan(state.epoch)
            ahead = batches[state.place :]
            for shards in prefetch(self._shards, ahead, config.workers):
                # Epochs can differ by a batch or two; the schedule follows the share of the epoch that is done.
                at = (state.epoch + state.place / len(batches)) * per_epoch
                loss = self._step(module, shards, at, steps)
                state.step, state.place = state.step + 1, state.place + 1
                self._log(loss, at / per_epoch)
                if on_step is not None:
                    on_step(min(steps, round(at) + 1), steps, state.running_loss or 0.0)
                self._checkpoint_if_due()
            self._end_epoch()
            self._checkpoint_if_due()
        self._save()
        if config.keep_best and self.best_weights is not None:
            self.objective.model.load_state_dict(self.best_weights)
        self.result.seconds = time.monotonic() - started
        self.result.steps, self.result.skipped = state.step, state.skipped
        self.result.tokens, self.result.best = state.tokens, state.best
        return self.result

    def _open(self, folder: RunFolder, resume: str) -> list[dict[str, Any]]:
        """The main process looks and tells the others: a second look would see what the first one wrote."""
        if self.accelerator.num_processes == 1:
            return folder.open(resume, self.identity)
        found: list[Any] = [None]
        if self.accelerator.is_main_process:
            try:
                found = [(folder.open(resume, self.identity), folder.restored)]
            except (RotaryMAEError, OSError) as error:
                found = [error]
        broadcast_object_list(found)
        if isinstance(found[0], Exception):
            raise found[0]
        history, folder.restored = found[0]
        return history

    def _plan(self, epoch: int) -> list[np.ndarray]:
        config = self.config
        return plan(self.examples.lengths, config.seed, epoch, config.batch_size, config.batch_tokens)

    def _lanes(self) -> int:
        several = self.accelerator.num_processes > 1
        if self.device.type != "cpu" or several or self.config.compile or alone(self.objective.model):
            return 1
        if self.config.lanes is not None:
            return self.config.lanes
        step = self.config.batch_tokens or (self.config.batch_size or 1) * float(np.mean(self.examples.lengths))
        return lanes_for(self.device, step / self.config.accumulation)

    def _shards(self, index: np.ndarray) -> list[tuple[Batch, bool]]:
        """This process's part of every micro-batch, and whether it is real: a process without rows of its own works
        through a borrowed one that counts for nothing, because all must take part in the exchange of gradients. A
        process alone on a CPU cuts micro-batches further."""
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        micro = [part for part in np.array_split(index, self.config.accumulation) if len(part)]
        if processes == 1 and self.device.type == "cpu":
            micro = [part for whole in micro for part in cut(whole, self.examples.lengths, TRAINING, self.lanes.count)]
        shards = []
        for part in micro:
            own = part[rank::processes]
            shards.append((self.examples.batch(own if len(own) else part[:1], self.state.epoch), len(own) > 0))
        return shards

    def _step(self, module: nn.Module | None, shards: list[tuple[Batch, bool]], at: float, steps: int) -> float | None:
        """One optimiser step; the mean loss, or None when it was skipped."""
        config, state = self.config, self.state
        torch.manual_seed(_step_seed(config.seed, state.step, self.accelerator.process_index))
        warmup = config.warmup_fraction * steps if config.warmup_steps is None else config.warmup_steps
        rate = learning_rate(at, steps, warmup, config.base_lr)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["lr_scale"]
        self.objective.train()
        own = sum(self.objective.count(batch) for batch, real in shards if real)
        tokens = sum(_tokens(batch) for batch, real in shards if real)
        count, state_tokens, stop = total(self.accelerator, [own, tokens, float(self.terminated())])
        state.tokens += int(state_tokens)
        state.stop_asked = stop > 0
        if module is None:
            summed = self._alone([batch for batch, _ in shards], count)
        else:
            summed = self._with_others(module, shards, count)
        self.scaler.unscale_(self.optimizer)
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        (summed,) = total(self.accelerator, [summed])
        finite = math.isfinite(summed) and bool(torch.isfinite(norm))
        # fp16 finds its scale by overflowing now and then; that is no fault of the data unless the scale is down at 1.
        overflow = not finite and math.isfinite(summed) and self.scaler.is_enabled() and self.scaler.get_scale() > 1
        if finite:
            if config.gradient_clip is not None:
                nn.utils.clip_grads_with_norm_(self.parameters, config.gradient_clip, norm)
            self.scaler.step(self.optimizer)
        bad = None if finite or overflow else self._culprit(shards)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        if bad is not None:
            self._skip(bad, shards)
            return None
        return summed / max(count, 1e-30)

    def _alone(self, batches: list[Batch], count: float) -> float:
        """The sum of the losses of this process, the only one; their gradients, over `count`, go to the parameters."""

        def loss(place: int) -> Tensor:
            with self.config.autocast(self.device):
                own = self.objective(batches[place].to(self.device))
            sums[place] = own.detach()
            return self.scaler.scale(own / max(count, 1e-30))

        sums = [torch.zeros(())] * len(batches)
        self.lanes.backward(loss, range(len(batches)), self.parameters)
        return sum(float(own) for own in sums)

    def _with_others(self, module: nn.Module, shards: list[tuple[Batch, bool]], count: float) -> float:
        """The same of one process of several, which exchange their gradients with the last micro-batch."""
        summed = 0.0
        for i, (batch, real) in enumerate(shards):
            with self.accelerator.no_sync(module) if i + 1 < len(shards) else nullcontext():
                with self.config.autocast(self.device):
                    loss = module(batch.to(self.device))
                # Processes average their gradients: times their number, over everybody's count, is the mean of all.
                scale = self.accelerator.num_processes / max(count, 1e-30) if real else 0.0
                self.scaler.scale(loss * scale).backward()
            summed += float(loss.detach()) if real else 0.0
        return summed

    def _culprit(self, shards: list[tuple[Batch, bool]]) -> str:
        batches = [batch for batch, _ in shards]
        return first_non_finite(self.objective, batches, self.device, self.config.autocast(self.device))

    def _skip(self, bad: str, shards: list[tuple[Batch, bool]]) -> None:
        """Counts and records a step left out, with everybody's series."""
        own = [int(i) for batch, real in shards if real for i in batch.series]
        found = [(bad, own)]
        if self.accelerator.num_processes > 1:
            found = gather_object(found)
        series = self.examples.names([i for _, part in found for i in part])
        # Where one process saw bad input, the others saw only what came of it.
        bad = next((text for text, _ in found if text.startswith(INPUT)), found[0][0])
        state = self.state
        state.skipped += 1
        self.skip = f"first {bad}; series {', '.join(series[:5])}{', …' if len(series) > 5 else ''}"
        line = {"step": state.step + 1, "epoch": state.epoch, "skipped": state.skipped, "bad": bad, "series": series}
        self._record(line)

    def _end_if_diverged(self) -> None:
        """Ends a run that has skipped too much, or whose weights are lost; a checkpoint never holds such weights."""
        state, config = self.state, self.config
        kept = "" if self.run_folder is None else f" The last good checkpoint is in {self.run_folder.path}."
        for name, parameter in self.objective.model.named_parameters():
            if not torch.isfinite(parameter.detach()).all():
                raise TrainingDiverged(
                    f"the weight {name} is no longer finite after step {state.step}. Lower base_lr "
                    f"({config.base_lr:g}), or use a gradient_clip ({config.gradient_clip}).{kept}"
                )
        if state.skipped > config.max_skipped and self.skip:
            self._write()
            raise TrainingDiverged(
                f"{state.skipped} steps had a non-finite loss or gradient (the last time {self.skip}). Look at these "
                f"series for extreme values, lower base_lr ({config.base_lr:g}), or use precision='fp32'.{kept}"
            )

    def _log(self, loss: float | None, epoch: float) -> None:
        state = self.state
        if loss is not None:
            state.loss_sum, state.loss_count = state.loss_sum + loss, state.loss_count + 1
            before = loss if state.running_loss is None else state.running_loss
            state.running_loss = 0.95 * before + 0.05 * loss
        if state.step % self.config.log_every == 0 and state.loss_count:
            rate = self.optimizer.param_groups[0]["lr"] / self.optimizer.param_groups[0]["lr_scale"]
            mean = state.loss_sum / state.loss_count
            self._record({"step": state.step, "epoch": round(epoch, 4), "loss": mean, "lr": rate})
            state.loss_sum, state.loss_count = 0.0, 0

    def _record(self, line: dict[str, Any]) -> None:
        self.result.history.append(line)
        if self.run_folder is not None:
            self.run_folder.log(line)
        numbers = {key: value for key, value in line.items() if isinstance(value, int | float) and key != "step"}
        if self.accelerator.trackers:
            self.accelerator.log(numbers, step=line["step"])

    def _end_epoch(self) -> None:
        state, config = self.state, self.config
        loss = None
        if self.validation is not None:
            loss = evaluate_until(self.objective, self.validation, config, self.accelerator, self.terminated)
            if loss is None:  # asked to end: this epoch's evaluation is done anew on resuming
                state.stop_asked = True
                return
        state.epoch, state.place = state.epoch + 1, 0
        if loss is None:
            return
        self._record({"step": state.step, "epoch": state.epoch, "validation": loss})
        if math.isfinite(loss) and (state.best is None or loss < state.best):
            state.best, state.waited = loss, 0
            if config.keep_best:
                weights = self.objective.model.state_dict()
                self.best_weights = {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}
                if self.run_folder is not None:
                    state.best_kept = self.run_folder.save_best(self.best_weights, state)
        else:
            state.waited += 1
        state.stopped = config.patience is not None and state.waited >= config.patience

    def _checkpoint_if_due(self) -> None:
        """Saves by time or by step, and at once when the run is asked to end."""
        state, config = self.state, self.config
        due = state.place > 0 and config.checkpoint_steps is not None and state.step % config.checkpoint_steps == 0
        late = time.monotonic() - self.last_checkpoint > config.checkpoint_seconds
        if (state.skipped > config.max_skipped and self.skip) or state.stop_asked or due or late:
            self._save()
        if state.stop_asked:
            where = "nothing was kept" if self.run_folder is None else f"its state is in {self.run_folder.path}"
            raise Interrupted(f"the run was asked to end after step {state.step}; {where}.")

    def _save(self) -> None:
        self._end_if_diverged()
        self._write()

    def _write(self) -> None:
        if self.run_folder is not None:
            self.run_folder.save(self.objective.model, self.optimizer, self.scaler, self.state, self.config.keep)
        self.last_checkpoint = time.monotonic()

    def _identity(self) -> dict[str, Any]:
        """What must be the same for a resumed run to be the same run."""
        own = dataclasses.asdict(self.config)
        for name in (
            "log_every",
            "checkpoint_seconds",
            "checkpoint_steps",
            "keep",
            "workers",
            "lanes",
            "compile",
            "max_skipped",
        ):
            del own[name]  # these change nothing in the weights
        validation = None if self.validation is None else self.validation.identity()
        return {
            "data": self.examples.identity(),
            "validation": validation,
            **self.objective.identity(),
            "training": own,
        }


@contextmanager
def compile_blocks(model: nn.Module) -> Iterator[None]:
    """Within, every block runs compiled, for any batch and length; outside, the model is as it was."""
    eager = [block for block in model.modules() if isinstance(block, Block) and block._compiled_call_impl is None]
    for block in eager:
        block.compile(dynamic=True)
    try:
        yield
    finally:
        for block in eager:
            block._compiled_call_impl = None


def _tokens(batch: Batch) -> float:
    return float(batch.inputs.real.sum()) + (0.0 if batch.masked is None else float(batch.masked.real.sum()))


def _step_seed(seed: int, step: int, rank: int) -> int:
    return int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0] >> np.uint64(1))
