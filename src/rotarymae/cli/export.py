"""rotarymae export: a model as one file that runs without this library."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tyro.conf import Positional

from rotarymae.cli.inputs import ModelPath, Quiet
from rotarymae.cli.output import new_reporter
from rotarymae.config import AutoPool
from rotarymae.errors import InputError, InputWarning

if TYPE_CHECKING:
    from rotarymae.export import Program


def export_command(
    model: Positional[ModelPath],
    out: Path,
    format: Literal["onnx", "torch"] = "onnx",
    job: Literal["auto", "predict", "embed", "interpolate"] = "auto",
    pool: AutoPool = "auto",
    stage: Literal["pretrained", "finetuned"] = "pretrained",
    quiet: Quiet = False,
) -> None:
    """Write a model to one file that runs without this library, with its scalers inside, and check the file.

    For example: rotarymae export run --out classifier.onnx

    Args:
        model: Run folder of `fit`, or a model directory.
        out: New file for the program.
        format: Kind of file: for ONNX runtimes (onnx), or a PyTorch program for torch.export.load (torch).
        job: Task of the program: predict labels, embed or interpolate; auto predicts if the model is fine-tuned, and
            otherwise interpolates or embeds.
        pool: How tokens become one vector: their mean, their maximum, or the [CLS] token (cls); auto is as in training.
        stage: Model of the run that embeds: the pre-trained or the fine-tuned one.
    """
    from rotarymae.export import export_program

    reporter = new_reporter(quiet)
    with reporter.catching_warnings():
        program = _program(model, job, None if pool == "auto" else pool, stage)
        with reporter.bar("exporting"):
            difference = export_program(program, out, format)
    size = out.stat().st_size / 1e6
    reporter.say(f"{out}: {size:.2f} MB, {', '.join(program.needs)} → {', '.join(program.outputs)}")
    reporter.say(f"the largest difference from PyTorch is {difference:.1e}")


def _program(model: Path, job: str, pool: str | None, stage: Literal["pretrained", "finetuned"]) -> Program:
    """Load a model as an exportable program; job "auto" predicts where the model can, else interpolates or embeds."""
    from rotarymae.export import make_program
    from rotarymae.pipeline import Pipeline
    from rotarymae.scale import open_stage

    pipeline = Pipeline.load(model)
    pipeline.require_series()  # refuses a model of pictures or sounds, before anything is said of it
    if job == "auto":
        job = "embed" if pipeline.autoencoder is None else "interpolate"
        job = job if pipeline.labels is None else "predict"
    for name, value in (("pool", pool), ("stage", None if stage == "pretrained" else stage)):
        if value is not None and job != "embed":
            raise InputError(
                f"{name} applies to embeddings only; leave out --{name}, or add --job embed (it is {job})."
            )
    if job == "embed":
        pipeline = open_stage(model, stage)
    if job == "predict" and pipeline.partners is not None and pipeline.partners.choice != "model":
        warnings.warn(
            f"the program holds the model alone; `predict` takes {pipeline.partners.choice} for this run, and answers "
            "otherwise unless it is told --predictor model.",
            InputWarning,
            stacklevel=2,
        )
    return make_program(pipeline, job, pool)  # type: ignore[arg-type]
