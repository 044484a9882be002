"""A report as one HTML page that stands alone: style and images are inside it, it loads nothing and runs no script."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from rotarymae import plots
from rotarymae.atomic_write import write_text
from rotarymae.report.content import (
    Calibration,
    Classification,
    EmbeddingMap,
    Headline,
    InterpolatedSeries,
    LearningCurve,
    Preprocessing,
    Report,
    Run,
    Table,
)
from rotarymae.report.images import data_uri


def write(report: Report, path: str | os.PathLike[str]) -> Path:
    """Writes the page to `path`, making its folder; a page that was there is replaced at the end, in one step."""
    path = Path(path)
    write_text(path, render(report))
    return path


def render(report: Report) -> str:
    """The page as one string of HTML."""
    parts: list[tuple[str, str, str, str]] = []  # anchor, heading, sentence, body

    def add(anchor: str, heading: str, sentence: str, body: str) -> None:
        parts.append((anchor, heading, sentence, body))

    if report.headlines:
        add("headlines", "At a glance", _HEADLINES, _headlines(report.headlines))
    if report.tables:
        add("tables", "Beside simpler methods", _TABLES, "".join(_comparison(table) for table in report.tables))
    if report.series:
        sentence = _SERIES if any(s.curve_mean is not None for s in report.series) else _SERIES_PLAIN
        add("series", "Series", sentence, "".join(_series(series) for series in report.series))
    if report.calibration is not None:
        add("calibration", "Are the bands honest?", _CALIBRATION, _calibration(report.calibration))
    if report.classification is not None:
        add("classes", "Class by class", _CLASSES, _classification(report.classification))
    if report.embedding is not None:
        end = _EMBEDDING_PCA if report.embedding.method.upper() == "PCA" else _EMBEDDING_OTHER
        add("embedding", "Map of embeddings", _EMBEDDING + end, _embedding(report.embedding))
    if report.learning_curves:
        add("learning", "Learning curves", _LEARNING, _learning(report.learning_curves))
    for i, picture in enumerate(report.pictures):
        body = _figure(picture.figure, picture.title)
        add(f"picture-{i + 1}", picture.title, html.escape(picture.caption), body)
    if report.preprocessing is not None:
        add("data", "What was done to the data", _DATA, _preprocessing(report.preprocessing))
    if report.run is not None:
        add("run", "How to repeat it", _RUN, _run(report.run))
    if report.notes:
        items = "".join(f"<li>{html.escape(note)}</li>" for note in report.notes)
        add("notes", "Notes and limits", _NOTES, f"<ul>{items}</ul>")

    links = "".join(f'<a href="#{anchor}">{html.escape(heading)}</a>' for anchor, heading, _, _ in parts)
    sections = "\n".join(
        f'<section id="{anchor}">\n<h2>{html.escape(heading)}</h2>\n<p class="how">{sentence}</p>\n{body}\n</section>'
        for anchor, heading, sentence, body in parts
    )
    summary = f'<p class="summary">{html.escape(report.summary)}</p>' if report.summary else ""
    navigation = f'<nav aria-label="Sections">{links}</nav>' if len(parts) > 1 else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{html.escape(report.title)}</title>
<style>{_CSS}</style>
</head>
<body>
<header><h1>{html.escape(report.title)}</h1>{summary}{navigation}</header>
<main>
{sections}
</main>
</body>
</html>
"""


