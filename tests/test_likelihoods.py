"""One table of tests for every likelihood: density, moments, quantiles, gradients, and what β does."""

from typing import get_args

import numpy as np
import pytest
import scipy.stats
import torch

from conftest import refuses
from rotarymae.config import LikelihoodKind, RoMAEConfig
from rotarymae.likelihoods import LIKELIHOODS
from rotarymae.model import MaskedAutoencoder
from rotarymae.tokens import Tokens
from rotarymae.training.objectives import Pretraining

RAW = torch.tensor([[0.3, -1.0, 0.7], [-2.0, 0.8, 3.0], [0.0, 2.0, -1.5]], dtype=torch.float64)  # three values
DENSITIES = ("gaussian", "student_t")


def reference(kind, parameters):
    """scipy's distribution of each value."""
    location, scale = parameters[..., 0].numpy(), np.exp(parameters[..., 1].numpy() / 2)
    if kind == "gaussian":
        return scipy.stats.norm(location, scale)
    return scipy.stats.t(2 + np.log1p(np.exp(parameters[..., 2].numpy())), location, scale)


def example(kind):
    likelihood = LIKELIHOODS[kind]
    raw = RAW[:, : likelihood.outputs]
    return likelihood, raw.T.flatten()


def test_every_kind_has_its_likelihood():
    assert set(get_args(LikelihoodKind)) == set(LIKELIHOODS)
    for kind, likelihood in LIKELIHOODS.items():
        assert likelihood.has_spread == (kind != "point")


@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_decoders_give_first_parameters_then_second_ones(kind):
    likelihood, raw = example(kind)
    assert likelihood.parameters(raw).equal(RAW[:, : likelihood.outputs])
    assert likelihood.mean(likelihood.parameters(raw)).equal(RAW[:, 0])


@pytest.mark.parametrize("kind", DENSITIES)
@pytest.mark.parametrize("precision", [torch.float64, torch.float32])
def test_the_probability_beyond_a_limit_is_scipys_in_both_tails_and_has_a_finite_gradient(kind, precision):
    likelihood, _ = example(kind)
    freedom = torch.tensor([-4.6, 0.0, 3.0, 40.0, 150.0])
    limits = torch.tensor([-1e6, -300.0, -30.0, -3.0, -0.1, 0.1, 3.0, 30.0, 300.0, 1e6])
    grid = torch.stack(torch.meshgrid(freedom, limits, indexing="ij"), -1).flatten(0, 1).to(precision)
    raw = torch.stack([torch.full_like(grid[:, 0], 0.3), torch.full_like(grid[:, 0], -1.0), grid[:, 0]], -1)
    raw = raw[:, : likelihood.outputs].requires_grad_()
    for side in (1, -1):
        beyond = likelihood.log_beyond(raw, grid[:, 1], side)
        (gradient,) = torch.autograd.grad(beyond.sum(), raw)
        assert beyond.isfinite().all() and gradient.isfinite().all()
        exact = reference(kind, raw.detach().double())
        expected = (exact.logsf if side == 1 else exact.logcdf)(grid[:, 1].double().numpy())
        known = expected > -700  # where scipy's own tail of Student's t is no zero
        close = {"rtol": 1e-7, "atol": 1e-12} if precision == torch.float64 else {"rtol": 1e-4, "atol": 1e-6}
        np.testing.assert_allclose(beyond.detach().double().numpy()[known], expected[known], **close)
        ahead = (side * (grid[:, 1] - 0.3)) > 20  # a far limit pulls the mean towards it, as strongly as it is far
        assert (side * gradient[ahead, 0] > 0).all()


@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_a_limit_costs_nothing_on_its_own_side_and_more_the_farther_it_is_missed(kind):
    likelihood, _ = example(kind)
    raw = torch.tensor([[0.0, 0.0, 0.0]])[:, : likelihood.outputs].expand(4, -1)
    target, upper = torch.tensor([30.0, -1.0, -2.0, -1.0]), torch.tensor([-1.0, -1.0, -1.0, 0.0])
    costs = likelihood.loss(raw, target, sides=upper)
    assert costs[0] < 1e-3 and costs[0] < costs[1] < costs[2]
    assert costs[3] == likelihood.loss(raw, target)[3]
    assert likelihood.loss(raw, -target, sides=-upper).equal(costs)


