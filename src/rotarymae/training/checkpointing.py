"""The folder of a training run: its log, and checkpoints that are whole or absent.

A checkpoint is a folder `checkpoints/step-00001234-epoch-0005` (steps and epochs done) with the weights, the state of
the optimiser, the weights of the best validation loss so far, and a manifest: where the run is, what the run is of, and
the SHA-256 of every file and of the manifest itself. It is written to a hidden folder, flushed and renamed. Nothing in
it is code: numbers are safetensors, the rest JSON. Anybody can write files with right checksums, so `read_manifest` and
`restore` check every field and tensor before it is used.
"""

from __future__ import annotations

import dataclasses
import json
import math
import platform
import re
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import rotarymae
from rotarymae.errors import InputError, InputWarning, ModelDirectoryError, choose
from rotarymae.system import FolderLock, flush, remove_leftovers, replacing, replacing_folder, sha256, sha256_of
from rotarymae.training.optimizer import check_state

MANIFEST = "manifest.json"
FILES = WEIGHTS, OPTIMIZER, BEST = "model.safetensors", "optimizer.safetensors", "best.safetensors"
MAX_MANIFEST_BYTES = 1 << 26
NAME = re.compile(r"step-(\d{8,})-epoch-(\d{4,})")


@dataclass
class RunState:
    """Hold where a run is: with the weights and the optimiser's state, all that the next step depends on.

    `step` counts steps taken, `epoch` epochs finished and `batch_index` batches done of the current one. The rest
    belongs to logs and early stopping.
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
    epochs_without_improvement: int = 0
    stopped: bool = False


class RunFolder:
    """Log and checkpoints of one run, for one process at a time; with `writes=False` only `restore` and the like."""

    def __init__(self, path: Path, writes: bool = True) -> None:
        self.path = path
        self.writes = writes
        self.restored: Path | None = None
        self._log = path / "log.jsonl"
        self._checkpoints = path / "checkpoints"
        self._identity: dict[str, Any] = {}
        self._saved: RunState | None = None
        self._lock: FolderLock | None = None

    def open(self, resume: str, identity: dict[str, Any]) -> list[dict[str, Any]]:
        """Lock the folder, find the newest checkpoint, and return the log up to it.

        Args:
            resume: "never" or "auto", see `training.fit`.
            identity: data, model and settings of the run, as JSON.

        Raises:
            InputError: resume="never" and the folder has a run in it; a checkpoint of other data or another
                configuration (the message names the difference); another process trains here; a log or a folder of
                checkpoints that this library did not write.
            ModelDirectoryError: the newest checkpoint is damaged.
        """
        choose("resume", resume, ("never", "auto"))
        self._identity = json.loads(json.dumps(identity))
        if self._checkpoints.is_symlink() or (self._checkpoints.exists() and not self._checkpoints.is_dir()):
            raise InputError(f"{self._checkpoints} is no plain folder; move it away, or choose another folder.")
        if self.writes:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.path)
        if resume == "never" and (self._log.exists() or self._checkpoints.exists()):
            raise InputError(f"{self.path} holds a run already; resume it (--resume), or choose another folder.")
        self.restored = self.newest()
        history = self._read_log()
        if self.restored is None:
            history = []
        else:
            try:
                manifest = read_manifest(self.restored)
            except ModelDirectoryError as error:
                advice = "the checkpoint before it" if len(self._list()) > 1 else "the beginning"
                raise ModelDirectoryError(f"{error} Remove {self.restored} to resume from {advice}.") from None
            differences = _differences(manifest["identity"], self._identity)
            if differences:
                raise InputError(
                    f"{self.restored} is of another run: {'; '.join(differences[:5])}. Resume with the same data and "
                    "settings, or choose another folder."
                )
            step, epoch = manifest["state"]["step"], manifest["state"]["epoch"]
            # An evaluation at the end of an epoch carries the step of its last batch, like the checkpoint before it.
            history = [
                line
                for line in history
                if line["step"] <= step and ("validation" not in line or line["epoch"] <= epoch)
            ]
        if self.writes:
            if self._checkpoints.exists():
                remove_leftovers(self._checkpoints)
            remove_leftovers(self.path, [self._log.name])
            with replacing(self._log) as partial:
                partial.write_text("".join(_line(line) for line in history), encoding="utf-8")
        return history

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def log(self, line: dict[str, Any]) -> None:
        """Append one line of JSON. Raises OSError that names the file."""
        if self.writes:
            try:
                with self._log.open("a", encoding="utf-8") as file:
                    file.write(_line(line))
            except OSError as error:
                raise OSError(f"{self._log} could not be written to ({error}).") from error

    def newest(self) -> Path | None:
        """Return the newest checkpoint, or None when there is none yet."""
        return max(self._list(), key=_order, default=None)

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scaler: torch.amp.GradScaler,
        state: RunState,
        best: dict[str, Tensor] | None,
        keep: int,
    ) -> None:
        """Write a checkpoint, the `best` weights included, then remove older ones beyond `keep`.

        Raises:
            OSError: the disk is full or not writable; earlier checkpoints stand, and nothing half-written is left.
        """
        if not self.writes or state == self._saved:
            return
        tensors = {name: torch.as_tensor(value) for name, value in _optimizer_state(model, optimizer).items()}
        files = {WEIGHTS: model.state_dict(), OPTIMIZER: tensors} | ({} if best is None else {BEST: best})
        versions = {"rotarymae": rotarymae.__version__, "torch": torch.__version__, "python": platform.python_version()}
        manifest = {"format": 1, "versions": versions, "identity": self._identity, "scaler": scaler.state_dict()}
        manifest["state"] = dataclasses.asdict(state)
        path = self._checkpoints / f"step-{state.step:08d}-epoch-{state.epoch:04d}"
        try:
            with replacing_folder(path) as partial:
                for file, content in files.items():
                    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in content.items()}
                    save_file(plain, partial / file)
                manifest["files"] = {file: sha256(partial / file) for file in files}
                manifest["sha256"] = sha256_of(manifest)
                (partial / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            flush(self._log)
        except (OSError, SafetensorError) as error:
            before = self.newest()
            raise OSError(
                f"{path.name} could not be written to {self._checkpoints} ({error}); "
                f"{'there is no earlier checkpoint' if before is None else f'{before.name} before it stands'}."
            ) from error
        self._saved = dataclasses.replace(state)
        for old in self._list()[:-keep]:
            if {file.name for file in old.iterdir()} <= {MANIFEST, *FILES}:  # else somebody's notes
                # Renamed first, so that half a checkpoint is never taken for one.
                shutil.rmtree(old.replace(old.with_name(f".{old.name}.00000000.old")))

    def restore(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scaler: torch.amp.GradScaler,
        state: RunState,
    ) -> dict[str, Tensor] | None:
        """Put weights, optimiser and state back as they were; return the best weights, if there are any yet.

        Raises:
            ModelDirectoryError: the checkpoint does not fit the model or its optimiser.
        """
        assert self.restored is not None, "open() has no checkpoint to restore"
        manifest = read_manifest(self.restored)
        try:
            tensors = {name: _finite(load_file(self.restored / name)) for name in manifest["files"]}
            model.load_state_dict(tensors[WEIGHTS])
            if BEST in tensors and _shapes(tensors[BEST]) != _shapes(tensors[WEIGHTS]):
                raise ValueError("the best weights are of other shapes or types than the last ones")
            _restore_optimizer(model, optimizer, tensors[OPTIMIZER])
            if scaler.is_enabled() and manifest["scaler"]:
                scaler.load_state_dict(manifest["scaler"])
        except (RuntimeError, ValueError, KeyError, OSError, SafetensorError) as error:
            raise ModelDirectoryError(f"{self.restored} does not fit this model: {error}") from None
        vars(state).update(manifest["state"])
        self._saved = dataclasses.replace(state)
        return tensors.get(BEST)

    def _list(self) -> list[Path]:
        """Return the folders with the name of a checkpoint, oldest first."""
        folders = self._checkpoints.iterdir() if self._checkpoints.is_dir() else ()
        named = [path for path in folders if NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()]
        return sorted(named, key=_order)

    def _read_log(self) -> list[dict[str, Any]]:
        """Return the good lines up to the first bad one; a run that was killed may have left half of the last one.

        Raises:
            InputError: the file is not a log of this library.
        """
        if not self._log.exists() and not self._log.is_symlink():
            return []
        history: list[dict[str, Any]] = []
        *lines, last = self._log.read_bytes().split(b"\n")
        for text in lines:
            try:
                history.append(_parsed(text))
            except (ValueError, KeyError, TypeError, RecursionError):
                break
        start = b'{"step": '
        if len(history) == len(lines) and (last.startswith(start) or start.startswith(last)):
            return history
        if not history and self.restored is None:
            raise InputError(f"{self._log} is not a log of this library; move it away, or choose another folder.")
        damage = f"{self._log} is damaged behind line {len(history)}; the rest is dropped."
        warnings.warn(damage, InputWarning, stacklevel=6)
        return history


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a checkpoint whose files have its checksums.

    Raises:
        ModelDirectoryError: the manifest or a file is missing or damaged, or is not what `save` writes.
    """
    where = path / MANIFEST
    try:
        if not where.is_file() or where.stat().st_size > MAX_MANIFEST_BYTES:
            raise ValueError("it is missing, no file, or too large for one")
        manifest = json.loads(where.read_text(encoding="utf-8"))
        if manifest.pop("sha256") != sha256_of(manifest) or manifest["format"] != 1:
            raise ValueError("it does not match its checksum, or is of another version")
        _check_fields(manifest)
        if _order(path) != (manifest["state"]["step"], manifest["state"]["epoch"]):
            raise ValueError("it is the manifest of another checkpoint")
        for name, digest in manifest["files"].items():
            if not (path / name).is_file() or sha256(path / name) != digest:
                raise ModelDirectoryError(f"{path / name} is missing or does not match its checksum.")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelDirectoryError(f"{where} is damaged or no checkpoint's: {error}.") from None
    return manifest


