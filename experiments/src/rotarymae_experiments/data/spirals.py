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

    times: [T] float64, radians.
    noisy: [S, T, 2] float64, x and y with noise: the input.
    clean: [S, T, 2] float64, the same points without noise.
    counter_clockwise: [S] bool, the type.
    offset, scale: [2] each; raw coordinates = scale * coordinates here + offset (1 and 0 where nothing was scaled).
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
        """The first `train` spirals, the last `valid` of them set apart for validation, and all others for test."""
        return Parts(self._rows(0, train - valid), self._rows(train - valid, train), self._rows(train, len(self.clean)))

    def _rows(self, start: int, stop: int) -> "Spirals":
        """Return the spirals from `start` to `stop`."""
        return replace(
            self,
            noisy=self.noisy[start:stop],
            clean=self.clean[start:stop],
            counter_clockwise=self.counter_clockwise[start:stop],
        )


def contiformer_spirals(n: int = 300, *, seed: int = 27) -> Spirals:
    """ContiFormer's set: 150 points, noise of deviation 0.05 before coordinates are scaled into [0, 1]."""
    rng = np.random.RandomState(seed)
    times = np.linspace(0, LAST_TIME, POINTS)
    clean, kind = _curves(rng, n, times)
    noisy = clean + NOISE * rng.standard_normal(clean.shape)
    context = np.sort(rng.choice(HALF, 50, replace=False))
    offset = clean.min(axis=(0, 1))
    scale = clean.max(axis=(0, 1)) - offset
    return Spirals(times, (noisy - offset) / scale, (clean - offset) / scale, kind, offset, scale, context)


def romae_spirals(n: int = 300, *, seed: int = 27) -> Spirals:
    """RoMAE's set: the first 75 of ContiFormer's points (times up to 3 pi) in raw units, noise of deviation 0.1."""
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
    """ContiFormer's training draw: `seen` of the first 75 points, sorted, [seen]; one draw serves all spirals."""
    return np.sort(rng.permutation(HALF)[:seen])


def mae(predicted: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    """ContiFormer's MAE: mean over points of |dx| + |dy|; both [..., 2]."""
    return float(np.abs(predicted - targets).sum(axis=-1).mean())


def rmse(predicted: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    """ContiFormer's RMSE: root of the mean over points of dx^2 + dy^2; both [..., 2]."""
    return float(np.sqrt(((predicted - targets) ** 2).sum(axis=-1).mean()))


def rmse_per_coordinate(predicted: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    """RoMAE's RMSE: root of the mean over points and coordinates, which is `rmse` / sqrt(2); both [..., 2]."""
    return float(np.sqrt(mse(predicted, targets)))


def noise_floor(spirals: Spirals, hidden: NDArray[np.bool_]) -> float:
    """`rmse_per_coordinate` of the clean curve against the noisy points at `hidden` [S, T]."""
    return rmse_per_coordinate(spirals.clean[hidden], spirals.noisy[hidden])
