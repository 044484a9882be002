"""Experiments with `rotarymae`: the paper's tables and ours, each a recipe that one command runs.

A recipe of one's own imports `Recipe`, `Row`, `Score`, `Setup` and `Trial` from here; the rest helps with common tasks.
"""

from .arrays import (
    ArraySetup,
    LabelledArrays,
    Transform,
    finetune_both,
    flip_and_crop,
    predict_arrays,
    pretrain_arrays,
    randaugment,
)
from .classification import SMOKE_TRAINING, Labelled, blank, boost, combine, predict, scores, train_both
from .regular_grid import DrawnExamples, calibration, linear_interpolation, on_grid, predict_masked
from .results import page, read, table
from .runner import SMOKE, Figures, Recipe, Result, Row, Score, Setup, Trial, parameters, plain, run
