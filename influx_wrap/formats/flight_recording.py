"""The folder of one recorded flight: a night's video, and the drone's readings.

``recording.yaml`` (``recording_yaml``) has ``rtk``, the name of a ``flash_rtk.json``
(``flight``), in place of a board. ``truth.json`` holds the answer if the flight was simulated
(``recording_truth``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from influx_wrap.formats.flight import FLASH_RTK
from influx_wrap.formats.lens_metadata import write_lens_metadata
from influx_wrap.formats.recording_truth import FlightTruth, write_flight_truth
from influx_wrap.formats.recording_yaml import (
    METADATA,
    SHARED_KEYS,
    footage_of,
    names_of,
    read_description,
    recorded_setting,
    write_description,
)
from influx_wrap.model.lens_metadata import LensMetadata


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


def read_flight_recording(folder: Path, extracted: Path | None = None) -> FlightRecording:
    """Read ``recording.yaml`` of a flight's folder; ``extracted`` as for ``read_recording``."""
    record = read_description(folder)
    for key in ("board", "target"):
        if key in record.values:
            raise record.fault(key, "and rtk are both given; remove one of them.")
    record.check_keys(("rtk",), SHARED_KEYS)
    lfl_mm, fd_m, metadata = recorded_setting(record, folder, extracted)
    rtk = folder / record.text("rtk")
    if not rtk.is_file():
        raise record.fault("rtk", f"{rtk} does not exist; it holds the drone's readings.")
    return FlightRecording(
        folder=folder,
        footage=footage_of(record, folder),
        rtk=rtk,
        lfl_mm=lfl_mm,
        fd_m=fd_m,
        metadata=metadata,
        **names_of(record),
    )


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
    write_flight_truth(folder, truth)
    names = {"lens": lens, "camera": camera, "cell": cell, "rtk": FLASH_RTK}
    write_description(folder, names, footage)
