"""``influx-calib evaluate``: how good predicted intrinsics are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from influx_wrap.cli.options import PATH, image_size, jobs_option
from influx_wrap.cli.progress import progress_bar
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.evaluate.groups import lenses, motions
from influx_wrap.evaluate.points import EvaluationPoints, PointsChoice, parse_points
from influx_wrap.evaluate.score import Evaluation, evaluate
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.files import make_folder, reading, write_text
from influx_wrap.formats.groundtruth import read_validation
from influx_wrap.formats.submission import read_submission
from influx_wrap.formats.video_groups import read_video_groups
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.predictions import Predictions
from influx_wrap.report.score_page import write_score_page
from influx_wrap.report.score_table import score_csv, score_latex, score_table
from influx_wrap.report.scores import write_scores

SCORES, TABLE, PAGE = "scores.json", "table", "report.html"


@click.command("evaluate")
@click.argument("predictions", nargs=-1, required=True, type=PATH)
@click.option("--truth", type=PATH, required=True, help="The InFlux validation JSON.")
@click.option(
    "--points",
    default="builtin",
    show_default=True,
    metavar="builtin|eth3d:DIR",
    help="3D points whose projections are compared.",
)
@click.option(
    "--out", type=PATH, default=Path("runs/evaluation"), show_default=True, help="Folder."
)
@click.option(
    "--size",
    type=image_size,
    default="3424x2202",
    show_default=True,
    metavar="WxH",
    help="Of the pictures, in pixels.",
)
@click.option(
    "--groups",
    type=PATH,
    metavar="CSV",
    show_default="lens and motion, by the metadata",
    help="Columns video and any others, by whose values scores are grouped.",
)
@click.option(
    "--subsample",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="End-point errors of every Nth frame only.",
)
@click.option("--intervals", is_flag=True, help="With 95 % confidence in the tables.")
@jobs_option
@click.pass_obj
def command(
    catalogue: Path | None,
    predictions: tuple[Path, ...],
    truth: Path,
    points: str,
    out: Path,
    size: tuple[int, int],
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
    """
    choice = parse_points(points)
    known = read_validation(truth)
    files = _named(predictions, out)
    given = {place: _read(path) for path, place in files.items()}
    properties = (
        read_video_groups(groups, known)
        if groups is not None
        else {
            "lens": lenses(known, load_catalogue(catalogue).lenses.values()),
            "motion": motions(known),
        }
    )
    chosen = _points(choice, known, size)
    make_folder(out)
    evaluations = {}
    for place, predicted in given.items():
        evaluations[place] = _evaluate(predicted, known, chosen, size, properties, subsample, jobs)
        make_folder(place)
        write_scores(place / SCORES, evaluations[place])
    _write_report(out, list(evaluations.values()), intervals)
    table = score_table(list(evaluations.values()), intervals=intervals)
    answers().print(table, soft_wrap=True, markup=False)
    print_written(*(place / SCORES for place in evaluations), out / f"{TABLE}.tex", out / PAGE)


def _read(path: Path) -> Predictions:
    with reading(path):
        size = path.stat().st_size
    with progress_bar(Console(stderr=True, highlight=False)) as progress:
        task = progress.add_task(f"reading {path.name}", total=size)
        return read_submission(path, progress=lambda n_bytes: progress.advance(task, n_bytes))


def _points(
    choice: PointsChoice, known: Mapping[str, GroundTruth], size: tuple[int, int]
) -> EvaluationPoints:
    true = np.concatenate([one.intrinsics[one.is_interpolated] for one in known.values()])
    with progress_bar(Console(stderr=True, highlight=False)) as progress:
        task = progress.add_task("scans", total=None, visible=choice.folder is not None)
        return choice.load(
            true, size, lambda done, total: progress.update(task, completed=done, total=total)
        )


def _named(predictions: tuple[Path, ...], out: Path) -> dict[Path, Path]:
    """Where each file's scores go: one's into the folder, several's into one each."""
    if len(predictions) == 1:
        return {predictions[0]: out}
    stems = [path.stem for path in predictions]
    for path, stem in zip(predictions, stems, strict=True):
        if stems.count(stem) > 1:
            raise InputError(f"{path}: two files are called {stem}; rename one of them.")
    return {path: out / path.stem for path in predictions}


def _evaluate(
    predicted: Predictions,
    known: Mapping[str, GroundTruth],
    points: EvaluationPoints,
    size: tuple[int, int],
    properties: Mapping[str, Mapping[str, str]],
    subsample: int,
    jobs: int,
) -> Evaluation:
    console = Console(stderr=True, highlight=False)
    total = sum(-(-int(truth.is_interpolated.sum()) // subsample) for truth in known.values())
    with progress_bar(console) as progress:
        task = progress.add_task(f"frames of {predicted.method}", total=total)
        return evaluate(
            predicted,
            known,
            points.points,
            points_source=points.source,
            image_size=size,
            properties=properties,
            subsample=subsample,
            jobs=jobs,
            progress=lambda n: progress.advance(task, n),
        )


def _write_report(out: Path, evaluations: list[Evaluation], intervals: bool) -> None:
    write_text(out / f"{TABLE}.txt", score_table(evaluations, intervals=intervals))
    write_text(out / f"{TABLE}.csv", score_csv(evaluations))
    write_text(out / f"{TABLE}.tex", score_latex(evaluations, intervals=intervals))
    write_score_page(out / PAGE, evaluations)
