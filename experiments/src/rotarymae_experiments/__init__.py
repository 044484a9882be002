"""Experiments with `rotarymae`: the paper's tables and ours, each a recipe that one command runs.

A recipe of one's own imports `Recipe`, `Row`, `Score`, `Setup` and `Trial` from here; the rest helps with common tasks.
"""

from .arrays import ArraySetup as ArraySetup
from .arrays import LabelledArrays as LabelledArrays
from .arrays import Transform as Transform
from .arrays import finetune_both as finetune_both
from .arrays import flip_and_crop as flip_and_crop
from .arrays import predict_arrays as predict_arrays
from .arrays import pretrain_arrays as pretrain_arrays
from .arrays import randaugment as randaugment
from .classification import SMOKE_TRAINING as SMOKE_TRAINING
from .classification import Labelled as Labelled
from .classification import blank as blank
from .classification import boost as boost
from .classification import combine as combine
from .classification import predict as predict
from .classification import scores as scores
from .classification import train_both as train_both
from .regular_grid import SMOKE as SMOKE
from .regular_grid import DrawnExamples as DrawnExamples
from .regular_grid import calibration as calibration
from .regular_grid import linear_interpolation as linear_interpolation
from .regular_grid import on_grid as on_grid
from .regular_grid import predict_masked as predict_masked
from .results import page as page
from .results import read as read
from .results import table as table
from .runner import Figures as Figures
from .runner import Recipe as Recipe
from .runner import Result as Result
from .runner import Row as Row
from .runner import Score as Score
from .runner import Setup as Setup
from .runner import Trial as Trial
from .runner import parameters as parameters
from .runner import plain as plain
from .runner import run as run
