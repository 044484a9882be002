"""Answers by the distance to the nearest observation: no worse than simple methods, and with honest bands."""

import dataclasses

import numpy as np
import pytest
import torch

from _runs import FIT, waves
from conftest import refuses
from rotarymae import load
from rotarymae.calibration import Calibration, calibrate, representatives
from rotarymae.errors import ModelDirectoryError
from rotarymae.interpolation import interpolate, time_to_nearest
from rotarymae.likelihoods import LIKELIHOODS
from rotarymae.neighbours import observe
from rotarymae.partners.baselines import CHANNEL_MEAN, LINE, predict_simply
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.queries import Queries, as_queries, grid
from rotarymae.seasons import find_season
from rotarymae.series import SeriesDataset, hide
from rotarymae.surroundings import BETWEEN, BEYOND, NOWHERE, Surroundings, output_numbers, surroundings, traits
from rotarymae.tokens import Tokens
from rotarymae.train import pretrain, train

pytestmark = pytest.mark.usefixtures("whole")


def rough_and_smooth(count, seed):
    """Slow sines, each with steps of a random walk, seen every minute."""
    draw, times = np.random.default_rng(seed), np.arange(120.0)
    curves = [
        3 * np.sin(times / 40 + draw.uniform(0, 6)) + 0.1 * np.cumsum(draw.standard_normal(120)) for _ in range(count)
    ]
    return SeriesDataset.from_arrays([times] * count, curves)


@pytest.fixture(scope="module")
def untrained():
    """A model that has learnt nothing, and its calibration on other series than those it is asked of."""
    train_part = rough_and_smooth(40, 0)
    model = pretrain(train_part, dataclasses.replace(FIT, base_lr=1e-9)).pipeline
    return dataclasses.replace(model, calibration=calibrate(model, rough_and_smooth(60, 1))), train_part


@pytest.mark.parametrize("length", [1, 6, 24])
def test_even_an_untrained_model_is_no_worse_than_the_line_or_the_mean(untrained, length):
    pipeline, train_part = untrained
    data = rough_and_smooth(60, 2)
    place = np.tile(np.arange(120), 60)
    gone = (place >= 50) & (place < 50 + length)
    visible, hidden = data.mask_observations(~gone), data.mask_observations(gone)
    found, truth = interpolate(pipeline, visible, as_queries(hidden)), np.asarray(hidden.values)
    errors = [
        np.sqrt(np.mean((guess - truth) ** 2))
        for guess in (found.mean, *predict_simply([LINE, CHANNEL_MEAN], train_part, visible, hidden).values())
    ]
    assert errors[0] < 1.02 * min(errors[1:])
    for share, (lower, upper) in found.bands.items():
        assert abs(np.mean((truth >= lower) & (truth <= upper)) - share) < (0.12 if length > 1 else 0.15)
    raw = interpolate(dataclasses.replace(pipeline, calibration=None), visible, as_queries(hidden))
    assert np.sqrt(np.mean((raw.mean - truth) ** 2)) > 2 * errors[0], "the calibration does nothing"


@pytest.mark.filterwarnings("ignore:.*extrapolations:rotarymae.errors.InputWarning")
def test_bands_widen_with_the_distance_and_at_last_to_the_spread_of_the_channel(untrained):
    pipeline, train_part = untrained
    one = rough_and_smooth(1, 3)
    asked = 119 + np.array([1.0, 10.0, 40.0, 4000.0])
    found = interpolate(pipeline, one, Queries(asked, None, np.array([0, 4])))
    assert (np.diff(found.std[:, 0]) > 0).all()
    assert found.std[-1, 0] >= 0.95 * np.std(np.asarray(train_part.values))
    assert found.distance.tolist() == [1, 10, 40, 4000]


