"""Write a pipeline to a folder, and read its parts: config.json, tensors, partners, model card. No pickle is read."""

from __future__ import annotations

import dataclasses
import html
import operator
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import jinja2
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

import rotarymae
from rotarymae.any_series import AnySeries
from rotarymae.calibration import Calibration
from rotarymae.config import RoMAEConfig
from rotarymae.datasets import PREPROCESSORS
from rotarymae.errors import InputError, ModelDirectoryError, choose
from rotarymae.heads import Classifier, Regressor, encoder_of, head_settings
from rotarymae.labels import LABELS, Labels
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.model_files import (
    CARD,
    CONFIG,
    FILES,
    PARTNERS_FOLDER,
    WEIGHTS,
    check_names,
    fill_model,
    read_config,
    read_json,
    read_tensors,
    write_config,
)
from rotarymae.partners import Predictor
from rotarymae.system import from_fields, remove_leftovers, replacing_folder
from rotarymae.tables import TableSchema
from rotarymae.training.fit_config import FitConfig

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline

PIPELINE_FORMAT = 4  # 3 kept the preprocessor's settings in a file of their own
WRITTEN_BY = "written by rotarymae"  # in every model card
SAVE_SECONDS = 3600.0  # seconds; saving takes far less
KINDS: dict[str, type[nn.Module]] = {
    kind.__name__: kind for kind in (Encoder, MaskedAutoencoder, AnySeries, Classifier, Regressor)
}


@dataclass(frozen=True)
class Described:
    """The content of config.json, without format version and checksums.

    Attributes:
        preprocessor: {"kind": "observations" or "patches", and its settings}; None without one.
        model: {"kind": name of the class, "config": fields of `RoMAEConfig`, "head": settings of the head or None}.
        autoencoder: the same of the autoencoder; None if there is none, or if it is the model itself.
        labels: {"task": name, and the fields of the labels}; None for a model without a head.
        columns: layout of the training table, {field of `TableSchema`: value}.
        parameters: options of the fit, {field of `FitConfig`: value}.
        forecasts: whether pre-training hid the ends of series.
        calibrated: whether the file of weights holds a calibration.
    """

    preprocessor: dict[str, Any] | None
    model: dict[str, Any]
    autoencoder: dict[str, Any] | None = None
    labels: dict[str, Any] | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    forecasts: bool = False
    calibrated: bool = False


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def write(pipeline: Pipeline, folder: Path, note: str, license: str) -> None:
    """Write a pipeline to a folder; the folder appears, or replaces an older saved pipeline, once it is complete.

    Half-written copies of the folder that killed processes left next to it are removed, if older than an hour.

    Args:
        pipeline: a pipeline of one model, not of several folds.
        folder: new, empty, or a saved pipeline.
        note: a paragraph on the training, for the model card; "" for none.
        license: licence of the model, such as "cc-by-4.0".

    Raises:
        InputError: a licence with characters other than letters, digits, dots and hyphens; a `folder` that
            is a file or a link, or that holds anything but a saved pipeline.
        OSError: the folder cannot be written; it is then as before.
    """
    folder = Path(folder)
    if not re.fullmatch(r"[A-Za-z0-9.-]+", license):
        raise InputError(f"{license!r} is no licence; give letters, digits, dots and hyphens, as in cc-by-4.0.")
    check_replaceable(folder)
    if folder.parent.is_dir():
        remove_leftovers(folder.parent, [folder.name], SAVE_SECONDS)
    # Contiguous copies: safetensors keeps bits, so a loaded model predicts the same bits.
    parts = nn.ModuleDict(_modules(pipeline)).state_dict()
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in parts.items()}
    with replacing_folder(folder) as temporary:
        try:
            save_file(tensors, temporary / WEIGHTS)
            if pipeline.partners is not None:
                pipeline.partners.save(temporary / PARTNERS_FOLDER)
        except SafetensorError as error:
            raise OSError(f"{folder} could not be written: {error}. Make room, or choose another folder.") from None
        write_config(temporary, {"format": PIPELINE_FORMAT, **_described(pipeline)})
        (temporary / CARD).write_text(_card(pipeline, note, license), encoding="utf-8")


