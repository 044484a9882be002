"""Spirals in the plane, half of them running the other way, by ContiFormer's protocol and by RoMAE's.

Section 5.5 and Appendix D.7 of arXiv:2505.20535 (Table 7, column Spirals), after ContiFormer's `spiral.py`
(github.com/microsoft/SeqML, MIT). With s = 0.02, a_i = s N(0, 1), b_i = 0.3 + s N(0, 1), t = linspace(0, 6 pi, 150):

    "counter-clockwise":  r = a_i + b_i t,               (x, y) = (r cos t + 5, r sin t)
    "clockwise":          z = 6 pi + 1 - t,
                          r = a_i + 50 b_i / z,          (x, y) = (r cos z - 5, r sin z), then reversed in time

Both protocols are described in results/notes/spirals.md.

Random stream: `numpy.random.RandomState(seed)`: a [S], b [S], one uniform per spiral (> 0.5 is counter-clockwise),
standard normals [S, points, 2], then for ContiFormer's set the test context of 50 indices.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rotarymae_experiments.data.shared import Parts, mse

LAST_TIME = 6 * np.pi
SPREAD = 0.02
POINTS = 150
HALF = 75
NOISE = 0.05  # of ContiFormer's set, in raw units
ROMAE_NOISE = 0.1  # of RoMAE's


@dataclass(frozen=True)
class Spirals:
    """S spirals of T points, all at the same times.

    Attributes:
        times: [T] float64, radians.
        noisy: [S, T, 2] float64, x and y with noise: the input.
        clean: [S, T, 2] float64, the same points without noise.
        counter_clockwise: [S] bool, the type.
        offset, scale: [2] each; raw coordinates = scale * coordinates here + offset (0 and 1 where nothing was scaled).
        context: [50] int64, ContiFormer's one draw of seen points for test, sorted; None in RoMAE's protocol.
    """

    times: NDArray[np.float64]
    noisy: NDArray[np.float64]
    clean: NDArray[np.float64]
    counter_clockwise: NDArray[np.bool_]
    offset: NDArray[np.float64]
    scale: NDArray[np.float64]
    context: NDArray[np.int64] | None = None

    def split(self, *, train: int = 200, valid: int = 0) -> "Parts[Spirals]":
        """Split into training, validation and test spirals: the first `train`, of which the last `valid` validate.

        All others are for the test.
        """
        return Parts(self._rows(0, train - valid), self._rows(train - valid, train), self._rows(train, len(self.clean)))

    def _rows(self, start: int, stop: int) -> "Spirals":
        """Return the spirals with the indices from `start` to `stop`, the latter excluded."""
        return replace(
            self,
            noisy=self.noisy[start:stop],
            clean=self.clean[start:stop],
            counter_clockwise=self.counter_clockwise[start:stop],
        )


def contiformer_spirals(n: int = 300, *, seed: int = 27) -> Spirals:
    """Draw ContiFormer's set of n spirals: 150 points, noise of deviation 0.05 before clean ones scale to [0, 1]."""
    rng = np.random.RandomState(seed)
    times = np.linspace(0, LAST_TIME, POINTS)
    clean, kind = _curves(rng, n, times)
    noisy = clean + NOISE * rng.standard_normal(clean.shape)
    context = np.sort(rng.choice(HALF, 50, replace=False))
    offset = clean.min(axis=(0, 1))
    scale = clean.max(axis=(0, 1)) - offset
    return Spirals(times, (noisy - offset) / scale, (clean - offset) / scale, kind, offset, scale, context)


def romae_spirals(n: int = 300, *, seed: int = 27) -> Spirals:
    """Draw RoMAE's set of n spirals: the first 75 of ContiFormer's points (times up to 3 pi), noise of deviation 0.1.

    Coordinates are in raw units, and there is no `context`.
    """
    rng = np.random.RandomState(seed)
    times = np.linspace(0, LAST_TIME, POINTS)
    clean, kind = _curves(rng, n, times)
    times, clean = times[:HALF], clean[:, :HALF]
    noisy = clean + ROMAE_NOISE * rng.standard_normal(clean.shape)
    return Spirals(times, noisy, clean, kind, np.zeros(2), np.ones(2))


def _curves(
    rng: np.random.RandomState, n: int, times: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Draw n clean curves [n, T, 2] in raw units at the times [T], and whether each is counter-clockwise [n]."""
    a = SPREAD * rng.standard_normal((n, 1))
    b = 0.3 + SPREAD * rng.standard_normal((n, 1))
    kind = rng.uniform(size=n) > 0.5
    radius = a + b * times
    outward = np.stack([radius * np.cos(times) + 5, radius * np.sin(times)], axis=-1)
    angle = LAST_TIME + 1 - times
    radius = a + 50 * b / angle
    inward = np.stack([radius * np.cos(angle) - 5, radius * np.sin(angle)], axis=-1)[:, ::-1]
    return np.where(kind[:, None, None], outward, inward), kind


def draw_shared_context(rng: np.random.Generator, *, seen: int = 50) -> NDArray[np.int64]:
    """Draw which of the first 75 points ContiFormer's training sees, in all spirals alike: sorted indices [seen]."""
    return np.sort(rng.permutation(HALF)[:seen])


def mae(predicted: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    """Return ContiFormer's MAE, the mean over points of |dx| + |dy|; both arguments are coordinates [..., 2]."""
    return float(np.abs(predicted - targets).sum(axis=-1).mean())


def rmse(predicted: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    """Return ContiFormer's RMSE, the root of the mean over points of dx^2 + dy^2; both are coordinates [..., 2]."""
    return float(np.sqrt(((predicted - targets) ** 2).sum(axis=-1).mean()))


def rmse_per_coordinate(predicted: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    """Return RoMAE's RMSE, the root of the mean squared error over points and coordinates: `rmse` / sqrt(2).

    Both arguments are coordinates [..., 2].
    """
    return float(np.sqrt(mse(predicted, targets)))


def noise_floor(spirals: Spirals, hidden: NDArray[np.bool_]) -> float:
    """Return the error (`rmse_per_coordinate`) of predicting the clean curve at the points of a mask `hidden` [S, T].

    It comes from the noise of the points alone.
    """
    return rmse_per_coordinate(spirals.clean[hidden], spirals.noisy[hidden])
