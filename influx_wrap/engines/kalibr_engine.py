"""A real Kalibr as an engine: its files prepared, its runs driven, its answers read back.

Every rollout is a run of its own, several at a time. The InFlux build takes the corners and the
focal length from us and, if it is our own drop-in, the seed of its order. Upstream's takes
neither: it finds the corners itself in a bag of pictures, is told the focal length at the prompt
that it shows when its own guess fails, and shuffles as it likes. What comes back is treated like
rollouts of our own: fences, choice, fallback (paper, joint optimisation). The intrinsics of its
initialisation are written nowhere, so the fallback's are those of ours. Neither does Kalibr say
which views it kept: residuals are those of all views, seen from poses found for its intrinsics.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.incremental import IncrementalOptions, Rollout, Verdict
from influx_wrap.calibrate.pose import PoseError, estimate_poses
from influx_wrap.calibrate.problem import Problem
from influx_wrap.calibrate.recipe import RECIPES, Recipe
from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.compute.processes import completed
from influx_wrap.compute.progress import Progress
from influx_wrap.engines.kalibr import (
    COMMAND,
    FOCAL_LENGTH,
    MANUAL_FOCAL_LENGTH,
    SEED,
    KalibrRun,
    Place,
    RunFailed,
)
from influx_wrap.errors import InputError
from influx_wrap.formats.files import make_folder
from influx_wrap.formats.kalibr import (
    COORDS,
    SUCCESSES,
    TARGET,
    TOPIC,
    write_observations,
    write_target,
)
from influx_wrap.formats.kalibr_results import CAMCHAINS, RESULTS, read_camchain, read_sigma
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.observations import Observations
from influx_wrap.model.target import in_kalibr_s_words

LOG = "kalibr.log"
TIMEOUT_S = 3600.0
HELP_TIMEOUT_S = 60.0
SEEDS_PER_EXPERIMENT = 1000
"""Rollout k of seed s has the seed 1000 s + k."""

_INIT_MODES = {"single": "default", "fixed-point": "fixed_point"}
_OPTIONS = {"information_gain_bits": "--mi-tol", "min_views_outlier": "--min-views-outlier"}
_SWITCHES = {"remove_outliers": "--no-outliers-removal"}


@dataclass(frozen=True, eq=False)
class RunReport:
    """What became of a run: Kalibr's standard deviations (8,) if it gave any, or why it failed."""

    seed: int
    sigma: FloatArray | None = None
    failure: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a result file."""
        sigma = None if self.sigma is None else dict(zip(NAMES, self.sigma.tolist(), strict=True))
        return {"seed": self.seed, "sigma": sigma, "failure": self.failure}


@dataclass(frozen=True)
class KalibrEngine:
    """A Kalibr at ``place``.

    folder     for the experiments' folders, with all that Kalibr reads and writes
    jobs       how many runs there are at a time
    timeout_s  how long one may take
    bag        pictures for a Kalibr that finds corners only itself
    """

    place: Place
    folder: Path
    jobs: int = 1
    timeout_s: float = TIMEOUT_S
    bag: Path | None = None

    @property
    def drives_processes(self) -> bool:
        """Kalibr's runs are processes or containers."""
        return True

    @cached_property
    def takes_corners(self) -> bool:
        """Whether this is the InFlux build, or one that is used like it."""
        with tempfile.TemporaryDirectory(prefix="influx-kalibr-") as folder:
            run = KalibrRun(("--help",), Path(folder) / LOG)
            try:
                self.place.run(run, HELP_TIMEOUT_S, threading.Event())
            except RunFailed as error:
                words = _last_words(run.log)
                raise InputError(f"{COMMAND} --help of {self.place} {error}{words}.") from None
            return "--detection-coords" in _printed(run.log)

    def check(self, recipe: Recipe) -> None:
        """Refuse what this Kalibr has no option for."""
        if recipe.joint == "batch":
            raise InputError(
                f"Kalibr adds views one by one, recipe {recipe.name} takes all at once: use "
                "--recipe paper or stock, or --engine native."
            )
        default = asdict(IncrementalOptions())
        for name, value in asdict(recipe.incremental).items():
            if value != default[name] and name not in (*_OPTIONS, *_SWITCHES):
                raise InputError(f"Kalibr has no option for {name}: leave --set {name} out.")
        if self.takes_corners:
            if self.bag is not None:
                raise InputError(
                    f"--bag is for a Kalibr without --detection-coords; {self.place} takes the "
                    "corners themselves: leave --bag out."
                )
            return
        if self.bag is None:
            raise InputError(
                f"{self.place} is upstream's Kalibr, which takes no corners (no "
                "--detection-coords): use the InFlux build, or influx-calib calibrate with --bag "
                "FILE, a ROS 1 bag of the pictures."
            )
        if not self.bag.is_file():
            raise InputError(f"{self.bag} is not a file: --bag is a ROS 1 bag of the pictures.")
        if recipe.initialise == "fixed-point":
            raise InputError(
                "upstream's Kalibr has no fixed-point initialisation: add --set initialise=single."
            )

    def calibrate(
        self,
        observations: Observations,
        recipe: Recipe,
        *,
        name: str,
        focal_px: float | None,
        seed: int,
        progress: Progress | None = None,
        pp_prior_px: float | None = None,
    ) -> Calibration:
        """Calibrate one experiment in the folder ``name``; its runs are ``rollout-000`` and on.

        The answer is one of Kalibr's: the recipe influx becomes the paper's.
        """
        self.check(recipe)
        if recipe.answer == "all-views":
            recipe = replace(recipe, name=RECIPES["paper"].name, answer="rollout")
        reports: list[RunReport] = []

        def orders(problem: Problem, theta: FloatArray, poses: FloatArray) -> list[Rollout]:
            experiment = self._prepare(name, observations)
            guess_px = focal_px if recipe.focal == "thin-lens" else None
            asked = [
                self._run(experiment, observations.image_size, recipe, guess_px, seed, k)
                for k in range(recipe.rollouts)
            ]
            answers = self._run_all(asked, problem, seed, progress)
            reports.extend(report for _, report in answers)
            if all(report.failure for report in reports):
                raise CalibrationError(
                    "kalibr",
                    f"no run of {len(reports)} gave a result; run 0 {reports[0].failure}",
                    f"What it printed is in {name}/rollout-000/{LOG}.",
                )
            return [rollout for rollout, _ in answers]

        answer = calibrate(
            observations, recipe, focal_px=focal_px, seed=seed, orders=orders,
            pp_prior_px=pp_prior_px,
        )  # fmt: skip
        # Of its rollouts a Kalibr tells nothing but the intrinsics.
        untold: Any = dict.fromkeys(("views_used", "corners_removed", "restarts"))
        return replace(
            answer,
            rollouts=tuple(replace(rollout, **untold) for rollout in answer.rollouts),
            warnings=(*answer.warnings, *_warnings(answer, reports, name)),
            engine={"name": "kalibr", "runs": [report.as_dict() for report in reports]},
        )

    def provenance(self) -> dict[str, Any]:
        """Which Kalibr it is."""
        return {"engine": {"name": "kalibr", **self.place.identity()}}

    def _prepare(self, name: str, observations: Observations) -> Path:
        """The experiment's folder, with Kalibr's input and nothing of earlier runs."""
        experiment = self.folder / name
        make_folder(experiment)
        self.place.sweep(experiment)
        for path in experiment.iterdir():
            if re.fullmatch(r"rollout-\d{3,}", path.name):
                shutil.rmtree(path)
        write_target(experiment / TARGET, in_kalibr_s_words(observations.target))
        write_observations(experiment / COORDS, experiment / SUCCESSES, observations)
        return experiment

    def _run(
        self,
        experiment: Path,
        image_size: tuple[int, int],
        recipe: Recipe,
        guess_px: float | None,
        seed: int,
        k: int,
    ) -> KalibrRun:
        report = experiment / f"rollout-{k:03d}"
        read, write = self.place.seen_as(experiment, report)
        arguments = [
            *("--target", f"{read / TARGET}"),
            *("--models", "pinhole-radtan", "--topics", TOPIC, "--dont-show-report"),
        ]
        # Pictures are drawn without a display.
        environment = {"MPLBACKEND": "Agg", SEED: f"{_seed(seed, k)}"}
        typed = ""
        if self.takes_corners:
            arguments += [
                *("--detection-coords", f"{read / COORDS}"),
                *("--detection-successes", f"{read / SUCCESSES}"),
                *("--image-width", f"{image_size[0]}", "--image-height", f"{image_size[1]}"),
                *("--report-dir", f"{write}", "--init-mode", _INIT_MODES[recipe.initialise]),
            ]
            if guess_px is not None:
                environment[FOCAL_LENGTH] = f"{guess_px!r}"
        else:
            assert self.bag is not None
            # Its results go where the bag is.
            arguments += ["--bag", f"{write / self.bag.name}"]
            if guess_px is not None:
                environment[MANUAL_FOCAL_LENGTH] = "1"
                typed = f"{guess_px!r}\n"
        arguments += _recipe_arguments(recipe)
        return KalibrRun(tuple(arguments), report / LOG, experiment, report, environment, typed)

    def _run_all(
        self, runs: list[KalibrRun], problem: Problem, seed: int, progress: Progress | None
    ) -> list[tuple[Rollout, RunReport]]:
        """All runs, ``jobs`` at a time; none is left running, whatever happens."""
        stop = threading.Event()

        def one(k: int) -> tuple[Rollout, RunReport]:
            try:
                theta, sigma = self._answer(runs[k], problem.image_size, stop)
                poses = estimate_poses(problem, theta)
            except PoseError as error:
                failure = f"ended at intrinsics that fit no view ({error})"
            except RunFailed as error:
                failure = str(error)
            else:
                return _rollout(problem, theta, poses), RunReport(_seed(seed, k), sigma)
            return _failed_rollout(problem), RunReport(_seed(seed, k), failure=failure)

        with ThreadPoolExecutor(max_workers=self.jobs) as pool:
            futures = [pool.submit(one, k) for k in range(len(runs))]
            try:
                for done, future in enumerate(completed(futures), start=1):
                    future.result()
                    if progress is not None:
                        progress(done, len(runs))
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
        return [future.result() for future in futures]

    def _answer(
        self, run: KalibrRun, image_size: tuple[int, int], stop: threading.Event
    ) -> tuple[FloatArray, FloatArray | None]:
        """Intrinsics (8,) and their standard deviations (8,) of a run that worked."""
        assert run.report is not None
        make_folder(run.report)
        bag = None if self.bag is None else _link(self.bag, run.report)
        try:
            self.place.run(run, self.timeout_s, stop)
        except RunFailed as error:
            raise RunFailed(f"{error}{_last_words(run.log)}") from None
        finally:
            if bag is not None:
                bag.unlink(missing_ok=True)
        camchains = sorted(run.report.glob(CAMCHAINS))
        if len(camchains) != 1:
            number = "no camchain" if not camchains else f"{len(camchains)} camchains"
            raise RunFailed(f"ended well but left {number}{_last_words(run.log)}")
        try:
            theta = read_camchain(camchains[0], image_size).array
            texts = sorted(run.report.glob(RESULTS))
            return theta, read_sigma(texts[0]) if texts else None
        except InputError as error:
            problem = str(error).replace(f"{run.report}{os.sep}", "").rstrip(".")
            raise RunFailed(f"left a result that cannot be used: {problem}") from None


