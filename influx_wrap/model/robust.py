"""Standard deviations from medians, which a few gross errors do not move."""

from __future__ import annotations

import math

MAD_SIGMA = 1.4826
"""Standard deviation of a Gaussian, in medians of its absolute deviation."""

MEDIAN_LENGTH = math.sqrt(2 * math.log(2))
"""Median length of a two-dimensional Gaussian vector, in standard deviations of an axis."""
