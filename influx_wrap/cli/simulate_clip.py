"""``influx-calib simulate --clip``: a video whose every frame has known intrinsics."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape

from influx_wrap.cli.options import Command, choice_option, image_size, number_option, offset
from influx_wrap.cli.progress import RESUME, watch
from influx_wrap.cli.tables import answers
from influx_wrap.errors import InputError
from influx_wrap.model.experiment import Plan
from influx_wrap.synth.film.clip import (
    METADATA,
    VALIDATION_TRUTH,
    ClipOptions,
    prepare_clip,
    shoot_clip,
)
from influx_wrap.synth.lens import LENS_MODELS, MOTIONS, LensOptions

CLIP = ClipOptions()

# What only a clip has; and all that may be said of one.
CLIP_OPTIONS = ("n_frames", "motion", "size")
SENSIBLE_OPTIONS = (
    *CLIP_OPTIONS, "lens", "camera", "out", "clip", "lens_model", "breathing", "pp_offset_px",
    "image_noise", "vignetting", "codec", "jobs", "seed",
)  # fmt: skip


def clip_options(function: Command) -> Command:
    """--clip, --frames, --motion and --size."""
    for option in (
        click.option(
            "--size",
            type=image_size,
            metavar="WIDTHxHEIGHT",
            show_default="the camera's",
            help="Pixels of a clip, over the width of the same sensor.",
        ),
        choice_option("--motion", MOTIONS, CLIP.motion, "What the lens does in a clip."),
        click.option(
            "--frames",
            "n_frames",
            type=click.IntRange(min=2),
            default=CLIP.n_frames,
            show_default=True,
            help="Length of a clip.",
        ),
        click.option(
            "--clip",
            is_flag=True,
            help="Render one video of a textured room instead, while the lens is turned.",
        ),
    ):
        function = option(function)
    return function


def lens_options(function: Command) -> Command:
    """--lens-model, --breathing and --pp-offset-px."""
    for option in (
        click.option(
            "--pp-offset-px",
            type=offset,
            metavar="X,Y",
            show_default="off the centre, wandering with zoom and focus",
            help="Principal point's distance from the image centre, at every setting.",
        ),
        number_option(
            "--breathing",
            None,
            "Largest relative departure of the focal length from a thin lens.",
            shown="the lens model's own",
        ),
        click.option(
            "--lens-model",
            type=click.Choice(LENS_MODELS),
            show_default="the catalogue's synthetic_focusing",
            help="A zoom of thin groups, focused by one behind the stop (internal) or by the front "
            "group; or one thin lens, centred and with square pixels.",
        ),
    ):
        function = option(function)
    return function


def given(context: click.Context, name: str) -> bool:
    """Whether an option was given on the command line."""
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def option_name(context: click.Context, name: str) -> str:
    """An option as it is typed."""
    by_name = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    return by_name[name]


def check_clip_options(context: click.Context) -> None:
    """Refuse options that would be ignored, with --clip or without it."""
    for name in context.params:
        if not given(context, name):
            continue
        if context.params["clip"] and name not in SENSIBLE_OPTIONS:
            option = option_name(context, name)
            raise InputError(f"{option} has no meaning for a clip; leave it or --clip out.")
        if not context.params["clip"] and name in CLIP_OPTIONS:
            raise InputError(f"{option_name(context, name)} needs --clip; leave it out.")


def simulate_clip(
    plan: Plan,
    out: Path,
    options: ClipOptions,
    size: tuple[int, int] | None,
    lens: LensOptions,
    jobs: int,
    seed: int,
) -> None:
    """Render the clip into ``out`` and say what can be done with it."""
    clip = prepare_clip(
        plan,
        out,
        options,
        seed=seed,
        size=size,
        lens=lens,
    )
    try:
        with watch("rendering") as progress:
            video = shoot_clip(clip, out, processes=jobs, progress=progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(RESUME) from None
    width, height = clip.camera.image_size
    answers().print(
        f"{clip.n_frames} frames of {plan.lens.name} in {escape(str(video))}.\n"
        f"Predict with: influx-calib predict {escape(str(video))} --metadata "
        f"{escape(str(out / METADATA))} --method metadata --out predictions.json\n"
        f"Score with: influx-calib evaluate predictions.json --truth "
        f"{escape(str(out / VALIDATION_TRUTH))} --size {width}x{height}",
        soft_wrap=True,
    )
