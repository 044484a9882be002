"""Parts of a data set: random ones, or those that a column decides, by whole groups, by time, or in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rotarymae.errors import InputError, listed
from rotarymae.series import as_dates, plain

TRAIN, VALIDATION, TEST = range(3)
WORDS = {"train": TRAIN, "training": TRAIN, "validation": VALIDATION, "valid": VALIDATION, "val": VALIDATION}
WORDS |= {"test": TEST, "testing": TEST}
PARTS = ("train", "validation", "test")
MAX_GROUPS_NAMED = 3
MIN_SERIES_FOR_HOLDOUT = 10
METHODS = {"column": "as it says", "groups": "whole groups held out", "latest": "the latest held out"}


@dataclass(frozen=True)
class Split:
    """Indices of the series that are trained on, that choose the best epoch, and that are only scored.

    Where some series have labels and others have none, these three are of the labelled ones; `unlabelled` are the
    others, which pre-training reads as well, and `left_out` those that belong to a held-out group, which nothing reads.
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    unlabelled: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    left_out: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def pretrain(self) -> np.ndarray:
        """Return the series that pre-training reads."""
        return np.sort(np.concatenate([self.train, self.unlabelled]))

    @property
    def labelled(self) -> np.ndarray:
        """Return all series but the unlabelled ones."""
        return np.sort(np.concatenate([self.train, self.validation, self.test]))

    @property
    def scored(self) -> np.ndarray:
        """Return the held-out series; without any those of validation, or else those that were trained on."""
        return next((part for part in (self.test, self.validation) if len(part)), self.train)

    @property
    def scored_part(self) -> str:
        """Return the part that is scored: "test", "validation" or "train"."""
        return next((name for name in ("test", "validation") if len(getattr(self, name))), "train")


