"""What fine-tuning trains: by `tune` and the number of labels, all weights or the head."""

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _runs import FIT, SIZES, waves
from conftest import refuses
from rotarymae.prediction import predict_and_embed
from rotarymae.train import finetune, pretrain, train
from rotarymae.training.fit_config import FitConfig

KINDS = np.array(["x", "y"] * 8)
WAYS = ["full", "probe"]
TWO_BLOCKS = dataclasses.replace(FIT, depth=2)


@pytest.fixture(scope="module")
def data():
    return waves()


@pytest.fixture(scope="module")
def pretrained(data):
    return pretrain(data, TWO_BLOCKS).pipeline


@pytest.fixture(scope="module")
def tuned(data, pretrained):
    ways = {tune: dataclasses.replace(TWO_BLOCKS, tune=tune) for tune in WAYS}
    return {tune: finetune(pretrained, data, KINDS, config) for tune, config in ways.items()}


def moved(pretrained, trained):
    """Names of the encoder's tensors that are not bit for bit what they were."""
    before = pretrained.model.encoder.state_dict()
    after = trained.pipeline.model.encoder.state_dict()
    assert before.keys() == after.keys()
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_what_is_frozen_stays_bit_identical(pretrained, tuned):
    every = set(pretrained.model.encoder.state_dict())
    assert moved(pretrained, tuned["full"]) == every
    assert moved(pretrained, tuned["probe"]) == set()
    heads = [trained.pipeline.model.head.weight for trained in tuned.values()]
    assert not any(torch.equal(heads[0], head) for head in heads[1:])


def test_an_interrupted_run_of_a_head_goes_on_to_the_same_weights(pretrained, tuned, data, tmp_path):
    config = dataclasses.replace(TWO_BLOCKS, tune="probe", checkpoint_minutes=0.0)

    class Killed(Exception):
        pass

    def kill(step, steps, loss):
        if step == 2:
            raise Killed

    with pytest.raises(Killed):
        finetune(pretrained, data, KINDS, config, folder=tmp_path, on_step=kill)
    said = []
    again = finetune(pretrained, data, KINDS, config, folder=tmp_path, resume="auto", on_resume=said.append).pipeline
    assert "goes on after step 1" in said[0]
    for name, tensor in tuned["probe"].pipeline.model.state_dict().items():
        assert torch.equal(tensor, again.model.state_dict()[name]), name


def test_a_head_alone_takes_larger_steps_unless_told():
    assert FitConfig(tune="probe", base_lr=1e-4).finetuning().base_lr == pytest.approx(3e-3)
    assert FitConfig(tune="probe", finetune_lr=1e-4).finetuning().base_lr == 1e-4
    assert FitConfig().finetuning().base_lr == FitConfig().base_lr == FitConfig().pretraining().base_lr


def test_what_cannot_be_tuned_is_refused():
    with refuses("'top:2'", "'probe'", code="unknown-option"):
        FitConfig(tune="top:2")


@pytest.mark.parametrize("classes", [2, 3])
def test_with_few_labels_the_head_is_a_logistic_regression_on_maxima(classes, data):
    kinds = np.array(["x", "y", "z"])[np.arange(16) % classes]
    config = FitConfig(**SIZES, pretrain_epochs=1, min_steps=0, batch_size=8, class_weights="balanced")
    fitted = train(data, kinds, config)
    assert fitted.finetuning.steps == 0 and len(fitted.split.validation) > 0
    pipeline = fitted.pipeline
    vectors = pipeline.model.norm(torch.tensor(pipeline.embed(data, "max"))).detach().numpy()
    line = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, class_weight="balanced"))
    expected = line.fit(vectors, kinds).predict_proba(vectors)  # also of the series that chose the weights
    assert np.allclose(predict_and_embed(pipeline, data)[0], expected, atol=1e-4)
    before = pipeline.pretrained.model.encoder.state_dict()
    assert all(torch.equal(before[name], now) for name, now in pipeline.model.encoder.state_dict().items())


def test_with_more_labels_or_options_of_training_all_weights_are_tuned(data, monkeypatch):
    config = FitConfig(**SIZES, pretrain_epochs=1, min_steps=0, batch_size=8)
    for changes in ({"tune": "full"}, {"drop": 0.1}, {"finetune_epochs": 1}):
        assert train(data, KINDS, dataclasses.replace(config, **changes)).finetuning.steps > 0
    numbers = np.linspace(0, 1, 16)
    assert train(data, numbers, config).finetuning.steps > 0
    monkeypatch.setattr("rotarymae.train.FEW_LABELS", 16)
    assert train(data, KINDS, config).finetuning.steps > 0
