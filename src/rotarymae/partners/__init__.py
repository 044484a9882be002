"""Predictors next to the network: boosted trees, random convolutions, Cox's regression, and how they are combined."""

from rotarymae.partners.base import AnyDataset, Partner
from rotarymae.partners.boosting import BoostedFeatures
from rotarymae.partners.combine import INTERVAL, half_widths, least_errors, sorted_errors
from rotarymae.partners.convolutions import RandomConvolutions
from rotarymae.partners.features import FORMULAS, features
from rotarymae.partners.predictor import (
    COMBINED,
    MODEL,
    TASKS,
    TITLES,
    FittedPartners,
    Predictor,
    choose_predictor,
    fit_partners,
)
from rotarymae.partners.shapes import FEATURES
