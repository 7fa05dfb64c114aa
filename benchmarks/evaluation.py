"""How fast predictions are scored: a data set of InFlux's size, next to frame by frame.

386 videos with 143 000 frames, all different, in which lenses zoom and pull focus, and 100 000
points. A projection is a pair of a frame and a point, projected with the true and the predicted
camera; points outside a frame's field are left out by their distance from the axis, so the full
data set takes less than its 1.4e10. The speed of the kernel is measured on a wide frame, which
sees them all, and on two threads; the plain version projects with ``model.intrinsics.project``
and sorts with ``numpy.histogram``. The full data set is scored in a process of its own,
whose memory is watched, and so is a submission of 200 MiB validated.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.annotate import lens_table
from benchmarks.report import verdict
from influx_wrap.evaluate.epe import epe_px
from influx_wrap.evaluate.points import builtin
from influx_wrap.evaluate.score import evaluate
from influx_wrap.formats.submission import MAX_BYTES, validate_submission
from influx_wrap.lut.lens_model import make_lens_model
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.intrinsics import NAMES, Intrinsics
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.predictions import RAD_TAN, Predictions, VideoPredictions

SIZE = (3424, 2202)
VIDEOS, FRAMES = 386, 143_000
LEAST_PER_SECOND, LEAST_SCALING = 5e7, 1.7
MOST_MB, MOST_MINUTES = 1000, 10
MOST_VALIDATE_S, MOST_VALIDATE_MB = 60, 100
WIDE_FRAMES, PLAIN_FRAMES = 400, 12


def run(console: Console) -> bool:
    """Print the report; returns whether all limits are kept."""
    table = Table("work", "measured", "limit", "")
    passed = []

    def add(name: str, measured: str, limit: str, is_kept: bool) -> None:
        passed.append(is_kept)
        table.add_row(name, measured, limit, verdict(is_kept))

    truth, predictions = _wide(WIDE_FRAMES)
    one = max(_speed(truth, predictions, 1) for _ in range(3))
    add("projections per second, one core", f"{one:.3g}", f">= {LEAST_PER_SECOND:.0e}",
        one >= LEAST_PER_SECOND)  # fmt: skip
    two = max(_speed(truth, predictions, 2) for _ in range(3)) / one
    add("two cores", f"{two:.2f} times one", f">= {LEAST_SCALING:g}", two >= LEAST_SCALING)
    ratio = one / _plain_speed(truth["v"], predictions.videos["v"])
    add(
        "faster than frame by frame, with numpy.histogram", f"{ratio:.0f} times", ">= 1", ratio >= 1
    )
    seconds, peak_mb, below = _in_process(_score_everything)
    add(f"{VIDEOS} videos, {FRAMES} frames", f"{seconds:.0f} s", f"<= {MOST_MINUTES} min",
        seconds <= 60 * MOST_MINUTES)  # fmt: skip
    add("its memory", f"{peak_mb:.0f} MB", f"<= {MOST_MB} MB", peak_mb <= MOST_MB)
    seconds, grown_mb, n = _in_process(_validate_large)
    add(f"submission of 200 MiB, {n:.0f} frames, validated", f"{seconds:.0f} s",
        f"<= {MOST_VALIDATE_S} s", seconds <= MOST_VALIDATE_S)  # fmt: skip
    add("memory it takes", f"{grown_mb:.0f} MB", f"<= {MOST_VALIDATE_MB} MB",
        grown_mb <= MOST_VALIDATE_MB)  # fmt: skip
    console.print(table)
    console.print(f"EPE < 300 px of focal lengths 10 % off: {100 * below:.2f} %")
    return all(passed)


def _wide(n: int) -> tuple[dict[str, GroundTruth], Predictions]:
    """Frames that see almost all points, and predictions that are somewhat off."""
    rng = np.random.default_rng(0)
    values = np.tile(Intrinsics(1300, 1300, 1711.5, 1100.5, -0.05, 0.01).array, (n, 1))
    values[:, :2] *= rng.uniform(0.99, 1.01, (n, 1))
    return {"v": _truth(values)}, _predictions({"v": values})


def _truth(values: np.ndarray) -> GroundTruth:
    n = len(values)
    metadata = LensMetadata(np.arange(n), np.full(n, 17.0), np.full(n, 3.0))
    return GroundTruth(metadata, values, np.ones(n, dtype=bool))


def _predictions(values: dict[str, np.ndarray]) -> Predictions:
    rng = np.random.default_rng(1)
    videos = {}
    for name, true in values.items():
        guess = true.copy()
        guess[:, :2] *= 1 + 0.1 * rng.standard_normal((len(true), 1))
        guess[:, 4:] = 0.0
        videos[name] = VideoPredictions(np.arange(len(true)), guess)
    return Predictions("ten per cent", RAD_TAN, "influx", videos)


def _speed(truth: dict[str, GroundTruth], predictions: Predictions, jobs: int) -> float:
    """Projections per second."""
    points = builtin().points
    start = time.perf_counter()
    score = evaluate(
        predictions, truth, points, points_source="builtin", image_size=SIZE, jobs=jobs
    )
    seconds = time.perf_counter() - start
    assert score.overall.histogram.n > 0.5 * WIDE_FRAMES * len(points)
    return WIDE_FRAMES * len(points) / seconds


def _plain_speed(truth: GroundTruth, predicted: VideoPredictions) -> float:
    points = builtin().points
    edges = np.arange(60_001) / 10
    start = time.perf_counter()
    total = np.zeros(60_000, dtype=np.int64)
    for true, guess in list(zip(truth.intrinsics, predicted.values, strict=True))[:PLAIN_FRAMES]:
        cameras = Intrinsics.from_array(true), Intrinsics.from_array(guess)
        total += np.histogram(epe_px(*cameras, points, SIZE), edges)[0]
    return PLAIN_FRAMES * len(points) / (time.perf_counter() - start)


def _full() -> tuple[dict[str, GroundTruth], Predictions]:
    """Videos of all lengths that wander through the table of a lens."""
    rng = np.random.default_rng(2)
    lookup = make_lens_model(lens_table(), "paper")
    lengths = rng.multinomial(FRAMES - VIDEOS, rng.dirichlet(np.full(VIDEOS, 2.0))) + 1
    truth = {}
    for k, n in enumerate(lengths.tolist()):
        phase, turns = rng.uniform(0, 2 * np.pi, 2), rng.uniform(0.2, 3, 2)
        angle = phase + turns * 2 * np.pi * np.linspace(0, 1, n)[:, None]
        lfl_mm = 45 * np.exp(0.97 * np.sin(angle[:, 0]))
        fd_m = 2.5 * np.exp(np.sin(angle[:, 1]))
        truth[f"video{k:03d}"] = _truth(lookup.query(lfl_mm, fd_m).intrinsics)
    return truth, _predictions({name: known.intrinsics for name, known in truth.items()})


def _in_process(work: Callable[[], tuple[float, float, float]]) -> tuple[float, float, float]:
    """What ``work`` returns in a process that has done nothing else."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(work)


