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
from typing import TYPE_CHECKING, Any, Literal, get_args

from rotarymae.config import (
    DecoderAttention,
    HeadPool,
    LikelihoodKind,
    Precision,
    RoMAEConfig,
    Size,
    TargetLoss,
    check_beta,
    mask_range,
    predicts_spread,
)
from rotarymae.errors import InputError, check_choices, check_number, check_settings, check_share, check_whole, choose

if TYPE_CHECKING:
    from rotarymae.masking import Masking

Optimizer = Literal["adamw", "sgd"]
# How `TrainConfig` checks its fields.
RULES: list[tuple[Any, tuple[str, ...], dict[str, Any]]] = [
    (check_whole, ("epochs", "log_every"), {"least": 1}),
    (check_whole, ("min_steps", "seed", "max_skipped"), {"least": 0}),
    (check_whole, ("batch_size", "batch_tokens", "epoch_steps", "patience"), {"least": 1, "optional": True}),
    (check_whole, ("checkpoint_steps",), {"least": 1, "optional": True}),
    (check_whole, ("warmup_steps",), {"least": 0, "optional": True}),
    (check_number, ("base_lr",), {"allowed": "a positive number", "above": 0}),
    (check_number, ("gradient_clip",), {"allowed": "a positive number or None", "above": 0, "optional": True}),
    (check_number, ("weight_decay", "checkpoint_minutes"), {"allowed": "a number of at least 0", "least": 0}),
    (check_share, ("momentum", "warmup_fraction"), {}),
]
# The strategies of `masking.MASKINGS`.
MaskingStrategy = Literal["auto", "ratio", "blocks", "rows", "channels", "tubes", "future"]
Predicting = Literal["auto", "model", "features", "combined"]
Transform = Literal["robust", "standard", "asinh", "none"]
PRETRAIN_EPOCHS = 5
# By so much larger steps a head alone is trained: of 1, 10 and 30 the best on a part of PLAsTiCC's training objects
# (macro-F1 0.37, 0.48, 0.51 at 20 labels per class).
PROBE_FASTER = 30
OVERRIDES = ("embed_dim", "num_heads", "depth", "decoder_embed_dim", "decoder_num_heads", "decoder_depth")


# No generated repr and no generated comparison: the estimators that inherit these groups have scikit-learn's.
@dataclass(kw_only=True, repr=False, eq=False)
class LoopOptions:
    """The options that the trainings of one fit share, under the names that the command and the estimators offer.

    A new one is a field here, a line in `TrainConfig.__post_init__`, and the place that reads it.
    """

    base_lr: float = 1e-3
    """Peak learning rate of pre-training and fine-tuning. It is reached after warm-up, then falls to zero as a
    cosine."""
    warmup_steps: int | None = None
    """Number of steps over which the learning rate of each training rises to its peak. Default: a tenth of all
    steps."""
    optimizer: Optimizer = "adamw"
    """Optimiser of pre-training and fine-tuning: AdamW, or stochastic gradient descent with momentum (sgd)."""
    weight_decay: float = 0.05
    """Decay rate of the weight matrices in each training; norms, biases and learned tokens do not decay."""
    gradient_clip: float | None = 1.0
    """Largest norm of the whole gradient in each training step; a larger gradient is scaled down to it."""
    patience: int | None = None
    """Stop a training after this many passes without a better validation loss. Default: never stop early."""
    precision: Precision = "auto"
    """Number format of matrix products in training and prediction; auto is bf16 on hardware that has units for it."""
    compile: bool = False
    """Compile the blocks of the model with torch.compile before training. It takes a minute and pays in long runs."""
    log_every: int = 10
    """Number of steps between two lines of losses in log.jsonl, in each training."""


