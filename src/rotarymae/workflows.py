"""The main jobs, from data sets to answers: pretrain, finetune, predict, interpolate, embed.

The command, the demo and the estimators are thin layers over these five.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rotarymae import tables
from rotarymae.batches import Batch, Examples, SeriesExamples, assemble, place
from rotarymae.checkpoints import ModelDirectory
from rotarymae.errors import InputError, InputWarning
from rotarymae.heads import POOLS, Classifier, Regressor, pool_latent
from rotarymae.masking import Masking
from rotarymae.model import Encoder, MaskedAutoencoder, RoMAEConfig
from rotarymae.objectives import Classification, Pretraining, Regression
from rotarymae.scaling import Preprocessor
from rotarymae.series import SeriesDataset, read_table
from rotarymae.tables import did_you_mean
from rotarymae.tokens import Tokens
from rotarymae.training import TrainConfig, TrainResult, fit, predict

OnStep = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Settings:
    """Everything `fit` needs beside the data; the defaults suit tables of a few thousand series on a CPU.

    Attributes:
        size: named size of the encoder.
        embed_dim, num_heads, depth: of the encoder, instead of the named size's.
        decoder_embed_dim, decoder_num_heads, decoder_depth: of the decoder, instead of tiny-shallow's.
        likelihood: "gaussian" predicts a variance with every value, which interpolation with bands needs.
        cls_token: use a [CLS] token; without it the model sees positions only relative to each other.
        dropout, drop_path: of fine-tuning.
        masking: how pre-training hides tokens.
        pretrain, finetune: the two trainings.
        transforms: "standard", "asinh" or "none" by value name; the others are chosen by their tails.
        time_unit: the table's unit of time divided by this is a position; None measures it.
        origin: "first" counts time from each series' first observation, "zero" from the table's zero.
        channel_spacing: distance of neighbouring channels on the channel axis.
        pool: "cls" or "mean".
        label_smoothing: of classification.
        class_weights: "balanced" weighs classes by the inverse of their counts, "none" does not.
        drop, noise: augmentation in fine-tuning, see `SeriesExamples`.
    """

    size: str = "tiny-shallow"
    embed_dim: int | None = None
    num_heads: int | None = None
    depth: int | None = None
    decoder_embed_dim: int | None = None
    decoder_num_heads: int | None = None
    decoder_depth: int | None = None
    likelihood: str = "gaussian"
    cls_token: bool = True
    dropout: float = 0.0
    drop_path: float = 0.0
    masking: Masking = field(default_factory=lambda: Masking("ratio", (0.3, 0.8)))
    pretrain: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=20, batch_size=32))
    finetune: TrainConfig = field(
        default_factory=lambda: TrainConfig(epochs=20, batch_size=32, betas=(0.9, 0.999), keep_best=True)
    )
    transforms: dict[str, str] = field(default_factory=dict)
    time_unit: float | None = None
    origin: str = "first"
    channel_spacing: float = 1.0
    pool: str = "cls"
    label_smoothing: float = 0.0
    class_weights: str = "none"
    drop: float = 0.0
    noise: float = 0.0

    def model_config(self, axes: int, features: int) -> RoMAEConfig:
        names = ("embed_dim", "num_heads", "depth", "decoder_embed_dim", "decoder_num_heads", "decoder_depth")
        own = {name: getattr(self, name) for name in names}
        return RoMAEConfig.named(
            self.size,
            axes=axes,
            features=features,
            likelihood=self.likelihood,
            cls_token=self.cls_token,
            **{name: value for name, value in own.items() if value is not None},
        )


@dataclass(frozen=True)
class Trained:
    """A trained model, what it needs, and how the training went."""

    model: MaskedAutoencoder | Classifier | Regressor
    preprocessor: Preprocessor
    result: TrainResult
    loaded: tuple[str, ...] = ()

    @property
    def directory(self) -> ModelDirectory:
        return ModelDirectory(self.model, self.preprocessor)


def pretrain(
    dataset: SeriesDataset,
    settings: Settings,
    *,
    validation: SeriesDataset | None = None,
    folder: str | Path | None = None,
    resume: str = "never",
    on_step: OnStep | None = None,
) -> Trained:
    """A masked autoencoder of a data set. Series of one observation have nothing to hide and are left out.

    Raises:
        InputError: no series with two observations; and as `training.fit`.
    """
    preprocessor = check_settings(dataset, settings)
    usable = dataset.select(dataset.lengths >= 2) if (dataset.lengths < 2).any() else dataset
    torch.manual_seed(settings.pretrain.seed)
    model = MaskedAutoencoder(settings.model_config(preprocessor.axes, preprocessor.features))
    seed = settings.pretrain.seed
    examples = SeriesExamples(usable, preprocessor, seed, settings.masking)
    held = None
    if validation is not None and (validation.lengths >= 2).any():
        held = SeriesExamples(validation.select(validation.lengths >= 2), preprocessor, seed, settings.masking)
    result = fit(
        Pretraining(model), examples, settings.pretrain, validation=held, folder=folder, resume=resume, on_step=on_step
    )
    return Trained(model, preprocessor, result)


def check_settings(dataset: SeriesDataset, settings: Settings) -> Preprocessor:
    """The fitted scalers, after everything that pre-training could refuse has been tried.

    Raises:
        InputError: no series with two observations; a setting that does not fit the data.
    """
    if (dataset.lengths < 2).all():
        raise InputError(
            f"none of the {len(dataset)} series to train on has two observations; pre-training hides some and predicts "
            "them from the others."
        )
    preprocessor = Preprocessor.fit(
        dataset, settings.transforms, settings.time_unit, settings.origin, settings.channel_spacing
    )
    settings.model_config(preprocessor.axes, preprocessor.features)
    if settings.pool not in POOLS:
        raise InputError(f"pool is {settings.pool!r}; wanted 'cls' or 'mean'.")
    if settings.class_weights not in ("none", "balanced"):
        raise InputError(f"class_weights is {settings.class_weights!r}; wanted 'none' or 'balanced'.")
    for name in ("dropout", "drop_path", "drop", "label_smoothing"):
        if not 0 <= getattr(settings, name) < 1:
            raise InputError(f"{name} is {getattr(settings, name)}; wanted at least 0 and less than 1.")
    if not settings.noise >= 0:
        raise InputError(f"noise is {settings.noise}; wanted at least 0.")
    ratio = settings.masking.ratio
    if isinstance(ratio, tuple) and ratio[0] > ratio[1]:
        raise InputError(f"mask ratios from {ratio[0]} to {ratio[1]}; wanted the smaller first.")
    if settings.masking.kind == "channels" and preprocessor.channel_names is None:
        raise InputError("masking of channels, but the table has none; use masking='ratio', or name its channels.")
    return preprocessor


def check_targets(targets: Any, series: int, task: str) -> np.ndarray:
    """Labels [S] of a classification, or numbers float64 [S, outputs] of a regression (NaN where one is missing).

    Raises:
        InputError: another number of them than series; fewer than two classes, a missing label; for a regression what
            is no number, infinity, or no number at all.
    """
    if task not in ("classification", "regression"):
        raise InputError(f"task {task!r}; wanted 'classification' or 'regression'.")
    found = np.asarray(targets)
    if len(found.shape) == 0 or len(found) != series:
        came = "one value" if len(found.shape) == 0 else f"{len(found)} labels"
        raise InputError(f"{came} for {series} series; give one label for each, in their order.")
    if task == "classification":
        if found.ndim != 1:
            raise InputError(f"labels have the shape {found.shape}; wanted one for each series, ({series},).")
        missing = [i for i, label in enumerate(found) if label is None or label != label]
        if missing:
            raise InputError(f"the label of series {missing[0]} (counted from 0) is missing; {len(missing)} in all.")
        if found.dtype == object and len({isinstance(label, str) for label in found}) > 1:
            raise InputError("some labels are strings and others numbers; give all of one kind.")
        classes = np.unique(found)
        if len(classes) < 2:
            raise InputError(
                f"every series has the label {plain(classes[0])!r}; a classifier needs at least 2 classes."
            )
        return found
    try:
        numbers = found.astype(np.float64).reshape(series, -1)
    except (TypeError, ValueError):
        strange = next((label for label in found.ravel() if not _is_number(label)), found.ravel()[0])
        raise InputError(f"the label {plain(strange)!r} is no number; a regression needs numbers.") from None
    if np.isinf(numbers).any():
        raise InputError(f"the label of series {int(np.isinf(numbers).any(1).argmax())} (counted from 0) is infinite.")
    if np.isnan(numbers).all(0).any():
        raise InputError("every label is missing (NaN); a regression needs numbers.")
    return numbers


def _is_number(label: Any) -> bool:
    try:
        float(label)
    except (TypeError, ValueError):
        return False
    return True


def split_off(places: np.ndarray, classes: np.ndarray | None, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(rest, part): a random share of the places, with every class in both as far as it goes, and in `rest` always:
    a class that nothing has trained on could only be missed.

    Args:
        places: of series, among all.
        classes: [S] of all series, or None.

    Raises:
        InputError: too few for two parts.
    """
    from sklearn.model_selection import train_test_split

    by = None if classes is None else np.unique(classes, return_inverse=True)[1][places]
    if by is not None:
        counts = np.unique(by, return_counts=True)[1]
        smaller = int(min(share, 1 - share) * len(places))
        stratify = None if counts.min() < 2 or len(counts) > smaller else by
    else:
        stratify = None
    order = np.arange(len(places))
    try:
        rest, part = train_test_split(order, test_size=share, random_state=seed % 2**32, stratify=stratify)
    except ValueError:
        raise InputError(f"a share of {share} of {len(places)} series leaves too few to train on; keep less.") from None
    rest, part = np.asarray(rest), np.asarray(part)
    if by is not None:
        lost = part[~np.isin(by[part], by[rest])]
        moved = lost[np.unique(by[lost], return_index=True)[1]]
        rest, part = np.concatenate([rest, moved]), np.setdiff1d(part, moved)
    return places[np.sort(rest)], places[np.sort(part)]


