"""Parts of a data set: random ones, or those that a column decides, by whole groups, by time, or in words."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rotarymae.errors import InputError, listed
from rotarymae.series import plain
from rotarymae.targets import has_label

TRAIN, VALIDATION, TEST = range(3)
PART_WORDS = {"train": TRAIN, "training": TRAIN, "validation": VALIDATION, "valid": VALIDATION, "val": VALIDATION}
PART_WORDS |= {"test": TEST, "testing": TEST}
PARTS = ("train", "validation", "test")
MIN_SERIES_FOR_HOLDOUT = 10
SPLIT_METHODS = {"column": "as it says", "groups": "whole groups held out", "latest": "the latest held out"}


@dataclass(frozen=True)
class Split:
    """Indices of the series of each part, int [k] for k series, ascending.

    Attributes:
        train: labelled series that are trained on.
        validation: labelled series that choose the best epoch.
        test: labelled series that are only scored.
        unlabelled: series without a label, which pre-training also uses.
        left_out: series without a label that belong to a held-out group or time, which are not used at all.
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    unlabelled: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    left_out: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def pretrain(self) -> np.ndarray:
        """Return the indices of the series used in pre-training, ascending: train and those without a label."""
        return np.sort(np.concatenate([self.train, self.unlabelled]))

    @property
    def labelled(self) -> np.ndarray:
        """Return the indices of the labelled series of all three parts, ascending."""
        return np.sort(np.concatenate([self.train, self.validation, self.test]))

    @property
    def scored(self) -> np.ndarray:
        """Return the indices of the series on which a run is scored, those of the part `scored_part`."""
        return getattr(self, self.scored_part)

    @property
    def scored_part(self) -> str:
        """Return the name of the part on which a run is scored: "test"; if it is empty, "validation"; else "train"."""
        return next((name for name in ("test", "validation") if len(getattr(self, name))), "train")


