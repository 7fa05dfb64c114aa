"""Which detector finds which target."""

from __future__ import annotations

from influx_wrap.model.arrays import Picture
from influx_wrap.model.observations import MIN_POINTS_PER_VIEW
from influx_wrap.model.target import AprilGrid, BoardTarget, Charuco, Checkerboard, is_collinear
from influx_wrap.observe import aprilgrid, charuco, checkerboard, circles
from influx_wrap.observe.detection import AmbiguousPicture, Detection, nothing_found


def detect_usable(target: BoardTarget, picture: Picture) -> Detection | None:
    """The target's corners in a grey picture, none if they would give no pose; None if it shows
    more targets than one."""
    nothing = nothing_found(len(target.points))
    try:
        match target:
            case AprilGrid():
                seen = aprilgrid.detect(picture, target)
            case Checkerboard():
                seen = checkerboard.detect(picture, target)
            case Charuco():
                seen = charuco.detect(picture, target)
            case _:
                seen = circles.detect(picture, target)
    except AmbiguousPicture:
        return None
    return seen if gives_pose(target, seen) else nothing


def gives_pose(target: BoardTarget, seen: Detection) -> bool:
    """Whether corners tell where the board is; readers of observations refuse others."""
    found = seen.found
    return bool(found.sum() >= MIN_POINTS_PER_VIEW and not is_collinear(target.points[found]))
