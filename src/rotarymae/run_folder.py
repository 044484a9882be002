"""A run folder: what the run is of, which files its results are, and how they are written.

metrics.json comes last: a run that was killed, or ran out of disk, before it is there goes on with --resume and writes
its results again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import sys
import uuid
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import torch

from rotarymae.datasets import AnyDataset
from rotarymae.errors import InputError
from rotarymae.interpolation import Interpolation
from rotarymae.labels import Labels
from rotarymae.model_files import CONFIG, MODEL
from rotarymae.partners import INTERVAL
from rotarymae.partners.decide import decide
from rotarymae.series import SeriesDataset, as_dates, measured, plain
from rotarymae.splits import Fold, SplitColumn
from rotarymae.system import (
    as_json,
    check_writable,
    hardware,
    remove_leftovers,
    replacing,
    sha256,
    versions,
    write_text,
)
from rotarymae.targets import has_label
from rotarymae.training import taken_precision
from rotarymae.training.checkpointing import digest_of
from rotarymae.training.fit_config import FitConfig

if TYPE_CHECKING:
    from rotarymae.outcome import Outcome

RESULTS = ("metrics.json", "predictions.parquet", "embeddings.parquet", "interpolations.parquet", "report.html")
IDENTITY = Path("training/identity.json")
# Settings that change nothing in the weights, and so may differ when a run is resumed.
FREE_TO_CHANGE = ("log_every", "checkpoint_minutes", "compile")
# What is kept of it as a digest, and what messages call it.
DIGESTS = {"table": "table", "labels": "labels", "split_by": "split", "pretrained": "pretrained model"}


def check_folder(out: Path, resume: bool) -> None:
    """Raise InputError unless a run can be written to a folder; call it before any work.

    Args:
        out: the folder. It must be writable, and new or empty, or with `resume` that of an unfinished run.
        resume: whether the interrupted run in the folder is to be continued.
    """
    check_writable(out)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give the path of a new folder.")
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not resume:
        raise InputError(f"{out} is not empty; choose a new folder, or continue its run by --resume.")
    if not (out / "training").is_dir():
        raise InputError(
            f"{out} holds files, but no run that could be resumed; give the folder of the interrupted run."
        )
    if (out / "metrics.json").exists():
        raise InputError(f"{out} holds a finished run; there is nothing to resume. Choose a new folder for a new run.")


def identify(
    dataset: AnyDataset,
    labels: np.ndarray | None,
    config: FitConfig,
    task: str,
    holdout: float,
    split_by: SplitColumn | Fold | None = None,
    start: torch.nn.Module | None = None,
    since: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return everything that the results of a run depend on, as a dictionary of values that JSON can hold.

    A run may be resumed only if its dictionary is the same. It has the options of the fit, except those that do not
    change the weights, such as `log_every`; "task" and "holdout", as given; "precision" ("fp32" or "bf16"); and
    digests: "table" of the data, "labels", "pretrained" of the weights to start from, "split_by" of the column that
    decides the split (with its name), and "since". A digest of something that is None is None.

    Args:
        dataset: the series or arrays.
        labels: [S] labels, or None to pre-train only.
        config: all options of the training.
        task: "classification", "regression", "survival" or "auto".
        holdout: share of the labelled series that is kept out for scoring.
        split_by: the column or fold that decides the split; None for a random split.
        start: the trained model from which training starts; None for random weights.
        since: [S] times. Training also uses series that are cut off some spans of time (`config.early`) after these
            times. None counts the spans from each series' first observation.
    """
    settings = {name: value for name, value in dataclasses.asdict(config).items() if name not in FREE_TO_CHANGE}
    digest, counted = (None if part is None else _digest_of(part) for part in (labels, since))
    settings["precision"] = taken_precision(config.precision)
    settings["pretrained"] = None if start is None else digest_of(start.state_dict())  # wherever it lies
    settings["split_by"] = None if split_by is None else [split_by.name, _digest_of(split_by.values)]
    parts = {**settings, "task": task, "holdout": holdout, "labels": digest, "since": counted}
    parts["table"] = dataset.fingerprint()
    return json.loads(json.dumps(parts))


