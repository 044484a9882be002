"""Writes a model to one file, ONNX or a PyTorch program, and compares what the file answers with the library.

See `export.graph` for the inputs and outputs. The number of series, of observations and of queries is free.
"""

from __future__ import annotations

import logging
import statistics
import timeit
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from rotarymae.errors import InputError, InputWarning, RotaryMAEError, choose, import_extra
from rotarymae.export.graph import Answers, Embeddings, Interpolations, LightCurves, Predictions
from rotarymae.pipeline import Pipeline
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.series import SeriesDataset
from rotarymae.system import check_writable, replacing
from rotarymae.tokens import pad_rows

Job = Literal["predict", "embed", "interpolate", "light-curve"]
Format = Literal["onnx", "torch"]
Feeds = dict[str, torch.Tensor]
OPSET = 18
SHAPES = ((1, 6), (3, 40), (16, 200))  # series and observations of the comparison; no more than the model reads whole
LONGEST = SHAPES[-1][1]
QUERIES = 25
LARGEST = 1e-4  # difference that a written file may have; a largest answer above 1 counts as 1
FIRST_TIME = 59_000.0  # where the times of the comparison begin, as dates of today do


@dataclass(frozen=True)
class Check:
    """What a written file answers, compared with the library.

    Attributes:
        difference: the largest one, over all outputs and shapes; relative where the answers go beyond 1.
        shapes: (series, observations) that were compared.
        milliseconds: per call of the file, at each shape; and per call of the same program in PyTorch.
        megabytes: size of the file.
    """

    difference: float
    shapes: tuple[tuple[int, int], ...]
    milliseconds: tuple[float, ...]
    in_torch: tuple[float, ...]
    megabytes: float


def make_program(pipeline: Pipeline, job: Job, pool: str | None = None) -> Answers:
    """Return a pipeline as a program that takes observations in the table's units.

    Args:
        pipeline: of series.
        job: "predict" (a head's answers, calibrated), "embed", "interpolate", or "light-curve", the contract of
            `LightCurves`.
        pool: of "embed", as `Pipeline.embed`.

    Raises:
        InputError: a pipeline that does another job, or that cannot be a program; the message says why.

    Warns:
        InputWarning: a model that reads long series in parts.
    """
    choose("job", job, ("predict", "embed", "interpolate", "light-curve"))
    preprocessor = pipeline.require_one().require_series()
    most = preprocessor.window or preprocessor.max_tokens
    if most is not None:
        warnings.warn(
            f"the program reads each series whole; the library reads at most {most:,} observations at a time "
            f"({'window' if preprocessor.window else 'max_tokens'}), so answers to longer series differ.",
            InputWarning,
            stacklevel=2,
        )
    if job == "embed":
        return Embeddings(pipeline, pool).eval()
    if job == "light-curve":
        return LightCurves(pipeline).eval()
    if job == "predict":
        return Predictions(pipeline).eval()
    return Interpolations(pipeline).eval()


def export_program(program: Answers, path: str | Path, format: Format = "onnx") -> Check:
    """Writes the program and checks the file; a file that answers otherwise is not left behind.

    Raises:
        InputError: another format, a file that exists.
        MissingExtra: ONNX without the extra `export`.
        RotaryMAEError: the file's answers differ from the library's by more than 1e-4.
    """
    choose("format", format, ("onnx", "torch"))
    path = Path(path)
    check_writable(path)
    if path.exists():
        raise InputError(f"{path} exists; choose another name, or remove it.")
    _, feeds = examples_of(program, *SHAPES[1])
    with replacing(path) as beside, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own, about its insides
        if format == "onnx":
            import_extra("onnxscript", "export")
            # It says of every library that is not installed that its operations are skipped.
            logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
            exported = torch.onnx.export(
                program,
                kwargs=feeds,
                opset_version=OPSET,
                dynamic_shapes=_dynamic(feeds),
                dynamo=True,
                custom_translation_table={torch.ops.aten.sort.stable: _stable_sort()},
                verbose=False,
            )
            assert exported is not None
            _name_outputs(exported.model.graph, program.outputs)
            exported.save(beside)
        else:
            torch.export.save(torch.export.export(program, (), feeds, dynamic_shapes=_dynamic(feeds)), beside)
        found = check_program(program, beside, format)
        if not found.difference <= LARGEST:
            raise RotaryMAEError(
                f"the {format} file and the library differ by up to {found.difference:.2g}; the file is not kept."
            )
    return found


