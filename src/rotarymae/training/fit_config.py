"""The settings of a training, and the one description of a fit: what the command and the estimators offer and refuse.

The options lie in groups, each a dataclass. `FitConfig` is all of them and checks them; the estimators inherit the
groups that concern them, and `rotarymae fit` shows each under its own heading. A new option is one field here, whose
docstring is its help, and one line in the method that reads it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rotarymae.config import (
    RANGES,
    SIZE_NAMES,
    DecoderAttention,
    HeadPool,
    LikelihoodKind,
    Precision,
    RoMAEConfig,
    Size,
    TargetLoss,
    mask_range,
)
from rotarymae.errors import InputError
from rotarymae.system.fields import check_fields

if TYPE_CHECKING:
    from rotarymae.masking import Masking

Optimizer = Literal["adamw", "sgd"]
# The strategies of `masking.MASKINGS`.
MaskingStrategy = Literal["auto", "ratio", "blocks", "rows", "channels", "future"]
Predicting = Literal["auto", "model", "features", "combined"]
Transform = Literal["robust", "standard", "asinh", "none"]
PRETRAIN_EPOCHS = 5
# By so much larger steps a head alone is trained: of 1, 10 and 30 the best on a part of PLAsTiCC's training objects
# (macro-F1 0.37, 0.48, 0.51 at 20 labels per class).
PROBE_FASTER = 30


# No generated repr and no generated comparison: the estimators that inherit these groups have scikit-learn's.
@dataclass(kw_only=True, repr=False, eq=False)
class LoopOptions:
    """The options that the trainings of one fit share, under the names that the command and the estimators offer.

    A new one is a field here, its range in `config.RANGES`, and the place that reads it.
    """

    base_lr: float = 1e-3
    """Both trainings: peak of the learning rate, which rises during warm-up and then falls to zero as a cosine. Lower
    it if the loss jumps."""
    warmup_steps: int | None = None
    """Both trainings: the learning rate rises over this many steps. Without it, over a tenth of all steps; raise it if
    the loss jumps early."""
    optimizer: Optimizer = "adamw"
    """Both trainings: AdamW with decoupled weight decay (adamw), or stochastic gradient descent with momentum (sgd).
    sgd is rarely needed."""
    weight_decay: float = 0.05
    """Both trainings: weight matrices decay at this rate; norms, biases and learned tokens do not. Raise it against
    overfitting."""
    gradient_clip: float | None = 1.0
    """Both trainings: a gradient over all weights with a larger norm is scaled down to this norm. Lower it if the loss
    jumps."""
    patience: int | None = None
    """Both trainings: stop after this many passes without a better validation loss. Without it, never early; set it to
    save time."""
    precision: Precision = "auto"
    """Both trainings and prediction: precision of matrix products. auto: bf16 (faster, coarser) where hardware supports
    it. Set fp32 for equal results on all machines."""
    compile: bool = False
    """Both trainings: compile the blocks of the model, which takes a minute. Set it for long runs."""
    log_every: int = 10
    """Both trainings: log.jsonl gets a line of losses every so many steps. Raise it for a smaller file."""


@dataclass(kw_only=True)
class TrainConfig(LoopOptions):
    """Settings of one training. Raises InputError for a value out of its range."""

    epochs: int = 20
    """Training makes this many passes over the examples."""
    epoch_steps: int | None = None
    """A pass ends after this many steps, though it has not seen every example; None sees all of them."""
    min_steps: int = 0
    """Training makes at least this many steps; small data get more epochs until they make as many."""
    batch_size: int | None = 64
    """A step sees this many examples; give either this or batch_tokens."""
    batch_tokens: int | None = None
    """A step sees this many tokens, padding included; give either this or batch_size."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's two running averages decay at these rates."""
    momentum: float = 0.9
    """SGD has this momentum."""
    warmup_fraction: float = 0.1
    """This share of all steps is warm-up when warmup_steps is None."""
    keep_best: bool = False
    """Training ends with the weights of the best validation loss instead of the last ones."""
    seed: int = 0
    """This number fixes order, masks, augmentation and dropout."""
    checkpoint_minutes: float = 1.0
    """A run that has a folder writes a checkpoint at least this often, in minutes."""
    checkpoint_steps: int | None = None
    """A checkpoint is written after this many steps, too; None goes by the clock alone."""
    max_skipped: int = 10
    """Training ends after this many steps were skipped for a non-finite loss or gradient."""

    def __post_init__(self) -> None:
        """Raise InputError for a setting of another type or out of its range."""
        if (self.batch_size is None) == (self.batch_tokens is None):
            given = "neither is given" if self.batch_size is None else "both are given"
            raise InputError(f"a step has batch_size (examples) or batch_tokens (tokens), and {given}; give one.")
        check_fields(self, RANGES)

    def passes(self, steps: int) -> int:
        """Return the number of passes, each of `steps` steps: `epochs`, or as many as make `min_steps` steps."""
        return max(self.epochs, math.ceil(self.min_steps / steps))


