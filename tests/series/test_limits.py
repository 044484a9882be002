"""Limits: values that are only known to lie below or above a number, from the table to features, loss and answers."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from _runs import FIT
from conftest import refuses
from rotarymae import RoMAEClassifier, RoMAEInterpolator, SeriesDataset, load
from rotarymae.calibration import calibrate
from rotarymae.errors import InputWarning
from rotarymae.interpolation import interpolate
from rotarymae.likelihoods import LIKELIHOODS
from rotarymae.metrics import MEDIAN_ERROR, RMSE, SCALED_RMSE
from rotarymae.partners import features
from rotarymae.plots import interpolation
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor
from rotarymae.queries import as_queries, grid
from rotarymae.report.pictures import draw_by_distance
from rotarymae.scoring import compare_at_hidden
from rotarymae.series import cells, hide, mapped, measured
from rotarymae.series import dataset as dataset_file
from rotarymae.tables import open_source, propose, read
from rotarymae.tables.schema import TableSchema
from rotarymae.train import pretrain

pytestmark = pytest.mark.filterwarnings("ignore:.*are limits, and are left out")
CELLS = {
    "<0.01": (0.01, -1),
    "< 5": (5.0, -1),
    "≤3": (3.0, -1),
    "<=.5": (0.5, -1),
    ">200": (200.0, 1),
    "≥ 1,5": (1.5, 1),
    ">= 2": (2.0, 1),
    "<1e-3": (1e-3, -1),
    "<-2": (-2.0, -1),
    "< −2": (-2.0, -1),
    "<5.": (5.0, -1),
    "1.5": (1.5, 0),
}


def censored(series=40, each=16, limit=0.0, seed=0, channels=("",), mean=0.5):
    """A frame of draws from a normal distribution with standard deviation 1; what is below the limit is "<0.0"."""
    draw, rows = np.random.default_rng(seed), []
    for i in range(series):
        for channel in channels:
            for time in np.sort(draw.uniform(0, 30, each)):
                value = draw.normal(mean)
                rows.append((i, time, channel, f"<{limit}" if value < limit else repr(value)))
    return pd.DataFrame(rows, columns=["id", "time", "band", "value"]).sort_values(["id", "time"], ignore_index=True)


def dataset(**options) -> Any:
    return SeriesDataset.from_frame(censored(), **options)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_is_a_limit_by_its_mark(cell):
    read_cells = cells.numbers(pa.array([cell, "7" if "," in cell else "7.5", "low", "<x"]), "value", limits=True)
    value, side = CELLS[cell]
    assert read_cells.values[0] == value and read_cells.words == {"low": 1, "<x": 1}
    assert (0 if read_cells.sides is None else read_cells.sides[0]) == side


def test_a_column_may_hold_limits_alone_and_units_and_other_words():
    only = cells.numbers(pa.array(["<1", ">2"]), "value", limits=True)
    assert only.values.tolist() == [1, 2] and only.sides is not None and only.sides.tolist() == [-1, 1]
    units = cells.numbers(pa.array(["5.1 mg/dL", "<0.5 mg/dL"]), "value", limits=True)
    assert units.values.tolist() == [5.1, 0.5] and units.sides is not None and units.sides.tolist() == [0, -1]
    dropped = cells.numbers(pa.array(["5.1", "<0.5"]), "value")
    assert math.isnan(dropped.values[1]) and dropped.words == {"<0.5": 1} and dropped.sides is None


@pytest.mark.parametrize("suffix", ["csv", "parquet", "frame"])
def test_limits_are_read_from_any_table(suffix, tmp_path):
    table = censored()
    source: Any = table
    if suffix == "csv":
        table.to_csv(source := tmp_path / "t.csv", index=False)
    elif suffix == "parquet":
        table.to_parquet(source := tmp_path / "t.parquet")
    data = SeriesDataset.from_file(source)
    expected = table.value.str.startswith("<").to_numpy()
    assert data.sides is not None and data.sides.dtype == np.int8
    assert (data.sides[:, 0] == -expected.astype(int)).all() and (data.values[expected] == 0).all()
    assert data.reading is not None and data.reading.limits == {"value": int(expected.sum())}
    assert f"limits: {expected.sum():,} of 'value'" in str(data.reading)
    assert np.isnan(measured(data)[expected]).all() and (measured(data)[~expected] > 0).all()
    assert SeriesDataset.from_frame(data.to_arrow()).fingerprint() == data.fingerprint()
    assert replace(data, sides=None).fingerprint() != data.fingerprint()
    numbers = SeriesDataset.from_frame(table[~expected].astype({"value": float}))
    assert numbers.sides is None


def test_numbers_and_limits_are_read_next_to_each_other_and_with_decimal_commas(tmp_path):
    mixed = pd.DataFrame({"id": 0, "time": range(4), "value": [1.5, "<0.01", None, ">2"]})
    data = SeriesDataset.from_frame(mixed)
    assert data.values.ravel().tolist() == [1.5, 0.01, 2.0] and data.sides.ravel().tolist() == [0, -1, 1]  # pyright: ignore
    with refuses("mixed type"):
        SeriesDataset.from_frame(mixed.fillna("one"))
    (tmp_path / "t.csv").write_text("id;time;value\n0;0;1,5\n0;1;<0,5\n0;2;≥ 1.200,5\n")
    german = SeriesDataset.from_file(tmp_path / "t.csv")
    assert german.values.ravel().tolist() == [1.5, 0.5, 1200.5] and german.sides.ravel().tolist() == [0, -1, 1]  # pyright: ignore


def test_a_column_of_errors_is_a_channel_of_a_wide_table():
    table = pd.DataFrame({"id": 0, "time": [0, 1], "flux": [1.0, 2.0], "flux_err": [0.1, 0.2]})
    data = SeriesDataset.from_frame(table, wide=True)
    assert data.channel_names == ("flux", "flux_err") and data.values.ravel().tolist() == [1, 0.1, 2, 0.2]
    assert data.error_of == {}


def test_a_wide_table_has_limits_in_its_cells():
    table = pd.DataFrame({"id": 0, "time": [0, 1, 2], "a": ["1", "<0.5", ""], "b": [">9", "8", "7"]})
    data = SeriesDataset.from_frame(table, wide=True)
    assert data.channels is not None and data.channels.tolist() == [0, 1, 0, 1, 1]
    assert data.sides is not None and data.sides.ravel().tolist() == [0, 1, -1, 0, 0]
    joined = SeriesDataset.from_frame(table[:2], wide=True, tokens="time")
    assert joined.sides is not None and joined.sides.tolist() == [[0, 1], [-1, 0]]
    one = joined.with_values(["b"])
    assert one.sides is not None and one.sides.tolist() == [[1], [0]]


MAGNITUDES = {"mag": True, "Magnitude": True, "lc.magpsf": True, "Vmag": True, "limitingmag_2": True}
MAGNITUDES |= {"magnetic field": False, "image": False, "Magnesium (mg/L)": False, "value": False}


@pytest.mark.parametrize("name", MAGNITUDES)
@pytest.mark.parametrize("wide", [False, True])
def test_less_than_a_magnitude_is_fainter_and_thus_a_lower_limit(name, wide):
    table = pd.DataFrame({"id": 0, "time": range(4), name: ["12.5", "<12.6", "≤ 13", ">14"]})
    data = SeriesDataset.from_frame(table, **({"wide": True} if wide else {"values": [name]}))
    assert data.sides is not None and data.reading is not None and data.values.ravel().tolist() == [12.5, 12.6, 13, 14]
    assert data.sides.ravel().tolist() == ([0, 1, 1, 1] if MAGNITUDES[name] else [0, -1, -1, 1])
    assert any("means fainter: a lower limit" in note for note in data.reading.notes) == MAGNITUDES[name]
    plain = SeriesDataset.from_frame(
        table[table.index != 1].drop(2), **({"wide": True} if wide else {"values": [name]})
    )
    assert plain.sides is not None and plain.sides.ravel().tolist() == [0, 1] and not plain.reading.notes  # pyright: ignore


def ztf(rows=400):
    """Alerts and non-detections in ZTF's columns."""
    draw = np.random.default_rng(0)
    magnitude = draw.normal(20, 1, rows)
    limit = 20.5 + 0.1 * draw.normal(size=rows)
    seen = magnitude < limit
    return pd.DataFrame(
        {
            "oid": np.arange(rows) // 20,
            "jd": 2_459_000 + np.arange(rows) % 20 + draw.uniform(0, 0.5, rows).round(4),
            "fid": 1,
            "magpsf": np.where(seen, magnitude, np.nan),
            "sigmapsf": np.where(seen, 0.1, np.nan),
            "diffmaglim": limit,
        }
    )


