"""Does the target's description fit the corners? Asked of the corners alone, before any camera.

A plane seen by a pinhole camera is a homography of its own drawing, so corners that are taken
back by the homography of each view show the drawing as it was printed: whether the gap between
two tags is what ``tagSpacing`` says (lens distortion bends both tags beside a gap like the gap
itself, and cancels), and whether another number of columns would fit where the given one does not,
or the other kind of circle grid.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.observations import Observations
from influx_wrap.model.suspicion import Suspicion
from influx_wrap.model.target import (
    AprilGrid,
    BoardTarget,
    Charuco,
    Checkerboard,
    CircleGrid,
    PointCloud,
)
from influx_wrap.model.words import size_text

# A corner may be off by so much on account of how bright the picture is, in pixels.
_EDGE_PX = 0.3
_SPACING_TOLERANCE = 0.02
# Residuals of a homography, as a share of a tag's or square's side: lenses bend less than that.
_MISFIT = 0.15
_MUCH_BETTER = 0.2
# The wrong kind of circle grid is off by a quarter of a step, not more, besides the lens's bend.
_BETTER_KIND = 0.5
_MOST_VIEWS = 8
# Corners that reach no further than this share of both sides are of a smaller picture.
_REACH = 0.6


def check_target(observations: Observations) -> list[Suspicion]:
    """What the corners say against the target's description and the image size."""
    exchanged = _other_columns(observations)
    found = [exchanged, None if exchanged else _spacing(observations), _reach(observations)]
    return [suspicion for suspicion in found if suspicion is not None]


def _spacing(observations: Observations) -> Suspicion | None:
    """The gaps between tags are not what ``tagSpacing`` says."""
    target = observations.target
    if not isinstance(target, AprilGrid) or max(target.tag_cols, target.tag_rows) < 2:
        return None
    shape = (-1, *target.grid_shape, 2)
    drawn = np.stack(
        [
            _taken_back(target.points[:, :2], uv, valid)
            for uv, valid in zip(observations.uv, observations.valid, strict=True)
        ]
    ).reshape(shape)
    pixels = np.where(observations.valid[..., None], observations.uv, np.nan).reshape(shape)
    ratios = np.concatenate([_gap_ratios(drawn), _gap_ratios(np.swapaxes(drawn, 1, 2))])
    if len(ratios) < 4:
        return None
    seen, given = float(np.median(ratios)), target.tag_spacing
    side_px = _median_side(pixels)
    if not abs(seen - given) > _SPACING_TOLERANCE + _EDGE_PX / side_px:
        return None
    metres = abs(given / target.tag_size_m - seen) < 0.1 * seen
    why = (
        f"{given:g} looks like the gap in metres; tagSpacing is the gap divided by tagSize"
        if metres
        else "measure the gap between two tags and divide it by tagSize"
    )
    return Suspicion(
        "tagSpacing", seen, given, "",
        f"the pictures say tagSpacing {seen:.3f}, the target says {given:g}: {why}",
    )  # fmt: skip


def _gap_ratios(drawn: FloatArray) -> FloatArray:
    """Gap over the mean side of the two tags beside it, along the second but last axis of
    corners (V, rows, 2 tags, 2); NaN corners give none."""
    sides = np.linalg.norm(drawn[:, :, 1::2] - drawn[:, :, 0::2], axis=-1)
    gaps = np.linalg.norm(drawn[:, :, 2::2] - drawn[:, :, 1:-1:2], axis=-1)
    ratios = gaps / ((sides[:, :, :-1] + sides[:, :, 1:]) / 2)
    return np.asarray(ratios[np.isfinite(ratios)])


def _taken_back(points: FloatArray, uv: FloatArray, valid: BoolArray) -> FloatArray:
    """Corners (T, 2) of one view in the plane of the board, NaN where there are none."""
    drawn = np.full_like(uv, np.nan)
    matrix = _homography(uv[valid], points[valid])
    if matrix is not None:
        drawn[valid] = cv2.perspectiveTransform(uv[valid][:, None], matrix)[:, 0]
    return drawn


def _homography(source: FloatArray, target: FloatArray) -> FloatArray | None:
    """(3, 3) from points (n, 2) to points (n, 2) by least squares; None if there is none."""
    matrix, _ = cv2.findHomography(np.ascontiguousarray(source), np.ascontiguousarray(target))
    return None if matrix is None or not np.isfinite(matrix).all() else np.asarray(matrix)


