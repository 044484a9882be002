"""explore.html: the map of embeddings, a curve per click, and a table to sort by anomaly score; it loads nothing.

Bokeh draws it (extra "explore").
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from rotarymae.anomaly import hidden_loss
from rotarymae.errors import InputError, import_extra
from rotarymae.interpolation import interpolate
from rotarymae.outcome import Outcome
from rotarymae.partners.decide import decide
from rotarymae.plots import channel_style, project, style_of
from rotarymae.queries import curves
from rotarymae.report.pictures import Words, error_column, most_observed
from rotarymae.series import channel_index, plain
from rotarymae.system import write_text

MOST = 400  # series with a curve; every series is on the map
POINTS = 30  # of each curve
CHANNELS = 6  # drawn of each series, those with most observations
BAND = 0.95
MARKERS = {"o": "circle", "^": "triangle", "s": "square", "D": "diamond", "v": "inverted_triangle", "p": "hex"}
MARKERS |= {"P": "star", "X": "square_pin"}
UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
UNKNOWN = ("#5b6270", "o")  # how a series without a label looks

KINDS = {"channel": np.int16, "hidden": np.int8, "of": np.int16, "time": np.float64, "at": np.float64}
DAY = 86_400_000  # milliseconds, in which Bokeh counts dates

SHOW = """
const chosen = source.selected.indices
if (chosen.length == 0) return
const i = chosen[0], row = source.data["row"][i]
title.text = row < 0 ? `${source.data["id"][i]}: no curve is kept` : `${source.data["id"][i]}`
const nothing = {x: [], y: [], low: [], high: [], colour: [], channel: [], kind: [], alpha: []}
if (row < 0) {
  seen.data = nothing
  for (const line of [means, bands]) line.data = {xs: [], ys: [], colour: []}
  return
}
const pick = (name) => Array.from(store.data[name][row])
const which = pick("channel"), colours = which.map((c) => style[c][0])
seen.data = {x: pick("time"), y: pick("value"), low: pick("low"), high: pick("high"), colour: colours,
             channel: which.map((c) => style[c][1]), kind: pick("hidden").map((h) => h ? "hidden" : "seen"),
             alpha: pick("hidden").map((h) => h ? 0.0 : 0.9)}
const at = pick("at"), of = pick("of"), mean = pick("mean"), lower = pick("lower"), upper = pick("upper")
const lines = {xs: [], ys: [], colour: []}, areas = {xs: [], ys: [], colour: []}
for (let start = 0; start < of.length; ) {
  let end = start
  while (end < of.length && of[end] == of[start]) end++
  const x = at.slice(start, end), colour = style[of[start]][0]
  lines.xs.push(x); lines.ys.push(mean.slice(start, end)); lines.colour.push(colour)
  areas.xs.push(x.concat(x.slice().reverse()))
  areas.ys.push(lower.slice(start, end).concat(upper.slice(start, end).reverse())); areas.colour.push(colour)
  start = end
}
means.data = lines; bands.data = areas
"""
KEEP = """
const kept = [], d = source.data
for (let i = 0; i < d["id"].length; i++) {
  if (of_class.value != "" && d["truth"][i] != of_class.value) continue
  if (of_error.value == "wrong" && d["right"][i] != "no") continue
  if (of_error.value == "right" && d["right"][i] != "yes") continue
  kept.push(i)
}
return kept
"""


def write_explorer(
    outcome: Outcome,
    path: str | Path,
    *,
    title: str,
    invert: Collection[str] = (),
) -> Path:
    """Writes the page of a run on series whose embeddings are known.

    Args:
        invert: as of `write_report`; of channels, all must be inverted, as they share a picture.

    Raises:
        InputError: without the extra; fewer than three series.
    """
    import_extra("bokeh", "explore")
    from bokeh.embed import components
    from bokeh.resources import Resources

    words = Words.of(outcome, {}, invert=invert)
    script, body = _same_every_time(*components(_layout(outcome, words)))
    scripts = Resources(mode="inline", components=["bokeh", "bokeh-widgets", "bokeh-tables"]).render_js()
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    page = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    content = {"title": title, "count": f"{len(outcome.dataset):,}", "scripts": scripts, "script": script, "body": body}
    text = page.get_template("explore.html.j2").render(content)
    write_text(Path(path), text)
    return Path(path)


def _same_every_time(script: str, body: str) -> tuple[str, str]:
    """The same with Bokeh's random names of the document and its place on the page replaced by fixed ones."""
    random = re.findall(f'id="({UUID})"', body) + re.findall(f'"docid":"({UUID})"', script)
    for i, name in enumerate(dict.fromkeys(random)):
        script, body = script.replace(name, f"explorer-{i}"), body.replace(name, f"explorer-{i}")
    return script, body


