"""The folder of one recorded experiment: footage of a board, and what the lens was set to.

``recording.yaml`` (``recording_yaml``) has either ``board``, a board of the catalogue, or
``target``, the name of a Kalibr ``target.yaml``; with ``stills: false`` it says that a folder
of pictures is a video's frames, of which some are to be chosen. ``truth.json`` holds the
answer if the recording was simulated (``recording_truth``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.formats.files import PICTURES, Record
from influx_wrap.formats.kalibr import read_target
from influx_wrap.formats.lens_metadata import write_lens_metadata
from influx_wrap.formats.recording_truth import RecordingTruth, write_recording_truth
from influx_wrap.formats.recording_yaml import (
    METADATA,
    SHARED_KEYS,
    footage_of,
    has_either,
    names_of,
    read_description,
    recorded_setting,
    suffixes,
    write_description,
)
from influx_wrap.model.hardware import Board
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.target import PointCloud, Target


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


def read_recording(
    folder: Path, boards: Mapping[str, Board], extracted: Path | None = None
) -> Recording:
    """Read ``recording.yaml`` of a folder and what it names.

    ``boards`` are those known; ``extracted`` is where the metadata of ``clip_with_metadata``
    were written to.
    """
    record = read_description(folder)
    if "rtk" in record.values:
        raise record.fault("rtk", "makes this the recording of a flight; a board's has none.")
    record.check_keys((), (*SHARED_KEYS, "board", "target", "stills"))
    target, target_name = _target(record, folder, boards)
    lfl_mm, fd_m, metadata = recorded_setting(record, folder, extracted)
    footage = footage_of(record, folder)
    return Recording(
        folder=folder,
        footage=footage,
        is_stills=_is_stills(record, footage),
        lfl_mm=lfl_mm,
        fd_m=fd_m,
        target=target,
        target_name=target_name,
        metadata=metadata,
        **names_of(record),
    )


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
    write_recording_truth(folder, truth)
    names = {"lens": lens, "camera": camera, "cell": cell, "board": board}
    write_description(folder, names, footage)


def _target(record: Record, folder: Path, boards: Mapping[str, Board]) -> tuple[Target, str]:
    if has_either(record, "target", "board"):
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


def _is_stills(record: Record, footage: Path) -> bool:
    pictures = footage.is_dir() and bool(suffixes(footage) & set(PICTURES))
    if "stills" not in record.values:
        return pictures
    stills = record.flag("stills")
    if stills and not pictures:
        raise record.fault("stills", f"is true, but {footage.name} is not a folder of pictures.")
    return stills