ZTF: Any = {"id": "oid", "time": "jd", "channel": "fid", "values": ["magpsf"], "errors": ["sigmapsf"]}


def test_a_column_of_limits_counts_where_the_value_is_missing():
    table = ztf()
    data = SeriesDataset.from_frame(table, **ZTF, lower_limits=["diffmaglim"])
    absent = table.magpsf.isna().to_numpy()
    assert len(data.times) == len(table) and data.reading is not None and not data.reading.dropped
    assert data.sides is not None and (data.sides[:, 0] == absent).all() and not data.sides[:, 1].any()
    assert (data.values[absent, 0] == table.diffmaglim[absent]).all() and (data.values[absent, 1] == 0).all()
    assert (data.values[~absent, 0] == table.magpsf[~absent]).all() and (data.values[~absent, 1] == 0.1).all()
    upper = SeriesDataset.from_frame(table, **ZTF, upper_limits=["diffmaglim"])
    assert upper.sides is not None and (upper.sides[:, 0] == -absent.astype(int)).all()
    dropped = SeriesDataset.from_frame(table, **ZTF, lower_limits=["diffmaglim"], limits="drop")
    assert dropped.sides is None and len(dropped.times) == (~absent).sum()
    with refuses("limits 'diffmaglim' belong to single observations"):
        TableSchema(values=("a", "b"), wide=True, lower_limits=("diffmaglim",))
    with refuses("2 columns of limits for 1 of values"):
        TableSchema(values=("a",), lower_limits=("b", "c"))
    with refuses("'a' have upper limits 'b' and lower limits 'c'"):
        TableSchema(values=("a",), upper_limits=("b",), lower_limits=("c",))


