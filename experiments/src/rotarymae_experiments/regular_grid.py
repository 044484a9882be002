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
    """Examples of the training loop that a function makes when they are asked for.

    Args:
        size: examples per epoch.
        length: tokens per example, for the loop's count of tokens and batches by budget.
        draw: makes the batch of the examples at some indices [B] in an epoch (None for fixed ones, in evaluation); the
            same arguments always give the same batch.
    """

    def __init__(self, size: int, length: int, draw: Callable[[np.ndarray, int | None], Batch]) -> None:
        """Store the function, and the length of each example."""
        self.lengths = np.full(size, length)
        self._draw = draw

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """Return the batch of the examples at `index`, int [B], in this epoch, as `draw` makes it."""
        return self._draw(index, epoch)

    def names(self, index: Any) -> list[str]:
        """Return the indices as text, for messages."""
        return [str(int(i)) for i in index]


def on_grid(values: np.ndarray | Tensor, times: np.ndarray, position_scale: float = 1.0) -> Tokens:
    """Return series that share their times as tokens [B, T], none of them padding, in float32.

    Args:
        values: [B, T], or [B, T, V] for V values at each time.
        times: [T].
        position_scale: positions are times multiplied by this number.
    """
    values = torch.as_tensor(values).float()
    if values.ndim == 2:
        values = values[..., None]
    positions = torch.from_numpy((times * position_scale).astype(np.float32))[None, :, None]
    return Tokens(values, positions.expand(len(values), -1, 1), check_values=False)


def predict_masked(
    model: MaskedAutoencoder, tokens: Tokens, context: np.ndarray, queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Predict the values of some tokens of each series from others.

    Args:
        model: in evaluation mode.
        tokens: of S series [S, N].
        context: bool [S, N], True for tokens that the model sees.
        queries: bool [S, N], True for tokens whose values are predicted.

    Returns:
        Mean and standard deviation, both float64 [S, N, V], NaN where nothing was asked. The latter is None for a model
        that predicts no spread.
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
    """Return how well the spread of normal predictions fits: {"NLL": .., "inside 50 %": .., ..}.

    "NLL" is the mean negative log-likelihood in nats per value; the others are the shares of targets within central
    bands that should hold 50, 68 and 95 %.

    Args:
        target, mean, std: true values, and the predictions' means and standard deviations, all of one shape.
    """
    away = (target - mean) / std
    scores = {"NLL": float((0.5 * away**2 + np.log(std)).mean() + 0.5 * math.log(2 * math.pi))}
    for share in SHARES:
        scores[f"inside {100 * share:.0f} %"] = float((np.abs(away) <= HALF_WIDTHS[share]).mean())
    return scores


def calibrations(
    noisy: np.ndarray, hidden: np.ndarray, mean: np.ndarray, std: np.ndarray | None, best: Posterior
) -> dict[str, float]:
    """Return the scores of `calibration` of the predictions, if they have a spread, and of the exact optimum.

    The latter have "optimum " before their names.

    Args:
        noisy: true values [S, T].
        hidden: bool [S, T], which of them are scored.
        mean, std: predictions [S, T]; `std` is None without a spread.
        best: the optimum at all points.
    """
    scores = {} if std is None else calibration(noisy[hidden], mean[hidden], std[hidden])
    optimum = calibration(noisy[hidden], best.mean[hidden], best.std[hidden])
    return scores | {f"optimum {name}": value for name, value in optimum.items()}


def example(
    noisy: np.ndarray, seen: np.ndarray, mean: np.ndarray, std: np.ndarray | None, best: Posterior, i: int
) -> dict[str, np.ndarray]:
    """Return series `i` of S with its predictions: {name: [T]}, with the names that `panel` reads.

    Args:
        noisy, seen: values [S, T], and which of them the model saw, bool [S, T].
        mean, std: predictions [S, T]; `std` is None without a spread.
        best: the exact optimum at all points.
        i: number of the series.
    """
    shown = {"values": noisy[i], "seen": seen[i], "mean": mean[i], "exact": best.mean[i]}
    return shown if std is None else shown | {"std": std[i]}


def calibration_rows(case: str, prefix: str = "") -> list[Row]:
    """Return the lines of the table of results for the scores of `calibration`, next to those of the optimum.

    `case` is the case that has them; `prefix` stands before what each line says.
    """
    names = {"NLL (nats)": "NLL"}
    names |= {f"inside the {100 * share:.0f} % band": f"inside {100 * share:.0f} %" for share in SHARES}
    return [Row(f"{prefix}{what}", case, metric, simple=f"optimum {metric}") for what, metric in names.items()]


def linear_interpolation(times: np.ndarray, values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return straight lines through the seen values of each series, [S, T], constant beyond the first and last.

    Args:
        times: [T], ascending.
        values: [S, T].
        seen: bool [S, T], at least one True in each series.
    """
    return np.stack([np.interp(times, times[here], row[here]) for row, here in zip(values, seen, strict=True)])


def panel(times: np.ndarray, shown: dict[str, Any], optimum: str) -> Panel:
    """Return a panel with a series' prediction at its hidden points, its 95 % band, what was seen, and the exact one.

    Args:
        times: [T].
        shown: what `example` returned, perhaps read from a result file, with lists for arrays.
        optimum: what the legend calls the exact answer.
    """
    from rotarymae_experiments.figures import Panel

    seen, values = np.array(shown["seen"]), np.array(shown["values"])
    mean, band = np.array(shown["mean"], np.float64)[~seen], None
    if "std" in shown:
        half = HALF_WIDTHS[0.95] * np.array(shown["std"], np.float64)[~seen]
        band = (times[~seen], mean - half, mean + half)
    lines = {"RoMAE": (times[~seen], mean), optimum: (times, np.array(shown["exact"]))}
    return Panel(lines, (times[seen], values[seen]), (times[~seen], values[~seen]), band)
