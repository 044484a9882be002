"""Beside the model in the recipe uea: what interpolated series are, and a rival that need not be installed."""

import sys

import numpy as np
import pytest

import _uea
from rotarymae.series import SeriesDataset
from rotarymae.system import Reporter
from rotarymae_experiments import Trial
from rotarymae_experiments.data import uea
from rotarymae_experiments.recipes.uea import _multi_rocket_hydra, interpolated


def test_interpolated_by_hand():
    times = [np.array([1.0, 3.0]), np.array([0.0, 1.0, 2.0, 3.0, 4.0])]
    values = [np.array([[2.0, 0.0], [6.0, 1.0]]), np.arange(10.0).reshape(5, 2)]
    data = SeriesDataset.from_arrays(times, values)
    found = interpolated(data, 5)
    assert found.shape == (2, 2, 5)
    assert found[0].tolist() == [[2, 2, 4, 6, 6], [0, 0, 0.5, 1, 1]]
    assert found[1].tolist() == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


@pytest.fixture
def problem(tmp_path):
    return uea.read(_uea.write(tmp_path / "data"), "BasicMotions")


def test_without_aeon_the_rival_is_left_out_and_that_is_said(problem, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "aeon.classification.convolution_based", None)
    trial = Trial(0, tmp_path, Reporter())
    assert _multi_rocket_hydra(problem.train, problem.train_labels, problem.test, trial) is None
    assert "pip install --no-deps aeon==1.6.0" in "".join(capsys.readouterr())


@pytest.mark.slow
def test_with_aeon_it_tells_the_classes_apart(problem, tmp_path):
    pytest.importorskip("aeon")
    trial = Trial(0, tmp_path, Reporter(quiet=True))
    found = _multi_rocket_hydra(problem.train, problem.train_labels, problem.test, trial)
    assert found is not None and (found == problem.test_labels).mean() > 0.9
