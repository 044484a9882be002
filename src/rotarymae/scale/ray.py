"""Ray Data: one embedding per object, as a class for `map_batches`.

    import ray
    from rotarymae.scale.ray import Embedder

    survey = ray.data.read_parquet("survey")
    roles = {"id": "objectid", "time": "lc.mjd", "values": ["lc.mag"], "channel": "lc.band"}
    vectors = survey.map_batches(
        Embedder, fn_constructor_args=["run"], fn_constructor_kwargs=roles, batch_format="pyarrow", concurrency=4
    )
    vectors.write_parquet("vectors")

Each actor loads the model once. A batch must hold whole objects, so the table has one row per object.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from rotarymae.config import AutoPool, Precision
from rotarymae.scale.answers import Stage, open_stage
from rotarymae.scale.tables import embed_table


class Embedder:
    """Turns a batch of objects into a table of their ids, e0, e1, ..; see `embed_table`.

    Args:
        model: a run folder or a model directory, at the same path on every node.
        id, time, values, channel, flags: columns, "lc.t" for the field "t" of "lc"; those of the training table, if not
            given.
        pool, stage: as `embed_table`.
        precision: of matrix products; "auto" takes bf16 where a worker has units for it.

    Raises:
        ModelDirectoryError: as `checkpoints.load_directory`.
    """

    def __init__(
        self,
        model: str | Path,
        id: str | None = None,
        time: str | None = None,
        values: Sequence[str] = (),
        channel: str | None = None,
        *,
        flags: Sequence[str] = (),
        pool: AutoPool = "auto",
        stage: Stage = "pretrained",
        precision: Precision = "auto",
    ) -> None:
        self._pipeline, self._pool = open_stage(model, stage, precision), pool
        given = {"id": id, "time": time, "values": tuple(values), "channel": channel, "flags": tuple(flags)}
        self._layout = self._pipeline.layout(given)

    def __call__(self, batch: pa.Table) -> pa.Table:
        return embed_table(batch, self._pipeline, self._layout, pool=self._pool)  # pyright: ignore
