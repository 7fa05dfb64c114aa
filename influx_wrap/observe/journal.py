"""Work over all frames of a recording that may be stopped, and goes on where it stopped.

What is found in a frame, arrays by name and of the same shape in every frame, is kept
``CHUNK`` frames at a time in a journal: a hidden folder beside the results, with what it
was made from. Whoever starts the same work again goes on after the last chunk without a
gap; the results are written from the journal when it is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from influx_wrap import __version__
from influx_wrap.compute.processes import WorkerDied
from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.arrays import read_arrays
from influx_wrap.formats.files import (
    make_folder,
    reading,
    remove_leftovers,
    write_bytes,
    write_json,
)
from influx_wrap.formats.freshness import MADE_FROM, is_made_from
from influx_wrap.model.arrays import Picture
from influx_wrap.observe.frames import FrameSource, TruncatedInput
from influx_wrap.observe.luma import Luma

Found: TypeAlias = Mapping[str, NDArray[Any]]

CHUNK = 64
_LIBRARIES = {"numpy": "numpy", "scipy": "scipy", "opencv": "opencv-python-headless", "pyav": "av"}

SAMPLES, SAMPLE_BYTES = 64, 1 << 16
"""How many pieces of the footage its hash looks at, and how long each is."""


class Frames:
    """The frames from ``start`` on; damage ends them, and is kept for later.

    Of ``separate`` photographs it ends nothing: the picture of a damaged one is empty, (0, 0).
    """

    def __init__(self, source: FrameSource, start: int, *, separate: bool = False) -> None:
        self.start = start
        self.truncated: TruncatedInput | None = None
        self.path = source.path
        self.n_frames = source.n_frames
        self._source = source
        self.unusable: list[int] = []
        self._separate = separate

    def name(self, index: int) -> str:
        """What to call a frame in a message."""
        return self._source.name(index)

    def __iter__(self) -> Iterator[tuple[int, Picture]]:
        try:
            if not self._separate:
                yield from self._source.frames(self.start)
                return
            for index, picture in self._source.photographs(self.start):
                if picture is None:
                    self.unusable.append(index)
                yield index, np.empty((0, 0), np.uint8) if picture is None else picture
        except TruncatedInput as error:
            self.truncated = error

    def lumas(self) -> Iterator[tuple[int, Luma]]:
        """The same of a video, with pictures that are converted on request only."""
        try:
            yield from self._source.lumas(self.start)
        except TruncatedInput as error:
            self.truncated = error


class Journal:
    """Chunks on disk, in order; those made from something else are thrown away.

    ``names`` are those of the arrays that are found in a frame.
    """

    def __init__(self, folder: Path, made_from: Mapping[str, str], names: Iterable[str]) -> None:
        self.n_chunks = 0
        self.kept: set[int] = set()
        self._folder = folder
        self._made_from = dict(made_from)
        self._names = tuple(names)

    @contextmanager
    def opened(self) -> Iterator[Journal]:
        """The journal with what is usable of earlier work, for nobody else to touch."""
        make_folder(self._folder)
        with reading(self._folder):
            lock = (self._folder / "lock").open("w")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"{self._folder.parent} is in use by another detect. Wait for its end, or "
                    "choose another --out."
                ) from None
            # Of the folder of detections, too, which the journal is in.
            remove_leftovers(self._folder.parent)
            self._take_over()
            yield self

    def _take_over(self) -> None:
        description = self._folder / MADE_FROM
        if not is_made_from(description, self._made_from):
            for path in self._folder.glob("*.npz"):
                path.unlink()
            write_json(description, self._made_from)
        numbers = {int(path.stem) for path in self._folder.glob("[0-9]*.npz")}
        self.kept = {index for index in numbers if self.chunk(index) is not None}
        # A chunk that is short is the last one of a run that had come to its end.
        for index in count():
            chunk = self.chunk(index)
            if chunk is None or len(chunk[self._names[0]]) < CHUNK:
                self.n_chunks = index
                return

    def collect(
        self,
        frames: Frames,
        results: Iterable[tuple[tuple[int, Picture], Found | Exception | WorkerDied]],
        progress: Progress,
    ) -> TruncatedInput | None:
        """Keep the results of ``frames``, which may come in any order.

        Returns what is wrong with the end of the footage, if anything.
        """
        progress(frames.start, frames.n_frames)
        done: dict[int, Found] = {}
        n_done = chunk_start = frames.start
        for (index, _), found in results:
            if isinstance(found, WorkerDied):
                raise InputError(
                    f"{frames.path}, {frames.name(index)}: the process that looked at it ended "
                    f"(exit code {found.exitcode}). It may have run out of memory: run the same "
                    "command again with fewer --jobs."
                )
            if isinstance(found, Exception):
                raise found
            done[index] = found
            n_done += 1
            progress(n_done, frames.n_frames)
            chunk = range(chunk_start, chunk_start + CHUNK)
            if all(frame in done for frame in chunk):
                self._append([done.pop(frame) for frame in chunk])
                chunk_start = chunk.stop
        if done:
            self._append([done[frame] for frame in sorted(done)])
        return frames.truncated

    def _append(self, frames: list[Found]) -> None:
        stacked = {name: np.stack([found[name] for found in frames]) for name in self._names}
        self.keep(self.n_chunks, stacked)
        self.n_chunks += 1

    def keep(self, index: int, arrays: Found) -> None:
        """Keep a piece of the work, of any length; pieces may come in any order."""
        file = io.BytesIO()
        named: dict[str, Any] = dict(arrays)
        np.savez(file, **named)
        write_bytes(self._path(index), file.getvalue())
        self.kept.add(index)

    def chunks(self) -> Iterator[dict[str, NDArray[Any]]]:
        """All of them, one at a time: arrays (f, ...) of frames in a row."""
        for index in range(self.n_chunks):
            yield self.whole(index)

    def whole(self, index: int) -> dict[str, NDArray[Any]]:
        """A chunk, or piece, that was there before."""
        chunk = self.chunk(index)
        if chunk is None:
            raise InputError(f"{self._path(index)} was damaged meanwhile: run this again.")
        return chunk

    def remove(self) -> None:
        """The results are written, or there will be none."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, index: int) -> Path:
        return self._folder / f"{index:06d}.npz"

    def chunk(self, index: int) -> dict[str, NDArray[Any]] | None:
        """A chunk; None if it is not there or, after a crash of the machine, not whole."""
        arrays = read_arrays(self._path(index), self._names)
        if arrays is None or len({array.shape[:1] or None for array in arrays.values()}) != 1:
            return None
        return None if arrays[self._names[0]].ndim == 0 else arrays


