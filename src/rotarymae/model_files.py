"""The files of a saved pipeline: names, checked JSON and safetensors, one list of sums, and where a model is.

Reading runs no code from the files, and opens none but those named here: no pickle is ever read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from rotarymae.errors import InputError, ModelDirectoryError, import_extra, listed
from rotarymae.system import sha256, sha256_of

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
PARTNERS_FOLDER = "partners"  # the folder of what predicts next to the model
METRICS_FILE = "metrics.json"  # of a run
MODEL = "model"  # the folder of a run in which its pipeline is saved
FOLDS_FOLDER = "folds"  # the folder of a cross-validation in which each fold is a run: 1, 2, ..
FILES = (CONFIG, WEIGHTS, CARD)
MAX_JSON_BYTES = 64 << 20  # more is nothing that this library wrote
ANY_SERIES = "any-series"  # the shipped model that answers any table without training
SHIPPED = Path(__file__).parent / "models"  # a folder for each model that ships with the library
# A name on the Hub, and what is taken from there: no pickle, no code.
HUB_NAME = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}(@[\w./-]+)?")
PUBLISHED = tuple(
    f"{folder}{file}"
    for folder in ("", f"{MODEL}/")
    for file in (*FILES, *(f"{PARTNERS_FOLDER}/*.{kind}" for kind in ("json", "safetensors", "txt")))
)
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def shipped_models() -> tuple[str, ...]:
    """Return the names of the models that ship with the library, sorted; () if none was installed."""
    return tuple(sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())) if SHIPPED.is_dir() else ()


def find_model(source: str | Path) -> Path:
    """Return the folder of a saved pipeline, given its path or another name that a user may type.

    The name is looked up, in this order, as a path that exists (for a run folder, its `model`), as a model that ships
    with the package, and as a repository OWNER/NAME or OWNER/NAME@REVISION of the Hugging Face Hub, unless there is a
    folder OWNER here. A repository is downloaded into the Hub's cache; with HF_HUB_OFFLINE=1 only the cache is used.
    What lies at the path is not checked: it may be a file.

    Args:
        source: a path or a name.

    Raises:
        InputError: none of these, or a download that failed; the message names the models that ship.
        MissingExtra: the name of a repository, and the extra `hub` is not installed.
        ModelDirectoryError: the metrics.json of a run folder is no JSON, or was computed with another model.
    """
    if os.path.exists(source):  # noqa: PTH110 (Path.exists raises OSError for a name that is too long)
        return _within_run(Path(source))
    if str(source) in shipped_models():
        return SHIPPED / source
    name, reason = Path(source).as_posix(), ""
    if HUB_NAME.fullmatch(name) and not Path(name).parent.is_dir():  # next to other files it is a path, mistyped
        hub, (repository, _, revision) = import_extra("huggingface_hub", "hub"), name.partition("@")
        try:
            copy = hub.snapshot_download(repository, revision=revision or None, allow_patterns=list(PUBLISHED))
            return _within_run(Path(copy))
        except (OSError, ValueError) as error:
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            reason = f" The Hugging Face Hub does not give it: {why}"
    raise InputError(
        f"there is no model {str(source)!r}; wanted the folder of a run or of a model, or the name of one that ships "
        f"with the library: {listed(shipped_models())}.{reason}"
    )


def _within_run(folder: Path) -> Path:
    """Return the subfolder `model` of a run folder; return any other folder as it is.

    A run folder has a folder `model` and no config.json. Raises ModelDirectoryError if the run's metrics.json is no
    JSON, or was computed with another model than the one that is there.
    """
    if (folder / CONFIG).exists() or not (folder / MODEL).is_dir():
        return folder
    config, metrics = folder / MODEL / CONFIG, folder / METRICS_FILE
    if config.is_file() and metrics.is_file():
        written = read_json(metrics).get("model")
        if written is not None and written != sha256(config):
            raise ModelDirectoryError(
                f"{folder / MODEL} is of another run than the scores in {metrics}. To use the model all the same, name "
                f"{folder / MODEL} itself."
            )
    return folder / MODEL


def files_of(folder: Path) -> list[str]:
    """Return the files of a saved pipeline on which its predictions depend, as paths relative to `folder`.

    They are config.json and model.safetensors, as far as they exist, and then the files in the folder "partners",
    sorted. The model card is not among them.
    """
    paths = [folder / CONFIG, folder / WEIGHTS, *sorted((folder / PARTNERS_FOLDER).glob("*"))]
    return [path.relative_to(folder).as_posix() for path in paths if path.is_file()]


def fold_folders(run: Path) -> list[Path]:
    """Return the folders of a cross-validation's folds in order of number: run/folds/1, run/folds/2, ...

    Whatever has another name than a number, such as a hidden file of the system, is left out. Empty for another run.
    """
    folders = (path for path in (run / FOLDS_FOLDER).glob("*") if path.name.isdecimal())
    return sorted(folders, key=lambda path: int(path.name))


def several_models(count: int) -> InputError:
    """Return the error, for the caller to raise, that a run of several models can only predict; code "several-models".

    `count` is the number of models, one per fold of a cross-validation.
    """
    return InputError(
        f"this run has {count} models, one for each fold, which together can only predict (rotarymae.load). For "
        f"anything else name the folder of one of them, such as {FOLDS_FOLDER}/1 inside the folder of the run.",
        code="several-models",
    )


def write_config(folder: Path, content: dict[str, Any]) -> None:
    """Write config.json: the content, and under "files" the SHA-256 of the content and of each file of the pipeline.

    These files are model.safetensors and those in the folder "partners".

    Args:
        folder: has the other files of the pipeline already.
        content: a dictionary that JSON can hold, without "files".
    """
    sums = {name: sha256(folder / name) for name in files_of(folder) if name != CONFIG}
    dump_json(folder / CONFIG, content | {"files": {CONFIG: sha256_of(content), **sums}})


def read_config(folder: Path, version: int) -> dict[str, Any]:
    """Read config.json, check it and the pipeline's files against the checksums in it, and return its other content.

    The checksums are its entry "files". Checked are model.safetensors, which must exist, and the files in the folder
    "partners"; other files in the folder, such as the model card, are ignored.

    Args:
        folder: a saved pipeline.
        version: the only value of "format" that is accepted.

    Raises:
        ModelDirectoryError: no config.json, or one that cannot be read or has changed; another format version; no
            checksums; a file that is missing, unreadable or changed, or one in "partners" that config.json does not
            list.
    """
    path = folder / CONFIG
    content = read_version(path, version)
    sums = content.pop("files", None)
    if not isinstance(sums, dict) or not all(isinstance(digest, str) for digest in sums.values()):
        raise ModelDirectoryError(f"{path} has no list of files and their checksums; fit or fetch the model anew.")
    if sums.pop(CONFIG, None) != sha256_of(content):
        raise ModelDirectoryError(f"{path} is damaged: it does not match its checksum. Fit or fetch the model anew.")
    there = [name for name in files_of(folder) if name != CONFIG]
    for name in sorted({WEIGHTS, *sums} - set(there)):  # before any is opened
        if name == WEIGHTS:
            read_tensors(folder / name)  # which says what lies there instead
        raise ModelDirectoryError(
            f"{folder}: {name} is missing, or no file of a model, and {CONFIG} lists it; fit or fetch the model anew."
        )
    for name in sorted({WEIGHTS, *sums}):
        file = folder / name
        try:
            digest = sha256(file)
        except OSError as error:
            raise ModelDirectoryError(f"{file} cannot be read: {error.strerror}. Make it readable.") from None
        if digest != sums.get(name):
            raise ModelDirectoryError(
                f"{file} has changed: it does not match its checksum in {CONFIG}. Fit or fetch the model anew."
            )
    surplus = [name for name in there if name not in sums]
    if surplus:
        raise ModelDirectoryError(
            f"{folder / surplus[0]} is no part of this model: {CONFIG} does not list it. Move it away."
        )
    return content


def read_version(path: Path, version: int) -> dict[str, Any]:
    """Read a JSON object from a file, and return it as a dictionary, if its "format" is `version`.

    Raises ModelDirectoryError for another format, and for a file that is missing or no JSON object (see `read_json`).
    """
    content = read_json(path)
    if content.get("format") != version:
        raise ModelDirectoryError(
            f"{path} has format {content.get('format')!r}; this version reads format {version}. Fit the model anew."
        )
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file, and return it as a dictionary.

    Raises ModelDirectoryError if the file is missing, unreadable, larger than 64 MiB, or not JSON, holds anything but
    an object, or has NaN or infinity in it.
    """
    if not path.is_file():
        raise ModelDirectoryError(f"{path} is missing; wanted a whole model folder. Fetch or make it anew.")
    try:
        size = path.stat().st_size
        if size > MAX_JSON_BYTES:
            raise ModelDirectoryError(f"{path} has {size:,} bytes, more than any such file of ours; fetch it anew.")
        content = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(content, allow_nan=False)  # raises ValueError for NaN and infinity
    except (ValueError, RecursionError, OSError) as error:
        raise ModelDirectoryError(f"{path} cannot be read as JSON: {error}. Fetch or make it anew.") from None
    if not isinstance(content, dict):
        raise ModelDirectoryError(
            f"{path} holds a {type(content).__name__}; wanted a JSON object. Fetch or make it anew."
        )
    return content


