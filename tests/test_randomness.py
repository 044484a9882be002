"""Training draws from generators of its own: the caller's random state, modes and other threads change nothing."""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch

from _runs import FIT, SIZES, digest, waves
from rotarymae import RoMAEClassifier, RoMAERegressor
from rotarymae.counter_rng import make_generator
from rotarymae.train import finetune, pretrain
from rotarymae.transformer import Dropout, DropPath, drawing_from

KINDS = np.array(["x", "y"] * 8)
CONFIG = replace(FIT, dropout=0.2, drop_path=0.2, drop=0.2, noise=0.1, min_steps=6)


def train(seed=0, on_step=None, **changes):
    """Digests of a pre-trained and a fine-tuned model."""
    config, data = replace(CONFIG, seed=seed, **changes), waves()
    pretrained = pretrain(data, config, on_step=on_step).pipeline
    finetuned = finetune(pretrained, data, KINDS, config, on_step=on_step).pipeline
    return digest(pretrained.model), digest(finetuned.model)


@pytest.fixture(scope="module")
def alone():
    return {seed: train(seed) for seed in (0, 1)}


def test_two_trainings_in_two_threads_give_what_each_gives_alone(alone):
    assert alone[0] != alone[1]
    together, start = {}, threading.Barrier(2)
    taking_turns = threading.Barrier(2)  # a step of the one falls between two of the other

    def run(seed):
        start.wait(60)
        together[seed] = train(seed, on_step=lambda *_: taking_turns.wait(60))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_the_callers_random_state_stays_also_while_it_trains(alone):
    torch.manual_seed(3)
    np.random.seed(3)
    before, seen = (torch.get_rng_state(), np.random.get_state()[1].copy()), []
    found = train(on_step=lambda *_: seen.append(torch.get_rng_state()))
    assert len(seen) > 10 and all(torch.equal(state, before[0]) for state in seen)
    assert torch.equal(torch.get_rng_state(), before[0]) and np.array_equal(np.random.get_state()[1], before[1])
    torch.manual_seed(4)
    assert train() == found == alone[0]


def test_no_fit_and_no_answer_touches_the_callers_random_state(complete):
    data, quick = waves(), SIZES | {"pretrain_epochs": 1, "finetune_epochs": 1, "min_steps": 0, "random_state": None}
    models = []
    jobs = {
        "fit": lambda: models.append(RoMAEClassifier(**quick, predictor="combined").fit(data, KINDS)),
        "predict": lambda: models[0].predict_proba(data),
        "interpolate": lambda: models[0].pipeline_.interpolate(data, at=[1.0]),
        "embed": lambda: models[0].pipeline_.embed(data),
        "importance": lambda: models[0].pipeline_.importance(data.select([0])),
        "anomaly_score": lambda: models[0].pipeline_.anomaly_score(data),
        "regressor": lambda: RoMAERegressor(**quick, predictor="model").fit(data, np.arange(16.0)).predict(data),
    }
    torch.manual_seed(3)
    np.random.seed(3)
    for name, job in jobs.items():
        before = torch.get_rng_state(), *np.random.get_state()[1:3]
        job()
        after = torch.get_rng_state(), *np.random.get_state()[1:3]
        assert all(np.array_equal(one, other) for one, other in zip(before, after)), name


@contextmanager
def float64():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, float64, nullcontext], ids=lambda m: m.__name__)
def test_training_does_not_depend_on_the_callers_modes(mode, alone):
    with mode():
        assert train() == alone[0]


@pytest.mark.parametrize("layer", [Dropout(0.25), DropPath(0.25)])
def test_a_layer_draws_from_the_generator_it_was_given(layer):
    x = torch.ones(4000, 2, 3)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with drawing_from(make_generator(5), layer):
        first = layer(x)
    assert torch.equal(torch.get_rng_state(), before)
    with drawing_from(make_generator(5), layer):
        assert torch.equal(layer(x), first) and not torch.equal(layer(x), first)
    assert first.mean() == pytest.approx(1, abs=0.05) and first.unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert layer(x).shape == x.shape and not torch.equal(torch.get_rng_state(), before), "without one, torch's own"


def test_generators_of_other_keys_draw_otherwise():
    keys = [(0, 0), (0, 1), (1, 0), (1, 1), (2**64 - 1, 0)]
    draws = [torch.rand(4, generator=make_generator(*key)) for key in keys]
    assert len({tuple(draw.tolist()) for draw in draws}) == len(keys)
    assert torch.equal(torch.rand(4, generator=make_generator(0, 0)), draws[0])
