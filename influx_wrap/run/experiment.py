"""One experiment whose observations are in Kalibr's files: calibrated, and its result written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from influx_wrap.calibrate.layout import check_target
from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.calibrate.sanity import (
    TypedSetting,
    check_calibration,
    explain_failure,
)
from influx_wrap.compute.progress import Progress
from influx_wrap.compute.provenance import provenance
from influx_wrap.engines.engine import Engine
from influx_wrap.formats.files import check_writable, file_hash
from influx_wrap.formats.kalibr import read_observations, read_target
from influx_wrap.formats.results import write_result
from influx_wrap.model.optics import check_focal_px
from influx_wrap.model.suspicion import Suspicion


def calibrate_files(
    target: Path,
    coords: Path,
    successes: Path,
    out: Path,
    *,
    image_size: tuple[int, int],
    recipe: Recipe,
    engine: Engine,
    name: str,
    focal_px: float | None,
    seed: int,
    progress: Progress | None = None,
    typed: TypedSetting | None = None,
) -> Calibration:
    """Calibrate, and write the result, or why there is none, to ``out``.

    ``target`` is Kalibr's file, ``coords`` and ``successes`` the two files of detections.
    ``name`` is for what the engine leaves on disk; ``progress`` hears how many rollouts are
    done. What contradicts ``typed``, or the target, is a warning of the result. Raises
    ``CalibrationError`` if there is no result.
    """
    observations = read_observations(coords, successes, read_target(target), image_size)
    if focal_px is not None:
        check_focal_px(focal_px, image_size)
    check_writable(out)
    made_from = provenance(
        recipe=recipe.as_dict(),
        seed=seed,
        inputs={
            "target": file_hash(target),
            "coords": file_hash(coords),
            "successes": file_hash(successes),
        },
        focal_px=focal_px,
        image_size=list(image_size),
        **engine.provenance(),
    )
    try:
        answer = engine.calibrate(
            observations, recipe, name=name, focal_px=focal_px, seed=seed, progress=progress
        )
    except CalibrationError as error:
        why = explain_failure(observations)
        if why is not None:
            reason = f"{why} ({error.stage}: {error.reason})"
            error = CalibrationError("target", reason, "Mend it and calibrate again.")
        write_result(out, {**error.failure.as_dict(), "provenance": made_from})
        raise error from None
    if typed is None:
        found: Sequence[Suspicion] = check_target(observations)
    else:
        found = check_calibration(answer, observations, typed)
    answer = replace(answer, warnings=(*answer.warnings, *(one.sentence for one in found)))
    write_result(out, {**answer.as_dict(), "provenance": made_from})
    return answer
