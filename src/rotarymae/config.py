"""The configuration that shapes a model, and the named sizes."""

from __future__ import annotations

import dataclasses
import math
import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, cast

from rotarymae.errors import InputError, InputWarning, choose, did_you_mean
from rotarymae.system.fields import Range, check_fields

Size = Literal["light", "tiny-shallow", "tiny", "small", "base", "pendulum"]
DecoderAttention = Literal["context", "joint"]
# Of matrix products; it changes no model, but both training and predictions read it.
Precision = Literal["auto", "fp32", "bf16"]
LikelihoodKind = Literal["point", "gaussian", "student_t"]  # what each means stands in `likelihoods`
Pool = Literal["mean", "max", "cls"]  # of tokens, without weights of its own: `heads.pooled`
AutoPool = Literal["auto", Pool]  # auto: what the model was trained with
HeadPool = Literal[Pool, "attention"]
TargetLoss = Literal["auto", "absolute_error"]  # of fine-tuning; what each means stands in `losses`
# embed_dim, num_heads, depth, mlp_ratio. Table 8; "pendulum" is Table 14; "light" is ours, for tables on a CPU.
SIZES: dict[Size, tuple[int, int, int, float]] = {
    "light": (120, 2, 4, 4.0),
    "tiny-shallow": (180, 3, 2, 4.0),
    "tiny": (180, 3, 12, 4.0),
    "small": (432, 6, 12, 4.0),
    "base": (720, 12, 12, 4.0),
    "pendulum": (60, 2, 2, 0.5),
}
COUNT, SHARE, POSITIVE, NOT_NEGATIVE = Range(least=1), Range(least=0, below=1), Range(above=0), Range(least=0)
SIZE_NAMES = ("embed_dim", "num_heads", "depth", "decoder_embed_dim", "decoder_num_heads", "decoder_depth")
# Of the settings of models and trainings, by name; `check_fields` reads them.
RANGES: dict[str, Range] = {
    **dict.fromkeys((*SIZE_NAMES, "axes", "features", "members", "batch_size", "finetune_batch_size"), COUNT),
    **dict.fromkeys(("epochs", "finetune_epochs", "log_every", "batch_tokens", "epoch_steps", "outputs"), COUNT),
    **dict.fromkeys(("checkpoint_steps", "base"), COUNT),  # a base below 1 turns the frequencies' order round
    **dict.fromkeys(("pretrain_epochs", "min_steps", "warmup_steps", "input_features"), NOT_NEGATIVE),
    **dict.fromkeys(("static_features", "overlap", "noise", "weight_decay", "checkpoint_minutes"), NOT_NEGATIVE),
    **dict.fromkeys(("dropout", "drop_path", "drop", "label_smoothing", "validation_fraction"), SHARE),
    **dict.fromkeys(("warmup_fraction", "betas"), SHARE),
    **dict.fromkeys(("base_lr", "finetune_lr", "gradient_clip", "minutes", "time_unit", "channel_spacing"), POSITIVE),
    **dict.fromkeys(("p", "beta"), Range(least=0, most=1)),
    "norm_eps": POSITIVE,
    "seed": Range(least=0, below=2**64),
    **dict.fromkeys(("window", "classes"), Range(least=2)),
    "mask_ratio": Range(above=0, below=1),
}


@dataclass(frozen=True)
class BlockSizes:
    """Sizes of one transformer, the encoder's or the decoder's.

    Attributes:
        embed_dim: width of the tokens.
        num_heads: number of attention heads.
        depth: number of blocks.
        hidden_dim: width of the MLPs.
        dropout: share of the attention weights and of the MLPs' hidden units that training drops.
        drop_path: rate at which training skips the attention, and the MLP, of the last block for a row; in earlier
            blocks it is lower, linearly.
        norm_eps: RMSNorm adds this number to the mean square.
    """

    embed_dim: int
    num_heads: int
    depth: int
    hidden_dim: int
    dropout: float = 0.0
    drop_path: float = 0.0
    norm_eps: float = 1e-6

    @property
    def head_dim(self) -> int:
        """Width K of an attention head."""
        return self.embed_dim // self.num_heads