@dataclass(kw_only=True)
class TrainConfig(LoopOptions):
    """Settings of one training. Raises InputError for a value out of its range."""

    epochs: int = 20
    """Number of passes over the examples."""
    epoch_steps: int | None = None
    """Number of steps after which a pass ends, even if it has not seen every example; None sees all of them."""
    min_steps: int = 0
    """Least number of steps of the training; small data get more passes until they reach it."""
    batch_size: int | None = 64
    """Number of examples in a step; give either this or batch_tokens."""
    batch_tokens: int | None = None
    """Number of tokens in a step, padding included; give either this or batch_size."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Decay rates of AdamW's two running averages."""
    momentum: float = 0.9
    """Momentum of SGD."""
    warmup_fraction: float = 0.1
    """Share of all steps that are warm-up if warmup_steps is None."""
    keep_best: bool = False
    """Keep the weights of the best validation loss at the end, instead of the last ones."""
    seed: int = 0
    """Seed of order, masks, augmentation and dropout."""
    checkpoint_minutes: float = 1.0
    """Longest time between two checkpoints of a run with a folder, in minutes."""
    checkpoint_steps: int | None = None
    """Number of steps after which a checkpoint is also written; None goes by the clock alone."""
    max_skipped: int = 10
    """Number of steps that may be skipped for a non-finite loss or gradient before training ends."""

    def __post_init__(self) -> None:
        """Check every setting. Raises InputError."""
        if (self.batch_size is None) == (self.batch_tokens is None):
            raise InputError("give either batch_size (examples) or batch_tokens (tokens), not both and not neither.")
        check_settings(self, *RULES)
        if self.seed >= 2**64:
            raise InputError(f"seed is {self.seed}; wanted a whole number below 2^64.")
        if not isinstance(self.betas, tuple | list) or len(self.betas) != 2:
            raise InputError(f"betas is {self.betas!r}; wanted two numbers.")
        for i, rate in enumerate(self.betas):
            check_share(f"betas[{i}]", rate)
        for name in ("keep_best", "compile"):
            if type(getattr(self, name)) is not bool:
                raise InputError(f"{name} is {getattr(self, name)!r}; wanted True or False.")
        check_choices(self)

    def passes(self, steps: int) -> int:
        """Return the number of passes that training makes, each of this many steps."""
        return max(self.epochs, math.ceil(self.min_steps / steps))


@dataclass(kw_only=True, repr=False, eq=False)
class ModelOptions:
    """The shape of the model, or the trained one to start from."""

    pretrained: str | None = None
    """Trained model to start from: a run folder of `fit`, a model directory, or a shipped model. It sets shape and
    scaling. Default: random weights."""
    size: Size = "light"
    """Named size of a new model. Larger ones are slower and need more data."""
    embed_dim: int | None = None
    """Width of a new encoder. Default: as set by `size`."""
    num_heads: int | None = None
    """Number of attention heads of a new encoder. Default: as set by `size`."""
    depth: int | None = None
    """Number of transformer blocks of a new encoder; more are slower. Default: as set by `size`."""
    decoder_embed_dim: int | None = None
    """Width of a new decoder. Default: 180, or the width of a narrower encoder (light: 120)."""
    decoder_num_heads: int | None = None
    """Number of attention heads of a new decoder. Default: 3, or the number of a narrower encoder (light: 2)."""
    decoder_depth: int | None = None
    """Number of transformer blocks of a new decoder. Default: 2."""
    decoder_attention: DecoderAttention = "context"
    """Decoder queries attend to visible tokens only (context), or also to one another (joint), as in the paper."""
    likelihood: LikelihoodKind = "gaussian"
    """Form of predicted values: a value without a band (point), a normal distribution (gaussian), or a heavy-tailed
    one (student_t)."""
    neighbours: Literal["auto", "on", "off"] = "auto"
    """Let interpolation correct the straight line between the nearest values (on); auto is off with labels or further
    positions."""
    cls_token: bool = True
    """Add a [CLS] token at position 0. Without it, the model sees only differences between positions."""


