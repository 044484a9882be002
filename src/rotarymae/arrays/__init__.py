"""Arrays on regular axes in, tokens out: pictures, videos and sounds, of equal or unequal sizes."""

from rotarymae.arrays.dataset import SOUND_PATCH, ArrayDataset, as_arrays, crop
from rotarymae.arrays.filterbank import BINS, filterbank
from rotarymae.arrays.folders import FolderData, read_pictures, read_sounds, resampled
