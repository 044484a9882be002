"""Objectives of a step: a model, and the loss that reads its predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from jaxtyping import Float
from torch import Tensor, nn

from rotarymae import losses
from rotarymae.batch import Batch
from rotarymae.config import TargetLoss, check_beta
from rotarymae.errors import InputError
from rotarymae.heads import Classifier, Regressor, TokenRegressor
from rotarymae.losses import Loss
from rotarymae.model import MaskedAutoencoder


class Objective(nn.Module, ABC):
    """A model and its loss, as sum and count, so that processes add up to one exact mean."""

    model: MaskedAutoencoder | Classifier | Regressor | TokenRegressor

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
        check_beta(beta)
        if beta and not model.likelihood.has_spread:
            raise InputError(f"beta ({beta}) weights terms by the predicted variance; use likelihood='gaussian'.")
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
        return losses.reconstruction(out, self.normalize_targets, self.beta if self.training else 0.0)


class Classification(Objective):
    """Cross-entropy of labels [B], or another loss by its name.

    With `class_weights` [classes] the mean is weighted as by torch's `cross_entropy`.
    """

    def __init__(
        self,
        model: Classifier,
        label_smoothing: float = 0.0,
        class_weights: Float[Tensor, " classes"] | None = None,
        loss: TargetLoss = "auto",
    ) -> None:
        """Keep the model and the options of `losses.classification`.

        Args:
            class_weights: None weighs all classes equally.
        """
        super().__init__()
        self.model = model
        self.loss: TargetLoss = loss
        self.label_smoothing = label_smoothing
        self.class_weights = class_weights

    def forward(self, batch: Batch) -> Loss:
        """Return the loss of a batch's labels. AssertionError for a batch without targets."""
        assert batch.targets is not None, "classification needs batches with targets"
        logits = self.model(batch.inputs, batch.static)
        weights = None if self.class_weights is None else self.class_weights.to(logits.device)
        return losses.classification(logits, batch.targets, self.label_smoothing, weights, self.loss)


class TimeToEvent(Objective):
    """Likelihood of the intervals in which an event may have happened, as `losses.event_time` scores it."""

    def __init__(self, model: Classifier) -> None:
        """Keep the model, whose classes are the intervals."""
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> Loss:
        """Return the loss of a batch's targets, the weights of intervals.

        AssertionError for a batch without targets.
        """
        assert batch.targets is not None, "a time to an event needs batches with targets"
        return losses.event_time(self.model(batch.inputs, batch.static), batch.targets)


class Regression(Objective):
    """Error, squared or absolute, of targets [B, outputs], or [B, N, outputs] for one per token; NaN is missing."""

    def __init__(self, model: Regressor | TokenRegressor, loss: TargetLoss = "auto") -> None:
        """Keep the model and the name of the loss, see `losses.regression`."""
        super().__init__()
        self.model = model
        self.loss: TargetLoss = loss

    def forward(self, batch: Batch) -> Loss:
        """Return the loss of a batch's targets. AssertionError for a batch without targets."""
        assert batch.targets is not None, "regression needs batches with targets"
        static = () if isinstance(self.model, TokenRegressor) else (batch.static,)
        return losses.regression(self.model(batch.inputs, *static), batch.targets, self.loss)