@dataclass(frozen=True)
class RoMAEConfig:
    """Configuration of a model's shape; saved with it as config.json.

    Parameters
    ----------
    axes : int
        Number A of position axes of a token (time; time and band; row and column).
    features : int
        Number V of values of a token, which the decoder predicts.
    input_features : int
        Number E of further values of a token, which the encoder reads and nothing predicts.
    embed_dim : int
        Width of the encoder's tokens.
    num_heads : int
        Number of attention heads in the encoder's blocks.
    depth : int
        Number of the encoder's blocks.
    mlp_ratio : float
        Width of the encoder's MLPs, in units of embed_dim.
    decoder_embed_dim : int
        Width of the decoder's tokens; the paper's decoder is tiny-shallow.
    decoder_num_heads : int
        Number of attention heads in the decoder's blocks.
    decoder_depth : int
        Number of the decoder's blocks.
    decoder_mlp_ratio : float
        Width of the decoder's MLPs, in units of decoder_embed_dim.
    decoder_attention : {"context", "joint"}
        The decoder's tokens attend to the visible ones only (context), so that an answer does not depend on the other
        queries (as CrossMAE, arXiv:2401.14391), or queries to one another as well (joint), as in the paper and its
        published checkpoints.
    position_encoding : {"rotary", "absolute"}
        Positions rotate queries and keys (rotary), or are added to tokens as sines and cosines (absolute, the
        baseline).
    p : float
        Share of the rotary frequencies of each axis that is kept, the fastest first.
    base : float
        Frequencies fall from 1 radian per unit towards 1 / base; the slowest that is kept is about base^-p.
    cls_token : bool
        Whether a learned [CLS] token at position 0 precedes the others, which anchors absolute positions.
    dropout : float
        Share of the attention weights and of the MLPs' hidden units that training drops.
    drop_path : float
        Rate at which training skips the attention, and the MLP, of the last block for a row; in earlier blocks it is
        lower, linearly.
    norm_eps : float
        RMSNorm adds this number to the mean square.
    likelihood : {"point", "gaussian", "student_t"}
        The decoder predicts each value (point), or a distribution of it: normal (gaussian), or with the heavier tails
        of Student's t (student_t).
    neighbours : bool
        A query also reads the nearest visible values of its channel, before and after it, and the decoder predicts what
        to add to the straight line between them. Positions must be times, or times and channels.

    Raises
    ------
    InputError
        A value of another type or out of its range, or values that do not fit together; the message gives them.
    """

    axes: int = 1
    features: int = 1
    input_features: int = 0
    embed_dim: int = 180
    num_heads: int = 3
    depth: int = 2
    mlp_ratio: float = 4.0
    decoder_embed_dim: int = 180
    decoder_num_heads: int = 3
    decoder_depth: int = 2
    decoder_mlp_ratio: float = 4.0
    decoder_attention: DecoderAttention = "context"
    position_encoding: Literal["rotary", "absolute"] = "rotary"
    p: float = 0.75
    base: float = 10_000.0
    cls_token: bool = True
    dropout: float = 0.0
    drop_path: float = 0.0
    norm_eps: float = 1e-6
    likelihood: LikelihoodKind = "point"
    neighbours: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for wrong types, values out of range, or sizes that do not fit; convert numpy's scalars."""
        check_fields(self, RANGES)
        if self.position_encoding != "rotary" and self.p != type(self).p:
            raise InputError(
                f"p ({self.p}) is a share of rotary frequencies, and position_encoding={self.position_encoding!r} has "
                f"none; leave p at {type(self).p}."
            )
        if self.neighbours and self.axes > 2:
            raise InputError(
                f"neighbours are for at most 2 axes (time, or time and channel), and tokens have {self.axes} position "
                "axes; set neighbours=False."
            )
        for prefix in ("", "decoder_"):
            self._check_sizes(prefix)

    @classmethod
    def named(cls, name: str, **changes: Any) -> RoMAEConfig:
        """Return the configuration of a named encoder size.

        The decoder is that of "tiny-shallow", but no wider than the encoder. With rotary positions each attention head
        is widened to a multiple of 2 · axes channels, unless `changes` sets the width or the number of heads.

        Parameters
        ----------
        name : str
            One of `SIZES`: "light", "tiny-shallow", "tiny", "small", "base", "pendulum".
        **changes : Any
            Fields of the configuration to set, the sizes included.

        Returns
        -------
        RoMAEConfig
            The size with the changes.

        Raises
        ------
        InputError
            An unknown name or field (the message names a similar one); a field that the class refuses.

        Warns
        -----
        InputWarning
            Heads were widened.
        """
        choose("size", name, tuple(SIZES))
        embed_dim, num_heads, depth, mlp_ratio = SIZES[cast(Size, name)]
        sizes = {"embed_dim": embed_dim, "num_heads": num_heads, "depth": depth, "mlp_ratio": mlp_ratio}
        if embed_dim < cls.decoder_embed_dim:
            sizes |= {"decoder_embed_dim": embed_dim, "decoder_num_heads": num_heads}
        widened = cls._widened_heads(sizes, changes)
        if widened:
            numbers = ", ".join(f"{field} {value}" for field, value in widened.items())
            warnings.warn(
                f"size {name!r} with {changes['axes']} position axes: heads are widened so that each axis gets an "
                f"even number of their dimensions ({numbers}); set embed_dim to choose another width.",
                InputWarning,
                stacklevel=2,
            )
            sizes |= widened
        known = [field.name for field in dataclasses.fields(cls)]
        for field in changes:
            if field not in known:
                raise InputError(
                    f"RoMAEConfig has no field {field!r}; use one of {', '.join(known)}.{did_you_mean(field, known)}"
                )
        return cls(**{**sizes, **changes})

    @classmethod
    def _widened_heads(cls, sizes: dict[str, Any], changes: dict[str, Any]) -> dict[str, int]:
        """Return larger widths, {field: width}, with which each head has a multiple of 2 · axes channels, for p-RoPE.

        The fields are "embed_dim" and "decoder_embed_dim", without those that are large enough. A width also stays if
        `changes` sets it or its number of heads. Both stay if positions are not rotary, or if the number of axes is no
        positive integer (`RoMAEConfig` refuses that).

        Args:
            sizes: {field: value} of the named size.
            changes: {field: value} that the user sets.
        """
        axes, widened = changes.get("axes", cls.axes), {}
        if not isinstance(axes, Integral) or axes < 1 or changes.get("position_encoding", "rotary") != "rotary":
            return widened
        for field, heads in (("embed_dim", "num_heads"), ("decoder_embed_dim", "decoder_num_heads")):
            dim, number = ({**vars(cls), **sizes}[name] for name in (field, heads))
            if not changes.keys() & {field, heads} and dim // number % (2 * axes):
                widened[field] = -(-dim // number // (2 * axes)) * 2 * axes * number
        return widened

    @property
    def head_dim(self) -> int:
        """Width K of an attention head of the encoder."""
        return self.embed_dim // self.num_heads

    @property
    def encoder_sizes(self) -> BlockSizes:
        """Width, number of heads and further sizes of the encoder's blocks."""
        return self._sizes("")

    @property
    def decoder_sizes(self) -> BlockSizes:
        """Width, number of heads and further sizes of the decoder's blocks."""
        return self._sizes("decoder_")

    def _sizes(self, prefix: str) -> BlockSizes:
        """Return the sizes of the blocks of the encoder (prefix "") or the decoder (prefix "decoder_").

        The MLPs' width is embed_dim times mlp_ratio, rounded. dropout, drop_path and norm_eps have no prefix.
        """
        embed_dim, num_heads, depth, mlp_ratio = (
            getattr(self, prefix + name) for name in ("embed_dim", "num_heads", "depth", "mlp_ratio")
        )
        hidden_dim = round(embed_dim * mlp_ratio)
        return BlockSizes(embed_dim, num_heads, depth, hidden_dim, self.dropout, self.drop_path, self.norm_eps)

    def _check_sizes(self, prefix: str) -> None:
        """Raise InputError if sizes of the encoder (prefix "") or decoder ("decoder_") do not fit together.

        embed_dim must be a multiple of num_heads and fit the position encoding. The MLPs' width must be a whole number.
        """
        sizes, mlp_ratio = self._sizes(prefix), getattr(self, prefix + "mlp_ratio")
        embed_dim, num_heads = sizes.embed_dim, sizes.num_heads
        if embed_dim % num_heads:
            raise InputError(
                f"{prefix}embed_dim ({embed_dim}) must be a multiple of {prefix}num_heads ({num_heads}); choose "
                f"{_nearest(embed_dim, num_heads)}."
            )
        pair = 2 * self.axes  # a sine and a cosine of every axis
        if self.position_encoding == "rotary" and sizes.head_dim % pair:
            raise InputError(
                f"{prefix}embed_dim {embed_dim} and {prefix}num_heads {num_heads} do not fit together: head_dim "
                f"({sizes.head_dim}) must be a multiple of 2 × axes ({pair}); choose embed_dim or num_heads so that "
                f"embed_dim / num_heads is {_nearest(sizes.head_dim, pair)}."
            )
        if self.position_encoding == "absolute" and embed_dim % pair:
            raise InputError(
                f"{prefix}embed_dim ({embed_dim}) must be a multiple of 2 × axes ({pair}) with "
                f"position_encoding={self.position_encoding!r}, and of {prefix}num_heads ({num_heads}); choose "
                f"{_nearest(embed_dim, math.lcm(pair, num_heads))}."
            )
        if sizes.hidden_dim < 1 or abs(embed_dim * mlp_ratio - sizes.hidden_dim) > 1e-6:
            raise InputError(
                f"{prefix}embed_dim ({embed_dim}) · {prefix}mlp_ratio ({mlp_ratio}) is {embed_dim * mlp_ratio}; the "
                "MLP's width must be a whole number of at least 1; choose another mlp_ratio."
            )


def mask_range(ratio: Any) -> tuple[float, float]:
    """Return a mask ratio as a pair (smallest, largest); from a single number, both are this number.

    Raises:
        InputError: `ratio` is neither a number nor a list, tuple or array of two, with 0 < smallest ≤ largest < 1.
    """
    try:
        low, high = ratio if hasattr(ratio, "__len__") else (ratio, ratio)
        if 0 < low <= high < 1:
            return float(low), float(high)
    except (TypeError, ValueError):  # other things than numbers, or another number of them
        pass
    raise InputError(
        f"mask_ratio is {ratio!r}; give one share of more than 0 and less than 1, such as 0.5, or the smallest and the "
        "largest share, such as (0.3, 0.8)."
    )


def _nearest(number: int, divisor: int) -> str:
    """Return the two multiples of a divisor nearest to a number, as text for a message, such as "60 or 64".

    The first is at or below the number, the second above it. If the first is 0, only the second is returned.
    """
    below = number - number % divisor
    return " or ".join(str(k) for k in (below, below + divisor) if k > 0)
