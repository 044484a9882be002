"""What a run's report says: reads an Outcome, computes nothing that metrics.json does not hold."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from rotarymae import plots
from rotarymae.provenance import hardware, versions
from rotarymae.report import content as report
from rotarymae.report import html as page
from rotarymae.series import plain
from rotarymae.tasks import HIDDEN, Outcome, curves, interpolate
from rotarymae.training import TrainResult

EXAMPLES = 6  # series shown with their hidden points
POINTS = 150  # of each interpolated curve
WORDS = {
    "asinh": "compressed by asinh around the median, then to mean 0 and deviation 1, channel by channel",
    "standard": "to mean 0 and deviation 1, channel by channel",
    "none": "as it is",
}


def write_report(
    outcome: Outcome,
    path: str | Path,
    *,
    title: str,
    summary: str = "",
    class_names: dict[Any, str] | None = None,
    time_label: str = "time",
    value_label: str | None = None,
    notes: tuple[str, ...] = (),
) -> Path:
    """Writes report.html of a finished run. `class_names` gives longer names of classes for people."""
    assert outcome.pretrained is not None, "a report needs a finished run"
    preprocessor = outcome.pretrained.preprocessor
    content = report.Report(
        title=title,
        summary=summary,
        headlines=_headlines(outcome),
        tables=_tables(outcome),
        series=_gallery(outcome, time_label, value_label or preprocessor.value_names[0]),
        calibration=_calibration(outcome),
        classification=_classification(outcome, class_names or {}),
        embedding=_embedding(outcome, class_names or {}),
        learning_curves=_curves(outcome),
        pictures=_pictures(outcome),
        preprocessing=_preprocessing(outcome),
        run=report.Run(
            command=outcome.command,
            seed=outcome.settings.pretrain.seed,
            wall_seconds=outcome.seconds,
            hardware=hardware(),
            versions=versions(),
            configuration={
                "model": outcome.pretrained.model.config.to_dict(),  # type: ignore[union-attr]
                **dataclasses.asdict(outcome.settings),
            },
        ),
        notes=notes,
    )
    return page.write(content, path)


def _headlines(outcome: Outcome) -> tuple[report.Headline, ...]:
    lines, where = [], str(outcome.metrics["scored on"])
    if "classification" in outcome.metrics:
        by_method: dict[str, dict[str, float]] = outcome.metrics["classification"]
        for metric in ("macro-F1", "accuracy"):
            others = {name: row[metric] for name, row in by_method.items() if name != "model"}
            lines.append(report.Headline(metric, by_method["model"][metric], others, note=f"on {where}"))
    if "regression" in outcome.metrics:
        row = outcome.metrics["regression"]
        simple = {"training mean": row["training mean"]["mean squared error"]}
        lines.append(
            report.Headline("mean squared error", row["mean squared error"], simple, False, note=f"on {where}")
        )
    for name, row in list(outcome.metrics.get("interpolation", {}).items())[:1]:
        error = "root mean squared error, scaled"
        lines.append(
            report.Headline(
                f"error at hidden {name}",
                row["model"][error],
                {"linear interpolation": row["linear interpolation"][error]},
                False,
                note=f"root mean square, in scaled units, {100 * HIDDEN:.0f} % of the observations hidden, on {where}",
            )
        )
    return tuple(lines)


def _tables(outcome: Outcome) -> tuple[report.Table, ...]:
    tables = []
    if "classification" in outcome.metrics:
        rows = list(outcome.metrics["classification"].items())
        tables.append(report.Table(f"Classes, on {outcome.metrics['scored on']}", rows))
    if "regression" in outcome.metrics:
        found = outcome.metrics["regression"]
        error = "mean squared error"
        rows = [("model", {error: found[error]}), ("training mean", {error: found["training mean"][error]})]
        tables.append(report.Table(f"Regression, on {outcome.metrics['scored on']}", rows, (error,)))
    for name, row in outcome.metrics.get("interpolation", {}).items():
        lower = ("root mean squared error, scaled", "median absolute error")
        inside = {f"inside {share} band": x for share, x in row.get("share inside band", {}).items()}
        linear = "linear interpolation"
        caption = "Scaled: after the compression and scaling described under what was done to the data."
        title = f"{name} at {row['hidden observations']:,} hidden observations, on {outcome.metrics['scored on']}"
        tables.append(report.Table(title, [("model", row["model"] | inside), (linear, row[linear])], lower, caption))
    return tuple(tables)


def _pictures(outcome: Outcome) -> tuple[report.Picture, ...]:
    if "regression" not in outcome.metrics or outcome.predicted is None or outcome.labels is None:
        return ()
    scored = _scored(outcome)
    figure = plots.regression(np.asarray(outcome.labels, np.float64)[scored], outcome.predicted[scored, 0])
    caption = f"Each point is one of {len(scored):,} series, on {outcome.metrics['scored on']}."
    return (report.Picture("Predicted beside true", figure, caption),)


def _scored(outcome: Outcome) -> np.ndarray:
    """Places of the series that the figures are on."""
    return outcome.split.test if len(outcome.split.test) else outcome.split.train


def _gallery(outcome: Outcome, time_label: str, value_label: str) -> tuple[report.InterpolatedSeries, ...]:
    if outcome.visible is None or outcome.hidden is None or outcome.pretrained is None:
        return ()
    visible, hidden, preprocessor = outcome.visible, outcome.hidden, outcome.pretrained.preprocessor
    chosen = np.sort(np.random.default_rng(0).permutation(len(visible))[:EXAMPLES])
    shown = visible.select(chosen)
    queries = curves(shown, hidden.select(chosen), POINTS)
    curve = interpolate(outcome.pretrained.directory, shown, queries)
    error_column = next((i for i, name in enumerate(preprocessor.value_names) if name.endswith("_err")), None)
    asinh = preprocessor.values.transforms[0] == "asinh"
    names = None if preprocessor.channel_names is None else tuple(str(name) for name in preprocessor.channel_names)
    gallery = []
    for row, place in enumerate(chosen):
        seen, left = visible[int(place)], hidden[int(place)]
        times = np.concatenate([seen.times, left.times])
        values = np.concatenate([seen.values, left.values])
        channels = None
        if seen.channels is not None and left.channels is not None:
            channels = np.concatenate([seen.channels, left.channels])
        at = slice(int(queries.offsets[row]), int(queries.offsets[row + 1]))
        bands = {share: (low[at, 0], high[at, 0]) for share, (low, high) in curve.bands.items()}
        spread = float(np.median(np.abs(values[:, 0] - np.median(values[:, 0])))) or 1.0
        gallery.append(
            report.InterpolatedSeries(
                title=str(seen.id),
                times=times,
                values=values[:, 0],
                channels=channels,
                errors=None if error_column is None else np.abs(values[:, error_column]),
                hidden=np.arange(len(times)) >= len(seen.times),
                curve_times=queries.times[at],
                curve_mean=curve.mean[at, 0],
                curve_bands=bands or None,
                curve_channels=None if queries.channels is None else queries.channels[at],
                channel_names=names,
                time_label=time_label,
                value_label=value_label,
                asinh_scale=spread if asinh else None,
            )
        )
    return tuple(gallery)


def _calibration(outcome: Outcome) -> report.Calibration | None:
    found, hidden, pretrained = outcome.interpolated, outcome.hidden, outcome.pretrained
    if found is None or found.scaled_std is None or hidden is None or pretrained is None:
        return None
    # The share inside a band is the same in scaled units, where the distribution is a normal one.
    channels = np.zeros(len(hidden.times), int) if hidden.channels is None else hidden.channels
    truth = pretrained.preprocessor.values.transform(hidden.values, channels)
    return report.Calibration.from_gaussian(truth[:, 0], found.scaled_mean[:, 0], found.scaled_std[:, 0])


def _classification(outcome: Outcome, names: dict[Any, str]) -> report.Classification | None:
    if outcome.finetuned is None or outcome.predicted is None or outcome.labels is None:
        return None
    classes = outcome.finetuned.preprocessor.classes
    if classes is None:
        return None
    scored = _scored(outcome)
    places = {name: i for i, name in enumerate(classes)}
    boosted = None if outcome.boosted is None else np.array([places[plain(x)] for x in outcome.boosted])
    return report.Classification(
        names=tuple(names.get(name, str(name)) for name in classes),
        labels=np.array([places[plain(label)] for label in outcome.labels[scored]]),
        predicted=outcome.predicted[scored].argmax(1),
        baseline=boosted,
        baseline_name="gradient boosting",
        objects="held-out series" if len(outcome.split.test) else "series, all of which were trained on",
    )


def _embedding(outcome: Outcome, names: dict[Any, str]) -> report.EmbeddingMap | None:
    scored = _scored(outcome)
    if outcome.embeddings is None or len(scored) < 5:
        return None
    method = "tsne" if len(scored) >= 50 else "pca"
    points = plots.project(outcome.embeddings[scored], method, 0)
    classes = None if outcome.finetuned is None else outcome.finetuned.preprocessor.classes
    shown = "t-SNE" if method == "tsne" else "PCA"
    if classes is None or outcome.labels is None:
        return report.EmbeddingMap(points, method=shown)
    places = {name: i for i, name in enumerate(classes)}
    labels = np.array([places[plain(label)] for label in outcome.labels[scored]])
    return report.EmbeddingMap(points, labels, tuple(names.get(name, str(name)) for name in classes), shown)


def _curves(outcome: Outcome) -> tuple[report.LearningCurve, ...]:
    curves = []
    for stage, trained in (("pre-training", outcome.pretrained), ("fine-tuning", outcome.finetuned)):
        if trained is not None:
            curve = learning_curve(stage, trained.result)
            if curve is not None:
                curves.append(curve)
    return tuple(curves)


def learning_curve(stage: str, result: TrainResult) -> report.LearningCurve | None:
    """Training loss by epoch (the mean of what was logged in it), and validation loss where there is one."""
    logged = [line for line in result.history if "loss" in line]
    if not logged:
        return None
    tested = {int(line["epoch"]): line["validation"] for line in result.history if "validation" in line}
    by_epoch: dict[int, list[float]] = {}
    for line in logged:
        by_epoch.setdefault(int(line["epoch"]) + 1, []).append(line["loss"])
    steps = sorted(by_epoch)
    training = [float(np.mean(by_epoch[step])) for step in steps]
    validation = [tested.get(step, float("nan")) for step in steps] if tested else None
    return report.LearningCurve(stage, steps, training, validation)


def _preprocessing(outcome: Outcome) -> report.Preprocessing:
    assert outcome.pretrained is not None
    dataset, preprocessor = outcome.dataset, outcome.pretrained.preprocessor
    split = outcome.metrics["series"]
    unit = preprocessor.positions.unit
    facts: dict[str, object] = {
        "series": len(dataset),
        "observations": len(dataset.times),
        "observations a series": f"{dataset.lengths.min()} to {dataset.lengths.max()}, median "
        f"{np.median(dataset.lengths):.0f}",
        "trained on, chose the epoch, held out": f"{split['train']}, {split['validation']}, {split['test']} series",
        "times count from": preprocessor.describe()["times count from"],
    }
    if preprocessor.channel_names is not None:
        facts["channels"] = ", ".join(map(str, preprocessor.channel_names))
    scalers = {
        name: WORDS[how] for name, how in zip(preprocessor.value_names, preprocessor.values.transforms, strict=True)
    }
    measured = "the median gap between distinct times, or a thousandth of the span"
    how = "as asked" if outcome.settings.time_unit else measured
    days = " days" if dataset.time_unit == "day" else ""
    return report.Preprocessing(facts, scalers, f"{unit:.4g}{days} ({how})", warnings=tuple(outcome.warnings))
