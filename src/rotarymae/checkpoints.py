"""Model directories: config.json, model.safetensors, preprocessor.json and README.md, the model card.

Loading runs no code from the files. config.json holds the checksums of the weights, of the preprocessor and of itself:
what is missing, truncated or changed of these is named.
"""

from __future__ import annotations

import html
import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

import rotarymae
from rotarymae.arrays import ArrayPreprocessor
from rotarymae.config import Precision, RoMAEConfig
from rotarymae.errors import InputError, ModelDirectoryError, import_extra, listed
from rotarymae.heads import Classifier, Regressor, TokenRegressor, encoder_of, head_settings
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.series import Preprocessor, SeriesDataset
from rotarymae.system import remove_leftovers, replacing_folder, sha256, sha256_of

FORMAT = 2  # 1 had no checksums
CARD = "written by rotarymae"  # in every model card
LEFT_AFTER = 3600.0  # seconds; saving takes far less
SHIPPED = Path(__file__).parent / "models"  # a folder per model that ships with the library
FILES = ("config.json", "model.safetensors", "preprocessor.json", "README.md")
PREDICTOR = "predictor"  # the folder of what predicts beside a model, in a run's folder or in an estimator's model's
# A name on the Hub, and what is taken from there or put there: no pickle, no code.
HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(@[\w./-]+)?")
PUBLISHED = tuple(f"{part}{file}" for part in ("", "pretrained/", "finetuned/") for file in FILES)
PUBLISHED += ("predictor/*.json", "predictor/*.safetensors", "predictor/*.txt")
KINDS: dict[str, type[nn.Module]] = {
    kind.__name__: kind for kind in (Encoder, MaskedAutoencoder, Classifier, Regressor, TokenRegressor)
}
Model = Encoder | MaskedAutoencoder | Classifier | Regressor | TokenRegressor
AnyPreprocessor = Preprocessor | ArrayPreprocessor
KEYS = ("format", "kind", "config", "head")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class ModelDirectory:
    """What a model directory holds, and how it is to predict.

    Attributes:
        preprocessor: None for a model whose tokens the caller makes.
        precision: of matrix products in predictions; no file holds it.
    """

    model: Model
    preprocessor: AnyPreprocessor | None
    precision: Precision = "auto"

    def of_series(self) -> Preprocessor:
        """The preprocessor of a model of series. Raises InputError for a model of something else."""
        if self.preprocessor is None:
            raise InputError("the model has no preprocessor; it was not made from series.")
        if isinstance(self.preprocessor, ArrayPreprocessor):
            raise InputError(f"the model was made from {self.preprocessor.noun}, and this needs one made from series.")
        return self.preprocessor

    def of_arrays(self) -> ArrayPreprocessor:
        """The preprocessor of a model of pictures, videos or sounds. Raises InputError for another model."""
        if not isinstance(self.preprocessor, ArrayPreprocessor):
            raise InputError("the model was not made from pictures, videos or sounds, and this needs one that was.")
        return self.preprocessor


