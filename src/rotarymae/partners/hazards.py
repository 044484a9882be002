"""Hazards that are constant in each interval, for methods that predict the time to an event by one risk per series.

A truth float [S, K + 1] has the weight of each interval in the likelihood of what is known of a series
(`survival.EventTimes`): the last interval, "after all others", counts for each censored series. With a log-risk per
series, the hazard of a series is its risk times a rate per interval. The rates are those of Breslow (1974), which
maximise the likelihood for given risks; what is left is Cox's partial likelihood of the grouped times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rotarymae.partners.base import Floats

MAX_LOG_RISK = 20.0  # whose exponential is finite in every product here


@dataclass(frozen=True, eq=False)
class FollowUp:
    """Time at risk and events of S series in K intervals, from which hazards are estimated.

    Attributes:
        exposure: [S, K] share of each interval during which a series was at risk; half for the interval of its event.
        events: [S, K] 1 in the interval of an observed event.
    """

    exposure: Floats
    events: Floats

    @classmethod
    def of(cls, truth: NDArray[np.floating]) -> FollowUp:
        """Return the time at risk and the events of S series in K intervals, from encoded event times.

        Args:
            truth: [S, K + 1] for K time intervals and the time after them, as `survival.EventTimes.encode` returns it.
                A series with an observed event has 1 in the interval of the event, and 0 elsewhere. A censored series,
                whose follow-up ended without an event, has 0 before the interval of censoring, the share of this
                interval that lies after the censoring, and 1 in all later columns. A series counts as censored if its
                last number is not 0.
        """
        intervals = np.arange(truth.shape[1] - 1)
        ended, observed = (truth > 0).argmax(1)[:, None], truth[:, -1:] == 0
        events = ((intervals == ended) & observed).astype(np.float64)
        censored = (intervals == ended) * (1.0 - truth[:, :-1])
        return cls(np.where(intervals < ended, 1.0, np.where(observed, events / 2, censored)), events)

    def rates(self, log_risk: Floats) -> Floats:
        """Return the baseline hazard, of a series with log-risk 0, in each of K time intervals, [K].

        It is the number of events in the interval, divided by the time at risk summed over series, each weighted by
        exp(log-risk).

        Args:
            log_risk: [S] log-risk of each series of this follow-up.
        """
        at_risk = (np.exp(log_risk)[:, None] * self.exposure).sum(0)
        return self.events.sum(0) / np.maximum(at_risk, np.finfo(float).tiny)

    def expected(self, log_risk: Floats) -> Floats:
        """Return the number of events that Cox's model expects in each of S series while it was at risk, [S].

        It is exp(log-risk) · sum(time at risk · `rates`) over intervals. The expected minus the observed number is the
        derivative, with respect to the log-risk, of the negative log partial likelihood (`nats`).

        Args:
            log_risk: [S] log-risk of each series of this follow-up.
        """
        return np.exp(log_risk) * (self.exposure * self.rates(log_risk)).sum(1)

    def nats(self, log_risk: Floats) -> float:
        """Return the negative log partial likelihood of Cox's model in nats (natural logarithms), up to a constant.

        Args:
            log_risk: [S] log-risk of each series of this follow-up.
        """
        at_risk = (np.exp(log_risk)[:, None] * self.exposure).sum(0)
        return float(self.events.sum(0) @ np.log(np.maximum(at_risk, 1e-300)) - self.events.sum(1) @ log_risk)


def interval_probabilities(log_risk: Floats, rates: Floats) -> Floats:
    """Return the probabilities [S, K + 1] of the event in each of K time intervals, and after them, from log-risks.

    Args:
        log_risk: [S] log-risk of each of S series, clipped to ±20.
        rates: [K] hazard for a log-risk of 0, integrated over each whole interval.
    """
    risk = np.exp(np.clip(log_risk, -MAX_LOG_RISK, MAX_LOG_RISK))
    survival = np.exp(-risk[:, None] * np.cumsum(np.concatenate([[0.0], rates])))
    return np.concatenate([survival[:, :-1] - survival[:, 1:], survival[:, -1:]], axis=1)
