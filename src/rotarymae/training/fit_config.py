"""The settings of a training, and the one description of a fit: what the command and the estimators offer and refuse.

The options lie in groups, each a dataclass. `FitConfig` is all of them and checks them; the estimators inherit the
groups that concern them, and `rotarymae fit` shows each under its own heading. A new option is one field here, whose
docstring is its help, and one line in the method that reads it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
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
    """Pre-training and fine-tuning: highest learning rate. The rate rises to it during warm-up, then falls to zero
    along a cosine. Lower it if the loss jumps; raise it if the loss hardly falls."""
    warmup_steps: int | None = None
    """Pre-training and fine-tuning: number of steps over which the learning rate rises from near zero to --base-lr or
    --finetune-lr; without it, a tenth of all steps. Raise it if the loss jumps within the first steps."""
    optimizer: Optimizer = "adamw"
    """Pre-training and fine-tuning: algorithm that updates the weights: AdamW (adamw), or stochastic gradient
    descent with momentum 0.9 (sgd). Set sgd only to repeat a result that was obtained with it."""
    weight_decay: float = 0.05
    """Pre-training and fine-tuning: rate at which each step shrinks weight matrices towards zero; norms, biases and
    learned tokens stay. Raise it if the validation loss rises while the training loss falls (overfitting)."""
    gradient_clip: float | None = 1.0
    """Pre-training and fine-tuning: largest norm of the gradient over all weights; a longer gradient is scaled down
    to it before the step. Lower it if single steps make the loss jump."""
    precision: Precision = "auto"
    """Pre-training, fine-tuning and prediction: number format of matrix products. auto takes bf16 (faster, less
    exact) where the GPU or processor has units for it, else fp32. Set fp32 to compare machines: their results then
    agree up to rounding."""
    compile: bool = False
    """Pre-training and fine-tuning: compile the model by torch.compile, which takes about a minute at the start and
    makes steps faster. Set it for long trainings, above all on a GPU."""
    log_every: int = 10
    """Pre-training and fine-tuning: number of steps between two lines of the files training/*/log.jsonl, which hold
    the mean loss. Lower it to see the loss in more detail, raise it for smaller files."""


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

    def __post_init__(self) -> None:
        """Check all settings; convert lists to tuples and numpy's numbers to Python's where needed.

        Raises InputError if a setting has the wrong type or is out of its range, and unless exactly one of `batch_size`
        and `batch_tokens` is given.
        """
        if (self.batch_size is None) == (self.batch_tokens is None):
            given = "neither is given" if self.batch_size is None else "both are given"
            raise InputError(
                f"the size of a batch is batch_size (examples) or batch_tokens (tokens), and {given}; give exactly one."
            )
        check_fields(self, RANGES)


@dataclass(kw_only=True, repr=False, eq=False)
class ModelOptions:
    """The shape of the model, or the trained one to start from."""

    pretrained: str | None = None
    """Pre-training and fine-tuning: trained model to start from, with its scaling: a run folder, a saved model, a
    shipped name such as plasticc-ugrizy, or OWNER/NAME of the Hugging Face Hub; without it, random weights. Give it if
    labels are few. Only --pretrain-epochs pre-trains it further."""
    size: Size = "light"
    """Pre-training and fine-tuning: size of a new model. From smallest to largest: pendulum (of the RoMAE paper),
    light, tiny-shallow, tiny, small, base. light suits a CPU. Set a larger one if you have much data and a GPU."""
    embed_dim: int | None = None
    """Pre-training and fine-tuning: width of the encoder, in numbers per token; without it, that of --size. It is a
    multiple of 2 × --num-heads × the number of axes (time, channel and --positions). Set it if no named size fits."""
    num_heads: int | None = None
    """Pre-training and fine-tuning: number of attention heads of each encoder block; without it, that of --size. Set
    it together with --embed-dim, for example to repeat a published model."""
    depth: int | None = None
    """Pre-training and fine-tuning: number of transformer blocks of the encoder; without it, that of --size. Raise it
    if the training loss stays high on much data; each further block makes every step slower."""
    decoder_embed_dim: int | None = None
    """Pre-training: width of the decoder, the part that interpolates, in numbers per token; without it 180, or 120 for
    the size light and 60 for pendulum. Set it only to repeat a published model."""
    decoder_num_heads: int | None = None
    """Pre-training: number of attention heads of each block of the decoder, the part that interpolates; without it 3,
    or 2 for the sizes light and pendulum. Set it only to repeat a published model."""
    decoder_depth: int | None = None
    """Pre-training: number of transformer blocks of the decoder, the part that interpolates; without it 2. Raise it if
    interpolations stay poor on much data; each further block makes pre-training slower."""
    decoder_attention: DecoderAttention = "context"
    """Pre-training: what a prediction of the value at some time reads, also later with this model: the observations
    alone (context), or other times that are asked for, too (joint). Set joint only to repeat the RoMAE paper: an answer
    then depends on other questions."""
    likelihood: LikelihoodKind = "gaussian"
    """Pre-training: what the model predicts for a value, from then on: a normal distribution (gaussian), one with
    heavier tails (student_t), or a single number without uncertainty (point). Set student_t if values have many
    outliers."""
    neighbours: Literal["auto", "on", "off"] = "auto"
    """Pre-training: the model learns to predict what to add to the straight line between the nearest observations
    (on), or the value itself (off). auto: on if there are neither labels nor --positions. Set on if a model with
    labels will also interpolate."""
    cls_token: bool = True
    """Pre-training and fine-tuning: --no-cls-token leaves out the learned [CLS] token that otherwise stands before each
    series, at position 0. Set it if only the times between observations should count, and not how far they are from
    the first one."""


@dataclass(kw_only=True, repr=False, eq=False)
class ScalingOptions:
    """How times and values become positions and numbers near zero."""

    time_unit: float | None = None
    """Pre-training and fine-tuning: span by which times are divided, in the unit of the table (of dates: days); without
    it, the median gap between observations, or a thousandth of the median span if that is longer. Set it to scale times
    as another run did."""
    time_origin: Literal["first", "zero"] = "first"
    """Pre-training and fine-tuning: whether times count from each series' first observation (first) or are used as
    in the table (zero). Set zero if the date itself matters, as it does for seasons."""
    channel_spacing: float = 1.0
    """Pre-training and fine-tuning: distance between neighbouring channels on their axis; a distance of 1 is that of
    two times which differ by --time-unit. Set it only to repeat another run."""
    join_times: bool = False
    """Pre-training and fine-tuning: make one token of all channels observed at the same time, instead of a token per
    observation; a channel that is missing keeps its last known value. Set it if many channels are measured together,
    though not always all."""
    channel_one_hot: bool = True
    """Pre-training and fine-tuning: --no-channel-one-hot leaves out the one-hot vector of each observation's channel,
    which the encoder otherwise reads next to the channel's position. Set it only to repeat the RoMAE paper."""
    errors: tuple[str, ...] = ()
    """Reading: columns with the standard errors of the values, in the order of --values. Name them if the table has
    them: the model then knows how far to trust each value."""
    signal_to_noise: bool = True
    """Pre-training and fine-tuning: --no-signal-to-noise leaves out asinh(value / error), which the encoder otherwise
    reads for each value that has a column of errors, named by --errors or called NAME_err or e_NAME among --values. Set
    it if these errors are unreliable."""
    transforms: Mapping[str, Transform] | None = None
    """Pre-training and fine-tuning: how values are scaled, as pairs of column and method (flux asinh); without it
    robust. robust: by median and quantiles; standard: by mean and deviation. Set asinh if values span many orders of
    magnitude, none if they are scaled already."""


@dataclass(kw_only=True, repr=False, eq=False)
class MaskingOptions:
    """The observations that pre-training hides, and the score of their predictions."""

    masking: MaskingStrategy = "auto"
    """Pre-training: what is hidden, to be predicted: stretches (blocks), single observations or patches (ratio), whole
    times (rows), whole channels (channels), or the end of each series (future). auto: blocks, or ratio for pictures and
    sounds. Set what will be missing later: future to forecast."""
    mask_ratio: float | tuple[float, float] = (0.3, 0.8)
    """Pre-training: share of each series that is hidden, to be predicted. Of two numbers, the share is drawn between
    them for each series and pass. Set one number, 0.75, to repeat the RoMAE paper."""
    beta: float | None = None
    """Pre-training: power, from 0 to 1, of the predicted variance by which the loss weighs each value (beta-NLL);
    without it 0.5. Not with --likelihood point. Raise it if predicted values are poor; lower it if their predicted
    uncertainties are."""


@dataclass(kw_only=True, repr=False, eq=False)
class TrainingOptions(LoopOptions):
    """How the model is trained; fine-tuning uses the same numbers where it has none of its own."""

    pretrain_epochs: int | None = None
    """Pre-training: number of passes over the series; without it 5, or none with --pretrained. Raise it if the loss
    still falls at the end. --minutes decides instead, if given."""
    min_steps: int = 500
    """Pre-training and fine-tuning: least number of steps of pre-training, and likewise of fine-tuning; on a small
    table both make more passes than their numbers of epochs to reach it. Has no effect with --minutes. Lower it for a
    quick trial."""
    batch_size: int = 32
    """Pre-training and fine-tuning: number of series per step. Lower it if memory does not suffice, raise it to use
    a GPU better. For fine-tuning alone there is --finetune-batch-size."""
    betas: tuple[float, float] | None = None
    """Pre-training and fine-tuning: decay rates of AdamW's running means of the gradient and of its square; without
    them 0.9 0.95 in pre-training and 0.9 0.999 in fine-tuning. Set them only to repeat a published training."""
    validation_fraction: float = 0.15
    """Pre-training and fine-tuning: share of the training series that no network is trained on; they choose the best
    pass, and which method predicts. With fewer than ten series, and no --split-by, there are none. Set 0 to train on
    all, raise it for surer choices."""
    window: int | None = None
    """Pre-training, fine-tuning and prediction: cut longer series into windows of this many observations, read one by
    one; without it the run chooses, for series over 8,192 observations (without labels, 512 to 2,048). Set it, or lower
    it, if memory does not suffice."""
    overlap: int | None = None
    """Pre-training, fine-tuning and prediction: number of observations that two neighbouring windows share; only with
    --window; without it, a sixteenth of the window. Raise it if predictions are poor where windows meet."""


@dataclass(kw_only=True, repr=False, eq=False)
class FinetuningOptions:
    """Options that have an effect only with labels."""

    finetune_epochs: int = 20
    """Fine-tuning: number of passes over the labelled training series. Raise it if the loss still falls at the end,
    lower it to save time. --minutes decides instead, if given."""
    finetune_batch_size: int | None = None
    """Fine-tuning: number of series per step; without it, that of --batch-size. Lower it if memory suffices for
    pre-training, but not for fine-tuning."""
    finetune_lr: float | None = None
    """Fine-tuning: highest learning rate; without it --base-lr, or 30 times that with --tune probe. Lower it if the
    loss of fine-tuning jumps, and that of pre-training does not."""
    loss: TargetLoss = "auto"
    """Fine-tuning: loss for numbers as labels: squared errors (auto) or absolute errors (absolute_error). Set the
    latter if outliers among the labels spoil predictions. Classes always have cross-entropy."""
    tune: Literal["auto", "full", "probe"] = "auto"
    """Fine-tuning: train all weights (full), or the new head alone (probe): for classes a logistic regression, if
    options such as --drop or --finetune-lr are unset. auto: full, or with fewer than 500 labels such a regression. Set
    probe to save time."""
    predictor: Predicting = "auto"
    """Fine-tuning and prediction: what predicts labels: the network (model), boosted trees on summary features
    (features), or a weighted average of these and other suitable methods (combined). auto: combined, unless
    another is better on validation series; without these, model. Set model for the network alone."""
    members: int | None = None
    """Pre-training and fine-tuning: with labels, number of networks from different seeds, whose predictions are
    averaged. Without it 1, or 3 if --decide comes to f1, a class has under 200 series and --minutes is unset. Raise it
    if better predictions are worth the multiplied time."""
    pool: Literal["auto", HeadPool] = "auto"
    """Fine-tuning: what the head, which predicts the label, reads: the [CLS] token (cls), or the mean, maximum (max) or
    attention-weighted mean (attention) of a series' tokens. auto: max for sounds, else attention. Set max if labels are
    few, cls to repeat the RoMAE paper."""
    static: tuple[str, ...] = ()
    """Fine-tuning and prediction: columns of TABLE or of --objects with one value per series, such as age or redshift,
    that help to predict the label: numbers or categories, also with missing cells. Name those that will be known when
    you predict."""
    drop: float = 0.5
    """Fine-tuning: largest share of each series' observations that is left out at random in each pass
    (augmentation). Raise it against overfitting; 0 leaves out none."""
    noise: float = 0.05
    """Fine-tuning: standard deviation of normal noise that is added to the scaled values in each pass
    (augmentation). Raise it against overfitting; 0 adds none."""
    early: tuple[str, ...] = ()
    """Fine-tuning: train also on series that are cut off this long after their first observation: 30 (in the table's
    unit of time) or, if times are dates, 6h or 2d. Give the times at which you will predict series that are still
    being observed."""
    dropout: float = 0.0
    """Fine-tuning: share of attention weights and hidden units that each step sets to zero at random. Raise it, for
    example to 0.1, against overfitting."""
    drop_path: float = 0.0
    """Fine-tuning: probability that a series skips the encoder's last block in a step; earlier blocks are skipped less
    often (stochastic depth). Raise it, for example to 0.1, against overfitting of a deep model."""


@dataclass(kw_only=True, repr=False, eq=False)
class ClassificationOptions:
    """Options of classification alone."""

    label_smoothing: float = 0.0
    """Fine-tuning: share of each label's probability that is spread evenly over all classes. Raise it, for example
    to 0.1, if some labels are wrong."""
    class_weights: Literal["none", "balanced"] = "none"
    """Fine-tuning: the loss counts every series equally (none), or those of rare classes more, by the inverse of the
    class's frequency (balanced), which also raises their probabilities. Set balanced if rare classes are learnt poorly;
    to name them more often, --decide balanced suffices."""
    decide: Literal["auto", "accuracy", "f1", "balanced", "cost"] = "auto"
    """Prediction: which class is chosen: the most probable (accuracy), that with the best expected F1 (f1), each class
    found equally often (balanced), or by --costs (cost). auto: f1 if one of two classes is rare, else accuracy. Set
    balanced if rare classes are seldom named."""
    costs: tuple[float, ...] = ()
    """Prediction: cost of missing a series of each class, for --decide cost alone: one positive number per class, in
    the order of the sorted classes. Set them if some mistakes are worse than others."""


@dataclass(kw_only=True, repr=False, eq=False)
class RunOptions:
    """Options of the run."""

    seed: int = 0
    """Pre-training and fine-tuning: number that fixes every random choice: split, order, masks, augmentation, first
    weights. Equal seeds repeat a run; try several to see how much its results vary."""
    minutes: float | None = None
    """Pre-training and fine-tuning: length of the whole run in minutes, with reading and report: as many steps are
    made as fit, whatever --min-steps and the numbers of epochs; without it, these decide. Set it if time is limited."""
    checkpoint_minutes: float = 1.0
    """Pre-training and fine-tuning: minutes between two checkpoints, from which --resume goes on. Lower it if the
    run may be killed at any time and little work should be lost."""


@dataclass(kw_only=True)
class FitConfig(
    RunOptions, ClassificationOptions, FinetuningOptions, TrainingOptions, MaskingOptions, ScalingOptions, ModelOptions
):
    """All options of a fit; the defaults suit tables of a few thousand series on a CPU.

    Raises:
        InputError: a value out of its range, or options that cannot work together. What depends on data or labels, such
            as the number of `costs`, is checked in `train.train`.
    """

    def __post_init__(self) -> None:
        """Check each option and their combinations; convert lists to tuples and numpy's numbers to Python's.

        Raises InputError for a value out of its range, and for options that contradict each other.
        """
        check_fields(self, RANGES)
        mask_range(self.mask_ratio)
        if self.window is None and self.overlap is not None:
            raise InputError(
                f"overlap is {self.overlap}, and window is None; set window, too, or leave overlap out.",
                settings=[("window", 4096)],
            )
        if self.window is not None and self.shared >= self.window:
            raise InputError(f"overlap is {self.overlap}, and window is only {self.window}; give a smaller overlap.")
        if self.beta is not None and self.likelihood == "point":
            raise InputError(
                f"beta ({self.beta}) weighs by the predicted variance, and likelihood={self.likelihood!r} has "
                "none; leave beta out, or use likelihood='gaussian'."
            )
        if self.pretrained is None and self.pretrain_epochs == 0:
            raise InputError(
                "pretrain_epochs is 0, but a new model must be pre-trained; give at least 1, or a pretrained model."
            )
        self._check_pretrained()
        if self.pool == "cls" and not self.cls_token:
            raise InputError(
                "pool='cls' needs the [CLS] token that cls_token=False leaves out; use pool='mean' or cls_token=True."
            )
        if self.optimizer == "sgd" and self.betas is not None:
            raise InputError(f"betas={self.betas} belong to AdamW, and optimizer is 'sgd'; leave betas out.")

    @property
    def shared(self) -> int:
        """Number of observations that two neighbouring windows (pieces of a long series) have in common.

        It is `overlap`; if that is None, it is `window` // 16, or 0 without `window`.
        """
        return (self.window or 0) // 16 if self.overlap is None else self.overlap

    def _check_pretrained(self) -> None:
        """Raise InputError if options are set that the trained model to start from has fixed, such as its sizes.

        Options of masking are refused, too, unless pre-training continues. An option counts as set if it differs from
        its default. Nothing is checked for a new model.
        """
        if self.pretrained is None:
            return
        changed = [name for name in self.changed(ModelOptions, ScalingOptions) if name != "pretrained"]
        instead = ", or continue its pre-training with pretrain_epochs" if not changed else ""
        changed += [] if self.pretrains else self.changed(MaskingOptions)
        if changed:
            are, them = ("are fixed", "them") if len(changed) > 1 else ("is fixed", "it")
            raise InputError(
                f"{', '.join(changed)} {are} by the pretrained model, which keeps its own; leave {them} out{instead}."
            )

    @property
    def pretrains(self) -> bool:
        """Whether the fit includes pre-training: always of a new model, of a trained one if `pretrain_epochs` > 0."""
        return self.pretrained is None or bool(self.pretrain_epochs)

    def changed(self, *options: str | type) -> list[str]:
        """Return the names of those options, among the given ones, whose values differ from their defaults.

        Args:
            options: names of options; a class, such as `MaskingOptions`, stands for all its fields. The result is in
                this order.
        """
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        groups = [[one] if isinstance(one, str) else [each.name for each in dataclasses.fields(one)] for one in options]
        return [name for group in groups for name in group if getattr(self, name) != defaults[name]]

    def pretraining(self) -> TrainConfig:
        """Return the settings of pre-training, taken from the options of this fit.

        The number of epochs is `pretrain_epochs`, or 5 if that is None or 0. Betas that are not set are 0.9 and 0.95.
        Training will end with the weights of the best validation loss.
        """
        epochs = self.pretrain_epochs or PRETRAIN_EPOCHS
        return self._training(epochs=epochs, betas=self.betas or (0.9, 0.95))

    def finetuning(self) -> TrainConfig:
        """Return the settings of fine-tuning, taken from the options of this fit.

        Epochs, batch size and highest learning rate are `finetune_epochs`, `finetune_batch_size` and `finetune_lr`. If
        the last two are not set, they are `batch_size` and `base_lr` (30 times `base_lr` with `tune="probe"`). Betas
        that are not set are 0.9 and 0.999. Training will end with the weights of the best validation loss.
        """
        rate = self.finetune_lr or (PROBE_FASTER * self.base_lr if self.tune == "probe" else self.base_lr)
        batch_size, betas = self.finetune_batch_size or self.batch_size, self.betas or (0.9, 0.999)
        return self._training(epochs=self.finetune_epochs, betas=betas, batch_size=batch_size, base_lr=rate)

    def _training(self, **of_stage: Any) -> TrainConfig:
        """Return the settings of one training, with the values that this fit has for the fields of `TrainConfig`.

        `keep_best` is on: training ends with the weights of the best validation loss.

        Args:
            of_stage: fields of `TrainConfig` with values of their own for pre-training or fine-tuning, instead of this
                fit's.
        """
        ours, theirs = ({field.name for field in dataclasses.fields(kind)} for kind in (FitConfig, TrainConfig))
        same = {name: getattr(self, name) for name in ours & theirs}
        return TrainConfig(**{**same, **of_stage}, keep_best=True)

    def strategy(self, kind: str) -> Masking:
        """Return the `Masking` object that hides tokens in pre-training, with the strategy and mask ratio of this fit.

        Args:
            kind: what a token is, "observations" or "patches". It is used only if `masking` is "auto": observations
                then get "blocks" (stretches are hidden), and patches "ratio" (single ones are hidden).
        """
        from rotarymae.masking import Masking

        by_kind = "blocks" if kind == "observations" else "ratio"
        return Masking(by_kind if self.masking == "auto" else self.masking, self.mask_ratio)

    def model_config(self, axes: int, features: int, input_features: int = 0) -> RoMAEConfig:
        """Return the configuration of a new masked autoencoder: that of `size`, with this fit's model options.

        These options are widths, depths and numbers of heads, if they are set, and likelihood, decoder attention, [CLS]
        token and `neighbours` ("auto" counts as off).

        Args:
            axes: number of position axes of a token, such as 2 for time and channel.
            features: number of values of a token that are predicted.
            input_features: number of further inputs of a token, which are not predicted.

        Raises:
            InputError: sizes that do not divide or are out of range; the message gives the numbers.

        Warns:
            InputWarning: heads that are widened, so that each axis gets an even number of their dimensions.
        """
        changes: dict[str, Any] = {name: getattr(self, name) for name in SIZE_NAMES if getattr(self, name) is not None}
        for name in ("decoder_attention", "likelihood", "cls_token"):
            changes[name] = getattr(self, name)
        changes["neighbours"] = self.neighbours == "on"
        return RoMAEConfig.named(self.size, axes=axes, features=features, input_features=input_features, **changes)
