"""Objectives of a step: a model, and the loss that reads its predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn

from rotarymae import losses
from rotarymae.batch import Batch
from rotarymae.config import RANGES
from rotarymae.errors import InputError
from rotarymae.losses import Loss
from rotarymae.model import MaskedAutoencoder


class Objective(nn.Module, ABC):
    """A model and its loss, as sum and count, so that processes add up to one exact mean."""

    model: nn.Module

    @abstractmethod
    def forward(self, batch: Batch) -> Loss:
        """Return the sum over all terms of the batch, and their count; both are 0 where it has none."""


class Pretraining(Objective):
    """Reconstruction of the hidden tokens, as `losses.reconstruction` scores it.

    `beta` weights the terms of training only: a validation loss is the likelihood itself. Where the errors of
    measurement are known, their variance is added to the predicted one: what the model predicts is the curve, and a
    value scatters about it by its own error as well. A model without a spread weighs nothing.
    """

    def __init__(self, model: MaskedAutoencoder, normalize_targets: bool = False, beta: float = 0.0) -> None:
        """Keep the model and the options of `losses.reconstruction`.

        Raises:
            InputError: `beta` outside 0 to 1, or above 0 for a model whose likelihood has no spread.
        """
        super().__init__()
        RANGES["beta"].check("beta", beta)
        if beta and not model.likelihood.has_spread:
            raise InputError(
                f"beta ({beta}) weighs by the predicted variance, and the model predicts none; use "
                "likelihood='gaussian', or leave beta out."
            )
        self.model = model
        self.normalize_targets = normalize_targets
        self.beta = beta

    def forward(self, batch: Batch) -> Loss:
        """Predict the masked tokens of a batch and return their loss.

        AssertionError for a batch without masked ones.
        """
        assert batch.masked is not None, "pre-training needs batches with masked tokens"
        assert isinstance(self.model, MaskedAutoencoder)
        out = self.model.predict(batch.inputs, batch.masked)
        if batch.log_errors is not None:
            widened = self.model.likelihood.widen(out.parameters.float(), 2 * batch.log_errors.float())
            out = replace(out, parameters=widened)
        return losses.reconstruction(out, self.normalize_targets, self.beta if self.training else 0.0, batch.sides)


class Supervised(Objective):
    """A loss of the model's outputs and the batch's targets, such as `losses.classification` with its options."""

    def __init__(self, model: nn.Module, loss: Callable[[Tensor, Tensor], Loss]) -> None:
        """Keep the model and its loss.

        Args:
            loss: returns the loss for (outputs, targets).
        """
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: Batch) -> Loss:
        """Return the loss of a batch's targets. AssertionError for a batch without targets."""
        assert batch.targets is not None, "a supervised training needs batches with targets"
        return self.loss(self.model(batch.inputs, batch.static), batch.targets)
