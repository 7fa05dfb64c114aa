"""The InFlux release's lens settings: which experiments a lens was given.

``{"zooms": [mm], "focus_distances": [mm], "exp_details":
{"zoom_<i>_focus_distance_<j>": {"zoom", "focus_distance", "board_size"}}}``, where
``board_size`` is the board's long side in metres or ``"drone"``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import Record, read_json, write_json
from influx_wrap.formats.pixel_origin import CORNER_PX
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.intrinsics import NAMES


@dataclass(frozen=True)
class LensSetting:
    """One experiment; ``board_long_side_m`` is None where the drone flies."""

    zoom_index: int
    focus_index: int
    lfl_mm: float
    fd_m: float
    board_long_side_m: float | None


@dataclass(frozen=True)
class LensSettings:
    """A lens settings file: the grid, and the experiments in the file's order."""

    lfl_mm: tuple[float, ...]
    fd_m: tuple[float, ...]
    experiments: tuple[LensSetting, ...]


def lens_settings(plan: Plan) -> dict[str, object]:
    """The plan as a lens settings file holds it."""
    if math.inf in plan.fd_m:
        raise InputError("a lens settings file cannot hold an infinite focus distance.")
    return {
        "zooms": list(plan.lfl_mm),
        "focus_distances": [_mm(fd) for fd in plan.fd_m],
        "exp_details": {
            f"zoom_{cell.zoom_index}_focus_distance_{cell.focus_index}": {
                "zoom": cell.lfl_mm,
                "focus_distance": _mm(cell.fd_m),
                "board_size": _board_size(cell),
            }
            for cell in plan.cells
        },
    }


def write_lens_settings(path: Path, plan: Plan) -> None:
    """Write the plan as a lens settings JSON file."""
    write_json(path, lens_settings(plan))


def read_lens_settings(path: Path) -> LensSettings:
    """Read a lens settings JSON file."""
    record = read_json(path)
    record.check_keys(("zooms", "focus_distances", "exp_details"))
    lfls = record.numbers("zooms")
    fds = tuple(fd / 1e3 for fd in record.numbers("focus_distances"))
    details = record.record("exp_details")
    experiments = tuple(_read_setting(details, key, len(lfls), len(fds)) for key in details.values)
    return LensSettings(lfls, fds, experiments)


def _read_setting(details: Record, key: str, n_zooms: int, n_focuses: int) -> LensSetting:
    match = re.fullmatch(r"zoom_(\d{1,9})_focus_distance_(\d{1,9})", key)
    if match is None:
        raise details.fault(key, "must look like zoom_<i>_focus_distance_<j>.")
    zoom_index, focus_index = (int(index) for index in match.groups())
    if zoom_index >= n_zooms or focus_index >= n_focuses:
        raise details.fault(key, f"is not in the grid of {n_zooms} x {n_focuses} settings.")
    record = details.record(key)
    is_drone = record.value("board_size") == "drone"
    return LensSetting(
        zoom_index,
        focus_index,
        lfl_mm=record.number("zoom", above=0),
        fd_m=record.number("focus_distance", above=0) / 1e3,
        board_long_side_m=None if is_drone else record.number("board_size", above=0),
    )


def _mm(metres: float) -> float:
    # 0.85344 m is 853.4399999999999 mm in floating point; files carry 853.44.
    return round(1e3 * metres, 9)


def _board_size(cell: Cell) -> float | str:
    if cell.board is None:
        return "drone"
    return max(cell.board.width_mm, cell.board.height_mm) / 1e3


@dataclass(frozen=True)
class SelectedResult:
    """One experiment of a selected-results file; pixel (0, 0) is a pixel's centre."""

    zoom_index: int
    focus_index: int
    lfl_mm: float
    fd_m: float
    is_drone: bool
    intrinsics: tuple[float, ...]


def read_selected_results(path: Path) -> tuple[tuple[SelectedResult, ...], tuple[str, ...]]:
    """The usable experiments of a selected-results file, and the names of the others.

    Those whose ``selected_trial`` is ``invalid``, or that lack a number (-1), are not usable.
    The file counts pixels from a pixel's corner.
    """
    record = read_json(path)
    details = record.record("exp_details")
    usable, unusable = [], []
    for key in details.values:
        match = re.fullmatch(r"zoom_(\d{1,9})_focus_distance_(\d{1,9})", key)
        if match is None:
            raise details.fault(key, "must look like zoom_<i>_focus_distance_<j>.")
        entry = details.record(key)
        numbers = ("zoom", "focus_distance", *NAMES)
        if entry.value("selected_trial") == "invalid" or any(
            entry.value(name) in (-1, None) for name in numbers[:6]
        ):
            unusable.append(key)
            continue
        fx, fy, cx, cy, *distortion = (entry.number(name) for name in NAMES)
        zoom_index, focus_index = (int(index) for index in match.groups())
        usable.append(
            SelectedResult(
                zoom_index,
                focus_index,
                lfl_mm=entry.number("zoom", above=0),
                fd_m=entry.number("focus_distance", above=0) / 1e3,
                is_drone=entry.value("board_size") == "drone",
                intrinsics=(fx, fy, cx - CORNER_PX, cy - CORNER_PX, *distortion),
            )
        )
    return tuple(usable), tuple(unusable)
