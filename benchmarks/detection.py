"""How well and how fast corners are found, over all boards, distances and tilts of the plans.

Five views of every board cell of both lenses, one of each orientation, are rendered with a
little and with a lot of blur and noise; the corners found are compared with the projection.
The time is that of one core, next to OpenCV's own marker detector on the same pictures,
which finds tags without corners to a fraction of a pixel. Its accuracy, with corners refined
the usual way, is printed beside ours.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.montecarlo import CAMERA, LENSES
from benchmarks.report import verdict
from benchmarks.timing import shortest
from influx_wrap.compute.processes import WorkerDied, parallel
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.experiment import Plan
from influx_wrap.model.intrinsics import project
from influx_wrap.model.pose import transform
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.aprilgrid import detect
from influx_wrap.observe.detection import BORDER_PX
from influx_wrap.plan import make_plan
from influx_wrap.synth.board import board_poses
from influx_wrap.synth.experiment import cell_generator
from influx_wrap.synth.lens import simulated_lens
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board

ORIENTATIONS, POSITIONS = 5, 20
TIMED_CELLS = 10


@dataclass(frozen=True)
class Level:
    """How pictures are, and how well corners must be found in them."""

    name: str
    options: RenderOptions
    least_share: float
    most_rms_px: float


LEVELS = (
    Level("blur 0.7 px, noise 2", RenderOptions(blur_px=0.7, noise=2), 0.99, 0.05),
    Level("blur 1.5 px, noise 8", RenderOptions(blur_px=1.5, noise=8), 0.95, 0.15),
)
MOST_ERROR_PX, MOST_SHIFT_PX = 1.0, 0.01


@dataclass(frozen=True)
class Task:
    """Pictures of one cell at one level."""

    lens: str
    cell: str
    level: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """Errors (n, 2) of the corners found, by us and by OpenCV, and how many there were."""

    ours: FloatArray
    opencv: FloatArray
    n_found: int
    n_opencv: int
    n_visible: int


@cache
def _plan(lens: str) -> Plan:
    catalogue = load_catalogue()
    return make_plan(catalogue.lens(lens), catalogue.camera(CAMERA), catalogue.boards.values())


def _tasks() -> list[Task]:
    return [
        Task(lens, cell.name, level)
        for lens in LENSES
        for cell in _plan(lens).cells
        if cell.board is not None and np.isfinite(cell.fd_m)
        for level in range(len(LEVELS))
    ]


def _pictures(task: Task) -> tuple[AprilGrid, list[tuple[np.ndarray, FloatArray, BoolArray]]]:
    """The board, and pictures with their corners and which of them count."""
    plan = _plan(task.lens)
    cell = plan.cell(task.cell)
    state = simulated_lens(plan).state(cell.lfl_mm, cell.fd_m)
    truth = state.intrinsics
    assert cell.board is not None
    grid, rng = cell.board.grid, cell_generator(0, cell)
    rotations, translations = board_poses(cell.board, plan.camera, truth, state.depth_m, rng)
    rays = ray_grid(truth, plan.camera.image_size)
    first = 7 * cell.zoom_index + 3 * cell.focus_index
    pictures = []
    for orientation in range(ORIENTATIONS):
        view = POSITIONS * orientation + (first + 6 * orientation) % POSITIONS
        rotation, translation = rotations[view], translations[view]
        options = LEVELS[task.level].options
        picture = render_board(rays, grid, rotation, translation, options, rng)
        uv, valid = project(truth, transform(rotation[None], translation[None], grid.points)[0])
        last = np.array(plan.camera.image_size) - 1
        inside = valid & ((uv >= BORDER_PX) & (uv <= last - BORDER_PX)).all(axis=1)
        pictures.append((picture, uv, inside))
    return grid, pictures


def plain_opencv() -> cv2.aruco.ArucoDetector:
    """OpenCV's marker detector as it comes, told of the two-cell border."""
    parameters = cv2.aruco.DetectorParameters()
    parameters.markerBorderBits = 2
    dictionary = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
    return cv2.aruco.ArucoDetector(dictionary, parameters)


def _with_opencv(picture: np.ndarray, grid: AprilGrid) -> FloatArray:
    """(T, 2) corners by OpenCV's detector and ``cornerSubPix``; NaN where there are none."""
    found = np.full((len(grid.points), 2), np.nan)
    corners, ids, _ = plain_opencv().detectMarkers(picture)
    for quad, tag in zip(corners, [] if ids is None else ids.ravel().tolist(), strict=True):
        if tag >= grid.tag_rows * grid.tag_cols:
            continue
        side = np.linalg.norm(np.roll(quad[0], 1, axis=0) - quad[0], axis=1).mean()
        half = max(2, round(0.08 * float(side)))
        criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 30, 1e-3)
        refined = cv2.cornerSubPix(picture, quad[0].copy(), (half, half), (-1, -1), criteria)
        row, col = divmod(tag, grid.tag_cols)
        start, width = 4 * grid.tag_cols * row + 2 * col, 2 * grid.tag_cols
        # OpenCV begins with the corner that is bottom-right on Kalibr's sheet.
        found[start + np.array([1, 0, width, width + 1])] = refined.reshape(4, 2)
    return found


