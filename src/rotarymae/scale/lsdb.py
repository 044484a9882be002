"""LSDB catalogues: one embedding per object, partition by partition, on the workers of Dask.

    import lsdb
    from rotarymae.scale.lsdb import embed

    catalog = lsdb.open_catalog("ztf", columns=["objectid", "ra", "dec", "lc"])
    vectors = embed(catalog, "run", id="objectid", time="lc.mjd", values=["lc.mag"], channel="lc.band")
    vectors.write_catalog("vectors")

The path of the model travels, not the model: each worker loads it once. A partition is exploded and embedded in parts,
so that beside the partition itself memory does not grow with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rotarymae.config import AutoPool, Precision
from rotarymae.errors import InputError, import_extra, listed
from rotarymae.scale.answers import Stage, open_once
from rotarymae.scale.tables import answer_arrow
from rotarymae.tables import TableSchema


def embed(
    catalog: Any,
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
) -> Any:
    """A catalogue with the columns id, right ascension, declination, e0, e1, .. and one row per object.

    Nothing is computed before the catalogue is (`compute`, `write_catalog`). Rows of a partition with one id are one
    object. An object without observations has NaN as its embedding.

    Args:
        catalog: an `lsdb.Catalog` with light curves in nested columns.
        model: a run folder or a model directory, at the same path on every worker.
        id, time, values, channel, flags: columns, "lc.t" for the field "t" of "lc"; those of the training table, if
            not given.
        pool, stage: as `embed_table`.
        precision: of matrix products; "auto" takes bf16 where a worker has units for it.

    Raises:
        MissingExtra: LSDB is not installed.
        InputError: columns that the catalogue has not.
        ModelDirectoryError: as `checkpoints.load_directory`.
    """
    import_extra("lsdb", "survey")
    model = str(model)
    question = open_once(model, stage, pool, precision)
    given = {"id": id, "time": time, "values": tuple(values), "channel": channel, "flags": tuple(flags)}
    layout = question.pipeline.layout(given)
    info = catalog.hc_structure.catalog_info
    kept = list(dict.fromkeys([layout.id, info.ra_column, info.dec_column]))
    wanted = [layout.time, *layout.values, *layout.flags, *layout.static, *([layout.channel] if layout.channel else [])]
    there = [*catalog.columns]
    columns = list(dict.fromkeys([*kept, *(name if name in there else name.split(".")[0] for name in wanted)]))
    lacking = [name for name in columns if name not in there]
    if lacking:
        raise InputError(f"the catalogue has no column {listed(lacking)}; it has {listed(there, 20)}.")
    part = catalog[columns]
    meta = _with_vectors(part.meta[kept], {name: np.zeros(0, np.float32) for name in question.schema.names})  # pyright: ignore
    return part.map_partitions(_embed_partition, model, stage, pool, precision, layout, kept, meta=meta)


def _embed_partition(
    frame: Any, model: str, stage: Stage, pool: AutoPool, precision: Precision, layout: TableSchema, kept: list[str]
) -> Any:
    """What a worker does with one partition, a `nested_pandas.NestedFrame`."""
    question = open_once(model, stage, pool, precision)
    table = pa.table({name: pa.array(frame[name]) for name in frame.columns})
    first = frame[kept][~frame[layout.id].duplicated()]
    answers = answer_arrow(question, table, layout)
    vectors = {name: answers[name].to_numpy().astype(np.float32, copy=False) for name in question.schema.names}  # pyright: ignore
    return _with_vectors(first, vectors)


def _with_vectors(frame: Any, vectors: dict[str, np.ndarray]) -> Any:
    import pandas as pd

    return type(frame)(pd.concat([frame, pd.DataFrame(vectors, index=frame.index)], axis=1))
