"""Write a model to one ONNX file, and compare what the file answers with PyTorch.

See `export.graph` for the inputs and outputs. The number of series, of observations and of queries is free.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from rotarymae.errors import InputError, InputWarning, RotaryMAEError, choose, import_extra
from rotarymae.export.graph import Embeddings, Feeds, Interpolations, Predictions, Program
from rotarymae.pipeline import Pipeline
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.system import check_writable, replacing

Job = Literal["predict", "embed", "interpolate"]
PROGRAMS: dict[str, type[Program]] = {"predict": Predictions, "embed": Embeddings, "interpolate": Interpolations}
OPSET = 18
SHAPES = ((1, 6), (3, 40), (16, 200))  # series and observations of the comparison; no more than the model reads whole
QUERIES = 25
LARGEST_DIFFERENCE = 1e-4  # difference that a written file may have; a largest answer above 1 counts as 1
FIRST_TIME = 59_000.0  # where the times of the comparison begin, as dates of today do


def make_program(pipeline: Pipeline, job: Job) -> Program:
    """Return a pipeline as a module that can be exported, which reads and predicts in the table's units.

    It shares the pipeline's model, which is put into evaluation mode.

    Args:
        pipeline: a pipeline of series.
        job: what the module computes: "predict" (calibrated predictions of a fine-tuned network, without other methods
            such as boosted trees), "embed" or "interpolate".

    Raises:
        InputError: an unknown job; the pipeline cannot do it, is one of pictures or sounds, or is an `Ensemble`.

    Warns:
        InputWarning: the pipeline reads long series in pieces (windows), and the program reads each series whole.
    """
    choose("job", job, tuple(PROGRAMS))
    preprocessor = pipeline.require_one().require_series()
    if preprocessor.window is not None:
        warnings.warn(
            f"the program reads each series whole; the library reads at most {preprocessor.window:,} observations at "
            "a time (window), so results for longer series differ; cut these first.",
            InputWarning,
            stacklevel=2,
        )
    return PROGRAMS[job](pipeline).eval()


def export_program(program: Program, path: str | Path) -> float:
    """Write a program to an ONNX file, and compare its outputs with PyTorch's; a file that differs is removed.

    Args:
        program: what `make_program` returned.
        path: a new .onnx file; missing folders above it are made.

    Returns:
        The largest difference between outputs of the file and of PyTorch (see `largest_difference`).

    Raises:
        InputError: a path that exists or does not end in .onnx, or at which no file can be made.
        MissingExtra: the extra `export` (onnxscript, onnxruntime) is not installed.
        RotaryMAEError: the outputs differ by more than 1e-4.
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise InputError(f"{path} is no name of an ONNX file; choose one that ends in .onnx.")
    check_writable(path)
    if path.exists():
        raise InputError(f"{path} exists, and is not overwritten; choose another name, or remove it.")
    import_extra("onnxscript", "export")
    feeds = random_feeds(program, *SHAPES[1])
    with replacing(path) as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own, about its insides
        # It says of every library that is not installed that its operations are skipped.
        logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
        exported = torch.onnx.export(
            program,
            kwargs={"inputs": feeds},
            opset_version=OPSET,
            dynamic_shapes={"inputs": _dynamic(feeds)},
            input_names=list(feeds),
            dynamo=True,
            custom_translation_table={torch.ops.aten.sort.stable: _stable_sort()},
            verbose=False,
        )
        assert exported is not None
        _name_outputs(exported.model.graph, program.outputs)
        exported.save(temporary)
        difference = largest_difference(program, temporary)
        if not difference <= LARGEST_DIFFERENCE:
            raise RotaryMAEError(
                f"the answers of the file and of PyTorch differ by up to {difference:.2g}, more than "
                f"{LARGEST_DIFFERENCE:g}; the file is not kept. Try other versions of torch and onnxruntime."
            )
    return difference


def _stable_sort() -> Callable[..., Any]:
    """Return a function that translates torch's stable sort for the ONNX exporter, because ONNX has no such operation.

    It calls ONNX's TopK over all values, which keeps the order of equal ones.
    """
    from onnxscript import FLOAT, INT64, opset18

    op: Any = opset18  # whose annotations are of its own type system

    def stable_sort(values: FLOAT, stable: bool = True, dim: int = -1, descending: bool = False) -> tuple[FLOAT, INT64]:
        """Return a tensor sorted along the axis `dim`, and the indices; always stable, whatever `stable` is."""
        count = op.Gather(op.Shape(values), op.Constant(value_ints=[dim]))
        return op.TopK(values, count, axis=dim, largest=descending, sorted=True)

    return stable_sort


def largest_difference(program: Program, path: Path) -> float:
    """Return how much the outputs of an ONNX file differ from PyTorch's, for random series of three shapes.

    It is the largest absolute difference over outputs and shapes; infinite if an output is not finite. If an output's
    largest absolute value is above 1, its difference is divided by that value. Raises MissingExtra if the extra
    `export` is not installed.

    Args:
        program: the program, in evaluation mode.
        path: the ONNX file that was written from it.
    """
    session = import_extra("onnxruntime", "export").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    worst = 0.0
    for series, observations in SHAPES:
        feeds = random_feeds(program, series, min(observations, program.preprocessor.window or observations))
        with torch.no_grad():
            answers = program(feeds)
        of_file = session.run(None, {name: tensor.numpy() for name, tensor in feeds.items()})
        for expected, actual in zip(answers if isinstance(answers, tuple) else (answers,), of_file, strict=True):
            away = float(np.abs(actual - expected.numpy()).max()) / max(1.0, float(expected.abs().max()))
            worst = max(worst, away if np.isfinite(away) else np.inf)
    return worst


