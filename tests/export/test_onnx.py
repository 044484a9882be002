"""Exported programs answer as the library does, in the table's units, for any number of series and observations."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from sklearn.base import clone

from conftest import command, patched, refuses
from rotarymae import RoMAEClassifier, RoMAEInterpolator, RoMAERegressor, SeriesDataset
from rotarymae.errors import InputWarning
from rotarymae.export import export_program, make_program, onnx
from rotarymae.export.onnx import LARGEST_DIFFERENCE, SHAPES, largest_difference, random_feeds
from rotarymae.queries import Queries

onnxruntime = pytest.importorskip("onnxruntime")
SMALL = {"embed_dim": 12, "num_heads": 1, "depth": 1, "decoder_embed_dim": 12, "decoder_num_heads": 1}
SMALL |= {"decoder_depth": 1, "pretrain_epochs": 1, "finetune_epochs": 1, "min_steps": 0, "predictor": "model"}
KINDS = ["x", "y", "z"] * 4


@pytest.fixture(scope="module")
def curves():
    """12 light curves in three bands at dates of today, of fluxes over decades, with errors and two static columns."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(4, 20, 12)
    times = [59_000 + np.sort(500 * draw.random(n)) for n in lengths]
    values = [np.stack([10 ** draw.uniform(0, 4, n), 1 + draw.random(n)], 1) for n in lengths]
    bands = [np.array(["g", "i", "r"])[draw.integers(0, 3, n)] for n in lengths]
    static = {"redshift": np.where(np.arange(12) % 5 == 1, np.nan, draw.random(12)), "kind": ["a", "b", "c"] * 4}
    return SeriesDataset.from_arrays(times, values, bands, value_names=["flux", "flux_err"], static=static)


@pytest.fixture(scope="module")
def fitted(curves, every_part):
    columns = {"static": ("redshift", "kind"), "transforms": {"flux": "asinh"}}
    with patched(every_part):
        return RoMAEClassifier(**SMALL, **columns).fit(curves, KINDS)


def tempered(pipeline, temperature):
    """The pipeline with another temperature of its model."""
    temperatures = pipeline.partners.temperatures | {"model": temperature}
    return dataclasses.replace(pipeline, partners=dataclasses.replace(pipeline.partners, temperatures=temperatures))


def programs_of(fitted):
    """Each program, with the pipeline that it is made of."""
    pretrained = fitted.pipeline_.pretrained
    for job in ("interpolate", "embed"):
        yield make_program(pretrained, job), pretrained
    predicting = tempered(fitted.pipeline_, 1.7)
    yield make_program(predicting, "predict"), predicting


def series_of(feeds, pipeline):
    """The inputs of a program as a data set."""
    known, mask = pipeline.preprocessor, feeds["mask"].numpy()
    given = {name: array.double().numpy() for name, array in feeds.items()}
    number, values = given.get("channel", np.zeros(mask.shape)).astype(int), given["values"]
    rows = [np.flatnonzero(row)[np.lexsort((number[i, row], given["time"][i, row]))] for i, row in enumerate(mask)]
    static = {}
    for k, column in enumerate(known.static if "static" in given else ()):
        codes, names = given["static"][:, k], column.categories
        static[column.name] = codes if names is None else np.array([names[int(code)] for code in codes], object)
    values, width = np.concatenate([values[i, row] for i, row in enumerate(rows)]), len(known.value_columns)
    sides = np.zeros((len(values), width), np.int8)
    sides[:, : values.shape[1] - width] = values[:, width:]
    return SeriesDataset(
        times=np.concatenate([given["time"][i, row] for i, row in enumerate(rows)]),
        values=values[:, :width],
        sides=sides if known.limits else None,
        offsets=np.concatenate([[0], np.cumsum(mask.sum(1))]),
        ids=np.arange(len(mask)),
        value_names=known.value_columns,
        channels=None
        if known.channel_names is None
        else np.concatenate([number[i, row] for i, row in enumerate(rows)]).astype(np.int32),
        channel_names=known.channel_names,
        static=static,
        positions=np.concatenate([given["position"][i, row] for i, row in enumerate(rows)])
        if known.position_names
        else None,
        position_names=known.position_names,
    )