def dump_json(path: Path, content: Any) -> None:
    """Write content, which JSON can hold, to a file as indented JSON. Raises ValueError for NaN or infinity in it."""
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read all tensors of a safetensors file, and return them by name, on the CPU.

    Raises ModelDirectoryError if the file is missing or not in that format; a pickle is never read.
    """
    if not path.is_file():
        pickles = sorted(p.name for p in path.parent.glob("*") if p.suffix in (".bin", ".pt", ".pth", ".pkl", ".ckpt"))
        instead = f"; {pickles[0]} is a pickle, which can run code and is never read" if pickles else ""
        hint = instead or "; wanted a model saved as safetensors, as pickles are not read"
        raise ModelDirectoryError(f"{path} is missing{hint}. Check the folder, or save the model again.")
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ModelDirectoryError(
            f"{path} cannot be read as safetensors ({error}); a pickle, which can run code, is never read. Save the "
            "model again as safetensors."
        ) from None


def fill_model(model: nn.Module, tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Load copies of weights into a model; its parameters get the dtype of the weights.

    Args:
        model: changed in place; it may be on the meta device.
        tensors: {name in the model's state_dict: weight}, all of one floating point dtype.
        path: the file that they are from, for messages.

    Raises:
        ModelDirectoryError: a tensor is missing or surplus, has another shape than in the model, has another dtype than
            the first or no floating point dtype, or has NaN or infinity in it.
    """
    expected = model.state_dict()
    check_names(expected, tensors, path)
    kind = next(iter(tensors.values())).dtype
    for name, tensor in expected.items():
        if tensors[name].shape != tensor.shape:
            raise ModelDirectoryError(
                f"{path}: the tensor {name!r} has shape {tuple(tensors[name].shape)}, and the configuration asks for "
                f"{tuple(tensor.shape)}. Take both files from one saved model."
            )
        if kind not in DTYPES or tensors[name].dtype is not kind:
            raise ModelDirectoryError(
                f"{path}: the tensor {name!r} is of the type {tensors[name].dtype}; wanted one floating point type for "
                "all tensors. Save the model anew."
            )
        if not torch.isfinite(tensors[name]).all():
            raise ModelDirectoryError(
                f"{path}: the tensor {name!r} holds NaN or infinity; fit or fetch the model anew."
            )
    # Copies: a tensor inside the file's own memory is aligned otherwise, and products then differ in their last bits.
    model.load_state_dict({name: tensor.clone() for name, tensor in tensors.items()}, assign=True)


def check_names(expected: Iterable[str], tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Raise ModelDirectoryError unless the names of the tensors are the expected ones, in any order.

    Args:
        expected: names that must be there, and no others.
        tensors: {name: tensor}, as read.
        path: the file that they are from, for the message.
    """
    expected = set(expected)
    for name in sorted(expected ^ set(tensors)):
        what = "missing" if name in expected else "surplus"
        raise ModelDirectoryError(
            f"{path}: by the configuration the tensor {name!r} is {what}. Take both files from one saved model."
        )
