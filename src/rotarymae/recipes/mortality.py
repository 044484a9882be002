"""Who dies in hospital? The first 48 hours of intensive care, 37 variables, each measured when somebody measured it.

Not in the paper; what users of PhysioNet 2012 expect. `rotarymae run mortality` with `--data-dir FOLDER`, where
set-a.tar.gz, set-b.tar.gz, Outcomes-a.txt and Outcomes-b.txt of the challenge are, and a splits.json with the records
of five splits (those of Raindrop, restricted to sets a and b, are what the aims are for). A seed is the number of a
split, too.

Age, gender, height, unit and weight at admission are static columns, which the head reads; they are missing where
unknown. Everything else becomes one row per hour (`data.physionet.Hourly`): cheaper here than one token per
measurement, and better in the search. The validation records choose the epoch, and the weights of the blend: the mean
of log odds of the model and of gradient boosting, which reads summary features and the static columns. Published on all
three sets, with half as much training data again: ISTS-PLM 0.876 / 0.576 (AUROC / average precision), Warpformer
0.866 / 0.555, ViTST 0.851 / 0.511.

`ours` trains from random weights: pre-training brought nothing here, at twice the time. `paper` pre-trains, at the
paper's mask ratio, and reads [CLS].
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from torch import nn

from rotarymae.data import physionet as data
from rotarymae.experiments import (
    SMOKE,
    SMOKE_TRAINING,
    Labelled,
    Recipe,
    Row,
    Score,
    Setup,
    Trial,
    blank,
    parameters,
)
from rotarymae.series import SeriesDataset
from rotarymae.tasks import FitConfig, baselines, finetune, predict_probabilities, prepare, pretrain

CASE = "five splits"
METRICS = {"AUROC": roc_auc_score, "average precision": average_precision_score}


@dataclass(frozen=True)
class MortalitySetup(Setup):
    """The configuration; a seed is the number of a split, too.

    Attributes:
        data_dir: Read the challenge's files and splits.json from this folder.
        pretrained: Pre-train before fine-tuning, instead of starting from random weights.
        fit: Use this model, pre-training and fine-tuning.
    """

    cases: tuple[str, ...] = (CASE,)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    data_dir: str = "data/physionet2012"
    pretrained: bool = False
    fit: FitConfig = field(default_factory=FitConfig)


def setup(scale: str, setting: str) -> MortalitySetup:
    fit = FitConfig(
        embed_dim=64,
        num_heads=4,
        depth=2,
        decoder_embed_dim=64,
        decoder_num_heads=4,
        pretrain_epochs=10,
        finetune_epochs=10,
        min_steps=0,
        batch_size=64,
        base_lr=2e-3,
        time_unit=1.0,
        time_origin="zero",
        pool="attention",
        drop=0.5,
    )
    found = MortalitySetup(fit=fit)
    if setting == "paper":
        paper = {"mask_ratio": 0.75, "decoder_attention": "joint", "likelihood": "point", "pool": "cls", "drop": 0.0}
        found = dataclasses.replace(found, pretrained=True, fit=dataclasses.replace(fit, **paper))
    if scale == "smoke":
        small = SMOKE | SMOKE_TRAINING | {"finetune_epochs": 10}
        found = dataclasses.replace(found, seeds=(0,), fit=dataclasses.replace(found.fit, **small))
    return found


def run(setup: MortalitySetup, case: str, trial: Trial) -> Score:
    records = data.with_static(data.read(setup.data_dir))
    died = data.read_outcomes(setup.data_dir, records)
    splits = data.read_splits(setup.data_dir)
    split = splits[trial.seed % len(splits)]
    at = [np.flatnonzero(np.isin(records.ids, getattr(split, part))) for part in data.PARTS]
    train, validation, test = (Labelled(records.select(part), died[part]) for part in at)
    hourly = data.Hourly.fit(train.series)
    model, of_model = _model(setup, trial, *(Labelled(hourly.rows(part.series), part.labels) for part in
                                             (train, validation, test)))  # fmt: skip
    of_boosting = _boosting(train, (validation, test), trial.seed)
    weight = min(
        np.linspace(0, 1, 21), key=lambda share: log_loss(validation.labels, _blend(share, of_model[0], of_boosting[0]))
    )
    of_blend = _blend(weight, of_model[1], of_boosting[1])
    found = {"": of_model[1], " of gradient boosting": of_boosting[1], " of the blend": of_blend}
    metrics = {
        f"{name}{method}": float(score(test.labels, probability))
        for method, probability in found.items()
        for name, score in METRICS.items()
    }
    return Score(metrics | {"weight of the model in the blend": float(weight)}, {}, parameters(model))


def _model(
    setup: MortalitySetup, trial: Trial, train: Labelled, validation: Labelled, test: Labelled
) -> tuple[nn.Module, tuple[np.ndarray, np.ndarray]]:
    """(model, probabilities of death of the validation and the test records)."""
    config = dataclasses.replace(
        trial.own(setup.fit),
        transforms=dict.fromkeys(train.series.value_names, "none"),
        static=tuple(train.series.static),
    )
    if setup.pretrained:
        with trial.training("pretraining") as how:
            pretrained = pretrain(train.series, config, **how)
        trial.keep("pretraining", pretrained.result)
        start = pretrained.directory
    else:
        start = blank(config, prepare(train.series, config))
    with trial.training("finetuning") as how:
        tuned = finetune(
            start, train.series, train.labels, config, validation=(validation.series, validation.labels), **how
        )
    trial.keep("finetuning", tuned.result)
    found = [predict_probabilities(tuned.directory, part.series)[:, 1] for part in (validation, test)]
    return tuned.model, (found[0], found[1])


def _boosting(train: Labelled, parts: tuple[Labelled, Labelled], seed: int) -> list[np.ndarray]:
    """Probabilities of death of each part's records."""
    features = _features(train.series)
    usable = ~np.isnan(features).all(0)  # trees cannot cut what no record has
    trees = HistGradientBoostingClassifier(**baselines.BOOSTING, random_state=seed)
    trees.fit(features[:, usable], train.labels)
    return [trees.predict_proba(_features(part.series)[:, usable])[:, 1] for part in parts]


def _features(series: SeriesDataset) -> np.ndarray:
    return np.column_stack([baselines.summary_features(series)[0], *series.static.values()])


def _blend(share: float, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Probabilities whose log odds are a weighted mean."""
    odds = [np.log(p) - np.log1p(-p) for p in (np.clip(first, 1e-5, 1 - 1e-5), np.clip(second, 1e-5, 1 - 1e-5))]
    return 1 / (1 + np.exp(-(share * odds[0] + (1 - share) * odds[1])))


RECIPE = Recipe(
    name="mortality",
    expect="AUROC and average precision of deaths in hospital, on the test records of five splits",
    hours={"paper": None, "ours": None},
    setup=setup,
    run=run,
    rows=(
        Row("AUROC", CASE, "AUROC", best="ISTS-PLM 0.876", simple="AUROC of gradient boosting", aim="≥ 0.870"),
        Row(
            "average precision",
            CASE,
            "average precision",
            best="ISTS-PLM 0.576",
            simple="average precision of gradient boosting",
            aim="≥ 0.56",
        ),
        Row(
            "AUROC, with boosting",
            CASE,
            "AUROC of the blend",
            best="ISTS-PLM 0.876",
            simple="AUROC of gradient boosting",
            aim="≥ 0.888",
        ),
        Row(
            "average precision, with boosting",
            CASE,
            "average precision of the blend",
            best="ISTS-PLM 0.576",
            simple="average precision of gradient boosting",
            aim="≥ 0.59",
        ),
    ),
)
