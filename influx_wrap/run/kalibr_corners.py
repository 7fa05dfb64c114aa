"""The corners of a board in a bag or in pictures: what ``kalibr_detect_corners`` does."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.compute.progress import Watch
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import PER_FRAME, DetectionSummary
from influx_wrap.formats.files import check_writable, make_folder, writing
from influx_wrap.formats.kalibr import COORDS, SUCCESSES, read_target
from influx_wrap.model.target import Target
from influx_wrap.model.words import by_reason
from influx_wrap.observe.bags import BagFrames, Excerpt
from influx_wrap.observe.footage import detect_footage
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.sources import open_frames

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KalibrPictures:
    """Where the pictures are, and which of them count.

    topic    of a bag; None for a folder of pictures
    from_to  of a bag the seconds, from its first picture on; of a folder the numbers from the
             first up to before the last
    freq_hz  at most so many pictures of a bag
    """

    path: Path
    topic: str | None = None
    from_to: tuple[float, float] | None = None
    freq_hz: float | None = None

    def open(self) -> FrameSource:
        """The frames."""
        if self.topic is not None:
            return BagFrames(self.path, self.topic, from_to_s=self.from_to, freq_hz=self.freq_hz)
        source = open_frames(self.path)
        if self.from_to is None:
            return source
        first, end = self.from_to
        if not (first.is_integer() and end.is_integer()):
            raise InputError(f"--from-to {first:g} {end:g}: pictures are counted in whole numbers.")
        return Excerpt(source, int(first), int(end))


def detect_corners(
    target: Path,
    pictures: KalibrPictures,
    folder: Path,
    coords: Path,
    successes: Path,
    watch: Watch,
) -> tuple[DetectionSummary, tuple[Path, ...]]:
    """Find the corners in all pictures and write them; returns the files written, too.

    ``coords`` and ``successes`` are names of files, in ``folder`` if they have no folder of
    their own.
    """
    board = read_target(target)
    make_folder(folder)
    outputs = {
        COORDS: _placed(folder, coords),
        SUCCESSES: _placed(folder, successes),
        PER_FRAME: folder / PER_FRAME,
    }
    if len(set(outputs.values())) < len(outputs):
        raise InputError("--detection-coords and --detection-successes need names of their own.")
    for path in outputs.values():
        check_writable(path)
    source = pictures.open()
    # What is found stays beside the output until all of it is there.
    with tempfile.TemporaryDirectory(prefix=".detecting.", dir=folder) as unfinished:
        summary = detect_all(source, board, Path(unfinished), watch)
        for name, path in outputs.items():
            _move(Path(unfinished) / name, path)
    return summary, tuple(outputs.values())


def detect_all(source: FrameSource, target: Target, folder: Path, watch: Watch) -> DetectionSummary:
    """The target in every frame, into ``folder``; a recording that ends early is refused."""
    with watch("detecting") as progress:
        summary = detect_footage(
            source, target, folder, stills=True, jobs=os.cpu_count() or 1, progress=progress
        )
    if summary.truncated is not None:
        raise InputError(
            f"{source.path} is readable up to frame {summary.n_frames - 1}, then "
            f"{summary.truncated}: copy it again, or cut the readable part out."
        )
    for text in by_reason(summary.unread):
        log.warning("%s: %s.", source.path, text)
    return summary


def _placed(folder: Path, path: Path) -> Path:
    return folder / path if path.parent == Path() else path


def _move(source: Path, path: Path) -> None:
    """Move a file, also to another disk."""
    if source.stat().st_dev == path.parent.stat().st_dev:
        os.replace(source, path)
        return
    with writing(path) as file, source.open("rb") as finished:
        shutil.copyfileobj(finished, file)
