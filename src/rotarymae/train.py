"""Train a pipeline on a data set: split, scale, pre-train, fine-tune, and fit what predicts together with the model.

`train` is the only orchestration: the command, the estimators and experiments differ in where data come from and where
results go. `pretrain` and `finetune` are its two trainings.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from rotarymae.arrays import ArrayDataset
from rotarymae.calibration import calibrate
from rotarymae.counter_rng import make_generator
from rotarymae.datasets import AnyDataset, AnyPreprocessor
from rotarymae.errors import InputError, InputWarning, choose
from rotarymae.heads import Classifier, encoder_of
from rotarymae.labels import LABELS, ClassLabels, Labels, choose_labels
from rotarymae.model import Encoder, MaskedAutoencoder, build
from rotarymae.partners import FittedPartners, choose_predictor, fit_partners, sorted_errors
from rotarymae.pipeline import Pipeline
from rotarymae.prediction import embed, predict_and_embed
from rotarymae.preprocess import (
    DatasetExamples,
    Inputs,
    ObservationPreprocessor,
    PatchPreprocessor,
    fit_static,
    maskable,
    require_maskable,
)
from rotarymae.run_folder import identify, open_folder
from rotarymae.seasons import LEAST_CYCLES, find_season
from rotarymae.series import SeriesDataset, Windows, with_early
from rotarymae.series.dates import span_of
from rotarymae.splits import Fold, Split, SplitColumn, make_split, split_words
from rotarymae.system import Reporter, plain_json
from rotarymae.targets import as_targets, has_label, narrowed, one_per_series, truth_at
from rotarymae.training import Pretraining, TrainResult, fit, with_gradients
from rotarymae.training.cost import Plan, Schedule, check_memory
from rotarymae.training.fit_config import FitConfig

# Options that mean nothing to pictures, videos and sounds.
SERIES_ONLY = ("time_unit", "time_origin", "channel_spacing", "join_times", "channel_one_hot", "signal_to_noise")
SERIES_ONLY += ("transforms", "window", "overlap", "static", "errors", "early")
NEAR, MAX_NEAR = 256, 1024  # observations of a window of a fit without labels, for each channel and at most
STEP_TOKENS = 8192  # observations of a step of windows
DEFAULT_BETA = 0.5  # power of the predicted variance by which pre-training weighs its loss
LONG = 8192  # observations; longer series are read in windows
WINDOW_LENGTHS = (4096, 2048, 1024, 512, 256)  # observations of a window
STEP = 1 << 15  # observations of a step's windows together
# Options of the steps of fine-tuning, and of what a linear head cannot read: without any, a head alone is a regression.
STEPPED = ("static", "early", "drop", "noise", "dropout", "drop_path", "label_smoothing")
STEPPED += ("finetune_epochs", "finetune_batch_size", "finetune_lr")
# With fewer labelled series of classes a head alone is trained. On PLAsTiCC with 280 labels, and on JapaneseVowels with
# 45 to 270, it was better than a fine-tuned network. Its inverse penalty: of 0.01 to 1 the one of the best log-loss.
FEW_LABELS, PENALTY = 500, 0.1


@dataclass(eq=False)
class FitResult:
    """The result of a training.

    Attributes:
        pipeline: the trained pipeline.
        split: indices of the examples for training, for choosing the epoch, and for scoring; None if nothing was split.
        split_method: how they were split, as in metrics.json; `splits.split_words` describes it in words.
        pretraining, finetuning: losses and totals of each training, None for one that was not run.
        validation_outputs: {method: its predictions of the validation examples [n, K]}, K classes, intervals of time or
            outputs; by methods that were not trained on these examples. Empty without labels or validation examples.
        pretrained_on: number of examples in pre-training; 0 without it.
        others: if several networks were pre-trained, all but the first, which the pipeline has.
    """

    pipeline: Pipeline
    split: Split | None = None
    split_method: dict[str, Any] = field(default_factory=lambda: {"by": None, "method": "random"})
    pretraining: TrainResult | None = None
    finetuning: TrainResult | None = None
    validation_outputs: dict[str, np.ndarray] = field(default_factory=dict)
    pretrained_on: int = 0
    others: tuple[MaskedAutoencoder, ...] = ()

    @property
    def result(self) -> TrainResult:
        """Return losses and totals of fine-tuning, else of pre-training, else an empty `TrainResult`."""
        return self.finetuning or self.pretraining or TrainResult()

    @property
    def history(self) -> dict[str, list[dict[str, Any]]]:
        """The logged losses, {"pretrain": lines, "finetune": lines}; a training that was not run has no entry.

        Each line is a dictionary, described by `TrainResult.history`: step, epoch, and a loss, a validation loss or a
        skipped step. Lines are in order of time.
        """
        both = {"pretrain": self.pretraining, "finetune": self.finetuning}
        return {name: one.history for name, one in both.items() if one is not None}


def train(
    dataset: AnyDataset,
    targets: Any,
    config: FitConfig,
    *,
    start: Pipeline | None = None,
    task: str = "auto",
    holdout: float = 0.0,
    split_by: SplitColumn | Fold | None = None,
    columns: Mapping[str, Any] | None = None,
    since: np.ndarray | None = None,
    plan: Plan | None = None,
    reporter: Reporter | None = None,
) -> FitResult:
    """Train a pipeline on a data set: split it, scale values, pre-train, fine-tune, and fit partners of the network.

    Partners are other methods, such as boosted trees. They and fine-tuning need labels; without labels,
    `interpolation_options` adapts the options. On one machine the same data, options and seed give the same pipeline,
    bit for bit, unless the option `minutes` is set.

    Args:
        dataset: S series, or arrays such as pictures.
        targets: [S] classes, numbers (also [S, outputs]) or times to an event, or None to pre-train only. A series
            without a label (None or NaN) is used in pre-training only.
        config: all options of the training.
        start: the trained pipeline to start from. None starts from that of `config.pretrained`, or without one from
            random weights. Its pre-training goes on if `config.pretrained` is None or `config.pretrain_epochs` above 0.
        task: "classification", "regression", "survival", or "auto": survival for durations with a status, regression if
            some number is not whole, else classification.
        holdout: share of the labelled series that nothing is trained on. It is not used if `split_by` is a fold, or a
            column that names the parts; without `split_by`, fewer than ten labelled series are all trained on.
        split_by: a column, or a fold of a cross-validation, that decides which series are held out; None draws them.
        columns: layout of the table, {field of `TableSchema`: value}, which is saved with the pipeline; None keeps that
            of `start`.
        since: [S] times, in the unit of the data set, from which the spans of `config.early` count. The model also
            learns from series that are cut off after these spans. A series with NaN is not cut off. None counts from
            the first observations.
        plan: the run folder, for checkpoints, and the limit of the run's time. The folder must be empty, or that of
            the same run to resume. None keeps no checkpoints.
        reporter: shows progress and warnings; None shows warnings only.

    Returns:
        The trained pipeline, with its split and its losses.

    Raises:
        InputError: before any training: labels or settings that cannot be used; a `start` that was trained on other
            columns of values or channels; a folder with another run.
        ModelDirectoryError: `config.pretrained` is damaged; also before any training.
        TrainingDiverged: losses or weights became infinite or NaN.
    """
    reporter = reporter or Reporter(quiet=True)
    if start is None and config.pretrained is not None:
        start = open_start(config.pretrained)
    if start is not None:
        # Of a pipeline without the pre-trained autoencoder, the encoder under the head is used.
        start = start.pretrained if start.autoencoder is not None else replace(start, labels=None, partners=None)
        reporter.say(f"started from {config.pretrained or 'a pipeline'}: {start}")
    if targets is not None:
        targets = as_targets(targets)
    else:
        given, config = config, interpolation_options(config, dataset)
        if config.window != given.window:
            reporter.say(
                f"series are read in windows of {config.window} observations that share {config.shared}, "
                f"{config.batch_size} in a step (--window, --overlap, --batch-size)"
            )
    if dataset.kind == "observations":
        errors = config.errors if start is None else start.require_series().errors
        dataset = cast(SeriesDataset, dataset).with_errors(errors)
    kind, rows, strata = labelled(dataset, targets, task, config)
    if kind is not None and targets is not None and dataset.kind == "observations":
        spans = dataset.times[dataset.offsets[1:] - 1] - dataset.times[dataset.offsets[:-1]]  # pyright: ignore
        kind.check_spans(targets[rows], spans[rows])
    shares = holdout, config.validation_fraction
    split, method = make_split(len(dataset), rows, strata, *shares, config.seed, split_by)
    if split_by is not None:
        reporter.say(split_words(method))
    if len(split.unlabelled):
        reporter.say(
            f"{len(split.unlabelled):,} of {len(dataset):,} {dataset.noun} have no label: they are pre-trained on and "
            "embedded"
        )
    members, ends = 1, None
    if kind is not None and targets is not None:  # before a training that could not be used
        if config.early and dataset.kind == "observations":
            ends = _early_ends(cast(SeriesDataset, dataset), config.early, since)
        learnt = kind.check(targets[split.train], len(split.train))
        static = fit_static(dataset.select(split.train), config.static) if config.static else ()
        few = kind is ClassLabels and dataset.kind == "observations" and len(rows) < FEW_LABELS
        if config.tune == "auto" and few and not config.changed(*STEPPED):
            config = replace(config, tune="probe")
            reporter.say("the encoder stays as pre-trained, as labels are few (tune='full' trains it)")
        members = config.members or 1
        if config.members is None and config.minutes is None and config.tune != "probe":
            members = kind.default_members(config.decide, learnt)
            if members > 1:
                reporter.say(
                    f"{members} networks are trained and averaged, as few series are of the rarer class (members=1 "
                    "trains one)"
                )
        config = replace(config, members=members)
    part = dataset.select(split.pretrain)
    validation = dataset.select(split.validation) if len(split.validation) else None
    with reporter.bar("scaling"):
        preprocessor = prepare(part, config, start)
    how: Any = lambda stage, on_step: {"on_step": on_step}  # noqa: E731
    if plan is not None:
        model = None if start is None else start.model
        open_folder(plan.folder, identify(dataset, targets, config, task, holdout, split_by, model, since))
        plan.lengths, plan.scored, plan.members = dataset.lengths, split.scored, members
        plan.finetuned = split.train if kind is not None else None
        how = plan.options
    result = FitResult(pipeline=start, split=split, split_method=method)  # type: ignore[arg-type]
    if start is not None and not config.pretrains:
        result.pipeline = replace(start, preprocessor=preprocessor, precision=config.precision)
    else:
        with reporter.bar("pre-training") as on_step:
            pretrained = pretrain(
                part,
                config,
                preprocessor=preprocessor,
                start=start,
                validation=validation,
                members=members,
                **how("pre-training", on_step),
            )
        result.pipeline, result.pretraining = pretrained.pipeline, pretrained.pretraining
        result.others = pretrained.others
        result.pretrained_on = len(part)
        if dataset.kind == "observations":
            with reporter.bar("calibrating"):
                unseen: Any = (part,) if validation is None else (validation, part)
                calibration = calibrate(result.pipeline, *unseen, seed=config.seed)
                result.pipeline = replace(result.pipeline, calibration=calibration)
    if kind is not None and targets is not None:
        labels, known = kind.fit(learnt), np.sort(np.concatenate([split.train, split.validation]))
        truth = truth_at(labels, targets, known)
        every, of = _with_early_copies(dataset, ends)
        learns, judges = (np.flatnonzero(np.isin(of, rows)) for rows in (split.train, split.validation))
        given = (every, labels.for_partners(truth)[of], learns, judges, static, config.seed, reporter)
        partners = fit_partners(config.predictor, kind.task, *given, budget=plan)
        choosing = None
        if validation is not None:
            copies, of = _with_early_copies(validation, None if ends is None else ends[split.validation])
            choosing = copies, targets[split.validation][of]
        pretrained = result.pipeline
        with reporter.bar("fine-tuning") as on_step:
            tuned = finetune(
                pretrained,
                dataset.select(split.train),
                learnt,
                config,
                task=kind.task,
                validation=choosing,
                others=result.others,
                ends=None if ends is None else ends[split.train],
                **how("fine-tuning", on_step),
            )
        result.pipeline, result.finetuning = tuned.pipeline, tuned.finetuning
        _choose(result, truth, known, partners, config, reporter)
        if config.tune == "probe" and not result.result.steps:  # learns at once from all, as the partners do
            every = finetune(pretrained, dataset.select(known), targets[known], config, others=result.others)
            result.pipeline = replace(result.pipeline, model=every.pipeline.model)
    result.pipeline = replace(
        result.pipeline,
        columns=dict(columns) if columns is not None else result.pipeline.columns,
        parameters=plain_json(dataclasses.asdict(config)),
    )
    return result


def labelled(
    dataset: AnyDataset, targets: np.ndarray | None, task: str, config: FitConfig
) -> tuple[type[Labels] | None, np.ndarray, np.ndarray | None]:
    """Check the targets; return the kind of labels, which series have one, and their groups for a stratified split.

    Args:
        dataset: S series or arrays.
        targets: [S] labels, None or NaN for a series without one; or None, to pre-train only.
        task: "classification", "regression", "survival", or "auto" to decide it by the labels.
        config: options, which are checked against the labels.

    Returns:
        A tuple of three:
        - the class that handles such labels, such as `ClassLabels`; None without targets;
        - the ascending indices of the L series with a label; of all series without targets;
        - the groups [L] whose proportions a split keeps: classes, or for survival whether the event happened; None for
          a regression and without targets.

    Raises:
        InputError: no series has a label; labels that cannot be used for the task or with the options.
    """
    if targets is None:
        return None, np.arange(len(dataset)), None
    targets = one_per_series(targets, len(dataset))
    rows = np.flatnonzero(has_label(targets))
    if not len(rows):
        raise InputError(
            "no series has a label, as all are missing; label some series, or leave the labels out to pre-train only."
        )
    given = narrowed(targets[rows])  # whose type shows the kind
    kind = choose_labels(given, task)
    checked = kind.check(given, len(rows))
    kind.check_config(config, checked)
    return kind, rows, kind.strata(checked)


def _choose(
    result: FitResult,
    truth: np.ndarray,
    rows: np.ndarray,
    fitted: FittedPartners,
    config: FitConfig,
    reporter: Reporter,
) -> None:
    """Choose on validation series what predicts (the network, boosting or a combination) and how classes are decided.

    Without validation series the network predicts.

    Args:
        result: result of the fine-tuning, with a split. It is changed in place: `pipeline` becomes a copy with the
            choices, and `validation_outputs` is set.
        truth: class numbers [S], values [S, outputs] or times to an event [S] of all series, as `targets.truth_at`
            returns them.
        rows: indices of the training and the validation series.
        fitted: boosting and the other methods, with their predictions of validation series.
        config: its options `predictor`, `decide` and `costs` are used.
        reporter: says if decide="auto" comes to the rule "f1", and warns if a choice is not possible.
    """
    pipeline, labels, split = result.pipeline, result.pipeline.require_labels(), result.split
    assert split is not None
    of_model = np.zeros((0, labels.outputs)) if fitted.held is None else predict_and_embed(pipeline, fitted.held)[0]
    partners, outputs = choose_predictor(config.predictor, labels.task, fitted, of_model, reporter)
    result.validation_outputs = {name: part[: len(split.validation)] for name, part in outputs.items()}
    if labels.task == "regression":
        known = truth[split.validation]
        errors = {name: sorted_errors(part, known) for name, part in result.validation_outputs.items()}
        partners = replace(partners, errors=errors)
    unseen = result.validation_outputs.get(partners.choice, of_model[: len(split.validation)])
    labels = labels.decided(truth[rows], unseen, config, reporter)
    result.pipeline = replace(pipeline, partners=partners, labels=labels)


def _early_ends(dataset: SeriesDataset, early: tuple[str, ...], since: np.ndarray | None) -> np.ndarray:
    """Return the k times at which each of S series is cut off for early predictions, [S, k], in its unit of time.

    Args:
        dataset: the S series.
        early: the option of this name, k spans of time such as "10 d".
        since: [S], the times from which the spans count, or from the first observation if that is later; if one is
            NaN, the result is infinite (the series is not cut off). None counts from the first observations.

    Raises:
        InputError: a text in `early` that is no span of time; another number of times `since` than of series.
    """
    spans = np.array([span_of("early", text, dataset.time_unit) for text in early])
    first = dataset.times[dataset.offsets[:-1]]
    if since is not None and len(since) != len(dataset):
        raise InputError(f"since has {len(since)} times for {len(dataset)} series; give one for each.")
    ends = (first if since is None else np.maximum(since, first))[:, None] + spans
    return np.where(np.isnan(ends), np.inf, ends)


def _with_early_copies(dataset: Any, ends: np.ndarray | None) -> tuple[Any, np.ndarray]:
    """Append to S series k copies of each that are cut off early, at the times `ends` [S, k]; none if `ends` is None.

    Returns:
        A pair: the S series or arrays, followed by the copies; and for each of all these the index of its series in
        `dataset`, int [S (k + 1)].
    """
    every = dataset if ends is None else with_early(dataset, ends)
    return every, np.arange(len(every)) % len(dataset)


# ── what a fit starts from ──────────────────────────────────────────────────────────────────────────────────────────


def open_start(source: Any) -> Pipeline:
    """Load the trained pipeline from which training is to start, and check that training can start from it.

    Args:
        source: a `Pipeline`, which is returned; or the path or name of one, which is loaded: a run folder of `rotarymae
            fit`, a saved pipeline, or a model that `Pipeline.load` knows by name.

    Raises:
        InputError: no such folder or name; another kind of source; the models of a cross-validation; a pipeline without
            a preprocessor, whose inputs could not be scaled.
        ModelDirectoryError: a file of the model is missing, unreadable or changed.
        MissingExtra: a model on the Hub, and the extra `hub` is not installed.
    """
    if isinstance(source, str | Path):
        source = Pipeline.load(source)
    if not isinstance(source, Pipeline):
        raise InputError(
            f"pretrained is a {type(source).__name__}; wanted a Pipeline, or the name or folder of one "
            "(rotarymae.load): the weights alone do not say how values are scaled."
        )
    source.require_one()
    if source.preprocessor is None:
        raise InputError(
            "the pretrained model has no preprocessor, as it was not trained on a data set; give a model that was."
        )
    return source


def interpolation_options(config: FitConfig, dataset: AnyDataset) -> FitConfig:
    """Return the options of a fit without labels, which learns to interpolate: set `neighbours` and windows.

    `neighbours="auto"` becomes "on" (the model learns what to add to the straight line between the nearest
    observations), or "off" for data with positions besides time and channel.

    Windows are the pieces into which long series are cut, because predictions need only what is nearby or a season
    (period) away, and many small steps teach more than few large ones. They are set if `window` is None and a series is
    longer than two of them. A window has 256 observations for each channel, or 2.5 seasons if these hold more, but at
    most 1,024 in all. Two neighbouring windows share an eighth. `batch_size` is lowered so that a step has at most
    8,192 observations.

    Args:
        config: options of a fit. If they start from a trained model (`pretrained`), they are returned unchanged.
        dataset: the series to train on. For arrays the options are returned unchanged.
    """
    if config.pretrained is not None or dataset.kind != "observations":
        return config
    if config.neighbours == "auto":
        config = replace(config, neighbours="off" if dataset.position_names else "on")  # pyright: ignore
    if config.window is None:
        near = min(max(NEAR, round(LEAST_CYCLES * find_season(dataset).gaps)), MAX_NEAR)  # pyright: ignore
        window = near * min(len(dataset.channel_names or (None,)), MAX_NEAR // near)  # pyright: ignore
        if dataset.lengths.max() > 2 * window:
            together = min(config.batch_size, max(1, STEP_TOKENS // window))
            config = replace(config, window=window, overlap=window // 8, batch_size=together)
    return config


def prepare(dataset: AnyDataset, config: FitConfig, start: Pipeline | None = None) -> AnyPreprocessor:
    """Check all that training could refuse, except labels; return the fitted preprocessor of the training set.

    Args:
        dataset: the series or arrays to train on.
        config: options of the fit.
        start: the trained pipeline from which training starts, whose preprocessor is then used. For series it gets this
            fit's windows (the pieces into which long series are cut), and loses its static columns. None fits a new
            one.

    Raises:
        InputError: no series with two tokens, for pre-training; an option that does not fit the data; data with other
            columns or channels than those of `start`; a training that would not fit into memory, or in which masking
            would hide nothing.

    Warns:
        InputWarning: very long series are cut into windows; a channel_spacing has no effect.
    """
    if config.pretrains and (dataset.lengths < 2).all():
        tokens, check = "observations", "check which column holds the ids"
        if dataset.kind == "patches":
            tokens, check = f"patches of {dataset.patch_size}", "choose a smaller patch_size"  # pyright: ignore
        raise InputError(
            f"none of the {len(dataset):,} {dataset.noun} to train on has two {tokens}; pre-training hides some and "
            f"predicts them from the others. Give longer or larger ones, or {check}."
        )
    if config.masking == "channels" and getattr(dataset, "channel_names", None) is None:
        raise InputError(f"masking='channels' hides channels, and the {dataset.noun} have none; use masking='ratio'.")
    if dataset.kind == "observations":
        preprocessor: Any = _series_preprocessor(cast(SeriesDataset, dataset), config, start)
    else:
        changed = config.changed(*SERIES_ONLY, *(["neighbours"] if config.neighbours == "on" else []))
        if changed:
            raise InputError(
                f"{', '.join(changed)}: {dataset.noun} have no times, channels or columns as series have; leave these "
                "options out."
            )
        arrays = cast(ArrayDataset, dataset)
        preprocessor = PatchPreprocessor.fit(arrays) if start is None else start.require_arrays()
        if start is not None:
            preprocessor.check(arrays)
    windows = preprocessor.windows(dataset).dataset
    if start is None:
        sizes = config.model_config(preprocessor.axes, preprocessor.features, preprocessor.input_features)
    else:
        sizes = start.require_autoencoder().config if config.pretrains else encoder_of(start.model).config
        if config.pool == "cls" and not sizes.cls_token:
            raise InputError("pool='cls' reads a [CLS] token and the pretrained model has none; use pool='mean'.")
    check_memory(config, sizes, preprocessor.lengths(windows), dataset.noun)
    if config.pretrains:
        require_maskable(windows, preprocessor, config.strategy(dataset.kind))
    return preprocessor


def _series_preprocessor(dataset: SeriesDataset, config: FitConfig, start: Pipeline | None) -> ObservationPreprocessor:
    """Fit a preprocessor to series, or copy that of a trained pipeline.

    Args:
        dataset: the series to train on.
        config: options of the fit.
        start: the trained pipeline from which training starts. The copy has this fit's windows (the pieces into which
            long series are cut), and no static columns. None fits a new preprocessor.

    Raises:
        InputError: options that do not suit the data; data with other columns or channels than those of `start`.

    Warns:
        InputWarning: very long series are cut into windows; a channel_spacing has no effect.
    """
    window, overlap = _choose_window(dataset, config, None if start is None else start.require_series())
    if start is None:
        inputs = None
        if not config.join_times:
            named = dataset.with_errors(config.errors)
            inputs = Inputs.fit(named, config.channel_one_hot, config.signal_to_noise)
        times = (config.time_unit, config.time_origin, config.channel_spacing)
        values = (inputs, config.join_times, config.errors)
        windows = Windows.cut(dataset, window, overlap).dataset
        settings = {"window": window, "overlap": overlap}
        transforms = dict(config.transforms or {})
        preprocessor = ObservationPreprocessor.fit(windows, transforms, *times, *values, **settings)
    else:
        before = start.require_series()
        preprocessor = before.replace(static=(), window=window, overlap=overlap)
        preprocessor.check(preprocessor.windows(dataset).dataset)
    if (preprocessor.channel_names is None or preprocessor.join_times) and config.changed("channel_spacing"):
        text = "channel_spacing has no effect, as this table has no axis of channels; leave it out."
        warnings.warn(text, InputWarning, stacklevel=3)
    fit_static(dataset, config.static)  # columns that cannot be used are refused before any training
    if config.neighbours == "on" and preprocessor.position_names:
        raise InputError(
            "neighbours are looked up by time alone, and the positions have further axes "
            f"({', '.join(preprocessor.position_names)}); leave neighbours out.",
            code="neighbours-of-positions",
        )
    return preprocessor


def _choose_window(
    dataset: SeriesDataset, config: FitConfig, before: ObservationPreprocessor | None
) -> tuple[int | None, int]:
    """Return the length of the windows into which series are cut, and how many observations neighbouring windows share.

    If the option `window` is set, the options give both; else `before`, if it has windows. Otherwise series are cut
    only if one has more than 8,192 observations. The length is then the largest of 4096, 2048, 1024, 512 and 256 with
    which a step has at most 32,768 observations, or 256 if all are too large; neighbours share a sixteenth of it, and
    an InputWarning says so.

    Args:
        dataset: the series to train on.
        config: options of the fit: `window`, `overlap` and `batch_size` are used.
        before: the preprocessor of the model to start from; None without one.

    Returns:
        Two numbers of observations; (None, 0) if series are not cut.
    """
    if config.window is not None:
        return config.window, config.shared
    if before is not None and before.window is not None:
        return before.window, before.overlap
    longest = int(dataset.lengths.max())
    if longest <= LONG:
        return None, 0
    window = next((size for size in WINDOW_LENGTHS if size * config.batch_size <= STEP), WINDOW_LENGTHS[-1])
    warnings.warn(
        f"the longest series has {longest:,} observations: series are cut into windows of {window:,} that share "
        f"{window // 16} (window={window}); what lies further apart is not seen together.",
        InputWarning,
        stacklevel=3,
    )
    return window, window // 16


@with_gradients()
def pretrain(
    dataset: AnyDataset,
    config: FitConfig,
    *,
    preprocessor: AnyPreprocessor | None = None,
    start: Pipeline | None = None,
    validation: AnyDataset | None = None,
    members: int = 1,
    schedule: Schedule | None = None,
    **how: Any,
) -> FitResult:
    """Train a masked autoencoder on a data set; return its pipeline, without a calibration, and its losses.

    Series, or windows of long ones, in which masking hides nothing are left out, with an InputWarning that counts them.
    With `members` above 1 several networks are trained, from different seeds.

    Args:
        dataset: series or arrays; labels are not needed.
        config: options of the fit; those of fine-tuning are not read.
        preprocessor: preprocessor of the data set, if `prepare` has fitted it already; None calls `prepare`.
        start: the pipeline to start from; it is not changed. None starts from random weights.
        validation: another data set, whose loss chooses the best epoch. The last weights are kept if it is None, or
            masking hides nothing in it.
        members: number of networks, at least 1.
        schedule: called with (objective, examples, validation examples, settings) before each training; returns the
            settings with another number of steps. None leaves them as they are.
        how: optional keyword arguments of `training.fit`: folder (Path, of log and checkpoints), resume ("never" or
            "auto"), on_step (called with steps done, steps in all, loss) and on_resume (called with a sentence).

    Returns:
        The result. `pipeline` has the first network, and `others` the further networks. `pretraining` has the losses of
        the first network, and the seconds that all of them took. `pretrained_on` is the number of series in `dataset`,
        those left out included. The split is not set.

    Raises:
        InputError: an option that does not fit the data; data with other columns or channels than those of `start`; a
            folder with another run.
        TrainingDiverged: losses or weights became infinite or NaN.
    """
    scaling: Any = preprocessor or prepare(dataset, config, start)
    masking = config.strategy(dataset.kind)
    train = scaling.windows(dataset).dataset
    hides = maskable(train, scaling, masking)
    if not hides.all():
        warnings.warn(
            f"{(~hides).sum():,} of {len(train):,} {train.noun} have nothing that masking {masking.kind!r} could "
            "hide, and are left out of pre-training.",
            InputWarning,
            stacklevel=2,
        )
        train = train.select(hides)
    held = None
    if validation is not None:
        windows = scaling.windows(validation).dataset
        scaling.check(windows)
        hides = maskable(windows, scaling, masking)
        if hides.any():
            held = DatasetExamples(windows.select(hides), scaling, seed=config.seed, masking=masking)

    beta = DEFAULT_BETA if config.beta is None else config.beta
    networks, results = [], []
    for one, options in _of_members(config, members, how):
        if start is not None:
            model = copy.deepcopy(start.require_autoencoder())
        else:
            sizes = config.model_config(scaling.axes, scaling.features, scaling.input_features)
            model = build(partial(MaskedAutoencoder, sizes), make_generator(one.seed, 0))
        objective = Pretraining(model, beta=beta if model.likelihood.has_spread else 0.0)
        data, training = DatasetExamples(train, scaling, seed=one.seed, masking=masking), one.pretraining()
        training = training if schedule is None else schedule(objective, data, held, training)
        results.append(fit(objective, data, training, validation=held, **options))
        networks.append(model)
    columns = {} if start is None else start.columns
    forecasts, options = config.masking == "future", plain_json(dataclasses.asdict(config))
    kept: Any = {"columns": columns, "forecasts": forecasts, "parameters": options, "precision": config.precision}
    pipeline = Pipeline(scaling, networks[0], **kept)
    result = replace(results[0], seconds=sum(each.seconds for each in results))
    return FitResult(pipeline, pretraining=result, pretrained_on=len(dataset), others=tuple(networks[1:]))


def _of_members(config: FitConfig, members: int, how: dict[str, Any]) -> Iterator[tuple[FitConfig, dict[str, Any]]]:
    """Yield the options and the arguments of `fit` for each of several networks that are trained one after another.

    Network k, from 0, has the seed of `config` plus k. The first has the folder as given, the second "FOLDER-2", the
    third "FOLDER-3", and so on. The yielded `on_step` counts the steps of all networks together.

    Args:
        config: options of the fit.
        members: number of networks.
        how: keyword arguments of `training.fit`, each optional: folder (Path), resume, on_step and on_resume.

    Yields:
        The pair (options, a copy of `how` with this network's folder and `on_step`), `members` times.
    """
    on_step, folder = how.get("on_step") or (lambda *_: None), how.get("folder")

    def count(before: int, step: int, steps: int, loss: float) -> None:
        """Call the given `on_step` with (steps done, steps to do, loss), both numbers counted over all networks.

        `before` networks are trained already, and this one has made `step` of its `steps` steps.
        """
        on_step(before * steps + step, members * steps, loss)

    for member in range(members):
        options = how | {"on_step": partial(count, member)}
        if folder is not None and member:
            options["folder"] = folder.with_name(f"{folder.name}-{member + 1}")
        yield replace(config, seed=config.seed + member), options


@with_gradients()
def finetune(
    pretrained: Pipeline,
    dataset: AnyDataset,
    targets: np.ndarray,
    config: FitConfig,
    *,
    task: str = "classification",
    validation: tuple[AnyDataset, np.ndarray] | None = None,
    others: Sequence[MaskedAutoencoder] = (),
    ends: np.ndarray | None = None,
    schedule: Schedule | None = None,
    **how: Any,
) -> FitResult:
    """Train a network that predicts labels, starting from a pre-trained encoder; return its pipeline and its losses.

    The network is a copy of the whole encoder (projection, [CLS] and blocks) with a new head. With tune="probe" only
    the head is trained. For classes it is then a logistic regression, fitted without training steps, unless an option
    in `STEPPED`, such as drop, differs from its default. With `config.members` above 1 several networks are trained
    from different seeds, and their outputs are averaged. The average is better if the networks were also pre-trained
    from different seeds (`others`).

    Args:
        pretrained: a pipeline with the encoder; it is not changed.
        dataset: S series or arrays, all with labels.
        targets: [S] classes; numbers [S] or [S, outputs] for task="regression"; `survival.EVENT_TIME` [S] for
            task="survival".
        config: options of the fit; those of pre-training are not read.
        task: "classification", "regression" or "survival".
        validation: another data set and its targets, whose loss chooses the best epoch; None keeps the last weights.
        others: pre-trained networks from which the second and further networks start, `config.members` - 1 of them;
            with () all start from `pretrained`.
        ends: [S, k], k times for each series. In each epoch about half of the series, drawn anew, are cut off at one of
            theirs. None cuts none.
        schedule: called with (objective, examples, validation examples, settings) before each training; returns the
            settings with another number of steps. None leaves them as they are.
        how: optional keyword arguments of `training.fit`: folder, resume, on_step and on_resume.

    Returns:
        The result. Its pipeline predicts labels with the network (or all networks) alone. Its `finetuning` has the
        losses of the first network, and the seconds of all. Its `split` is None.

    Raises:
        InputError: labels that do not suit the task, such as a single class; a validation label that training lacks; a
            `pretrained` without a preprocessor, or trained on other columns or channels; a folder with another run.
        TrainingDiverged: losses or weights became infinite or NaN.
    """
    choose("task", task, tuple(LABELS))
    kind, preprocessor = LABELS[task], cast(Any, pretrained.preprocessor)
    if preprocessor is None:
        raise InputError(
            "the pre-trained model has no preprocessor, as it was not trained on a data set; give a model that was."
        )
    targets = kind.check(targets, len(dataset))
    kind.check_config(config, targets)
    labels = kind.fit(targets)
    preprocessor = preprocessor.with_static(dataset, config.static)
    encoded, held = labels.encode(targets), None
    if validation is not None:
        windows = preprocessor.windows(validation[0])
        preprocessor.check(windows.dataset)
        of_windows = labels.encode(validation[1])[windows.series]
        held = DatasetExamples(windows.dataset, preprocessor, seed=config.seed, targets=of_windows)
    pool = config.pool
    linear = config.tune == "probe" and kind is ClassLabels and not config.changed(*STEPPED)
    if pool == "auto":  # a mean would hide short events in a sound
        pool = "attention" if getattr(preprocessor, "sample_rate", None) is None and not linear else "max"
    windows = preprocessor.windows(dataset)
    preprocessor.check(windows.dataset)
    targets = encoded[windows.series]
    early = None if ends is None else _known_tokens(windows, ends, preprocessor)
    models, results = [], []
    starts = (pretrained.model, *(others or [pretrained.model] * ((config.members or 1) - 1)))
    sizes, static_features = encoder_of(pretrained.model).config, preprocessor.static_features
    for start, (one, options) in zip(starts, _of_members(config, config.members or 1, how), strict=True):
        # A new head, on an encoder with new weights that is replaced.
        model = build(lambda: labels.model(Encoder(sizes), pool, static_features), make_generator(one.seed, 1))
        model.encoder = copy_encoder(start, one).requires_grad_(config.tune != "probe")
        if linear:
            vectors = embed(replace(pretrained, model=model), windows.dataset)
            _fit_head(cast(Any, model.eval()), vectors, targets, config.class_weights == "balanced")
            models.append(model.requires_grad_(True))
            results.append(TrainResult())
            continue
        shown = {"targets": targets, "drop": config.drop, "noise": config.noise, "early": early}
        data = DatasetExamples(windows.dataset, preprocessor, seed=one.seed, **shown)
        objective = labels.objective(model, targets, config)  # class weights count windows, as batches do
        training = one.finetuning() if schedule is None else schedule(objective, data, held, one.finetuning())
        results.append(fit(objective, data, training, validation=held, **options))
        models.append(model.requires_grad_(True))
    model = models[0]
    model.others.extend(models[1:])
    result = replace(results[0], seconds=sum(each.seconds for each in results))
    made = {"preprocessor": preprocessor, "model": model, "labels": labels, "precision": config.precision}
    pipeline = replace(pretrained, partners=None, **made)
    return FitResult(pipeline, finetuning=result)


@torch.no_grad()
def _fit_head(model: Classifier, vectors: np.ndarray, classes: np.ndarray, balanced: bool) -> None:
    """Set the head's weights, in place, to those of a logistic regression on standardised vectors.

    Args:
        model: its norm is applied to the vectors, and its linear head gets the weights.
        vectors: [S, D] of S series, as the head reads them.
        classes: class numbers int [S], every class present.
        balanced: whether all classes count the same.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    normed = model.norm(torch.from_numpy(vectors)).double().numpy()
    scaler = StandardScaler().fit(normed)
    line = LogisticRegression(C=PENALTY, class_weight="balanced" if balanced else None, max_iter=1000)
    line.fit(scaler.transform(normed), classes)
    weight = line.coef_ / scaler.scale_
    weight = np.c_[weight, line.intercept_ - weight @ scaler.mean_]
    if model.classes == 2:  # there is one score, of the second class against the first
        weight = np.concatenate([0 * weight, weight])
    state = {"weight": torch.from_numpy(weight[:, :-1]), "bias": torch.from_numpy(weight[:, -1])}
    model.head.load_state_dict(state)  # which also makes them float32


def _known_tokens(windows: Windows, ends: np.ndarray, preprocessor: Any) -> np.ndarray:
    """Count the tokens that remain of each of W windows if its series ends at each of k times: int [W, k].

    Args:
        windows: pieces of S long series.
        ends: [S, k] the k times of each series; later observations are left out. The first observation of a window
            always stays.
        preprocessor: turns observations into tokens.
    """
    dataset, first = windows.dataset, np.zeros(len(windows.dataset.times), bool)
    first[dataset.offsets[:-1]] = True
    until = (np.repeat(times, dataset.lengths) for times in ends[windows.series].T)
    cut = (dataset.mask_observations(first | (dataset.times <= when)) for when in until)
    return np.stack([preprocessor.lengths(part) for part in cut], 1).astype(np.int64)


def copy_encoder(source: torch.nn.Module, config: FitConfig) -> Encoder:
    """Return a copy of an encoder, with the same weights, all of them trainable.

    Args:
        source: an encoder, or a model that has one.
        config: its `dropout` and `drop_path` are those of the copy.
    """
    encoder = encoder_of(source)
    with torch.device("meta"):  # draws no weights, which are replaced at once
        copied = Encoder(replace(encoder.config, dropout=config.dropout, drop_path=config.drop_path))
    copied.load_state_dict({name: weight.clone() for name, weight in encoder.state_dict().items()}, assign=True)
    return copied.requires_grad_(True)
