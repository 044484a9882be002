"""Times to an event, of which some are censored: as targets of a model, and how predictions of them are scored.

Times are [S] durations, and events [S] whether each ended in the event (True) or was censored (False): it was then
followed no longer, and the event is later or never.
"""

from __future__ import annotations

import itertools
import warnings
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.losses import event_time
from rotarymae.series import as_text
from rotarymae.targets import (
    MIN_SERIES_TO_JUDGE,
    Target,
    has_label,
    numbers_of,
    one_per_series,
    refuse_class_options,
)
from rotarymae.training import Objective, Supervised

if TYPE_CHECKING:
    from rotarymae.training.fit_config import FitConfig

EVENT_TIME = np.dtype([("event", np.bool_), ("time", np.float64)])  # as scikit-survival's `Surv`; NaN is no label
STATUS_WORDS = {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}
MAX_INTERVALS, EVENTS_PER_INTERVAL = 20, 10  # of times to an event
SAME_ORDER = 0.9  # rank correlation of the lengths of series with durations, beyond which they say the same
_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EventTimes(Target):
    """The intervals of time into which an event may fall, used as classes; the last class is "after all intervals".

    What is known about a series is a weight for each class in its likelihood. If the event was observed, the weight is
    1 for the interval of the event. If the series was censored (followed no longer, before an event), the weight is 1
    for each later class, and for the interval of censoring the share that was left of it. Others are 0. This is the
    likelihood of a density that is constant in each interval, whose survival curve is linear between edges (Kvamme &
    Borgan 2021, doi:10.1007/s10985-021-09532-6).

    Attributes:
        edges: of the intervals, one more than these, ascending from 0: quantiles of the observed training events.
    """

    task: ClassVar[str] = "survival"
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise InputError unless the intervals have at least two edges, ascending from 0, all finite."""
        edges = np.array(self.edges, np.float64)
        if len(edges) < 2 or edges[0] != 0 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise InputError(f"the edges of intervals are {self.edges}; wanted at least two, ascending from 0.")

    @staticmethod
    def check(targets: Any, series: int) -> np.ndarray:
        """Check events and durations; return them as a structured array [series] with the fields "event" and "time".

        A series without a duration or a status is not refused: it gets the time NaN and the event False.

        Args:
            targets: structured array [series] with two fields of any name: first whether the event was observed, then
                the duration until the event or the end of the observation.
            series: number of series.

        Raises:
            InputError: another number of targets or another form; a negative or infinite duration; an event that is
                neither true nor false; no event at all, or none after the time 0.
        """
        checked = _event_times(one_per_series(targets, series))
        if not checked["event"].any():
            raise InputError(
                "the event happened in no series, so there is nothing to learn; check the column of events (1 or true "
                "where it happened)."
            )
        if not (checked["time"][checked["event"]] > 0).any():
            raise InputError(
                "every event happened at the time 0, so there is no time to an event to learn; check the durations."
            )
        return checked

    @staticmethod
    def check_config(config: FitConfig, targets: np.ndarray) -> None:
        """Raise InputError if an option of classification is set, or a `loss` other than "auto"; ignore `targets`."""
        refuse_class_options(config, "a time to an event")
        choose("loss", config.loss, ("auto",))

    @staticmethod
    def check_spans(targets: np.ndarray, spans: np.ndarray) -> None:
        """Warn (InputWarning) if series seem to be observed until the event, so that their length reveals the duration.

        They seem so if durations and spans have nearly the same order (rank correlation above 0.9). There is no warning
        for fewer than ten series, or if all durations or all spans are equal.

        Args:
            targets: structured array [S] of events and durations.
            spans: float [S], time from the first to the last observation of each series.
        """
        from scipy.stats import spearmanr  # which takes long to import

        time = _event_times(targets)["time"]
        if len(time) < MIN_SERIES_TO_JUDGE or np.ptp(spans) == 0 or np.ptp(time) == 0:
            return
        alike = float(spearmanr(spans, time).statistic)  # pyright: ignore
        if alike > SAME_ORDER:
            warnings.warn(
                f"the longer a series was observed, the longer its duration (rank correlation {alike:.2f}): if series "
                "are observed until the event, the last observation reveals when it was. Keep only observations before "
                "some time (--until), and durations from then on.",
                InputWarning,
                stacklevel=3,
            )

    @staticmethod
    def strata(targets: np.ndarray) -> np.ndarray:
        """Return the field "event" of `targets`, bool [S]: whether each series had it; a split keeps the proportion."""
        return targets["event"]

    @classmethod
    def fit(cls, targets: np.ndarray) -> Self:
        """Choose the intervals from training targets, so that all have about the same number of observed events.

        There is an interval for every ten events, but at least 1 and at most 20; fewer if many events are at one time.
        The last interval ends at the last event.

        Args:
            targets: structured array [S] of events and durations, with at least one event after the time 0 (see
                `check`).
        """
        known = _event_times(targets)
        times = known["time"][known["event"]]
        count = min(max(len(times) // EVENTS_PER_INTERVAL, 1), MAX_INTERVALS)
        edges = np.unique(np.quantile(times, np.arange(1, count + 1) / count))
        return cls((0.0, *edges[edges > 0].tolist()))

    @property
    def outputs(self) -> int:
        """Number of classes: one for each interval, and one for "after all intervals"."""
        return len(self.edges)

    def encode(self, targets: np.ndarray) -> np.ndarray:
        """Convert events and durations to what the network learns: weights of the classes (intervals), [S, classes].

        If the event was observed, the weight is 1 for the interval of the duration; an interval includes its upper
        edge. If the series was censored, it is 1 for all later classes, and for the interval of the censoring it is the
        share of this interval that was still to come. All other weights are 0. They are float32.

        Args:
            targets: structured array [S] of events and durations, none of which is NaN.
        """
        known = _event_times(targets)
        edges, time = np.array(self.edges), known["time"][:, None]
        left = np.clip((edges[1:] - time) / np.diff(edges), 0, 1)
        censored = np.concatenate([left, np.ones_like(time)], 1)
        number = np.maximum(np.searchsorted(edges, time, side="left") - 1, 0)
        observed = number == np.arange(len(edges))
        return np.where(known["event"][:, None], observed, censored).astype(np.float32)

    def truth(self, targets: np.ndarray) -> np.ndarray:
        """Return the targets of S series as a new structured array [S] with the fields "event" (observed?) and "time".

        `targets` is a structured array [S] with two fields of any name: first the event, then the duration.
        """
        return _event_times(targets)

    def for_partners(self, truth: np.ndarray) -> np.ndarray:
        """Return what boosted trees and other such methods learn: the weights of time intervals, [S, classes].

        A weight says whether the event fell, or may have fallen, in the interval, see `encode`. `truth` are the events
        and durations of the S series.
        """
        return self.encode(truth)

    def objective(self, model: Any, encoded: np.ndarray, config: FitConfig) -> Objective:
        """Return a module that holds the model and computes its loss: the likelihood of events and of censorings.

        Args:
            model: the classifier to train.
            encoded, config: not used; other kinds of labels need them.
        """
        return Supervised(model, event_time, tempered=True)

    def survival(self, probabilities: np.ndarray, times: Any) -> np.ndarray:
        """Return the probability that the event comes after each of T times, float64 [S, T].

        Between the edges of intervals it is linear in time.

        Args:
            probabilities: of the classes (intervals of time), [S, classes].
            times: [T], not negative; after the last edge the probability stays constant.
        """
        curve = np.concatenate([np.ones((len(probabilities), 1)), 1 - probabilities[:, :-1].cumsum(1)], 1)
        place = np.interp(np.asarray(times, np.float64), self.edges, np.arange(len(self.edges)))
        low = np.minimum(place.astype(np.int64), len(self.edges) - 2)
        return curve[:, low] + (place - low) * (curve[:, low + 1] - curve[:, low])

    def convert(self, decoded: np.ndarray, source: Any) -> np.ndarray:
        """Convert probabilities of another model's intervals to probabilities of these intervals, [S, classes].

        The other model's probability that the event comes later is computed at the edges of these intervals, as
        `survival` does: linear between that model's edges, and constant after its last one.

        Args:
            decoded: [S, K], probabilities of the other model's K classes.
            source: the fitted `EventTimes` of the other model.
        """
        curve = source.survival(decoded, self.edges)
        return np.concatenate([-np.diff(curve, axis=1), curve[:, -1:]], 1)

    @property
    def times(self) -> np.ndarray:
        """Return up to three times for which tables show the probability of no event: quartiles of interval edges.

        With many intervals, about a quarter, a half and three quarters of the training events happened before them.
        They are ascending, rounded to three digits, and not after the last edge; equal ones are returned once.
        """
        rounded = [float(f"{time:.3g}") for time in np.quantile(self.edges, (0.25, 0.5, 0.75))]
        return np.unique(np.minimum(rounded, self.edges[-1]))

    def predicted(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the expected time to the event of S series, [S], up to the last edge (restricted mean survival time).

        For the mean, an event in an interval is at its middle, and an event after all intervals is at the last edge.

        Args:
            probabilities: of the classes (intervals of time), [S, classes].
        """
        edges = np.array(self.edges)
        return probabilities @ np.append((edges[1:] + edges[:-1]) / 2, edges[-1])

    def change(self, whole: Tensor, without: Tensor) -> np.ndarray:
        """Return by how much each of n observations of a series lengthens the predicted time, [n], in its unit.

        It is the expected time with all observations, less that without this one; negative if the observation shortens
        it.

        Args:
            whole: the model's outputs for the series, one logit per class (interval of time), [1, classes].
            without: its outputs [n, classes], row i for the series without observation i.
        """
        before, after = (self.predicted(self.decode(logits.cpu()).numpy()) for logits in (whole, without))
        return before - after

    def columns(self, probabilities: np.ndarray) -> dict[str, list[Any]]:
        """Return predictions as columns of a table, {name: list of S cells}, from class probabilities [S, classes].

        A class is an interval of time. "predicted" is the expected time. "survival_TIME", for each of `times`, is the
        probability that the event comes later.
        """
        survival = self.survival(probabilities, self.times).T.tolist()
        shown = {f"survival_{time:g}": column for time, column in zip(self.times, survival, strict=True)}
        return {"predicted": self.predicted(probabilities).tolist(), **shown}


