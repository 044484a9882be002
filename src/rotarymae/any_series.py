"""A RoMAE for any series: trained once on drawn functions, it answers for series that it has never seen.

Each series is standardised by its own visible observations (`standardise`): times in median gaps, values in spreads. A
bank of Gaussian processes (`processes`) gives a first answer, and predicts each visible observation from the others.
The encoder reads the values and how well the processes predict them; the decoder corrects the first answer's mean,
spread and tails at each query. What it adds starts at zero, so an untrained model is the bank, with heavier tails.

Letters as in `tokens` and `processes`: B series of N tokens, M queries, U channels of all series, n of a channel.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from rotarymae import processes
from rotarymae.config import RoMAEConfig
from rotarymae.errors import InputError
from rotarymae.model import Context, MaskedAutoencoder, initialise
from rotarymae.processes import Answer
from rotarymae.tokens import Tokens, pad_rows

TOKEN_NUMBERS = 8  # that the encoder reads of each observation
QUERY_NUMBERS = 32  # that the decoder reads of each query
CORRECTION_DIM = 96
# Where corrections start: log squared scale in squared deviations of the bank, and the raw degrees of freedom (3.5).
# The band of 68 % is then 0.9, that of 95 % 2.3 deviations of the bank: real series have heavier tails than it.
START = (-0.5, 1.25)
# The band of 68 % is at least so wide, in the distance within which the processes predict 68 % of the channel's visible
# observations from the others. Channels with fewer observations have no such bound.
NARROWEST, FEWEST = 0.8, 20
CLIP = 8.0  # deviations, at which what the network reads is cut off
HALF_AS_NEAR = 2.0  # median gaps after which a neighbour counts as half as near
CURVE_TIMES = 48  # at which channels are compared
BUCKETS = (6, 12, 20, 32, 48, 72, 104, 160, 240, 1 << 30)  # channels of similar length are fitted together


class Scale(NamedTuple):
    """Scale and shift that undo `standardise`: value · width + centre per channel, position · unit + origin."""

    origin: Float[Tensor, " B"]
    unit: Float[Tensor, " B"]
    centre: Float[Tensor, "B C"]
    width: Float[Tensor, "B C"]


def standardise(
    times: Float[Tensor, "B N"],
    channels: Int[Tensor, "B N"],
    values: Float[Tensor, "B N"],
    visible: Bool[Tensor, "B N"],
    errors: Float[Tensor, "B N"] | None = None,
) -> tuple[Float[Tensor, "B N"], Float[Tensor, "B N"], Float[Tensor, "B N"], Scale]:
    """Standardise times, values and standard errors of each series by its visible observations.

    - Times count from the first visible observation. Their unit is the median gap above 0 between successive
      observations of a channel, or 1 if there is no such gap.
    - The median of the channel (the lower of the two middle values) is subtracted from its values, and the result is
      divided by the channel's spread. If all visible values are equal, it is divided by their absolute value instead,
      or by 1 if they are 0. A channel without visible values keeps its values.

    The spread is the root mean square distance to the median, each distance limited to five robust deviations. A robust
    deviation is 1.48 times the median distance; if this is 0, the mean distance.

    Args:
        times, channels, values: of N observations in each series; channels count from 0.
        visible: True, at least once in a series, for observations by which all observations are standardised.
        errors: standard errors, NaN where unknown; None if all are.

    Returns:
        Standardised times and values, relative noise, and the scale, in the arguments' dtype. The relative noise of an
        observation is its squared standard error divided by the mean squared error of the channel's visible
        observations, limited to 0.001 to 1000. If its error is unknown, its noise is 1. The mean counts unknown errors
        as 0; a mean of 0 is replaced by 1.
    """
    batch, most = len(times), int(channels.max()) + 1
    groups = ChannelGroups.of(channels, times, visible, most)
    at, observed = groups.gather(times), torch.where(groups.real, groups.gather(values), torch.nan)
    count = groups.real.sum(1)
    median = observed.nanmedian(1).values
    away = (observed - median[:, None]).abs()
    limit = 1.4826 * away.nanmedian(1).values
    limit = torch.where(limit > 0, limit, away.nansum(1) / count)
    spread = (torch.minimum(away, 5 * limit[:, None]).square().nansum(1) / count).sqrt()
    gaps = groups.scatter(at.diff(dim=1, prepend=at[:, :1]), (batch, times.shape[1]))  # to the channel's last token
    unit = gaps.masked_fill(gaps <= 0, torch.nan).nanmedian(1).values.nan_to_num(1.0)
    origin = times.masked_fill(~visible, torch.inf).amin(1)
    centre, width = times.new_zeros(batch, most), times.new_ones(batch, most)
    centre[groups.row, groups.channel] = median
    width[groups.row, groups.channel] = torch.where(spread > 0, spread, torch.where(median != 0, median.abs(), 1.0))
    noise = torch.ones_like(values)
    if errors is not None:
        square = errors.square()
        mean = groups.gather(square.nan_to_num(0.0)).sum(1) / count
        typical = times.new_ones(batch, most)
        typical[groups.row, groups.channel] = torch.where(mean > 0, mean, 1.0)
        noise = (square / typical.gather(1, channels)).clamp(1e-3, 1e3).nan_to_num(1.0)
    scaled = (values - centre.gather(1, channels)) / width.gather(1, channels)
    return (times - origin[:, None]) / unit[:, None], scaled, noise, Scale(origin, unit, centre, width)


class ChannelGroups(NamedTuple):
    """The tokens of a batch of B series, grouped: a row for each of the U pairs of series and channel that occur.

    Attributes (for up to n tokens of a pair):
        index: [U, n] which of the B · N tokens belong to a channel, in order of time; 0 where not `real`.
        real: [U, n] False behind the last token of a pair.
        row, channel: [U] the series and the channel number of each.
        lookup: [B, channels] number of the pair; -1 where a series has no token of a channel.
    """

    index: Int[Tensor, "U n"]
    real: Bool[Tensor, "U n"]
    row: Int[Tensor, " U"]
    channel: Int[Tensor, " U"]
    lookup: Int[Tensor, "B C"]

    @classmethod
    def of(
        cls, channels: Int[Tensor, "B N"], times: Float[Tensor, "B N"], real: Bool[Tensor, "B N"], channel_count: int
    ) -> ChannelGroups:
        """Group the tokens of a batch by series and channel, in order of time; leave out those that are not `real`.

        Channels are numbers from 0, less than `channel_count`.
        """
        batch = len(channels)
        flat = real.flatten().nonzero()[:, 0]
        key = (torch.arange(batch)[:, None] * channel_count + channels).flatten()[flat]
        order = times.flatten()[flat].argsort(stable=True)
        order = order[key[order].argsort(stable=True)]
        flat, key = flat[order], key[order]
        keys, counts = torch.unique_consecutive(key, return_counts=True)
        index = pad_rows(flat, counts)[0] if len(counts) else torch.zeros(0, 1, dtype=torch.int64)
        lookup = torch.full((batch * channel_count,), -1)
        lookup[keys] = torch.arange(len(keys))
        there = torch.arange(index.shape[1]) < counts[:, None]
        return cls(index, there, keys // channel_count, keys % channel_count, lookup.view(batch, channel_count))

    def gather(self, part: Shaped[Tensor, "B N"]) -> Shaped[Tensor, "U n"]:
        """Move one number per token, [B, N], to a row per pair of series and channel, [U, n], filled up with 0."""
        return part.flatten()[self.index].masked_fill(~self.real, 0)

    def scatter(self, part: Shaped[Tensor, "U n *rest"], shape: tuple[int, int]) -> Shaped[Tensor, "B N *rest"]:
        """Move numbers from a row per pair of series and channel, [U, n, ...], to their tokens, [B, N, ...].

        This undoes `gather`. Tokens that belong to no pair get 0. `shape` is (B, N).
        """
        out = part.new_zeros(shape[0] * shape[1], *part.shape[2:])
        out[self.index[self.real]] = part[self.real]
        return out.view(*shape, *part.shape[2:])


class Bank(NamedTuple):
    """Gaussian processes fitted to the visible observations of a batch of series, channel by channel.

    Attributes:
        groups: the U pairs of series and channel; "channel" below is such a pair.
        times, values, residual: [U, n] of each channel; times are infinite behind the last observation. The residual
            is that of the value from `left_out`.
        buckets: (indices of channels among the U, processes fitted to them), for channels with similar numbers of
            observations.
        hyperparameters: expected hyperparameters of each channel.
        joint_rows, joint: the series whose channels are also fitted together, and these processes; None without any.
        left_out: prediction of each visible observation from the others.
    """

    groups: ChannelGroups
    times: Float[Tensor, "U n"]
    values: Float[Tensor, "U n"]
    residual: Float[Tensor, "U n"]
    buckets: list[tuple[Int[Tensor, " P"], processes.Fitted]]
    hyperparameters: Float[Tensor, "U D"]
    joint_rows: Int[Tensor, " R"]
    joint: processes.Joint | None
    left_out: Answer


def fit_processes(
    times: Float[Tensor, "B N"],
    channels: Int[Tensor, "B N"],
    values: Float[Tensor, "B N"],
    real: Bool[Tensor, "B N"],
    noise: Float[Tensor, "B N"],
) -> Bank:
    """Fit Gaussian processes to each channel of each series of standardised observations; return them as a `Bank`.

    In series of 2 to 12 channels and at most 320 observations, further processes are fitted to all channels together.

    Args:
        times, channels, values: of N observations in each of B series; channels count from 0.
        real: False at padding.
        noise: variance of each observation's error, divided by the channel's mean of these variances; 1 where errors
            are unknown.
    """
    most = int(channels.max()) + 1
    groups = ChannelGroups.of(channels, times, real, most)
    at, observed, relative = groups.gather(times), groups.gather(values), groups.gather(noise)
    counts = groups.real.sum(1)
    buckets, hyperparameters = [], torch.zeros(len(counts), processes.DESCRIPTORS)
    left_out = Answer(*(torch.zeros(at.shape, dtype=torch.float64) for _ in Answer._fields))
    for low, high in zip((0, *BUCKETS), BUCKETS, strict=False):
        bucket = ((counts > low) & (counts <= high)).nonzero()[:, 0]
        if len(bucket):
            n = int(counts[bucket].max())
            y = observed[bucket, :n]
            fitted, hyperparameters[bucket] = processes.fit_kernels(
                at[bucket, :n], y, groups.real[bucket, :n], relative[bucket, :n]
            )
            for store, part in zip(left_out, processes.leave_one_out(fitted, y), strict=True):
                store[bucket, :n] = part
            buckets.append((bucket, fitted))
    alone = Answer(*(groups.scatter(part, tuple(times.shape)) for part in left_out))  # pyright: ignore
    padded = at.masked_fill(~groups.real, torch.inf)
    bank = Bank(groups, padded, observed, observed, buckets, hyperparameters, counts[:0], None, alone)
    bank = _with_joint(bank, times, channels, values, real, noise)
    return bank._replace(residual=groups.gather(residuals(values, bank.left_out.mean, bank.left_out.log_std)))


def residuals(values: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Return how far values lie from predictions, in predicted standard deviations, limited to ±8 (`CLIP`)."""
    return ((values - mean) * (-log_std).exp()).clamp(-CLIP, CLIP)


