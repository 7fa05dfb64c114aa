"""Coverage of the picture and of tilts, for views whose poses are known."""

import numpy as np
import pytest

from influx_wrap.model.intrinsics import Intrinsics, project
from influx_wrap.model.pose import TILTS_DEG, rotation_matrix, transform
from influx_wrap.model.target import AprilGrid
from influx_wrap.observe.coverage import (
    MIN_VIEWS,
    ORIENTATIONS,
    assess_coverage,
    count_views,
    name_parts,
    orientations,
    place_boards,
)

GRID = AprilGrid(tag_cols=11, tag_rows=8, tag_size_m=0.05, tag_spacing=0.3)
SIZE = (1712, 1100)
FOCAL_PX = 2200.0
FACING = np.diag([1.0, -1.0, -1.0])


def filmed(rng, tilts_deg, k1=-0.1):
    """uv, valid and rotations of a board at 3 x 3 places for each tilt (n, 3), a bit wobbly."""
    camera = Intrinsics(FOCAL_PX, FOCAL_PX, 860.0, 545.0, k1=k1)
    places = [[x, y, 2.0] for x in (-0.5, 0, 0.5) for y in (-0.3, 0, 0.3)]
    turns = np.repeat(np.radians(tilts_deg), len(places), axis=0)
    rotations = rotation_matrix(turns + rng.normal(0, np.radians(2), turns.shape)) @ FACING
    middle = GRID.points.mean(axis=0)
    translations = np.tile(places, (len(tilts_deg), 1)) - rotations @ middle
    uv, valid = project(camera, transform(rotations, translations, GRID.points))
    uv += rng.normal(0, 0.1, uv.shape)
    inside = ((uv > 4) & (uv < np.array(SIZE) - 5)).all(axis=-1)
    return uv, valid & inside, rotations


@pytest.mark.parametrize("k1", [-0.2, 0.0, 0.3])
@pytest.mark.parametrize(("focal_px", "tolerance_deg"), [(FOCAL_PX, 8), (None, 8)])
def test_tilts_are_those_of_the_poses(k1, focal_px, tolerance_deg):
    uv, valid, rotations = filmed(np.random.default_rng(0), TILTS_DEG, k1)
    found = place_boards(uv, valid, GRID, SIZE, focal_px).tilts_deg
    x, y, z = rotations[:, :, 2].T
    true = np.degrees(np.stack([np.arctan2(y, -z), np.arctan2(-x, -z)], axis=1))
    np.testing.assert_allclose(found, true, atol=tolerance_deg)
    assert (orientations(found) == np.repeat(np.eye(5, dtype=bool), 9, axis=0)).all()


@pytest.mark.parametrize("missing", range(5))
def test_a_missing_orientation_is_named(missing):
    uv, valid, _ = filmed(np.random.default_rng(missing), np.delete(TILTS_DEG, missing, axis=0))
    coverage = assess_coverage(uv, valid, GRID, SIZE)
    assert coverage.views_per_orientation.tolist() == [9 * (i != missing) for i in range(5)]
    assert coverage.warnings == (f"no view shows the board {ORIENTATIONS[missing]}.",)


@pytest.mark.parametrize("k1", [-0.2, 0.2])
def test_boards_that_are_never_tilted(k1):
    uv, valid, _ = filmed(np.random.default_rng(0), TILTS_DEG[:1], k1)
    assert assess_coverage(uv, valid, GRID, SIZE).views_per_orientation.tolist() == [9, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("tilt", "nearest"), [(1, "top"), (2, "bottom"), (3, "right side"), (4, "left side")]
)
def test_the_words_say_which_side_is_nearest(tilt, nearest):
    x, y = np.split(GRID.points[:, :2] - GRID.points[:, :2].mean(axis=0), 2, axis=1)
    sides = {"top": y, "bottom": -y, "right side": x, "left side": -x}
    depth = (rotation_matrix(np.radians(TILTS_DEG[tilt])) @ FACING @ GRID.points.T)[2]
    assert depth[sides[nearest].ravel().argmax()] < np.median(depth)
    assert f"its {nearest} towards the camera" in ORIENTATIONS[tilt]


def test_too_few_views_of_an_orientation_are_counted():
    uv, valid, _ = filmed(np.random.default_rng(0), TILTS_DEG)
    kept = np.ones(len(uv), dtype=bool)
    kept[9 + 1 : 18], kept[18 + 2 : 27] = False, False
    warnings = assess_coverage(uv[kept], valid[kept], GRID, SIZE).warnings
    assert warnings[-2].startswith("only 1 view shows the board tilted down")
    assert warnings[-1].startswith("only 2 views show the board tilted up")


def test_cells_count_views_not_corners():
    uv, valid, _ = filmed(np.random.default_rng(0), TILTS_DEG)
    counted = count_views(uv, valid, SIZE)
    rows, cols = counted.shape
    for row, col in np.ndindex(rows, cols):
        low = np.array([col * SIZE[0] / cols, row * SIZE[1] / rows]) - 0.5
        high = low + np.array([SIZE[0] / cols, SIZE[1] / rows])
        inside = valid & ((uv >= low) & (uv < high)).all(axis=-1)
        assert counted[row, col] == inside.any(axis=1).sum()


def test_uncovered_parts_are_named():
    uv, valid, _ = filmed(np.random.default_rng(0), TILTS_DEG)
    valid &= ~((uv[..., 0] > 1450) & (uv[..., 1] < 230))
    coverage = assess_coverage(uv, valid, GRID, SIZE)
    assert coverage.share == 39 / 40
    assert (coverage.views_per_cell < MIN_VIEWS).sum() == 1
    assert len(coverage.warnings) == 1
    assert "98 %" in coverage.warnings[0]
    assert "top-right corner" in coverage.warnings[0]


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ((slice(0), slice(0)), []),
        ((0, 0), ["top-left corner"]),
        ((slice(None), -1), ["whole right edge"]),
        ((0, slice(1, -1)), ["top edge"]),
        ((-1, slice(0, 3)), ["bottom-left corner", "bottom edge (parts of it)"]),
        ((2, 4), ["middle (parts of it)"]),
        (
            (slice(None), slice(None)),
            [
                "whole top edge",
                "whole bottom edge",
                "whole left edge",
                "whole right edge",
                "middle",
            ],
        ),
    ],
)
def test_names(where, parts):
    cells = np.zeros((5, 8), dtype=bool)
    cells[where] = True
    assert name_parts(cells) == parts
