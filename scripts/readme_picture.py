"""Draws the picture of the README: `python scripts/readme_picture.py runs/demo docs/images/interpolation.png`.

The object is the held-out type Ia supernova with the highest signal-to-noise ratio, a quarter of its observations
hidden; so it shows the model where there is something to see, and says nothing about the average object.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet

from rotarymae import plots
from rotarymae.data import plasticc
from rotarymae.interpolation import interpolate
from rotarymae.pipeline import Pipeline
from rotarymae.queries import grid
from rotarymae.series import hide

SUPERNOVA_IA = 90


def main(run: str, out: str) -> None:
    dataset, labels = plasticc.sample()
    predictions = pyarrow.parquet.read_table(Path(run) / "predictions.parquet")
    held = np.array(predictions["part"].to_pylist()) == "test"
    values = np.asarray(dataset.values)
    ratio = np.maximum.reduceat(values[:, 0] / values[:, 1], dataset.offsets[:-1])
    place = int(np.where(held & (labels == SUPERNOVA_IA), ratio, -np.inf).argmax())
    seen, left, _ = hide(dataset.select([place]), 0.25, seed=0)
    queries = grid(seen, 200)
    curve = interpolate(Pipeline.load(run).pretrained, seen, queries)
    values = np.concatenate([np.asarray(seen.values), np.asarray(left.values)])
    figure = plots.interpolation(
        np.concatenate([seen.times, left.times]),
        values[:, 0],
        channels=np.concatenate([seen.channels, left.channels]),
        errors=values[:, 1],
        hidden=np.arange(len(values)) >= len(seen.times),
        curve=plots.Curve(
            queries.times,
            curve.mean[:, 0],
            {share: (lower[:, 0], upper[:, 0]) for share, (lower, upper) in curve.bands.items()},
            queries.channels,
        ),
        channel_names=plasticc.BANDS,
        time_label="MJD (days)",
        value_label="flux",
        asinh_scale=10.0,
        title=f"PLAsTiCC object {dataset.ids[place]}",
    )
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