@dataclass(kw_only=True, repr=False, eq=False)
class ScalingOptions:
    """How times and values become positions and numbers near zero."""

    time_unit: float | None = None
    """Unit by which times are divided before the model reads them; set a smaller one for structure on shorter times.
    Default: the median gap of the training series."""
    time_origin: Literal["first", "zero"] = "first"
    """Times count from each series' first observation (first), or from the table's own zero (zero)."""
    channel_spacing: float = 1.0
    """Distance of neighbouring channels on the position axis of channels, in units of `time_unit`."""
    join_times: bool = False
    """Make one token of all channels at one time, with missing ones carried forward; for channels that are measured
    together."""
    channel_one_hot: bool = True
    """Give the encoder the channel also as a one-hot vector (2 to 64 channels), not only as a position."""
    errors: tuple[str, ...] = ()
    """Columns with the standard errors of the values, in the order of the values; exact observations weigh more in
    pre-training. Default: none."""
    signal_to_noise: bool = True
    """Give the encoder asinh(value / error) as well, for a column NAME whose errors are in a column NAME_err."""
    transforms: Mapping[str, Transform] | None = None
    """Scaling of single columns: robust, standard, asinh (compressed), or none. Default: robust, with asinh for heavy
    tails."""


@dataclass(kw_only=True, repr=False, eq=False)
class MaskingOptions:
    """The observations that pre-training hides, and the score of their predictions."""

    masking: MaskingStrategy = "auto"
    """Part of each series that pre-training hides: stretches (blocks), single tokens (ratio), times (rows), channels,
    tubes, or the ends (future); auto is blocks for series, ratio for pictures and sounds."""
    mask_ratio: float | tuple[float, float] = (0.3, 0.8)
    """Share of each series that pre-training hides; with two numbers, the share is drawn between them for each
    series."""
    beta: float | None = None
    """Power of the predicted variance by which values are weighted in the pre-training loss (beta-NLL). Default:
    0.5."""


@dataclass(kw_only=True, repr=False, eq=False)
class TrainingOptions(LoopOptions):
    """How the model is trained; fine-tuning uses the same numbers where it has none of its own."""

    pretrain_epochs: int | None = None
    """Number of pre-training passes over the series; with `minutes`, as many as fit. Default: 5, or 0 from a trained
    model."""
    min_steps: int = 500
    """Least number of steps of each training, unless `minutes` is set; small tables get more passes until they reach
    it."""
    batch_size: int = 32
    """Number of series in a step of pre-training, and of fine-tuning unless `finetune_batch_size` is set."""
    betas: tuple[float, float] | None = None
    """Decay rates of AdamW's two running averages, for both trainings. Default: 0.9 0.95 in pre-training, 0.9 0.999 in
    fine-tuning."""
    validation_fraction: float = 0.15
    """Share of the training series that is set aside to choose the best epoch, if there are at least ten series."""
    window: int | None = None
    """Number of observations of the windows into which longer series are cut. Default: only series over 8,192 are
    cut."""
    overlap: int | None = None
    """Least number of observations that neighbouring windows share. Default: a sixteenth of the window."""


@dataclass(kw_only=True, repr=False, eq=False)
class FinetuningOptions:
    """Options of fine-tuning alone."""

    finetune_epochs: int = 20
    """Number of fine-tuning passes over the labelled series; with `minutes`, as many as fit."""
    finetune_batch_size: int | None = None
    """Number of series in a step of fine-tuning. Default: as in pre-training."""
    finetune_lr: float | None = None
    """Peak learning rate of fine-tuning. Default: `base_lr`, or 30 times that with `tune=probe`."""
    loss: TargetLoss = "auto"
    """Loss of fine-tuning: cross-entropy for classes and squared errors for numbers (auto), or absolute errors for
    numbers."""
    tune: Literal["full", "probe"] = "full"
    """Weights that fine-tuning trains: all (full), or only the head on a frozen encoder (probe)."""
    predictor: Predicting = "auto"
    """Method that predicts labels: the network (model), boosted trees on features (features), or all combined; auto
    chooses by validation."""
    members: int | None = None
    """Number of networks to fine-tune and average. Default: 1, or 3 if a class of two is rare and `minutes` is not
    set."""
    pool: Literal["auto", HeadPool] = "auto"
    """How the head summarises tokens: mean, max, the [CLS] token (cls), or attention weights; auto is max for sounds,
    else attention."""
    static: tuple[str, ...] = ()
    """Columns with one value per series, such as age, which fine-tuning and prediction also read: numbers or
    categories; values may be missing. Default: none."""
    drop: float = 0.5
    """Largest share of observations that each pass of fine-tuning drops at random, against overfitting."""
    noise: float = 0.05
    """Standard deviation of the normal noise that fine-tuning adds to standardised values, against overfitting."""
    early: bool = False
    """Train fine-tuning and boosting also on series that are cut short at random, to predict incomplete series."""
    dropout: float = 0.0
    """Share of attention weights and hidden units that fine-tuning sets to zero (dropout)."""
    drop_path: float = 0.0
    """Rate at which fine-tuning skips the last block; earlier blocks have lower rates (stochastic depth)."""


