"""One trial of the Monte-Carlo: simulate a cell, calibrate it, measure the error.

Errors are divided by the Cramér-Rao bound of the trial's own observations, which says
how good the answer could be, and by the stated sigma, which says how good it claims to be.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from influx_wrap.calibrate.bound import cramer_rao
from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.recipe import RECIPES, override
from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Plan
from influx_wrap.model.truth import Noise
from influx_wrap.plan import make_plan
from influx_wrap.synth.experiment import Experiment, simulate
from influx_wrap.synth.lens import LensOptions, simulated_lens

LENSES = ("canon17", "premista80")
CAMERA = "arri-alexa-mini"


@dataclass(frozen=True)
class Condition:
    """What is simulated, how it is calibrated, and how good it must be.

    settings      choices of the recipe that are replaced
    pp_offset_px  of the principal point from the picture's centre; None: the lens's own
    limit         largest RMS of error / bound over fx, fy, cx, cy; None: it must only converge
    """

    name: str
    recipe: str
    limit: float | None
    noise: Noise = field(default_factory=Noise)
    settings: tuple[tuple[str, str], ...] = ()
    drone: bool = False
    pp_offset_px: tuple[float, float] | None = None


CLEAN = Condition("boards, 0.1 px", "batch", 1.1)
CLEAN_INFLUX = Condition("boards, 0.1 px", "influx", 1.6)
OUTLIERS = Condition("2 % displaced by up to 30 px", "batch", 1.25, Noise(outliers=0.02))
BOW_ON = Condition("0.3 mm bow, told so", "batch", 1.3, Noise(bow_mm=0.3), (("bow", "on"),))
BOW_AUTO = Condition("0.3 mm bow, not told", "batch", 1.3, Noise(bow_mm=0.3))
DRONE = Condition("drone, RTK noise", "batch", 1.25, drone=True)
DRONE_INFLUX = Condition("drone, RTK noise", "influx", None, drone=True)
OFF_CENTRE = tuple(
    Condition(
        f"{'drone' if drone else 'boards'}, principal point {x:g}, {y:g} px off", "influx",
        1.25 if drone else 1.15, drone=drone, pp_offset_px=(x, y),
    )
    for x, y in ((20.0, -12.0), (60.0, -40.0))
    for drone in (False, True)
)  # fmt: skip
CONDITIONS = (CLEAN, CLEAN_INFLUX, OUTLIERS, BOW_ON, BOW_AUTO, DRONE, DRONE_INFLUX, *OFF_CENTRE)

COVERAGE = (0.60, 0.76)
"""Share of errors within one sigma that counts as 68 %."""


@dataclass(frozen=True)
class Trial:
    """One cell of one lens under one condition; ``focal_scale`` spoils the focal guess."""

    condition: Condition
    lens: str
    cell: str
    seed: int
    focal_scale: float = 1.0

    def __str__(self) -> str:
        return f"{self.condition.recipe} {self.lens} {self.cell} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Score:
    """Errors (8,) in bounds and in stated sigmas, or why there are none."""

    trial: Trial
    in_bounds: FloatArray
    in_sigmas: FloatArray
    seconds: float
    failure: str | None = None


@cache
def plan_of(lens: str) -> Plan:
    """The plan of one of the rig's lenses."""
    catalogue = load_catalogue()
    return make_plan(catalogue.lens(lens), catalogue.camera(CAMERA), catalogue.boards.values())


def trials(condition: Condition, seeds: Iterable[int], every: int = 1) -> list[Trial]:
    """Trials of all cells of both lenses with the condition's target, or of every n-th."""
    cells = [
        (lens, cell.name)
        for lens in LENSES
        for cell in plan_of(lens).cells
        if (cell.board is None) == condition.drone
    ]
    return [
        Trial(condition, lens, cell, seed)
        for seed in seeds
        for lens, cell in cells[seed % every :: every]
    ]


def experiment_of(trial: Trial) -> Experiment:
    """The simulated experiment, with random numbers of its own for every lens."""
    plan = plan_of(trial.lens)
    cell = plan.cell(trial.cell)
    key = [trial.seed, LENSES.index(trial.lens), cell.zoom_index, cell.focus_index]
    options = LensOptions(pp_offset_px=trial.condition.pp_offset_px)
    lens = simulated_lens(plan, options).state(cell.lfl_mm, cell.fd_m)
    noise, rng = trial.condition.noise, np.random.default_rng(key)
    return simulate(cell, plan.camera, lens.intrinsics, noise, rng, lens.depth_m)


def focal_guess_px(trial: Trial) -> float:
    """The thin-lens focal length a calibration starts from, times ``focal_scale``."""
    plan = plan_of(trial.lens)
    return 1e3 * plan.cell(trial.cell).cfl_mm / plan.camera.pixel_um * trial.focal_scale


def bound_of(experiment: Experiment) -> FloatArray:
    """(8,) the bound on the standard deviation of any unbiased estimate."""
    bowed = experiment.truth.noise.bow_mm > 0
    covariance = cramer_rao(experiment.observations, experiment.truth, bow=bowed)
    return np.sqrt(np.diag(covariance))


def run_trial(trial: Trial) -> Score:
    """Simulate, calibrate, measure. Never raises for a calibration that fails."""
    experiment = experiment_of(trial)
    recipe = override(RECIPES[trial.condition.recipe], dict(trial.condition.settings))
    start = time.perf_counter()
    try:
        answer = calibrate(experiment.observations, recipe, focal_px=focal_guess_px(trial))
    except CalibrationError as failure:
        return Score(trial, np.full(8, np.nan), np.full(8, np.nan), 0.0, str(failure))
    seconds = time.perf_counter() - start
    error = answer.intrinsics.array - experiment.truth.intrinsics.array
    return Score(trial, error / bound_of(experiment), error / answer.sigma, seconds)


@dataclass(frozen=True, eq=False)
class Summary:
    """Scores of one condition.

    rms       (4,) of fx, fy, cx, cy in bounds
    rms_all   over all four
    coverage  share of those errors within one stated sigma
    """

    condition: Condition
    n: int
    failures: tuple[str, ...]
    rms: FloatArray
    rms_all: float
    coverage: float
    seconds: float

    @property
    def accurate(self) -> bool:
        """No failure and, where there is a limit, within it."""
        limit = self.condition.limit
        return not self.failures and (limit is None or self.rms_all <= limit)

    @property
    def honest(self) -> bool:
        """Whether stated sigmas are true."""
        return COVERAGE[0] <= self.coverage <= COVERAGE[1]


def summarise(condition: Condition, scores: Sequence[Score]) -> Summary:
    """Pool the scores of one condition."""
    good = [score for score in scores if score.failure is None]
    in_bounds = np.array([score.in_bounds[:4] for score in good])
    in_sigmas = np.array([score.in_sigmas[:4] for score in good])
    return Summary(
        condition=condition,
        n=len(scores),
        failures=tuple(f"{score.trial}: {score.failure}" for score in scores if score.failure),
        rms=np.sqrt((in_bounds**2).mean(axis=0)),
        rms_all=float(np.sqrt((in_bounds**2).mean())),
        coverage=float((np.abs(in_sigmas) < 1).mean()),
        seconds=float(np.mean([score.seconds for score in good])),
    )


def by_condition(scores: Iterable[Score]) -> Mapping[Condition, list[Score]]:
    """Scores sorted into their conditions."""
    sorted_scores: dict[Condition, list[Score]] = {}
    for score in scores:
        sorted_scores.setdefault(score.trial.condition, []).append(score)
    return sorted_scores
