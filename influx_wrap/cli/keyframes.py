"""``influx-calib keyframes``: one view per pose out of a recording's detections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from influx_wrap.cli.options import PATH
from influx_wrap.cli.tables import answers
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import (
    COORDS,
    SUCCESSES,
    TARGET,
    DetectionSummary,
    read_summary,
)
from influx_wrap.formats.files import make_folder, write_json
from influx_wrap.formats.kalibr import (
    read_observations,
    read_target,
    write_observations,
    write_target,
)
from influx_wrap.model.observations import Observations
from influx_wrap.observe.coverage import ORIENTATIONS, Coverage, assess_coverage
from influx_wrap.observe.frames import FrameSource, Picture, TruncatedInput, open_frames
from influx_wrap.observe.keyframes import (
    Keyframes,
    Reason,
    keep_stills,
    least_corners,
    select_held_poses,
)
from influx_wrap.report.keyframes_figure import (
    draw_contact_sheet,
    draw_coverage,
    draw_detections,
)

KEYFRAMES = "keyframes.json"
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
}


@click.command("keyframes")
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--out", type=PATH, show_default="DIR/keyframes", help="Where the chosen views go.")
@click.option(
    "--footage", type=PATH, metavar="PATH", help="The recording, if it is not where it was."
)
def command(folder: Path, out: Path | None, footage: Path | None) -> None:
    """Choose one sharp frame per pose from the detections in DIR.

    DIR is what influx-calib detect has written. The chosen frames' observations come out
    in Kalibr's files, beside a plot of all detections, a contact sheet, and what is
    missing: parts of the picture and tilts of the board. Separate photographs are all kept,
    unless they show too little of the board.

    \b
    Example:
      influx-calib detect clip.mov --target target.yaml --out detections
      influx-calib keyframes detections
    """
    summary = read_summary(folder)
    out = folder / "keyframes" if out is None else out
    if out.resolve() == folder.resolve():
        raise InputError(f"--out {out} holds the detections themselves. Choose another folder.")
    errors = Console(stderr=True)
    with errors.status(f"reading {folder}"):
        observations = _read_all(folder, summary)
        keyframes = _choose(folder, summary, observations)
        views = np.searchsorted(observations.view_ids, keyframes.frames)
        chosen = Observations(
            observations.target,
            observations.uv[views],
            observations.valid[views],
            observations.image_size,
            keyframes.frames,
        )
        coverage = assess_coverage(chosen.uv, chosen.valid, chosen.target, chosen.image_size)
    make_folder(out)
    # The list comes last: where it is, everything is.
    for name in (KEYFRAMES, *FIGURES):
        (out / name).unlink(missing_ok=True)
    write_target(out / TARGET, chosen.target)
    write_observations(out / COORDS, out / SUCCESSES, chosen)
    n_points = len(chosen.target.points)
    draw_detections(summary.counts, keyframes.frames, n_points, out / DETECTIONS_PNG)
    draw_coverage(chosen.uv, chosen.valid, chosen.image_size, coverage, out / COVERAGE_PNG)
    no_sheet = _contact_sheet(summary, footage or summary.footage, chosen, out / CONTACT_PNG)
    write_json(out / KEYFRAMES, _as_json(summary, keyframes, coverage))
    console = answers()
    console.print(_report(summary, keyframes, coverage), soft_wrap=True)
    if no_sheet:
        console.print(f"[yellow]contact sheet:[/] {escape(no_sheet)}", soft_wrap=True)
    console.print(f"written: {escape(str(out))}", soft_wrap=True)


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
            "Run influx-calib detect again."
        )
    return observations


def _choose(folder: Path, summary: DetectionSummary, observations: Observations) -> Keyframes:
    choose = keep_stills if summary.stills else select_held_poses
    keyframes = choose(observations, summary.n_frames)
    if len(keyframes.frames) == 0:
        least, most = least_corners(observations.target), int(summary.counts.max())
        why = (
            f"none of them has the {least} corners needed, the best has {most}"
            if most < least
            else "the board is never held still for three frames"
        )
        raise InputError(
            f"{folder}: no keyframe in {summary.n_frames} frames: {why}. Record again, moving the "
            "board from pose to pose and holding it for half a second in each."
        )
    return keyframes


def _contact_sheet(
    summary: DetectionSummary, footage: Path, chosen: Observations, path: Path
) -> str | None:
    """Draw the contact sheet; returns why it could not be, or is not complete."""
    frames = chosen.view_ids
    corners = {
        int(frame): uv[seen]
        for frame, uv, seen in zip(frames, chosen.uv, chosen.valid, strict=True)
    }
    try:
        source = open_frames(footage)
        if source.image_size != summary.image_size:
            size, wanted = ("{} x {}".format(*s) for s in (source.image_size, summary.image_size))
            return f"none, as {footage} has {size} pixels, the detections are of {wanted}."
        missing = draw_contact_sheet(_pictures(source, frames), corners, path)
    except InputError as error:
        return f"none, as {error} Give the recording with --footage."
    if not missing:
        return None
    frames_missing = "1 frame" if len(missing) == 1 else f"{len(missing)} frames"
    return f"it lacks {frames_missing} that cannot be read from {footage}."


def _pictures(source: FrameSource, frames: NDArray[np.int64]) -> Iterator[tuple[int, Picture]]:
    """The wanted frames; a video is decoded from its beginning, pictures are opened one by one."""
    errors = Console(stderr=True)
    first, last = int(frames[0]), int(frames[-1])
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("contact sheet", total=last + 1)
        ranges = (
            [(i, i + 1) for i in frames.tolist()] if source.path.is_dir() else [(first, last + 1)]
        )
        for start, stop in ranges:
            # Damage ends a video, but only one of several pictures.
            with suppress(TruncatedInput):
                for index, picture in source.frames(start, stop):
                    yield index, picture
                    progress.update(task, completed=index + 1)


def _as_json(
    summary: DetectionSummary, keyframes: Keyframes, coverage: Coverage
) -> dict[str, object]:
    """``keyframes.json``."""
    return {
        "frames": keyframes.frames.tolist(),
        "corners": summary.counts[keyframes.frames].tolist(),
        "n_frames": summary.n_frames,
        "image_size": list(summary.image_size),
        "stills": summary.stills,
        "radius_threshold": keyframes.threshold,
        "left_out": _left_out(keyframes),
        "coverage": coverage.share,
        "views_per_cell": coverage.views_per_cell.tolist(),
        "views_per_orientation": dict(
            zip(ORIENTATIONS, coverage.views_per_orientation.tolist(), strict=True)
        ),
        "warnings": list(coverage.warnings),
    }


def _left_out(keyframes: Keyframes) -> dict[str, int]:
    """How many frames were left out, by reason."""
    found = Counter(keyframes.reasons.tolist())
    return {text: found[reason] for reason, text in LEFT_OUT.items() if found[reason]}


def _report(summary: DetectionSummary, keyframes: Keyframes, coverage: Coverage) -> str:
    """What was chosen, what was not, and what is missing."""
    counts = summary.counts[keyframes.frames]
    tilts = ", ".join(
        f"{n} {name.partition(' (')[0]}"
        for name, n in zip(ORIENTATIONS, coverage.views_per_orientation.tolist(), strict=True)
    )
    lines = [
        f"{len(counts)} of {summary.n_frames} frames chosen, with {counts.min()} to {counts.max()} "
        f"corners (median {np.median(counts):.0f})",
        *(f"  {n} left out: {reason}" for reason, n in _left_out(keyframes).items()),
        f"picture: {100 * coverage.share:.0f} % covered",
        f"board: {tilts}",
        *(f"[yellow]warning:[/] {escape(text)}" for text in coverage.warnings),
    ]
    return "\n".join(lines)
