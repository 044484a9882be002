"""From a run's Outcome to its page: what the page says, its pictures, and the file."""

from __future__ import annotations

import base64
import dataclasses
import io
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2
import matplotlib
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from rotarymae.anomaly import HIDDEN
from rotarymae.heads import encoder_of
from rotarymae.metrics import (
    CONCORDANCE,
    RMSE,
    SCALED_RMSE,
    method_words,
    metric_of,
    sample_words,
    scored_words,
)
from rotarymae.outcome import Outcome
from rotarymae.preprocess import WORDS
from rotarymae.report.comparisons import comparisons
from rotarymae.report.content import Headline, Image, Report, Section, Table
from rotarymae.report.pictures import PICTURES, Picture, Words
from rotarymae.splits import split_words
from rotarymae.system import as_json, duration, hardware, versions, write_text

LARGEST_SVG = 120_000  # bytes; beyond it the same figure is smaller as pixels


def write_report(
    outcome: Outcome,
    path: str | Path,
    *,
    title: str,
    summary: str = "",
    class_names: Mapping[Any, str] | None = None,
    time_label: str | None = None,
    value_label: str | None = None,
    invert: Collection[str] = (),
    notes: tuple[str, ...] = (),
    anonymous: bool = False,
) -> Path:
    """Write the HTML page of a finished run to `path`, and return that path; an older page is replaced in one step.

    A picture that cannot be drawn is replaced by a sentence that says why.

    Args:
        title, summary: heading of the page, and a paragraph below it.
        class_names: {class: longer name for people}; a class that it lacks keeps its name.
        time_label, value_label: of the axes; None for the table's own column names.
        invert: the column of values, or the channels, that are drawn with large values at the bottom, as magnitudes.
        notes: sentences for the last section.
        anonymous: leave out ids and values of single examples, and the warnings, which may name some.
    """
    words = Words.of(outcome, class_names or {}, time_label, value_label, invert)
    pictures = [picture for picture in PICTURES if picture.suits(outcome.dataset.kind, anonymous)]
    of_results, of_model = ([one for one in pictures if one.of_model is which] for which in (False, True))
    sections = [
        *(_pictured(picture, outcome, words, anonymous) for picture in of_results),
        _comparisons(outcome),
        _data(outcome, anonymous),
        *(_pictured(picture, outcome, words, anonymous) for picture in of_model),
        _run(outcome),
        _notes(outcome, notes, anonymous),
    ]
    shown = tuple(section for section in sections if section is not None)
    headlines = tuple(_headlines(outcome))
    write_text(Path(path), render(Report(title, _verdict(outcome), summary, headlines, shown)))
    return Path(path)


