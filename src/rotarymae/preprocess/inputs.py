"""Further inputs that the encoder reads of an observation in addition to its values, and that nothing predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rotarymae.preprocess.values import asinh
from rotarymae.series.columns import error_columns
from rotarymae.series.dataset import SeriesDataset

MOST_CHANNELS = 64  # of a one-hot vector; beyond, it would be wider than what it describes


@dataclass(frozen=True)
class Inputs:
    """Further inputs of a token, computed from its own observation alone.

    Attributes:
        channels: the channel as a one-hot vector of this length; 0 for none. A band's colour is learnt faster from it
            than from the channel's position alone.
        signal_to_noise: pairs (column, column of its standard error), each of which gives asinh(value / error), or 0
            where the error is not positive.
    """

    channels: int = 0
    signal_to_noise: tuple[tuple[str, str], ...] = ()

    @classmethod
    def fit(
        cls,
        dataset: SeriesDataset,
        channel_one_hot: bool = False,
        signal_to_noise: bool = False,
        errors: Sequence[str] = (),
    ) -> Inputs:
        """The inputs that a data set has: one-hot channels if they are 2 to 64, and the columns with errors.

        A column has its error in that of `errors` with its number; without these, as `error_columns` says.
        """
        count = len(dataset.channel_names or ()) if channel_one_hot else 0
        pairs = error_columns(dataset.value_names) if signal_to_noise else []
        if errors and signal_to_noise:
            pairs = list(zip(dataset.value_names, errors, strict=False))
        return cls(count if 2 <= count <= MOST_CHANNELS else 0, tuple(pairs))

    @property
    def width(self) -> int:
        """E, the features per token."""
        return self.channels + len(self.signal_to_noise)

    def compute(
        self, values: Float[Tensor, "*shape W"], channel: Int[Tensor, "*shape"], value_names: tuple[str, ...]
    ) -> Float[Tensor, "*shape E"]:
        """Return the inputs of observations with values in the table's units, in channels counted from 0."""
        parts = [(channel[..., None] == torch.arange(self.channels, device=channel.device)).double()]
        for column, error in self.signal_to_noise:
            value, spread = values[..., value_names.index(column)], values[..., value_names.index(error)]
            known = spread > 0
            ratio = torch.where(known, value / torch.where(known, spread, 1.0), 0.0)
            parts.append(asinh(ratio)[..., None])
        return torch.cat(parts, -1)

    def describe(self) -> str:
        """In words, for reports and model cards."""
        words = [f"the channel as a one-hot vector of {self.channels}"] if self.channels else []
        words += [f"asinh({column} / {error})" for column, error in self.signal_to_noise]
        return ", ".join(words) or "none"
