"""Inputs of commands: tables, read as their options say or as the model's training table was; and folders."""

from __future__ import annotations

from dataclasses import dataclass, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

import numpy as np
from tyro.conf import arg

from rotarymae import series, tables
from rotarymae.config import Precision
from rotarymae.errors import InputError, did_you_mean, listed
from rotarymae.system import field_docs
from rotarymae.tables.schema import option

if TYPE_CHECKING:
    from rotarymae import arrays
    from rotarymae.preprocess import PatchPreprocessor

LAYOUT = "How the table is laid out; a model remembers how its training table was."
TablePath = Annotated[Path, arg(metavar="TABLE")]
ModelPath = Annotated[
    Path,
    arg(
        metavar="MODEL",
        help="The trained model: a run folder of `fit`, a saved model, a shipped model's name, or OWNER/NAME on the "
        "Hugging Face Hub.",
    ),
]
OBSERVATIONS = (
    "The observations, one per row: a file, a folder of files, a quoted pattern, or - for standard input; with the "
    "training table's columns, unless options say otherwise."
)
SeriesTable = Annotated[Path, arg(metavar="TABLE", help=OBSERVATIONS)]
QuestionTable = Annotated[
    Path, arg(metavar="TABLE", help=f"{OBSERVATIONS} For a model of pictures or sounds, a folder of such files.")
]
OptionalTable = Annotated[
    Path | None,
    arg(
        metavar="TABLE",
        help=f"{OBSERVATIONS} Leave it out to name the table as MODEL: the model any-series then answers.",
        help_behavior_hint="(default: MODEL is the table)",
    ),
]
Flag = Annotated[bool, arg(help_behavior_hint="(default: off)")]
Quiet = Annotated[
    Flag, arg(help="Print only warnings and errors. Set it in scripts, to leave out progress and results.")
]
ComputedIn = Annotated[
    Precision,
    arg(
        help="Prediction: number format of matrix products. auto takes bf16 (faster, less exact) where the GPU or "
        "processor has units for it, else fp32. Set fp32 to compare machines: their results then agree up to rounding."
    ),
]
# What help says of a default that tyro would not show in words. None says nothing: the help itself does. An option that
# is True by default is shown by its negative name, --no-cls-token.
DEFAULTS = ((None, ""), ((), "(default: none)"), (False, "(default: off)"), (True, "(default: not given)"))


if TYPE_CHECKING:
    from rotarymae.tables import TableSchema as Columns
else:

    def _options() -> type:
        """Create the frozen dataclass of the command's options on a table's layout, and return this class.

        Its fields are those of `TableSchema` without errors, static and units. Their defaults, None, () or False, mean
        that an option is not given; `TableSchema.resolve` then takes its value from the model.
        """
        from rotarymae.tables.schema import TableSchema, helps

        said, options = helps(), []
        for name, kind in get_type_hints(TableSchema).items():
            if name in ("errors", "static", "units"):
                continue
            usual = {"header_row": "recognised", "values": "value; with --wide all others"}.get(name)
            usual = usual or getattr(TableSchema, name) or ("off" if kind is bool else "none")
            usual += "" if name == "objects" else "; with a model, as in its training"
            hint = arg(help=said[name], help_behavior_hint=f"(default: {usual})")
            kind = Path if name == "objects" else kind
            plain = kind is bool or get_origin(kind) is tuple
            default = False if kind is bool else () if plain else None
            options.append((name, Annotated[kind if plain else kind | None, hint], default))
        return make_dataclass("Columns", options, frozen=True, namespace={"__doc__": LAYOUT, "__module__": __name__})

    Columns = _options()


