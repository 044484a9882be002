"""Inputs of commands: tables, read as their options say or as the model's training table was; and folders."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, fields, make_dataclass
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

from tyro.conf import arg

from rotarymae import series, tables
from rotarymae.config import Precision
from rotarymae.errors import InputError, did_you_mean, listed
from rotarymae.system import field_docs
from rotarymae.training.fit_config import FitConfig

if TYPE_CHECKING:
    from rotarymae import arrays
    from rotarymae.preprocess import PatchPreprocessor

LAYOUT = "How the table is laid out; a model remembers how its training table was."
TablePath = Annotated[Path, arg(metavar="TABLE")]
ModelPath = Annotated[Path, arg(metavar="MODEL")]
OptionalTable = Annotated[Path | None, arg(metavar="TABLE", help_behavior_hint="(default: MODEL is the table)")]
Flag = Annotated[bool, arg(help_behavior_hint="")]  # off unless it is typed
Quiet = Annotated[bool, arg(help="Print only warnings and errors.", help_behavior_hint="")]
ComputedIn = Annotated[
    Precision,
    arg(help="Number format of matrix products; auto is bf16 on hardware that has units for it."),
]


if TYPE_CHECKING:
    from rotarymae.tables import TableSchema as Columns
else:

    def _options() -> type:
        """Return a dataclass of command options with the fields of `TableSchema`; None means the model's layout."""
        from rotarymae.tables.schema import TableSchema, helps

        said, options = helps(), []
        for name, kind in get_type_hints(TableSchema).items():
            if name in ("errors", "static", "units"):
                continue
            usual = "recognised" if name == "header_row" else getattr(TableSchema, name) or "none"
            usual = "value; with --wide all others" if name == "values" else usual
            default = f"(default: as in training; without a model, {usual})"
            hint = arg(help=said[name], help_behavior_hint="" if kind is bool else default)
            kind = Path if name == "objects" else kind
            plain = kind is bool or get_origin(kind) is tuple
            default = False if kind is bool else () if plain else None
            options.append((name, Annotated[kind if plain else kind | None, hint], default))
        return make_dataclass("Columns", options, frozen=True, namespace={"__doc__": LAYOUT, "__module__": __name__})

    Columns = _options()


def _as_typed(name: re.Match[str]) -> str:
    """Return an option's name in backticks, perhaps with "=value", as one types it; other names stay."""
    if name[1] not in FitConfig.__dataclass_fields__:
        return name[0]
    return " ".join([f"--{name[1].replace('_', '-')}", *filter(None, [name[2]])])


def as_options(group: type) -> type:
    """Return a dataclass of options as the command shows it: "Default: ..." at the end of a help becomes its hint."""
    docs, kinds, shown = field_docs(group), get_type_hints(group, include_extras=True), []
    for one in fields(group):
        text = re.sub(r"`(\w+)(?:=(\w+))?`", _as_typed, docs[one.name])
        said, _, default = text.partition(" Default: ")
        if one.default is True:  # shown as --no-NAME
            said = f"Turn off: {said[0].lower()}{said[1:]}"
        texts: dict[str, Any] = {"help": said}
        if default or kinds[one.name] is bool:
            texts["help_behavior_hint"] = f"(default: {default.rstrip('.')})" if default else ""
        kind = Annotated[kinds[one.name], arg(**texts)]
        shown.append((one.name, kind, field(default=one.default)))
    return make_dataclass(group.__name__, shown, namespace={"__doc__": getdoc(group), "__module__": __name__})