def test_train_calibrates_and_a_saved_pipeline_answers_alike_unless_it_is_damaged(complete, tmp_path):
    data = waves()
    result = train(data, None, FIT)
    pipeline = result.pipeline
    assert pipeline.calibration is not None
    pipeline.save(tmp_path / "model")
    loaded, queries = load(tmp_path / "model"), grid(data, 5)
    before, after = (interpolate(each, data, queries) for each in (pipeline, loaded))
    assert np.array_equal(before.mean, after.mean) and np.array_equal(before.std, after.std)
    parts = [data.select(rows) for rows in (result.split.validation, result.split.pretrain) if len(rows)]
    again = calibrate(dataclasses.replace(pipeline, calibration=None), *parts)
    assert all(torch.equal(a, b) for a, b in zip(again.buffers(), pipeline.calibration.buffers(), strict=True))
    pipeline.calibration.knots[0, 0, 0, 0] = torch.nan
    pipeline.save(tmp_path / "model")
    with refuses("knots", "NaN", error=ModelDirectoryError):
        load(tmp_path / "model")
    pipeline.calibration.knots.zero_()
    pipeline.calibration.season.fill_(-1)
    pipeline.save(tmp_path / "model")
    with refuses("at least 0. Fit or fetch", error=ModelDirectoryError):
        load(tmp_path / "model")


def test_what_lies_around_a_query():
    """Channel 1 at times 0, 1, 4 with 0, 2, 2; channel 2 at time 1 alone."""
    positions = torch.tensor([[[0.0, 1], [1, 1], [4, 1], [1, 2]]])
    visible = Tokens(torch.tensor([[[0.0], [2], [2], [5]]]), positions)
    asked = torch.tensor([[[2.0, 1], [6.0, 1], [3.0, 2], [3.0, 3]]])
    preprocessor = pretrain(waves(), FIT).pipeline.preprocessor
    around = surroundings(visible, asked, preprocessor)
    assert around.region.flatten().tolist() == [BETWEEN, BEYOND, BEYOND, NOWHERE]
    assert torch.allclose(around.distance.flatten(), torch.tensor([4 / 3, 2, 2, 0]), atol=1e-4)  # 2 / (1 / 1 + 1 / 2)
    line, latest, mean, drift, season, change = around.guesses[0, :, 0].unbind(-1)
    assert torch.allclose(drift, torch.tensor([2.0, 3, 5, 0])), "from 0 to 2 in 4 units: 2 units later it is 1 more"
    assert torch.equal(season, mean) and torch.equal(change, line), "no season is known"
    assert torch.allclose(line, torch.tensor([2.0, 2, 5, 0])) and torch.allclose(latest, torch.tensor([2.0, 2, 5, 0]))
    assert torch.allclose(mean, torch.tensor([1.0, 1, 2.5, 0]), atol=1e-4)  # 4 / 3 as one of four, 5 as one of two
    assert output_numbers(asked, preprocessor).flatten().tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("season", [0.0, 3.0])
def test_a_trend_goes_on_for_as_long_as_it_was_seen(season):
    """0 and 1 within a hundredth: long after them, and long before, nothing is guessed far from these."""
    positions = torch.tensor([[[5.0, 1], [5.01, 1]]])
    asked = torch.tensor([[[5.005, 1], [5.015, 1], [400, 1], [-400, 1], [500.001, 1]]])
    preprocessor = pretrain(waves(), FIT).pipeline.preprocessor
    around = surroundings(Tokens(torch.tensor([[[0.0], [1]]]), positions), asked, preprocessor, season)  # pyright: ignore
    assert torch.allclose(around.guesses[0, :, 0, 3], torch.tensor([0.5, 1.5, 2, -1, 2]), atol=1e-2)
    assert around.guesses.abs().max() < 2.1


