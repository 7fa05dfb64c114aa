"""Intrinsics of one camera as Kalibr finds them: what ``kalibr_calibrate_cameras`` does.

The recipe is ``stock`` unless options say otherwise: one random order of the views, Kalibr's
thresholds. What the InFlux build of Kalibr adds is there too: corners from files, a first focal
length, and how stage 3 begins.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from influx_wrap.calibrate.adjust import KALIBR_STOP, adjust
from influx_wrap.calibrate.calibrator import Orders, calibrate
from influx_wrap.calibrate.incremental import Rollout
from influx_wrap.calibrate.pose import estimate_poses
from influx_wrap.calibrate.problem import pack
from influx_wrap.calibrate.recipe import Recipe, recipe_named
from influx_wrap.calibrate.result import Calibration
from influx_wrap.calibrate.rollouts import run_rollouts
from influx_wrap.calibrate.start import Start
from influx_wrap.compute.progress import Watch
from influx_wrap.formats.export.camchain import camchain_text
from influx_wrap.formats.files import check_writable, make_folder, write_text
from influx_wrap.formats.kalibr import COORDS, SUCCESSES, read_observations, read_target
from influx_wrap.formats.kalibr_results import (
    CameraResults,
    KalibrFiles,
    write_kalibr_poses,
    write_results,
)
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import Target
from influx_wrap.observe.bags import BagFrames
from influx_wrap.report.kalibr_report import write_kalibr_report
from influx_wrap.run.kalibr_corners import KalibrPictures, detect_all

BAG_SUFFIXES = (".bag", ".db3", ".mcap")
CORNER_FILES_STEM = "calib"
"""What the InFlux build names results of corner files, in the current folder."""
VIEW_NS = 1_000_000_000
InitMode: TypeAlias = Literal["default", "run_twice", "fixed_point", "override"]


@dataclass(frozen=True)
class CornerFiles:
    """Corners found before; ``image_size`` is (width, height) in pixels."""

    coords: Path
    successes: Path
    image_size: tuple[int, int]


@dataclass(frozen=True)
class KalibrSettings:
    """What Kalibr's options change of the recipe ``stock``.

    mi_tol             information in bits that a view must add to be used; -1: use all
    min_views_outlier  views needed before corners are removed
    focal_px           first focal length; None: found from the views
    init_mode          how the intrinsics are initialised: ``run_twice`` repeats stage 3 from where
                       it ended, ``override`` goes on from ``init`` (8,) instead
    """

    mi_tol: float
    min_views_outlier: int
    remove_outliers: bool
    filter_at_end: bool
    shuffle: bool
    init_mode: InitMode
    init: tuple[float, ...] | None
    focal_px: float | None
    seed: int


@dataclass(frozen=True, eq=False)
class CamerasResult:
    """The calibration, what its text says, and the files that were written."""

    calibration: Calibration
    results: CameraResults
    written: tuple[Path, ...]


def calibrate_cameras(
    target: Path,
    topic: str,
    source: KalibrPictures | CornerFiles,
    settings: KalibrSettings,
    *,
    report_dir: Path | None,
    export_poses: bool,
    watch: Watch,
) -> CamerasResult:
    """Find the corners if need be, calibrate, and write Kalibr's files.

    target      description of the board
    topic       the camera's name in the results
    report_dir  None: beside what is calibrated
    """
    recipe, focal_px = _recipe(settings)
    board = read_target(target)
    files = _files(source, report_dir)
    paths = [files.camchain, files.results, files.report]
    if export_poses:
        paths.append(files.poses)
    for path in paths:
        check_writable(path)
    observations, times_ns = _views(source, board, export_poses, watch)
    calibration = calibrate(
        observations,
        recipe,
        focal_px=focal_px,
        seed=settings.seed,
        orders=_orders(settings, recipe),
    )
    poses = estimate_poses(pack(observations), calibration.intrinsics.array)

    results = _results(calibration, topic)
    chain = camchain_text(calibration.intrinsics.array, calibration.image_size, topic)
    write_text(files.camchain, chain)
    write_results(files.results, results, board)
    write_kalibr_report(files.report, observations, calibration, poses, topic)
    if export_poses:
        kept = np.array([view.used for view in calibration.views])
        times = [time_ns for time_ns, used in zip(times_ns, kept, strict=True) if used]
        write_kalibr_poses(files.poses, times, calibration.poses[kept])
    return CamerasResult(calibration, results, tuple(paths))


def _recipe(settings: KalibrSettings) -> tuple[Recipe, float | None]:
    """Recipe, and the first focal length in pixels if one is given."""
    stock = recipe_named("stock")
    incremental = replace(
        stock.incremental,
        information_gain_bits=settings.mi_tol,
        min_views_outlier=settings.min_views_outlier,
        remove_outliers=settings.remove_outliers,
        filter_at_end=settings.filter_at_end,
    )
    focal_px = settings.focal_px
    if settings.init is not None:
        focal_px = (settings.init[0] + settings.init[1]) / 2
    recipe = replace(
        stock,
        focal="vanishing-point" if focal_px is None else "thin-lens",
        initialise="fixed-point" if settings.init_mode == "fixed_point" else "single",
        shuffle=settings.shuffle,
        incremental=incremental,
    )
    return recipe, focal_px


def _orders(settings: KalibrSettings, recipe: Recipe) -> Orders | None:
    """Stage 4 from other intrinsics than those of stage 3; None where it goes on from there."""
    if settings.init_mode not in ("run_twice", "override"):
        return None

    def begun_elsewhere(start: Start, poses: FloatArray) -> tuple[FloatArray, list[Rollout]]:
        problem = start.problem
        if settings.init is None:
            theta = adjust(problem, start.theta, poses, stop=KALIBR_STOP).theta
        else:
            theta = np.array(settings.init)
        return theta, run_rollouts(
            problem,
            theta,
            estimate_poses(problem, theta),
            n_rollouts=recipe.rollouts,
            shuffle=recipe.shuffle,
            options=recipe.incremental,
            seed=settings.seed,
        )

    return begun_elsewhere


def _files(source: KalibrPictures | CornerFiles, report_dir: Path | None) -> KalibrFiles:
    """Beside what is calibrated, or in ``report_dir``; corner files have a name for theirs."""
    if isinstance(source, CornerFiles):
        stem = Path(CORNER_FILES_STEM)
    else:
        # A folder may be given as . or .., which is no name for a file.
        path = source.path.resolve() if source.path.name in ("", "..") else source.path
        stem = path.with_suffix("") if path.suffix in BAG_SUFFIXES else path
    if report_dir is None:
        return KalibrFiles(stem)
    make_folder(report_dir)
    return KalibrFiles(report_dir / stem.name)


def _views(
    source: KalibrPictures | CornerFiles, target: Target, with_times: bool, watch: Watch
) -> tuple[Observations, list[int]]:
    """Observations, and when each view was in ns (the second of its number if nobody knows)."""
    if isinstance(source, CornerFiles):
        observations = read_observations(source.coords, source.successes, target, source.image_size)
        return observations, [VIEW_NS * view for view in observations.view_ids.tolist()]
    frames = source.open()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        detect_all(frames, target, folder, watch)
        observations = read_observations(
            folder / COORDS, folder / SUCCESSES, target, frames.image_size
        )
    views = observations.view_ids.tolist()
    if isinstance(frames, BagFrames) and with_times:
        times_ns = frames.times_ns()
        return observations, [times_ns[view] for view in views]
    return observations, [VIEW_NS * view for view in views]


def _verdict(calibration: Calibration) -> list[tuple[str, str]]:
    found = calibration.assessment
    return [] if found is None else [("verdict", found.sentence)]


def _results(calibration: Calibration, topic: str) -> CameraResults:
    used = [view for view in calibration.views if view.used]
    removed = sum(len(view.corners_removed) for view in used)
    return CameraResults(
        topic,
        calibration.intrinsics,
        calibration.sigma,
        calibration.residuals.mean_px,
        calibration.residuals.std_px,
        (
            ("views", f"{len(used)} used of {len(calibration.views)}"),
            ("corners", f"{calibration.residuals.corners} used, {removed} removed"),
            ("corner noise", f"{calibration.corner_sigma_px:.4f} px, which the deviations are for"),
            *_verdict(calibration),
            ("seed", str(calibration.seed)),
        ),
    )