def _with_joint(bank: Bank, times: Tensor, channels: Tensor, values: Tensor, real: Tensor, noise: Tensor) -> Bank:
    """Fit further Gaussian processes to all channels of a series together, and return `bank` with them added.

    They are fitted to series of 2 to 12 channels and at most 320 observations; if there are none, `bank` is returned
    unchanged. In these series the prediction of an observation from the others (`left_out`) becomes a mixture of two:
    that from its own channel, and that from all channels.

    Args:
        bank: the processes that were fitted to each channel alone.
        times, channels, values, real, noise: [B, N], the observations to which they were fitted, as in `fit_processes`;
            `real` is False at padding.
    """
    groups, count = bank.groups, real.sum(1)
    observed = (groups.lookup >= 0).sum(1)
    few = (observed > 1) & (observed <= processes.MAX_JOINT_CHANNELS) & (count <= processes.MAX_JOINT)
    rows = few.nonzero()[:, 0]
    if not len(rows):
        return bank
    order = torch.argsort((~real).to(torch.uint8), dim=1, stable=True)[rows, : int(count[rows].max())]
    t, c, y, w, there = (part[rows].gather(1, order) for part in (times, channels, values, noise, real))
    t, y = t * there, y * there
    # Channels are compared at some of the times at which any of them was observed: by their curves, and by how certain
    # these are, from 0 to 1.
    pick = (torch.arange(CURVE_TIMES) * (count[rows, None].double() / CURVE_TIMES)).long()
    grid = t.masked_fill(~there, torch.inf).sort(1).values.gather(1, pick)
    most = groups.lookup.shape[1]
    curves, trust = torch.zeros(2, len(rows), most, grid.shape[1], dtype=torch.float64)
    tables = torch.full((len(rows), most, processes.BANK_SIZE, 3), 1e-3, dtype=torch.float64)
    tables[..., 0] = 1.0
    every = torch.ones(len(rows), most, processes.PERIODS, dtype=torch.float64)
    periodic, evidence = torch.zeros(len(rows), most, dtype=torch.float64), torch.zeros(len(rows), dtype=torch.float64)
    of_row = torch.full((len(groups.lookup),), -1)
    of_row[rows] = torch.arange(len(rows))
    for bucket, fitted in bank.buckets:
        at = of_row[groups.row[bucket]]
        mine = at >= 0
        row, channel = at[mine], groups.channel[bucket][mine]
        if len(row):
            part = processes.Fitted(*(tensor[mine] for tensor in fitted))
            curve = processes.answer(part, grid[row])
            prior = (1 + processes.MEAN_VARIANCE) * (part.weight * part.amplitude).sum(1, keepdim=True)
            curves[row, channel] = curve.mean
            trust[row, channel] = (1 - (2 * curve.curve_log_std).exp() / prior).clamp(0, 1)
            tables[row, channel], every[row, channel] = part.tables, part.periods
            periodic[row, channel] = part.tables[:, len(processes.BANK_SHAPES) :, 0].sum(1)
            evidence.index_add_(0, row, part.log_evidence)
    periods = every[torch.arange(len(rows)), periodic.argmax(1)]  # of the channel that is most surely periodic
    correlation = processes.correlations(curves, trust)
    present = groups.lookup[rows] >= 0
    joint = processes.fit_joint(t, c, y, there, w, correlation, tables, present, periods, evidence)
    place = rows[:, None].expand_as(order)[there], order[there]
    alone = Answer(*(part[place] for part in bank.left_out))
    together = Answer(*(part[there] for part in processes.leave_one_out(joint, y)))
    both = processes.mix(alone, together, joint.share[:, None].expand_as(t)[there])
    merged = Answer(*(old.index_put(place, new) for old, new in zip(bank.left_out, both, strict=True)))
    return bank._replace(joint_rows=rows, joint=joint, left_out=merged)


