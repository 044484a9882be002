"""One training loop for everything, on Accelerate: any number of processes and devices.

A step is a pure function of the weights, the optimiser's state and (seed, epoch, place in the epoch): batches, masks,
augmentation and dropout are all derived from these three, so a resumed run takes the steps the interrupted one would
have taken.
"""

from __future__ import annotations

import atexit
import dataclasses
import gc
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from accelerate.utils import broadcast_object_list, gather_object
from torch import Tensor, nn

from rotarymae.batches import Batch, Examples, by_length, plan, prefetch
from rotarymae.errors import InputError, RotaryMAEError
from rotarymae.objectives import Objective
from rotarymae.runs import RunFolder, RunState
from rotarymae.transformer import Block

INPUT = "the given"  # how a finding about the data themselves begins


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained.

    Attributes:
        epochs: passes over the training examples; more when they make fewer than
        min_steps: steps, so that a small table is not left half trained.
        batch_size: examples a step, over all processes; or
        batch_tokens: tokens a step, padding counted, over all processes. One of the two.
        optimizer: "adamw" or "sgd".
        base_lr: the peak of the schedule: linear warm-up, then a cosine to zero.
        betas: AdamW's.
        momentum: SGD's.
        weight_decay: on weight matrices only; none on norms, biases and tokens.
        warmup_steps: steps of warm-up; when None,
        warmup_fraction: that share of all steps.
        layer_decay: each block's rate is this factor times that of the one above it; 1 for all the same.
        gradient_clip: largest norm of the gradient; None does not clip.
        precision: "auto" (bf16 where the hardware has it, else fp32), "fp32", "bf16" or "fp16".
        accumulation: micro-batches a step is cut into; the step is the same, the memory smaller.
        patience: stop after this many evaluations without a better validation loss; None never stops.
        keep_best: end with the weights of the best validation loss instead of the last. Without validation data this
            and `patience` have nothing to go by.
        compile: compile the blocks (torch.compile, dynamic shapes).
        workers: threads that prepare batches ahead; 0 prepares them in step.
        seed: of order, masks, augmentation and dropout.
        log_every: steps between lines of log.jsonl.
        checkpoint_seconds: time between checkpoints, when the run has a folder.
        checkpoint_steps: also after every so many steps.
        keep: checkpoints kept, beside the best.
        max_skipped: steps with a non-finite loss or gradient are skipped and reported; after more than this the run
            ends.
    """

    epochs: int = 20
    min_steps: int = 0
    batch_size: int | None = 64
    batch_tokens: int | None = None
    optimizer: str = "adamw"
    base_lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.95)
    momentum: float = 0.9
    weight_decay: float = 0.05
    warmup_steps: int | None = None
    warmup_fraction: float = 0.1
    layer_decay: float = 1.0
    gradient_clip: float | None = 1.0
    precision: str = "auto"
    accumulation: int = 1
    patience: int | None = None
    keep_best: bool = False
    compile: bool = False
    workers: int = 0
    seed: int = 0
    log_every: int = 10
    checkpoint_seconds: float = 60.0
    checkpoint_steps: int | None = None
    keep: int = 2
    max_skipped: int = 10

    def __post_init__(self) -> None:
        if (self.batch_size is None) == (self.batch_tokens is None):
            raise InputError("give either batch_size (examples) or batch_tokens (tokens), not both and not neither.")
        whole = {"batch_size": 1, "batch_tokens": 1, "warmup_steps": 0, "patience": 1, "checkpoint_steps": 1}
        whole |= {"epochs": 1, "min_steps": 0, "accumulation": 1, "workers": 0, "seed": 0, "log_every": 1, "keep": 1}
        whole |= {"max_skipped": 0}
        may_be_none = {"batch_size", "batch_tokens", "warmup_steps", "patience", "checkpoint_steps", "gradient_clip"}
        for name, least in whole.items():
            value = getattr(self, name)
            if not (value is None and name in may_be_none) and (type(value) is not int or value < least):
                raise InputError(f"{name} is {value!r}; wanted a whole number of at least {least}.")
        for name in ("base_lr", "layer_decay", "gradient_clip"):
            value = getattr(self, name)
            if not (value is None and name in may_be_none) and not (_is_number(value) and value > 0):  # pyright: ignore
                raise InputError(f"{name} is {value!r}; wanted a positive number.")
        for name in ("weight_decay", "checkpoint_seconds"):
            value = getattr(self, name)
            if not (_is_number(value) and value >= 0):
                raise InputError(f"{name} is {value!r}; wanted a number of at least 0.")
        if not isinstance(self.betas, tuple | list) or len(self.betas) != 2:
            raise InputError(f"betas is {self.betas!r}; wanted two numbers.")
        fractions = {"momentum": self.momentum, "warmup_fraction": self.warmup_fraction}
        for name, value in {**fractions, "betas[0]": self.betas[0], "betas[1]": self.betas[1]}.items():
            if not (_is_number(value) and 0 <= value < 1):
                raise InputError(f"{name} is {value!r}; wanted at least 0 and less than 1.")
        for name in ("keep_best", "compile"):
            if type(getattr(self, name)) is not bool:
                raise InputError(f"{name} is {getattr(self, name)!r}; wanted True or False.")
        if self.optimizer not in ("adamw", "sgd"):
            raise InputError(f"optimizer {self.optimizer!r}; wanted 'adamw' or 'sgd'.")
        if self.precision not in ("auto", "fp32", "bf16", "fp16"):
            raise InputError(f"precision {self.precision!r}; wanted 'auto', 'fp32', 'bf16' or 'fp16'.")


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


def learning_rate(step: float, steps: int, warmup: float, base_lr: float) -> float:
    """Rises linearly to `base_lr` at step `warmup`, then falls as a cosine to zero at `steps`; the first step is 0."""
    if step < warmup:
        return base_lr * (step + 1) / (warmup + 1)
    return base_lr * 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1.0, steps - warmup))))


def parameter_groups(model: nn.Module, weight_decay: float, layer_decay: float = 1.0) -> list[dict[str, Any]]:
    """Groups by decay and depth: only matrices decay; `lr_scale` is layer_decay to the power of blocks above."""
    depth = 1 + max((_layer(name, 0) for name, _ in model.named_parameters()), default=0)
    groups: dict[tuple[bool, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            scale = layer_decay ** (depth - _layer(name, depth))
            groups.setdefault((parameter.ndim >= 2, scale), []).append(parameter)
    return [
        {"params": parameters, "weight_decay": weight_decay if decays else 0.0, "lr_scale": scale}
        for (decays, scale), parameters in groups.items()
    ]


def _layer(name: str, top: int) -> int:
    """0 for the encoder's input, m + 1 for its block m, `top` for all that comes after the encoder."""
    parts = name.split(".")
    if "encoder" in parts:
        if "blocks" in parts:
            return int(parts[parts.index("blocks") + 1]) + 1
        return 0
    return top


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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
    accelerator = _accelerator(trackers, folder)
    with torch.random.fork_rng(devices=_cuda_devices(accelerator)), _termination() as terminated:
        loop = _Loop(objective, examples, config, validation, folder, accelerator, terminated)
        try:
            return loop.run(resume, on_step)
        finally:
            for tracker in accelerator.trackers:  # end_training() would end the process group, too
                tracker.finish()
            objective.to("cpu").eval()