@dataclass(frozen=True, eq=False)
class SplitColumn:
    """A column with one value per series.

    Attributes:
        name: of the column.
        values: [S] words or truth values, which name groups; or numbers, such as days, which come in an order. None or
            NaN where a series has none.
        dates: whether the numbers are days since 1970-01-01.
    """

    name: str
    values: np.ndarray
    dates: bool = False

    def split(
        self, rows: np.ndarray, classes: np.ndarray | None, holdout: float, validation: float, seed: int
    ) -> tuple[Split, dict[str, Any]]:
        """Return the parts, and how they came about as metrics.json has it; `split_words` says it in words.

        Words train, validation (or valid, val) and test, also training and testing, whatever their case, are obeyed;
        of validation and test one that is lacking is drawn from train. Others beside train or test are refused.
        Otherwise words name groups: groups drawn at random are held out whole, and as near to the share as whole groups
        come. Of numbers and dates the latest are held out; equal ones stay together. Series without a label share the
        fate of their group, and where that is held out, nothing is trained on them.

        Args:
            rows: the series with labels, among all.
            classes: of these, or None.
            holdout: share of them that is only scored.
            validation: share of the others that chooses the best epoch.
            seed: of the draw.

        Raises:
            InputError: a labelled series without a value; one value in all; words beside train or test; a class that is
                held out as a whole.
        """
        for name, share in (("holdout", holdout), ("validation_fraction", validation)):
            if not 0 <= share < 1:
                raise InputError(f"{name} is {share}; wanted at least 0 and less than 1, a share of the series.")
        known = np.array([value is not None and value == value for value in self.values.tolist()], bool)
        if not known[rows].all():
            lost = rows[~known[rows]]
            raise InputError(
                f"{len(lost):,} series have no value in the column {self.name!r}, by which they are to be split "
                f"(series {listed(lost)}, counted from 0); fill it in."
            )
        there = self.values[known].tolist()
        words = {value.strip().lower() for value in there if isinstance(value, str)}
        others = sorted(words - set(WORDS))
        if others and {WORDS.get(word) for word in words} & {TRAIN, TEST}:
            raise InputError(
                f"the column {self.name!r} says {listed(sorted(words & set(WORDS)))} and also {listed(others)}; only "
                "train, validation and test are parts. Write one of these, or leave the other series out."
            )
        if words and not others and all(isinstance(value, str) for value in there):
            part_of, method, drawn = self._as_it_says(known, rows, classes, (holdout, validation), seed)
        else:
            ordered = all(isinstance(value, int | float) and not isinstance(value, bool) for value in there)
            part_of, method, drawn = self._drawn(known, rows, classes, (holdout, validation), seed, ordered)
        self._check_classes(part_of[rows], classes)
        labelled = np.isin(np.arange(len(part_of)), rows)
        train, choosing, test = (np.flatnonzero(labelled & (part_of == part)) for part in (TRAIN, VALIDATION, TEST))
        unlabelled, left_out = np.flatnonzero(~labelled & (part_of == TRAIN)), ~labelled & (part_of != TRAIN)
        split = Split(train, choosing, test, unlabelled, np.flatnonzero(left_out))
        if not len(split.train):
            raise InputError(f"by the column {self.name!r} no series is left to train on.")
        return split, self._describe(split, method, drawn)

    def _as_it_says(
        self,
        known: np.ndarray,
        rows: np.ndarray,
        classes: np.ndarray | None,
        shares: tuple[float, float],
        seed: int,
    ) -> tuple[np.ndarray, str, list[str]]:
        part_of, drawn = np.full(len(known), TRAIN), []
        part_of[known] = [WORDS[value.strip().lower()] for value in self.values[known]]
        for part, name, share in zip((TEST, VALIDATION), ("test", "validation"), shares, strict=True):
            train = np.flatnonzero(part_of[rows] == TRAIN)
            if part not in part_of[rows] and share > 0 and len(train) > 1:
                part_of[rows[split_off(train, classes, share, seed)[1]]] = part
                drawn.append(name)
        return part_of, "column", drawn

    def _drawn(
        self,
        known: np.ndarray,
        rows: np.ndarray,
        classes: np.ndarray | None,
        shares: tuple[float, float],
        seed: int,
        ordered: bool,
    ) -> tuple[np.ndarray, str, list[str]]:
        """Return the part of each series: the test part is drawn first, then the validation part of the rest."""
        different, numbers = np.unique(self.values[known].astype(float if ordered else str), return_inverse=True)
        group = np.full(len(known), len(different))  # of a series without a value: one more, which is trained on
        group[known] = numbers
        part_of_group = np.full(len(different) + 1, TRAIN)
        if len(np.unique(group[rows])) < 2:
            raise InputError(
                f"every series has the value {plain(self.values[rows[0]])!r} in the column {self.name!r}; a split "
                "needs two different ones."
            )
        method = "latest" if ordered else "groups"
        draw, left = np.random.default_rng(seed), np.arange(len(rows))
        for part, share in zip((TEST, VALIDATION), shares, strict=True):
            own = group[rows[left]]
            if share == 0:
                continue
            if len(np.unique(own)) < 2:
                part_of = part_of_group[group]
                part_of[rows[split_off(left, classes, share, seed)[1]]] = part
                return part_of, method, [PARTS[part]]
            if ordered:
                later = (np.arange(len(part_of_group) - 1) >= latest(own, share)) & (part_of_group[:-1] == TRAIN)
                part_of_group[:-1][later] = part
            else:
                part_of_group[whole_groups(own, None if classes is None else classes[left], share, draw)] = part
            left = left[part_of_group[own] == TRAIN]
        return part_of_group[group], method, []

    def _check_classes(self, part_of: np.ndarray, classes: np.ndarray | None) -> None:
        if classes is None:
            return
        lost = np.setdiff1d(classes[part_of != TRAIN], classes[part_of == TRAIN])
        if len(lost):
            raise InputError(
                f"by the column {self.name!r} every series of the class {listed(lost)} is held out, so that nothing "
                "could learn it. Hold out less (holdout), split by another column, or leave this class out."
            )

    def _describe(self, split: Split, method: str, drawn: list[str]) -> dict[str, Any]:
        parts = {}
        for name in PARTS:
            rows = getattr(split, name)
            if not len(rows):
                continue
            parts[name] = {"series": len(rows)}
            if method == "groups":
                groups = sorted({str(value) for value in self.values[rows]})
                parts[name] |= {"groups": len(groups), "names": groups if len(groups) <= MAX_GROUPS_NAMED else []}
            elif method == "latest":
                parts[name]["range"] = [self._text(edge(self.values[rows])) for edge in (min, max)]
        return {"by": self.name, "method": method, "drawn": drawn, "parts": parts, "left_out": len(split.left_out)}

    def _text(self, value: Any) -> str:
        return as_dates(np.array([value]))[0].as_py().strftime("%Y-%m-%d") if self.dates else f"{value:.10g}"


RANDOM_SPLIT = {"by": None, "method": "random"}


