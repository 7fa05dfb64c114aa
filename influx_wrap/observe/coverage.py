"""What a set of views does not show: parts of the picture, and tilts of the board.

Distortion is only known where corners were seen, and the focal length only from boards
that were tilted: the paper moves the board through the whole field of view in each of
five orientations (supplement, "Additional Details for Board-Based Experiments"). What is
missing is named in words, for the person who holds the board.

*Picture.* It is divided into cells; a cell is covered if a few views have corners in it.

*Tilts.* With the image centre for the principal point and square pixels, a board's
homography gives the board's normal, but for two numbers. Distortion looks like a tilt of
boards at the picture's rim: it is undone with one radial term (Fitzgibbon's division
model), the one that makes the views homographies. The focal length, if it is not given,
follows from the homographies themselves: the board's sides are perpendicular and equally
scaled in space, which is two equations per view that are linear in 1/f² (Zhang). The
paper's tilts are 45°; more than 20° is taken for one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.intrinsics import image_centre
from influx_wrap.model.target import Target

CELL_COLS, CELL_ROWS = 8, 5
MIN_VIEWS = 3
"""Views that a cell of the picture, and an orientation of the board, should be seen in."""
MIN_TILT_DEG = 20.0

ORIENTATIONS = (
    "parallel to the sensor",
    "tilted down (its top towards the camera)",
    "tilted up (its bottom towards the camera)",
    "tilted left (its right side towards the camera)",
    "tilted right (its left side towards the camera)",
)
"""In the order of ``TILTS_DEG``; left and right are the picture's."""

# Lengths in half diagonals of the picture.
_BENDS = (-0.6, 0.4)
_SHORT_FOCAL, _LONGEST_FOCAL = 1.5, 50.0
_SLIGHT_FORESHORTENING = 0.05


@dataclass(frozen=True, eq=False)
class Coverage:
    """What V views show.

    views_per_cell         (rows, cols) number of views with corners in each cell of the picture
    views_per_orientation  (5,) in the order of ``ORIENTATIONS``; a view that is tilted about
                           both axes counts for both
    warnings               sentences about what is missing
    """

    views_per_cell: IntArray
    views_per_orientation: IntArray
    warnings: tuple[str, ...]

    @property
    def covered(self) -> BoolArray:
        """(rows, cols) which cells enough views have corners in."""
        return self.views_per_cell >= MIN_VIEWS

    @property
    def share(self) -> float:
        """Part of the picture's cells that are covered."""
        return float(self.covered.mean())


def assess_coverage(
    uv: FloatArray,
    valid: BoolArray,
    target: Target,
    image_size: tuple[int, int],
) -> Coverage:
    """Coverage of the picture (width, height) and of tilts by a flat target's views.

    ``uv`` (V, T, 2) and ``valid`` (V, T).
    """
    views_per_cell = count_views(uv, valid, image_size)
    tilts_deg = place_boards(uv, valid, target, image_size).tilts_deg
    views_per_orientation = orientations(tilts_deg).sum(axis=0)
    warnings = []
    missing = name_parts(views_per_cell < MIN_VIEWS)
    if missing:
        share = float((views_per_cell >= MIN_VIEWS).mean())
        warnings.append(
            f"{100 * share:.0f} % of the picture is covered by {MIN_VIEWS} views or more; "
            f"hold the board into the {_listed(missing)}."
        )
    for name, n in zip(ORIENTATIONS, views_per_orientation.tolist(), strict=True):
        if n < MIN_VIEWS:
            how_many = (
                "no view shows" if n == 0 else f"only {n} view{'s' * (n > 1)} show{'s' * (n == 1)}"
            )
            warnings.append(f"{how_many} the board {name}.")
    return Coverage(views_per_cell, views_per_orientation, tuple(warnings))


def count_views(uv: FloatArray, valid: BoolArray, image_size: tuple[int, int]) -> IntArray:
    """(rows, cols) in how many views (V, T, 2) each cell of the picture has a valid corner."""
    width, height = image_size
    col = np.clip((uv[..., 0] + 0.5) * CELL_COLS / width, 0, CELL_COLS - 1).astype(np.int64)
    row = np.clip((uv[..., 1] + 0.5) * CELL_ROWS / height, 0, CELL_ROWS - 1).astype(np.int64)
    seen = np.zeros((len(uv), CELL_ROWS, CELL_COLS), dtype=bool)
    view = np.broadcast_to(np.arange(len(uv))[:, None], valid.shape)
    seen[view[valid], row[valid], col[valid]] = True
    return seen.sum(axis=0)


def name_parts(cells: BoolArray) -> list[str]:
    """The parts of the picture that cells (rows, cols) lie in, in words."""
    sides = {
        "top edge": cells[0],
        "bottom edge": cells[-1],
        "left edge": cells[:, 0],
        "right edge": cells[:, -1],
    }
    whole = {name for name, side in sides.items() if side.all()}
    parts = [f"whole {name}" for name in sides if name in whole]
    for v, row in (("top", 0), ("bottom", -1)):
        for h, col in (("left", 0), ("right", -1)):
            if cells[row, col] and not {f"{v} edge", f"{h} edge"} & whole:
                parts.append(f"{v}-{h} corner")
    for name, side in sides.items():
        if name not in whole and side[1:-1].any():
            parts.append(name if side[1:-1].all() else f"{name} (parts of it)")
    middle = cells[1:-1, 1:-1]
    if middle.any():
        parts.append("middle" if middle.all() else "middle (parts of it)")
    return parts