@dataclass(frozen=True, eq=False)
class SplitColumn:
    """A column with one value per series that decides how series are split.

    If all values are the words train, validation (valid, val) and test (also training, testing; in any case), they name
    the parts. Other words name groups, which stay together. Numbers or dates have an order, of which the latest are
    held out; equal ones stay together.

    Attributes:
        name: of the column.
        values: [S] words or booleans; or numbers, such as days. None or NaN where a series has none.
    """

    name: str
    values: np.ndarray

    def groups(self, rows: np.ndarray) -> np.ndarray:
        """Return a group number for each series, int [S]: series with equal values have the same number.

        Numbers ascend with the values. Each series without a value is a group by itself, with a number above all
        others.

        Args:
            rows: indices of series that must have a value.

        Raises:
            InputError: a series in `rows` without a value.
        """
        known = self._known
        if not known[rows].all():
            lost = rows[~known[rows]]
            raise InputError(
                f"{len(lost):,} series have no value in the column {self.name!r}, by which they are to be split "
                f"(series {listed(lost)}, counted from 0); fill it in."
            )
        different, numbers = np.unique(self.values[known].astype(float if self.ordered else str), return_inverse=True)
        group = np.arange(len(known)) + len(different)
        group[known] = numbers
        return group

    @cached_property
    def _known(self) -> np.ndarray:
        """Return a mask [S], True for series that have a value in the column."""
        return has_label(self.values)

    @cached_property
    def ordered(self) -> bool:
        """Return whether the values can be ordered: all that are not missing are numbers, and none is a boolean."""
        there = self.values[self._known].tolist()
        return all(isinstance(value, int | float) and not isinstance(value, bool) for value in there)

    def named_parts(self) -> np.ndarray | None:
        """Return the part of each series, int [S], if all values are names of parts, such as "train"; else None.

        The parts are TRAIN (0), VALIDATION (1) and TEST (2); series without a value are TRAIN. Raises InputError if
        some words name train or test, and others name no part.
        """
        there = self.values[self._known].tolist()
        words = {value.strip().lower() for value in there if isinstance(value, str)}
        others = sorted(words - set(PART_WORDS))
        if others and {PART_WORDS.get(word) for word in words} & {TRAIN, TEST}:
            raise InputError(
                f"the column {self.name!r} has {listed(sorted(words & set(PART_WORDS)))} and also {listed(others)}; a "
                "column that names the parts of the split may have train, validation and test only. Correct the "
                "others, or leave these series out."
            )
        if not words or others or not all(isinstance(value, str) for value in there):
            return None
        part_of = np.full(len(self.values), TRAIN)
        part_of[self._known] = [PART_WORDS[value.strip().lower()] for value in there]
        return part_of


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold of a cross-validation: its series are scored, the others are for training and validation.

    The folds of one seed are disjoint, and each labelled series is in one of them. Classes keep their proportions, and
    series with equal values in the column stay together.

    Attributes:
        number: of this fold, from 1 to `folds`.
        folds: number of folds.
        column: its values are the groups of series; None without groups.

    Raises:
        InputError: a column whose words name the parts, such as train and test.
    """

    number: int
    folds: int
    column: SplitColumn | None = None

    def __post_init__(self) -> None:
        """Raise InputError if `column` assigns series to parts, such as "train"; a cross-validation draws its parts."""
        if self.column is not None and self.column.named_parts() is not None:
            raise InputError(
                f"the column {self.column.name!r} names the parts of the split (such as train), but a cross-validation "
                "draws folds; leave out one of the two, folds or split_by."
            )

    @property
    def name(self) -> str:
        """Return a text that names the split in the settings of a run, such as "fold 2 of 5 by patient"."""
        return f"fold {self.number} of {self.folds}" + ("" if self.column is None else f" by {self.column.name}")

    @property
    def values(self) -> np.ndarray:
        """Return the values, [S], of the column by which series are grouped; an empty array if there is no column."""
        return np.zeros(0) if self.column is None else self.column.values


def make_split(
    series: int,
    rows: np.ndarray,
    classes: np.ndarray | None,
    holdout: float,
    validation: float,
    seed: int,
    by: SplitColumn | Fold | None = None,
) -> tuple[Split, dict[str, Any]]:
    """Split a data set into parts for training, for choosing the best epoch (validation), and for scoring (test).

    Labelled series are divided among the three parts: first the test part is taken, then the validation part from the
    others. Every class is in the training part. Random draws keep the proportions of classes, as far as whole series
    and groups allow. A column may name the parts ("train", "test"), name groups that stay together, or have numbers or
    dates, of which the latest are held out (`SplitColumn`). With a fold, series of equal value just stay together.

    A series without a label is in no part, and used for pre-training. But if the column puts it into the test or
    validation part (by its word, its group, or a time as late as theirs), it is not used at all.

    A test or validation part that no column names and no fold sets stays empty in these cases: its share is 0; fewer
    than two series are left; `by` is None and fewer than ten series have labels; or each series drawn for it is the
    last of its class in training, and so stays there. A training part that would be empty or lack a class is an error.

    Args:
        series: number of series S.
        rows: indices of the labelled series.
        classes: their classes, in the order of `rows`; None without classes.
        holdout: share of the labelled series to score; not read with a fold, or if the column names test series.
        validation: share of the other labelled series, to choose the best epoch; not read if the column names them.
        seed: for random draws.
        by: a column or fold that decides the parts. None draws them at random.

    Returns:
        The parts, and a dictionary for metrics.json on how they were made: "by", the name of the column, or None;
        "method", which is "random", "fold", "column" (it names the parts), "groups" (of equal value in the column) or
        "latest" (the largest numbers or latest dates are held out); "drawn", the list of parts that were drawn series
        by series: ["test", "validation"] if all is random, ["validation"] if a column names only train and test;
        "left_out", the number of series in `Split.left_out`; "parts", {part: number of labelled series}; and with a
        fold its number "fold" and the number of "folds".

    Raises:
        InputError: a share below 0 or not below 1; no series left for training, or none of a class; a labelled series
            without a value in the column; a column with a single value, or with other words next to train or test;
            fewer than two folds, or more than series or groups.
    """
    column = by.column if isinstance(by, Fold) else by
    group = None if column is None else column.groups(rows)
    part_of, method, done = np.full(series, TRAIN), "random", set[int]()
    how: dict[str, Any] = {"by": None if column is None else column.name}
    if isinstance(by, Fold):
        method, done = "fold", {TEST}
        how |= {"fold": by.number, "folds": by.folds}
        of_rows = None if group is None else group[rows]
        held = rows[fold_of(len(rows), classes, of_rows, by.folds, seed) == by.number - 1]
        part_of[held if group is None else np.isin(group, group[held])] = TEST
    elif column is not None and group is not None:
        named, method = column.named_parts(), "latest" if column.ordered else "groups"
        if named is not None:
            method, part_of, group, done = "column", named, None, set(named[rows].tolist())
        elif len(np.unique(group[rows])) < 2:
            raise InputError(
                f"every series has the value {plain(column.values[rows[0]])!r} in the column {column.name!r}; a split "
                "needs two different values. Name another column."
            )
    drawn, few = [], method == "random" and len(rows) < MIN_SERIES_FOR_HOLDOUT
    for part, name, share in ((TEST, "holdout", holdout), (VALIDATION, "validation_fraction", validation)):
        if part in done:
            continue
        if not 0 <= share < 1:
            raise InputError(f"{name} is {share}; wanted at least 0 and less than 1, a share of the series.")
        left = np.flatnonzero(part_of[rows] == TRAIN)
        if few or share == 0 or len(left) < 2:
            continue
        if group is None or len(np.unique(group[rows[left]])) < 2:  # series are drawn one by one
            part_of[rows[split_off(left, classes, share, seed)[1]]] = part
            drawn.append(PARTS[part])
            continue
        groups = group[rows[left]]
        if isinstance(by, SplitColumn) and by.ordered:  # of series without a label, also those that are later still
            held = by._known & (group >= latest(groups, share))
        else:
            held = np.isin(group, groups[some_groups(groups, None if classes is None else classes[left], share, seed)])
        part_of[held & (part_of == TRAIN)] = part
    words = {"random": "at random", "fold": getattr(by, "name", "")}.get(method, f"by the column {how['by']!r}")
    split = _parts(part_of, rows, classes, words)
    how |= {"method": method, "drawn": drawn, "left_out": len(split.left_out)}
    return split, how | {"parts": {name: len(getattr(split, name)) for name in PARTS}}


def split_words(split: dict[str, Any]) -> str:
    """Return in words how series were split, for a report, such as "at random" or "fold 2 of 5 is held out".

    Args:
        split: the dictionary that `make_split` returns; or for a whole cross-validation {"method": "folds", "folds":
            number, "by": column or None}.
    """
    by = "" if split["by"] is None else f", with series of the same {split['by']!r} in one fold"
    if split["method"] == "fold":
        return f"fold {split['fold']} of {split['folds']} is held out{by}"
    if split["method"] == "folds":
        return f"{split['folds']} folds{by}"
    if split["by"] is None:
        return "at random"
    text = f"split by {split['by']!r}, {SPLIT_METHODS[split['method']]}"
    text += f", {' and '.join(split['drawn'])} series drawn from those of train" if split["drawn"] else ""
    verbs = zip(PARTS, ("are trained on", "choose the best epoch", "are held out"), strict=True)
    parts = [f"{split['parts'][name]:,} series {verb}" for name, verb in verbs if split["parts"][name]]
    if split["left_out"]:
        parts.append(f"{split['left_out']:,} that go with these have no label and are not trained on")
    return f"{text}: {', '.join(parts)}"


def fold_of(series: int, classes: np.ndarray | None, groups: np.ndarray | None, folds: int, seed: int) -> np.ndarray:
    """Assign each series to a fold of a cross-validation: return int [S], from 0 to folds - 1.

    Classes keep their proportions in each fold, and series of one group are in the same fold.

    Args:
        series: number of series S.
        classes: [S], the class of each series; None without classes. Proportions are not kept if every class has fewer
            series than `folds`.
        groups: [S], the group of each series; None without groups.
        folds: number of folds.
        seed: for the random assignment.

    Raises:
        InputError: fewer than two folds, or more folds than series or groups.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    count, noun = (series, "series") if groups is None else (len(np.unique(groups)), "groups")
    if not 2 <= folds <= count:
        raise InputError(
            f"folds is {folds}; wanted at least 2, and at most one for each of the {count:,} {noun} to divide."
        )
    kinds = np.zeros(series, np.int64) if classes is None else np.unique(classes, return_inverse=True)[1]
    if np.bincount(kinds).max() < folds:  # no class can be in each: there is nothing to stratify
        kinds = np.zeros(series, np.int64)
    splitter = (StratifiedKFold if groups is None else StratifiedGroupKFold)(
        folds, shuffle=True, random_state=seed % 2**32
    )
    number = np.zeros(series, np.int64)
    with warnings.catch_warnings():  # of a class with fewer series than folds: `_parts` says what matters of it
        warnings.simplefilter("ignore", UserWarning)
        for fold, (_, held) in enumerate(splitter.split(kinds, kinds, groups)):
            number[held] = fold
    return number


