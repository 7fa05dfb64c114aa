"""The types of arrays; shapes are in the docstrings of those who use them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

Picture = NDArray[np.uint8] | NDArray[np.uint16]
"""(H, W), or (H, W, 3) with blue first."""
