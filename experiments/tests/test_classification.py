"""What recipes of classification share: both classifiers are trained alike, start apart, and are resumed."""

import dataclasses

import numpy as np
import pytest
import torch

import _uea
from rotarymae.system import Reporter
from rotarymae.training.fit_config import FitConfig
from rotarymae_experiments.classification import Labelled, boost, predict, train_both
from rotarymae_experiments.data import uea
from rotarymae_experiments.runner import Trial

FIT = FitConfig(
    embed_dim=24,
    num_heads=2,
    depth=1,
    decoder_embed_dim=24,
    decoder_num_heads=2,
    decoder_depth=1,
    pretrain_epochs=3,
    finetune_epochs=3,
    min_steps=0,
    batch_size=8,
    base_lr=3e-3,
    pool="cls",  # no augmentation: it would need more than these twelve steps
    drop=0.0,
    noise=0.0,
)


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return uea.read(_uea.write(tmp_path_factory.mktemp("uea"), series=32), "BasicMotions")


def train(problem, folder, seed=3, rate=3e-3):
    """(both classifiers, the trial); with a rate of nearly zero they stay where they started."""
    config = dataclasses.replace(FIT, finetune_lr=rate)
    trial = Trial(seed, folder, Reporter(quiet=True), smoke=True)
    whole = Labelled(problem.train, problem.train_labels)
    with torch.random.fork_rng(devices=[]):
        return train_both(trial, config, whole, whole), trial


def first_weight(trained):
    return trained.pipeline.model.encoder.transformer.blocks[0].mlp.up.weight.detach()


def test_one_starts_from_the_autoencoder_and_the_other_from_nothing(problem, tmp_path):
    (tuned, scratch), trial = train(problem, tmp_path, rate=1e-12)
    assert list(trial.losses) == ["pretraining", "finetuning", "from scratch"]
    assert all(len(losses) == 12 for losses in trial.losses.values())  # 4 steps an epoch, all logged in a smoke run
    assert not torch.allclose(first_weight(tuned), first_weight(scratch))
    assert {len(trained.pipeline.labels.classes) for trained in (tuned, scratch)} == {4}


def test_classes_are_named_a_trial_is_resumed_and_boosting_tells_them_apart(problem, tmp_path):
    before, trial = train(problem, tmp_path)
    names = predict(before[0], problem.test)
    assert len(names) == len(problem.test) and set(names.tolist()) <= {"still", "slow", "fast", "wild"}
    losses = trial.losses["finetuning"]
    assert np.mean(losses[-4:]) < np.mean(losses[:4])
    after, _ = train(problem, tmp_path)  # nothing is trained again
    for one, other in zip(before, after, strict=True):
        assert torch.equal(first_weight(one), first_weight(other))
        assert other.result.steps == one.result.steps == 12
    guess = boost(Labelled(problem.train, problem.train_labels), problem.test, 0)
    assert np.mean(guess == problem.test_labels) > 0.5
