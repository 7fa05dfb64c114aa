"""Where a board is in the frames of a video, cheaply: found once, then followed.

A board that was found in one frame is followed into the next by the optical flow of some of its
points, in a reduced picture of its surroundings: that takes a twentieth of what finding it takes,
and says to a tenth of a reduced pixel how far the board has moved, which is what tells a pose that
is held. Points that do not move like the others are dropped; if most do not, the board is lost and
looked for again, first in a reduced picture, and from time to time with all that the detector can
do, as for a small board.

Flow may jump from one tag to the next one. So before corners are measured, tags are read where the
flow says they are.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.target import AprilGrid, BoardTarget
from influx_wrap.observe import aprilgrid
from influx_wrap.observe.board_map import MIN_CORNERS, BoardMap, fit_map
from influx_wrap.observe.detection import AmbiguousPicture, Detection, as_8_bit
from influx_wrap.observe.detectors import detect_usable, gives_pose
from influx_wrap.observe.lattice import find_tags, likeness
from influx_wrap.observe.luma import Luma, Window

PIXELS_PER_SCALE = 1000
"""The picture's diagonal is divided by this many pixels: by 4 at 3424 x 2202. A tenth of a
reduced pixel is then a tenth of what counts as standing still."""
MAX_SCALE = 8
LEAST_SPACING_PX = 8.0
"""Between neighbouring points in the reduced picture; a tag is then 12 px wide."""
MARGIN_SHARE, MARGIN_PX = 0.15, 32
"""Of the surroundings: a share of the board's size, and reduced pixels."""
MAX_POINTS = 64
FLOW_WINDOW_PX, FLOW_LEVELS = 13, 3
FLOW_ENDS = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 12, 0.02)
MIN_FOLLOWED, MIN_FOLLOWED_SHARE = 6, 0.6
INLIER_PX, INLIER_FACTOR = 0.75, 3.0
"""How far from the common motion, in reduced pixels, a point may be: at least, and in medians."""
ASTRAY_PX = 4.0
"""Reduced pixels between where a board was followed to and where its corners are."""
UNLIKE = 0.8
"""How much the surroundings of a point may differ after it has moved, in parts of their contrast:
where there is nothing to be followed to, as when the board is gone, that is 1 or more."""
LOOK_EVERY, SEARCH_EVERY = 2, 24
"""Frames without the board in which a reduced picture is looked at, and the detector is asked."""
REFRESH_EVERY = 24
"""Frames for which the same points are followed."""
LIKE_ITS_CODE = 0.5
READ_TAGS = 24


@dataclass(frozen=True, eq=False)
class BoardPlace:
    """Where the board is in a frame.

    points   (n,) some of the target's points
    uv       (n, 2) where they are, to a pixel or so
    step_px  how far the board has moved since the frame before; NaN if that is not known
    finding  which finding it was followed from
    """

    points: IntArray
    uv: FloatArray
    step_px: float
    finding: int


