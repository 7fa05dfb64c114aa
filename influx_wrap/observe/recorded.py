"""What is settled of a recording before anything is looked for in its footage."""

from __future__ import annotations

from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import make_folder
from influx_wrap.formats.flight_recording import FlightRecording
from influx_wrap.formats.lens_metadata import read_reported_rig
from influx_wrap.formats.recording import Recording
from influx_wrap.formats.recording_yaml import clip_with_metadata
from influx_wrap.model.experiment import Plan
from influx_wrap.model.rig import DeviceName, compare_rig
from influx_wrap.observe.arriraw import export_metadata
from influx_wrap.observe.frames import FrameSource

LENS_METADATA = "lens_metadata.json"


def extracted_metadata(folder: Path, out: Path) -> Path | None:
    """Where the metadata are that had to be taken out of a clip; None if there is no need."""
    clip = clip_with_metadata(folder)
    if clip is None:
        return None
    path = out / LENS_METADATA
    if not path.exists():
        make_folder(out)
        export_metadata(clip, path)
    return path


def check_rig(recording: Recording | FlightRecording, source: FrameSource, plan: Plan) -> None:
    """Refuse a recording with another lens or camera than those of ``plan``."""
    lens, camera = plan.lens.name, plan.camera
    if recording.lens not in (None, lens):
        raise InputError(f"this is a recording with lens {recording.lens}, not with {lens}.")
    if recording.camera not in (None, camera.name):
        raise InputError(
            f"this is a recording with camera {recording.camera}, not with {camera.name}; "
            "name it with --camera."
        )
    if source.image_size != camera.image_size:
        sizes = ["{} x {}".format(*size) for size in (source.image_size, camera.image_size)]
        raise InputError(
            f"{source.path} has frames of {sizes[0]} pixels, camera {camera.name} of {sizes[1]}. "
            "Name the camera that recorded it with --camera, or describe it in a catalogue."
        )
    if recording.metadata is not None:
        _check_metadata(recording.metadata, plan)


def _check_metadata(path: Path, plan: Plan) -> None:
    """Refuse metadata that are of another lens or camera than those of ``plan``."""
    lens = DeviceName(plan.lens.name, plan.lens.metadata_model)
    camera = DeviceName(plan.camera.name, plan.camera.metadata_model)
    size = plan.camera.image_size
    compared = compare_rig(read_reported_rig(path), lens, camera, size, owner="the run")
    if compared.contradictions:
        raise InputError(
            f"{path} is not of the run's lens and camera: {'; '.join(compared.contradictions)}. "
            "Name the lens and --camera that it was filmed with, or, if you know better, write "
            "lfl_mm and fd_m into recording.yaml in place of metadata."
        )