def event_times(time: Any, event: Any, time_name: str = "time", event_name: str = "event") -> np.ndarray:
    """Combine durations and events in one structured array [S] with the fields "event", bool, and "time", float64.

    A series without a duration, or without a status, gets the time NaN and the event False.

    Args:
        time: durations [S]; None or NaN for a series without one.
        event: status [S], whether each duration ended in the event: booleans, 0 and 1, or "true" and "false" in any
            case; None or NaN for a series without one.
        time_name, event_name: names of these columns, for messages.

    Raises:
        InputError: a duration that is negative, infinite or no number; another status; another number of durations than
            of events.
    """
    durations, status = np.asarray(time).copy(), np.asarray(event)
    if durations.shape != status.shape or status.ndim != 1:
        raise InputError(
            f"{time_name!r} has the shape {durations.shape}, and {event_name!r} {status.shape}; give one duration and "
            "one event for each series."
        )
    known = has_label(time) & has_label(event)
    durations[~known] = 0  # which are not read, but count in the numbers of series in messages
    out = np.zeros(len(status), EVENT_TIME)
    out["time"] = np.where(known, numbers_of(durations, len(status))[:, 0], np.nan)
    known = has_label(out)  # the text "nan" is none either
    negative = out["time"] < 0
    if negative.any():
        first = int(negative.argmax())
        raise InputError(
            f"{negative.sum():,} durations in {time_name!r} are negative, first {out['time'][first]:g} of series "
            f"{first} (counted from 0); give durations from the time at which the prediction is made, at least 0."
        )
    if status.dtype == np.bool_:
        out["event"] = status & known
        return out
    words = [as_text(one).lower() for one in status[known]]
    strange = [word for word in words if word not in STATUS_WORDS]
    if strange:
        raise InputError(
            f"{event_name!r} holds {listed(dict.fromkeys(strange))}; wanted 1 or true where the event happened, and 0 "
            "or false where the series was censored."
        )
    out["event"][known] = [STATUS_WORDS[word] for word in words]
    return out


