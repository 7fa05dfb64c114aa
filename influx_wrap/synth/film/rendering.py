"""Frames rendered by any number of processes, into a video or as stills.

A frame depends on nothing but its number and what is filmed, so frames are made in any order,
and those on disk need not be made again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.compute.processes import WorkerDied, parallel
from influx_wrap.errors import InputError
from influx_wrap.formats.files import make_folder, write_bytes
from influx_wrap.formats.video import write_video
from influx_wrap.synth.motion import FPS


class Rendering(ABC):
    """Frames about to be rendered."""

    @property
    @abstractmethod
    def codec(self) -> str | None:
        """Of the video; None for stills."""

    @property
    @abstractmethod
    def n_frames(self) -> int:
        """How many frames there are to render."""

    @property
    def can_render_here(self) -> bool:
        """False if the renderer needs a process of its own."""
        return True

    def of_frame(self, frame: int) -> Rendering:
        """What is needed of all this to render one frame, to be sent to a worker."""
        return self

    @abstractmethod
    def picture(self, frame: int) -> NDArray[np.uint8]:
        """Render a frame; ``of_frame`` suffices."""


def shoot_video(
    one: Rendering, path: Path, codec: str, processes: int, done: Callable[[int], None]
) -> None:
    """Render all frames into a video; ``done`` hears how many more there are."""
    tasks = [_Shot(one, frame, None) for frame in range(one.n_frames)]
    write_video(path, _shots(tasks, processes, done), FPS, codec)


def shoot_stills(one: Rendering, folder: Path, processes: int, done: Callable[[int], None]) -> None:
    """Render all frames that ``folder`` lacks, as PNG; ``done`` hears how many more there are."""
    make_folder(folder)
    shots = [_Shot(one, k, folder / f"{k:06d}.png") for k in range(one.n_frames)]
    missing = [shot for shot in shots if shot.path is not None and not shot.path.exists()]
    done(len(shots) - len(missing))
    for _ in _shots(missing, processes, done):
        pass


@dataclass(frozen=True, eq=False)
class _Shot:
    """One frame of a film; written to ``path``, or handed back if that is None."""

    film: Rendering
    frame: int
    path: Path | None


def _shots(
    tasks: Sequence[_Shot], processes: int, done: Callable[[int], None]
) -> Iterator[NDArray[np.uint8]]:
    """The pictures of the tasks that have no path, in the order of the tasks."""
    ahead: dict[int, NDArray[np.uint8]] = {}
    waiting = iter([task.frame for task in tasks])
    expected = next(waiting, None)
    slim = [replace(task, film=task.film.of_frame(task.frame)) for task in tasks]
    # One process needs no other: to start it takes longer than a small picture.
    here = processes == 1 and all(task.film.can_render_here for task in tasks)
    alone = ((task, _shoot(task)) for task in slim)
    with closing(alone if here else parallel(_shoot, slim, processes)) as finished:
        for task, picture in finished:
            if isinstance(picture, WorkerDied):
                raise InputError(
                    f"the process that rendered frame {task.frame} ended (exit code "
                    f"{picture.exitcode}); if memory ran out, use fewer --jobs."
                )
            if isinstance(picture, InputError):
                raise picture
            done(1)
            if picture is None:
                continue
            ahead[task.frame] = picture
            while expected in ahead:
                yield ahead.pop(expected)
                expected = next(waiting, None)


def _shoot(task: _Shot) -> NDArray[np.uint8] | InputError | None:
    """What a worker does with a frame."""
    try:
        picture = task.film.picture(task.frame)
        if task.path is None:
            return picture
        # Noise does not compress: more effort would cost time and save nothing.
        _, data = cv2.imencode(".png", picture, [cv2.IMWRITE_PNG_COMPRESSION, 1])
        write_bytes(task.path, data.tobytes())
    except InputError as error:
        return error
    return None