def render(report: Report) -> str:
    """Return the page as one string of HTML. Everything is escaped; the page loads nothing and runs no script."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    return environment.get_template("template.html.j2").render(report=report, comparison=_comparison)


def data_uri(figure: Figure) -> str:
    """Return a figure as a data URI: as SVG, or as PNG where the SVG has more than 120 kB. Equal figures, equal bytes.

    For a PNG the figure's layout engine is removed.
    """
    buffer = io.BytesIO()
    # A fixed salt gives the same bytes for the same figure. As an image of its own the SVG shares no ids with others.
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with matplotlib.rc_context({"svg.hashsalt": "rotarymae", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata=nothing, dpi=150)
    kind = "svg+xml"
    if buffer.tell() > LARGEST_SVG:
        kind, buffer = "png", io.BytesIO()
        figure.set_layout_engine("none")  # it is laid out already, which takes half of the time
        figure.savefig(buffer, format="png", dpi=160)
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _verdict(outcome: Outcome) -> str:
    """Return the sentence at the top: how good the predictions are on the scored series, and the best other method."""
    metrics = outcome.metrics
    chosen = metrics.get("predictor", {}).get("chosen", "model")
    where = f"On {scored_words(metrics)} ({len(outcome.split.scored):,})"
    if "classification" in metrics and len(outcome.classes) == 2:
        says = f"{where}, one of the class {outcome.classes[1]} ranks above another one in {{}} of pairs"
        return _compared(says, metrics["classification"], "auroc", chosen, _per_cent)
    if "classification" in metrics:
        says = f"{where}, the predicted class is right for {{}}"
        return _compared(says, metrics["classification"], "accuracy", chosen, _per_cent)
    if "regression" in metrics:
        name = next(name for name in metrics["regression"]["model"] if name.startswith(RMSE))
        says = f"{where}, the typical error (root mean square) is {{}}"
        return _compared(says, metrics["regression"], name, chosen, number)
    if "survival" in metrics:
        says = f"{where}, the expected times have the order of the events in {{}} of pairs"
        return _compared(says, metrics["survival"], CONCORDANCE, chosen, _per_cent)
    for name, scores in metrics.get("interpolation", {}).items():
        says = f"{where}, the typical error at hidden values of {name} is {{}} of their spread"
        return _compared(says, scores["methods"], SCALED_RMSE, "model", _per_cent)
    if "reconstruction" in metrics:
        says = f"{where}, the typical error at hidden patches is {{}} of their spread"
        return _compared(says, metrics["reconstruction"]["methods"], SCALED_RMSE, "model", _per_cent)
    return "Nothing was scored."


def _per_cent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _compared(
    says: str, methods: Mapping[str, Mapping[str, float]], name: str, chosen: str, form: Callable[[float], str]
) -> str:
    """Return a sentence with a metric of the chosen method and of the best other one.

    Args:
        says: the beginning of the sentence, with {} for the value.
        methods: {method: {metric: value}}.
        name: the metric.
        form: returns a value as text.
    """
    known = {method: row[name] for method, row in methods.items() if method != chosen and math.isfinite(row[name])}
    first = f"{says.replace('{}', form(methods[chosen][name]))} ({method_words(chosen)})"
    if not known:
        return f"{first}."
    best = (min if metric_of(name).lower_is_better else max)(known, key=lambda method: known[method])
    return f"{first}; the best other method, {method_words(best)}, reaches {form(known[best])}."


def _headlines(outcome: Outcome) -> Iterator[Headline]:
    """Yield the numbers at the top of the page: macro-F1 and accuracy, or error, or concordance, as far as scored.

    Then follow the errors at hidden observations of the first column of values, and at hidden patches.
    """
    metrics, where = outcome.metrics, f"on {scored_words(outcome.metrics)}"
    shown = (("classification", ("macro_f1", "accuracy")), ("regression", (RMSE,)), ("survival", (CONCORDANCE,)))
    for task, names in shown:
        for name in names:
            if name in metrics.get(task, {}).get("model", {}):
                chosen = metrics.get("predictor", {}).get("chosen", "model")
                by = where if chosen == "model" else f"{method_words(chosen)}, {where}"
                yield _headline(metric_of(name).words, metrics[task], name, by, chosen)
    for name, scores in list(metrics.get("interpolation", {}).items())[:1]:
        what = "last times" if outcome.pipeline.forecasts else "observations"
        note = f"root mean square, in scaled units, {100 * HIDDEN:.0f} % of the {what} hidden, {where}"
        yield _headline(f"error at hidden {name}", scores["methods"], SCALED_RMSE, note)
    if "reconstruction" in metrics:
        note = f"root mean square, in scaled units, hidden as in pre-training, {where}"
        yield _headline("error at hidden patches", metrics["reconstruction"]["methods"], SCALED_RMSE, note)


def _headline(
    title: str, methods: Mapping[str, Mapping[str, float]], name: str, note: str, chosen: str = "model"
) -> Headline:
    """Return the headline of one metric: the value of the method `chosen`, compared with all other methods.

    Args:
        methods: {method: {metric: value}}.
        name: of the metric in metrics.json.
        note: the unit, or on what it was measured.
    """
    values = {method: row[name] for method, row in methods.items()}
    value = values.pop(chosen)
    others = {method_words(method): other for method, other in values.items()}
    return Headline(title, value, others, not metric_of(name).lower_is_better, note)


def _comparisons(outcome: Outcome) -> Section | None:
    """Return the section with the tables of `comparisons`, and a sentence on what predicts; None without any table."""
    tables = comparisons(outcome.metrics)
    explanation = "The same data given to each method; the best value is bold."
    if "predictor" in outcome.metrics:
        chosen = outcome.metrics["predictor"]
        by = method_words(chosen["chosen"])
        explanation += f" Predictions, and the pictures below, are those of: {by} ({chosen['because']})."
    return Section("comparison", "Compared with simpler methods", explanation, tables=tables) if tables else None


def _pictured(picture: Picture, outcome: Outcome, words: Words, anonymous: bool) -> Section | None:
    """Return the section that a picture draws; None if it draws nothing.

    If drawing fails, a section with a sentence that says why; on an anonymous page it names the kind of error alone.
    """
    images, tables = [], []
    try:
        for part in picture.draw(outcome, words):
            if isinstance(part, Table):
                tables.append(part)
            else:
                width = round(96 * float(part.figure.get_figwidth()))
                images.append(Image(data_uri(part.figure), part.alt, part.heading, part.caption, width))
    except Exception as error:  # a training of hours must not lose its report to a figure
        why = type(error).__name__ if anonymous else f"{type(error).__name__}: {error}"
        failed = f"This part was left out, as drawing it failed: {why}"
        return Section(picture.name, picture.title, failed)
    if not images and not tables:
        return None
    return Section(picture.name, picture.title, picture.explanation, images, tables)


def _data(outcome: Outcome, anonymous: bool) -> Section:
    """Return the section on the data: counts, lengths, how it was read, split, scaling, and the run's warnings.

    If `anonymous`, the warnings are only counted.
    """
    preprocessor, dataset, split = outcome.pipeline.preprocessor, outcome.dataset, outcome.metrics["series"]
    assert preprocessor is not None
    lengths, transforms = dataset.lengths, sorted(set(getattr(preprocessor, "transforms", ())))
    words = "; ".join(f"{how}: {WORDS[how]}" for how in transforms)
    facts: dict[str, object] = {dataset.noun: sum(split.values())}
    if "sample" in outcome.metrics:
        facts["answered"] = sample_words(outcome.metrics)
    facts |= {
        f"{preprocessor.parts} of each": f"{lengths.min()} to {lengths.max()}, median {np.median(lengths):.0f}",
        f"{preprocessor.parts} of all": int(lengths.sum()),
        ", ".join(split): ", ".join(f"{count:,}" for count in split.values()),
        "read": str(dataset.reading or "–"),
        "split": split_words(outcome.metrics["split"]),
    }
    fitted = "are those of the pre-trained model" if outcome.config.pretrained else "were fitted on the training part"
    warnings = [f"Warning: {warning}" for warning in outcome.warnings]
    if anonymous and warnings:
        warnings = [f"There were {len(warnings):,} warnings, which metrics.json has: they may name examples."]
    return Section(
        "data",
        "What was done to the data",
        f"What happened between your data and the model's input; the scalers {fitted} and are saved with the model.",
        tables=(_pairs(facts), Table(list(_rows(preprocessor.describe())), "Scaling", caption=words)),
        items=warnings,
    )


def _run(outcome: Outcome) -> Section:
    """Return the section on the run: time, seed, hardware, versions, the command, and all settings as JSON.

    Hardware and versions are read now. They are not those of training if another process wrote the page later.
    """
    facts = {
        "wall time without this page": duration(outcome.seconds),
        "seed": str(outcome.config.seed),
        "hardware": hardware(),
        **versions(),
    }
    configuration = {
        "model": dataclasses.asdict(encoder_of(outcome.pipeline.autoencoder or outcome.pipeline.model).config),
        **dataclasses.asdict(outcome.config),
    }
    return Section(
        "run",
        "How to repeat it",
        "The command, settings and versions that made this page.",
        tables=(_pairs(facts),),
        code=[text for text in (outcome.command, as_json(configuration)) if text],
    )


def _notes(outcome: Outcome, notes: tuple[str, ...], anonymous: bool) -> Section:
    """Return the last section: the `notes`, and a sentence on what private data the page holds, none if anonymous."""
    noun, count = outcome.dataset.noun, f"{len(outcome.dataset):,}"
    if anonymous:
        private = (
            f"This page is anonymous: it holds no id and no value of any of your {count} {noun}, only "
            "statistics of them, the names of its columns, channels and classes, and the command that was typed."
        )
    else:
        private = (
            f"This page holds your data: ids and observed values of some of the {count} {noun}, in pictures and "
            "warnings, and one point for each that was scored. Mind this before you show it to others, or make the "
            "page anonymous (--anonymous)."
        )
    return Section(
        "notes", "Notes and limits", "What to keep in mind before you use this page.", items=(*notes, private)
    )


def _pairs(facts: Mapping[str, object], title: str = "") -> Table:
    """Return facts as a table of two columns without a head: name, and value as text."""
    return Table([(name, {"": number(value)}) for name, value in facts.items()], title)


def _rows(settings: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield settings as rows of a `Table` with one column without a head, values as text."""
    for name, value in settings.items():
        yield name, {"": _setting(value)}