def library(program, pipeline, feeds):
    """What the library answers for the same series, in the order of the program's outputs."""
    dataset, pipeline = series_of(feeds, pipeline), dataclasses.replace(pipeline, precision="fp32")
    if program.outputs[0] in ("probabilities", "predicted"):
        return [pipeline.outputs(dataset, "model")]
    if program.outputs[0] in ("embedding", "cls"):
        pools = (program.pool,) if program.outputs[0] == "embedding" else ("cls", "mean")
        return [pipeline.embed(dataset, pool) for pool in pools]
    times = feeds["query_time"].numpy()
    channel, where = feeds.get("query_channel"), feeds.get("query_position")
    queries = Queries(
        times.ravel(),
        None if channel is None else channel.numpy().ravel(),
        np.arange(len(times) + 1) * times.shape[1],
        positions=None if where is None else where.numpy().reshape(times.size, -1),
    )
    answer = pipeline.answer(dataset, queries)
    return [part.reshape(*times.shape, -1) for part in (answer.mean, answer.std) if part is not None]


def assert_as_the_library(program, pipeline, shape, closeness=1e-5):
    feeds = random_feeds(program, *shape)
    with torch.no_grad():
        found = program(feeds)
    found = found if isinstance(found, tuple) else (found,)
    for want, part in zip(library(program, pipeline, feeds), found, strict=False):
        assert np.abs(part.numpy() - want).max() <= closeness * np.abs(want).max()
    return feeds


def test_a_program_answers_as_the_library(fitted):
    raw = dataclasses.replace(fitted.pipeline_.pretrained, calibration=None)
    assert fitted.pipeline_.pretrained.calibration is not None
    for program, pipeline in (*programs_of(fitted), (make_program(raw, "interpolate"), raw)):
        for shape in SHAPES:
            assert_as_the_library(program, pipeline, shape)


def test_a_program_is_as_sure_as_the_library(fitted):
    """Where one class is nearly certain, and probabilities of others are as good as 0."""
    certain = copy.deepcopy(fitted.pipeline_.model)
    with torch.no_grad():
        certain.head[-1].bias[0] += 40
    pipeline = tempered(dataclasses.replace(fitted.pipeline_, model=certain), 2.5)
    assert_as_the_library(make_program(pipeline, "predict"), pipeline, SHAPES[0])


def test_programs_of_other_models(curves):
    """No channels, times from zero, no transform, and a regression."""
    plain = SeriesDataset.from_arrays([s.times - 59_000 for s in curves], [s.values[:, 0] for s in curves])
    targets = np.stack([np.arange(12.0), 1e3 * np.arange(12.0)], 1)
    model = RoMAERegressor(**SMALL, time_origin="zero", transforms={"value": "none"}, pool="mean").fit(plain, targets)
    for pipeline, job in ((model.pipeline_, "predict"), (model.pipeline_.pretrained, "interpolate")):
        feeds = assert_as_the_library(make_program(pipeline, job), pipeline, SHAPES[1], 1e-4)
        assert not {"channel", "query_channel", "static"} & set(feeds)


FEW_STEPS = {name: value for name, value in SMALL.items() if name not in ("finetune_epochs", "predictor")}
OPTIONS = {
    "joined times and positions": {"likelihood": "student_t", "join_times": True, "decoder_embed_dim": 18},  # 3 axes
    "errors, limits and neighbours": {"errors": ("flux_err",)},
    "no spread": {"likelihood": "point"},
}


@pytest.fixture(scope="module")
def interpolators(curves, every_part):
    """{kind: a pipeline that interpolates, calibrated}."""
    draw = np.random.default_rng(1)
    sides = draw.integers(-1, 2, curves.values.shape).astype(np.int8) * np.array([1, 0], np.int8)
    where = draw.uniform(40, 60, (len(np.unique(curves.times)), 2))[np.unique(curves.times, return_inverse=True)[1]]
    data = {
        "joined times and positions": dataclasses.replace(curves, positions=where, position_names=("lat", "lon")),
        "errors, limits and neighbours": dataclasses.replace(curves, sides=sides),
        "no spread": curves,
    }
    with patched(every_part):
        return {
            kind: RoMAEInterpolator(**FEW_STEPS | options).fit(data[kind]).pipeline_
            for kind, options in OPTIONS.items()
        }


@pytest.mark.parametrize("kind", OPTIONS)
def test_programs_of_joined_times_errors_limits_and_further_positions(interpolators, kind):
    pipeline = interpolators[kind]
    raw = dataclasses.replace(pipeline, calibration=None)
    assert pipeline.calibration is not None and pipeline.preprocessor.limits == ("limits" in kind)
    for job, one in (("interpolate", pipeline), ("interpolate", raw), ("embed", raw)):
        program = make_program(one, job)
        for shape in SHAPES[:2]:
            feeds = assert_as_the_library(program, one, shape, 1e-4)
        assert ("position" in feeds) == ("positions" in kind)


