from .supervised import RoMAEClassifier as RoMAEClassifier
from .supervised import RoMAERegressor as RoMAERegressor
from .unsupervised import RoMAEEmbedder as RoMAEEmbedder
from .unsupervised import RoMAEInterpolator as RoMAEInterpolator
