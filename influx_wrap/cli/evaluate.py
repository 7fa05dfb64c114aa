"""``influx-calib evaluate``: how good predicted intrinsics are."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from influx_wrap.cli.options import PATH, catalogue_option, count_option, image_size, jobs_option
from influx_wrap.cli.progress import watch
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.evaluate.points import parse_points
from influx_wrap.run.evaluation import evaluate_files


@click.command("evaluate")
@click.argument("predictions", nargs=-1, required=True, type=PATH)
@click.option(
    "--truth",
    type=PATH,
    required=True,
    help="The InFlux validation JSON, or annotate's of one clip.",
)
@click.option(
    "--points",
    default="builtin",
    show_default=True,
    metavar="builtin|eth3d:DIR",
    help="3D points whose projections are compared.",
)
@click.option(
    "--out",
    type=PATH,
    default=Path("runs/evaluation"),
    show_default=True,
    help="Folder of the results.",
)
@click.option(
    "--size",
    type=image_size,
    show_default="as the truth says, else 3424x2202",
    metavar="WxH",
    help="Width and height of the pictures, in pixels, if the truth does not say.",
)
@click.option(
    "--groups",
    type=PATH,
    metavar="CSV",
    show_default="lens and motion, by the metadata",
    help="CSV with a column video and others, by whose values the scores are grouped.",
)
@count_option("--subsample", 1, "Take end-point errors of every Nth frame only.", at_least=1)
@click.option("--intervals", is_flag=True, help="Print 95 % confidence intervals in the tables.")
@jobs_option
@catalogue_option
def command(
    catalogue: Path | None,
    predictions: tuple[Path, ...],
    truth: Path,
    points: str,
    out: Path,
    size: tuple[int, int] | None,
    groups: Path | None,
    subsample: int,
    intervals: bool,
    jobs: int,
) -> None:
    """Score PREDICTIONS, files as they are submitted, against the truth.

    Frames with interpolated ground truth count. Per-cent errors are means over the frames with
    a prediction; end-point errors are taken of all points in a frame's true field of view,
    and are infinite where there is no prediction. Several files are compared side by side.

    \b
    Example:
      influx-calib evaluate geocalib.json --truth gt_validation.json --out scores
      influx-calib evaluate geocalib.json --truth gt.json --out scores
    """
    scored = evaluate_files(
        predictions,
        truth,
        out,
        points=parse_points(points),
        image_size=size,
        groups=groups,
        catalogue=catalogue,
        subsample=subsample,
        intervals=intervals,
        jobs=jobs,
        watch=watch,
    )
    for text in scored.notes:
        Console(stderr=True, soft_wrap=True).print(f"[yellow]note:[/] {escape(text)}")
    answers().print(scored.table, soft_wrap=True, markup=False)
    print_written(*scored.written)
