"""``influx-calib keyframes``: the views to calibrate with out of a recording's detections."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.markup import escape

from influx_wrap.cli.options import PATH
from influx_wrap.cli.progress import watch
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.observe.coverage import ORIENTATIONS
from influx_wrap.run.views import CONTACT_PNG, ChosenViews, choose_views, write_views


@click.command("keyframes")
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--out", type=PATH, show_default="DIR/keyframes", help="Where the chosen views go.")
@click.option(
    "--footage", type=PATH, metavar="PATH", help="The recording, if it is not where it was."
)
def command(folder: Path, out: Path | None, footage: Path | None) -> None:
    """Choose the frames to calibrate with from the detections in DIR.

    DIR is what influx-calib detect has written. One sharp frame is chosen for each pose in
    which the board was held. If it was moved without pause, 20 to 50 frames are chosen in
    which it is slow and which differ in place, size and tilt. Separate photographs are all
    kept, unless they show too little of the board. The chosen frames' observations come out
    in Kalibr's files, beside a plot of all detections, a contact sheet, and what is missing:
    parts of the picture and tilts of the board.

    \b
    Example:
      influx-calib detect clip.mov --target target.yaml --out detections
      influx-calib keyframes detections
    """
    out = folder / "keyframes" if out is None else out
    if out.resolve() == folder.resolve():
        raise InputError(f"--out {out} holds the detections themselves. Choose another folder.")
    errors = Console(stderr=True)
    with errors.status(f"reading {folder}"):
        views = choose_views(folder)
    with watch("contact sheet", errors) as progress:
        no_sheet = write_views(views, footage or views.summary.footage, out, progress)
    console = answers()
    console.print(_report(views), soft_wrap=True)
    if no_sheet:
        advice = "" if (out / CONTACT_PNG).exists() else " Give the recording with --footage."
        console.print(f"[yellow]contact sheet:[/] {escape(no_sheet + advice)}", soft_wrap=True)
    print_written(out)


def _report(views: ChosenViews) -> str:
    """What was chosen, what was not, and what is missing."""
    coverage = views.coverage
    counts = views.observations.valid.sum(axis=1)
    tilts = ", ".join(
        f"{n} {name.partition(' (')[0]}"
        for name, n in zip(ORIENTATIONS, coverage.views_per_orientation.tolist(), strict=True)
    )
    lines = [
        f"{len(counts)} of {views.summary.n_frames} frames chosen, with {counts.min()} to "
        f"{counts.max()} corners (median {np.median(counts):.0f})",
        views.keyframes.why,
        *(f"  {n} left out: {reason}" for reason, n in views.left_out.items()),
        f"picture: {100 * coverage.share:.0f} % covered",
        f"board: {tilts}",
        *(f"[yellow]warning:[/] {escape(text)}" for text in coverage.warnings),
    ]
    return "\n".join(lines)