def save(
    model: Model,
    folder: str | Path,
    preprocessor: AnyPreprocessor | None = None,
    note: str = "",
    license: str = "unknown",
    tags: Sequence[str] = (),
) -> None:
    """Writes a model directory: a reader sees the old one or the new one, never half of either.

    Args:
        model: an Encoder, MaskedAutoencoder, Classifier, Regressor or TokenRegressor.
        folder: new, empty, or a model directory, which is replaced; anything else is left alone.
        preprocessor: what turns tables or arrays into this model's tokens.
        note: a paragraph for the model card.
        license: under which the model may be used, as the Hugging Face Hub writes it: "mit", "cc-by-4.0".
        tags: of the model card, beside the library's.

    Raises:
        InputError: another kind of model, a folder that holds other things than a model, or a link to one; a licence
            or a tag of other characters than letters, digits, dots and hyphens.
        OSError: the files cannot be written; the message names the folder, and what was there is untouched.
    """
    folder = Path(folder)
    kind = type(model).__name__
    if KINDS.get(kind) is not type(model):
        raise InputError(f"save got a {kind}; wanted one of {', '.join(KINDS)}.")
    for word in (license, *tags):
        if not re.fullmatch(r"[\w.-]+", word):
            raise InputError(
                f"{word!r} is no licence or tag; wanted letters, digits, dots and hyphens, as in cc-by-4.0."
            )
    check_replaceable(folder)
    sizes = encoder_of(model).config.to_dict()
    config = {"format": FORMAT, "kind": kind, "config": sizes, "head": head_settings(model)}
    if folder.parent.is_dir():
        remove_leftovers(folder.parent, [folder.name], LEFT_AFTER)
    with replacing_folder(folder) as beside:
        # Contiguous copies: safetensors keeps bits, so a loaded model predicts the same bits.
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
        try:
            save_file(tensors, beside / "model.safetensors")
        except SafetensorError as error:
            raise OSError(f"{folder / 'model.safetensors'} could not be written: {error}") from None
        _dump(beside / "preprocessor.json", None if preprocessor is None else preprocessor.to_dict())
        sums = {name: sha256(beside / name) for name in ("model.safetensors", "preprocessor.json")}
        _dump(beside / "config.json", config | {"sha256": {"config.json": sha256_of(config), **sums}})
        (beside / "README.md").write_text(_card(model, preprocessor, note, license, tags), encoding="utf-8")


def check_replaceable(folder: str | Path) -> None:
    """Raises InputError when saving a model to `folder` would remove something that is not a model's."""
    folder = Path(folder)
    if folder.is_symlink():
        raise InputError(f"{folder} is a link to {folder.readlink()}; save to that folder itself, or remove the link.")
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.name not in (*FILES, PREDICTOR))
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
    if not all(path.is_file() or path.name == PREDICTOR for path in folder.iterdir()):
        return False
    try:
        described = read_json(folder / "config.json", dict)
        card = (folder / "README.md").read_text(encoding="utf-8") if (folder / "README.md").exists() else CARD
    except (ModelDirectoryError, OSError, UnicodeDecodeError):
        return False
    return set(KEYS) <= described.keys() and CARD in card


def load(folder: str | Path) -> Model:
    """The model of a directory, in evaluation mode. Raises as `load_directory`."""
    return load_directory(folder).model


