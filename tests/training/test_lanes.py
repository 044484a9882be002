"""Rows that several threads take through the model side by side: the same numbers, the same order, the threads given
back."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from _runs import config, digest, examples, objective, settings, weights
from rotarymae.model import Encoder
from rotarymae.training import evaluation, lanes
from rotarymae.training import loop as training
from rotarymae.training.evaluation import evaluate, predict
from rotarymae.training.lanes import Lanes, alone, cut, lanes_for

CPU = torch.device("cpu")


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("items", [0, 1, 2, 7])
def test_results_come_in_order_and_lanes_take_turns(count, items):
    with Lanes(count) as several:
        found = several.map(lambda item: (item, threading.current_thread().name), range(items))
    assert [item for item, _ in found] == list(range(items))
    names = [name for _, name in found]
    if items > 1:
        assert len(set(names)) <= min(count, items)
        assert all(names[i] == names[i % count] for i in range(items))


@pytest.mark.parametrize(("count", "share"), [(1, 4), (2, 2), (3, 1), (8, 1)])
def test_every_lane_has_its_share_of_the_threads(four_threads, count, share):
    with Lanes(count) as several:
        assert several.map(lambda _: torch.get_num_threads(), range(16)) == [share] * 16
    assert torch.get_num_threads() == 4


@pytest.mark.parametrize("bad", [0, 1])
def test_an_error_waits_for_the_other_lanes_and_gives_the_threads_back(four_threads, bad):
    ended = threading.Event()

    def work(item):
        if item == bad:
            raise ValueError(f"item {item}")
        ended.wait(0.2)
        ended.set()

    with Lanes(2) as several:
        with pytest.raises(ValueError, match=f"item {bad}"):
            several.map(work, [0, 1])
        assert ended.is_set() and torch.get_num_threads() == 4
        assert several.map(str, [3, 4]) == ["3", "4"], "the lanes are still there"


def test_threads_end_with_the_context():
    before = threading.active_count()
    with Lanes(4) as several:
        several.map(lambda _: threading.Event().wait(0.01), range(4))
        assert threading.active_count() > before
    assert threading.active_count() == before


@pytest.mark.parametrize("items", [1, 2, 5, 8])
def test_gradients_are_those_of_the_sum(items):
    torch.manual_seed(0)
    used, unused = nn.Linear(3, 2), nn.Linear(1, 1)
    parameters = [*used.parameters(), *unused.parameters()]
    rows = torch.randn(items, 4, 3)
    wanted = torch.autograd.grad(used(rows).square().sum(), list(used.parameters()))
    for count in (1, 2, 3):
        for parameter in parameters:
            parameter.grad = None
        with Lanes(count) as several:
            for times in (1, 2):  # a second pass is added to the first
                several.backward(lambda row: used(row).square().sum(), list(rows), parameters)
                for parameter, one in zip(used.parameters(), wanted, strict=True):
                    assert torch.allclose(parameter.grad, times * one, rtol=1e-5)
        assert all(parameter.grad is None for parameter in unused.parameters())


@pytest.mark.parametrize("items", [1, 2, 5])
def test_gradients_that_share_memory_are_told_apart(items):
    a, b = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))
    with Lanes(2) as several:
        several.backward(lambda item: (item * (a + b)).sum(), [1.0] * items, [a, b])
        assert torch.equal(a.grad, torch.full((3,), 1.0 * items)) and torch.equal(b.grad, a.grad)
        a.grad.mul_(0.0)
        assert torch.equal(b.grad, torch.full((3,), 1.0 * items))
        several.backward(lambda item: (a + b).sum(), [1.0] * items, [a, b])
    assert torch.equal(a.grad, torch.full((3,), 1.0 * items)) and torch.equal(b.grad, 2 * a.grad)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), st.integers(1, 5000), st.integers(1, 8), st.booleans())
def test_parts_hold_every_example_in_order_and_have_equal_work(lengths, tokens, count, ordered):
    sizes = np.array(sorted(lengths) if ordered else lengths)
    index = np.arange(len(sizes))
    parts = cut(index, sizes, tokens, count)
    assert (np.concatenate(parts) == index).all() and all(len(part) for part in parts)
    wanted = count * -(-len(sizes) * sizes.max() // (tokens * count))
    share = sizes.sum() / wanted
    assert len(parts) <= wanted
    assert all(abs(sizes[part].sum() - share) <= sizes.max() for part in parts)
    assert len(parts) == wanted or sizes.max() > share / 2


def test_parts_of_a_batch_by_length_are_padded_less():
    sizes = np.sort(np.random.default_rng(0).integers(20, 60, 64))
    parts = cut(np.arange(64), sizes, 1000)
    assert sum(len(part) * sizes[part].max() for part in parts) < 0.8 * 64 * sizes.max()


def test_how_many_lanes(four_threads):
    assert [lanes_for(CPU, tokens) for tokens in (1, 2047, 2048, 3 * 1024, 10**9)] == [1, 1, 2, 3, 4]
    assert lanes_for(torch.device("cuda"), 10**9) == 1
    torch.set_num_threads(64)
    assert lanes_for(CPU, 10**9) == lanes.MOST
    torch.set_num_threads(1)
    assert lanes_for(CPU, 10**9) == 1


def test_what_keeps_to_one_lane():
    assert not alone(Encoder(config(0.0, 0.0)))
    assert alone(Encoder(config(0.1, 0.0))) and alone(Encoder(config(0.0, 0.1)))
    assert alone(objective("classify", 0.1, 0.0).model.dropout)
    encoder = Encoder(config(0.0, 0.0))
    with training.compile_blocks(encoder):
        assert alone(encoder)
    assert not alone(encoder)


# ── in training ─────────────────────────────────────────────────────────────────────────────────────────────────────


def fit(kind, dropout=0.0, **changes):
    """What was trained, and the names of the threads that computed its losses."""
    what, seen = objective(kind, dropout=dropout, drop_path=dropout), set()
    inner = what.forward
    what.forward = lambda batch: (seen.add(threading.current_thread().name), inner(batch))[1]
    result = training.fit(what, examples(kind, augment=False), settings(epochs=2, **changes))
    return what, result, seen


@pytest.mark.parametrize("kind", ["pretrain", "classify", "regress"])
def test_lanes_learn_the_same_and_twice_the_same_bits(kind):
    one, result, names = fit(kind, lanes=1)
    assert len(names) == 1
    two, again = fit(kind, lanes=3), fit(kind, lanes=3)
    assert len(two[2]) == 3
    assert digest(two[0].model) == digest(again[0].model)
    for name, found in weights(two[0].model).items():
        assert torch.allclose(found, weights(one.model)[name], atol=2e-5), name
    assert (two[1].steps, two[1].tokens) == (result.steps, result.tokens)
    assert [line.get("loss") for line in two[1].history] == pytest.approx([line.get("loss") for line in result.history])


def test_a_model_with_dropout_keeps_to_one_lane():
    one, _, _ = fit("classify", 0.1, lanes=1)
    several, _, names = fit("classify", 0.1, lanes=3)
    assert len(names) == 1 and digest(one.model) == digest(several.model)


def test_large_micro_batches_are_cut(monkeypatch):
    whole, _, _ = fit("classify", lanes=1)
    calls = []
    inner = training._Loop._alone
    monkeypatch.setattr(training, "TRAINING", 30)
    monkeypatch.setattr(
        training._Loop, "_alone", lambda self, batches, count: (calls.append(batches), inner(self, batches, count))[1]
    )
    parts, _, _ = fit("classify", lanes=1)
    held = [batch.inputs.batch * batch.inputs.length for batches in calls for batch in batches]
    assert all(len(batches) > 1 for batches in calls) and max(held) <= 30 + 12
    for name, found in weights(parts.model).items():
        assert torch.allclose(found, weights(whole.model)[name], atol=2e-5), name


def test_a_lane_that_fails_ends_the_run_with_its_error(four_threads):
    what = objective("classify", dropout=0.0, drop_path=0.0)
    inner, main = what.forward, threading.current_thread()

    def forward(batch):
        if threading.current_thread() is not main:
            raise RuntimeError("in another lane")
        return inner(batch)

    what.forward = forward
    with pytest.raises(RuntimeError, match="in another lane"):
        training.fit(what, examples("classify"), settings(lanes=2))
    assert torch.get_num_threads() == 4


# ── in evaluation ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("tokens", [2048, 25])
def test_evaluation_and_prediction_are_the_same_in_lanes(monkeypatch, tokens):
    what, data = objective("classify"), examples("classify", 40)
    how = SimpleNamespace(read=lambda model, batch: list(model(batch.inputs)))
    loss, rows = evaluate(what, data, settings()), predict(what.model, data, how.read, settings())
    names = set()

    def read(model, batch):
        names.add((threading.current_thread().name, torch.is_grad_enabled()))
        return how.read(model, batch)

    monkeypatch.setattr(evaluation, "lanes_for", lambda device, tokens: 3)
    monkeypatch.setattr(evaluation, "INFERENCE", tokens)
    told = []
    found = predict(what.model, data, read, settings(), lambda done, of: told.append((done, of)))
    assert torch.allclose(torch.stack(found), torch.stack(rows), atol=1e-6)
    assert len(names) == 3 and not any(grad for _, grad in names)
    assert told[-1][0] == told[-1][1] and [done for done, _ in told[:2]] == [3, min(6, told[-1][1])]
    assert evaluate(what, data, settings()) == pytest.approx(loss, rel=1e-6)