def some_groups(groups: np.ndarray, classes: np.ndarray | None, share: float, seed: int) -> np.ndarray:
    """Choose whole groups of series to hold out, about a given share of the series, so that training keeps every class.

    The groups are divided at random into folds. One fold is held out, or if `share` is above 0.5, all folds but one.
    Of the choices that leave every class to training, the one with a share nearest to `share` is taken.

    Args:
        groups: [S] the group of each series, at least two different ones.
        classes: [S] the class of each series, or None without classes.
        share: of the series, more than 0 and less than 1.
        seed: for the random assignment.

    Returns:
        A mask, bool [S], True for series to hold out.

    Raises:
        InputError: every choice would leave training without some class.
    """
    folds = min(max(2, round(1 / min(share, 1 - share))), len(np.unique(groups)))
    number = fold_of(len(groups), classes, groups, folds, seed)
    several = [(number == fold) == (share <= 0.5) for fold in range(folds)]
    for held in sorted(several, key=lambda held: abs(held.mean() - share)):
        whole = held.all() or not held.any()
        if not whole and (classes is None or np.isin(classes, classes[~held]).all()):
            return held
    raise InputError(
        f"to hold out about {share:.0%} of the series in whole groups, {folds} choices were tried; each would leave "
        "training without some class. Hold out another share, split by another column, or leave out rare classes."
    )


