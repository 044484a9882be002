"""Drawn functions: a pure function of seed, epoch and row; what they are made of; gaps and their scores."""

import numpy as np
import pytest
import torch

import _physionet
from rotarymae.any_series import AnySeries
from rotarymae.series import SeriesDataset
from rotarymae.training import Pretraining, TrainConfig, fit
from rotarymae_experiments import gaps, prior
from rotarymae_experiments.recipes.prior import model_config


def _parts(drawn):
    return [getattr(drawn, name) for name in ("times", "channels", "values", "errors", "hidden", "padding")]


def test_a_row_is_the_same_in_any_batch():
    rows = np.arange(40, 56)
    whole = prior.draw(3, 0, rows)
    for part in (np.array([3]), np.array([5, 9])):
        some = prior.draw(3, 0, rows[part])
        n = some.times.shape[1]
        for one, all_ in zip(_parts(some), _parts(whole), strict=True):
            real = ~some.padding
            torch.testing.assert_close(one[real], all_[part][:, :n][real], equal_nan=True, rtol=1e-6, atol=1e-8)


def test_seed_epoch_and_row_change_what_is_drawn():
    rows = np.arange(4)
    first = prior.draw(0, 0, rows).values
    for other in (prior.draw(1, 0, rows), prior.draw(0, 1, rows), prior.draw(0, 0, rows + 4)):
        n = min(first.shape[1], other.values.shape[1])
        assert not np.isclose(first[:, :n], other.values[:, :n]).all(1).any()


def test_draws_are_finite_hide_something_and_have_every_kind():
    drawn = prior.draw(0, 0, np.arange(400))
    real, seen = ~drawn.padding, ~drawn.padding & ~drawn.hidden
    assert drawn.values.isfinite().all() and drawn.times.isfinite().all()
    assert (drawn.hidden & drawn.padding).sum() == 0
    assert (drawn.hidden.sum(1) >= 1).all() and (seen.sum(1) >= 4).all()
    assert (real.sum(1) >= 12).all() and real.sum(1).max() <= prior.LONGEST
    channels = drawn.channels.amax(1) + 1
    assert 0.5 < (channels == 1).double().mean() < 0.75 and channels.max() > 6
    known = (~drawn.errors.isnan() & real).any(1).double().mean()
    assert 0.03 < known < 0.25
    share = (drawn.hidden.sum(1) / real.sum(1))[channels == 1]
    assert share.min() < 0.2 and share.max() > 0.65


@pytest.mark.parametrize("part", [prior.trend, prior.season, prior.jumps, prior.plateaus, prior.pulses])
def test_each_component_is_in_its_share_of_the_causes(part):
    numbers = prior.Numbers(0, 0, np.arange(600))
    at = torch.linspace(0, 50, 40, dtype=torch.float64).expand(600, -1)
    shape = part(numbers, 120, at, torch.full((600,), 50.0, dtype=torch.float64))
    moving = (shape.amax(1) - shape.amin(1) > 1e-9).double().mean()
    assert 0.04 < moving < 0.4, moving


def test_kernels_are_covariances():
    numbers = prior.Numbers(0, 0, np.arange(64))
    at = torch.linspace(0, 30, 25, dtype=torch.float64).expand(64, -1)
    kernel = prior.process_kernel(numbers, 50, at, torch.full((64,), 30.0, dtype=torch.float64))
    torch.testing.assert_close(kernel, kernel.mT)
    assert torch.linalg.eigvalsh(kernel).min() > -1e-8


def test_examples_are_standardised_by_what_is_visible():
    batch = prior.PriorExamples(64).batch(np.arange(64), 0)
    assert batch.masked is not None
    values, real = batch.inputs.values[..., 0], batch.inputs.real
    one = batch.inputs.positions[..., 1].masked_fill(~real, 1).amax(1) == 1
    medians = torch.where(real, values, torch.nan).nanmedian(1).values[one]
    torch.testing.assert_close(medians, torch.zeros_like(medians), atol=1e-6, rtol=0)