@pytest.fixture(scope="module")
def written(interpolators, tmp_path_factory):
    """Programs as ONNX files, with the difference that was measured in checking each.

    That of interpolation reads what lies next to a query; the one that predicts is the command's.
    """
    folder = tmp_path_factory.mktemp("programs")
    near = dataclasses.replace(interpolators["errors, limits and neighbours"], calibration=None)  # half of the export
    assert near.model.config.neighbours
    programs = {
        "interpolate": make_program(near, "interpolate"),
        "embed": make_program(interpolators["joined times and positions"], "embed"),
    }
    return {
        job: (program, folder / f"{job}.onnx", export_program(program, folder / f"{job}.onnx"))
        for job, program in programs.items()
    }


def assert_names(path, program):
    session = onnxruntime.InferenceSession(path)
    assert [given.name for given in session.get_inputs()] == list(program.needs)
    assert [given.name for given in session.get_outputs()] == list(program.outputs)
    assert path.stat().st_size < 1e6


def test_onnx_files_answer_as_the_library(written):
    for program, path, difference in written.values():
        assert difference < LARGEST_DIFFERENCE and len(SHAPES) == 3
        assert_names(path, program)
        with refuses("exists"):
            export_program(program, path)


def test_a_file_of_another_model_is_found_out(written):
    program, path, _ = written["embed"]
    other = copy.deepcopy(program)
    with torch.no_grad():
        other.model.encoder.cls_token.add_(torch.randn(12))
    assert largest_difference(other, path) > 1e-3


def test_times_of_years_keep_their_angles(fitted):
    """The difference of times is taken in float64: a million days later the embedding is the same."""
    program = make_program(fitted.pipeline_.pretrained, "embed")
    feeds = random_feeds(program, 3, 40)
    unit = fitted.pipeline_.preprocessor.positions.unit
    away = feeds["time"] - 59_000
    feeds["time"] = 59_000 + away * 6_000 * unit / away.max()  # up to 6,000 radians at the fastest frequency
    with torch.no_grad():
        assert torch.allclose(program(feeds), program({**feeds, "time": feeds["time"] + 1e6}), atol=1e-4)


def test_what_cannot_be_exported_is_refused(fitted, written, tmp_path):
    with refuses("program.txt", "ends in .onnx"):
        export_program(written["embed"][0], tmp_path / "program.txt")
    with refuses("MaskedAutoencoder", "not fine-tuned", "rotarymae fit"):
        make_program(fitted.pipeline_.pretrained, "predict")
    with refuses("'compress'"):
        make_program(fitted.pipeline_.pretrained, "compress")


def test_that_long_series_are_read_in_parts_is_said(fitted):
    directory = fitted.pipeline_.pretrained
    preprocessor = directory.preprocessor.replace(window=256)
    with pytest.warns(InputWarning, match="at most 256 observations at a time .window"):
        make_program(dataclasses.replace(directory, preprocessor=preprocessor), "embed")


def test_a_model_of_windows_is_compared_on_what_it_reads_at_a_time(written, monkeypatch):
    program = copy.deepcopy(written["embed"][0])
    program.preprocessor = program.preprocessor.replace(window=12)
    shapes, inner = [], onnx.random_feeds
    monkeypatch.setattr(onnx, "random_feeds", lambda program, *shape: shapes.append(shape) or inner(program, *shape))
    assert largest_difference(program, written["embed"][1]) < 1e-5
    assert shapes == [(1, 6), (3, 12), (16, 12)]


def test_the_command_writes_what_predicts(fitted, curves, tmp_path, capsys):
    both = clone(fitted).set_params(predictor="combined").fit(curves, KINDS)
    both.save(tmp_path / "model", license="cc-by-4.0")
    assert command("export", tmp_path / "model", "--out", tmp_path / "model.onnx") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "largest difference" in said and "probabilities" in said and "MB" in said
    assert "holds the network alone, and `predict` uses combined" in said
    program = make_program(both.pipeline_, "predict")
    assert_names(tmp_path / "model.onnx", program)
    assert largest_difference(program, tmp_path / "model.onnx") < LARGEST_DIFFERENCE
    card = (tmp_path / "model" / "README.md").read_text()
    assert "license: cc-by-4.0" in card