def finetune(
    pretrained: Trained | ModelDirectory,
    dataset: SeriesDataset,
    targets: np.ndarray,
    settings: Settings,
    *,
    task: str = "classification",
    validation: tuple[SeriesDataset, np.ndarray] | None = None,
    folder: str | Path | None = None,
    resume: str = "never",
    on_step: OnStep | None = None,
) -> Trained:
    """A classifier or regressor that starts from all of the pre-trained encoder: projection, [CLS] and blocks.

    Args:
        pretrained: as `pretrain` gives it, or a loaded model directory. It is left as it is.
        targets: [S] labels of any kind, or numbers for task="regression".
        task: "classification" or "regression".

    Raises:
        InputError: fewer than two classes; a validation label that training lacks; and as `training.fit`.
    """
    source, preprocessor = pretrained.model, pretrained.preprocessor
    if preprocessor is None:
        raise InputError("the pre-trained model has no preprocessor; it was not made from a SeriesDataset.")
    targets = check_targets(targets, len(dataset), task)
    torch.manual_seed(settings.finetune.seed)
    encoder = copy_encoder(source, settings)
    seed = settings.finetune.seed

    def examples(data: SeriesDataset, wanted: np.ndarray, augment: bool) -> Examples:
        drop, noise = (settings.drop, settings.noise) if augment else (0.0, 0.0)
        return SeriesExamples(data, fitted, seed, targets=wanted, drop=drop, noise=noise)

    if task == "classification":
        classes, index = np.unique(targets, return_inverse=True)
        fitted = replace(preprocessor, classes=tuple(plain(name) for name in classes))
        model: Classifier | Regressor = Classifier(encoder, len(classes), settings.pool)
        weights = None
        if settings.class_weights == "balanced":
            counts = np.bincount(index)
            weights = torch.tensor(len(index) / (len(classes) * counts), dtype=torch.float32)
        objective = Classification(model, settings.label_smoothing, weights)
        train = examples(dataset, index, True)
        held = None
        if validation is not None:
            held = examples(validation[0], class_index(validation[1], classes), False)
    else:
        numbers = targets
        mean, std = float(np.nanmean(numbers)), float(np.nanstd(numbers)) or 1.0
        fitted = replace(preprocessor, target=(mean, std))
        model = Regressor(encoder, numbers.shape[1], settings.pool)
        objective = Regression(model)
        train = examples(dataset, ((numbers - mean) / std).astype(np.float32), True)
        held = None
        if validation is not None:
            wanted = check_targets(validation[1], len(validation[0]), task)
            held = examples(validation[0], ((wanted - mean) / std).astype(np.float32), False)
    loaded = tuple(f"encoder.{name}" for name in encoder.state_dict())
    result = fit(objective, train, settings.finetune, validation=held, folder=folder, resume=resume, on_step=on_step)
    return Trained(model, fitted, result, loaded)