def _check_fields(manifest: dict[str, Any]) -> None:
    """Raise ValueError, KeyError or TypeError for what `save` does not write, whatever its checksum."""
    files, state = manifest["files"], manifest["state"]
    if not isinstance(manifest["identity"], dict) or not isinstance(files, dict) or not isinstance(state, dict):
        raise ValueError("identity, files or state is no object")
    if not {WEIGHTS, OPTIMIZER} <= files.keys() <= set(FILES):
        raise ValueError(f"its files are {', '.join(files)}; wanted {', '.join(FILES)}")
    if state.keys() != {field.name for field in dataclasses.fields(RunState)}:
        raise ValueError(f"its state has the fields {', '.join(state)}")
    for name, value in state.items():
        default = getattr(RunState, name)
        kind = float if default is None else type(default)
        if value is None and default is None:
            continue
        if type(value) is not kind or not math.isfinite(value) or (kind is int and value < 0):  # pyright: ignore
            raise ValueError(f"{name} is {value!r}")
    for name, value in manifest["scaler"].items():
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise ValueError(f"{name} of the scaler is {value!r}")


def _optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return the optimiser's tensors, each named parameter/key."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        f"{names[id(parameter)]}/{key}": value
        for parameter, values in optimizer.state.items()
        for key, value in values.items()
        if value is not None
    }


