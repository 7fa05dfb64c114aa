"""Which flash of the video belongs to which reading of the drone's receiver.

The times propose which belong together (``observe.pairing``), a camera fitted to the pairs
confirms or contradicts it (``calibrate.one_view``), and where anything is left over or in
doubt a person decides: by a review (``review``), or by accepting the proposal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.flight.camera import CameraFit, is_poor
from influx_wrap.flight.matched import MatchedFlight, Pairs
from influx_wrap.model.arrays import BoolArray, IntArray
from influx_wrap.model.flashes import Flashes, Readings
from influx_wrap.observe.pairing import Match, MatchVerdict, Misfit, Pairing, match_times


def match_flight(
    flashes: Flashes,
    readings: Readings,
    *,
    focal_px: float | None,
    clock_offset_s: float | None = None,
) -> MatchedFlight:
    """The most likely match; ``focal_px`` is the lens's, if its setting is known.

    Raises ``InputError`` if no two belong together.
    """
    fit = CameraFit(flashes.image_size, readings, focal_px)

    def misfit(chosen_flashes: IntArray, chosen_readings: IntArray) -> Misfit | None:
        view = fit(chosen_readings, flashes.uv[chosen_flashes])
        return None if view is None else Misfit(view.residual_px, view.sigmas)

    match = match_times(
        flashes.time_s, readings.time_s, misfit=misfit, clock_offset_s=clock_offset_s
    )
    if match is None:
        known = "" if clock_offset_s is None else f" with a clock offset of {clock_offset_s:.2f} s"
        raise InputError(
            f"none of {len(flashes.frames)} flashes belongs to any of {len(readings.ids)} "
            f"readings{known}."
        )
    return _matched(flashes, readings, match, fit)


def _matched(flashes: Flashes, readings: Readings, match: Match, fit: CameraFit) -> MatchedFlight:
    best = match.pairing
    view = None if best.misfit is None else fit(best.readings, flashes.uv[best.flashes])
    pairs = Pairs(
        best.readings,
        best.flashes,
        flashes.frames[best.flashes],
        flashes.uv[best.flashes],
        flashes.rule[best.flashes],
    )
    n = len(pairs)
    poor = is_poor(readings)[pairs.readings]
    verdict = match.verdict
    if verdict is MatchVerdict.CERTAIN and (poor.any() or view is None):
        verdict = MatchVerdict.PROPOSED
    return MatchedFlight(
        flashes=flashes,
        readings=readings,
        pairs=pairs,
        verdict=verdict.value,
        clock=best.clock,
        time_error_s=best.time_error_s,
        camera=view,
        centre_m=fit.centre_m,
        residual_px=np.full(n, np.nan) if best.misfit is None else best.misfit.residual_px,
        outlying=best.outlying,
        poor=poor,
        disputed=_disputed(best, match.rivals),
        rivals=tuple((one.clock.offset_s, len(one.flashes), one.rms_px) for one in match.rivals),
    )


def _disputed(best: Pairing, rivals: Sequence[Pairing]) -> BoolArray:
    """(P,) pairs that not all rivals have."""
    pairs = list(zip(best.flashes.tolist(), best.readings.tolist(), strict=True))
    others = [set(zip(r.flashes.tolist(), r.readings.tolist(), strict=True)) for r in rivals]
    return np.array([any(pair not in other for other in others) for pair in pairs], dtype=bool)