class Tracker:
    """Follows a board through frames in a row; what it says depends on these frames alone."""

    def __init__(self, target: BoardTarget, image_size: tuple[int, int]) -> None:
        self._target = target
        self._most = _power_of_two(math.sqrt(2) * math.hypot(*image_size) / PIXELS_PER_SCALE)
        self._scale = self._look_scale = self._most
        self._place: BoardPlace | None = None
        self._before: _Surroundings | None = None
        self._frame: Luma | None = None
        self._lost = self._n_followed = self._n_findings = 0
        self.is_ambiguous = False

    def next(self, frame: Luma) -> BoardPlace | None:
        """Where the board is in the next frame, None if it is not seen."""
        place = self._follow(frame)
        if place is None:
            self._before = None
            place = self._look(frame)
        elif self._n_followed >= REFRESH_EVERY:
            place = self._refreshed(frame, place)
        self._place, self._frame = place, frame
        self._lost = 0 if place is not None else self._lost + 1
        return place

    def measure(self, frame: Luma, place: BoardPlace) -> Detection | None:
        """The corners in one of the last frames, exactly, where ``next`` had the board in it; None
        if the frame shows more boards than one."""
        found = self._measured(frame, place)
        if found is None:
            found = detect_usable(self._target, frame.picture())
            if isinstance(self._target, AprilGrid) or found is None or not found.found.any():
                # It is not where it was followed to.
                self._place = None
        return found

    def settled(self, place: BoardPlace, measured: Detection) -> BoardPlace | None:
        """Where the board is, after its corners were measured: not always where it was followed
        to; None if it is not there at all."""
        points = np.flatnonzero(measured.found)
        if not points.size:
            return None
        uv = measured.uv[points]
        off_px = _median_step(place, points, uv)
        if off_px <= ASTRAY_PX * self._most:
            return place
        if self._place is not None and self._place.finding == place.finding:
            # It is still followed from where it is not.
            self._place = None
        return replace(place, points=points, uv=uv, step_px=math.nan)

    def _measured(self, frame: Luma, place: BoardPlace) -> Detection | None:
        """Of an AprilGrid that is where it was followed to; None if it is not, or another board."""
        grid = self._target
        if not isinstance(grid, AprilGrid) or len(place.points) < MIN_CORNERS:
            return None
        fit = fit_map(grid.points[place.points, :2], place.uv)
        if not self._is_read(frame, grid, place, fit):
            return None
        everywhere = np.concatenate([fit(grid.points[:, :2]), place.uv])
        around = _surroundings(frame, everywhere, 1)
        inside = Luma(frame.plane[around.window], frame.shift, frame.white).picture()
        seen = aprilgrid.measure(inside, grid, place.points, around.inside(place.uv))
        seen = replace(seen, uv=around.full(seen.uv))
        enough = 2 * seen.found.sum() >= len(place.points) and gives_pose(grid, seen)
        return seen if enough else None

    def _is_read(self, frame: Luma, grid: AprilGrid, place: BoardPlace, fit: BoardMap) -> bool:
        """Whether the tags' codes are where a map from board to picture has them."""
        tags = np.unique(grid.tag_of_point[place.points])
        tags = tags[:: -(-len(tags) // READ_TAGS)]
        points = aprilgrid.points_of_tags(tags, grid)
        corners = fit(grid.points[points.ravel(), :2])
        around = _surroundings(frame, corners, self._scale)
        alike = likeness(around.picture, around.inside(corners).reshape(-1, 4, 2), grid, tags)
        return bool(np.median(alike) > LIKE_ITS_CODE)

    def _follow(self, frame: Luma) -> BoardPlace | None:
        """By the flow from the frame before."""
        if self._place is None or self._frame is None:
            return None
        if self._before is None or not self._before.holds(self._place.uv):
            self._before = _surroundings(self._frame, self._place.uv, self._scale)
        before = self._before
        after = before.same_in(frame)
        old = before.inside(self._place.uv).astype(np.float32)
        new, good = _flow(before.picture, after.picture, old)
        good &= after.contains(new.astype(float))
        for _ in range(2):
            if good.sum() < max(MIN_FOLLOWED, MIN_FOLLOWED_SHARE * len(old)):
                return None
            off = _off_common_motion(old, new, good)
            good &= off <= max(INLIER_PX, INLIER_FACTOR * float(np.median(off[good])))
        if good.sum() < max(MIN_FOLLOWED, MIN_FOLLOWED_SHARE * len(old)):
            return None
        self._n_followed += 1
        step_px = before.scale * float(np.median(np.linalg.norm((new - old)[good], axis=1)))
        self._before = after
        points, uv = self._place.points[good], after.full(new[good].astype(float))
        return replace(self._place, points=points, uv=uv, step_px=step_px)

    def _refreshed(self, frame: Luma, place: BoardPlace) -> BoardPlace:
        """With points in place of those that were lost or have drifted, if it is found anew."""
        self._n_followed = 0
        with suppress(AmbiguousPicture):
            found = self._quick_look(frame)
            if found is not None and len(found[0]) >= len(place.points):
                return self._start(*found, place.step_px)
        return place

    def _look(self, frame: Luma) -> BoardPlace | None:
        """Without knowing where it was."""
        was = self._place
        thorough = self._lost % SEARCH_EVERY == 0 and was is None
        # A larger picture is looked at the less often, the longer that takes.
        pause = LOOK_EVERY * max(1, self._most // self._look_scale)
        if not thorough and was is None and self._lost % pause:
            return None
        try:
            found = self._search(frame) if thorough else self._quick_look(frame)
        except AmbiguousPicture:
            self.is_ambiguous = True
            return None
        self.is_ambiguous = False
        if found is None:
            return None
        points, uv = found
        place = self._start(points, uv, math.nan)
        if was is not None:
            place = self._start(points, uv, _median_step(was, points, uv))
        return place

    def _search(self, frame: Luma) -> tuple[IntArray, FloatArray] | None:
        """With all that the detector can do."""
        grid = self._target
        if isinstance(grid, AprilGrid):
            tags = aprilgrid.find_grid(as_8_bit(frame.picture()), grid)
            if tags is None:
                return None
            points, uv = aprilgrid.tag_corners(tags, grid)
            return points, uv
        detection = detect_usable(grid, frame.picture())
        if detection is None:
            raise AmbiguousPicture("more targets than one.")
        points = np.flatnonzero(detection.found)
        return (points, detection.uv[points]) if points.size else None

    def _quick_look(self, frame: Luma) -> tuple[IntArray, FloatArray] | None:
        """In a reduced picture."""
        scale, (width, height) = self._look_scale, frame.size
        everything = slice(0, height), slice(0, width)
        small = frame.small(scale, everything)
        whole, grid = _Surroundings(small, scale, everything, frame.size), self._target
        if isinstance(grid, AprilGrid):
            tags = find_tags(whole.picture, grid, 1, aprilgrid.DARK)
            if tags is None:
                return None
            points, uv = aprilgrid.tag_corners(tags, grid)
            return points, whole.full(uv)
        detection = detect_usable(grid, whole.picture)
        if detection is None:
            raise AmbiguousPicture("more targets than one.")
        points = np.flatnonzero(detection.found)
        return (points, whole.full(detection.uv[points])) if points.size else None

    def _start(self, points: IntArray, uv: FloatArray, step_px: float) -> BoardPlace:
        """Go on from a fresh finding of at most ``MAX_POINTS`` points."""
        self._look_scale = self._scale_for(uv)
        self._scale = min(self._look_scale, self._most)
        self._n_followed, self._before = 0, None
        self._n_findings += 1
        some = np.arange(0, len(points), -(-len(points) // MAX_POINTS))
        self._place = BoardPlace(points[some], uv[some], step_px, self._n_findings)
        return self._place

    def _scale_for(self, uv: FloatArray) -> int:
        """The largest scale at which neighbours among points (n, 2) are still apart."""
        extent = np.ptp(uv, axis=0)
        spacing_px = math.sqrt(float(extent[0] * extent[1]) / max(len(uv), 1))
        return _power_of_two(spacing_px / LEAST_SPACING_PX)


@dataclass(frozen=True, eq=False)
class _Surroundings:
    """A window of a frame of ``size`` (width, height) in a reduced picture (h, w)."""

    picture: NDArray[np.uint8]
    scale: int
    window: Window
    size: tuple[int, int]

    def same_in(self, frame: Luma) -> _Surroundings:
        """Of another frame."""
        return replace(self, picture=frame.small(self.scale, self.window))

    def inside(self, uv: FloatArray) -> FloatArray:
        """Pixels (..., 2) of the full picture in the reduced one."""
        return np.asarray((uv - self._first - (self.scale - 1) / 2) / self.scale)

    def full(self, uv: FloatArray) -> FloatArray:
        """And back."""
        return np.asarray(uv * self.scale + (self.scale - 1) / 2 + self._first)

    @property
    def _first(self) -> FloatArray:
        return np.array([self.window[1].start, self.window[0].start], dtype=float)

    def contains(self, uv: FloatArray) -> NDArray[np.bool_]:
        """(n,) which pixels (n, 2) of the reduced picture are in it."""
        last = np.array(self.picture.shape[::-1]) - 1
        return np.asarray(((uv >= 0) & (uv <= last)).all(axis=-1))

    def holds(self, uv: FloatArray) -> bool:
        """Whether there is room around pixels (n, 2) of the full picture, or none to be had."""
        rows, cols = self.window
        low, high = uv.min(axis=0), uv.max(axis=0)
        room = MARGIN_PX * self.scale / 2
        first, last = (cols.start, rows.start), (cols.stop, rows.stop)
        return all(
            (first[axis] == 0 or low[axis] - first[axis] > room)
            and (last[axis] == self.size[axis] or last[axis] - high[axis] > room)
            for axis in (0, 1)
        )


def _surroundings(frame: Luma, uv: FloatArray, scale: int) -> _Surroundings:
    """Of pixels (n, 2)."""
    low, high = uv.min(axis=0), uv.max(axis=0)
    margin = MARGIN_SHARE * (high - low) + MARGIN_PX * scale
    first = np.maximum(np.floor((low - margin) / scale), 0).astype(int) * scale
    last = np.minimum(np.ceil(high + margin), frame.size).astype(int)
    window = slice(int(first[1]), int(last[1])), slice(int(first[0]), int(last[0]))
    return _Surroundings(frame.small(scale, window), scale, window, frame.size)


def _flow(
    before: NDArray[np.uint8], after: NDArray[np.uint8], old: NDArray[np.float32]
) -> tuple[NDArray[np.float32], BoolArray]:
    """(n, 2) where points (n, 2) of one picture are in the next, and (n,) whether they are."""
    new, status, difference = cv2.calcOpticalFlowPyrLK(
        before, after, old, old.copy(), winSize=(FLOW_WINDOW_PX, FLOW_WINDOW_PX),
        maxLevel=FLOW_LEVELS, criteria=FLOW_ENDS,
    )  # fmt: skip
    good = np.ravel(status) > 0
    # Of others the difference is whatever was in memory.
    good[good] = np.ravel(difference)[good] <= UNLIKE * _contrast(before, old[good])
    return np.asarray(new, dtype=np.float32), good


def _contrast(picture: NDArray[np.uint8], points: NDArray[np.float32]) -> FloatArray:
    """(n,) how far pixels around points (n, 2) are from their mean, on average."""
    offsets = np.arange(FLOW_WINDOW_PX) - FLOW_WINDOW_PX // 2
    cols, rows = np.rint(points).astype(np.int64).T[..., None] + offsets
    rows, cols = rows.clip(0, picture.shape[0] - 1), cols.clip(0, picture.shape[1] - 1)
    around = picture[rows[:, :, None], cols[:, None, :]].reshape(len(points), -1).astype(float)
    return np.asarray(np.abs(around - around.mean(axis=1, keepdims=True)).mean(axis=1))


def _off_common_motion(
    old: NDArray[np.float32], new: NDArray[np.float32], good: NDArray[np.bool_]
) -> FloatArray:
    """(n,) distance of each point's motion to the affine one of the ``good`` points (n,)."""
    design = np.column_stack([old, np.ones(len(old))]).astype(float)
    affine = np.linalg.lstsq(design[good], new[good].astype(float), rcond=None)[0]
    return np.asarray(np.linalg.norm(design @ affine - new, axis=1))


def _median_step(was: BoardPlace, points: IntArray, uv: FloatArray) -> float:
    """How far the points that are known of both frames have moved; NaN if there are few."""
    _, before, now = np.intersect1d(was.points, points, return_indices=True)
    if len(now) < MIN_FOLLOWED:
        return math.nan
    return float(np.median(np.linalg.norm(was.uv[before] - uv[now], axis=1)))


def _power_of_two(value: float) -> int:
    """The largest power of two up to ``value``, from 1 to ``MAX_SCALE``."""
    return int(min(MAX_SCALE, 2 ** math.floor(math.log2(max(value, 1)))))
