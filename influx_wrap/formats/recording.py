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
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.arri import read_art_metadata
from influx_wrap.formats.files import Record, dump_yaml, read_json, read_yaml, reading, write_text
from influx_wrap.formats.kalibr import read_target
from influx_wrap.formats.lens_metadata import (
    LensMetadata,
    read_lens_metadata,
    write_lens_metadata,
)
from influx_wrap.model.hardware import Board
from influx_wrap.model.intrinsics import NAMES, FloatArray, Intrinsics
from influx_wrap.model.target import PointCloud, Target, bow_basis
from influx_wrap.model.truth import Noise, Truth

RECORDING, METADATA, TRUTH = "recording.yaml", "metadata.csv", "truth.json"
PICTURES = (".tif", ".tiff", ".png", ".jpg", ".jpeg")
VIDEOS = (".mp4", ".m4v", ".mov", ".mkv", ".avi", ".mxf", ".mts", ".webm", ".ari", ".arx")
PIXEL_ORIGIN = "center"

MOST_LENS_MOTION = 0.005
"""How far the lens may drift during an experiment, as a share of LFL or FD."""


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
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; a recording is a folder of files.")
    record = read_yaml(folder / RECORDING)
    names = ("lens", "camera", "cell")
    record.check_keys(
        (), ("lfl_mm", "fd_m", "metadata", "board", "target", "footage", "stills", *names)
    )
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
        **{name: record.text(name) if name in record.values else None for name in names},
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
    description = {
        "lens": lens,
        "camera": camera,
        "cell": cell,
        "board": board,
        "metadata": METADATA,
        "footage": footage,
    }
    write_text(folder / RECORDING, dump_yaml(description))


def read_recording_truth(folder: Path) -> RecordingTruth | None:
    """The answer to a simulated recording; None if it is a real one."""
    path = folder / TRUTH
    if not path.exists():
        return None
    record = read_json(path)
    frames = ("rotations", "translations", "pose")
    record.check_keys(("pixel_origin", "intrinsics", "bow_m", *frames))
    if record.text("pixel_origin") != PIXEL_ORIGIN:
        raise record.fault(
            "pixel_origin", f"must be {PIXEL_ORIGIN}: pixel (0, 0) is a pixel's centre."
        )
    intrinsics = record.record("intrinsics")
    intrinsics.check_keys(NAMES)
    rotations, translations = record.rows("rotations", 9), record.rows("translations", 3)
    pose, bow_m = np.array(record.numbers("pose"), dtype=np.int64), record.numbers("bow_m")
    for key, found in (("rotations", rotations), ("translations", translations)):
        if len(found) != len(pose):
            raise record.fault(key, f"has {len(found)} frames, pose has {len(pose)}.")
    if len(bow_m) != 3:
        raise record.fault("bow_m", f"must have 3 numbers, got {len(bow_m)}.")
    return RecordingTruth(
        Intrinsics(*(intrinsics.number(name) for name in NAMES)),
        rotations.reshape(-1, 3, 3),
        translations,
        pose,
        np.array(bow_m),
    )


def _truth_as_json(truth: RecordingTruth) -> str:
    values = {
        "pixel_origin": PIXEL_ORIGIN,
        "intrinsics": truth.intrinsics.as_dict(),
        "bow_m": truth.bow_m.tolist(),
        "pose": truth.pose.tolist(),
        "rotations": truth.rotations.reshape(-1, 9).tolist(),
        "translations": truth.translations.tolist(),
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


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