def predict_with_processes(
    bank: Bank, times: Float[Tensor, "B M"], channels: Int[Tensor, "B M"], real: Bool[Tensor, "B M"]
) -> tuple[Answer, Float[Tensor, "B M K"]]:
    """Predict values at M queries (a time and a channel each) per series with the fitted Gaussian processes.

    Where a channel has no observations, and at padding, the prediction is 0 with a standard deviation of 1.

    Args:
        bank: the fitted processes.
        times, channels: of the queries; times are standardised as those of the bank, and channels count from 0.
        real: False at padding.

    Returns:
        The predictions, with fields [B, M]; and K = 32 numbers that describe each query to the decoder: its prediction
        and the observations nearest to it.
    """
    shape, lookup = (times.shape[0], times.shape[1]), bank.groups.lookup
    inside = channels.clamp(max=lookup.shape[1] - 1)
    known = (channels < lookup.shape[1]) & real & (lookup.gather(1, inside) >= 0)
    groups = ChannelGroups.of(inside, times, known, lookup.shape[1])
    at, whole = groups.gather(times), lookup[groups.row, groups.channel]
    parts = Answer(*(torch.zeros(at.shape, dtype=torch.float64) for _ in Answer._fields))
    of_group = torch.full((len(bank.groups.index),), -1)
    of_group[whole] = torch.arange(len(whole))
    for bucket, fitted in bank.buckets:
        mine = of_group[bucket]
        queried = mine >= 0
        if queried.any():
            part, mine = processes.Fitted(*(tensor[queried] for tensor in fitted)), mine[queried]
            width = int(groups.real[mine].sum(1).max())
            for store, value in zip(parts, processes.answer(part, at[mine, :width]), strict=True):
                store[mine, :width] = value
    alone = Answer(*(groups.scatter(part, shape) for part in parts))
    answer, share = alone, torch.zeros(shape, dtype=torch.float64)
    if bank.joint is not None:
        rows = bank.joint_rows
        share[rows] = bank.joint.share[:, None] * known[rows]
        together = processes.answer(bank.joint, times[rows], inside[rows])
        both = processes.mix(Answer(*(part[rows] for part in alone)), together, share[rows])
        answer = Answer(*(old.index_copy(0, rows, new) for old, new in zip(alone, both, strict=True)))
    near = _query_features(bank, whole, at, groups.gather(answer.mean), groups.gather(answer.log_std))
    numbers = [answer.mean.asinh(), answer.log_std, answer.curve_log_std.clamp(min=-7), answer.kernel_spread, share]
    numbers += [residuals(alone.mean, answer.mean, answer.log_std), alone.log_std - answer.log_std, known.double()]
    return answer, torch.cat([groups.scatter(near, shape), torch.stack(numbers, -1).float()], -1)


