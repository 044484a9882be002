"""Columns with one value per series (age, sex, redshift), as numbers that a head reads together with the series."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rotarymae.errors import InputError, InputWarning, did_you_mean, listed
from rotarymae.series import cells

FEW = 12  # different whole numbers that are taken for categories
MOST_CATEGORIES = 256
EDGES = (0.001, 0.999)  # quantiles of the training values beyond which a number is moved to them


@dataclass(frozen=True)
class StaticColumn:
    """A column with one value per series, fitted on training series.

    A number is moved between `low` and `high` and standardised; where it is missing it is 0. A category is a one-hot
    vector; unknown and missing values are all zeros. If training had missing values, one more feature is 1 where the
    value is missing.

    Attributes:
        name: of the column.
        categories: the different training values, sorted; None for a column of numbers.
        low, high: the 0.1 % and 99.9 % quantiles of the training values; 0 for categories.
        mean, std: of the training values moved between `low` and `high`; 0 and 1 for categories.
        missing: whether training had missing values.
    """

    name: str
    categories: tuple[str | int | float | bool, ...] | None = None
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    std: float = 1.0
    missing: bool = False

    def __post_init__(self) -> None:
        """Raise InputError for a deviation that is not positive, or a column that becomes no feature (`width` 0)."""
        if not self.std > 0 or not self.width:
            raise InputError(
                f"the static column {self.name!r} has the deviation {self.std} and the categories {self.categories}; "
                "wanted a positive deviation, and None or at least one category."
            )

    @classmethod
    def fit(cls, name: str, column: np.ndarray) -> StaticColumn:
        """Decide from training values whether a column is numeric or categorical, and fit its scale or its categories.

        Text and booleans become categories. So do whole numbers (1.0 is one) if at most twelve are different, and each
        occurs twice on average. All other numbers stay numbers.

        Args:
            name: of the column.
            column: [S]; a missing value is NaN among numbers, None elsewhere.

        Raises:
            InputError: only missing values; the same value in every series; more than 256 categories; dates or
                durations.
        """
        known = column[~_missing(column)]
        missing = len(known) < len(column)
        if not len(known):
            raise InputError(f"every value of the static column {name!r} is missing; leave it out.")
        different = np.unique(known)
        if len(different) < 2 and not missing:
            only = repr(different[0]) if isinstance(different[0], str) else cells.as_text(different[0])
            raise InputError(
                f"the static column {name!r} is {only} in every series, and so tells none apart; leave it out."
            )
        if column.dtype.kind in "mM":
            raise InputError(f"the static column {name!r} holds dates or durations; give numbers, such as years.")
        number = column.dtype.kind in "iuf"
        if number:
            whole = bool((different == np.round(different)).all())
            number = not (whole and len(different) <= FEW and 2 * len(different) <= len(known))
        if not number:
            if len(different) > MOST_CATEGORIES:
                raise InputError(
                    f"the static column {name!r} has {len(different)} categories; wanted at most "
                    f"{MOST_CATEGORIES}. Leave it out, or join some."
                )
            return cls(name, tuple(cells.plain(one) for one in different), missing=missing)
        low, high = (float(edge) for edge in np.quantile(known.astype(np.float64), EDGES))
        inside = np.clip(known.astype(np.float64), low, high)
        return cls(name, None, low, high, float(inside.mean()), float(inside.std()) or 1.0, missing)

    @property
    def width(self) -> int:
        """Number of features that the column becomes: one for each category, or one for a number.

        One more says whether the value is missing, if training had missing values.
        """
        return (1 if self.categories is None else len(self.categories)) + self.missing

    def codes(self, column: np.ndarray) -> np.ndarray:
        """Return a column [S] as float64: numbers as they are, categories as their index in `categories`.

        A missing value is NaN. A category that training did not have is -1, and an InputWarning names it. Categories
        are compared as text: 3.0 is "3". Raises InputError for text or dates where training had numbers, unless all
        values are missing.
        """
        gone = _missing(column)
        if self.categories is None:
            if column.dtype.kind not in "iufb" and not gone.all():
                strange = cells.plain(column[~gone][0])
                raise InputError(
                    f"the static column {self.name!r} holds {strange!r}, and in training it held numbers; give numbers."
                )
            numbers = np.full(len(column), np.nan)
            numbers[~gone] = column[~gone]
            return numbers
        # Whether a text file's 3 is a number or a text depends on what else stands in its column.
        known = {cells.as_text(one): i for i, one in enumerate(self.categories)}
        index = np.array(
            [np.nan if no else known.get(cells.as_text(one), -1) for one, no in zip(column, gone, strict=True)],
            np.float64,
        )
        strange = sorted({cells.as_text(one) for one in column[index == -1]})
        if strange:
            warnings.warn(
                f"the static column {self.name!r} holds {listed(strange)}, which training did not have; the model "
                f"knows {listed(self.categories)} and takes it for none of them.",
                InputWarning,
                stacklevel=3,
            )
        return index

    def features(self, codes: Float[Tensor, " S"]) -> Float[Tensor, "S width"]:
        """Return the features that a head reads, float64 [S, width]: a one-hot vector, or a standardised number.

        A number below `low` or above `high` is moved there before. A missing number becomes 0, and a missing or unknown
        category all zeros. If training had missing values, one more feature, the last, is 1 where the value is missing,
        else 0.

        Args:
            codes: numbers or indices of categories, NaN where missing, as `codes` returns them.
        """
        gone = codes.isnan()
        if self.categories is None:
            inside = torch.where(gone, self.mean, codes.clamp(self.low, self.high))
            parts = [((inside - self.mean) / self.std)[:, None]]
        else:
            known = torch.arange(len(self.categories), device=codes.device)
            parts = [(torch.where(gone, -1.0, codes)[:, None] == known).double()]
        return torch.cat([*parts, gone[:, None].double()] if self.missing else parts, 1)


def fit_static(dataset: Any, names: Sequence[str]) -> tuple[StaticColumn, ...]:
    """Fit the static columns (one value per series) `names` to a training set; return them in this order.

    Raises InputError for a column that the data set does not have, or that `StaticColumn.fit` refuses.
    """
    return tuple(StaticColumn.fit(name, _column(dataset, name)) for name in names)


def code_features(columns: Sequence[StaticColumn], codes: Float[Tensor, "S K"]) -> Float[Tensor, "S F"]:
    """Return what a head reads of S series, float32 [S, F]: the features of all columns side by side.

    Args:
        columns: K fitted columns; if there are none, F is 0.
        codes: a column for each of them, as `StaticColumn.codes` returns it.
    """
    parts = [column.features(codes[:, i]) for i, column in enumerate(columns)]
    return torch.cat([codes.new_zeros(codes.shape[0], 0), *parts], 1).float()


def static_features(columns: Sequence[StaticColumn], dataset: Any) -> np.ndarray:
    """Return what a head reads of every series of a data set, float32 [S, F]: the features of its static columns.

    Such a column has one value per series. Features are in the order of `columns`; without columns F is 0.

    Args:
        columns: the fitted columns.

    Raises:
        InputError: a column that the data set does not have; text where training had numbers.

    Warns:
        InputWarning: categories that training did not have.
    """
    codes = [column.codes(_column(dataset, column.name)) for column in columns]
    table = np.stack(codes, axis=1) if codes else np.zeros((len(dataset), 0))
    return code_features(columns, torch.from_numpy(table)).numpy()


def _column(dataset: Any, name: str) -> np.ndarray:
    """Return the values [S] of a static column (one value per series). Raises InputError if it is absent."""
    if name not in dataset.static:
        raise InputError(
            f"the data set lacks the static column {name!r}; add it to the data set. "
            f"Its static columns are {listed(dataset.static) or 'none'}."
            f"{did_you_mean(name, dataset.static)}"
        )
    return np.asarray(dataset.static[name])


def _missing(column: np.ndarray) -> np.ndarray:
    """Return a mask [S], True where the value is None or NaN."""
    return np.array([one is None or one != one for one in column.tolist()], bool)
