"""Objectives of a step: a model, and the loss that reads its predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from rotarymae import losses
from rotarymae.batch import Batch
from rotarymae.config import RANGES
from rotarymae.errors import InputError
from rotarymae.losses import Loss
from rotarymae.model import MaskedAutoencoder

TEMPERATURES = tuple(2 ** (k / 2) for k in range(-2, 5))  # 0.5 to 4


class Objective(nn.Module, ABC):
    """Base of a model together with its loss.

    Losses are pairs (sum, count), so that those of batches of any size add up to one exact mean.
    """

    model: nn.Module

    @abstractmethod
    def forward(self, batch: Batch) -> Loss:
        """Return the loss of a batch as `Loss` (sum over its terms, number of terms); both are 0 if it has no terms.

        The sum is a number, with gradients in training. In evaluation mode it may have the shape [T]: one sum for each
        of T temperatures by which logits are divided. The smallest of the T means over all data is then the loss.
        """


class Pretraining(Objective):
    """A masked autoencoder with the loss of its predictions at hidden tokens; the objective of pre-training.

    The loss is the negative log-likelihood of the hidden values (`losses.reconstruction`). Where the errors of
    measurement are known, their variance is added to the predicted one, because the model predicts the curve, about
    which a value scatters by its error. `beta` weighs the terms in training only, so that a validation loss is the
    likelihood itself.
    """

    def __init__(self, model: MaskedAutoencoder, normalize_targets: bool = False, beta: float = 0.0) -> None:
        """Keep the model and the options of its loss.

        Args:
            model: the autoencoder.
            normalize_targets: whether each hidden patch is standardised over its values before it is compared, as in
                MAE.
            beta: exponent from 0 to 1: in training mode, each term of the loss is multiplied by the predicted variance
                to this power, through which no gradient flows. 0 changes nothing.

        Raises:
            InputError: `beta` outside 0 to 1, or above 0 for a model whose likelihood has no spread.
        """
        super().__init__()
        RANGES["beta"].check("beta", beta)
        if beta and not model.likelihood.has_spread:
            raise InputError(
                f"beta ({beta}) weighs the loss by the predicted variance, which the model does not predict; use "
                "likelihood='gaussian', or leave beta out."
            )
        self.model = model
        self.normalize_targets = normalize_targets
        self.beta = beta

    def forward(self, batch: Batch) -> Loss:
        """Predict the hidden tokens of a batch from the visible ones; return the loss of the hidden values.

        It is the negative log-likelihood, or the squared error if the model predicts no spread, as `Loss` (sum over the
        values, number of values); limits (censored values, such as <5) count, too. If the batch has errors of
        measurement, their variance is added to the predicted one. In training mode only, each value's loss is
        multiplied by its predicted variance to the power `beta`. Raises AssertionError for a batch without `masked`,
        the hidden tokens.
        """
        assert batch.masked is not None, "pre-training needs batches with masked tokens"
        assert isinstance(self.model, MaskedAutoencoder)
        out = self.model.predict(batch.inputs, batch.masked)
        if batch.log_errors is not None:
            widened = self.model.likelihood.widen(out.parameters.float(), 2 * batch.log_errors.float())
            out = replace(out, parameters=widened)
        return losses.reconstruction(out, self.normalize_targets, self.beta if self.training else 0.0, batch.sides)


class Supervised(Objective):
    """A model with a loss of its outputs at known targets, such as cross-entropy; the objective of fine-tuning."""

    def __init__(self, model: nn.Module, loss: Callable[[Tensor, Tensor], Loss], tempered: bool = False) -> None:
        """Keep the model and its loss.

        Args:
            model: called with the tokens of B series, and with static features [B, F] (F numbers per series) or None;
                returns outputs, such as logits [B, classes].
            loss: called with (outputs, targets); returns their loss as `Loss` (sum, number of terms).
            tempered: True if outputs are logits that will be divided by a temperature after training. In evaluation
                mode the loss is then computed at each of `TEMPERATURES`, 0.5 to 4, and the smallest one counts.
                Otherwise a network that is too sure of itself, as after training on few series, would look worse than
                an untrained one.
        """
        super().__init__()
        self.model, self.loss = model, loss
        self.temperatures = TEMPERATURES if tempered else (1.0,)

    def forward(self, batch: Batch) -> Loss:
        """Return the loss of the model's outputs for the targets of a batch, as `Loss` (sum, number of terms).

        In evaluation mode, if the objective is `tempered`, the outputs (logits) are divided by each of T temperatures,
        and the sum has the shape [T]. Raises AssertionError for a batch without targets.
        """
        assert batch.targets is not None, "a supervised training needs batches with targets"
        outputs, targets = self.model(batch.inputs, batch.static), batch.targets
        if self.training or len(self.temperatures) == 1:
            return self.loss(outputs, targets)
        parts = [self.loss(outputs / temperature, targets) for temperature in self.temperatures]
        return Loss(torch.stack([part.sum for part in parts]), parts[0].count)
