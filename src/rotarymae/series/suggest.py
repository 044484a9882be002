"""Which column of a table is what, guessed from names that are usual in the field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# In the order of preference; compared in lower case, without the part before a dot and without underscores.
IDS = (
    *("objectid", "diaobjectid", "objid", "oid", "sourceid", "seriesid", "series", "star", "object"),
    *("stayid", "icustayid", "stay", "recordid", "patientid", "patient", "subjectid"),
    *("record", "station", "device", "unit", "id", "name"),
)
TIMES = (
    *("mjd", "midpointmjdtai", "bmjd", "hjd", "bjd", "jd", "obstime", "charttime", "timestamp", "datetime", "time"),
    *("date", "hour", "hours", "day", "days", "minute", "minutes", "seconds", "t"),
)
CHANNELS = (
    *("passband", "band", "filter", "bandpass", "filtercode", "fid"),
    *("channel", "sensor", "variable", "parameter", "test", "item", "itemid"),
)
VALUES = ("flux", "psfflux", "mag", "magnitude", "psfmag", "value", "valuenum", "reading", "measurement")
ERRORS = ("{}err", "{}error", "{}sigma", "sigma{}", "e{}", "err{}")
LABELS = ["label", "target", "class", "kind", "type", "outcome", "died"]


def suggest_columns(names: Sequence[str], numeric: Sequence[str]) -> dict[str, Any]:
    """The likely columns of a table of observations, as options: id, time, channel, values, wide, label.

    Args:
        names: of the columns whose role is open.
        numeric: of those that hold numbers.

    Returns:
        the options for which a column was recognised. Where no column of values is known by its name, all other
        columns of numbers are values; several of them, without a column of channels, are channels themselves (wide).
    """
    plain = {name.rpartition(".")[2].lower().replace("_", ""): name for name in reversed(names)}
    found: dict[str, Any] = {}
    for option, known in (("id", IDS), ("time", TIMES), ("channel", CHANNELS), ("label", LABELS)):
        first = next((plain[key] for key in known if key in plain and plain[key] not in found.values()), None)
        if first is not None:
            found[option] = first
    value = next((key for key in VALUES if key in plain and plain[key] in numeric), None)
    others = tuple(name for name in names if name in numeric and name not in found.values())
    if value is not None:
        errors = [plain[key] for error in ERRORS if (key := error.format(value)) in plain and plain[key] in numeric]
        found["values"] = (plain[value], *errors[:1])
    elif others:
        found["values"] = others
        if len(others) > 1 and "channel" not in found:
            found["wide"] = True
    return found
