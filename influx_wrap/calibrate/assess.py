"""The verdict in words that ends every calibration, and what to film to make it better.

Limits are in picture diagonals where they are about pixels, so that they mean the same on a webcam
and on an 8K camera. They are not statistics: everything that can be told in sigma is in sigma. They
say from where on a person would rather not use the numbers as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from influx_wrap.calibrate.best_fit import BestFit
from influx_wrap.calibrate.goodness import Goodness
from influx_wrap.calibrate.model_error import MIN_GROUPS
from influx_wrap.calibrate.two_cameras import TwoCameras
from influx_wrap.model.arrays import BoolArray, FloatArray
from influx_wrap.model.intrinsics import Intrinsics, field_of_view_deg
from influx_wrap.model.result import Assessment, Grade, ProjectionUncertainty
from influx_wrap.model.words import counted

FX_SIGMA = (0.01, 0.05)
"""Relative sigma of fx from which on care is needed, and from which on it is no use."""
PROJECTION = (1e-3, 1e-2)
"""Median uncertainty of a projected point, in picture diagonals."""
SYSTEMATIC = (1e-4, 5e-4)
"""Structure in the residuals, in picture diagonals; it must also exceed ``OF_NOISE``."""
OF_NOISE = 0.3
NOISE = (5e-4, 2e-3)
"""Typical residual, in picture diagonals."""
RING_RATIO = 2.0
"""Noise of a ring, in units of the picture's, from which on the model does not reach there."""
REMOVED = (0.05, 0.2)
"""Share of corners left out as outliers."""
RING_REMOVED = (0.2, 0.5)
"""The same for a ring."""
UNUSED = (0.2, 0.5)
"""Share of views left out."""
BENT = 0.002
"""Bow of a board, in lengths of its longer side, that makes the answer depend on it."""
NAMED = 4
"""How many views are named in a reason."""
SEEN = 0.4
"""Share of the picture that has corners."""
FLAT_DEG = 15.0
"""A board that is never tilted by more than this says little about the focal length."""
FISHEYE_CORNER, FISHEYE_K1 = 1.3, -0.15
"""A lens that bends as much as the second, in pictures whose corners are this many focal lengths
from the centre or more, is a fisheye; one that draws straight lines straight has a k1 of about 0,
and a fisheye's radians from the axis, as a polynomial of the tangent, begin with a k1 of -1/3."""
FISHEYE_CURE = "if the lens is a fisheye, use a fisheye model: k1, k2, p1, p2 do not describe it"

