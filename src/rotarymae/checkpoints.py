"""Model directories: config.json, model.safetensors, preprocessor.json and README.md, the model card.

Loading runs no code from the files and is strict: whatever is missing, surplus, truncated or misshapen is named.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import rotarymae
from rotarymae.atomic_write import replacing_folder
from rotarymae.config import RoMAEConfig
from rotarymae.errors import InputError, ModelDirectoryError
from rotarymae.heads import Classifier, Regressor, TokenRegressor
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.series import Preprocessor

FORMAT = 1
CARD = "written by rotarymae"  # in every model card
FILES = ("config.json", "model.safetensors", "preprocessor.json", "README.md")
KINDS: dict[str, type[nn.Module]] = {
    kind.__name__: kind for kind in (Encoder, MaskedAutoencoder, Classifier, Regressor, TokenRegressor)
}
Model = Encoder | MaskedAutoencoder | Classifier | Regressor | TokenRegressor


@dataclass(frozen=True)
class ModelDirectory:
    """What a model directory holds. `preprocessor` is None for a model of tokens the caller makes himself."""

    model: Model
    preprocessor: Preprocessor | None


def save(model: Model, folder: str | Path, preprocessor: Preprocessor | None = None, note: str = "") -> None:
    """Writes a model directory: beside, flushed, renamed.

    Args:
        model: an Encoder, MaskedAutoencoder, Classifier, Regressor or TokenRegressor.
        folder: new, empty, or a model directory, which is replaced; anything else is left alone.
        preprocessor: what turns tables into this model's tokens.
        note: a paragraph for the model card.

    Raises:
        InputError: another kind of model, or a folder that holds other things than a model.
    """
    folder = Path(folder)
    kind = type(model).__name__
    if KINDS.get(kind) is not type(model):
        raise InputError(f"save got a {kind}; wanted one of {', '.join(KINDS)}.")
    check_replaceable(folder)
    config = {"format": FORMAT, "kind": kind, "config": _config(model).to_dict(), "head": _head(model)}
    with replacing_folder(folder) as beside:
        _dump(beside / "config.json", config)
        # Contiguous copies: safetensors keeps bits, so a loaded model predicts the same bits.
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
        save_file(tensors, beside / "model.safetensors")
        _dump(beside / "preprocessor.json", None if preprocessor is None else preprocessor.to_dict())
        (beside / "README.md").write_text(_card(model, preprocessor, note), encoding="utf-8")


def check_replaceable(folder: str | Path) -> None:
    """Raises InputError when saving a model to `folder` would remove something that is not a model's."""
    folder = Path(folder)
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.name not in FILES)
        if others:
            raise InputError(
                f"{folder} holds {', '.join(others[:3])}, which is no part of a model; choose a new folder."
            )
        if any(folder.iterdir()) and not _is_model(folder):
            raise InputError(f"{folder} holds files by a model's names that are no model's; choose a new folder.")
    elif folder.exists():
        raise InputError(f"{folder} is a file; a model is saved as a folder.")


def _is_model(folder: Path) -> bool:
    """Whether the files there are such as `save` writes; a README.md may well be somebody else's."""
    if not all(path.is_file() for path in folder.iterdir()):
        return False
    try:
        described = _read_json(folder / "config.json", dict)
        card = (folder / "README.md").read_text(encoding="utf-8") if (folder / "README.md").exists() else CARD
    except (ModelDirectoryError, OSError, UnicodeDecodeError):
        return False
    return {"format", "kind", "config", "head"} <= described.keys() and CARD in card


def load(folder: str | Path) -> Model:
    """The model of a directory, in evaluation mode. Raises as `load_directory`."""
    return load_directory(folder).model


