"""Ray Data's class for map_batches; that it runs in Ray itself is a slow test, as Ray takes long to start."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from _survey import nested
from rotarymae.scale import embed_table
from rotarymae.scale.ray import Embedder


def test_batches_are_the_table(survey_model):
    table = nested(20)
    embedder = Embedder(survey_model, time="lc.t", values=["lc.flux"])
    found = pa.concat_tables([embedder(table.slice(i, 6)) for i in range(0, 20, 6)])
    alone = embed_table(table, survey_model)
    assert found["id"].equals(pa.chunked_array(alone["id"]))
    for name in alone.column_names[1:]:
        np.testing.assert_allclose(found[name].to_numpy(), alone[name].to_numpy(), rtol=0, atol=1e-5)
    assert embedder(table.slice(0, 0)).schema.equals(alone.schema)


@pytest.mark.slow  # Ray takes some 15 seconds to start
@pytest.mark.filterwarnings("ignore")
def test_in_ray(survey_model, tmp_path):
    ray = pytest.importorskip("ray")
    pq.write_table(nested(30), tmp_path / "survey.parquet")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        data = ray.data.read_parquet(str(tmp_path / "survey.parquet"))
        found = data.map_batches(
            Embedder, fn_constructor_args=[str(survey_model)], batch_format="pyarrow", batch_size=7, concurrency=1
        ).to_pandas()
    finally:
        ray.shutdown()
    alone = embed_table(nested(30), survey_model).to_pandas()
    found = found.sort_values("id")
    np.testing.assert_allclose(found["e0"].to_numpy(), alone["e0"].to_numpy(), rtol=0, atol=1e-5)