def _validate_large() -> tuple[float, float, float]:
    """Seconds, memory in MB above that at the start, and number of frames."""
    rng = np.random.default_rng(3)
    numbers = ", ".join(f'"{name}": {{{k}!r}}' for k, name in enumerate(NAMES))
    head = '{"submission_metadata": {"method_name": "m", "intrinsics_type": "rad-tan", '
    with tempfile.TemporaryDirectory(prefix="influx-submission-") as folder:
        path = Path(folder) / "large.json"
        with path.open("w") as file:
            size = file.write(head + '"version": "influx"}, "v": {\n')
            n = 0
            while size < MAX_BYTES - 10_000:
                values = (1000 * rng.uniform(1, 2, (20, 8))).tolist()
                rows = [f'"{n + i}": {{{numbers.format(*row)}}}' for i, row in enumerate(values)]
                size += file.write(("" if n == 0 else ",\n") + ",\n".join(rows))
                n += len(rows)
            file.write("}}")
        before_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.perf_counter()
        validate_submission(path)
        seconds = time.perf_counter() - start
    after_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds, after_mb - before_mb, n


def _score_everything() -> tuple[float, float, float]:
    """Seconds, peak memory in MB and the share below 300 px of the full data set."""
    truth, predictions = _full()
    start = time.perf_counter()
    result = evaluate(
        predictions, truth, builtin().points, points_source="builtin", image_size=SIZE,
        jobs=os.cpu_count() or 1,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return seconds, peak_mb, result.overall.histogram.share_below(300)
