"""Our answers next to those of mrcal and OpenCV, on the same corners of a checkerboard.

The sets are simulated: 50 views of 14 x 10 corners, 3424 x 2202 pixels, f = 3000 px, another draw
of poses and noise for each. All three begin at a focal length 5 % off. mrcal is its own command,
``mrcal-calibrate-cameras`` with ``LENSMODEL_OPENCV4``, which are our eight parameters; it rejects
outliers and estimates the bend of the board, as we do. Errors are in units of the Cramér-Rao bound.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.report import verdict
from benchmarks.scene import CAMERA, TRUTH
from benchmarks.speed import FOCAL_GUESS_PX, opencv_adjustment
from influx_wrap.calibrate.bound import cramer_rao
from influx_wrap.errors import InputError
from influx_wrap.formats.kalibr import write_observations, write_target
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES, project
from influx_wrap.model.observations import Observations
from influx_wrap.model.pose import rotation_matrix
from influx_wrap.model.target import Checkerboard, bow_basis
from influx_wrap.model.truth import Noise, Truth
from influx_wrap.synth.board import FRONTAL

COMMAND = "mrcal-calibrate-cameras"
TARGET = Checkerboard(14, 10, 0.05, 0.05)
SETS, VIEWS = 10, 50
TILT_DEG = 35.0
PLACES_M = (-0.7, -0.4, 1.3), (0.7, 0.4, 2.2)
"""Of the board's middle, in camera space."""
CONDITIONS = {
    "0.1 px noise": Noise(),
    "2 % displaced by up to 30 px": Noise(outliers=0.02),
    "board bent by 0.5 mm": Noise(bow_mm=0.5),
}
MOST_WORSE = 1.15
"""Our RMS error may be so many times mrcal's."""

Solver = Callable[[Observations, Path], FloatArray]


def is_installed() -> bool:
    """Whether there is a mrcal."""
    return shutil.which(COMMAND) is not None


def by_mrcal(observations: Observations, folder: Path) -> FloatArray:
    """Intrinsics (8,) by mrcal."""
    rows, cols = TARGET.grid_shape
    # mrcal's rows go down, ours go up.
    order = np.arange(rows * cols).reshape(rows, cols)[::-1].ravel()
    lines = ["# filename x y level"]
    for view, (uv, valid) in enumerate(zip(observations.uv, observations.valid, strict=True)):
        lines += [
            f"frame{view:03d}.png {uv[k, 0]:.6f} {uv[k, 1]:.6f} 0"
            if valid[k]
            else f"frame{view:03d}.png - - -"
            for k in order
        ]
    (folder / "corners.vnl").write_text("\n".join(lines) + "\n")
    width, height = observations.image_size
    _run(
        COMMAND, "--corners-cache", folder / "corners.vnl", "--lensmodel", "LENSMODEL_OPENCV4",
        "--focal", FOCAL_GUESS_PX, "--imagersize", width, height,
        "--object-spacing", TARGET.col_spacing_m, "--object-width-n", cols,
        "--object-height-n", rows, "--outdir", folder, "frame*.png",
    )  # fmt: skip
    model = ast.literal_eval((folder / "camera-0.cameramodel").read_text())
    assert model["lensmodel"] == "LENSMODEL_OPENCV4"
    return np.array(model["intrinsics"])


def by_us(observations: Observations, folder: Path) -> FloatArray:
    """Intrinsics (8,) by ``influx-calib calibrate``, with the default recipe."""
    write_target(folder / "target.yaml", TARGET)
    write_observations(folder / "coords.csv", folder / "successes.csv", observations)
    width, height = observations.image_size
    _run(
        Path(sys.executable).with_name("influx-calib"), "calibrate",
        "--target", folder / "target.yaml", "--coords", folder / "coords.csv",
        "--successes", folder / "successes.csv", "--size", f"{width}x{height}",
        "--focal-px", FOCAL_GUESS_PX, "--out", folder / "result.json",
    )  # fmt: skip
    intrinsics = json.loads((folder / "result.json").read_text())["intrinsics"]
    return np.array([intrinsics[name] for name in NAMES])


