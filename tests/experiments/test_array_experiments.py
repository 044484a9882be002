"""What recipes of pictures and sounds share."""

import numpy as np
import pytest
import torch

import _tiny_imagenet
from rotarymae.arrays import ArrayDataset, ArrayPreprocessor
from rotarymae.config import RoMAEConfig
from rotarymae.experiments import SMOKE, ArraySetup, LabelledArrays, finetune_both, pretrain_arrays, randaugment
from rotarymae.experiments.runner import Trial
from rotarymae.system import Reporter
from rotarymae.training import TrainConfig


def pictures(count=20):
    draw = np.random.default_rng(0)
    return [_tiny_imagenet.picture(draw, i % 4) for i in range(count)]


def test_randaugment_is_a_function_of_the_seeds():
    pytest.importorskip("kornia")
    augment, given = randaugment(2, 9), pictures()
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    once, again = (np.stack(augment(given, np.arange(20))) for _ in range(2))
    other = np.stack(augment(given, np.arange(20) + 100))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert np.array_equal(once, again) and not np.array_equal(once, other)
    assert once.shape == (20, 64, 64, 3) and once.min() >= 0 and once.max() <= 255
    assert np.abs(once - np.stack(given)).mean((1, 2, 3)).max() > 10
    # Groups of eight have operations of their own.
    changes = [np.abs(once[i] - given[i]).mean() for i in (0, 8, 16)]
    assert len({round(float(change), 3) for change in changes}) == 3


def trained(folder, seed, shared):
    """The weights of an autoencoder of a case's seed, and those of the classifiers after it."""
    arrays = ArrayDataset.from_arrays(np.stack(pictures(12)), 16)
    preprocessor = ArrayPreprocessor.fit(arrays)
    train = TrainConfig(epochs=1, batch_size=6)
    model = RoMAEConfig(axes=2, features=768, **SMOKE)
    setup = ArraySetup(model=model, pretraining=train, finetuning=train)
    trial = Trial(seed, folder / f"seed-{seed}", folder, Reporter(quiet=True))
    trial.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    found = pretrain_arrays(setup, trial, arrays, preprocessor, shared=shared)
    weights = found.encoder.projection.weight.detach().clone()
    tuned = finetune_both(setup, trial, found, LabelledArrays(arrays, np.arange(12) % 4, 4), preprocessor)
    assert set(trial.losses) == {"pretraining", "finetuning", "finetuning from scratch"}
    return weights, {name: classifier.encoder.projection.weight.detach() for name, classifier in tuned.items()}


def test_seeds_share_an_autoencoder_only_when_asked(tmp_path):
    one, tuned = trained(tmp_path / "shared", 1, True)
    two, _ = trained(tmp_path / "shared", 2, True)
    assert torch.equal(one, two)
    three, _ = trained(tmp_path / "own", 1, False)
    four, _ = trained(tmp_path / "own", 2, False)
    assert not torch.equal(three, four)
    # One classifier went on from the autoencoder, the other began elsewhere.
    near, far = (float((tuned[name] - one).norm() / one.norm()) for name in ("", " from scratch"))
    assert near < 0.5 < far
