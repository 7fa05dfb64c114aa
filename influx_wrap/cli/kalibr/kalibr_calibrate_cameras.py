"""``kalibr_calibrate_cameras``: intrinsics of one camera, the way Kalibr finds them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.cli.kalibr.command_line import (
    MODEL,
    Parser,
    check_camera,
    check_span,
    count,
    finite,
    note,
    positive,
    run,
)
from influx_wrap.cli.progress import watch
from influx_wrap.errors import InputError
from influx_wrap.formats.kalibr import TOPIC
from influx_wrap.run.kalibr_cameras import (
    CornerFiles,
    KalibrSettings,
    calibrate_cameras,
)
from influx_wrap.run.kalibr_corners import KalibrPictures

NAME = "kalibr_calibrate_cameras"
FOCAL_VARIABLE, SEED_VARIABLE = "FOCAL_LENGTH_GUESS", "INFLUX_SEED"
IGNORED = {
    "--approx-sync": "there is one camera, nothing to synchronise",
    "--show-extraction": "no windows are opened",
    "--plot": "no windows are opened; the report has the figures",
    "--plot-outliers": "no windows are opened; the report marks the corners left out",
    "--qr-tol": "Kalibr does not use it either",
}
"""Options without effect, and why."""


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
    _add_source(parser)
    _add_recipe(parser)
    _add_output(parser)
    return parser


def _add_source(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--bag", type=Path, help="a ROS 1 bag, or the folder of a ROS 2 bag")
    source.add_argument("--frames-dir", type=Path, metavar="DIR", help="a folder of pictures")
    source.add_argument("--detection-coords", type=Path, metavar="CSV", help="corners found before")
    parser.add_argument("--detection-successes", type=Path, metavar="CSV", help="which were found")
    parser.add_argument("--image-width", type=count, metavar="PX", help="with --detection-coords")
    parser.add_argument("--image-height", type=count, metavar="PX", help="with --detection-coords")
    parser.add_argument(
        "--bag-from-to",
        type=finite,
        nargs=2,
        metavar=("A", "B"),
        help="seconds of the bag to use, from its first picture on",
    )
    parser.add_argument("--bag-freq", type=positive, metavar="HZ", help="at most so many pictures")


def _add_recipe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mi-tol",
        type=finite,
        default=0.2,
        metavar="BITS",
        help="information a view must add to be used (0.2); -1: use all",
    )
    parser.add_argument("--no-shuffle", action="store_true", help="take the views as they come")
    parser.add_argument("--no-outliers-removal", action="store_true", help="keep every corner")
    parser.add_argument(
        "--no-final-filtering", action="store_true", help="look for no more of them at the end"
    )
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
        type=finite,
        nargs=4,
        metavar=("FX", "FY", "CX", "CY"),
        help="with --init-mode override",
    )
    parser.add_argument(
        "--init-distortion",
        type=finite,
        nargs=4,
        metavar=("K1", "K2", "P1", "P2"),
        help="with --init-mode override (zeros)",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--report-dir", type=Path, metavar="DIR", help="where the files go")
    parser.add_argument("--export-poses", action="store_true", help="write NAME-poses-cam0.csv too")
    parser.add_argument("--verbose", action="store_true", help="say what became of each view")
    parser.add_argument("--dont-show-report", action="store_true", help="it never is")
    for option, why in IGNORED.items():
        nargs = "?" if option in ("--approx-sync", "--qr-tol") else 0
        parser.add_argument(option, nargs=nargs, const=True, action=_Ignored, help=why)
    for option in ("--use-blakezisserman", "--eval"):
        parser.add_argument(option, action="store_true", help="not available")


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
    source, settings = _source(options, topic), _settings(options, os.environ)
    try:
        done = calibrate_cameras(
            options.target,
            topic,
            source,
            settings,
            report_dir=options.report_dir,
            export_poses=options.export_poses,
            watch=watch,
        )
    except CalibrationError as error:
        raise _with_advice(error) from None
    if options.verbose:
        _say_views(done.calibration)
    print("\n".join([*done.results.lines(), *done.results.remark_lines()]))
    for warning in done.calibration.warnings:
        note(f"{warning}.")
    for path in done.written:
        print(f"written: {path}")
    print(_comparison(done.calibration))


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


def _source(options: argparse.Namespace, topic: str) -> KalibrPictures | CornerFiles:
    if options.detection_coords is not None:
        image_size = options.image_width, options.image_height
        return CornerFiles(options.detection_coords, options.detection_successes, image_size)
    if options.bag is not None:
        span = check_span(options.bag_from_to, "--bag-from-to")
        return KalibrPictures(options.bag, topic, span, options.bag_freq)
    return KalibrPictures(options.frames_dir)


def _settings(options: argparse.Namespace, environment: Mapping[str, str]) -> KalibrSettings:
    focal_px = _focal_guess(environment.get(FOCAL_VARIABLE, ""))
    seed = environment.get(SEED_VARIABLE, "").strip() or "0"
    if not seed.isdecimal():
        raise InputError(
            f"{SEED_VARIABLE} in the environment must be a whole number, got {seed!r}."
        )
    init = None
    if options.init_mode == "override":
        init = (*options.init_intrinsics, *(options.init_distortion or [0.0] * 4))
    return KalibrSettings(
        mi_tol=options.mi_tol,
        min_views_outlier=options.min_views_outlier,
        remove_outliers=not options.no_outliers_removal,
        filter_at_end=not options.no_final_filtering,
        shuffle=not options.no_shuffle,
        init_mode=options.init_mode,
        init=init,
        focal_px=focal_px,
        seed=int(seed),
    )


def _focal_guess(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        return positive(text)
    except (ValueError, argparse.ArgumentTypeError):
        raise InputError(
            f"{FOCAL_VARIABLE} in the environment must be a focal length in pixels, got {text!r}."
        ) from None


def _with_advice(error: CalibrationError) -> CalibrationError:
    """The error, with the advice that this command can give if no focal length was found."""
    if error.stage != "focal length":
        return error
    return CalibrationError(
        error.stage,
        error.reason,
        f"Set {FOCAL_VARIABLE} in the environment to the focal length in pixels: the lens's in "
        "millimetres divided by the width of a pixel.",
    )


def _say_views(calibration: Calibration) -> None:
    print(f"first focal length: {calibration.focal_start_px:.2f} px")
    for view in calibration.views:
        what = (
            f"{view.corners_used} corners, rms {view.rms_px:.4f} px"
            if view.rms_px is not None
            else f"not used: {view.reason}"
        )
        print(f"{view.label}: {what}")


def _comparison(calibration: Calibration) -> str:
    """How the other recipes differ, with the numbers that are known already."""
    batch = calibration.stages["all_views"]
    return (
        f"This is Kalibr's procedure, one order of the views; all views at once (recipe batch) "
        f"give fx {batch.fx:.3f}, fy {batch.fy:.3f}, cx {batch.cx:.3f}, cy {batch.cy:.3f}; "
        "recipe influx tries 100 orders and answers with all views: see influx-calib calibrate "
        "--help."
    )


if __name__ == "__main__":
    raise SystemExit(main())
