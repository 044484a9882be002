"""Losses, each as (sum, count), so that a mean over batches of any sizes stays exact.

The mean of a loss is sum / count over everything real; padding enters neither. All are computed in float32 at least.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from rotarymae.config import TargetLoss
from rotarymae.errors import InputError
from rotarymae.likelihoods import LIKELIHOODS
from rotarymae.model import Reconstruction


class Loss(NamedTuple):
    """A sum over terms and their number (with class weights, the sum of these), both tensors without axes."""

    sum: Float[Tensor, ""]
    count: Shaped[Tensor, ""]

    @property
    def mean(self) -> Float[Tensor, ""]:
        """Mean loss: the sum divided by `count`, the number of terms or the sum of their weights; NaN without terms."""
        return self.sum / self.count


def reconstruction(
    out: Reconstruction,
    normalize_targets: bool = False,
    beta: float = 0.0,
    sides: Float[Tensor, "B M V"] | None = None,
) -> Loss:
    """Return the loss of the masked tokens: the sum of terms, one for each observed value, and their number.

    A term is the value's negative log-likelihood, or its squared error without a spread. Padding, NaN and values that
    were not observed have none.

    Args:
        out: predictions for M masked tokens with V values in B rows, and their true values.
        normalize_targets: standardise the V true values of each token by their own mean and deviation, as MAE does with
            patches (arXiv:2111.06377; eps 1e-6, unbiased variance). A token with a missing value then has no term.
        beta: weight each term by its predicted variance to this power, held constant (β-NLL, arXiv:2203.09168). With 0,
            values that are hard to predict are learnt slowest, as the gradient of a mean is divided by its variance;
            with 1, means learn as with squared errors. It has no effect on a model without variances.
        sides: -1 where a true value is only an upper limit, 1 where it is a lower limit, 0 where it was measured; None
            where all were. The loss of a limit is the negative logarithm of the probability that the value lies beyond
            it. For a model without a spread, it is the squared distance to the limit if the mean is on the wrong side,
            else 0.

    Raises:
        InputError: `normalize_targets` of tokens with one value, which have no deviation.
    """
    target = _at_least_float32(out.masked.values).masked_fill(~out.masked.observed_values, torch.nan)
    if normalize_targets:
        if target.shape[-1] < 2:
            raise InputError(
                "normalize_targets needs patches of at least 2 values, and tokens have 1 feature; leave the option out."
            )
        # A patch with a missing value has no mean: it counts for nothing.
        target = (target - target.mean(-1, keepdim=True)) / (target.var(-1, keepdim=True) + 1e-6).sqrt()
    missing = target.isnan()
    target = target.masked_fill(missing, 0.0)
    terms = LIKELIHOODS[out.likelihood].loss(_at_least_float32(out.parameters), target, beta, sides)
    # masked_fill, not a product: predictions at padded positions must not reach the gradient even if it overflows.
    return Loss(terms.masked_fill(missing, 0.0).sum(), (~missing).sum())


# How fine-tuning scores numbers. A new loss is a line here, and its name in `config.TargetLoss`.
REGRESSION_LOSSES: dict[TargetLoss, Callable[[Tensor], Tensor]] = {"auto": torch.square, "absolute_error": torch.abs}


def classification(
    logits: Float[Tensor, "B classes"],
    labels: Int[Tensor, " B"],
    label_smoothing: float = 0.0,
    class_weights: Float[Tensor, " classes"] | None = None,
) -> Loss:
    """Return the cross-entropy of B predictions with their classes, in nats: its sum, and their number.

    Args:
        logits: of each class, for each row.
        labels: number of each row's class, from 0.
        label_smoothing: share of each label's probability that is spread evenly over all classes.
        class_weights: one for each class; None weighs all equally. A row's term counts by the weight of its class, in
            the sum and in the number, so that the mean is torch's weighted mean.
    """
    logits = _at_least_float32(logits)
    weights = None if class_weights is None else class_weights.to(logits.device)
    terms = F.cross_entropy(logits, labels, weight=weights, label_smoothing=label_smoothing, reduction="sum")
    count = torch.tensor(len(labels), device=logits.device) if weights is None else weights[labels].sum()
    return Loss(terms, count)


def event_time(logits: Float[Tensor, "B classes"], possible: Float[Tensor, "B classes"]) -> Loss:
    """Return the negative log-likelihood, in nats, of when the events of B series happened: its sum, and their number.

    The classes are intervals of time, in order, and a last one, "after all intervals". The likelihood of a series is
    the sum of the classes' probabilities, each times its weight in `possible`.

    Args:
        logits: of the classes, for each series.
        possible: weights of the classes. If the event was observed, 1 for its interval and 0 elsewhere. If the series
            was censored (observation ended before the event): 0 for earlier intervals, 1 for all later classes, and for
            the interval in which it was censored the share of it that was still to come.
    """
    logits = _at_least_float32(logits)
    known = (logits + _at_least_float32(possible).log()).logsumexp(-1)  # -inf for what is ruled out has no gradient
    return Loss((logits.logsumexp(-1) - known).sum(), torch.tensor(len(logits), device=logits.device))


def regression(predicted: Float[Tensor, "*shape"], target: Float[Tensor, "*shape"], loss: TargetLoss = "auto") -> Loss:
    """Return the error of predicted values: the sum over all targets that are not NaN, and their number.

    Args:
        predicted: of any shape.
        target: true values of the same shape; NaN where unknown.
        loss: "auto" for squared errors, "absolute_error" for absolute ones.

    Raises:
        InputError: predictions and targets of different shapes, which torch would broadcast.
    """
    if predicted.shape != target.shape:
        raise InputError(
            f"predictions have the shape {tuple(predicted.shape)}, targets {tuple(target.shape)}; expected the same: "
            "reshape one of them."
        )
    predicted, target = _at_least_float32(predicted), _at_least_float32(target)
    missing = target.isnan()
    terms = REGRESSION_LOSSES[loss](predicted - target.masked_fill(missing, 0.0)).masked_fill(missing, 0.0)
    return Loss(terms.sum(), (~missing).sum())


def _at_least_float32(x: Tensor) -> Tensor:
    """Return x in float32, or as it is if it is in float64."""
    return x if x.dtype == torch.float64 else x.float()
