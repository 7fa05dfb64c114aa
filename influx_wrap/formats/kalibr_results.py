"""What a Kalibr run leaves behind besides its camchain: results as text, and poses.

``<name>-results-cam.txt`` is made for reading, but programs read it too: they look for the lines
``distortion:``, ``projection:`` and ``reprojection error:`` under a camera's name, each with
``[values] +- [standard deviations]``. Poses are a CSV in EuRoC's columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from influx_wrap.formats.files import write_text
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.target import AprilGrid, Charuco, Checkerboard, CircleGrid, Target

DECIMALS = 8
POSE_COLUMNS = (
    *("#timestamp [ns]", "p_RS_R_x [m]", "p_RS_R_y [m]", "p_RS_R_z [m]"),
    *("q_RS_w []", "q_RS_x []", "q_RS_y []", "q_RS_z []"),
)


@dataclass(frozen=True)
class KalibrFiles:
    """The files of a run: ``stem`` and Kalibr's endings."""

    stem: Path

    @property
    def camchain(self) -> Path:
        """Intrinsics, for programs."""
        return self._named("-camchain.yaml")

    @property
    def results(self) -> Path:
        """Intrinsics with standard deviations, for people."""
        return self._named("-results-cam.txt")

    @property
    def report(self) -> Path:
        """Figures."""
        return self._named("-report-cam.pdf")

    @property
    def poses(self) -> Path:
        """Where the camera was in each view."""
        return self._named("-poses-cam0.csv")

    def _named(self, ending: str) -> Path:
        return self.stem.with_name(self.stem.name + ending)


@dataclass(frozen=True, eq=False)
class CameraResults:
    """What the text says about a camera.

    sigma             (8,) standard deviations of the intrinsics
    residual_mean_px  of observed minus projected corners, in x and y
    residual_std_px   the same
    remarks           further lines, each a name and a value
    """

    topic: str
    intrinsics: Intrinsics
    sigma: FloatArray
    residual_mean_px: tuple[float, float]
    residual_std_px: tuple[float, float]
    remarks: tuple[tuple[str, str], ...] = ()

    def lines(self) -> list[str]:
        """As they stand in the file."""
        values = self.intrinsics.array
        error = f"{_bracketed(self.residual_mean_px)} +- {_bracketed(self.residual_std_px)}"
        return [
            f"cam0 ({self.topic}):",
            "    type: pinhole-radtan",
            f"    distortion: {_bracketed(values[4:])} +- {_bracketed(self.sigma[4:])}",
            f"    projection: {_bracketed(values[:4])} +- {_bracketed(self.sigma[:4])}",
            f"    reprojection error: {error}",
            *(f"    {name}: {value}" for name, value in self.remarks),
        ]


def write_results(path: Path, results: CameraResults, target: Target) -> None:
    """Write ``<name>-results-cam.txt``."""
    rule = "===================="
    camera = ["Calibration results", rule, "Camera-system parameters:", *results.lines()]
    described = ["Target configuration", rule, *_target_lines(target)]
    write_text(path, "\n".join([*camera, "", *described]) + "\n")


def write_kalibr_poses(path: Path, times_ns: Sequence[int], poses: FloatArray) -> None:
    """Write where the camera was in the target's frame, from ``poses`` (V, 12).

    Those take the target to the camera: a rotation matrix row by row, and a translation.
    """
    rotation = poses[:, :9].reshape(-1, 3, 3)
    position = -np.einsum("vji,vj->vi", rotation, poses[:, 9:])
    quaternion = Rotation.from_matrix(np.swapaxes(rotation, 1, 2)).as_quat(canonical=True)
    rows = [",".join(POSE_COLUMNS)]
    for time_ns, where, (x, y, z, w) in zip(times_ns, position, quaternion, strict=True):
        numbers = (*where.tolist(), w, x, y, z)
        rows.append(",".join([str(time_ns), *(f"{value:.9f}" for value in numbers)]))
    write_text(path, "\n".join(rows) + "\n")


def _bracketed(values: ArrayLike) -> str:
    # Adding 0 takes the sign off a rounded-away -0.
    rounded = np.round(np.asarray(values, dtype=float), DECIMALS) + 0.0
    return f"[{', '.join(f'{value:.{DECIMALS}f}' for value in rounded.tolist())}]"


def _target_lines(target: Target) -> list[str]:
    match target:
        case AprilGrid():
            return [
                "  Type: aprilgrid",
                "  Tags:",
                f"    Rows: {target.tag_rows}",
                f"    Cols: {target.tag_cols}",
                f"    Size: {target.tag_size_m:g} [m]",
                f"    Spacing: {target.tag_size_m * target.tag_spacing:g} [m]",
            ]
        case Checkerboard():
            return [
                "  Type: checkerboard",
                "  Inner corners:",
                f"    Rows: {target.rows}",
                f"    Cols: {target.cols}",
                f"    Spacing: {target.row_spacing_m:g} x {target.col_spacing_m:g} [m]",
            ]
        case Charuco():
            return [
                "  Type: charuco",
                "  Squares:",
                f"    Rows: {target.rows}",
                f"    Cols: {target.cols}",
                f"    Size: {target.square_size_m:g} [m]",
                f"  Markers: {target.dictionary}, {target.marker_size_m:g} [m]",
            ]
        case CircleGrid():
            return [
                f"  Type: circlegrid{', asymmetric' if target.asymmetric else ''}",
                "  Circles:",
                f"    Rows: {target.rows}",
                f"    Cols: {target.cols}",
                f"    Spacing: {target.spacing_m:g} [m]",
            ]
        case _:
            return ["  Type: pointcloud", f"  Points: {len(target.points)}"]
