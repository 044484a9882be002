"""rotarymae features: a table of named numbers for each series."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from conftest import command
from rotarymae import SeriesDataset
from rotarymae.partners import features

LAYOUT = ["--id", "star", "--time", "day", "--channel", "band", "--values", "flux", "--errors", "flux_err"]


def test_a_redshift_in_the_objects_table_puts_light_curves_at_rest(tmp_path, capsys):
    draw = np.random.default_rng(0)
    rows = [(star, t, band, draw.normal() + 5, 0.5) for star in ("b", "a") for t in range(0, 60, 10) for band in "gr"]
    frame = pd.DataFrame(rows, columns=["star", "day", "band", "flux", "flux_err"])
    frame.to_csv(tmp_path / "stars.csv", index=False)
    pd.DataFrame({"star": ["a", "b"], "z": [1.0, 0.25]}).to_csv(tmp_path / "objects.csv", index=False)
    spans = []
    for name, options in (("plain", []), ("rest", ["--objects", tmp_path / "objects.csv", "--static", "z"])):
        out = tmp_path / f"{name}.parquet"
        assert command("features", tmp_path / "stars.csv", *LAYOUT, *options, "--out", out) == 0
        spans.append(pq.read_table(out).to_pandas().set_index("star")["curve: flux span"])
    said = capsys.readouterr().err
    assert "not corrected for redshift and dust" in said and "corrected by 'z'" in said
    assert [dict(one) for one in spans] == [{"a": 50, "b": 50}, {"a": 25, "b": 40}]


def test_the_table_has_the_features_of_each_series(tmp_path):
    draw = np.random.default_rng(0)
    rows = [(star, t, band, draw.normal(), 0.5) for star in ("b", "a") for t in range(6) for band in "gr"]
    frame = pd.DataFrame(rows, columns=["star", "day", "band", "flux", "flux_err"])
    table, out = tmp_path / "stars.csv", tmp_path / "features.parquet"
    frame.to_csv(table, index=False)
    assert command("features", table, *LAYOUT, "--out", out) == 0
    data = SeriesDataset.from_frame(frame, id="star", time="day", channel="band", values=["flux", "flux_err"])
    numbers, names = features(data)
    written = pq.read_table(out).to_pandas()
    assert written.columns.tolist() == ["star", *names] and written.star.tolist() == ["b", "a"]
    np.testing.assert_allclose(written[list(names)].to_numpy(float), numbers, rtol=1e-9)
    assert command("features", table, *LAYOUT, "--out", out) == 2  # it is there already
