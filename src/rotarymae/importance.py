"""Which observations of a series mattered to a model: by leaving each of them out, or by the attention it gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from rotarymae.batch import Batch
from rotarymae.errors import InputError, choose, listed
from rotarymae.heads import Classifier, Regressor, encoder_of
from rotarymae.prediction import inference
from rotarymae.preprocess import ObservationPreprocessor, SeriesExamples
from rotarymae.series import SeriesDataset
from rotarymae.tokens import Tokens
from rotarymae.training import predict
from rotarymae.training.fit_config import ImportanceMethod
from rotarymae.transformer import Block

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline

# Heads that read no token which attends to the observations.
UNWEIGHED = {"mean": "weighs all observations alike", "max": "takes maxima over observations, without weights"}


def importance(
    pipeline: Pipeline,
    dataset: SeriesDataset,
    method: ImportanceMethod = "occlusion",
    on_step: Any = None,
) -> list[np.ndarray]:
    """Measure how much each observation matters to the model: for each series an array [n], in the order of time.

    Args:
        pipeline: a classifier or regressor; for "attention" one that pools by attention or [CLS], or any model with a
            [CLS] token and no head.
        method: "occlusion" leaves out each observation by itself, which takes a series of n observations as long as n
            predictions. Of a classifier it is by how many nats the log-probability of the predicted class falls: what
            speaks against that class is negative. Of a regressor it is how far the prediction moves, in standard
            deviations of the training targets, as a root mean square over its outputs. A series of one observation
            has NaN.
            "attention" is the weight that pool="attention" gives to each observation, or with pool="cls" (and without
            a head) that of [CLS] in the last block; the mean over heads, which sums to one over a series. Other heads
            have no such weights. It is cheap, and says where the model looks, not what would change its answer. With
            joined times the observations of a time share its weight.

    Raises:
        InputError: another method; a model that has no such weights, or predicts nothing; series that the model does
            not read whole.
    """
    choose("method", method, get_args(ImportanceMethod))
    preprocessor = pipeline.require_series()
    preprocessor.check(dataset)
    longer = np.flatnonzero(dataset.lengths > most_observations(preprocessor))
    if len(longer):
        raise InputError(
            f"series {listed(dataset.ids[longer])} have more than the {most_observations(preprocessor):.0f} "
            "observations that the model reads at a "
            "time; cut them (mask_observations) to ask what mattered."
        )
    # Predictions that differ by one observation are distinguishable in float32 only.
    config = inference(replace(pipeline, precision="fp32"))
    examples = SeriesExamples(dataset, preprocessor)
    if method == "attention":
        read = _attention(examples, *_attending(pipeline.model))
    elif isinstance(pipeline.model, Classifier | Regressor):
        read = _occlusion(examples, config.batch_tokens or 8192)
    else:
        raise InputError(
            f"occlusion compares predictions, and a {type(pipeline.model).__name__} makes none; give a fine-tuned "
            "model, or use method='attention'."
        )
    return predict(pipeline.model, examples, read, config, on_step)


def most_observations(preprocessor: ObservationPreprocessor) -> float:
    """Return the largest number of observations that the model reads of a series at a time."""
    return min(filter(None, (preprocessor.max_tokens, preprocessor.window)), default=np.inf)


def _occlusion(examples: SeriesExamples, most_tokens: int) -> Callable[[nn.Module, Batch], list[np.ndarray]]:
    def read(model: nn.Module, batch: Batch) -> list[np.ndarray]:
        whole = model(batch.inputs, batch.static).float()
        return [
            one(model, int(i), whole[[row]], None if batch.static is None else batch.static[[row]])
            for row, i in enumerate(batch.series)
        ]

    def one(model: nn.Module, i: int, whole: Tensor, static: Tensor | None) -> np.ndarray:
        if examples.dataset.lengths[i] < 2:
            return np.full(1, np.nan)
        copies = examples.without_each(i).to(whole.device)
        parts = []
        for rows in torch.arange(copies.batch, device=whole.device).split(max(1, most_tokens // copies.length)):
            parts.append(model(copies.rows(rows), None if static is None else static.expand(len(rows), -1)).float())
        return _change(model, whole, torch.cat(parts)).cpu().numpy()

    return read


def _change(model: nn.Module, whole: Float[Tensor, "1 K"], without: Float[Tensor, "n K"]) -> Float[Tensor, " n"]:
    if isinstance(model, Regressor):  # whose outputs are standardised
        return (whole - without).square().mean(1).sqrt()
    predicted = int(whole.argmax())
    return whole.log_softmax(1)[0, predicted] - without.log_softmax(1)[:, predicted]


def _attending(model: nn.Module) -> tuple[nn.Module, Callable[[Tokens], Any], Callable[..., Tensor]]:
    """Return the module that attends, the call that runs it, and a function that returns its weights [B, L]."""
    encoder = encoder_of(model)
    if isinstance(model, Classifier | Regressor) and model.attention is not None:
        pool = model.attention
        return pool, model.vector, lambda x, padding: pool.weights(pool.norm(x), padding).mean(-1)
    if isinstance(model, Classifier | Regressor) and model.pool in UNWEIGHED:
        raise InputError(f"pool={model.pool!r} {UNWEIGHED[model.pool]}; use method='occlusion'.")
    if encoder.cls_token is None:
        raise InputError("this model has no [CLS] token and no attention pooling, so nothing attends; use occlusion.")
    if encoder.config.attention == "linear":
        raise InputError("[CLS] attends linearly in this model, without weights to look at; use method='occlusion'.")
    last = encoder.transformer.blocks[-1]
    assert isinstance(last, Block), "a transformer is made of blocks"
    attends = last.attention
    return attends, encoder.summary, lambda *given: attends.weights(*given)[:, :, 0].mean(1)


def _attention(
    examples: SeriesExamples, attends: nn.Module, run: Callable[[Tokens], Any], weights_of: Callable[..., Tensor]
) -> Callable[[nn.Module, Batch], list[np.ndarray]]:
    def read(model: nn.Module, batch: Batch) -> list[np.ndarray]:
        recorded: list[Tensor] = []
        hook = attends.register_forward_pre_hook(lambda module, given: recorded.append(weights_of(*given)))
        try:
            run(batch.inputs)
        finally:
            hook.remove()
        weights = recorded[0].float().cpu().numpy()[:, -batch.inputs.length :]  # [CLS] is in front
        return [shared(row, examples.token_of(int(i))) for row, i in zip(weights, batch.series, strict=True)]

    def shared(weights: np.ndarray, token: np.ndarray) -> np.ndarray:
        each = (weights / np.bincount(token, minlength=len(weights)).clip(1))[token]
        return each / each.sum()

    return read
