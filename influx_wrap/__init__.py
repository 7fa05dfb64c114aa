"""influx_wrap: per-frame camera intrinsics for zoom lenses with metadata.

The library in one screen; every name is loaded when it is used first:

    import influx_wrap as iw
    iw.calibrate_camera("photos").write("camera-photos")
    seen = iw.detect("clip.mov", iw.read_target("target.yaml"))
    fit = iw.calibrate(seen.keyframes(), focal_px=4300)
    table = iw.read_table("lut.json")
    answer = table.query(lfl_mm=35, fd_m=2.4)
    iw.annotate("metadata.csv", table).write("gt.json")
    run = iw.run_lens("canon17", data="recordings", out="runs/canon17")
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from influx_wrap.compute import arithmetic

if TYPE_CHECKING:
    from influx_wrap.annotate.clip import AnnotatedClip as AnnotatedClip
    from influx_wrap.annotate.files import annotate as annotate
    from influx_wrap.calibrate.calibrator import calibrate as calibrate
    from influx_wrap.calibrate.result import Calibration as Calibration
    from influx_wrap.calibrate.result import CalibrationError as CalibrationError
    from influx_wrap.errors import InputError as InputError
    from influx_wrap.formats.kalibr import read_observations as read_observations
    from influx_wrap.formats.kalibr import read_target as read_target
    from influx_wrap.lut.lens_table import LensTable as LensTable
    from influx_wrap.model.intrinsics import Intrinsics as Intrinsics
    from influx_wrap.model.observations import Observations as Observations
    from influx_wrap.observe.pictures import Detections as Detections
    from influx_wrap.observe.pictures import detect as detect
    from influx_wrap.run.camera import CameraCalibration as CameraCalibration
    from influx_wrap.run.camera import calibrate_camera as calibrate_camera
    from influx_wrap.run.pipeline import Run as Run
    from influx_wrap.run.pipeline import run_lens as run_lens
    from influx_wrap.run.table import read_lens_table as read_table

__version__ = "0.1.0"

_HOMES = {
    "AnnotatedClip": "annotate.clip",
    "Calibration": "calibrate.result",
    "CalibrationError": "calibrate.result",
    "CameraCalibration": "run.camera",
    "Detections": "observe.pictures",
    "InputError": "errors",
    "Intrinsics": "model.intrinsics",
    "LensTable": "lut.lens_table",
    "Observations": "model.observations",
    "Run": "run.pipeline",
    "annotate": "annotate.files",
    "calibrate": "calibrate.calibrator",
    "calibrate_camera": "run.camera",
    "detect": "observe.pictures",
    "read_observations": "formats.kalibr",
    "read_table": "run.table:read_lens_table",
    "read_target": "formats.kalibr",
    "run_lens": "run.pipeline",
}
"""Where each name of the library is, and what it is called there if that differs."""

__all__ = [  # noqa: RUF022 - in the order of the work
    "calibrate_camera", "detect", "calibrate", "annotate", "run_lens",
    "read_target", "read_observations", "read_table",
    "Intrinsics", "Observations", "Detections", "Calibration", "CameraCalibration", "LensTable",
    "AnnotatedClip", "Run", "InputError", "CalibrationError",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'influx_wrap' has no attribute {name!r}")
    module, _, original = _HOMES[name].partition(":")
    found = getattr(import_module(f"influx_wrap.{module}"), original or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """Keeps ``influx_wrap.calibrate`` and ``influx_wrap.annotate`` the functions: to import the
    rooms of these names would put the rooms in their place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
arithmetic.settle()