def random_feeds(program: Program, series: int, observations: int) -> Feeds:
    """Draw random inputs for a program, the same on each call; return {name: tensor} in the order of its `needs`.

    Values are distributed about as in training, and times span about as much as those of training. In "values", the
    value columns are followed by standard errors and by the sides of limits (-1, 0, 1), if the program reads them. A
    program that interpolates gets 25 query times per series, some of them up to a tenth of the span before or after it.

    Args:
        program: says which inputs it needs, and what training data were like.
        series: number of series.
        observations: number of observations to which each series is padded, at least 2. The first series has this
            number of them; each other one has a random number from 2 to it.
    """
    draw, known = np.random.default_rng(series), program.preprocessor
    shape = (series, observations)
    channels = len(known.channel_names or (None,))
    start = 0.0 if known.origin == "zero" else FIRST_TIME
    span = max(known.positions.reach, 1.0) * known.positions.unit
    times, number = start + span * draw.random(shape), draw.integers(0, channels, shape)
    if known.join_times:  # several channels at one time, each once
        cells = np.stack([draw.permutation(observations * channels)[:observations] for _ in range(series)])
        times, number = start + span * (cells // channels) / observations, cells % channels
    values = known.values.inverse(draw.normal(size=(*shape, len(known.value_names))), number)
    if known.errors:  # from no error to one that is larger than its value
        values = np.concatenate([values, np.abs(values) * draw.uniform(0, 2, values.shape)], axis=-1)
    if known.limits:
        sides = draw.integers(-1, 2, (*shape, known.features))
        values = np.concatenate([values, np.where(draw.random(sides.shape) < 0.3, sides, 0)], axis=-1)
    lengths = np.concatenate([[observations], draw.integers(2, observations + 1, series - 1)])
    feeds = {"time": times, "values": values, "channel": number, "position": _places(known, draw, shape)}
    feeds |= {"mask": np.arange(observations) < lengths[:, None], "static": _static_codes(known, series, draw)}
    feeds |= {"query_time": start + span * draw.uniform(-0.1, 1.1, (series, QUERIES))}
    feeds |= {"query_channel": draw.integers(0, channels, (series, QUERIES))}
    feeds |= {"query_position": _places(known, draw, (series, QUERIES))}
    return {name: torch.from_numpy(np.ascontiguousarray(feeds[name])) for name in program.needs}


def _places(known: ObservationPreprocessor, draw: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Draw values of the position columns, such as latitude and longitude, uniformly over the training range.

    Args:
        known: the preprocessor, which knows the ranges of the P columns.
        draw: the random generator.
        shape: two numbers: of series, and of observations or queries.

    Returns:
        float64 [*shape, P] in the table's units.
    """
    scaling = known.positions
    reach = (scaling.training_reach[1:] * scaling.units[1:]).numpy()
    return scaling.column_origins.numpy() + reach * draw.uniform(-1, 1, (*shape, len(reach)))


def _static_codes(known: ObservationPreprocessor, series: int, draw: np.random.Generator) -> np.ndarray:
    """Draw random values of the static columns (one value per series), float64 [series, columns].

    Numbers are normal, with the mean and standard deviation of training, and NaN in about a fifth of the series. A
    category is coded by its index in the training's list of categories.

    Args:
        known: the preprocessor, which has the columns.
        series: number of series.
        draw: the random generator.
    """
    codes = np.zeros((series, len(known.static)))
    for i, column in enumerate(known.static):
        if column.categories is None:
            codes[:, i] = np.where(draw.random(series) < 0.2, np.nan, draw.normal(column.mean, column.std, series))
        else:
            codes[:, i] = draw.integers(0, len(column.categories), series)
    return codes


def _dynamic(feeds: Feeds) -> dict[str, dict[int, Any]]:
    """Return the axes of a program's inputs whose length is free in the ONNX file: {input: {axis: dimension}}.

    Axis 0 (series) is free in all inputs, and axis 1 (observations, or queries) in all but "static". The dimensions are
    `torch.export.Dim` objects: one each for series, observations and queries, shared by the inputs.
    """
    series, observations, queries = (torch.export.Dim(name, min=1) for name in ("series", "observations", "queries"))
    second = {name: queries if name.startswith("query") else observations for name in feeds if name != "static"}
    return {name: {0: series} | ({1: second[name]} if name in second else {}) for name in feeds}


def _name_outputs(graph: Any, names: tuple[str, ...]) -> None:
    """Rename the outputs of an ONNX graph in place: they get `names`, in this order.

    If another value of the graph already has one of these names, an underscore is appended to its name first.
    """
    for node in graph:
        for value in node.outputs:
            value.name = f"{value.name}_" if value.name in names else value.name
    for value, name in zip(graph.outputs, names, strict=True):
        value.name = name
