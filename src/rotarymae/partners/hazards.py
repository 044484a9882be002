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
        """Compute the time at risk and the events of S series from the weights of intervals in their likelihood.

        Args:
            truth: weights [S, K + 1] of K intervals, and of the time after them. A series with an observed event has 1
                in the interval of the event, and 0 elsewhere. A censored series, whose follow-up ended without an
                event, has 1 in all later intervals, in that of censoring the share of it that was left, and 0 before.
                So a series is censored if its last weight is not 0.
        """
        intervals = np.arange(truth.shape[1] - 1)
        ended, observed = (truth > 0).argmax(1)[:, None], truth[:, -1:] == 0
        events = ((intervals == ended) & observed).astype(np.float64)
        censored = (intervals == ended) * (1.0 - truth[:, :-1])
        return cls(np.where(intervals < ended, 1.0, np.where(observed, events / 2, censored)), events)

    def rates(self, log_risk: Floats) -> Floats:
        """Return the hazard of each of K intervals for a series of log-risk 0, [K].

        It is the number of events in the interval over the time at risk, in which each series counts by its risk.

        Args:
            log_risk: [S] log-risk of each series of this follow-up.
        """
        at_risk = (np.exp(log_risk)[:, None] * self.exposure).sum(0)
        return self.events.sum(0) / np.maximum(at_risk, np.finfo(float).tiny)

    def expected(self, log_risk: Floats) -> Floats:
        """Return the number of events that is expected of each of S series while it was at risk, [S].

        It is the exponential of the log-risk times the sum of exposure times `rates` over intervals. Expected minus
        observed events of a series is the derivative of `nats` by its log-risk.

        Args:
            log_risk: [S] log-risk of each series of this follow-up.
        """
        return np.exp(log_risk) * (self.exposure * self.rates(log_risk)).sum(1)

    def nats(self, log_risk: Floats) -> float:
        """Return the negative log partial likelihood in nats, summed over events, up to a constant.

        Args:
            log_risk: [S] log-risk of each series of this follow-up.
        """
        at_risk = (np.exp(log_risk)[:, None] * self.exposure).sum(0)
        return float(self.events.sum(0) @ np.log(np.maximum(at_risk, 1e-300)) - self.events.sum(1) @ log_risk)


def interval_probabilities(log_risk: Floats, rates: Floats) -> Floats:
    """Return the probability [S, K + 1] that the event falls into each of K intervals, and after all of them.

    Args:
        log_risk: [S] log-risk of each of S series; what is beyond ±20 counts as ±20.
        rates: [K] hazards of the intervals for a log-risk of 0, over the whole of each interval.
    """
    risk = np.exp(np.clip(log_risk, -MAX_LOG_RISK, MAX_LOG_RISK))
    survival = np.exp(-risk[:, None] * np.cumsum(np.concatenate([[0.0], rates])))
    return np.concatenate([survival[:, :-1] - survival[:, 1:], survival[:, -1:]], axis=1)
