"""Inputs of commands: tables, read as their options say or as the model's training table was; and folders."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from rotarymae import series, tables
from rotarymae.config import Precision
from rotarymae.errors import InputError, did_you_mean, listed

if TYPE_CHECKING:
    from rotarymae import arrays
    from rotarymae.preprocess import PatchPreprocessor

Table = Annotated[Path, arg(metavar="TABLE")]
Model = Annotated[Path, arg(metavar="MODEL")]
OptionalTable = Annotated[Path | None, arg(metavar="TABLE", help_behavior_hint="(default: MODEL is the table)")]
Quiet = Annotated[bool, arg(help="Print only what goes wrong.")]
ComputedIn = Annotated[
    Precision,
    arg(help='Matrix products are computed in this precision; "auto" takes bf16 where the hardware has units for it.'),
]


def _default(text: str) -> Any:
    """Return the default that help shows for an option: None stands for the model's, or for this."""
    return arg(help_behavior_hint=f"(default: as in training; without a model, {text})")


@dataclass(frozen=True)
class Columns:
    """How the table is laid out; a model remembers how its training table was."""

    id: Annotated[str | None, _default("id")] = None
    """This column says which series a row belongs to; file is the name of the file, where that is no column."""
    time: Annotated[str | None, _default("time")] = None
    """This column holds the times, which are numbers or dates; lc.time is the field time of a nested column lc."""
    clock: Annotated[str | None, _default("no clock")] = None
    """This column holds the time of day, where --time holds days."""
    positions: Annotated[tuple[str, ...], _default("time alone")] = ()
    """These columns hold further positions of each observation, such as latitude, longitude and depth."""
    channel: Annotated[str | None, _default("no channels")] = None
    """This column says which channel (band, sensor, variable) was observed."""
    values: Annotated[tuple[str, ...], _default("value; with --wide all others")] = ()
    """These columns hold the values; with --wide they are the channels."""
    flags: Annotated[tuple[str, ...], _default("no flags")] = ()
    """An observation with another flag than 0 in one of these columns is a missing one."""
    wide: bool = False
    """The table has one column per channel, and an empty cell is a missing observation, not a zero."""
    numbered: Annotated[str | None, _default("none")] = None
    """Columns of this name with a number, such as FLUX. for FLUX.1, FLUX.2, are one series per row."""
    objects: Annotated[Path | None, arg(help_behavior_hint="(default: TABLE)")] = None
    """This table has one row per series: static columns, labels, the split, as far as TABLE does not have them."""
    tokens: Annotated[Literal["channel", "time"] | None, _default("channel")] = None
    """Each (time, channel) is one token, or each time is one, with all channels as its features."""
    missing: Annotated[Literal["error", "drop"] | None, _default("drop")] = None
    """A row without a value is left out and counted (drop), or the table is refused (error)."""
    duplicates: Annotated[Literal["error", "mean", "first", "last"] | None, _default("error")] = None
    """Rows of the same series, time and channel: many are an error; or they are averaged, or one of them counts."""
    unknown_channels: Annotated[Literal["error", "drop"] | None, _default("drop")] = None
    """Rows of channels that a trained model does not know are left out (drop), or refused (error), as fit does."""
    limits: Annotated[Literal["drop", "number"] | None, _default("drop")] = None
    """Values such as <0.01 are left out and counted (drop), or read as 0.01 (number)."""
    untimed: Annotated[Literal["drop", "static"] | None, _default("drop")] = None
    """Rows without a time are left out and counted (drop), or are facts about their series (static)."""
    since: Annotated[str | None, _default("all")] = None
    """Rows before this time, a number or a date, are left out and counted."""
    until: Annotated[str | None, _default("all")] = None
    """Rows after this time are left out and counted."""
    na: Annotated[tuple[str, ...], _default("empty; among numbers also NA, NaN, null and the like")] = ()
    """These cells mean that a value is missing, too; a number means all cells of that value, -999 also -999.0."""
    time_format: Annotated[str | None, _default("ISO dates, or numbers")] = None
    """Times are written like this, for example "%d.%m.%Y %H:%M"."""
    header_row: Annotated[int | None, _default("found")] = None
    """This line of a text file, counted from 1, names the columns."""
    strict: bool = False
    """A cell that cannot be used, such as an infinite value or a negative error, refuses the table."""


