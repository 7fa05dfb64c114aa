"""How fast, how much memory, and how the cost grows, next to OpenCV in the same run.

Everything on scene A and, but for the rollouts, on one thread. Times are medians over
repeats that take turns, so that a busy machine disturbs both sides alike; kernels are
compiled beforehand.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.report import verdict
from benchmarks.scene import FOCAL_PX, board_with, scene_a
from influx_wrap.calibrate.adjust import TIGHT_STOP, Adjustment, adjust
from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.initialise import starting_theta
from influx_wrap.calibrate.pose import estimate_poses
from influx_wrap.calibrate.problem import pack
from influx_wrap.calibrate.recipe import RECIPES
from influx_wrap.calibrate.uncertainty import inverse_information
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import image_centre
from influx_wrap.model.observations import Observations

FOCAL_GUESS_PX = 1.05 * FOCAL_PX
ROLLOUTS = 100
REPEATS = 7

LEAST_SPEEDUP = 5.0
MOST_CALIBRATIONS = 20.0
MOST_MEMORY_MB = 600.0
# The exponent of a power law through the times; above this it is not linear any more.
MOST_EXPONENT = 1.2

VIEW_COUNTS = (25, 50, 100, 200)
TAG_COUNTS = ((5, 4), (8, 6), (11, 8), (16, 11))


def our_adjustment(observations: Observations) -> Adjustment:
    """Everything from observations and a focal guess to the optimum."""
    problem = pack(observations)
    theta = starting_theta(FOCAL_GUESS_PX, observations.image_size)
    return adjust(problem, theta, estimate_poses(problem, theta), stop=TIGHT_STOP)


def opencv_adjustment(observations: Observations) -> FloatArray:
    """The same by OpenCV: intrinsics (8,)."""
    points = observations.target.points.astype(np.float32)
    pairs = list(zip(observations.uv, observations.valid, strict=True))
    objects = [points[seen] for _, seen in pairs]
    pixels = [uv[seen].astype(np.float32) for uv, seen in pairs]
    cx, cy = image_centre(observations.image_size)
    matrix = np.array([[FOCAL_GUESS_PX, 0, cx], [0, FOCAL_GUESS_PX, cy], [0, 0, 1.0]])
    _, matrix, distortion, _, _ = cv2.calibrateCamera(
        objects, pixels, observations.image_size, matrix, np.zeros(5),
        flags=cv2.CALIB_USE_INTRINSIC_GUESS | cv2.CALIB_FIX_K3,
    )  # fmt: skip
    focal_and_centre = [matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]]
    return np.concatenate([focal_and_centre, distortion.ravel()[:4]])


def rollouts(observations: Observations, n: int, jobs: int) -> None:
    """A whole ``influx`` calibration: initialisation, n rollouts, uncertainty."""
    recipe = dataclasses.replace(RECIPES["influx"], rollouts=n)
    calibrate(observations, recipe, focal_px=FOCAL_GUESS_PX, jobs=jobs)


def medians(works: Sequence[Callable[[], object]], repeats: int = REPEATS) -> list[float]:
    """Seconds of each work, all taking turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, seconds in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in times]


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """p of the power law seconds ~ sizes^p."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def peak_memory_mb() -> dict[str, float]:
    """Of a fresh process and its workers: after loading everything, and after the rollouts."""
    code = "from benchmarks.speed import report_memory; report_memory()"
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def report_memory() -> None:
    """In the fresh process."""
    observations = scene_a()
    loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rollouts(observations, ROLLOUTS, jobs=2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # The largest of the children, if the workers were processes; both might be as large.
    peak += 2 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"loaded": loaded / 1024, "peak": peak / 1024}))


def run(console: Console) -> bool:
    """Print the report; returns whether all limits are kept."""
    observations = scene_a()
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with threadpool_limits(limits=1):
            passed = [*_adjustment(console, observations), *_growth(console)]
    finally:
        cv2.setNumThreads(threads)
    return all(passed)


def _adjustment(console: Console, observations: Observations) -> list[bool]:
    fit = our_adjustment(observations)
    rollouts(observations, 2, jobs=2)
    ours, opencv = medians(
        [lambda: our_adjustment(observations), lambda: opencv_adjustment(observations)]
    )
    hundred, one = medians(
        [
            lambda: rollouts(observations, ROLLOUTS, jobs=2),
            lambda: opencv_adjustment(observations),
        ],
        repeats=3,
    )
    memory = peak_memory_mb()
    console.print(
        f"[bold]Scene A[/]: {observations.n_views} views, {observations.n_corners} corners, "
        f"from a focal length {FOCAL_GUESS_PX / FOCAL_PX - 1:+.0%} off\n"
    )
    table = Table("work", "measured", "limit", "", title="Speed and memory")
    table.add_row("cv2.calibrateCamera, one thread", f"{opencv:.3f} s", "", "")
    table.add_row("poses and tight adjustment, one thread", f"{ours:.3f} s", "", "")
    faster, slower, fits = opencv / ours, hundred / one, memory["peak"]
    checks = [faster >= LEAST_SPEEDUP, slower <= MOST_CALIBRATIONS, fits < MOST_MEMORY_MB]
    table.add_row("  times faster", f"{faster:.1f}", f">= {LEAST_SPEEDUP:g}", verdict(checks[0]))
    table.add_row(f"influx, {ROLLOUTS} rollouts, two workers", f"{hundred:.2f} s", "", "")
    table.add_row(
        "  in units of one cv2.calibrateCamera",
        f"{slower:.1f} (which took {one:.3f} s beside it)",
        f"<= {MOST_CALIBRATIONS:g}", verdict(checks[1]),
    )  # fmt: skip
    table.add_row(
        "  peak memory of its process",
        f"{fits:.0f} MB ({memory['loaded']:.0f} MB before it starts)",
        f"< {MOST_MEMORY_MB:g} MB", verdict(checks[2]),
    )  # fmt: skip
    console.print(table)
    _distances(console, observations, fit)
    return checks


def _distances(console: Console, observations: Observations, fit: Adjustment) -> None:
    """How far from the optimum each adjustment stopped."""
    onward = dataclasses.replace(TIGHT_STOP, decrement=0.0, max_iterations=10)
    optimum = adjust(pack(observations), fit.theta, fit.poses, stop=onward)
    sigma = 0.1 * np.sqrt(np.diag(inverse_information(optimum.information)))
    for who, theta in (("ours", fit.theta), ("OpenCV", opencv_adjustment(observations))):
        apart = np.abs((theta - optimum.theta) / sigma).max()
        console.print(f"{who} stops {apart:.1e} standard deviations from the optimum.")
    console.print("(OpenCV takes its input in single precision, which is most of its distance.)\n")


def _growth(console: Console) -> list[bool]:
    table = Table("cost against", "", "sizes and times", "exponent", "", title="Growth")
    by_views = {n: scene_a(n) for n in VIEW_COUNTS}
    by_points = {4 * cols * rows: scene_a(50, board_with(cols, rows)) for cols, rows in TAG_COUNTS}
    works: dict[str, tuple[Callable[[Observations], object], int]] = {
        "adjustment": (our_adjustment, REPEATS),
        "20 rollouts": (lambda scene: rollouts(scene, 20, jobs=1), 3),
    }
    checks = []
    for what, scenes in (("views", by_views), ("points", by_points)):
        sizes = [s.n_views if what == "views" else s.n_corners for s in scenes.values()]
        for name, (work, repeats) in works.items():
            seconds = medians([partial(work, scene) for scene in scenes.values()], repeats)
            power = exponent(sizes, seconds)
            checks.append(power <= MOST_EXPONENT)
            listed = ", ".join(
                f"{size}: {1e3 * t:.0f} ms" for size, t in zip(scenes, seconds, strict=True)
            )
            table.add_row(what, name, listed, f"{power:.2f}", verdict(checks[-1]))
    console.print(table)
    return checks
