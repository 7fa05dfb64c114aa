"""A run as a page: whether the lens can be used, the grid of experiments, and all about each.

Everything in the page is a number or a text of the results, or comes from the corners that a
result was made from: how many lie where, what the camera's model leaves unexplained of them,
and how well it is known where a point is projected to. An experiment takes up to 30 kB; what
is drawn is binned before, and rounded to more digits than a screen can show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from influx_wrap.calibrate.rollouts import fences
from influx_wrap.evaluate.cells import CellResult
from influx_wrap.formats.files import write_text
from influx_wrap.formats.influx import LensSettings
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES, Intrinsics, field_of_view_deg
from influx_wrap.model.record import CellRecord
from influx_wrap.model.result import CalibrationResult, Json, RolloutReport, ViewReport
from influx_wrap.report.binned import (
    CHANCE_OF_ARROW,
    coverage,
    distortion,
    residual_figures,
    uncertainty_figure,
)
from influx_wrap.report.explorer import ProposedExperiment
from influx_wrap.report.page import float32_text, jpeg_url, page
from influx_wrap.report.run_answer import lens_answer, missing_data, source_words
from influx_wrap.report.run_grid import run_grid

SCRIPTS = ("words.js", "overview.js", "tables.js", "drawings.js", "rollouts.js")


@dataclass(frozen=True, eq=False)
class Seen:
    """What the files of an experiment add to its record.

    uv         (n, 2) pixels of the corners used; of all corners if nothing came of them
    residuals  (n, 2) observed minus projected, in pixels; None if nothing came of them
    """

    image_size: tuple[int, int]
    uv: FloatArray
    residuals: FloatArray | None


@dataclass(frozen=True)
class FootagePicture:
    """A file beside the page, with a small JPEG of it where there is one."""

    path: str
    jpeg: bytes | None = None


def write_run_page(
    path: Path,
    settings: LensSettings | None,
    records: Sequence[CellRecord],
    cells: Sequence[Json],
    explorer: str | None = None,
    footage: str | None = None,
    missing: Sequence[ProposedExperiment] = (),
) -> None:
    """Write the page of the experiments ``cells``, each as ``cell_data`` gives it.

    settings  the run's plan, in which they have their places
    explorer  the page of the lens's table beside this one, if there is one
    footage   name of the folder in which recorded experiments lie, if it is known
    missing   the experiments that the lens's table lacks most, the first one first
    """
    results = [CellResult.of(record) for record in records]
    made, kinds = _made(records)
    grid = run_grid(results, settings)
    placed = [
        cell | {"place": place, "made": kind}
        for cell, place, kind in zip(cells, grid.places, kinds, strict=True)
    ]
    lens = next((record.cell.lens for record in records if record.cell.lens), "an unknown lens")
    camera = next((record.cell.camera for record in records if record.cell.camera), None)
    data = {
        "lens": lens,
        "camera": camera,
        "source": source_words(records, footage),
        "missing": missing_data(missing),
        "answer": lens_answer(results),
        "explorer": explorer,
        "made": made,
        "lfl": list(grid.lfl_mm.named),
        "fd": [("inf" if fd_m == math.inf else fd_m, name) for fd_m, name in grid.fd_m.named],
        "names": NAMES,
        "chance": CHANCE_OF_ARROW,
        "cells": placed,
    }
    title = f"{lens} on {camera}: calibration report" if camera else f"{lens}: calibration report"
    write_text(path, page("run", title, data, figures=True, scripts=SCRIPTS))


def cell_data(record: CellRecord, seen: Seen | str, pictures: Sequence[FootagePicture]) -> Json:
    """What the page knows of one experiment.

    ``seen`` may be a sentence instead, which says why the corners are not known.
    """
    cell, made, judged = record.cell.as_dict(), record.provenance, CellResult.of(record)
    assessment = judged.assessment
    data: Json = {
        **{key: cell[key] for key in ("name", "lfl_mm", "fd_m", "target")},
        "ok": record.failure is None,
        "verdict": judged.verdict,
        "because": [] if assessment is None else assessment.reasons,
        "filmNext": [] if assessment is None else assessment.film_next,
        "suspicions": judged.suspicions,
        "seed": made.get("seed"),
        "inputs": made.get("inputs", {}),
        "pictures": [_picture(picture) for picture in pictures],
    }
    if isinstance(seen, str):
        data["unseen"] = seen
    else:
        data["size"] = list(seen.image_size)
        data["coverage"] = coverage(seen.uv, seen.image_size)
    result = record.result
    if result is None:
        assert record.failure is not None
        return data | asdict(record.failure)
    data |= _answer(record, result) | {
        "warnings": list(judged.warnings),
        "offPaper": None if result.paper_pick is None else result.paper_pick.warning,
    }
    if not isinstance(seen, str) and seen.residuals is not None:
        data["residuals"] = residual_figures(
            seen.uv, seen.residuals, result.image_size, result.corner_sigma_px
        )
    return data


def _answer(record: CellRecord, result: CalibrationResult) -> Json:
    """What the page knows of a result."""
    intrinsics, size, truth = result.intrinsics, result.image_size, record.truth
    stages = [[name, camera.array.tolist()] for name, camera in result.stages.items()]
    return {
        "size": list(size),
        "values": _values(record, result),
        "fieldOfView": _field_of_view(result),
        "intrinsics": intrinsics.array.tolist(),
        "sigma": result.sigma.tolist(),
        "truth": truth.intrinsics.array.tolist() if truth else None,
        "bound": [truth.bound[name] for name in NAMES] if truth and truth.bound else None,
        "selected": result.selected,
        "projection": result.projection_uncertainty.as_dict(),
        "cornerSigma": result.corner_sigma_px,
        "bow_m": result.bow_m,
        "stated": asdict(result.residuals),
        "uncertainty": uncertainty_figure(intrinsics, result.covariance, size),
        "distortion": distortion(intrinsics, size),
        "rollouts": rollouts(result.rollouts, intrinsics),
        **_views(result.views),
        "stages": [["focal_px", result.focal_start_px], *stages],
    }


def rollouts(reports: Sequence[RolloutReport], answer: Intrinsics) -> Json | None:
    """Intrinsics of the rollouts that converged, relative to the answer, and the fences.

    Relative, as single precision would not tell rollouts apart that differ in the eighth digit.
    """
    if not reports:
        return None
    found = [
        (number, report, report.intrinsics)
        for number, report in enumerate(reports)
        if report.intrinsics is not None
    ]
    values = np.array([camera.array for _, _, camera in found]).reshape(-1, 8)
    apart = values - answer.array
    low, high = fences(values[:, :4]) if len(found) else (np.zeros(4), np.zeros(4))
    return {
        "total": len(reports),
        "numbers": [number for number, _, _ in found],
        "apart": float32_text(apart),
        "inside": [int(report.inside_fences) for _, report, _ in found],
        "fences": np.stack([low - answer.array[:4], high - answer.array[:4]], axis=1).tolist(),
    }


def _views(views: Sequence[ViewReport]) -> Json:
    """Rows of view, reason (its number, -1 of a view used), corners used, removed, RMS, name."""
    counts = Counter(view.reason for view in views if not view.used)
    reasons = [reason for reason, _ in counts.most_common()]
    return {
        "reasons": [[reason, counts[reason]] for reason in reasons],
        "views": [
            [
                view.view,
                -1 if view.used else reasons.index(view.reason),
                view.corners_used,
                len(view.corners_removed),
                None if view.rms_px is None else float(f"{view.rms_px:.5g}"),
                view.label,
            ]
            for view in views
        ],
    }


def _values(record: CellRecord, result: CalibrationResult) -> Json:
    """The numbers that the grid of experiments can show; None where there is no truth."""
    cell = CellResult.of(record)
    error, over_bound = cell.error_percent("fx"), cell.error_over_bound("fx")
    return {
        "error": None if error is None else abs(error),
        "overBound": None if over_bound is None else abs(over_bound),
        "sigma": cell.sigma_percent("fx"),
        "projection": result.projection_uncertainty.median_px,
        "rms": result.residuals.rms_px,
        "views": len(result.views_used),
        "fx": result.intrinsics.fx,
        "view": _field_of_view(result)[0],
    }


def _field_of_view(result: CalibrationResult) -> list[float | None]:
    """Horizontal, vertical and diagonal in degrees; None where the distortion folds before."""
    angles = field_of_view_deg(result.intrinsics, result.image_size)
    return [None if math.isnan(angle) else angle for angle in angles]


def _made(records: Sequence[CellRecord]) -> tuple[list[Json], list[int]]:
    """What was used to make results (versions, recipe, engine), each once, and whose is which."""
    made: list[Json] = []
    kinds = []
    for record in records:
        one = {
            key: value
            for key, value in record.provenance.items()
            if key not in ("inputs", "seed", "simulation")
        }
        if one not in made:
            made.append(one)
        kinds.append(made.index(one))
    return made, kinds


def _picture(picture: FootagePicture) -> list[str]:
    if picture.jpeg is None:
        return [picture.path]
    return [picture.path, jpeg_url(picture.jpeg)]
