"""The report of a camera calibration as a PDF: numbers, coverage, residuals, distortion.

Drawn without a display, and without a date in it: the same calibration gives the same bytes.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from influx_wrap.calibrate.result import Calibration
from influx_wrap.formats.files import write_bytes
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import NAMES, Intrinsics, project, unproject
from influx_wrap.model.observations import Observations
from influx_wrap.model.pose import transform
from influx_wrap.report.style import ERROR_RAMP, LINE, SERIES, frame_picture, new_figure, styled

A4_LANDSCAPE_INCHES = (11.69, 8.27)
USED_COLOUR, UNUSED_COLOUR = SERIES[:2]
FIELD_COLUMNS = 25


@styled
def write_kalibr_report(
    path: Path, observations: Observations, calibration: Calibration, poses: FloatArray, topic: str
) -> None:
    """Write the PDF; ``poses`` (V, 12) are those of the views for the answer."""
    residuals = _residuals(observations, calibration.intrinsics, poses)
    used = _used(observations, calibration)
    figures = (
        _numbers(calibration, topic),
        _coverage(observations, used),
        _residual_page(residuals, used, observations),
        _distortion(calibration.intrinsics, calibration.image_size),
    )
    pages = io.BytesIO()
    with PdfPages(
        pages, metadata={"CreationDate": None, "Title": f"Calibration of {topic}"}
    ) as pdf:
        for figure in figures:
            pdf.savefig(figure)
    write_bytes(path, pages.getvalue())


def _residuals(observations: Observations, intrinsics: Intrinsics, poses: FloatArray) -> FloatArray:
    """(V, T, 2) observed minus projected, NaN where nothing was seen."""
    points = transform(poses[:, :9].reshape(-1, 3, 3), poses[:, 9:], observations.target.points)
    projected, _ = project(intrinsics, points)
    residuals: FloatArray = np.where(
        observations.valid[..., None], observations.uv - projected, np.nan
    )
    return residuals


def _used(observations: Observations, calibration: Calibration) -> BoolArray:
    """(V, T) the corners that the answer rests on."""
    used = observations.valid.copy()
    for row, view in enumerate(calibration.views):
        used[row] &= view.used
        used[row, list(view.corners_removed)] = False
    return used


def _page(title: str) -> Figure:
    return new_figure(*A4_LANDSCAPE_INCHES, title)


def _numbers(calibration: Calibration, topic: str) -> Figure:
    figure = _page(f"Calibration of {topic}")
    axes = figure.add_subplot()
    axes.axis("off")
    residuals, views = calibration.residuals, calibration.views
    rows = [
        f"{name:4} {value: 14.6f} +- {sigma:.6f}"
        for name, value, sigma in zip(
            NAMES, calibration.intrinsics.array, calibration.sigma, strict=True
        )
    ]
    width, height = calibration.image_size
    rows += [
        "",
        f"picture             {width} x {height}",
        f"views               {sum(v.used for v in views)} of {len(views)} used",
        f"corners             {residuals.corners} used",
        f"residual, rms       {residuals.rms_px:.4f} px per axis",
        f"residual, largest   {residuals.max_px:.4f} px",
        f"recipe              {calibration.recipe.name}, seed {calibration.seed}",
        *(f"warning: {warning}" for warning in calibration.warnings),
    ]
    axes.text(
        0.02, 0.95, "\n".join(rows), va="top", family="monospace", size=13, transform=axes.transAxes
    )
    return figure


def _coverage(observations: Observations, used: BoolArray) -> Figure:
    figure = _page("Corners over the picture")
    axes = figure.add_subplot()
    unused = observations.valid & ~used
    axes.plot(*observations.uv[unused].T, "x", color=UNUSED_COLOUR, markersize=3, label="not used")
    axes.plot(*observations.uv[used].T, ".", color=USED_COLOUR, markersize=3, label="used")
    frame_picture(axes, observations.image_size, "xy")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _residual_page(residuals: FloatArray, used: BoolArray, observations: Observations) -> Figure:
    figure = _page("Residuals: observed minus projected")
    cloud, views = figure.subplots(1, 2)
    cloud.plot(*residuals[used].T, ".", color=USED_COLOUR, markersize=2)
    cloud.axhline(0, color=LINE, linewidth=0.8)
    cloud.axvline(0, color=LINE, linewidth=0.8)
    cloud.set_aspect("equal", "datalim")
    cloud.set_xlabel("x (px)")
    cloud.set_ylabel("y (px)")
    in_use = used.any(axis=1)
    rms = [
        np.sqrt(np.mean(r[u] ** 2)) for r, u in zip(residuals[in_use], used[in_use], strict=True)
    ]
    views.plot(observations.view_ids[in_use], rms, "o", color=USED_COLOUR, markersize=3)
    views.set_ylim(bottom=0)
    views.set_xlabel("view")
    views.set_ylabel("rms per axis (px)")
    return figure


def _distortion(intrinsics: Intrinsics, image_size: tuple[int, int]) -> Figure:
    """How far the lens moves each pixel from where a pinhole camera would have it."""
    figure = _page("Distortion: from a pinhole camera's pixel to the lens's (px)")
    axes = figure.add_subplot()
    width, height = image_size
    rows = max(2, round(FIELD_COLUMNS * height / width))
    pixels = np.stack(
        np.meshgrid(np.linspace(0, width - 1, FIELD_COLUMNS), np.linspace(0, height - 1, rows)),
        axis=-1,
    )
    rays, reachable = unproject(intrinsics, pixels)
    focal, centre = intrinsics.array[:2], intrinsics.array[2:4]
    moved = np.where(reachable[..., None], pixels - (rays * focal + centre), np.nan)
    length = np.linalg.norm(moved, axis=-1)
    colours = axes.pcolormesh(
        *np.moveaxis(pixels, -1, 0), length, cmap=ERROR_RAMP, shading="gouraud"
    )
    axes.quiver(*np.moveaxis(pixels, -1, 0), *np.moveaxis(moved, -1, 0), angles="xy", width=0.0015)
    axes.plot(*centre, "+", color=USED_COLOUR, markersize=12)
    frame_picture(axes, image_size, "xy")
    figure.colorbar(colours, ax=axes)
    return figure