@dataclass(kw_only=True, repr=False, eq=False)
class ClassificationOptions:
    """Options of classification alone."""

    label_smoothing: float = 0.0
    """Share of the probability of each label that fine-tuning spreads equally over all classes."""
    class_weights: Literal["none", "balanced"] = "none"
    """Weights of series in the loss of fine-tuning: equal (none), or larger for rare classes, by the inverse of their
    counts (balanced)."""
    decide: Literal["auto", "accuracy", "f1", "balanced", "cost"] = "auto"
    """Rule that picks the predicted class: the most probable (accuracy), best F1 (f1), as if classes were equally
    frequent (balanced), or least cost (cost); auto is f1 if one of two classes has less than a fifth."""
    costs: tuple[float, ...] = ()
    """With `decide=cost`: the cost of misclassifying a series of each class, in the order of the sorted classes.
    Default: none."""


@dataclass(kw_only=True, repr=False, eq=False)
class RunOptions:
    """Options of the run."""

    seed: int = 0
    """Seed of the split, the order, the masks, the augmentation and the first weights."""
    minutes: float | None = None
    """Time that the whole run takes, in minutes, whatever the numbers of epochs. Default: by epochs."""
    checkpoint_minutes: float = 1.0
    """Time between two saved states of a run, in minutes; an interrupted run resumes from the last one."""


