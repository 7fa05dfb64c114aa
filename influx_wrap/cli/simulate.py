"""``influx-calib simulate``: experiments whose answer is known."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path

import click
from rich.console import Console

from influx_wrap.cli.options import (
    PATH,
    catalogue_option,
    cells_option,
    choice_option,
    count_option,
    jobs_option,
    lens_argument,
    number_option,
    plan_option,
    seed_option,
)
from influx_wrap.cli.progress import watch
from influx_wrap.cli.simulate_clip import (
    check_clip_options,
    clip_options,
    given,
    lens_options,
    option_name,
    simulate_clip,
)
from influx_wrap.cli.tables import answers
from influx_wrap.errors import InputError, install_line
from influx_wrap.formats.catalogue import CAMERA
from influx_wrap.formats.video import SUFFIXES
from influx_wrap.model.truth import Noise
from influx_wrap.model.words import counted
from influx_wrap.plan import select_cells
from influx_wrap.run.plan import plan_by_name
from influx_wrap.synth.film.board import BoardFootage
from influx_wrap.synth.film.clip import ClipOptions
from influx_wrap.synth.film.night import NightFootage
from influx_wrap.synth.film.simulate import PreparedCells, prepare_cells
from influx_wrap.synth.film.simulation import SETTINGS
from influx_wrap.synth.flight import FlightOptions
from influx_wrap.synth.lens import FD_JITTER, LensOptions
from influx_wrap.synth.night import NightOptions
from influx_wrap.synth.render import RenderOptions

NOISE, NIGHT, FLIGHT = Noise(), NightOptions(), FlightOptions()

# What a detector does wrong, which pictures leave to the detector; and what only they have.
DETECTOR_OPTIONS = ("noise_px", "outliers", "missing_tags")
PICTURE_OPTIONS = (
    "views", "blur_px", "defocus_px", "image_noise", "vignetting", "renderer", "jobs",
)  # fmt: skip
VIDEO_OPTIONS = ("codec", "core_px", "halo_px", "scatter", "lights", "hover_s", "miss", "extra")


@click.command("simulate")
@lens_argument
@click.option(
    "--out", type=PATH, required=True, help="Folder, one sub-folder per cell; or a clip's own."
)
@plan_option
@cells_option
@number_option(
    "--noise-px",
    NOISE.corner_px,
    "Standard deviation of each corner coordinate, in pixels.",
    at_least=0,
)
@number_option(
    "--outliers",
    NOISE.outliers,
    f"Share of corners displaced by up to {NOISE.outlier_px:g} px, from 0 to 1.",
    at_least=0,
)
@number_option(
    "--missing-tags",
    NOISE.missing_tags,
    "Share of the visible tags that are not found, from 0 to 1.",
    at_least=0,
)
@number_option("--bow-mm", NOISE.bow_mm, "Sag of the board's middle, in mm.", at_least=0)
@number_option(
    "--rtk-ball-m",
    NOISE.rtk_ball_m,
    "Greatest error of a drone's position, in metres.",
    at_least=0,
)
@lens_options
@number_option(
    "--fd-jitter",
    FD_JITTER,
    "Relative standard deviation of the focus distances from the planned ones.",
    at_least=0,
)
@click.option("--images", is_flag=True, help="Render a picture of every pose of a board.")
@click.option(
    "--video",
    is_flag=True,
    help="Render a video of a board moved from pose to pose, or of the drone's flight at night.",
)
@count_option(
    "--views",
    None,
    "How many poses of a board to render, spread over tilts and positions.",
    at_least=1,
    shown="all",
)
@number_option(
    "--blur-px", 0.7, "Standard deviation of the lens's blur in a picture, in pixels.", at_least=0
)
@number_option(
    "--defocus-px", 0.0, "Radius of the disc that defocus makes of a point, in pixels.", at_least=0
)
@number_option(
    "--image-noise",
    2.0,
    "Standard deviation of a pixel's noise, in grey levels of 255.",
    at_least=0,
)
@number_option(
    "--vignetting",
    0.0,
    "Share of the light that is lost in the picture's corners, from 0 to 1.",
    at_least=0,
)
@choice_option(
    "--renderer", ("fast", "blender"), "fast", "Our own, or Blender's Cycles for --images."
)
@choice_option("--codec", tuple(SUFFIXES), "h264", "Of the video; ffv1 is lossless.")
@number_option(
    "--core-px",
    NIGHT.core_px,
    "Diameter of the white core of the drone's LED, in pixels; 0: it is red only.",
    at_least=0,
)
@number_option(
    "--halo-px", NIGHT.halo_px, "Diameter of the red halo around it, in pixels.", at_least=1
)
@number_option(
    "--scatter",
    NIGHT.scatter,
    "Light of the glow beside the LED, as a share of what the sensor can take.",
    at_least=0,
)
@click.option(
    "--lights/--no-lights",
    default=NIGHT.lights,
    show_default=True,
    help="Street lamps, a red light and an aeroplane beside the LED.",
)
@number_option(
    "--hover-s",
    FLIGHT.hover_s,
    "Seconds for which the drone hovers at a point, and about as long to the next.",
    at_least=0,
)
@count_option(
    "--miss", FLIGHT.missed, "Flashes that were read but are not in the video.", at_least=0
)
@count_option("--extra", FLIGHT.extra, "Flashes in the video that were not read.", at_least=0)
@clip_options
@jobs_option
@seed_option
@catalogue_option
@click.pass_context
def command(
    context: click.Context,
    catalogue: Path | None,
    lens: str,
    camera: str,
    out: Path,
    plan_file: Path | None,
    cells: str,
    noise_px: float,
    outliers: float,
    missing_tags: float,
    bow_mm: float,
    rtk_ball_m: float,
    lens_model: str | None,
    breathing: float | None,
    fd_jitter: float,
    pp_offset_px: tuple[float, float] | None,
    images: bool,
    video: bool,
    views: int | None,
    blur_px: float,
    defocus_px: float,
    image_noise: float,
    vignetting: float,
    renderer: str,
    codec: str,
    core_px: float,
    halo_px: float,
    scatter: float,
    lights: bool,
    hover_s: float,
    miss: int,
    extra: int,
    clip: bool,
    n_frames: int,
    motion: str,
    size: tuple[int, int] | None,
    jobs: int,
    seed: int,
) -> None:
    """Simulate experiments of LENS: what a real one would give, plus the truth.

    That is what a detector reports; or with --images or --video the footage of a board, for
    a detector to find it in. Cells of the drone become its flight at night, with --video.
    With --clip it is one video of a textured room in which the camera walks and the lens zooms
    or focuses, with the intrinsics of every frame, for methods that predict them.
    Rendering that was stopped goes on where it stopped when the same command is given again.

    \b
    Example:
      influx-calib simulate canon17 --out sim --cells z3f2,z0f9 --outliers 0.02
      influx-calib simulate canon17 --out film --cells z3f2 --video --views 30
      influx-calib simulate canon17 --out night --cells z0f9 --video --halo-px 60 --miss 1
      influx-calib simulate canon17 --out zoom --clip --size 1712x1102 --motion zoom
    """
    check_clip_options(context)
    options = LensOptions(lens_model, breathing, pp_offset_px)
    if clip:
        simulate_clip(
            plan_by_name(lens, camera, catalogue),
            out,
            ClipOptions(n_frames, motion, codec, image_noise, vignetting),
            size,
            options,
            jobs,
            seed,
        )
        return
    _check_combination(context, images=images, video=video)
    plan = plan_by_name(lens, camera, catalogue, plan_file)
    noise = Noise(
        corner_px=noise_px,
        outliers=outliers,
        missing_tags=missing_tags,
        bow_mm=bow_mm,
        rtk_ball_m=rtk_ball_m,
    )
    board = night = None
    if images or video:
        rendering = RenderOptions(blur_px, defocus_px, image_noise, vignetting)
        board = BoardFootage(rendering, codec if video else None, renderer, views)
    if video:
        pictures = NightOptions(
            core_px, halo_px, scatter, lights=lights, noise=image_noise, vignetting=vignetting
        )
        flight = FlightOptions(hover_s, transit_s=hover_s, missed=miss, extra=extra)
        night = NightFootage(codec, pictures, flight)
    prepared = prepare_cells(
        plan, select_cells(plan, cells), out, noise, seed=seed, options=options,
        fd_jitter=fd_jitter, board=board, night=night,
    )  # fmt: skip
    _make_with_progress(prepared, jobs)
    n_cells = len(prepared.simulations)
    answers().print(
        f"{counted(n_cells, 'cell')} of {lens} simulated in {out}, beside "
        f"the grid (plan.json) and all settings ({SETTINGS}).\n"
        f"Calibrate with: {_run_line(lens, camera, out, catalogue, plan_file)}",
        soft_wrap=True,
        markup=False,
    )


def _run_line(
    lens: str, camera: str, out: Path, catalogue: Path | None, plan_file: Path | None
) -> str:
    """The command that calibrates what was simulated, for a shell."""
    words = ["influx-calib", "run", lens, "--data", str(out)]
    if camera != CAMERA:
        words += ["--camera", camera]
    if catalogue is not None:
        words += ["--catalogue", str(catalogue)]
    if plan_file is not None:
        words += ["--plan", str(plan_file)]
    return shlex.join(words)


def _check_combination(context: click.Context, *, images: bool, video: bool) -> None:
    """Refuse options that would be ignored."""
    if images and video:
        raise InputError("--images and --video exclude each other; give one of them.")
    if images or video:
        reason = "is the detector's business when pictures are rendered"
        refused = dict.fromkeys(DETECTOR_OPTIONS, reason)
    else:
        refused = dict.fromkeys(PICTURE_OPTIONS, "needs --images or --video")
    if images:
        refused["rtk_ball_m"] = "is for the drone, which is filmed with --video only"
    if not video:
        refused |= dict.fromkeys(VIDEO_OPTIONS, "needs --video")
    for name, reason in refused.items():
        if given(context, name):
            raise InputError(f"{option_name(context, name)} {reason}; leave it out.")
    if context.params["renderer"] == "blender":
        if video:
            raise InputError("--renderer blender makes stills only; use it with --images.")
        if context.params["bow_mm"] > 0:
            raise InputError("--renderer blender cannot bend a board; leave out --bow-mm.")
        if find_spec("bpy") is None:
            raise InputError(
                "--renderer blender needs Blender as a module, which is for Python 3.11 only: "
                f"{install_line('blender')}."
            )


def _make_with_progress(prepared: PreparedCells, jobs: int) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if prepared.left_out:
        names = ", ".join(prepared.left_out)
        console.print(f"Left out, as the drone's flight is filmed with --video only: {names}.")
    if not prepared.films:
        n_cells = len(prepared.simulations)
        with watch("simulating", console) as progress:
            for number, _ in enumerate(prepared.write(), 1):
                progress(number, n_cells)
        return
    with watch("rendering", console) as progress:
        prepared.film(processes=jobs, progress=progress)
