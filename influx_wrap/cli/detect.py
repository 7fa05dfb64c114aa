"""``influx-calib detect``: the corners of a board in footage."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from rich.markup import escape

from influx_wrap.cli.options import PATH, decoder_option, every_frame_option, jobs_option
from influx_wrap.cli.progress import RESUME, watch
from influx_wrap.cli.tables import answers
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import SUMMARY, DetectionSummary
from influx_wrap.formats.kalibr import COORDS, read_target
from influx_wrap.model.words import by_reason
from influx_wrap.observe.footage import detect_footage
from influx_wrap.observe.sources import open_frames

NAMED = 10
"""How many frames are named in a list."""


@click.command("detect")
@click.argument("footage", type=PATH, metavar="FRAMES_OR_VIDEO")
@click.option("--target", type=PATH, required=True, help="Kalibr's target.yaml.")
@click.option("--out", type=PATH, required=True, help="Folder of the detections.")
@click.option(
    "--stills/--no-stills",
    default=None,
    show_default="stills if it is a folder",
    help="Whether the pictures of a folder are separate photographs, all to be used, or the "
    "frames of a video, of which keyframes chooses.",
)
@every_frame_option
@decoder_option
@jobs_option
def command(
    footage: Path,
    target: Path,
    out: Path,
    stills: bool | None,
    every_frame: bool,
    decoder: str,
    jobs: int,
) -> None:
    """Find the corners of a board in a video or folder of pictures.

    All frames of a video are looked at, and corners are found in those that can become views:
    where the board is at rest or slow, in one frame of a few. With --every-frame they are found
    in all frames. Of separate photographs, all are searched.

    Writes coords_2d.csv, successes.csv, confidence.csv and detections_per_frame.json,
    beside a copy of the target. A run that was stopped goes on where it stopped when the
    same command is given again. If a video is damaged, the frames before the damage are
    used, and the exit code is 1. Photographs that are damaged, of another size than the
    others, or of a kind that is not read (HEIC, raw files) are named and left out.

    \b
    Example:
      influx-calib detect clip.mov --target target.yaml --out detections
    """
    board = read_target(target)
    source = open_frames(footage, decoder=decoder)
    if stills is None:
        stills = footage.is_dir()
    elif stills and not footage.is_dir():
        raise InputError(f"{footage} is a video: --stills is for a folder of pictures.")
    begun, before = time.monotonic(), []
    try:
        with watch("detecting") as progress:

            def heard(done: int, total: int | None) -> None:
                before.append(done)
                progress(done, total)

            summary = detect_footage(
                source, board, out,
                stills=stills, jobs=jobs, progress=heard, every_frame=every_frame,
            )  # fmt: skip
    except KeyboardInterrupt:
        raise KeyboardInterrupt(RESUME) from None
    answers().print(_said(summary, before[0], time.monotonic() - begun), soft_wrap=True)
    for text in by_reason(summary.unread):
        click.echo(f"Warning: {footage}: {text}.", err=True)
    written = escape(f"written: {out / SUMMARY}, {out / COORDS} and the other files")
    answers().print(written, soft_wrap=True)
    if summary.truncated is not None:
        click.echo(
            f"Warning: {footage} was readable up to frame {summary.n_frames - 1}, then "
            f"{summary.truncated}. Copy the recording again, or go on with the readable part.",
            err=True,
        )
        raise click.exceptions.Exit(1)


def _said(summary: DetectionSummary, n_before: int, seconds: float) -> str:
    """What was found; ``n_before`` frames were there already."""
    with_corners = summary.counts[summary.counts > 0]
    lines = [
        f"frames               {summary.n_frames}",
        f"with corners         {len(with_corners)}",
        f"corners, median      {np.median(with_corners):g} of {summary.n_points}",
    ]
    unread = set(summary.unread)
    without = [
        frame
        for frame in np.flatnonzero(summary.counts == 0).tolist()
        if summary.names and summary.names[frame] not in unread and frame not in summary.ambiguous
    ]
    if without:
        lines.append(f"board not found      {len(without)} ({_named(summary, without)})")
    if summary.ambiguous:
        named = _named(summary, summary.ambiguous)
        lines.append(f"with several boards  {len(summary.ambiguous)} (left out: {named})")
    if n_before:
        lines.append(f"there already        {n_before}")
    if n_before < summary.n_frames:
        lines.append(f"seconds per frame    {seconds / (summary.n_frames - n_before):.3f}")
    return "\n".join(lines)


def _named(summary: DetectionSummary, frames: Sequence[int]) -> str:
    """The first few of the frames by name, or by number if they are a video's."""
    names = summary.names or range(summary.n_frames)
    named = ", ".join(str(names[frame]) for frame in frames[:NAMED])
    return escape(named) + (", ..." if len(frames) > NAMED else "")