def copy_encoder(source: torch.nn.Module, settings: Settings) -> Encoder:
    """A copy of a model's encoder, with every tensor, under the dropout of fine-tuning."""
    encoder = source if isinstance(source, Encoder) else source.encoder
    assert isinstance(encoder, Encoder), "every model of this library has an encoder"
    copy = Encoder(replace(encoder.config, dropout=settings.dropout, drop_path=settings.drop_path))
    copy.load_state_dict(encoder.state_dict())
    return copy


def class_index(labels: np.ndarray, classes: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Places [S] of labels among the classes. Raises InputError naming a label that is no class."""
    places = {plain(name): i for i, name in enumerate(classes)}
    unknown = sorted({str(plain(label)) for label in labels if plain(label) not in places})
    if unknown:
        raise InputError(
            f"labels {', '.join(unknown[:5])} are none of the model's classes {', '.join(map(str, places))}."
        )
    return np.array([places[plain(label)] for label in labels], np.int64)


def plain(label: Any) -> Any:
    """A label as JSON keeps it."""
    return label.item() if isinstance(label, np.generic) else label


def predict_probabilities(
    directory: ModelDirectory, dataset: SeriesDataset, config: TrainConfig | None = None, on_step: Any = None
) -> np.ndarray:
    """Class probabilities [S, classes] of a fine-tuned classifier, in the order of `preprocessor.classes`."""
    if not isinstance(directory.model, Classifier):
        raise InputError(
            f"the model is a {type(directory.model).__name__}; probabilities need a fine-tuned Classifier."
        )
    logits = _run(directory, dataset, lambda model, batch: list(model(batch.inputs).double().cpu()), config, on_step)
    return torch.stack(logits).softmax(-1).numpy()


def predict_values(
    directory: ModelDirectory, dataset: SeriesDataset, config: TrainConfig | None = None, on_step: Any = None
) -> np.ndarray:
    """Values [S, outputs] of a fine-tuned regressor, in the unit of its training targets."""
    preprocessor = directory.preprocessor
    if not isinstance(directory.model, Regressor) or preprocessor is None or preprocessor.target is None:
        raise InputError(f"the model is a {type(directory.model).__name__}; values need a fine-tuned Regressor.")
    out = _run(directory, dataset, lambda model, batch: list(model(batch.inputs).double().cpu()), config, on_step)
    mean, std = preprocessor.target
    return torch.stack(out).numpy() * std + mean


def embed(
    directory: ModelDirectory,
    dataset: SeriesDataset,
    pool: str | None = None,
    config: TrainConfig | None = None,
    on_step: Any = None,
) -> np.ndarray:
    """Embeddings [S, D]: the mean over a series' tokens, or the [CLS] token with pool="cls".

    The default is "cls" for a model fine-tuned on it, else "mean": pre-training gives [CLS] no task of its own.
    """
    model = directory.model
    how = pool or getattr(model, "pool", "mean")
    encoder = model if isinstance(model, Encoder) else model.encoder
    if how == "cls" and encoder.cls_token is None:
        raise InputError("pool='cls' of a model without [CLS]; use pool='mean'.")

    def read(model: torch.nn.Module, batch: Batch) -> list[Tensor]:
        return list(pool_latent(encoder(batch.inputs), batch.inputs, how).float().cpu())

    return torch.stack(_run(directory, dataset, read, config, on_step)).numpy()


def _run(
    directory: ModelDirectory,
    dataset: SeriesDataset,
    read: Callable[[torch.nn.Module, Batch], list[Any]],
    config: TrainConfig | None,
    on_step: Any,
) -> list[Any]:
    if directory.preprocessor is None:
        raise InputError("the model has no preprocessor; it was not made from a SeriesDataset.")
    examples = SeriesExamples(dataset, directory.preprocessor)
    return predict(directory.model, examples, read, config or INFERENCE, on_step)


INFERENCE = TrainConfig(batch_size=None, batch_tokens=8192)


class Interpolation(NamedTuple):
    """Predictions at queries, in the table's units, all [n, V]; `std` and the bands are None without a likelihood.

    `mean` is the centre of the predicted distribution. Bands hold 68.3 and 95.4 % of it. `std` is half the width of
    the 68 % band: where a value was compressed, the distribution is skewed in its own unit and the bands say more.
    """

    mean: np.ndarray
    std: np.ndarray | None
    lower68: np.ndarray | None
    upper68: np.ndarray | None
    lower95: np.ndarray | None
    upper95: np.ndarray | None


@dataclass(frozen=True)
class Queries:
    """Where to interpolate: flat times and channels (from 0, or None) and offsets [S + 1], one run for each series."""

    times: np.ndarray
    channels: np.ndarray | None
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)


class _Interpolating:
    """Examples whose inputs are a series' observations and whose masked tokens are its queries."""

    def __init__(self, dataset: SeriesDataset, queries: Queries, preprocessor: Preprocessor) -> None:
        self.dataset, self.queries, self.preprocessor = dataset, queries, preprocessor
        self.origins = preprocessor.positions.origins(dataset)
        self.lengths = np.asarray(dataset.lengths) + queries.lengths
        self.blocks = dataset.blocks

    def fingerprint(self) -> str:
        return self.dataset.fingerprint()

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        inputs = assemble(self.dataset, self.preprocessor, index)
        rows = []
        for i in index:
            at = slice(int(self.queries.offsets[i]), int(self.queries.offsets[i + 1]))
            times = self.queries.times[at]
            channels = np.zeros(len(times), int) if self.queries.channels is None else self.queries.channels[at]
            rows.append(place(self.preprocessor, times, channels, self.origins[[i]], np.array([len(times)])))
        longest = max(1, max(len(row) for row in rows))
        positions = np.zeros((len(rows), longest, self.preprocessor.axes), np.float32)
        padding = np.ones((len(rows), longest), bool)
        for i, row in enumerate(rows):
            positions[i, : len(row)], padding[i, : len(row)] = row, False
        values = torch.zeros(len(rows), longest, self.preprocessor.features)
        masked = Tokens(
            values,
            torch.from_numpy(positions),
            torch.from_numpy(padding) if padding.any() else None,
            check_values=False,
        )
        return Batch(index, inputs, masked)


def interpolate(
    directory: ModelDirectory,
    dataset: SeriesDataset,
    queries: Queries,
    config: TrainConfig | None = None,
    on_step: Any = None,
) -> Interpolation:
    """The values a pre-trained model expects at any times, in the table's units.

    Raises:
        InputError: a model that is not a MaskedAutoencoder; queries for another number of series, with NaN, or of a
            channel that is none.
    """
    model, preprocessor = directory.model, directory.preprocessor
    if not isinstance(model, MaskedAutoencoder) or preprocessor is None:
        raise InputError(
            f"the model is a {type(model).__name__}; interpolation needs the pre-trained MaskedAutoencoder."
        )
    _check_queries(queries, dataset, preprocessor)
    preprocessor.check(dataset)
    _warn_if_far(queries, dataset, preprocessor)
    gaussian = model.config.likelihood == "gaussian"

    def read(model: torch.nn.Module, batch: Batch) -> list[np.ndarray]:
        assert isinstance(model, MaskedAutoencoder) and batch.masked is not None
        out = model.predict(batch.inputs, batch.masked)
        spread = torch.zeros_like(out.predicted) if out.log_variance is None else (0.5 * out.log_variance).exp()
        both = torch.stack([out.predicted, spread], dim=1).double().cpu().numpy()
        return [row[:, :n] for row, n in zip(both, queries.lengths[batch.series], strict=True)]

    rows = predict(model, _Interpolating(dataset, queries, preprocessor), read, config or INFERENCE, on_step)
    scaled = np.concatenate(rows, axis=1)
    channels = np.zeros(len(queries.times), int) if queries.channels is None else queries.channels

    def at(sigmas: float) -> np.ndarray:
        return preprocessor.values.inverse(scaled[0] + sigmas * scaled[1], channels)

    if not gaussian:
        return Interpolation(at(0), None, None, None, None, None)
    low, high = at(-1), at(1)
    return Interpolation(at(0), (high - low) / 2, low, high, at(-2), at(2))


def _check_queries(queries: Queries, dataset: SeriesDataset, preprocessor: Preprocessor) -> None:
    if len(queries.offsets) != len(dataset) + 1 or queries.offsets[-1] != len(queries.times):
        raise InputError(f"queries are for {len(queries.offsets) - 1} series; the data set has {len(dataset)}.")
    if len(queries.times) == 0:
        raise InputError("there are no times to interpolate at.")
    if not np.isfinite(queries.times).all():
        raise InputError(f"query {int((~np.isfinite(queries.times)).argmax())} has the time NaN or infinity.")
    if (queries.channels is None) != (preprocessor.channel_names is None):
        raise InputError("give queries a channel when the table has channels, and none when it has not.")
    if preprocessor.channel_names is not None and queries.channels is not None:
        known = len(preprocessor.channel_names)
        if ((queries.channels < 0) | (queries.channels >= known)).any():
            raise InputError(f"queries ask for channel {int(queries.channels.max())}; there are 0 to {known - 1}.")


def _warn_if_far(queries: Queries, dataset: SeriesDataset, preprocessor: Preprocessor) -> None:
    positions = preprocessor.positions
    at = np.abs(positions.times(queries.times, positions.origins(dataset), queries.lengths))
    if at.max() > 1.5 * positions.reach + 1.0:
        series = int(np.searchsorted(queries.offsets, int(at.argmax()), side="right")) - 1
        warnings.warn(
            f"series {dataset.ids[series].item()!r} is asked at time {queries.times[at.argmax()]:.10g}, "
            f"{at.max() * positions.unit:.6g} from its origin; training reached "
            f"{positions.reach * positions.unit:.6g}. Values there are extrapolations.",
            InputWarning,
            stacklevel=3,
        )


def grid(dataset: SeriesDataset, points: int) -> Queries:
    """`points` even times from each series' first to its last observation, for every channel it has."""
    if points < 1:
        raise InputError(f"points is {points}; wanted at least 1.")
    channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
    first, last = dataset.times[dataset.offsets[:-1]], dataset.times[dataset.offsets[1:] - 1]
    lines = np.linspace(first, last, points, axis=1)
    times = np.repeat(lines[:, None, :], channels, axis=1).reshape(-1)
    number = None if dataset.channel_names is None else np.tile(np.repeat(np.arange(channels), points), len(dataset))
    return Queries(times, number, np.arange(len(dataset) + 1) * points * channels)


def queries_at(dataset: SeriesDataset, times: np.ndarray) -> Queries:
    """The same times for every series, and for every channel when there are channels."""
    channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
    each = np.tile(np.asarray(times, np.float64), channels)
    number = (
        None if dataset.channel_names is None else np.tile(np.repeat(np.arange(channels), len(times)), len(dataset))
    )
    return Queries(np.tile(each, len(dataset)), number, np.arange(len(dataset) + 1) * len(each))


def queries_from_table(dataset: SeriesDataset, path: str | Path, id: str, time: str, channel: str | None) -> Queries:
    """Queries from a table of ids, times and channels; the series are asked in the data set's order.

    Raises:
        InputError: an id the data set has not, a missing column or cell, an unknown channel.
    """
    table = read_table(path)
    wanted = [id, time] + ([channel] if channel else [])
    for name in wanted:
        if name not in table.column_names:
            raise InputError(
                f"{path} has no column {name!r}{did_you_mean(name, table.column_names)}; it needs {wanted}."
            )
        if table[name].null_count:
            raise InputError(
                f"{path}: column {name!r} has {table[name].null_count} empty cells; every query needs one."
            )
    places = {plain(name): i for i, name in enumerate(dataset.ids)}
    asked = table[id].to_pylist()
    unknown = [name for name in asked if name not in places]
    if unknown:
        raise InputError(f"{path} asks for series {unknown[0]!r}, which the table of observations does not have.")
    series = np.array([places[name] for name in asked], np.int64)
    at, _ = tables.times(tables.arrow_column(tables.as_frame(table), time), time)
    order = np.argsort(series, kind="stable")
    number = None
    if dataset.channel_names is not None:
        if not channel:
            raise InputError(f"{path}: the model has channels; name their column by --channel.")
        known = {plain(name): i for i, name in enumerate(dataset.channel_names)}
        names = table[channel].to_pylist()
        strange = [name for name in names if name not in known]
        if strange:
            raise InputError(f"{path} asks for channel {strange[0]!r}; the model knows {', '.join(map(str, known))}.")
        number = np.array([known[name] for name in names], np.int64)[order]
    offsets = np.searchsorted(series[order], np.arange(len(dataset) + 1))
    return Queries(np.asarray(at, np.float64)[order], number, offsets)


def hide(dataset: SeriesDataset, share: float, seed: int) -> tuple[SeriesDataset, SeriesDataset, np.ndarray]:
    """(visible, hidden, hidden observations [n] of the data set): a random share of each series' observations.

    Series with one observation keep it and are in neither part's way: `hidden` has only series that hide something.
    """
    if not 0 < share < 1:
        raise InputError(f"share {share}; wanted more than 0 and less than 1.")
    uniform = np.random.default_rng(seed).random(len(dataset.times))
    series = np.repeat(np.arange(len(dataset)), dataset.lengths)
    order = np.lexsort((uniform, series))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(dataset.offsets[:-1], dataset.lengths)
    hidden = rank < np.repeat(np.minimum(np.ceil(dataset.lengths * share), dataset.lengths - 1), dataset.lengths)
    with_some = np.unique(series[hidden])
    inside = np.isin(series, with_some)
    part = dataset.select(with_some)
    return part.mask_observations(~hidden[inside]), part.mask_observations(hidden[inside]), hidden


def as_queries(dataset: SeriesDataset) -> Queries:
    """The times and channels of a data set's own observations."""
    return Queries(np.asarray(dataset.times), dataset.channels, np.asarray(dataset.offsets))
