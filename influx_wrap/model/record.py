"""The record of a cell: which experiment it was, what came of it, and what it was made from.

A run keeps one for each of its cells, in ``result.json`` or ``failure.json``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.result import CalibrationResult, Failure, Json
from influx_wrap.model.suspicion import Suspicion


@dataclass(frozen=True)
class CellSetting:
    """What an experiment was made with; None where its files do not tell."""

    name: str
    lens: str | None
    camera: str | None = None
    target: str | None = None
    lfl_mm: float | None = None
    fd_m: float | None = None

    def as_dict(self) -> Json:
        """Plain data, in which infinity is a word."""
        return {**asdict(self), "fd_m": "inf" if self.fd_m == math.inf else self.fd_m}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CellSetting:
        """From plain data."""
        fd_m = data["fd_m"]
        return cls(
            name=data["name"],
            lens=data["lens"],
            camera=data["camera"],
            target=data["target"],
            lfl_mm=data["lfl_mm"],
            fd_m=None if fd_m is None else float(fd_m),
        )


@dataclass(frozen=True)
class CellTruth:
    """The answer of a simulated experiment, and by parameter the bound on any estimate of it:
    a standard deviation, None where it is not known."""

    intrinsics: Intrinsics
    bound: Mapping[str, float] | None

    def as_dict(self) -> Json:
        """Plain data."""
        return {"intrinsics": self.intrinsics.as_dict(), "bound": self.bound}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CellTruth:
        """From plain data."""
        return cls(Intrinsics.from_mapping(data["intrinsics"]), data["bound"])


@dataclass(frozen=True, eq=False)
class CellRecord:
    """One cell of a run; ``truth`` is known of simulated experiments only.

    suspicions  what was typed and the pictures contradict
    is_trusted  whether a person has said that the experiment is right nevertheless
    """

    cell: CellSetting
    truth: CellTruth | None
    outcome: CalibrationResult | Failure
    provenance: Mapping[str, Any]
    suspicions: tuple[Suspicion, ...] = ()
    is_trusted: bool = False

    @property
    def result(self) -> CalibrationResult | None:
        """The calibration, None if it failed."""
        return self.outcome if isinstance(self.outcome, CalibrationResult) else None

    @property
    def failure(self) -> Failure | None:
        """Why there is no result, None if there is one."""
        return self.outcome if isinstance(self.outcome, Failure) else None

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the answer is not for a lens's table, a clause each; none if it is."""
        harmful = tuple(one.sentence for one in self.suspicions if one.harmful)
        assessment = None if self.result is None else self.result.assessment
        if assessment is not None and assessment.grade == "do not use":
            return (*harmful, assessment.sentence)
        return harmful

    def doubted(self, suspicion: Suspicion | None) -> CellRecord:
        """The record with a suspicion that only the other cells of the lens give rise to."""
        if suspicion is None:
            return self
        return replace(self, suspicions=(*self.suspicions, suspicion))

    def as_dict(self) -> Json:
        """Plain data for ``result.json`` or ``failure.json``."""
        return {
            **self.outcome.as_dict(),
            "suspicions": [suspicion.as_dict() for suspicion in self.suspicions],
            "trusted": self.is_trusted,
            "cell": self.cell.as_dict(),
            "truth": None if self.truth is None else self.truth.as_dict(),
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CellRecord:
        """From the plain data of either file."""
        kind = CalibrationResult if data["status"] == "ok" else Failure
        truth = data["truth"]
        return cls(
            cell=CellSetting.from_dict(data["cell"]),
            truth=CellTruth.from_dict(truth) if truth else None,
            outcome=kind.from_dict(data),
            provenance=data["provenance"],
            suspicions=tuple(Suspicion.from_dict(one) for one in data.get("suspicions", ())),
            is_trusted=data.get("trusted", False) is True,
        )