def split_words(split: dict[str, Any], private: bool = True) -> str:
    """Return the "split" of metrics.json in words; unless `private`, without names and dates of series."""
    if split["by"] is None:
        return "at random"
    text = f"split by {split['by']!r}, {METHODS[split['method']]}"
    text += f", {' and '.join(split['drawn'])} series drawn from those of train" if split["drawn"] else ""
    if not private:
        return text
    parts = []
    for name, verb in zip(PARTS, ("are trained on", "choose the best epoch", "are held out"), strict=True):
        part = split["parts"].get(name)
        if part is None:
            continue
        which = ""
        if "groups" in part:
            which = f" of {part['groups']:,} group{'s' if part['groups'] > 1 else ''}"
            which += f" ({listed(part['names'])})" if part["names"] else ""
        elif "range" in part:
            which = " from {} to {}".format(*part["range"])
        parts.append(f"{part['series']:,} series{which} {verb}")
    if split["left_out"]:
        parts.append(f"{split['left_out']:,} of the same groups have no label and are not trained on")
    return f"{text}: {', '.join(parts)}"


def whole_groups(group: np.ndarray, classes: np.ndarray | None, share: float, draw: np.random.Generator) -> np.ndarray:
    """Draw the groups to hold out: together nearest to the share of all series; one group and every class remain.

    Args:
        group: [S] the group's number of each series, from 0; not all numbers need occur.
        classes: [S], or None.

    Raises:
        InputError: no group can be set aside without a class.
    """
    numbers, own = np.unique(group, return_inverse=True)
    kinds = np.zeros(len(group), np.int64) if classes is None else np.unique(classes, return_inverse=True)[1]
    table = np.zeros((len(numbers), kinds.max() + 1), np.int64)
    np.add.at(table, (own, kinds), 1)
    sizes, left, wanted, count = table.sum(1), table.sum(0), share * len(group), 0
    chosen: list[int] = []
    order = draw.permutation(len(numbers))
    # A second round, the smallest group first, where the share is smaller than half of each.
    for enough, candidates in ((False, order), (True, order[np.argsort(sizes[order], kind="stable")])):
        for g in candidates.tolist():
            fits = count + sizes[g] / 2 < wanted or (enough and not chosen)
            if g not in chosen and fits and (left > table[g]).all() and len(chosen) < len(numbers) - 1:
                chosen.append(g)
                left, count = left - table[g], count + sizes[g]
        if chosen:
            return np.sort(numbers[chosen])
    raise InputError(
        "no whole group can be held out: each is all there is of a class. Split by another column, or leave that class "
        "out."
    )


def latest(number: np.ndarray, share: float) -> int:
    """Return the smallest number to hold out: with all larger ones it is nearest to the share of all series. Equal
    numbers stay together, and the smallest of all is never held out."""
    different, counts = np.unique(number, return_counts=True)
    held = np.cumsum(counts[::-1])[::-1]  # series with this number or a larger one
    return int(different[1 + int(np.abs(held[1:] - share * len(number)).argmin())])


def split_off(rows: np.ndarray, classes: np.ndarray | None, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (rest, part): a random share of the rows, with every class in both if it can be, and always in `rest`,
    as a class without training series could only be missed. `classes` [S] are those of all series, or None.

    Raises:
        InputError: too few for two parts.
    """
    from sklearn.model_selection import train_test_split

    by, stratify = None if classes is None else np.unique(classes, return_inverse=True)[1][rows], None
    if by is not None:
        counts = np.bincount(by)
        # A class of one series cannot be split in proportion; it is drawn like one of the largest class.
        stratify = np.where(counts[by] < 2, counts.argmax(), by)
        smaller = int(min(share, 1 - share) * len(rows))
        stratify = None if len(np.unique(stratify)) > smaller else stratify
    order = np.arange(len(rows))
    try:
        rest, part = train_test_split(order, test_size=share, random_state=seed % 2**32, stratify=stratify)
    except ValueError:
        raise InputError(f"a share of {share} of {len(rows)} series leaves too few to train on; keep less.") from None
    rest, part = np.asarray(rest), np.asarray(part)
    if by is not None:
        lost = part[~np.isin(by[part], by[rest])]
        moved = lost[np.unique(by[lost], return_index=True)[1]]
        rest, part = np.concatenate([rest, moved]), np.setdiff1d(part, moved)
    return rows[np.sort(rest)], rows[np.sort(part)]


def make_split(series: int, classes: np.ndarray | None, holdout: float, seed: int, validation: float = 0.15) -> Split:
    """Draw random parts, with every class in each as far as it goes, and in `train` always.

    With fewer than ten series all are trained on.
    """
    everything, none = np.arange(series), np.zeros(0, np.int64)
    if not 0 <= holdout < 1:
        raise InputError(f"holdout is {holdout}; wanted at least 0 and less than 1, the share of series to score.")
    if series < MIN_SERIES_FOR_HOLDOUT:
        return Split(everything, none, none)
    rest, test = (everything, none) if holdout == 0 else split_off(everything, classes, holdout, seed)
    if validation == 0:
        return Split(rest, none, test)
    train, chooses = split_off(rest, classes, validation, seed)
    return Split(train, chooses, test)
