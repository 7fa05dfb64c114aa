"""What a calibration says, as it stands in a ``result.json``: intrinsics and how they came about.

``as_dict`` and ``from_dict`` are the two ways between these classes and the plain data of a
file; no other place knows the file's keys. ``from_dict`` takes what ``as_dict`` gave: data that
somebody has edited raise ``KeyError``, ``TypeError``, ``ValueError`` or ``InputError``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES, Intrinsics

Json = dict[str, Any]
Selected = int | Literal["batch", "initialization", "all-views"]


@dataclass(frozen=True)
class ViewReport:
    """One view: whether it was used, why not, and which of its points were left out.

    ``view`` is its number, ``name`` what people call it; None in results of earlier versions.
    """

    view: int
    used: bool
    reason: str | None
    corners_used: int
    corners_removed: tuple[int, ...]
    rms_px: float | None
    name: str | None = None

    @property
    def label(self) -> str:
        """What to call the view in a list."""
        return f"view {self.view}" if self.name is None else self.name

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ViewReport:
        """From plain data."""
        return cls(**{**data, "corners_removed": tuple(data["corners_removed"])})


@dataclass(frozen=True)
class RolloutReport:
    """One random order of the incremental stage; a Kalibr does not tell all of it."""

    intrinsics: Intrinsics | None
    views_used: int | None
    corners_removed: int | None
    restarts: int | None
    inside_fences: bool
    score: float | None

    def as_dict(self) -> Json:
        """Plain data."""
        camera = None if self.intrinsics is None else self.intrinsics.as_dict()
        return {**asdict(self), "intrinsics": camera}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RolloutReport:
        """From plain data."""
        camera = data["intrinsics"]
        found = None if camera is None else Intrinsics.from_mapping(camera)
        return cls(**{**data, "intrinsics": found})


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


@dataclass(frozen=True)
class ProjectionUncertainty:
    """Standard deviation of projected points over the image, worst direction, in pixels.

    ``worst_px`` and ``median_px`` are for directions known up to a common small
    rotation: a shift of the principal point and a turn of the camera look alike, and
    only what a turn cannot undo matters to users of the picture. The ``fixed`` values
    are for a camera whose orientation is known exactly.
    """

    worst_px: float
    median_px: float
    fixed_worst_px: float
    fixed_median_px: float

    def as_dict(self) -> Json:
        """Plain data, whose keys have no unit: the key of the whole has it."""
        return {name.removesuffix("_px"): value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProjectionUncertainty:
        """From plain data."""
        return cls(**{f"{name}_px": value for name, value in data.items()})


PICK_SIGMAS = 3.0
"""From how far apart on the paper's pick and the answer are said to differ."""


@dataclass(frozen=True)
class PickDifference:
    """How far the paper's pick is from the answer, and why.

    parameter  the one of fx, fy, cx and cy that is furthest off
    why        a clause that is the same for all experiments of its kind
    detail     the numbers of this experiment that belong to it
    """

    parameter: str
    sigmas: float
    why: str
    detail: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PickDifference:
        """From plain data."""
        if data["parameter"] not in NAMES:
            raise ValueError(f"there is no parameter {data['parameter']!r}")
        return cls(data["parameter"], float(data["sigmas"]), data["why"], data["detail"])


