"""Central intervals of a normal distribution: what "68 %" and "95 %" mean everywhere in this library."""

from statistics import NormalDist

# share → half width in standard deviations, so that the interval mean ± half width · std holds exactly that share
HALF_WIDTHS = {share: NormalDist().inv_cdf(0.5 + share / 2) for share in (0.5, 0.68, 0.9, 0.95)}
SHOWN = (0.68, 0.95)  # the bands that tables and figures show
