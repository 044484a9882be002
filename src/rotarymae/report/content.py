"""What a report of a run holds: what went in, what came out, and how much to trust it.

A `Report` holds plain data; each part is optional and shown only when given. `page.write(report, path)` draws the
figures and writes the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from rotarymae.errors import InputError


@dataclass(frozen=True, eq=False)
class Headline:
    """One figure that sums up the run, with what simpler methods reach on the same data beside it."""

    name: str
    value: float
    baselines: Mapping[str, float] = field(default_factory=dict)
    higher_is_better: bool = True
    note: str = ""  # the unit, or on what it was measured


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """What was done to the data before the model saw it."""

    facts: Mapping[str, object] = field(default_factory=dict)  # "series" → 700, "observations" → 81_234, ...
    scalers: Mapping[str, str] = field(default_factory=dict)  # column → what is done to it, in words
    position_unit: str = ""  # "3.2 days (median gap between distinct times)"
    dropped: Mapping[str, int] = field(default_factory=dict)  # reason → number of rows
    warnings: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Loss by epoch of one stage of training. steps [E], training [E], validation [E] or None."""

    stage: str
    steps: ArrayLike
    training: ArrayLike
    validation: ArrayLike | None = None

    def __post_init__(self) -> None:
        wanted = np.shape(self.steps)
        for name in ("training", "validation"):
            curve = getattr(self, name)
            if curve is not None and (len(wanted) != 1 or np.shape(curve) != wanted):
                raise InputError(
                    f"{self.stage}: {name} has shape {np.shape(curve)}, steps {wanted}; wanted one loss per step."
                )


@dataclass(frozen=True, eq=False)
class Classification:
    """True and predicted classes of series, as indices [n] into names; of a baseline too, where given."""

    names: Sequence[str]
    labels: ArrayLike
    predicted: ArrayLike
    baseline: ArrayLike | None = None
    baseline_name: str = "baseline"
    objects: str = "held-out objects"  # what was scored

    def __post_init__(self) -> None:
        wanted = np.shape(self.labels)
        if len(wanted) != 1 or not wanted[0]:
            raise InputError(f"labels has shape {wanted}; wanted one class index per held-out series.")
        for name in ("labels", "predicted", "baseline"):
            given = getattr(self, name)
            if given is None:
                continue
            classes = np.asarray(given)
            if classes.shape != wanted or not np.issubdtype(classes.dtype, np.integer):
                raise InputError(
                    f"{name} is {classes.dtype} of shape {classes.shape}; wanted integers of shape {wanted}."
                )
            if classes.min() < 0 or classes.max() >= len(self.names):
                raise InputError(
                    f"{name} runs from {classes.min()} to {classes.max()}, but there are {len(self.names)} names."
                )


@dataclass(frozen=True, eq=False)
class InterpolatedSeries:
    """One series for the gallery; the fields are the arguments of `plots.interpolation` of the same name."""

    title: str
    times: ArrayLike  # [n]
    values: ArrayLike  # [n]
    channels: ArrayLike | None = None  # int [n]
    errors: ArrayLike | None = None  # [n]
    hidden: ArrayLike | None = None  # bool [n]
    curve_times: ArrayLike | None = None  # [q]
    curve_mean: ArrayLike | None = None  # [q]
    curve_std: ArrayLike | None = None  # [q]
    curve_bands: Mapping[float, tuple[ArrayLike, ArrayLike]] | None = None  # {0.68: ([q], [q]), ...}
    curve_channels: ArrayLike | None = None  # int [q]
    channel_names: Sequence[str] | None = None
    time_label: str = "time"
    value_label: str = "value"
    asinh_scale: float | None = None


@dataclass(frozen=True, eq=False)
class Calibration:
    """Share of hidden points inside a band (observed [L]) against the share it promises (nominal [L]), both 0..1."""

    nominal: ArrayLike
    observed: ArrayLike
    points: int  # how many hidden points were counted

    def __post_init__(self) -> None:
        if np.ndim(self.nominal) != 1 or np.shape(self.nominal) != np.shape(self.observed):
            raise InputError(f"nominal {np.shape(self.nominal)} and observed {np.shape(self.observed)} must agree.")

    @classmethod
    def from_gaussian(
        cls, values: ArrayLike, mean: ArrayLike, std: ArrayLike, levels: Sequence[float] = (0.5, 0.68, 0.9, 0.95)
    ) -> Calibration:
        """Counts hidden values [n] inside the central bands of normals with mean [n] and std [n].

        Values that are not finite are left out. Use the scale in which the model predicts a normal (before an asinh
        is undone, for example): the share inside is the same.
        """
        from scipy.stats import norm

        x, centre, width = (np.asarray(a, np.float64).ravel() for a in (values, mean, std))
        if not x.shape == centre.shape == width.shape:
            raise InputError(f"values {x.shape}, mean {centre.shape} and std {width.shape} must agree.")
        finite = np.isfinite(x) & np.isfinite(centre) & np.isfinite(width)
        if not finite.any():
            raise InputError("no hidden value to count: all are missing.")
        away = np.abs(x - centre)[finite]
        inside = [float((away <= norm.ppf(0.5 + level / 2) * width[finite]).mean()) for level in levels]
        return cls(tuple(levels), tuple(inside), int(finite.sum()))


@dataclass(frozen=True, eq=False)
class EmbeddingMap:
    """Embedded series as points [S, 2], labels int [S] into names. `plots.project` makes the points."""

    points: ArrayLike
    labels: ArrayLike | None = None
    names: Sequence[str] | None = None
    method: str = "PCA"


@dataclass(frozen=True, eq=False)
class Table:
    """Methods side by side: rows of (name, {metric: value}). The best of each column is set in bold."""

    title: str
    rows: Sequence[tuple[str, Mapping[str, float]]]
    lower_is_better: Sequence[str] = ()  # metrics of which the smallest value is the best
    caption: str = ""


@dataclass(frozen=True, eq=False)
class Picture:
    """Any further figure, with a sentence that says what one sees."""

    title: str
    figure: Figure
    caption: str


@dataclass(frozen=True, eq=False)
class Run:
    """How the run was made, so that it can be made again."""

    command: str = ""
    seed: int | None = None
    wall_seconds: float | None = None
    hardware: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, Any] = field(default_factory=dict)  # may be nested


@dataclass(frozen=True, eq=False)
class Report:
    """Everything but the title may be left out. The page keeps the order of the fields."""

    title: str
    summary: str = ""
    headlines: Sequence[Headline] = ()
    tables: Sequence[Table] = ()
    series: Sequence[InterpolatedSeries] = ()
    calibration: Calibration | None = None
    classification: Classification | None = None
    embedding: EmbeddingMap | None = None
    learning_curves: Sequence[LearningCurve] = ()
    pictures: Sequence[Picture] = ()
    preprocessing: Preprocessing | None = None
    run: Run | None = None
    notes: Sequence[str] = ()
