"""From a run's Outcome to its page: what the page says, its pictures, and the file."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

from rotarymae.metrics import CONCORDANCE, RMSE, SCALED_RMSE, method_words, metric_of, sample_words, scored_words
from rotarymae.outcome import Outcome
from rotarymae.plots import STYLE
from rotarymae.preprocess import WORDS
from rotarymae.report.content import Best, Drawing, Section, Table, cell_text, comparisons
from rotarymae.report.pictures import PICTURES
from rotarymae.splits import split_words
from rotarymae.system import duration, hardware, versions, write_text


def write_report(
    outcome: Outcome,
    path: str | Path,
    *,
    title: str,
    class_names: Mapping[Any, str] | None = None,
    notes: tuple[str, ...] = (),
    anonymous: bool = False,
) -> Path:
    """Write the report of a finished run, one HTML page, and return its path; an older page is replaced in one step.

    Args:
        outcome: the results of the run, after `scoring.score`.
        path: the file to write; missing folders above it are created.
        title: heading of the page.
        class_names: {class: longer name for people}; a class that is absent here keeps its name.
        notes: sentences for the last section.
        anonymous: leave out ids and values of single examples, and the warnings, which may name some.
    """
    outcome = replace(outcome, long_names=class_names or {})
    sections = _comparisons(outcome)
    with matplotlib.style.context(["default", STYLE]):
        for picture in PICTURES:
            parts = [] if anonymous and picture.private else list(picture.draw(outcome))
            drawings = [part for part in parts if isinstance(part, Drawing)]
            tables = [part for part in parts if isinstance(part, Table)]
            if parts:
                sections.append(Section(picture.name, picture.title, picture.explanation, drawings, tables))
        sections += [_data(outcome, anonymous), _run(outcome), _notes(outcome, notes, anonymous)]
        write_text(Path(path), render(title, _verdict(outcome), sections))
    return Path(path)


def render(title: str, verdict: str, sections: Sequence[Section]) -> str:
    """Fill the page's template; return one string of HTML, which loads nothing from outside and runs no script.

    Args:
        title: heading of the page. It and all other texts are escaped.
        verdict: sentence below the title.
        sections: the sections of the page, in their order.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cell_text": cell_text, "data_uri": data_uri}
    environment.tests["best"] = lambda value: isinstance(value, Best)
    return environment.get_template("template.html.j2").render(title=title, verdict=verdict, sections=sections)


