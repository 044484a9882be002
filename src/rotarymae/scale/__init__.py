"""One model over more rows than fit into memory, or onto one machine."""

from rotarymae.scale.jobs import Embedding, Explaining, Interpolating, Job, Predicting, open_predicting
from rotarymae.scale.shards import ShardedJob, ShardTotals, answer_shards
from rotarymae.scale.tables import Totals, answer_arrays, answer_file, embed_table, interpolate_table, predict_table

__all__ = [
    "Embedding",
    "Explaining",
    "Interpolating",
    "Job",
    "Predicting",
    "ShardTotals",
    "ShardedJob",
    "Totals",
    "answer_arrays",
    "answer_file",
    "answer_shards",
    "embed_table",
    "interpolate_table",
    "open_predicting",
    "predict_table",
]