@dataclass(kw_only=True)
class FitConfig(
    RunOptions, ClassificationOptions, FinetuningOptions, TrainingOptions, MaskingOptions, ScalingOptions, ModelOptions
):
    """All options of a fit; the defaults suit tables of a few thousand series on a CPU.

    Raises:
        InputError: a value out of its range, or options that cannot work together; nothing has been trained then.
    """

    def __post_init__(self) -> None:
        """Check every option, alone and together with others. Raises InputError."""
        check_choices(self)
        for column, transform in (self.transforms or {}).items():
            choose(f"the transform of {column!r}", transform, get_args(Transform))
        positive = {"allowed": "a positive number", "above": 0}
        check_settings(
            self,
            (check_share, ("dropout", "drop_path", "drop", "label_smoothing", "validation_fraction"), {}),
            (check_number, ("noise",), {"allowed": "a number of at least 0", "least": 0}),
            (check_number, ("channel_spacing",), positive),
            (check_number, ("minutes", "time_unit"), positive | {"optional": True}),
            (check_whole, ("members",), {"least": 1, "optional": True}),
        )
        self._check_windows()
        mask_range(self.mask_ratio)
        if self.beta is not None and not predicts_spread(self.likelihood):
            raise InputError(f"beta ({self.beta}) weights by the predicted variance; leave it out, or use a gaussian.")
        check_beta(self.reconstruction_beta)
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
        made = {}
        for stage, make in (("pre-training", self._make_pretraining), ("fine-tuning", self._make_finetuning)):
            try:
                made[stage] = make()
            except InputError as error:
                raise error.within(stage) from None
        self._stages: dict[str, TrainConfig] = made

    def _check_windows(self) -> None:
        """Raise InputError unless window and overlap fit together."""
        if self.window is None:
            if self.overlap is not None:
                raise InputError(f"overlap={self.overlap} needs windows; set window, too.", settings=[("window", 4096)])
            return
        check_whole("window", self.window, 2)
        if type(self.shared) is not int or not 0 <= self.shared < self.window:
            raise InputError(f"overlap is {self.overlap!r}; wanted a whole number from 0 to less than the window.")

    @property
    def shared(self) -> int:
        """Number of observations that two neighbouring windows share."""
        return (self.window or 0) // 16 if self.overlap is None else self.overlap

    def _check_pretrained(self) -> None:
        """Raise InputError for options that the trained model (`pretrained`) decides, such as its sizes."""
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
        """Whether there is any pre-training: not of a trained model, unless its epochs are given."""
        return self.pretrained is None or bool(self.pretrain_epochs)

    @property
    def reconstruction_beta(self) -> float:
        """Return the exponent β of the β-NLL loss in pre-training; 0 for a likelihood without a spread."""
        if not predicts_spread(self.likelihood):
            return 0.0
        return 0.5 if self.beta is None else self.beta

    def changed(self, names: Iterable[str]) -> list[str]:
        """Return those of these options that differ from their defaults."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return [name for name in names if getattr(self, name) != defaults[name]]

    def refuse_changed(self, names: Iterable[str], why: str) -> None:
        """Raise InputError where one of these options differs from its default; `why` ends the message."""
        changed = self.changed(names)
        if changed:
            raise InputError(f"{', '.join(changed)}: {why}; leave these options out.")

    def pretraining(self) -> TrainConfig:
        """The settings of pre-training."""
        return self._stages["pre-training"]

    def finetuning(self) -> TrainConfig:
        """The settings of fine-tuning."""
        return self._stages["fine-tuning"]

    def _make_pretraining(self) -> TrainConfig:
        epochs = PRETRAIN_EPOCHS if self.pretrain_epochs is None or not self.pretrains else self.pretrain_epochs
        betas = (0.9, 0.95) if self.betas is None else self.betas
        return self._training(epochs=epochs, betas=betas)

    def _make_finetuning(self) -> TrainConfig:
        """Return the settings of the fine-tuning."""
        betas = (0.9, 0.999) if self.betas is None else self.betas
        rate = self.finetune_lr
        if rate is None and self.tune == "probe":
            rate = PROBE_FASTER * self.base_lr
        changes = {"batch_size": self.finetune_batch_size, "base_lr": rate}
        given = {name: value for name, value in changes.items() if value is not None}
        return self._training(epochs=self.finetune_epochs, betas=betas, **given)

    def _training(self, **of_stage: Any) -> TrainConfig:
        """Return a TrainConfig with the options of equal name, and with those of the stage."""
        ours, theirs = ({field.name for field in dataclasses.fields(kind)} for kind in (FitConfig, TrainConfig))
        same = {name: getattr(self, name) for name in ours & theirs}
        return TrainConfig(**{**same, **of_stage}, keep_best=True)

    def strategy(self, kind: str) -> Masking:
        """Return the masking strategy of pre-training for data of this kind ("observations" or "patches")."""
        from rotarymae.masking import Masking

        by_kind = "blocks" if kind == "observations" else "ratio"
        return Masking.named(by_kind if self.masking == "auto" else self.masking, self.mask_ratio)

    def model_config(self, axes: int, features: int, input_features: int = 0) -> RoMAEConfig:
        """Return the configuration of a masked autoencoder.

        Args:
            axes: number of position axes.
            features: values per token.
            input_features: further inputs per token, which are not predicted.

        Raises:
            InputError: sizes that do not divide; the message gives the numbers.
        """
        changes: dict[str, Any] = {name: getattr(self, name) for name in OVERRIDES if getattr(self, name) is not None}
        for name in ("decoder_attention", "likelihood", "cls_token"):
            changes[name] = getattr(self, name)
        changes["neighbours"] = self.neighbours == "on"
        return RoMAEConfig.named(self.size, axes=axes, features=features, input_features=input_features, **changes)


def _names(group: type) -> set[str]:
    return {field.name for field in dataclasses.fields(group)}