# One sentence per section: what one sees, and how to read it.
_HEADLINES = (
    "Below each figure stands what simpler methods reach on the same data, and how far the model is from them "
    "(▲ better, ▼ worse)."
)
_TABLES = "The same data given to each method; the best value of a column is bold."
_SERIES = (
    "Filled points were shown to the model and hollow points were kept from it; the line is its prediction and the "
    "bands should hold 68 % and 95 % of the hollow points, up to the measurement errors drawn on them."
)
_SERIES_PLAIN = "Some of the series as the model receives them, in the units of the table they came from."
_CALIBRATION = (
    "If the bands mean what they say, the share of hidden points inside each equals its promise: below it the model is "
    "too sure of itself, above it too cautious."
)
_CLASSES = (
    "Each row of the matrix is a true class and shows where its objects were put, in per cent, so the diagonal is "
    "recall; the table adds precision (how often a verdict is right) and F1, their harmonic mean."
)
_EMBEDDING = "Each point is one series as the encoder sees it, so that neighbours are series the model finds alike; "
_EMBEDDING_PCA = "only the two directions of largest variation are shown, and what overlaps here may differ in others."
_EMBEDDING_OTHER = "the flattening keeps neighbourhoods only, and distances across the map mean little."
_LEARNING = (
    "Loss by epoch: both curves should fall and level off; validation rising while training still falls is overfitting."
)
_DATA = (
    "What happened between your table and the model's input; the scalers were fitted on the training part alone and "
    "are saved with the model."
)
_RUN = "The command, settings and versions that made this page."
_NOTES = "What to keep in mind before relying on these figures."


def _headlines(headlines: Sequence[Headline]) -> str:
    cards = []
    for headline in headlines:
        rows = ""
        for name, value in headline.baselines.items():
            change = headline.value - value
            if not math.isfinite(change):
                badge = ""
            elif change == 0:
                badge = '<span class="same">equal</span>'
            else:
                better = (change > 0) == headline.higher_is_better
                arrow, tone = ("▲", "better") if better else ("▼", "worse")
                word = f"{abs(change):.3f}" if abs(change) >= 0.0005 and abs(change) < 100 else number(abs(change))
                badge = f'<span class="{tone}" title="{tone} by {word}">{arrow} {word}</span>'
            rows += f"<tr><th>{html.escape(name)}</th><td>{number(value)}</td><td>{badge}</td></tr>"
        note = f'<p class="note">{html.escape(headline.note)}</p>' if headline.note else ""
        direction = "" if headline.higher_is_better else ' <small class="note">(lower is better)</small>'
        table = f"<table>{rows}</table>" if rows else ""
        cards.append(
            f'<div class="card"><h3>{html.escape(headline.name)}{direction}</h3>'
            f'<p class="value">{number(headline.value)}</p>{note}{table}</div>'
        )
    return f'<div class="cards">{"".join(cards)}</div>'


def _comparison(table: Table) -> str:
    metrics = list(dict.fromkeys(metric for _, row in table.rows for metric in row))
    best: dict[str, float] = {}
    for metric in metrics:
        values = [row[metric] for _, row in table.rows if metric in row and math.isfinite(row[metric])]
        if len(values) > 1:
            best[metric] = min(values) if metric in table.lower_is_better else max(values)
    heads = "".join(
        f"<th>{html.escape(m)}{'<small>&nbsp;↓</small>' if m in table.lower_is_better else ''}</th>" for m in metrics
    )
    body = ""
    for name, row in table.rows:
        cells = ""
        for metric in metrics:
            text = number(row[metric]) if metric in row else "–"
            winner = metric in best and metric in row and row[metric] == best[metric]
            cells += f"<td><strong>{text}</strong></td>" if winner else f"<td>{text}</td>"
        body += f"<tr><th>{html.escape(name)}</th>{cells}</tr>"
    lower = "↓: the lower the better." if set(table.lower_is_better) & set(metrics) else ""
    caption = " ".join(part for part in (html.escape(table.caption), lower) if part)
    return (
        f"<h3>{html.escape(table.title)}</h3>"
        + (f'<p class="note">{caption}</p>' if caption else "")
        + _scroll(f"<table><thead><tr><th>method</th>{heads}</tr></thead><tbody>{body}</tbody></table>")
    )


def _series(series: InterpolatedSeries) -> str:
    figure = plots.interpolation(
        series.times,
        series.values,
        channels=series.channels,
        errors=series.errors,
        hidden=series.hidden,
        curve_times=series.curve_times,
        curve_mean=series.curve_mean,
        curve_std=series.curve_std,
        curve_bands=series.curve_bands,
        curve_channels=series.curve_channels,
        channel_names=series.channel_names,
        time_label=series.time_label.replace("$", r"\$"),
        value_label=series.value_label.replace("$", r"\$"),
        asinh_scale=series.asinh_scale,
    )
    return f"<h3>{html.escape(series.title)}</h3>{_figure(figure, series.title)}"