@dataclass(kw_only=True, repr=False, eq=False)
class ModelOptions:
    """The shape of the model, or the trained one to start from."""

    pretrained: str | None = None
    """Both trainings: start from this model (run folder, model directory or shipped name) and its scaling, to fine-tune
    it or, with --pretrain-epochs, pre-train it further."""
    size: Size = "light"
    """Both trainings: named size of a new encoder. Larger ones are slower and need more data."""
    embed_dim: int | None = None
    """Both trainings: width of a new encoder, in place of what --size sets. Rarely needed."""
    num_heads: int | None = None
    """Both trainings: number of attention heads of a new encoder, in place of what --size sets. Rarely needed."""
    depth: int | None = None
    """Both trainings: number of transformer blocks of a new encoder, instead of --size's. Raise it if much data is
    underfitted; more are slower."""
    decoder_embed_dim: int | None = None
    """Pre-training and prediction: width of the decoder, which interpolates. Without it 180, or the encoder's if that
    is narrower (light: 120). Rarely needed."""
    decoder_num_heads: int | None = None
    """Pre-training and prediction: number of attention heads of the decoder. Without it 3, or the encoder's if those
    are fewer (light: 2). Rarely needed."""
    decoder_depth: int | None = None
    """Pre-training and prediction: number of transformer blocks of the decoder, which interpolates. Without it 2;
    rarely needed."""
    decoder_attention: DecoderAttention = "context"
    """Pre-training and prediction: hidden tokens attend to visible ones alone (context), or to one another, too
    (joint). Set joint to repeat the paper."""
    likelihood: LikelihoodKind = "gaussian"
    """Pre-training and prediction: interpolation gives numbers alone (point), or distributions, normal (gaussian) or
    heavy-tailed (student_t). Set student_t for values with outliers."""
    neighbours: Literal["auto", "on", "off"] = "auto"
    """Pre-training and prediction: interpolation learns corrections to the line between neighbouring values (on), or
    values (off). auto: on, unless there are labels or positions."""
    cls_token: bool = True
    """Both trainings: a [CLS] token marks position 0; --no-cls-token leaves it out. Set that if only differences
    between positions should count."""


@dataclass(kw_only=True, repr=False, eq=False)
class ScalingOptions:
    """How times and values become positions and numbers near zero."""

    time_unit: float | None = None
    """Both trainings: times are divided by this number. Without it, by the training series' median gap; set it to scale
    as another run did."""
    time_origin: Literal["first", "zero"] = "first"
    """Both trainings: times count from each series' first observation (first), or stay as in the table (zero), for
    effects of the season or the calendar."""
    channel_spacing: float = 1.0
    """Both trainings: the model places channels on an axis next to time, this far apart (1 is one --time-unit). Set it
    to repeat another run."""
    join_times: bool = False
    """Both trainings: all channels of a time become one token, missing ones carried forward. Set it for many channels
    measured together."""
    channel_one_hot: bool = True
    """Both trainings: with --no-channel-one-hot channels are told apart by their positions (--channel-spacing) alone,
    not also by a one-hot vector. Rarely needed."""
    errors: tuple[str, ...] = ()
    """Reading: columns of the values' standard errors, in the order of --values. Name them if known: they weigh
    observations."""
    signal_to_noise: bool = True
    """Both trainings: the encoder also reads asinh(value / error) for a column NAME with errors in NAME_err. Turn it
    off if they mislead."""
    transforms: Mapping[str, Transform] | None = None
    """Both trainings: scaling by column, such as flux asinh: robust (default, by median), standard (by mean), asinh
    (for many orders of magnitude), or none."""