@dataclass(frozen=True)
class PaperPick:
    """What the paper's rule would have answered, beside an answer from all views.

    selected    number of the rollout, or "initialization" where the paper's rule takes that
    difference  from the answer; None if it is not larger than ``PICK_SIGMAS``
    """

    selected: int | Literal["initialization"]
    intrinsics: Intrinsics
    difference: PickDifference | None

    @property
    def warning(self) -> str | None:
        """The difference in words, None if there is none."""
        apart = self.difference
        if apart is None:
            return None
        value = getattr(self.intrinsics, apart.parameter)
        detail = "" if apart.detail is None else f" ({apart.detail})"
        return (
            f"the paper's pick has {apart.parameter} {value:.2f}, {apart.sigmas:.1f} sigma from "
            f"the answer: {apart.why}{detail}"
        )

    def as_dict(self) -> Json:
        """Plain data."""
        return {**asdict(self), "intrinsics": self.intrinsics.as_dict()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PaperPick:
        """From plain data."""
        camera, apart = Intrinsics.from_mapping(data["intrinsics"]), data["difference"]
        difference = None if apart is None else PickDifference.from_dict(apart)
        return cls(data["selected"], camera, difference)


Grade = Literal["good", "usable with care", "do not use"]


@dataclass(frozen=True)
class Assessment:
    """Whether a calibration is to be trusted, in words.

    reasons    why it is not simply good, each a clause with its number; none if it is
    film_next  what to film, or to mend, to make it better; may be empty
    """

    grade: Grade
    reasons: tuple[str, ...] = ()
    film_next: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Grade and reasons as one line: "usable with care because ..."."""
        because = f" because {'; '.join(self.reasons)}" if self.reasons else ""
        return f"{self.grade}{because}"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Assessment:
        """From plain data."""
        if data["grade"] not in get_args(Grade):
            raise ValueError(f"there is no grade {data['grade']!r}")
        return cls(data["grade"], tuple(data["reasons"]), tuple(data["film_next"]))


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationResult:
    """Intrinsics with their uncertainty, and how they came about.

    covariance            (8, 8) of the best fit to all views, with noise level and model error
                          from the residuals. A rollout's answer differs from that fit; the
                          squared distance is added: what a recipe gives away is part of what
                          it does not know.
    selected              number of the rollout, "all-views", "batch" or "initialization"
    paper_pick            of the recipe influx: what the paper's rule would have answered
    stages                intrinsics after each stage
    corner_sigma_px       estimated noise of a corner, per axis
    bow_m                 shape of the board if it was estimated
    assessment            whether it is to be trusted; None if nobody judged it
    engine                what an engine other than our own says of its work
    """

    image_size: tuple[int, int]
    focal_start_px: float
    intrinsics: Intrinsics
    covariance: FloatArray
    selected: Selected
    rollouts: tuple[RolloutReport, ...]
    views: tuple[ViewReport, ...]
    residuals: ResidualStatistics
    projection_uncertainty: ProjectionUncertainty
    stages: Mapping[str, Intrinsics]
    corner_sigma_px: float
    bow_m: tuple[float, ...] | None
    warnings: tuple[str, ...]
    assessment: Assessment | None = None
    paper_pick: PaperPick | None = None
    engine: Mapping[str, Any] | None = None

    @property
    def sigma(self) -> FloatArray:
        """(8,) standard deviations in the order of ``NAMES``."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def views_used(self) -> tuple[ViewReport, ...]:
        """The views that the answer is made from."""
        return tuple(view for view in self.views if view.used)

    @property
    def n_corners_removed(self) -> int:
        """Corners left out of the views used; a Kalibr says how many, not which."""
        if self.engine is not None and isinstance(self.selected, int):
            for rollout in self.rollouts[self.selected : self.selected + 1]:
                if rollout.corners_removed is not None:
                    return rollout.corners_removed
        return sum(len(view.corners_removed) for view in self.views_used)

    def as_dict(self) -> Json:
        """Plain data for ``result.json``; infinities and NaN never appear."""
        return {
            "status": "ok",
            "intrinsics": self.intrinsics.as_dict(),
            "sigma": dict(zip(NAMES, self.sigma.tolist(), strict=True)),
            "covariance": self.covariance.tolist(),
            "pixel_origin": "center",
            "image_size": list(self.image_size),
            "selected": self.selected,
            "paper_pick": None if self.paper_pick is None else self.paper_pick.as_dict(),
            "projection_uncertainty_px": self.projection_uncertainty.as_dict(),
            "corner_sigma_px": self.corner_sigma_px,
            "bow_m": None if self.bow_m is None else list(self.bow_m),
            "verdict": None if self.assessment is None else asdict(self.assessment),
            "warnings": list(self.warnings),
            "residuals": asdict(self.residuals),
            "views": {
                "total": len(self.views),
                "used": len(self.views_used),
                "corners_removed": self.n_corners_removed,
                "list": [asdict(view) for view in self.views],
            },
            "stages": {
                "focal_px": self.focal_start_px,
                **{name: value.as_dict() for name, value in self.stages.items()},
            },
            "rollouts": [rollout.as_dict() for rollout in self.rollouts],
            **({} if self.engine is None else {"engine": dict(self.engine)}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CalibrationResult:
        """From the plain data of a ``result.json``."""
        stages, bow_m = dict(data["stages"]), data["bow_m"]
        verdict, pick = data.get("verdict"), data.get("paper_pick")
        focal_px = stages.pop("focal_px")
        width, height = data["image_size"]
        covariance = np.array(data["covariance"], dtype=float)
        if covariance.shape != (len(NAMES), len(NAMES)) or not np.isfinite(covariance).all():
            raise ValueError("the covariance is not 8 by 8 numbers")
        return cls(
            image_size=(width, height),
            focal_start_px=focal_px,
            intrinsics=Intrinsics.from_mapping(data["intrinsics"]),
            covariance=covariance,
            selected=data["selected"],
            rollouts=tuple(RolloutReport.from_dict(one) for one in data["rollouts"]),
            views=tuple(ViewReport.from_dict(one) for one in data["views"]["list"]),
            residuals=ResidualStatistics(**data["residuals"]),
            projection_uncertainty=ProjectionUncertainty.from_dict(
                data["projection_uncertainty_px"]
            ),
            stages={name: Intrinsics.from_mapping(value) for name, value in stages.items()},
            corner_sigma_px=data["corner_sigma_px"],
            bow_m=None if bow_m is None else tuple(bow_m),
            warnings=tuple(data["warnings"]),
            assessment=None if verdict is None else Assessment.from_dict(verdict),
            paper_pick=None if pick is None else PaperPick.from_dict(pick),
            engine=data.get("engine"),
        )


@dataclass(frozen=True)
class Failure:
    """Why there is no result: at which stage, why, and what to try."""

    stage: str
    reason: str
    advice: str

    def as_dict(self) -> Json:
        """Plain data for ``failure.json``."""
        return {"status": "failed", **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Failure:
        """From plain data."""
        return cls(data["stage"], data["reason"], data["advice"])