def open_folder(out: Path, identity: dict[str, Any]) -> None:
    """Create the folder of a new run, or check that an existing folder has the same run; remove half-written files.

    A folder without training/identity.json counts as new, even if it holds other files.

    Args:
        out: the run folder.
        identity: what `identify` returned. It is written to training/identity.json, or compared with that file.

    Raises:
        InputError: the folder holds a run with other data or settings, which the message names; its identity.json is
            damaged.
    """
    out.mkdir(parents=True, exist_ok=True)
    try:
        before = dict(json.loads((out / IDENTITY).read_text(encoding="utf-8")))
    except FileNotFoundError:
        write_text(out / IDENTITY, json.dumps(identity, indent=1) + "\n")
        before = identity
    except (ValueError, TypeError):  # no JSON, or no object
        raise InputError(
            f"{out / IDENTITY} is damaged, so that the run cannot be resumed; start it anew in a new folder."
        ) from None
    changed = [name for name in {**before, **identity} if before.get(name) != identity.get(name)]
    if changed:
        differences = [
            f"the {DIGESTS[name]} changed"
            if name in DIGESTS
            else f"{name} was {before.get(name)!r} and is {identity.get(name)!r} now"
            for name in changed[:5]
        ]
        raise InputError(
            f"the run in {out} differs from this one: {'; '.join(differences)}. Resume with the same data and "
            "settings, or choose another folder."
        )
    remove_leftovers(out, (*RESULTS, MODEL))
    remove_leftovers(out / "training", (IDENTITY.name,))


def _digest_of(column: np.ndarray) -> str:
    """Return the SHA-256 of the values of an array of any type, in their order, as hexadecimal digits."""
    return hashlib.sha256(repr(column.tolist()).encode()).hexdigest()


def write_tables(outcome: Outcome, out: Path) -> None:
    """Write predictions, embeddings and interpolations of a run as Parquet files; what the run lacks is not written.

    The first column of each file is the id of the series.
    - predictions.parquet has a row per series. "part" is its part of the split ("train", or "fold 1" and so on). A run
      with labels adds "label", empty for a series without one, and the `prediction_columns`. If labels are times to an
      event, "event" says whether it was observed;
    - embeddings.parquet has a row per series;
    - interpolations.parquet has a row per observation that was hidden to score the model: the `interpolation_columns`,
      and NAME_observed, the observed value, empty for a limit (known only to lie above or below it).

    Args:
        outcome: the results of the run, after scoring.
        out: the run folder.
    """
    dataset, split = outcome.dataset, outcome.split
    part = np.empty(len(dataset), object)
    for name, rows in vars(split).items():
        part[rows] = name.replace("_", " ")
    if outcome.fold_of is not None:
        part[split.test] = [f"fold {number}" for number in outcome.fold_of[split.test]]
    ids, name = pa.array(dataset.ids.tolist()), dataset.id_name
    columns: dict[str, Any] = {"part": pa.array(part.tolist())}
    if outcome.predicted is not None and outcome.pipeline.labels is not None and outcome.labels is not None:
        if outcome.labels.dtype.names is None:
            columns["label"] = pa.array(list(outcome.labels))
        else:
            known = has_label(outcome.labels)
            event, time = (outcome.labels[name] for name in outcome.labels.dtype.names)
            columns |= {"label": pa.array(time, mask=~known), "event": pa.array(event, mask=~known)}
        columns |= prediction_columns(outcome.pipeline.labels, outcome.predicted, outcome.half_widths)
        if outcome.fold_weights is not None:
            decided = decide(outcome.predicted, outcome.fold_weights)
            columns["predicted"] = pa.array([outcome.classes[i] for i in decided])
    write_parts([with_ids(pa.table(columns), ids, name)], out / "predictions.parquet")
    if outcome.embeddings is not None:
        vectors = pa.table(embedding_columns(outcome.embeddings))
        write_parts([with_ids(vectors, ids, name)], out / "embeddings.parquet")
    if outcome.interpolated is not None and outcome.hidden is not None:
        hidden, names = outcome.hidden, outcome.pipeline.require_series().value_names
        ids = np.repeat(hidden.ids, hidden.lengths)
        columns = interpolation_columns(
            hidden.times, hidden.channels, hidden.channel_names, names, outcome.interpolated, hidden.time_zone
        )
        observed = measured(hidden)
        columns |= {
            _column_of_value(value, "observed", names): pa.array(observed[:, v], from_pandas=True)  # limits are null
            for v, value in enumerate(names)
        }
        write_parts([with_ids(pa.table(columns), pa.array(ids.tolist()), name)], out / "interpolations.parquet")


def write_metrics(outcome: Outcome, out: Path) -> None:
    """Write metrics.json: a new id of the run, scores, settings, versions, warnings; it marks the run as finished.

    Args:
        outcome: the results of the run, after scoring.
        out: the run folder, in which the model (unless it is a cross-validation) has been saved.
    """
    preprocessor = outcome.pipeline.preprocessor
    content = {
        "run": uuid.uuid4().hex,
        "model": sha256(out / MODEL / CONFIG) if outcome.fold_of is None else None,
        **outcome.metrics,
        "seconds": round(outcome.seconds, 1),
        "command": outcome.command,
        "seed": outcome.config.seed,
        "settings": dataclasses.asdict(outcome.config),
        "preprocessing": None if preprocessor is None else preprocessor.describe(),
        "reading": outcome.dataset.reading and outcome.dataset.reading.as_json(),
        "warnings": outcome.warnings,
        "versions": versions(),
        "precision": taken_precision(outcome.config.precision),
        "hardware": hardware(),
    }
    write_text(out / "metrics.json", as_json(content))