def by_opencv(observations: Observations, folder: Path) -> FloatArray:
    """Intrinsics (8,) by ``cv2.calibrateCamera``."""
    with threadpool_limits(1):
        return opencv_adjustment(observations)


SOLVERS: dict[str, Solver] = {"ours": by_us, "mrcal": by_mrcal, "OpenCV": by_opencv}


def simulated(noise: Noise, rng: np.random.Generator) -> tuple[Observations, Truth]:
    """A set of views, in each of which the whole board is in the picture."""
    bow_m = 1e-3 * noise.bow_mm * np.array([1.0, 0.0, 0.0])
    points = TARGET.points + np.array([0, 0, 1]) * (bow_basis(TARGET.points) @ bow_m)[:, None]
    middle = TARGET.points.mean(axis=0)
    rotations, translations, seen = [], [], []
    while len(seen) < VIEWS:
        rotation = rotation_matrix(np.radians(rng.uniform(-TILT_DEG, TILT_DEG, 3))) @ FRONTAL
        place = rng.uniform(*PLACES_M)
        translation = place - rotation @ middle
        uv, in_front = project(TRUTH, points @ rotation.T + translation)
        if in_front.all() and (uv > 0).all() and (uv < np.array(CAMERA.image_size) - 1).all():
            rotations.append(rotation)
            translations.append(translation)
            seen.append(uv + noise.corner_px * rng.standard_normal(uv.shape))
    uv = np.array(seen)
    outliers = rng.random(uv.shape[:2]) < noise.outliers
    shifts = rng.uniform(-noise.outlier_px, noise.outlier_px, (int(outliers.sum()), 2))
    uv[outliers] += shifts
    observations = Observations(TARGET, uv, np.ones(uv.shape[:2], dtype=bool), CAMERA.image_size)
    truth = Truth(
        TRUTH, np.array(rotations), np.array(translations), points, bow_m, outliers, noise
    )
    return observations, truth


def compare(noise: Noise, sets: int = SETS) -> dict[str, FloatArray]:
    """Errors of every solver on the same sets, in bounds: (sets, 8)."""
    errors: dict[str, list[FloatArray]] = {name: [] for name in SOLVERS}
    for seed in range(sets):
        seen, truth = simulated(noise, np.random.default_rng([seed, 7]))
        bound = np.sqrt(np.diag(cramer_rao(seen, truth, bow=noise.bow_mm > 0)))
        for name, solver in SOLVERS.items():
            with tempfile.TemporaryDirectory() as folder:
                found = solver(seen, Path(folder))
            errors[name].append((found - TRUTH.array) / bound)
    return {name: np.array(errors[name]) for name in SOLVERS}


def run(console: Console) -> bool:
    """Print the comparison; whether we are as good."""
    if not is_installed():
        console.print(f"{COMMAND} is not on the PATH; on Debian: apt-get install mrcal")
        return False
    table = Table(title=f"RMS of error / bound, {SETS} sets of {VIEWS} views")
    for heading in ("corners", "by", "fx", "fy", "cx", "cy", "k1", "k2", "all", "from mrcal", ""):
        table.add_column(heading)
    passed = True
    for condition, noise in CONDITIONS.items():
        errors = compare(noise)
        is_good = _rms(errors["ours"]) <= MOST_WORSE * _rms(errors["mrcal"])
        passed &= is_good
        for name, of_name in errors.items():
            table.add_row(
                condition if name == "ours" else "", name,
                *(f"{_rms(column):.2f}" for column in of_name.T[:6]),
                f"{_rms(of_name):.2f}", f"{_rms(of_name - errors['mrcal']):.2f}",
                verdict(is_good) if name == "ours" else "",
            )  # fmt: skip
    console.print(table)
    return passed


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"{words[0]} ended with code {done.returncode}:\n{done.stderr[-2000:]}")