def least_half_width(bank: Bank, answer: Answer, channels: Int[Tensor, "B M"]) -> Float[Tensor, "B M"]:
    """Return a lower bound for half the width of each query's 68 % band, standardised; 0 where there is none.

    Narrower bands are widened to it. The bound is the product of

    - 0.8 (`NARROWEST`);
    - the query's standard deviation in `answer`;
    - the 0.68 quantile of |residual| over the visible observations of the query's channel. A residual is the difference
      from the prediction by the other observations, in predicted standard deviations.

    Channels with fewer than 20 observations (`FEWEST`) have no bound. `bank` and `channels` are those given to
    `predict_with_processes`, and `answer` is what it returned.
    """
    groups, lookup = bank.groups, bank.groups.lookup
    typical = bank.residual.abs().masked_fill(~groups.real, torch.nan).nanquantile(0.68, 1)
    typical = typical.masked_fill(groups.real.sum(1) < FEWEST, 0.0)
    pair = lookup.gather(1, channels.clamp(max=lookup.shape[1] - 1))
    known = (channels < lookup.shape[1]) & (pair >= 0)
    return NARROWEST * typical[pair].masked_fill(~known, 0.0) * answer.log_std.exp()


def _query_features(bank: Bank, pairs: Tensor, times: Tensor, mean: Tensor, log_std: Tensor) -> Float[Tensor, "U m K"]:
    """Describe the observations around each query (a time to predict at) by K = 24 numbers, which the decoder reads.

    - 12 numbers: three for each of the two nearest observations on either side. They are its value; its nearness,
      1 / (1 + gap / 2); and its residual, how far it lies from its prediction by the other observations. For an
      observation that does not exist, all three are 0.
    - 2 numbers: the gap to the nearest observation on either side, as log1p; 0 without one.
    - 1 number: the straight line between the nearest observations on both sides, at the query. If there are
      observations on one side only, it is the value of the nearest.
    - 2 numbers: a flag, 1 if there are observations on both sides, else 0; and a third of the logarithm of the number
      of observations in the channel.
    - 7 numbers: the expected hyperparameters of the channel's Gaussian processes (`Bank.hyperparameters`).

    The unit of gaps is the median gap of the series. Values and the line are given as (value - mean) / standard
    deviation, limited to ±8, with mean and standard deviation of the prediction at the query. Residuals are given
    likewise, with mean and standard deviation of their own prediction.

    Args:
        bank: the processes, fitted to each pair of series and channel.
        pairs: [U] the pairs that have queries, as numbers from 0 in the bank.
        times: [U, m] the queries of each of these pairs.
        mean, log_std: [U, m] what the processes predict at the queries.
    """
    known, values, residual = bank.times[pairs], bank.values[pairs], bank.residual[pairs]
    count = bank.groups.real[pairs].sum(1, keepdim=True)
    place = torch.searchsorted(known, times.contiguous())

    numbers, values_at, gaps = [], [], []
    for step in (-1, 0, -2, 1):
        index = place + step
        there = (index >= 0) & (index < count)
        index = torch.minimum(index.clamp(min=0), count - 1)
        value, gap = values.gather(1, index), (times - known.gather(1, index)).abs()
        near = 1 / (1 + gap / HALF_AS_NEAR)
        numbers += [residuals(value, mean, log_std) * there, near * there, residual.gather(1, index) * there]
        values_at.append(value)
        gaps.append(gap)
    opened, closed = place > 0, place < count
    inside = opened & closed
    before, after = values_at[:2]
    line = before + (after - before) * (gaps[0] / (gaps[0] + gaps[1]).clamp(min=1e-9))
    line = torch.where(inside, line, torch.where(opened, before, after))
    numbers += [gaps[0].log1p() * opened, gaps[1].log1p() * closed, residuals(line, mean, log_std), inside.double()]
    numbers.append(count.log().expand_as(line) / 3)
    hyperparameters = bank.hyperparameters[pairs][:, None].expand(-1, times.shape[1], -1)
    return torch.cat([torch.stack(numbers, -1).float(), hyperparameters], -1)


