"""``recording.yaml``: what the recordings of boards and of flights have in common.

It has either ``lfl_mm`` and ``fd_m``, or ``metadata``, the name of a file beside it, CSV
(``lens_metadata``) or ``.json`` (``arri``). It may name its ``footage``, a video or a folder
of pictures, which it must if there are several, and its ``lens``, ``camera`` and ``cell``; with
``trust: true`` a person vouches for it where the pictures contradict it.
What else it has tells what was filmed: a board (``recording``) or the drone
(``flight_recording``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.arri import read_art_metadata
from influx_wrap.formats.files import PICTURES, Record, dump_yaml, read_yaml, reading, write_text
from influx_wrap.formats.lens_metadata import read_lens_metadata
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.lens_metadata import LensMetadata

RECORDING, METADATA = "recording.yaml", "metadata.csv"
VIDEOS = (".mp4", ".m4v", ".mov", ".mkv", ".avi", ".mxf", ".mts", ".webm", ".ari", ".arx")
DRONE = "drone"
"""The target of an experiment that was flown."""

MOST_LENS_MOTION = 0.005
"""How far the lens may drift during an experiment, as a share of LFL or FD."""

_NAMES = ("lens", "camera", "cell")
SHARED_KEYS = ("lfl_mm", "fd_m", "metadata", "footage", "rtk", "trust", *_NAMES)


@dataclass(frozen=True)
class RecordingSetting:
    """What an experiment was recorded with; None where that is not known."""

    lfl_mm: float | None
    fd_m: float | None
    target_name: str | None
    camera: str | None
    is_trusted: bool = False


def clip_with_metadata(folder: Path) -> Path | None:
    """The clip that ``recording.yaml`` names as the source of its metadata, if it is a clip."""
    if not (folder / RECORDING).exists():
        return None
    name = read_yaml(folder / RECORDING).values.get("metadata")
    is_clip = isinstance(name, str) and Path(name).suffix.lower() in VIDEOS
    return folder / str(name) if is_clip else None


def is_flight(folder: Path) -> bool:
    """True if the folder holds the recording of a flight."""
    path = folder / RECORDING
    return path.exists() and "rtk" in read_yaml(path).values


def read_setting(folder: Path) -> RecordingSetting:
    """What ``recording.yaml`` tells even if something else of the recording is amiss."""
    try:
        record = read_yaml(folder / RECORDING)
    except InputError:
        return RecordingSetting(None, None, None, None)
    lfl_mm = fd_m = target_name = camera = None
    with suppress(InputError):
        lfl_mm, fd_m, _ = recorded_setting(record, folder)
    with suppress(InputError):
        if "rtk" in record.values:
            target_name = DRONE
        else:
            target_name = record.text("target" if "target" in record.values else "board")
    with suppress(InputError):
        camera = record.text("camera")
    is_trusted = record.values.get("trust") is True
    return RecordingSetting(lfl_mm, fd_m, target_name, camera, is_trusted)


def write_description(folder: Path, names: Mapping[str, str], footage: str) -> None:
    """Write ``recording.yaml`` of a folder with ``metadata.csv`` and its footage."""
    values = {**names, "metadata": METADATA, "footage": footage}
    write_text(folder / RECORDING, dump_yaml(values))


def read_description(folder: Path) -> Record:
    """What ``recording.yaml`` of a folder says, as it is."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; a recording is a folder of files.")
    record = read_yaml(folder / RECORDING)
    record.flag("trust")
    return record


def names_of(record: Record) -> dict[str, str | None]:
    """Lens, camera and cell, None where there is no name."""
    return {name: record.text(name) if name in record.values else None for name in _NAMES}


def has_either(record: Record, one: str, other: str) -> bool:
    """True if the record has ``one``, False if it has ``other``; it must have one of them."""
    has_one, has_other = one in record.values, other in record.values
    if has_one and has_other:
        raise record.fault(one, f"and {other} are both given; remove one of them.")
    if not has_one and not has_other:
        raise record.fault(one, f"is missing; give {one} or {other}.")
    return has_one


def recorded_setting(
    record: Record, folder: Path, extracted: Path | None = None
) -> tuple[float, float, Path | None]:
    """LFL in mm, FD in m, and the file they are from."""
    if has_either(record, "metadata", "lfl_mm"):
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


def footage_of(record: Record, folder: Path) -> Path:
    """The video or folder of frames: the one that is named, or else the only one."""
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
    return bool(suffixes(folder) & {*PICTURES, ".ari", ".arx"})


def suffixes(folder: Path) -> set[str]:
    """Endings of the files of a folder, without hidden ones."""
    with reading(folder):
        return {path.suffix.lower() for path in folder.iterdir() if not path.name.startswith(".")}