def _layout(outcome: Outcome, words: Words) -> Any:
    from bokeh import models
    from bokeh.layouts import column, row
    from bokeh.plotting import figure

    names = [str(name) for name in getattr(outcome.dataset, "channel_names", None) or ("value",)]
    style = [[colour, name] for (colour, _), name in zip(channel_style(names), names, strict=True)]
    table: dict[str, Any] = _table(outcome, words)
    store: dict[str, Any] = _curves(outcome)
    if words.dates:
        store |= {name: [times * DAY for times in store[name]] for name in ("time", "at")}
    source, kept = models.ColumnDataSource(table), models.ColumnDataSource(store)
    of_class = models.Select(
        title="class", value="", options=[("", "all"), *sorted((name, name) for name in set(table["truth"]))]
    )
    of_error = models.Select(title="predictions", value="all", options=["all", "right", "wrong"])
    view = models.CDSView(filter=models.CustomJSFilter(args={"of_class": of_class, "of_error": of_error}, code=KEEP))
    for select in (of_class, of_error):
        select.js_on_change("value", models.CustomJS(args={"source": source}, code="source.change.emit()"))

    shared: dict[str, Any] = {"sizing_mode": "stretch_width", "toolbar_location": "above", "output_backend": "canvas"}
    tips = [("", "@id"), ("class", "@truth"), ("predicted", "@guess"), ("anomaly score", "@anomaly_score{0.00}")]
    tools = "tap,pan,wheel_zoom,box_zoom,reset"
    embedded = figure(title="Embeddings (PCA); click a point", height=420, tools=tools, tooltips=tips, **shared)
    embedded.scatter(
        "x", "y", source=source, view=view, color="colour", marker="marker", size=8, alpha=0.75, nonselection_alpha=0.3
    )

    empty: dict[str, Any] = {name: [] for name in ("x", "y", "low", "high", "colour", "channel", "kind", "alpha")}
    seen, areas = models.ColumnDataSource(empty), models.ColumnDataSource({"xs": [], "ys": [], "colour": []})
    means = models.ColumnDataSource({"xs": [], "ys": [], "colour": []})
    shared |= {"x_axis_type": "datetime"} if words.dates else {}
    curve = figure(title="Click a point, or a row below", height=420, tools="pan,wheel_zoom,box_zoom,reset", **shared)
    value = outcome.pipeline.require_series().value_names[:1]
    curve.y_range = models.DataRange1d(flipped=any(set(shown) <= words.invert for shown in (value, names) if shown))
    curve.patches("xs", "ys", source=areas, fill_color="colour", fill_alpha=0.1, line_color=None)
    curve.multi_line("xs", "ys", source=means, line_color="colour", line_width=1.5)
    curve.segment("x", "low", "x", "high", source=seen, line_color="colour", line_alpha=0.4)
    points = curve.scatter("x", "y", source=seen, line_color="colour", fill_color="colour", fill_alpha="alpha", size=7)
    when = "@x{%F %T}" if words.dates else "@x{0.0000}"
    formatters: Any = {"@x": "datetime"} if words.dates else {}
    tips = [("", "@kind"), (words.time, when), (words.value, "@y{0.0000}"), ("channel", "@channel")]
    curve.add_tools(models.HoverTool(renderers=[points], tooltips=tips, formatters=formatters))
    curve.xaxis.axis_label, curve.yaxis.axis_label = words.time, words.value

    known = {"source": source, "store": kept, "seen": seen, "means": means, "bands": areas, "style": style}
    source.selected.js_on_change("indices", models.CustomJS(args={**known, "title": curve.title}, code=SHOW))
    legend = " ".join(f'<span style="color: {colour}">●&nbsp;{html.escape(name)}</span>' for colour, name in style)
    # SlickGrid writes titles as HTML.
    titles = {"id": html.escape(outcome.dataset.id_name), "truth": "class", "guess": "predicted", "right": "right"}
    columns = [models.TableColumn(field=name, title=title) for name, title in titles.items()]
    number = models.NumberFormatter(format="0.00")
    columns.append(models.TableColumn(field="anomaly_score", title="anomaly score", formatter=number))
    rows = models.DataTable(source=source, view=view, columns=columns, height=320, sizing_mode="stretch_width")
    selects = row(of_class, of_error, sizing_mode="stretch_width")
    return column(selects, embedded, curve, models.Div(text=legend), rows, sizing_mode="stretch_width")