@dataclass(kw_only=True, repr=False, eq=False)
class MaskingOptions:
    """The observations that pre-training hides, and the score of their predictions."""

    masking: MaskingStrategy = "auto"
    """Pre-training: hide stretches (blocks), single tokens (ratio), times (rows), channels, or ends (future, to
    forecast). auto: blocks, or ratio for pictures and sounds."""
    mask_ratio: float | tuple[float, float] = (0.3, 0.8)
    """Pre-training: share of each series that is hidden; two numbers are a range, from which each series' share is
    drawn. Rarely needed."""
    beta: float | None = None
    """Pre-training: the loss weighs a value by its predicted variance to this power (beta-NLL). Without it 0.5; raise
    it for better means."""


@dataclass(kw_only=True, repr=False, eq=False)
class TrainingOptions(LoopOptions):
    """How the model is trained; fine-tuning uses the same numbers where it has none of its own."""

    pretrain_epochs: int | None = None
    """Pre-training: number of passes over the series. Without it 5, or 0 with --pretrained. Raise it if the loss still
    falls."""
    min_steps: int = 500
    """Both trainings: make at least this many steps, in more passes if the table is small; not with --minutes. Lower it
    for trials."""
    batch_size: int = 32
    """Both trainings: number of series per step. Lower it if memory does not suffice; --finetune-batch-size is for
    fine-tuning alone."""
    betas: tuple[float, float] | None = None
    """Both trainings: AdamW's two betas. Without them 0.9 0.95 in pre-training and 0.9 0.999 in fine-tuning; rarely
    needed."""
    validation_fraction: float = 0.15
    """Both trainings: share of the training series, of at least ten, set aside to choose the best pass and predictor. 0
    trains on all."""
    window: int | None = None
    """Both trainings and prediction: longer series are cut into windows of this many observations. Without it, those
    over 8,192. Lower it to save memory."""
    overlap: int | None = None
    """Both trainings and prediction: neighbouring windows share at least this many observations. Without it, a
    sixteenth of --window; rarely needed."""


@dataclass(kw_only=True, repr=False, eq=False)
class FinetuningOptions:
    """Options of fine-tuning alone."""

    finetune_epochs: int = 20
    """Fine-tuning: number of passes over the series; with --minutes, as many as fit into that time instead. Raise it if
    the loss still falls."""
    finetune_batch_size: int | None = None
    """Fine-tuning: number of series per step. Without it, that of --batch-size. Lower it if fine-tuning alone runs
    out of memory."""
    finetune_lr: float | None = None
    """Fine-tuning: peak of the learning rate. Without it --base-lr, or 30 times that with --tune probe. Lower it if the
    loss jumps."""
    loss: TargetLoss = "auto"
    """Fine-tuning: cross-entropy for classes, squared errors for numbers (auto), or absolute errors (absolute_error).
    Set the latter for numbers with outliers."""
    tune: Literal["full", "probe"] = "full"
    """Fine-tuning: train all weights (full), or the head alone (probe). Set probe for little time, or to judge what
    pre-training learnt."""
    predictor: Predicting = "auto"
    """Fine-tuning and prediction: the network (model), boosted trees on summary features (features), or all methods
    combined (combined). auto: what is best on validation series."""
    members: int | None = None
    """Fine-tuning: number of networks, whose predictions are averaged. Without it 1, or 3 with a rare class and no
    --minutes. More take longer."""
    pool: Literal["auto", HeadPool] = "auto"
    """Fine-tuning and prediction: the head reads [CLS] (cls), or the mean, maximum or attention-weighted mean of
    tokens. auto: attention; for sounds, maximum. Rarely needed."""
    static: tuple[str, ...] = ()
    """Fine-tuning and prediction: columns with one value per series, such as age, that the head reads: numbers or
    categories, some of which may be missing."""
    drop: float = 0.5
    """Fine-tuning: each pass drops a random share of observations, up to this one. Raise it against overfitting; 0
    drops none."""
    noise: float = 0.05
    """Fine-tuning: normal noise of this standard deviation is added to standardised values. Raise it against
    overfitting; 0 adds none."""
    early: bool = False
    """Fine-tuning: also learn from series cut short at random, in the network and in boosting. Set it to predict series
    that are not complete yet."""
    dropout: float = 0.0
    """Fine-tuning: share of attention weights and hidden units that is dropped at random. Raise it against
    overfitting."""
    drop_path: float = 0.0
    """Fine-tuning: rate at which the last block is skipped at random, earlier ones less often (stochastic depth). Raise
    it against overfitting."""


