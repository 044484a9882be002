"""Estimators without a target: values at other times, and vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from rotarymae.checkpoints import AnyPreprocessor
from rotarymae.errors import InputError, check_whole, choose
from rotarymae.estimators.base import Estimator, TakesArrays, is_flat
from rotarymae.heads import Classifier, Regressor, encoder_of
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.series import SeriesDataset, channel_index, dates, hide, tables
from rotarymae.tasks import HIDDEN, Queries, as_queries, embed, interpolate, make_examples, windowed


@dataclass(kw_only=True, repr=False, eq=False)
class _Unsupervised(Estimator):
    """What the interpolator and the embedder share."""

    validation_fraction: float = 0.0
    """This share of the series is set aside and chooses the best epoch, if there are at least ten series."""

    def _pool(self) -> str:
        """What shall be there to be pooled."""
        return "mean"

    def fit(self, series: Any, y: Any = None) -> Self:
        """Trains; `y` is not read.

        Raises:
            InputError: series or a parameter that cannot be used; before any training.
        """
        parts = self._pretrain(series, self._config(pool=self._pool()), None, None)
        preprocessor = self.pretrained_.preprocessor
        assert preprocessor is not None
        make_examples(windowed(parts.train, preprocessor).dataset, preprocessor)  # refuses what it was not made for
        self._keep(self.pretrained_.model, preprocessor)
        return self


@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEInterpolator(_Unsupervised):
    """Learns to predict hidden observations; then predicts values at any time, with a standard deviation.

    Attributes:
        model_, preprocessor_: the `MaskedAutoencoder` and its scalers.
        pretrained_: both as a `ModelDirectory`.
        history_: what was logged.
    """

    _interpolates: ClassVar[bool] = True

    def predict(self, series: Any, at: Any = None, return_std: bool = False) -> Any:
        """Values of the series at other times, in their own units.

        Args:
            series: what was observed, laid out as in `fit`.
            at: times [q], the same for all series; or one array of times [q_i] for each series. Without them, the
                times of an array, which fills its gaps, or each series' own times. Of series with dates also dates,
                which are in the zone of the series where they say none.
            return_std: return (mean, std), two of the same shape.

        Returns:
            For times [q], or [S, q]: an array [S, q, V], or [S, C, q, V] when the series have C channels. For times
            of different number: a list with [q_i, V] or [C, q_i, V] for each series. When `series` is an array
            [cases, channels, time] or [cases, time], they are laid out as it is: [cases, channels, q] or [cases, q].

        Raises:
            InputError: series or times that cannot be used; `return_std` of a model without a likelihood.
        """
        dataset, queries, shaped = self._ask(series, at)
        found = interpolate(self._directory, dataset, queries)
        if return_std and found.std is None:
            raise InputError("the model was trained without a likelihood and has no deviation; leave out return_std.")
        if return_std and found.std is not None:
            return shaped(found.mean), shaped(found.std)
        return shaped(found.mean)

    def sample(self, series: Any, at: Any = None, draws: int = 10, random_state: int | None = 0) -> Any:
        """Random values at other times, drawn from what the model predicts for each of them alone.

        The spread over draws is that of each value. Neighbouring values of one draw are as if they had nothing to do
        with each other: draws are no curves, which would need the covariance between times.

        Args:
            series, at: as `predict`.
            draws: so many values for each time.
            random_state: the seed of the draws; None draws one.

        Returns:
            As `predict`, with the draws in front: [draws, S, q, V], or a list with [draws, q_i, V] for each series.

        Raises:
            InputError: a model without a likelihood; as `predict`.
        """
        check_whole("draws", draws, 1)
        dataset, queries, shaped = self._ask(series, at)
        found = interpolate(self._directory, dataset, queries)
        if found.std is None:
            raise InputError("the model was trained without a likelihood: it predicts one value for each time.")
        channels = channel_index(queries)
        shares = torch.from_numpy(np.random.default_rng(random_state).random((draws, *found.mean.shape)))
        values, scaled = self._directory.of_series().values, found.scaled
        quantiles = (scaled.likelihood.quantile(scaled.parameters, share).numpy() for share in shares)
        drawn = [shaped(values.inverse(one, channels)) for one in quantiles]
        if isinstance(drawn[0], np.ndarray):
            return np.stack(drawn)
        return [np.stack(of_series) for of_series in zip(*drawn, strict=True)]

    def score(self, series: Any, y: Any = None) -> float:
        """R² at hidden observations: a quarter of each series' is hidden, always the same, and predicted from the rest.

        Of a model that learnt to forecast (`masking="future"`) the latest ones are hidden.
        It is computed from standardised values, all channels and value columns together; 1 is perfect, 0 as good as
        the mean. `y` is not read.

        Raises:
            InputError: no series has two observations.
        """
        from sklearn.metrics import r2_score

        by = "latest" if self._directory.of_series().forecasts else "observation"
        visible, hidden, _ = hide(self._read(series), HIDDEN, seed=0, by=by)
        queries = as_queries(hidden)
        hidden = hidden.with_values(self._directory.of_series().value_names)
        found = interpolate(self._directory, visible, queries)
        truth = self._directory.of_series().values.transform(hidden.values, channel_index(queries))
        return float(r2_score(truth.ravel(), found.scaled_mean.ravel()))

    def _ask(self, series: Any, at: Any) -> tuple[SeriesDataset, Queries, Callable[[np.ndarray], Any]]:
        """The series, where to ask, and what brings flat answers into their shape."""
        dataset = self._read(series)
        padded = is_flat(series) or (isinstance(series, np.ndarray) and series.ndim == 3)
        if at is None:
            at = np.arange(np.shape(series)[-1]) if padded else [np.unique(one.times) for one in dataset]
        per_series, common = _times(at, dataset)
        channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
        queries = Queries.cross(dataset, per_series)

        def shaped(flat: np.ndarray) -> Any:
            parts = []
            for part in np.split(flat, queries.offsets[1:-1]):
                part = part.reshape(channels, -1, part.shape[-1])
                if padded:
                    part = part[..., 0] if dataset.channel_names is not None else part[0].T
                    parts.append(part[0] if is_flat(series) else part)
                else:
                    parts.append(part if dataset.channel_names is not None else part[0])
            return np.stack(parts) if common else parts

        return dataset, queries, shaped


@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TakesArrays, _Unsupervised):
    """Learns by predicting hidden observations or patches; then turns every series, picture or sound into one vector.

    Attributes:
        model_, preprocessor_, pretrained_, history_: as `RoMAEInterpolator`'s.
    """

    _kinds = (MaskedAutoencoder, Classifier, Regressor, Encoder)

    pool: Literal["auto", "mean", "max", "cls"] = "auto"
    """The vector is the mean or maximum over a series' observations, the [CLS] token, or what training used."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _pool(self) -> str:
        choose("pool", self.pool, ("auto", "mean", "max", "cls"))
        return "cls" if self.pool == "cls" else "mean"

    def _keep(self, model: Any, preprocessor: AnyPreprocessor) -> None:
        super()._keep(model, preprocessor)
        self._n_features_out = encoder_of(model).config.embed_dim

    def transform(self, series: Any) -> np.ndarray:
        """Embeddings [S, D], float32."""
        dataset = self._read(series)
        return embed(self._directory, dataset, None if self.pool == "auto" else self.pool)


