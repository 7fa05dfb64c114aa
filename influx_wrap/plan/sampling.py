"""Where on the lens to calibrate: dense at short LFL and at near focus.

LFL steps double (1, 2, 4, ... mm), since at short focal length an error of the
intrinsics moves unprojected points most. FD is uniform in disparity 1 / FD, since
CFL departs from LFL most at near focus (the paper's section on LFL and FD sampling).
"""

from __future__ import annotations

from influx_wrap.model.hardware import Lens

N_DISPARITIES = 9


def sample_lfl_mm(lens: Lens) -> tuple[float, ...]:
    """Lens focal lengths in mm, ascending: the shortest, doubling steps, the longest."""
    values = []
    lfl, step = float(lens.lfl_min_mm), 1.0
    while lfl < lens.lfl_max_mm:
        values.append(lfl)
        lfl, step = lfl + step, 2 * step
    return (*values, float(lens.lfl_max_mm))


def sample_fd_m(lens: Lens) -> tuple[float, ...]:
    """Focus distances in m, near to far: the nearest, then nine uniform in disparity.

    The nine run from ``fd_lower_m`` to nine times that; the nearest is listed once
    if it is ``fd_lower_m`` itself.
    """
    uniform = tuple(N_DISPARITIES * lens.fd_lower_m / i for i in range(N_DISPARITIES, 0, -1))
    return uniform if lens.fd_min_m == lens.fd_lower_m else (float(lens.fd_min_m), *uniform)
