"""A table in, a table out: in parts the same answers as at once, one row per series, in order, ids of their type."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rotarymae
from conftest import command, refuses, two_kinds
from rotarymae.errors import InputWarning
from rotarymae.pipeline import Pipeline
from rotarymae.prediction import embed
from rotarymae.queries import QueryTable
from rotarymae.scale import answer_arrow, answers, embed_table, importances, predictions, values
from rotarymae.scale.tables import answer_table
from rotarymae.series import SeriesDataset
from rotarymae.tables import read


def predict_table(table, model, layout=None, predictor="auto"):
    pipeline = model if isinstance(model, Pipeline) else Pipeline.load(model)
    return answer_arrow(predictions(pipeline, predictor), table, layout)


def interpolate_table(table, model, layout=None, points=100, times=(), at=None):
    pipeline = Pipeline.load(model).pretrained
    asked = None if at is None else QueryTable.of(at, layout or pipeline.layout())
    return answer_arrow(values(pipeline, points, times, asked), table, layout)


def stars():
    """The long table of `fitted`, series after series."""
    rows, _ = two_kinds()
    return pa.table(dict(zip(("star", "day", "band", "flux"), map(list, zip(*rows, strict=True)), strict=True)))


def nested(table):
    """The same with one row per star, ids of int32, and a star without observations in the middle."""
    grouped = table.group_by("star", use_threads=False).aggregate([(c, "list") for c in ("day", "band", "flux")])
    lists = [{k: row[f"{k}_list"] for k in ("day", "band", "flux")} for row in grouped.to_pylist()]
    lists.insert(5, {"day": [], "band": [], "flux": []})
    return pa.table({"star": pa.array(range(len(lists)), pa.int32()), "lc": lists})


def layout(run):
    changed = {"time": "lc.day", "channel": "lc.band", "values": ("lc.flux",)}
    return Pipeline.load(run).pretrained.layout(changed)


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(read, "PART", 40)


def close(one, other):
    assert one.column_names == other.column_names and one.schema.equals(other.schema) and len(one) == len(other)
    for name in one.column_names:
        if pa.types.is_floating(one[name].type):
            np.testing.assert_allclose(np.array(one[name]), np.array(other[name]), rtol=3e-6, atol=1e-5)
        else:
            assert one[name].equals(other[name])


def test_embeddings_are_those_of_the_data_set(fitted, small_parts):
    table, run = stars(), fitted / "run"
    data = SeriesDataset.from_frame(table, "star", "day", "band", ["flux"])
    found = embed_table(table, run)
    assert found["star"].to_pylist() == data.ids.tolist() and found["star"].type == pa.string()
    vectors = np.stack([np.array(found[f"e{i}"]) for i in range(found.num_columns - 1)], axis=1)
    wanted = embed(Pipeline.load(run).pretrained, data)
    assert (np.linalg.norm(vectors - wanted, axis=1) <= 1e-6 * np.linalg.norm(wanted, axis=1)).all()
    tuned = embed_table(table, run, stage="finetuned", pool="cls")
    assert not np.allclose(np.array(tuned["e0"]), vectors[:, 0])


def test_the_command_predicts_in_the_precision_that_is_asked_for(fitted, tmp_path):
    vectors = []
    for name in ("auto", "fp32", "bf16"):
        out = tmp_path / f"{name}.parquet"
        assert command("embed", fitted / "run", fitted / "stars.csv", "--out", out, "--precision", name) == 0
        vectors.append(np.array(pq.read_table(out)["e0"]))
    auto, exact, rough = vectors
    assert np.array_equal(auto, exact) and 0 < np.abs(rough - exact).max() < 0.05


JOBS = {
    "embed": embed_table,
    "predict": predict_table,
    "interpolate": lambda *arguments: interpolate_table(*arguments, points=5),
    "times": lambda *arguments: interpolate_table(*arguments, times=[1, "2.5"]),
}


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("how", ["series after series", "in any order"])
def test_parts_change_nothing(fitted, monkeypatch, job, how):
    table, run = stars(), fitted / "run"
    if how == "in any order":
        table = table.take(pa.array(np.random.default_rng(0).permutation(len(table))))
        monkeypatch.setattr("rotarymae.tables.read.READ", 40)
    with pytest.warns(InputWarning) if how == "in any order" else _quietly():
        at_once = JOBS[job](table, run)
        monkeypatch.setattr(read, "PART", 40)
        monkeypatch.setattr("rotarymae.scale.answers.QUERIES_AT_ONCE", 30)
        close(JOBS[job](table, run), at_once)
    ids = at_once["star"].unique()
    assert ids.equals(table["star"].unique())


def _quietly():
    import contextlib

    return contextlib.nullcontext()


@pytest.mark.parametrize("job", JOBS)
def test_nested_tables_ids_and_series_without_observations(fitted, small_parts, job):
    """The row of a series without observations stands where the series does."""
    run, table = fitted / "run", nested(stars())
    with pytest.warns(InputWarning, match="1 series have no observation"):
        if job == "predict":
            changed = {"time": "lc.day", "channel": "lc.band", "values": ("lc.flux",)}
            found = predict_table(table, run, Pipeline.load(run).layout(changed))
        else:
            found = JOBS[job](table, run, layout(run))
    assert found["star"].type == pa.int32() and found["star"].unique().to_pylist() == list(range(25))
    empty = found.filter(pc.equal(found["star"], 5))
    assert len(empty) == 1 and empty.drop(["star"]).to_pylist()[0] == dict.fromkeys(found.column_names[1:])
    rest = found.filter(pc.not_equal(found["star"], 5)).drop(["star"])
    close(rest, JOBS[job](stars(), run).drop(["star"]))


def test_a_pipeline_is_loaded_once_for_many_tables(fitted):
    run, table = fitted / "run", stars()
    pipeline = Pipeline.load(run)
    close(embed_table(table, pipeline.pretrained, pool="mean"), embed_table(table, run))
    close(predict_table(table, pipeline, predictor="model"), predict_table(table, run, predictor="model"))
    with refuses("pool='median'", "'mean'"):
        embed_table(table, pipeline, pool="median")  # pyright: ignore
    with refuses("MaskedAutoencoder", "not fine-tuned"):
        predict_table(table, pipeline.pretrained)


@pytest.mark.parametrize("parts", [False, True])
def test_a_table_of_times_asks_some_series_alone(fitted, monkeypatch, parts):
    if parts:
        monkeypatch.setattr(read, "PART", 40)
    at = pa.table({"star": ["star 20", "star 03", "star 20"], "day": [1.0, 2.0, 3.0], "band": ["g", "r", "g"]})
    found = interpolate_table(stars(), fitted / "run", at=at)
    at = at.append_column("note", pa.array(["a", "b", "c"]))
    found = interpolate_table(stars(), fitted / "run", at=at)
    for name in at.column_names:  # row for row in the order of the question, under its names
        assert found[name].to_pylist() == at[name].to_pylist()
    at = at.drop_columns(["note"])
    # Of series without observations those that are asked for have an empty row, and no others.
    blind = pa.table({"star": ["star x", "star y"], "day": [1.0, 1.0], "band": ["g", "g"], "flux": [None, None]})
    more = pa.concat_tables([stars(), blind.cast(stars().schema)])
    asked = pa.concat_tables([at, pa.table({"star": ["star y"], "day": [1.0], "band": ["g"]})])
    with pytest.warns(InputWarning, match="no observation"):
        found = interpolate_table(more, fitted / "run", at=asked)
    assert found["star"].to_pylist() == ["star 20", "star 03", "star 20", "star y"]
    assert found["flux"].null_count == 1 and found["flux"][3].as_py() is None
    unknown = pa.table({"star": ["star 20", "nobody"], "day": [1.0, 2.0], "band": ["g", "g"]})
    with refuses("table", "times", "'nobody'"):
        interpolate_table(stars(), fitted / "run", at=unknown)
    with refuses("no rows"):
        interpolate_table(stars(), fitted / "run", at=at.slice(0, 0))


def test_series_that_are_too_long_to_explain_have_no_importance(fitted, small_parts):
    pipeline, table = Pipeline.load(fitted / "run"), stars()
    lengths = {row["values"]: row["counts"] for row in table["star"].value_counts().to_pylist()}
    most = sorted(lengths.values())[12]
    limited = replace(pipeline, preprocessor=pipeline.require_series().replace(window=most))
    question = importances(limited)
    given = question, question.pipeline.reader(table, limited.layout())
    with pytest.warns(InputWarning, match=f"more than the {most} observations that the model reads at a time"):
        found = pa.concat_tables(answer_table(*given))
    rows = {row["values"]: row["counts"] for row in found["star"].value_counts().to_pylist()}
    assert rows == lengths and found["predicted"].null_count == 0
    assert found["importance"].null_count == sum(count for count in lengths.values() if count > most) > 0
    assert list(dict.fromkeys(found["star"].to_pylist())) == list(lengths)  # in order
    nothing = importances(replace(limited, preprocessor=limited.require_series().replace(window=2)))
    with pytest.warns(InputWarning, match="more than the 2 observations"):
        found = pa.concat_tables(answer_table(nothing, nothing.pipeline.reader(table, limited.layout())))
    assert found["importance"].null_count == len(found)


def test_an_empty_table_and_one_in_which_nothing_was_observed(fitted):
    run, table = fitted / "run", nested(stars())
    found = embed_table(table.slice(0, 0), run, layout(run))
    assert len(found) == 0 and found.schema.equals(embed_table(table.slice(0, 1), run, layout(run)).schema)
    found = embed_table(table.slice(5, 1), run, layout(run))
    assert found["star"].to_pylist() == [5] and found["e0"].to_pylist() == [None]
    with refuses("no value was observed"):
        interpolate_table(table.slice(5, 1), run, layout(run))
    with refuses("no rows"):
        interpolate_table(table.slice(0, 0), run, layout(run))
    assert values(Pipeline.load(run)).schema is None


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_command_writes_parts_as_one_table(fitted, tmp_path, small_parts, capsys, suffix):
    pq.write_table(nested(stars()), tmp_path / "stars.parquet", row_group_size=4)
    roles = ["--time", "lc.day", "--channel", "lc.band", "--values", "lc.flux"]
    out = tmp_path / f"out.{suffix}"
    assert command("embed", fitted / "run", tmp_path / "stars.parquet", "--out", out, *roles) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "24 embeddings of 24 numbers" in said and "1 series without observations have an empty row" in said
    if suffix == "parquet":
        with pytest.warns(InputWarning):
            close(pq.read_table(out), embed_table(nested(stars()), fitted / "run", layout(fitted / "run")))
    # Nothing at all was observed: there is nothing to write.
    pq.write_table(nested(stars()).slice(5, 1), tmp_path / "none.parquet")
    assert command("embed", fitted / "run", tmp_path / "none.parquet", "--out", tmp_path / "none.csv", *roles) == 2
    assert "in 1 series (5)" in capsys.readouterr().err and not (tmp_path / "none.csv").exists()
    pq.write_table(nested(stars()).slice(0, 0), tmp_path / "empty.parquet")
    assert command("embed", fitted / "run", tmp_path / "empty.parquet", "--out", tmp_path / "none.csv", *roles) == 2
    assert "no rows" in capsys.readouterr().err and not (tmp_path / "none.csv").exists()


def test_warnings_of_parts_are_told_once(fitted, small_parts):
    table = stars()
    late = table.set_column(1, "day", pc.multiply(table["day"], 1000.0))
    with pytest.warns(InputWarning) as raised:
        embed_table(late, fitted / "run")
    far = [warning.message for warning in raised if "extrapolations; do not rely on them" in str(warning.message)]
    assert len(far) == 1 and "more warnings are like this" in str(far[0]) and far[0].code == "far-times"


def test_a_table_without_rows_has_the_columns_of_one_with_rows(fitted):
    table = stars()
    table = table.set_column(0, "star", table["star"].dictionary_encode())
    some, none = embed_table(table, fitted / "run"), embed_table(table.slice(0, 0), fitted / "run")
    assert len(pa.concat_tables([some, none], promote_options="permissive")) == len(some)
    assert not pa.types.is_dictionary(none["star"].type)


def test_any_series_writes_values_some_observations_at_a_time_and_in_order(monkeypatch):
    model, times = rotarymae.load("any-series"), np.linspace(0, 9, 20)
    curves = np.concatenate([np.sin(times + i) for i in range(5)])
    table = pa.table({"id": np.repeat(np.arange(5), 20), "time": np.tile(times, 5), "value": curves})
    reader = model.reader(table, model.layout())
    (whole,) = answer_table(values(model, 3), reader)
    monkeypatch.setattr(answers, "UNTRAINED_AT_A_TIME", 40)
    parts = list(answer_table(values(model, 3), reader))
    assert [len(part) for part in parts] == [6, 6, 3]
    together = pa.concat_tables(parts)
    assert together["id"].equals(whole["id"]) and np.allclose(together["value"], whole["value"], atol=1e-5)


def test_times_of_series_without_observations_alone_are_refused_for_what_they_are():
    table = pa.table({"id": [1, 1, 2], "time": [0.0, 1.0, 0.0], "value": [1.0, 2.0, None]})
    with pytest.warns(InputWarning, match="no observation"), refuses("none of the series in the table of queries"):
        interpolate_table(table, "any-series", at=pa.table({"id": [2], "time": [0.5]}))
