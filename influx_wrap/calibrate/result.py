"""What a calibration returns, and how it fails."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from influx_wrap.calibrate.recipe import Recipe
from influx_wrap.calibrate.uncertainty import ProjectionUncertainty
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES, Intrinsics


class CalibrationError(RuntimeError):
    """A calibration that found no answer: at which stage, why, and what to try."""

    def __init__(self, stage: str, reason: str, advice: str) -> None:
        super().__init__(f"{stage}: {reason}. {advice}")
        self.stage = stage
        self.reason = reason
        self.advice = advice

    def __reduce__(self) -> tuple[type[CalibrationError], tuple[str, str, str]]:
        return type(self), (self.stage, self.reason, self.advice)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a result file."""
        return {
            "status": "failed",
            "stage": self.stage,
            "reason": self.reason,
            "advice": self.advice,
        }


@dataclass(frozen=True)
class ViewReport:
    """One view: whether it was used, why not, and which of its points were left out."""

    view: int
    used: bool
    reason: str | None
    corners_used: int
    corners_removed: tuple[int, ...]
    rms_px: float | None


@dataclass(frozen=True)
class RolloutReport:
    """One random order of the incremental stage."""

    intrinsics: Intrinsics | None
    views_used: int
    corners_removed: int
    restarts: int
    inside_fences: bool
    score: float | None


@dataclass(frozen=True)
class ResidualStatistics:
    """Residuals (observed minus projected) of the corners used, in pixels."""

    corners: int
    rms_px: float
    mean_px: tuple[float, float]
    std_px: tuple[float, float]
    median_px: float
    max_px: float

    @classmethod
    def of(cls, residuals: FloatArray) -> ResidualStatistics:
        """From residuals (n, 2)."""
        length = np.linalg.norm(residuals, axis=1)
        mean, std = residuals.mean(axis=0), residuals.std(axis=0)
        return cls(
            corners=len(residuals),
            rms_px=float(np.sqrt((residuals**2).mean())),
            mean_px=(float(mean[0]), float(mean[1])),
            std_px=(float(std[0]), float(std[1])),
            median_px=float(np.median(length)),
            max_px=float(length.max()),
        )


@dataclass(frozen=True, eq=False)
class Calibration:
    """Intrinsics with their uncertainty, and how they came about.

    covariance            (8, 8); noise level from the residuals. For the incremental
                          recipes it is the covariance of the best fit to all views plus
                          the squared distance of the answer from that fit: what the
                          recipe gives away is part of what it does not know.
    selected              number of the rollout, "batch" or "initialization"
    stages                intrinsics after each stage
    corner_sigma_px       estimated noise of a corner, per axis
    bow_m                 shape of the board if it was estimated
    """

    recipe: Recipe
    seed: int
    image_size: tuple[int, int]
    focal_start_px: float
    intrinsics: Intrinsics
    covariance: FloatArray
    selected: int | Literal["batch", "initialization"]
    rollouts: tuple[RolloutReport, ...]
    views: tuple[ViewReport, ...]
    residuals: ResidualStatistics
    projection_uncertainty: ProjectionUncertainty
    stages: dict[str, Intrinsics]
    corner_sigma_px: float
    bow_m: tuple[float, ...] | None
    warnings: tuple[str, ...]

    @property
    def sigma(self) -> FloatArray:
        """(8,) standard deviations in the order of ``NAMES``."""
        return np.sqrt(np.diag(self.covariance))

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``result.json``; infinities and NaN never appear."""
        used = [v for v in self.views if v.used]
        return {
            "status": "ok",
            "intrinsics": self.intrinsics.as_dict(),
            "sigma": dict(zip(NAMES, self.sigma.tolist(), strict=True)),
            "covariance": self.covariance.tolist(),
            "pixel_origin": "center",
            "image_size": list(self.image_size),
            "selected": self.selected,
            "projection_uncertainty_px": {
                name.removesuffix("_px"): value
                for name, value in asdict(self.projection_uncertainty).items()
            },
            "corner_sigma_px": self.corner_sigma_px,
            "bow_m": None if self.bow_m is None else list(self.bow_m),
            "warnings": list(self.warnings),
            "residuals": asdict(self.residuals),
            "views": {
                "total": len(self.views),
                "used": len(used),
                "corners_removed": sum(len(v.corners_removed) for v in used),
                "list": [asdict(v) for v in self.views],
            },
            "stages": {
                "focal_px": self.focal_start_px,
                **{name: value.as_dict() for name, value in self.stages.items()},
            },
            "rollouts": [
                {
                    **asdict(r),
                    "intrinsics": None if r.intrinsics is None else r.intrinsics.as_dict(),
                }
                for r in self.rollouts
            ],
        }
