"""Where the target's points were seen: the only input of a calibration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.target import Target, is_collinear
from influx_wrap.model.words import size_text

MIN_POINTS_PER_VIEW = 4


@dataclass(frozen=True, eq=False)
class Observations:
    """Pixels of a target's T points in V views of one camera setting.

    uv          (V, T, 2), pixel centres at integers; ignored where not valid
    valid       (V, T)
    image_size  (width, height)
    view_ids    (V,) the caller's numbers of the views, those of a video's frames for instance
    view_names  what people call the views: a file's name, ``frame 12``; ``view 12`` by default

    Refuses what no calibration can use: sizes that do not match, coordinates that
    are not finite, views with fewer than four points or with all points on a line.
    """

    target: Target
    uv: FloatArray
    valid: BoolArray
    image_size: tuple[int, int]
    view_ids: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    view_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        uv = np.ascontiguousarray(self.uv, dtype=float)
        valid = np.ascontiguousarray(self.valid, dtype=bool)
        n_points = len(self.target.points)
        if uv.ndim != 3 or uv.shape[1:] != (n_points, 2):
            raise InputError(
                f"coordinates have shape {uv.shape}, but the target has {n_points} points: "
                f"(views, {n_points}, 2) is needed. Is this the right target?"
            )
        if valid.shape != uv.shape[:2]:
            raise InputError(f"valid has shape {valid.shape}, the coordinates need {uv.shape[:2]}.")
        if len(uv) == 0:
            raise InputError("there is no view: nothing was detected, nothing can be calibrated.")
        if min(self.image_size) < 1:
            raise InputError(f"image size {self.image_size} is not positive.")
        view_ids = np.asarray(self.view_ids, dtype=np.int64)
        if view_ids.size == 0:
            view_ids = np.arange(len(uv), dtype=np.int64)
        if view_ids.shape != (len(uv),):
            raise InputError(f"{len(view_ids)} view ids for {len(uv)} views.")
        names = tuple(self.view_names) or _default_names(view_ids)
        if len(names) != len(uv):
            raise InputError(f"{len(names)} view names for {len(uv)} views.")
        object.__setattr__(self, "view_names", names)
        object.__setattr__(self, "uv", uv)
        object.__setattr__(self, "valid", valid)
        object.__setattr__(self, "view_ids", view_ids)
        self._check_views()

    def _check_views(self) -> None:
        finite = np.logical_and.reduce(np.isfinite(self.uv), axis=2)
        for index, name in enumerate(self.view_names):
            seen = self.valid[index]
            bad = seen & ~finite[index]
            if bad.any():
                raise InputError(
                    f"{name}, point {int(np.argmax(bad))}: the coordinates are not finite "
                    "although the point is marked as found."
                )
            if seen.sum() < MIN_POINTS_PER_VIEW:
                raise InputError(
                    f"{name} has only {int(seen.sum())} points; at least "
                    f"{MIN_POINTS_PER_VIEW} are needed. Leave the view out."
                )
            if is_collinear(self.target.points[seen]):
                raise InputError(
                    f"{name}: all {int(seen.sum())} points lie on one line, "
                    "which gives no pose. Leave the view out."
                )
        width, height = self.image_size
        outside = self.valid & (
            (self.uv[..., 0] < -0.5)
            | (self.uv[..., 0] > width - 0.5)
            | (self.uv[..., 1] < -0.5)
            | (self.uv[..., 1] > height - 0.5)
        )
        if outside.any():
            index, point = (int(i) for i in np.argwhere(outside)[0])
            u, v = self.uv[index, point]
            raise InputError(
                f"{self.view_names[index]}, point {point}: ({u:.1f}, {v:.1f}) lies outside the "
                f"{size_text(self.image_size)} image. Is the image size right?"
            )

    @property
    def has_own_names(self) -> bool:
        """Whether the names say more than the numbers."""
        return self.view_names != _default_names(self.view_ids)

    def subset(self, views: IntArray) -> Observations:
        """The views with these indices (n,), in this order."""
        names = tuple(self.view_names[view] for view in views.tolist())
        return replace(
            self,
            uv=self.uv[views],
            valid=self.valid[views],
            view_ids=self.view_ids[views],
            view_names=names,
        )

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.uv)

    @property
    def n_corners(self) -> int:
        """Number of valid points over all views."""
        return int(self.valid.sum())


def _default_names(view_ids: IntArray) -> tuple[str, ...]:
    return tuple(f"view {view_id}" for view_id in view_ids.tolist())