@pytest.mark.parametrize("side, other", [("upper_limits", "lower_limits"), ("lower_limits", "upper_limits")])
def test_a_side_that_is_given_takes_the_place_of_the_models(side, other):
    schema = TableSchema.resolve({side: ("a",)}, {other: ("b",)})
    assert (getattr(schema, side), getattr(schema, other)) == (("a",), ())


@pytest.mark.parametrize("option", ["id", "time", "channel", "errors", "lower_limits"])
def test_a_wrong_option_is_refused_before_the_rows_are_looked_at(option, tmp_path):
    (tmp_path / "t.csv").write_text("id,time,value\n0,0,low\n0,1,high\n")
    given: Any = {option: "nope" if option in ("id", "time", "channel") else ("nope",)}
    with refuses(f"no column 'nope'; name the right one by --{option.replace('_', '-')}"):
        propose(open_source(tmp_path / "t.csv"), TableSchema(**given), {option})


@pytest.mark.filterwarnings("ignore:1 observed values are dropped")
@pytest.mark.parametrize("wide", [False, True])
def test_a_bound_of_an_error_is_no_error_and_is_left_out(wide):
    table = pd.DataFrame({"id": 0, "time": [0, 1, 2], "f": ["1", "<2", "3"], "f_err": ["<0.1", "0.2", "0.3"]})
    how: Any = {"wide": True, "tokens": "time"} if wide else {"values": ["f"], "errors": ["f_err"]}
    with pytest.warns(InputWarning, match="1 cells of 'f_err' cannot be read: '<0.1' 1; they are left out"):
        data = SeriesDataset.from_frame(table, **how)
    assert data.values.tolist() == [[2, 0.2], [3, 0.3]] and data.reading.limits == {"f": 1}  # pyright: ignore


