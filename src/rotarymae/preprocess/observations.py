"""Series of observations → tokens: values, times, further positions, channels, errors, and what else a token holds."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.preprocess.base import Preprocessor, require_positive
from rotarymae.preprocess.joined import carry_forward, join, value_tokens
from rotarymae.preprocess.positions import Origin, PositionScaling
from rotarymae.preprocess.static import StaticColumn, fit_static
from rotarymae.preprocess.values import LEAST_ERROR, TransformKind, ValueScaling, asinh
from rotarymae.series.cells import plain
from rotarymae.series.columns import channel_index, measured
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.mapped import row_chunks
from rotarymae.tokens import Tokens, pad_rows

ChannelName = str | int | float | bool

# Values look as if they were in another unit where their median lies so many training deviations away, or where they
# differ by so few; of at least so many series and, squared, values of a channel.
MAX_MEDIAN, MIN_DEVIATION, MIN_SERIES_TO_COMPARE = 5.0, 2e-3, 10
MAX_COMPARED = 1 << 18  # observations
MAX_STATISTICS = 4_000_000  # values · channels
MOST_CHANNELS = 64  # of a one-hot vector; beyond, it would be wider than what it describes


@dataclass(frozen=True)
class Inputs:
    """Numbers that a token holds next to its values, computed from the same observation.

    Attributes:
        channels: the channel as a one-hot vector of this length; 0 for none. A band's colour is learnt faster from it
            than from the channel's position alone.
        signal_to_noise: pairs (column, column of its standard error), each of which gives asinh(value / error), or 0
            where the error is missing or not positive; NaN where only the value is missing.
    """

    channels: int = 0
    signal_to_noise: tuple[tuple[str, str], ...] = ()

    @classmethod
    def fit(
        cls,
        dataset: SeriesDataset,
        channel_one_hot: bool = False,
        signal_to_noise: bool = False,
    ) -> Inputs:
        """Choose what a token holds in addition to its values; only what is asked for is chosen.

        Args:
            channel_one_hot: True gives the channel as a one-hot vector if there are 2 to 64 channels.
            signal_to_noise: True gives asinh(value / error) for each value column with errors, see
                `SeriesDataset.error_of`.
        """
        count = len(dataset.channel_names or ()) if channel_one_hot else 0
        pairs = tuple(dataset.error_of.items()) if signal_to_noise else ()
        return cls(count if 2 <= count <= MOST_CHANNELS else 0, pairs)

    @property
    def width(self) -> int:
        """Number E of a token's inputs besides its values.

        It is the length of the channel's one-hot vector, plus 1 for each pair (value column, column of its error).
        """
        return self.channels + len(self.signal_to_noise)

    def compute(
        self, values: Float[Tensor, "*shape W"], channel: Int[Tensor, "*shape"], value_names: tuple[str, ...]
    ) -> Float[Tensor, "*shape E"]:
        """Return the E further inputs of each observation, float64.

        The one-hot channel comes first, then asinh(value / standard error) for each pair of columns in
        `signal_to_noise`; it is 0 where the error is missing or not above 0.

        Args:
            values: W columns in the table's units, those of standard errors among them.
            channel: number of each observation's channel, from 0.
            value_names: names of the first columns of `values`. Columns behind these, which may mark limits ("<5"), are
                not read.
        """
        parts = [(channel[..., None] == torch.arange(self.channels, device=channel.device)).double()]
        for column, error in self.signal_to_noise:
            value, spread = values[..., value_names.index(column)], values[..., value_names.index(error)]
            known = spread > 0
            ratio = torch.where(known, value / torch.where(known, spread, 1.0), 0.0)
            parts.append(asinh(ratio)[..., None])
        return torch.cat(parts, -1)

    def describe(self) -> str:
        """Return in words what a token holds in addition to its values, such as "asinh(flux / flux_err)", or "none"."""
        words = [f"the channel as a one-hot vector of {self.channels}"] if self.channels else []
        words += [f"asinh({column} / {error})" for column, error in self.signal_to_noise]
        return ", ".join(words) or "none"


class Rows(NamedTuple):
    """Observations of B series in the table's units, as arrays padded to N; numbers at padded places are never read.

    Attributes:
        times: float64 [B, N].
        values: [B, N, W], the predicted columns first, then their standard errors, if any, and last, if the model reads
            limits ("<5"), a column for each predicted one: -1 where the value lies below the number, 1 where above,
            else 0.
        real: [B, N], True where there is an observation.
        channels: int64 [B, N] from 0; None of series without channels.
        positions: float64 [B, N, P], P further positions (depth, ...); None of series without any.
    """

    times: Float[Tensor, "B N"]
    values: Float[Tensor, "B N W"]
    real: Bool[Tensor, "B N"]
    channels: Int[Tensor, "B N"] | None = None
    positions: Float[Tensor, "B N P"] | None = None


@dataclass(eq=False, repr=False)
class ObservationPreprocessor(Preprocessor):
    """The preprocessor of series.

    Attributes:
        value_names: the V columns that are predicted.
        channel_names: of the training set; None without channels.
        position_names: the further position columns, next to time; each has an axis of its own.
        transforms: how each of the V values is scaled: "standard" to mean 0 and deviation 1, "robust" likewise with
            heavy tails compressed, "asinh" compressed from the median on, or "none" as it is.
        origin: "first" counts times from each series' first observation (a stray early one aside), "zero" from the
            table's zero.
        channel_spacing: distance of neighbouring channels on the channel axis; the first channel is at this position.
        inputs: what the encoder reads of an observation in addition to its values.
        join_times: whether the observations of one time are one token, with all channels' values as its features.
        static: the columns with one value per series that a head reads together with the series, fitted.
        errors: the columns that hold the standard error of each value, which are read and weighed, but not predicted;
            they come behind the values in a data set. Empty where there are none.
        limits: whether the training set had limits: values that are only known to lie below or above a number. The
            encoder then reads of each value whether it is one (-1 for upper limits, 1 for lower ones, else 0).
        window, overlap: length of the windows that longer series are cut into, and the observations that two share at
            least; None cuts nothing.
        dates: whether times were dates or durations, which count in days; None if that is not known.
        values, positions: the scalings of values and of positions, with their statistics.
    """

    kind: ClassVar[str] = "observations"
    noun: ClassVar[str] = "series"
    parts: ClassVar[str] = "observations"

    value_names: tuple[str, ...]
    channel_names: tuple[ChannelName, ...] | None
    position_names: tuple[str, ...] = ()
    transforms: tuple[TransformKind, ...] = ()
    origin: Origin = "first"
    channel_spacing: float = 1.0
    inputs: Inputs = dataclasses.field(default_factory=Inputs)
    join_times: bool = False
    static: tuple[StaticColumn, ...] = ()  # pyright: ignore
    errors: tuple[str, ...] = ()  # pyright: ignore
    limits: bool = False  # pyright: ignore
    window: int | None = None  # pyright: ignore
    overlap: int = 0  # pyright: ignore
    dates: bool | None = None

    def __post_init__(self) -> None:
        """Check the settings and create buffers for the statistics, NaN until they are loaded.

        Without transforms every value gets "robust".

        Raises:
            InputError: an unknown transform or origin; more or fewer transforms than values; no values, or too many
                values and channels.
        """
        self.transforms = self.transforms or ("robust",) * len(self.value_names)
        choose("origin", self.origin, get_args(Origin))
        channels = len(self.channel_names or (None,))
        if len(self.transforms) != len(self.value_names):
            raise InputError(
                f"there are {len(self.transforms)} transforms for {len(self.value_names)} columns of values; give one "
                "transform for each column."
            )
        if not 1 <= len(self.value_names) * channels <= MAX_STATISTICS:
            raise InputError(
                f"{len(self.value_names)} columns of values in {channels:,} channels make "
                f"{len(self.value_names) * channels:,} scalings; wanted 1 to {MAX_STATISTICS:,}. Name fewer columns of "
                "values, or check that the column of channels holds channels (such as bands) and no ids."
            )
        self.values = ValueScaling(self.transforms, len(self.channel_names or (None,)))
        self.positions = PositionScaling(len(self.position_names), self.origin)
        self.requires_grad_(False)

    @classmethod
    def fit(
        cls,
        dataset: SeriesDataset,
        transforms: dict[str, str] | None = None,
        time_unit: float | None = None,
        origin: Origin = "first",
        channel_spacing: float = 1.0,
        inputs: Inputs | None = None,
        join_times: bool = False,
        errors: Sequence[str] = (),
        **settings: Any,
    ) -> ObservationPreprocessor:
        """Create a preprocessor with the statistics of a training set, without static columns (one value per series).

        Args:
            dataset: the training set; its last value columns are the `errors`.
            transforms: {value column: how it is scaled}, "robust", "standard", "asinh" or "none"; the others get
                "robust". `values.WORDS` describes them.
            time_unit: the unit of positions in time, in the table's unit; positive, which is not checked here. None
                measures it (by `PositionScaling.fit`).
            origin: "first" counts times from each series' first observation, "zero" from the table's zero.
            channel_spacing: distance of neighbouring channels on the channel axis; positive, which is not checked here.
            inputs: what a token holds in addition to its values, from `Inputs.fit`; None means nothing.
            join_times: True makes one token for each time, False one for each observation.
            errors: columns of standard errors, one for each other value column.
            settings: the fields `window` (observations of a piece into which long series are cut; not set: none) and
                `overlap` (observations that two pieces share at least).

        Raises:
            InputError: `join_times` without channels, or with further inputs, errors or limits ("<5"); `errors` that
                are negative or not the last value columns, one for each other column; `transforms` with an unknown
                column or name; times too large for 32 bits.

        Warns:
            InputWarning: single values far from all others; a unit of time too small for 32 bits.
        """
        single = "errors" if errors else "limits" if dataset.sides is not None else None
        if join_times and single:
            raise InputError(
                f"{single} belong to single observations, and join_times makes one token of all observations of a time;"
                f" leave out one of the two{' (--limits drop)' if single == 'limits' else ''}."
            )
        errors = _check_errors(dataset, errors)
        names = dataset.value_names[: len(dataset.value_names) - len(errors)]
        dataset = dataset.with_values(names)
        if join_times and dataset.channel_names is None:
            raise InputError(
                "join_times joins the channels observed at one time, and the data set has no channels; leave it "
                "out, or name the column of channels."
            )
        if join_times and inputs is not None and inputs.width:
            raise InputError(
                f"join_times fixes what a token holds, and further inputs are given ({inputs.describe()}); leave out "
                "these inputs, or join_times."
            )
        values = ValueScaling.fit(dataset, transforms)
        positions = PositionScaling.fit(dataset, time_unit, origin)
        made = cls(
            tuple(names),
            None if dataset.channel_names is None else tuple(plain(name) for name in dataset.channel_names),
            position_names=dataset.position_names,
            transforms=values.transforms,
            origin=origin,
            channel_spacing=float(channel_spacing),
            inputs=inputs or Inputs(),
            join_times=join_times,
            errors=errors,
            limits=dataset.sides is not None,
            dates=dataset.time_unit is not None,
            **settings,
        )
        made.values, made.positions = values, positions
        return made

    # ── sizes ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The value columns that a data set must have: first the predicted ones, then their errors."""
        return self.value_names + self.errors

    @property
    def axes(self) -> int:
        """Number A of position axes: time, each further position, and the channel.

        The channel has no axis if there are no channels, or with `join_times`, where a token holds all channels.
        """
        return 1 + len(self.position_names) + (self.channel_names is not None and not self.join_times)

    @property
    def features(self) -> int:
        """Number V of predicted values of a token; with `join_times`, those of all channels count."""
        return len(self.value_names) * (len(self.channel_names or ()) if self.join_times else 1)

    @property
    def input_features(self) -> int:
        """Number E of inputs of a token that are not predicted: one for each error column, and those of `inputs`.

        If training had limits ("<5"), there is one more for each value, which says whether it is a limit. With
        `join_times` E is 2 V instead: for each of V values, whether it was observed at the token's time or carried
        forward from an earlier one, and how recent it is.
        """
        if self.join_times:
            return 2 * self.features
        return len(self.errors) + self.inputs.width + (self.features if self.limits else 0)

    @property
    def static_features(self) -> int:
        """Number F of features of a series that a head reads, from static columns (one value per series); or 0."""
        return sum(column.width for column in self.static)

    def lengths(self, dataset: SeriesDataset) -> np.ndarray:
        """Return the number of tokens of each of the S series of a data set, int [S].

        It is the number of observations. With `join_times` it is the number of different times, or of different pairs
        of time and position if there are further positions.
        """
        if not self.join_times:
            return dataset.lengths
        return np.add.reduceat(opens_token(dataset).astype(np.int64), dataset.offsets[:-1])

    def with_static(self, dataset: SeriesDataset, names: Sequence[str]) -> ObservationPreprocessor:
        """Return a copy with the static columns `names` (one value per series), fitted on the data set.

        Raises InputError for a column that the data set does not have, or from which nothing can be learnt.
        """
        return self.replace(static=fit_static(dataset, names))

    # ── tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def rows(self, dataset: SeriesDataset, index: np.ndarray) -> Rows:
        """Collect the series at `index`, int [B], as `Rows`: in the table's units, padded at the end to the longest."""
        columns, lengths = dataset.gather(index), dataset.offsets[index + 1] - dataset.offsets[index]
        values = np.asarray(columns.values)
        if self.limits:
            sides = np.zeros(values.shape, np.int8) if columns.sides is None else columns.sides
            values = np.concatenate([values, sides[:, : self.features]], axis=1)
        times, channels, positions = np.asarray(columns.times, np.float64), columns.channels, columns.positions
        return Rows(
            pad_rows(times, lengths)[0],
            pad_rows(values, lengths)[0],
            torch.arange(int(lengths.max())) < torch.as_tensor(lengths)[:, None],
            None if channels is None else pad_rows(channels.astype(np.int64), lengths)[0],
            None if positions is None else pad_rows(positions, lengths)[0],
        )

    def tokens_of(self, dataset: SeriesDataset, index: np.ndarray) -> Tokens:
        """Return the tokens of the series at `index`, int [B], before any is hidden.

        They are padded at the end to the longest series. Hide some if wanted, then call `complete`, which adds what
        depends on the visible ones. Raises InputError for NaN or infinity.
        """
        tokens = self.tokens(self.rows(dataset, index))
        length = int(tokens.real.sum(1).max())  # joined times are fewer than observations
        parts: Any = (None if part is None else part[:, :length] for part in vars(tokens).values())
        return Tokens(*parts)

    def forward(self, rows: Rows) -> Tokens:
        """Turn observations in the table's units into the tokens that a model reads.

        A token holds one observation: its scaled values, the logarithms of their errors, further inputs, and for each
        value whether it is a limit ("<5"), as far as the model reads these. With `join_times` it holds one time: the
        latest value of every channel, whether it is new, and how recent it is.
        """
        return self.complete(self.tokens(rows))

    def tokens(self, rows: Rows) -> Tokens:
        """Turn observations into tokens, before any is hidden; NaN and infinity are not refused.

        A token holds, in this order:

        - V standardised values;
        - the logarithms of their standard errors, if the model reads errors;
        - the numbers of `inputs`, if there are any: the channel as a one-hot vector, and signal-to-noise ratios;
        - -1, 0 or 1 for each value (`sides`), if the model reads limits ("<5").

        With `join_times` a token has the values of all channels that were observed at its time. After hiding,
        `complete` adds earlier values.
        """
        real, width = rows.real, len(self.value_names)
        values = torch.where(real[..., None], rows.values.double(), 0.0)
        channel = torch.zeros_like(real, dtype=torch.int64)
        if rows.channels is not None:
            channel = torch.where(real, rows.channels, 0)
        parts = [self.values.transform(values[..., :width], channel)]
        if self.errors:
            errors = self.values.standard_errors(values[..., :width], values[..., width : 2 * width], channel)
            parts.append(errors.clamp(min=LEAST_ERROR).log())
        if self.inputs.width:
            parts.append(self.inputs.compute(values, channel, self.value_columns))
        if self.limits:
            parts.append(values[..., -width:])
        scaled = torch.cat(parts, -1).float()
        positions = self.positions_of(rows.times, rows.channels, rows.positions, self.origins(rows))
        if not self.join_times:
            masked = ~real[..., None]
            return Tokens(
                scaled.masked_fill(masked, 0.0), positions.masked_fill(masked, 0.0), ~real, check_values=False
            )
        keys = [rows.times.double(), *(() if rows.positions is None else rows.positions.double().unbind(-1))]
        return join(scaled, positions, keys, channel, len(self.channel_names or ()), real)

    def maskable_tokens(self, tokens: Tokens) -> Tokens:
        """Return the tokens that pre-training hides one by one, from the tokens [B, N] that the model reads.

        Without `join_times` they are the same: `tokens` is returned. With `join_times`, a token holds V values, which
        are hidden separately, so each value becomes a token: the result is [B, N · V], with padding where a value was
        not observed.
        """
        return value_tokens(tokens, len(self.value_columns)) if self.join_times else tokens

    def complete(self, tokens: Tokens) -> Tokens:
        """Add to the visible tokens what is computed only after the other tokens were hidden; return the tokens.

        If the model reads limits ("<5"), they get `observed`, False for limits and True for measured values, so that no
        query takes a limit for a measured neighbour. Else, with `join_times`, they get every channel's latest value at
        each time, whether it is new, and how recent it is (`carry_forward`). Else `tokens` are returned unchanged.
        """
        if self.limits:
            return replace(tokens, observed=self.sides(tokens) == 0, check_values=False)
        return carry_forward(tokens) if self.join_times else tokens

    def sides(self, tokens: Tokens) -> Float[Tensor, "B N V"]:
        """Return for each value whether it is a limit: -1 for an upper one ("<5"), 1 for a lower one (">5"), else 0.

        Args:
            tokens: of a preprocessor with `limits`, with V values that are predicted.
        """
        return tokens.values[..., -self.features :]

    def origins(self, rows: Rows) -> Float[Tensor, "B 1"]:
        """Return the time to subtract from the times of each of B series, in the table's unit.

        It is 0 with `origin` "zero"; else it is the earliest time of the series, passing over stray ones far before the
        others (`PositionScaling.origins`).
        """
        return self.positions.origins_of_rows(rows.times.double(), rows.real)

    def positions_of(
        self,
        times: Float[Tensor, "B M"],
        channels: Int[Tensor, "B M"] | None,
        positions: Float[Tensor, "B M P"] | None,
        origins: Float[Tensor, "B 1"],
    ) -> Float[Tensor, "B M A"]:
        """Turn M times in each of B series, with channels and further positions, into the model's positions, float32.

        The A axes are time, further positions, and the channel. The channel has no axis if there are no channels, or
        with `join_times`.

        Args:
            times: in the table's unit.
            channels: numbers from 0; None without channels.
            positions: P further positions in the table's units; None without any.
            origins: the time to subtract in each row, as `origins` returns it.
        """
        at = self.positions(times, positions, origins)
        if channels is not None and not self.join_times:
            # Index axes count from 1: [CLS] is at 0.
            at = torch.cat([at, ((channels + 1).double() * self.channel_spacing)[..., None]], -1)
        return at.float()

    # ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, dataset: SeriesDataset) -> None:
        """Refuse a data set that does not fit the model, and warn of one that looks unlike training.

        Raises:
            InputError: other value columns, channels or positions than in training, or in another order; a negative
                standard error; limits ("<5"), if the model was trained without.

        Warns:
            InputWarning: dates instead of numbers or the other way round; times or positions far from those of
                training; values that seem to be in another unit.
        """
        if tuple(dataset.value_names) != self.value_columns:
            errors = f" with the errors {', '.join(self.errors)}" if self.errors else ""
            raise InputError(
                f"the columns of values are {', '.join(dataset.value_names)}, and the model was trained on "
                f"{', '.join(self.value_names)}{errors}; give the same columns in the same order, or rename yours."
            )
        channels = None if dataset.channel_names is None else tuple(plain(name) for name in dataset.channel_names)
        if channels != self.channel_names:
            raise InputError(
                f"the channels are {listed(channels or ()) or 'none'}, and the model was trained on "
                f"{listed(self.channel_names or ()) or 'none'}; read the data with the model's channel_names. If "
                "the table is wide, leave out --values and name its columns as in training; some may be absent."
            )
        if dataset.position_names != self.position_names:
            raise InputError(
                f"the columns of positions besides time are {listed(dataset.position_names) or 'none'}, and the model "
                f"was trained on {listed(self.position_names) or 'none'}; give the same columns in the same order.",
                code="other-positions",
            )
        refuse_negative(dataset, self.errors)
        if dataset.sides is not None and not self.limits:
            raise InputError(
                'the data set has limits (values such as "<5"), and the model was trained without; leave them out, by '
                "with_limits(False) or --limits drop."
            )
        self.warn_of_other_times(dataset)
        self.warn_if_far(dataset)
        self.warn_of_other_units(dataset)

    def warn_of_other_times(self, dataset: SeriesDataset) -> None:
        """Warn (InputWarning) if times are dates or durations but were numbers in training, or the other way round.

        Nothing is compared if it is not known what they were in training (`dates` is None).
        """
        if self.dates is None or self.dates == (dataset.time_unit is not None):
            return
        kinds = ("dates or durations", "numbers")
        now, before = kinds[::-1] if self.dates else kinds
        warnings.warn(
            f"times are {now}, and were {before} in training; dates count in days: are the numbers days, too?",
            InputWarning,
            stacklevel=4,
        )

    def warn_if_far(self, dataset: SeriesDataset) -> None:
        """Warn (InputWarning), once for each axis of positions, if series reach far beyond those of training.

        A series reaches as far as its largest distance from its origin. It reaches far beyond if this is more than
        1.5 · r + 1, where r is the largest distance in training, all in units of position.
        """
        reaches, limits = self.positions.reaches(dataset), 1.5 * self.positions.training_reach.numpy() + 1.0
        units = self.positions.units.numpy()
        for axis, name in enumerate(("times", *self.position_names)):
            far = reaches[:, axis] > limits[axis]
            if far.any():
                most = int(reaches[:, axis].argmax())
                reach = float(self.positions.training_reach[axis]) * units[axis]
                warnings.warn(
                    InputWarning(
                        f"series {plain(dataset.ids[most])!r} has {name} up to "
                        f"{reaches[most, axis] * units[axis]:.6g} from their origin; training reached {reach:.6g} "
                        f"({int(far.sum())} series reach far beyond). Predictions there are extrapolations; do not "
                        "rely on them.",
                        code="far-times" if axis == 0 else "far-positions",
                    ),
                    stacklevel=3,
                )

    def warn_of_other_units(self, dataset: SeriesDataset) -> None:
        """Warn (InputWarning) of channels (or columns) whose values may be in another unit than in training.

        Values are scaled by the statistics of training. They look wrong if their median is beyond ±5, their
        interquartile range above 10, or their standard deviation below 0.002 but not 0. Data sets of fewer than ten
        series, channels with fewer than a hundred values, and columns with the transform "none" are not judged. A large
        data set is sampled.
        """
        if len(dataset) < MIN_SERIES_TO_COMPARE:
            return
        some, width, strange = dataset.sample(MAX_COMPARED), len(self.value_names), []
        channels = channel_index(some)
        scaled = self.values.transform(measured(some)[:, :width], channels)
        for c, v in np.ndindex(len(self.channel_names or (None,)), width):
            if self.transforms[v] == "none":  # of which no usual spread is known
                continue
            part = scaled[(channels == c) & ~np.isnan(scaled[:, v]), v]
            if len(part) < MIN_SERIES_TO_COMPARE**2:
                continue
            low, middle, high = np.quantile(part, (0.25, 0.5, 0.75))  # which single wild values do not move
            if abs(middle) > MAX_MEDIAN or high - low > 2 * MAX_MEDIAN or 0 < part.std() < MIN_DEVIATION:
                strange.append(self.value_names[v] if self.channel_names is None else str(self.channel_names[c]))
        if strange:
            named = listed(dict.fromkeys(strange))
            warnings.warn(
                InputWarning(
                    f"the values of {named} are far from those of the training table, or vary far more or "
                    "less; check their unit, and convert them if it differs from that in training.",
                    code="far-values",
                ),
                stacklevel=3,
            )

    def check_statistics(self) -> None:
        """Raise InputError unless the scales of values (width, std, limit) and of positions are positive and finite."""
        values, positions = self.values, self.positions
        require_positive(width=values.width, std=values.std, limit=values.limit, units=positions.units)

    def describe(self) -> dict[str, Any]:
        """Return {topic: description} of how series become tokens, such as their unit of time, for model cards."""
        units = zip(self.position_names, self.positions.units[1:].tolist(), strict=True)
        return {
            "values": dict(zip(self.value_names, self.transforms, strict=True)),
            "channels": self.channel_names,
            "unit of time": self.positions.unit,
            "times count from": "each series' first observation" if self.origin == "first" else "zero",
            "longest time in training, in units": self.positions.reach,
            "further positions": ", ".join(f"{name} (unit {unit:.4g})" for name, unit in units) or "none",
            "channel spacing": self.channel_spacing,
            "measurement errors": ", ".join(self.errors) or "none",
            "limits": "read as limits" if self.limits else "none",
            "further inputs": self.inputs.describe(),
            "tokens": "one per time, with all channels" if self.join_times else "one per observation",
            "static columns": ", ".join(column.name for column in self.static) or "none",
            "windows": "none" if self.window is None else f"of {self.window:,} observations, {self.overlap:,} shared",
        }


