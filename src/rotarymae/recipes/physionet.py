"""What was measured at the other half of the times? Intensive-care records of 41 variables, half of each hidden.

Table 7, column PhysioNet, of arXiv:2505.20535; hyper-parameters of Table 21. `rotarymae run physionet` with
`--data-dir FOLDER`, where set-a.tar.gz and set-b.tar.gz of the 2012 challenge are.

Two protocols. `rows`, HeTVAE's: half of a record's times are hidden with all that was measured then. `tokens`, of the
paper's appendix: half of all measurements are hidden, so that others of the same minute may be seen. Values are in
standard deviations of each variable. The paper prints 0.467 in its table and 0.570 in its text, HeTVAE 0.562; but a
straight line between a variable's neighbouring measurements already scores 0.443 and 0.451 here, so their unit is
another one. The aim is to beat that line by a fifth; six epochs of one seed beat it by 14 and 13 %, and their loss on
the validation records was still falling. Of the measurements 80 % lie in the band that should hold 68 %: those bands
are too wide.

`ours` differs from `paper` in four ways: the encoder has four narrower layers, not twelve; the rate is twenty times as
high, of batches twice as large; AdamW remembers squares for a shorter time and decays weights more; and the model
predicts a variance with every value. Both hide in training what will be asked for, in halves.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from rotarymae.data import physionet as data
from rotarymae.experiments import SMOKE, Recipe, Row, Score, Setup, Trial, parameters
from rotarymae.series import hide
from rotarymae.tasks import FitConfig, as_queries, baselines, interpolate, pretrain

ROWS, TOKENS = "rows", "tokens"


@dataclass(frozen=True)
class PhysioNetSetup(Setup):
    """The configuration.

    Attributes:
        data_dir: Read the challenge's files from this folder.
        records: Use only the first so many records of each of the three sets; None uses all.
        fit: Use this model and training; the case sets the masking.
    """

    cases: tuple[str, ...] = (ROWS, TOKENS)
    data_dir: str = "data/physionet2012"
    records: int | None = None
    fit: FitConfig = field(default_factory=FitConfig)


def setup(scale: str, setting: str) -> PhysioNetSetup:
    epochs = 200 if scale == "paper" else 6
    if setting == "paper":
        fit = FitConfig(
            size="tiny",
            decoder_attention="joint",
            likelihood="point",
            channel_one_hot=False,
            signal_to_noise=False,
            pretrain_epochs=epochs,
            min_steps=0,
            batch_size=16,
            base_lr=1e-4,
            warmup_steps=100,
            betas=(0.9, 0.999),
            weight_decay=0.01,
        )
    else:
        fit = FitConfig(
            beta=1.0,
            pretrain_epochs=epochs,
            min_steps=0,
            base_lr=2e-3,
        )
    found = PhysioNetSetup(fit=fit)
    if scale == "smoke":
        short: dict[str, Any] = {"pretrain_epochs": 4, "batch_size": 8, "warmup_steps": 2, "base_lr": 3e-3}
        fit = dataclasses.replace(fit, size="tiny-shallow", **short, **SMOKE)
        found = dataclasses.replace(found, cases=(ROWS,), records=40, fit=fit)
    return dataclasses.replace(found, seeds=(0, 1, 2, 3, 4) if scale == "paper" else (0,))


def run(setup: PhysioNetSetup, case: str, trial: Trial) -> Score:
    sets = data.prepare(data.read(setup.data_dir))
    train, valid, test = (
        part.select(np.arange(len(part))[: setup.records]) for part in (sets.train, sets.valid, sets.test)
    )
    config = dataclasses.replace(
        trial.own(setup.fit),
        masking="rows" if case == ROWS else "ratio",
        mask_ratio=0.5,
        transforms={"value": "standard"},
    )
    with trial.training("training") as how:
        trained = pretrain(train, config, validation=valid, **how)
    trial.keep("training", trained.result)
    by: Literal["time", "observation"] = "time" if case == ROWS else "observation"
    visible, hidden, _ = hide(test, 0.5, by=by)  # the same for every seed
    truth = np.asarray(hidden.values)
    found = interpolate(trained.directory, visible, as_queries(hidden))
    metrics = {"MSE": _mse(found.mean, truth)}
    for name, method in (
        ("linear interpolation", baselines.LinearInterpolation),
        ("the last value", baselines.LastValue),
        ("the mean", baselines.ChannelMean),
    ):
        metrics[f"MSE of {name}"] = _mse(method().fit(train).predict(visible, hidden), truth)
    if found.bands:
        lower, upper = found.bands[0.68]
        metrics["share within the 68 % band"] = float(((truth >= lower) & (truth <= upper)).mean())
    return Score(metrics, {}, parameters(trained.model))


def _mse(predicted: np.ndarray, truth: np.ndarray) -> float:
    return float(np.square(predicted - truth).mean())


UNIT = "A straight line scores less than HeTVAE's figure here, so it is in another unit."
DOUBT = f"0.467 in the table, 0.570 in the text; no code runs it. {UNIT}"
LINE = "MSE of linear interpolation"
RECIPE = Recipe(
    name="physionet",
    table="Table 7, column PhysioNet",
    expect="MSE in squared standard deviations: by rows 0.38, where linear interpolation has 0.443 (aim 0.356)",
    hours={"paper": None, "ours": 1.29},
    setup=setup,
    run=run,
    rows=(
        Row("MSE, rows", ROWS, "MSE", "0.467", "HeTVAE 0.562", LINE, DOUBT, "≤ 0.356"),
        Row("MSE, tokens", TOKENS, "MSE", "0.467", "HeTVAE 0.562", LINE, DOUBT, "≤ 0.8 of the line"),
        Row("share within the 68 % band, rows", ROWS, "share within the 68 % band", aim="0.68"),
    ),
)
