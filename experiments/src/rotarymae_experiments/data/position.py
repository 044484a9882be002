"""Absolute-position reconstruction: identical tokens whose only secret is where they are.

Paper: Section 5.1 (Table 1) and Appendix B.1 (Figure 2) of arXiv:2505.20535. Every token carries the same value, so
a model can tell positions apart through its position encoding alone, and the target of a token is its own position.

Table 1 has ten tokens at positions from U(0, 50), 20,000 training and 4,000 test samples; the published code
(github.com/Chromeilion/RoMAE-Experiments) draws from U(1, 50). Figure 2 has one token at a position from U(0, 100) or
U(0, 1000). Appendix B.1 states no sizes; Table 16 has the batch size, epochs and warm-up of Table 17, so the sizes of
Table 1 are taken.

Whoever cannot see absolute positions does best by answering the mean of the domain, which scores the variance of
the uniform distribution, `trivial_mse`: 208.33 for U(0, 50) and 200.08 for U(1, 50). Table 1 prints 200.33.

Units: positions have none (a RoPE position: the fastest frequency turns one radian per unit).
Random streams: training from `numpy.random.default_rng([seed, 0])`, test from `default_rng([seed, 1])`; one call of
`uniform` each, in float64, then rounded to float32.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class PositionSets(NamedTuple):
    """Training and test set: the positions of N tokens in S samples, [S, N], which are the targets, too."""

    train: NDArray[np.float32]
    test: NDArray[np.float32]


class ErrorByPosition(NamedTuple):
    """The curve of Figure 2: errors by position.

    Attributes:
        fraction: [bins] the middle of each bin as a fraction of the domain, from 0 to 1.
        mse: [bins] mean squared error of the tokens in the bin; NaN where there is none.
    """

    fraction: NDArray[np.float64]
    mse: NDArray[np.float64]


def position_sets(
    low: float = 0.0, high: float = 50.0, tokens: int = 10, train: int = 20_000, test: int = 4_000, seed: int = 0
) -> PositionSets:
    """Draw `train` and `test` samples of `tokens` positions each, uniform from `low` to `high`, in position units."""
    draws = (
        np.random.default_rng([seed, stream]).uniform(low, high, (size, tokens))
        for stream, size in enumerate((train, test))
    )
    return PositionSets(*(draw.astype(np.float32) for draw in draws))


def trivial_mse(low: float, high: float) -> float:
    """Return the least mean squared error of an answer that does not depend on the position: (high - low)^2 / 12."""
    return (high - low) ** 2 / 12


def mse_by_position(predicted: ArrayLike, targets: ArrayLike, high: float, bins: int = 50) -> ErrorByPosition:
    """Return the mean squared error of tokens by their position, in `bins` equal parts of 0 to `high`.

    `predicted` and `targets` are positions [S, N].
    """
    predicted, targets = np.asarray(predicted, np.float64), np.asarray(targets, np.float64)
    which = np.minimum((targets.ravel() / high * bins).astype(np.int64), bins - 1)
    count = np.bincount(which, minlength=bins)
    total = np.bincount(which, weights=((predicted - targets) ** 2).ravel(), minlength=bins)
    mean = np.divide(total, count, out=np.full(bins, np.nan), where=count > 0)
    return ErrorByPosition((np.arange(bins) + 0.5) / bins, mean)
