"""A lens's table as one readable JSON file.

``experiments`` has one entry per row: ``name``, measured ``lfl_mm`` and ``fd_m``, ``target``
(``board`` or ``drone``), the place ``zoom``, ``focus`` in the planned grid, ``intrinsics`` and
their ``covariance`` (8 x 8, null if it is not known). ``pixel_um`` is the sensor's pitch in x
and in y; pixel (0, 0) is a pixel's centre. ``fd_m`` of an experiment focused at infinity is
``"inf"``. ``smooth``, which may be missing, is what was found out about the lens's smoothness:
``members``, the experiments ``set_aside``, and ``fitted_to``, by which a table whose experiments
were changed afterwards is recognised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from influx_wrap.formats.files import PIXEL_ORIGIN, Record, read_json, write_json
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.intrinsics import NAMES
from influx_wrap.model.smooth_fit import Member, SmoothFit
from influx_wrap.model.table import Table

FORMAT, VERSION = "influx_wrap table", 2
TARGETS = ("board", "drone")


def write_table(path: Path, table: Table) -> None:
    """Write a table."""
    experiments = [
        {
            "name": name,
            "lfl_mm": float(table.lfl_mm[row]),
            "fd_m": "inf" if np.isinf(table.fd_m[row]) else float(table.fd_m[row]),
            "target": TARGETS[int(table.is_drone[row])],
            "zoom": int(table.grid[row, 0]),
            "focus": int(table.grid[row, 1]),
            "intrinsics": dict(zip(NAMES, table.values[row].tolist(), strict=True)),
            "covariance": _covariance_as_json(table.covariance[row]),
        }
        for row, name in enumerate(table.names)
    ]
    write_json(
        path,
        {
            "format": FORMAT,
            "version": VERSION,
            "lens": table.lens,
            "camera": table.camera,
            "image_size": list(table.image_size),
            "pixel_um": list(table.pixel_um),
            "pixel_origin": PIXEL_ORIGIN,
            "provenance": dict(table.provenance),
            "experiments": experiments,
            **({} if table.smooth is None else {"smooth": _smooth_as_json(table.smooth)}),
        },
    )


def read_table(path: Path) -> Table:
    """Read a table."""
    record = read_json(path)
    if record.values.get("format") != FORMAT:
        raise record.fault(
            "format", f"must be {FORMAT!r}. Make a table with influx-calib lut build."
        )
    if record.integer("version", at_least=1) > VERSION:
        raise record.fault("version", f"is newer than {VERSION}, the latest known here.")
    keys = ("lens", "camera", "image_size", "pixel_um", "pixel_origin", "provenance")
    record.check_keys(("format", "version", *keys, "experiments"), optional=("smooth",))
    if record.text("pixel_origin") != PIXEL_ORIGIN:
        raise record.fault("pixel_origin", f"must be {PIXEL_ORIGIN!r}.")
    size, pitch = record.numbers("image_size"), record.numbers("pixel_um")
    for key, pair in (("image_size", size), ("pixel_um", pitch)):
        if len(pair) != 2 or min(pair) <= 0:
            raise record.fault(key, f"must be two positive numbers, got {list(pair)}.")
    rows = [
        _row(Record(f"{path}: experiments[{k}]", _mapping(record, entry, k)))
        for k, entry in enumerate(record.items("experiments"))
    ]
    rows.sort(key=lambda row: math.isinf(row["fd_m"]))
    return record.build(
        Table,
        lens=record.text("lens"),
        camera=record.text("camera"),
        image_size=(int(size[0]), int(size[1])),
        pixel_um=(pitch[0], pitch[1]),
        names=tuple(row["name"] for row in rows),
        lfl_mm=np.array([row["lfl_mm"] for row in rows]),
        fd_m=np.array([row["fd_m"] for row in rows]),
        values=np.array([row["values"] for row in rows]).reshape(-1, len(NAMES)),
        covariance=np.array([row["covariance"] for row in rows]).reshape(-1, 8, 8),
        is_drone=np.array([row["is_drone"] for row in rows], dtype=bool),
        grid=np.array([row["grid"] for row in rows], dtype=np.int64).reshape(-1, 2),
        provenance=dict(record.record("provenance").values),
        smooth=_smooth(record.record("smooth")) if "smooth" in record.values else None,
    )


def _mapping(record: Record, entry: object, index: int) -> Mapping[str, object]:
    if not isinstance(entry, Mapping):
        raise record.fault(f"experiments[{index}]", "must be an object.")
    return entry


def _row(record: Record) -> dict[str, Any]:
    keys = ("name", "lfl_mm", "fd_m", "target", "zoom", "focus", "intrinsics", "covariance")
    record.check_keys(keys)
    target = record.text("target")
    if target not in TARGETS:
        raise record.fault("target", f"must be board or drone, got {target!r}.")
    intrinsics = record.record("intrinsics")
    intrinsics.check_keys(NAMES)
    return {
        "name": record.text("name"),
        "lfl_mm": record.number("lfl_mm", above=0),
        "fd_m": math.inf if record.value("fd_m") == "inf" else record.number("fd_m", above=0),
        "is_drone": target == "drone",
        "grid": tuple(record.integer(key, at_least=0, at_most=10**6) for key in ("zoom", "focus")),
        "values": [intrinsics.number(name) for name in NAMES],
        "covariance": _covariance(record),
    }


def _smooth_as_json(fit: SmoothFit) -> dict[str, object]:
    members = [
        {
            "weight": member.weight,
            "kernel": member.kernel,
            "offset": member.offset,
            "hyper": member.hyper.tolist(),
        }
        for member in fit.members
    ]
    return {"fitted_to": fit.fitted_to, "set_aside": list(fit.set_aside), "members": members}


def _smooth(record: Record) -> SmoothFit:
    record.check_keys(("fitted_to", "set_aside", "members"))
    members = []
    for member in record.records("members"):
        member.check_keys(("weight", "kernel", "offset", "hyper"))
        hyper = member.rows("hyper", len(NAMES))
        if len(hyper) != len(NAMES):
            raise member.fault("hyper", f"must have {len(NAMES)} rows, got {len(hyper)}.")
        members.append(
            Member(
                member.number("weight", above=0),
                member.text("kernel"),
                member.number("offset", at_least=0),
                hyper,
            )
        )
    if not members:
        raise record.fault("members", "must not be empty.")
    names = record.items("set_aside")
    if not all(isinstance(name, str) for name in names):
        raise record.fault("set_aside", "must be names of experiments.")
    return SmoothFit(tuple(members), record.text("fitted_to"), tuple(map(str, names)))


def _covariance(record: Record) -> FloatArray:
    if record.value("covariance") is None:
        return np.full((8, 8), np.nan)
    rows = record.rows("covariance", len(NAMES))
    if len(rows) != len(NAMES):
        raise record.fault("covariance", f"must have 8 rows, got {len(rows)}.")
    return rows


def _covariance_as_json(covariance: FloatArray) -> list[list[float]] | None:
    if not np.isfinite(covariance).all():
        return None
    rows: list[list[float]] = covariance.tolist()
    return rows
