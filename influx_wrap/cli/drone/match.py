"""``influx-calib drone match``: flashes and positions become an experiment."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from rich.markup import escape

from influx_wrap.cli.options import PATH, catalogue_option, count_option, number
from influx_wrap.cli.progress import watch
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.flight.match import MIN_PAIRS, MatchedFlight
from influx_wrap.flight.pipeline import (
    MatchRequest,
    ObservedFlight,
    match_folder,
)
from influx_wrap.flight.review import REVIEW_PAGE
from influx_wrap.formats.catalogue import CAMERA
from influx_wrap.formats.pairs import REVIEW


@click.command("match")
@click.argument("folder", metavar="FLIGHT", type=PATH)
@click.option("--review", is_flag=True, help=f"Write {REVIEW_PAGE}, to decide with.")
@click.option(
    "--accept",
    is_flag=True,
    help="Take what is proposed, unless it is ambiguous; leave out what a review has undecided.",
)
@click.option("--lens", help="Lens, if recording.yaml does not say so.")
@click.option("--camera", show_default=CAMERA, help="Camera, by its name in the catalogue.")
@click.option("--lfl-mm", type=number(above=0), help="Lens focal length.")
@click.option("--fd-m", type=number(above=0, infinite=True), help="Focus distance, inf allowed.")
@click.option(
    "--clock-offset-s",
    type=number(),
    help="What the positions' clock shows at the video's first frame, to half a second.",
)
@count_option("--min-pairs", MIN_PAIRS, "Fewer are not calibrated with.", at_least=8)
@click.option("--footage", type=PATH, metavar="PATH", help="The video, if it is not where it was.")
@click.option(
    "--out",
    type=PATH,
    show_default="FLIGHT; FLIGHT/experiment if it has a recording.yaml",
    help="Folder of the experiment.",
)
@catalogue_option
def command(
    catalogue: Path | None,
    folder: Path,
    review: bool,
    accept: bool,
    lens: str | None,
    camera: str | None,
    lfl_mm: float | None,
    fd_m: float | None,
    clock_offset_s: float | None,
    min_pairs: int,
    footage: Path | None,
    out: Path | None,
) -> None:
    """Match the flashes of a flight with the drone's positions, and make an experiment.

    FLIGHT has flashes.json (influx-calib drone detect) and flash_rtk.json (drone trigger).
    Where flashes and positions do not all belong together, or a light is not where the
    camera should see it, the exit code is 2: pairs.csv has the proposal, and a person decides,
    with --accept, or with --review and then the same command again, which takes review.csv.

    \b
    Example:
      influx-calib drone match flight --lens canon17 --lfl-mm 17 --fd-m 13.5
      influx-calib drone match flight --review
    """
    request = MatchRequest(
        folder,
        catalogue=catalogue,
        out=out,
        lens=lens,
        camera=camera,
        lfl_mm=lfl_mm,
        fd_m=fd_m,
        footage=footage,
        clock_offset_s=clock_offset_s,
        min_pairs=min_pairs,
        accept=accept,
        review=review,
    )
    outcome = match_folder(
        request, advice=partial(_advice, review=review), settled=_print_match, watch=watch
    )
    if outcome.refusal is not None:
        print_written(*outcome.written)
        raise InputError(outcome.refusal)
    if outcome.experiment is None:
        answers().print(
            "No experiment was written: the lens's setting is not known. Give --lens, --lfl-mm "
            "and --fd-m.",
            soft_wrap=True,
        )
    print_written(*outcome.written)


def _print_match(flight: ObservedFlight) -> None:
    answers().print(_report(flight.matched, flight.stored.truncated), soft_wrap=True)


def _report(matched: MatchedFlight, truncated: str | None) -> str:
    counts = f"{len(matched.flashes.frames)} flashes, {len(matched.readings.ids)} readings"
    lines = [f"match    {counts}: {len(matched.usable)} pairs, {matched.verdict}"]
    if matched.clock is not None:
        lines.append(
            f"clock    {matched.clock.offset_s:.3f} s at the first frame, drift "
            f"{1e6 * matched.clock.drift:+.0f} ppm, pairs agree to "
            f"{1e3 * matched.time_rms_s:.0f} ms rms"
        )
    if matched.rms_px is not None:
        lines.append(f"camera   a first fit sees them within {matched.rms_px:.2f} px rms")
    for offset_s, n, rms_px in matched.rivals:
        rms = "no camera fits" if rms_px is None else f"{rms_px:.2f} px rms"
        lines.append(f"or       {n} pairs with a clock offset of {offset_s:.2f} s, {rms}")
    if truncated is not None:
        lines.append(f"[yellow]warning:[/] the video was not readable to its end: {truncated}")
    lines += [f"[yellow]doubt:[/] {escape(text)}" for text in matched.doubts]
    return "\n".join(lines)


def _advice(matched: MatchedFlight, *, review: bool) -> str:
    """What a person who is asked can do."""
    if review:
        return f"Open {REVIEW_PAGE}, save {REVIEW} beside it, and give this command again."
    if matched.verdict == "reviewed":
        return f"Write use or leave in {REVIEW}, by hand or with --review, or give --accept."
    if matched.verdict == "ambiguous":
        return "Choose with --clock-offset-s, or decide with --review."
    return f"Decide with --review, or take the {len(matched.usable)} pairs with --accept."