class Correction(nn.Module):
    """Network that corrects the Gaussian processes' prediction: its location, its spread, and its tails.

    After `initialise` all corrections are 0: the location is that of the processes, and Student's t has their spread
    but for `START`, which makes tails heavier.
    """

    def __init__(self, dim: int) -> None:
        """Build the layers of the network; `dim` is the width D of the decoder's tokens."""
        super().__init__()
        self.numbers = nn.Linear(QUERY_NUMBERS, CORRECTION_DIM)
        self.token = nn.Linear(dim, CORRECTION_DIM, bias=False)
        self.hidden = nn.Linear(CORRECTION_DIM, CORRECTION_DIM)
        self.correction = nn.Linear(CORRECTION_DIM, 3)

    def forward(
        self, tokens: Float[Tensor, "B M D"], numbers: Float[Tensor, "B M K"], answer: Answer
    ) -> Float[Tensor, "B M 3"]:
        """Return a Student's t distribution for each of M queries (times to predict at): its three parameters.

        These are the location, the log squared scale, and the degrees of freedom before the softplus.

        Args:
            tokens: the decoder's output at each query.
            numbers: K numbers that describe each query, from `predict_with_processes`.
            answer: the Gaussian processes' prediction at each query, which is corrected; its fields are [B, M].
        """
        x = F.silu(self.numbers(numbers) + self.token(tokens))
        move, widen, freedom = self.correction(x + F.silu(self.hidden(x))).unbind(-1)
        mean, log_std = answer.mean.to(x.dtype), answer.log_std.to(x.dtype)
        return torch.stack([mean + log_std.exp() * move, 2 * log_std + widen + START[0], freedom + START[1]], -1)


