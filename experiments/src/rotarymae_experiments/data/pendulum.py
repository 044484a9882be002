"""A pendulum filmed through static: 24 × 24 pictures at 50 irregular frames of 100, and its angle at each.

Section 5.4 of arXiv:2505.20535 (Table 5); the data set of CRU as used by S5's pendulum branch
(github.com/lindermanlab/S5), written here from a description of the protocol, which is in results/notes/pendulum.md.

Random streams: one `RandomState(42)` makes training (2000 sequences) and then test (1000), a second
`RandomState(43)` validation (1000). Draws of a set of N: theta [N, 1]; per frame step N normals; normals [N, 100,
2] (angle, speed); f_0 [N]; 99 times [N]; t1 [N, 1]; t2 [N, 1]; then for each sequence uniforms [100, 24, 24, 1].
Training comes first whatever its size, so another `train` changes the test set.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from rotarymae_experiments.data.shared import Parts

GRAVITY = 9.81
LENGTH = 1.0
MASS = 1.0
INERTIA = MASS * LENGTH**2 / 3
FRICTION = 0.1
EULER_STEP = 1e-4
PROCESS_STD = 0.1
OBSERVATION_STD = 1e-5
SIZE = 24
FRAMES = 100
KEPT = 50  # of the frames of a sequence
CLEAN_FRAMES = 5
EULER_STEPS = 100  # that make a frame step of 0.01 s


@dataclass(frozen=True)
class PendulumSet:
    """S sequences of K kept frames.

    Attributes:
        images: [S, K, 24, 24] uint8; divide by 255 for a model: mean 0.25, standard deviation 0.27.
        times: [S, K] int64, index of the frame in 0..99, ascending.
        targets: [S, K, 2] float64, sine and cosine of the angle, which is 0 where the pendulum hangs down.
    """

    images: NDArray[np.uint8]
    times: NDArray[np.int64]
    targets: NDArray[np.float64]


def pendulum(train: int = 2000, valid: int = 1000, test: int = 1000) -> Parts[PendulumSet]:
    """Make the training, validation and test set with these numbers of sequences; the defaults take half a minute."""
    shared = np.random.RandomState(42)
    train_set = _make(shared, irregular_times(train, train))
    test_set = _make(shared, irregular_times(test, 0))
    return Parts(train_set, _make(np.random.RandomState(43), irregular_times(valid, valid)), test_set)


def advance(
    theta: NDArray[np.float64], speed: NDArray[np.float64], steps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return angle and speed of pendulums after `steps` semi-implicit Euler steps of 1e-4 s.

    Angles `theta` are in rad, 0 where a pendulum stands upright; speeds are in rad/s. Both have one shape, any.
    """
    pull = GRAVITY * LENGTH * MASS / INERTIA
    for _ in range(steps):
        speed = speed + EULER_STEP * (pull * np.sin(theta) - FRICTION * speed)
        theta = theta + EULER_STEP * speed
    return theta, speed


def simulate(rng: np.random.RandomState, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Simulate n pendulums: return angle (rad, 0 = hanging down) and speed (rad/s) at each frame, both [n, 100].

    Each frame step adds noise to the speed. `rng` draws theta [n, 1], then n normals for each of the 99 steps.
    """
    angle, speed = np.empty((2, n, FRAMES))
    theta = rng.uniform(0, 2 * np.pi, (n, 1))[:, 0]
    omega = np.zeros(n)
    angle[:, 0], speed[:, 0] = theta, omega
    for frame in range(1, FRAMES):
        theta, omega = advance(theta, omega, EULER_STEPS)
        omega = omega + rng.normal(0, PROCESS_STD, n)
        theta = theta % (2 * np.pi)
        angle[:, frame], speed[:, frame] = theta, omega
    return angle - np.pi, speed


def render(angle: float) -> NDArray[np.uint8]:
    """Return the picture of a pendulum, [24, 24] uint8; the angle is in rad, 0 = hanging down, growing to the right."""
    canvas = Image.new("F", (128, 128), 0.0)
    end = (64 + 55 * np.sin(angle), 64 + 55 * np.cos(angle))
    ImageDraw.Draw(canvas).line([(64.0, 64.0), end], fill=1.0, width=8)
    small = np.asarray(canvas.resize((SIZE, SIZE), Image.Resampling.LANCZOS))
    return (np.clip(small, 0, 1) * 255).astype(np.uint8)


def clearness(rng: np.random.RandomState, n: int) -> NDArray[np.float64]:
    """Draw the weight of the picture against static in each frame of n sequences, [n, 100], from 0 to 1.

    It is 1 in the first five frames, and then wanders. `rng` draws f_0, the steps, t1 and t2, as the top of this file
    lists.
    """
    walk = np.empty((n, FRAMES))
    walk[:, 0] = rng.uniform(0, 1, n)
    for frame in range(1, FRAMES):
        walk[:, frame] = np.clip(walk[:, frame - 1] + rng.uniform(-0.2, 0.2, n), 0, 1)
    low = rng.uniform(0, 0.25, (n, 1))
    high = rng.uniform(0.75, 1, (n, 1))
    weight = np.clip((walk - low) / (high - low), 0, 1)
    weight[:, :CLEAN_FRAMES] = 1
    return weight


def irregular_times(n: int, seed: int) -> NDArray[np.int64]:
    """Return the indices of the kept frames, [n, 50], sorted; sequence i is drawn by `default_rng(seed + i)`."""
    draws = (np.random.default_rng(seed + i).choice(FRAMES, KEPT, replace=False) for i in range(n))
    return np.sort(np.stack(list(draws)), axis=1).astype(np.int64)


def _make(rng: np.random.RandomState, times: NDArray[np.int64]) -> PendulumSet:
    """Make one set of n sequences, with the frames `times` [n, keep], ascending indices from 0.

    `rng` draws for every frame, kept or not, but only the kept ones are rendered.
    """
    n, keep = times.shape
    angle, _ = simulate(rng, n)
    seen_angle = angle + rng.normal(0, OBSERVATION_STD, (n, FRAMES, 2))[..., 0]
    weight = clearness(rng, n)
    images = np.empty((n, keep, SIZE, SIZE), np.uint8)
    for i, kept in enumerate(times):
        static = rng.uniform(0, 255, (FRAMES, SIZE, SIZE, 1))[kept, :, :, 0]
        clear = np.stack([render(a) for a in seen_angle[i, kept]])
        share = weight[i, kept][:, None, None]
        images[i] = (share * clear + (1 - share) * static).astype(np.uint8)
    kept_angle = np.take_along_axis(angle, times, axis=1)
    return PendulumSet(images, times, np.stack([np.sin(kept_angle), np.cos(kept_angle)], axis=-1))


def published_sum(predicted: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    """Return the "Test MSE" of the published RoMAE script: the *sum* of squared errors, times 1e-3; both [S, K, 2]."""
    return float(((predicted - targets) ** 2).sum() * 1e-3)