def data_uri(figure: Figure) -> str:
    """Return a figure as a data URI, which holds a PNG image of 160 dots per inch; equal figures give equal texts."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _verdict(outcome: Outcome) -> str:
    """Return the sentence at the top of the page: the run's main metric, and that of the best other method.

    The main metric depends on the task: classes (AUROC for two of them, accuracy for more), numbers (RMSE of the first
    output), times to an event (concordance), interpolation (scaled RMSE of the first value column), reconstruction
    (scaled RMSE). If the run has scores of several tasks, the first in this list counts. For the last two the run's
    method is the network. Without any scores the sentence is "Nothing was scored."
    """
    metrics = outcome.metrics
    chosen = metrics.get("predictor", {}).get("chosen", "model")
    scored_on = f"On {scored_words(metrics)} ({len(outcome.split.scored):,})"
    if "classification" in metrics and len(outcome.classes) == 2:
        says = f"{scored_on}, one of the class {outcome.class_names[1]} ranks above another one in {{}} of pairs"
        return _compared(says, metrics["classification"], "auroc", chosen, _per_cent)
    if "classification" in metrics:
        says = f"{scored_on}, the predicted class is right for {{}}"
        return _compared(says, metrics["classification"], "accuracy", chosen, _per_cent)
    if "regression" in metrics:
        name = next(name for name in metrics["regression"]["model"] if name.startswith(RMSE))
        says = f"{scored_on}, the typical error (root mean square) is {{}}"
        return _compared(says, metrics["regression"], name, chosen, cell_text)
    if "survival" in metrics:
        says = f"{scored_on}, the expected times have the order of the events in {{}} of pairs"
        return _compared(says, metrics["survival"], CONCORDANCE, chosen, _per_cent)
    for name, scores in metrics.get("interpolation", {}).items():
        says = f"{scored_on}, the typical error at hidden values of {name} is {{}} of their spread"
        return _compared(says, scores["methods"], SCALED_RMSE, "model", _per_cent)
    if "reconstruction" in metrics:
        says = f"{scored_on}, the typical error at hidden patches is {{}} of their spread"
        return _compared(says, metrics["reconstruction"]["methods"], SCALED_RMSE, "model", _per_cent)
    return "Nothing was scored."


def _per_cent(share: float) -> str:
    """Return a share, from 0 to 1, as text in whole per cent: 0.873 becomes "87 %", and NaN "an unknown share"."""
    return f"{100 * share:.0f} %" if math.isfinite(share) else "an unknown share"


def _compared(
    says: str, methods: Mapping[str, Mapping[str, float]], name: str, chosen: str, form: Callable[[float], str]
) -> str:
    """Return a sentence that compares a metric of the chosen method with that of the best other method.

    Other methods without a finite value are left out; if none is left, the sentence is about the chosen method alone.

    Args:
        says: beginning of the sentence, such as "the predicted class is right for {}"; its last {} is replaced by the
            metric of the chosen method.
        methods: {method: {metric: value}}, named as in metrics.json; each has the metric.
        name: name of the metric, which also says whether the smallest or the largest value is the best.
        chosen: name of the chosen method.
        form: turns a value of the metric to text.
    """
    known = {method: row[name] for method, row in methods.items() if method != chosen and math.isfinite(row[name])}
    first = f"{form(methods[chosen][name]).join(says.rsplit('{}', 1))} ({method_words(chosen)})"
    if not known:
        return f"{first}."
    best = (min if metric_of(name).lower_is_better else max)(known, key=lambda method: known[method])
    return f"{first}; the best other method, {method_words(best)}, reaches {form(known[best])}."


def _comparisons(outcome: Outcome) -> list[Section]:
    """Return the section with the tables that compare methods, in a list; the list is empty if nothing was scored.

    If the run predicts labels, the text of the section says which method predicts them, and why.
    """
    tables = comparisons(outcome.metrics)
    explanation = "The same data given to each method; the best value is bold."
    if "predictor" in outcome.metrics:
        chosen = outcome.metrics["predictor"]
        by = method_words(chosen["chosen"])
        explanation += f" Predictions, and the pictures below, are those of: {by} ({chosen['because']})."
    return [Section("comparison", "Compared with simpler methods", explanation, tables=tables)] if tables else []


def _data(outcome: Outcome, anonymous: bool) -> Section:
    """Return the section on the data: counts, lengths, how it was read, split and scaled, and the run's warnings.

    With `anonymous` only the number of warnings is given, because they may name series.
    """
    preprocessor, dataset, split = outcome.pipeline.preprocessor, outcome.dataset, outcome.metrics["series"]
    assert preprocessor is not None
    lengths, transforms = dataset.lengths, sorted(set(getattr(preprocessor, "transforms", ())))
    facts: dict[str, object] = {dataset.noun: sum(split.values())}
    if "sample" in outcome.metrics:
        facts["answered"] = sample_words(outcome.metrics)
    facts |= {
        f"{preprocessor.parts} of each": f"{lengths.min()} to {lengths.max()}, median {np.median(lengths):.0f}",
        f"{preprocessor.parts} of all": int(lengths.sum()),
        ", ".join(split): [*split.values()],
        "read": str(dataset.reading or "–"),
        "split": split_words(outcome.metrics["split"]),
    }
    fitted = "are those of the pre-trained model" if outcome.config.pretrained else "were fitted on the training part"
    warnings = [f"Warning: {warning}" for warning in outcome.warnings]
    if anonymous and warnings:
        warnings = [f"There were {len(warnings):,} warnings, which metrics.json has: they may name examples."]
    scaling = _pairs(preprocessor.describe(), "Scaling", "; ".join(f"{how}: {WORDS[how]}" for how in transforms))
    return Section(
        "data",
        "What was done to the data",
        f"What happened between your data and the model's input; the scalers {fitted} and are saved with the model.",
        tables=(_pairs(facts), scaling),
        items=warnings,
    )


def _run(outcome: Outcome) -> Section:
    """Return the section on how to repeat the run: the command, time, seed, hardware and versions.

    Hardware and versions are those of the process that writes the page.
    """
    facts = {
        "wall time without this page": duration(outcome.seconds),
        "seed": str(outcome.config.seed),
        "hardware": hardware(),
        **versions(),
    }
    return Section(
        "run",
        "How to repeat it",
        "What made this page; all settings are in metrics.json.",
        tables=(_pairs(facts),),
        code=outcome.command,
    )


def _notes(outcome: Outcome, notes: tuple[str, ...], anonymous: bool) -> Section:
    """Return the last section: the sentences `notes`, and one on the private data that the page shows.

    `anonymous` says whether ids and values of single examples are left out of the page.
    """
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


def _pairs(facts: Mapping[str, object], title: str = "", caption: str = "") -> Table:
    """Return facts {name: value} as a table of two columns without a head: the names, and the values as text.

    `cell_text` makes the texts. `title` and `caption` stand above the table.
    """
    return Table([(name, {"": cell_text(value)}) for name, value in facts.items()], title, caption=caption)