def load_directory(folder: str | Path) -> ModelDirectory:
    """The model, in evaluation mode, and its preprocessor.

    Raises:
        ModelDirectoryError: a file is missing, unreadable or changed; the message names it. Pickles are never read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ModelDirectoryError(f"{folder} is not a folder; wanted a model directory with {', '.join(FILES[:3])}.")
    path = folder / "config.json"
    described = read_json(path, dict)
    if described.get("format") not in (1, FORMAT):
        raise ModelDirectoryError(f"{path} has format {described.get('format')!r}; this version reads format {FORMAT}.")
    tensors = read_tensors(folder / "model.safetensors")
    fields = read_json(folder / "preprocessor.json", (dict, type(None)))
    if described["format"] != 1:
        refuse_changed(path, described)
    try:
        kind, head = described["kind"], described["head"]
        config = RoMAEConfig.from_dict(described["config"])
        if max(config.depth, config.decoder_depth) > len(tensors):  # before so many blocks are built
            raise InputError(f"it asks for more blocks than the file of weights has tensors ({len(tensors)}).")
        with torch.device("meta"):  # without memory for the weights, which come from the file
            model: Any = KINDS[kind](config) if head is None else KINDS[kind](Encoder(config), **head)
    except (InputError, KeyError, TypeError) as error:
        raise ModelDirectoryError(f"{path}: {error}") from None
    fill_model(model, tensors, folder / "model.safetensors")
    preprocessor = None
    if fields is not None:
        try:
            preprocessor = (ArrayPreprocessor if "patch_size" in fields else Preprocessor).from_dict(fields)
        except (InputError, TypeError) as error:
            raise ModelDirectoryError(f"{folder / 'preprocessor.json'}: {error}") from None
        made = (preprocessor.features, preprocessor.axes, preprocessor.input_features)
        if made != (config.features, config.axes, config.input_features):
            raise ModelDirectoryError(
                f"{folder / 'preprocessor.json'} makes tokens of {made[0]} features and {made[1]} axes, with {made[2]} "
                f"further inputs; config.json asks for {config.features} and {config.axes}, with "
                f"{config.input_features}."
            )
        for key, named in (("classes", preprocessor.classes), ("outputs", preprocessor.target)):
            outputs = (head or {}).get(key)
            if named is not None and outputs not in (None, len(named)):
                raise ModelDirectoryError(
                    f"{folder / 'preprocessor.json'} names {len(named)} {key}; config.json asks for {outputs}."
                )
    return ModelDirectory(model.eval(), preprocessor)


def shipped_models() -> tuple[str, ...]:
    """The names of the models that ship with the library."""
    return tuple(sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())) if SHIPPED.is_dir() else ()


def find_model(source: str | Path) -> Path:
    """The folder of a model: the path itself if there is one, or a shipped model's, or a copy from the Hub.

    Every name that a user gives for a model goes through here. OWNER/NAME or OWNER/NAME@REVISION is a repository of the
    Hugging Face Hub; its copy is kept in the Hub's cache, which is asked alone with HF_HUB_OFFLINE=1.

    Raises:
        InputError: none of these; the message names the models that ship.
        MissingExtra: a repository without the extra `hub`.
    """
    if Path(source).exists():
        return Path(source)
    if str(source) in shipped_models():
        return SHIPPED / source
    name, reason = Path(source).as_posix(), ""
    if HUB_NAME.fullmatch(name) and not Path(name).parent.is_dir():  # beside other files it is a path, mistyped
        hub, (repository, _, revision) = import_extra("huggingface_hub", "hub"), name.partition("@")
        try:
            return Path(hub.snapshot_download(repository, revision=revision or None, allow_patterns=list(PUBLISHED)))
        except (OSError, ValueError) as error:
            reason = f" The Hugging Face Hub has none of this name for us: {str(error).strip().splitlines()[0]}"
    raise InputError(
        f"there is no model {str(source)!r}; wanted the folder of a run or of a model, or the name of one that ships "
        f"with the library: {listed(shipped_models())}.{reason}"
    )


def open_model(folder: str | Path, want: str, precision: Precision = "auto") -> ModelDirectory:
    """Loads a model directory, or the one called `want` ("pretrained" or "finetuned") of a run folder.

    Args:
        folder: the folder, or a name that `find_model` knows.
        precision: of its predictions.

    Raises:
        InputError: no such folder or name; a run folder without such a model.
        ModelDirectoryError: as `load_directory`.
    """
    folder = find_model(folder)
    if not (folder / "config.json").exists() and (folder / "pretrained").is_dir():
        if not (folder / want).is_dir():
            raise InputError(f"{folder} has no {want} model; `rotarymae fit` with --labels makes one.")
        folder = folder / want
    return replace(load_directory(folder), precision=precision)


def refuse_changed(path: Path, described: dict[str, Any]) -> None:
    """Compares what a JSON file describes, and the files beside it, with the checksums under its key "sha256", which
    is taken out. Raises ModelDirectoryError that names what is missing or has changed."""
    sums = described.pop("sha256", None)
    if not isinstance(sums, dict) or sums.pop(path.name, None) != sha256_of(described):
        raise ModelDirectoryError(f"{path} is damaged: it does not match its checksum.")
    for name, digest in sums.items():
        file = path.parent / name
        if not file.is_file() or sha256(file) != digest:
            raise ModelDirectoryError(f"{file} is missing or does not match its checksum.")


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Those of a file. Raises ModelDirectoryError when it is missing or no safetensors; a pickle is never read."""
    if not path.is_file():
        pickles = sorted(p.name for p in path.parent.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".pkl", ".ckpt"))
        instead = f"; {pickles[0]} is a pickle, which can run code and is never read" if pickles else ""
        raise ModelDirectoryError(f"{path} is missing{instead or '; only safetensors are read, never pickles'}.")
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        said = f"{path} cannot be read as safetensors ({error}); a pickle, which can run code, is never read."
        raise ModelDirectoryError(said) from None


