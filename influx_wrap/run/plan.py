"""The plan of a lens that the catalogue knows, and what to add to its table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from influx_wrap.compute.progress import Progress, no_progress
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import CAMERA, Catalogue, load_catalogue
from influx_wrap.formats.influx import LensSetting, read_lens_settings
from influx_wrap.formats.lut import read_table
from influx_wrap.model.experiment import Cell, Plan
from influx_wrap.model.hardware import Board
from influx_wrap.model.table import Table
from influx_wrap.plan.candidates import Reach
from influx_wrap.plan.choose import ChosenPlan, choose_accurate_plan, choose_plan
from influx_wrap.plan.design import Known
from influx_wrap.plan.grid import make_plan

if TYPE_CHECKING:
    from influx_wrap.lut.smooth.lens import SmoothLens
    from influx_wrap.plan.next_experiments import Proposal


def plan_by_name(
    lens: str, camera: str = CAMERA, catalogue: Path | None = None, file: Path | None = None
) -> Plan:
    """The plan of a lens on a camera, both by their names in the catalogue: the paper's, or that
    of a lens settings file.

    ``catalogue`` is a folder with lenses, cameras and boards of one's own, beside ours.
    """
    known = load_catalogue(catalogue)
    if file is not None:
        return _read_plan(file, lens, camera, known)
    return make_plan(known.lens(lens), known.camera(camera), known.boards.values())


def chosen_by_name(
    lens: str,
    camera: str = CAMERA,
    catalogue: Path | None = None,
    *,
    experiments: int | None = None,
    accuracy_px: float | None = None,
    boards_only: bool = False,
    progress: Progress = no_progress,
) -> ChosenPlan:
    """The plan of so many experiments, or of as few as give an accuracy."""
    known = load_catalogue(catalogue)
    rig = known.lens(lens), known.camera(camera), tuple(known.boards.values())
    if experiments is not None:
        return choose_plan(*rig, experiments, boards_only=boards_only, progress=progress)
    assert accuracy_px is not None
    return choose_accurate_plan(*rig, accuracy_px, boards_only=boards_only, progress=progress)


def next_of_table(
    path: Path, catalogue: Path | None = None, *, count: int = 3, boards_only: bool = False
) -> tuple[Known, list[Proposal]]:
    """What is known by a table, and which experiments to add to it.

    A lens that the catalogue knows has to be known as far as it can be set, another one as far as
    its table reaches.
    """
    from influx_wrap.lut.lens_model import smooth_lens

    lens = smooth_lens(read_table(path))
    return _next(lens, load_catalogue(catalogue), count=count, boards_only=boards_only)


def _next(
    lens: SmoothLens, known: Catalogue, *, count: int, boards_only: bool
) -> tuple[Known, list[Proposal]]:
    # Compiled code is loaded only where it is needed: ``plan LENS`` answers at once.
    from influx_wrap.plan.next_experiments import known_now, next_experiments

    name, camera = lens.table.lens, lens.table.camera
    reach = Reach.of(known.lens(name)) if name in known.lenses else None
    proposals = next_experiments(
        lens,
        known.boards.values(),
        camera=known.cameras.get(camera),
        reach=reach,
        count=count,
        boards_only=boards_only,
    )
    return known_now(lens, reach), proposals


def proposed(table: Table, known: Catalogue) -> list[Proposal]:
    """Experiments to add, for the page of a table; none where there is no telling."""
    from influx_wrap.lut.lens_model import smooth_lens

    try:
        return _next(smooth_lens(table), known, count=3, boards_only=False)[1]
    except InputError:
        return []


def _read_plan(path: Path, lens: str, camera: str, known: Catalogue) -> Plan:
    settings, chosen = read_lens_settings(path), known.lens(lens)
    cells = []
    for one in settings.experiments:
        in_range = chosen.lfl_min_mm <= one.lfl_mm <= chosen.lfl_max_mm
        if not (in_range and one.fd_m > chosen.fd_min_m * (1 - 1e-6)):
            raise InputError(
                f"{path}: {lens} cannot be set to {one.lfl_mm:g} mm and {one.fd_m:g} m. Is it the "
                "plan of another lens?"
            )
        board = _board(path, one, known)
        cells.append(Cell(one.zoom_index, one.focus_index, one.lfl_mm, one.fd_m, board))
    if not cells:
        raise InputError(f"{path}: the plan has no experiments.")
    return Plan(chosen, known.camera(camera), settings.lfl_mm, settings.fd_m, tuple(cells))


def _board(path: Path, one: LensSetting, known: Catalogue) -> Board | None:
    """The catalogue's board with the long side that the file tells."""
    side_m = one.board_long_side_m
    if side_m is None:
        return None
    for board in known.boards.values():
        if abs(max(board.width_mm, board.height_mm) - 1e3 * side_m) < 0.5:
            return board
    raise InputError(
        f"{path}: no board of the catalogue has a long side of {side_m:g} m. Add it with "
        "--catalogue."
    )
