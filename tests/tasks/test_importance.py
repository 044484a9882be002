"""Which observations mattered: the one that carries the class comes first."""

import dataclasses

import numpy as np
import pytest

from _runs import FIT, waves
from conftest import refuses
from rotarymae import RoMAEClassifier, SeriesDataset
from rotarymae.prediction import importance
from rotarymae.train import finetune, pretrain

KINDS = np.array(["x", "y"] * 8)


def planted(count=60, seed=0):
    """Noise, in which one observation of every second series stands out; and where it is (-1 without)."""
    draw = np.random.default_rng(seed)
    times = [np.sort(draw.uniform(0, 20, draw.integers(6, 14))) for _ in range(count)]
    values = [0.3 * draw.standard_normal(len(t)) for t in times]
    where = np.array([draw.integers(len(t)) if i % 2 else -1 for i, t in enumerate(times)])
    for value, at in zip(values, where, strict=True):
        if at >= 0:
            value[at] = draw.uniform(7.9, 8.1)  # one number over and over would be named as a code
    return SeriesDataset.from_arrays(times, values), where


@pytest.fixture(scope="module")
def spiked():
    """A classifier that has learnt to tell series with the planted observation from those without."""
    series, where = planted()
    model = RoMAEClassifier(
        size="light", pretrain_epochs=1, finetune_epochs=10, min_steps=0, batch_size=8, drop=0.0, predictor="model"
    )
    return model.fit(series, np.where(where >= 0, "event", "quiet"))


def test_the_observation_that_carries_the_class_comes_first(spiked):
    series, where = planted(24, seed=1)
    found = spiked.pipeline_.importance(series)
    events = np.flatnonzero(where >= 0)
    assert (spiked.predict(series)[events] == "event").all()
    assert [int(found[i].argmax()) for i in events] == where[events].tolist()
    assert all(found[i].max() > 10 * np.abs(np.delete(found[i], where[i])).max() for i in events)


@pytest.fixture(scope="module", params=["cls", "mean", "max", "attention", "joined"])
def tuned(request):
    """16 series in two channels, and a classifier of each kind."""
    data, joined = waves(), request.param == "joined"
    if joined:  # of a time both channels
        data = dataclasses.replace(data, times=np.floor(data.times))
        keep = np.ones(len(data.times), bool)
        keep[1:] = (np.diff(data.times) != 0) | (np.diff(data.channels) > 0)
        data = data.mask_observations(keep)
    config = dataclasses.replace(FIT, join_times=joined, pool="attention" if joined else request.param)
    return data, finetune(pretrain(data, config).pipeline, data, KINDS, config).pipeline


def test_occlusion_is_what_a_prediction_without_the_observation_says(tuned):
    data, directory = tuned
    found, before = importance(directory, data), directory.outputs(data)
    best = before.argmax(1)
    for i in (0, 3, 7):
        # Not the first: without it a table's times would count from the second.
        for k in range(1, data.lengths[i]):
            keep = np.ones(len(data.times), bool)
            keep[data.offsets[i] + k] = False
            after = directory.outputs(data.mask_observations(keep))[i, best[i]]
            assert found[i][k] == pytest.approx(np.log(before[i, best[i]] / after), abs=1e-5)


def test_a_regressor_moves_by_standard_deviations():
    config = dataclasses.replace(FIT, base_lr=1e-2)
    targets = 50 + 10 * np.stack([np.arange(16.0), -np.arange(16.0)], 1)
    trained = finetune(pretrain(waves(), config).pipeline, waves(), targets, config, task="regression").pipeline
    found = importance(trained, waves().select([2]))[0]
    keep = np.ones(waves().lengths[2], bool)
    keep[3] = False
    moved = [trained.outputs(waves().select([2]).mask_observations(k))[0] for k in (keep, keep | True)]
    deviations = (moved[1] - moved[0]) / targets.std(0)
    assert found[3] == pytest.approx(np.sqrt((deviations**2).mean()), rel=1e-3)


def test_what_cannot_be_asked_is_refused(tuned):
    data, directory = tuned
    short = dataclasses.replace(directory, preprocessor=directory.preprocessor.replace(window=6))
    with refuses("6", "observations"):
        importance(short, data)
    lonely = data.mask_observations(np.arange(len(data.times)) == np.repeat(data.offsets[:-1], data.lengths))
    assert all(np.isnan(one).all() and len(one) == 1 for one in importance(directory, lonely))
    with refuses("MaskedAutoencoder", "fine-tuned"):
        importance(pretrain(waves(), FIT).pipeline, waves())