def _modules(pipeline: Pipeline) -> dict[str, nn.Module]:
    """Return the torch modules of a pipeline whose weights are saved, as {part: module}; they are not copied.

    The parts are "model", "autoencoder" (left out if the model is the autoencoder), "preprocessor", and "calibration"
    (left out without an autoencoder). A part that the pipeline does not have is left out, too.
    """
    modules: dict[str, nn.Module] = {"model": pipeline.model}
    modules |= {} if pipeline.autoencoder in (None, pipeline.model) else {"autoencoder": pipeline.autoencoder}
    if pipeline.calibration is not None and pipeline.autoencoder is not None:
        modules["calibration"] = pipeline.calibration
    return modules | ({} if pipeline.preprocessor is None else {"preprocessor": pipeline.preprocessor})


def _described(pipeline: Pipeline) -> dict[str, Any]:
    """Return the settings of all parts of a pipeline, for config.json, as {field of `Described`: JSON value}."""
    known, labels, modules = pipeline.preprocessor, pipeline.labels, _modules(pipeline)
    settings = {
        part: {
            "kind": type(modules[part]).__name__,
            "config": dataclasses.asdict(encoder_of(modules[part]).config),
            "head": head_settings(modules[part]),
        }
        for part in ("model", "autoencoder")
        if part in modules
    }
    return {
        "preprocessor": None if known is None else {"kind": known.kind, **dataclasses.asdict(known)},
        "model": settings["model"],
        "autoencoder": settings.get("autoencoder"),
        "labels": None if labels is None else {"task": labels.task, **dataclasses.asdict(labels)},
        "columns": pipeline.columns,
        "parameters": pipeline.parameters,
        "forecasts": pipeline.forecasts,
        "calibrated": "calibration" in modules,
    }


