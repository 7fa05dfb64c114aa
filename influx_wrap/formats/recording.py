"""The folder of one recorded experiment: footage of a board, and what the lens was set to.

``recording.yaml`` has either ``lfl_mm`` and ``fd_m``, or ``metadata``, the name of a file
beside it, CSV (``lens_metadata``) or ``.json`` (``arri``); and either ``board``, a board
of the catalogue, or ``target``, the name of a Kalibr ``target.yaml``. It may name its
``footage``, a video or a folder of pictures, which it must if there are several; say with
``stills: false`` that a folder of pictures is a video's frames, of which some are to be
chosen; and name its ``lens``, ``camera`` and ``cell``.

``truth.json`` holds the answer if the recording was simulated: the intrinsics, the bow,
and for every frame the pose of the board in the middle of the exposure and the number
of the pose it was held in, -1 while it was moved.

A recording of the drone's flight has ``rtk``, the name of a ``flash_rtk.json`` (``flight``),
in place of ``board`` and ``target``. Its ``truth.json`` tells where the LED was at every
reading, and every frame in which it is lit, with its exact centre.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.arri import read_art_metadata
from influx_wrap.formats.files import Record, dump_yaml, read_json, read_yaml, reading, write_text
from influx_wrap.formats.flight import FLASH_RTK
from influx_wrap.formats.kalibr import read_target
from influx_wrap.formats.lens_metadata import (
    LensMetadata,
    read_lens_metadata,
    write_lens_metadata,
)
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.hardware import Board
from influx_wrap.model.intrinsics import NAMES, Intrinsics
from influx_wrap.model.target import PointCloud, Target, bow_basis
from influx_wrap.model.truth import Noise, Truth

RECORDING, METADATA, TRUTH = "recording.yaml", "metadata.csv", "truth.json"
PICTURES = (".tif", ".tiff", ".png", ".jpg", ".jpeg")
VIDEOS = (".mp4", ".m4v", ".mov", ".mkv", ".avi", ".mxf", ".mts", ".webm", ".ari", ".arx")
PIXEL_ORIGIN = "center"
DRONE = "drone"
"""The target of an experiment that was flown."""

MOST_LENS_MOTION = 0.005
"""How far the lens may drift during an experiment, as a share of LFL or FD."""

_NAMES = ("lens", "camera", "cell")
_SHARED_KEYS = ("lfl_mm", "fd_m", "metadata", "footage", "rtk", *_NAMES)

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
class Recording:
    """One recorded experiment.

    footage      a video file, or a folder with one file per frame
    is_stills    True if every picture was taken to be used; False for a video's frames
    target_name  the board's name, or that of the target's file
    metadata     the file that LFL and FD are from; None if they were typed in
    """

    folder: Path
    footage: Path
    is_stills: bool
    lfl_mm: float
    fd_m: float
    target: Target
    target_name: str
    metadata: Path | None
    lens: str | None
    camera: str | None
    cell: str | None


@dataclass(frozen=True, eq=False)
class FlightRecording:
    """One recorded flight.

    footage   a video file, or a folder with one file per frame
    rtk       the file of the drone's readings
    metadata  the file that LFL and FD are from; None if they were typed in
    """

    folder: Path
    footage: Path
    rtk: Path
    lfl_mm: float
    fd_m: float
    metadata: Path | None
    lens: str | None
    camera: str | None
    cell: str | None


@dataclass(frozen=True)
class RecordingSetting:
    """What an experiment was recorded with; None where that is not known."""

    lfl_mm: float | None
    fd_m: float | None
    target_name: str | None
    camera: str | None


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
    pose: NDArray[np.int64]
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
    flash_point: NDArray[np.int64]
    flash_time_s: FloatArray
    lit_flash: NDArray[np.int64]
    lit_frame: NDArray[np.int64]
    lit_uv: FloatArray
    lit_share: FloatArray
    reading_point: NDArray[np.int64]
    reading_flash: NDArray[np.int64]
    reading_m: FloatArray
    rotation: FloatArray
    translation: FloatArray
    clock_offset_s: float
    clock_drift: float

    @property
    def n_flashes(self) -> int:
        """How many flashes the video shows."""
        return len(self.flash_point)

    @property
    def first_frames(self) -> NDArray[np.int64]:
        """(F,) first frame in which each flash is lit, be it for a part of the exposure."""
        return self.lit_frame[self._first_rows]

    @property
    def first_uv(self) -> FloatArray:
        """(F, 2) the LED's exact centre in that frame."""
        return self.lit_uv[self._first_rows]

    @property
    def _first_rows(self) -> NDArray[np.intp]:
        return np.searchsorted(self.lit_flash, np.arange(self.n_flashes))

    def flash_at(self, frame: int) -> int | None:
        """The flash that is lit in a frame; None if it is dark."""
        rows = np.flatnonzero(self.lit_frame == frame)
        return int(self.lit_flash[rows[0]]) if len(rows) else None

    def uv_at(self, frame: int) -> FloatArray:
        """(2,) the LED's exact centre in a frame in which it is lit."""
        rows = np.flatnonzero(self.lit_frame == frame)
        if not len(rows):
            raise InputError(f"the LED is not lit in frame {frame}.")
        return self.lit_uv[rows[0]]

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


