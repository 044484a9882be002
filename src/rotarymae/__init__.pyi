from . import official as official
from .config import RoMAEConfig as RoMAEConfig
from .ensemble import load as load
from .estimators import RoMAEClassifier as RoMAEClassifier
from .estimators import RoMAEEmbedder as RoMAEEmbedder
from .estimators import RoMAEInterpolator as RoMAEInterpolator
from .estimators import RoMAERegressor as RoMAERegressor
from .estimators import RoMAESurvival as RoMAESurvival
from .heads import Classifier as Classifier
from .heads import Regressor as Regressor
from .model import Encoder as Encoder
from .model import MaskedAutoencoder as MaskedAutoencoder
from .pipeline import Pipeline as Pipeline
from .series import SeriesDataset as SeriesDataset
from .tokens import Tokens as Tokens

__version__: str
