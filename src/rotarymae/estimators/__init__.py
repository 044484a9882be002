"""The main jobs as scikit-learn estimators: classify, regress, predict times to an event, interpolate, embed.

Series come in any of these forms, and the same data in all of them give the same predictions:

    SeriesDataset                       of a table, a file, arrays
    data frame                          long: one row per observation; pandas, polars or Arrow. Its columns are named by
                                        the parameters id, time, channel, values and static. Series are in the order of
                                        their first rows. Labels may be the name of a column, or a dictionary, pandas
                                        Series or DataFrame by id.
    list of (times, values)             times [n] and values [n] or [n, V] of every series, or also channels [n]
    array [cases, channels, time]       at the times 0, 1, 2, ...; NaN is no observation (aeon's layout)
    list of arrays [channels, time]     of unequal length (aeon's layout)
    array [cases, time]                 scikit-learn's X: each row is a series of one channel at the times 0, 1, 2, ...,
                                        NaN is no observation, and all have as many columns as in `fit`

An array is read with all channels of a time as one token, or, where some are missing at some times, with one token for
every time and channel; `SeriesDataset.from_arrays` with wide=True makes it the latter always, so that gaps may come
later. A data frame cannot be cut by rows: for cross-validation make it a SeriesDataset first.

All but the interpolator also take pictures and videos, with `patch_size`, and sounds, with `sample_rate`: an
`ArrayDataset`, one array [N, H, W], [N, H, W, C] or [N, T, H, W, C], or a list of arrays, or of waveforms [n], of
unequal sizes.

`fit` pre-trains on the series and, with labels, fine-tunes; `pretrained=` takes an encoder that has been trained
already. Most parameters are the options of `FitConfig`, and each is documented in the class; `random_state` is its
seed. `estimator.save(folder)` writes a fitted model without pickle; `RoMAEClassifier.load(folder)` predicts the same;
`load` reads a run folder of `rotarymae fit` as well.
"""

from rotarymae.estimators.supervised import RoMAEClassifier, RoMAERegressor, RoMAESurvival
from rotarymae.estimators.unsupervised import RoMAEEmbedder, RoMAEInterpolator

__all__ = ["RoMAEClassifier", "RoMAEEmbedder", "RoMAEInterpolator", "RoMAERegressor", "RoMAESurvival"]
