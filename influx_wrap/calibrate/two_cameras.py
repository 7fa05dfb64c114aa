"""Are all views of one camera, at one zoom and focus, and held the same way up?

One flat board in one view says little about the focal length, so views of two cameras can be fitted
together, with residuals and a sigma that look like those of a poor lens. But then two sets of
intrinsics, each for its own views, fit many times better, and with one camera they hardly do,
whatever its lens model or its board has against it. The views are sorted as in k-means: each goes
to the camera that fits it better, both are fitted again, and so on from several beginnings.

Pictures that were turned upside down, as some programs do with a camera that was held so, are of
one camera that has its principal point, and its decentring, mirrored. That costs no parameters, so
that a smaller gain tells it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from influx_wrap.calibrate.adjust import Stop, adjust
from influx_wrap.calibrate.kernels import residuals
from influx_wrap.calibrate.model_error import view_information
from influx_wrap.calibrate.pose import NO_BOW, PoseError, estimate_poses, refine_poses
from influx_wrap.calibrate.problem import Problem
from influx_wrap.model.arrays import BoolArray, FloatArray

MUCH_BETTER = 0.65
"""RMS with two cameras, in units of that with one, below which there are two. Of one camera's views
on real footage, with bent boards and lenses that k1 and k2 do not describe, it is 0.8 or more."""
UPSIDE_DOWN = 0.93
"""The same for one camera, some of whose pictures are upside down."""
FEWEST = 4
"""Each camera has at least so many views: fewer are fitted by anything."""
MOST_VIEWS = 24
"""Views that are sorted; the others go to the camera that fits them."""
ROUNDS = 6
HALF_TURN = np.array([-1.0, -1, -1, -1, -1, -1, 1, 1, 1, -1, -1, 1])
"""A pose (12,), times this, is that of a camera that is turned by 180 degrees about its axis."""
QUICK_STOP = Stop(
    lambda0=1e-5, scaled_damping=True, least_shrink=1e-3, max_iterations=15, decrement=1e-3
)


@dataclass(frozen=True, eq=False)
class TwoCameras:
    """Two sets of intrinsics (8,) that fit much better than one, and the views (V,) that are of
    the second, the one with fewer."""

    first: FloatArray
    second: FloatArray
    is_second: BoolArray


@dataclass(frozen=True, eq=False)
class _Sorted:
    cameras: tuple[FloatArray, FloatArray]
    rms_px: float


def two_cameras(
    problem: Problem, theta: FloatArray, poses: FloatArray, weights: FloatArray
) -> TwoCameras | None:
    """The two cameras that the views are of; None if they are of one, or too few to tell.

    theta    (8,) intrinsics of all views together, with their poses (V, 12)
    weights  (C, CHUNK) of the corners; views of which all are 0 are not looked at
    """
    used = np.flatnonzero(np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1]) > 0)
    if len(used) < 2 * FEWEST:
        return None
    active = np.zeros(problem.n_views, dtype=bool)
    active[used[np.linspace(0, len(used) - 1, min(len(used), MOST_VIEWS)).astype(int)]] = True
    part, chunks = problem.some_views(active)
    few = weights[chunks]
    one = adjust(part, theta, poses[active], stop=QUICK_STOP, weights=few)
    together = _view_rms_px(part, one.theta, one.poses, few)
    found = [
        _sorted(part, one.theta, one.poses, few, beginning)
        for beginning in _beginnings(part, one.theta, one.poses, few)
    ]
    best = min((one for one in found if one is not None), key=lambda s: s.rms_px, default=None)
    if best is None or not best.rms_px < MUCH_BETTER * _rms(together):
        return None
    try:
        # With a camera that is far off, poses of before are no place to begin at.
        fits = [
            _rms_of(problem, camera, estimate_poses(problem, camera), weights)
            for camera in best.cameras
        ]
    except PoseError:
        return None
    is_second = fits[1] < fits[0]
    first, second = best.cameras
    if is_second[used].mean() > 0.5:
        first, second, is_second = second, first, ~is_second
    return TwoCameras(first, second, is_second & np.isin(np.arange(problem.n_views), used))


def upside_down(
    problem: Problem,
    theta: FloatArray,
    poses: FloatArray,
    weights: FloatArray,
    *,
    may_be_bent: bool,
) -> BoolArray | None:
    """(V,) the views whose pictures are upside down beside the others', the fewer; None if all
    are the same way up, or it makes no difference. Arguments as of ``two_cameras``.

    A board that ``may_be_bent`` is taken as such: what a bend leaves unexplained of flat views
    would speak for turning some of them.
    """
    used = np.flatnonzero(np.add.reduceat((weights > 0).sum(axis=1), problem.first[:-1]) > 0)
    if len(used) < FEWEST:
        return None
    active = np.zeros(problem.n_views, dtype=bool)
    active[used[np.linspace(0, len(used) - 1, min(len(used), MOST_VIEWS)).astype(int)]] = True
    part, chunks = problem.some_views(active)
    few, turned = weights[chunks], _turned(part)
    shape = np.zeros(3) if may_be_bent else None
    one = adjust(part, theta, poses[active], stop=QUICK_STOP, weights=few, bow=shape)
    together = _rms(_view_rms_px(part, one.theta, one.poses, few, one.bow))
    best_rms, best = np.inf, one
    for is_turned in _beginnings(part, one.theta, one.poses, few):
        for _ in range(ROUNDS):
            mixed = replace(
                part,
                data=np.where(is_turned[part.view_of_chunk][:, None], turned.data, part.data),
            )
            begin = np.where(is_turned[:, None], one.poses * HALF_TURN, one.poses)
            fit = adjust(mixed, one.theta, begin, stop=QUICK_STOP, weights=few, bow=shape)
            upright = np.where(is_turned[:, None], fit.poses * HALF_TURN, fit.poses)
            as_is = _rms_of(part, fit.theta, upright, few, fit.bow)
            the_other_way = _rms_of(turned, fit.theta, upright * HALF_TURN, few, fit.bow)
            rms_px = _rms(np.where(is_turned, the_other_way, as_is))
            if rms_px < best_rms:
                best_rms, best = rms_px, fit
            again = the_other_way < as_is
            if np.array_equal(again, is_turned):
                break
            is_turned = again
    if not best_rms < UPSIDE_DOWN * together:
        return None
    try:
        as_is, the_other_way = (
            _rms_of(each, best.theta, estimate_poses(each, best.theta), weights, best.bow)
            for each in (problem, _turned(problem))
        )
    except PoseError:
        return None
    found = the_other_way < as_is
    if found[used].mean() > 0.5:
        found = ~found
    return found & np.isin(np.arange(problem.n_views), used)


def _turned(problem: Problem) -> Problem:
    """The same views, with all pictures turned by 180 degrees."""
    data = problem.data.reshape(len(problem.data), -1, problem.point.shape[1]).copy()
    data[:, 3:5] = (np.array(problem.image_size) - 1)[:, None] - data[:, 3:5]
    return replace(problem, data=data.reshape(problem.data.shape))


def _beginnings(
    problem: Problem, theta: FloatArray, poses: FloatArray, weights: FloatArray
) -> Iterator[BoolArray]:
    """Ways (V,) to divide the views in two: by where they pull the intrinsics, by the focal length
    they would have alone, and the first half and the second."""
    views = view_information(problem, theta, None, poses, weights)
    scale = np.sqrt(np.diag(views.information.sum(axis=0)))
    pulls = np.linalg.svd(views.score / scale, full_matrices=False)[0]
    yield pulls[:, 0] > 0
    yield pulls[:, 1] > 0
    focal = np.zeros(8)
    focal[:2] = theta[:2]
    step = (views.score @ focal) / np.einsum("i,vij,j->v", focal, views.information, focal)
    yield step > np.median(step)
    yield np.arange(problem.n_views) >= problem.n_views / 2


def _sorted(
    problem: Problem,
    theta: FloatArray,
    poses: FloatArray,
    weights: FloatArray,
    is_second: BoolArray,
) -> _Sorted | None:
    best = None
    for _ in range(ROUNDS):
        if min(is_second.sum(), (~is_second).sum()) < FEWEST:
            break
        cameras, fits = [], []
        for group in (~is_second, is_second):
            part, chunks = problem.some_views(group)
            fit = adjust(part, theta, poses[group], stop=QUICK_STOP, weights=weights[chunks])
            cameras.append(fit.theta)
            fits.append(_rms_of(problem, fit.theta, poses, weights))
        rms_px = _rms(np.where(is_second, fits[1], fits[0]))
        if best is None or rms_px < best.rms_px:
            best = _Sorted((cameras[0], cameras[1]), rms_px)
        again = fits[1] < fits[0]
        if np.array_equal(again, is_second):
            break
        is_second = again
    return best


def _rms_of(
    problem: Problem,
    theta: FloatArray,
    poses: FloatArray,
    weights: FloatArray,
    bow: FloatArray = NO_BOW,
) -> FloatArray:
    """(V,) RMS of the views with a camera, each at its best pose; infinite if that is none."""
    if not (np.isfinite(theta).all() and (theta[:2] > 0).all()):
        return np.full(problem.n_views, np.inf)
    refined = refine_poses(problem, theta, poses, weights, bow)
    return _view_rms_px(problem, theta, refined, weights, bow)


def _view_rms_px(
    problem: Problem,
    theta: FloatArray,
    poses: FloatArray,
    weights: FloatArray,
    bow: FloatArray = NO_BOW,
) -> FloatArray:
    residual = residuals(theta, bow, poses, problem.data, problem.count, problem.first)
    squared = np.add.reduceat(((residual**2).sum(axis=2) * weights).sum(axis=1), problem.first[:-1])
    corners = np.add.reduceat(weights.sum(axis=1), problem.first[:-1])
    return np.asarray(np.sqrt(squared / np.maximum(2 * corners, 1)))


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
