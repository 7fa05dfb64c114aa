"""The target's corners in the frames of a recording.

All frames of a video are looked at, and those that can become views are searched exactly, stretch
by stretch (``two_looks``). A stretch is decoded by the process that looks at it, so that no picture
goes from one process to another. A video that can only be read from its beginning is decoded by
all cores and looked at by one. Separate photographs are all searched: one process reads them, the
others look for corners.

What was found is kept in a journal, so that a run that was stopped goes on (``journal``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from influx_wrap.compute.processes import WorkerDied, parallel
from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import (
    DetectionSummary,
    FirstLook,
    read_summary,
    write_detections,
)
from influx_wrap.formats.files import make_folder
from influx_wrap.model.arrays import IntArray, Picture
from influx_wrap.model.looks import Looks
from influx_wrap.model.target import BoardTarget, PointCloud, Target
from influx_wrap.observe.detection import nothing_found
from influx_wrap.observe.detectors import detect_usable
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
from influx_wrap.observe.luma import Luma
from influx_wrap.observe.stretches import SeenStretch, Stretch, look_at, look_at_stretch
from influx_wrap.observe.two_looks import bounds, divide, frames_in_group
from influx_wrap.observe.useful import check_useful

JOURNAL = ".detecting"
OF_PHOTOGRAPHS = "uv", "confidence", "ambiguous", "unusable"
OF_STRETCHES = (
    "homography", "step_px", "is_candidate", "uv", "confidence", "ambiguous", "thumbnail",
)  # fmt: skip


def detect_footage(
    source: FrameSource,
    target: Target,
    folder: Path,
    *,
    stills: bool,
    jobs: int,
    progress: Progress,
    every_frame: bool = False,
) -> DetectionSummary:
    """Find ``target`` in the frames of ``source`` and write its folder of detections.

    Of a video corners are measured in the frames that can become views; with ``every_frame`` in
    all. What is in ``folder`` already and made from the same is kept. Damaged footage is read up
    to the damage, and the summary says so; it is read anew the next time, as a mended copy may
    look the same to ``footage_hash``. Of ``stills`` a damaged one, or one of another size, is left
    out and named in the summary. For the main thread only.

    Raises ``InputError`` if no frame, or hardly one, tells where the target is.
    """
    board = _checked(target)
    if not stills:
        with open_search(source, board, folder, every_frame=every_frame) as search:
            progress(search.n_done, source.n_frames)
            for stretch, result in search.results(jobs):
                search.take(stretch, result)
                progress(search.n_done, source.n_frames)
            return search.finish()
    made_from = _made_from(source, board)
    finished = _finished(source, folder, stills, made_from)
    if finished is not None:
        progress(finished.n_frames, finished.n_frames)
        return finished
    make_folder(folder)
    with Journal(folder / JOURNAL, made_from, OF_PHOTOGRAPHS).opened() as journal:
        return _photographs(source, board, folder, journal, made_from, jobs, progress)


@contextmanager
def open_search(
    source: FrameSource, target: Target, folder: Path, *, every_frame: bool
) -> Iterator[VideoSearch]:
    """The search of a video, with what an earlier one left in ``folder``, for nobody else."""
    board = _checked(target)
    made_from = {
        **_made_from(source, board),
        "frames": "all" if every_frame else "candidates",
    }
    finished = _finished(source, folder, stills=False, made_from=made_from)
    if finished is not None:
        yield VideoSearch(source, board, folder, None, made_from, finished)
        return
    make_folder(folder)
    with Journal(folder / JOURNAL, made_from, OF_STRETCHES).opened() as journal:
        yield VideoSearch(source, board, folder, journal, made_from, None)


def _checked(target: Target) -> BoardTarget:
    if isinstance(target, PointCloud):
        raise InputError("a point cloud cannot be seen in footage: a board's target is needed.")
    return target


def _made_from(source: FrameSource, target: BoardTarget) -> dict[str, str]:
    return {
        **detector_versions(),
        "target": _hash(target),
        "footage": footage_hash(source.path),
        **({} if source.decoder is None else {"decoder": source.decoder}),
    }


class VideoSearch:
    """The search of one video, stretch by stretch, in any order, by anybody."""

    def __init__(
        self,
        source: FrameSource,
        target: BoardTarget,
        folder: Path,
        journal: Journal | None,
        made_from: Mapping[str, str],
        finished: DetectionSummary | None,
    ) -> None:
        self.source = source
        self._target, self._folder, self._made_from = target, folder, made_from
        self._kept, self._finished = journal, finished
        self._divided = divide(source) if finished is None else None
        self._in_group = frames_in_group(source.n_expected)
        self._frames_of = {} if journal is None else self._frames_kept(journal)
        self._damaged: tuple[int, SeenStretch] | None = None

    @property
    def is_divisible(self) -> bool:
        """Whether there are stretches that can be reached one without the other."""
        return self._divided is not None

    @property
    def is_finished(self) -> bool:
        """Whether the folder of detections has been written before."""
        return self._finished is not None

    @property
    def n_done(self) -> int:
        """How many frames were looked at."""
        if self._finished is not None:
            return self._finished.n_frames
        return sum(self._frames_of.values())

    @property
    def _journal(self) -> Journal:
        assert self._kept is not None
        return self._kept

    def stretches(self) -> Iterator[Stretch]:
        """Those that are still to be looked at, up to damage that was met meanwhile."""
        source = self.source.for_one_core()
        for index, (start, stop) in enumerate(self._divided or ()):
            if self._damaged is not None and index > self._damaged[0]:
                return
            if index not in self._frames_of:
                yield self._stretch(index, start, stop, source)

    def results(self, jobs: int) -> Iterator[tuple[Stretch, SeenStretch | Exception | WorkerDied]]:
        """What is found in all that are still to be looked at, by so many processes if they can
        divide the work."""
        if jobs == 1 or not self.is_divisible:
            yield from self.in_one_go()
            return
        with closing(parallel(look_at_stretch, self.stretches(), jobs)) as results:
            yield from results

    def in_one_go(self) -> Iterator[tuple[Stretch, SeenStretch]]:
        """All that are still to be looked at, one after the other, here; decoded by all cores."""
        frames: Iterator[tuple[int, Luma]] | None = None
        if self._finished is not None:
            return
        for index, (start, stop) in enumerate(bounds(self._divided)):
            if index in self._frames_of:
                frames = None
                continue
            if frames is None:
                frames = self.source.lumas(start)
            stretch = self._stretch(index, start, stop, self.source)
            some = frames if stop is None else islice(frames, stop - start)
            seen = look_at(stretch, some)
            if seen.n_frames or seen.damage:
                yield stretch, seen
            if seen.damage or stop is None or seen.n_frames < stop - start:
                return

    def take(self, stretch: Stretch, result: SeenStretch | Exception | WorkerDied) -> None:
        """What somebody found in a stretch."""
        if isinstance(result, WorkerDied):
            raise InputError(
                f"{self.source.path}, from frame {stretch.start} on: the process that looked at "
                f"it ended (exit code {result.exitcode}). It may have run out of memory: run the "
                "same command again with fewer --jobs."
            )
        if isinstance(result, Exception):
            raise result
        if result.damage is None:
            self._journal.keep(stretch.index, result.found)
            self._frames_of[stretch.index] = result.n_frames
        elif self._damaged is None or stretch.index < self._damaged[0]:
            self._damaged = stretch.index, result

    def finish(self) -> DetectionSummary:
        """Write the folder of detections."""
        if self._finished is not None:
            return self._finished
        damage = None if self._damaged is None else self._damaged[1].damage
        truncated = None if damage is None else TruncatedInput(self.source.path, *damage)
        found = [
            {name: piece[name] for name in ("homography", "step_px", "is_candidate", "ambiguous")}
            | {"counts": (piece["confidence"] > 0).sum(axis=1)}
            for piece in self._pieces()
        ]
        joined = {name: np.concatenate([piece[name] for piece in found]) for name in found[0]}
        looks = Looks(joined["homography"], joined["step_px"], joined["is_candidate"])
        counts, source = joined["counts"], self.source
        ambiguous = tuple(np.flatnonzero(joined["ambiguous"]).tolist())
        try:
            n_seen = int((looks.is_seen | (counts > 0)).sum())
            check_useful(
                source, self._target, counts, n_seen, ambiguous, truncated, source.all_unread(())
            )
        except InputError:
            self._journal.remove()
            raise
        summary = DetectionSummary(
            footage=source.path.resolve(),
            image_size=source.image_size,
            stills=False,
            n_points=len(self._target.points),
            counts=counts,
            ambiguous=ambiguous,
            truncated=None if truncated is None else truncated.problem,
            made_from=self._made_from,
            unread=source.all_unread(()),
        )
        blocks = ((piece["uv"], piece["confidence"]) for piece in self._pieces())
        thumbnails = (thumbnail for piece in self._pieces() for thumbnail in _thumbnails(piece))
        first_look = FirstLook(looks, dict(zip(looks.candidates, thumbnails, strict=True)))
        write_detections(self._folder, self._target, summary, blocks, first_look)
        self._journal.remove()
        return summary

    def _stretch(self, index: int, start: int, stop: int | None, source: FrameSource) -> Stretch:
        every_frame = self._made_from["frames"] == "all"
        return Stretch(index, start, stop, source, self._target, self._in_group, every_frame)

    def _frames_kept(self, journal: Journal) -> dict[int, int]:
        """How many frames each stretch has that is in the journal and whole."""
        kept: dict[int, int] = {}
        most = max(journal.kept, default=-1) + 1
        for index, (start, stop) in enumerate(islice(bounds(self._divided), most)):
            if index in journal.kept:
                n_frames = len(journal.whole(index)["step_px"])
                if stop is None or n_frames == stop - start:
                    kept[index] = n_frames
        return kept

    def _pieces(self) -> Iterator[Found]:
        """What was found, stretch by stretch, up to the damage."""
        n_whole = len(self._frames_of) if self._damaged is None else self._damaged[0]
        for index in range(n_whole):
            yield self._journal.whole(index)
        if self._damaged is not None:
            yield self._damaged[1].found


def _thumbnails(piece: Found) -> Iterator[bytes]:
    """Of the candidates of a stretch, in order. A JPEG does not end with a zero."""
    for row in piece["thumbnail"][piece["is_candidate"]]:
        yield row.tobytes().rstrip(b"\0")


def _photographs(
    source: FrameSource,
    target: BoardTarget,
    folder: Path,
    journal: Journal,
    made_from: Mapping[str, str],
    jobs: int,
    progress: Progress,
) -> DetectionSummary:
    """All of them, each for itself."""
    frames = Frames(source, CHUNK * journal.n_chunks, separate=True)
    with closing(parallel(partial(_look, target), frames, jobs)) as results:
        truncated = journal.collect(frames, results, progress)
    counts, ambiguous, unusable = _totals(journal)
    unread = source.all_unread(unusable)
    try:
        n_seen = int((counts > 0).sum())
        check_useful(source, target, counts, n_seen, ambiguous, truncated, unread)
    except InputError:
        journal.remove()
        raise
    summary = DetectionSummary(
        footage=source.path.resolve(),
        image_size=source.image_size,
        stills=True,
        n_points=len(target.points),
        counts=counts,
        ambiguous=ambiguous,
        truncated=None if truncated is None else truncated.problem,
        unread=unread,
        names=tuple(map(source.name, range(len(counts)))),
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
