"""Predictions of a value: the parameters of a distribution, its density, and its quantiles.

The decoder gives P numbers for each value. A likelihood says what they mean; nothing else in the library knows. To add
one: a class here, and its name in `config.LikelihoodKind`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from numpy.polynomial.legendre import leggauss
from torch import Tensor
from torch.nn import functional as F

from rotarymae.config import LikelihoodKind

LOG_2PI = math.log(2 * math.pi)
# Standardised values: a spread below 1e-4 or above 1e4 is noise of the optimiser, and its exponential a risk.
MAX_LOG_VARIANCE = 18.0
NODES, TAIL = 64, 25.0  # of the quadrature of a tail, up to where its density has fallen by exp(-25)
FREEDOM = (-4.6, 150.0)  # of Student's t before the softplus, at least and at most
MIN_FREEDOM = 2.0  # degrees of freedom of Student's t at and below which it has no variance


class Likelihood(ABC):
    """Base class of likelihoods: how P parameters, a tensor's last dimension with the mean first, describe one value.

    Attributes:
        outputs: P.
    """

    outputs: ClassVar[int]

    @property
    def has_spread(self) -> bool:
        return self.outputs > 1

    def parameters(self, raw: Float[Tensor, "*batch PV"]) -> Float[Tensor, "*batch V P"]:
        """Return a decoder's P · V numbers as clamped parameters.

        The first parameters of all V values come first, then their second ones, and so on.
        """
        return self.clamp(raw.unflatten(-1, (self.outputs, -1)).transpose(-1, -2))

    def clamp(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape P"]:
        """Return the parameters limited to where their exponentials are finite."""
        return parameters

    def mean(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        return parameters[..., 0]

    @abstractmethod
    def loss(
        self,
        parameters: Float[Tensor, "*shape P"],
        target: Float[Tensor, "*shape"],
        beta: float = 0.0,
        sides: Float[Tensor, "*shape"] | None = None,
    ) -> Float[Tensor, "*shape"]:
        """Return the loss of each value: the negative log-likelihood in nats, or the squared error without a spread.

        The likelihood of a limit is the probability that the value lies beyond it. Without a spread, its loss is the
        squared distance of a prediction on the wrong side, and 0 on the right one.

        Args:
            target: the values, or the limits of those that were not measured.
            sides: -1 where `target` is an upper limit of the value, 1 where it is a lower one, and 0 where it is the
                value itself; None where all are values.
            beta: each term is multiplied by its predicted variance to this power, through which no gradient flows; 0
                leaves it as it is.
        """

    @abstractmethod
    def log_variance(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        """Return the logarithm of the variance; minus infinity if there is no spread."""

    def std(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        """Return the standard deviation; 0 if there is no spread."""
        return (0.5 * self.log_variance(parameters)).exp()

    @abstractmethod
    def widen(
        self, parameters: Float[Tensor, "*shape P"], log_variance: Float[Tensor, "*#shape"], normal: bool = True
    ) -> Float[Tensor, "*shape P"]:
        """Return the parameters after an independent variance is added to each value; the mean stays.

        Args:
            log_variance: logarithm of the variance that is added.
            normal: True if the added variable is normal, as a measurement error is, which makes heavy tails lighter;
                else only the width of the distribution changes.
        """

    @abstractmethod
    def quantile(self, parameters: Float[Tensor, "*shape P"], share: Any) -> Float[Tensor, "*shape"]:
        """Return the value below which a share of the distribution lies; `share` is a number or a tensor [*shape]."""

    def interval(
        self, parameters: Float[Tensor, "*shape P"], share: float
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        """Return the edges (lower, upper) of the central interval with the probability `share`, such as 0.95."""
        return self.quantile(parameters, 0.5 - share / 2), self.quantile(parameters, 0.5 + share / 2)


class Point(Likelihood):
    """One number, scored by its squared error."""

    outputs = 1

    def loss(self, parameters: Tensor, target: Tensor, beta: float = 0.0, sides: Tensor | None = None) -> Tensor:
        away = parameters[..., 0] - target
        return away.square() if sides is None else away.masked_fill(sides * away > 0, 0.0).square()

    def log_variance(self, parameters: Tensor) -> Tensor:
        return torch.full_like(parameters[..., 0], -torch.inf)

    def widen(self, parameters: Tensor, log_variance: Tensor, normal: bool = True) -> Tensor:
        return parameters

    def quantile(self, parameters: Tensor, share: Any) -> Tensor:
        return parameters[..., 0]


class Density(Likelihood):
    """A likelihood with a density, scored by its negative logarithm, in nats."""

    @abstractmethod
    def log_prob(self, parameters: Float[Tensor, "*shape P"], target: Float[Tensor, "*shape"]) -> Tensor:
        """Return the logarithm of the density at each target, in nats, the constant included."""

    @abstractmethod
    def log_tail(self, parameters: Float[Tensor, "*shape P"], distance: Float[Tensor, "*shape"]) -> Tensor:
        """Return the logarithm of the probability of a value more than a distance, at least 0, above the location."""

    def log_beyond(self, parameters: Float[Tensor, "*shape P"], limit: Float[Tensor, "*shape"], side: Any) -> Tensor:
        """Return the log probability of a value above a limit (side 1), or below (side -1), with a finite gradient."""
        ahead = side * (limit - self.mean(parameters))  # how far the limit lies from the location, on the value's side
        tail = self.log_tail(parameters, torch.where(ahead >= 0, ahead, -ahead))
        return torch.where(ahead >= 0, tail, torch.log1p(-tail.exp()))

    def loss(self, parameters: Tensor, target: Tensor, beta: float = 0.0, sides: Tensor | None = None) -> Tensor:
        """Return the negative log-likelihood of each target, weighted by the predicted variance to the power `beta`."""
        terms = -self.log_prob(parameters, target)
        if sides is not None:
            at = sides != 0  # only there, for a tail may take a quadrature
            terms = terms.masked_scatter(at, -self.log_beyond(parameters[at], target[at], sides[at]))
        return terms * (beta * self.log_variance(parameters).detach()).exp() if beta else terms


class Gaussian(Density):
    """Mean and log-variance of a normal distribution."""

    outputs = 2

    def clamp(self, parameters: Tensor) -> Tensor:
        mean, log_variance = parameters.unbind(-1)
        return torch.stack([mean, log_variance.clamp(-MAX_LOG_VARIANCE, MAX_LOG_VARIANCE)], -1)

    def log_prob(self, parameters: Tensor, target: Tensor) -> Tensor:
        mean, log_variance = parameters.unbind(-1)
        return -0.5 * (log_variance + (target - mean).square() * (-log_variance).exp() + LOG_2PI)

    def log_tail(self, parameters: Tensor, distance: Tensor) -> Tensor:
        deviations = distance * (-0.5 * parameters[..., 1]).exp()
        return torch.special.erfcx(deviations / math.sqrt(2)).log() - 0.5 * deviations.square() - math.log(2)

    def log_variance(self, parameters: Tensor) -> Tensor:
        return parameters[..., 1]

    def widen(self, parameters: Tensor, log_variance: Tensor, normal: bool = True) -> Tensor:
        return torch.stack([parameters[..., 0], torch.logaddexp(parameters[..., 1], log_variance)], -1)

    def quantile(self, parameters: Tensor, share: Any) -> Tensor:
        deviations = torch.special.ndtri(torch.as_tensor(share, dtype=torch.float64, device=parameters.device))
        return parameters[..., 0] + deviations.to(parameters.dtype) * self.std(parameters)


class StudentT(Density):
    """Location, log of the squared scale, and degrees of freedom (2 + softplus) of Student's t.

    Its tails are heavier than a normal distribution's: one wild value pulls a prediction less.
    """

    outputs = 3

    def clamp(self, parameters: Tensor) -> Tensor:
        mean, log_scale, freedom = parameters.unbind(-1)
        # 0.01 above 2 the variance is 200 squared scales; at e^5 and more the distribution is a normal one.
        bounded = log_scale.clamp(-MAX_LOG_VARIANCE, MAX_LOG_VARIANCE), freedom.clamp(*FREEDOM)
        return torch.stack([mean, *bounded], -1)

    def freedom(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        """Return the degrees of freedom, above 2 so that there is a variance."""
        return MIN_FREEDOM + F.softplus(parameters[..., 2])

    def log_prob(self, parameters: Tensor, target: Tensor) -> Tensor:
        mean, log_scale, _ = parameters.unbind(-1)
        freedom = self.freedom(parameters)
        squared = (target - mean).square() * (-log_scale).exp()
        constant = torch.lgamma((freedom + 1) / 2) - torch.lgamma(freedom / 2) - 0.5 * (freedom * math.pi).log()
        return constant - 0.5 * log_scale - (freedom + 1) / 2 * torch.log1p(squared / freedom)

    def log_tail(self, parameters: Tensor, distance: Tensor) -> Tensor:
        """Return the log probability of a value so far above the location under Student's t, by quadrature.

        With distance = scale · sqrt(freedom) · sinh(s), s has a density proportional to cosh(s)^-freedom, which falls
        exponentially: 64 nodes give its integral to 1e-6, wherever it begins.
        """
        freedom = self.freedom(parameters)
        start = (distance * (-0.5 * parameters[..., 1]).exp() / freedom.sqrt()).asinh()
        length = (TAIL / freedom).exp().acosh().detach()  # cosh(length)^-freedom = exp(-TAIL)
        nodes, weights = (torch.as_tensor(part, dtype=start.dtype, device=start.device) for part in leggauss(NODES))
        further = _log_cosh(start[..., None] + length[..., None] * (nodes + 1) / 2) - _log_cosh(start)[..., None]
        integral = length / 2 * (weights * (-freedom[..., None] * further).exp()).sum(-1)
        constant = torch.lgamma((freedom + 1) / 2) - torch.lgamma(freedom / 2) - 0.5 * math.log(math.pi)
        return constant + integral.log() - freedom * _log_cosh(start)

    def log_variance(self, parameters: Tensor) -> Tensor:
        return parameters[..., 1] - torch.log1p(-2 / self.freedom(parameters))

    def widen(self, parameters: Tensor, log_variance: Tensor, normal: bool = True) -> Tensor:
        """Widen as `Likelihood.widen`; the variance is the exact sum of both, and the shape is an approximation."""
        # The sum is taken for another of the kind, whose variance is the sum of both. Tails get lighter, as those of a
        # sum with a normal variable do: of freedom - 2, by the squared ratio of the variances.
        mean, model_log_variance = parameters[..., 0], self.log_variance(parameters)
        whole = torch.logaddexp(model_log_variance, log_variance.expand_as(model_log_variance))
        freedom = parameters[..., 2]
        if normal:
            above = F.softplus(freedom) * (2 * (whole - model_log_variance)).exp()
            freedom = (above + (1 - (-above).exp()).log()).clamp(max=FREEDOM[1])  # the inverse of the softplus
        return torch.stack([mean, whole + torch.log1p(-2 / (MIN_FREEDOM + F.softplus(freedom))), freedom], -1)

    def quantile(self, parameters: Tensor, share: Any) -> Tensor:
        """Return the quantile as `Likelihood.quantile`; no gradient flows to the degrees of freedom."""
        from scipy.special import stdtrit

        freedom = self.freedom(parameters).detach().double().cpu().numpy()
        shares = torch.as_tensor(share, dtype=torch.float64).cpu().numpy()
        scales = torch.as_tensor(stdtrit(freedom, shares), dtype=parameters.dtype, device=parameters.device)
        return parameters[..., 0] + scales * (0.5 * parameters[..., 1]).exp()


def _log_cosh(s: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return log(cosh(s)) for s of at least 0."""
    return s + torch.log1p((-2 * s).exp()) - math.log(2)


LIKELIHOODS: dict[LikelihoodKind, Likelihood] = {"point": Point(), "gaussian": Gaussian(), "student_t": StudentT()}