def _accelerator(trackers: tuple[str, ...] = (), folder: str | Path | None = None) -> Accelerator:
    """Precision is the configuration's affair, whatever the launcher says."""
    there = [str(getattr(name, "value", name)) for name in get_available_trackers()]
    for name in trackers:
        if name not in ("tensorboard", "wandb"):
            raise InputError(f"tracker {name!r}; wanted 'tensorboard' or 'wandb'.")
        if name not in there:
            raise InputError(f"the tracker {name} is not installed; run `pip install {name}`.")
        if name == "tensorboard" and folder is None:
            raise InputError("tensorboard writes to the folder of the run; give one.")
    kept = None if folder is None else str(folder)
    accelerator = Accelerator(mixed_precision="no", log_with=list(trackers) or None, project_dir=kept)
    if accelerator.num_processes > 1:
        # A process that ends while gloo's threads still run is aborted, and the launcher takes that for a failure.
        # Registering again and again is harmless: leaving is done once.
        atexit.register(_leave)
    return accelerator


def _leave() -> None:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()  # models wrapped for the exchange of gradients hold the group's threads, in cycles
        torch.distributed.destroy_process_group()


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
        groups = parameter_groups(objective.model, config.weight_decay, config.layer_decay)
        if config.optimizer == "adamw":
            self.optimizer: torch.optim.Optimizer = torch.optim.AdamW(
                groups, lr=config.base_lr, betas=config.betas, fused=True
            )
        else:
            self.optimizer = torch.optim.SGD(groups, lr=config.base_lr, momentum=config.momentum)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=_dtype(config, self.device) is torch.float16)
        self.parameters = [p for p in objective.model.parameters() if p.requires_grad]
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
        if config.compile:
            compile_blocks(self.objective.model)
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
        blocks = getattr(self.examples, "blocks", None)
        return plan(self.examples.lengths, config.seed, epoch, config.batch_size, config.batch_tokens, blocks)

    def _shards(self, index: np.ndarray) -> list[tuple[Batch, bool]]:
        """This process's part of every micro-batch, and whether it is real: a process without rows of its own works
        through a borrowed one that counts for nothing, because all must take part in the exchange of gradients."""
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        micro = [part for part in np.array_split(index, self.config.accumulation) if len(part)]
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
        count, state_tokens, stop = self._reduce([own, tokens, float(self.terminated())])
        state.tokens += int(state_tokens)
        state.stop_asked = stop > 0
        total = 0.0
        call = self.objective if module is None else module
        for i, (batch, real) in enumerate(shards):
            quiet = self.accelerator.no_sync(call) if i + 1 < len(shards) and module is not None else nullcontext()
            with quiet:
                with self._autocast():
                    loss = call(batch.to(self.device))
                # Processes average their gradients: times their number, over everybody's count, is the mean of all.
                scale = self.accelerator.num_processes / max(count, 1e-30) if real else 0.0
                self.scaler.scale(loss * scale).backward()
            total += float(loss.detach()) if real else 0.0
        self.scaler.unscale_(self.optimizer)
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        (total,) = self._reduce([total])
        finite = math.isfinite(total) and bool(torch.isfinite(norm))
        # fp16 finds its scale by overflowing now and then; that is no fault of the data unless the scale is down at 1.
        overflow = not finite and math.isfinite(total) and self.scaler.is_enabled() and self.scaler.get_scale() > 1
        if finite:
            if config.gradient_clip is not None:
                nn.utils.clip_grads_with_norm_(self.parameters, config.gradient_clip, norm)
            self.scaler.step(self.optimizer)
        bad = None if finite or overflow else self._first_non_finite(shards)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        if bad is not None:
            self._skip(bad, shards)
            return None
        return total / max(count, 1e-30)

    def _skip(self, bad: str, shards: list[tuple[Batch, bool]]) -> None:
        """Counts and records a step left out, with everybody's series."""
        names = getattr(getattr(self.examples, "dataset", None), "ids", None)
        own = [int(i) for batch, real in shards if real for i in batch.series]
        found = [(bad, own)]
        if self.accelerator.num_processes > 1:
            found = gather_object(found)
        series = [str(i if names is None else names[i]) for _, part in found for i in part]
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

    def _first_non_finite(self, shards: list[tuple[Batch, bool]]) -> str:
        for batch, _ in shards:
            for name, tokens in (("inputs", batch.inputs), ("masked tokens", batch.masked)):
                if tokens is not None and not torch.isfinite(tokens.values).all():
                    return f"{INPUT} values of the {name}"
            if batch.targets is not None and batch.targets.is_floating_point() and batch.targets.isinf().any():
                return f"{INPUT} targets"
        for name, parameter in self.objective.model.named_parameters():
            if not torch.isfinite(parameter.detach()).all():
                return f"the weight {name}"
        for batch, _ in shards:
            name = _first_non_finite_output(self.objective, batch.to(self.device), self._autocast())
            if name is not None:
                return f"the output of {name}"
        for name, parameter in self.objective.model.named_parameters():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                return f"the gradient of {name}"
        return "the loss"

    def _autocast(self) -> Any:
        dtype = _dtype(self.config, self.device)
        return nullcontext() if dtype is None else torch.autocast(self.device.type, dtype)

    def _reduce(self, numbers: list[float]) -> list[float]:
        """Sums over all processes."""
        return _sum(self.accelerator, numbers)

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
            loss = _evaluate(self.objective, self.validation, config, self.accelerator, self.terminated)
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
            "compile",
            "max_skipped",
        ):
            del own[name]  # these change nothing in the weights
        validation = None if self.validation is None else self.validation.fingerprint()
        # Examples that know more about themselves than a fingerprint let a difference be named.
        whole = getattr(self.examples, "identity", None)
        data = self.examples.fingerprint() if whole is None else whole()
        return {"data": data, "validation": validation, **self.objective.identity(), "training": own}


