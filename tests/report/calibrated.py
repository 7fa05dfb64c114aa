"""A small run's folder with one experiment of every kind, calibrated in a moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.recipe import RECIPES, Recipe, override
from influx_wrap.compute.provenance import provenance
from influx_wrap.formats import experiment as files
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.experiment import write_experiment
from influx_wrap.formats.files import file_hash
from influx_wrap.formats.influx import write_lens_settings
from influx_wrap.model.experiment import Setting
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.observations import Observations
from influx_wrap.model.record import CellRecord, CellSetting, CellTruth
from influx_wrap.model.result import Assessment, Failure
from influx_wrap.model.suspicion import Suspicion
from influx_wrap.model.target import PointCloud
from influx_wrap.plan import make_plan
from influx_wrap.run.workspace import Workspace
from tests.calibrate.scenes import CAMERA, IMAGE_SIZE, board_scene, opencv_project

FEW = {"rollouts": "8", "min_views_outlier": "3"}
INFLUX, PAPER = (override(RECIPES[name], FEW) for name in ("influx", "paper"))
NASTY = "<script>alert(1)<script> & #2"
CARE = Assessment(
    "usable with care", ("no corner lies <i>upper left</i>",), ("the board upper left",)
)
BAD = Assessment("do not use", ("residuals follow the radius",), ("the board upper left",))
VERDICTS = {"z0f1": CARE, "z1f1": BAD, "z0f9": CARE, "z1f9": None}
"""Others are good."""
TYPED = Suspicion("lfl_mm", 25.5, 50.0, "mm", "lfl_mm is 50 mm, the pictures say 25.5 mm")
SUSPECT = "z1f0"
FILES = (files.EXPERIMENT, files.TARGET, files.COORDS, files.SUCCESSES)


def flight(sigma_m: float | None) -> Observations:
    """Thirty hover points in one view, measured with an error."""
    rng = np.random.default_rng(5)
    depth_m = rng.uniform(8, 14, 30)
    pixels = rng.uniform(30, np.array(IMAGE_SIZE) - 31, (30, 2))
    x, y = ((pixels - [CAMERA.cx, CAMERA.cy]) / [CAMERA.fx, CAMERA.fy] * depth_m[:, None]).T
    points = np.stack([x, y, depth_m], axis=1)
    pose = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    uv = opencv_project(CAMERA.array, pose, points) + 0.2 * rng.standard_normal((30, 2))
    seen = ((uv > 0) & (uv < np.array(IMAGE_SIZE) - 1)).all(axis=1)
    measured = points + (sigma_m or 0.0) * rng.standard_normal(points.shape)
    return Observations(PointCloud(measured, sigma_m), uv[None], seen[None], IMAGE_SIZE)


BOARD = board_scene(11, 12, n_outliers=10).observations
BENT = board_scene(12, 10, bow_m=(1.5e-3, 0.0, 0.0)).observations
FLIGHT, EXACT_FLIGHT = flight(0.01), flight(None)

EXPERIMENTS: dict[str, tuple[Observations, Recipe, str]] = {
    "z0f0": (BOARD, PAPER, "400x300"),
    "z0f1": (BENT, RECIPES["batch"], "800x600"),
    "z1f0": (BOARD, replace(PAPER, fallback_percent=1e-6), "400x300"),
    "z1f1": (BOARD, RECIPES["stock"], "800x600"),
    "z0f9": (FLIGHT, RECIPES["batch"], "drone"),
    "z1f9": (EXACT_FLIGHT, INFLUX, "drone"),
    NASTY: (BENT, INFLUX, "800x600"),
}


def write_run(root: Path, cells: tuple[str, ...], *, failed: tuple[str, ...] = ()) -> Workspace:
    """The folder of a run of ``cells`` of ``EXPERIMENTS``; those that ``failed`` have any name.

    Those of the plan know the truth, others do not.
    """
    workspace = Workspace(root)
    catalogue = load_catalogue(None)
    camera = catalogue.camera("arri-alexa-mini")
    plan = make_plan(catalogue.lens("canon17"), camera, catalogue.boards.values())
    settings = {cell.name: (cell.lfl_mm, cell.fd_m) for cell in plan.cells}
    root.mkdir(exist_ok=True)
    write_lens_settings(workspace.plan, plan)
    for name in cells:
        observations, recipe, target = EXPERIMENTS[name]
        lfl_mm, fd_m = settings.get(name, (33.3, 4.4))
        setting = Setting(name, target, lfl_mm, fd_m)
        folder = workspace.data(name)
        write_experiment(folder, setting, camera, "canon17", observations, None)
        answer = calibrate(observations, recipe, focal_px=1100.0, seed=3)
        answer = replace(answer, assessment=VERDICTS.get(name, Assessment("good")))
        bound = dict(zip(NAMES, (0.8 * answer.sigma).tolist(), strict=True))
        truth = CellTruth(CAMERA, bound) if name in settings else None
        inputs = {file: file_hash(folder / file) for file in FILES}
        made = provenance(recipe=recipe.as_dict(), seed=3, inputs=inputs)
        cell = CellSetting(name, "canon17", camera.name, target, lfl_mm, fd_m)
        suspicions = (TYPED,) if name == SUSPECT else ()
        workspace.save(CellRecord(cell, truth, answer, made, suspicions))
    for name in failed:
        failure = Failure("pose", f"no pose fits view 7 of {name}", "Leave the view out.")
        made = provenance(recipe=INFLUX.as_dict(), seed=3, inputs=dict.fromkeys(FILES))
        cell = CellSetting(name, "canon17", camera.name)
        workspace.save(CellRecord(cell, None, failure, made))
    return workspace