def _event_times(given: np.ndarray) -> np.ndarray:
    """Convert a structured array [S] of two fields, event and duration, to one with the fields "event" and "time".

    Raises InputError for an array without two fields, and for what `event_times` refuses.
    """
    names = given.dtype.names or ()
    if len(names) != 2:
        raise InputError(
            f"labels are an array of {listed(names) if names else given.dtype}; times to an event need two fields: "
            "whether the event happened to a series, and the duration. Give a "
            "structured array with these two fields, as scikit-survival's Surv, or two columns (--duration days "
            "--event died)."
        )
    return event_times(given[names[1]], given[names[0]], names[1], names[0])


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def kaplan_meier(time: ArrayLike, event: ArrayLike, at: ArrayLike) -> _Floats:
    """Estimate the share of series without the event after each of T times, [T] (Kaplan & Meier 1958).

    Args:
        time: [S], duration of each series.
        event: [S], whether it ended in the event (True) or was censored (observed no longer, without an event).
        at: times [T]; beyond the longest duration the share stays constant.
    """
    from scipy.stats import CensoredData, ecdf  # which take long to import

    time, event = np.asarray(time, np.float64), np.asarray(event, bool)
    return ecdf(CensoredData(uncensored=time[event], right=time[~event])).sf.evaluate(np.asarray(at, np.float64))


