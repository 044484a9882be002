"""The pendulum: one Euler step on paper, energy, pictures, static, streams replayed, kept times, the cache."""

import math

import numpy as np
import pytest

from rotarymae_experiments.data import pendulum


@pytest.fixture(scope="module")
def sets():
    return pendulum.pendulum(train=6, valid=4, test=5)


def test_one_euler_step_by_hand():
    # theta = 1 rad from upright, w = 2 rad/s; 29.43 = 9.81 * 1 * 1 / (1 * 1^2 / 3)
    speed = 2 + 1e-4 * (29.43 * math.sin(1.0) - 0.1 * 2)
    angle = 1 + 1e-4 * speed
    theta, w = pendulum.advance(np.array([1.0]), np.array([2.0]), 1)
    assert w[0] == pytest.approx(speed, abs=1e-14)
    assert theta[0] == pytest.approx(angle, abs=1e-14)
    assert w[0] == pytest.approx(2 + 1e-4 * (24.764491 - 0.2), abs=1e-10)


def test_energy_is_kept_without_friction_and_lost_with_it():
    theta, speed = np.linspace(0.3, 3, 9), np.linspace(-2, 2, 9)

    def energy(theta, speed):
        return speed**2 / 2 + 29.43 * np.cos(theta)

    free = energy(*pendulum.advance(theta, speed, 20_000, friction=0.0))
    np.testing.assert_allclose(free, energy(theta, speed), atol=0.02)
    assert (energy(*pendulum.advance(theta, speed, 20_000)) < energy(theta, speed) - 0.02).all()


def test_small_swings_have_the_known_period():
    # about the bottom theta'' = -29.43 theta'
    period = round(2 * math.pi / math.sqrt(29.43) / 1e-4)
    theta, _ = pendulum.advance(np.array([math.pi + 0.01]), np.zeros(1), period, friction=0.0)
    assert theta[0] - math.pi == pytest.approx(0.01, rel=1e-3)
    theta, _ = pendulum.advance(np.array([math.pi + 0.01]), np.zeros(1), period // 2, friction=0.0)
    assert theta[0] - math.pi == pytest.approx(-0.01, rel=1e-3)


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
    parts = {"train": (shared, 6, 6), "test": (shared, 5, 0), "valid": (np.random.RandomState(43), 4, 4)}
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


def test_shapes_and_types(sets):
    assert sets.train.images.shape == (6, 50, 24, 24) and sets.train.images.dtype == np.uint8
    assert sets.valid.times.shape == (4, 50) and sets.test.targets.shape == (5, 50, 2)
    pixels = sets.train.images.astype(np.float32) / 255
    assert pixels.dtype == np.float32 and pixels.max() <= 1
    np.testing.assert_allclose(pixels * 255, sets.train.images, atol=1e-4)
    np.testing.assert_allclose((sets.train.targets**2).sum(axis=-1), 1)


def test_times_are_sorted_distinct_and_differ(sets):
    for part in sets:
        assert (np.diff(part.times) > 0).all() and part.times.min() >= 0 and part.times.max() <= 99
    many = pendulum.irregular_times(1500, seed=1500)
    np.testing.assert_allclose(np.bincount(many.ravel()) / 1500, 0.5, atol=0.06)
    assert len(np.unique(many, axis=0)) == 1500


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


def test_first_five_frames_are_clean_and_no_noise_exceeds_its_share():
    made = pendulum.pendulum(train=20, valid=1, test=1, keep=100).train
    rng = np.random.RandomState(42)
    angle, _ = pendulum.simulate(rng, 20)
    seen = angle + rng.normal(0, 1e-5, (20, 100, 2))[..., 0]
    weight = pendulum.clearness(rng, 20)
    np.testing.assert_array_equal(made.times, np.tile(np.arange(100), (20, 1)))
    for i in range(20):
        for k in range(100):
            clear = pendulum.render(seen[i, k]).astype(float)
            if k < 5:
                np.testing.assert_array_equal(made.images[i, k], clear)
            low = np.floor(weight[i, k] * clear)
            assert (made.images[i, k] >= low).all()
            assert (made.images[i, k] <= np.floor(weight[i, k] * clear + 255 * (1 - weight[i, k]))).all()
    assert (made.images[:, 5:] > 0).mean() > 0.5


def test_clearness_stays_in_bounds_and_wanders():
    weight = pendulum.clearness(np.random.RandomState(0), 4000)
    assert weight.min() == 0 and weight.max() == 1 and (weight[:, :5] == 1).all()
    # frames are half clear on average, and neighbours are alike: steps of f are at most 0.2, divided by t2 - t1 >= 0.5
    assert weight[:, 5:].mean() == pytest.approx(0.5, abs=0.02)
    assert np.abs(np.diff(weight[:, 5:])).max() <= 0.4
    assert np.corrcoef(weight[:, 50], weight[:, 51])[0, 1] > 0.9


def test_pixel_mean_and_spread():
    pixels = pendulum.pendulum(train=300, valid=1, test=1).train.images.astype(np.float32) / 255
    # clean pictures fill 0.027; 47 % of the light is static of mean 1/2: 0.525 * 0.027 + 0.475 * 0.498
    assert pixels.mean(dtype=float) == pytest.approx(0.25, abs=0.02)
    assert pixels.std(dtype=float) == pytest.approx(0.27, abs=0.02)


def test_process_noise_has_its_size():
    rng = np.random.RandomState(0)
    angle, speed = pendulum.simulate(rng, 3000)
    theta, w = pendulum.advance(angle[:, 2] + np.pi, speed[:, 2], 100)
    kick = speed[:, 3] - w
    assert kick.std() == pytest.approx(0.1, rel=0.05) and abs(kick.mean()) < 0.01
    np.testing.assert_allclose(np.sin(theta - np.pi), np.sin(angle[:, 3]), atol=1e-12)


def test_metrics_differ_by_a_factor_of_100_at_1000_sequences():
    rng = np.random.default_rng(0)
    predicted, targets = rng.normal(size=(2, 1000, 50, 2))
    assert pendulum.published_sum(predicted, targets) == pytest.approx(100 * pendulum.mse(predicted, targets))
    assert pendulum.mse(np.zeros((1, 2, 2)), np.array([[[1.0, 2], [3, 4]]])) == pytest.approx(30 / 4)
    assert pendulum.published_sum(np.zeros((1, 2, 2)), np.array([[[1.0, 2], [3, 4]]])) == pytest.approx(0.03)


@pytest.mark.parametrize("change", [{"train": 3}, {"test": 2}, {"keep": 20}])
def test_each_parameter_changes_the_data(change):
    small = {"train": 2, "valid": 1, "test": 1}
    plain, changed = pendulum.pendulum(**small), pendulum.pendulum(**{**small, **change})
    assert any(a.targets.shape != b.targets.shape for a, b in zip(plain, changed, strict=True))
