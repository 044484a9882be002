"""Losses: by hand and by torch's own, means over what is real, and nothing from under padding."""

import math

import pytest
import torch
from torch.nn import functional as F

from conftest import refuses
from rotarymae.losses import classification, reconstruction, regression
from rotarymae.model import Reconstruction
from rotarymae.tokens import Tokens


def outcome(predicted, target, padding=None, log_variance=None):
    parameters, target = torch.tensor(predicted)[..., None], torch.tensor(target)
    if log_variance is not None:
        parameters = torch.cat([parameters, log_variance[..., None]], -1)
    padding = None if padding is None else torch.tensor(padding)
    masked = Tokens(target, torch.zeros(*target.shape[:2], 1), padding, check_values=False)
    return Reconstruction(parameters, masked, "point" if log_variance is None else "gaussian")


def test_reconstruction_by_hand():
    out = outcome([[[1.0, 2.0], [3.0, 4.0]]], [[[0.0, 2.0], [5.0, 5.0]]])
    loss = reconstruction(out)
    assert (loss.sum.item(), loss.count.item(), loss.mean.item()) == (6, 4, 1.5)
    loss = reconstruction(outcome([[[1.0, 2.0], [3.0, 4.0]]], [[[0.0, 2.0], [5.0, 5.0]]], [[False, True]]))
    assert (loss.sum.item(), loss.count.item()) == (1, 2)


def test_nothing_comes_from_under_padding_even_if_it_overflows():
    out = outcome([[[1.0], [1e30]]], [[[0.0], [0.0]]], [[False, True]])
    out.parameters.requires_grad_()
    loss = reconstruction(out)
    loss.mean.backward()
    assert loss.mean.item() == 1 and out.parameters.grad.flatten().tolist() == [2, 0]


def test_rows_that_hide_nothing_count_for_nothing():
    loss = reconstruction(outcome([[[1.0]], [[7.0]]], [[[0.0]], [[0.0]]], [[False], [True]]))
    assert (loss.sum.item(), loss.count.item()) == (1, 1)


def test_normalised_targets_by_hand():
    # mean 2, unbiased variance 1: the target is (-1, 0, 1)
    loss = reconstruction(outcome([[[0.0, 0.0, 0.0]]], [[[1.0, 2.0, 3.0]]]), normalize_targets=True)
    assert loss.mean.item() == pytest.approx(2 / 3, abs=1e-5)
    flat = reconstruction(outcome([[[0.0, 1.0]]], [[[5.0, 5.0]]]), normalize_targets=True)
    assert flat.mean.item() == 0.5  # a constant patch becomes zero, not NaN
    with refuses("at least 2 values", "1 feature"):
        reconstruction(outcome([[[0.0]]], [[[1.0]]]), normalize_targets=True)


def test_beta_takes_the_variance_out_of_the_gradient_of_means():
    def gradient(beta):
        out = outcome([[[1.0], [1.0]]], [[[0.0], [4.0]]], log_variance=torch.tensor([[[0.0], [math.log(100.0)]]]))
        out.parameters.requires_grad_()
        loss = reconstruction(out, beta=beta)
        loss.sum.backward()
        return out.parameters.grad[..., 0].flatten().tolist(), loss.sum.item()

    plain, value = gradient(0.0)
    assert plain == pytest.approx([1, -0.03])
    assert gradient(0.5)[0] == pytest.approx([1, -0.3])
    assert gradient(1.0)[0] == pytest.approx([1, -3])  # as of half the squared error
    each = [0.5 * (1 + math.log(2 * math.pi)), 0.5 * (math.log(100) + 0.09 + math.log(2 * math.pi))]
    assert value == pytest.approx(sum(each), rel=1e-6)
    assert gradient(1.0)[1] == pytest.approx(each[0] + 100 * each[1], rel=1e-6)


def test_beta_holds_the_weight_constant():
    log_variance = torch.tensor([[[1.0]]], requires_grad=True)
    reconstruction(outcome([[[2.0]]], [[[0.0]]], log_variance=log_variance), beta=1.0).sum.backward()
    # e · d/ds (s + 4 exp(-s)) / 2 at s = 1
    assert log_variance.grad.item() == pytest.approx(math.e * 0.5 * (1 - 4 / math.e), rel=1e-5)


def test_gaussian_reconstruction_and_its_padding():
    log_variance = torch.tensor([[[math.log(4.0)], [900.0]]])
    loss = reconstruction(outcome([[[1.0], [0.0]]], [[[3.0], [0.0]]], [[False, True]], log_variance))
    assert loss.count.item() == 1
    assert loss.mean.item() == pytest.approx(0.5 * (math.log(4) + 1 + math.log(2 * math.pi)), rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_classification_is_torchs_and_adds_up_over_micro_batches(smoothing, weighted):
    logits, labels = torch.randn(7, 3, dtype=torch.float64), torch.tensor([0, 1, 2, 2, 1, 0, 0])
    weights = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64) if weighted else None
    wanted = F.cross_entropy(logits, labels, weight=weights, label_smoothing=smoothing)
    assert classification(logits, labels, smoothing, weights).mean.item() == pytest.approx(wanted.item(), rel=1e-12)
    parts = [classification(logits[cut], labels[cut], smoothing, weights) for cut in (slice(0, 2), slice(2, 7))]
    mean = sum(part.sum for part in parts) / sum(part.count for part in parts)
    assert mean.item() == pytest.approx(wanted.item(), rel=1e-12)


def test_label_smoothing_by_hand():
    logits = torch.tensor([[2.0, 0.0]])
    right, wrong = math.log(1 + math.exp(-2)), math.log(1 + math.exp(2))
    loss = classification(logits, torch.tensor([0]), label_smoothing=0.2).mean.item()
    assert loss == pytest.approx(0.9 * right + 0.1 * wrong, rel=1e-6)


def test_missing_targets_of_regression_count_for_nothing():
    predicted = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    loss = regression(predicted, torch.tensor([[0.0, torch.nan], [3.0, 2.0]]))
    loss.mean.backward()
    assert (loss.sum.item(), loss.count.item()) == (5, 3)
    assert predicted.grad.flatten().tolist() == pytest.approx([2 / 3, 0, 0, 4 / 3])


def test_absolute_errors_are_moved_less_by_an_outlier():
    predicted, target = torch.tensor([[1.0], [3.0]]), torch.tensor([[0.0], [-7.0]])
    assert regression(predicted, target).mean.item() == (1 + 100) / 2
    assert regression(predicted, target, "absolute_error").mean.item() == (1 + 10) / 2


def test_losses_are_computed_in_float32_at_least():
    big = torch.full((1, 1, 1), 300.0, dtype=torch.float16)  # its square is beyond float16
    out = Reconstruction(big[..., None], Tokens(torch.zeros_like(big), torch.zeros(1, 1, 1)), "point")
    for loss in (
        reconstruction(out),
        regression(big, torch.zeros_like(big)),
        classification(big[0].expand(1, 2), torch.tensor([0])),
    ):
        assert loss.sum.dtype == torch.float32
    assert reconstruction(out).mean.item() == regression(big, torch.zeros_like(big)).mean.item() == 90_000
    assert regression(big.double(), big.double()).sum.dtype == torch.float64


def test_targets_of_another_shape_than_predictions_are_refused():
    """torch would compare every prediction with every target."""
    with refuses("(4, 1)", "(4,)", "expected the same"):
        regression(torch.zeros(4, 1), torch.arange(4.0))
