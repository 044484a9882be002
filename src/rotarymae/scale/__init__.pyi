from .jobs import Embedding as Embedding
from .jobs import Interpolating as Interpolating
from .jobs import Job as Job
from .jobs import Predicting as Predicting
from .tables import answer_file as answer_file
from .tables import embed_table as embed_table
from .tables import interpolate_table as interpolate_table
from .tables import predict_table as predict_table
