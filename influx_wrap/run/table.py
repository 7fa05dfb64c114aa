"""Tables from what calibrations left behind: a run's folder, or the authors' selection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from influx_wrap import __version__
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import CAMERA, Catalogue
from influx_wrap.formats.files import file_hash, read_json
from influx_wrap.formats.influx import read_selected_results
from influx_wrap.formats.lut import read_table
from influx_wrap.formats.results import Stored, read_stored
from influx_wrap.lut.consistency import odd_focal_lengths
from influx_wrap.lut.lens_model import smooth_lens
from influx_wrap.lut.lens_table import LensTable
from influx_wrap.lut.smooth.fit import FEWEST, Measured
from influx_wrap.lut.smooth.left_out import ODD, expected, fit_smooth, rough_between
from influx_wrap.model.arrays import FloatArray, IntArray
from influx_wrap.model.experiment import place_of
from influx_wrap.model.hardware import Camera
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.record import CellRecord
from influx_wrap.model.suspicion import Suspicion
from influx_wrap.model.table import Table, grid_of
from influx_wrap.model.words import counted
from influx_wrap.run.workspace import EDITED, Workspace

CONTRADICTED = "contradicted"
"""The key of a table's provenance under which it says which experiments the others contradict."""
EDITED_RESULT = (
    "its result was changed after it was written: the checksum is another. Make it anew with the "
    "same run command, or take it as it is with --keep-suspects"
)
_MOST_NAMED = 5
INSIST = "Mend it; or insist with trust: true in its recording.yaml, or with --keep-suspects"


@dataclass(frozen=True, eq=False)
class Built:
    """A table, the experiments that are not in it with the reason why, and what is to be said of
    some that are.

    contradicted  experiments, in the table or not, that nothing but the others speak against
    notes         what is to be said of the lens as a whole
    """

    table: LensTable
    left_out: dict[str, str]
    remarks: dict[str, str]
    contradicted: dict[str, Suspicion]
    notes: tuple[str, ...] = ()


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
    n_unsealed = 0
    rows, left_out, remarks, hashes, lens = [], {}, {}, {}, ""
    for name, path in Workspace(folder).records().items():
        try:
            stored = _stored(path)
            record = _record(path, stored.values)
            row = _row(name, record)
            if stored.is_whole is False and not keep_suspects:
                raise _LeftOut(EDITED_RESULT)
            if record.doubts and not (keep_suspects or record.is_trusted):
                raise _LeftOut(f"{'; '.join(record.doubts)}. {INSIST}")
        except _LeftOut as reason:
            left_out[name] = str(reason)
            continue
        said = [*record.doubts, *(one.sentence for one in record.suspicions if not one.harmful)]
        if stored.is_whole is False:
            said.append("its result was changed after it was written")
        n_unsealed += stored.is_whole is None
        if said:
            remarks[name] = "; ".join(said)
        rows.append(row)
        records[name] = record
        lens = record.cell.lens or ""
        hashes[name] = file_hash(path)
    contradicted = _contradicted(rows, camera)
    against = _against(contradicted, hashes)
    for name, doubt in contradicted.items():
        if keep_suspects or records[name].is_trusted:
            remarks[name] = "; ".join(filter(None, (remarks.get(name), doubt.sentence)))
        else:
            left_out[name] = f"{doubt.sentence}. {INSIST}"
            rows = [row for row in rows if row.name != name]
            del hashes[name]
    if rows and all(math.isinf(row.fd_m) for row in rows):
        raise NoTable(
            f"{folder}: all experiments of this run are focused at infinity, and a table says what "
            "focusing does. Film some at finite distances."
        )
    if not rows:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise NoTable(f"{folder}: no experiment of this run can be in a table. {reasons}")
    provenance: dict[str, object] = {"influx_wrap": __version__, "from": "run", "results": hashes}
    built = _build(lens, camera, rows, left_out, provenance)
    contradicted |= built.contradicted
    against |= _against(built.contradicted, hashes)
    if against:
        provenance[CONTRADICTED] = against
    for name, sentence in built.remarks.items():
        remarks[name] = "; ".join(filter(None, (remarks.get(name), sentence)))
    notes = built.notes
    if n_unsealed:
        notes += (
            f"{counted(n_unsealed, 'result')} of an earlier version, without a checksum: whether "
            "anybody has changed the numbers cannot be told.",
        )
    return replace(built, remarks=remarks, contradicted=contradicted, notes=notes)


def _against(contradicted: dict[str, Suspicion], hashes: dict[str, str]) -> dict[str, object]:
    """What a table's provenance says of experiments that the others contradict, by name."""
    return {
        name: {"result": hashes[name], "suspicion": doubt.as_dict()}
        for name, doubt in contradicted.items()
    }


def contradicted_in(workspace: Workspace) -> dict[str, Suspicion]:
    """What the table of a run says of experiments that the others contradict; nothing of those
    that have another result since."""
    found: dict[str, Suspicion] = {}
    with suppress(*EDITED):
        paths = workspace.records()
        for name, entry in read_table(workspace.table).provenance.get(CONTRADICTED, {}).items():
            if name in paths and file_hash(paths[name]) == entry["result"]:
                found[name] = Suspicion.from_dict(entry["suspicion"])
    return found


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


def _stored(path: Path) -> Stored:
    try:
        return read_stored(path)
    except InputError as error:
        raise _no_result(path, error) from None


def _record(path: Path, values: Mapping[str, Any]) -> CellRecord:
    try:
        return CellRecord.from_dict(values)
    except EDITED as error:
        raise _no_result(path, error) from None


