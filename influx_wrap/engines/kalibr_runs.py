"""Runs of a Kalibr: how each kind is asked, and what its files and its log say afterwards.

Upstream's and the InFlux build make one order of the views in a run, so every rollout is a run of
its own; our fork makes all of them in one. Upstream's takes no corners: it is given a bag of the
pictures, and is told the focal length at the prompt that it shows whenever its own guess fails.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from influx_wrap.calibrate.incremental import IncrementalOptions
from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.engines.kalibr import (
    FOCAL_LENGTH,
    MANUAL_FOCAL_LENGTH,
    SEED,
    KalibrRun,
    Place,
    RunFailed,
    last_words,
    plain_words,
    printed,
)
from influx_wrap.engines.kalibr_kind import KalibrKind
from influx_wrap.errors import InputError
from influx_wrap.formats.kalibr import COORDS, SUCCESSES, TARGET, TOPIC
from influx_wrap.formats.kalibr_log import (
    ForkRollout,
    read_fork_rollouts,
    read_log,
    read_pose_times,
)
from influx_wrap.formats.kalibr_results import (
    CAMCHAINS,
    POSES,
    RESULTS,
    ROLLOUTS,
    read_camchain,
    read_sigma,
)
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES

LOG = "kalibr.log"
BAG = "pictures.bag"
SEEDS_PER_EXPERIMENT = 1000
"""Rollout k of seed s has the seed 1000 s + k."""
ANSWERS = 16
"""How often the focal length is typed: Kalibr asks when it starts and at each of its restarts."""
VIEW_S = 1_000_000_000
"""Views of files are a second apart, in nanoseconds."""

INIT_MODES = {"single": "default", "fixed-point": "fixed_point"}
OPTIONS = {"information_gain_bits": "--mi-tol", "min_views_outlier": "--min-views-outlier"}
SWITCHES = {
    "remove_outliers": "--no-outliers-removal",
    "filter_at_end": "--no-final-filtering",
}


@dataclass(frozen=True, eq=False)
class RunReport:
    """What became of a rollout; None for what this Kalibr does not say.

    theta           (8,) intrinsics; None if it failed, and ``failure`` says why
    sigma           (8,) Kalibr's standard deviations, for a corner noise of 1 px
    initialisation  (8,) intrinsics that it began at
    views           numbers of the views it kept
    """

    seed: int
    theta: FloatArray | None = None
    sigma: FloatArray | None = None
    initialisation: FloatArray | None = None
    views: tuple[int, ...] | None = None
    views_used: int | None = None
    corners_removed: int | None = None
    restarts: int | None = None
    failure: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a result file."""
        return {
            "seed": self.seed,
            "initialisation": _named(self.initialisation),
            "sigma": _named(self.sigma),
            "views_used": self.views_used,
            "corners_removed": self.corners_removed,
            "restarts": self.restarts,
            "failure": self.failure,
        }


@dataclass(frozen=True)
class KalibrRequest:
    """What is asked of a Kalibr for one experiment, whose files are in ``folder``.

    guess_px   first focal length; None leaves it to Kalibr
    jobs       rollouts at a time, for a Kalibr that makes several
    timeout_s  how long one may take
    """

    kind: KalibrKind
    place: Place
    folder: Path
    image_size: tuple[int, int]
    recipe: Recipe
    guess_px: float | None
    seed: int
    jobs: int
    timeout_s: float

    def rollout(self, k: int) -> KalibrRun:
        """The run that is rollout ``k``, of upstream's or the InFlux build."""
        report = self.folder / f"rollout-{k:03d}"
        read, write = self.place.seen_as(self.folder, report)
        arguments = [*self._arguments(read), "--export-poses"]
        environment = {"MPLBACKEND": "Agg", SEED: f"{rollout_seed(self.seed, k)}"}
        typed = ""
        if self.kind == "upstream":
            # Its results go where the bag is.
            arguments += ["--bag", f"{write / BAG}"]
            if self.guess_px is not None:
                environment[MANUAL_FOCAL_LENGTH] = "1"
                typed = f"{self.guess_px!r}\n" * ANSWERS
        else:
            arguments += self._corners(read, write)
            if self.guess_px is not None:
                environment[FOCAL_LENGTH] = f"{self.guess_px!r}"
        arguments += _recipe_arguments(self.recipe)
        return KalibrRun(tuple(arguments), report / LOG, self.folder, report, environment, typed)

    def all_rollouts(self) -> KalibrRun:
        """The one run of our fork."""
        report = self.folder / "rollouts"
        read, write = self.place.seen_as(self.folder, report)
        fallback = self.recipe.fallback_percent
        arguments = [
            *self._arguments(read),
            *self._corners(read, write),
            *("--rollouts", f"{self.recipe.rollouts}", "--rollout-jobs", f"{self.jobs}"),
            *("--rollout-timeout", f"{max(1, round(self.timeout_s))}", "--seed", f"{self.seed}"),
            *("--fallback-percent", "inf" if fallback is None else f"{fallback}"),
            *_recipe_arguments(self.recipe),
        ]
        environment = {"MPLBACKEND": "Agg"}
        if self.guess_px is not None:
            environment[FOCAL_LENGTH] = f"{self.guess_px!r}"
        return KalibrRun(tuple(arguments), report / LOG, self.folder, report, environment)

    def _arguments(self, read: Path) -> list[str]:
        model = ("--models", "pinhole-radtan", "--topics", TOPIC, "--dont-show-report")
        return ["--target", f"{read / TARGET}", *model]

    def _corners(self, read: Path, write: Path) -> list[str]:
        width, height = self.image_size
        return [
            *("--detection-coords", f"{read / COORDS}"),
            *("--detection-successes", f"{read / SUCCESSES}"),
            *("--image-width", f"{width}", "--image-height", f"{height}"),
            *("--report-dir", f"{write}", "--init-mode", INIT_MODES[self.recipe.initialise]),
        ]


