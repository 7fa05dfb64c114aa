"""The target's corners in all frames of a recording.

One process reads the frames, in order, as codecs between frames want it; the others
look for corners. A picture is read when a process is free for it, so that memory does
not grow with the length, and what is found in a frame depends on that frame alone.

``CHUNK`` frames at a time are kept in a journal, a hidden folder beside the results, each
chunk with what it was made from. Whoever starts the same work again goes on after the last
chunk without a gap; the results are written from the journal when it is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from itertools import count
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from influx_wrap import __version__
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import (
    DetectionSummary,
    read_summary,
    write_detections,
)
from influx_wrap.formats.files import (
    make_folder,
    read_json,
    reading,
    remove_leftovers,
    write_bytes,
    write_json,
)
from influx_wrap.model.intrinsics import FloatArray
from influx_wrap.model.observations import MIN_POINTS_PER_VIEW
from influx_wrap.model.target import AprilGrid, Checkerboard, PointCloud, Target, is_collinear
from influx_wrap.observe import aprilgrid, checkerboard
from influx_wrap.observe.detection import AmbiguousPicture, Detection, nothing_found
from influx_wrap.observe.frames import FrameSource, Picture, TruncatedInput
from influx_wrap.workers import WorkerDied, parallel

Board = AprilGrid | Checkerboard

CHUNK = 64
JOURNAL = ".detecting"
LIBRARIES = {"numpy": "numpy", "scipy": "scipy", "opencv": "opencv-python-headless", "pyav": "av"}

SAMPLES, SAMPLE_BYTES = 64, 1 << 16
"""How many pieces of the footage its hash looks at, and how long each is."""


@dataclass(frozen=True, eq=False)
class _Seen:
    """What a worker found in a frame, ``ambiguous`` if more targets than one."""

    detection: Detection
    ambiguous: bool


def detect_footage(
    source: FrameSource,
    target: Target,
    folder: Path,
    *,
    stills: bool,
    jobs: int,
    progress: Callable[[int], None],
) -> DetectionSummary:
    """Find ``target`` in every frame of ``source`` and write its folder of detections.

    What is in ``folder`` already and made from the same is kept. Damaged footage is read
    up to the damage, and the summary says so; it is read anew the next time, as a mended
    copy may look the same to ``footage_hash``. ``progress`` hears how many frames are done.
    For the main thread only.

    Raises ``InputError`` if no frame, or hardly one, tells where the target is.
    """
    if isinstance(target, PointCloud):
        raise InputError("a point cloud cannot be seen in footage: a board's target is needed.")
    made_from = {
        **_versions(),
        "target": _hash(target),
        "footage": footage_hash(source.path),
    }
    finished = _finished(source, folder, stills, made_from)
    if finished is not None:
        progress(finished.n_frames)
        return finished
    make_folder(folder)
    with _Journal(folder / JOURNAL, made_from).opened() as journal:
        truncated = _fill(journal, source, target, jobs, progress)
        counts, ambiguous = _totals(journal)
        try:
            _check_useful(source.path, counts, ambiguous, truncated)
        except InputError:
            journal.remove()
            raise
        summary = DetectionSummary(
            footage=source.path.resolve(),
            image_size=source.image_size,
            stills=stills,
            n_points=len(target.points),
            counts=counts,
            ambiguous=ambiguous,
            truncated=None if truncated is None else truncated.problem,
            made_from=made_from,
        )
        blocks = ((chunk.uv, chunk.confidence) for chunk in journal.chunks())
        write_detections(folder, target, summary, blocks)
        journal.remove()
    return summary


def _finished(
    source: FrameSource, folder: Path, stills: bool, made_from: Mapping[str, str]
) -> DetectionSummary | None:
    """The summary in ``folder`` if it is of exactly this work, else None."""
    try:
        summary = read_summary(folder)
    except InputError:
        return None
    same = summary.footage == source.path.resolve() and summary.stills == stills
    if not same or summary.made_from != made_from or summary.truncated is not None:
        return None
    return summary


def _fill(
    journal: _Journal,
    source: FrameSource,
    target: Board,
    jobs: int,
    progress: Callable[[int], None],
) -> TruncatedInput | None:
    """Complete the journal; returns what is wrong with the end of the footage."""
    frames = _Frames(source, CHUNK * journal.n_chunks)
    progress(frames.start)
    done: dict[int, _Seen] = {}
    n_done = chunk_start = frames.start
    with closing(parallel(partial(_look, target), frames, jobs)) as results:
        for (index, _), seen in results:
            if isinstance(seen, WorkerDied):
                raise InputError(
                    f"{source.path}, frame {index}: the process that looked for corners ended "
                    f"(exit code {seen.exitcode}). It may have run out of memory: run the same "
                    "command again with fewer --jobs."
                )
            if isinstance(seen, Exception):
                raise seen
            done[index] = seen
            n_done += 1
            progress(n_done)
            chunk = range(chunk_start, chunk_start + CHUNK)
            if all(frame in done for frame in chunk):
                journal.append([done.pop(frame) for frame in chunk])
                chunk_start = chunk.stop
    if done:
        journal.append([done[frame] for frame in sorted(done)])
    return frames.truncated


class _Frames:
    """The frames from ``start`` on; damage ends them, and is kept for later."""

    def __init__(self, source: FrameSource, start: int) -> None:
        self.start = start
        self.truncated: TruncatedInput | None = None
        self._source = source

    def __iter__(self) -> Iterator[tuple[int, Picture]]:
        try:
            yield from self._source.frames(self.start)
        except TruncatedInput as error:
            self.truncated = error


def _look(target: Board, task: tuple[int, Picture]) -> _Seen | Exception:
    """What a worker does with a frame."""
    _use_one_thread()
    nothing = nothing_found(len(target.points))
    try:
        if isinstance(target, AprilGrid):
            detection = aprilgrid.detect(task[1], target)
        else:
            detection = checkerboard.detect(task[1], target)
    except AmbiguousPicture:
        return _Seen(nothing, ambiguous=True)
    except Exception as error:
        return error
    # Corners that give no pose are of no use, and readers of observations refuse them.
    found = detection.found
    useful = found.sum() >= MIN_POINTS_PER_VIEW and not is_collinear(target.points[found])
    return _Seen(detection if useful else nothing, ambiguous=False)


@cache
def _use_one_thread() -> None:
    """Processes do the spreading."""
    cv2.setNumThreads(1)
    threadpool_limits(limits=1)


def _check_useful(
    path: Path,
    counts: NDArray[np.int64],
    ambiguous: tuple[int, ...],
    truncated: TruncatedInput | None,
) -> None:
    n_seen = int((counts > 0).sum())
    if len(ambiguous) > n_seen:
        raise InputError(
            f"{path}: {len(ambiguous)} of the {len(ambiguous) + n_seen} frames with tags show the "
            f"target more than once, frame {ambiguous[0]} first: two boards, or tags of another. "
            "Cover one of them and record again."
        )
    if n_seen == 0 and truncated is not None:
        raise truncated
    if n_seen == 0:
        raise InputError(
            f"{path}: the target is in none of the {len(counts)} frames. Is it the right target, "
            "in focus, and large enough in the picture?"
        )


def _totals(journal: _Journal) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Corners of every frame (n,), and which frames were ambiguous."""
    counts, ambiguous = [], []
    for chunk in journal.chunks():
        counts.append((chunk.confidence > 0).sum(axis=1))
        ambiguous.append(chunk.ambiguous)
    if not counts:
        return np.empty(0, dtype=np.int64), ()
    return np.concatenate(counts), tuple(np.flatnonzero(np.concatenate(ambiguous)).tolist())


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Frames in a row: ``uv`` (f, T, 2), ``confidence`` (f, T), ``ambiguous`` (f,)."""

    uv: FloatArray
    confidence: FloatArray
    ambiguous: NDArray[np.bool_]


class _Journal:
    """Chunks on disk, in order; those made from something else are thrown away."""

    def __init__(self, folder: Path, made_from: Mapping[str, str]) -> None:
        self.n_chunks = 0
        self._folder = folder
        self._made_from = dict(made_from)

    @contextmanager
    def opened(self) -> Iterator[_Journal]:
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
            remove_leftovers(self._folder)
            self._take_over()
            yield self

    def _take_over(self) -> None:
        description = self._folder / "made_from.json"
        try:
            same = read_json(description).values == self._made_from
        except InputError:
            same = False
        if not same:
            for path in self._folder.glob("*.npz"):
                path.unlink()
            write_json(description, self._made_from)
        # A chunk that is short is the last one of a run that had come to its end.
        for index in count():
            chunk = self._load(index)
            if chunk is None or len(chunk.uv) < CHUNK:
                self.n_chunks = index
                return

    def append(self, frames: list[_Seen]) -> None:
        """Keep the next frames."""
        file = io.BytesIO()
        np.savez(
            file,
            uv=np.stack([seen.detection.uv for seen in frames]),
            confidence=np.stack([seen.detection.confidence for seen in frames]),
            ambiguous=np.array([seen.ambiguous for seen in frames]),
        )
        write_bytes(self._path(self.n_chunks), file.getvalue())
        self.n_chunks += 1

    def chunks(self) -> Iterator[_Chunk]:
        """All of them, one at a time."""
        for index in range(self.n_chunks):
            chunk = self._load(index)
            if chunk is None:
                raise InputError(f"{self._path(index)} was damaged meanwhile: run this again.")
            yield chunk

    def remove(self) -> None:
        """The results are written, or there will be none."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, index: int) -> Path:
        return self._folder / f"{index:06d}.npz"

    def _load(self, index: int) -> _Chunk | None:
        """A chunk; None if it is not there or, after a crash of the machine, not whole."""
        try:
            with np.load(self._path(index)) as arrays:
                return _Chunk(arrays["uv"], arrays["confidence"], arrays["ambiguous"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None


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


def _hash(target: Target) -> str:
    return hashlib.sha256(repr(target).encode()).hexdigest()


def _versions() -> dict[str, str]:
    """Of all that could change a corner; the detectors' is a hash of their sources."""
    versions = {"influx_wrap": __version__}
    for name, package in LIBRARIES.items():
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