def _calibration(calibration: Calibration) -> str:
    nominal, observed = np.asarray(calibration.nominal, float), np.asarray(calibration.observed, float)
    rows = ""
    for promise, found in zip(nominal, observed):
        # Two standard errors of a share among so many points, as if they were independent.
        noise = 2 * math.sqrt(promise * (1 - promise) / max(calibration.points, 1))
        verdict = "as promised" if abs(found - promise) <= max(noise, 0.02) else "too wide"
        verdict = "too narrow" if found < promise and verdict == "too wide" else verdict
        rows += f"<tr><th>{_percent(promise, 0)}</th><td>{_percent(found)}</td><td>{verdict}</td></tr>"
    table = (
        "<table><thead><tr><th>band</th><th>hidden points inside</th><th>so it is</th></tr></thead>"
        f'<tbody>{rows}</tbody></table><p class="note">{calibration.points:,} hidden points; “as promised” means '
        "within 2 percentage points, or within two standard errors where that is more.</p>"
    )
    picture = _figure(plots.calibration(nominal, observed), "Calibration of the bands", small=True)
    return f'<div class="pair"><div>{table}</div>{picture}</div>'


def _classification(classification: Classification) -> str:
    k = len(classification.names)
    labels, predicted = np.asarray(classification.labels), np.asarray(classification.predicted)
    counts = confusion_counts(labels, predicted, k)
    scores = class_scores(counts)
    other: NDArray[np.float64] | None = None
    if classification.baseline is not None:
        other = class_scores(confusion_counts(labels, np.asarray(classification.baseline), k))[:, 2]
    rows = ""
    for i, name in enumerate(classification.names):
        precision, recall, f1, support = scores[i]
        rows += f"<tr><th>{html.escape(str(name))}</th>{_cells(precision, recall)}"
        if other is None:
            rows += _cells(f1)
        else:
            rows += _cells(f1, win=f1 > other[i]) + _cells(other[i], win=other[i] > f1)
        rows += f"<td>{int(support):,}</td></tr>"
    # Classes of which no object was scored have no F1 worth averaging.
    present = scores[:, 3] > 0
    means = scores[present, :3].mean(0)
    rows += f'<tr class="total"><th>mean over classes (macro)</th>{_cells(*means)}'
    rows += _cells(other[present].mean()) if other is not None else ""
    rows += f"<td>{len(labels):,}</td></tr>"
    extra = f"<th>F1 of {html.escape(classification.baseline_name)}</th>" if other is not None else ""
    head = f"<tr><th>class</th><th>precision</th><th>recall</th><th>F1</th>{extra}<th>objects</th></tr>"
    objects = html.escape(classification.objects)
    accuracy = f"Accuracy {number(float((labels == predicted).mean()))} on {len(labels):,} {objects}."
    if not present.all():
        accuracy += " Classes without any of them are left out of the means."
    figure = plots.confusion(counts, [str(name) for name in classification.names])
    return (
        _figure(figure, "Confusion matrix", small=k <= 6)
        + f'<p class="note">{accuracy}</p>'
        + _scroll(f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>")
    )


def _embedding(embedding: EmbeddingMap) -> str:
    names = None if embedding.names is None else [str(name) for name in embedding.names]
    figure = plots.embedding_map(embedding.points, embedding.labels, names, method=embedding.method)
    return _figure(figure, f"Map of embeddings ({embedding.method})")


def _learning(curves: Sequence[LearningCurve]) -> str:
    stages: dict[str, dict[str, tuple[ArrayLike, ArrayLike]]] = {}
    for curve in curves:
        lines = stages.setdefault(curve.stage, {})
        lines["training"] = (curve.steps, curve.training)
        if curve.validation is not None:
            lines["validation"] = (curve.steps, curve.validation)
    return _figure(plots.learning_curves(stages), "Learning curves")


def _preprocessing(done: Preprocessing) -> str:
    out = _definitions(done.facts)
    rows: dict[str, object] = dict(done.scalers)
    if done.position_unit:
        rows["unit of positions"] = done.position_unit
    if rows:
        out += f"<h3>Scaling</h3>{_definitions(rows)}"
    if done.dropped:
        out += f"<h3>Rows left out</h3>{_definitions(done.dropped)}"
    if done.warnings:
        items = "".join(f"<li>{html.escape(warning)}</li>" for warning in done.warnings)
        out += f'<h3>Warnings</h3><ul class="warnings">{items}</ul>'
    return out


def _run(run: Run) -> str:
    out = f"<pre>{html.escape(run.command)}</pre>" if run.command else ""
    facts: dict[str, object] = {}
    if run.wall_seconds is not None:
        facts["wall time"] = duration(run.wall_seconds)
    if run.seed is not None:
        facts["seed"] = str(run.seed)
    if run.hardware:
        facts["hardware"] = run.hardware
    out += _definitions(facts)
    if run.versions:
        out += f"<h3>Versions</h3>{_definitions(run.versions)}"
    if run.configuration:
        out += f"<h3>Configuration</h3>{_scroll(_nested(run.configuration))}"
    return out


# ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────────────


def number(value: object) -> str:
    """A value as a reader wants it: 12,345 · 0.703 · 3.21e-05 · yes · –. Escaped, ready for the page."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}".replace("-", "−")
    if isinstance(value, float | np.floating):
        x = float(value)
        if not math.isfinite(x):
            return "–" if math.isnan(x) else ("∞" if x > 0 else "−∞")
        size = abs(x)
        if size and (size < 1e-3 or size >= 1e7):
            text = f"{x:.2e}"
        elif size >= 1000:
            text = f"{x:,.0f}"
        elif size >= 10:
            text = f"{x:.4g}"
        else:
            text = f"{x:.3f}" if size else "0"
        return text.replace("-", "−")
    if value is None:
        return "–"
    return html.escape(str(value))


def _setting(value: object) -> str:
    """A configured value, exactly: it is there to be typed again."""
    if isinstance(value, float | np.floating):
        return html.escape(f"{float(value):.10g}")
    if isinstance(value, list | tuple):
        return ", ".join(_setting(item) for item in value) or "–"
    return "–" if value is None else html.escape(str(value))


def duration(seconds: float) -> str:
    """37 s · 12 min 5 s · 3 h 12 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(whole / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def confusion_counts(labels: ArrayLike, predicted: ArrayLike, classes: int) -> NDArray[np.int64]:
    """[classes, classes]: how many objects of each true class (row) were predicted as each class (column)."""
    pairs = np.asarray(labels, np.int64) * classes + np.asarray(predicted, np.int64)
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def class_scores(counts: ArrayLike) -> NDArray[np.float64]:
    """[classes, 4]: precision, recall, F1 and support of each class; 0 where nothing was there or predicted."""
    table = np.asarray(counts, np.float64)
    right, truth, said = table.diagonal(), table.sum(1), table.sum(0)

    def share(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.divide(a, b, out=np.zeros_like(a), where=b > 0)

    return np.stack([share(right, said), share(right, truth), share(2 * right, truth + said), truth], 1)


def _percent(x: float, digits: int = 1) -> str:
    return f"{100 * x:.{digits}f} %"


def _cells(*values: float, win: bool = False) -> str:
    start = '<td class="win">' if win else "<td>"
    return "".join(f"{start}{number(float(value))}</td>" for value in values)


def _definitions(rows: Mapping[str, object]) -> str:
    if not rows:
        return ""
    body = "".join(
        f'<tr><th>{html.escape(str(name))}</th><td class="text">{number(value)}</td></tr>'
        for name, value in rows.items()
    )
    return _scroll(f"<table>{body}</table>")


def _nested(settings: Mapping[str, Any]) -> str:
    """A nested mapping as one table; a group's name stands above its settings."""
    plain = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}

    def rows(values: Mapping[str, Any], prefix: str = "") -> str:
        out = ""
        for name, value in values.items():
            full = f"{prefix}{name}"
            if isinstance(value, Mapping) and value:
                out += rows(value, f"{full}.")
            else:
                text = _setting(None if isinstance(value, Mapping) else value)
                out += f'<tr><th>{html.escape(full)}</th><td class="text">{text}</td></tr>'
        return out

    body = rows(plain)
    for name, group in settings.items():
        if isinstance(group, Mapping):
            body += f'<tr class="group"><th colspan="2">{html.escape(str(name))}</th></tr>' + rows(group)
    return f"<table>{body}</table>"


def _scroll(table: str) -> str:
    return f'<div class="scroll">{table}</div>'


def _figure(figure: Figure, description: str, small: bool = False) -> str:
    kind = "figure small" if small else "figure"
    width = round(96 * float(figure.get_figwidth()))
    image = f'<img src="{data_uri(figure)}" alt="{html.escape(description)}" width="{width}">'
    return f'<figure class="{kind}">{image}</figure>'


_CSS = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1f2430; --faint: #5b6270; --line: #dde1e7;
  --accent: #0b62a4; --better: #12734a; --worse: #b3361b; --warn: #fff6e0; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --card: #1c2027; --ink: #e6e9ef; --faint: #a0a8b6;
  --line: #323844; --accent: #7cbcf0; --better: #5fd19b; --worse: #ff9077; --warn: #3a3119; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.3rem; margin: 0 0 .25rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
h1, h2, h3, p, li { overflow-wrap: anywhere; }
tbody th { overflow-wrap: break-word; max-width: 22rem; }
.summary { font-size: 1.08rem; max-width: 48rem; margin: .5rem 0 1rem; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; margin: 1rem 0 1.5rem; }
a { color: var(--accent); text-decoration: none; }
a:hover, a:focus { text-decoration: underline; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.3rem 1.4rem;
  margin: 0 0 1.2rem; scroll-margin-top: 1rem; }
.how { color: var(--faint); max-width: 48rem; margin: 0 0 1rem; }
.note { color: var(--faint); font-size: .88rem; margin: .2rem 0 .6rem; font-weight: 400; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1rem; }
.card h3 { margin: 0; }
.card .value { font-size: 2.3rem; font-weight: 650; line-height: 1.2; margin: .2rem 0; letter-spacing: -.02em; }
.card table { width: 100%; font-size: .88rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .93rem; }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { text-align: left; font-weight: 500; }
td, thead th { text-align: right; white-space: nowrap; }
td.text { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
thead th { color: var(--faint); font-weight: 600; white-space: normal; }
thead th:first-child { text-align: left; }
td + td, thead th + th { padding-left: .7rem; }
tr:last-child > * { border-bottom: 0; }
.total > *, .win, strong { font-weight: 700; }
.group th { padding-top: 1rem; font-weight: 700; }
.better { color: var(--better); } .worse { color: var(--worse); } .same { color: var(--faint); }
.scroll { overflow-x: auto; }
figure { margin: .4rem 0 .8rem; overflow-x: auto; background: #fff; border-radius: 6px; padding: .5rem; }
figure img { display: block; margin: 0 auto; max-width: 100%; height: auto; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem 2rem;
  align-items: center; }
pre { background: var(--page); border: 1px solid var(--line); border-radius: 6px; padding: .7rem .9rem;
  white-space: pre-wrap; overflow-wrap: anywhere; font-size: .88rem; }
.warnings li { background: var(--warn); padding: .25rem .6rem; border-radius: 5px; margin: .3rem 0; }
@media (max-width: 640px) {
  body { padding: .8rem .6rem 2rem; } section { padding: 1rem .9rem; } h1 { font-size: 1.5rem; }
  figure:not(.small) img { max-width: none; width: 660px; }
}
@media print {
  :root { color-scheme: light; --page: #fff; --card: #fff; --ink: #000; --faint: #444; --line: #ccc;
    --accent: #000; --better: #12734a; --worse: #b3361b; --warn: #fff; }
  body { max-width: none; font-size: 11pt; padding: 0; } nav { display: none; }
  section { border: 0; padding: 0; } figure, .card, tr { break-inside: avoid; } h2, h3, .how { break-after: avoid; }
}
"""
