"""``kalibr_calibrate_cameras``: intrinsics of one camera, the way Kalibr finds them.

The recipe is ``stock`` unless options say otherwise: one random order of the views, Kalibr's
thresholds. What the InFlux build of Kalibr adds is there too: corners from files, the focal
length from the environment, and how stage 3 begins.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from influx_wrap.calibrate.adjust import KALIBR_STOP, adjust
from influx_wrap.calibrate.calibrator import Orders, calibrate
from influx_wrap.calibrate.incremental import Rollout
from influx_wrap.calibrate.pose import estimate_poses
from influx_wrap.calibrate.problem import Problem, pack
from influx_wrap.calibrate.recipe import Recipe, recipe_named
from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.calibrate.rollouts import run_rollouts
from influx_wrap.cli.kalibr.command_line import (
    MODEL,
    TOPIC,
    Parser,
    check_camera,
    check_span,
    count,
    detect_with_bar,
    note,
    number,
    positive,
    run,
)
from influx_wrap.errors import InputError
from influx_wrap.formats.detections import COORDS, SUCCESSES
from influx_wrap.formats.export.camchain import camchain_text
from influx_wrap.formats.files import check_writable, make_folder, write_text
from influx_wrap.formats.kalibr import read_observations, read_target
from influx_wrap.formats.kalibr_results import (
    CameraResults,
    KalibrFiles,
    write_poses,
    write_results,
)
from influx_wrap.model.intrinsics import FloatArray
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import Target
from influx_wrap.observe.bags import BagFrames
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.sources import open_frames
from influx_wrap.report.kalibr_report import write_kalibr_report

NAME = "kalibr_calibrate_cameras"
FOCAL_VARIABLE, SEED_VARIABLE = "FOCAL_LENGTH_GUESS", "INFLUX_SEED"
BAG_SUFFIXES = (".bag", ".db3", ".mcap")
IGNORED = {
    "--approx-sync": "there is one camera, nothing to synchronise",
    "--show-extraction": "no windows are opened",
    "--plot": "no windows are opened; the report has the figures",
    "--plot-outliers": "no windows are opened; the report marks the corners left out",
    "--no-final-filtering": "outlying corners are looked for once more at the end; "
    "--no-outliers-removal leaves all of that out",
}
"""Options without effect, and why."""


@dataclass(frozen=True, eq=False)
class _Seen:
    """Observations, and when each view was (its number where times are not known)."""

    observations: Observations
    times_ns: tuple[int, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    return run(_work, arguments)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        NAME,
        "Intrinsics of a camera from a bag, from a folder of pictures, or from corners found "
        "before. Writes NAME-camchain.yaml, NAME-results-cam.txt and NAME-report-cam.pdf. "
        f"{FOCAL_VARIABLE} in the environment is the focal length to begin with, in pixels; "
        f"{SEED_VARIABLE} chooses the order of the views (0).",
        f"{NAME} --bag cam0.bag --topics {TOPIC} \\\n      --models {MODEL} --target april.yaml "
        "--dont-show-report",
    )
    parser.add_argument("--models", nargs="+", required=True, help=f"{MODEL}, the only one")
    parser.add_argument("--target", type=Path, required=True, help="description of the board")
    parser.add_argument("--topics", nargs="+", metavar="TOPIC", help="topic of the pictures")

    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--bag", type=Path, help="a ROS 1 bag, or the folder of a ROS 2 bag")
    source.add_argument("--frames-dir", type=Path, metavar="DIR", help="a folder of pictures")
    source.add_argument("--detection-coords", type=Path, metavar="CSV", help="corners found before")
    parser.add_argument("--detection-successes", type=Path, metavar="CSV", help="which were found")
    parser.add_argument("--image-width", type=count, metavar="PX", help="with --detection-coords")
    parser.add_argument("--image-height", type=count, metavar="PX", help="with --detection-coords")
    parser.add_argument(
        "--bag-from-to",
        type=number,
        nargs=2,
        metavar=("A", "B"),
        help="seconds of the bag to use, from its first picture on",
    )
    parser.add_argument("--bag-freq", type=positive, metavar="HZ", help="at most so many pictures")

    parser.add_argument(
        "--mi-tol",
        type=number,
        default=0.2,
        metavar="BITS",
        help="information a view must add to be used (0.2); -1: use all",
    )
    parser.add_argument("--no-shuffle", action="store_true", help="take the views as they come")
    parser.add_argument("--no-outliers-removal", action="store_true", help="keep every corner")
    parser.add_argument(
        "--min-views-outlier",
        type=count,
        default=20,
        metavar="N",
        help="views needed before corners are removed (20)",
    )
    parser.add_argument(
        "--init-mode",
        choices=("default", "run_twice", "fixed_point", "override"),
        default="default",
        help="how the intrinsics are initialised",
    )
    parser.add_argument(
        "--init-intrinsics",
        type=number,
        nargs=4,
        metavar=("FX", "FY", "CX", "CY"),
        help="with --init-mode override",
    )
    parser.add_argument(
        "--init-distortion",
        type=number,
        nargs=4,
        metavar=("K1", "K2", "P1", "P2"),
        help="with --init-mode override (zeros)",
    )

    parser.add_argument("--report-dir", type=Path, metavar="DIR", help="where the files go")
    parser.add_argument("--export-poses", action="store_true", help="write NAME-poses-cam0.csv too")
    parser.add_argument("--verbose", action="store_true", help="say what became of each view")
    parser.add_argument("--dont-show-report", action="store_true", help="it never is")
    for option, why in IGNORED.items():
        nargs = "?" if option == "--approx-sync" else 0
        parser.add_argument(option, nargs=nargs, const=True, action=_Ignored, help=why)
    for option in ("--use-blakezisserman", "--eval"):
        parser.add_argument(option, action="store_true", help="not available")
    return parser


class _Ignored(argparse.Action):
    """Says why an option has no effect."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        option = self.option_strings[0]
        note(f"{option} has no effect: {IGNORED[option]}.")


