"""Experiments: which lens settings are calibrated, each with which target."""

from __future__ import annotations

import re
from dataclasses import dataclass

from influx_wrap.errors import InputError
from influx_wrap.model.hardware import Board, Camera, Lens
from influx_wrap.model.optics import thin_lens_cfl_mm


@dataclass(frozen=True)
class Cell:
    """One experiment of the LFL x FD grid; ``board`` is None where the drone flies."""

    zoom_index: int
    focus_index: int
    lfl_mm: float
    fd_m: float
    board: Board | None

    @property
    def name(self) -> str:
        """Short name, ``z3f2``: zoom index 3, focus index 2."""
        return f"z{self.zoom_index}f{self.focus_index}"

    @property
    def cfl_mm(self) -> float:
        """Thin-lens camera focal length of this setting."""
        return thin_lens_cfl_mm(self.lfl_mm, self.fd_m)

    @property
    def target_name(self) -> str:
        """The board's name, or ``drone``."""
        return self.board.name if self.board else "drone"


@dataclass(frozen=True)
class Setting:
    """What an experiment was recorded with, be it planned or not; a ``Cell`` knows it as well."""

    name: str
    target_name: str
    lfl_mm: float
    fd_m: float


def place_of(name: str) -> tuple[int, int] | None:
    """Zoom and focus index of the cell called ``name``; None if that is no cell's name."""
    match = re.fullmatch(r"z(\d+)f(\d+)", name)
    return None if match is None else (int(match[1]), int(match[2]))


@dataclass(frozen=True)
class Plan:
    """All experiments of a lens on a camera, zoom by zoom and near to far."""

    lens: Lens
    camera: Camera
    lfl_mm: tuple[float, ...]
    fd_m: tuple[float, ...]
    cells: tuple[Cell, ...]

    def cell(self, name: str) -> Cell:
        """The cell called ``name``."""
        for cell in self.cells:
            if cell.name == name:
                return cell
        raise InputError(
            f"{self.lens.name} has no cell {name!r}: cells run from z0f0 to "
            f"z{len(self.lfl_mm) - 1}f{len(self.fd_m) - 1}."
        )