def _seed(seed: int, k: int) -> int:
    return seed * SEEDS_PER_EXPERIMENT + k


def _recipe_arguments(recipe: Recipe) -> list[str]:
    """Options for what differs from Kalibr's defaults."""
    default, chosen = asdict(IncrementalOptions()), asdict(recipe.incremental)
    arguments = [] if recipe.shuffle else ["--no-shuffle"]
    for name, option in _OPTIONS.items():
        if chosen[name] != default[name]:
            arguments += [option, f"{chosen[name]}"]
    arguments += [option for name, option in _SWITCHES.items() if chosen[name] != default[name]]
    return arguments


def _rollout(problem: Problem, theta: FloatArray, poses: FloatArray) -> Rollout:
    """Kalibr's intrinsics as a rollout of ours that kept every view."""
    n_views = problem.n_views
    return Rollout(
        theta=theta,
        kept=np.arange(n_views),
        poses=poses,
        verdict=np.full(n_views, Verdict.KEPT, dtype=np.int64),
        gain_bits=np.full(n_views, np.nan),
        weights=problem.weights,
        information=np.full((8, 8), np.nan),
        restarts=0,
        converged=True,
    )


def _failed_rollout(problem: Problem) -> Rollout:
    nowhere = np.full(8, np.nan)
    nothing = _rollout(problem, nowhere, np.empty((0, 12)))
    return replace(nothing, kept=np.arange(0), converged=False)


