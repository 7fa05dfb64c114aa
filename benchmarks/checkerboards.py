"""How well and how fast checkerboards are found, next to OpenCV's two detectors.

Boards are rendered with whole outer squares and with cut ones, in pictures of three sizes. The
time is that of one core on the same pictures in the same run, of all pictures of a size together;
half a board has no answer, which takes us longest and OpenCV least.
"""

from __future__ import annotations

import cv2
import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.report import verdict
from benchmarks.timing import shortest
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.pose import transform
from influx_wrap.model.target import Checkerboard
from influx_wrap.observe.checkerboard import detect
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board

BOARD = Checkerboard(cols=9, rows=6, col_spacing_m=0.06, row_spacing_m=0.06)
TILTS = ((0.0, 0.0), (0.5, 0.1), (-0.2, 0.6), (0.45, -0.5), (-0.7, 0.0))
SIZES = ((640, 480), (1280, 720), (2400, 1600))
OPTIONS = RenderOptions(blur_px=0.8, noise=3)
CUT = 0.35
"""What is left of the outer squares, where they are cut."""
WINDOW = (5, 5)


def _picture(
    size: tuple[int, int], tilt: tuple[float, float], cut: bool
) -> tuple[np.ndarray, FloatArray]:
    """A picture of the board, and its corners (T, 2)."""
    focal_px = 1.1 * size[0]
    camera = Intrinsics(focal_px, focal_px, size[0] / 2 + 3.3, size[1] / 2 - 2.7, -0.08, 0.02)
    rotation = np.diag([1.0, -1.0, -1.0]) @ cv2.Rodrigues(np.array([*tilt, 0.4]))[0]
    translation = np.array([0.0, 0.0, 1.1]) - rotation @ BOARD.points.mean(axis=0)
    rng = np.random.default_rng(1)
    picture = render_board(ray_grid(camera, size), BOARD, rotation, translation, OPTIONS, rng)
    uv, _ = project(camera, transform(rotation[None], translation[None], BOARD.points)[0])
    if cut:
        picture = _paper_cut(picture, uv.reshape(BOARD.rows, BOARD.cols, 2))
    return picture, uv


def _paper_cut(picture: np.ndarray, uv: FloatArray) -> np.ndarray:
    """The picture with nothing left of the board beyond a part of its outer squares."""
    low, high = -CUT, CUT
    corners = [
        uv[r, c] + x * (uv[r, c] - uv[r, c - s]) * s + y * (uv[r, c] - uv[r - t, c]) * t
        for r, c, s, t, x, y in (
            (0, 0, -1, -1, low, low),
            (0, -1, 1, -1, high, low),
            (-1, -1, 1, 1, high, high),
            (-1, 0, -1, 1, low, high),
        )
    ]
    paper = cv2.fillConvexPoly(np.zeros_like(picture), np.rint(corners).astype(np.int32), 255)
    rng = np.random.default_rng(2)
    around = OPTIONS.background + OPTIONS.noise * rng.standard_normal(picture.shape)
    return np.where(paper > 0, picture, around.round().astype(np.uint8))


def _with_opencv(picture: np.ndarray) -> FloatArray | None:
    """Corners (T, 2) by the older detector and ``cornerSubPix``, in its own order."""
    found, corners = cv2.findChessboardCorners(picture, (BOARD.cols, BOARD.rows))
    if not found:
        return None
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_COUNT, 50, 1e-3)
    refined = cv2.cornerSubPix(picture, corners, WINDOW, (-1, -1), criteria)
    return np.asarray(refined, dtype=float).reshape(-1, 2)


def _rms_px(corners: list[FloatArray], truths: list[FloatArray]) -> float:
    """Of the distances from all true corners to the nearest found."""
    square = [
        np.linalg.norm(found[:, None] - true, axis=2).min(axis=0) ** 2
        for found, true in zip(corners, truths, strict=True)
    ]
    return float(np.sqrt(np.mean(square))) if square else float("nan")


def run(console: Console) -> bool:
    """Print the report; returns whether ours is as good and as fast."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    table = Table(
        "pictures", "found", "SB, older", "RMS px", "cornerSubPix", "ms", "SB ms", "ratio", "",
        title=f"checkerboards, {len(TILTS)} views each",
    )  # fmt: skip
    passed = []
    try:
        with threadpool_limits(limits=1):
            for size in SIZES:
                times = []
                for kind in ("whole", "cut", "half"):
                    row, good, seconds = _row(size, kind)
                    table.add_row(f"{size[0]} x {size[1]}, {kind}", *row, verdict(good))
                    passed.append(good)
                    times.append(seconds)
                mine, theirs = np.sum(times, axis=0)
                passed.append(bool(mine <= theirs))
                blank = [""] * 6
                table.add_row("all three", *blank, f"{mine / theirs:.2f}", verdict(passed[-1]))
    finally:
        cv2.setNumThreads(threads)
    console.print(table)
    return all(passed)


def _row(size: tuple[int, int], kind: str) -> tuple[list[str], bool, tuple[float, float]]:
    """A line of the table, whether boards and corners are as good, and seconds of both."""
    made = [_picture(size, tilt, kind == "cut") for tilt in TILTS]
    if kind == "half":
        # Many corners to look at, and no board to be found.
        made = [(np.ascontiguousarray(p[:, : int(uv[:, 0].mean())]), uv) for p, uv in made]
    shape = (BOARD.cols, BOARD.rows)
    ours = [(detect(picture, BOARD), uv) for picture, uv in made]
    found = [(seen.uv[seen.found], uv) for seen, uv in ours if seen.found.all()]
    n_sb = sum(cv2.findChessboardCornersSB(picture, shape)[0] for picture, _ in made)
    older = [(corners, uv) for p, uv in made if (corners := _with_opencv(p)) is not None]
    rms, peer = (_rms_px([c for c, _ in some], [t for _, t in some]) for some in (found, older))
    seconds = sum(shortest(lambda p=p: detect(p, BOARD)) for p, _ in made)
    theirs = sum(shortest(lambda p=p: cv2.findChessboardCornersSB(p, shape)) for p, _ in made)
    good = len(found) >= max(n_sb, len(older))
    good &= not found or not older or rms <= peer
    n = len(made)
    numbers = [f"{len(found)}/{n}", f"{n_sb}, {len(older)}", f"{rms:.4f}", f"{peer:.4f}"]
    times = [f"{1e3 * seconds / n:.1f}", f"{1e3 * theirs / n:.1f}", f"{seconds / theirs:.2f}"]
    return [*numbers, *times], good, (seconds, theirs)