def with_helps(group: type) -> type:
    """Make the string below each field of a dataclass the help of the field's option, in place; return the dataclass.

    The help is one paragraph; tyro itself would keep the source's line breaks. A default of (), False or True is shown
    in the words of `DEFAULTS`, and a default of None is not shown. Fields that are annotated with tyro's `arg` already
    get the help alone: what is shown of their default does not change.
    """
    kinds, docs = get_type_hints(group, include_extras=True), field_docs(group)
    for one in fields(group):
        kind, texts = kinds[one.name], {"help": docs[one.name]}
        in_words = [words for default, words in DEFAULTS if one.default is default]
        if in_words and get_origin(kind) is not Annotated:
            texts["help_behavior_hint"] = in_words[0]
        group.__annotations__[one.name] = Annotated[kind, arg(**texts)]  # pyright: ignore
    return group


@with_helps
@dataclass(frozen=True)
class LabelColumn:
    """Where the labels are."""

    labels: Annotated[Path | None, arg(help_behavior_hint="(default: that of --objects, or TABLE)")] = None
    """Reading: table with ids of series and their labels, classes or numbers; some series may have none. Give it if
    the labels are in a file of their own."""
    label: Annotated[
        str | None, arg(help_behavior_hint="(default: label, if --labels is given; else none)", aliases=["--duration"])
    ] = None
    """Reading: column of the labels, in --labels, --objects or TABLE. Name it to learn or to score predictions of
    labels. --duration is another name of this option, for times to an event."""
    event: Annotated[str | None, arg(help_behavior_hint="(default: none)")] = None
    """Reading: column that says whether each --duration ended in the event (1) or was cut short, censored (0). Name it
    for survival analysis, to predict times to an event."""
    label_id: Annotated[str | None, arg(help_behavior_hint="(default: as in TABLE)")] = None
    """Reading: column of ids in the table of --labels or --objects. Name it if it is not called as in TABLE."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of labels and of events that options name, in this order; () if they name none."""
        return tuple(name for name in (self.name, self.event) if name is not None)

    @property
    def name(self) -> str | None:
        """Name of the column of labels: that of --label, else "label" if --labels is given; None without both."""
        return self.label or (None if self.labels is None else "label")

    def read(self, dataset: series.SeriesDataset, layout: tables.TableSchema, table: Path) -> Any:
        """Read a label for each of the S series of a data set, matched by id.

        Args:
            dataset: the series.
            layout: how the table of observations is read. Its id column, the table of --objects (one row per series)
                and the words for missing cells are used.
            table: the table of observations. `source` says which table each column is read from.

        Returns:
            Labels [S] in the order of the series: numbers, booleans, dates, durations or texts; if a series has no
            label, an array of objects with None for it. With --event a structured array [S] with the fields "event"
            (bool) and "time"; the time is NaN, and the event False, for a series that lacks either. None if no option
            names labels.

        Raises:
            InputError: a column that no table has; without --labels, a label that is also a static column; labels that
                match no series; a series with two labels; durations or events that cannot be used.

        Warns:
            InputWarning: labels whose id is no series, or that look like mistakes; `align_labels` lists these.
        """
        if self.name is None:
            return None
        columns = []
        for name in self.columns:
            if self.labels is None and name in layout.static:
                raise InputError(f"the label {name!r} is also a static column; leave it out of --static.")
            source, key = self.source(name, layout, table)
            columns.append(tables.align_labels(dataset, source, key, name, unlabelled="none", na=layout.na))
        if self.event is None:
            return columns[0]
        from rotarymae.survival import event_times

        return event_times(*columns, *self.columns)

    def source(self, column: str, layout: tables.TableSchema, table: Path) -> tuple[tables.Source, str]:
        """Open the table that has the column `column`: --labels, else --objects, else the table of observations.

        Args:
            column: the name of the column.
            layout: the layout of the table of observations; its field `objects` is the path of --objects.
            table: the path of the table of observations.

        Returns:
            The opened table, and the name of its column of ids:

            - For --labels and --objects it is --label-id. If that is not given, it is the id of `layout` if the table
              has such a column, else the table's only column that looks like an id.
            - For the table of observations it is the id of `layout`.

            Whether --label-id, or the id of the table of observations, exists is not checked.

        Raises:
            InputError: no table has the column ("unknown-column"); without --label-id, no column of --labels or
                --objects or several look like ids ("unknown-column"); a table that cannot be opened.
        """
        candidates = [(path, self.label_id or layout.id) for path in (self.labels, layout.objects) if path is not None]
        seen: list[str] = []
        for path, key in [*candidates, (table, layout.id)]:
            of_table = path is table
            opened = tables.open_source(
                path, layout.header_row if of_table else None, layout.numbered if of_table else None
            )
            if column in opened.columns:
                return opened, key if of_table or self.label_id else tables.id_column(opened, key)
            seen += opened.columns
        where = " or ".join(str(path) for path, _ in [*candidates, (table, "")])
        raise InputError(
            f"there is no column {column!r} in {where}.{did_you_mean(column, seen)} Name one of "
            f"{listed(dict.fromkeys(seen), 20)}.",
            code="unknown-column",
        )


