"""One experiment whose observations are in Kalibr's files: calibrated, and its result written."""

from __future__ import annotations

from pathlib import Path

from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.compute.progress import Progress
from influx_wrap.compute.provenance import provenance
from influx_wrap.engines.engine import Engine
from influx_wrap.formats.files import check_writable, file_hash, write_json
from influx_wrap.formats.kalibr import read_observations, read_target


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
) -> Calibration:
    """Calibrate, and write the result, or why there is none, to ``out``.

    ``target`` is Kalibr's file, ``coords`` and ``successes`` the two files of detections.
    ``name`` is for what the engine leaves on disk; ``progress`` hears how many rollouts are
    done. Raises ``CalibrationError`` if there is no result.
    """
    observations = read_observations(coords, successes, read_target(target), image_size)
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
        write_json(out, {**error.failure.as_dict(), "provenance": made_from})
        raise
    write_json(out, {**answer.as_dict(), "provenance": made_from})
    return answer
