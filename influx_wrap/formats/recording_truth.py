"""``truth.json`` of a recording that was simulated: the answer.

Of a board it has the intrinsics, the bow, and for every frame the pose of the board in the
middle of the exposure and the number of the pose it was held in, -1 while it was moved. Of a
flight it tells where the LED was at every reading, and every frame in which it is lit, with
its exact centre.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from influx_wrap.errors import InputError
from influx_wrap.formats.files import PIXEL_ORIGIN, read_json, write_json_lines
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.target import Target, bow_basis
from influx_wrap.model.truth import Noise, Truth

TRUTH = "truth.json"

# The columns of a flight's truth: rows of so many numbers, numbers, whole numbers; and which
# of them are one table.
_TRUTH_ROWS = {"hover_m": 3, "lit_uv": 2, "reading_m": 3, "rotation": 3}
_TRUTH_NUMBERS = ("flash_time_s", "lit_share", "translation")
_TRUTH_INDICES = ("flash_point", "lit_flash", "lit_frame", "reading_point", "reading_flash")
_TRUTH_TABLES = (
    ("flash_point", "flash_time_s"),
    ("lit_flash", "lit_frame", "lit_uv", "lit_share"),
    ("reading_point", "reading_flash", "reading_m"),
)


@dataclass(frozen=True, eq=False)
class RecordingTruth:
    """The answer to a simulated recording of F frames.

    rotations     (F, 3, 3) and
    translations  (F, 3): poses in metres from the target to camera space, mid-exposure
    pose          (F,) number of the pose the board was held in; -1: it was moved
    bow_m         (3,) coefficients of ``bow_basis``
    """

    intrinsics: Intrinsics
    rotations: FloatArray
    translations: FloatArray
    pose: IntArray
    bow_m: FloatArray

    def of_views(self, frames: ArrayLike, target: Target, corner_px: float) -> Truth:
        """The answer to the experiment whose views (V,) are these frames, their corners
        found with a standard deviation of ``corner_px``."""
        index = np.asarray(frames, dtype=np.int64)
        n_frames = len(self.pose)
        unknown = index[(index < 0) | (index >= n_frames)]
        if len(unknown):
            raise InputError(f"frame {unknown[0]} is not in the truth: it has {n_frames} frames.")
        up = np.array([0.0, 0.0, 1.0])
        return Truth(
            self.intrinsics,
            self.rotations[index],
            self.translations[index],
            target.points + up * (bow_basis(target.points) @ self.bow_m)[:, None],
            self.bow_m,
            np.zeros((len(index), len(target.points)), dtype=bool),
            Noise(corner_px=corner_px),
        )


@dataclass(frozen=True, eq=False)
class FlightTruth:
    """The answer to a simulated flight over P hover points, with F flashes that the video
    shows in L frames altogether, and R readings.

    rtk_ball_m     radius of the ball in which a reading is off, uniformly
    hover_m        (P, 3) the hover points in camera space, in the order of the plan
    flash_point    (F,) hover point of each flash, in the order of time; -1: it has no reading
    flash_time_s   (F,) when the LED came on, after the shutter opened for frame 0
    lit_flash      (L,) flash of each lit frame, and
    lit_frame      (L,) its number
    lit_uv         (L, 2) the LED's exact centre in it, in pixels
    lit_share      (L,) part of the exposure for which the LED was on
    reading_point  (R,) hover point of each reading, in the order of time
    reading_flash  (R,) its flash; -1: the video does not show it
    reading_m      (R, 3) where the LED was, in camera space
    rotation       (3, 3) and
    translation    (3,): from the readings' x, y, alt to camera space, in metres; takes a
                   reading without error to the LED
    clock_offset_s the readings' time at which the shutter opened for frame 0, and
    clock_drift    by which share the readings' clock runs faster than the video's
    """

    intrinsics: Intrinsics
    rtk_ball_m: float
    hover_m: FloatArray
    flash_point: IntArray
    flash_time_s: FloatArray
    lit_flash: IntArray
    lit_frame: IntArray
    lit_uv: FloatArray
    lit_share: FloatArray
    reading_point: IntArray
    reading_flash: IntArray
    reading_m: FloatArray
    rotation: FloatArray
    translation: FloatArray
    clock_offset_s: float
    clock_drift: float

    def of_readings(
        self, readings: ArrayLike, centre_m: ArrayLike, unit_m: float, corner_px: float
    ) -> Truth:
        """The answer to the experiment of one view whose target are these readings (T,), less
        ``centre_m`` (3,) in their x, y, alt and in units of ``unit_m``, their pixels found with
        a standard deviation of ``corner_px``."""
        index, centre = np.asarray(readings, dtype=np.int64), np.asarray(centre_m, dtype=float)
        at_m = (self.reading_m[index] - self.translation) @ self.rotation
        return Truth(
            self.intrinsics,
            self.rotation[None],
            (self.rotation @ centre + self.translation)[None] / unit_m,
            (at_m - centre) / unit_m,
            np.zeros(3),
            np.zeros((1, len(index)), dtype=bool),
            Noise(corner_px=corner_px, rtk_ball_m=self.rtk_ball_m),
        )


def read_recording_truth(folder: Path) -> RecordingTruth | None:
    """The answer to a simulated recording; None if it is a real one."""
    path = folder / TRUTH
    if not path.exists():
        return None
    record = read_json(path)
    record.check_keys(("pixel_origin", "intrinsics", "bow_m", "rotations", "translations", "pose"))
    record.check_pixel_origin()
    pose = record.integers("pose")
    return RecordingTruth(
        record.intrinsics("intrinsics"),
        record.rows("rotations", 9, len(pose)).reshape(-1, 3, 3),
        record.rows("translations", 3, len(pose)),
        pose,
        np.array(record.numbers("bow_m", 3)),
    )


def read_flight_truth(folder: Path) -> FlightTruth | None:
    """The answer to a simulated flight; None if it is a real one."""
    path = folder / TRUTH
    if not path.exists():
        return None
    record = read_json(path)
    record.check_keys(("pixel_origin", *(field.name for field in fields(FlightTruth))))
    columns: dict[str, Any] = {
        name: record.rows(name, width) for name, width in _TRUTH_ROWS.items()
    }
    record.check_pixel_origin()
    columns |= {name: np.array(record.numbers(name)) for name in _TRUTH_NUMBERS}
    for name in _TRUTH_INDICES:
        columns[name] = record.integers(name)
    for key, *others in _TRUTH_TABLES:
        for other in others:
            if len(columns[other]) != len(columns[key]):
                found, needed = len(columns[other]), len(columns[key])
                raise record.fault(other, f"has {found} rows, {key} has {needed}.")
    for name, n in (("rotation", 3), ("translation", 3)):
        if len(columns[name]) != n:
            raise record.fault(name, f"must have {n} rows, got {len(columns[name])}.")
    n_flashes, n_points = len(columns["flash_point"]), len(columns["hover_m"])
    for name, lowest, n in (
        ("flash_point", -1, n_points),
        ("lit_flash", 0, n_flashes),
        ("reading_point", 0, n_points),
        ("reading_flash", -1, n_flashes),
    ):
        outside = np.flatnonzero((columns[name] < lowest) | (columns[name] >= n))
        if len(outside):
            raise record.fault(f"{name}[{outside[0]}]", f"must be from {lowest} to {n - 1}.")
    if (
        not np.array_equal(np.unique(columns["lit_flash"]), np.arange(n_flashes))
        or (np.diff(columns["lit_flash"]) < 0).any()
    ):
        raise record.fault("lit_flash", "must have rows of every flash, in the order of time.")
    return FlightTruth(
        record.intrinsics("intrinsics"),
        rtk_ball_m=record.number("rtk_ball_m", at_least=0),
        clock_offset_s=record.number("clock_offset_s"),
        clock_drift=record.number("clock_drift"),
        **columns,
    )


def write_recording_truth(folder: Path, truth: RecordingTruth) -> None:
    """Write ``truth.json`` of a board's recording."""
    values = {
        "pixel_origin": PIXEL_ORIGIN,
        "intrinsics": truth.intrinsics.as_dict(),
        "bow_m": truth.bow_m.tolist(),
        "pose": truth.pose.tolist(),
        "rotations": truth.rotations.reshape(-1, 9).tolist(),
        "translations": truth.translations.tolist(),
    }
    write_json_lines(folder / TRUTH, values)


def write_flight_truth(folder: Path, truth: FlightTruth) -> None:
    """Write ``truth.json`` of a flight's recording."""
    values: dict[str, object] = {"pixel_origin": PIXEL_ORIGIN}
    for field in fields(truth):
        value = getattr(truth, field.name)
        values[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    write_json_lines(folder / TRUTH, {**values, "intrinsics": truth.intrinsics.as_dict()})