def _first_non_finite_output(objective: Objective, batch: Batch, autocast: Any) -> str | None:
    """The part of the model whose output is the first to be non-finite, by another pass over the batch."""
    found: list[str] = []

    def look(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            if not found and isinstance(output, Tensor) and not torch.isfinite(output).all():
                found.append(name)

        return hook

    hooks = [part.register_forward_hook(look(name)) for name, part in objective.model.named_modules() if name]
    try:
        with torch.no_grad(), autocast:
            objective(batch)
    finally:
        for hook in hooks:
            hook.remove()
    return found[0] if found else None


def evaluate(
    objective: Objective, examples: Examples, config: TrainConfig, accelerator: Accelerator | None = None
) -> float:
    """The mean loss over all real targets of all examples; every example counts by its own targets, not by batch.

    The model's mode is restored. Batches are shared among the processes; a process without any takes part all the
    same.
    """
    loss = _evaluate(objective, examples, config, accelerator or _accelerator(), lambda: False)
    assert loss is not None, "nobody asked it to end"
    if accelerator is None:
        objective.to("cpu")
    return loss


def _evaluate(
    objective: Objective,
    examples: Examples,
    config: TrainConfig,
    accelerator: Accelerator,
    terminated: Callable[[], bool],
) -> float | None:
    """As `evaluate`; None, on all processes, when one of them was asked to end."""
    was_training = objective.training
    objective.to(accelerator.device).eval()
    dtype = _dtype(config, accelerator.device)
    total, count, ended = 0.0, 0.0, False
    try:
        with torch.no_grad():
            for index in _own_batches(examples, config, accelerator):
                ended = terminated()
                if ended:
                    break
                batch = examples.batch(index, None)
                count += objective.count(batch)
                with nullcontext() if dtype is None else torch.autocast(accelerator.device.type, dtype):
                    total += float(objective(batch.to(accelerator.device)))
    finally:
        objective.train(was_training)
    total, count, stopped = _sum(accelerator, [total, count, float(ended)])
    if stopped:
        return None
    return total / count if count else math.nan


def predict(
    model: nn.Module,
    examples: Examples,
    read: Callable[[nn.Module, Batch], list[Any]],
    config: TrainConfig,
    on_step: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """read(model, batch) for every example, once each, in input order, on every process.

    `read` gives a list with one entry for each row of the batch. The model is put in evaluation mode and its mode
    restored.
    """
    accelerator = _accelerator()
    was_training = model.training
    model.to(accelerator.device).eval()
    found: list[tuple[int, Any]] = []
    batches = _own_batches(examples, config, accelerator)
    try:
        with torch.no_grad():
            for i, index in enumerate(batches):
                batch = examples.batch(index, None)
                found += zip(index.tolist(), read(model, batch.to(accelerator.device)), strict=True)
                if on_step is not None:
                    on_step(i + 1, len(batches))
    finally:
        model.train(was_training)
        model.to("cpu")
    if accelerator.num_processes > 1:
        found = gather_object(found)
    ordered: list[Any] = [None] * len(found)
    for place, result in found:
        ordered[place] = result
    return ordered


def compile_blocks(model: nn.Module) -> None:
    """From now on every block is compiled, with dynamic shapes; blocks of one kind share one compilation."""
    for module in model.modules():
        if isinstance(module, Block):
            module.compiled = True


def _own_batches(examples: Examples, config: TrainConfig, accelerator: Accelerator) -> list[np.ndarray]:
    """This process's share of the evaluation batches, which group examples by length."""
    blocks = getattr(examples, "blocks", None)
    batches = by_length(examples.lengths, config.batch_size, config.batch_tokens, blocks)
    return batches[accelerator.process_index :: accelerator.num_processes]


def _sum(accelerator: Accelerator, numbers: list[float]) -> list[float]:
    if accelerator.num_processes == 1:
        return numbers
    reduced = accelerator.reduce(torch.tensor(numbers, dtype=torch.float64, device=accelerator.device), "sum")
    return reduced.tolist()  # type: ignore[union-attr]


def _tokens(batch: Batch) -> float:
    return float(batch.inputs.real.sum()) + (0.0 if batch.masked is None else float(batch.masked.real.sum()))


def _dtype(config: TrainConfig, device: torch.device) -> torch.dtype | None:
    """What autocast computes matrix products in, or None for the weights' own precision."""
    if config.precision == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else None
    return {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[config.precision]


def _step_seed(seed: int, step: int, rank: int) -> int:
    return int(np.random.SeedSequence([seed, step, rank]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _cuda_devices(accelerator: Accelerator) -> list[torch.device]:
    return [accelerator.device] if accelerator.device.type == "cuda" else []


@contextmanager
def _termination() -> Iterator[Callable[[], bool]]:
    """Whether SIGTERM has come; the former handler is put back. Outside the main thread signals cannot be watched."""
    asked = False

    def ask(signum: int, frame: Any) -> None:
        nonlocal asked
        asked = True

    try:
        before = signal.signal(signal.SIGTERM, ask)
    except ValueError:
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGTERM, before)
