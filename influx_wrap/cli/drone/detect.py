"""``influx-calib drone detect``: the LED's flashes in a night's video."""

from __future__ import annotations

from pathlib import Path

import click
from rich import box
from rich.markup import escape
from rich.table import Table

from influx_wrap.cli.options import PATH, jobs_option, number_option
from influx_wrap.cli.progress import RESUME, spinner, watch
from influx_wrap.cli.tables import answers
from influx_wrap.flight.pipeline import FLASHES_PNG, detect_flight
from influx_wrap.formats.flight import FLASHES, OTHER_LIGHTS, OtherLight
from influx_wrap.model.flashes import Flashes
from influx_wrap.observe.flashes import FLASH_S

NAMED = 10
"""How many other lights are named."""


@click.command("detect")
@click.argument("video", type=PATH)
@click.option("--out", type=PATH, required=True, help="Folder of the flight.")
@number_option("--flash-s", FLASH_S, "How long the LED is on.", above=0, metavar="SECONDS")
@number_option(
    "--fps",
    None,
    "Frames per second; needed for a folder of pictures.",
    above=0,
    shown="what the video says",
)
@jobs_option
def command(video: Path, out: Path, flash_s: float, fps: float | None, jobs: int) -> None:
    """Find the flashes of the drone's LED in VIDEO, a colour video or folder of pictures.

    Writes flashes.json with the first frame of each flash and the LED's centre in it,
    flashes.png to look at them, and other_lights.json with what was not taken for a
    flash. A run that was stopped goes on where it stopped when the same command is given
    again. If the video is damaged, the frames before the damage are used, and the exit
    code is 1.

    \b
    Example:
      influx-calib drone detect night.mp4 --out flight
    """
    try:
        found = detect_flight(
            video,
            out,
            jobs=jobs,
            flash_s=flash_s,
            fps=fps,
            watch=watch,
            drawing=lambda: spinner("drawing the contact sheet"),
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(RESUME) from None
    stored, console = found.stored, answers()
    console.print(_table(stored.flashes))
    for line in _other_lights(found.others):
        console.print(line, soft_wrap=True)
    n = len(stored.flashes.frames)
    console.print(f"{n} flash{'es' * (n != 1)} in {stored.flashes.n_frames} frames")
    names = " and ".join(escape(str(out / name)) for name in (FLASHES, FLASHES_PNG))
    console.print(f"written: {names}", soft_wrap=True)
    if stored.truncated is not None:
        click.echo(
            f"Warning: {video} was readable up to frame {stored.flashes.n_frames - 1}, then "
            f"{stored.truncated}. Copy the recording again, or go on with the readable part.",
            err=True,
        )
        raise click.exceptions.Exit(1)


def _table(flashes: Flashes) -> Table:
    table = Table(box=box.HORIZONTALS, show_edge=False)
    for name in ("flash", "frame", "time s", "u px", "v px", "size px", "frames", "rule"):
        table.add_column(name, justify="right", no_wrap=True)
    for index, (u, v) in enumerate(flashes.uv.tolist()):
        major, minor = flashes.radii_px[index].tolist()
        frame, last = int(flashes.frames[index]), int(flashes.last_frames[index])
        table.add_row(
            str(index),
            str(frame),
            f"{flashes.time_s[index]:.3f}",
            f"{u:.2f}",
            f"{v:.2f}",
            f"{major:.0f} x {minor:.0f}",
            str(last - frame + 1),
            str(int(flashes.rule[index])),
        )
    return table


def _other_lights(lights: list[OtherLight]) -> list[str]:
    """Lines that name them, the first ones at least."""
    lines = [
        f"other light: frames {one.frame} to {one.last_frame} at ({one.uv[0]:.0f}, "
        f"{one.uv[1]:.0f}) {one.reason}"
        for one in lights[:NAMED]
    ]
    if len(lights) > NAMED:
        lines.append(f"and {len(lights) - NAMED} other lights more, in {OTHER_LIGHTS}")
    return lines
