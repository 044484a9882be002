"""Data sets → tokens, and answers back into the data's units: torch modules, fitted and saved with models."""

from rotarymae.preprocess.base import Preprocessor
from rotarymae.preprocess.examples import DatasetExamples, hide_units, maskable, require_maskable
from rotarymae.preprocess.observations import Inputs, ObservationPreprocessor, Rows
from rotarymae.preprocess.patches import PatchPreprocessor
from rotarymae.preprocess.static import StaticColumn, code_features, fit_static, static_features
from rotarymae.preprocess.values import KNEES, WORDS, TransformKind
