"""One camera as a page: intrinsics and verdict first, then what was seen and what is left over.

All of it is in one file, figures included, to be sent to somebody or put away with the footage.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.formats.files import write_text
from influx_wrap.formats.pictures import read_picture
from influx_wrap.model.arrays import FloatArray, Picture
from influx_wrap.model.intrinsics import NAMES, field_of_view_deg
from influx_wrap.model.observations import Observations
from influx_wrap.model.result import CalibrationResult, Json, ViewReport
from influx_wrap.observe.coverage import assess_coverage
from influx_wrap.report.binned import arrows
from influx_wrap.report.grid import save_figure
from influx_wrap.report.keyframes_figure import draw_contact_sheet, draw_coverage
from influx_wrap.report.page import jpeg_url, page
from influx_wrap.report.style import INK, MARK, QUIET, frame_picture, new_figure, styled

JPEG_QUALITY = 75
ARROW_SHARE = 0.04
"""How long the arrow of a typical residual is drawn, in widths of the picture."""


def write_camera_page(
    path: Path,
    result: CalibrationResult,
    observations: Observations,
    used: tuple[FloatArray, FloatArray],
    pictures: Iterable[tuple[int, Picture]],
    *,
    title: str,
    facts: Sequence[str],
    notes: Sequence[str],
    progress: Progress,
) -> None:
    """Write the page.

    observations  those that the result was made from
    used          pixels (n, 2) and residuals (n, 2) in pixels of the corners used
    pictures      (view id, grey picture (H, W)) of the views, for the contact sheet
    facts, notes  sentences: what the camera was shown, and what was not used
    progress      hears how many pictures are drawn
    """
    counted = _counted(pictures, observations.n_views, progress)
    assessment = result.assessment
    off_paper = None if result.paper_pick is None else result.paper_pick.warning
    data: Json = {
        "title": title,
        "grade": "not judged" if assessment is None else assessment.grade,
        "reasons": [] if assessment is None else list(assessment.reasons),
        "filmNext": [] if assessment is None else list(assessment.film_next),
        "names": NAMES,
        "intrinsics": result.intrinsics.array.tolist(),
        "sigma": result.sigma.tolist(),
        "size": list(result.image_size),
        "fieldOfView": [
            angle if math.isfinite(angle) else None
            for angle in field_of_view_deg(result.intrinsics, result.image_size)
        ],
        "corners": result.residuals.corners,
        "rms": result.residuals.rms_px,
        "projection": result.projection_uncertainty.as_dict(),
        "facts": list(facts),
        "notes": list(notes),
        "warnings": [text for text in result.warnings if text != off_paper],
        "offPaper": off_paper,
        "views": [_row(view) for view in result.views],
        "figures": _figures(observations, used, counted),
    }
    write_text(path, page("camera", f"{title}: camera calibration", data))


def _counted(
    pictures: Iterable[tuple[int, Picture]], total: int, progress: Progress
) -> Iterator[tuple[int, Picture]]:
    for done, one in enumerate(pictures, start=1):
        yield one
        progress(done, total)


def _row(view: ViewReport) -> list[object]:
    """Name, why it was left out (None if it was not), corners used and removed, RMS."""
    reason = None if view.used else view.reason or "left out"
    rms = None if view.rms_px is None else float(f"{view.rms_px:.4g}")
    return [view.label, reason, view.corners_used, len(view.corners_removed), rms]


def _figures(
    observations: Observations,
    used: tuple[FloatArray, FloatArray],
    pictures: Iterable[tuple[int, Picture]],
) -> Json:
    """Pictures as addresses, by what they show."""
    uv, valid, size = observations.uv, observations.valid, observations.image_size
    coverage = assess_coverage(uv, valid, observations.target, size)
    views = observations.view_ids.tolist()
    corners = {view: uv[row][valid[row]] for row, view in enumerate(views)}
    names = dict(zip(views, observations.view_names, strict=True))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw_residuals(*used, size, folder / "residuals.png")
        draw_coverage(uv, valid, size, coverage, folder / "coverage.png")
        draw_contact_sheet(pictures, corners, names, folder / "contact.png")
        return {
            kind: _picture_url(folder / f"{kind}.png")
            for kind in ("residuals", "coverage", "contact")
        }


@styled
def draw_residuals(
    uv: FloatArray, residuals: FloatArray, image_size: tuple[int, int], path: Path
) -> None:
    """Write what the camera's model leaves unexplained over the picture, as arrows.

    uv, residuals  (n, 2) pixels of corners, and observed minus projected; many corners are
                   drawn as the means of parts of the picture
    """
    width, height = image_size
    drawn = arrows(uv, residuals, image_size)
    figure = new_figure(8.0, 1.2 + 7.4 * height / width)
    axes = figure.add_subplot()
    typical = float(np.median(np.linalg.norm(drawn[:, 2:4], axis=1))) or 1.0
    key_px = float(f"{2 * typical:.1g}")
    quiver = axes.quiver(
        *drawn[:, :4].T, angles="xy", scale_units="xy", scale=typical / (ARROW_SHARE * width),
        color=MARK, width=0.0025,
    )  # fmt: skip
    axes.plot(*drawn[:, :2].T, ".", color=QUIET, markersize=2, zorder=0.9)
    axes.quiverkey(
        quiver, 0.9, 1.03, key_px, f"{key_px:g} px", labelpos="E", color=MARK, labelcolor=INK
    )
    frame_picture(axes, image_size, "uv")
    is_single = len(drawn) == len(uv)
    axes.set_title("residuals of all corners" if is_single else "mean residuals of parts")
    save_figure(figure, path)


def _picture_url(path: Path) -> str:
    """A PNG as the address of a JPEG, which is a fifth as long."""
    done, data = cv2.imencode(
        ".jpg", read_picture(path, colour=True), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    )
    if not done:
        raise InputError(f"{path.name} cannot be made a JPEG.")
    return jpeg_url(data.tobytes())