class AnySeries(MaskedAutoencoder):
    """A masked autoencoder that corrects the predictions of a bank of Gaussian processes.

    A visible token holds a standardised value and its relative noise, at a time and a channel, counted from 1.
    """

    def __init__(self, config: RoMAEConfig) -> None:
        """Build the encoder, decoder and `Correction` of the Gaussian processes' predictions; set initial weights.

        Raises:
            InputError: unless the configuration has 2 axes, 1 feature, 7 further inputs, likelihood="student_t", and no
                neighbours.
        """
        sizes = (config.axes, config.features, config.input_features)
        if sizes != (2, 1, TOKEN_NUMBERS - 1) or config.likelihood != "student_t" or config.neighbours:
            raise InputError(
                f"axes, features, input_features are {sizes}, likelihood {config.likelihood!r}, neighbours "
                f"{config.neighbours}; set them to {(2, 1, TOKEN_NUMBERS - 1)}, 'student_t' and False for AnySeries."
            )
        super().__init__(config)
        self.query_projection = nn.Linear(QUERY_NUMBERS, config.decoder_embed_dim, bias=False)
        self.head = Correction(config.decoder_embed_dim)
        initialise(self)

    def context(self, visible: Tokens) -> Context:
        """Fit Gaussian processes to the visible tokens and encode the tokens, once for any number of `decode` calls.

        A token holds (standardised value, relative noise) at the position (time, channel), channels counting from 1.
        Tokens with other numbers of values or axes raise InputError.
        """
        features, axes = visible.features, visible.axes
        if features != 2 or axes != 2:
            raise InputError(
                f"tokens have {features} values and {axes} axes; give two values (value, noise) at two axes "
                "(time, channel)."
            )
        real = visible.real
        values, noise = visible.values.double().unbind(-1)
        times, channels = _times_and_channels(visible.positions)
        with torch.no_grad():
            bank = fit_processes(times, channels, values, real, noise)
        left_out = bank.left_out
        residual = residuals(values, left_out.mean, left_out.log_std)
        count = real.sum(1, keepdim=True).log().expand_as(values) / 4
        numbers = [values.asinh(), residual, residual.square().clamp(max=16) / 4, left_out.mean.asinh()]
        numbers += [left_out.log_std, left_out.curve_log_std.clamp(min=-7), noise.log().clamp(-7, 7), count]
        read = torch.stack(numbers, -1).to(visible.values.dtype).masked_fill(~real[..., None], 0.0)
        encoded = super().context(Tokens(read, visible.positions, visible.padding, check_values=False))
        return encoded._replace(observed=bank)

    def decode(
        self,
        context: Context,
        positions: Float[Tensor, "B M A"],
        padding: Bool[Tensor, "B M"] | None = None,
        target_mask: Bool[Tensor, "B M V"] | None = None,
    ) -> Float[Tensor, "B M V P"]:
        """Return a prediction, standardised, at each of M positions: the 3 parameters of Student's t, [B, M, 1, 3].

        The parameters are explained in `likelihoods.StudentT`; the first is the mean. No argument is checked. Except in
        training, a distribution is widened until half its 68 % band is at least `least_half_width`. This counters
        bands that are too narrow at small noise: the network takes small noise for none, because it also learnt from
        functions that are exact or have outliers.

        Args:
            context: the encoded visible tokens of B series, as the method `context` returns them.
            positions: where to predict, (time, channel), channels counting from 1.
            padding: True where there is no position; None when all are positions.
            target_mask: not used.
        """
        real = positions.new_ones(positions.shape[:2], dtype=torch.bool) if padding is None else ~padding
        times, channels = _times_and_channels(positions)
        with torch.no_grad():
            answer, numbers = predict_with_processes(context.observed, times, channels, real)  # pyright: ignore
            numbers = numbers.to(context.tokens.dtype)
        queries = self.mask_token + self.query_projection(numbers)
        x = self._decoded(context, queries, positions, padding)
        parameters = self.likelihood.clamp(self.head(x, numbers, answer)[..., None, :])
        if self.training:
            return parameters
        mean, log_scale, freedom = parameters.unbind(-1)
        half = self.likelihood.interval(parameters.double(), 0.68)[1] - mean
        least = least_half_width(context.observed, answer, channels)[..., None]  # pyright: ignore
        return torch.stack([mean, log_scale + 2 * (least / half).clamp(min=1).log().to(mean.dtype), freedom], -1)


def _times_and_channels(positions: Float[Tensor, "B N A"]) -> tuple[Float[Tensor, "B N"], Int[Tensor, "B N"]]:
    """Split the positions of tokens, (time, channel from 1), into times, float64, and channel numbers from 0.

    Channels are rounded; those below 1 count as 1.
    """
    return positions[..., 0].double(), positions[..., 1].round().long().clamp(min=1) - 1