def _stable_sort() -> Callable[..., Any]:
    """What torch's exporter lacks: TopK of all, which leaves what is equal in its order, as a stable sort does."""
    from onnxscript import FLOAT, INT64, opset18

    op: Any = opset18  # whose annotations are of its own type system

    def stable_sort(values: FLOAT, stable: bool = True, dim: int = -1, descending: bool = False) -> tuple[FLOAT, INT64]:
        count = op.Gather(op.Shape(values), op.Constant(value_ints=[dim]))
        return op.TopK(values, count, axis=dim, largest=descending, sorted=True)

    return stable_sort


def check_program(program: Answers, path: str | Path, format: Format = "onnx") -> Check:
    """Compares a written file with the library, at three shapes, on random series like those of training."""
    answer = _opened(Path(path), format)
    difference, took, in_torch = 0.0, [], []
    most = min(program.preprocessor.window or LONGEST, program.preprocessor.max_tokens or LONGEST)
    shapes = tuple((series, min(observations, most)) for series, observations in SHAPES)
    for series, observations in shapes:
        dataset, feeds = examples_of(program, series, observations)
        with torch.no_grad():
            for want, found in zip(program.of_library(dataset, feeds), answer(feeds), strict=False):
                away = float(np.abs(np.asarray(found, np.float64) - want).max()) / max(1.0, float(np.abs(want).max()))
                difference = max(difference, away if np.isfinite(away) else np.inf)
            took.append(_milliseconds(lambda feeds=feeds: answer(feeds)))
            in_torch.append(_milliseconds(lambda feeds=feeds: program(**feeds)))
    return Check(difference, shapes, tuple(took), tuple(in_torch), Path(path).stat().st_size / 1e6)


def write_test_table(program: LightCurves, path: str | Path) -> None:
    """Light curves and the library's embeddings of them, to test another's use of an exported file.

    One row per light curve: its `flux`, `flux_err`, `time`, `channel_index` as lists, and `cls` and `mean`.
    """
    dataset, feeds = examples_of(program, *SHAPES[1])
    real = feeds["mask"].numpy()
    columns: dict[str, Any] = {
        name: [row[there].tolist() for row, there in zip(feeds[name].numpy(), real, strict=True)]
        for name in ("flux", "flux_err", "time", "channel_index")
    }
    for name, found in zip(("cls", "mean"), program.of_library(dataset, feeds), strict=True):
        columns[name] = found.tolist()
    with replacing(Path(path)) as beside:
        pq.write_table(pa.table(columns), beside)


