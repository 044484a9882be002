"""The folder of a training run: its log, and checkpoints that are whole or absent.

A checkpoint is a folder `checkpoints/step-00001234` with the weights, the optimiser's state and a manifest that gives
the place in the run, what the run is of, and the SHA-256 of every file; `checkpoints/best-00001200` holds the weights
of the best validation loss. Each is written beside, flushed and renamed to a name that was free: nothing is ever
overwritten. Nothing in it is code: numbers are safetensors, the rest JSON. Only files that a manifest of this run
names, and whose bytes are still those, are ever removed; whatever else lies in the folder stays.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import rotarymae
from rotarymae.atomic_write import flush, replacing, replacing_folder
from rotarymae.errors import InputError, ModelDirectoryError

MANIFEST = "manifest.json"
FILES = ("model.safetensors", "optimizer.safetensors")
NAME = re.compile(r"(step|best)-(\d{8,})(?:-(\d+))?")


@dataclass
class RunState:
    """Where a run is; with the weights and the optimiser's state, all that the next step depends on.

    `step` counts steps taken, `place` batches of epoch `epoch` done. The rest belongs to logs and early stopping;
    `best_kept` is the folder of the best weights.
    """

    step: int = 0
    epoch: int = 0
    place: int = 0
    tokens: int = 0
    skipped: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    running_loss: float | None = None
    best: float | None = None
    best_kept: str = ""
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
        self._identity: dict[str, Any] = {}
        self._saved: dict[str, Any] | None = None

    def open(self, resume: str, identity: dict[str, Any]) -> list[dict[str, Any]]:
        """Finds where to go on; returns the log up to there.

        Args:
            resume: "never", "auto" or "force", see `training.fit`.
            identity: what the run is of, as JSON: data, model, settings.

        Raises:
            InputError: resume="never" and the folder has a run in it; a checkpoint of other data or another
                configuration, unless resume="force" (the message names the difference); a log or a folder of
                checkpoints that this library did not write.
        """
        if resume not in ("never", "auto", "force"):
            raise InputError(f"resume {resume!r}; wanted 'never', 'auto' or 'force'.")
        self._identity = json.loads(json.dumps(identity))
        if resume == "never":
            if self._log.exists() or self._checkpoints.exists():
                raise InputError(f"{self.path} holds a run already; resume it (--resume), or choose another folder.")
        else:
            self.restored = newest(self._checkpoints)
        if self._checkpoints.exists() and not self._checkpoints.is_dir():
            raise InputError(f"{self._checkpoints} is a file; checkpoints go there. Move it, or choose another folder.")
        history = _read_log(self._log)
        if self.restored is None:
            history = []
        else:
            manifest = read_manifest(self.restored)
            differences = _differences(manifest["identity"], self._identity)
            if differences and resume != "force":
                raise InputError(
                    f"{self.restored} is of another run: {'; '.join(differences[:5])}. Resume with the same data and "
                    "settings, choose another folder, or force it."
                )
            step, epoch = manifest["state"]["step"], manifest["state"]["epoch"]
            # An evaluation at the end of an epoch carries the step of its last batch, like the checkpoint before it.
            history = [
                line
                for line in history
                if line["step"] <= step and ("validation" not in line or line["epoch"] <= epoch)
            ]
        if self.writes:
            self.path.mkdir(parents=True, exist_ok=True)
            self._remove_leftovers()
            with replacing(self._log, self._mark) as beside:
                beside.write_text("".join(_line(line) for line in history), encoding="utf-8")
        return history

    def log(self, line: dict[str, Any]) -> None:
        """Appends one line of JSON. Raises OSError that names the file."""
        if self.writes:
            try:
                with self._log.open("a", encoding="utf-8") as file:
                    file.write(_line(line))
            except OSError as error:
                raise OSError(f"{self._log} could not be written to ({error}).") from error

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        scaler: torch.amp.GradScaler,
        state: RunState,
        keep: int,
    ) -> None:
        """Writes a checkpoint, then removes this run's older ones beyond `keep`, and best weights none of them names.

        Raises:
            OSError: the disk is full or not writable; earlier checkpoints stand, and nothing half-written is left.
        """
        fields = {**dataclasses.asdict(state), "stop_asked": False}
        if not self.writes or fields == self._saved:
            return
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        tensors: dict[str, Tensor] = {}
        for parameter, values in optimizer.state.items():
            for key, value in values.items():
                if value is not None:
                    tensors[f"{names[id(parameter)]}/{key}"] = torch.as_tensor(value).detach().cpu().contiguous()
        files = {"model.safetensors": _weights(model), "optimizer.safetensors": tensors}
        self._write(f"step-{state.step:08d}", files, {"state": fields, "scaler": scaler.state_dict()})
        self._saved = fields
        mine = [path for path in _checkpoints(self._checkpoints, "step") if self._is_mine(path)]
        # Of two states of one step, before and after an evaluation, the later one will do.
        kept = list({read_manifest(path)["state"]["step"]: path for path in mine}.values())[-keep:]
        for old in mine:
            if old not in kept:
                self._remove(old)
        named = {read_manifest(path)["state"].get("best_kept") for path in _checkpoints(self._checkpoints, "step")}
        for old in _checkpoints(self._checkpoints, "best"):
            if old.name not in named and self._is_mine(old):
                self._remove(old)

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
            optimizer.state.clear()
            for name, tensor in load_file(self.restored / "optimizer.safetensors").items():
                owner, _, key = name.rpartition("/")
                parameter = parameters[owner]
                if tensor.shape not in (parameter.shape, torch.Size([])):
                    raise ValueError(f"{name} has shape {tuple(tensor.shape)}")
                # As torch keeps it: "step" stays float32 beside a parameter of any precision. A copy, because a tensor
                # inside the file's own memory is aligned otherwise.
                optimizer.state[parameter][key] = tensor.to(parameter.device, copy=True)
            if scaler.is_enabled():
                scaler.load_state_dict(manifest["scaler"])
        except (RuntimeError, KeyError, ValueError, TypeError, OSError, SafetensorError) as error:
            raise ModelDirectoryError(f"{self.restored} does not fit this model: {error}") from None
        for key, value in manifest["state"].items():
            setattr(state, key, value)
        self._saved = manifest["state"]

    def save_best(self, weights: dict[str, Tensor], state: RunState) -> str:
        """Keeps the weights of the best validation loss; returns the name of their folder.

        Raises:
            OSError: as `save`.
        """
        if not self.writes:
            return ""
        content = {"state": {"step": state.step, "best": state.best}}
        return self._write(f"best-{state.step:08d}", {"model.safetensors": weights}, content)

    def best_weights(self, state: RunState) -> dict[str, Tensor] | None:
        """The kept best weights that `state` speaks of, or None when it speaks of none.

        Raises:
            ModelDirectoryError: they are not there, or damaged.
        """
        if not state.best_kept:
            return None
        path = self._checkpoints / state.best_kept
        if path not in _checkpoints(self._checkpoints, "best") or not is_whole(path):
            raise ModelDirectoryError(f"{path}, the weights of the best validation loss, is missing or damaged.")
        return load_file(path / "model.safetensors")

    @property
    def _mark(self) -> str:
        """What names of half-written things of this run hold, and nobody else's."""
        return hashlib.sha256(json.dumps(self._identity, sort_keys=True).encode()).hexdigest()[:16]

    def _write(self, name: str, files: dict[str, dict[str, Tensor]], content: dict[str, Any]) -> str:
        target = self._checkpoints / name
        number = 1
        while target.exists():  # another state of the same step, or somebody else's
            number += 1
            target = self._checkpoints / f"{name}-{number}"
        versions = {"rotarymae": rotarymae.__version__, "torch": torch.__version__, "python": platform.python_version()}
        try:
            with replacing_folder(target, self._mark) as beside:
                for file, tensors in files.items():
                    save_file(tensors, beside / file)
                manifest = {"format": 1, "kind": name.partition("-")[0], "versions": versions, **content}
                manifest |= {"identity": self._identity, "files": {file: _sha256(beside / file) for file in files}}
                (beside / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            flush(self._log)
        except (OSError, SafetensorError) as error:
            before = newest(self._checkpoints)
            raise OSError(
                f"{name} could not be written to {self._checkpoints} ({error}); "
                f"{'there is no earlier checkpoint' if before is None else f'{before.name} before it stands'}."
            ) from error
        return target.name

    def _is_mine(self, path: Path) -> bool:
        return read_manifest(path)["identity"] == self._identity

    def _remove(self, path: Path) -> None:
        """Removes the files a manifest names and whose bytes it knows, and the folder if nothing else is in it."""
        files = read_manifest(path)["files"]
        known = [name for name, digest in files.items() if _is_file(path / name) and _sha256(path / name) == digest]
        if {file.name for file in path.iterdir()} == {*known, MANIFEST}:
            # Renamed first: a checkpoint half removed must not be taken for one, nor be left for ever.
            path = path.replace(path.with_name(f".{path.name}.{self._mark}.part"))
        for name in (MANIFEST, *known):
            (path / name).unlink()
        if not any(path.iterdir()):
            path.rmdir()

    def _remove_leftovers(self) -> None:
        """What a killed process of this very run had half written or half removed."""
        for folder in self._checkpoints.glob(f".*.{self._mark}.part"):
            for name in (MANIFEST, *FILES):
                (folder / name).unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()
        for file in self.path.glob(f".{self._log.name}.{self._mark}.part*"):
            file.unlink()


def newest(checkpoints: Path) -> Path | None:
    """The last whole checkpoint of a run: every file there, with the bytes its manifest promises."""
    return next((path for path in reversed(_checkpoints(checkpoints, "step")) if is_whole(path)), None)


def is_whole(path: Path) -> bool:
    """Whether every file the manifest names has the SHA-256 it gives."""
    try:
        files = read_manifest(path)["files"]
        return all(_is_file(path / name) and _sha256(path / name) == digest for name, digest in files.items())
    except (ModelDirectoryError, OSError):
        return False


def read_manifest(path: Path) -> dict[str, Any]:
    """Raises ModelDirectoryError when it is missing, damaged or not a checkpoint's."""
    if not _is_file(path / MANIFEST):
        raise ModelDirectoryError(f"{path / MANIFEST} is missing, or no plain file.")
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelDirectoryError(f"{path / MANIFEST} cannot be read: {error}.") from None
    wanted = {"format": int, "kind": str, "versions": dict, "identity": dict, "files": dict, "state": dict}
    if not isinstance(manifest, dict):
        raise ModelDirectoryError(f"{path / MANIFEST} holds a {type(manifest).__name__}; wanted an object of fields.")
    for key, kind in wanted.items():
        if not isinstance(manifest.get(key), kind):
            raise ModelDirectoryError(f"{path / MANIFEST} is not a checkpoint's: {key!r} is {manifest.get(key)!r:.60}.")
    # Names are fixed, so that a manifest cannot point outside its folder.
    files = FILES if manifest["kind"] == "step" else FILES[:1]
    if manifest["format"] != 1 or manifest["kind"] not in ("step", "best") or set(manifest["files"]) != set(files):
        raise ModelDirectoryError(f"{path / MANIFEST} is not a checkpoint's, or of a version unknown here.")
    if manifest["kind"] == "step":
        _check_state(manifest["state"], path / MANIFEST)
    return manifest


def _check_state(state: dict[str, Any], where: Path) -> None:
    known = {field.name: field.default for field in dataclasses.fields(RunState)}
    if set(state) != set(known):
        raise ModelDirectoryError(f"{where}: the state has {', '.join(sorted(state))}; wanted {', '.join(known)}.")
    for name, default in known.items():
        value, kinds = state[name], {int, float, type(None)} if default is None else {type(default)}
        if default == 0.0 and type(default) is float:
            kinds.add(int)
        bad = type(value) not in kinds or (isinstance(value, float) and not math.isfinite(value))
        if bad or (type(value) is int and value < 0):
            raise ModelDirectoryError(f"{where}: the state has {name} {value!r:.60}.")


def _checkpoints(folder: Path, kind: str) -> list[Path]:
    """Checkpoints of a kind, oldest first. A copy under another name is its maker's."""
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        name = NAME.fullmatch(path.name)
        if name is None or name[1] != kind or path.is_symlink():
            continue
        try:
            manifest = read_manifest(path)
        except ModelDirectoryError:
            continue
        state = manifest["state"]
        if manifest["kind"] == kind and state.get("step") == int(name[2]):
            found.append((state["step"], state.get("epoch", 0), state.get("place", 0), int(name[3] or 1), path))
    return [path for *_, path in sorted(found)]


def _weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}


