"""The files of a flight: where the drone was at each flash, where the flashes are, what else lit.

``flash_rtk.json`` is the InFlux release's list ``[{"x", "y", "alt", "timestamp"}]`` in metres
and the order of time. Ours adds what a reading is worth: ``latitude_deg``, ``longitude_deg``
and ``height_m`` above the ellipsoid, ``covariance_m2`` (east, north, up), ``fix``, ``id`` and
``point``, the number of the hover point. x is east, y north and alt up, in the plane that
touches the Earth at the first reading; ``timestamp`` is Unix time.

``flashes.json`` holds the flashes found in a video, in pixels counted from a pixel's centre, and
``other_lights.json`` what lit up and is not a flash of the LED: a person who misses one finds
it there with the reason why it was not taken for one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import PIXEL_ORIGIN, Record, parse_json, read_json, write_json
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.flashes import Flashes, Readings

FLASHES, FLASH_RTK, OTHER_LIGHTS = "flashes.json", "flash_rtk.json", "other_lights.json"
FORMAT = "influx_wrap flashes 1"


@dataclass(frozen=True, eq=False)
class StoredFlashes:
    """Flashes, the video they are from, why it could not be read to its end (None if it
    could), and what they were made from."""

    flashes: Flashes
    footage: Path
    truncated: str | None
    made_from: Mapping[str, str]


@dataclass(frozen=True)
class OtherLight:
    """A light seen from ``frame`` to ``last_frame``, first at ``uv`` in pixels, and what it is."""

    frame: int
    last_frame: int
    uv: tuple[float, float]
    reason: str


def write_flash_rtk(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write readings, each with the keys named above; NaN and infinity are refused."""
    write_json(path, list(rows))


def read_flash_rtk(path: Path) -> Readings:
    """Read ours, or the InFlux release's, whose readings have no covariance and no names."""
    values = parse_json(path)
    if not isinstance(values, list):
        raise InputError(f"{path} must be a list of readings, not a {type(values).__name__}.")
    if not values:
        raise InputError(f"{path} has no reading: nothing was triggered on this flight.")
    records = [_as_record(path, index, value) for index, value in enumerate(values)]
    numbers = np.array(
        [[record.number(key) for key in ("timestamp", "x", "y", "alt")] for record in records]
    )
    late = np.flatnonzero(np.diff(numbers[:, 0]) <= 0)
    if len(late):
        raise InputError(
            f"{path}: reading {late[0] + 1} is not later than reading {late[0]}; readings must be "
            "in the order of time, each once."
        )
    ids = tuple(str(record.values.get("id", index)) for index, record in enumerate(records))
    if len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise InputError(f"{path}: two readings have the id {twice!r}.")
    covariances = np.stack([_covariance(record) for record in records])
    known = np.isfinite(covariances).all(axis=(1, 2)).any()
    return Readings(numbers[:, 0], numbers[:, 1:], covariances if known else None, ids)


def _as_record(path: Path, index: int, value: object) -> Record:
    where = f"{path}, reading {index}"
    if not isinstance(value, dict):
        raise InputError(f"{where} must have x, y, alt and timestamp.")
    return Record(where, value)


def _covariance(record: Record) -> FloatArray:
    """(3, 3), NaN if it is not known."""
    if record.values.get("covariance_m2") is None:
        return np.full((3, 3), np.nan)
    matrix = record.rows("covariance_m2", 3)
    if matrix.shape != (3, 3) or not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-12):
        raise record.fault("covariance_m2", "must be a symmetric 3 x 3 matrix.")
    if np.linalg.eigvalsh(matrix)[0] < -1e-9 * abs(matrix).max():
        raise record.fault("covariance_m2", "is no covariance: it has a negative variance.")
    return matrix


def write_flashes(path: Path, stored: StoredFlashes) -> None:
    """Write the flashes of a video; its place is kept relative to the file's folder."""
    flashes = stored.flashes
    columns = (flashes.frames, flashes.last_frames, flashes.uv, flashes.radii_px, flashes.rule)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    write_json(
        path,
        {
            "format": FORMAT,
            "footage": os.path.relpath(stored.footage.resolve(), path.resolve().parent),
            "image_size": list(flashes.image_size),
            "fps": flashes.fps,
            "n_frames": flashes.n_frames,
            "truncated": stored.truncated,
            "made_from": dict(stored.made_from),
            "pixel_origin": PIXEL_ORIGIN,
            "flashes": [
                {"frame": frame, "last_frame": last, "uv": uv, "radii_px": radii, "rule": rule}
                for frame, last, uv, radii, rule in rows
            ],
        },
    )


def read_flashes(path: Path) -> StoredFlashes:
    """Read what ``write_flashes`` wrote."""
    record = read_json(path)
    if record.value("format") != FORMAT:
        raise record.fault("format", f"must be {FORMAT!r}, got {record.value('format')!r}.")
    rows = record.records("flashes")
    flashes = record.build(
        Flashes,
        frames=np.array([row.integer("frame", at_least=0) for row in rows], dtype=np.int64),
        last_frames=np.array([row.integer("last_frame", at_least=0) for row in rows], np.int64),
        uv=np.array([row.numbers("uv", 2) for row in rows]).reshape(-1, 2),
        radii_px=np.array([row.numbers("radii_px", 2) for row in rows]).reshape(-1, 2),
        rule=np.array([row.integer("rule", at_least=0) for row in rows], dtype=np.int64),
        fps=record.number("fps", above=0),
        n_frames=record.integer("n_frames", at_least=1),
        image_size=record.image_size("image_size"),
    )
    truncated = record.value("truncated")
    return StoredFlashes(
        flashes,
        Path(os.path.normpath(path.resolve().parent / record.text("footage"))),
        None if truncated is None else record.text("truncated"),
        {key: str(value) for key, value in record.record("made_from").values.items()},
    )


def write_other_lights(path: Path, lights: Sequence[OtherLight]) -> None:
    """Write lights in the order of time."""
    rows = [asdict(light) for light in lights]
    write_json(path, {"pixel_origin": PIXEL_ORIGIN, "lights": rows})


def read_other_lights(path: Path) -> list[OtherLight]:
    """Read what ``write_other_lights`` wrote."""
    lights = []
    for row in read_json(path).records("lights"):
        u, v = row.numbers("uv", 2)
        frame = row.integer("frame", at_least=0)
        last_frame = row.integer("last_frame", at_least=frame)
        lights.append(OtherLight(frame, last_frame, (u, v), row.text("reason")))
    return lights
