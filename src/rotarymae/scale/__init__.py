"""One model over more rows than fit into memory, or onto one machine."""

from rotarymae.scale.answers import (
    Computation,
    anomalies,
    embeddings,
    importances,
    predictions,
    values,
)
from rotarymae.scale.shards import ShardedJob, ShardTotals, answer_shards
from rotarymae.scale.tables import Totals, answer_arrays, answer_arrow, answer_file, embed_table
