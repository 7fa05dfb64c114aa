"""The target's corners in all frames of a recording.

One process reads the frames, in order, as codecs between frames want it; the others
look for corners. A picture is read when a process is free for it, so that memory does
not grow with the length, and what is found in a frame depends on that frame alone. What
was found is kept in a journal, so that a run that was stopped goes on (``journal``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from influx_wrap.compute.processes import parallel
from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import (
    DetectionSummary,
    read_summary,
    write_detections,
)
from influx_wrap.formats.files import make_folder
from influx_wrap.model.arrays import IntArray, Picture
from influx_wrap.model.observations import MIN_POINTS_PER_VIEW
from influx_wrap.model.target import (
    AprilGrid,
    BoardTarget,
    Charuco,
    Checkerboard,
    PointCloud,
    Target,
    is_collinear,
)
from influx_wrap.model.words import by_reason
from influx_wrap.observe import aprilgrid, charuco, checkerboard, circles
from influx_wrap.observe.detection import AmbiguousPicture, Detection, nothing_found
from influx_wrap.observe.explain import MIN_SHARE, SAMPLES, other_board, what_is_there
from influx_wrap.observe.frames import FrameSource, TruncatedInput
from influx_wrap.observe.journal import (
    CHUNK,
    Found,
    Frames,
    Journal,
    detector_versions,
    footage_hash,
    use_one_thread,
)

JOURNAL = ".detecting"


def detect_footage(
    source: FrameSource,
    target: Target,
    folder: Path,
    *,
    stills: bool,
    jobs: int,
    progress: Progress,
) -> DetectionSummary:
    """Find ``target`` in every frame of ``source`` and write its folder of detections.

    What is in ``folder`` already and made from the same is kept. Damaged footage is read
    up to the damage, and the summary says so; it is read anew the next time, as a mended
    copy may look the same to ``footage_hash``. Of ``stills`` a damaged one, or one of another
    size, is left out and named in the summary. For the main thread only.

    Raises ``InputError`` if no frame, or hardly one, tells where the target is.
    """
    if isinstance(target, PointCloud):
        raise InputError("a point cloud cannot be seen in footage: a board's target is needed.")
    made_from = {
        **detector_versions(),
        "target": _hash(target),
        "footage": footage_hash(source.path),
    }
    finished = _finished(source, folder, stills, made_from)
    if finished is not None:
        progress(finished.n_frames, finished.n_frames)
        return finished
    make_folder(folder)
    names = ("uv", "confidence", "ambiguous", "unusable")
    with Journal(folder / JOURNAL, made_from, names).opened() as journal:
        frames = Frames(source, CHUNK * journal.n_chunks, separate=stills)
        with closing(parallel(partial(_look, target), frames, jobs)) as results:
            truncated = journal.collect(frames, results, progress)
        counts, ambiguous, unusable = _totals(journal)
        unread = source.all_unread(unusable)
        try:
            _check_useful(source, target, counts, ambiguous, truncated, unread)
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
            unread=unread,
            names=tuple(map(source.name, range(len(counts)))) if stills else (),
            made_from=made_from,
        )
        blocks = ((chunk["uv"], chunk["confidence"]) for chunk in journal.chunks())
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


def detect_usable(target: BoardTarget, picture: Picture) -> Detection | None:
    """The target's corners in a grey picture, none if they would give no pose; None if it shows
    more targets than one."""
    nothing = nothing_found(len(target.points))
    try:
        match target:
            case AprilGrid():
                seen = aprilgrid.detect(picture, target)
            case Checkerboard():
                seen = checkerboard.detect(picture, target)
            case Charuco():
                seen = charuco.detect(picture, target)
            case _:
                seen = circles.detect(picture, target)
    except AmbiguousPicture:
        return None
    # Corners that give no pose are of no use, and readers of observations refuse them.
    found = seen.found
    usable = found.sum() >= MIN_POINTS_PER_VIEW and not is_collinear(target.points[found])
    return seen if usable else nothing


def _look(target: BoardTarget, task: tuple[int, Picture]) -> Found | Exception:
    """What a worker does with a frame; ``ambiguous`` if it shows more targets than one."""
    use_one_thread()
    nothing, is_usable = nothing_found(len(target.points)), task[1].size > 0
    try:
        detection = detect_usable(target, task[1]) if is_usable else nothing
    except Exception as error:
        return error
    seen = nothing if detection is None else detection
    return {
        "uv": seen.uv,
        "confidence": seen.confidence,
        "ambiguous": np.array(detection is None),
        "unusable": np.array(not is_usable),
    }


def _check_useful(
    source: FrameSource,
    target: BoardTarget,
    counts: IntArray,
    ambiguous: tuple[int, ...],
    truncated: TruncatedInput | None,
    unread: Mapping[str, str],
) -> None:
    path, n_seen = source.path, int((counts > 0).sum())
    if len(ambiguous) > n_seen:
        raise InputError(
            f"{path}: {len(ambiguous)} of the {len(ambiguous) + n_seen} frames with tags show the "
            f"target more than once, {source.name(ambiguous[0])} first: two boards, or tags of "
            "another. Cover one of them and record again."
        )
    if n_seen == 0 and truncated is not None:
        raise truncated
    if n_seen == 0:
        raise not_found(source, target, len(counts), unread)
    other = hardly_seen(source, target, counts)
    if other is not None:
        raise other


def hardly_seen(source: FrameSource, target: BoardTarget, counts: IntArray) -> InputError | None:
    """The error that even the best frame shows little of the target, because the frames show
    another; ``counts`` (F,) are the points seen in each frame."""
    most = int(counts.max())
    if most >= MIN_SHARE * len(target.points):
        return None
    other = other_board(list(source.samples(SAMPLES)), target)
    if other is None:
        return None
    return InputError(
        f"{source.path}: no frame shows more than {most} of the target's {len(target.points)} "
        f"points. {other}"
    )


def not_found(
    source: FrameSource, target: BoardTarget, n_frames: int, unread: Mapping[str, str]
) -> InputError:
    """The error that none of the frames shows the target: what they show instead, and which of
    them were not read."""
    there = what_is_there(list(source.samples(SAMPLES)), target)
    others = "".join(f" {text}." for text in by_reason(unread))
    return InputError(
        f"{source.path}: the target is in none of the {n_frames} frames. {there}{others}"
    )


def _totals(journal: Journal) -> tuple[IntArray, tuple[int, ...], list[int]]:
    """Corners of every frame (n,), and which frames were ambiguous and which unusable."""
    counts, ambiguous, unusable = [np.empty(0, dtype=np.int64)], [], []
    for chunk in journal.chunks():
        counts.append((chunk["confidence"] > 0).sum(axis=1))
        ambiguous += chunk["ambiguous"].tolist()
        unusable += chunk["unusable"].tolist()
    found = tuple(np.flatnonzero(ambiguous).tolist())
    return np.concatenate(counts), found, np.flatnonzero(unusable).tolist()


def _hash(target: Target) -> str:
    return hashlib.sha256(repr(target).encode()).hexdigest()