@dataclass(kw_only=True, repr=False, eq=False)
class ClassificationOptions:
    """Options of classification alone."""

    label_smoothing: float = 0.0
    """Fine-tuning: each label gives this share of its probability to all classes equally. Raise it if some labels are
    wrong."""
    class_weights: Literal["none", "balanced"] = "none"
    """Fine-tuning: the loss weighs all series equally (none), or rare classes more, by inverse counts (balanced). Set
    balanced if rare classes are missed."""
    decide: Literal["auto", "accuracy", "f1", "balanced", "cost"] = "auto"
    """Prediction: choose classes for accuracy, best f1, equal frequencies (balanced) or least --costs (cost). auto: f1
    if one of two classes has under a fifth."""
    costs: tuple[float, ...] = ()
    """Prediction: with --decide cost, what misclassifying a series of each class costs, in order of the sorted classes.
    For errors that are not equally bad."""


@dataclass(kw_only=True, repr=False, eq=False)
class RunOptions:
    """Options of the run."""

    seed: int = 0
    """Both trainings: fixes every random choice: split, order, masks, augmentation, first weights. Vary it to see how
    much results vary."""
    minutes: float | None = None
    """Both trainings: the whole run takes about this many minutes, whatever options of epochs say. Set it if time is
    limited."""
    checkpoint_minutes: float = 1.0
    """Both trainings: the state is saved this often, in minutes, for --resume. Lower it if the run may be killed."""


