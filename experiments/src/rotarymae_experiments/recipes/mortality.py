"""Who dies in hospital? The first 48 hours of intensive care, 37 variables, each measured when somebody measured it.

Not in the paper; what users of PhysioNet 2012 expect. `rotarymae-experiments run mortality --data-dir FOLDER`, which
holds sets a and b, Outcomes-a.txt, Outcomes-b.txt and a splits.json with the records of five splits; a seed is the
number of a split. Expect AUROC / average precision of 0.870 / 0.574, combined with boosting 0.883 / 0.597 (± 0.01 /
0.03 over the splits). Scale `small` takes 0.2 hours on one core.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from rotarymae.train import finetune, prepare
from rotarymae.training.fit_config import FitConfig
from rotarymae_experiments.classification import SMOKE_TRAINING, Labelled, blank, combine
from rotarymae_experiments.data import physionet as data
from rotarymae_experiments.runner import Recipe, Row, Score, Setup, Trial, parameters

CASE = "five splits"
METRICS = {"AUROC": roc_auc_score, "average precision": average_precision_score}


@dataclass(frozen=True)
class MortalitySetup(Setup):
    """The configuration; a seed is the number of a split, too.

    Attributes:
        data_dir: Read the challenge's files and splits.json from this folder.
        fit: Use this model and fine-tuning, which starts from random weights.
    """

    cases: tuple[str, ...] = (CASE,)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    data_dir: str = "data/physionet2012"
    fit: FitConfig = field(default_factory=FitConfig)


def run(setup: MortalitySetup, case: str, trial: Trial) -> Score:
    """Train and score on the split of the trial's seed: AUROC and average precision by method; one case."""
    records = data.with_static(data.read(setup.data_dir))
    died = data.read_outcomes(setup.data_dir, records)
    splits = data.read_splits(setup.data_dir)
    split = splits[trial.seed % len(splits)]
    at = [np.flatnonzero(np.isin(records.ids, part)) for part in split]
    hours = data.hourly(records)
    train, validation, test = (Labelled(hours.select(part), died[part]) for part in at)
    config = dataclasses.replace(trial.with_seed(setup.fit), static=tuple(hours.static))
    start = blank(config, prepare(train.series, config))
    tuned = trial.train("finetuning", finetune, start, *train, config, validation=tuple(validation))
    of_model = [tuned.pipeline.predict_proba(part.series) for part in (validation, test)]
    static = tuned.pipeline.preprocessor.static  # pyright: ignore
    known, unseen = Labelled(records, died), records.select(at[2])
    probabilities = combine(trial, known, (at[0], at[1]), unseen, (of_model[0], of_model[1]), static)  # pyright: ignore
    metrics = {
        f"{name}{method}": float(score(test.labels, probabilities[key][:, 1]))
        for key, method in (("model", ""), ("features", " of gradient boosting"), ("combined", " combined"))
        for name, score in METRICS.items()
    }
    return Score(metrics, {}, parameters(tuned.pipeline.model))


RECIPE = Recipe(
    name="mortality",
    ours=MortalitySetup(
        fit=FitConfig(
            masking="ratio",
            embed_dim=64,
            num_heads=4,
            depth=2,
            decoder_embed_dim=64,
            finetune_epochs=16,
            drop=0.7,
            min_steps=0,
            batch_size=64,
            base_lr=2e-3,
            time_unit=1.0,
            time_origin="zero",
            join_times=True,
            transforms={"value": "asinh"},
            noise=0.0,
        )
    ),
    smoke={"seeds": (0,), "fit": SMOKE_TRAINING | {"finetune_epochs": 10}},
    run=run,
    rows=tuple(
        Row(f"{name}{what}", CASE, f"{name}{method}", "–", f"ISTS-PLM {best}", f"{name} of gradient boosting", aim=aim)
        for what, method, aims in (
            ("", "", ("≥ 0.870", "≥ 0.56")),
            (", with boosting", " combined", ("≥ 0.888", "≥ 0.59")),
        )
        for name, best, aim in zip(METRICS, (0.876, 0.576), aims, strict=True)
    ),
)
