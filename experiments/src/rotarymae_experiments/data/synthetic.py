"""HeTVAE's synthetic interpolation set: smooth random curves on 51 regular times, and the exact answer nobody can beat.

Section 5.5 and Appendix D.8 of arXiv:2505.20535 (Table 7, column Synthetic); generator of github.com/reml-lab/hetvae
(MIT), `src/utils.py`:

    v_j ~ N(0, 1) at 10 key times linspace(0, 1, 10); q = linspace(0, 1, 51)
    W_ij = exp(-120 (q_i - k_j)^2), rows normalised to 1; clean = W v; noisy = clean + 0.1 N(0, 1)

From the noisy values at a few of the 51 times, predict the *noisy* values at the others. Three departures from the
words of the sources are in results/notes/synthetic.md.

Random stream: `numpy.random.RandomState(seed)`, for each series 10 normals for v and then 51 for the noise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rotarymae_experiments.data.shared import Parts, Posterior, draw_seen

KEYS = 10
POINTS = 51
BANDWIDTH = 120.0
NOISE_STD = 0.1


@dataclass(frozen=True)
class SyntheticSeries:
    """S series on the same 51 times.

    Attributes:
        times: [51] float64, linspace(0, 1, 51).
        noisy: [S, 51] float64, what is observed and what is to be predicted.
        clean: [S, 51] float64, the curve without noise.
    """

    times: NDArray[np.float64]
    noisy: NDArray[np.float64]
    clean: NDArray[np.float64]

    def select(self, index: NDArray[np.int64]) -> "SyntheticSeries":
        """Return the series with the indices `index`, in their order."""
        return SyntheticSeries(self.times, self.noisy[index], self.clean[index])


def key_weights() -> NDArray[np.float64]:
    """Return W, [51, 10]: how much each of the 10 key values counts at each of the 51 times; rows sum to 1."""
    times, keys = np.linspace(0, 1, POINTS), np.linspace(0, 1, KEYS)
    weights = np.exp(-BANDWIDTH * (times[:, None] - keys[None, :]) ** 2)
    return weights / weights.sum(axis=1, keepdims=True)


def generate(n: int = 2000, *, seed: int = 0) -> SyntheticSeries:
    """Draw n series by `seed`; hetvae's README uses 2000 (its argument's default is 8000) and seed 0."""
    # One block of normals holds the same numbers as 10 and then 51 drawn series by series.
    normals = np.random.RandomState(seed).standard_normal((n, KEYS + POINTS))
    clean = normals[:, :KEYS] @ key_weights().T
    return SyntheticSeries(np.linspace(0, 1, POINTS), clean + NOISE_STD * normals[:, KEYS:], clean)


def split_indices(n: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices (train, validation, test) of a split of n series, disjoint and together all of 0..n-1.

    The first ceil(n / 5) of `RandomState(42).permutation(n)` are the test set of scikit-learn's
    `train_test_split(test_size=0.2, random_state=42)`, hence hetvae's; its first half is our test set and its second
    half our validation set.
    """
    shuffled = np.random.RandomState(42).permutation(n)
    held_out = -(-n // 5)
    half = held_out // 2
    return shuffled[held_out:], shuffled[half:held_out], shuffled[:half]


def splits(n: int = 2000) -> Parts[SyntheticSeries]:
    """Draw n series with seed 0, and split them 80/10/10 into training, validation and test sets."""
    series = generate(n)
    return Parts(*(series.select(index) for index in split_indices(n)))


def draw_context(rng: np.random.Generator, n: int, *, low: int = 3, high: int = 9) -> NDArray[np.bool_]:
    """Draw which points each of n series shows, [n, 51] bool, True = seen; the others are targets.

    Their number is uniform on low..high (both included), drawn for each series. hetvae trains with 3..9 and evaluates
    with low=high=25 (half of 51, rounded down).
    """
    return draw_seen(rng, n, POINTS, rng.integers(low, high, size=(n, 1), endpoint=True))


def posterior(noisy: ArrayLike, observed: ArrayLike) -> Posterior:
    """Return the exact mean of the curve, and deviation of a measurement, at all times, given some noisy values.

    These are `noisy` [S, 51] where the mask `observed` [S, 51] is True; each series may show different points, or none
    (the prior). Other values are not looked at.

    With Phi = the rows of W that were seen: covariance of v = (I + Phi' Phi / s^2)^-1, mean of v = that Phi' y / s^2: a
    10 x 10 system per series whatever was seen.
    """
    weights, observed = key_weights(), np.asarray(observed)
    outer = (weights[:, :, None] * weights[:, None, :]).reshape(POINTS, KEYS * KEYS)
    gram = (observed.astype(np.float64) @ outer).reshape(-1, KEYS, KEYS)
    keys = np.linalg.inv(np.eye(KEYS) + gram / NOISE_STD**2)
    seen = np.where(observed, noisy, 0.0)
    mean = np.einsum("sjk,sk->sj", keys, seen @ weights / NOISE_STD**2) @ weights.T
    variance = ((weights @ keys) * weights).sum(-1)
    return Posterior(mean, np.sqrt(variance + NOISE_STD**2))
