"""Stand-in for what the modules of the series use of Kalibr's ``sm``."""

import numpy as np


class Transformation:
    def __init__(self, matrix=None):
        self.matrix = np.eye(4) if matrix is None else matrix
