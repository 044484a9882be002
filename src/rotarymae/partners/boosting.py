"""Boosted trees: fitted by LightGBM, kept as text that LightGBM reads, and that is checked before it does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from rotarymae.errors import InputError, ModelDirectoryError, listed
from rotarymae.partners.base import ANEW, AnyDataset, Floats, Partner, check, read_settings
from rotarymae.partners.features import features as compute_features
from rotarymae.partners.hazards import MAX_LOG_RISK, FollowUp, interval_probabilities
from rotarymae.partners.light_curves import find_sources
from rotarymae.preprocess import StaticColumn, static_features
from rotarymae.series import SeriesDataset, with_thinned

# The same trees on any number of threads. Rare classes have some 30 members: no early stopping, as it would split
# those; few of the features for each tree and a penalty, as more freedom diverged on one PLAsTiCC fold.
COMMON: dict[str, Any] = {
    "min_data_in_leaf": 10,
    "max_bin": 63,
    "lambda_l2": 1.0,
    "deterministic": True,
    "force_col_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}
# Two classes, or numbers: slowly and with equal weights, best on PhysioNet's deaths. More classes: as many trees for
# each, so fewer; and weighted, best on PLAsTiCC's 14 both alone and combined.
SLOW = {"learning_rate": 0.05, "num_iterations": 800, "num_leaves": 6, "feature_fraction": 0.05}
# Log-risks: fewer trees, as these sharpen what is a chance at best. 400 were worse by 0.01 of concordance on generated
# joint trajectories.
RISK = SLOW | {"num_iterations": 100}
QUICK = {"learning_rate": 0.07, "num_iterations": 160, "num_leaves": 15, "feature_fraction": 0.1}
# Few series of a class are learnt by heart: they are joined by copies that lack some observations, up to so many of
# each, and so many series and observations in all.
MOST_COPIES, WITH_COPIES, OBSERVATIONS = 8, 24_000, 10_000_000
MIN_FEATURES = 20  # of each tree, where there are so many
SEEDS = 3  # boosted trees are fitted so often, and their scores averaged
MAX_TEXT = 2**28  # bytes of a file of trees; 100 classes take some 2**24
TREE_KEYS = ("split_feature", "threshold", "decision_type", "left_child", "right_child")  # by inner node
KEYS = ("Tree", "num_leaves", "num_cat", *TREE_KEYS, "leaf_value", "shrinkage")
DECISIONS = (0, 2, 4, 6, 8, 10)  # numbers only: where missing values go (2), and which are missing (4, 8)


def fit_trees(
    features: Floats,
    target: NDArray[Any],
    classes: int,
    settings: dict[str, Any],
    seed: int,
    follow_up: FollowUp | None = None,
    weight: Floats | None = None,
) -> str:
    """Train boosted trees with LightGBM; return them as text in LightGBM's format, without statistics of training.

    It is the short form that `check_trees` accepts.

    Args:
        features: [S, F] of S series, NaN where one is missing.
        target: [S] class numbers from 0; for a regression standardised values, because LightGBM keeps them in single
            precision; for survival the number of events of each series, 0 or 1.
        classes: number of classes; 0 for a regression or survival.
        settings: LightGBM parameters, which override those in `COMMON`. "feature_fraction", the share of features that
            a tree reads, is required; it is raised so that a tree reads at least 20 features, or all if there are
            fewer. "balanced": True gives all classes the same total weight.
        follow_up: for survival, when each series was at risk and had its event; the trees then predict log-risks. None
            for other tasks.
        weight: [S] how much each series counts; None means equally. Not read for survival.

    Raises:
        InputError: fewer than 20 series with `follow_up`; a class without a series; a single class; LightGBM failed.
    """
    import lightgbm

    objective: dict[str, Any] = {"objective": "regression"}
    if classes:
        counts = np.bincount(target, weight, minlength=classes)
        if classes < 2 or not counts.all():
            raise InputError(
                "the series to train on are all of one class, or lack a class; gradient boosting needs at least two "
                "classes, and a series of each. Add labelled series."
            )
        objective = {"objective": "multiclass", "num_class": classes} if classes > 2 else {"objective": "binary"}
        if settings.get("balanced"):
            weight = (counts.sum() / (classes * counts))[target] * (1.0 if weight is None else weight)
    if follow_up is not None:
        least = 2 * COMMON["min_data_in_leaf"]
        if len(features) < least:  # without any split LightGBM fails for a loss of one's own
            raise InputError(f"gradient boosting of survival needs {least} series, and has {len(features)}; add some.")

        def gradients(log_risk: Floats, _: Any) -> tuple[Floats, Floats]:
            """Return first and second derivatives [S] of `FollowUp.nats`, Cox's likelihood, by log-risks [S].

            Log-risks are limited to ±`MAX_LOG_RISK`. The second derivative is approximated by the expected number of
            events, as in a Poisson likelihood. LightGBM passes a second argument, which is not read.
            """
            expected = follow_up.expected(np.clip(log_risk, -MAX_LOG_RISK, MAX_LOG_RISK))
            return expected - target, expected

        objective = {"objective": gradients}
    options = {name: value for name, value in settings.items() if name != "balanced"}
    share = max(settings["feature_fraction"], min(1.0, MIN_FEATURES / features.shape[1]))
    parameters = COMMON | options | {"seed": seed % 2**31, "feature_fraction": share}
    try:
        data = lightgbm.Dataset(features, target, weight=weight, params=parameters)
        text = lightgbm.train(parameters | objective, data).model_to_string(num_iteration=-1)
    except lightgbm.basic.LightGBMError as error:
        raise InputError(f"LightGBM could not be trained: {error}. Use predictor='model' to do without it.") from None
    return _canonical(text, features.shape[1], classes)


def _canonical(text: str, features: int, classes: int) -> str:
    """Rewrite a LightGBM model, given as text, in the short form in which this package saves it; return that text.

    The short form keeps the trees, and leaves out statistics of training and names of features. `check_trees` accepts
    no other. Raises ValueError for a text without the line "end of trees".

    Args:
        text: the model, as LightGBM writes it.
        features: number of features.
        classes: number of classes; 0 for a regression or survival.
    """
    trees = text[: text.index("end of trees")].split("\nTree=")[1:]
    blocks = [
        "\n".join(line for line in f"Tree={tree}".split("\n") if line.partition("=")[0] in KEYS) + "\n\n\n"
        for tree in trees
    ]
    scores = classes if classes > 2 else 1
    objective = {0: "regression", 2: "binary sigmoid:1"}.get(classes, f"multiclass num_class:{classes}")
    names = " ".join(f"f{i}" for i in range(features))
    return (
        f"tree\nversion=v4\nnum_class={scores}\nnum_tree_per_iteration={scores}\nlabel_index=0\n"
        f"max_feature_idx={features - 1}\nobjective={objective}\nfeature_names={names}\n"
        f"feature_infos={' '.join(['none'] * features)}\ntree_sizes={' '.join(str(len(block)) for block in blocks)}\n\n"
        f"{''.join(blocks)}end of trees\n"
    )


def check_trees(text: str, features: int, classes: int) -> None:
    """Raise ValueError unless a text is a model in the form that `fit_trees` writes, which LightGBM can safely load.

    LightGBM trusts its input: a cycle in a tree makes prediction endless, an index out of range reads foreign memory.

    Args:
        text: trees in LightGBM's format, from a file that may be damaged or hostile.
        features: number of features.
        classes: number of classes; 0 for a regression or survival.
    """
    if text != _canonical(text, features, classes):
        raise ValueError("the header, a size or a field is another")
    trees = text.partition("tree_sizes=")[2].split("\n\n\n")[:-1]
    if not trees or len(trees) % (classes if classes > 2 else 1):
        raise ValueError("the number of trees does not fit the classes")
    for number, tree in enumerate(trees):
        lines = [line.partition("=") for line in tree[tree.index("Tree=") :].split("\n")]
        if tuple(key for key, _, _ in lines) != KEYS:
            raise ValueError(f"tree {number} has other fields")
        _check_tree({key: value.split() for key, _, value in lines}, number, features)


def _check_tree(tree: dict[str, list[str]], number: int, features: int) -> None:
    """Raise ValueError unless one tree of a LightGBM model has right counts, valid indices, finite leaves and no cycle.

    Args:
        tree: the lines of the tree in LightGBM's text, {field: its words}, such as {"threshold": ["0.5", "1.2"], ...}.
        number: index of the tree in the model; the field "Tree" must be this number.
        features: number of features; the indices in the field "split_feature" must be below it.
    """
    inner = len(tree["leaf_value"]) - 1
    counts = tree["Tree"] + tree["num_leaves"] + tree["num_cat"]
    if counts != [str(number), str(inner + 1), "0"] or any(len(tree[key]) != inner for key in TREE_KEYS):
        raise ValueError(f"tree {number} has other counts")
    thresholds, leaves, shrinkage = (np.array(tree[key], np.float64) for key in ("threshold", *KEYS[-2:]))
    # An infinite threshold parts the missing values from the others.
    if np.isnan(thresholds).any() or not np.isfinite(np.r_[leaves, shrinkage]).all() or len(shrinkage) != 1:
        raise ValueError(f"tree {number} holds NaN, or infinite values")
    whole = [tree[key] for key in TREE_KEYS if key != "threshold"]
    # Python would read 1_0 as 10, and LightGBM reads it as 1.
    if not all(re.fullmatch(r"(-?[0-9]{1,9} )*", " ".join([*words, ""])) for words in whole):
        raise ValueError(f"tree {number} has an index that is no whole number")
    splits, decisions, left, right = (np.array(words, np.int64) for words in whole)
    if ((splits < 0) | (splits >= features)).any() or not np.isin(decisions, DECISIONS).all():
        raise ValueError(f"tree {number} splits at what is no feature")
    # Each node but the first is below exactly one other, and that one comes before it. Leaf i is written as ~i.
    every, place = [*range(-inner - 1, 0), *range(1, inner)] if inner else [], np.arange(inner)
    behind = [(child < 0) | (child > place) for child in (left, right)]
    if not np.all(behind) or sorted([*left, *right]) != every:
        raise ValueError(f"tree {number} has a cycle, or a node without a parent")


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Boosted trees on features [S, F], in which NaN is a missing value.

    Attributes:
        classes: number of classes; 0 for a regression or survival.
        texts: LightGBM's text of each model: one per seed, or per output and seed.
        center, scale: [outputs] of a regression's targets; else empty.
        rates: [K] for survival, the hazard of each interval at a log-risk of 0; else empty.
    """

    classes: int
    texts: tuple[str, ...] = ()
    center: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()

    @classmethod
    def fit(cls, task: str, features: Floats, truth: NDArray[Any], seed: int, weight: Floats | None = None) -> Self:
        """Fit boosted trees: three models with different seeds (per output of a regression), to average their scores.

        Args:
            task: "classification", "regression" or "survival".
            features: [S, F] of S series, NaN where one is missing.
            truth: class numbers int [S] from 0, every class present; for a regression values [S, outputs], NaN where
                one is missing; for survival [S, K + 1] for K time intervals and the time after them, 1 where the
                series' event may have happened, else 0 (see `survival.EventTimes.encode`).
            seed: the same seed gives the same trees.
            weight: [S] how much each series counts in a classification; None means equally. Not read for other tasks.

        Raises:
            InputError: a single class, or one without a series; fewer than 20 series for survival; LightGBM failed.
        """
        seeds = [seed * SEEDS + i for i in range(SEEDS)]  # two values of `seed` share none
        if task == "survival":
            follow_up = FollowUp.of(truth)
            events = follow_up.events.sum(1)
            texts = [fit_trees(features, events, 0, RISK, one, follow_up) for one in seeds]
            trees = cls(0, tuple(texts))
            return replace(trees, rates=tuple(follow_up.rates(trees.log_risk(features)).tolist()))
        if task == "classification":
            classes = int(truth.max()) + 1
            settings = SLOW if classes == 2 else QUICK | {"balanced": True}
            texts = [fit_trees(features, truth, classes, settings, one, weight=weight) for one in seeds]
            return cls(classes, tuple(texts))
        texts, center, scale = [], np.nanmean(truth, 0), np.nanstd(truth, 0)
        scale = np.where(scale > 0, scale, 1.0)
        for one in seeds:
            for column in ((truth - center) / scale).T:
                known = np.isfinite(column)
                texts.append(fit_trees(features[known], column[known], 0, SLOW, one))
        return cls(0, tuple(texts), tuple(center.tolist()), tuple(scale.tolist()))

    def predict(self, features: Floats) -> Floats:
        """Return predictions for features [S, F] of S series, NaN where one is missing; S must not be 0.

        Returns:
            Classification: probabilities [S, classes]. Survival: probabilities [S, K + 1] of the event in each of K
                time intervals, and in the last column after all of them. Regression: values [S, outputs], in the units
                of the training targets.
        """
        if self.rates:
            return interval_probabilities(self.log_risk(features), np.array(self.rates))
        means = self._scores(features)
        if not self.classes:
            return np.stack(means, 1) * np.array(self.scale) + np.array(self.center)
        if self.classes == 2:  # one score, of the second class against the first
            second = expit(means[0])
            return np.stack([1 - second, second], 1)
        return softmax(means[0], axis=1)

    def log_risk(self, features: Floats) -> Floats:
        """Return the log-risk of the event for survival, [S], from the features [S, F] of S series.

        It is the mean over models with different seeds, limited to ±20. The hazard is proportional to exp(log-risk).
        """
        return np.clip(self._scores(features)[0], -MAX_LOG_RISK, MAX_LOG_RISK)

    def _scores(self, features: Floats) -> list[Floats]:
        """Return the raw scores of the trees for features [S, F]: sums of leaf values, averaged over seeds.

        It is a list of arrays. A regression has one array [S] per output. Other tasks have a single array: log-risks
        [S] for survival, logits [S] of the second class for two classes, logits [S, classes] for more.
        """
        scores = [booster.predict(features, raw_score=True, num_threads=1) for booster in self._boosters]
        outputs = len(scores) // SEEDS
        return [np.mean(scores[i::outputs], axis=0) for i in range(outputs)]

    @cached_property
    def _boosters(self) -> list[Any]:
        """The models as `lightgbm.Booster` objects, one for each text in the field `texts`, in their order."""
        import lightgbm

        return [lightgbm.Booster(model_str=text) for text in self.texts]

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for pickle, without LightGBM's objects, which are read from the texts again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class BoostedFeatures(Partner):
    """Gradient boosting on features of the observations and the static columns.

    Attributes:
        features: names of the features that are computed from observations, in the order of the trees' columns.
        static: the columns with one value per series, whose features follow those.
        trees: fitted to all of them.
    """

    features: tuple[str, ...]
    static: tuple[StaticColumn, ...]
    trees: BoostedTrees

    name: ClassVar[str] = "features"
    title: ClassVar[str] = "gradient boosting"
    suffix: ClassVar[str] = ".txt"

    @classmethod
    def suits(cls, task: str, dataset: AnyDataset) -> bool:
        """Return True: features can be computed of any data set, and trees fitted for any task."""
        return True

    @classmethod
    def rows(cls, task: str, dataset: AnyDataset) -> int:
        """Return how many rows the trees learn from: S series, and copies in which observations are left out.

        For a classification of series there are 8 copies of each, 9 S rows in all, but at most 24,000 rows and about 10
        million observations; the number is never below S. Other tasks, and pictures, videos and sounds, get no copies,
        so that the number is S. (The redshift of 3,043 light curves was predicted worse with copies: R² 0.61 instead of
        0.67.)

        Args:
            task: "classification", "regression" or "survival".
            dataset: the S training series, or arrays.
        """
        series = len(dataset)
        if task != "classification" or dataset.kind == "patches":
            return series
        room = OBSERVATIONS * series // int(dataset.lengths.sum())
        return max(series, min((MOST_COPIES + 1) * series, WITH_COPIES, room))

    @classmethod
    def note_for_user(cls, dataset: AnyDataset, static: Sequence[str]) -> str:
        """Return a sentence on how light curves (brightness over time in several filters) are read; "" for other data.

        It names the filters, and the columns of redshift and dust by which the curves are corrected. These columns are
        searched in `static`, the names of the columns with one value per series.
        """
        sources = None if dataset.kind == "patches" else find_sources(dataset, static)  # pyright: ignore
        return "" if sources is None else sources.note_for_user

    @classmethod
    def fit(
        cls,
        task: str,
        dataset: AnyDataset,
        truth: NDArray[Any],
        static: tuple[StaticColumn, ...],
        seed: int,
        rows: int | None = None,
    ) -> Self:
        """Compute features of the series, and of copies in which observations are left out, and fit trees to them.

        The copies of a series together have the same weight as the series.

        Args:
            task: "classification", "regression" or "survival".
            dataset: S series, or S arrays of pictures, videos or sounds.
            truth: class numbers int [S] from 0, every class present; for a regression values [S, outputs], NaN where
                one is missing; for survival [S, K + 1] for K time intervals and the time after them, 1 where the
                series' event may have happened, else 0; in the interval of a censoring, the share of it that was still
                to come (see `survival.EventTimes.encode`).
            static: columns of `dataset` with one value per series, which become features.
            seed: fixes trees and copies; the same seed gives the same trees.
            rows: number of series and copies together, S for no copies; more than S only for a classification of
                series. None means as many as the method `rows` returns.

        Raises:
            InputError: a single class, or one without a series; fewer than 20 series for survival; static columns that
                the data set lacks; LightGBM failed.
        """
        copies = (cls.rows(task, dataset) if rows is None else rows) - len(dataset)
        if copies <= 0:
            features, names = series_features(dataset, static)
            return cls(names, static, BoostedTrees.fit(task, features, truth, seed))
        every, series = _with_copies(dataset, copies, seed)  # pyright: ignore
        features, names = series_features(every, static)
        weight = 1 / np.maximum(np.bincount(series) - 1, 1)[series]
        weight[: len(dataset)] = 1
        return cls(names, static, BoostedTrees.fit(task, features, truth[series], seed, weight))

    def predict(self, dataset: AnyDataset) -> Floats:
        """Predict the target of each of the S series of `dataset`, at least one; return the predictions [S, K].

        They are probabilities of K classes; or the K outputs of a regression, in the units of the targets; or for
        survival, probabilities of K - 1 time intervals and of the time after them. Raises InputError for other
        channels, value columns or static columns than in training.
        """
        return self.trees.predict(series_features(dataset, self.static, self.features)[0])

    def save(self, path: Path) -> dict[str, Any]:
        """Write the trees to the text file `path`; return the other fields, as JSON can hold them, for `load`."""
        path.write_text("".join(self.trees.texts), encoding="ascii", newline="")
        return asdict(replace(self, trees=replace(self.trees, texts=())))

    @classmethod
    def load(cls, path: Path, task: str, settings: dict[str, Any]) -> Self:
        """Read the fitted method from the text file `path` that `save` wrote, and the `settings` that it returned.

        Raises:
            ModelDirectoryError: a file or settings that `save` would not have written for the task.
        """
        read = read_settings(cls, settings, path)
        trees = read.trees
        check(trees.classes >= 2 if task == "classification" else trees.classes == 0, path, "classes")
        for name, of_task in (("center", "regression"), ("scale", "regression"), ("rates", "survival")):
            check(bool(getattr(trees, name)) == (task == of_task), path, name)
        check(min(trees.rates, default=0) >= 0, path, "rates")
        check(len(trees.center) == len(trees.scale) and min(trees.scale, default=1) > 0, path, "scale")
        try:
            if path.stat().st_size > MAX_TEXT:
                raise ValueError(f"it is larger than {MAX_TEXT:,} bytes")
            text, end = path.read_bytes().decode("ascii"), "end of trees\n"
            texts = tuple(one + end for one in text.split(end))
            if texts[-1] != end or len(texts) - 1 != SEEDS * (len(trees.center) or 1):
                raise ValueError(f"it does not hold the trees of each output from {SEEDS} seeds")
            width = len(read.features) + sum(column.width for column in read.static)
            for one in texts[:-1]:
                check_trees(one, width, trees.classes)
        except (ValueError, OSError) as error:
            raise ModelDirectoryError(f"{path} holds no trees that this version writes: {error}. {ANEW}") from None
        return replace(read, trees=replace(trees, texts=texts[:-1]))