def test_info_proposes_a_column_of_limits_and_its_side(tmp_path):
    ztf().to_csv(tmp_path / "ztf.csv", index=False)
    proposal = propose(open_source(tmp_path / "ztf.csv"), TableSchema(), set())
    assert proposal.schema.lower_limits == ("diffmaglim",) and not proposal.schema.upper_limits
    assert proposal.schema.values == ("magpsf",) and proposal.schema.errors == ("sigmapsf",)
    assert proposal.remarks["diffmaglim"].startswith("where 'magpsf' is missing, it lies above")
    lab = ztf().rename(columns={"magpsf": "value", "diffmaglim": "detection_limit"})
    lab.to_csv(tmp_path / "lab.csv", index=False)
    assert propose(open_source(tmp_path / "lab.csv"), TableSchema(), set()).schema.upper_limits == ("detection_limit",)
    ztf().fillna({"magpsf": 20.0}).to_csv(tmp_path / "full.csv", index=False)
    full = propose(open_source(tmp_path / "full.csv"), TableSchema(), set())
    assert not full.schema.lower_limits and full.remarks["diffmaglim"].startswith("a detection limit")


@pytest.mark.parametrize("of_series", [False, True])
def test_one_limit_for_a_table_or_a_series_is_proposed_and_is_no_fact(of_series, tmp_path):
    table = ztf()
    table["diffmaglim"] = 20.0 + of_series * table.oid / 100
    table.loc[(table.magpsf > table.diffmaglim) | (table.oid == 3), ["magpsf", "sigmapsf"]] = np.nan
    table.to_csv(tmp_path / "ztf.csv", index=False)
    schema = propose(open_source(tmp_path / "ztf.csv"), TableSchema(), set()).schema
    assert schema.lower_limits == ("diffmaglim",) and schema.static == ()
    data = read.read_table(tmp_path / "ztf.csv", schema)
    assert data.sides is not None and data.reading is not None and data.reading.doubts == {}
    assert (data.values[data.sides[:, 0] != 0, 1] == 0).all()  # also in a series of limits alone


def test_marks_in_a_column_of_their_own_are_said(tmp_path):
    table = censored()
    table["remark"] = table.value.str.extract("(<)")[0]
    table.assign(value=table.value.str.strip("<"), blank=" ").to_csv(tmp_path / "t.csv", index=False)
    proposal = propose(open_source(tmp_path / "t.csv"), TableSchema(), set())
    assert proposal.remarks["remark"].startswith("says which values are limits")


def test_a_table_larger_than_memory_has_the_same_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "READ", 100)
    monkeypatch.setattr(mapped, "MAPPED_CHUNK", 100)
    monkeypatch.setattr(mapped, "SAMPLE", 200)
    monkeypatch.setattr(dataset_file, "SAMPLE", 200)
    table = censored()
    table.loc[table.id > 20, "value"] = "1.5"  # parts without any limit
    table.to_csv(tmp_path / "t.csv", index=False)
    whole, large = SeriesDataset.from_file(tmp_path / "t.csv"), SeriesDataset.from_file(tmp_path / "t.csv", memory=1)
    assert mapped.is_mapped(large.times) and large.sides is not None and mapped.is_mapped(large.sides)
    assert large.fingerprint() == whole.fingerprint() and (large.sides == whole.sides).all()
    table.loc[:, "value"] = "1.5"
    table.to_csv(tmp_path / "t.csv", index=False)
    assert SeriesDataset.from_file(tmp_path / "t.csv", memory=1).sides is None