def _card(pipeline: Pipeline, note: str, license: str) -> str:
    """Return the text of the model card, README.md, made from the template model_card.md.j2.

    Args:
        pipeline: the pipeline to describe.
        note: a paragraph on the training; "" for none.
        license: licence of the model, such as "cc-by-4.0".
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    known, model = pipeline.preprocessor, pipeline.model
    described = {} if known is None else dict(known.describe())
    classes = getattr(pipeline.labels, "classes", None)
    if classes is not None:
        described["classes"] = ", ".join(map(str, classes))
    return environment.get_template("model_card.md.j2").render(
        kind=type(model).__name__,
        config=encoder_of(model).config,
        written=f"{WRITTEN_BY} {rotarymae.__version__}",
        parameters=sum(p.numel() for p in model.parameters()),
        note=note,
        license=license,
        described={name: html.escape(" ".join(str(value).split()), quote=False) for name, value in described.items()},
        files=known.noun if known is not None and known.kind == "patches" else "",
        predicts=isinstance(model, Classifier | Regressor),
        interpolates=pipeline.autoencoder is not None and known is not None and known.kind == "observations",
    )


def check_replaceable(folder: str | Path) -> None:
    """Raise InputError if saving a pipeline to `folder` would delete anything but an older saved pipeline.

    A path that does not exist, an empty folder and a saved pipeline (with anything in its folder "partners") are
    accepted. `replacing_folder` refuses links and files.
    """
    folder = Path(folder)
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.name not in (*FILES, PARTNERS_FOLDER))
        if others:
            raise InputError(
                f"{folder} holds {', '.join(others[:3])}, which is no part of a saved model; choose a new folder."
            )
        if any(folder.iterdir()) and not _is_model(folder):
            raise InputError(
                f"{folder} has files named like those of a saved model, but this library did not write them, and "
                "saving would replace them; choose a new folder."
            )


def _is_model(folder: Path) -> bool:
    """Return whether an existing folder looks like a saved pipeline, which saving may replace.

    It must have a config.json of this library. It may have a README.md only if this is a model card of this library,
    and a folder only if it is called "partners".
    """
    if not all(path.is_file() or path.name == PARTNERS_FOLDER for path in folder.iterdir()):
        return False
    try:
        content = read_json(folder / CONFIG)
        card = (folder / CARD).read_text(encoding="utf-8") if (folder / CARD).exists() else WRITTEN_BY
    except (ModelDirectoryError, OSError, UnicodeDecodeError):
        return False
    return {"format", "model", "files"} <= content.keys() and WRITTEN_BY in card


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def read(folder: Path) -> dict[str, Any]:
    """Read the parts of a saved pipeline. Whether they fit together is checked later, by `check_parts`.

    Args:
        folder: a folder that `write` made.

    Returns:
        {field of `Pipeline`: value}, with modules in evaluation mode. "model", "columns", "parameters" and "forecasts"
        are always there; "preprocessor", "labels" and "partners" are None if the pipeline has none. "calibration" is
        left out if the pipeline has none; "autoencoder" if it has none, or if it is the model itself.

    Raises:
        ModelDirectoryError: a file is missing, unreadable or changed, or has settings that no pipeline can have.
    """
    if not folder.is_dir():
        raise ModelDirectoryError(f"{folder} is not a folder; wanted a saved model with {', '.join(FILES)}.")
    path = folder / CONFIG
    if not path.is_file():
        raise ModelDirectoryError(f"{path} is missing; wanted a whole model folder, or the folder of a finished run.")
    content = read_config(folder, PIPELINE_FORMAT)
    content.pop("format")
    tensors = read_tensors(folder / WEIGHTS)
    try:
        described = from_fields(Described, content, CONFIG)
        modules = {"model": _built(described.model, len(tensors))}
        if described.autoencoder is not None:
            modules["autoencoder"] = _built(described.autoencoder, len(tensors))
        labels = None
        if described.labels is not None:
            task = described.labels.pop("task", None)
            choose("task", task, tuple(LABELS))
            labels = from_fields(LABELS[task], described.labels, "labels")
        if described.preprocessor is not None:
            kind, settings = described.preprocessor.pop("kind", None), described.preprocessor
            choose("the preprocessor's kind", kind, tuple(PREPROCESSORS))
            modules["preprocessor"] = from_fields(PREPROCESSORS[kind], settings, "preprocessor")
        if described.calibrated:
            model, known = modules.get("autoencoder", modules["model"]), cast(Any, modules.get("preprocessor"))
            if not isinstance(model, MaskedAutoencoder) or getattr(known, "kind", None) != "observations":
                raise InputError(
                    "there is a calibration, but the model does not interpolate series; take both from one run."
                )
            modules["calibration"] = Calibration.of(known, model.likelihood)
    except (InputError, KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:  # torch's, for size
        raise ModelDirectoryError(f"{path}: {str(error).rstrip('.')}. Fit or fetch the model anew.") from None
    check_names(nn.ModuleDict(modules).state_dict(), tensors, folder / WEIGHTS)
    for part, module in modules.items():
        state = {name.removeprefix(f"{part}."): t for name, t in tensors.items() if name.startswith(f"{part}.")}
        fill_model(module, state, folder / WEIGHTS)
        module.eval()
    partners = _partners(folder / PARTNERS_FOLDER, labels) if (folder / PARTNERS_FOLDER).is_dir() else None
    kept = {"columns": described.columns, "parameters": described.parameters, "forecasts": described.forecasts}
    return {"preprocessor": None, **modules, "labels": labels, "partners": partners, **kept}


def check_parts(pipeline: Pipeline) -> None:
    """Raise an error unless the parts of a loaded pipeline are valid and fit together.

    Columns, options, the preprocessor's statistics and the calibration must be valid. Preprocessor, model and
    autoencoder must agree on features, axes and further inputs of a token, and on the number of static features. The
    model must have the kind of head, and the number of outputs, that the labels ask for.

    Args:
        pipeline: a pipeline made of what `read` returned.

    Raises:
        InputError: the first part that is not valid, or does not fit.
        TypeError, ValueError, AttributeError: settings of a type that `write` never writes, in a made-up file.
    """
    from_fields(TableSchema, pipeline.columns, "columns")
    options = {each.name for each in dataclasses.fields(FitConfig)}
    FitConfig(**{name: value for name, value in pipeline.parameters.items() if name in options})
    config, known = encoder_of(pipeline.model).config, pipeline.preprocessor
    of_tokens = operator.attrgetter("features", "axes", "input_features")
    if pipeline.autoencoder is not None and of_tokens(pipeline.autoencoder.config) != of_tokens(config):
        raise InputError("the autoencoder and the model read tokens of different sizes; take both from one run.")
    if known is not None:
        known.check_statistics()
        if of_tokens(known) != of_tokens(config):
            raise InputError(
                f"the preprocessor makes tokens of {known.features} features and {known.axes} axes, with "
                f"{known.input_features} further inputs, but the model reads {config.features} and {config.axes}, with "
                f"{config.input_features}; take both from one run."
            )
        if getattr(pipeline.model, "static_features", 0) != known.static_features and pipeline.labels is not None:
            raise InputError(
                f"the preprocessor makes {known.static_features} static features, but the model reads "
                f"{getattr(pipeline.model, 'static_features', 0)}; take both from one run."
            )
    if pipeline.calibration is not None:
        pipeline.calibration.check()
    if pipeline.labels is not None:
        outputs = getattr(pipeline.model, "outputs", None)
        if not isinstance(pipeline.model, pipeline.labels.head) or outputs != pipeline.labels.outputs:
            raise InputError(
                f"the labels ({pipeline.labels.task}) need a {pipeline.labels.head.__name__} of "
                f"{pipeline.labels.outputs} outputs, but the model is a {type(pipeline.model).__name__} of "
                f"{outputs or 'no'} outputs; take labels and model from one run."
            )


def _built(settings: dict[str, Any], tensors: int) -> nn.Module:
    """Build a model from its saved settings, without memory for weights (on torch's meta device).

    Args:
        settings: {"kind": name of the class, "config": fields of `RoMAEConfig`, "head": settings of the head or None}.
        tensors: number of saved tensors. A damaged file may ask for any number of blocks or networks; more than there
            are tensors are refused before they take memory.

    Raises:
        InputError: settings that no model has, or more blocks or networks than tensors.
        TypeError: a head with unknown settings.
    """
    if set(settings) != {"kind", "config", "head"}:
        raise InputError(
            f"a saved model has the settings kind, config and head; here are {', '.join(sorted(settings)) or 'none'}."
        )
    choose("kind", settings["kind"], tuple(KINDS))
    config, head = from_fields(RoMAEConfig, settings["config"], "config"), settings["head"]
    if max(config.depth, config.decoder_depth) > tensors:  # before so many blocks are built
        raise InputError(
            f"the model's settings ask for {max(config.depth, config.decoder_depth)} blocks; wanted at most "
            f"{tensors}, the number of tensors in the file of weights: one of the two is damaged, or of another model."
        )
    kind = KINDS[settings["kind"]]
    if issubclass(kind, Classifier | Regressor) == (head is None) or not isinstance(head, dict | None):
        raise InputError(
            f"a {settings['kind']} has the head {head!r}; wanted an object of settings for a Classifier or Regressor, "
            "null for any other model. The file is damaged, or was edited."
        )
    members = (head or {}).get("members", 1)
    if type(members) is not int or members > tensors:
        raise InputError(
            f"the model's settings ask for {members!r} networks; wanted at most {tensors}, the number of tensors in "
            "the file of weights: one of the two is damaged, or of another model."
        )
    with torch.device("meta"):
        return kind(config) if head is None else kind(Encoder(config), **head)


def _partners(folder: Path, labels: Labels | None) -> Predictor:
    """Load the saved partners of the network (other methods, such as boosted trees); check that they fit the labels.

    Args:
        folder: the folder of the partners, which exists.
        labels: labels of the pipeline; None is refused, as partners predict labels.

    Raises:
        ModelDirectoryError: damaged files; partners of another task than the labels; a regression's prediction errors
            for another number of outputs than the labels have; no labels.
    """
    try:
        partners = Predictor.load(folder)
    except ModelDirectoryError:
        raise
    except Exception as error:  # whatever a made-up file makes of the code that reads it
        raise ModelDirectoryError(
            f"{folder} is damaged: {type(error).__name__}: {error}. Fit or fetch the model anew."
        ) from None
    if labels is None or partners.task != labels.task:
        kind = "has no labels" if labels is None else f"is for {labels.task}"
        raise ModelDirectoryError(f"{folder} is for {partners.task}, and the model {kind}; take both from one run.")
    if any(len(outputs) != labels.outputs for outputs in partners.errors.values()):
        raise ModelDirectoryError(
            f"{folder} has prediction errors for another number of outputs than the model's {labels.outputs}; take "
            "both from one run."
        )
    return partners