def given_options(options: Any) -> list[str]:
    """Return the options of a dataclass that differ from their defaults, as typed: ["--patch-size"]."""
    return [option(one.name) for one in fields(options) if getattr(options, one.name) != one.default]


def read_folder(
    known: PatchPreprocessor, folder: Path, on_file: Any, columns: Columns | None = None
) -> arrays.FolderData:
    """Read a folder of pictures or sounds with the patch size, sample rate and so on of a trained model.

    Args:
        known: the model's preprocessor, which says whether pictures or sounds are read.
        folder: the folder, or a single file.
        on_file: function that is called with (files read, files in all) after each file; None calls nothing.
        columns: the command's options of tables, of which none may be given; None checks nothing.

    Returns:
        The data set, with the files' paths as ids, and the labels: for each file the name of the topmost folder inside
        `folder` that holds it, or None if it lies in `folder` itself. If all lie there, labels are None, not an array.

    Raises:
        InputError: options of tables; a model of videos or other arrays; no folder, or none of its files can be read.
        OSError: a folder that may not be listed.
        MissingExtra: without the extra `images` or `audio`.

    Warns:
        InputWarning: files that cannot be read or are smaller than a patch, which are left out; files that are changed,
            such as sounds of another rate.
    """
    from rotarymae import arrays

    of_tables = [] if columns is None else given_options(columns)
    if of_tables:
        raise InputError(
            f"the model was trained on {known.noun}; leave out the options of tables: {', '.join(of_tables)}."
        )
    if known.sample_rate is not None:
        return arrays.read_sounds(folder, known.patch_size, known.sample_rate, on_file)
    if len(known.patch_size) != 2:
        raise InputError(
            f"the model was trained on {known.noun}, which are not read from folders; use it in Python "
            "(rotarymae.load), with arrays."
        )
    return arrays.read_pictures(folder, known.patch_size, known.longest_side, known.channels, on_file)


