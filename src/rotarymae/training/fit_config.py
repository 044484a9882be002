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
    """The learning rate rises linearly to this peak during warm-up and then falls to zero as a cosine."""
    warmup_steps: int | None = None
    """The learning rate rises over this many steps; without it, over a tenth of all steps."""
    optimizer: Optimizer = "adamw"
    """The optimiser is AdamW, with decoupled weight decay, or stochastic gradient descent with momentum (sgd)."""
    weight_decay: float = 0.05
    """Weight matrices decay at this rate; norms, biases and learned tokens do not decay."""
    gradient_clip: float | None = 1.0
    """A gradient with a larger norm is scaled down to this norm."""
    patience: int | None = None
    """Training stops after this many passes without a better validation loss; without it, never early."""
    precision: Precision = "auto"
    """Matrix products are computed in this precision; "auto" takes bf16 where the hardware has units for it."""
    compile: bool = False
    """Compile the blocks of the model, which takes a minute and pays in long runs."""
    log_every: int = 10
    """The file log.jsonl gets a line of losses after every this many steps."""


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
        """Return the number of passes, each of `steps` steps: `epochs`, or as many as make `min_steps` steps."""
        return max(self.epochs, math.ceil(self.min_steps / steps))


@dataclass(kw_only=True, repr=False, eq=False)
class ModelOptions:
    """The shape of the model, or the trained one to start from."""

    pretrained: str | None = None
    """Training starts from this model: a run folder of `fit` or a model directory, which brings shape and scaling."""
    size: Size = "light"
    """The encoder has this named size; a larger one is slower and needs more data."""
    embed_dim: int | None = None
    """The encoder has this width instead of the named size's."""
    num_heads: int | None = None
    """The encoder has this many attention heads instead of the named size's."""
    depth: int | None = None
    """The encoder has this many blocks instead of the named size's."""
    decoder_embed_dim: int | None = None
    """The decoder has this width; without it 180, or the width of a narrower encoder (light: 120)."""
    decoder_num_heads: int | None = None
    """The decoder has this many heads; without it 3, or the number of a narrower encoder (light: 2)."""
    decoder_depth: int | None = None
    """The decoder has this many blocks; without it 2."""
    decoder_attention: DecoderAttention = "context"
    """Decoder queries attend to visible tokens only (context), or also to one another (joint), as in the paper."""
    likelihood: LikelihoodKind = "gaussian"
    """Interpolation predicts a value (point), or a distribution, as bands need: normal (gaussian) or heavy-tailed
    (student_t)."""
    neighbours: Literal["auto", "on", "off"] = "auto"
    """Interpolation corrects the line between nearest values (on); auto: unless there are labels or positions."""
    cls_token: bool = True
    """A [CLS] token marks position 0; turned off, the model sees only differences between positions."""


@dataclass(kw_only=True, repr=False, eq=False)
class ScalingOptions:
    """How times and values become positions and numbers near zero."""

    time_unit: float | None = None
    """Times are divided by this unit; without it, by the median gap of the training series, which the report gives."""
    time_origin: Literal["first", "zero"] = "first"
    """Times count from each series' first observation, or from the table's own zero."""
    channel_spacing: float = 1.0
    """Neighbouring channels lie this far apart on the position axis of channels, in units of time_unit."""
    join_times: bool = False
    """All channels of one time are one token, missing ones carried forward: for many channels measured together."""
    channel_one_hot: bool = True
    """The encoder also reads the channel as a one-hot vector (2 to 64 channels); turned off, only as a position."""
    errors: tuple[str, ...] = ()
    """These columns hold the standard errors of the value columns, in their order; they weigh observations."""
    signal_to_noise: bool = True
    """The encoder also reads asinh(value / error) for a column NAME with errors in NAME_err; turned off, not."""
    transforms: Mapping[str, Transform] | None = None
    """Columns are scaled by standard, asinh (compressed), none, or by default robust (asinh for heavy tails only)."""


@dataclass(kw_only=True, repr=False, eq=False)
class MaskingOptions:
    """The observations that pre-training hides, and the score of their predictions."""

    masking: MaskingStrategy = "auto"
    """Pre-training hides stretches (blocks), single tokens (ratio), times (rows), channels, tubes or ends (future)."""
    mask_ratio: float | tuple[float, float] = (0.3, 0.8)
    """Pre-training hides this share of each series; with two numbers, a share between them drawn per series."""
    beta: float | None = None
    """The loss of pre-training weighs a value by its predicted variance to this power (beta-NLL); without it 0.5."""


@dataclass(kw_only=True, repr=False, eq=False)
class TrainingOptions(LoopOptions):
    """How the model is trained; fine-tuning uses the same numbers where it has none of its own."""

    pretrain_epochs: int | None = None
    """Pre-training makes this many passes over the series; without it 5, or 0 from a trained model."""
    min_steps: int = 500
    """Each training makes at least this many steps, unless minutes are given; small tables get more passes."""
    batch_size: int = 32
    """Each training step sees this many series."""
    betas: tuple[float, float] | None = None
    """AdamW's averages decay at these rates; without them 0.9 and 0.95, in fine-tuning 0.9 and 0.999."""
    validation_fraction: float = 0.15
    """This share of the training series is set aside and chooses the best epoch, if there are at least ten series."""
    window: int | None = None
    """Longer series are cut into windows of this many observations; without it, those over 8,192."""
    overlap: int | None = None
    """Neighbouring windows share at least this many observations; without it, a sixteenth of the window."""


