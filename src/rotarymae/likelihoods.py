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
    """Base class of likelihoods: say which distribution of a value the P numbers on a tensor's last axis describe.

    The first of these parameters is the mean. Objects have no state, and all methods work on any number of values.

    Attributes:
        outputs: P.
    """

    outputs: ClassVar[int]

    @property
    def has_spread(self) -> bool:
        """Whether the distribution has a width; with a single parameter it has none, and only the mean is predicted."""
        return self.outputs > 1

    def parameters(self, raw: Float[Tensor, "*batch PV"]) -> Float[Tensor, "*batch V P"]:
        """Turn the outputs of a decoder into P clamped parameters of the distribution of each of V values.

        `raw` has P · V numbers: the first parameters of all V values, then their second ones, and so on.
        """
        return self.clamp(raw.unflatten(-1, (self.outputs, -1)).transpose(-1, -2))

    def clamp(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape P"]:
        """Return the P parameters of each value's distribution, limited to where their exponentials are finite.

        Here they are returned unchanged; likelihoods with a spread override this.
        """
        return parameters

    def mean(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        """Return the mean of each value's distribution: the first of its P parameters."""
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

        The likelihood of a limit is the probability that the value lies beyond it: below an upper limit, above a lower
        one. Without a spread, the loss of a limit is the squared distance from the mean to it if the mean is on the
        wrong side, else 0.

        Args:
            parameters: P of each value's predicted distribution.
            target: the values, or the limits of those that were not measured.
            beta: each loss is multiplied by its predicted variance to this power, through which no gradient flows; 0
                leaves it as it is. It has no effect without a spread.
            sides: -1 where `target` is an upper limit of the value, 1 where it is a lower one, and 0 where it is the
                value itself; None where all are values.
        """

    @abstractmethod
    def log_variance(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        """Return the log variance of each value's distribution, given its P parameters; -infinity without spread."""

    def std(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        """Return the standard deviation of each value's distribution, given its P parameters; 0 if it has no spread."""
        return (0.5 * self.log_variance(parameters)).exp()

    @abstractmethod
    def widen(
        self, parameters: Float[Tensor, "*shape P"], log_variance: Float[Tensor, "*#shape"], normal: bool = True
    ) -> Float[Tensor, "*shape P"]:
        """Add independent noise of mean 0 to each value's distribution; return its new parameters. The mean stays.

        A likelihood without a spread (P = 1) returns `parameters` unchanged.

        Args:
            parameters: P of each value's distribution.
            log_variance: logarithm of the variance of the noise, for all values or for each.
            normal: True for normal noise, such as a measurement error: heavy tails get lighter. False changes only the
                width of the distribution, not its shape.
        """

    @abstractmethod
    def quantile(self, parameters: Float[Tensor, "*shape P"], share: Any) -> Float[Tensor, "*shape"]:
        """Return, for each value, the number below which a share of its distribution lies; without a spread, the mean.

        Args:
            parameters: P of each value's distribution.
            share: more than 0 and less than 1, a number or a tensor with one for each value.
        """

    def interval(
        self, parameters: Float[Tensor, "*shape P"], share: float
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        """Return the edges (lower, upper) of the central interval that holds `share` of each value's distribution.

        Args:
            parameters: P of each value's distribution.
            share: more than 0 and less than 1, such as 0.95. Without a spread, both edges are the mean.
        """
        return self.quantile(parameters, 0.5 - share / 2), self.quantile(parameters, 0.5 + share / 2)


class Point(Likelihood):
    """A single number, the prediction itself, scored by its squared error."""

    outputs = 1

    def loss(
        self,
        parameters: Float[Tensor, "*shape P"],
        target: Float[Tensor, "*shape"],
        beta: float = 0.0,
        sides: Float[Tensor, "*shape"] | None = None,
    ) -> Float[Tensor, "*shape"]:
        """Return the squared error of each value; 0 where a prediction is below an upper limit, or above a lower one.

        Args:
            parameters: P = 1 for each value, the prediction.
            target: the values, or the limits of those that were not measured.
            beta: not used.
            sides: -1 for upper limits, 1 for lower ones, 0 for values; None where all are values.
        """
        away = parameters[..., 0] - target
        return away.square() if sides is None else away.masked_fill(sides * away > 0, 0.0).square()

    def log_variance(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        """Return minus infinity for each value, as a single number (P = 1) has no spread."""
        return torch.full_like(parameters[..., 0], -torch.inf)

    def widen(
        self, parameters: Float[Tensor, "*shape P"], log_variance: Float[Tensor, "*#shape"], normal: bool = True
    ) -> Float[Tensor, "*shape P"]:
        """Return `parameters` as they are, because a single number (P = 1) has no spread to widen."""
        return parameters

    def quantile(self, parameters: Float[Tensor, "*shape P"], share: Any) -> Float[Tensor, "*shape"]:
        """Return the predicted value, the only parameter (P = 1), whatever the share."""
        return parameters[..., 0]


class Density(Likelihood):
    """A likelihood with a density, scored by its negative logarithm, in nats."""

    @abstractmethod
    def log_prob(
        self, parameters: Float[Tensor, "*shape P"], target: Float[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape"]:
        """Return the natural logarithm of the probability density of each target, constants included.

        `parameters` are P for each target, those of its predicted distribution.
        """

    @abstractmethod
    def log_tail(
        self, parameters: Float[Tensor, "*shape P"], distance: Float[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape"]:
        """Return the log probability that a value lies more than `distance`, at least 0, above the mean.

        `parameters` are P of each value's distribution, which is symmetric: this also holds below the mean.
        """

    def log_beyond(
        self, parameters: Float[Tensor, "*shape P"], limit: Float[Tensor, "*shape"], side: Any
    ) -> Float[Tensor, "*shape"]:
        """Return the log probability that a value lies above `limit` (side 1) or below it (-1), with a finite gradient.

        Args:
            parameters: P of each value's distribution.
            limit: one for each value.
            side: 1 for above and -1 for below, a number or a tensor with one for each value.
        """
        ahead = side * (limit - self.mean(parameters))  # how far the limit lies from the mean, on the value's side
        tail = self.log_tail(parameters, torch.where(ahead >= 0, ahead, -ahead))
        return torch.where(ahead >= 0, tail, torch.log1p(-tail.exp()))

    def loss(
        self,
        parameters: Float[Tensor, "*shape P"],
        target: Float[Tensor, "*shape"],
        beta: float = 0.0,
        sides: Float[Tensor, "*shape"] | None = None,
    ) -> Float[Tensor, "*shape"]:
        """Return the negative logarithm, in nats, of the probability density of each target.

        For a limit ("<5"), return that of the probability that the value lies beyond it, on the side that `sides` says.

        Args:
            parameters: P of each value's predicted distribution.
            target: the values, or the limits of those that were not measured.
            beta: each loss is multiplied by its predicted variance to this power, through which no gradient flows.
            sides: -1 for upper limits, 1 for lower ones, 0 for values; None where all are values.
        """
        terms = -self.log_prob(parameters, target)
        if sides is not None:
            at = sides != 0  # only there, for a tail may take a quadrature
            terms = terms.masked_scatter(at, -self.log_beyond(parameters[at], target[at], sides[at]))
        return terms * (beta * self.log_variance(parameters).detach()).exp() if beta else terms


class Gaussian(Density):
    """A normal distribution; the parameters are its mean and the logarithm of its variance."""

    outputs = 2

    def clamp(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape P"]:
        """Return mean and log variance (P = 2) of each value, the log variance within ±18 (`MAX_LOG_VARIANCE`)."""
        mean, log_variance = parameters.unbind(-1)
        return torch.stack([mean, log_variance.clamp(-MAX_LOG_VARIANCE, MAX_LOG_VARIANCE)], -1)

    def log_prob(
        self, parameters: Float[Tensor, "*shape P"], target: Float[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape"]:
        """Return the natural logarithm of the probability density of each target.

        `parameters` are P = 2 for each target: mean and log variance.
        """
        mean, log_variance = parameters.unbind(-1)
        return -0.5 * (log_variance + (target - mean).square() * (-log_variance).exp() + LOG_2PI)

    def log_tail(
        self, parameters: Float[Tensor, "*shape P"], distance: Float[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape"]:
        """Return the log probability that a value lies more than `distance`, at least 0, above the mean.

        `parameters` are P = 2 for each value: mean and log variance.
        """
        deviations = distance * (-0.5 * parameters[..., 1]).exp()
        return torch.special.erfcx(deviations / math.sqrt(2)).log() - 0.5 * deviations.square() - math.log(2)

    def log_variance(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        """Return the logarithm of the variance: the second of the P = 2 parameters of each value."""
        return parameters[..., 1]

    def widen(
        self, parameters: Float[Tensor, "*shape P"], log_variance: Float[Tensor, "*#shape"], normal: bool = True
    ) -> Float[Tensor, "*shape P"]:
        """Return mean and log variance of each value after noise with variance exp(`log_variance`) is added; P is 2.

        `normal` makes no difference: the distribution stays normal.
        """
        return torch.stack([parameters[..., 0], torch.logaddexp(parameters[..., 1], log_variance)], -1)

    def quantile(self, parameters: Float[Tensor, "*shape P"], share: Any) -> Float[Tensor, "*shape"]:
        """Return, for each value, the number below which a share of its distribution lies.

        Args:
            parameters: P = 2 for each value, mean and log variance.
            share: more than 0 and less than 1, a number or a tensor with one for each value.
        """
        deviations = torch.special.ndtri(torch.as_tensor(share, dtype=torch.float64, device=parameters.device))
        return parameters[..., 0] + deviations.to(parameters.dtype) * self.std(parameters)


class StudentT(Density):
    """Student's t, whose tails are heavier than a normal distribution's: one wild value pulls a prediction less.

    The parameters are the mean, the logarithm of the squared scale, and a number whose softplus is added to 2 to give
    the degrees of freedom.
    """

    outputs = 3

    def clamp(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape P"]:
        """Return the P = 3 parameters of each value's distribution, limited so that densities and variances are finite.

        The mean is unlimited; the log squared scale is within ±18 (`MAX_LOG_VARIANCE`). The third, whose softplus plus
        2 gives the degrees of freedom, is from -4.6 (a variance of 200 squared scales) to 150 (nearly normal).
        """
        mean, log_scale, freedom = parameters.unbind(-1)
        # 0.01 above 2 the variance is 200 squared scales; at e^5 and more the distribution is a normal one.
        bounded = log_scale.clamp(-MAX_LOG_VARIANCE, MAX_LOG_VARIANCE), freedom.clamp(*FREEDOM)
        return torch.stack([mean, *bounded], -1)

    def freedom(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        """Return the degrees of freedom of each distribution: 2 plus the softplus of the third of its P = 3 parameters.

        They are above 2 so that there is a variance.
        """
        return MIN_FREEDOM + F.softplus(parameters[..., 2])

    def log_prob(
        self, parameters: Float[Tensor, "*shape P"], target: Float[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape"]:
        """Return the natural logarithm of the probability density of each target.

        `parameters` are P = 3 for each target: mean, log squared scale, and degrees of freedom before the softplus.
        """
        mean, log_scale, _ = parameters.unbind(-1)
        freedom = self.freedom(parameters)
        squared = (target - mean).square() * (-log_scale).exp()
        constant = torch.lgamma((freedom + 1) / 2) - torch.lgamma(freedom / 2) - 0.5 * (freedom * math.pi).log()
        return constant - 0.5 * log_scale - (freedom + 1) / 2 * torch.log1p(squared / freedom)

    def log_tail(
        self, parameters: Float[Tensor, "*shape P"], distance: Float[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape"]:
        """Return the log probability that a value lies more than `distance`, at least 0, above the mean, by quadrature.

        With distance = scale · sqrt(freedom) · sinh(s), s has a density proportional to cosh(s)^-freedom, which falls
        exponentially: 64 nodes give its integral to 1e-6, wherever it begins. `parameters` are P = 3 for each value:
        mean, log squared scale, and degrees of freedom before the softplus.
        """
        freedom = self.freedom(parameters)
        start = (distance * (-0.5 * parameters[..., 1]).exp() / freedom.sqrt()).asinh()
        length = (TAIL / freedom).exp().acosh().detach()  # cosh(length)^-freedom = exp(-TAIL)
        nodes, weights = (torch.as_tensor(part, dtype=start.dtype, device=start.device) for part in leggauss(NODES))
        further = _log_cosh(start[..., None] + length[..., None] * (nodes + 1) / 2) - _log_cosh(start)[..., None]
        integral = length / 2 * (weights * (-freedom[..., None] * further).exp()).sum(-1)
        constant = torch.lgamma((freedom + 1) / 2) - torch.lgamma(freedom / 2) - 0.5 * math.log(math.pi)
        return constant + integral.log() - freedom * _log_cosh(start)

    def log_variance(self, parameters: Float[Tensor, "*shape P"]) -> Float[Tensor, "*shape"]:
        """Return the logarithm of the variance of each value's distribution: squared scale · freedom / (freedom - 2).

        `parameters` are P = 3 for each value: mean, log squared scale, and degrees of freedom before the softplus.
        """
        return parameters[..., 1] - torch.log1p(-2 / self.freedom(parameters))

    def widen(
        self, parameters: Float[Tensor, "*shape P"], log_variance: Float[Tensor, "*#shape"], normal: bool = True
    ) -> Float[Tensor, "*shape P"]:
        """Return the parameters of each value's distribution with independent noise of mean 0 added; the mean stays.

        The variance is the exact sum of both; the shape is approximated by another Student t.

        Args:
            parameters: P = 3 for each value: mean, log squared scale, and degrees of freedom before the softplus.
            log_variance: logarithm of the variance of the noise, for all values or for each.
            normal: True for normal noise: the degrees of freedom grow, so that tails get lighter. False keeps them.
        """
        # Tails get lighter as in a sum with a normal variable: by the squared ratio of the variances, of freedom - 2.
        mean, model_log_variance = parameters[..., 0], self.log_variance(parameters)
        whole = torch.logaddexp(model_log_variance, log_variance.expand_as(model_log_variance))
        freedom = parameters[..., 2]
        if normal:
            above = F.softplus(freedom) * (2 * (whole - model_log_variance)).exp()
            freedom = (above + (1 - (-above).exp()).log()).clamp(max=FREEDOM[1])  # the inverse of the softplus
        return torch.stack([mean, whole + torch.log1p(-2 / (MIN_FREEDOM + F.softplus(freedom))), freedom], -1)

    def quantile(self, parameters: Float[Tensor, "*shape P"], share: Any) -> Float[Tensor, "*shape"]:
        """Return, for each value, the number below which a share of its distribution lies.

        No gradient flows to the degrees of freedom.

        Args:
            parameters: P = 3 for each value: mean, log squared scale, and degrees of freedom before the softplus.
            share: more than 0 and less than 1, a number or a tensor with one for each value.
        """
        from scipy.special import stdtrit

        freedom = self.freedom(parameters).detach().double().cpu().numpy()
        shares = torch.as_tensor(share, dtype=torch.float64).cpu().numpy()
        scales = torch.as_tensor(stdtrit(freedom, shares), dtype=parameters.dtype, device=parameters.device)
        return parameters[..., 0] + scales * (0.5 * parameters[..., 1]).exp()


def _log_cosh(s: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return log(cosh(s)) without overflow, for s of at least 0."""
    return s + torch.log1p((-2 * s).exp()) - math.log(2)


LIKELIHOODS: dict[LikelihoodKind, Likelihood] = {"point": Point(), "gaussian": Gaussian(), "student_t": StudentT()}
