"""The shared parts of recipes about series on a grid of times: drawn examples, predictions of masked tokens, scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.batch import Batch
from rotarymae.config import RoMAEConfig
from rotarymae.interpolation import predict_at
from rotarymae.model import MaskedAutoencoder
from rotarymae.tokens import Tokens, compact
from rotarymae_experiments.data.shared import Posterior
from rotarymae_experiments.runner import Row

if TYPE_CHECKING:
    from rotarymae_experiments.figures import Panel

SHARES = (0.5, 0.68, 0.95)  # of the central bands that are scored
HALF_WIDTHS = {share: NormalDist().inv_cdf(0.5 + share / 2) for share in SHARES}  # of these bands, in deviations
# Of `ours`: narrower and shallower than the paper's tiny, and it predicts a variance.
NARROW = RoMAEConfig(
    embed_dim=64, num_heads=4, depth=4, decoder_embed_dim=64, decoder_num_heads=4, likelihood="gaussian"
)


class DrawnExamples:
    """Examples that a function makes from the indices [B] of series and the epoch (None for the fixed ones).

    Args:
        size: examples per epoch.
        length: tokens per example, for the loop's count of tokens and batches by budget.
        draw: makes a batch; a pure function of its arguments.
    """

    def __init__(self, size: int, length: int, draw: Callable[[np.ndarray, int | None], Batch]) -> None:
        self.lengths = np.full(size, length)
        self._draw = draw

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """Return the batch of these indices in this epoch, as `draw` makes it."""
        return self._draw(index, epoch)

    def names(self, index: Any) -> list[str]:
        """Return the indices as names, for messages."""
        return [str(int(i)) for i in index]


def on_grid(values: np.ndarray | Tensor, times: np.ndarray, position_scale: float = 1.0) -> Tokens:
    """Series [B, T] or [B, T, V] as tokens at the times [T] they share, times `position_scale`."""
    values = torch.as_tensor(values).float()
    if values.ndim == 2:
        values = values[..., None]
    positions = torch.from_numpy((times * position_scale).astype(np.float32))[None, :, None]
    return Tokens(values, positions.expand(len(values), -1, 1), check_values=False)


def predict_masked(
    model: MaskedAutoencoder, tokens: Tokens, context: np.ndarray, queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Predicts the query tokens of [S, N] from the context tokens (bool [S, N] each).

    Returns:
        Mean and standard deviation (None of a model without) [S, N, V], NaN where nothing was asked.
    """
    mean = np.full((*queries.shape, tokens.features), np.nan)
    std = mean.copy() if model.likelihood.has_spread else None
    size = max(1, 50_000 // tokens.length)
    with torch.no_grad():
        for start in range(0, len(queries), size):
            part = slice(start, start + size)
            some = Tokens(tokens.values[part], tokens.positions[part], check_values=False)
            queried = compact(some, torch.from_numpy(queries[part]))
            visible = compact(some, torch.from_numpy(context[part]))
            predicted = predict_at(model, visible, queried.positions, queried.padding)
            # Row by row tokens keep their order, so both sides list them alike.
            mean[part][queries[part]] = model.likelihood.mean(predicted)[queried.real].double().numpy()
            if std is not None:
                std[part][queries[part]] = model.likelihood.std(predicted)[queried.real].double().numpy()
    return mean, std


def calibration(target: np.ndarray, mean: np.ndarray, std: np.ndarray) -> dict[str, float]:
    """Negative log-likelihood (nats per value) of normal predictions, and the share of targets in central bands."""
    away = (target - mean) / std
    scores = {"NLL": float((0.5 * away**2 + np.log(std)).mean() + 0.5 * math.log(2 * math.pi))}
    for share in SHARES:
        scores[f"inside {100 * share:.0f} %"] = float((np.abs(away) <= HALF_WIDTHS[share]).mean())
    return scores


def calibrations(
    noisy: np.ndarray, hidden: np.ndarray, mean: np.ndarray, std: np.ndarray | None, best: Posterior
) -> dict[str, float]:
    """`calibration` of predictions at the hidden points [S, T], if they have a deviation, and of the optimum."""
    scores = {} if std is None else calibration(noisy[hidden], mean[hidden], std[hidden])
    optimum = calibration(noisy[hidden], best.mean[hidden], best.std[hidden])
    return scores | {f"optimum {name}": value for name, value in optimum.items()}


def example(
    noisy: np.ndarray, seen: np.ndarray, mean: np.ndarray, std: np.ndarray | None, best: Posterior, i: int
) -> dict[str, np.ndarray]:
    """Series `i` of [S, T] with its predictions, by the names that `panel` reads."""
    shown = {"values": noisy[i], "seen": seen[i], "mean": mean[i], "exact": best.mean[i]}
    return shown if std is None else shown | {"std": std[i]}


def calibration_rows(case: str, prefix: str = "") -> list[Row]:
    """The lines of the table for what `calibration` gives, beside the same of the optimum."""
    names = {"NLL (nats)": "NLL"}
    names |= {f"inside the {100 * share:.0f} % band": f"inside {100 * share:.0f} %" for share in SHARES}
    return [Row(f"{prefix}{what}", case, metric, simple=f"optimum {metric}") for what, metric in names.items()]


def linear_interpolation(times: np.ndarray, values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Straight lines through the values [S, T] that are seen (bool [S, T]), constant beyond the first and last."""
    return np.stack([np.interp(times, times[here], row[here]) for row, here in zip(values, seen, strict=True)])


def panel(times: np.ndarray, shown: dict[str, Any], optimum: str) -> Panel:
    """A series' prediction at its hidden points, with the band of 95 %, beside what was seen and the exact answer.

    Args:
        shown: what `example` returned, as a result file has it.
        optimum: what the exact answer is called.
    """
    from rotarymae_experiments.figures import Panel

    seen, values = np.array(shown["seen"]), np.array(shown["values"])
    mean, band = np.array(shown["mean"], np.float64)[~seen], None
    if "std" in shown:
        half = HALF_WIDTHS[0.95] * np.array(shown["std"], np.float64)[~seen]
        band = (times[~seen], mean - half, mean + half)
    lines = {"RoMAE": (times[~seen], mean), optimum: (times, np.array(shown["exact"]))}
    return Panel(lines, (times[seen], values[seen]), (times[~seen], values[~seen]), band)
