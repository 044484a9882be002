"""The configuration that shapes a model, and the named sizes."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from rotarymae.errors import InputError, nearest
from rotarymae.rope import check_head_dim

# embed_dim, num_heads, depth, mlp_ratio. Table 8; "pendulum" is Table 14.
SIZES = {
    "tiny-shallow": (180, 3, 2, 4.0),
    "tiny": (180, 3, 12, 4.0),
    "small": (432, 6, 12, 4.0),
    "base": (720, 12, 12, 4.0),
    "pendulum": (60, 2, 2, 0.5),
}


@dataclass(frozen=True)
class RoMAEConfig:
    """Everything that shapes a model; saved with it as config.json.

    Attributes:
        axes: A, position axes of a token (time; time and band; row and column).
        features: V, values per token.
        embed_dim, num_heads, depth, mlp_ratio: the encoder; the MLP is embed_dim · mlp_ratio wide.
        decoder_embed_dim, decoder_num_heads, decoder_depth, decoder_mlp_ratio: the decoder, tiny-shallow in the paper.
        position_encoding: "rotary", or "absolute" for added sines and cosines of the same positions (the baseline).
        p: share of the rotary frequencies of each axis that is kept, the fastest first.
        base: the slowest frequency is about 1 / base.
        cls_token: prepend a learned [CLS] token at position 0, which anchors absolute positions.
        dropout: on attention weights and in the MLP.
        drop_path: stochastic depth of the last block; earlier ones drop less, linearly.
        norm_eps: added to the mean square in RMSNorm.
        likelihood: "point" predicts values; "gaussian" predicts a log-variance beside each.

    Raises:
        InputError: a value out of its range, or sizes that do not divide; the message gives the numbers.
    """

    axes: int = 1
    features: int = 1
    embed_dim: int = 180
    num_heads: int = 3
    depth: int = 2
    mlp_ratio: float = 4.0
    decoder_embed_dim: int = 180
    decoder_num_heads: int = 3
    decoder_depth: int = 2
    decoder_mlp_ratio: float = 4.0
    position_encoding: str = "rotary"
    p: float = 0.75
    base: float = 10_000.0
    cls_token: bool = True
    dropout: float = 0.0
    drop_path: float = 0.0
    norm_eps: float = 1e-6
    likelihood: str = "point"

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            _check_type(field.name, getattr(self, field.name), type(field.default))
        for field in dataclasses.fields(self):
            if isinstance(field.default, int) and not isinstance(field.default, bool):
                _check_at_least_one(field.name, getattr(self, field.name))
        for prefix in ("", "decoder_"):
            self._check_block(prefix)
        if not 0 <= self.p <= 1:
            raise InputError(f"p is {self.p}; wanted 0 to 1, the share of rotary frequencies kept.")
        for name in ("base", "norm_eps"):
            if not (getattr(self, name) > 0 and math.isfinite(getattr(self, name))):
                raise InputError(f"{name} is {getattr(self, name)}; wanted a positive number.")
        for name in ("dropout", "drop_path"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; wanted at least 0 and less than 1.")
        _check_choice("position_encoding", self.position_encoding, ("rotary", "absolute"))
        _check_choice("likelihood", self.likelihood, ("point", "gaussian"))
        if self.position_encoding == "absolute" and self.p != type(self).p:
            raise InputError(
                f"p ({self.p}) means nothing with position_encoding='absolute'; leave it at {type(self).p}."
            )

    @classmethod
    def named(cls, name: str, **changes: Any) -> RoMAEConfig:
        """The encoder size `name` (tiny-shallow, tiny, small, base, pendulum) with the fields in `changes` set.

        Raises:
            InputError: an unknown name or field; the nearest one is named.
        """
        if name not in SIZES:
            raise InputError(f"no model size {name!r}{nearest(name, SIZES)}; there are {', '.join(SIZES)}.")
        embed_dim, num_heads, depth, mlp_ratio = SIZES[name]
        return cls.from_dict(
            {
                "embed_dim": embed_dim,
                "num_heads": num_heads,
                "depth": depth,
                "mlp_ratio": mlp_ratio,
                **changes,
            }
        )

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> RoMAEConfig:
        """From the dictionary `to_dict` gives. An unknown key is an InputError that names the nearest one."""
        known = [field.name for field in dataclasses.fields(cls)]
        for key in fields:
            if key not in known:
                raise InputError(f"no field {key!r} in RoMAEConfig{nearest(key, known)}.")
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @property
    def head_dim(self) -> int:
        return self.embed_dim // self.num_heads

    def _check_block(self, prefix: str) -> None:
        embed_dim, num_heads = getattr(self, prefix + "embed_dim"), getattr(self, prefix + "num_heads")
        if embed_dim % num_heads:
            raise InputError(f"{prefix}embed_dim ({embed_dim}) must be a multiple of {prefix}num_heads ({num_heads}).")
        try:
            if self.position_encoding == "rotary":
                check_head_dim(embed_dim // num_heads, self.axes)
            else:
                check_head_dim(embed_dim, self.axes)
        except InputError as error:
            raise InputError(f"{prefix}embed_dim {embed_dim}, {prefix}num_heads {num_heads}: {error}") from None
        hidden = embed_dim * getattr(self, prefix + "mlp_ratio")
        if hidden < 1 or abs(hidden - round(hidden)) > 1e-6:
            raise InputError(
                f"{prefix}embed_dim ({embed_dim}) · {prefix}mlp_ratio ({getattr(self, prefix + 'mlp_ratio')}) is "
                f"{hidden}; the MLP's width must be a whole number of at least 1."
            )


def _check_type(name: str, value: Any, wanted: type) -> None:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return
    if type(value) is not wanted:
        raise InputError(f"{name} is {value!r} ({type(value).__name__}); wanted {wanted.__name__}.")


def _check_at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise InputError(f"{name} is {value}; wanted at least 1.")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} is {value!r}; wanted {' or '.join(repr(c) for c in choices)}.")
