"""The pendulum: angles, static and kept times replayed from the specification; pictures, pixels, the metrics."""

import math

import numpy as np
import pytest

from rotarymae_experiments.data import pendulum
from rotarymae_experiments.data.shared import mse


@pytest.fixture(scope="module")
def sets():
    return pendulum.pendulum(train=6, valid=4, test=5)


def replay_set(rng, n, frame_seconds=0.01):
    """Angles, and the noisy images of every frame, one number at a time in the specification's order."""
    theta = [rng.uniform(0, 2 * math.pi) for _ in range(n)]
    w = [0.0] * n
    angles = [[t - math.pi for t in theta]]
    for _ in range(99):
        for i in range(n):
            for _ in range(round(frame_seconds / 1e-4)):
                w[i] += 1e-4 * (29.43 * math.sin(theta[i]) - 0.1 * w[i])
                theta[i] += 1e-4 * w[i]
        for i in range(n):
            w[i] += 0.1 * rng.standard_normal()
            theta[i] %= 2 * math.pi
        angles.append([t - math.pi for t in theta])
    angles = np.array(angles).T
    jitter = 1e-5 * np.array([rng.standard_normal() for _ in range(n * 100 * 2)]).reshape(n, 100, 2)

    f = np.array([rng.uniform() for _ in range(n)])
    walk = [f]
    for _ in range(99):
        f = np.clip(f + np.array([rng.uniform(-0.2, 0.2) for _ in range(n)]), 0, 1)
        walk.append(f)
    t1 = np.array([rng.uniform(0, 0.25) for _ in range(n)])
    t2 = np.array([rng.uniform(0.75, 1) for _ in range(n)])
    images = np.empty((n, 100, 24, 24), np.uint8)
    for i in range(n):
        static = 255 * rng.random_sample((100, 24, 24))
        for k in range(100):
            a = 1.0 if k < 5 else min(max((walk[k][i] - t1[i]) / (t2[i] - t1[i]), 0.0), 1.0)
            picture = pendulum.render(angles[i, k] + jitter[i, k, 0]).astype(float)
            images[i, k] = np.floor(a * picture + (1 - a) * static[k])
    return angles, images


def test_streams_replayed(sets):
    shared = np.random.RandomState(42)
    parts = {"train": (shared, 6, 6), "test": (shared, 5, 0), "validation": (np.random.RandomState(43), 4, 4)}
    for name, (rng, n, offset) in parts.items():
        made = getattr(sets, name)
        angles, images = replay_set(rng, n)
        for i in range(n):
            kept = sorted(np.random.default_rng(i + offset).choice(100, 50, replace=False))
            np.testing.assert_array_equal(made.times[i], kept)
            np.testing.assert_allclose(made.targets[i, :, 0], np.sin(angles[i, kept]), atol=1e-10)
            np.testing.assert_allclose(made.targets[i, :, 1], np.cos(angles[i, kept]), atol=1e-10)
            # the last bit of an angle may move a pixel of the picture by one
            off = np.abs(made.images[i].astype(int) - images[i, kept].astype(int))
            assert (off > 1).sum() == 0 and (off > 0).mean() < 1e-3, name


@pytest.mark.parametrize(
    "angle, row, column", [(0, 1, 0), (math.pi / 2, 0, 1), (math.pi, -1, 0), (-math.pi / 2, 0, -1)]
)
def test_picture_points_where_the_angle_says(angle, row, column):
    image = pendulum.render(angle) / 255
    y, x = np.indices((24, 24)) - 11.5
    centre = np.array([(image * y).sum(), (image * x).sum()]) / image.sum()
    # the middle of a rod of 55 pixels, in pixels of 128 / 24
    np.testing.assert_allclose(centre, np.array([row, column]) * 55 / 2 * 24 / 128, atol=0.2)
    assert image.sum() == pytest.approx(55 * 8 * (24 / 128) ** 2, rel=0.1)
    assert image.max() > 0.8 and np.median(image) == 0


def test_pixel_mean_and_spread():
    pixels = pendulum.pendulum(train=300, valid=1, test=1).train.images.astype(np.float32) / 255
    # clean pictures fill 0.027; 47 % of the light is static of mean 1/2: 0.525 * 0.027 + 0.475 * 0.498
    assert pixels.mean(dtype=float) == pytest.approx(0.25, abs=0.02)
    assert pixels.std(dtype=float) == pytest.approx(0.27, abs=0.02)


def test_metrics_differ_by_a_factor_of_100_at_1000_sequences():
    rng = np.random.default_rng(0)
    predicted, targets = rng.normal(size=(2, 1000, 50, 2))
    assert pendulum.published_sum(predicted, targets) == pytest.approx(100 * mse(predicted, targets))
    assert mse(np.zeros((1, 2, 2)), np.array([[[1.0, 2], [3, 4]]])) == pytest.approx(30 / 4)
    assert pendulum.published_sum(np.zeros((1, 2, 2)), np.array([[[1.0, 2], [3, 4]]])) == pytest.approx(0.03)