def _measure(task: Task) -> Outcome:
    cv2.setNumThreads(1)
    grid, pictures = _pictures(task)
    ours, opencv, found, by_opencv, visible = [], [], 0, 0, 0
    for picture, uv, inside in pictures:
        detection, peer = detect(picture, grid), _with_opencv(picture, grid)
        ours.append((detection.uv - uv)[detection.found])
        opencv.append((peer - uv)[np.isfinite(peer[:, 0])])
        found += int((detection.found & inside).sum())
        by_opencv += int((np.isfinite(peer[:, 0]) & inside).sum())
        visible += int(inside.sum())
    return Outcome(np.concatenate(ours), np.concatenate(opencv), found, by_opencv, visible)


def run(console: Console) -> bool:
    """Print the report; returns whether all limits are kept."""
    return all([*_accuracy(console), _speed(console)])


def _accuracy(console: Console) -> list[bool]:
    tasks = _tasks()
    done = parallel(_measure, tasks, os.cpu_count() or 1)
    outcomes: dict[int, list[Outcome]] = {level: [] for level in range(len(LEVELS))}
    for task, outcome in track(done, "pictures", len(tasks), console=console, transient=True):
        if isinstance(outcome, WorkerDied):
            raise RuntimeError(f"{task}: the process ended with exit code {outcome.exitcode}")
        outcomes[task.level].append(outcome)
    title = f"{len(tasks) // len(LEVELS) * ORIENTATIONS} pictures a level, both lenses"
    table = Table(
        "picture", "detector", "found", "RMS px", "each axis", "worst px", "shift px", "",
        title=title,
    )  # fmt: skip
    passed = []
    for number, level in enumerate(LEVELS):
        visible = sum(outcome.n_visible for outcome in outcomes[number])
        share = sum(outcome.n_found for outcome in outcomes[number]) / visible
        rms, worst, shift = _summary(np.concatenate([o.ours for o in outcomes[number]]))
        passed.append(
            share >= level.least_share
            and rms <= level.most_rms_px
            and worst <= MOST_ERROR_PX
            and shift <= MOST_SHIFT_PX
        )
        row = *_row(share, rms, worst, shift), verdict(passed[-1])
        table.add_row(level.name, "ours", *row)
        limits = f">= {level.least_share:.0%}", f"<= {level.most_rms_px:g}", ""
        table.add_row("", "limit", *limits, f"<= {MOST_ERROR_PX:g}", f"<= {MOST_SHIFT_PX:g}", "")
        share = sum(outcome.n_opencv for outcome in outcomes[number]) / visible
        rms, worst, shift = _summary(np.concatenate([o.opencv for o in outcomes[number]]))
        table.add_row("", "OpenCV", *_row(share, rms, worst, shift), "")
    console.print(table)
    return passed


def _row(share: float, rms: float, worst: float, shift: float) -> tuple[str, ...]:
    """With the standard deviation along each axis, which is what ``Noise.corner_px`` is."""
    each = f"{rms / np.sqrt(2):.4f}"
    return f"{share:.2%}", f"{rms:.4f}", each, f"{worst:.2f}", f"{shift:.4f}"


def _summary(error: FloatArray) -> tuple[float, float, float]:
    """RMS and largest distance of errors (n, 2), and their mean's larger coordinate."""
    distance = np.linalg.norm(error, axis=1)
    rms, shift = np.sqrt(np.mean(distance**2)), np.abs(error.mean(axis=0)).max()
    return float(rms), float(distance.max()), float(shift)


def _speed(console: Console) -> bool:
    """Seconds per picture of ours over OpenCV's, on cells spread over the plans."""
    peer = plain_opencv()
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    table = Table(
        "picture", "ours", "plain detectMarkers", "ratio", "worst ratio", "",
        title="seconds of one core per 3424 x 2202 picture",
    )  # fmt: skip
    passed = []
    try:
        with threadpool_limits(limits=1):
            for number, level in enumerate(LEVELS):
                tasks = [task for task in _tasks() if task.level == number]
                pairs = []
                for task in tasks[:: len(tasks) // TIMED_CELLS]:
                    grid, pictures = _pictures(task)
                    picture = pictures[0][0]
                    ours = shortest(lambda p=picture, g=grid: detect(p, g))
                    pairs.append((ours, shortest(lambda p=picture: peer.detectMarkers(p))))
                mine, theirs = np.array(pairs).T
                ratio = float(np.median(mine / theirs))
                passed.append(ratio <= 1)
                table.add_row(
                    level.name, f"{np.median(mine):.3f}", f"{np.median(theirs):.3f}",
                    f"{ratio:.2f}", f"{np.max(mine / theirs):.2f}", verdict(passed[-1]),
                )  # fmt: skip
    finally:
        cv2.setNumThreads(threads)
    console.print(table)
    return all(passed)