def clip_with_metadata(folder: Path) -> Path | None:
    """The clip that ``recording.yaml`` names as the source of its metadata, if it is a clip."""
    if not (folder / RECORDING).exists():
        return None
    name = read_yaml(folder / RECORDING).values.get("metadata")
    is_clip = isinstance(name, str) and Path(name).suffix.lower() in VIDEOS
    return folder / str(name) if is_clip else None


def read_recording(
    folder: Path, boards: Mapping[str, Board], extracted: Path | None = None
) -> Recording:
    """Read ``recording.yaml`` of a folder and what it names.

    ``boards`` are those known; ``extracted`` is where the metadata of ``clip_with_metadata``
    were written to.
    """
    record = _description(folder)
    if "rtk" in record.values:
        raise record.fault("rtk", "makes this the recording of a flight; a board's has none.")
    record.check_keys((), (*_SHARED_KEYS, "board", "target", "stills"))
    target, target_name = _target(record, folder, boards)
    lfl_mm, fd_m, metadata = _lens_setting(record, folder, extracted)
    footage = _footage(record, folder)
    return Recording(
        folder=folder,
        footage=footage,
        is_stills=_is_stills(record, footage),
        lfl_mm=lfl_mm,
        fd_m=fd_m,
        target=target,
        target_name=target_name,
        metadata=metadata,
        **_names(record),
    )


def is_flight(folder: Path) -> bool:
    """True if the folder holds the recording of a flight."""
    path = folder / RECORDING
    return path.exists() and "rtk" in read_yaml(path).values


def read_flight_recording(folder: Path, extracted: Path | None = None) -> FlightRecording:
    """Read ``recording.yaml`` of a flight's folder; ``extracted`` as for ``read_recording``."""
    record = _description(folder)
    for key in ("board", "target"):
        if key in record.values:
            raise record.fault(key, "and rtk are both given; remove one of them.")
    record.check_keys(("rtk",), _SHARED_KEYS)
    lfl_mm, fd_m, metadata = _lens_setting(record, folder, extracted)
    rtk = folder / record.text("rtk")
    if not rtk.is_file():
        raise record.fault("rtk", f"{rtk} does not exist; it holds the drone's readings.")
    return FlightRecording(
        folder=folder,
        footage=_footage(record, folder),
        rtk=rtk,
        lfl_mm=lfl_mm,
        fd_m=fd_m,
        metadata=metadata,
        **_names(record),
    )


def read_setting(folder: Path) -> RecordingSetting:
    """What ``recording.yaml`` tells even if something else of the recording is amiss."""
    try:
        record = read_yaml(folder / RECORDING)
    except InputError:
        return RecordingSetting(None, None, None, None)
    lfl_mm = fd_m = target_name = camera = None
    with suppress(InputError):
        lfl_mm, fd_m, _ = _lens_setting(record, folder)
    with suppress(InputError):
        if "rtk" in record.values:
            target_name = DRONE
        else:
            target_name = record.text("target" if "target" in record.values else "board")
    with suppress(InputError):
        camera = record.text("camera")
    return RecordingSetting(lfl_mm, fd_m, target_name, camera)


