"""Does pre-training save labels? Light curves that are all seen, and of which a few per class are labelled.

Not in the paper, whose promise it is. `rotarymae-experiments run label_efficiency --data-dir FOLDER`, which holds
PLAsTiCC's training files. Expect macro-F1 at 5 labels per class of 0.51 ± 0.02 fine-tuned, 0.53 ± 0.03 by a linear
probe, 0.38 ± 0.03 from scratch (3 seeds), where gradient boosting has 0.50. `--fit.pretrained plasticc-ugrizy` saves
the pre-training, half of the time.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rotarymae.heads import encoder_of
from rotarymae.pipeline import Pipeline
from rotarymae.prediction import embed
from rotarymae.series import SeriesDataset
from rotarymae.splits import split_off
from rotarymae.train import finetune, open_start, pretrain
from rotarymae.training.fit_config import FitConfig
from rotarymae_experiments.classification import SMOKE_TRAINING, Labelled, blank, boost, predict
from rotarymae_experiments.data import plasticc as data
from rotarymae_experiments.recipes.plasticc import light_curves
from rotarymae_experiments.runner import Figures, Recipe, Result, Row, Score, Setup, Trial, parameters

COUNTS = {"5 labels": 5, "20 labels": 20, "100 labels": 100, "all labels": None}
COLUMNS = {"id": "object_id", "time": "mjd", "channel": "passband", "values": ("flux", "flux_err")}  # unless told
METHODS = ("fine-tuned", "linear probe", "from scratch", "gradient boosting")


@dataclass(frozen=True)
class LabelEfficiencySetup(Setup):
    """The configuration; a case is a number of labels per class.

    Attributes:
        data_dir: Read the challenge's training files from this folder.
        sample: Pre-train on the sample's own training part instead of the objects outside the sample.
        objects: Use only the first so many objects of the sample; None uses all.
        score_on: Score the test part, or a part of the training objects to choose settings by (validation).
        fit: Use this model, pre-training and fine-tuning.
    """

    cases: tuple[str, ...] = tuple(COUNTS)
    seeds: tuple[int, ...] = (0, 1, 2)
    data_dir: str = "data/plasticc"
    sample: bool = False
    objects: int | None = None
    score_on: Literal["test", "validation"] = "test"
    fit: FitConfig = field(default_factory=FitConfig)


def run(setup: LabelEfficiencySetup, case: str, trial: Trial) -> Score:
    """Train and score with the labels that `case` says, drawn by the trial's seed: macro-F1 by method."""
    dataset, labels = data.sample()
    dataset, labels = dataset.select(np.arange(len(dataset))[: setup.objects]), labels[: setup.objects]
    described = light_curves(dataset, described=False)
    train, scored = split_off(np.arange(len(labels)), labels, 0.25, 0)
    if setup.score_on == "validation":
        train, scored = split_off(train, labels, 0.15, 0)
    known = Labelled(described, labels).select(draw(labels, train, COUNTS[case], trial.seed))
    scored_series = described.select(scored)
    start = open_start(setup.fit.pretrained) if setup.fit.pretrained else _pretrain(setup, described, train, trial)
    assert start.preprocessor is not None
    config = trial.with_seed(setup.fit)
    guesses = {}
    starts = {"fine-tuned": start, "from scratch": blank(config, start.preprocessor)}
    for name, before in starts.items():
        tuned = trial.train(name, finetune, before, *known, config)
        guesses[name] = predict(tuned, scored_series)
    embedded = [embed(start, part, "max") for part in (known.series, scored_series)]
    probe = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=2000))
    guesses["linear probe"] = probe.fit(embedded[0], known.labels).predict(embedded[1])
    guesses["gradient boosting"] = boost(known, scored_series, trial.seed)
    metrics = {f"macro-F1, {name}": f1_score(labels[scored], guesses[name], average="macro") for name in METHODS}
    metrics["labels per class, mean"] = len(known.labels) / len(np.unique(known.labels))
    return Score({name: float(value) for name, value in metrics.items()}, {}, parameters(encoder_of(start.model)))


