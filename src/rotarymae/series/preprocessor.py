"""All that turns a SeriesDataset into what a model takes, fitted on training data and saved with the model."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from rotarymae.errors import InputError, InputWarning, listed
from rotarymae.series.cells import plain
from rotarymae.series.columns import channel_index
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.inputs import Inputs
from rotarymae.series.scaling import LEAST_ERROR, Origin, PositionScaler, ValueScaler
from rotarymae.series.static import StaticColumn
from rotarymae.series.windows import Windows
from rotarymae.system import from_fields

Label = str | int | float | bool

# When values look as if they were in another unit: how far their median lies, and how little they differ, in training
# deviations; and of how many series and, squared, values of a channel at least.
FAR, ALIKE, ENOUGH = 5.0, 2e-3, 10
LOOKED_AT = 1 << 18  # observations


@dataclass(frozen=True)
class Preprocessor:
    """All that turns a SeriesDataset into what a model takes; saved as preprocessor.json.

    Attributes:
        value_names, channel_names: of the training set; `channel_names` is None without a channel axis.
        values, positions: the fitted scalers.
        inputs: what the encoder reads of an observation beside its values.
        join_times: whether the observations of one time are one token, with all channels' values as its features.
        static: the columns with one value per series that a head reads beside the series, fitted.
        errors: the columns that hold the standard error of each value, which are read and weighed, but not predicted;
            they come behind the values in a data set. Empty where there are none.
        max_tokens: of longer series only so many observations are read; None reads all.
        window, overlap: longer series are cut into windows of so many observations, which share so many at least; None
            cuts nothing.
        dates: whether times were dates or durations, which count in days; None is not known.
    """

    noun: ClassVar[str] = "series"  # what messages call what it is for
    value_names: tuple[str, ...]
    channel_names: tuple[Label, ...] | None
    values: ValueScaler
    positions: PositionScaler
    inputs: Inputs = dataclasses.field(default_factory=Inputs)
    join_times: bool = False
    static: tuple[StaticColumn, ...] = ()
    errors: tuple[str, ...] = ()
    max_tokens: int | None = None
    window: int | None = None
    overlap: int = 0
    dates: bool | None = None

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
    ) -> Self:
        """Scalers of a training set; arguments as `ValueScaler.fit` and `PositionScaler.fit`, and the attributes.

        Raises:
            InputError: as these; `join_times` of a data set without channels, or with further inputs; `errors` that
                are not the last value columns, one for each other, or that are negative.
        """
        errors = _check_errors(dataset, errors, join_times)
        names = dataset.value_names[: len(dataset.value_names) - len(errors)]
        dataset = dataset.with_values(names)
        if join_times and dataset.channel_names is None:
            raise InputError("join_times joins the channels observed at one time, and the data set has no channels.")
        if join_times and inputs is not None and inputs.width:
            raise InputError(f"join_times has inputs of its own; leave out {inputs.describe()}.")
        channels = None if dataset.channel_names is None else tuple(plain(name) for name in dataset.channel_names)
        return cls(
            tuple(names),
            channels,
            ValueScaler.fit(dataset, transforms),
            PositionScaler.fit(dataset, time_unit, origin, channel_spacing),
            inputs=inputs or Inputs(),
            join_times=join_times,
            errors=errors,
            dates=dataset.time_unit is not None,
        )

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The value columns of a data set: those that are predicted, and behind them those of their errors."""
        return self.value_names + self.errors

    @property
    def axes(self) -> int:
        """A: time, and the channel where each has tokens of its own."""
        return 1 if self.channel_names is None or self.join_times else 2

    @property
    def features(self) -> int:
        """V, values per token."""
        return len(self.value_names) * (len(self.channel_names or ()) if self.join_times else 1)

    @property
    def input_features(self) -> int:
        """E, further inputs per token; of joined times, whether and how lately each value was observed."""
        return 2 * self.features if self.join_times else len(self.errors) + self.inputs.width

    @property
    def static_features(self) -> int:
        """F, features of each series."""
        return sum(column.width for column in self.static)

    def check(self, dataset: SeriesDataset) -> None:
        """Refuses a data set of other values or channels; warns of times far outside the training range."""
        if tuple(dataset.value_names) != self.value_columns:
            errors = f" with the errors {', '.join(self.errors)}" if self.errors else ""
            raise InputError(
                f"the values are {', '.join(dataset.value_names)}; the model was trained on "
                f"{', '.join(self.value_names)}{errors}, in this order."
            )
        theirs = None if dataset.channel_names is None else tuple(plain(name) for name in dataset.channel_names)
        if theirs != self.channel_names:
            raise InputError(
                f"the channels are {theirs}; the model was trained on {self.channel_names}. "
                "Read the table with channel_names= of the model."
            )
        _refuse_negative(dataset, self.errors)
        self.warn_of_other_times(dataset.time_unit)
        self.warn_if_far(dataset)
        self.warn_of_other_units(dataset)
        if self.max_tokens is not None and dataset.lengths.max() > self.max_tokens:
            warnings.warn(
                f"series of more than {self.max_tokens:,} observations are not read whole (max_tokens): each pass of "
                f"the training draws {self.max_tokens:,} of them anew, and evaluation and predictions read a fixed, "
                "even share of as many.",
                InputWarning,
                stacklevel=3,
            )

    def lengths(self, dataset: SeriesDataset) -> np.ndarray:
        """Tokens of each series [S]."""
        lengths = np.asarray(dataset.lengths)
        if self.join_times:
            first = np.asarray(dataset.offsets[:-1])
            lengths = np.add.reduceat(opens_a_time(np.asarray(dataset.times), first).astype(np.int64), first)
        return lengths if self.max_tokens is None else np.minimum(lengths, self.max_tokens)

    def log_errors(self, values: np.ndarray, channels: np.ndarray) -> np.ndarray:
        """The logarithm of the standardised standard errors [n, V] of observations with these value columns; errors
        below a thousandth of the values' deviation, and those that are not positive, count as a thousandth."""
        width = len(self.value_names)
        errors = self.values.standard_errors(values[:, :width], values[:, width:], channels)
        return np.log(np.maximum(errors, LEAST_ERROR))

    def windows(self, dataset: SeriesDataset) -> Windows:
        """What the model reads of each series, one window or several."""
        return Windows.cut(dataset, self.window, self.overlap)

    def warn_of_other_times(self, unit: str | None) -> None:
        """Warns where times are dates, which count in days, and were numbers in training, or the other way round."""
        if self.dates is None or self.dates == (unit is not None):
            return
        came, was = ("dates or durations", "numbers") if unit is not None else ("numbers", "dates or durations")
        warnings.warn(
            f"times are {came}, and were {was} in training; dates count in days: are the numbers days, too?",
            InputWarning,
            stacklevel=4,
        )

    def warn_if_far(self, dataset: SeriesDataset) -> None:
        """Warns when times of the data set lie far outside those of the training set."""
        at = self.positions.reaches(dataset)
        far = at > 1.5 * self.positions.reach + 1.0
        if far.any():
            warnings.warn(
                InputWarning(
                    f"series {plain(dataset.ids[at.argmax()])!r} has times up to {at.max() * self.positions.unit:.6g} "
                    f"from its origin; training reached {self.positions.reach * self.positions.unit:.6g} "
                    f"({int(far.sum())} series reach far outside). Predictions there are extrapolations.",
                    code="far-times",
                ),
                stacklevel=3,
            )

    def warn_of_other_units(self, dataset: SeriesDataset) -> None:
        """Warns when many values of a channel lie far from those of the training set, or spread otherwise."""
        if len(dataset) < ENOUGH:
            return
        some, width, strange = dataset.sample(LOOKED_AT), len(self.value_names), []
        channels = channel_index(some)
        scaled = self.values.transform(some.values[:, :width], channels)
        for c, v in np.ndindex(len(self.channel_names or (None,)), width):
            if self.values.transforms[v] == "none":  # of which no usual spread is known
                continue
            part = scaled[channels == c, v]
            if len(part) < ENOUGH**2:
                continue
            low, middle, high = np.quantile(part, (0.25, 0.5, 0.75))  # which single wild values do not move
            if abs(middle) > FAR or high - low > 2 * FAR or 0 < part.std() < ALIKE:
                strange.append(self.value_names[v] if self.channel_names is None else str(self.channel_names[c]))
        if strange:
            warnings.warn(
                InputWarning(
                    f"the values of {listed(strange)} are far from those of the training table, or vary far more or "
                    "less: are they in the same unit?",
                    code="far-values",
                ),
                stacklevel=3,
            )

    def describe(self) -> dict[str, Any]:
        """What is done to the data, in words and numbers, for reports and model cards."""
        return {
            "values": dict(zip(self.value_names, self.values.transforms, strict=True)),
            "channels": self.channel_names,
            "unit of time": self.positions.unit,
            "times count from": "each series' first observation" if self.positions.origin == "first" else "zero",
            "longest time in training, in units": self.positions.reach,
            "channel spacing": self.positions.channel_spacing,
            "measurement errors": ", ".join(self.errors) or "none",
            "further inputs": self.inputs.describe(),
            "tokens": "one per time, with all channels" if self.join_times else "one per observation",
            "static columns": ", ".join(column.name for column in self.static) or "none",
            "observations read per series": "all" if self.max_tokens is None else f"at most {self.max_tokens:,}",
            "windows": "none" if self.window is None else f"of {self.window:,} observations, {self.overlap:,} shared",
        }

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The inverse of `to_dict`, also after JSON. Raises InputError naming an unknown or missing field."""
        return from_fields(cls, fields, "preprocessor")


def _check_errors(dataset: SeriesDataset, errors: Sequence[str], join_times: bool) -> tuple[str, ...]:
    """The names of the columns of errors, which must be the last, one for each of the others, and nowhere negative."""
    errors = tuple(errors)
    if not errors:
        return ()
    if join_times:
        raise InputError("errors are of single observations, and join_times makes one token of all of a time.")
    rest = len(dataset.value_names) - len(errors)
    if tuple(dataset.value_names[rest:]) != errors or rest != len(errors):
        raise InputError(
            f"errors are {listed(errors)} and the value columns are {listed(dataset.value_names)}; wanted one error "
            "for each value, with the errors last and in the order of their values."
        )
    _refuse_negative(dataset, errors)
    return errors


def _refuse_negative(dataset: SeriesDataset, errors: tuple[str, ...]) -> None:
    """Raises InputError for a negative one in the last columns, which are errors."""
    rest = len(dataset.value_names) - len(errors)
    for rows in dataset.row_chunks() if errors else ():
        negative = np.argwhere(dataset.values[rows, rest:] < 0)
        if len(negative):
            row, v = negative[0]
            raise InputError(
                f"the errors {errors[v]!r} are {dataset.values[rows, rest:][row, v]:.6g} somewhere; an error is not "
                "negative. If this means that the error is not known, leave these rows out or fill in a large one."
            )


def opens_a_time(times: np.ndarray, first: np.ndarray) -> np.ndarray:
    """True [n] at the first observation of every time, of flat series that begin at `first`."""
    opens = np.concatenate([[True], np.diff(times) != 0])
    opens[first] = True
    return opens