@pytest.mark.parametrize("kind", DENSITIES)
def test_density_moments_and_quantiles_are_scipys(kind):
    likelihood, raw = example(kind)
    parameters = likelihood.parameters(raw)
    same, target = reference(kind, parameters), torch.tensor([1.0, -3.0, 8.0], dtype=torch.float64)
    assert np.allclose(likelihood.log_prob(parameters, target), same.logpdf(target), rtol=1e-10)
    assert likelihood.loss(parameters, target).equal(-likelihood.log_prob(parameters, target))
    assert np.allclose(likelihood.mean(parameters), same.mean()) and np.allclose(likelihood.std(parameters), same.std())
    for share in (0.02, 0.5, 0.9):
        assert np.allclose(likelihood.quantile(parameters, share), same.ppf(share), rtol=1e-9, atol=1e-12)
    each = torch.tensor([0.1, 0.6, 0.99])
    assert np.allclose(likelihood.quantile(parameters, each), same.ppf(each), rtol=1e-6)
    lower, upper = likelihood.interval(parameters, 0.95)
    assert np.allclose(same.cdf(upper) - same.cdf(lower), 0.95, atol=1e-9)
    assert np.allclose(same.cdf(lower), 0.025, atol=1e-9)


@pytest.mark.parametrize("kind", DENSITIES)
def test_what_is_widened_has_both_variances_and_keeps_its_mean(kind):
    likelihood, raw = example(kind)
    parameters = likelihood.parameters(raw)
    wider = likelihood.widen(parameters, torch.tensor([2.0, 0.5, 0.0]).double().log())
    assert np.allclose(likelihood.std(wider) ** 2, likelihood.std(parameters) ** 2 + torch.tensor([2.0, 0.5, 0.0]))
    assert likelihood.mean(wider).equal(likelihood.mean(parameters))


@pytest.mark.parametrize("kind", DENSITIES)
def test_beta_weights_by_the_variance_held_constant(kind):
    likelihood, raw = example(kind)
    parameters, target = likelihood.parameters(raw).requires_grad_(), torch.ones(3, dtype=torch.float64)
    weight = likelihood.std(parameters).detach() ** (2 * 0.5)
    plain = torch.autograd.grad((weight * likelihood.loss(parameters, target)).sum(), parameters)[0]
    weighted = torch.autograd.grad(likelihood.loss(parameters, target, 0.5).sum(), parameters)[0]
    assert torch.allclose(plain, weighted)


@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_wild_outputs_of_a_decoder_stay_finite(kind):
    likelihood = LIKELIHOODS[kind]
    raw = torch.tensor([[1.0, -1e30, -1e30], [1.0, 1e30, 1e30], [1.0, -1e30, 1e30]])[:, : likelihood.outputs]
    raw = raw.T.flatten().requires_grad_()
    parameters = likelihood.parameters(raw)
    loss = likelihood.loss(parameters, torch.zeros(3))
    assert likelihood.std(parameters).isfinite().all() and loss.isfinite().all()
    loss.sum().backward()
    assert raw.grad.isfinite().all()


def test_a_point_scores_its_squared_error_and_has_no_spread():
    point, parameters = LIKELIHOODS["point"], torch.tensor([[1.0], [3.0]])
    assert point.loss(parameters, torch.tensor([0.0, 5.0])).tolist() == [1, 4]
    assert point.std(parameters).tolist() == [0, 0] and point.widen(parameters, torch.zeros(2)).equal(parameters)
    assert point.quantile(parameters, 0.9).tolist() == [1, 3]


@pytest.mark.parametrize("neighbours", [False, True])
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_every_likelihood_trains(kind, neighbours):
    config = RoMAEConfig(
        features=2, embed_dim=24, num_heads=2, depth=1, decoder_embed_dim=24, decoder_num_heads=2, decoder_depth=1,
        likelihood=kind, neighbours=neighbours,
    )  # fmt: skip
    torch.manual_seed(0)
    model = MaskedAutoencoder(config)
    tokens = Tokens(torch.randn(4, 8, 2), torch.rand(4, 8, 1) * 8)
    out = model(tokens, torch.tensor([[False, True] * 4] * 4))
    assert out.parameters.shape == (4, 4, 2, LIKELIHOODS[kind].outputs) and out.predicted.shape == (4, 4, 2)
    LIKELIHOODS[kind].loss(out.parameters, out.masked.values).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_beta_of_a_point_is_refused():
    with refuses("beta"):
        Pretraining(MaskedAutoencoder(RoMAEConfig()), beta=0.5)