@cache
def use_one_thread() -> None:
    """For workers: processes do the spreading."""
    cv2.setNumThreads(1)
    threadpool_limits(limits=1)


def footage_hash(path: Path) -> str:
    """What tells footage apart: its size and samples of its content.

    To hash all of a clip of 100 GB takes minutes, and its time of change says nothing
    once it was copied. Cameras' pictures are noisy, so that other footage differs in any
    piece: 64 of them, evenly spaced, are looked at; of a folder with one file per frame, one
    piece of every file, and the files' names.
    """
    with reading(path):
        files = [path]
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
        digest = hashlib.sha256()
        n_samples = max(1, SAMPLES // max(len(files), 1))
        for file in files:
            name = file.name if path.is_dir() else ""
            digest.update(f"{name}\0{file.stat().st_size}\0".encode())
            if file.is_file():
                _update_with_samples(digest, file, n_samples)
    return digest.hexdigest()


def _update_with_samples(digest: hashlib._Hash, file: Path, n_samples: int) -> None:
    last = max(file.stat().st_size - SAMPLE_BYTES, 0)
    starts = np.linspace(0, last, n_samples) if n_samples > 1 else np.array([last / 2])
    with file.open("rb") as stream:
        for start in np.unique(starts.astype(np.int64)).tolist():
            stream.seek(start)
            digest.update(stream.read(SAMPLE_BYTES))


def detector_versions() -> dict[str, str]:
    """Of all that could change what is found; the detectors' is a hash of their sources."""
    versions = {"influx_wrap": __version__}
    for name, package in _LIBRARIES.items():
        try:
            versions[name] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[name] = "none"
    here = Path(__file__).parent
    sources = sorted([*here.glob("*.py"), *(here.parent / "model").glob("*.py")])
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    return {**versions, "detector": digest.hexdigest()}
