"""The folder of a training run: its log, and checkpoints that are whole or absent.

A checkpoint is a folder `checkpoints/step-00001234` with the weights, the optimiser's state and a manifest that gives
the place in the run, what the run is of, and the SHA-256 of every file. It is written beside, flushed and renamed.
Nothing in it is code: numbers are safetensors, the rest JSON. Only files that a manifest of this run names are ever
removed; whatever else lies in the folder stays.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import rotarymae
from rotarymae.errors import InputError, ModelDirectoryError
from rotarymae.files import replacing, replacing_folder

MANIFEST = "manifest.json"


@dataclass
class RunState:
    """Where a run is; with the weights and the optimiser's state, all that the next step depends on.

    `step` counts steps taken, `place` batches of epoch `epoch` done. The rest belongs to logs and early stopping.
    """

    step: int = 0
    epoch: int = 0
    place: int = 0
    tokens: int = 0
    skipped: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    running_loss: float = 0.0
    best: float | None = None
    best_step: int = -1
    waited: int = 0
    stopped: bool = False
    stop_asked: bool = False


class RunFolder:
    """Log and checkpoints of one run. On all processes but the main one it reads and does not write."""

    def __init__(self, path: Path, writes: bool = True) -> None:
        self.path = path
        self.writes = writes
        self.restored: Path | None = None
        self._log = path / "log.jsonl"
        self._checkpoints = path / "checkpoints"

    def open(self, resume: str, identity: dict[str, Any]) -> list[dict[str, Any]]:
        """Finds where to go on; returns the log up to there.

        Raises:
            InputError: resume="never" and the folder has a run in it; a checkpoint of other data or another
                configuration, unless resume="force". The message names the difference.
        """
        if resume not in ("never", "auto", "force"):
            raise InputError(f"resume {resume!r}; wanted 'never', 'auto' or 'force'.")
        if resume == "never":
            if self._log.exists() or self._checkpoints.exists():
                raise InputError(f"{self.path} holds a run already; resume it (--resume), or choose another folder.")
        else:
            self.restored = newest(self._checkpoints)
        history: list[dict[str, Any]] = []
        if self.restored is not None:
            manifest = read_manifest(self.restored)
            differences = _differences(manifest["identity"], identity)
            if differences and resume != "force":
                raise InputError(
                    f"{self.restored} is of another run: {'; '.join(differences[:5])}. Resume with the same data and "
                    "settings, choose another folder, or force it."
                )
            history = [line for line in _read_log(self._log) if line["step"] <= manifest["state"]["step"]]
            # An evaluation at the end of an epoch carries the step of its last batch, like the checkpoint before it.
            history = [
                line for line in history if "validation" not in line or line["epoch"] <= manifest["state"]["epoch"]
            ]
        if self.writes:
            self.path.mkdir(parents=True, exist_ok=True)
            with replacing(self._log) as beside:
                beside.write_text("".join(json.dumps(line) + "\n" for line in history), encoding="utf-8")
        return history

    def log(self, line: dict[str, Any]) -> None:
        if self.writes:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scaler: torch.amp.GradScaler,
        state: RunState,
        identity: dict[str, Any],
        keep: int,
    ) -> None:
        """Writes a checkpoint, then removes this run's older ones beyond `keep`.

        Raises:
            OSError: the disk is full or not writable; earlier checkpoints stand, and nothing half-written is left.
        """
        if not self.writes:
            return
        target = self._checkpoints / f"step-{state.step:08d}"
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        tensors: dict[str, Tensor] = {}
        for parameter, values in optimizer.state.items():
            for key, value in values.items():
                if value is not None:
                    tensors[f"{names[id(parameter)]}/{key}"] = torch.as_tensor(value).detach().cpu().contiguous()
        fields = {**dataclasses.asdict(state), "stop_asked": False}
        try:
            with replacing_folder(target) as beside:
                save_file(_weights(model), beside / "model.safetensors")
                save_file(tensors, beside / "optimizer.safetensors")
                _write_manifest(beside, {"identity": identity, "state": fields, "scaler": scaler.state_dict()})
        except (OSError, SafetensorError) as error:
            before = newest(self._checkpoints)
            raise OSError(
                f"the checkpoint of step {state.step} could not be written to {self._checkpoints} ({error}); "
                f"{'there is no earlier one' if before is None else f'{before.name} before it stands'}."
            ) from error
        for old in _of_this_run(self._checkpoints)[:-keep]:
            remove_checkpoint(old)

    def restore(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler, state: RunState
    ) -> None:
        """Puts weights, optimiser and state as they were.

        Raises:
            ModelDirectoryError: the checkpoint does not fit the model.
        """
        assert self.restored is not None, "open() found nothing to restore"
        manifest = read_manifest(self.restored)
        parameters = dict(model.named_parameters())
        try:
            model.load_state_dict(load_file(self.restored / "model.safetensors"))
            loaded = load_file(self.restored / "optimizer.safetensors")
            optimizer.state.clear()
            for name, tensor in loaded.items():
                owner, _, key = name.rpartition("/")
                parameter = parameters[owner]
                # As torch keeps it: "step" stays float32 beside a parameter of any precision.
                optimizer.state[parameter][key] = tensor.to(parameter.device)
            for key, value in manifest["state"].items():
                setattr(state, key, value)
        except (RuntimeError, KeyError) as error:
            raise ModelDirectoryError(f"{self.restored} does not fit this model: {error}") from None
        if scaler.is_enabled():
            scaler.load_state_dict(manifest["scaler"])

    def save_best(self, weights: dict[str, Tensor], state: RunState) -> None:
        """Keeps the weights of the best validation loss, replacing this run's former best."""
        if not self.writes:
            return
        target = self._checkpoints / "best"
        if target.exists() and not _is_ours(target):
            raise InputError(f"{target} is not this run's; move it away.")
        with replacing_folder(target) as beside:
            save_file(weights, beside / "model.safetensors")
            _write_manifest(beside, {"state": {"best": state.best, "best_step": state.best_step}})

    def best_weights(self, state: RunState) -> dict[str, Tensor] | None:
        """The kept best weights, if they are those that `state` speaks of."""
        path = self._checkpoints / "best"
        if state.best_step < 0 or not is_whole(path):
            return None
        if read_manifest(path)["state"]["best_step"] != state.best_step:
            return None
        return load_file(path / "model.safetensors")