@dataclass(kw_only=True)
class FitConfig(
    RunOptions, ClassificationOptions, FinetuningOptions, TrainingOptions, MaskingOptions, ScalingOptions, ModelOptions
):
    """All options of a fit; the defaults suit tables of a few thousand series on a CPU.

    Raises:
        InputError: a value out of its range, or options that cannot work together; nothing has been trained then.
    """

    def __post_init__(self) -> None:
        """Check every option, alone and together with others, and make the settings of both trainings.

        Raises InputError.
        """
        check_fields(self, RANGES)
        mask_range(self.mask_ratio)
        if self.window is None and self.overlap is not None:
            raise InputError(
                f"overlap={self.overlap} needs a length of windows; give window, too.", settings=[("window", 4096)]
            )
        if self.window is not None and self.shared >= self.window:
            raise InputError(f"overlap is {self.overlap}; wanted less than the window, {self.window}.")
        if self.beta is not None and self.likelihood == "point":
            raise InputError(
                f"beta ({self.beta}) weighs by the predicted variance, and likelihood={self.likelihood!r} has none; "
                "leave it out, or use likelihood='gaussian'."
            )
        if self.pretrained is None and self.pretrain_epochs == 0:
            raise InputError("pretrain_epochs is 0, and a new model is always pre-trained; wanted at least 1.")
        self._check_pretrained()
        if self.patience is not None and not self.validation_fraction:
            raise InputError(
                f"patience={self.patience} waits for a better validation loss, and validation_fraction=0 leaves no "
                "series for one; set aside 0.15, for example."
            )
        if self.pool == "cls" and not self.cls_token:
            raise InputError("pool='cls' reads a [CLS] token and cls_token=False leaves it out; use pool='mean'.")
        if self.optimizer == "sgd" and self.betas is not None:
            raise InputError(f"betas={self.betas} are AdamW's; leave them out with optimizer='sgd'.")

    @property
    def shared(self) -> int:
        """Number of observations that two neighbouring windows share."""
        return (self.window or 0) // 16 if self.overlap is None else self.overlap

    def _check_pretrained(self) -> None:
        """Raise InputError for changed options that the trained model (`pretrained`) decides, such as its sizes.

        Without `pretrained` nothing is checked.
        """
        if self.pretrained is None:
            return
        groups = (ModelOptions, ScalingOptions) if self.pretrains else (ModelOptions, ScalingOptions, MaskingOptions)
        options = [field for group in groups for field in dataclasses.fields(group) if field.name != "pretrained"]
        changed = [field.name for field in options if getattr(self, field.name) != field.default]
        if changed:
            instead = ", or go on pre-training it by pretrain_epochs" if set(changed) <= _names(MaskingOptions) else ""
            are, them = ("are set", "them") if len(changed) > 1 else ("is set", "it")
            raise InputError(f"{', '.join(changed)} {are} by the pretrained model; leave {them} out{instead}.")

    @property
    def pretrains(self) -> bool:
        """Whether there is any pre-training: always of a new model, of a trained one with `pretrain_epochs` above 0."""
        return self.pretrained is None or bool(self.pretrain_epochs)

    @property
    def reconstruction_beta(self) -> float:
        """Return the exponent β of the β-NLL loss in pre-training; 0 for a likelihood without a spread."""
        if self.likelihood == "point":
            return 0.0
        return 0.5 if self.beta is None else self.beta

    def changed(self, names: Iterable[str]) -> list[str]:
        """Return those of the options `names` that differ from their defaults, in the same order."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return [name for name in names if getattr(self, name) != defaults[name]]

    def refuse_changed(self, names: Iterable[str], why: str) -> None:
        """Raise InputError if one of the options `names` differs from its default.

        Args:
            why: the reason, which follows the names of the changed options in the message.
        """
        changed = self.changed(names)
        if changed:
            raise InputError(f"{', '.join(changed)}: {why}; leave these options out.")

    def pretraining(self) -> TrainConfig:
        """Return the settings of pre-training."""
        epochs = self.pretrain_epochs or PRETRAIN_EPOCHS
        return self._training(epochs=epochs, betas=self.betas or (0.9, 0.95))

    def finetuning(self) -> TrainConfig:
        """Return the settings of fine-tuning."""
        rate = self.finetune_lr or (PROBE_FASTER * self.base_lr if self.tune == "probe" else self.base_lr)
        batch_size, betas = self.finetune_batch_size or self.batch_size, self.betas or (0.9, 0.999)
        return self._training(epochs=self.finetune_epochs, betas=betas, batch_size=batch_size, base_lr=rate)

    def _training(self, **of_stage: Any) -> TrainConfig:
        """Return a TrainConfig that keeps the best epoch, with the options of equal name and those of `of_stage`.

        Where both have an option, that of `of_stage` counts.
        """
        ours, theirs = ({field.name for field in dataclasses.fields(kind)} for kind in (FitConfig, TrainConfig))
        same = {name: getattr(self, name) for name in ours & theirs}
        return TrainConfig(**{**same, **of_stage}, keep_best=True)

    def strategy(self, kind: str) -> Masking:
        """Return the masking strategy of pre-training for data of a kind, "observations" or "patches".

        Masking "auto" becomes "blocks" for observations and "ratio" for patches.
        """
        from rotarymae.masking import Masking

        by_kind = "blocks" if kind == "observations" else "ratio"
        return Masking(by_kind if self.masking == "auto" else self.masking, self.mask_ratio)

    def model_config(self, axes: int, features: int, input_features: int = 0) -> RoMAEConfig:
        """Return the configuration of a masked autoencoder.

        Args:
            axes: number of position axes.
            features: values per token.
            input_features: further inputs per token, which are not predicted.

        Raises:
            InputError: sizes that do not divide; the message gives the numbers.
        """
        changes: dict[str, Any] = {name: getattr(self, name) for name in SIZE_NAMES if getattr(self, name) is not None}
        for name in ("decoder_attention", "likelihood", "cls_token"):
            changes[name] = getattr(self, name)
        changes["neighbours"] = self.neighbours == "on"
        return RoMAEConfig.named(self.size, axes=axes, features=features, input_features=input_features, **changes)


def _names(group: type) -> set[str]:
    """Return the names of the fields of a group of options."""
    return {field.name for field in dataclasses.fields(group)}
