"""The flashes in a night's video, with a picture of each to look at."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.compute.progress import Watch
from influx_wrap.formats.flight import OTHER_LIGHTS, OtherLight, StoredFlashes, read_other_lights
from influx_wrap.observe.flashes import FLASH_S, detect_flashes
from influx_wrap.observe.sources import open_frames
from influx_wrap.report.flashes_figure import draw_flashes

FLASHES_PNG = "flashes.png"


@dataclass(frozen=True, eq=False)
class DetectedFlight:
    """The flashes, and the lights that were not taken for one."""

    stored: StoredFlashes
    others: list[OtherLight]


def detect_flight(
    video: Path,
    out: Path,
    *,
    jobs: int,
    flash_s: float = FLASH_S,
    fps: float | None = None,
    watch: Watch,
    drawing: Callable[[], AbstractContextManager[object]],
) -> DetectedFlight:
    """Find the flashes in ``video``; write ``flashes.json``, ``other_lights.json`` and a
    contact sheet, ``flashes.png``, to ``out``.

    ``flash_s`` and ``fps`` are those of ``detect_flashes``. ``drawing`` is open
    while the contact sheet is drawn. For the main thread only.
    """
    source = open_frames(video, colour=True)
    with watch("looking for flashes") as progress:
        stored = detect_flashes(source, out, jobs=jobs, progress=progress, flash_s=flash_s, fps=fps)
    with drawing():
        pictures = source.at(stored.flashes.frames.tolist())
        draw_flashes(pictures, stored.flashes, out / FLASHES_PNG)
    return DetectedFlight(stored, read_other_lights(out / OTHER_LIGHTS))
