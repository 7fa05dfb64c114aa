"""What was found out about a lens's smoothness: small enough to be kept in its table's file.

With it and the experiments, ``lut.smooth`` answers at once; finding it takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from influx_wrap.model.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Member:
    """One Gaussian process among several.

    weight  of its answers; those of all members add up to one
    kernel  the shape of its correlations
    offset  of focus distances, in units of the nearest
    hyper   (8, 8) hyper-parameters of each output
    """

    weight: float
    kernel: str
    offset: float
    hyper: FloatArray


@dataclass(frozen=True, eq=False)
class SmoothFit:
    """The members of a smooth lens, and what they were found from.

    fitted_to  fingerprint of the table
    set_aside  names of experiments that contradict the others, and have no part in the answers
    """

    members: tuple[Member, ...]
    fitted_to: str
    set_aside: tuple[str, ...] = ()