def _setting(value: object) -> str:
    """Return the value of a setting as text for the page: "name: value" for mappings, commas between several.

    None and anything empty are a dash; floats have up to ten digits.
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_setting(one)}" for name, one in value.items()) or "–"
    if isinstance(value, float | np.floating):
        return f"{float(value):.10g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value)) or "–"
    return "–" if value is None else str(value)


def number(value: object) -> str:
    """Return a value as text for the page: 12,345 · 0.703 · 3.21e−05 · yes · – (for None and NaN); text as it is."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}".replace("-", "−")
    if isinstance(value, float | np.floating):
        return _real(float(value)).replace("-", "−")
    return "–" if value is None else str(value)


def _real(x: float) -> str:
    """Return a float as text: from 1,000 to 10 million whole, else with three to four digits; "–" for NaN."""
    size = abs(x)
    if not math.isfinite(x):
        return "–" if math.isnan(x) else ("∞" if x > 0 else "-∞")
    if size and (size < 1e-3 or size >= 1e7):
        return f"{x:.2e}"
    if size >= 1000:
        return f"{x:,.0f}"
    return f"{x:.4g}" if size >= 10 else (f"{x:.3f}" if size else "0")


def _comparison(headline: Headline, other: float) -> Markup:
    """Return the difference between a headline's value and another method's, as HTML with an arrow.

    The arrow points up where the headline's is better; "equal" for no difference, nothing for NaN or infinity.
    """
    change = headline.value - other
    if not math.isfinite(change):
        return Markup("")
    if change == 0:
        return Markup('<span class="same">equal</span>')
    arrow, tone = ("▲", "better") if (change > 0) == headline.higher_is_better else ("▼", "worse")
    word = f"{abs(change):.3f}" if 0.0005 <= abs(change) < 100 else number(abs(change))
    return Markup('<span class="{0}" title="{0} by {2}">{1} {2}</span>').format(tone, arrow, word)
