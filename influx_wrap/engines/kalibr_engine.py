"""A real Kalibr as an engine: its files prepared, its runs driven, its answers read back.

What comes back is treated like rollouts of our own: fences, choice, fallback (paper, joint
optimisation). Kalibr prints the intrinsics that it began at, which are the fallback's, and says
which views it kept by the poses it exports: residuals are those of these views, seen from poses
found for its intrinsics. How many corners it removed it says, too, but not which.
"""

from __future__ import annotations

import math
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
from influx_wrap.calibrate.start import Start
from influx_wrap.compute.processes import completed
from influx_wrap.compute.progress import Progress
from influx_wrap.engines.kalibr import KalibrRun, Place, RunFailed
from influx_wrap.engines.kalibr_kind import RecognisedKalibr, ask_which
from influx_wrap.engines.kalibr_runs import (
    BAG,
    LOG,
    OPTIONS,
    SWITCHES,
    VIEW_S,
    KalibrRequest,
    RunReport,
    failed_report,
    link_bag,
    read_all_rollouts,
    read_run,
    rollout_seed,
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
from influx_wrap.formats.kalibr_results import CAMCHAINS
from influx_wrap.formats.recording_yaml import RECORDING, footage_of, read_description
from influx_wrap.formats.rosbag import write_bag
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.observations import Observations
from influx_wrap.model.result import ViewReport
from influx_wrap.model.target import in_kalibr_s_words
from influx_wrap.observe.sources import open_frames

TIMEOUT_S = 3600.0
PROGRESS_S = 0.5
NOT_KEPT = "Kalibr did not keep it"


@dataclass(frozen=True)
class KalibrEngine:
    """A Kalibr at ``place``.

    folder      for the experiments' folders, with all that Kalibr reads and writes
    jobs        how many rollouts there are at a time
    timeout_s   how long one may take
    bag         pictures for a Kalibr that finds corners only itself
    recordings  a folder with a recording per experiment, to make such bags from
    """

    place: Place
    folder: Path
    jobs: int = 1
    timeout_s: float = TIMEOUT_S
    bag: Path | None = None
    recordings: Path | None = None

    @property
    def drives_processes(self) -> bool:
        """Kalibr's runs are processes or containers."""
        return True

    @cached_property
    def which(self) -> RecognisedKalibr:
        """Which Kalibr it is; refuses our own imitation."""
        found = ask_which(self.place)
        if found.kind == "imitation":
            raise InputError(
                f"{self.place} is influx_wrap's own imitation, not a Kalibr: put the folder of a "
                "real one first on the PATH, or name an image with --image."
            )
        return found

    @property
    def takes_corners(self) -> bool:
        """Whether it is given the corners themselves; upstream's is given pictures."""
        return self.which.kind != "upstream"

    def accept(self, recipe: Recipe) -> Recipe:
        """The paper's recipe in place of ``influx``; refuses what this Kalibr has no option for."""
        self._check(recipe)
        if recipe.answer == "rollout":
            return recipe
        if recipe.name != "influx":
            raise InputError(
                "the answer of a real Kalibr is one of its rollouts: leave --set answer=all-views "
                "out."
            )
        return replace(recipe, name=RECIPES["paper"].name, answer="rollout")

    def _check(self, recipe: Recipe) -> None:
        if recipe.joint == "batch":
            raise InputError(
                f"Kalibr adds views one by one, recipe {recipe.name} takes all at once: use "
                "--recipe paper or stock, or --engine native."
            )
        default = asdict(IncrementalOptions())
        for name, value in asdict(recipe.incremental).items():
            if value != default[name] and name not in (*OPTIONS, *SWITCHES):
                raise InputError(f"Kalibr has no option for {name}: leave --set {name} out.")
        if self.takes_corners:
            if self.bag is not None:
                raise InputError(
                    f"--bag is for a Kalibr without --detection-coords; {self.place} takes the "
                    "corners themselves: leave --bag out."
                )
            return
        if self.bag is None and self.recordings is None:
            raise InputError(
                f"{self.place} is upstream's Kalibr, which takes no corners (no "
                "--detection-coords): use our fork (influx-calib kalibr fork), calibrate with "
                "--bag FILE, a ROS 1 bag of the pictures, or run with --data of recordings."
            )
        if self.bag is not None and not self.bag.is_file():
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
        """Calibrate one experiment in the folder ``name``.

        Runs are in ``rollout-000`` and on, those of our fork in ``rollouts``. The answer is one of
        Kalibr's: of the recipe influx, what the paper's would be.
        """
        recipe = self.accept(recipe)
        reports: list[RunReport] = []
        own_choice: list[int | None] = []

        def orders(start: Start, poses: FloatArray) -> tuple[FloatArray, list[Rollout]]:
            request = KalibrRequest(
                kind=self.which.kind,
                place=self.place,
                folder=self._prepare(name, observations),
                image_size=observations.image_size,
                recipe=recipe,
                guess_px=start.focal_px if recipe.focal == "thin-lens" else None,
                seed=seed,
                jobs=self.jobs,
                timeout_s=self.timeout_s,
            )
            if self.which.kind == "fork":
                found, chosen = self._run_fork(request, progress)
                own_choice.append(chosen)
            else:
                found = self._run_each(request, progress)
            answers = [_as_rollout(start.problem, observations, report) for report in found]
            reports.extend(report for _, report in answers)
            if all(report.failure for report in reports):
                where = "rollouts" if self.which.kind == "fork" else "rollout-000"
                raise CalibrationError(
                    "kalibr",
                    f"no run of {len(reports)} gave a result; run 0 {reports[0].failure}",
                    f"What it printed is in {name}/{where}/{LOG}.",
                )
            begun = [r.initialisation for r in reports if r.initialisation is not None]
            return begun[0] if begun else start.theta, [rollout for rollout, _ in answers]

        answer = calibrate(
            observations, recipe, focal_px=focal_px, seed=seed, orders=orders,
            pp_prior_px=pp_prior_px,
        )  # fmt: skip
        which = {"kind": self.which.kind, "version": self.which.version}
        engine: dict[str, Any] = {"name": "kalibr", **which, "recipe": recipe.name}
        if own_choice:
            engine["chosen"] = own_choice[0]
        return replace(
            answer,
            rollouts=tuple(
                replace(
                    rollout,
                    views_used=report.views_used,
                    corners_removed=report.corners_removed,
                    restarts=report.restarts,
                )
                for rollout, report in zip(answer.rollouts, reports, strict=True)
            ),
            views=tuple(_in_kalibr_s_words(view) for view in answer.views),
            warnings=(*answer.warnings, *_warnings(answer, reports, name)),
            engine={**engine, "runs": [report.as_dict() for report in reports]},
        )

    def provenance(self) -> dict[str, Any]:
        """Which Kalibr it is."""
        which = {"kind": self.which.kind, "version": self.which.version}
        return {"engine": {"name": "kalibr", **which, **self.place.identity()}}

    def _prepare(self, name: str, observations: Observations) -> Path:
        """The experiment's folder, with Kalibr's input and nothing of earlier runs."""
        experiment = self.folder / name
        make_folder(experiment)
        self.place.sweep(experiment)
        for path in experiment.iterdir():
            if re.fullmatch(r"rollouts|rollout-\d{3,}", path.name):
                shutil.rmtree(path)
        (experiment / BAG).unlink(missing_ok=True)
        write_target(experiment / TARGET, in_kalibr_s_words(observations.target))
        write_observations(experiment / COORDS, experiment / SUCCESSES, observations)
        if self.which.kind == "upstream" and self.bag is None:
            self._make_bag(name, experiment / BAG, observations)
        return experiment

    def _make_bag(self, name: str, path: Path, observations: Observations) -> None:
        """A bag of the views' pictures, each at the second of its number."""
        assert self.recordings is not None
        folder = self.recordings / name
        if not (folder / RECORDING).is_file():
            raise InputError(f"{folder} is no recording: upstream's Kalibr needs the pictures.")
        frames = open_frames(footage_of(read_description(folder), folder))
        # ROS takes the time 0 for none, so view 0 comes at 1 s.
        pictures = (
            (TOPIC, (index + 1) * VIEW_S, picture)
            for index, picture in frames.at(observations.view_ids.tolist())
        )
        write_bag(path, "ros1", pictures)

    def _run_each(self, request: KalibrRequest, progress: Progress | None) -> list[RunReport]:
        """A run for every rollout, ``jobs`` at a time; none is left running, whatever happens."""
        stop = threading.Event()
        n_runs = request.recipe.rollouts

        def one(k: int) -> RunReport:
            run, seed = request.rollout(k), rollout_seed(request.seed, k)
            try:
                self._drive(run, self.timeout_s, stop)
            except RunFailed as error:
                return failed_report(run, seed, error)
            report = read_run(run, seed, request.image_size)
            if self.which.kind == "upstream" and report.views is not None:
                views = None if self.bag is not None else tuple(n - 1 for n in report.views)
                report = replace(report, views=views)
            return report

        with ThreadPoolExecutor(max_workers=self.jobs) as pool:
            futures = [pool.submit(one, k) for k in range(n_runs)]
            try:
                for done, future in enumerate(completed(futures), start=1):
                    future.result()
                    if progress is not None:
                        progress(done, n_runs)
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
        return [future.result() for future in futures]

    def _run_fork(
        self, request: KalibrRequest, progress: Progress | None
    ) -> tuple[list[RunReport], int | None]:
        """All rollouts in one start, and which of them the fork chose."""
        run, stop = request.all_rollouts(), threading.Event()
        rounds = 1 + math.ceil(request.recipe.rollouts / self.jobs)
        with ThreadPoolExecutor(max_workers=1) as pool:
            future = pool.submit(self._drive, run, rounds * self.timeout_s, stop)
            try:
                while not future.done():
                    with suppress(TimeoutError):
                        future.exception(timeout=PROGRESS_S)
                    if progress is not None and run.report is not None:
                        done = len(list(run.report.glob(f"*-rollout-*/{CAMCHAINS}")))
                        progress(done, request.recipe.rollouts)
            except BaseException:
                stop.set()
                raise
        error = future.exception()
        if error is not None and not isinstance(error, RunFailed):
            raise error
        return read_all_rollouts(run, request, error)

    def _drive(self, run: KalibrRun, timeout_s: float, stop: threading.Event) -> None:
        """Wait for the end of a run; upstream's finds its bag where its results are to go."""
        assert run.report is not None
        assert run.experiment is not None
        make_folder(run.report)
        bag = None
        if self.which.kind == "upstream":
            bag = link_bag(self.bag or run.experiment / BAG, run.report / BAG)
        try:
            self.place.run(run, timeout_s, stop)
        finally:
            if bag is not None:
                bag.unlink(missing_ok=True)


def _as_rollout(
    problem: Problem, observations: Observations, report: RunReport
) -> tuple[Rollout, RunReport]:
    """A rollout of ours that kept the views of Kalibr's: all of them if it does not say which."""
    n_views = problem.n_views
    failed = Rollout(
        theta=np.full(8, np.nan),
        kept=np.arange(0),
        poses=np.empty((0, 12)),
        verdict=np.full(n_views, Verdict.LITTLE_INFORMATION, dtype=np.int64),
        gain_bits=np.full(n_views, np.nan),
        weights=problem.weights,
        information=np.full((8, 8), np.nan),
        restarts=0,
        converged=False,
    )
    theta = report.theta
    if theta is None:
        return failed, report
    try:
        poses = estimate_poses(problem, theta)
    except PoseError as error:
        failure = f"ended at intrinsics that fit no view ({error})"
        return failed, replace(report, theta=None, failure=failure)
    kept = np.arange(n_views)
    if report.views is not None:
        kept = np.flatnonzero(np.isin(observations.view_ids, report.views))
        if len(kept) != len(report.views):
            # Times that are not ours say how many there are, not which.
            kept, report = np.arange(n_views), replace(report, views=None)
    verdict = failed.verdict.copy()
    verdict[kept] = Verdict.KEPT
    rollout = replace(
        failed, theta=theta, kept=kept, poses=poses[kept], verdict=verdict, converged=True
    )
    return rollout, report


def _in_kalibr_s_words(view: ViewReport) -> ViewReport:
    return view if view.used else replace(view, reason=NOT_KEPT)


def _warnings(answer: Calibration, reports: list[RunReport], name: str) -> list[str]:
    warnings = []
    failed = [(k, report.failure) for k, report in enumerate(reports) if report.failure]
    if failed:
        k, failure = failed[0]
        warnings.append(
            f"{len(failed)} of {len(reports)} runs of Kalibr failed; run {k} {failure} "
            f"(see {LOG} in {name})"
        )
    if answer.selected == "initialization":
        if all(report.initialisation is None for report in reports):
            warnings.append(
                "that initialisation is influx_wrap's: this Kalibr did not print its own"
            )
        return warnings
    assert isinstance(answer.selected, int)
    chosen = reports[answer.selected]
    if chosen.views is None:
        warnings.append("this Kalibr did not say which views it kept: residuals are of all views")
    if chosen.corners_removed:
        warnings.append(
            f"Kalibr removed {chosen.corners_removed} corners and does not say which: residuals "
            "are of all corners"
        )
    return warnings
