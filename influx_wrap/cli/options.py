"""Options and values that several commands share."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import CAMERA
from influx_wrap.model.framing import Crop

Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
_SIDE = r"([1-9]\d{0,9})"
RECIPE_NAMES = ("influx", "paper", "stock", "batch")


def number(
    *, above: float = -math.inf, at_least: float = -math.inf, infinite: bool = False
) -> Callable[[str], float]:
    """A type of option: a number within bounds; ``inf`` only if ``infinite``, NaN never."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise click.BadParameter(f"{text!r} is not a number.") from None
        if math.isnan(value) or (math.isinf(value) and not infinite):
            raise click.BadParameter(f"{text} is not a finite number.")
        if value <= above:
            raise click.BadParameter(f"{text} is not above {above:g}.")
        if value < at_least:
            raise click.BadParameter(f"{text} is below {at_least:g}.")
        return value

    return parse


def image_size(text: str) -> tuple[int, int]:
    """A type of option: ``3424x2202``, (width, height) in pixels."""
    match = re.fullmatch(rf"{_SIDE}[xX]{_SIDE}", text, re.ASCII)
    if match is None:
        raise click.BadParameter(f"{text!r} is not a size such as 3424x2202.")
    return int(match[1]), int(match[2])


def crop(text: str) -> Crop:
    """A type of option: ``center``, ``1920x1080`` or ``1920x1080+752+561``."""
    if text.lower() in ("center", "centre"):
        return Crop()
    match = re.fullmatch(rf"{_SIDE}[xX]{_SIDE}(?:\+(\d{{1,9}})\+(\d{{1,9}}))?", text, re.ASCII)
    if match is None:
        raise click.BadParameter(
            f"{text!r} is not a crop such as center, 1920x1080 or 1920x1080+752+561."
        )
    at = None if match[3] is None else (int(match[3]), int(match[4]))
    return Crop((int(match[1]), int(match[2])), at)


def offset(text: str) -> tuple[float, float]:
    """A type of option: ``8,-5``, two finite numbers."""
    parts = text.split(",")
    if len(parts) != 2:
        raise click.BadParameter(f"{text!r} is not a pair such as 8,-5.")
    x, y = map(number(), parts)
    return x, y


def setting(text: str) -> tuple[str, str]:
    """A type of option: ``key=value``."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise click.BadParameter(f"{text!r} is not of the form key=value.")
    return key.strip(), value.strip()


def number_option(
    name: str,
    default: float | None,
    text: str,
    *,
    metavar: str = "NUMBER",
    shown: bool | str = True,
    required: bool = False,
    **bounds: Any,
) -> Callable[[Command], Command]:
    """An option that is a ``number``; ``text`` is its help, ``shown`` the default as told there."""
    kind = number(**bounds)
    return click.option(
        name, type=kind, metavar=metavar, default=default, show_default=shown, help=text,
        required=required,
    )  # fmt: skip


def count_option(
    name: str, default: int | None, text: str, *, at_least: int = 0, shown: bool | str = True
) -> Callable[[Command], Command]:
    """An option that is a whole number."""
    kind = click.IntRange(min=at_least)
    return click.option(name, type=kind, default=default, show_default=shown, help=text)


def choice_option(
    name: str, choices: Sequence[str], default: str, text: str
) -> Callable[[Command], Command]:
    """An option that is one of several words."""
    kind = click.Choice(choices)
    return click.option(name, type=kind, default=default, show_default=True, help=text)


weighing_option = click.option(
    "--by-covariance/--all-alike",
    "by_covariance",
    default=None,
    show_default="all alike for scheme paper, else by covariance",
    help="Whether experiments are weighted by their covariances, or all alike.",
)

seed_option = count_option(
    "--seed", 0, "Start of the random numbers; the same seed gives the same files."
)

cells_option = click.option(
    "--cells",
    default="all",
    show_default=True,
    metavar="NAMES",
    help="Cells by name, such as z3f2,z0f9, or all.",
)


jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=os.cpu_count() or 1,
    show_default="all cores",
    help="How many processes or threads work at once; the results do not depend on it.",
)


every_frame_option = click.option(
    "--every-frame",
    is_flag=True,
    help="Find corners in all frames of a video, not only in those that may be chosen. The "
    "chosen frames are the same; it takes several times as long.",
)


decoder_option = click.option(
    "--decoder",
    metavar="auto|software|NAME",
    default="software",
    show_default=True,
    help="What decodes videos: hardware by FFmpeg's name for it (cuda, qsv, vaapi, videotoolbox), "
    "any that is there, or none.",
)


scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Calibrate on the Dask cluster of this scheduler, such as tcp://10.0.0.1:8786, and "
    "not in processes of this machine; the answers do not depend on it.",
)


rollouts_option = count_option(
    "--rollouts",
    None,
    "How many rollouts: calibrations with the views in a random order each.",
    at_least=1,
    shown="the recipe's",
)


keep_suspects_option = click.option(
    "--keep-suspects",
    is_flag=True,
    help="Use also experiments that contradict what was typed, or whose verdict is 'do not use'.",
)


def _chosen_catalogue(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Any:
    """The folder given after the command, or else before it, or by the environment."""
    return ctx.obj if value is None else value


catalogue_option = click.option(
    "--catalogue",
    type=PATH,
    metavar="DIR",
    callback=_chosen_catalogue,
    help="Folder with YAML files of your own lenses, cameras and boards.",
)


def lens_argument(function: Command) -> Command:
    """LENS and --camera."""
    camera = click.option(
        "--camera",
        default=CAMERA,
        show_default=True,
        metavar="NAME",
        help="Camera, by its name in the catalogue.",
    )
    return click.argument("lens")(camera(function))


plan_option = click.option(
    "--plan",
    "plan_file",
    type=PATH,
    show_default="the paper's",
    help="JSON file with the lens settings to calibrate, as plan --out writes it.",
)


def recipe_options(function: Command) -> Command:
    """--recipe, --set and --rollouts."""
    settings = click.option(
        "--set",
        "settings",
        type=setting,
        multiple=True,
        metavar="KEY=VALUE",
        help="Replace one choice of the recipe, such as bow=off; may be repeated.",
    )
    recipe = choice_option(
        "--recipe", RECIPE_NAMES, "influx", "Method of calibration: the choices of all its stages."
    )
    return recipe(settings(rollouts_option(function)))


def as_settings(pairs: tuple[tuple[str, str], ...], rollouts: int | None) -> dict[str, str]:
    """Overrides of a recipe from --set and --rollouts; a key given twice is refused."""
    settings: dict[str, str] = {}
    for key, text in [*pairs, *([("rollouts", str(rollouts))] if rollouts is not None else [])]:
        if key in settings:
            raise InputError(f"{key} is set twice: {settings[key]} and {text}.")
        settings[key] = text
    return settings
