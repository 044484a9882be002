"""What recipes about series on a grid of times share: examples that are drawn, questions to a model, and its scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.bands import HALF_WIDTHS
from rotarymae.batch import Batch
from rotarymae.model import MaskedAutoencoder
from rotarymae.tokens import Tokens

# Of an autoencoder that only has to show that everything runs.
SMOKE = {
    "embed_dim": 24,
    "num_heads": 2,
    "depth": 1,
    "decoder_embed_dim": 24,
    "decoder_num_heads": 2,
    "decoder_depth": 1,
}


class DrawnExamples:
    """Examples that a function makes: of the places [B] in the data and the epoch (None for the fixed ones).

    Args:
        size: examples in an epoch.
        length: tokens of each, for the loop's count of tokens and batches by budget.
        draw: makes a batch; a pure function of its arguments.
        about: what the examples are made of, as JSON: a run is resumed only with the same.
    """

    def __init__(
        self, size: int, length: int, draw: Callable[[np.ndarray, int | None], Batch], about: dict[str, Any]
    ) -> None:
        self.lengths = np.full(size, length)
        self._draw = draw
        self._about = about

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        return self._draw(index, epoch)

    def identity(self) -> dict[str, Any]:
        return {"examples": len(self.lengths), **self._about}

    def names(self, index: Any) -> list[str]:
        return [str(int(i)) for i in index]


def on_grid(values: Tensor, times: np.ndarray, position_scale: float = 1.0) -> Tokens:
    """Series [B, T] or [B, T, V] as tokens at the times [T] they share, times `position_scale`."""
    if values.ndim == 2:
        values = values[..., None]
    positions = torch.from_numpy((times * position_scale).astype(np.float32))[None, :, None]
    return Tokens(values, positions.expand(len(values), -1, 1), check_values=False)


def ask(
    model: MaskedAutoencoder, tokens: Tokens, seen: np.ndarray, asked: np.ndarray, queries: int | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """What a model says of the tokens [S, N] that are `asked` when it sees those that are `seen` (bool [S, N] each).

    Returns mean and standard deviation (None of a model without) [S, N, V], NaN where nothing was asked. With
    `queries`, a pass asks for at most so many, drawn at random, as a model trained so expects.
    """
    mean = np.full((*asked.shape, tokens.features), np.nan)
    std = mean.copy() if model.config.likelihood == "gaussian" else None
    parts = 1 if queries is None else -(-int(asked.sum(1).max()) // queries)
    rank = np.where(asked, np.random.default_rng(0).random(asked.shape), 2.0).argsort(1).argsort(1)
    turn = np.where(asked, rank * parts // asked.sum(1, keepdims=True), -1)
    size = max(1, 50_000 // tokens.length)
    with torch.no_grad():
        for start in range(0, len(asked), size):
            part = slice(start, start + size)
            some = Tokens(tokens.values[part], tokens.positions[part], check_values=False)
            visible = _pick(some, seen[part])
            for i in range(parts):
                place = turn[part] == i
                out = model.predict(visible, _pick(some, place))
                real = out.masked.real  # row by row tokens keep their order, so both sides list them alike
                mean[part][place] = out.predicted[real].double().numpy()
                if std is not None and out.log_variance is not None:
                    std[part][place] = (0.5 * out.log_variance[real].double()).exp().numpy()
    return mean, std


def _pick(tokens: Tokens, place: np.ndarray) -> Tokens:
    """The tokens of each row that are True in `place` [S, N], in their order."""
    order, count = torch.from_numpy((~place).argsort(1, kind="stable")), place.sum(1)
    longest = int(count.max())
    padding = torch.from_numpy(np.arange(longest) >= count[:, None])
    return tokens.select(order[:, :longest], padding if padding.any() else None)


def calibration(target: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """Negative log-likelihood (nats a value) of normal predictions, and the share of targets in their central bands."""
    away = (target - mean) / std
    found = {"NLL": float((0.5 * away**2 + np.log(std)).mean() + 0.5 * math.log(2 * math.pi))}
    for share in (0.5, 0.68, 0.95):
        found[f"inside {100 * share:.0f} %"] = float((np.abs(away) <= HALF_WIDTHS[share]).mean())
    return found


def linear_interpolation(times: np.ndarray, values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Of the values [S, T] that are seen (bool [S, T]), the nearest one beyond them: what a model must beat."""
    return np.stack([np.interp(times, times[here], row[here]) for row, here in zip(values, seen, strict=True)])