def fill_model(model: nn.Module, tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Gives a model without memory the weights of the file. Refuses tensors too many, too few or of another shape."""
    wanted = model.state_dict()
    for name, tensor in wanted.items():
        if name not in tensors:
            raise ModelDirectoryError(f"{path}: the tensor {name!r} is missing; the configuration asks for it.")
        if tensors[name].shape != tensor.shape:
            came, asked = tuple(tensors[name].shape), tuple(tensor.shape)
            raise ModelDirectoryError(
                f"{path}: the tensor {name!r} has shape {came}; the configuration asks for {asked}."
            )
        kind = next(iter(tensors.values())).dtype
        if kind not in DTYPES or tensors[name].dtype is not kind or not torch.isfinite(tensors[name]).all():
            raise ModelDirectoryError(
                f"{path}: the tensor {name!r} is {tensors[name].dtype}, or holds NaN or infinity; wanted finite "
                "numbers, all of one floating point type."
            )
    for name in tensors:
        if name not in wanted:
            raise ModelDirectoryError(f"{path}: surplus tensor {name!r}; the configuration has no such part.")
    # Copies: a tensor inside the file's own memory is aligned otherwise, and products then differ in their last bits.
    model.load_state_dict({name: tensor.clone() for name, tensor in tensors.items()}, assign=True)


def read_json(path: Path, kinds: type | tuple[type, ...]) -> Any:
    """What a JSON file holds. Raises ModelDirectoryError when it is missing, no JSON, or of another kind."""
    if not path.is_file():
        raise ModelDirectoryError(f"{path} is missing; wanted a whole model directory.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise ModelDirectoryError(f"{path} is not JSON: {error}.") from None
    if not isinstance(content, kinds):
        raise ModelDirectoryError(f"{path} holds a {type(content).__name__}; wanted an object of fields.")
    return content


def _dump(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _card(model: Model, preprocessor: AnyPreprocessor | None, note: str, license: str, tags: Sequence[str]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    described, layout, files = {}, {}, ""
    if preprocessor is not None:
        described = preprocessor.describe()
        if preprocessor.classes is not None:
            described["classes"] = ", ".join(map(str, preprocessor.classes))
    if isinstance(preprocessor, ArrayPreprocessor):
        files = preprocessor.noun
    elif preprocessor is not None:
        known = inspect.signature(SeriesDataset.from_file).parameters
        layout = {name: value for name, value in preprocessor.columns.items() if name in known and value is not None}
        if "values" in layout:
            layout["values"] = [*layout["values"], *preprocessor.errors]
    estimator = {Classifier: "RoMAEClassifier", Regressor: "RoMAERegressor"}.get(type(model), "RoMAEEmbedder")
    return environment.get_template("model_card.md.j2").render(
        kind=type(model).__name__,
        config=encoder_of(model).config,
        written=f"{CARD} {rotarymae.__version__}",
        parameters=sum(p.numel() for p in model.parameters()),
        note=note,
        license=license,
        tags=tags,
        described={name: html.escape(" ".join(str(value).split()), quote=False) for name, value in described.items()},
        files=files,
        layout={name: repr(list(value) if isinstance(value, tuple) else value) for name, value in layout.items()},
        predicts=isinstance(model, Classifier | Regressor),
        estimator=estimator,
        method="transform" if estimator == "RoMAEEmbedder" else "predict",
    )
