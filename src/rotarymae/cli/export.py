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
    """Write a model of series to one file that runs without this library, with its scalers inside, and check the file.

    For example: rotarymae export run --out classifier.onnx. The file is run once and compared with PyTorch; it is
    deleted where they differ.

    Args:
        out: New file for the program; it must not exist yet.
        format: The file is for ONNX runtimes (onnx), or for torch.export.load in PyTorch (torch).
        job: What the program does. auto: predict for a fine-tuned model, else interpolate if it has a decoder, else
            embed.
        pool: With --job embed: the mean or maximum over a series' tokens, the [CLS] token, or what the model was
            trained to use (auto).
        stage: With --job embed: vectors come from the pretrained or from the finetuned model in the folder.
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
    """Load a model as an exportable program.

    Args:
        job: "predict", "embed", "interpolate", or "auto": the first that the model can do of predict, interpolate and
            embed.
        pool, stage: for "embed" only; None and "pretrained" mean not given.

    Raises:
        InputError: a model of pictures or sounds, or one that cannot do the job; `pool` or `stage` given for another
            job.
        ModelDirectoryError: as `Pipeline.load`.

    Warns:
        InputWarning: "predict" where the run's choice is not the network alone, which is all that is exported.
    """
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
            raise InputError(f"--{name} is for embeddings, and the job is {job}; leave it out, or give --job embed.")
    if job == "embed":
        pipeline = open_stage(model, stage)
    if job == "predict" and pipeline.predictor.choice != "model":
        warnings.warn(
            f"the exported program holds the network alone, and `predict` uses {pipeline.predictor.choice} for this "
            "run, so their answers differ; `predict --predictor model` answers as the program does.",
            InputWarning,
            stacklevel=2,
        )
    return make_program(pipeline, job, pool)  # type: ignore[arg-type]