def _numbers(times: Any, dataset: SeriesDataset) -> np.ndarray:
    """Times as float64; where the series have dates, also dates and texts that are dates, as days since 1970-01-01.

    Dates without a zone are what clocks in the zone of the series show, as for the command.
    """
    array = np.asarray(times)
    if array.dtype.kind in "iufb":
        return array.astype(np.float64)
    column = dates.from_iso(tables.to_arrow(times if array.ndim < 2 else array.ravel()))
    found, unit = dates.times(column, "at")
    if unit is not None and dataset.time_unit is None:
        raise InputError("at holds dates, and the times of the series are numbers; give numbers.")
    if dates.zone(column) == "" and np.isfinite(found).all():  # what is not is refused by `_times`
        found = dates.in_zone(found, dataset.time_zone)
    return found.reshape(array.shape)


def _times(at: Any, dataset: SeriesDataset) -> tuple[list[np.ndarray], bool]:
    """Times for every series, and whether they are equally many."""
    series = len(dataset)
    if isinstance(at, list | tuple) and any(np.ndim(times) for times in at):
        each = [_numbers(times, dataset) for times in at]
    else:
        flat = _numbers(at, dataset)
        each = [flat] * series if flat.ndim < 2 else list(flat)
    if len(each) != series:
        raise InputError(f"at has times for {len(each)} series; there are {series}. Give one array for each, or one.")
    for i, times in enumerate(each):
        if times.ndim != 1:
            raise InputError(f"at of series {i} has the shape {times.shape}; wanted a flat array of times.")
        if not np.isfinite(times).all():
            raise InputError(f"at of series {i} holds NaN or infinity; every time must be a finite number.")
    return each, len({len(times) for times in each}) == 1