def load_directory(folder: str | Path) -> ModelDirectory:
    """The model, in evaluation mode, and its preprocessor.

    Raises:
        ModelDirectoryError: a file is missing or unreadable, a key unknown or missing, a tensor missing, surplus,
            misshapen or of another precision than the rest; the message names it. Pickles are never read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ModelDirectoryError(f"{folder} is not a folder; wanted a model directory with {', '.join(FILES[:3])}.")
    described = _read_json(folder / "config.json", dict)
    for key in ("format", "kind", "config", "head"):
        if key not in described:
            raise ModelDirectoryError(f"{folder / 'config.json'}: the key {key!r} is missing.")
    for key in described:
        if key not in ("format", "kind", "config", "head"):
            raise ModelDirectoryError(f"{folder / 'config.json'}: unknown key {key!r}.")
    if described["format"] != FORMAT:
        raise ModelDirectoryError(
            f"{folder / 'config.json'} has format {described['format']!r}; this version reads format {FORMAT}."
        )
    tensors = _read_tensors(folder)
    try:
        model = _build(described["kind"], described["config"], described["head"], len(tensors))
    except (InputError, OverflowError, TypeError, RuntimeError) as error:  # torch's own, for sizes beyond all bounds
        raise ModelDirectoryError(f"{folder / 'config.json'}: {str(error).splitlines()[0]}") from None
    _assign(model, tensors, folder / "model.safetensors")
    preprocessor = None
    fields = _read_json(folder / "preprocessor.json", (dict, type(None)))
    if fields is not None:
        try:
            preprocessor = Preprocessor.from_dict(fields)
        except (InputError, TypeError, ValueError) as error:
            raise ModelDirectoryError(f"{folder / 'preprocessor.json'}: {error}") from None
        config = _config(model)
        if (preprocessor.features, preprocessor.axes) != (config.features, config.axes):
            raise ModelDirectoryError(
                f"{folder / 'preprocessor.json'} makes tokens of {preprocessor.features} features and "
                f"{preprocessor.axes} axes; config.json asks for {config.features} and {config.axes}."
            )
        named = preprocessor.classes
        if isinstance(model, Classifier) and named is not None and len(named) != model.classes:
            raise ModelDirectoryError(
                f"{folder / 'preprocessor.json'} names {len(named)} classes; config.json asks for {model.classes}."
            )
    return ModelDirectory(model.eval(), preprocessor)


def open_model(folder: str | Path, want: str) -> ModelDirectory:
    """A model directory, or the one of a run folder that does the job: `want` is "pretrained" or "finetuned"."""
    folder = Path(folder)
    if not (folder / "config.json").exists() and (folder / "pretrained").is_dir():
        if not (folder / want).is_dir():
            raise InputError(f"{folder} has no {want} model; `rotarymae fit` with --labels makes one.")
        folder = folder / want
    return load_directory(folder)


def _config(model: Model) -> RoMAEConfig:
    return model.config if isinstance(model, Encoder | MaskedAutoencoder) else model.encoder.config


def _head(model: nn.Module) -> dict[str, Any] | None:
    if isinstance(model, Classifier):
        return {"classes": model.classes, "pool": model.pool, "dropout": model.dropout.p}
    if isinstance(model, Regressor):
        return {"outputs": model.outputs, "pool": model.pool, "dropout": model.dropout.p}
    if isinstance(model, TokenRegressor):
        return {"outputs": model.outputs, "dropout": model.dropout.p}
    return None


def _build(kind: Any, fields: Any, head: Any, tensors: int) -> Model:
    """The model without memory for its weights, so that a config cannot ask for more than the file brings."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"kind {kind!r}; wanted one of {', '.join(KINDS)}.")
    if not isinstance(fields, dict):
        raise InputError(f"'config' is {type(fields).__name__}; wanted an object of fields.")
    config = RoMAEConfig.from_dict(fields)
    if config.depth > tensors or (kind == "MaskedAutoencoder" and config.decoder_depth > tensors):
        raise InputError(f"'config' asks for {config.depth} blocks; model.safetensors has {tensors} tensors in all.")
    if kind in ("Encoder", "MaskedAutoencoder"):
        if head is not None:
            raise InputError(f"'head' of a {kind} is {head!r}; wanted null.")
        with torch.device("meta"):
            return Encoder(config) if kind == "Encoder" else MaskedAutoencoder(config)
    wanted = {
        "Classifier": {"classes": int, "pool": str, "dropout": float},
        "Regressor": {"outputs": int, "pool": str, "dropout": float},
        "TokenRegressor": {"outputs": int, "dropout": float},
    }[kind]
    if not isinstance(head, dict) or set(head) != set(wanted):
        raise InputError(f"'head' of a {kind} is {head!r}; wanted the keys {', '.join(wanted)}.")
    for key, kind_of in wanted.items():
        if not isinstance(head[key], (int, float) if kind_of is float else kind_of):
            raise InputError(f"'head' has {key} {head[key]!r}; wanted {kind_of.__name__}.")
    with torch.device("meta"):
        return KINDS[kind](Encoder(config), **head)  # type: ignore[return-value]


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    path = folder / "model.safetensors"
    if not path.is_file():
        pickles = sorted(p.name for p in folder.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".pkl", ".ckpt"))
        found = f"; {pickles[0]} is a pickle, which can run code and is never read" if pickles else ""
        raise ModelDirectoryError(f"{path} is missing{found}.")
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        with path.open("rb") as file:
            start = file.read(2)
        # A zip archive, or a pickle of protocol 2 to 5.
        looks = start == b"PK" or (start[:1] == b"\x80" and start[1:] in (b"\x02", b"\x03", b"\x04", b"\x05"))
        pickled = " It looks like a pickle, which can run code and is never read." if looks else ""
        raise ModelDirectoryError(f"{path} cannot be read as safetensors ({error}).{pickled}") from None


