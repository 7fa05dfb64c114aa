"""What a Kalibr run leaves behind: written as a Kalibr does, and read back of a real one.

``<name>-results-cam.txt`` is made for reading, but programs read it too: they look for the lines
``distortion:``, ``projection:`` and ``reprojection error:`` under a camera's name, each with
``[values] +- [standard deviations]``. Nothing else has the deviations, and a real Kalibr writes
them with or without commas, broken over lines where they are long; they are those of a corner
noise of 1 px, whatever the noise was. The camchain has the numbers in full. Poses are a CSV in
EuRoC's columns. Pixel (0, 0) is the centre of the top-left pixel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_text, read_yaml, write_text
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.target import AprilGrid, Charuco, Checkerboard, CircleGrid, Target
from influx_wrap.model.words import size_text

CAMCHAINS, RESULTS = "*camchain*.yaml", "*results-cam*.txt"
POSES, ROLLOUTS = "*poses-cam0.csv", "*-rollouts.json"
DECIMALS = 8
CAMERA_TYPE = "<class 'aslam_cv.libaslam_cv_python.DistortedPinholeCameraGeometry'>"
POSE_COLUMNS = (
    *("#timestamp", "p_RS_R_x [m]", "p_RS_R_y [m]", "p_RS_R_z [m]"),
    *("q_RS_w []", "q_RS_x []", "q_RS_y []", "q_RS_z []"),
)
"""Kalibr's header, which is wrong of the quaternion: see ``write_kalibr_poses``."""


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
        error = " +- ".join(
            f"[{x:.6f}, {y:.6f}]" for x, y in (self.residual_mean_px, self.residual_std_px)
        )
        return [
            f"cam0 ({self.topic}):",
            f"    type: {CAMERA_TYPE}",
            f"    distortion: {_vector(values[4:])} +- {_vector(self.sigma[4:])}",
            f"    projection: {_vector(values[:4])} +- {_vector(self.sigma[:4])}",
            f"    reprojection error: {error}",
        ]

    def remark_lines(self) -> list[str]:
        """What Kalibr does not say."""
        return [f"    {name}: {value}" for name, value in self.remarks]


def write_results(path: Path, results: CameraResults, target: Target) -> None:
    """Write ``<name>-results-cam.txt``, as Kalibr does; our own remarks come last."""
    rule = "===================="
    camera = ["Calibration results ", rule, "Camera-system parameters:", *results.lines()]
    described = ["Target configuration", rule, "", *_target_lines(target)]
    remarks = ["Remarks of influx_wrap", rule, *results.remark_lines()] if results.remarks else []
    write_text(path, "\n".join([*camera, "", "", "", *described, "", *remarks]).rstrip() + "\n")


def write_kalibr_poses(path: Path, times_ns: Sequence[int], poses: FloatArray) -> None:
    """Write where the camera was in the target's frame, from ``poses`` (V, 12).

    Those take the target to the camera: a rotation matrix row by row, and a translation. As in
    Kalibr's files, the last four columns are x, y, z, w of the rotation from target to camera,
    which is the conjugate of the camera's orientation, whatever the header says.
    """
    rotation = poses[:, :9].reshape(-1, 3, 3)
    position = -np.einsum("vji,vj->vi", rotation, poses[:, 9:])
    quaternion = Rotation.from_matrix(rotation).as_quat(canonical=True)
    rows = [", ".join(POSE_COLUMNS)]
    for row in np.argsort(times_ns, kind="stable").tolist():
        numbers = (*position[row].tolist(), *quaternion[row].tolist())
        rows.append(",".join([str(times_ns[row]), *(f"{value:.6f}" for value in numbers)]))
    write_text(path, "\n".join(rows) + "\n")


def _vector(values: ArrayLike) -> str:
    """As numpy prints it: without commas, at most eight decimals."""
    # Adding 0 takes the sign off a rounded-away -0.
    rounded = np.round(np.asarray(values, dtype=float), DECIMALS) + 0.0
    return np.array2string(rounded, precision=DECIMALS, suppress_small=True)


def _target_lines(target: Target) -> list[str]:
    match target:
        case AprilGrid():
            return [
                "  Type: aprilgrid",
                "  Tags: ",
                f"    Rows: {target.tag_rows}",
                f"    Cols: {target.tag_cols}",
                f"    Size: {target.tag_size_m} [m]",
                f"    Spacing {target.tag_size_m * target.tag_spacing} [m]",
            ]
        case Checkerboard():
            sides = (
                ("Rows", target.rows, target.row_spacing_m),
                ("Cols", target.cols, target.col_spacing_m),
            )
            return [
                "  Type: checkerboard",
                *(
                    line
                    for name, count, distance_m in sides
                    for line in (
                        f"  {name}",
                        f"    Count: {count}",
                        f"    Distance: {distance_m} [m]",
                    )
                ),
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
            return ["  Type: circlegrid"]
        case _:
            return ["  Type: pointcloud"]


def read_camchain(path: Path, image_size: tuple[int, int]) -> Intrinsics:
    """The one camera of a camchain, which must be pinhole-radtan for images of this size."""
    camera = read_yaml(path).record("cam0")
    for key, needed in (("camera_model", "pinhole"), ("distortion_model", "radtan")):
        if camera.text(key) != needed:
            raise camera.fault(key, f"must be {needed}, got {camera.text(key)!r}.")
    if camera.numbers("resolution") != image_size:
        found = " x ".join(f"{number:g}" for number in camera.numbers("resolution"))
        raise camera.fault("resolution", f"is {found}, not {size_text(image_size)}.")
    values = [*camera.numbers("intrinsics", 4), *camera.numbers("distortion_coeffs", 4)]
    if min(values[:2]) <= 0:
        raise camera.fault("intrinsics", "are no camera's: a focal length must be positive.")
    return Intrinsics.from_array(np.array(values))


def read_sigma(path: Path) -> FloatArray:
    """(8,) the standard deviations of the first camera in a results text."""
    text = read_text(path)
    return np.concatenate([_deviations(path, text, key) for key in ("projection", "distortion")])


def _deviations(path: Path, text: str, key: str) -> FloatArray:
    found = re.search(rf"{key}:\s*\[[^\]]*\]\s*\+-\s*\[([^\]]*)\]", text)
    if found is None:
        raise InputError(f"{path} has no line {key}: [...] +- [...].")
    try:
        values = np.array([float(word) for word in found[1].replace(",", " ").split()])
    except ValueError:
        raise InputError(f"{path}: the deviations of {key} are not numbers.") from None
    if values.shape != (4,) or not np.isfinite(values).all() or (values < 0).any():
        raise InputError(f"{path}: {key} needs four deviations of at least 0.")
    return values