@with_helps
@dataclass(frozen=True)
class FolderOptions:
    """A folder of pictures or sounds instead of a table; a file's class is the topmost folder in which it lies."""

    images: bool = False
    """Reading: read TABLE as a folder of pictures. Set it if it holds PNG, JPEG or other pictures; folders inside are
    classes."""
    audio: bool = False
    """Reading: read TABLE as a folder of sounds, which become spectrograms of 128 bins every 10 ms. Set it if it holds
    WAV, FLAC, OGG or other sounds; folders inside are classes."""
    patch_size: tuple[int, ...] | None = None
    """Pre-training and fine-tuning: height and width, in pixels, of the patches that become tokens (of sounds: frames
    and bins); one number is both. Without it 16, for sounds 8 frames of all bins. Lower it if fine detail matters;
    smaller patches are slower."""
    longest_side: int = 224
    """Reading: larger pictures are scaled down to this many pixels on their longer side. Raise it for fine detail,
    which takes longer. Not for sounds."""

    @property
    def is_folder(self) -> bool:
        """Whether TABLE is a folder of pictures or sounds (--images, --audio)."""
        return self.images or self.audio

    def check(self, columns: Columns, others: dict[str, Any]) -> None:
        """Raise InputError for options that do not fit the data.

        Options of tables do not fit a folder (--images or --audio), those of folders do not fit a table, and
        --longest-side does not fit sounds. --images and --audio exclude each other.

        Args:
            columns: the options of a table's layout.
            others: further options of tables, {name: value}; one that is None, False or empty counts as not given.
        """
        if not self.is_folder:
            if given_options(self):
                raise InputError(
                    f"the data are a table; leave out {', '.join(given_options(self))}, or add --images or --audio "
                    "for a folder of pictures or sounds."
                )
            return
        if self.images and self.audio:
            raise InputError("--images and --audio are both given; give the one that TABLE holds.")
        unread = [*given_options(columns), *(option(name) for name, value in others.items() if value)]
        if self.audio and self.longest_side != FolderOptions.longest_side:
            unread.append("--longest-side")
        if unread:
            kind = "pictures" if self.images else "sounds"
            raise InputError(f"some options are for other data: the data are {kind}; leave out {', '.join(unread)}.")

    def read(self, folder: Path, start: PatchPreprocessor | None, on_file: Any) -> arrays.FolderData:
        """Read the pictures (--images) or sounds (--audio) of a folder for a training.

        Args:
            folder, on_file: as for `read_folder`.
            start: preprocessor of the trained model to start from, which says whether pictures or sounds are read, and
                whose patch size and so on are used; None goes by the options.

        Returns:
            The data set and the labels, as `read_folder` returns them.

        Raises:
            InputError: an option that differs from `start`; a patch size or longest side out of range. Further errors
                and the warnings are those of `read_folder`.
        """
        from rotarymae import arrays

        patch = self.patch_size
        patch = patch[0] if patch is not None and len(patch) == 1 else patch
        if start is not None:
            side = None if self.longest_side == FolderOptions.longest_side else self.longest_side
            start.refuse_other(patch, longest_side=side)
            return read_folder(start, folder, on_file)
        if self.audio:
            return arrays.read_sounds(folder, patch or arrays.SOUND_PATCH, None, on_file)
        return arrays.read_pictures(folder, patch or 16, self.longest_side, None, on_file)


def known_labels(files: arrays.FolderData, folder: Path, classes: tuple[Any, ...]) -> Any:
    """Check that the labels of S files are classes of a model; return these labels [S], None for a file without one.

    Args:
        files: what `read_folder` read from `folder`; labels are names of folders inside.
        folder: for messages.
        classes: the model's classes.

    Raises:
        InputError: the name of a folder is none of the classes, or no file lies in a folder inside.
    """
    folders = {label for label in ([] if files.labels is None else files.labels) if label is not None}
    unknown = sorted(map(str, folders - set(classes)))
    if unknown or not folders:
        raise InputError(
            f"{folder} holds {f'folders that are no classes, {listed(unknown)}' if unknown else 'no folders'}; to "
            f"score the model, put the files of each class into a folder of the class's name: {listed(classes, 20)}."
        )
    return files.labels


def first_flagged(dataset: series.SeriesDataset, table: Path, layout: tables.TableSchema, name: str) -> np.ndarray:
    """Return the first time at which the flag of each of S series is not 0, float [S]; NaN where there is none.

    Args:
        dataset: the S series.
        table, layout: the table from which they were read, and how. A row without a flag counts as one with 0.
        name: the column of flags.

    Raises:
        InputError: a column `name` that `layout` names as ids, times, positions, channels or flags ("column-twice"), or
            that cannot be read.
    """
    source, _ = LabelColumn().source(name, replace(layout, objects=None), table)
    of_flags = replace(layout, values=(name,), errors=(), static=(), upper_limits=(), lower_limits=())
    flags = tables.read_table(source, of_flags)
    when = np.where(flags.values[:, 0] != 0, flags.times, np.inf)
    earliest = dict(zip(flags.ids.tolist(), np.minimum.reduceat(when, flags.offsets[:-1]).tolist(), strict=True))
    since = np.array([earliest.get(id, np.inf) for id in dataset.ids.tolist()])
    return np.where(np.isfinite(since), since, np.nan)