def test_the_protocol_hides_a_half_or_a_block_and_scores_by_hand():
    series = [(np.arange(40.0), np.sin(np.arange(40.0)))]
    (gap,) = gaps.hide(series, "random")
    assert gap.hidden.sum() == 20
    (block,) = gaps.hide(series, "block")
    at = np.flatnonzero(block.hidden)
    assert len(at) == 10 and (np.diff(at) == 1).all()
    spread = block.values.std()
    exact = gaps._normal(block.values[block.hidden] + spread, np.full(10, spread))
    scores = gaps.score([block], exact)
    assert scores["rmse"] == pytest.approx(1.0)
    assert scores["nll"] == pytest.approx(0.5 + 0.5 * np.log(2 * np.pi))
    assert (scores["inside 68"], scores["inside 95"]) == (0.0, 1.0)


@pytest.fixture(scope="module")
def bank():
    """An untrained model: the processes alone."""
    torch.manual_seed(0)
    return AnySeries(model_config(12, 1)).eval()


def test_a_planted_spike_is_told_from_a_wave(bank):
    waves = {"waves": [(np.arange(60.0), np.sin(0.3 * np.arange(60.0) + i)) for i in range(5)]}
    found = gaps.spikes(bank, waves)["waves"]
    assert found["ours"] > 0.99 and found["ours"] >= found["running median"]


def test_another_channel_of_the_same_wave_helps_where_one_is_hidden(bank):
    times = np.arange(60.0)
    waves = [np.sin(0.7 * times) + np.sin(0.31 * times + i) for i in range(6)]
    values = [np.repeat(wave, 2) * np.tile([1.0, 2.0], 60) for wave in waves]
    both = SeriesDataset.from_arrays([np.repeat(times, 2)] * 6, values, [np.tile(["a", "b"], 60)] * 6)
    errors = gaps.lending(bank, both)
    assert errors["series"] == 6 and errors["with the others"] < 0.5 * errors["alone"]


def test_records_of_intensive_care_are_scored_by_rows_and_by_channels(bank, tmp_path):
    """In the made-up ones the blood pressure follows the pulse, at the same times."""
    rows = gaps.physionet_rows(bank, _physionet.write(tmp_path / "physionet2012"))
    assert rows.keys() == {"ours", "line"} and 0 < rows["ours"] < rows["line"]
    errors = gaps.several_channels(bank, tmp_path, 20)
    assert errors.keys() == {"drawn functions", "PhysioNet"} and errors["PhysioNet"]["series"] > 10
    assert errors["PhysioNet"]["with the others"] < 0.8 * errors["PhysioNet"]["alone"]


def test_curves_are_those_of_the_hidden_times(bank):
    (gap,) = gaps.hide([(np.arange(41.0), np.sin(0.2 * np.arange(41.0)))], "block")
    curves, answers = gaps.curves(bank, gap, 41), gaps.with_model(bank, [gap])
    assert curves["mean"][gap.hidden] == pytest.approx(answers.mean, abs=1e-6)
    assert curves["line"][gap.hidden] == pytest.approx(gaps.line(gap))
    assert curves["process"][gap.hidden] == pytest.approx(gaps.gaussian_process(gap).mean)


def test_a_training_that_was_stopped_goes_on_bit_for_bit(tmp_path):
    how = {"epochs": 1, "batch_size": 4, "base_lr": 1e-2, "precision": "fp32", "checkpoint_steps": 2}

    def trained(folder, stop=None):
        torch.manual_seed(0)
        objective = Pretraining(AnySeries(model_config(12, 1)))

        def step(done, total, loss):
            if done == stop:
                raise KeyboardInterrupt

        examples, folder = prior.PriorExamples(24, seed=3), tmp_path / folder
        fit(objective, examples, TrainConfig(**how), folder=folder, resume="auto", on_step=step)
        return objective.state_dict()

    whole = trained("whole")
    with pytest.raises(KeyboardInterrupt):
        trained("stopped", stop=5)
    for again in (trained("stopped"), trained("anew")):
        assert all(weights.equal(again[name]) for name, weights in whole.items())
    assert whole["model.head.correction.weight"].abs().max() > 0  # it starts at zero
