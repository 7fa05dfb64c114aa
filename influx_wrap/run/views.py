"""The views of an experiment: chosen from a recording's detections, and shown to a person.

One frame per pose is kept of a video, all of separate photographs. Three figures tell at
a glance what was kept and what is missing: ``detections.png`` (corners over time, chosen
frames marked), ``coverage.png`` (where in the picture corners were seen) and ``contact.png``
(the chosen frames). ``keyframes.json`` has the numbers behind them; it is written last, so
where it is, everything is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import (
    DetectionSummary,
    FirstLook,
    read_first_look,
    read_summary,
)
from influx_wrap.formats.files import make_folder, read_json, write_json
from influx_wrap.formats.kalibr import (
    COORDS,
    SUCCESSES,
    TARGET,
    read_observations,
    read_target,
    write_observations,
    write_target,
)
from influx_wrap.formats.pictures import UnusablePicture, decode_picture
from influx_wrap.model.arrays import IntArray, Picture
from influx_wrap.model.observations import Observations
from influx_wrap.model.words import counted, size_text
from influx_wrap.observe.coverage import (
    CELL_COLS,
    MIN_VIEWS,
    ORIENTATIONS,
    Coverage,
    assess_coverage,
    name_parts,
)
from influx_wrap.observe.frames import FrameSource, TruncatedInput
from influx_wrap.observe.held_poses import Keyframes, Reason
from influx_wrap.observe.keyframes import choose_keyframes
from influx_wrap.observe.sources import open_frames

KEYFRAMES = "keyframes.json"
NAMED = 10
"""How many frames that are missing are named."""
FIGURES = DETECTIONS_PNG, COVERAGE_PNG, CONTACT_PNG = (
    "detections.png",
    "coverage.png",
    "contact.png",
)
LEFT_OUT = {
    Reason.FEW_CORNERS: "too few corners",
    Reason.MOVING: "board in motion",
    Reason.NOT_HELD: "beginning or end of a movement",
    Reason.SAME_POSE: "same pose as a chosen frame",
    Reason.SUPPRESSED: "close to a stronger frame",
    Reason.LIKE_CHOSEN: "much like a chosen frame",
}


@dataclass(frozen=True, eq=False)
class ChosenViews:
    """What was chosen of a recording; ``observations`` are those of the chosen frames."""

    summary: DetectionSummary
    keyframes: Keyframes
    observations: Observations
    coverage: Coverage
    first_look: FirstLook | None

    @property
    def left_out(self) -> dict[str, int]:
        """How many frames were left out, by reason."""
        found = Counter(self.keyframes.reasons.tolist())
        return {text: found[reason] for reason, text in LEFT_OUT.items() if found[reason]}


def choose_views(detections: Path) -> ChosenViews:
    """The views worth keeping of the recording in a folder of detections."""
    summary = read_summary(detections)
    seen = _read_all(detections, summary)
    if not summary.stills:
        seen = replace(seen, view_names=tuple(f"frame {i}" for i in seen.view_ids.tolist()))
    first_look = None if summary.stills else read_first_look(detections, summary.n_frames)
    looks = None if first_look is None else first_look.looks
    try:
        keyframes, chosen = choose_keyframes(
            seen, summary.n_frames, is_stills=summary.stills, looks=looks
        )
    except InputError as error:
        raise InputError(f"{detections}: {error}") from None
    coverage = assess_coverage(chosen.uv, chosen.valid, chosen.target, chosen.image_size)
    return ChosenViews(summary, keyframes, chosen, coverage, first_look)


def write_views(views: ChosenViews, footage: Path, out: Path, progress: Progress) -> str | None:
    """Write the chosen frames' observations in Kalibr's files, and show them beside these.

    Returns as ``show_views`` does.
    """
    make_folder(out)
    _forget(out)
    write_target(out / TARGET, views.observations.target)
    write_observations(out / COORDS, out / SUCCESSES, views.observations)
    return show_views(views, footage, out, progress)


def show_views(views: ChosenViews, footage: Path, out: Path, progress: Progress) -> str | None:
    """Draw the figures, and write ``keyframes.json``.

    ``footage`` is where the recording is now. Returns why there is no contact sheet, or
    what it lacks; None if all is well.
    """
    # matplotlib is slow to load
    from influx_wrap.report.keyframes_figure import draw_coverage, draw_detections

    _forget(out)
    chosen, coverage = views.observations, views.coverage
    n_points = len(chosen.target.points)
    draw_detections(_counts(views), chosen.view_ids, n_points, out / DETECTIONS_PNG)
    draw_coverage(chosen.uv, chosen.valid, chosen.image_size, coverage, out / COVERAGE_PNG)
    if views.first_look is None:
        problem = _contact_sheet(chosen, footage, out / CONTACT_PNG, progress)
    else:
        problem = _sheet_of_thumbnails(chosen, views.first_look, out / CONTACT_PNG)
    write_json(out / KEYFRAMES, _as_json(views))
    return problem


@dataclass(frozen=True, eq=False)
class ShownViews:
    """What ``show_views`` tells of the views that were chosen: see ``Coverage``, ``Keyframes``."""

    coverage: Coverage
    mode: str
    why: str


def shown_views(out: Path) -> ShownViews | None:
    """What a folder says that ``show_views`` has finished; None if anything is missing."""
    if not all((out / name).exists() for name in FIGURES):
        return None
    try:
        record = read_json(out / KEYFRAMES)
        per_orientation = record.record("views_per_orientation")
        coverage = Coverage(
            record.rows("views_per_cell", CELL_COLS).astype(np.int64),
            np.array([per_orientation.integer(name, at_least=0) for name in ORIENTATIONS]),
            tuple(str(text) for text in record.items("warnings")),
        )
        return ShownViews(coverage, record.text("mode"), record.text("why"))
    except InputError:
        return None


def missing_in_short(coverage: Coverage) -> str | None:
    """The warnings in one line, for a list of many recordings; None if nothing is missing."""
    parts = name_parts(~coverage.covered)
    tilts = [
        name.partition(" (")[0]
        for name, n in zip(ORIENTATIONS, coverage.views_per_orientation.tolist(), strict=True)
        if n < MIN_VIEWS
    ]
    missing = [f"not covered: {', '.join(parts)}"] if parts else []
    missing += [f"too few views: {', '.join(tilts)}"] if tilts else []
    return "; ".join(missing) or None


def _forget(out: Path) -> None:
    """Remove what tells of earlier views, the list that vouches for the rest first."""
    try:
        for name in (KEYFRAMES, *FIGURES):
            (out / name).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}.") from None


def _read_all(folder: Path, summary: DetectionSummary) -> Observations:
    """The observations of all frames that have any, checked against the summary."""
    target = read_target(folder / TARGET)
    observations = read_observations(
        folder / COORDS, folder / SUCCESSES, target, summary.image_size
    )
    counts = np.zeros(summary.n_frames, dtype=np.int64)
    ids = observations.view_ids
    inside = (ids >= 0) & (ids < summary.n_frames)
    counts[ids[inside]] = observations.valid[inside].sum(axis=1)
    if not inside.all() or not np.array_equal(counts, summary.counts):
        raise InputError(
            f"{folder / COORDS} and the counts beside it are not of one recording. "
            f"Remove {folder} and detect the corners again."
        )
    return observations


def _contact_sheet(
    chosen: Observations, footage: Path, path: Path, progress: Progress
) -> str | None:
    """Draw the contact sheet; returns why it could not be, or is not complete."""
    from influx_wrap.report.keyframes_figure import draw_contact_sheet  # matplotlib is slow to load

    frames = chosen.view_ids
    corners = {
        int(frame): uv[seen]
        for frame, uv, seen in zip(frames, chosen.uv, chosen.valid, strict=True)
    }
    try:
        source = open_frames(footage)
        if source.image_size != chosen.image_size:
            size, wanted = size_text(source.image_size), size_text(chosen.image_size)
            return f"none, as {footage} has {size} pixels, the detections are of {wanted}."
        names = dict(zip(frames.tolist(), chosen.view_names, strict=True))
        missing = draw_contact_sheet(_pictures(source, frames, progress), corners, names, path)
    except InputError as error:
        return f"none, as {error}"
    if not missing:
        return None
    lacking = ", ".join(names[frame] for frame in missing[:NAMED])
    more = ", ..." if len(missing) > NAMED else ""
    frames_text = counted(len(missing), "frame")
    return f"it lacks {frames_text} that cannot be read from {footage}: {lacking}{more}."


def _counts(views: ChosenViews) -> IntArray:
    """(F,) corners of all frames; of those that were only looked at, those of the frame before
    whose corners were measured."""
    counts = views.summary.counts
    if views.first_look is None:
        return counts
    looks, frames = views.first_look.looks, np.arange(len(counts))
    before = np.maximum.accumulate(np.where(looks.is_candidate, frames, 0))
    return np.where((counts == 0) & looks.is_seen, counts[before], counts)


def _sheet_of_thumbnails(chosen: Observations, first_look: FirstLook, path: Path) -> str | None:
    """Draw the contact sheet of the small pictures that a first look kept; returns why not."""
    from influx_wrap.report.keyframes_figure import draw_contact_sheet  # matplotlib is slow to load

    frames, size = chosen.view_ids.tolist(), np.array(chosen.image_size)
    known: dict[int, Picture] = {}
    for frame in frames:
        with suppress(UnusablePicture):
            known[frame] = decode_picture(first_look.thumbnails.get(frame, b""), str(frame))
    corners = {}
    for frame, uv, seen in zip(frames, chosen.uv, chosen.valid, strict=True):
        scale = size / known[frame].shape[::-1] if frame in known else np.ones(2)
        corners[frame] = (uv[seen] + 0.5) / scale - 0.5
    names = dict(zip(frames, chosen.view_names, strict=True))
    try:
        missing = draw_contact_sheet(known.items(), corners, names, path)
    except InputError as error:
        return f"none, as {error}"
    return f"it lacks {counted(len(missing), 'frame')}." if missing else None


def _pictures(
    source: FrameSource, frames: NDArray[np.int64], progress: Progress
) -> Iterator[tuple[int, Picture]]:
    """The wanted frames; a video is decoded from its beginning, pictures are opened one by one."""
    first, last = int(frames[0]), int(frames[-1])
    ranges = [(i, i + 1) for i in frames.tolist()] if source.path.is_dir() else [(first, last + 1)]
    progress(0, last + 1)
    for start, stop in ranges:
        # Damage ends a video, but only one of several pictures.
        with suppress(TruncatedInput):
            for index, picture in source.frames(start, stop):
                yield index, picture
                progress(index + 1, last + 1)


def _as_json(views: ChosenViews) -> dict[str, object]:
    """``keyframes.json``."""
    summary, keyframes, coverage = views.summary, views.keyframes, views.coverage
    return {
        "frames": keyframes.frames.tolist(),
        "names": list(views.observations.view_names),
        "corners": summary.counts[keyframes.frames].tolist(),
        "n_frames": summary.n_frames,
        "image_size": list(summary.image_size),
        "stills": summary.stills,
        "mode": keyframes.mode,
        "why": keyframes.why,
        "radius_threshold": keyframes.threshold,
        "left_out": views.left_out,
        "coverage": coverage.share,
        "views_per_cell": coverage.views_per_cell.tolist(),
        "views_per_orientation": dict(
            zip(ORIENTATIONS, coverage.views_per_orientation.tolist(), strict=True)
        ),
        "warnings": list(coverage.warnings),
    }