def censoring(time: ArrayLike, event: ArrayLike, at: ArrayLike) -> _Floats:
    """Estimate the share of series that are not yet censored after each of T times, [T], by Kaplan and Meier's method.

    At equal times, events come before censoring.

    Args:
        time: [S], duration of each series.
        event: [S], whether it ended in the event (True) or was censored (observed no longer, without an event).
        at: times [T].
    """
    time, event = np.asarray(time, np.float64), np.asarray(event, bool)
    return kaplan_meier(np.where(event, np.nextafter(time, -np.inf), time), ~event, at)


def concordance(time: ArrayLike, event: ArrayLike, predicted: ArrayLike) -> float:
    """Return Harrell's concordance: the share of pairs of series that are predicted in their true order, 0 to 1.

    Only pairs whose order is known count: the earlier series ended in the event. If both durations are equal, an event
    comes before a censoring; two events at one time are no pair. Equal predictions count half. NaN if there is no pair.

    Args:
        time: [S], duration of each series.
        event: [S], whether it ended in the event (True) or was censored (observed no longer, without an event).
        predicted: [S] numbers, larger for longer times.
    """
    time, event = np.asarray(time, np.float64), np.asarray(event, bool)
    given = np.asarray(predicted, np.float64).tolist()
    later: list[float] = []  # the predictions of series that end later, ascending
    right, pairs = 0.0, 0
    for _, rows in itertools.groupby(np.argsort(-time, kind="stable").tolist(), key=time.__getitem__):
        censored, ended = [], []
        for i in rows:
            (ended if event[i] else censored).append(given[i])
        for one in censored:
            insort(later, one)
        pairs += len(later) * len(ended)
        right += sum(len(later) - (bisect_left(later, one) + bisect_right(later, one)) / 2 for one in ended)
        for one in ended:
            insort(later, one)
    return right / pairs if pairs else np.nan


def integrated_brier_score(time: ArrayLike, event: ArrayLike, survival: _Floats, at: ArrayLike) -> float:
    """Return the Brier score of predicted survival, weighted for censoring (Graf et al. 1999), averaged over time.

    It is the squared error of the predicted probability of no event; lower is better. For a single time nothing is
    averaged. At each time, the weight of a series is 1 over the probability of not being censored until this time, or
    until its event if that was before. A series that was censored before has the weight 0.

    Args:
        time: [S], duration of each series.
        event: [S], whether it ended in the event (True) or was censored (observed no longer, without an event).
        survival: [S, T], predicted probabilities of no event until each time.
        at: ascending times [T], at least one, before the last duration.
    """
    time, event, at = np.asarray(time, np.float64), np.asarray(event, bool), np.asarray(at, np.float64)
    ended = (time[:, None] <= at) & event[:, None]
    weight = ended / np.maximum(censoring(time, event, np.nextafter(time, -np.inf)), 1e-12)[:, None]
    weight = weight + (time[:, None] > at) / np.maximum(censoring(time, event, at), 1e-12)
    scores = (weight * np.square(survival - ~ended)).mean(0)
    return float(np.trapezoid(scores, at) / (at[-1] - at[0]) if len(at) > 1 else scores.mean())