def in_space():
    """Series of two columns in time and space, with limits: in every second one all values of the first column."""
    draw, parts = np.random.default_rng(0), range(24)
    data = SeriesDataset.from_arrays(
        [np.sort(draw.uniform(0, 20, 16)) for _ in parts],
        [draw.normal(size=(16, 2)) for _ in parts],
        positions=[draw.uniform(0, 5, (16, 2)) for _ in parts],
    )
    sides = np.zeros(data.values.shape, np.int8)
    sides[:, 0] = -(np.arange(len(sides)) // 16 % 2)
    return dataclasses.replace(data, sides=sides)


def test_what_lies_around_a_query_in_space_are_values_and_no_limits():
    positions = torch.tensor([[[0.0, 0, 0], [0, 3, 4], [0, 0, 2]]]).repeat(2, 1, 1)
    values, observed = torch.tensor([[[1.0, 10], [2, 20], [3, 30]]]).repeat(2, 1, 1), torch.ones(2, 3, 2) > 0
    observed[0, 2, 0] = observed[1, :, 1] = False
    preprocessor = ObservationPreprocessor.fit(in_space())
    around = surroundings(Tokens(values, positions, observed=observed), positions[:, 2:], preprocessor)
    assert around.distance[:, 0].tolist() == [[2, 0], [0, 0]] and around.guesses[:, 0, :, 0].tolist() == [
        [1, 30],
        [3, 0],
    ]
    assert around.region[:, 0].tolist() == [[BETWEEN, BETWEEN], [BETWEEN, NOWHERE]]


def test_a_fit_in_space_with_series_of_limits_only_is_calibrated(complete):
    data = in_space()
    pipeline = train(data, None, dataclasses.replace(FIT, likelihood="gaussian")).pipeline
    assert pipeline.calibration is not None
    pipeline.calibration.check()
    assert np.isfinite(interpolate(pipeline, data, as_queries(data, pipeline.require_series())).mean).all()


@pytest.mark.parametrize("joined", [False, True])
def test_a_season_away(joined):
    """0, 4, 0, 1, 5 every unit, with a season of 3: the next is one more than the 0 that followed 4; in a gap, too."""
    model = pretrain(waves(), dataclasses.replace(FIT, join_times=joined)).pipeline
    times, values = torch.tensor([0.0, 1, 2, 3, 4]), torch.tensor([0.0, 4, 0, 1, 5])
    asked = torch.tensor([5.0, 8.0, 3.5, -1.0, 10.0])
    if joined:
        tokens = Tokens(torch.stack([values, values * 10], -1)[None], times[None, :, None])
        queries = asked[None, :, None]
    else:
        tokens = Tokens(values[None, :, None], torch.stack([times, torch.ones(5)], -1)[None])
        queries = torch.stack([asked, torch.ones(5)], -1)[None]
    *_, season, change = surroundings(tokens, queries, model.preprocessor, 3.0).guesses[0, :, 0].unbind(-1)
    assert torch.allclose(season, torch.tensor([0.0, 0.0, 2.0, 0.0, 4.5]), atol=0.02), "at 2, 2, 0.5, 2, and 4 and 1"
    # At 5, after the last 5 at 4: what came between 1 (4) and 2 (0). At -1, before the first: from 3 (1) to 2 (0).
    # At 8, two seasons after 2: the 0 there, 5 - 4 in the last season, and 3 units of the mean slope 5 / 4 before it.
    assert torch.allclose(change, torch.tensor([1.0, 4.75, 3.0, -1.0, 9.75]), atol=0.02)


def test_a_series_of_limits_only_has_no_season():
    model, at = pretrain(waves(), FIT).pipeline, torch.tensor([[[2.0, 1], [40.0, 1]]])
    limits = Tokens(torch.ones(1, 2, 1), at, observed=torch.zeros(1, 2, 1, dtype=torch.bool))
    around = surroundings(limits, at, model.preprocessor, 3.0)  # pyright: ignore
    assert (around.region == NOWHERE).all() and not around.guesses.any()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_season_is_read_across_long_holes(elsewhere):
    """A sine of period 10 with a trend: a hole of 24 is filled from seasons outside it, and outside another hole."""
    model = pretrain(waves(), FIT).pipeline
    times = torch.arange(120.0)
    curve = torch.sin(times * 2 * torch.pi / 10) + times / 50
    gone = (times >= 50) & (times < 74)
    seen = ~gone & ~(elsewhere & (times >= 26) & (times < 46))
    positions = torch.stack([times, torch.ones(120)], -1)
    tokens = Tokens(curve[seen][None, :, None], positions[seen][None])
    change = surroundings(tokens, positions[gone][None], model.preprocessor, 10.0).guesses[0, :, 0, -1]
    assert (change - curve[gone]).abs().max() < 0.1


def test_like_values_are_thinned_and_count_less():
    group = torch.tensor([3] * 10 + [1] * 2)
    chosen, weights = representatives(group)
    assert group[chosen].tolist() == [1, 1, 3, 3, 3, 3]
    assert weights[:2].sum() == pytest.approx(2 / 1.3) and weights[2:].sum() == pytest.approx(10 / 3.7)


def test_what_the_model_learnt_by_heart_is_no_evidence_for_it():
    """A model that knows the series it learnt from, and is bad at others, of which the line knows more."""
    draw, n = torch.Generator().manual_seed(0), 4000
    truth, learnt = torch.randn(2 * n, generator=draw), torch.arange(2 * n) % 2
    noise = torch.randn(2, 2 * n, generator=draw)
    model = torch.where(learnt == 1, truth, truth + 2 * noise[0])
    line = truth + 0.5 * noise[1]
    guesses = torch.stack([line, *(torch.zeros(2 * n),) * 5], -1)
    output = torch.zeros(2 * n, dtype=torch.int64)
    around = Surroundings(guesses, torch.full((2 * n,), 3.0), output, torch.ones(2 * n, 4))
    calibration = Calibration(1, LIKELIHOODS["gaussian"])
    parameters = torch.stack([model, torch.zeros(2 * n)], -1)
    calibration.fit(parameters, around, output, truth, torch.full((2 * n,), 0.3), learnt.float())
    answer = calibration(parameters, around, output)
    new = learnt == 0
    assert (answer[new, 0] - truth[new]).square().mean().sqrt() < 1.02 * 0.5
    lower, upper = calibration.calibrated_likelihood.interval(answer[new], 0.68)
    assert abs(((lower <= truth[new]) & (truth[new] <= upper)).double().mean() - 0.68) < 0.05


def test_limits_alone_do_not_widen_bands():
    """Nowhere, where a series has limits only, the model says 0 ± 1; elsewhere it is right."""
    draw, n = torch.Generator().manual_seed(0), 400
    truth, side = torch.randn(n, generator=draw), torch.arange(n) % 2 * NOWHERE
    sides, zeros = -(side == NOWHERE).double(), torch.zeros(n)
    around = Surroundings(torch.zeros(n, 6), zeros, side, torch.ones(n, 4))
    parameters, calibration = torch.stack([zeros, zeros], -1), Calibration(1, LIKELIHOODS["gaussian"])
    calibration.fit(parameters, around, side * 0, truth - 2 * (side == NOWHERE), torch.ones(n), zeros, sides=sides)
    std = calibration.calibrated_likelihood.std(calibration(parameters, around, side * 0))
    assert std[1] < 1.5 and abs(std[0] - truth[side == BETWEEN].std()) < 0.1


def test_traits_by_hand():
    times = torch.tensor([0.0, 1, 2, 3])
    observed = observe(Tokens(torch.tensor([[[0.0], [1], [0], [1]]]), times[None, :, None]), 1)
    rough, varied, size = (part[0, 0, 0] for part in traits(observed))
    # The line misses both inner observations by 1; the variance is 1/4, and counts as one more such error.
    assert rough.exp() == pytest.approx(np.sqrt((1 + 1 + 0.25) / 3 / 0.25), rel=1e-4)
    assert varied.exp() == pytest.approx(0.5, rel=1e-4) and size.exp() == pytest.approx(np.sqrt(0.5), rel=1e-4)


@pytest.mark.filterwarnings("ignore::rotarymae.errors.InputWarning")  # of the stray date
def test_what_repeats_has_a_season_and_what_does_not_has_none():
    draw = np.random.default_rng(0)
    times = [np.sort(draw.uniform(0, 300, 400)) for _ in range(20)]
    waves_of_a_day = [np.sin(2 * np.pi * t / 24 + draw.uniform(0, 6)) + 0.4 * draw.standard_normal(400) for t in times]
    assert find_season(SeriesDataset.from_arrays(times, waves_of_a_day)).time == pytest.approx(24, rel=0.01)
    walks = [np.cumsum(draw.standard_normal(400)) for _ in times]
    assert find_season(SeriesDataset.from_arrays([np.arange(400.0)] * 20, walks)).time == 0
    assert find_season(waves()).time == 0, "too short to repeat"
    times[0][-1], times[1] = 1e30, 1e-9 * times[1]  # a stray date, and a burst within one slot
    assert find_season(SeriesDataset.from_arrays(times, waves_of_a_day)).time == pytest.approx(24, rel=0.01)
    square = np.tile(np.repeat([0.0, 1.0], 12), 20)
    assert find_season(SeriesDataset.from_arrays([np.arange(480.0)] * 3, [square] * 3)).time == pytest.approx(
        24, rel=0.01
    )


def test_a_season_is_carried_on():
    """Three seasons of a triangle and a trend: the next is forecast better than by the last value or the line."""
    draw, times = np.random.default_rng(0), np.arange(96.0)
    curves = [np.abs((times + draw.uniform(0, 24)) % 24 - 12) + draw.normal() * times / 20 for _ in range(20)]
    model = pretrain(SeriesDataset.from_arrays([times] * 20, curves), dataclasses.replace(FIT, base_lr=1e-9)).pipeline
    data = SeriesDataset.from_arrays([times] * 20, [curve + 0.1 * draw.standard_normal(96) for curve in curves])
    pipeline = dataclasses.replace(model, calibration=calibrate(model, data))
    gone = np.tile(np.arange(96), 20) >= 80
    answer = interpolate(pipeline, data.mask_observations(~gone), as_queries(data.mask_observations(gone)))
    truth = np.asarray(data.mask_observations(gone).values)
    last = np.repeat(np.asarray(data.values)[np.tile(np.arange(96), 20) == 79], 16, axis=0)
    assert np.sqrt(np.mean((answer.mean - truth) ** 2)) < 0.3 * np.sqrt(np.mean((last - truth) ** 2))


def test_time_to_nearest():
    data = SeriesDataset.from_arrays(
        [np.array([0.0, 5, 9]), np.array([2.0])],
        [np.zeros(3), np.zeros(1)],
        [np.array(["a", "b", "a"]), np.array(["a"])],
    )
    asked = Queries(np.array([4.0, 4.0, 20.0, 3.0, 3.0]), np.array([0, 1, 1, 0, 1]), np.array([0, 3, 5]))
    assert time_to_nearest(data, asked).tolist() == [4, 1, 15, 1, np.inf]


def test_stretches_are_hidden_whole():
    data = SeriesDataset.from_arrays([np.arange(80.0)] * 50, [np.zeros(80)] * 50)
    visible, hidden, which = hide(data, 0.25, seed=0, by="stretch")
    assert (hidden.lengths == 20).all() and (visible.lengths == 60).all()
    opened = np.diff(which.reshape(50, 80).astype(int), axis=1, prepend=0) == 1
    runs = opened.sum(1)
    assert runs.min() == 1 and runs.max() > 8, "of one stretch and of many"
    assert which.reshape(50, 80)[:, -1].any()


def test_a_calibration_without_data_leaves_answers_mostly_as_they_are():
    model = pretrain(waves(), FIT).pipeline
    lonely = waves().mask_observations(np.isin(np.arange(len(waves().times)), waves().offsets[:-1]))
    calibration = calibrate(model, lonely)
    fresh = Calibration.of(model.preprocessor, model.model.likelihood)
    assert all(torch.equal(a, b) for a, b in zip(calibration.buffers(), fresh.buffers(), strict=True))
