"""Kernels of float32 products: as exact as before, and taken back whatever happens."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from _runs import examples, objective, settings
from rotarymae.training import Pretraining, fit, precision, predict

CPU = torch.device("cpu")


@pytest.fixture
def onednn(monkeypatch):
    """A processor on which oneDNN is preferred; only where it multiplies float32 as float32."""
    if torch.cpu._is_amx_tile_supported():
        pytest.skip("matrix units round to bf16, so oneDNN is never preferred here")
    if torch.cuda.is_available():
        pytest.skip("runs on the GPU")
    monkeypatch.setattr(precision, "_prefers_onednn", lambda: True)


def chosen():
    return torch.get_float32_matmul_precision(), torch.backends.cuda.flash_sdp_enabled()


def fast(lengths=(10, 20), **changes):
    return precision.fast_products(settings(**changes), CPU, np.array(lengths))


class Watched(Pretraining):
    """An objective that notes which kernels are chosen while it computes."""

    def __init__(self):
        super().__init__(objective().model)
        self.seen = set()

    def forward(self, batch):
        self.seen.add(chosen())
        return super().forward(batch)


def test_products_of_onednn_are_those_of_float32(onednn):
    draw = torch.Generator().manual_seed(0)
    a, b = (torch.randn(300, 300, generator=draw) for _ in range(2))
    exact = a.double() @ b.double()
    with fast():
        error = ((a @ b - exact).abs().max() / exact.abs().max()).item()
    assert error < 1e-6, "rounded to bf16 it would be 1e-3"


def test_attention_is_the_same(onednn):
    draw = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(3, 2, 40, 16, generator=draw) for _ in range(3))
    mask = torch.arange(40) < torch.tensor([40, 7, 1])[:, None, None, None]
    before = F.scaled_dot_product_attention(query, key, value, mask)
    with fast():
        assert F.scaled_dot_product_attention(query, key, value, mask) == pytest.approx(before, abs=1e-6)


def test_training_and_predicting_take_them_and_give_them_back(onednn):
    before, what = chosen(), Watched()
    assert before == ("highest", True)
    fit(what, examples(), settings(epochs=1), validation=examples("pretrain", 11, of=1, augment=False))
    assert what.seen == {("medium", False)} and chosen() == before
    seen = set()
    predict(what.model, examples(), lambda model, batch: [seen.add(chosen())] * len(batch.series), settings())
    assert seen == {("medium", False)} and chosen() == before


def test_they_are_given_back_after_an_error(onednn):
    before = chosen()
    with pytest.raises(ZeroDivisionError), fast():
        raise ZeroDivisionError
    assert chosen() == before


@pytest.mark.parametrize("how", [{"lengths": (10, precision.LONGEST + 1)}, {"precision": "bf16"}])
def test_long_series_and_other_precisions_leave_torch_its_kernels(how, onednn):
    with fast(**how):
        assert chosen() == ("highest", True)


def test_other_processors_leave_torch_its_kernels(monkeypatch):
    monkeypatch.setattr(precision, "processor", lambda: "Intel(R) Xeon(R)")
    with fast():
        assert chosen() == ("highest", True)


def test_a_users_own_newer_switch_stands(onednn):
    switches: Any = getattr(torch.backends.mkldnn, "matmul", None)
    if not hasattr(switches, "fp32_precision"):
        pytest.skip("torch before 2.9 has no such switch")
    switches.fp32_precision = "bf16"
    try:
        with fast():
            assert switches.fp32_precision == "bf16" and torch.backends.cuda.flash_sdp_enabled()
    finally:
        switches.fp32_precision = "none"
    assert chosen() == ("highest", True)


def test_of_two_threads_the_last_gives_them_back(onednn):
    before, inside, first_left = chosen(), threading.Event(), threading.Event()
    seen = []

    def second():
        with fast():
            inside.set()
            first_left.wait(10)
            seen.append(chosen())

    thread = threading.Thread(target=second)
    with fast():
        thread.start()
        assert inside.wait(10)
    first_left.set()
    thread.join(10)
    assert seen == [("medium", False)] and chosen() == before