def _work(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    _check_combination(options)
    topic = check_camera(options.topics or [TOPIC], options.models)
    recipe, focal_px, seed = _settings(options, os.environ)
    orders = _orders(options, recipe, seed)
    target = read_target(options.target)
    files = _files(options)
    for path in (files.camchain, files.results, files.report):
        check_writable(path)
    if options.export_poses:
        check_writable(files.poses)
    seen = _seen(options, target, topic)
    calibration = _calibrated(seen.observations, recipe, focal_px, seed, orders)
    poses = estimate_poses(pack(seen.observations), calibration.intrinsics.array)

    results = _results(calibration, topic)
    write_text(
        files.camchain,
        camchain_text(calibration.intrinsics.array, calibration.image_size, topic),
    )
    write_results(files.results, results, target)
    write_kalibr_report(files.report, seen.observations, calibration, poses, topic)
    written = [files.camchain, files.results, files.report]
    if options.export_poses:
        write_poses(files.poses, seen.times_ns, poses)
        written.append(files.poses)

    if options.verbose:
        _say_views(calibration)
    print("\n".join(results.lines()))
    for warning in calibration.warnings:
        note(f"{warning}.")
    for path in written:
        print(f"written: {path}")
    print(_comparison(calibration))


def _check_combination(options: argparse.Namespace) -> None:
    """Refuse options that do not go together, or that stand for what is not here."""
    if options.use_blakezisserman:
        raise InputError(
            "--use-blakezisserman is not available: leave it out, corners more than 4 sigma off "
            "are removed; influx-calib calibrate --recipe batch is robust throughout."
        )
    if options.eval:
        raise InputError("--eval is not available: leave it out; influx-calib evaluate scores.")
    if options.bag is not None and options.topics is None:
        raise InputError("--bag needs --topics, the topic of the pictures.")
    of_coords = {
        "--detection-successes": options.detection_successes,
        "--image-width": options.image_width,
        "--image-height": options.image_height,
    }
    for name, value in of_coords.items():
        if options.detection_coords is not None and value is None:
            raise InputError(f"--detection-coords needs {name}.")
        if options.detection_coords is None and value is not None:
            raise InputError(f"{name} goes with --detection-coords: leave it out.")
    if options.bag is None:
        for name, value in (("from-to", options.bag_from_to), ("freq", options.bag_freq)):
            if value is not None:
                raise InputError(f"--bag-{name} goes with --bag: leave it out.")
    override = options.init_mode == "override"
    if override and options.init_intrinsics is None:
        raise InputError("--init-mode override needs --init-intrinsics FX FY CX CY.")
    if not override and (options.init_intrinsics or options.init_distortion):
        raise InputError("--init-intrinsics and --init-distortion go with --init-mode override.")
    if override and not min(options.init_intrinsics[:2]) > 0:
        raise InputError("--init-intrinsics: the focal lengths FX and FY must be positive.")


def _settings(
    options: argparse.Namespace, environment: Mapping[str, str]
) -> tuple[Recipe, float | None, int]:
    """Recipe, first focal length in pixels if one is given, seed."""
    stock = recipe_named("stock")
    incremental = replace(
        stock.incremental,
        information_gain_bits=options.mi_tol,
        min_views_outlier=options.min_views_outlier,
        remove_outliers=not options.no_outliers_removal,
    )
    focal_px = _focal_guess(environment.get(FOCAL_VARIABLE, ""))
    if options.init_mode == "override":
        focal_px = (options.init_intrinsics[0] + options.init_intrinsics[1]) / 2
    recipe = replace(
        stock,
        focal="vanishing-point" if focal_px is None else "thin-lens",
        initialise="fixed-point" if options.init_mode == "fixed_point" else "single",
        shuffle=not options.no_shuffle,
        incremental=incremental,
    )
    seed = environment.get(SEED_VARIABLE, "").strip() or "0"
    if not seed.isdecimal():
        raise InputError(
            f"{SEED_VARIABLE} in the environment must be a whole number, got {seed!r}."
        )
    return recipe, focal_px, int(seed)


def _focal_guess(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        return positive(text)
    except (ValueError, argparse.ArgumentTypeError):
        raise InputError(
            f"{FOCAL_VARIABLE} in the environment must be a focal length in pixels, got {text!r}."
        ) from None


def _orders(options: argparse.Namespace, recipe: Recipe, seed: int) -> Orders | None:
    """Stage 4 from other intrinsics than those of stage 3; None where it goes on from there.

    ``run_twice`` repeats stage 3 from where it ended; ``override`` takes what the user gives.
    """
    if options.init_mode not in ("run_twice", "override"):
        return None

    def begun_elsewhere(problem: Problem, theta: FloatArray, poses: FloatArray) -> list[Rollout]:
        if options.init_mode == "run_twice":
            start = adjust(problem, theta, poses, stop=KALIBR_STOP).theta
        else:
            start = np.array([*options.init_intrinsics, *(options.init_distortion or [0.0] * 4)])
        return run_rollouts(
            problem,
            start,
            estimate_poses(problem, start),
            n_rollouts=recipe.rollouts,
            shuffle=recipe.shuffle,
            options=recipe.incremental,
            seed=seed,
        )

    return begun_elsewhere


def _files(options: argparse.Namespace) -> KalibrFiles:
    """Beside what is calibrated, or in --report-dir."""
    path: Path = options.bag or options.frames_dir or options.detection_coords
    # A folder may be given as . or .., which is no name for a file.
    path = path.resolve() if path.name in ("", "..") else path
    suffixes = (".csv",) if options.detection_coords else BAG_SUFFIXES
    stem = path.with_suffix("") if path.suffix in suffixes else path
    if options.report_dir is None:
        return KalibrFiles(stem)
    make_folder(options.report_dir)
    return KalibrFiles(options.report_dir / stem.name)


def _seen(options: argparse.Namespace, target: Target, topic: str) -> _Seen:
    if options.detection_coords is not None:
        observations = read_observations(
            options.detection_coords,
            options.detection_successes,
            target,
            (options.image_width, options.image_height),
        )
        return _Seen(observations, tuple(observations.view_ids.tolist()))
    source: FrameSource
    if options.bag is not None:
        span = check_span(options.bag_from_to, "--bag-from-to")
        source = BagFrames(options.bag, topic, from_to_s=span, freq_hz=options.bag_freq)
    else:
        source = open_frames(options.frames_dir)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        detect_with_bar(source, target, folder)
        observations = read_observations(
            folder / COORDS, folder / SUCCESSES, target, source.image_size
        )
    views = observations.view_ids.tolist()
    if isinstance(source, BagFrames) and options.export_poses:
        times_ns = source.times_ns()
        return _Seen(observations, tuple(times_ns[view] for view in views))
    return _Seen(observations, tuple(views))


def _calibrated(
    observations: Observations,
    recipe: Recipe,
    focal_px: float | None,
    seed: int,
    orders: Orders | None,
) -> Calibration:
    try:
        return calibrate(observations, recipe, focal_px=focal_px, seed=seed, orders=orders)
    except CalibrationError as error:
        if error.stage != "focal length":
            raise
        raise CalibrationError(
            error.stage,
            error.reason,
            f"Set {FOCAL_VARIABLE} in the environment to the focal length in pixels: the lens's in "
            "millimetres divided by the width of a pixel.",
        ) from None


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
            ("seed", str(calibration.seed)),
        ),
    )


def _say_views(calibration: Calibration) -> None:
    print(f"first focal length: {calibration.focal_start_px:.2f} px")
    for view in calibration.views:
        what = (
            f"{view.corners_used} corners, rms {view.rms_px:.4f} px"
            if view.rms_px is not None
            else f"not used: {view.reason}"
        )
        print(f"view {view.view}: {what}")


def _comparison(calibration: Calibration) -> str:
    """How the other recipes differ, with the numbers that are known already."""
    batch = calibration.stages["all_views"]
    return (
        f"This is Kalibr's procedure, one order of the views; all views at once (recipe batch) "
        f"give fx {batch.fx:.3f}, fy {batch.fy:.3f}, cx {batch.cx:.3f}, cy {batch.cy:.3f}; "
        "recipe influx tries 100 orders from the lens's focal length: see influx-calib calibrate "
        "--help."
    )


if __name__ == "__main__":
    raise SystemExit(main())
