"""A fitted pipeline as a program: padded observations in the table's units in, answers in these units out.

The preprocessor is the module that training and prediction use. Inputs that every program takes, of B series padded to
N observations, which need not be in the order of time:

    time      float64 [B, N]      in the table's unit; dates are days since 1970-01-01 UTC
    values    float64 [B, N, V]   in the order of `value_names`, then the columns of errors, if the model weighs
                                  them, then -1, 0 or 1 for upper limit, value and lower limit, if it reads limits
    channel   int64   [B, N]      index into `channel_names`, from 0; only of a model with channels
    position  float64 [B, N, P]   in the order of `position_names`; only of a model with further positions
    mask      bool    [B, N]      True where there is an observation; values elsewhere are ignored

A head that reads columns with one value per series takes another:

    static    float64 [B, F]      F columns: numbers as they are, categories by their place in the training's list, -1
                                  for another; NaN is missing
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rotarymae.heads import embedding
from rotarymae.interpolation import DEVIATION
from rotarymae.likelihoods import FREEDOM, LIKELIHOODS, StudentT
from rotarymae.model import MaskedAutoencoder
from rotarymae.pipeline import Pipeline
from rotarymae.preprocess import Rows, code_features
from rotarymae.surroundings import output_numbers, surroundings

Feeds = dict[str, Tensor]
FREEDOMS = torch.linspace(*FREEDOM, 20_000, dtype=torch.float64)  # raw degrees of freedom


class Program(nn.Module):
    """Base of exportable modules, which are called with a dictionary of tensors; the top of this file describes them.

    Attributes:
        outputs: names of the tensors that `forward` returns, in their order.
        preprocessor: makes tokens of the inputs.
        model: the model that answers.
    """

    outputs: tuple[str, ...]

    def __init__(self, pipeline: Pipeline) -> None:
        """Keep the preprocessor and the model of a pipeline of series; raise InputError for pictures or sounds."""
        super().__init__()
        self.preprocessor, self.model = pipeline.require_series(), pipeline.model

    def rows(self, inputs: Feeds) -> Rows:
        """Collect the inputs {name: tensor} that describe observations into the `Rows` that the preprocessor reads."""
        return Rows(*(inputs.get(name) for name in ("time", "values", "mask", "channel", "position")))  # pyright: ignore

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the inputs of `forward`, in order: "time", "values", "channel", "position", "mask".

        "channel" and "position" are absent if the model does not read them. Subclasses append further names.
        """
        return ("time", "values", *self._optional_inputs(), "mask")

    def _optional_inputs(self, prefix: str = "") -> tuple[str, ...]:
        """Return the names of the inputs for channels and positions that the model reads, `prefix` put before each."""
        channel = () if self.preprocessor.channel_names is None else (f"{prefix}channel",)
        return (*channel, f"{prefix}position") if self.preprocessor.position_names else channel


class Predictions(Program):
    """Program of the network's predictions: `probabilities` float32 [B, classes] or `predicted` float64 [B, outputs].

    For a time to an event, the classes are its intervals and "after them", with edges in `labels.edges` of config.json.
    Probabilities are calibrated: logits are divided by the temperature that the fit chose. Methods next to the network,
    such as boosted trees, are not part of the program.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        """Take the model, preprocessor, labels and temperature of a fine-tuned pipeline of series.

        Raises InputError for a pipeline that is not fine-tuned, or one of pictures or sounds.
        """
        super().__init__(pipeline)
        self.labels, self.temperature = pipeline.require_labels(), pipeline.predictor.temperatures["model"]
        self.outputs = (self.labels.output,)

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the inputs of `forward`, in order; "static" comes last if the model reads static columns."""
        return (*super().needs, "static") if self.preprocessor.static else super().needs

    def forward(self, inputs: Feeds) -> Tensor:
        """Return the network's predictions for B series.

        Args:
            inputs: {name: tensor}, for each name in `needs`.

        Returns:
            Calibrated probabilities of classes, or of time intervals, float32 [B, classes]; or a regression's values in
            the targets' units, float64 [B, outputs].
        """
        static = inputs.get("static")
        features = None if static is None else code_features(self.preprocessor.static, static.double())
        out = self.model(self.preprocessor(self.rows(inputs)), features)
        decoded = self.labels.decode(out / self.temperature)
        return decoded.float() if self.labels.output == "probabilities" else decoded


class Embeddings(Program):
    """Program that returns `embedding`, one vector for each series, float32 [B, D]."""

    outputs = ("embedding",)

    def __init__(self, pipeline: Pipeline) -> None:
        """Keep the model and preprocessor of a pipeline of series; raise InputError for pictures or sounds."""
        super().__init__(pipeline)
        self.pool = getattr(self.model, "pool", "mean")

    def forward(self, inputs: Feeds) -> Tensor:
        """Return one vector for each of B series, float32 [B, D], where D is the width of the encoder.

        The encoder's vectors of a series' observations are combined to one as the model's head does it; without a head,
        by their mean.

        Args:
            inputs: {name: tensor}, for each name in `needs`.
        """
        return embedding(self.model, self.preprocessor(self.rows(inputs)), self.pool)