_RANK: dict[Grade, int] = {"good": 0, "usable with care": 1, "do not use": 2}
_CORNERS = (
    ("upper left", 0, 0),
    ("upper right", 0, -1),
    ("lower left", -1, 0),
    ("lower right", -1, -1),
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a verdict is based on.

    goodness    of the answer; None for measured points, whose residuals are not corners' alone
    board_m     longer side of the board; None if the target is no board
    two_cameras  what the views look like if they are not of one camera
    upside_down  (V,) the views whose pictures were turned, None if none were
    is_kept_central  whether a prior nobody asked for keeps the principal point near the centre
    view_names  what people call the views
    """

    theta: FloatArray
    covariance: FloatArray
    projection: ProjectionUncertainty
    best: BestFit
    goodness: Goodness | None
    image_size: tuple[int, int]
    board_m: float | None
    two_cameras: TwoCameras | None
    upside_down: BoolArray | None
    is_kept_central: bool
    view_names: tuple[str, ...]

    @property
    def diagonal_px(self) -> float:
        """The picture's diagonal."""
        return math.hypot(*self.image_size)


@dataclass(frozen=True)
class _Finding:
    grade: Grade
    reason: str


def assess(evidence: Evidence) -> Assessment:
    """Good, usable with care, or not to be used, and why."""
    findings = [*_lens(evidence), *_cameras(evidence), *_precision(evidence)]
    findings += [*_views(evidence), *_noise(evidence)]
    if evidence.goodness is not None:
        findings += [*_structure(evidence, evidence.goodness), *_coverage(evidence.goodness)]
    worst: Grade = max((f.grade for f in findings), key=_RANK.__getitem__, default="good")
    findings.sort(key=lambda finding: -_RANK[finding.grade])
    return Assessment(worst, tuple(f.reason for f in findings), tuple(_film_next(evidence)))


def _graded(value: float, limits: tuple[float, float]) -> Grade:
    if not value <= limits[1]:
        return "do not use"
    return "usable with care" if value > limits[0] else "good"


def _cameras(evidence: Evidence) -> Iterator[_Finding]:
    # Where the lens model does not fit, it says nothing that two sets of intrinsics fit better.
    if _is_fisheye(evidence):
        return
    if evidence.upside_down is not None:
        yield _Finding(
            "do not use",
            f"{_some(evidence, evidence.upside_down)} fit much better upside down beside the "
            "others: some pictures were turned by 180 degrees",
        )
    two = evidence.two_cameras
    if two is None:
        return
    cameras = [f"fx {t[0]:.4g}, cx {t[2]:.4g}, cy {t[3]:.4g}" for t in (two.first, two.second)]
    yield _Finding(
        "do not use",
        f"the views are of two cameras, or one was zoomed, refocused or turned upside down: "
        f"{cameras[1]} fits {_some(evidence, two.is_second)} and {cameras[0]} the others",
    )


def _some(evidence: Evidence, views: BoolArray) -> str:
    """The names of some of the views (V,)."""
    names = [name for name, chosen in zip(evidence.view_names, views, strict=True) if chosen]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _lens(evidence: Evidence) -> Iterator[_Finding]:
    """What the answer itself says of the lens, however well the corners fit: the middle of a
    fisheye's picture can be described, and what is beyond the board cannot be checked."""
    intrinsics = Intrinsics.from_array(evidence.best.theta)
    if _is_fisheye(evidence):
        corner = _corner(evidence)
        field_deg = math.degrees(2 * corner)
        yield _Finding(
            "do not use",
            f"k1 is {intrinsics.k1:.2f} and the picture's corners are {corner:.1f} focal lengths "
            f"from the centre, as of a fisheye lens of about {field_deg:.0f} degrees",
        )
    elif not np.isfinite(field_of_view_deg(intrinsics, evidence.image_size)).all():
        yield _Finding(
            "usable with care",
            "the lens model has no rays near the picture's rim, where the distortion folds",
        )


def _corner(evidence: Evidence) -> float:
    """How far the picture's corners are from its centre, in focal lengths."""
    return evidence.diagonal_px / 2 / float(evidence.best.theta[0])


def _is_fisheye(evidence: Evidence) -> bool:
    return _corner(evidence) > FISHEYE_CORNER and evidence.best.theta[4] < FISHEYE_K1


def _precision(evidence: Evidence) -> Iterator[_Finding]:
    relative = math.sqrt(evidence.covariance[0, 0]) / evidence.theta[0]
    grade = _graded(relative, FX_SIGMA)
    if grade != "good":
        yield _Finding(grade, f"fx is known to {100 * relative:.1f} % only")
    median_px = evidence.projection.median_px
    grade = _graded(median_px / evidence.diagonal_px, PROJECTION)
    if grade != "good":
        yield _Finding(grade, f"a projected point is uncertain by {median_px:.2g} px")
    if not evidence.best.converged:
        yield _Finding("usable with care", "the adjustment stopped before it had converged")
    # A drone's flashes far away never tell it, and sigma says by how much.
    if evidence.is_kept_central and evidence.board_m is not None:
        sigma_px = math.sqrt(evidence.covariance[2:4, 2:4].diagonal().max())
        yield _Finding(
            "usable with care",
            "the views hardly determine the principal point, which is taken to be within some "
            f"{sigma_px:.2g} px of the picture's centre",
        )


def _views(evidence: Evidence) -> Iterator[_Finding]:
    best = evidence.best
    unused = [reason for reason in best.unused if reason is not None]
    grade = _graded(len(unused) / len(best.unused), UNUSED)
    if grade != "good":
        yield _Finding(grade, f"{len(unused)} of {len(best.unused)} views could not be used")
    if evidence.board_m is None:
        return
    views = counted(len(best.unused) - len(unused), "view")
    if best.groups < 3:
        poses = counted(best.groups, "pose")
        yield _Finding("do not use", f"{views} in {poses} determine hardly anything")
    elif best.inflation is None:
        yield _Finding(
            "usable with care",
            f"{views} in fewer than {MIN_GROUPS} clearly different poses cannot show how "
            "far the lens model is off",
        )


def _noise(evidence: Evidence) -> Iterator[_Finding]:
    goodness, best = evidence.goodness, evidence.best
    noise_px = best.sigma_px if goodness is None else goodness.noise_px
    grade = _graded(noise_px / evidence.diagonal_px, NOISE)
    if grade != "good":
        yield _Finding(grade, f"corners miss their place by {noise_px:.2g} px")
    if goodness is None:
        return
    used = int((best.weights > 0).sum())
    seen = goodness.corners_of_used_views
    grade = _graded(1 - used / max(seen, 1), REMOVED)
    if grade != "good":
        yield _Finding(grade, f"{100 * (1 - used / seen):.0f} % of the corners are outliers")
    ring = int(np.nanargmax(goodness.ring_removed))
    grade = _graded(goodness.ring_removed[ring], RING_REMOVED)
    if grade != "good" and goodness.ring_corners[ring] >= 30:
        yield _Finding(
            grade,
            f"{100 * goodness.ring_removed[ring]:.0f} % of the corners around "
            f"{goodness.rings_px[ring]:.0f} px from the centre are left out",
        )


def _structure(evidence: Evidence, goodness: Goodness) -> Iterator[_Finding]:
    systematic_px = goodness.systematic_px
    grade = _graded(systematic_px / evidence.diagonal_px, SYSTEMATIC)
    if grade != "good" and systematic_px > OF_NOISE * goodness.noise_px:
        yield _Finding(
            grade,
            f"residuals have structure ({systematic_px:.2g} px over the picture): the lens model "
            "or the board's description does not fit",
        )
    reach_px = goodness.reach_px(RING_RATIO)
    if reach_px is not None:
        ratio = float((goodness.ring_noise_px / goodness.noise_px).max())
        yield _Finding(
            "usable with care",
            f"the lens model does not reach beyond {reach_px:.0f} px from the centre (residuals "
            f"are up to {ratio:.1f} times larger there)",
        )
    best, side = evidence.best, evidence.board_m
    if best.refused_bow is not None and side is not None:
        percent = 100 * np.abs(best.refused_bow).max() / side
        yield _Finding(
            "usable with care",
            f"the views ask for a board bent by {percent:.1f} % of its size, which no board is",
        )
    if best.bow is not None and side is not None and np.abs(best.bow).max() > BENT * side:
        percent = 100 * np.abs(best.bow).max() / side
        yield _Finding(
            "usable with care",
            f"the board is bent by {percent:.1f} % of its size, and the answer depends on that",
        )


def _coverage(goodness: Goodness) -> Iterator[_Finding]:
    share = float(goodness.seen.mean())
    if share < SEEN:
        yield _Finding("usable with care", f"corners cover only {100 * share:.0f} % of the picture")


def _film_next(evidence: Evidence) -> Iterator[str]:
    best, goodness = evidence.best, evidence.goodness
    is_fisheye = _is_fisheye(evidence)
    if is_fisheye:
        yield FISHEYE_CURE
    elif evidence.two_cameras is not None:
        yield "calibrate each camera, zoom and focus with its own pictures"
    if evidence.upside_down is not None and not is_fisheye:
        yield "turn these pictures back, as the sensor saw them"
    if goodness is None:
        return
    missing = [name for name, row, column in _CORNERS if not goodness.seen[row, column]]
    if missing and goodness.seen.mean() < 0.9:
        parts = (
            "all four corners" if len(missing) == 4 else f"the {' and the '.join(missing)} corner"
        )
        yield f"move the board into {parts} of the picture"
    if evidence.board_m is None:
        return
    if best.inflation is None:
        yield "film the board in at least 15 clearly different poses"
    tilts = np.degrees(np.arccos(np.clip(np.abs(best.poses[:, 8]), 0, 1)))
    if tilts.max() < FLAT_DEG:
        yield "tilt the board by 30 to 45 degrees: up, down, left and right"
    elif evidence.is_kept_central:
        yield "tilt the board more, and film it nearer if the focus allows it"
    if best.bow is not None and np.abs(best.bow).max() > BENT * evidence.board_m:
        yield "fix the board to something flat"
    does_not_fit = goodness.reach_px(RING_RATIO) is not None or best.refused_bow is not None
    if does_not_fit and not is_fisheye:
        yield FISHEYE_CURE
