"""Files of predictions scored against the truth: what ``influx-calib evaluate`` does.

The scores of one file go into the folder itself, of several into one folder each; the tables
and the page of all of them lie beside these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.compute.progress import Watch
from influx_wrap.errors import InputError
from influx_wrap.evaluate.doubts import prediction_doubts
from influx_wrap.evaluate.groups import lenses, motions
from influx_wrap.evaluate.picture_size import settle_size
from influx_wrap.evaluate.points import EvaluationPoints, PointsChoice
from influx_wrap.evaluate.score import Evaluation, evaluate
from influx_wrap.formats.catalogue import CAMERA, load_catalogue
from influx_wrap.formats.files import make_folder, write_text
from influx_wrap.formats.groundtruth import read_truths
from influx_wrap.formats.manifest import read_video_groups
from influx_wrap.formats.submission import read_submission
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.predictions import Predictions
from influx_wrap.report.score_page import write_score_page
from influx_wrap.report.score_table import score_csv, score_latex, score_table
from influx_wrap.report.scores import write_scores

SCORES, TABLE, PAGE = "scores.json", "table", "report.html"


@dataclass(frozen=True, eq=False)
class Scored:
    """The table of all scores as text, the files that were written, and what a reader must know,
    a sentence each."""

    table: str
    written: tuple[Path, ...]
    notes: tuple[str, ...]


def evaluate_files(
    predictions: Sequence[Path],
    truth: Path,
    out: Path,
    *,
    points: PointsChoice,
    image_size: tuple[int, int] | None,
    groups: Path | None,
    catalogue: Path | None,
    subsample: int,
    intervals: bool,
    jobs: int,
    watch: Watch,
) -> Scored:
    """Score all files and write what there is to say about them.

    predictions  files as they are submitted
    truth        the InFlux validation JSON, or that of one clip, as ``annotate`` writes it
    out          folder of scores, tables and page
    points       whose projections are compared
    image_size   (width, height) in pixels; None: as the truth says
    groups       CSV file of the videos' groups; None: by lens and motion
    catalogue    folder of the lenses, by which that of a video is told; None: ours
    subsample    end-point errors of every which frame
    intervals    whether tables have confidence intervals
    jobs         how many threads
    """
    files = _places(predictions, out)
    given = {place: _read(path, watch) for path, place in files.items()}
    known = read_truths(truth, {video for one in given.values() for video in one.videos})
    hardware = load_catalogue(catalogue)
    try:
        picture = settle_size(known, image_size, hardware.camera(CAMERA).image_size)
    except InputError as error:
        raise InputError(f"{truth}: {error}") from None
    properties = (
        read_video_groups(groups, known)
        if groups is not None
        else {
            "lens": lenses(known, hardware.lenses.values()),
            "motion": motions(known),
        }
    )
    compared = _points(points, picture.size, known, watch)
    make_folder(out)
    evaluations = []
    odd: list[str] = []
    for place, predicted in given.items():
        with watch(f"frames of {predicted.method}") as progress:
            scored = evaluate(
                predicted,
                known,
                compared.points,
                points_source=compared.source,
                image_size=picture.size,
                properties=properties,
                subsample=subsample,
                jobs=jobs,
                progress=progress,
            )
        odd += prediction_doubts(predicted, known, picture.size)
        make_folder(place)
        write_scores(place / SCORES, scored)
        evaluations.append(scored)
    table = _write_report(out, evaluations, intervals, truth.name)
    scores = [place / SCORES for place in given]
    notes = (*picture.notes, *_doubts(known), *odd)
    return Scored(table, (*scores, out / f"{TABLE}.tex", out / PAGE), notes)


def _doubts(known: Mapping[str, GroundTruth]) -> list[str]:
    """Of truth that was made with the table of another lens or camera."""
    return [
        f"The truth of video {video} was annotated although {doubt}."
        for video, truth in known.items()
        if truth.filmed_with is not None
        for doubt in truth.filmed_with.doubts
    ]


def _places(predictions: Sequence[Path], out: Path) -> dict[Path, Path]:
    """Where each file's scores go: one's into the folder, several's into one each."""
    if len(predictions) == 1:
        return {predictions[0]: out}
    stems = [path.stem for path in predictions]
    for path, stem in zip(predictions, stems, strict=True):
        if stems.count(stem) > 1:
            raise InputError(f"{path}: two files are called {stem}; rename one of them.")
    return {path: out / path.stem for path in predictions}


def _read(path: Path, watch: Watch) -> Predictions:
    with watch(f"reading {path.name}") as progress:
        return read_submission(path, progress=progress)


def _points(
    choice: PointsChoice,
    image_size: tuple[int, int],
    known: Mapping[str, GroundTruth],
    watch: Watch,
) -> EvaluationPoints:
    true = np.concatenate([one.intrinsics[one.is_interpolated] for one in known.values()])
    if choice.folder is None:
        return choice.load(true, image_size)
    with watch("scans") as progress:
        return choice.load(true, image_size, progress)


def _write_report(out: Path, evaluations: list[Evaluation], intervals: bool, truth: str) -> str:
    """Write tables and page; returns the table as text."""
    table = score_table(evaluations, intervals=intervals)
    write_text(out / f"{TABLE}.txt", table)
    write_text(out / f"{TABLE}.csv", score_csv(evaluations))
    write_text(out / f"{TABLE}.tex", score_latex(evaluations, intervals=intervals))
    write_score_page(out / PAGE, evaluations, truth)
    return table