def _with_copies(dataset: SeriesDataset, copies: int, seed: int) -> tuple[SeriesDataset, NDArray[np.int64]]:
    """Return S series followed by copies in which observations are left out; and which series each is made from.

    The second result is int [S + copies], numbers 0 .. S - 1: for a series its own number, for a copy that of its
    series. A copy keeps the first observation, and others at random. If the copies cannot be shared evenly, some
    series, drawn at random, get one more than the others.

    Args:
        dataset: the S series.
        copies: number of all copies together.
        seed: fixes what is drawn.
    """
    whole, more = divmod(copies, len(dataset))
    first = (whole + 1) * len(dataset)
    drawn = np.random.default_rng(seed).permutation(len(dataset))[:more]
    rows = np.concatenate([np.arange(first), first + np.sort(drawn)])
    return with_thinned(dataset, whole + (more > 0), seed).select(rows), rows % len(dataset)


def series_features(
    dataset: AnyDataset, static: tuple[StaticColumn, ...], known: tuple[str, ...] | None = None
) -> tuple[Floats, tuple[str, ...]]:
    """Compute features [S, F] of S series for boosted trees; return them, and the names of the first columns.

    The first columns summarise the observations. Those of static columns follow, and have no names here.

    Args:
        dataset: the S series or arrays, with the values of the static columns.
        static: columns with one value per series, fitted in training, which become features, too; () for none.
        known: the names that this function returned in training, to check that the features are the same; None in
            training.

    Raises:
        InputError: names that differ from `known`, also in their order; static columns that the data set lacks, or text
            in one that held numbers.
    """
    observed, names = compute_features(dataset, [column.name for column in static])
    if known is not None and names != known:
        lacking = [name for name in known if name not in set(names)]
        others = [name for name in names if name not in set(known)]
        differ = [
            *([f"lacking {listed(lacking, 3)}"] if lacking else []),
            *([f"unknown {listed(others, 3)}"] if others else []),
        ]
        raise InputError(
            f"the series have {len(names)} features; wanted the {len(known)} of training, in their order "
            f"({', '.join(differ) or 'the order is another'}). Give the same channels and value columns as in training."
        )
    if not static:
        return observed, names
    return np.concatenate([observed, static_features(static, dataset)], 1), names  # pyright: ignore