@dataclass(frozen=True)
class LabelColumn:
    """Where the labels are."""

    labels: Annotated[Path | None, arg(help_behavior_hint="(default: that of --objects, or TABLE)")] = None
    """This table has ids of series and labels, classes or numbers; some series may have none."""
    label: Annotated[str | None, arg(help_behavior_hint="(default: label)", aliases=["--duration"])] = None
    """This column holds the labels, in the table of --labels or --objects, or in TABLE itself."""
    event: Annotated[str | None, arg(help_behavior_hint="(default: labels are no durations)")] = None
    """The labels are durations, of which this column says whether they ended in the event (1), or were censored (0)."""
    label_id: Annotated[str | None, arg(help_behavior_hint="(default: as in TABLE)")] = None
    """This column of that table holds the ids."""

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns of the table of observations that hold labels, also where a table of their own gives them."""
        return tuple(name for name in (self.name, self.event) if name is not None)

    @property
    def name(self) -> str | None:
        """The name of the column of labels; None without labels."""
        return self.label or (None if self.labels is None else "label")

    def read(self, dataset: series.SeriesDataset, layout: tables.TableSchema, table: Path) -> Any:
        """Return the labels in the order of the series, or None. Raises InputError for labels that do not match."""
        if self.name is None:
            return None
        columns = []
        for name in self.beside:
            if self.labels is None and name in layout.static:
                raise InputError(f"the label {name!r} is a static column, too; leave it out of these.")
            source, key = self.source(name, layout, table)
            columns.append(tables.align_labels(dataset, source, key, name, unlabelled="none", na=layout.na))
        if self.event is None:
            return columns[0]
        from rotarymae.labels import event_times

        return event_times(*columns, *self.beside)

    def source(self, column: str, layout: tables.TableSchema, table: Path) -> tuple[tables.Source, str]:
        """Return the table that has a column with one value per series, and its column of ids.

        Raises:
            InputError: none has it.
        """
        candidates = [(path, self.label_id or layout.id) for path in (self.labels, layout.objects) if path is not None]
        seen: list[str] = []
        for path, key in [*candidates, (table, layout.id)]:
            of_table = path is table
            opened = tables.open_source(
                path, layout.header_row if of_table else None, layout.numbered if of_table else None
            )
            if column in opened.columns:
                return opened, key if of_table or self.label_id else tables.key_column(opened, key)
            seen += opened.columns
        where = " or ".join(str(path) for path, _ in [*candidates, (table, "")])
        raise InputError(
            f"there is no column {column!r} in {where}.{did_you_mean(column, seen)} There are "
            f"{listed(dict.fromkeys(seen), 20)}.",
            code="unknown-column",
        )


def _changed(options: Any) -> list[str]:
    """The options of a group that are not as they are by default, as typed."""
    return [f"--{one.name.replace('_', '-')}" for one in fields(options) if getattr(options, one.name) != one.default]


@dataclass(frozen=True)
class FolderReading:
    """How a folder of pictures or sounds is read."""

    resample: bool = False
    """Sounds of another sample rate than the first one's (the model's) are resampled; without it they are refused."""

    def check_table(self) -> None:
        """Raises InputError for options of folders where the model was made from tables."""
        if _changed(self):
            raise InputError(
                f"options of pictures and sounds, and the model was made from series: {', '.join(_changed(self))}."
            )

    def read_for(
        self, known: PatchPreprocessor, folder: Path, on_file: Any, columns: Columns | None = None
    ) -> arrays.FolderData:
        """The files of a folder for a model that was made from others. Raises InputError for options of tables."""
        from rotarymae import arrays

        patch, of_tables = known.patch_size, [] if columns is None else _changed(columns)
        if of_tables:
            raise InputError(f"options of tables, and the model was made from {known.noun}: {', '.join(of_tables)}.")
        if self.resample and known.sample_rate is None:
            raise InputError(f"--resample concerns sounds; the model was made from {known.noun}.")
        if known.sample_rate is not None:
            return arrays.read_sounds(folder, patch, known.sample_rate, self.resample, on_file)
        if len(patch) != 2:
            raise InputError(f"the model was made from {known.noun}, which are not read from folders.")
        return arrays.read_pictures(folder, patch, known.longest_side, known.channels, on_file)


@dataclass(frozen=True)
class FolderOptions(FolderReading):
    """A folder of pictures or sounds instead of a table; a file's class is the topmost folder in which it lies."""

    images: bool = False
    """TABLE is a folder of pictures (PNG, JPEG, ...)."""
    audio: bool = False
    """TABLE is a folder of sounds (WAV, FLAC, OGG, ...), which become spectrograms of 128 bins every 10 ms."""
    patch_size: tuple[int, ...] | None = None
    """Patches have so many rows and columns; one number is both. By default 16, for sounds 8 frames of all bins."""
    longest_side: int = 224
    """Larger pictures are scaled down to so many pixels on their longer side."""

    @property
    def given(self) -> bool:
        return self.images or self.audio

    def check(self, columns: Columns, others: dict[str, Any]) -> None:
        """Raises InputError for options of tables beside a folder, and of folders beside a table, by name; and for both
        kinds of folders at once."""
        if not self.given:
            if _changed(self):
                raise InputError(f"options of folders: {', '.join(_changed(self))}; say --images or --audio.")
            return
        if self.images and self.audio:
            raise InputError("give one of --images and --audio.")
        if self.audio and self.longest_side != FolderOptions.longest_side:
            raise InputError("--longest-side concerns pictures; leave it out with --audio.")
        if self.images and self.resample:
            raise InputError("--resample concerns sounds; leave it out with --images.")
        others = {**asdict(columns), **others}
        of_tables = [f"--{name.replace('_', '-')}" for name, value in others.items() if value]
        if of_tables:
            kind = "--images" if self.images else "--audio"
            raise InputError(f"options of tables, to leave out with {kind}: {', '.join(of_tables)}.")
        if self.patch_size is not None and len(self.patch_size) not in (1, 2):
            raise InputError(f"--patch-size has {len(self.patch_size)} numbers; wanted one or two.")

    def read(self, folder: Path, start: PatchPreprocessor | None, on_file: Any) -> arrays.FolderData:
        """The files of the folder; `start` is the preprocessor of a model that was trained already."""
        from rotarymae import arrays

        patch = self.patch_size
        if patch is not None and len(patch) == 1:
            patch *= 2
        if start is not None:
            changed = _changed(self)
            side = self.longest_side if "--longest-side" in changed else None
            start.refuse_other(patch, longest_side=side)
            return self.read_for(start, folder, on_file)
        if self.audio:
            return arrays.read_sounds(folder, patch or arrays.SOUND_PATCH, None, self.resample, on_file)
        return arrays.read_pictures(folder, patch or 16, self.longest_side, None, on_file)


def known_labels(files: arrays.FolderData, folder: Path, classes: tuple[Any, ...]) -> Any:
    """The labels of a folder's files. Raises InputError, naming a file, for one that is no class of the model."""
    if files.labels is None:
        raise InputError(f"{folder} has no folders inside, whose names would be the classes; nothing can be scored.")
    if not classes:
        raise InputError("the model predicts numbers; the names of folders are classes, and nothing can be scored.")
    for name, label in zip(files.dataset.ids, files.labels, strict=True):
        if label is not None and label not in classes:
            raise InputError(
                f"{folder / name} lies in the folder {str(label)!r}, which is no class of the model; its classes are "
                f"{listed(classes, 20)}."
            )
    return files.labels