def _pretrain(setup: LabelEfficiencySetup, described: SeriesDataset, train: np.ndarray, trial: Trial) -> Pipeline:
    """Return the autoencoder that all cases and seeds share; it is trained once, and kept in the run's folder.

    Args:
        setup: says how, and whether it learns from the sample.
        described: light curves of the sample.
        train: indices of its training part.
        trial: whose folder is in that of the run.
    """
    unlabelled = described.select(train) if setup.sample else others(setup.data_dir, described)
    shared = trial.folder.parents[1]
    pretrained = trial.train("pretraining", pretrain, unlabelled, setup.fit, folder=shared / "pretraining")
    note = (
        f"Pre-trained for {setup.fit.pretrain_epochs} epochs (seed {setup.fit.seed}) on {len(unlabelled):,} light "
        "curves of PLAsTiCC (doi:10.5281/zenodo.2539456, CC BY 4.0) in the bands u g r i z y; the 1,400 objects of the "
        "library's sample are not among them. `rotarymae-experiments run label_efficiency` makes it and measures its "
        "worth."
    )
    dataclasses.replace(pretrained.pipeline, columns=COLUMNS).save(shared / "pretrained", note)
    return pretrained.pipeline


def others(folder: str, sample: SeriesDataset) -> SeriesDataset:
    """Return the light curves of the challenge's training objects in `folder` that are not in the sample."""
    dataset = data.read(folder)[0]
    return light_curves(dataset.select(np.flatnonzero(~np.isin(dataset.ids, sample.ids))), described=False)


def draw(labels: np.ndarray, rows: np.ndarray, count: int | None, seed: int) -> np.ndarray:
    """Draw `count` of the `rows` for each class, or all if there are fewer: return them, ascending.

    `rows` are indices into `labels`; with None as count they are returned as they are.
    """
    if count is None:
        return rows
    shuffled = np.random.default_rng(seed).permutation(rows)
    return np.sort(np.concatenate([shuffled[labels[shuffled] == name][:count] for name in np.unique(labels[rows])]))


def figures(result: Result) -> Figures:
    """Draw macro-F1 by labels per class: a line per method, with its spread over the seeds."""
    from rotarymae_experiments import figures as draw

    cases = [result["cases"][case]["metrics"] for case in COUNTS if case in result["cases"]]
    counts = [case["labels per class, mean"]["mean"] for case in cases]
    means = {name: np.array([case[f"macro-F1, {name}"]["mean"] for case in cases]) for name in METHODS}
    figure = draw.curves(counts, means, x_label="labels per class (mean)", y_label="macro-F1", log_x=True)
    axes = figure.axes[0]
    axes.set_yscale("linear")
    for line, (name, mean) in zip(axes.get_lines(), means.items(), strict=False):
        spread = np.array([case[f"macro-F1, {name}"]["std"] or 0.0 for case in cases])
        axes.fill_between(counts, mean - spread, mean + spread, color=line.get_color(), alpha=0.15, linewidth=0)
    return {"labels": figure}


RECIPE = Recipe(
    name="label_efficiency",
    ours=LabelEfficiencySetup(
        fit=FitConfig(pretrain_epochs=60, finetune_epochs=14, min_steps=300, finetune_batch_size=16, pool="max")
    ),
    small={"fit": {"pretrain_epochs": 20}},
    smoke={
        "cases": ("5 labels",),
        "seeds": (0,),
        "sample": True,
        "objects": 150,
        "fit": SMOKE_TRAINING | {"min_steps": 0},
    },
    run=run,
    rows=tuple(
        Row(f"macro-F1, {case} per class, {name}", case, f"macro-F1, {name}", simple="macro-F1, gradient boosting")
        for case in COUNTS
        for name in METHODS[:-1]
    ),
    figures=figures,
)
