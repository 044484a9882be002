"""Several networks are trained from different seeds, and answer with their average."""

import copy

import numpy as np
import pytest
from torch import nn

from _runs import same, series, weights
from conftest import refuses
from rotarymae import load
from rotarymae.labels import ClassLabels
from rotarymae.prediction import predict_and_embed
from rotarymae.system import Reporter
from rotarymae.train import train
from rotarymae.training.cost import Plan
from rotarymae.training.fit_config import FitConfig

SIZES = {"embed_dim": 12, "num_heads": 1, "depth": 1, "decoder_embed_dim": 12, "decoder_num_heads": 1}
SIZES |= {"decoder_depth": 1}
TINY = SIZES | {"pretrain_epochs": 1, "finetune_epochs": 1, "batch_size": 8, "min_steps": 7}
TINY |= {"predictor": "model"}
RARE = np.where(np.arange(40) % 8 == 0, "b", "a")
TARGETS = {"classes": RARE, "numbers": np.sin(np.arange(40.0))}


def alone(pipeline, member):
    """Return the pipeline with one of its members."""
    model = copy.deepcopy(pipeline.model)
    others, model.others = model.others, nn.ModuleList()
    one = copy.copy(pipeline)
    one.model = model if member == 0 else others[member - 1]
    return one


@pytest.mark.parametrize("case", TARGETS)
def test_members_differ_and_the_answer_is_their_mean(case, tmp_path):
    data = series(40)
    fitted = train(data, TARGETS[case], FitConfig(**TINY, members=2)).pipeline
    both = [predict_and_embed(alone(fitted, member), data)[0] for member in range(2)]
    assert not np.allclose(*both, atol=1e-4)
    answer = predict_and_embed(fitted, data)[0]
    assert np.allclose(answer, np.mean(both, axis=0), atol=1e-6)
    outputs, embeddings = predict_and_embed(fitted, data)
    assert np.array_equal(outputs, answer) and np.array_equal(embeddings, alone(fitted, 0).embed(data))
    fitted.save(tmp_path / "model")
    assert np.array_equal(predict_and_embed(load(tmp_path / "model"), data)[0], answer)


def test_the_first_member_is_the_network_that_is_trained_alone():
    data = series(40)
    two, one = (train(data, RARE, FitConfig(**TINY, members=members)).pipeline for members in (2, 1))
    assert same(weights(alone(two, 0).model), weights(one.model))


@pytest.mark.parametrize("pretrains", [True, False])
def test_members_start_from_networks_of_their_own_if_there_is_a_pretraining(pretrains, tmp_path):
    data, probe = series(40), {**TINY, "members": 2, "tune": "probe"}  # the encoders stay as they were pre-trained
    if not pretrains:
        train(data, None, FitConfig(**TINY)).pipeline.save(tmp_path / "start")
        probe = {name: value for name, value in probe.items() if name not in (*SIZES, "pretrain_epochs")}
        probe["pretrained"] = str(tmp_path / "start")
    model = train(data, RARE, FitConfig(**probe)).pipeline.model
    assert same(weights(model.encoder), weights(model.others[0].encoder)) != pretrains


def test_of_few_series_of_a_rare_class_three_are_trained(capfd):
    data, three_kinds = series(40), np.array(["a", "b", "c", "d"] * 10)
    assert train(data, RARE, FitConfig(**TINY), reporter=Reporter()).pipeline.model.members == 3
    assert "3 networks are trained and averaged" in " ".join(capfd.readouterr().err.split())
    for targets, options in ((RARE, {"members": 1}), (RARE, {"decide": "accuracy"}), (three_kinds, {})):
        assert train(data, targets, FitConfig(**TINY, **options)).pipeline.model.members == 1
    assert ClassLabels.default_members("auto", RARE) == 3
    with refuses("members", "at least 1"):
        FitConfig(members=0)


@pytest.mark.parametrize("stage", [2, 5])
def test_a_run_that_stopped_in_the_second_member_is_resumed(stage, tmp_path, monkeypatch):
    data, config = series(40), FitConfig(**TINY, members=3)
    whole = train(data, RARE, config).pipeline
    calls, fit = [], train.__globals__["fit"]

    def stops(*given, **options):
        calls.append(options["folder"])
        if len(calls) == stage:
            raise KeyboardInterrupt
        return fit(*given, **options)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("rotarymae.train.fit", stops)
        train(data, RARE, config, plan=Plan(tmp_path, config))
    assert len(set(calls)) == stage
    resumed = train(data, RARE, config, plan=Plan(tmp_path, config, resume=True)).pipeline
    assert same(weights(resumed.model), weights(whole.model))
