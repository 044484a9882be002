"""rotarymae export: a model as one file that runs without this library."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from rotarymae import system
from rotarymae.cli.inputs import ModelPath, Quiet
from rotarymae.errors import InputWarning


def export_command(
    model: Positional[ModelPath],
    out: Path,
    job: Literal["auto", "predict", "embed", "interpolate"] = "auto",
    quiet: Quiet = False,
) -> None:
    """Write a model of series to one ONNX file that runs without this library, with its scalers inside, and check it.

    For example: rotarymae export run --out classifier.onnx. The file is run and compared with PyTorch; it is deleted if
    their answers differ. The file holds the network alone. A warning says so if predict uses boosted trees or all
    methods together, because then its answers differ. predict --predictor model answers as the file does, except for
    series so long that predict reads them in pieces.

    Args:
        out: New .onnx file for the program.
        job: Prediction: what the program does: predict labels, embed series as vectors, or interpolate values. auto:
            predict for a fit with labels, else interpolate if the model can, else embed. Set it if you need another of
            the three.
    """
    from rotarymae.export import export_program, make_program
    from rotarymae.pipeline import Pipeline

    reporter = system.Reporter(quiet)
    with reporter.catching_warnings():
        pipeline = Pipeline.load(model)
        pipeline.require_series()  # refuses a model of pictures or sounds, before anything is said of it
        if job == "auto":
            job = "embed" if pipeline.autoencoder is None else "interpolate"
            job = job if pipeline.labels is None else "predict"
        if job == "embed" and pipeline.autoencoder is not None:
            pipeline = pipeline.pretrained
        if job == "predict" and pipeline.predictor.choice != "model":
            warnings.warn(
                f"the exported program holds the network alone, and `predict` uses {pipeline.predictor.choice} for "
                "this run, so their answers differ; `predict --predictor model` answers as the program does.",
                InputWarning,
                stacklevel=2,
            )
        program = make_program(pipeline, job)
        with reporter.bar("exporting"):
            difference = export_program(program, out)
    size = out.stat().st_size / 1e6
    reporter.say(f"{out}: {size:.2f} MB, {', '.join(program.needs)} → {', '.join(program.outputs)}")
    reporter.say(f"the largest difference from PyTorch is {difference:.1e}")