@dataclass(frozen=True)
class LabelColumn:
    """Where the labels are."""

    labels: Annotated[Path | None, arg(help_behavior_hint="(default: that of --objects, or TABLE)")] = None
    """Table with the ids of series and their labels, which are classes or numbers; some series may have none."""
    label: Annotated[str | None, arg(help_behavior_hint="(default: label)", aliases=["--duration"])] = None
    """Column of the labels, or durations, in the table of --labels or --objects, or in TABLE itself."""
    event: Annotated[str | None, arg(help_behavior_hint="(default: labels are no durations)")] = None
    """Column that says whether a duration ended in the event (1) or was censored (0); the labels are then durations."""
    label_id: Annotated[str | None, arg(help_behavior_hint="(default: as in TABLE)")] = None
    """Column of the series ids in the table of labels."""

    @property
    def columns(self) -> tuple[str, ...]:
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
        for name in self.columns:
            if self.labels is None and name in layout.static:
                raise InputError(f"the label {name!r} is a static column, too; leave it out of --static.")
            source, key = self.source(name, layout, table)
            columns.append(tables.align_labels(dataset, source, key, name, unlabelled="none", na=layout.na))
        if self.event is None:
            return columns[0]
        from rotarymae.labels import event_times

        return event_times(*columns, *self.columns)

    def source(self, column: str, layout: tables.TableSchema, table: Path) -> tuple[tables.Source, str]:
        """Return the table that holds one value per series in `column`, and the name of its id column.

        Raises:
            InputError: no table has the column.
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

    resample: Flag = False
    """Resample sounds whose sample rate differs from the first one's, or the model's; otherwise they are refused."""

    def check_table(self) -> None:
        """Raise InputError for options about folders when the model was trained on tables."""
        if _changed(self):
            raise InputError(
                "the model was trained on series; leave out the options of pictures and sounds: "
                f"{', '.join(_changed(self))}."
            )

    def read_for(
        self, known: PatchPreprocessor, folder: Path, on_file: Any, columns: Columns | None = None
    ) -> arrays.FolderData:
        """Read a folder of pictures or sounds as a trained model needs it. Raises InputError for table options."""
        from rotarymae import arrays

        patch, of_tables = known.patch_size, [] if columns is None else _changed(columns)
        if of_tables:
            raise InputError(
                f"the model was trained on {known.noun}; leave out the options of tables: {', '.join(of_tables)}."
            )
        if self.resample and known.sample_rate is None:
            raise InputError(f"--resample applies to sounds only; the model was trained on {known.noun}.")
        if known.sample_rate is not None:
            return arrays.read_sounds(folder, patch, known.sample_rate, self.resample, on_file)
        if len(patch) != 2:
            raise InputError(f"the model was trained on {known.noun}, which the command cannot read; use Python.")
        return arrays.read_pictures(folder, patch, known.longest_side, known.channels, on_file)


@dataclass(frozen=True)
class FolderOptions(FolderReading):
    """A folder of pictures or sounds instead of a table; a file's class is the topmost folder in which it lies."""

    images: Flag = False
    """TABLE is a folder of pictures (PNG, JPEG, ...)."""
    audio: Flag = False
    """TABLE is a folder of sounds (WAV, FLAC, OGG, ...), which become spectrograms of 128 bins every 10 ms."""
    patch_size: Annotated[
        tuple[int, ...] | None, arg(help_behavior_hint="(default: 16; for sounds 8 frames of all bins)")
    ] = None
    """Rows and columns of a patch; one number sets both."""
    longest_side: int = 224
    """Number of pixels on the longer side to which larger pictures are scaled down."""

    @property
    def given(self) -> bool:
        return self.images or self.audio

    def check(self, columns: Columns, others: dict[str, Any]) -> None:
        """Raise InputError for options of tables with a folder, of folders with a table, or of pictures with sounds."""
        if not self.given:
            if _changed(self):
                raise InputError(
                    f"these options apply to folders only: {', '.join(_changed(self))}; add --images or --audio, or "
                    "leave them out."
                )
            return
        if self.images and self.audio:
            raise InputError("give one of --images and --audio.")
        if self.audio and self.longest_side != FolderOptions.longest_side:
            raise InputError("--longest-side applies to pictures only; leave it out with --audio.")
        if self.images and self.resample:
            raise InputError("--resample applies to sounds only; leave it out with --images.")
        others = {**asdict(columns), **others}
        of_tables = [f"--{name.replace('_', '-')}" for name, value in others.items() if value]
        if of_tables:
            kind = "--images" if self.images else "--audio"
            raise InputError(f"leave out the options of tables with {kind}: {', '.join(of_tables)}.")
        if self.patch_size is not None and len(self.patch_size) not in (1, 2):
            raise InputError(f"--patch-size has {len(self.patch_size)} numbers; wanted one or two.")

    def read(self, folder: Path, start: PatchPreprocessor | None, on_file: Any) -> arrays.FolderData:
        """Read the pictures or sounds of the folder, sized as those of the trained preprocessor `start`, if given."""
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
    """Return the label of each file: the name of the folder it lies in, None outside of all folders.

    Raises:
        InputError: there are no folders inside `folder`; the model has no classes; a label is none of them.
    """
    if files.labels is None:
        raise InputError(
            f"{folder} has no subfolders, whose names would be the classes; put the files of each class into a folder."
        )
    if not classes:
        raise InputError(
            "the model predicts numbers, but the names of folders are classes; it cannot be scored on them."
        )
    for name, label in zip(files.dataset.ids, files.labels, strict=True):
        if label is not None and label not in classes:
            raise InputError(
                f"{folder / name} lies in the folder {str(label)!r}, which is not a class of the model; its classes "
                "are "
                f"{listed(classes, 20)}."
            )
    return files.labels
