"""``influx-calib annotate``: intrinsics of every frame of a clip."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from influx_wrap.annotate.clip import AnnotatedClip
from influx_wrap.annotate.delay import MOST_DELAY
from influx_wrap.annotate.files import annotate, length_of
from influx_wrap.annotate.gaps import FrameRange, Jump, count_frames
from influx_wrap.annotate.preview import MOST_WIDTH_PX, Preview, plan_preview, write_preview
from influx_wrap.cli.options import PATH, catalogue_option, choice_option, weighing_option
from influx_wrap.cli.progress import spinner, watch
from influx_wrap.cli.tables import answers
from influx_wrap.errors import InputError
from influx_wrap.formats.files import check_writable
from influx_wrap.formats.lens_metadata import FORMATS
from influx_wrap.formats.lut import read_table
from influx_wrap.lut.schemes import DEFAULT, SCHEMES
from influx_wrap.model.words import counted, size_text
from influx_wrap.observe.sources import open_frames

MOST_LISTED = 20
"""Faults of a kind that are listed before the rest is only counted."""
MOST_FILLED = 1000
LEAST_PREVIEW_PX = 160
"""Text of a narrower preview cannot be read."""


def _list_formats(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the table of formats, if it is wanted, and end."""
    if not wanted or context.resilient_parsing:
        return
    table = Table("of", "file", "tells", box=None, pad_edge=False)
    for kind in FORMATS:
        table.add_row(kind.name, escape(kind.file), escape(kind.tells))
    answers().print(table)
    context.exit()


@click.command("annotate")
@click.argument("metadata", type=PATH)
@click.option("--lut", type=PATH, required=True, help="The lens's table.")
@click.option("--out", type=PATH, required=True, help="File for the intrinsics of all frames.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(("influx", "csv")),
    show_default="csv for a file .csv, else influx",
    help="InFlux's ground-truth JSON, or CSV with sigmas.",
)
@choice_option("--scheme", SCHEMES, DEFAULT, "How to interpolate.")
@weighing_option
@click.option(
    "--fill-gaps",
    type=click.IntRange(min=0, max=MOST_FILLED),
    default=0,
    show_default="none",
    metavar="N",
    help="Interpolate the metadata of at most N missing frames in a row.",
)
@click.option(
    "--any-lens",
    is_flag=True,
    help="Go on although the metadata are of another lens, camera or size; the output says so.",
)
@click.option(
    "--delay",
    "delay_frames",
    type=click.FloatRange(-MOST_DELAY, MOST_DELAY),
    default=0,
    show_default="none",
    metavar="FRAMES",
    help="The metadata lag by so many frames behind the pictures; 1.5 lies between two frames.",
)
@click.option(
    "--video", type=PATH, help="The clip: its length and rate are compared; for --preview."
)
@click.option(
    "--preview",
    type=PATH,
    help="Video to write, .mp4 or .mkv (lossless): the clip with its annotation drawn.",
)
@click.option(
    "--preview-width",
    type=click.IntRange(min=LEAST_PREVIEW_PX),
    show_default=f"at most {MOST_WIDTH_PX}",
    metavar="PX",
    help="Width of the preview, which is never larger than the clip.",
)
@click.option(
    "--list-formats",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_formats,
    help="List the files that METADATA may be, and exit.",
)
@catalogue_option
def command(
    catalogue: Path | None,
    metadata: Path,
    lut: Path,
    out: Path,
    kind: str | None,
    scheme: str,
    by_covariance: bool | None,
    fill_gaps: int,
    any_lens: bool,
    delay_frames: float,
    video: Path | None,
    preview: Path | None,
    preview_width: int | None,
) -> None:
    """Intrinsics of every frame of a clip from its lens METADATA.

    METADATA is what the tools of ARRI, Sony, RED, Canon or Blackmagic write, OpenTrackIO samples
    (a file or a folder), what exiftool -j tells of photographs, InFlux's per_frame_metadata.json,
    or a table with the columns frame,lfl_mm,fd_m; --list-formats lists them all.

    Frames beyond the table in focus distance are extrapolated and marked so; frames with a focal
    length outside the table, or without metadata, are null. Gaps, dropouts and impossible jumps of
    the metadata are reported, and mended only by --fill-gaps. Metadata that name another lens or
    camera than the table, or another size of the pictures, are refused.

    --preview writes the clip's video with the numbers of every frame, and with a grid that is
    straight in an undistorted picture: straight edges of the scene must bend as its lines do.

    \b
    Example:
      influx-calib annotate clip.json --lut lut.json --out gt.json
      influx-calib annotate clip.csv --lut lut.json --out gt.csv --fill-gaps 3 --delay 2
      influx-calib annotate clip.csv --lut lut.json --out gt.json --video clip.mov --preview p.mp4
    """
    _check_paths((metadata, lut, video), out, preview)
    if preview is None:
        if preview_width is not None:
            raise InputError("--preview-width is for --preview only: give both or leave it out.")
    elif video is None:
        raise InputError("--preview needs the clip to draw on: give it by --video.")
    as_csv = (kind or ("csv" if out.suffix.lower() == ".csv" else "influx")) == "csv"
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    planned = None
    with spinner(f"annotating {metadata.name}", errors):
        table = read_table(lut)
        if preview is not None and video is not None:
            width_px = preview_width or MOST_WIDTH_PX
            planned = plan_preview(video, preview, table.image_size, width_px)
        source = planned.source if planned is not None else None
        if source is None and video is not None:
            source = open_frames(video)
        clip = annotate(
            metadata,
            table,
            scheme=scheme,
            by_covariance=by_covariance,
            fill_gaps=fill_gaps,
            delay_frames=delay_frames,
            with_sigma=as_csv or planned is not None,
            any_lens=any_lens,
            catalogue=catalogue,
            pictures=None if source is None else length_of(source),
        )
        clip.write(out, as_csv=as_csv)
    for text in clip.notes:
        errors.print(f"note: {escape(text)}")
    for text in _warnings(clip):
        errors.print(f"[yellow]warning:[/] {escape(text)}")
    answers().print(_summary(clip), f"written: {escape(str(out))}", sep="\n", soft_wrap=True)
    if planned is not None:
        _write_preview(planned, clip, errors)