def with_ids(answers: pa.Table, ids: pa.Array, name: str) -> pa.Table:
    """Return the table with a new first column, `ids`, called `name`.

    If the table already has a column `name`, the new one is called "id"; if it also has a column "id", "id_value".
    """
    taken = answers.column_names
    return answers.add_column(0, _free_name("id", taken) if name in taken else name, ids)


def prediction_columns(labels: Labels, predicted: np.ndarray, half_widths: np.ndarray | None = None) -> dict[str, Any]:
    """Return predictions as columns of a table, {name: Arrow array [S]}.

    - A classification has "predicted", the decided class, and "probability_NAME" for each class.
    - Times to an event have "predicted", the expected time, and "survival_TIME" for each of `labels.times`: the
      probability that the event comes later than TIME.
    - A regression has "predicted", or for several outputs "predicted_0", "predicted_1" and so on. With intervals, each
      is followed by their edges, such as "predicted_lower90" and "predicted_upper90".

    Args:
        labels: labels of the pipeline.
        predicted: probabilities of classes, or of intervals of time, [S, K]; or values [S, outputs] in the table's
            units.
        half_widths: half the width of a regression's intervals, [outputs] or [S, outputs]; None for no intervals.
    """
    columns = labels.columns(predicted)
    if half_widths is not None:
        lower, upper = labels.columns(predicted - half_widths), labels.columns(predicted + half_widths)
        parts = {"": columns, f"_lower{100 * INTERVAL:.0f}": lower, f"_upper{100 * INTERVAL:.0f}": upper}
        columns = {f"{name}{edge}": part[name] for name in columns for edge, part in parts.items()}
    return {name: pa.array(column) for name, column in columns.items()}


def embedding_columns(embeddings: np.ndarray) -> dict[str, Any]:
    """Return embeddings [S, D] as the D columns of a table, {"e0": Arrow array [S], "e1": Arrow array [S], ...}."""
    return {f"e{i}": pa.array(embeddings[:, i]) for i in range(embeddings.shape[1])}


def observation_columns(dataset: SeriesDataset, *others: str) -> dict[str, Any]:
    """Return the n observations of a data set as columns of a table, {name: Arrow array [n]}, in their order.

    The columns are "time" (a date, if the data set has a time zone), "channel" (if it has channels), and each column of
    values by its name, in the table's units. If the data set has limits (values known only as "less than" or "more
    than"), there is a column NAME_limit for each column of values: "<" for an upper limit, ">" for a lower limit, ""
    for a measurement.

    Args:
        dataset: the series.
        others: names that the caller will use for further columns. A column of values or limits whose name is among
            these, or is that of an earlier column, is renamed to NAME_value, so that none is lost.
    """
    columns = _time_and_channel(dataset.times, dataset.channels, dataset.channel_names, dataset.time_zone)
    parts = list(zip(dataset.value_names, dataset.values.T, strict=True))
    if dataset.sides is not None:
        marks = np.array(["<", "", ">"])[dataset.sides + 1].T
        parts += [(f"{name}_limit", column) for name, column in zip(dataset.value_names, marks, strict=True)]
    for name, column in parts:
        columns[_free_name(name, (*others, *columns))] = pa.array(column)
    return columns


def score_columns(dataset: SeriesDataset, **scores: np.ndarray) -> dict[str, Any]:
    """Return n observations and their scores as columns of a table, {name: Arrow array [n]}.

    First are the columns of `observation_columns` (time, channel, values, limits), then the scores. A missing score
    (NaN) is an empty cell.

    Args:
        dataset: the series.
        scores: {kind: scores}, such as anomaly=scores, all of one shape. Scores [n, 1] become the column "anomaly";
            scores [n, V], for V > 1 columns of values, become columns such as "flux_anomaly".
    """
    several = len(next(iter(scores.values())).T) > 1
    called = {
        f"{name}_{kind}" if several else kind: column
        for kind, part in scores.items()
        for name, column in zip(dataset.value_names, part.T, strict=False)
    }
    columns = observation_columns(dataset, *called)
    return columns | {name: pa.array(column, from_pandas=True) for name, column in called.items()}