def newest(checkpoints: Path) -> Path | None:
    """The last whole checkpoint of a run: every file there, with the bytes its manifest promises."""
    return next((path for path in reversed(_of_this_run(checkpoints)) if is_whole(path)), None)


def is_whole(path: Path) -> bool:
    """Whether every file the manifest names has the SHA-256 it gives."""
    try:
        files = read_manifest(path)["files"]
        return all(_sha256(path / name) == digest for name, digest in files.items())
    except (ModelDirectoryError, OSError, AttributeError):
        return False


def read_manifest(path: Path) -> dict[str, Any]:
    """Raises ModelDirectoryError when it is missing or damaged."""
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelDirectoryError(f"{path / MANIFEST} cannot be read: {error}.") from None
    wanted = ("format", "versions", "files", "state")
    if not isinstance(manifest, dict) or any(key not in manifest for key in wanted):
        raise ModelDirectoryError(f"{path / MANIFEST} is not a checkpoint's: it lacks one of {', '.join(wanted)}.")
    return manifest


def remove_checkpoint(path: Path) -> None:
    """Removes the files its manifest names, and the folder if nothing else is in it.

    The manifest goes first: a checkpoint half removed is not whole.
    """
    files = read_manifest(path)["files"]
    (path / MANIFEST).unlink()
    for name in files:
        (path / name).unlink(missing_ok=True)
    if not any(path.iterdir()):
        path.rmdir()


def _of_this_run(checkpoints: Path) -> list[Path]:
    if not checkpoints.is_dir():
        return []
    found = [path for path in checkpoints.iterdir() if path.name.startswith("step-") and _is_ours(path)]
    return sorted(found, key=lambda path: path.name)


def _is_ours(path: Path) -> bool:
    try:
        return set(read_manifest(path)["files"]) <= {"model.safetensors", "optimizer.safetensors"}
    except ModelDirectoryError:
        return False


def _weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}


def _write_manifest(folder: Path, content: dict[str, Any]) -> None:
    files = {path.name: _sha256(path) for path in sorted(folder.iterdir())}
    versions = {"rotarymae": rotarymae.__version__, "torch": torch.__version__, "python": platform.python_version()}
    manifest = {"format": 1, "versions": versions, **content, "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_log(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a log; a run that was killed may have left half of one."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


def _differences(before: Any, now: Any, where: str = "") -> list[str]:
    """Sentences for what differs between two JSON-like values."""
    now = json.loads(json.dumps(now))
    if isinstance(before, dict) and isinstance(now, dict):
        found = []
        for key in sorted(before.keys() | now.keys()):
            found += _differences(before.get(key), now.get(key), f"{where}.{key}" if where else key)
        return found
    return [] if before == now else [f"{where} was {before!r} and is now {now!r}"]