def examples_of(program: Answers, series: int, observations: int) -> tuple[SeriesDataset, Feeds]:
    """Random series like those of training, of different lengths, and the same as inputs of the program.

    Their times reach as far as training's did; queries lie a little beyond on both sides.
    """
    draw, known = np.random.default_rng(series), program.preprocessor
    lengths = np.concatenate([[observations], draw.integers(2, observations + 1, series - 1)])
    total, channels = int(lengths.sum()), len(known.channel_names or (None,))
    curves = isinstance(program, LightCurves)
    start = 0.0 if curves or known.origin == "zero" else FIRST_TIME
    span = max(known.positions.reach, 1.0) * known.positions.unit
    owner = np.repeat(np.arange(series), lengths)
    times = start + span * draw.random(total)
    number = draw.integers(0, channels, total)
    if known.join_times:  # several channels at one time, each once
        cells = np.concatenate([draw.permutation(observations * channels)[:n] for n in lengths])
        times, number = start + span * (cells // channels) / observations, cells % channels
    values = known.values.inverse(draw.normal(size=(total, len(known.value_names))), number)
    if known.errors:  # from no error to one that is larger than its value
        values = np.concatenate([values, np.abs(values) * draw.uniform(0, 2, values.shape)], axis=1)
    places = _places(known, draw, total)
    if curves:  # as its inputs are
        times, values = times.astype(np.float32).astype(np.float64), values.astype(np.float32).astype(np.float64)
    order = np.lexsort((number, times, owner))
    times, number, values, places = times[order], number[order], values[order], places[order]
    static, codes = _static(known, series, draw)
    dataset = SeriesDataset(
        times=times,
        values=values,
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        ids=np.arange(series),
        value_names=known.value_columns,
        channels=None if known.channel_names is None else number.astype(np.int32),
        channel_names=known.channel_names,
        static=static,
        positions=places if known.position_names else None,
        position_names=known.position_names,
    )
    padded = [pad_rows(flat, lengths)[0] for flat in (times[:, None], values, number[:, None], places)]
    mask = torch.arange(observations) < torch.as_tensor(lengths)[:, None]
    feeds = {"time": padded[0][..., 0], "values": padded[1], "channel": padded[2][..., 0], "mask": mask}
    feeds |= {"static": torch.from_numpy(codes), "position": padded[3]}
    asked = start + span * draw.uniform(-0.1, 1.1, (series, QUERIES))
    feeds |= {"query_time": torch.from_numpy(asked), "channel_index": feeds["channel"]}
    feeds["query_channel"] = torch.from_numpy(draw.integers(0, channels, (series, QUERIES)))
    feeds["query_position"] = torch.from_numpy(_places(known, draw, series * QUERIES)).unflatten(0, (series, QUERIES))
    if curves:
        feeds["time"], both = feeds["time"].float(), feeds["values"].float()
        feeds |= {"flux": both[..., 0].contiguous(), "flux_err": both[..., -1].contiguous()}
    return dataset, {name: feeds[name] for name in program.needs}


def _places(known: ObservationPreprocessor, draw: np.random.Generator, count: int) -> np.ndarray:
    """Draw further positions [count, P] over the range of training."""
    scaling = known.positions
    reach = (scaling.training_reach[1:] * scaling.units[1:]).numpy()
    return scaling.column_origins.numpy() + reach * draw.uniform(-1, 1, (count, len(reach)))


def _static(
    known: ObservationPreprocessor, series: int, draw: np.random.Generator
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Static columns of a data set, and the same as the program takes them [series, columns]."""
    columns, codes = {}, np.zeros((series, len(known.static)))
    for i, column in enumerate(known.static):
        if column.categories is None:
            codes[:, i] = draw.normal(column.mean, column.std, series)
            codes[draw.random(series) < 0.2, i] = np.nan
            columns[column.name] = codes[:, i].copy()
        else:
            codes[:, i] = draw.integers(0, len(column.categories), series)
            columns[column.name] = np.array([column.categories[int(code)] for code in codes[:, i]], object)
    return columns, codes


def _dynamic(feeds: Feeds) -> dict[str, dict[int, Any]]:
    """Which sizes are free: series, observations, queries."""
    series, observations, queries = (torch.export.Dim(name, min=1) for name in ("series", "observations", "queries"))
    second = {name: queries if name.startswith("query") else observations for name in feeds if name != "static"}
    return {name: {0: series} | ({1: second[name]} if name in second else {}) for name in feeds}


def _name_outputs(graph: Any, names: tuple[str, ...]) -> None:
    """Names the outputs of an ONNX graph; the exporter may have used the same names inside."""
    for node in graph:
        for value in node.outputs:
            value.name = f"{value.name}_" if value.name in names else value.name
    for value, name in zip(graph.outputs, names, strict=True):
        value.name = name


def _opened(path: Path, format: Format) -> Callable[[Feeds], list[np.ndarray]]:
    """What answers from a written file."""
    if format == "torch":
        module = torch.export.load(path).module()

        def answer(feeds: Feeds) -> list[np.ndarray]:
            found = module(**feeds)
            return [part.numpy() for part in (found if isinstance(found, tuple) else (found,))]

        return answer
    session = import_extra("onnxruntime", "export").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, {name: tensor.numpy() for name, tensor in feeds.items()})


def _milliseconds(call: Callable[[], Any]) -> float:
    """The median of a few calls."""
    return 1000 * statistics.median(timeit.repeat(call, number=1))
