"""Cox's regression on the features that boosted trees read: what a statistician would fit to a time to an event."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from rotarymae.partners.base import AnyDataset, Floats, Partner, check, load_arrays, read_settings, save_arrays
from rotarymae.partners.boosting import series_features
from rotarymae.partners.hazards import FollowUp, interval_probabilities
from rotarymae.preprocess import StaticColumn

PENALTIES = 4.0 ** np.arange(0, 7)  # of the squared coefficients of standardised features
FOLDS = 3
REACH = 3.0  # standard deviations; features are held to it, as one wild value would decide a line
COX_ARRAYS: dict[str, tuple[type, tuple[int | str, ...]]] = {
    "center": (np.float64, ("features",)),
    "scale": (np.float64, ("features",)),
    "weight": (np.float64, ("features",)),
    "rates": (np.float64, ("intervals",)),
}


@dataclass(frozen=True)
class CoxSettings:
    """The names of features and the static columns of `CoxFeatures`, which are saved next to its arrays, as JSON."""

    features: tuple[str, ...]
    static: tuple[StaticColumn, ...]


@dataclass(frozen=True, eq=False)
class CoxFeatures(Partner):
    """Cox's proportional hazards: a linear log-risk on features, with a ridge penalty chosen by cross-validation.

    Attributes:
        features: names of the features that are computed from observations.
        static: the columns with one value per series, which are features, too.
        center, scale: [F] by which features are standardised, those of the static columns last; a missing feature
            counts as its center.
        weight: [F] of the standardised features, which are clipped to ±3; their weighted sum is the log-risk.
        rates: [K] hazard of each interval at a log-risk of 0.
    """

    features: tuple[str, ...]
    static: tuple[StaticColumn, ...]
    center: Floats
    scale: Floats
    weight: Floats
    rates: Floats

    name: ClassVar[str] = "cox"
    title: ClassVar[str] = "Cox regression on features"
    suffix: ClassVar[str] = ".safetensors"

    @classmethod
    def suits(cls, task: str, dataset: AnyDataset) -> bool:
        """Return whether the task is "survival", the prediction of the time to an event; `dataset` is not read."""
        return task == "survival"

    @classmethod
    def fit(
        cls,
        task: str,
        dataset: AnyDataset,
        truth: NDArray[Any],
        static: tuple[StaticColumn, ...],
        seed: int,
        rows: int | None = None,
    ) -> Self:
        """Compute and standardise features, choose the ridge penalty by cross-validation, and fit Cox's model.

        Args:
            task: not read; "survival" is the only task.
            dataset: the S training series.
            truth: [S, K + 1] for K time intervals and the time after them, from 0 to 1: how much of each may hold the
                series' event (see `survival.EventTimes.encode`).
            static: columns of `dataset` with one value per series, which become features, too.
            seed: fixes the folds of the cross-validation.
            rows: not read.
        """
        features, names = series_features(dataset, static)
        known = np.where(np.isfinite(features), features, np.nan)
        missing = np.isnan(known).all(0)
        known[:, missing] = 0.0
        center, scale = np.nanmedian(known, axis=0), np.nanstd(known, axis=0)
        low, high = np.nanquantile(known, (0.16, 0.84), axis=0)
        scale = np.where(high > low, (high - low) / 2, np.where(scale > 0, scale, 1.0))
        x = _standardised(features, center, scale)
        fold = np.random.default_rng(seed).permutation(len(x)) % FOLDS
        costs = np.zeros(len(PENALTIES))
        for held in range(FOLDS):
            weight, learnt, scored = None, FollowUp.of(truth[fold != held]), FollowUp.of(truth[fold == held])
            for i, penalty in reversed(list(enumerate(PENALTIES))):  # each starts from the solution of a stronger one
                weight = fit_cox(x[fold != held], learnt, penalty, weight)
                costs[i] += scored.nats(x[fold == held] @ weight)
        follow_up = FollowUp.of(truth)
        weight = fit_cox(x, follow_up, PENALTIES[costs.argmin()])
        return cls(names, static, center, scale, weight, follow_up.rates(x @ weight))

    def predict(self, dataset: AnyDataset) -> Floats:
        """Return the probabilities [S, K + 1] of the event in each of K time intervals, and after them, for S series.

        Raises:
            InputError: other channels, value columns or static columns (one value per series) than in training.
        """
        features, _ = series_features(dataset, self.static, self.features)
        return interval_probabilities(_standardised(features, self.center, self.scale) @ self.weight, self.rates)

    def save(self, path: Path) -> dict[str, Any]:
        """Write the fitted arrays to the safetensors file `path`; return settings for `load`, which JSON can hold."""
        save_arrays(path, {name: getattr(self, name) for name in COX_ARRAYS})
        return asdict(CoxSettings(self.features, self.static))

    @classmethod
    def load(cls, path: Path, task: str, settings: dict[str, Any]) -> Self:
        """Read the fitted regression from the file `path` that `save` wrote, and the `settings` that it returned.

        Raises:
            ModelDirectoryError: another `task` than "survival"; a file or settings that `save` would not have written.
        """
        check(task == "survival", path, "task")
        read, arrays = read_settings(CoxSettings, settings, path), load_arrays(path, COX_ARRAYS)
        width = len(read.features) + sum(column.width for column in read.static)
        check(len(arrays["weight"]) == width, path, "weight")
        check(bool((arrays["scale"] > 0).all()), path, "scale")
        check(bool((arrays["rates"] >= 0).all()), path, "rates")
        return cls(read.features, read.static, **arrays)


def fit_cox(x: Floats, follow_up: FollowUp, penalty: float, start: Floats | None = None) -> Floats:
    """Fit Cox's proportional hazards with a ridge penalty: return the weights [F] of the features.

    They maximise the log partial likelihood minus penalty · sum(weights²) / 2.

    Args:
        x: standardised features [S, F] of S series; x @ weights are their log-risks.
        follow_up: time at risk and events of the same series.
        penalty: strength of the ridge penalty, from 0.
        start: weights [F] from which the search starts; None means zeros.
    """
    observed = follow_up.events.sum(1)

    def cost(weight: Floats) -> tuple[float, Floats]:
        """Return the penalised negative log partial likelihood of weights [F], and its gradient [F]."""
        log_risk = x @ weight
        gradient = x.T @ (follow_up.expected(log_risk) - observed) + penalty * weight
        return follow_up.nats(log_risk) + penalty * float(weight @ weight) / 2, gradient

    start = np.zeros(x.shape[1]) if start is None else start
    return minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x


def _standardised(features: Floats, center: Floats, scale: Floats) -> Floats:
    """Return (features - center) / scale, clipped to ±3, for features [S, F]; a missing one (NaN) becomes 0.

    `center` and `scale` are [F].
    """
    return np.nan_to_num(np.clip((features - center) / scale, -REACH, REACH), nan=0.0)
