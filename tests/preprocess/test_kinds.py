"""Kinds of preprocessor, by the name that a saved model has for them."""

from rotarymae.preprocess.base import PREPROCESSORS
from rotarymae.preprocess.observations import ObservationPreprocessor


def test_a_class_that_names_no_kind_of_its_own_takes_no_ones_place():
    type("ObservationPreprocessor", (ObservationPreprocessor,), {})  # as torch.export derives them
    assert PREPROCESSORS["observations"] is ObservationPreprocessor