def _warnings(answer: Calibration, reports: list[RunReport], name: str) -> list[str]:
    warnings = []
    failed = [(k, report.failure) for k, report in enumerate(reports) if report.failure]
    if failed:
        k, failure = failed[0]
        warnings.append(
            f"{len(failed)} of {len(reports)} runs of Kalibr failed; run {k} {failure} "
            f"(see {name}/rollout-{k:03d}/{LOG})"
        )
    if answer.selected == "initialization":
        warnings.append(
            "that initialisation is influx_wrap's: Kalibr does not write the result of its own"
        )
    else:
        warnings.append("Kalibr does not say which views it kept: residuals are of all views")
    return warnings


def _link(bag: Path, folder: Path) -> Path:
    """The bag under a second name in ``folder``; a copy where that cannot be."""
    path = folder / bag.name
    try:
        try:
            os.link(bag, path)
        except OSError:
            shutil.copyfile(bag, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None
    return path


def _printed(log: Path) -> str:
    try:
        return log.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _last_words(log: Path) -> str:
    """The last line of a log, in brackets, without the machine's folders."""
    lines = [line.strip() for line in _printed(log).splitlines() if line.strip()]
    if not lines:
        return ""
    folder = str(log.parent.parent.resolve())
    return f" ({lines[-1].replace(folder, '')[:200].rstrip('.')})"
