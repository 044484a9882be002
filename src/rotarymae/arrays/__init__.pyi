from .coerce import as_arrays as as_arrays
from .dataset import ArrayDataset as ArrayDataset
from .examples import ArrayExamples as ArrayExamples
from .examples import array_tokens as array_tokens
from .filterbank import filterbank as filterbank
from .scaling import ArrayPreprocessor as ArrayPreprocessor