def _table(outcome: Outcome, words: Words) -> dict[str, Any]:
    """A row per series; `row` is that of its curve, or -1."""
    dataset, total = outcome.dataset, len(outcome.dataset)
    if outcome.embeddings is None or total < 3:
        raise InputError("an interactive page needs the embeddings of three series or more.")
    at = project(outcome.embeddings)
    truth, guess, right = ["–"] * total, ["–"] * total, ["–"] * total
    if words.classes and outcome.predicted is not None and outcome.labels is not None:
        decided = decide(outcome.predicted, getattr(outcome.pipeline.labels, "weights", ()))
        guess = [words.classes[k] for k in decided]
        known = [plain(name) for name in outcome.classes]
        for i in outcome.split.labelled:
            truth[i] = words.classes[known.index(plain(outcome.labels[i]))]
            right[i] = "yes" if truth[i] == guess[i] else "no"
    rows, scores = np.full(total, -1), np.full(total, np.nan)
    if outcome.hidden is not None and outcome.visible is not None:
        place = {plain(name): i for i, name in enumerate(dataset.ids)}
        where = np.array([place[plain(name)] for name in outcome.visible.ids])
        rows[where[:MOST]] = np.arange(len(where))[:MOST]
        assert outcome.interpolated is not None
        scores[where] = hidden_loss(outcome.pipeline, outcome.hidden, outcome.interpolated)
    number = {name: i for i, name in enumerate(words.classes)}
    looks = [style_of(number[name]) if name in number else UNKNOWN for name in truth]
    # What was scored comes first, the most surprising on top.
    order = np.argsort(np.where(np.isnan(scores), np.inf, -scores), kind="stable")
    columns = {
        "x": at[:, 0],
        "y": at[:, 1],
        "id": [str(plain(name)) for name in dataset.ids],
        "truth": truth,
        "guess": guess,
        "right": right,
        "anomaly_score": scores,
        "row": rows,
        "colour": [colour for colour, _ in looks],
        "marker": [MARKERS[marker] for _, marker in looks],
    }
    return {name: np.asarray(column)[order].tolist() for name, column in columns.items()}


def _curves(outcome: Outcome) -> dict[str, Any]:
    """Observations and predicted curves, a list of arrays per column with an array per series."""
    columns = ("time", "value", "low", "high", "channel", "hidden", "at", "of", "mean", "lower", "upper")
    store: dict[str, Any] = {name: [] for name in columns}
    if outcome.visible is None or outcome.hidden is None:
        return store
    few = np.arange(min(MOST, len(outcome.visible)))
    visible, hidden = outcome.visible.select(few), outcome.hidden.select(few)
    pipeline = outcome.pipeline
    error = error_column(pipeline.require_series())
    queries = curves(visible, hidden, POINTS)
    found = interpolate(pipeline, visible, queries)
    lower, upper = found.bands.get(BAND, (found.mean, found.mean))
    asked = channel_index(queries)
    for i, (seen, left) in enumerate(zip(visible, hidden, strict=True)):
        values = np.concatenate([seen.values, left.values])
        channels = np.concatenate([channel_index(one) for one in (seen, left)])
        most = most_observed(channels, CHANNELS)
        keep, spread = np.isin(channels, most), 0.0 if error is None else values[:, error]
        at = np.arange(queries.offsets[i], queries.offsets[i + 1])
        at = at[np.isin(asked[at], most)]
        late = np.arange(len(channels)) >= len(seen.times)
        row = {
            "time": np.concatenate([seen.times, left.times])[keep],
            "value": values[keep, 0],
            "low": (values[:, 0] - spread)[keep],
            "high": (values[:, 0] + spread)[keep],
            "channel": channels[keep],
            "hidden": late[keep],
            "at": queries.times[at],
            "of": asked[at],
            "mean": found.mean[at, 0],
            "lower": lower[at, 0],
            "upper": upper[at, 0],
        }
        for name, column in row.items():
            store[name].append(np.asarray(column, KINDS.get(name, np.float32)))
    return store