def opens_token(dataset: SeriesDataset) -> np.ndarray:
    """Return a mask over all observations, bool [n]: True at the first one of each different time of a series.

    With `join_times`, a token begins there. If there are further positions, time and positions count together.
    """
    opens = np.concatenate([[True], np.diff(dataset.times) != 0])
    if dataset.positions is not None:
        opens[1:] |= (np.diff(dataset.positions, axis=0) != 0).any(axis=1)
    opens[dataset.offsets[:-1]] = True
    return opens


def _check_errors(dataset: SeriesDataset, errors: Sequence[str]) -> tuple[str, ...]:
    """Check `errors`, the names of the columns of standard errors, and return them as a tuple, which may be empty.

    Raises InputError if they are not the last value columns, in order, one for each other column, or an error is
    negative.
    """
    errors, names = tuple(errors), dataset.value_names
    if errors and (tuple(names[len(names) - len(errors) :]) != errors or len(names) != 2 * len(errors)):
        raise InputError(
            f"the value columns are {listed(names)}, and errors are {listed(errors)}; wanted first all values, then "
            "one error for each in the same order, such as flux, mag, flux_err, mag_err."
        )
    refuse_negative(dataset, errors)
    return errors


def refuse_negative(dataset: SeriesDataset, errors: tuple[str, ...]) -> None:
    """Raise InputError, naming column, series and time, if a standard error is negative.

    Args:
        errors: names of the columns of errors, which are the last value columns of the data set.
    """
    rest = len(dataset.value_names) - len(errors)
    for rows in row_chunks(dataset.offsets) if errors else ():
        negative = np.argwhere(dataset.values[rows, rest:] < 0)
        if len(negative):
            at, v = negative[0] + (rows.start, 0)
            series = int(np.searchsorted(dataset.offsets, at, side="right")) - 1
            raise InputError(
                f"the error {errors[v]!r} of series {plain(dataset.ids[series])!r} at time {dataset.times[at]:.6g} is "
                f"{dataset.values[at, rest + v]:.6g}; a standard error is not negative. If this number means that the "
                "error is not known, leave these rows out, or replace it by a large error."
            )
