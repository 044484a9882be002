"""The tables a command is given, read as its options say or as the model's training table was read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from rotarymae.config import Precision

if TYPE_CHECKING:
    from rotarymae.series import SeriesDataset, TableLayout


Table = Annotated[Path, arg(metavar="TABLE")]
Model = Annotated[Path, arg(metavar="MODEL")]
Quiet = Annotated[bool, arg(help="Print only what goes wrong.")]
ComputedIn = Annotated[
    Precision,
    arg(help='Matrix products are computed in this precision; "auto" takes bf16 where the hardware has units for it.'),
]


def _default(text: str) -> Any:
    """What help says of an option that is not given: None stands for the model's, or for this."""
    return arg(help_behavior_hint=f"(default: {text})")


@dataclass(frozen=True)
class Columns:
    """How the table is laid out; a model remembers how its training table was."""

    id: Annotated[str | None, _default("id")] = None
    """This column says which series a row belongs to; file is the name of the file, where that is no column."""
    time: Annotated[str | None, _default("time")] = None
    """This column holds the times, which are numbers or dates; lc.time is the field time of a nested column lc."""
    channel: Annotated[str | None, _default("no channels")] = None
    """This column says which channel (band, sensor, variable) was observed."""
    values: Annotated[tuple[str, ...], _default("value; with --wide all others")] = ()
    """These columns hold the values; with --wide they are the channels."""
    flags: Annotated[tuple[str, ...], _default("no flags")] = ()
    """An observation with another flag than 0 in one of these columns is a missing one."""
    wide: bool = False
    """The table has one column per channel, and an empty cell is a missing observation, not a zero."""
    tokens: Annotated[Literal["channel", "time"] | None, _default("channel")] = None
    """Each (time, channel) is one token, or each time is one, with all channels as its features."""
    missing: Annotated[Literal["error", "drop"] | None, _default("drop")] = None
    """A row without a value is left out and counted, or is an error."""
    duplicates: Annotated[Literal["error", "mean", "first"] | None, _default("error")] = None
    """Two rows of the same series, time and channel are an error, are averaged, or the first counts."""
    unknown_channels: Annotated[Literal["error", "drop"] | None, _default("drop")] = None
    """Rows of channels that a trained model does not know are left out, or an error, as fit takes them unless told."""
    na: Annotated[tuple[str, ...], _default("empty, NA, NaN, null and the like")] = ()
    """These cells of a text file mean that a value is missing, too."""
    time_format: Annotated[str | None, _default("ISO dates, or numbers")] = None
    """Times are written like this, for example "%d.%m.%Y %H:%M"."""


@dataclass(frozen=True)
class LabelColumn:
    """Where the labels are."""

    labels: Annotated[Path | None, arg(help_behavior_hint="(default: TABLE)")] = None
    """This table has ids of series and labels, classes or numbers; series without a label are only pre-trained on."""
    label: Annotated[str | None, arg(help_behavior_hint="(default: label)")] = None
    """This column holds the labels; without it and --labels the model is only pre-trained."""
    label_id: Annotated[str | None, arg(help_behavior_hint="(default: as in TABLE)")] = None
    """This column of that table holds the ids."""

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns of the table of observations that hold labels."""
        return (self.label,) if self.label and self.labels is None else ()

    def read(self, dataset: SeriesDataset, layout: TableLayout, table: Path) -> Any:
        """The labels in the order of the series, or None. Raises InputError for labels that do not match."""
        from rotarymae.series import align_labels, read_table

        key = self.label_id or layout.id
        if self.labels is None:
            if self.label is None:
                return None
            found = layout.open(table).read_distinct([key, self.label], [key])
        else:
            found = read_table(self.labels, labels=[key])
        return align_labels(dataset, found, key, self.label or "label", unlabelled="none")
