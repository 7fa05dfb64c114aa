"""Pictures to observations, in memory: a video, a folder of pictures, or arrays.

The same detectors as for recordings (``footage``), without any file in between.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.model.arrays import IntArray, Picture
from influx_wrap.model.looks import Looks
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import BoardTarget, PointCloud, Target
from influx_wrap.observe.detection import Detection, nothing_found
from influx_wrap.observe.detectors import detect_usable
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.held_poses import Keyframes
from influx_wrap.observe.journal import Found, Frames
from influx_wrap.observe.keyframes import choose_keyframes
from influx_wrap.observe.sources import open_frames
from influx_wrap.observe.two_looks import divide, frames_in_group, look_at_all
from influx_wrap.observe.useful import hardly_seen, not_found

Pictures: TypeAlias = str | Path | Sequence[NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Detections:
    """A target's corners in the frames of a recording.

    observations  of all frames in which the target was found; ``view_ids`` are their numbers,
                  ``view_names`` the names of their files
    counts        (F,) how many corners each frame shows
    is_stills     whether the frames are separate photographs, not a video
    ambiguous     frames that show the target more than once, which are not used
    truncated     why the recording could not be read to its end; None if it could
    unread        photographs that were not used by name, and why
    looks         what a first look says of all frames of a video, of which only candidates are
                  searched; None if all frames were
    """

    observations: Observations
    counts: IntArray
    is_stills: bool
    ambiguous: tuple[int, ...]
    truncated: str | None = None
    unread: Mapping[str, str] = field(default_factory=dict)
    looks: Looks | None = None

    def choose(self) -> tuple[Keyframes, Observations]:
        """Which frames to calibrate with, and why, and what they show."""
        return choose_keyframes(
            self.observations, len(self.counts), is_stills=self.is_stills, looks=self.looks
        )

    def keyframes(self) -> Observations:
        """What to calibrate with: one sharp frame per pose of a video, all photographs.

        Raises ``InputError`` if there is no such frame.
        """
        return self.choose()[1]


def detect(
    pictures: Pictures,
    target: Target,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
    every_frame: bool = False,
) -> Detections:
    """Find a target's corners in all pictures, or in those frames of a video that can become views.

    pictures  a video file, a folder of pictures, or arrays of one size, (H, W) or (H, W, 3) with
              blue first as OpenCV reads them, of 8 or 16 bits
    target    a board, from ``read_target``
    jobs      how many pictures are looked at at once; all cores unless given
    progress  hears how many frames of how many are done
    every_frame
              find corners in all frames of a video, which takes several times as long

    A damaged video is read up to the damage, which ``truncated`` of the answer tells. Photographs
    of a folder that are damaged, of another size or of a kind that is not read are left out, and
    named in ``unread``. Raises ``InputError`` if the target is in none of the frames, or they show
    another.

    Example:
        seen = iw.detect("clip.mov", iw.read_target("target.yaml"))
        print(seen.counts.max(), "corners in the best frame")
    """
    if isinstance(pictures, str | Path):
        source = open_frames(Path(pictures))
        is_stills = source.path.is_dir()
    else:
        source, is_stills = _Arrays(pictures), True
    return detect_frames(
        source, target, is_stills=is_stills, jobs=jobs, progress=progress, every_frame=every_frame
    )


def detect_frames(
    source: FrameSource,
    target: Target,
    *,
    is_stills: bool,
    jobs: int | None = None,
    progress: Progress | None = None,
    every_frame: bool = False,
) -> Detections:
    """As ``detect``, of a recording that is open; ``is_stills`` of separate photographs."""
    if isinstance(target, PointCloud):
        raise InputError("a point cloud cannot be seen in pictures: a board's target is needed.")
    counts, ambiguous, uv, valid, seen = [], [], [], [], []
    frames = Frames(source, 0, separate=is_stills)
    looked: list[Found] = []
    if is_stills:
        results = _looked_at(iter(frames), target, jobs or os.cpu_count() or 1)
    else:
        results = _looked_through(source, frames, target, every_frame, looked)
    for index, detection in results:
        counts.append(0 if detection is None else int(detection.found.sum()))
        if detection is None:
            ambiguous.append(index)
        elif counts[-1]:
            seen.append(index)
            valid.append(detection.found)
            uv.append(np.where(detection.found[:, None], detection.uv, 0.0))
        if progress is not None:
            progress(len(counts), source.n_frames)
    if not seen and frames.truncated is not None:
        raise frames.truncated
    unread = source.all_unread(frames.unusable)
    looks = None
    if looked:
        looks = Looks(
            np.array([one["homography"] for one in looked]),
            np.array([one["step_px"] for one in looked]),
            np.array([one["is_candidate"] for one in looked]),
        )
    if not seen:
        raise not_found(source, target, len(counts), unread)
    other = hardly_seen(source, target, np.array(counts))
    if other is not None:
        raise other
    names = tuple(map(source.name, seen))
    observations = Observations(
        target, np.array(uv), np.array(valid), source.image_size, np.array(seen), names
    )
    problem = None if frames.truncated is None else frames.truncated.problem
    return Detections(
        observations, np.array(counts), is_stills, tuple(ambiguous), problem, unread, looks
    )


def _looked_through(
    source: FrameSource,
    frames: Frames,
    target: BoardTarget,
    every_frame: bool,
    looked: list[Found],
) -> Iterator[tuple[int, Detection | None]]:
    """(index, detection) of all frames of a video; what the first look says is put into
    ``looked``."""
    in_group, size = frames_in_group(source.n_expected), source.image_size
    every = look_at_all(
        frames.lumas(), divide(source), target, size, in_group, every_frame=every_frame
    )
    for index, found in enumerate(every):
        looked.append(found)
        seen = Detection(found["uv"], found["confidence"])
        yield index, None if found["ambiguous"] else seen


def _looked_at(
    frames: Iterator[tuple[int, Picture]], target: BoardTarget, jobs: int
) -> Iterator[tuple[int, Detection | None]]:
    """(index, detection) of all frames in order, None of an ambiguous one; few are under way."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with ThreadPoolExecutor(jobs) as pool:

            def start(n: int) -> list[tuple[int, Future[Detection | None]]]:
                return [
                    (index, pool.submit(_look, target, picture))
                    for index, picture in islice(frames, n)
                ]

            waiting = start(2 * jobs)
            while waiting:
                index, future = waiting.pop(0)
                yield index, future.result()
                waiting += start(1)
    finally:
        cv2.setNumThreads(threads)