def _no_result(path: Path, error: Exception) -> _LeftOut:
    # A file that somebody has edited; the same run command makes it anew.
    return _LeftOut(f"{path.name} is no result ({type(error).__name__}: {error})")


def _row(name: str, record: CellRecord) -> _Row:
    """An experiment of a run."""
    cell, result = record.cell, record.result
    if record.failure is not None:
        raise _LeftOut(f"{record.failure.stage}: {record.failure.reason}")
    if result is None or cell.lfl_mm is None or cell.fd_m is None:
        raise _LeftOut("its lens setting is not known")
    return _Row(
        name,
        cell.lfl_mm,
        cell.fd_m,
        cell.target == "drone",
        place_of(name),
        result.intrinsics.array,
        result.covariance,
    )


def _contradicted(rows: list[_Row], camera: Camera) -> dict[str, Suspicion]:
    """By name, experiments whose focal length the others contradict."""
    cfl_mm = np.array([1e-3 * row.values[0] * camera.pixel_um for row in rows])
    lfl_mm, fd_m = (np.array([getattr(row, key) for row in rows]) for key in ("lfl_mm", "fd_m"))
    return {
        rows[odd.index].name: Suspicion(
            "lfl_mm",
            odd.cfl_mm,
            odd.expected_mm,
            "mm",
            f"fx says {odd.cfl_mm:.1f} mm, the other experiments say {odd.expected_mm:.1f} mm at "
            f"lfl_mm {lfl_mm[odd.index]:g} and fd_m {fd_m[odd.index]:.3g}: is it another setting?",
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
) -> Built:
    best: dict[tuple[float, float], _Row] = {}
    # Of experiments at the same setting the most certain counts.
    for row in sorted(rows, key=lambda row: np.nan_to_num(row.covariance[0, 0], nan=np.inf)):
        kept = best.setdefault((row.lfl_mm, row.fd_m), row)
        if kept is not row:
            left_out[row.name] = f"{kept.name} is at the same setting, and more certain"
    names = {row.name for row in best.values()}
    rows = [row for row in rows if row.name in names]
    rows.sort(key=lambda row: math.isinf(row.fd_m))
    lfl_mm = np.array([row.lfl_mm for row in rows])
    fd_m = np.array([row.fd_m for row in rows])
    pitch = 1e3 * np.array(camera.sensor_mm) / np.array(camera.image_size)
    table = LensTable(
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
    if len(rows) < FEWEST or not np.isfinite(fd_m).any():
        return Built(table, left_out, remarks={}, contradicted={})
    try:
        table = replace(table, smooth=fit_smooth(table))
    except InputError as error:
        return Built(table, left_out, remarks={}, contradicted={}, notes=(str(error),))
    contradicted = contradictions(table)
    remarks = {name: doubt.sentence for name, doubt in contradicted.items()}
    return Built(table, left_out, remarks, contradicted, tuple(lens_notes(table)))


def lens_notes(table: Table) -> list[str]:
    """What is to be said of a lens as a whole, a sentence each."""
    return [*_singular_note(table), *_rough_note(table)]


def _singular_note(table: Table) -> list[str]:
    singular = Measured.of(table).is_singular
    if not singular.any():
        return []
    names = [table.names[row] for row in np.flatnonzero(singular)]
    shown = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    return [
        f"the covariances of {counted(len(names), 'experiment')} ({shown}) are singular: they say "
        "that some combination of intrinsics is known exactly, as do covariances from fewer "
        "repetitions than intrinsics, or of intrinsics that were not estimated. The scheme "
        "smooth takes their variances only, and for a variance of zero what is usual of boards and "
        "drones."
    ]


def _rough_note(table: Table) -> list[str]:
    rough = rough_between(smooth_lens(table))
    if rough is None:
        return []
    return [
        f"{table.lens} may not be smooth: between LFL {rough[0]:.4g} and {rough[1]:.4g} mm fx "
        "bends more sharply than these experiments can follow, by a jump or a kink of its cam, or "
        "because one of them is wrong or they are too few. Sigma may be too small there; film more "
        "settings."
    ]


def contradictions(table: Table) -> dict[str, Suspicion]:
    """By name, experiments that contradict the others; the scheme smooth goes without them, unless
    they are too many for that."""
    lens = smooth_lens(table)
    said = expected(lens)
    result = {}
    for row, name in enumerate(table.names):
        is_aside = name in lens.fit.set_aside
        if not is_aside and said.worst[row] <= ODD:
            continue
        k = int(np.argmax(np.abs(said.z[row])))
        digits = 1 if k < 4 else 5
        seen, wanted = float(table.values[row, k]), float(said.values[row, k])
        result[name] = Suspicion(
            NAMES[k],
            seen,
            wanted,
            "px" if k < 4 else "",
            f"{NAMES[k]} is {seen:.{digits}f}, the other experiments say {wanted:.{digits}f} +- "
            f"{said.sigma[row, k]:.{digits}f} (z {said.z[row, k]:+.1f}): metadata of another take, "
            "or a bad calibration? The scheme smooth "
            + ("goes without it" if is_aside else "counts it all the same"),
            harmful=False,
        )
    return result


def _grid(rows: list[_Row], lfl_mm: FloatArray, fd_m: FloatArray) -> IntArray:
    """(n, 2) places in the plan; found from the settings if one of them has none."""
    places = [row.grid for row in rows]
    if None in places or len(set(places)) < len(places):
        return grid_of(lfl_mm, fd_m)
    return np.array(places, dtype=np.int64)