def test_selections_keep_limits_and_duplicates_are_not_averaged_with_them():
    data = dataset()
    assert data.sides is not None
    assert (data.select([3, 1])[1].sides == data[1].sides).all()
    kept = data.sides[:, 0] == 0
    assert not data.mask_observations(kept).sides.any()  # pyright: ignore
    rows = [(0, 0, "<1"), (0, 0, "3"), (0, 1, "2"), (0, 1, "4"), (0, 2, "<2"), (0, 2, "<2"), (0, 3, "2"), (0, 3, "<2")]
    table = pd.DataFrame(rows, columns=["id", "time", "value"])
    mean = SeriesDataset.from_frame(table, duplicates="mean")
    assert mean.values.ravel().tolist() == [1, 3, 2, 2] and mean.sides.ravel().tolist() == [-1, 0, -1, 0]  # pyright: ignore
    with refuses("there are 2 observations"):
        SeriesDataset.from_frame(table[table.time == 3])


def test_limits_are_no_code_for_missing_and_no_fact():
    table = censored(limit=-1e6, mean=0.0)
    table.loc[::20, "value"] = "<-1000000"
    data = SeriesDataset.from_frame(table)
    assert data.reading is not None and not data.reading.doubts
    facts = pd.DataFrame([(0, "", "k", "<5"), (1, "", "k", "6"), (0, "1", "x", "1"), (1, "1", "x", "2")])
    facts.columns = ["id", "time", "name", "value"]
    read = cells.numbers(pa.array(["<5", "5", "6"]), "value", ["5"], limits=True)
    np.testing.assert_array_equal(read.values, [5, np.nan, 6])
    static = SeriesDataset.from_frame(facts, channel="name", untimed="static").static["k"]
    assert math.isnan(static[0]) and static[1] == 6