def write_recording(
    folder: Path,
    *,
    footage: str,
    metadata: LensMetadata,
    board: str,
    lens: str,
    camera: str,
    cell: str,
    truth: RecordingTruth,
) -> None:
    """Complete a folder that has the footage already; ``recording.yaml`` comes last."""
    write_lens_metadata(folder / METADATA, metadata)
    write_text(folder / TRUTH, _truth_as_json(truth))
    names = {"lens": lens, "camera": camera, "cell": cell, "board": board}
    write_text(folder / RECORDING, _recording_as_yaml(names, footage))


def write_flight_recording(
    folder: Path,
    *,
    footage: str,
    metadata: LensMetadata,
    lens: str,
    camera: str,
    cell: str,
    truth: FlightTruth,
) -> None:
    """Complete a folder that has the footage and ``flash_rtk.json`` already;
    ``recording.yaml`` comes last."""
    write_lens_metadata(folder / METADATA, metadata)
    write_text(folder / TRUTH, _flight_truth_as_json(truth))
    names = {"lens": lens, "camera": camera, "cell": cell, "rtk": FLASH_RTK}
    write_text(folder / RECORDING, _recording_as_yaml(names, footage))


def _recording_as_yaml(names: Mapping[str, str], footage: str) -> str:
    return dump_yaml({**names, "metadata": METADATA, "footage": footage})


def read_recording_truth(folder: Path) -> RecordingTruth | None:
    """The answer to a simulated recording; None if it is a real one."""
    path = folder / TRUTH
    if not path.exists():
        return None
    record = read_json(path)
    record.check_keys(("pixel_origin", "intrinsics", "bow_m", "rotations", "translations", "pose"))
    intrinsics = _true_intrinsics(record)
    rotations, translations = record.rows("rotations", 9), record.rows("translations", 3)
    pose, bow_m = np.array(record.numbers("pose"), dtype=np.int64), record.numbers("bow_m")
    for key, found in (("rotations", rotations), ("translations", translations)):
        if len(found) != len(pose):
            raise record.fault(key, f"has {len(found)} frames, pose has {len(pose)}.")
    if len(bow_m) != 3:
        raise record.fault("bow_m", f"must have 3 numbers, got {len(bow_m)}.")
    return RecordingTruth(
        intrinsics,
        rotations.reshape(-1, 3, 3),
        translations,
        pose,
        np.array(bow_m),
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
    columns |= {name: np.array(record.numbers(name)) for name in _TRUTH_NUMBERS}
    for name in _TRUTH_INDICES:
        columns[name] = np.array(record.numbers(name), dtype=np.int64)
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
        _true_intrinsics(record),
        rtk_ball_m=record.number("rtk_ball_m", at_least=0),
        clock_offset_s=record.number("clock_offset_s"),
        clock_drift=record.number("clock_drift"),
        **columns,
    )


def _true_intrinsics(record: Record) -> Intrinsics:
    if record.text("pixel_origin") != PIXEL_ORIGIN:
        raise record.fault(
            "pixel_origin", f"must be {PIXEL_ORIGIN}: pixel (0, 0) is a pixel's centre."
        )
    intrinsics = record.record("intrinsics")
    intrinsics.check_keys(NAMES)
    return Intrinsics(*(intrinsics.number(name) for name in NAMES))


