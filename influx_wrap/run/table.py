"""Tables from what calibrations left behind: a run's folder, or the authors' selection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap import __version__
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import CAMERA, Catalogue
from influx_wrap.formats.files import file_hash, read_json
from influx_wrap.formats.influx import read_selected_results
from influx_wrap.formats.lut import read_table
from influx_wrap.lut.consistency import odd_focal_lengths
from influx_wrap.lut.lens_table import LensTable
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.experiment import place_of
from influx_wrap.model.hardware import Camera
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.record import CellRecord
from influx_wrap.model.table import Table, grid_of
from influx_wrap.run.workspace import EDITED, Workspace

INSIST = "Mend it; or insist with trust: true in its recording.yaml, or with --keep-suspects"


@dataclass(frozen=True, eq=False)
class Built:
    """A table, the experiments that are not in it with the reason why, and what is to be said of
    some that are."""

    table: Table
    left_out: dict[str, str]
    remarks: dict[str, str]


@dataclass(frozen=True, eq=False)
class _Row:
    name: str
    lfl_mm: float
    fd_m: float
    is_drone: bool
    grid: tuple[int, int] | None
    values: FloatArray
    covariance: FloatArray


def read_lens_table(path: str | Path) -> LensTable:
    """A lens's lookup table from its file, ready to be asked.

    Example:
        table = iw.read_table("lut.json")
        print(table.query(lfl_mm=35, fd_m=[1.0, 2.4, float("inf")]).intrinsics[:, 0])
    """
    return LensTable.of(read_table(Path(path)))


def table_from_run(folder: Path, camera: Camera, *, keep_suspects: bool = False) -> Built:
    """The table of all experiments of a run that gave an answer to be trusted.

    Suspect ones, and those whose verdict is "do not use", are left out unless ``keep_suspects``,
    or a person vouches for them (``trust: true``).
    """
    records: dict[str, CellRecord] = {}
    rows, left_out, remarks, hashes, lens = [], {}, {}, {}, ""
    for name, path in Workspace(folder).records().items():
        try:
            record = _record(path)
            row = _row(name, record)
            if record.doubts and not (keep_suspects or record.is_trusted):
                raise _LeftOut(f"{'; '.join(record.doubts)}. {INSIST}")
        except _LeftOut as reason:
            left_out[name] = str(reason)
            continue
        said = [*record.doubts, *(one.sentence for one in record.suspicions if not one.harmful)]
        if said:
            remarks[name] = "; ".join(said)
        rows.append(row)
        records[name] = record
        lens = record.cell.lens or ""
        hashes[name] = file_hash(path)
    for name, doubt in _contradicted(rows, camera).items():
        if keep_suspects or records[name].is_trusted:
            remarks[name] = "; ".join(filter(None, (remarks.get(name), doubt)))
        else:
            left_out[name] = f"{doubt}. {INSIST}"
            rows = [row for row in rows if row.name != name]
            del hashes[name]
    if not rows:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise NoTable(f"{folder}: no experiment of this run can be in a table. {reasons}")
    provenance: dict[str, object] = {"influx_wrap": __version__, "from": "run", "results": hashes}
    return _build(lens, camera, rows, left_out, provenance, remarks)


def table_from(
    source: Path,
    known: Catalogue,
    *,
    lens: str | None = None,
    camera: str | None = None,
    keep_suspects: bool = False,
) -> Built:
    """A table from a run's folder or a selected-results file.

    lens    of a selected-results file, whose name it is unless given; a run knows its own
    camera  its name in the catalogue, unless it is the run's
    keep_suspects  also experiments of a run that are not to be trusted
    """
    if source.is_dir():
        summary = source / "summary.json"
        if camera is None and summary.exists():
            camera = read_json(summary).text("camera")
        return table_from_run(source, known.camera(camera or CAMERA), keep_suspects=keep_suspects)
    return table_from_selection(source, lens or source.stem, known.camera(camera or CAMERA))


class NoTable(InputError):
    """There is no experiment that a table could be made from."""


class _LeftOut(Exception):
    """Why an experiment cannot be part of a table."""


def _record(path: Path) -> CellRecord:
    try:
        return CellRecord.from_dict(read_json(path).values)
    except EDITED as error:
        # A file that somebody has edited; the same run command makes it anew.
        raise _LeftOut(f"{path.name} is no result ({type(error).__name__}: {error})") from None


def _row(name: str, record: CellRecord) -> _Row:
    """An experiment of a run."""
    cell, result = record.cell, record.result
    if record.failure is not None:
        raise _LeftOut(f"{record.failure.stage}: {record.failure.reason}")
    if result is None or cell.lfl_mm is None or cell.fd_m is None:
        raise _LeftOut("its lens setting is not known")
    if math.isinf(cell.fd_m):
        raise _LeftOut("it is focused at infinity, where tables go on by themselves")
    return _Row(
        name,
        cell.lfl_mm,
        cell.fd_m,
        cell.target == "drone",
        place_of(name),
        result.intrinsics.array,
        result.covariance,
    )


def _contradicted(rows: list[_Row], camera: Camera) -> dict[str, str]:
    """By name, experiments whose focal length the others contradict, and in which words."""
    cfl_mm = np.array([1e-3 * row.values[0] * camera.pixel_um for row in rows])
    lfl_mm, fd_m = (np.array([getattr(row, key) for row in rows]) for key in ("lfl_mm", "fd_m"))
    return {
        rows[odd.index].name: (
            f"fx says {odd.cfl_mm:.1f} mm, the other experiments say {odd.expected_mm:.1f} mm at "
            f"lfl_mm {lfl_mm[odd.index]:g} and fd_m {fd_m[odd.index]:.3g}: is it another setting?"
        )
        for odd in odd_focal_lengths(lfl_mm, fd_m, cfl_mm)
    }


def table_from_selection(path: Path, lens: str, camera: Camera) -> Built:
    """The table of a selected-results file."""
    usable, unusable = read_selected_results(path)
    if not usable:
        raise InputError(f"{path}: none of its experiments has a result.")
    unknown = np.full((len(NAMES), len(NAMES)), np.nan)
    rows = [
        _Row(
            f"z{result.zoom_index}f{result.focus_index}",
            result.lfl_mm,
            result.fd_m,
            result.is_drone,
            (result.zoom_index, result.focus_index),
            np.array(result.intrinsics),
            unknown,
        )
        for result in usable
    ]
    provenance: dict[str, object] = {
        "influx_wrap": __version__,
        "from": "selection",
        "file": file_hash(path),
    }
    return _build(lens, camera, rows, dict.fromkeys(unusable, "it has no result"), provenance)


def _build(
    lens: str,
    camera: Camera,
    rows: list[_Row],
    left_out: dict[str, str],
    provenance: dict[str, object],
    remarks: dict[str, str] | None = None,
) -> Built:
    best: dict[tuple[float, float], _Row] = {}
    # Of experiments at the same setting the most certain counts.
    for row in sorted(rows, key=lambda row: np.nan_to_num(row.covariance[0, 0], nan=np.inf)):
        kept = best.setdefault((row.lfl_mm, row.fd_m), row)
        if kept is not row:
            left_out[row.name] = f"{kept.name} is at the same setting, and more certain"
    names = {row.name for row in best.values()}
    rows = [row for row in rows if row.name in names]
    lfl_mm = np.array([row.lfl_mm for row in rows])
    fd_m = np.array([row.fd_m for row in rows])
    pitch = 1e3 * np.array(camera.sensor_mm) / np.array(camera.image_size)
    table = Table(
        lens=lens,
        camera=camera.name,
        image_size=camera.image_size,
        pixel_um=(float(pitch[0]), float(pitch[1])),
        names=tuple(row.name for row in rows),
        lfl_mm=lfl_mm,
        fd_m=fd_m,
        values=np.array([row.values for row in rows]),
        covariance=np.array([row.covariance for row in rows]),
        is_drone=np.array([row.is_drone for row in rows]),
        grid=_grid(rows, lfl_mm, fd_m),
        provenance=provenance,
    )
    return Built(table, left_out, remarks or {})


def _grid(rows: list[_Row], lfl_mm: FloatArray, fd_m: FloatArray) -> IntArray:
    """(n, 2) places in the plan; found from the settings if one of them has none."""
    places = [row.grid for row in rows]
    if None in places or len(set(places)) < len(places):
        return grid_of(lfl_mm, fd_m)
    return np.array(places, dtype=np.int64)
