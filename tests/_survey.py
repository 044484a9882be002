"""A survey in small: objects with nested light curves, and a model of them that nobody trained."""

import os

import numpy as np
import pyarrow as pa
import torch

from rotarymae.config import RoMAEConfig
from rotarymae.model import MaskedAutoencoder
from rotarymae.pipeline import Pipeline
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.scale import embeddings
from rotarymae.series import SeriesDataset


def nested(objects, observations=8, seed=0, first=0):
    """A table of `objects` rows: id, and a struct of lists lc with t, flux and band."""
    draw = np.random.default_rng(seed)
    lengths = np.maximum(1, draw.poisson(observations, objects))
    which = np.repeat(np.arange(objects), lengths)
    times = draw.uniform(0, 20, len(which))
    times = times[np.lexsort((times, which))]
    bands = pa.array(np.array(["g", "r"])[draw.integers(0, 2, len(which))].tolist())
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    columns = {"t": pa.array(times), "flux": pa.array(np.sin(times + which % 7)), "band": bands}
    lists = [pa.ListArray.from_arrays(offsets, column) for column in columns.values()]
    return pa.table({"id": np.arange(first, first + objects), "lc": pa.StructArray.from_arrays(lists, list(columns))})


def save_model(folder):
    """Write a pipeline for such tables."""
    data = SeriesDataset.from_frame(nested(60), "id", "lc.t", "lc.band", ["lc.flux"])
    layout = {"id": "id", "time": "lc.t", "channel": "lc.band", "values": ["lc.flux"]}
    preprocessor = ObservationPreprocessor.fit(data)
    sizes = {"embed_dim": 24, "num_heads": 2, "depth": 2, "decoder_embed_dim": 12, "decoder_num_heads": 1}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = RoMAEConfig(axes=2, features=1, decoder_depth=1, likelihood="gaussian", **sizes)
        model = MaskedAutoencoder(config).eval()
    Pipeline(preprocessor, model, columns=layout).save(folder)


def open_unless_killed(model, mark):
    """Ask for embeddings; the first process that does ends as if it was killed."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), 9)
    return embeddings(model)