def _look(target: BoardTarget, picture: Picture) -> Detection | None:
    """As ``detect_usable``; nothing in the empty picture of a photograph that is unusable."""
    return detect_usable(target, picture) if picture.size else nothing_found(len(target.points))


class _Arrays(FrameSource):
    """Pictures that are in memory already."""

    def __init__(self, pictures: Sequence[NDArray[Any]]) -> None:
        if len(pictures) == 0:
            raise InputError("there is no picture: a list of arrays (H, W) or (H, W, 3) is needed.")
        self.path = Path("the list of pictures")
        self.n_frames = len(pictures)
        self._pictures = [self._grey(index, picture) for index, picture in enumerate(pictures)]
        height, width = self._pictures[0].shape
        self.image_size = (width, height)
        for index, picture in enumerate(self._pictures):
            self._check_size(index, (picture.shape[1], picture.shape[0]))

    def name(self, index: int) -> str:
        return f"picture {index}"

    def _grey(self, index: int, picture: NDArray[Any]) -> Picture:
        array = np.asarray(picture)
        fits = array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)
        if not fits or array.dtype not in (np.uint8, np.uint16):
            raise InputError(
                f"picture {index} has shape {array.shape} of {array.dtype}: (H, W) or (H, W, 3) of "
                "8 or 16 bits is needed."
            )
        grey: Any = array if array.ndim == 2 else cv2.cvtColor(array, cv2.COLOR_BGR2GRAY)
        return np.asarray(grey)

    def _frames(self, start: int, stop: int | None) -> Iterator[tuple[int, Picture]]:
        yield from islice(enumerate(self._pictures), start, stop)
