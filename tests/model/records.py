"""Small records of cells, for the tests that need any."""

from __future__ import annotations

from typing import Any

import numpy as np

from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.record import CellRecord, CellSetting, CellTruth
from influx_wrap.model.result import (
    CalibrationResult,
    Failure,
    ProjectionUncertainty,
    ResidualStatistics,
    RolloutReport,
    ViewReport,
)

TRUE = Intrinsics(1000.0, 1000.0, 500.0, 400.0)


def make_result(intrinsics: Intrinsics = TRUE, **changes: Any) -> CalibrationResult:
    """A result of two views with a standard deviation of 0.5 in everything."""
    values = {
        "image_size": (1000, 800),
        "focal_start_px": 990.0,
        "intrinsics": intrinsics,
        "covariance": 0.25 * np.eye(8),
        "selected": 7,
        "rollouts": (
            RolloutReport(intrinsics, 1, 3, 0, True, 12.5),
            RolloutReport(None, None, None, None, False, None),
        ),
        "views": (
            ViewReport(3, True, None, 40, (5, 7), 0.1),
            ViewReport(9, False, "adds too little information", 0, (), None),
        ),
        "residuals": ResidualStatistics(40, 0.1, (0.01, 0.0), (0.1, 0.1), 0.11, 0.4),
        "projection_uncertainty": ProjectionUncertainty(0.4, 0.2, 0.5, 0.3),
        "stages": {"initialisation": TRUE, "result": intrinsics},
        "corner_sigma_px": 0.1,
        "bow_m": None,
        "warnings": ("a warning",),
    }
    return CalibrationResult(**(values | changes))


def make_record(
    outcome: CalibrationResult | Failure | None = None,
    cell: CellSetting | None = None,
    truth: CellTruth | None = None,
    provenance: dict[str, Any] | None = None,
) -> CellRecord:
    """A record of the cell z0f1."""
    setting = CellSetting("z0f1", "canon17", "arri-alexa-mini", "800x600", 17.0, 2.0)
    made_from = {"seed": 0, "inputs": {}} if provenance is None else provenance
    return CellRecord(cell or setting, truth, outcome or make_result(), made_from)
