"""One token per time: what is missing is carried forward, never leaks, and is never scored."""

import dataclasses
import json
from dataclasses import asdict

import numpy as np
import torch

from _runs import FIT, waves
from conftest import refuses
from rotarymae import SeriesDataset
from rotarymae.interpolation import interpolate
from rotarymae.losses import reconstruction
from rotarymae.masking import Masking
from rotarymae.model import Reconstruction
from rotarymae.pipeline import Pipeline
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor
from rotarymae.queries import grid
from rotarymae.system import from_fields
from rotarymae.tokens import Tokens
from rotarymae.train import finetune, pretrain


def sparse():
    """Two series in channels a and b; the second is shorter."""
    times = [np.array([0.0, 0.0, 4.0, 8.0]), np.array([0.0, 4.0])]
    values = [np.array([1.0, 5.0, 2.0, 7.0]), np.array([3.0, 9.0])]
    channels = [np.array(["a", "b", "a", "b"]), np.array(["b", "a"])]
    return SeriesDataset.from_arrays(times, values, channels)


def made(data):
    return ObservationPreprocessor.fit(data, {"value": "none"}, time_unit=1.0, join_times=True)


def test_by_hand():
    data = sparse()
    fitted = made(data)
    assert (fitted.axes, fitted.features, fitted.input_features) == (1, 2, 4)
    tokens = DatasetExamples(data, fitted).batch(np.arange(2), None).inputs
    assert tokens.values[0].tolist() == [[1, 5, 1, 1, 1, 1], [2, 5, 1, 0, 1, 0.5], [2, 7, 0, 1, 0.5, 1]]
    assert tokens.values[1].tolist() == [[0, 3, 0, 1, 0, 1], [9, 3, 1, 0, 1, 0.5], [0] * 6]
    assert tokens.positions[0].flatten().tolist() == [0, 4, 8]
    assert DatasetExamples(data, fitted).lengths.tolist() == [3, 2]


def test_nothing_hidden_is_carried_forward():
    data = waves()
    fitted = ObservationPreprocessor.fit(data, join_times=True)
    examples = DatasetExamples(data, fitted, masking=Masking("ratio", ratio=0.5))
    batch = examples.batch(np.arange(16), None)
    whole = DatasetExamples(data, fitted).tokens(np.arange(16), None)
    for row in range(16):
        hidden = batch.masked.values[row][batch.masked.observed_values[row]]
        carried = batch.inputs.values[row, :, : fitted.features]
        assert len(hidden) and not torch.isin(carried[carried != 0], hidden).any()
        assert torch.isin(hidden, whole.values[row]).all()
    assert batch.inputs.values.isfinite().all()


def test_the_loss_skips_what_was_not_observed():
    values, observed = torch.tensor([[[1.0, 0.0], [3.0, 5.0]]]), torch.tensor([[[True, False], [True, True]]])
    predicted = torch.zeros(1, 2, 2, requires_grad=True)
    masked = Tokens(values, torch.zeros(1, 2, 1), observed=observed)
    loss = reconstruction(Reconstruction(predicted[..., None], masked, "point"))
    assert loss.sum.item() == 35 and int(loss.count) == 3
    loss.sum.backward()
    assert predicted.grad.tolist() == [[[-2, 0], [-6, -10]]]


def test_trained_saved_and_asked(tmp_path):
    data = waves()
    config = dataclasses.replace(FIT, join_times=True)
    trained = pretrain(data, config).pipeline
    settings = json.loads(json.dumps(asdict(trained.preprocessor)))
    assert asdict(from_fields(ObservationPreprocessor, settings, "preprocessor")) == asdict(trained.preprocessor)
    queries = grid(data, 3)
    found = interpolate(trained, data, queries)
    assert found.mean.shape == (len(queries.times), 1) and np.isfinite(found.mean).all()
    first = np.flatnonzero(queries.channels == 1)[:1]
    part = data.select([0])
    alone = type(queries)(queries.times[first], queries.channels[first], np.array([0, 1]))
    assert np.allclose(interpolate(trained, part, alone).mean, found.mean[first], atol=1e-5)
    tuned = finetune(trained, data, np.array(["x", "y"] * 8), config).pipeline
    tuned.save(tmp_path / "model")
    directory = Pipeline.load(tmp_path / "model")
    whole = directory.outputs(data)
    assert np.allclose(directory.outputs(data.select([3, 5])), whole[[3, 5]], atol=1e-6)


def test_what_cannot_be_joined_is_refused():
    with refuses("join_times", "no channels"):
        made(SeriesDataset.from_arrays([[0.0, 1.0]], [[1.0, 2.0]]))
