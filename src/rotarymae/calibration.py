"""Calibrate answers by how far the nearest observation is: blend them with simple methods, and set their bands.

A model is surest of what its training asked most, and a straight line is hard to beat between near neighbours. Which
method is right how far from the observations is measured: stretches of series are hidden, and a few coefficients are
fitted to the errors. Series that the model learnt from count as well, because simple methods have learnt nothing from
them and there are more of them; how the model differs there is fitted, too, and left out of answers. At each distance
the coefficients are

    mean     weights, which add up to 1, of the model, the line, the latest value, the series' own mean, its drift
             (the latest value and the mean slope of the series), the value whole seasons away, and that with what
             has changed since
    spread   log variance = a + b · the model's own log variance

Logits, a and b are linear in three numbers of the series: how rough it is (the error of the line at each of its
observations from the two next to it), how much it varies, and how far it lies from the mean of all series. Bright stars
need other weights than faint ones: without these numbers, errors in short holes of PLAsTiCC are a third larger. All are
piecewise linear in the logarithm of the distance, with one curve for queries between two observations and one for
those beyond the first or last. The answer is Student's t, with one number of degrees of freedom between and one beyond,
so that the bands of 68 and of 95 % can both be right. The mean is fitted by squared errors, the rest by likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rotarymae.batch import Batch
from rotarymae.errors import InputError
from rotarymae.likelihoods import LIKELIHOODS, Likelihood
from rotarymae.masking import Masking
from rotarymae.model import MaskedAutoencoder
from rotarymae.prediction import inference
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor
from rotarymae.seasons import find_season
from rotarymae.series import SeriesDataset
from rotarymae.surroundings import GUESSES, TRAITS, Surroundings, log_distance, output_numbers, surroundings
from rotarymae.training import predict

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline

BLENDED = ("model", *GUESSES)
KNOTS = 12  # at distances 0, 1, 3, 7, ... 2047 units of position
WIDENS_OVER = 2.0  # doublings of the distance beyond the largest that was measured
PRIOR = (0.0, *(-3.0 for _ in BLENDED[1:]), 0.0, 1.0)  # where nothing was measured: mostly the model, with its spread
PRIOR_FREEDOM = 3.0  # before the softplus: some five degrees of freedom
FREEDOM_SPREAD = 10.0  # standard deviation of the prior of the degrees of freedom
ALIKE, MOST_ALIKE = 0.3, 4  # correlation of the errors of a series at like distances; number of these that are kept
GAP_PENALTY = 4.0  # of the difference between series that the model learnt from and others
HIDDEN_BY_EACH = 0.25  # of the values of a series, about, are hidden by each of these
STEPS = 60  # of the optimiser
HIDES = (Masking("blocks", (0.05, 0.5)), Masking("blocks", (0.05, 0.5)), Masking("future", (0.05, 0.4)))
HIDDEN_PER_DRAW, ENOUGH_HIDDEN, MAX_DRAWS = 8_000, 12_000, 24  # values; of few series more draws are made


class Calibration(nn.Module):
    """Blend the model's prediction with simple methods and set its spread, by the distance to the nearest observation.

    A query has C coefficients: a logit for the weight of the model and of each simple method (`BLENDED`), then constant
    and slope of the log variance. Log distance is log2(1 + the distance in units of position). The attributes are
    float64 buffers, which are saved with the model.

    Attributes:
        knots: [3, K, T, C] coefficients by region (0 between two observations, 1 beyond the first or last, 2 without
            any), at each of K knots of log distance (0, 1, .. K - 1), for each of T numbers that describe the channel
            of the series (`Surroundings.traits`).
        offsets: [outputs, C], added to the coefficients of each pair of channel and value column.
        freedom: [3] by region, a number whose softplus is added to 2 to give the degrees of freedom of Student's t.
        reach: [3] by region, log distance within which 99 % of the values lay to which the buffers were fitted. Farther
            away the coefficients stay, and callers of `forward` widen the bands (`widens`).
        season: a scalar, the period after which series repeat, in units of position; 0 for none.
    """

    knots: Tensor
    offsets: Tensor
    freedom: Tensor
    reach: Tensor
    season: Tensor

    def __init__(self, outputs: int, likelihood: Likelihood) -> None:
        """Create an unfitted calibration: predictions follow mostly the model, with its spread.

        The simple methods (such as the straight line between neighbours) have about a quarter of the weight together.
        If the model predicts a spread, the distribution becomes Student's t. Beyond the first or last observation of a
        series, prediction bands widen at any distance (see `widens`).

        Args:
            outputs: number of pairs of channel and value column, each of which is calibrated by coefficients of its
                own.
            likelihood: that of the model, which says what its parameters mean.
        """
        super().__init__()
        self.likelihood = likelihood
        self.register_buffer("knots", prior().expand(3, KNOTS, -1, -1).clone())
        self.register_buffer("offsets", torch.zeros(outputs, len(PRIOR), dtype=torch.float64))
        self.register_buffer("freedom", torch.full((3,), PRIOR_FREEDOM, dtype=torch.float64))
        self.register_buffer("reach", torch.tensor([KNOTS, 0.0, 0.0], dtype=torch.float64))
        self.register_buffer("season", torch.zeros((), dtype=torch.float64))

    @classmethod
    def of(cls, preprocessor: ObservationPreprocessor, likelihood: Likelihood) -> Calibration:
        """Create an unfitted calibration for the channels and value columns that a preprocessor reads.

        Every pair of channel and value column is calibrated by coefficients of its own, whether or not the preprocessor
        joins all channels of a time into one token. `likelihood` is that of the model.
        """
        separate = preprocessor.channel_names is not None and not preprocessor.join_times
        channels = len(preprocessor.channel_names or ()) if separate else 1
        return cls(channels * preprocessor.features, likelihood)

    def check(self) -> None:
        """Raise InputError if loaded numbers hold NaN or infinity, or `reach` (distance) or `season` is negative."""
        if not all(part.isfinite().all() for part in self.buffers()) or self.season < 0 or (self.reach < 0).any():
            raise InputError(
                "the calibration holds NaN, infinity, or a negative `reach` or `season`; wanted finite numbers, both "
                "of these at least 0."
            )

    @property
    def calibrated_likelihood(self) -> Likelihood:
        """Kind of distribution of calibrated predictions: Student's t, or a point if the model predicts no spread."""
        return LIKELIHOODS["student_t"] if self.likelihood.has_spread else self.likelihood

    def forward(
        self, parameters: Float[Tensor, "*shape P"], around: Surroundings, output: Int[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape Q"]:
        """Return the Q parameters of each value's calibrated distribution, a `calibrated_likelihood`, float64.

        The mean is a weighted mean of the model's mean and the predictions of simple methods, such as the straight line
        between neighbours. If the model predicts a spread, the distribution is a Student t (Q = 3), whose log squared
        scale is linear in the model's log variance. If not, Q is 1: the mean.

        Args:
            parameters: P of the model's likelihood for each value, standardised.
            around: what lies around each query (a position to predict at), with the predictions of simple methods.
            output: number of each value's pair of channel and value column, from `surroundings.output_numbers`.
        """
        parameters = parameters.double()
        coefficients = coefficients_at(self.knots, around, self.reach) + self.offsets[output]
        mean = blend(coefficients, self.likelihood.mean(parameters), around.guesses.double())
        if not self.likelihood.has_spread:
            return mean[..., None]
        constant, slope = coefficients[..., len(BLENDED) :].unbind(-1)
        log_variance = constant + slope * self.likelihood.log_variance(parameters)
        return student_t(mean, log_variance, self.freedom[around.region])

    def widens(self, around: Surroundings) -> Float[Tensor, "*shape"]:
        """Return how far the band of each value is to widen to the spread of its channel, from 0 (not) to 1 (fully).

        Of the values that the calibration was fitted to, 99 % were within `reach` of an observation. A band begins to
        widen beyond this distance, and is at least as wide as the channel's spread at about four times the distance.
        `around` has the distance of each query (a position to predict at).
        """
        return ((log_distance(around) - self.reach[around.region]) / WIDENS_OVER).clamp(0, 1)

    def fit(
        self,
        parameters: Float[Tensor, "n P"],
        around: Surroundings,
        output: Int[Tensor, " n"],
        truth: Float[Tensor, " n"],
        weights: Float[Tensor, " n"],
        learnt: Float[Tensor, " n"],
        log_errors: Float[Tensor, " n"] | None = None,
        sides: Float[Tensor, " n"] | None = None,
    ) -> None:
        """Fit all buffers but `season` (the period), in place, to n hidden values and the model's predictions of them.

        - First the weights of the model and of simple methods (such as the straight line between neighbours) are fitted
          by squared errors. A limit ("<5") has an error only if the mean contradicts it.
        - Then the spread is fitted by likelihood, unless the model predicts none. If there are limits, the weights are
          fitted again in this step, because squared errors pull the mean towards the measured values.

        Each value has a region: between two observations, beyond the first or last, or in a channel without any. If all
        values of a region are limits, they are left out, because any large spread makes limits likely.

        Args:
            parameters: P of the model's likelihood, its prediction of each hidden value.
            around: what lies around each hidden value: predictions of simple methods, distance to the nearest
                observation, region and traits of the channel; each field [n, ..].
            output: number of each value's pair of channel and value column, from `surroundings.output_numbers`.
            truth: the hidden values, standardised.
            weights: the number of independent values that each counts as.
            learnt: 1 where the model was trained on the series, 0 elsewhere. The difference that this makes is fitted
                as well, but not stored.
            log_errors: logarithms of the values' standard errors, standardised; None where unknown.
            sides: -1 where `truth` is only an upper limit of the value, 1 where it is a lower one, 0 elsewhere; None
                where none is.
        """
        parameters, truth, guesses = parameters.double(), truth.double(), around.guesses.double()
        distance, region = log_distance(around), around.region
        if sides is not None:
            weights = weights * (torch.bincount(region, (sides == 0).double(), minlength=3) > 0)[region]
        for number in range(3):
            measured = distance[region == number]
            self.reach[number] = measured.quantile(0.99) if len(measured) else 0.0
        predicted = self.likelihood.mean(parameters)
        scale = self._local_error(predicted, guesses, truth, distance, region)
        around = around._replace(traits=torch.cat([around.traits, learnt[:, None].to(around.traits)], -1))

        def mean(knots: Tensor, offsets: Tensor) -> Tensor:
            """Return the weighted mean [n] of the predictions of model and simple methods for each hidden value.

            The logits of the weights are coefficients: `knots` and `offsets`, shaped as the attributes, but with the
            trait `learnt` after the others.
            """
            return blend(coefficients_at(knots, around, self.reach) + offsets[output], predicted, guesses)

        def squared(knots: Tensor, offsets: Tensor, freedom: Tensor) -> Tensor:
            """Return half the weighted sum of squared errors of `mean`, each over `scale`; `freedom` is not read."""
            errors = LIKELIHOODS["point"].loss(mean(knots, offsets)[:, None], truth, sides=sides)
            return (weights * errors / scale).sum() / 2

        fitted = self._minimise(squared, slice(0, len(BLENDED)))
        if not self.likelihood.has_spread:
            return
        with torch.no_grad():
            blended = mean(*fitted)
        uncalibrated, density = self.likelihood.log_variance(parameters), LIKELIHOODS["student_t"]

        def unlikely(knots: Tensor, offsets: Tensor, freedom: Tensor) -> Tensor:
            """Return the weighted sum of negative log-likelihoods of the hidden values, calibrated by the arguments."""
            coefficients = coefficients_at(knots, around, self.reach) + offsets[output]
            constant, slope = coefficients[..., len(BLENDED) :].unbind(-1)
            centre = blended if sides is None else blend(coefficients, predicted, guesses)
            answer = student_t(centre, constant + slope * uncalibrated, freedom[region])
            if log_errors is not None:
                answer = density.widen(answer, 2 * log_errors.double())
            return (weights * density.loss(answer, truth, sides=sides)).sum()

        self._minimise(unlikely, slice(len(BLENDED) if sides is None else 0, len(PRIOR)))

    def _local_error(
        self,
        predicted: Float[Tensor, " n"],
        guesses: Float[Tensor, "n G"],
        truth: Float[Tensor, " n"],
        distance: Float[Tensor, " n"],
        region: Int[Tensor, " n"],
    ) -> Float[Tensor, " n"]:
        """Return a typical squared error for each hidden value, by which its own squared error is divided.

        Without this division, values far from any observation would dominate. Values of the same region whose log
        distances round to the same integer are a group (11 and more are one integer). The typical error of a group is
        the mean squared error of the model or a simple method, whichever is smallest, and at least 1e-12.

        Args:
            predicted: by the model, for n hidden values.
            guesses: predictions of the G simple methods, such as the straight line between neighbours.
            truth: the values; a limit counts as a value.
            distance: log distance of each value to the nearest observations.
            region: 0 between two observations, 1 beyond the first or last, 2 without any.
        """
        errors = (torch.cat([predicted[:, None], guesses], -1) - truth[:, None]).square()
        group = region * KNOTS + distance.round().long().clamp(max=KNOTS - 1)
        total = torch.zeros(3 * KNOTS, errors.shape[1], dtype=torch.float64).index_add_(0, group, errors)
        count = torch.bincount(group, minlength=3 * KNOTS)[:, None]
        return (total / count).amin(1).clamp(min=1e-12)[group]

    def _minimise(self, loss: Callable[[Tensor, Tensor, Tensor], Tensor], columns: slice) -> tuple[Tensor, Tensor]:
        """Fit `freedom` and some columns of `knots` and `offsets` by L-BFGS; store all, and return the latter two.

        The sum of a loss and penalties is minimised. The penalties keep coefficients smooth over distance, and all
        numbers near those of an unfitted calibration.

        Each channel of a series is described by the T stored traits, and during the fit by one more: 1 if the model was
        trained on the series, else 0. The coefficients of this added trait hold how the model's errors differ in such
        series. They are returned, but not stored.

        Args:
            loss: called with (knots, offsets, freedom), shaped as below, freedom [3] by region; returns a scalar.
            columns: which of the C coefficients of a prediction are fitted; the others stay as stored.

        Returns:
            knots: [3, K, T + 1, C], the coefficients by region (0 between two observations, 1 beyond the first or last,
                2 without any), by knot (a log distance to the nearest observation), and by trait, the added one last.
            offsets: [outputs, C], what is added to them for each pair of channel and value column.
        """
        gap = torch.zeros_like(self.knots[:, :, :1])
        start = torch.cat([self.knots, gap], 2)
        center = torch.cat([prior(), gap[0, 0]])[:, columns]
        free = [part[..., columns].clone().requires_grad_() for part in (start, self.offsets)]
        free.append(torch.zeros(3, dtype=torch.float64, requires_grad=True))
        optimizer = torch.optim.LBFGS(free, max_iter=STEPS, line_search_fn="strong_wolfe")

        def whole() -> tuple[Tensor, Tensor, Tensor]:
            """Return all knots and offsets at this step, the fixed columns included, and `freedom`.

            The shapes are those that `loss` expects.
            """
            knots, offsets = start.clone(), self.offsets.clone()
            knots[..., columns], offsets[..., columns] = free[:2]
            return knots, offsets, PRIOR_FREEDOM + FREEDOM_SPREAD * free[2]

        def closure() -> Tensor:
            """Return the loss plus penalties at this step, a scalar, and store its gradients in the tensors `free`."""
            optimizer.zero_grad()
            rough = free[0].diff(dim=1).square().sum() + (free[0] - center).square().sum() / 50
            rough = rough + GAP_PENALTY * free[0][:, :, TRAITS:].square().sum()
            total = loss(*whole()) + rough + free[1].square().sum() + free[2].square().sum()
            total.backward()
            return total

        with torch.enable_grad():
            optimizer.step(closure)
        with torch.no_grad():
            knots, self.offsets, self.freedom = (part.detach().clone() for part in whole())
            self.knots = knots[:, :, :TRAITS].clone()
        return knots, self.offsets


def prior() -> Float[Tensor, "T C"]:
    """Return the coefficients of an unfitted `Calibration`, float64 [T, C], the same at any distance to observations.

    There is a row for each of the T traits, numbers that describe a channel. The first trait is the constant 1, and its
    row is `PRIOR`: 0, the logit of the model's weight; -3 for each of the six simple methods, which together have about
    a quarter of the weight; 0 and 1, constant and slope of the log variance. All other rows are 0.
    """
    return torch.tensor([PRIOR, *((0.0,) * len(PRIOR),) * (TRAITS - 1)], dtype=torch.float64)


def coefficients_at(
    knots: Float[Tensor, "3 K T C"], around: Surroundings, reach: Float[Tensor, " 3"]
) -> Float[Tensor, "*shape C"]:
    """Return the C coefficients by which the prediction at each query (a position to predict at) is calibrated.

    T numbers (traits) describe the channel of a query. Each trait has C coefficients, which depend on the region and
    distance of the query. The result is the sum over traits of the trait times its coefficients. Its shape is that of
    `around.distance`, and an axis of C.

    Args:
        knots: the coefficients by region (0 between two observations, 1 beyond the first or last, 2 without any), log
            distance (log2(1 + distance) = 0, 1, .. K - 1) and trait. Between these distances they are interpolated
            linearly, beyond the last they are constant.
        around: what lies around each query: distance to the nearest observation, in units of position; region; traits.
        reach: log distance, for each region, from which on coefficients are constant.
    """
    distance = torch.minimum(log_distance(around), reach[around.region])
    low = distance.floor().clamp(0, KNOTS - 2).long()
    share = (distance - low).clamp(0, 1)[..., None, None]
    near = (1 - share) * knots[around.region, low] + share * knots[around.region, low + 1]
    return (around.traits.double()[..., None] * near).sum(-2)


def blend(
    coefficients: Float[Tensor, "*shape C"], predicted: Float[Tensor, "*shape"], guesses: Float[Tensor, "*shape G"]
) -> Float[Tensor, "*shape"]:
    """Return the weighted mean of the model's prediction and those of G simple methods, for each value.

    Args:
        coefficients: C for each value. The first is the logit of the model's weight, the next G those of the simple
            methods; the softmax of these 1 + G gives the weights. The others are not read.
        predicted: by the model.
        guesses: predictions of the simple methods, such as the straight line between neighbours.
    """
    weights = coefficients[..., : len(BLENDED)].softmax(-1)
    return (weights * torch.cat([predicted[..., None], guesses], -1)).sum(-1)


def student_t(
    mean: Float[Tensor, "*shape"], log_scale: Float[Tensor, "*shape"], freedom: Float[Tensor, "*#shape"]
) -> Float[Tensor, "*shape 3"]:
    """Stack the arguments to the parameters of `likelihoods.StudentT`, and clamp them to its ranges.

    Args:
        mean: one for each value.
        log_scale: logarithm of the squared scale, one for each value.
        freedom: degrees of freedom before the softplus (see `StudentT`), one for each value, or for all.
    """
    return LIKELIHOODS["student_t"].clamp(torch.stack([mean, log_scale, freedom.expand_as(mean)], -1))


def calibrate(
    pipeline: Pipeline, unseen: SeriesDataset, learnt: SeriesDataset | None = None, seed: int = 0
) -> Calibration:
    """Fit a `Calibration`, which improves predictions and their bands, to a model's errors at hidden values.

    Stretches and ends of series are hidden and predicted. The pipeline is not changed. If no series has two
    observations, the calibration is returned unfitted.

    Args:
        pipeline: has a trained autoencoder of series; InputError is raised for another.
        unseen: series held out of training; the training series, if none were held out.
        learnt: the training series, if `unseen` are others; else None. The model's errors on them are used, too. How
            these differ from errors on `unseen` is fitted, but not stored. The season (period) is that of `learnt`, or
            of `unseen` if `learnt` is None; there is none with axes besides time and channel.
        seed: for the draws of series and of what is hidden.
    """
    model, preprocessor = pipeline.require_autoencoder(), pipeline.require_series()
    calibration, season = Calibration.of(preprocessor, model.likelihood), 0.0
    if not preprocessor.position_names:
        season = find_season(unseen if learnt is None else learnt).time / preprocessor.positions.unit
    parts = [hidden_values(pipeline, part, season, seed) for part in (unseen, learnt) if part is not None]
    known = [(float(number), part) for number, part in enumerate(parts) if part is not None]
    if not known:
        return calibration
    calibration.season.fill_(season)
    learnt_from = torch.cat([torch.full((len(part[0]),), number) for number, part in known])
    weights, parameters, guesses, distance, region, described, output, truth, sides, *errors = (
        torch.cat(columns) for columns in zip(*(part for _, part in known), strict=True)
    )
    around = Surroundings(guesses, distance, region, described)
    limits = sides if sides.any() else None
    calibration.fit(parameters, around, output, truth, weights, learnt_from, errors[0] if errors else None, limits)
    return calibration


def hidden_values(pipeline: Pipeline, dataset: SeriesDataset, season: float, seed: int) -> list[Tensor] | None:
    """Hide stretches and ends of series, predict them, and return n hidden values as `Calibration.fit` takes them.

    Of values hidden together, of one series, channel and value column, at about the same distance from observations, at
    most 4 are returned (`representatives`).

    Args:
        pipeline: has a trained autoencoder of series.
        dataset: the series, of which some are drawn if there are many.
        season: period after which series repeat, in units of position; 0 for none.
        seed: of the draws of series and of what is hidden.

    Returns:
        A list of nine or ten tensors on the CPU, each with n rows, one per value (several for one that was hidden
        several times); None if no drawn series has two observations:

        - 0: how many independent values it counts as;
        - 1: the parameters of the distribution that the model predicts, float64;
        - 2 to 5: the four fields of `Surroundings`: predictions of simple methods; distance to the nearest observation;
          region (whether it lies between two observations, beyond the first or last, or there are none); and traits,
          numbers that describe its channel;
        - 6: the number of its pair of channel and value column, from 0, as `output_numbers` returns it;
        - 7: the true value, standardised;
        - 8: the side of the limit that it is ("<5": -1, ">5": 1), and 0 for a measured value;
        - 9: the logarithm of its standard error, standardised; only if the preprocessor reads standard errors.
    """
    model, preprocessor = pipeline.require_autoencoder(), pipeline.require_series()
    windows = preprocessor.windows(_sample(dataset, len(HIDES) * HIDDEN_PER_DRAW, seed)).dataset
    if not (windows.lengths >= 2).any():
        return None
    windows = windows.select(windows.lengths >= 2)

    def read(model: nn.Module, batch: Batch) -> list[list[Tensor]]:
        """Predict the hidden tokens of a batch, and choose some of their values (`representatives`).

        Return a list for each row of the batch, of tensors over its chosen values, in the order that `hidden_values`
        returns.
        """
        assert isinstance(model, MaskedAutoencoder) and batch.masked is not None
        parameters = model.decode(model.context(batch.inputs), batch.masked.positions, batch.masked.padding)
        # On the CPU, where the calibration is, and where every machine has float64.
        parameters, visible, masked = parameters.cpu().double(), batch.inputs.to("cpu"), batch.masked.to("cpu")
        rows, around = [], surroundings(visible, masked.positions, preprocessor, season)
        truth, output = masked.values[..., : preprocessor.features], output_numbers(masked.positions, preprocessor)
        known = masked.observed_values[..., : preprocessor.features]
        group = (output * 3 + around.region) * KNOTS + log_distance(around).round().long().clamp(max=KNOTS - 1)
        sides = torch.zeros_like(truth) if batch.sides is None else batch.sides.cpu()
        parts = [parameters, *around, output, truth, sides]
        if batch.log_errors is not None:
            parts.append(batch.log_errors.cpu())
        for row in range(len(known)):
            chosen, weights = representatives(group[row][known[row]])
            rows.append([weights, *(part[row][known[row]][chosen] for part in parts)])
        return rows

    rows: list[list[Tensor]] = []
    hidden = 0.0
    for draw in range(MAX_DRAWS):
        some = _sample(windows, HIDDEN_PER_DRAW, seed + draw)
        examples = DatasetExamples(some, preprocessor, seed=seed + draw, masking=HIDES[draw % len(HIDES)])
        rows += predict(model, examples, read, inference(pipeline))
        hidden += float(some.lengths.sum()) * len(preprocessor.value_names) * HIDDEN_BY_EACH
        if draw + 1 >= len(HIDES) and hidden > ENOUGH_HIDDEN:
            break
    weights, *parts = (torch.cat(part) for part in zip(*rows, strict=True))
    # However often it was hidden, a value is one.
    distinct = float(windows.lengths.sum()) * len(preprocessor.value_names)
    return [weights * min(1.0, distinct / hidden), *parts]


def representatives(group: Int[Tensor, " n"]) -> tuple[Int[Tensor, " m"], Float[Tensor, " m"]]:
    """Choose at most 4 (`MOST_ALIKE`) of the values in each group, evenly spread over it, and weigh them.

    A group has hidden values of one series at about the same distance from observations. The errors of their
    predictions are correlated (by 0.3, `ALIKE`), so that k values count as k / (1 + (k - 1) · ALIKE) independent ones.

    Args:
        group: number of the group of each of n values, an integer.

    Returns:
        The indices of the m chosen values, sorted by group, then index; and their weights, which are equal in a group,
        and add up to its number of independent values.
    """
    order = group.argsort(stable=True)
    alike = group[order].unique_consecutive(return_counts=True)[1]
    every = (alike + MOST_ALIKE - 1) // MOST_ALIKE
    rank = torch.arange(len(group), device=group.device) - (alike.cumsum(0) - alike).repeat_interleave(alike)
    number = (alike + every - 1) // every
    weights = alike / (1 + ALIKE * (alike - 1.0)) / number
    return order[rank % every.repeat_interleave(alike) == 0], weights.repeat_interleave(number)


def _sample(dataset: SeriesDataset, hidden: float, seed: int) -> SeriesDataset:
    """Draw whole series at random, so many that hiding a quarter of each hides about `hidden` values in all.

    At least one series is drawn, and all if they have too few values. The series keep their order. `seed` fixes what is
    drawn.
    """
    order = np.random.default_rng(seed).permutation(len(dataset))
    hides = np.cumsum(dataset.lengths[order]) * len(dataset.value_names) * HIDDEN_BY_EACH
    return dataset.select(np.sort(order[: int(np.searchsorted(hides, hidden)) + 1]))