def _is_file(path: Path) -> bool:
    """A plain file: reading a pipe would wait, and a link may lead anywhere."""
    return path.is_file() and not path.is_symlink()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _line(line: dict[str, Any]) -> str:
    """One line of strict JSON: a number that is none is null."""
    plain = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in line.items()
    }
    return json.dumps(plain, allow_nan=False) + "\n"


def _read_log(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a log; a run that was killed may have left half of one.

    Raises:
        InputError: the file is not a log of this library.
    """
    strange = InputError(f"{path} is not a log of this library; move it away, or choose another folder.")
    if not path.exists():
        return []
    if not _is_file(path):
        raise strange
    lines = []
    try:
        *whole, torn = path.read_text(encoding="utf-8").split("\n")
        for text in whole:
            line = json.loads(text)
            if not isinstance(line, dict) or type(line.get("step")) is not int or "epoch" not in line:
                raise strange
            lines.append({key: math.nan if value is None else value for key, value in line.items()})
    except (ValueError, RecursionError):
        raise strange from None
    start = '{"step": '
    if not (torn.startswith(start) or start.startswith(torn)):
        raise strange
    return lines


def _differences(before: Any, now: Any, where: str = "") -> list[str]:
    """Sentences for what differs between two JSON-like values."""
    if isinstance(before, dict) and isinstance(now, dict):
        found = []
        for key in sorted(before.keys() | now.keys()):
            found += _differences(before.get(key), now.get(key), f"{where}.{key}" if where else key)
        return found
    return [] if before == now else [f"{where} was {before!r} and is now {now!r}"]