@dataclass(frozen=True, eq=False)
class BoardPlacements:
    """Where V boards are in the picture and how they are turned.

    centre     (V, 2) the board's middle, in half diagonals from the image centre
    size       (V,) how large the board is around its middle, in half diagonals
    tilts_deg  (V, 2) angles about the picture's x and y axes, signs as in ``TILTS_DEG``
    """

    centre: FloatArray
    size: FloatArray
    tilts_deg: FloatArray


def place_boards(
    uv: FloatArray,
    valid: BoolArray,
    target: Target,
    image_size: tuple[int, int],
    focal_px: float | None = None,
) -> BoardPlacements:
    """Placements of boards whose corners are at ``uv`` (V, T, 2) where ``valid`` (V, T)."""
    half_px = math.hypot(*image_size) / 2
    distorted = np.where(valid[..., None], (uv - image_centre(image_size)) / half_px, 0.0)
    points = target.points[:, :2] - target.points[:, :2].mean(axis=0)
    points = points / np.abs(points).max()
    bend = minimize_scalar(
        lambda bend: _misfit(points, _undistort(distorted, bend), valid),
        bounds=_BENDS,
        method="bounded",
        options={"xatol": 1e-3},
    ).x
    homographies = _homographies(points, _undistort(distorted, bend), valid)
    focal = _focal(homographies) if focal_px is None else focal_px / half_px
    sides = homographies[:, :, :2] / np.array([focal, focal, 1.0])[:, None]
    normals = np.cross(sides[:, :, 0], sides[:, :, 1])
    # Towards the camera: the side of the board that is seen.
    normals *= -np.sign(normals[:, 2:])
    x, y, z = normals.T
    tilts_deg = np.degrees(np.stack([np.arctan2(y, -z), np.arctan2(-x, -z)], axis=1))
    middle = homographies[:, :, 2]
    centre = middle[:, :2] / middle[:, 2:]
    # The homography's derivative at the board's middle: its area there.
    stretch = homographies[:, :2, :2] - centre[:, :, None] * homographies[:, None, 2, :2]
    size = np.sqrt(np.abs(np.linalg.det(stretch / middle[:, 2, None, None])))
    return BoardPlacements(centre, size, tilts_deg)


def orientations(tilts_deg: FloatArray) -> BoolArray:
    """(V, 5) which of ``ORIENTATIONS`` boards with tilts (V, 2) are in."""
    about_x, about_y = tilts_deg.T
    frontal = (np.abs(tilts_deg) <= MIN_TILT_DEG).all(axis=1)
    return np.stack(
        [
            frontal,
            about_x > MIN_TILT_DEG,
            about_x < -MIN_TILT_DEG,
            about_y > MIN_TILT_DEG,
            about_y < -MIN_TILT_DEG,
        ],
        axis=1,
    )


def _undistort(distorted: FloatArray, bend: float) -> FloatArray:
    """Pixels (V, T, 2) in half diagonals from the image centre, moved along their radius."""
    return distorted / (1 + bend * np.sum(distorted**2, axis=-1, keepdims=True))


def _homographies(points: FloatArray, uv: FloatArray, valid: BoolArray) -> FloatArray:
    """(V, 3, 3) from points (T, 2) to pixels (V, T, 2) of about unit size: direct linear."""
    ones = np.column_stack([points, np.ones(len(points))])
    rows = np.zeros((*uv.shape, 9))
    rows[:, :, 0, 0:3] = rows[:, :, 1, 3:6] = ones
    rows[..., 6:9] = -uv[..., None] * ones[:, None]
    rows *= valid[:, :, None, None]
    normal = np.einsum("vtki,vtkj->vij", rows, rows, optimize=True)
    return np.asarray(np.linalg.eigh(normal)[1][:, :, 0].reshape(-1, 3, 3))


def _misfit(points: FloatArray, uv: FloatArray, valid: BoolArray) -> float:
    """Mean squared distance of pixels (V, T, 2) from their homographies, in half diagonals."""
    ones = np.column_stack([points, np.ones(len(points))])
    mapped = np.einsum("vij,tj->vti", _homographies(points, uv, valid), ones)
    off = mapped[valid][:, :2] / mapped[valid][:, 2:] - uv[valid]
    return float(np.mean(off**2))


def _focal(homographies: FloatArray) -> float:
    """Focal length that makes the boards' sides perpendicular and equally scaled.

    Where no board is foreshortened, nothing says what it is: a short one is assumed then,
    as a long one would turn the slightest change of scale across a board into a tilt.
    """
    a, b = homographies[:, :, 0], homographies[:, :, 1]
    size = np.sum(a[:, :2] ** 2 + b[:, :2] ** 2, axis=1) / 2
    across = [np.sum(a[:, :2] * b[:, :2], axis=1), np.sum(a[:, :2] ** 2 - b[:, :2] ** 2, axis=1)]
    along = [a[:, 2] * b[:, 2], a[:, 2] ** 2 - b[:, 2] ** 2]
    foreshortening, perspective = np.stack(across) / size, np.stack(along) / size
    weight = _SLIGHT_FORESHORTENING**2 * foreshortening.size
    product = float(np.sum(foreshortening * perspective))
    inverse_square = (weight / _SHORT_FOCAL**2 - product) / (
        weight + float(np.sum(foreshortening**2))
    )
    return float(max(inverse_square, _LONGEST_FOCAL**-2) ** -0.5)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