def _restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, saved: dict[str, Tensor]) -> None:
    """Load the optimiser's state by torch, which knows parameters by number and moves each value to its device."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    order = [names[id(parameter)] for parameter in parameters]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in saved.items():
        owner, _, key = name.rpartition("/")
        # A copy, because a tensor inside the file's own memory is aligned otherwise.
        state.setdefault(order.index(owner), {})[key] = tensor.clone()
    for number, values in state.items():
        check_state(optimizer, parameters[number], values)
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _finite(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise ValueError(f"{name} holds numbers that are not finite")
    return tensors


def _shapes(tensors: dict[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def _order(path: Path) -> tuple[int, ...]:
    name = NAME.fullmatch(path.name)
    assert name is not None
    return tuple(int(number) for number in name.groups() if number)


def _line(line: dict[str, Any]) -> str:
    """Write one line of strict JSON: NaN and infinity become null."""
    plain = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in line.items()
    }
    return json.dumps(plain, allow_nan=False) + "\n"


def _parsed(text: bytes) -> dict[str, Any]:
    """Read one line of the log. Raises ValueError, KeyError or TypeError when `_line` did not write it."""
    line = json.loads(text)
    if type(line["step"]) is not int or type(line["epoch"]) not in (int, float):
        raise ValueError("no step and epoch")
    return {key: math.nan if value is None else value for key, value in line.items()}


def _differences(before: Any, now: Any, where: str = "") -> list[str]:
    """Return a sentence for each difference between two JSON-like values."""
    if isinstance(before, dict) and isinstance(now, dict):
        differences = []
        for key in sorted(before.keys() | now.keys()):
            differences += _differences(before.get(key), now.get(key), f"{where}.{key}" if where else key)
        return differences
    return [] if before == now else [f"{where} was {before!r} and is now {now!r}"]