def _median_side(pixels: FloatArray) -> float:
    """Median distance of neighbouring corners (V, rows, columns, 2) along a row, in pixels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        side = np.nanmedian(np.linalg.norm(np.diff(pixels, axis=2)[:, :, ::2], axis=-1))
    return float(side) if np.isfinite(side) and side > 0 else 1.0


@dataclass(frozen=True, eq=False)
class _Layout:
    """Another reading of the same corners: points (T, 2), in the order they are numbered now.

    cols        of tags, squares, inner corners or circles, as the target's description counts them
    asymmetric  whether it is a circle grid of the kind whose rows are shifted
    """

    cols: int
    points: FloatArray
    asymmetric: bool = False


def _other_columns(observations: Observations) -> Suspicion | None:
    """Another number of columns, or kind of circle grid, explains the corners, the given one does
    not."""
    target = observations.target
    if isinstance(target, PointCloud):
        return None
    rows, cols = target.grid_shape
    pixels = np.where(observations.valid[..., None], observations.uv, np.nan)
    side_px = _median_side(pixels.reshape(-1, rows, cols, 2))
    given_px = _misfit_px(observations, target.points[:, :2])
    if not given_px > _MISFIT * side_px:
        return None
    others = [(_misfit_px(observations, o.points), o) for o in _other_layouts(target)]
    if not others:
        return None
    best_px, best = min(others, key=lambda pair: pair[0])
    other_kind = isinstance(target, CircleGrid) and best.asymmetric != target.asymmetric
    if best_px > (_BETTER_KIND if other_kind else _MUCH_BETTER) * given_px:
        return None
    if isinstance(target, CircleGrid) and other_kind:
        return _other_circles(target, best)
    what, given, other_rows = _columns(target)
    are_exchanged = best.cols == other_rows
    why = "are rows and columns exchanged?" if are_exchanged else "is this the right target?"
    return Suspicion(
        what, best.cols, given, "",
        f"the corners fit a board of {best.cols} columns, the target says {given} (and "
        f"{other_rows} rows): {why}",
    )  # fmt: skip


def _columns(target: BoardTarget) -> tuple[str, int, int]:
    """The key of a description's columns, and how many columns and rows it says."""
    match target:
        case AprilGrid():
            return "tagCols", target.tag_cols, target.tag_rows
        case Charuco():
            return "squareCols", target.cols, target.rows
        case _:
            return "targetCols", target.cols, target.rows


def _other_circles(target: CircleGrid, best: _Layout) -> Suspicion:
    kinds = {False: "a symmetric", True: "an asymmetric"}
    return Suspicion(
        "asymmetricGrid", float(best.asymmetric), float(target.asymmetric), "",
        f"the circles fit {kinds[best.asymmetric]} grid of {best.cols} columns, the target says "
        f"{kinds[target.asymmetric]} one of {target.cols}: write asymmetricGrid: "
        f"{str(best.asymmetric).lower()}",
    )  # fmt: skip


def _other_layouts(target: BoardTarget) -> Iterator[_Layout]:
    match target:
        case AprilGrid():
            yield from _other_tags(target)
        case CircleGrid():
            for asymmetric in (target.asymmetric, not target.asymmetric):
                for cols, rows in {(target.rows, target.cols), (target.cols, target.rows)}:
                    grid = CircleGrid(cols, rows, target.spacing_m, asymmetric)
                    if grid != target:
                        yield _Layout(cols, grid.points[:, :2], asymmetric)
        case Checkerboard() | Charuco() if target.rows != target.cols:
            # Inner corners of a ChArUco board are numbered like those of any other.
            rows, cols = target.grid_shape
            x, y = target.points[cols + 1, :2]
            turned = Checkerboard(rows, cols, y, x)
            yield _Layout(target.rows, turned.points[:, :2])


def _other_tags(target: AprilGrid) -> Iterator[_Layout]:
    n_tags = target.tag_cols * target.tag_rows
    corner = target.points[:, :2] - _origins(target, target.tag_cols)
    for cols in range(1, n_tags + 1):
        if cols != target.tag_cols:
            # Corners that were numbered by their tags' ids.
            yield _Layout(cols, corner + _origins(target, cols))
    if target.tag_rows != target.tag_cols:
        # Corners that were numbered row by row, by somebody who had the right target.
        turned_grid = AprilGrid(
            target.tag_rows, target.tag_cols, target.tag_size_m, target.tag_spacing
        )
        yield _Layout(turned_grid.tag_cols, turned_grid.points[:, :2])


def _origins(target: AprilGrid, cols: int) -> FloatArray:
    """(T, 2) where the tag of each point begins if the ids run over ``cols`` columns."""
    pitch = target.tag_size_m * (1 + target.tag_spacing)
    tag = target.tag_of_point
    return np.asarray(pitch * np.stack([tag % cols, tag // cols], axis=-1), dtype=float)


def _misfit_px(observations: Observations, points: FloatArray) -> float:
    """Median over some views of the residual of their homographies from points (T, 2), RMS."""
    by_size = np.argsort(-observations.valid.sum(axis=1), kind="stable")[:_MOST_VIEWS]
    misfits = []
    for view in by_size:
        seen = observations.valid[view]
        uv = observations.uv[view][seen]
        matrix = _homography(points[seen], uv)
        if matrix is None:
            return np.inf
        projected = cv2.perspectiveTransform(points[seen][:, None], matrix)[:, 0]
        misfits.append(float(np.sqrt(np.mean(np.sum((projected - uv) ** 2, axis=1)))))
    return float(np.median(misfits))


def _reach(observations: Observations) -> Suspicion | None:
    """The corners keep to the top left of the picture: it is smaller than was said."""
    size = np.array(observations.image_size)
    furthest = observations.uv[observations.valid].max(axis=0) + 1
    if observations.n_views < 2 or (furthest > _REACH * size).any():
        return None
    reached = size_text((int(np.ceil(furthest[0])), int(np.ceil(furthest[1]))))
    return Suspicion(
        "image_size", float(furthest[0]), float(size[0]), "px",
        f"no corner lies outside the top left {reached} of a picture that is said to have "
        f"{size_text(observations.image_size)}: is it the size of another camera?",
    )  # fmt: skip