class Interpolations(Program):
    """Program that predicts V values at M queries of each of B series: `mean` and `std`, float64 [B, M, V].

    Queries are `query_time` float64 [B, M], with `query_channel` int64 [B, M] and `query_position` float64 [B, M, P]
    where the model needs them. Predictions are calibrated as by `Pipeline.interpolate`. A model without a spread
    returns no `std`.
    """

    deviations: Tensor

    def __init__(self, pipeline: Pipeline) -> None:
        """Take the autoencoder, preprocessor and calibration of a pipeline of series.

        Raises InputError for a pipeline without an autoencoder, or one of pictures or sounds.
        """
        super().__init__(pipeline.pretrained)
        self.calibration = pipeline.calibration
        self.season = 0.0 if pipeline.calibration is None else float(pipeline.calibration.season)
        self.outputs = ("mean", "std") if pipeline.require_autoencoder().likelihood.has_spread else ("mean",)
        student, zero = LIKELIHOODS["student_t"], torch.zeros_like(FREEDOMS)
        answers = torch.stack([zero, zero, FREEDOMS], -1)
        self.register_buffer("deviations", student.quantile(answers, 0.5 + DEVIATION / 2) / student.std(answers))

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the inputs of `forward`, in order; "query_time", "query_channel" and "query_position" come last.

        Those of channels and positions are absent if the model does not read them.
        """
        return (*super().needs, "query_time", *self._optional_inputs("query_"))

    def forward(self, inputs: Feeds) -> Any:
        """Predict V values at M times (queries) of each of B series, in the table's units.

        Args:
            inputs: {name: tensor}, for each name in `needs`.

        Returns:
            The pair (means, standard deviations), each float64 [B, M, V]; for a model that predicts no spread the means
            alone. A standard deviation is half the width of the central 68.27 % interval.
        """
        assert isinstance(self.model, MaskedAutoencoder)
        known, likelihood, calibration = self.preprocessor, self.model.likelihood, self.calibration
        rows, query_time, channel = self.rows(inputs), inputs["query_time"].double(), inputs.get("query_channel")
        positions = known.positions_of(query_time, channel, inputs.get("query_position"), known.origins(rows))
        visible = known(rows)
        parameters = self.model.decode(self.model.context(visible), positions).double()
        widens = torch.zeros_like(parameters[..., 0])
        if calibration is not None:
            around = surroundings(visible, positions, known, self.season)
            parameters = calibration(parameters, around, output_numbers(positions, known))
            widens, likelihood = calibration.widens(around), calibration.calibrated_likelihood
        number = torch.zeros_like(query_time, dtype=torch.int64) if channel is None else channel
        if known.join_times:  # a query is answered for all channels of its time
            parameters, widens = (
                _of_channel(part, number, len(known.channel_names or ())) for part in (parameters, widens)
            )
        scaler = known.values
        mean = scaler.bounded(likelihood.mean(parameters), number)
        if not likelihood.has_spread:
            return scaler.inverse(mean, number)
        variance = likelihood.std(parameters) ** 2
        extra = widens * (scaler.spread_about(mean, number) ** 2 - variance).clamp(min=0.0)
        parameters = likelihood.widen(parameters, extra.log(), normal=False)
        half = likelihood.std(parameters)
        if isinstance(likelihood, StudentT):
            half = half * self._deviation(parameters[..., 2])
        edges = (scaler.bounded(edge, number) for edge in (mean + half, mean - half))
        upper, lower = (scaler.inverse(edge, number) for edge in edges)
        return scaler.inverse(mean, number), (upper - lower) / 2

    def _deviation(self, freedom: Tensor) -> Tensor:
        """Return half the width of the central 68.27 % interval of Student's t, in units of its standard deviation.

        As ONNX has no quantiles of Student's t, it is interpolated linearly in a table, to 1e-6.

        Args:
            freedom: raw degrees of freedom, as the model predicts them, before they are made positive. The result has
                the same shape.
        """
        place = (freedom - FREEDOMS[0]) / (FREEDOMS[1] - FREEDOMS[0])
        below = place.floor().clamp(0, len(FREEDOMS) - 2)
        low, high = self.deviations[below.long()], self.deviations[below.long() + 1]
        return low + (place - below) * (high - low)


def _of_channel(part: Tensor, number: Tensor, channels: int) -> Tensor:
    """Select the numbers of one channel for each of M queries of B series: return [B, M, V, ...] for V values.

    A query is a time and a channel at which values are predicted.

    Args:
        part: [B, M, C · V, ...], the numbers of all C channels at the queries, channel by channel.
        number: int [B, M], the channel of each query, from 0.
        channels: the number C of channels.
    """
    each = part.unflatten(2, (channels, -1))
    index = number.view(*number.shape, *(1 for _ in each.shape[2:]))
    return each.gather(2, index.expand(-1, -1, 1, *each.shape[3:]))[:, :, 0]