def _check_paths(read: Sequence[Path | None], out: Path, preview: Path | None) -> None:
    """Refuse names under which nothing can be written, or something that is read is lost."""
    taken = [path.resolve() for path in read if path is not None]
    for option, path in (("--out", out), ("--preview", preview)):
        if path is None:
            continue
        if path.resolve() in taken:
            raise InputError(f"{option} {path} would replace what is read. Choose another name.")
        check_writable(path)
    if preview is not None and preview.resolve() == out.resolve():
        raise InputError(f"--preview {preview} is --out as well. Choose another name.")


def _write_preview(planned: Preview, clip: AnnotatedClip, errors: Console) -> None:
    """Write the preview, and say what it lacks."""
    for text in planned.remarks:
        errors.print(f"note: {escape(text)}")
    with watch("preview", errors) as progress:
        done = write_preview(planned, clip, progress)
    kinds = (
        (done.without_numbers, "of the video after the last that the metadata list"),
        (done.without_picture, "of the metadata that the video does not have"),
    )
    texts = [f"{_frames(ranges)} {words}." for ranges, words in kinds if ranges]
    if done.truncated is not None:
        texts.insert(0, f"the preview is of the readable part: {done.truncated}")
    for text in texts:
        errors.print(f"[yellow]warning:[/] {escape(text)}")
    shape = f"{counted(done.n_frames, 'frame')}, {size_text(planned.image_size)}"
    answers().print(f"written: {escape(str(planned.path))} ({shape})", soft_wrap=True)


def _summary(clip: AnnotatedClip) -> str:
    truth = clip.truth
    total, answered = len(truth.answered), int(truth.answered.sum())
    inside = int(truth.is_interpolated.sum())
    return (
        f"{counted(total, 'frame')}: {inside} interpolated, {answered - inside} extrapolated, "
        f"{total - answered} without an answer"
    )


def _warnings(clip: AnnotatedClip) -> list[str]:
    kinds = (
        (clip.faults.gaps, "not listed in the metadata"),
        (clip.faults.dropouts, "without LFL or FD"),
        (clip.filled, "filled from their neighbours"),
        (clip.lfl_outside, "with an LFL outside the table, left without an answer"),
        (clip.unusable, "focused nearer than their LFL allows, left without an answer"),
    )
    texts = [f"{_frames(ranges)} {words}." for ranges, words in kinds if ranges]
    if clip.truth.filmed_with is not None:
        texts += [f"{text}; annotated all the same." for text in clip.truth.filmed_with.doubts]
    jumps = clip.faults.jumps
    texts += map(_jump, jumps[:MOST_LISTED])
    if len(jumps) > MOST_LISTED:
        texts.append(f"and {len(jumps) - MOST_LISTED} more such jumps.")
    return texts


def _frames(ranges: Sequence[FrameRange]) -> str:
    """``4 frames (7, 10-12)``."""
    listed = [str(a) if a == b else f"{a}-{b}" for a, b in ranges[:MOST_LISTED]]
    if len(ranges) > MOST_LISTED:
        listed.append(f"and {len(ranges) - MOST_LISTED} more ranges")
    return f"{counted(count_frames(ranges), 'frame')} ({', '.join(listed)})"


def _jump(jump: Jump) -> str:
    unit = "mm" if jump.quantity == "LFL" else "m"
    return (
        f"{jump.quantity} jumps from {jump.values[0]:g} to {jump.values[1]:g} {unit} between "
        f"frames {jump.frames[0]} and {jump.frames[1]}, faster than a lens can."
    )
