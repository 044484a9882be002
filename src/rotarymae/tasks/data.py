"""What the tasks are done on: series or arrays, each with scalers and examples of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from rotarymae.arrays import ArrayDataset, ArrayExamples, ArrayPreprocessor
from rotarymae.batch import Examples
from rotarymae.checkpoints import AnyPreprocessor
from rotarymae.errors import InputError
from rotarymae.series import Preprocessor, SeriesDataset, SeriesExamples, Windows

AnyDataset = SeriesDataset | ArrayDataset


def make_examples(dataset: AnyDataset, preprocessor: AnyPreprocessor, **options: Any) -> Examples:
    """Batches of a data set; options as those of `DatasetExamples`.

    Raises:
        InputError: series for a model of arrays, or the other way round; and as these.
    """
    if isinstance(dataset, SeriesDataset) and isinstance(preprocessor, Preprocessor):
        return SeriesExamples(dataset, preprocessor, **options)
    if isinstance(dataset, ArrayDataset) and isinstance(preprocessor, ArrayPreprocessor):
        return ArrayExamples(dataset, preprocessor, **options)
    raise InputError(f"{dataset.noun} came; the model was made from {preprocessor.noun}.")


def windowed(dataset: AnyDataset, preprocessor: AnyPreprocessor) -> Windows:
    """What the model reads of each series, one window or several; arrays are read whole."""
    if isinstance(dataset, SeriesDataset) and isinstance(preprocessor, Preprocessor):
        return preprocessor.windows(dataset)
    if isinstance(dataset, ArrayDataset):
        return Windows(dataset, np.arange(len(dataset)))
    raise InputError(f"{dataset.noun} came; the model was made from {preprocessor.noun}.")