def _assign(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    wanted = model.state_dict()
    for name in sorted(wanted.keys() - tensors.keys()):
        raise ModelDirectoryError(f"{path}: the tensor {name!r} is missing.")
    for name in sorted(tensors.keys() - wanted.keys()):
        raise ModelDirectoryError(f"{path}: surplus tensor {name!r}; the configuration has no such part.")
    dtypes = {tensor.dtype for tensor in tensors.values()}
    for name, tensor in tensors.items():
        if tensor.shape != wanted[name].shape:
            raise ModelDirectoryError(
                f"{path}: the tensor {name!r} has shape {tuple(tensor.shape)}; the configuration asks for "
                f"{tuple(wanted[name].shape)}."
            )
        if not tensor.is_floating_point() or len(dtypes) > 1:
            raise ModelDirectoryError(
                f"{path}: the tensor {name!r} is {tensor.dtype} among {sorted(map(str, dtypes))}."
            )
        if not torch.isfinite(tensor).all():
            raise ModelDirectoryError(f"{path}: the tensor {name!r} holds NaN or infinity; the weights are damaged.")
    # Copies: a tensor inside the file's own memory is aligned otherwise, and products then differ in their last bits.
    model.load_state_dict({name: tensor.clone() for name, tensor in tensors.items()}, assign=True)


def _read_json(path: Path, kinds: type | tuple[type, ...]) -> Any:
    if not path.is_file():
        raise ModelDirectoryError(f"{path} is missing; a model directory holds {', '.join(FILES[:3])}.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise ModelDirectoryError(f"{path} is not JSON: {error}.") from None
    if not isinstance(content, kinds):
        raise ModelDirectoryError(f"{path} holds a {type(content).__name__}; wanted an object of fields.")
    return content


def _dump(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _card(model: Model, preprocessor: Preprocessor | None, note: str) -> str:
    config = _config(model)
    lines = [
        "---",
        "library_name: rotarymae",
        "tags: [rotarymae, irregular-time-series]",
        "---",
        f"# {type(model).__name__} ({config.embed_dim}/{config.num_heads}/{config.depth})",
        "",
        f"A Rotary Masked Autoencoder (arXiv:2505.20535) {CARD} {rotarymae.__version__}: "
        f"{sum(p.numel() for p in model.parameters()):,} parameters, {config.features} features a token, "
        f"{config.axes} position axes.",
        "",
    ]
    if note:
        lines += [note, ""]
    if preprocessor is not None:
        lines += ["## What is done to the data", ""]
        lines += [f"- {name}: {value}" for name, value in preprocessor.describe().items()]
        if preprocessor.classes is not None:
            lines.append(f"- classes: {', '.join(map(str, preprocessor.classes))}")
        lines.append("")
    lines += ["## Use", "", "```python", "import rotarymae", 'model = rotarymae.load("this folder")', "```", ""]
    return "\n".join(lines)