def _flight_truth_as_json(truth: FlightTruth) -> str:
    values: dict[str, object] = {"pixel_origin": PIXEL_ORIGIN}
    for field in fields(truth):
        value = getattr(truth, field.name)
        values[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
    return _as_json({**values, "intrinsics": truth.intrinsics.as_dict()})


def _truth_as_json(truth: RecordingTruth) -> str:
    values = {
        "pixel_origin": PIXEL_ORIGIN,
        "intrinsics": truth.intrinsics.as_dict(),
        "bow_m": truth.bow_m.tolist(),
        "pose": truth.pose.tolist(),
        "rotations": truth.rotations.reshape(-1, 9).tolist(),
        "translations": truth.translations.tolist(),
    }
    return _as_json(values)


def _as_json(values: Mapping[str, object]) -> str:
    """A JSON object with one key per line."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _description(folder: Path) -> Record:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; a recording is a folder of files.")
    return read_yaml(folder / RECORDING)


def _names(record: Record) -> dict[str, str | None]:
    return {name: record.text(name) if name in record.values else None for name in _NAMES}


def _either(record: Record, one: str, other: str) -> bool:
    """True if the record has ``one``, False if it has ``other``; it must have one of them."""
    has_one, has_other = one in record.values, other in record.values
    if has_one and has_other:
        raise record.fault(one, f"and {other} are both given; remove one of them.")
    if not has_one and not has_other:
        raise record.fault(one, f"is missing; give {one} or {other}.")
    return has_one


def _target(record: Record, folder: Path, boards: Mapping[str, Board]) -> tuple[Target, str]:
    if _either(record, "target", "board"):
        name = record.text("target")
        target = read_target(folder / name)
        if isinstance(target, PointCloud):
            raise record.fault("target", f"{name} is a cloud of points; footage needs a board.")
        return target, name
    name = record.text("board")
    if name not in boards:
        raise record.fault(
            "board",
            f"{name} is not in the catalogue, which has {', '.join(boards)}. Take one of them, "
            "or describe the board in a target.yaml and give target.",
        )
    return boards[name].grid, name


def _lens_setting(
    record: Record, folder: Path, extracted: Path | None = None
) -> tuple[float, float, Path | None]:
    """LFL in mm, FD in m, and the file they are from."""
    if _either(record, "metadata", "lfl_mm"):
        if "fd_m" in record.values:
            raise record.fault("fd_m", "and metadata are both given; remove one of them.")
        path = extracted or folder / record.text("metadata")
        read = read_art_metadata if path.suffix.lower() == ".json" else read_lens_metadata
        metadata = read(path)
        lfl_mm = _fixed(path, metadata, "lfl_mm", metadata.lfl_mm)
        return lfl_mm, _fixed(path, metadata, "fd_m", metadata.fd_m), path
    if record.values.get("fd_m") == "inf":
        record = Record(record.where, {**record.values, "fd_m": math.inf})
    return record.number("lfl_mm", above=0), record.number("fd_m", above=0, infinite=True), None


def _fixed(path: Path, metadata: LensMetadata, name: str, values: FloatArray) -> float:
    """The median of ``values``, which may not change by more than ``MOST_LENS_MOTION``."""
    low, high = int(np.argmin(values)), int(np.argmax(values))
    if values[high] > values[low] * (1 + MOST_LENS_MOTION):
        raise InputError(
            f"{path}: the lens was moved during the clip: {name} is {values[low]:g} in frame "
            f"{metadata.frame[low]} and {values[high]:g} in frame {metadata.frame[high]}. "
            "An experiment needs a fixed lens; cut the clip, or record it again."
        )
    return float(np.median(values))


def _footage(record: Record, folder: Path) -> Path:
    if "footage" in record.values:
        path = folder / record.text("footage")
        if not path.exists():
            raise record.fault("footage", f"{path} does not exist.")
        if path.is_dir() and not _holds_frames(path):
            raise record.fault("footage", f"{path} holds no pictures ({', '.join(PICTURES)}).")
        return path
    with reading(folder):
        entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    found = [path for path in entries if _is_footage(path)]
    if not found:
        raise InputError(
            f"{folder} has no footage: put a video or a folder of pictures there, or name it "
            f"with footage in {RECORDING}."
        )
    if len(found) > 1:
        listed = ", ".join(path.name for path in found)
        raise InputError(
            f"{folder} has several videos or folders of pictures ({listed}); name one with "
            f"footage in {RECORDING}."
        )
    return found[0]


def _is_footage(path: Path) -> bool:
    return _holds_frames(path) if path.is_dir() else path.suffix.lower() in VIDEOS


def _holds_frames(folder: Path) -> bool:
    return bool(_suffixes(folder) & {*PICTURES, ".ari", ".arx"})


def _suffixes(folder: Path) -> set[str]:
    """Endings of the files of a folder, without hidden ones."""
    with reading(folder):
        return {path.suffix.lower() for path in folder.iterdir() if not path.name.startswith(".")}


def _is_stills(record: Record, footage: Path) -> bool:
    pictures = footage.is_dir() and bool(_suffixes(footage) & set(PICTURES))
    if "stills" not in record.values:
        return pictures
    stills = record.value("stills")
    if not isinstance(stills, bool):
        raise record.fault("stills", f"must be true or false, got {stills!r}.")
    if stills and not pictures:
        raise record.fault("stills", f"is true, but {footage.name} is not a folder of pictures.")
    return stills