def _parts(part_of: np.ndarray, rows: np.ndarray, classes: np.ndarray | None, by: str) -> Split:
    """Return the `Split` that has each series in its part, after checking that there is something to train on.

    Args:
        part_of: int [S], the part of each series: TRAIN (0), VALIDATION (1) or TEST (2).
        rows: indices of the labelled series.
        classes: their classes, in the order of `rows`; None without classes.
        by: how the parts were made, such as "at random", for messages.

    Raises:
        InputError: no labelled series is in TRAIN, or none of some class.
    """
    if classes is not None:
        trained = part_of[rows] == TRAIN
        lost = np.setdiff1d(classes[~trained], classes[trained])
        if len(lost):
            raise InputError(
                f"every series of the class {listed(lost)} is held out (split {by}), so that it could not be learnt. "
                "Hold out less (holdout), split by another column, or leave this class out."
            )
    labelled = np.isin(np.arange(len(part_of)), rows)
    train, choosing, test = (np.flatnonzero(labelled & (part_of == part)) for part in (TRAIN, VALIDATION, TEST))
    if not len(train):
        raise InputError(f"no series is left to train on (split {by}); hold out less, or split by another column.")
    unlabelled, left_out = (np.flatnonzero(~labelled & one) for one in (part_of == TRAIN, part_of != TRAIN))
    return Split(train, choosing, test, unlabelled, left_out)


def latest(number: np.ndarray, share: float) -> int:
    """Return the number (such as a day) from which on series are held out, so that about the share `share` of them is.

    It is one of `number`, but never the smallest. Series with this number or a larger one are to be held out; of all
    choices, their share is nearest to `share`.

    Args:
        number: int [S], one per series, at least two different ones; series with equal numbers stay together.
        share: 0 to 1.
    """
    different, counts = np.unique(number, return_counts=True)
    held = np.cumsum(counts[::-1])[::-1]  # series with this number or a larger one
    return int(different[1 + int(np.abs(held[1:] - share * len(number)).argmin())])


def split_off(rows: np.ndarray, classes: np.ndarray | None, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a random share of series; return (rest, part), the indices of those not drawn and of those drawn.

    The draw is stratified: each class has about the same frequency in both. Classes are ignored if there are more of
    them than series in the rest or in the part. If a class is then missing in the rest, one of its series moves there
    from the part, because a class without training series cannot be learnt. With few series the part may become empty.

    Args:
        rows: indices of the series to draw from. Both results have them in this order.
        classes: of all series [S]; None without classes.
        share: to be drawn, more than 0 and less than 1.
        seed: for the draw.

    Raises:
        InputError: too few series for the rest and the part to have one each.
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
        raise InputError(
            f"a share of {share} of {len(rows)} series cannot be held out, because each part needs a series; "
            "hold out another share, or give more series."
        ) from None
    rest, part = np.asarray(rest), np.asarray(part)
    if by is not None:
        lost = part[~np.isin(by[part], by[rest])]
        moved = lost[np.unique(by[lost], return_index=True)[1]]
        rest, part = np.concatenate([rest, moved]), np.setdiff1d(part, moved)
    return rows[np.sort(rest)], rows[np.sort(part)]