# ── the likelihood ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["gaussian", "student_t"])
def test_the_censored_likelihood_finds_the_mean_and_spread_that_dropping_misses(kind):
    draw = np.random.default_rng(0)
    values, limit = torch.from_numpy(draw.normal(0.5, 1.0, 2000)), 0.0
    sides = torch.where(values < limit, -1.0, 0.0).double()
    target, likelihood = values.clamp(min=limit), LIKELIHOODS[kind]

    def fitted(target, sides):
        raw = torch.zeros(likelihood.outputs, dtype=torch.float64)
        raw[2:] = 20.0  # degrees of freedom, of a t that is nearly normal
        optimizer = torch.optim.LBFGS([raw.requires_grad_()], max_iter=40, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = likelihood.loss(raw.expand(len(target), -1), target, sides=sides).mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        return likelihood.mean(raw.detach()).item(), likelihood.std(raw.detach()).item()

    mean, std = fitted(target, sides)
    assert abs(mean - 0.5) < 0.06 and abs(std - 1.0) < 0.06
    kept = sides == 0
    mean, std = fitted(target[kept], sides[kept])
    assert mean > 0.95 and std < 0.75  # those above 0 have the mean 1.01 and the deviation 0.70


def test_a_fit_with_limits_has_the_true_mean_and_spread_calibrated_or_not():
    data, dropped = dataset(), dataset(limits="drop")
    config, answers = replace(FIT, likelihood="gaussian", pretrain_epochs=12, min_steps=0), {}
    for part in (data, dropped):
        pipeline = pretrain(part, config).pipeline
        for calibration in (None, calibrate(pipeline, part)):
            answer = interpolate(replace(pipeline, calibration=calibration), part, grid(part, 4))
            answers[part is data, calibration is None] = answer.mean.mean(), np.mean(answer.std)  # pyright: ignore
    for raw in (True, False):
        mean, std = answers[True, raw]
        assert abs(mean - 0.5) < 0.15 and abs(std - 1.0) < 0.15
        mean, std = answers[False, raw]
        assert mean > 0.85 and std < 0.8


# ── in a model ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_token_says_that_it_is_a_limit_and_a_hidden_one_is_scored_as_such():
    data = dataset()
    known = ObservationPreprocessor.fit(data)
    plain = ObservationPreprocessor.fit(dataset(limits="drop"))
    assert known.limits and not plain.limits and (known.input_features, plain.input_features) == (1, 0)
    for name in ("centre", "width", "mean", "std"):  # limits are not values
        assert getattr(known.values, name).equal(getattr(plain.values, name))
    batch = DatasetExamples(data, known, masking=FIT.strategy("observations")).batch(np.arange(8), 0)
    assert batch.masked is not None and batch.sides is not None and (batch.sides == -1).any()
    shown = batch.inputs
    assert shown.observed is not None and (shown.observed[shown.real] == (shown.values[..., 1:] == 0)[shown.real]).all()
    assert batch.masked.observed is None
    values = torch.tensor(known.values.transform(np.zeros((1, 1)), np.zeros(1, int)))
    limits = shown.real & (shown.values[..., 1] == -1)
    assert torch.allclose(shown.values[..., 0][limits], values.float().squeeze())


def test_a_model_answers_tables_with_and_without_limits(tmp_path):
    frame = censored(series=24)
    model = RoMAEInterpolator(depth=1, decoder_depth=1, pretrain_epochs=1, min_steps=0, likelihood="gaussian")
    model.fit(frame)
    model.save(tmp_path / "model")
    pipeline = load(tmp_path / "model")
    at = [1.0, 20.0]
    of_limits = pipeline.interpolate(frame, at)
    assert np.array_equal(of_limits, model.predict(frame, at=at))
    limits = SeriesDataset.from_frame(frame)
    with refuses("all hidden values are limits"):
        model.score(replace(limits, sides=-np.ones(limits.values.shape, np.int8)))
    plain = frame[~frame.value.str.startswith("<")]
    assert np.isfinite(pipeline.interpolate(plain, at)).all()
    assert not np.array_equal(of_limits, pipeline.interpolate(frame.assign(value=frame.value.str.strip("<")), at))
    numbers = RoMAEInterpolator(depth=1, decoder_depth=1, pretrain_epochs=1, min_steps=0).fit(
        plain.astype({"value": float})
    )
    with pytest.warns(InputWarning, match="are limits, and are left out; models"):
        left_out = numbers.predict(frame, at=at)
    assert np.array_equal(left_out, numbers.predict(plain, at=at))
    with pytest.warns(InputWarning, match="limits are left out"):
        assert np.array_equal(left_out, numbers.predict(SeriesDataset.from_frame(frame), at=at))
    with refuses('the data set has limits (values such as "<5"), and the model was trained without'):
        numbers.pipeline_.preprocessor.check(SeriesDataset.from_frame(frame))
    with refuses("limits belong to single observations, and join_times"):
        RoMAEInterpolator(channel="band", join_times=True).fit(frame.assign(band="g"))


def test_features_of_limits_are_there_only_where_the_table_has_limits():
    data = SeriesDataset.from_frame(censored(channels=("g", "r")), channel="band")
    table, names = features(data)
    plain, plain_names = features(
        SeriesDataset.from_frame(censored(channels=("g", "r")), channel="band", limits="drop")
    )
    of_limits = [name for name in names if "limit" in name]
    assert [name for name in names if name not in of_limits] == list(plain_names)
    assert len(of_limits) == 8 and not any("limit" in name for name in plain_names)
    columns = dict(zip(names, table.T, strict=True))
    limits = np.array([(one.sides[one.channels == 0] == -1).mean() for one in data])  # pyright: ignore
    assert np.allclose(columns["g: value share of upper limits"], limits)
    assert (columns["g: value tightest upper limit"][limits > 0] == 0).all()
    assert np.isnan(columns["g: value tightest lower limit"]).all()
    assert np.allclose(columns["g: value min"], dict(zip(plain_names, plain.T, strict=True))["g: value min"])


def test_a_classifier_with_partners_reads_limits_and_tables_without(tmp_path):
    frame = censored(series=30)
    labels = {i: "ab"[i % 2] for i in range(30)}
    model = RoMAEClassifier(depth=1, decoder_depth=1, pretrain_epochs=1, finetune_epochs=1, min_steps=0)
    model.fit(frame, pd.Series(labels))
    plain = frame[~frame.value.str.startswith("<")].astype({"value": float})
    assert np.isfinite(model.predict_proba(frame)).all() and np.isfinite(model.predict_proba(plain)).all()


def test_a_limit_is_missed_by_as_much_as_a_prediction_lies_on_its_wrong_side():
    data = dataset()
    pipeline = pretrain(data, replace(FIT, likelihood="gaussian")).pipeline
    preprocessor, hidden = pipeline.require_series(), data.select([0, 1])
    answer = interpolate(pipeline, data.select([0, 1]), as_queries(hidden, preprocessor))
    side = hidden.sides[:, 0]  # pyright: ignore
    assert set(side.tolist()) == {-1, 0}
    for shift in (-2.0, 3.0):  # an upper limit is kept below, and missed above
        row = compare_at_hidden(preprocessor, hidden, answer, {"model": answer.mean, "other": hidden.values + shift})
        missed = np.where((side == 0) | (shift > 0), shift, 0)
        errors = row["value"]["methods"]["other"]
        assert errors[RMSE] == pytest.approx(np.sqrt((missed**2).mean()))
        assert errors[MEDIAN_ERROR] == pytest.approx(abs(shift))


def test_limits_count_and_are_in_no_band():
    data = dataset()
    pipeline = pretrain(data, replace(FIT, likelihood="gaussian")).pipeline
    visible, hidden, _ = hide(data, 0.25, seed=0)
    answer = interpolate(pipeline, visible, as_queries(hidden, pipeline.require_series()))
    row = compare_at_hidden(pipeline.require_series(), hidden, answer, {"model": answer.mean})["value"]
    limits = int((hidden.sides != 0).sum())  # pyright: ignore
    assert limits and row["limits"] == limits and row["hidden_observations"] == len(hidden.times)
    low, high = answer.bands[0.68]
    inside = ((hidden.values >= low) & (hidden.values <= high))[hidden.sides == 0]  # pyright: ignore
    assert row["share_inside_band"]["0.68"] == pytest.approx(inside.mean())
    assert np.isfinite(row["methods"]["model"][SCALED_RMSE])
    far = np.arange(len(hidden.times)) % 2 == 1  # limits only: no group that is compared
    distant = replace(answer, distance=np.where(far, 50.0, 0.1) * pipeline.require_series().positions.unit)
    mixed = replace(hidden, sides=-far[:, None].astype(np.int8))
    rows = compare_at_hidden(pipeline.require_series(), mixed, distant, {"model": answer.mean})["value"]["by_distance"]
    assert [(one["above"], one["hidden_observations"]) for one in rows] == [(0.0, len(far) // 2)]
    assert draw_by_distance(rows, 1.0).figure.axes
    scores = pipeline.anomaly_score(data)
    assert np.isfinite(scores).all()


def test_a_limit_is_drawn_as_an_arrow():
    times, sides = np.arange(6.0), np.array([0, 0, -1, -1, 1, 0])
    figure = interpolation(times, times, np.zeros(6, int), ("",), shown=[0], sides=sides)
    arrows = [line for line in figure.axes[0].lines if line.get_label() in ("upper limit", "lower limit")]
    assert [line.get_xdata().tolist() for line in arrows] == [[2, 3], [4]]  # pyright: ignore
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {"observed", "upper limit", "lower limit"}