def rollout_seed(seed: int, k: int) -> int:
    """The seed of rollout ``k``."""
    return seed * SEEDS_PER_EXPERIMENT + k


def _recipe_arguments(recipe: Recipe) -> list[str]:
    """Options for what differs from Kalibr's defaults."""
    default, chosen = asdict(IncrementalOptions()), asdict(recipe.incremental)
    arguments = [] if recipe.shuffle else ["--no-shuffle"]
    for name, option in OPTIONS.items():
        if chosen[name] != default[name]:
            arguments += [option, f"{chosen[name]}"]
    arguments += [option for name, option in SWITCHES.items() if chosen[name] != default[name]]
    return arguments


def link_bag(bag: Path, path: Path) -> Path:
    """The bag under a second name; a copy where that cannot be."""
    try:
        try:
            os.link(bag, path)
        except OSError:
            shutil.copyfile(bag, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None
    return path


def failed_report(run: KalibrRun, seed: int, error: RunFailed) -> RunReport:
    """Of a run that ended badly: how, why if it said so, and its last words."""
    log = read_log(printed(run.log))
    why = "" if log.gave_up is None else f": {log.gave_up}"
    return RunReport(
        seed,
        initialisation=log.initialisation,
        restarts=log.restarts,
        failure=f"{error}{why}{last_words(run.log)}",
    )


def read_run(run: KalibrRun, seed: int, image_size: tuple[int, int]) -> RunReport:
    """Of a run that ended well, as far as its exit code says."""
    assert run.report is not None
    log = read_log(printed(run.log))
    try:
        theta, sigma = _camera(run.report, image_size)
        times_ns = [read_pose_times(path) for path in run.report.glob(POSES)]
    except RunFailed as error:
        return failed_report(run, seed, error)
    except InputError as error:
        problem = str(error).replace(f"{run.report}{os.sep}", "").rstrip(".")
        unusable = RunFailed(f"left a result that cannot be used: {problem}")
        return failed_report(run, seed, unusable)
    return RunReport(
        seed,
        theta=theta,
        sigma=sigma,
        initialisation=log.initialisation,
        views=_view_numbers(times_ns[0]) if times_ns else None,
        views_used=len(times_ns[0]) if times_ns else log.views_used,
        corners_removed=log.corners_removed,
        restarts=log.restarts,
    )


def read_all_rollouts(
    run: KalibrRun, request: KalibrRequest, failure: RunFailed | None
) -> tuple[list[RunReport], int | None]:
    """Every rollout of our fork's run, and which one it chose itself.

    ``failure`` is how the run ended, if not well: it does with exit code 1 where all rollouts
    failed, and then has a file all the same.
    """
    assert run.report is not None
    seeds = [rollout_seed(request.seed, k) for k in range(request.recipe.rollouts)]
    paths = sorted(run.report.glob(ROLLOUTS))
    if len(paths) != 1:
        problem = failure or RunFailed("ended well but left no file of its rollouts")
        return [failed_report(run, seed, problem) for seed in seeds], None
    try:
        found = read_fork_rollouts(paths[0])
    except InputError as error:
        problem = RunFailed(f"left a file of rollouts that cannot be used: {error}")
        return [failed_report(run, seed, problem) for seed in seeds], None
    folders = sorted(run.report.glob("*-rollout-*"))
    reports = [
        _fork_report(rollout, found.initialisation, folder)
        for rollout, folder in zip(found.rollouts, folders, strict=False)
    ]
    return reports, found.chosen


def _fork_report(rollout: ForkRollout, start: FloatArray, folder: Path) -> RunReport:
    sigma = None
    texts = sorted(folder.glob(RESULTS))
    if texts and rollout.theta is not None:
        try:
            sigma = read_sigma(texts[0])
        except InputError:
            sigma = None
    return RunReport(
        rollout.seed,
        theta=rollout.theta,
        sigma=sigma,
        initialisation=start,
        views=rollout.views,
        views_used=None if rollout.views is None else len(rollout.views),
        corners_removed=rollout.corners_removed,
        restarts=read_log(printed(folder / LOG)).restarts,
        failure=None if rollout.failure is None else plain_words(rollout.failure),
    )


def _camera(report: Path, image_size: tuple[int, int]) -> tuple[FloatArray, FloatArray | None]:
    """Intrinsics (8,) and their standard deviations (8,)."""
    camchains = sorted(report.glob(CAMCHAINS))
    if len(camchains) != 1:
        number = "no camchain" if not camchains else f"{len(camchains)} camchains"
        raise RunFailed(f"ended well but left {number}")
    theta = read_camchain(camchains[0], image_size).array
    texts = sorted(report.glob(RESULTS))
    return theta, read_sigma(texts[0]) if texts else None


def _view_numbers(times_ns: Sequence[int]) -> tuple[int, ...] | None:
    """The views' numbers, where times are those that our files and bags give them."""
    if any(time_ns % VIEW_S for time_ns in times_ns):
        return None
    return tuple(time_ns // VIEW_S for time_ns in times_ns)


def _named(values: FloatArray | None) -> dict[str, float] | None:
    if values is None or not np.isfinite(values).all():
        return None
    return dict(zip(NAMES, values.tolist(), strict=True))
