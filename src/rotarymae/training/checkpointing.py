"""The folder of a training run: its log, and one checkpoint, which is whole or absent.

`checkpoint.safetensors` holds the weights, the state of the optimiser and the weights of the best validation loss so
far; its header says where the run is, what was logged, and what the SHA-256 of all that is. It is written to a
temporary file, flushed and renamed over the one before. Nothing in it is code. Anybody can write a file with a right
checksum, so `read_checkpoint` and `restore` check every field and tensor before it is used.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import BaseFileLock, FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from rotarymae.errors import InputError, ModelDirectoryError
from rotarymae.system import (
    as_json,
    flush,
    from_fields,
    remove_leftovers,
    replacing,
    sha256_of,
    versions,
    write_text,
)

CHECKPOINT = "checkpoint.safetensors"
CHECKPOINT_FORMAT = 4  # 3 counted epochs without a better loss
# What a step of each optimiser leaves of a parameter, besides "step" in the parameter's shape.
STATE = {torch.optim.AdamW: {"step", "exp_avg", "exp_avg_sq"}, torch.optim.SGD: {"momentum_buffer"}}
MODEL_TENSORS, OPTIMIZER_TENSORS, BEST_TENSORS = "model", "optimizer", "best"  # what the names of tensors begin with


@dataclass
class RunState:
    """The position of a run: with the weights and the optimiser's state, all that the next step depends on.

    Attributes:
        step: number of steps taken, skipped ones included.
        epoch: number of epochs finished.
        batch_index: number of batches done of the current epoch.
        tokens: number of tokens read, without padding.
        skipped: number of steps that changed no weight, because the loss or the gradient was not finite.
        loss_sum, loss_count: sum and number of the steps' mean losses since the last line of the log.
        first_loss: mean loss of the first step that had one; None before.
        running_loss: exponential moving average of the steps' mean losses, to show; None before the first.
        best: smallest validation loss so far; None before the first.
    """

    step: int = 0
    epoch: int = 0
    batch_index: int = 0
    tokens: int = 0
    skipped: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    first_loss: float | None = None
    running_loss: float | None = None
    best: float | None = None

    def __post_init__(self) -> None:
        """Raise InputError if a count is negative, which happens only if it was read from a damaged file."""
        counts = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        if min(counts.values()) < 0:
            raise InputError(f"the checkpoint is damaged: some of its counts are below 0, {counts}; train anew.")


class RunFolder:
    """The folder of one training, with log.jsonl and checkpoint.safetensors.

    From `open` to `close` a lock keeps other processes out.

    Attributes:
        path: the folder.
        checkpoint: path of the checkpoint, whether or not there is one.
    """

    def __init__(self, path: Path) -> None:
        """Keep the path of the folder; nothing is read or written before the call of `open`."""
        self.path = path
        self.checkpoint = path / CHECKPOINT
        self._log = path / "log.jsonl"
        self._saved: RunState | None = None
        self._lock: BaseFileLock | None = None

    def open(self, resume: str) -> None:
        """Create the folder if it is missing, lock it, and remove half-written files that killed processes left in it.

        If there is no checkpoint, the log is emptied, because the run begins anew. On a file system without locks the
        folder is not locked.

        Args:
            resume: "never" refuses a folder with a log or a checkpoint in it; "auto" accepts it, to continue that run.

        Raises:
            InputError: `resume` is "never" and the folder has a log or a checkpoint; or another process trains here.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(self.path / ".lock")
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            raise InputError(
                f"{self.path} is in use by another process; wait for it, or choose another folder."
            ) from None
        except NotImplementedError:  # a disk that has no locks: a run there is not guarded
            pass
        if resume == "never" and (self._log.exists() or self.checkpoint.exists()):
            raise InputError(f"{self.path} holds a run already; resume it (--resume), or choose another folder.")
        remove_leftovers(self.path, [self._log.name, CHECKPOINT])
        if not self.checkpoint.exists():
            write_text(self._log, "")

    def close(self) -> None:
        """Release the lock; do nothing if there is none."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def log(self, line: dict[str, Any]) -> None:
        """Append a dictionary to log.jsonl as a line of JSON, in which numbers that are not finite are null.

        Raises OSError, with the name of the file, if it cannot be written to.
        """
        try:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(as_json(line, indent=None))
        except OSError as error:
            raise OSError(
                f"{self._log} could not be written to ({error}). Make room or choose another folder."
            ) from error

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        state: RunState,
        best: dict[str, Tensor] | None,
        history: list[dict[str, Any]],
    ) -> None:
        """Write a checkpoint in place of the previous one.

        Nothing is written if `state` equals the state that this object saved or restored last.

        Args:
            model: its weights are saved.
            optimizer: its state is saved, under the names that its parameters have in `model`.
            state: the position of the run, such as the number of steps.
            best: {name: weight} of the model at its best validation loss so far; None if there is none.
            history: all dictionaries that were logged so far, in order.

        Raises:
            OSError: the disk is full or not writable; the previous checkpoint stays, and no half-written file is left.
        """
        if state == self._saved:
            return
        names = _optimised(model, optimizer)
        of_optimizer = {
            f"{names[number]}/{key}": value
            for number, values in optimizer.state_dict()["state"].items()
            for key, value in values.items()
            if value is not None
        }
        parts = {MODEL_TENSORS: model.state_dict(), OPTIMIZER_TENSORS: of_optimizer, BEST_TENSORS: best or {}}
        tensors = {
            f"{part}.{name}": torch.as_tensor(value).detach().cpu().contiguous()
            for part, values in parts.items()
            for name, value in values.items()
        }
        manifest = {"format": CHECKPOINT_FORMAT, "versions": versions(), "state": dataclasses.asdict(state)}
        manifest |= {"history": history, "tensors": digest_of(tensors)}
        # One field, as safetensors writes several in any order.
        header = {"manifest": json.dumps(manifest | {"sha256": sha256_of(manifest)})}
        try:
            with replacing(self.checkpoint) as partial:
                partial.write_bytes(save(tensors, header))  # save_file would leave a file of its own if killed
            flush(self._log)
        except OSError as error:
            before = "the one before it stands" if self.checkpoint.exists() else "there is none before it"
            raise OSError(
                f"{self.checkpoint} could not be written ({error}); {before}. Make room, and resume the run (--resume)."
            ) from error
        self._saved = dataclasses.replace(state)

    def restore(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, state: RunState
    ) -> tuple[dict[str, Tensor] | None, list[dict[str, Any]]]:
        """Load the checkpoint into model, optimiser and state, in place; reset log.jsonl to that moment, too.

        Args:
            model: gets the weights of the checkpoint.
            optimizer: a new one, of parameters of `model`; gets the saved averages of its parameters, and keeps its
                options, such as the learning rate.
            state: gets the position of the run, such as the number of steps.

        Returns:
            Two things: {name: weight} of the model at its best validation loss so far, None if there is none; and the
                list of all dictionaries that had been logged, in order.

        Raises:
            ModelDirectoryError: the file is absent or damaged, does not fit the model or its optimiser, or holds
                numbers that are not finite. The model may then have other weights already.
            OSError: log.jsonl cannot be written.
        """
        manifest, tensors = read_checkpoint(self.checkpoint)
        parts: dict[str, dict[str, Tensor]] = {MODEL_TENSORS: {}, OPTIMIZER_TENSORS: {}, BEST_TENSORS: {}}
        try:
            for name, tensor in tensors.items():
                part, _, name = name.partition(".")
                parts[part][name] = tensor
                if not torch.isfinite(tensor).all():
                    raise ValueError(f"{name} holds numbers that are not finite")
            if parts[BEST_TENSORS]:  # which must be of this model, too
                model.load_state_dict(parts[BEST_TENSORS])
            model.load_state_dict(parts[MODEL_TENSORS])
            _restore_optimizer(model, optimizer, parts[OPTIMIZER_TENSORS])
        except (RuntimeError, ValueError, KeyError) as error:
            raise ModelDirectoryError(
                f"{self.checkpoint} does not fit this model: {error}. Resume with the data and settings of the "
                "interrupted run, or remove the file to begin anew."
            ) from None
        vars(state).update(manifest["state"])
        self._saved = dataclasses.replace(state)
        write_text(self._log, "".join(as_json(line, indent=None) for line in manifest["history"]))
        return parts[BEST_TENSORS] or None, manifest["history"]


def read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a checkpoint file, and check its format and its checksums.

    Args:
        path: a file that `RunFolder.save` wrote.

    Returns:
        Two dictionaries. The manifest has the keys format, versions, state (the fields of a `RunState`), history (all
        dictionaries that were logged, in order) and tensors (their checksum). The other is {name: tensor}, with names
        such as "model.WEIGHT", "optimizer.WEIGHT/KEY" and "best.WEIGHT".

    Raises:
        ModelDirectoryError: the file is absent or damaged, or is not what `RunFolder.save` writes.
    """
    try:
        if not path.is_file():
            raise ValueError("it is no file")
        with safe_open(path, "pt") as file:
            header, tensors = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        manifest = json.loads(header["manifest"])
        if manifest.pop("sha256") != sha256_of(manifest) or manifest["tensors"] != digest_of(tensors):
            raise ValueError("it does not match its checksums")
        if manifest["format"] != CHECKPOINT_FORMAT:
            raise ValueError("it is of another version")
        from_fields(RunState, manifest["state"], "its state")
        if manifest["state"].keys() != {field.name for field in dataclasses.fields(RunState)}:
            raise ValueError(f"its state has the fields {', '.join(manifest['state'])}")
        for line in manifest["history"]:
            numbers = [line["step"], line["epoch"], *(line[name] for name in ("loss", "validation") if name in line)]
            if type(line["step"]) is not int or any(type(number) not in (int, float) for number in numbers):
                raise ValueError(f"its log has the line {line}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, SafetensorError) as error:
        raise ModelDirectoryError(
            f"{path} is damaged or no checkpoint: {error}. Remove it to begin the training anew."
        ) from None
    return manifest, tensors


def digest_of(tensors: Mapping[str, Tensor]) -> str:
    """Return a SHA-256 checksum of named tensors, as hexadecimal digits.

    It depends on names, dtypes, shapes and numbers, but not on the order of the dictionary.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _optimised(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[str]:
    """Return the names, in the model, of the parameters that the optimiser trains, in the optimiser's order."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [names[id(parameter)] for group in optimizer.param_groups for parameter in group["params"]]


def _restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, saved: dict[str, Tensor]) -> None:
    """Load the saved state of an optimiser into a new one, which keeps its own options, such as the learning rate.

    Names, shapes and dtypes are checked, because torch does not check them, and a fused optimiser step would write
    beyond the end of a tensor that is too small.

    Args:
        model: has the parameters that are trained.
        optimizer: the new optimiser, an AdamW or SGD of parameters of `model`; changed in place.
        saved: {"PARAMETER/KEY": tensor}, such as "encoder.weight/exp_avg". A parameter without tensors gets no state.

    Raises:
        ValueError: a name that the optimiser does not train; a tensor of another shape or dtype than its parameter (for
            the key "step" the shape is [], a single number); a parameter with only some of the tensors that this kind
            of optimiser keeps, or with additional ones.
    """
    parameters, order = dict(model.named_parameters()), _optimised(model, optimizer)
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in saved.items():
        owner, _, key = name.rpartition("/")
        # A copy, because a tensor inside the file's own memory is aligned otherwise.
        state.setdefault(order.index(owner), {})[key] = tensor.clone()
        expected = torch.Size() if key == "step" else parameters[owner].shape
        if tensor.shape != expected or tensor.dtype != parameters[owner].dtype:
            raise ValueError(f"the optimiser's {name} is of another shape or type than its parameter")
    if any(set(values) != STATE[type(optimizer)] for values in state.values()):
        raise ValueError("the optimiser's state lacks tensors, or has others")
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
