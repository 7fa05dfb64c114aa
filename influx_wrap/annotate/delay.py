"""Metadata that lag behind the pictures: --delay.

Lenses, motors and transmitters take time, and some cameras write what they were told a frame or
two ago. With a delay of d frames, picture k was taken with the setting that the metadata list for
frame k + d. A delay need not be whole: between two frames LFL is linear, and FD in 1 / FD. Nothing
is made up: a picture whose setting would lie beyond the metadata, or beside a missing frame, has
none.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.lens_metadata import LensMetadata

MOST_DELAY = 1000


def undelayed(metadata: LensMetadata, delay_frames: float) -> LensMetadata:
    """The metadata of each picture, which they list ``delay_frames`` later (or, if negative,
    earlier); a whole delay changes no value."""
    if not abs(delay_frames) <= MOST_DELAY:
        raise InputError(
            f"a delay must be from -{MOST_DELAY} to {MOST_DELAY} frames, got {delay_frames:g}."
        )
    if delay_frames == 0:
        return metadata
    listed = metadata.frame
    before, share = math.floor(delay_frames), delay_frames - math.floor(delay_frames)
    moved = listed - before
    frame = np.union1d(listed, moved[(moved >= 0) & (moved <= listed[-1])])

    def at(values: FloatArray, later: int) -> FloatArray:
        place = np.searchsorted(listed, frame + later)
        inside = np.minimum(place, len(listed) - 1)
        found = (place < len(listed)) & (listed[inside] == frame + later)
        return np.where(found, values[inside], np.nan)

    lfl_mm, fd_m = at(metadata.lfl_mm, before), at(metadata.fd_m, before)
    if share:
        with np.errstate(divide="ignore", over="ignore"):
            nearness = (1 - share) / fd_m + share / at(metadata.fd_m, before + 1)
            # So near that it is no number any more.
            fd_m = np.where(np.isinf(nearness), np.nan, 1 / nearness)
        lfl_mm = (1 - share) * lfl_mm + share * at(metadata.lfl_mm, before + 1)
    return replace(metadata, frame=frame, lfl_mm=lfl_mm, fd_m=fd_m, channels=())
