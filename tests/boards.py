"""What is printed on boards, point by point."""

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.model.arrays import BoolArray
from influx_wrap.model.pattern import cell_pattern
from influx_wrap.model.target import Target


def ink(target: Target, x: ArrayLike, y: ArrayLike) -> BoolArray:
    """Whether the board is black at x, y (...) in metres; a point on a line belongs to
    the cell to the right of it and above."""
    pattern = cell_pattern(target)
    white_outside = np.pad(pattern.black, 1)
    col = np.searchsorted(pattern.x_m, np.asarray(x, dtype=float), side="right")
    row = np.searchsorted(pattern.y_m, np.asarray(y, dtype=float), side="right")
    result: BoolArray = white_outside[row, col]
    return result