@dataclass(kw_only=True, repr=False, eq=False)
class FinetuningOptions:
    """Options of fine-tuning alone."""

    finetune_epochs: int = 20
    """Fine-tuning makes this many passes over the series, or as many as fit into minutes."""
    finetune_batch_size: int | None = None
    """Each step of fine-tuning sees this many series; without it, as many as in pre-training."""
    finetune_lr: float | None = None
    """The learning rate of fine-tuning peaks at this; without it at base_lr, or at 30 times that for tune=probe."""
    loss: TargetLoss = "auto"
    """Fine-tuning minimises cross-entropy for classes, squared errors for numbers (auto), or absolute errors."""
    tune: Literal["full", "probe"] = "full"
    """Fine-tuning trains all weights (full), or the head alone (probe)."""
    predictor: Predicting = "auto"
    """The network predicts (model), boosted trees (features), or all methods combined; auto chooses by validation."""
    members: int | None = None
    """Fine-tuning trains so many networks and averages them; if left out 1, or 3 of a rare class without --minutes."""
    pool: Literal["auto", HeadPool] = "auto"
    """The head reads [CLS], or the mean, maximum or attention-weighted mean of tokens; auto: attention, sounds max."""
    static: tuple[str, ...] = ()
    """The prediction also reads these columns with one value per series: numbers or categories, some missing."""
    drop: float = 0.5
    """Each pass of fine-tuning drops a random share of observations, up to this, against overfitting."""
    noise: float = 0.05
    """Fine-tuning adds normal noise of this standard deviation to standardised values, against overfitting."""
    early: bool = False
    """Fine-tuning and boosting also learn from series cut short at random, to predict incomplete series."""
    dropout: float = 0.0
    """Fine-tuning drops this share of the attention weights and of the hidden units."""
    drop_path: float = 0.0
    """Fine-tuning skips the last block at this rate, and earlier blocks at lower rates (stochastic depth)."""


@dataclass(kw_only=True, repr=False, eq=False)
class ClassificationOptions:
    """Options of classification alone."""

    label_smoothing: float = 0.0
    """Each label gives this share of its probability to all classes equally."""
    class_weights: Literal["none", "balanced"] = "none"
    """The loss weighs all series equally (none), or rare classes more, by the inverse of their counts (balanced)."""
    decide: Literal["auto", "accuracy", "f1", "balanced", "cost"] = "auto"
    """The most probable class is predicted (accuracy), or rare classes are favoured: for the best F1 (f1), as if all
    were equally frequent (balanced), or by costs (cost); auto is f1 if one of two classes has less than a fifth."""
    costs: tuple[float, ...] = ()
    """For decide=cost: missing a series of each class costs this much, in the order of the sorted classes."""


@dataclass(kw_only=True, repr=False, eq=False)
class RunOptions:
    """Options of the run."""

    seed: int = 0
    """This number fixes the split, the order, the masks, the augmentation and the first weights."""
    minutes: float | None = None
    """The whole run takes about this many minutes, whatever the options of epochs say."""
    checkpoint_minutes: float = 1.0
    """A run saves its state at this interval, in minutes, so that it can be resumed."""


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
        """Raise InputError for a window below 2, an overlap without a window, or an overlap not below the window."""
        if self.window is None:
            if self.overlap is not None:
                raise InputError(
                    f"overlap={self.overlap} needs a length of windows; give window, too.", settings=[("window", 4096)]
                )
            return
        check_whole("window", self.window, 2)
        if type(self.shared) is not int or not 0 <= self.shared < self.window:
            raise InputError(f"overlap is {self.overlap!r}; wanted a whole number from 0 to less than the window.")

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
        if not predicts_spread(self.likelihood):
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
        """Return the settings of pre-training, made and checked when this object was created."""
        return self._stages["pre-training"]

    def finetuning(self) -> TrainConfig:
        """Return the settings of fine-tuning, made and checked when this object was created."""
        return self._stages["fine-tuning"]

    def _make_pretraining(self) -> TrainConfig:
        """Return the settings of pre-training."""
        epochs = PRETRAIN_EPOCHS if self.pretrain_epochs is None or not self.pretrains else self.pretrain_epochs
        betas = (0.9, 0.95) if self.betas is None else self.betas
        return self._training(epochs=epochs, betas=betas)

    def _make_finetuning(self) -> TrainConfig:
        """Return the settings of fine-tuning."""
        betas = (0.9, 0.999) if self.betas is None else self.betas
        rate = self.finetune_lr
        if rate is None and self.tune == "probe":
            rate = PROBE_FASTER * self.base_lr
        changes = {"batch_size": self.finetune_batch_size, "base_lr": rate}
        given = {name: value for name, value in changes.items() if value is not None}
        return self._training(epochs=self.finetune_epochs, betas=betas, **given)

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
    """Return the names of the fields of a group of options."""
    return {field.name for field in dataclasses.fields(group)}