def interpolation_columns(
    times: np.ndarray,
    channels: np.ndarray | None,
    channel_names: tuple[Any, ...] | None,
    value_names: tuple[str, ...],
    answers: Interpolation,
    time_zone: str | None = None,
) -> dict[str, Any]:
    """Return predicted values at n queries (times to predict at) as columns of a table, {name: Arrow array [n]}.

    The columns are, in this order:
    - "time" (a date, if there is a zone), and "channel", if there are channels;
    - for each column of values: NAME, the predicted mean, or NAME_value if another column has this name; and if
      `answers` has them, NAME_std and the edges of each band, such as NAME_lower95 and NAME_upper95. If a column of
      values is itself called NAME_std, the standard deviation is in NAME_predicted_std;
    - "distance": the time to the nearest observation of the series in the same channel, empty if there is none.

    Args:
        times: [n] times of the queries, for dates days since 1970-01-01 UTC.
        channels: [n] channels of the queries, indices into `channel_names`; None without channels.
        channel_names: names of the channels; None without channels.
        value_names: names of the V columns of values.
        answers: the predictions, [n, V], in the table's units.
        time_zone: zone of times that are dates; None for numbers.
    """
    columns = _time_and_channel(times, channels, channel_names, time_zone)
    for v, name in enumerate(value_names):
        columns[_free_name(name, ("distance", *columns))] = pa.array(answers.mean[:, v])
        if answers.std is not None:
            columns[_column_of_value(name, "std", value_names)] = pa.array(answers.std[:, v])
        for share, (lower, upper) in answers.bands.items():
            columns[_column_of_value(name, f"lower{100 * share:.0f}", value_names)] = pa.array(lower[:, v])
            columns[_column_of_value(name, f"upper{100 * share:.0f}", value_names)] = pa.array(upper[:, v])
    return columns | {"distance": pa.array(answers.distance, mask=np.isinf(answers.distance))}


def _column_of_value(name: str, what: str, value_names: Sequence[str]) -> str:
    """Name the column for a statistic `what` of predictions of the values `name`: "flux" and "std" → "flux_std".

    If there already is a column of values of this name (in `value_names`), it is "flux_predicted_std" instead.
    """
    column = f"{name}_{what}"
    return f"{name}_predicted_{what}" if column in value_names else column


def _free_name(name: str, taken: Sequence[str]) -> str:
    """Return a name that is not among `taken`: `name` itself, or with "_value" added as often as needed."""
    return _free_name(f"{name}_value", taken) if name in taken else name


def _time_and_channel(
    times: np.ndarray, channels: np.ndarray | None, channel_names: tuple[Any, ...] | None, time_zone: str | None
) -> dict[str, Any]:
    """Return the columns "time" and "channel" of a table, {name: Arrow array [n]}; without channels "time" alone.

    Args:
        times: [n] times, for dates days since 1970-01-01 UTC.
        channels: [n] indices into `channel_names`; None without channels.
        channel_names: names of the channels; None without channels.
        time_zone: zone in which times are written as dates; None leaves them numbers.
    """
    when = pa.array(np.asarray(times)) if time_zone is None else as_dates(times, time_zone)
    columns: dict[str, Any] = {"time": when}
    if channels is not None and channel_names is not None:
        columns["channel"] = pa.array([plain(channel_names[c]) for c in channels])
    return columns


def write_parts(parts: Iterable[pa.Table], path: str | Path) -> None:
    """Write a table that comes in parts to a .csv or .parquet file; an existing file is replaced once all are written.

    If there is no part, nothing is written, and an existing file stays.

    Args:
        parts: Arrow tables of one schema.
        path: ends in .csv or .parquet; missing folders above it are created. "-" is standard output, to which each part
            is written as CSV at once.

    Raises:
        InputError: a path of another suffix, or in a folder in which nothing can be written.
        OSError: the disk is full, or `path` is a folder; an existing file stays.
    """
    path = Path(path)
    check_output(path)
    parts = iter(parts)
    first = next(parts, None)
    if first is None:
        return
    with replacing(path) if str(path) != "-" else nullcontext(sys.stdout.buffer) as file:
        kind = pq.ParquetWriter if path.suffix == ".parquet" else pyarrow.csv.CSVWriter
        with kind(file, first.schema) as writer:
            for part in itertools.chain([first], parts):
                writer.write_table(part)
                if str(path) == "-":
                    sys.stdout.buffer.flush()


def check_output(path: Path) -> None:
    """Raise InputError if a path does not end in .csv or .parquet, or no file can be written there.

    Call it before any work. "-" (standard output) is always accepted. Whether the path is a folder is not checked.
    """
    if str(path) == "-":
        return
    if path.suffix not in (".csv", ".parquet"):
        ending = f"ends in {path.suffix}" if path.suffix else "has no ending"
        raise InputError(f"{path} {ending}; give a path that ends in .csv or .parquet.")
    check_writable(path)
