"""Kalibr's files: target descriptions and corner observations.

``target.yaml`` describes the target. ``coords_2d.csv`` (``observation_id,x,y``) and
``successes.csv`` (``observation_id,0|1``) have no header and one block of rows per
view, one row per target point in the target's order. Pixel (0, 0) is the centre of
the top-left pixel, as inside influx_wrap. Point targets may carry keys of ours:
``pointSigma``, the standard deviation of each coordinate, or ``pointCovariance``, six numbers
for each point (xx, xy, xz, yy, yz, zz); and ``unitMeters``, the length of the points' unit in
metres. An AprilGrid may say ``tagBorder: 1``. The keys of ``charuco`` are ours, too, as Kalibr
has no such target.
"""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from influx_wrap.errors import InputError
from influx_wrap.formats.charuco import charuco_board
from influx_wrap.formats.files import (
    Record,
    dump_yaml,
    read_text,
    read_yaml,
    reading,
    write_text,
)
from influx_wrap.formats.view_names import read_view_names, write_view_names
from influx_wrap.model.arrays import BoolArray, FloatArray, IntArray
from influx_wrap.model.observations import Observations
from influx_wrap.model.tag36h11 import BORDER_CELLS
from influx_wrap.model.target import (
    AprilGrid,
    Charuco,
    Checkerboard,
    CircleGrid,
    PointCloud,
    Target,
)

log = logging.getLogger(__name__)

TOPIC = "/cam0/image_raw"
"""The first camera's, in a bag."""
TARGET, COORDS, SUCCESSES = "target.yaml", "coords_2d.csv", "successes.csv"
_COORDS_COLUMNS = np.dtype([("observation_id", "i8"), ("x", "f8"), ("y", "f8")])
_SUCCESSES_COLUMNS = np.dtype([("observation_id", "i8"), ("success", "i8")])

_UPPER = np.triu_indices(3)

MAX_SIDE_M, MAX_TAG_SPACING, MAX_COUNT = 2.0, 1.5, 1000
"""Of a tag or square, of the gap between tags as a share of one, and of rows and columns."""


def read_target(path: str | Path) -> Target:
    """The target described in a Kalibr ``target.yaml``.

    Example:
        board = iw.read_target("target.yaml")
    """
    record = read_yaml(Path(path))
    kind = record.text("target_type")
    if kind not in _READERS:
        known = ", ".join(_READERS)
        raise record.fault("target_type", f"must be one of {known}, got {kind!r}.")
    return _READERS[kind](record)


def write_target(path: Path, target: Target) -> None:
    """Write a Kalibr ``target.yaml``."""
    values: dict[str, object]
    match target:
        case AprilGrid():
            values = {
                "target_type": "aprilgrid",
                "tagCols": target.tag_cols,
                "tagRows": target.tag_rows,
                "tagSize": float(target.tag_size_m),
                "tagSpacing": float(target.tag_spacing),
            }
            if target.border_cells != BORDER_CELLS:
                values["tagBorder"] = target.border_cells
        case Checkerboard():
            values = {
                "target_type": "checkerboard",
                "targetCols": target.cols,
                "targetRows": target.rows,
                "colSpacingMeters": float(target.col_spacing_m),
                "rowSpacingMeters": float(target.row_spacing_m),
            }
        case Charuco():
            values = {
                "target_type": "charuco",
                "squareCols": target.cols,
                "squareRows": target.rows,
                "squareSize": float(target.square_size_m),
                "markerSize": float(target.marker_size_m),
                "dictionary": target.dictionary,
            }
            if target.legacy:
                values["legacyPattern"] = True
        case CircleGrid():
            values = {
                "target_type": "circlegrid",
                "targetCols": target.cols,
                "targetRows": target.rows,
                "spacingMeters": float(target.spacing_m),
                "asymmetricGrid": target.asymmetric,
            }
        case PointCloud():
            values = {"target_type": "pointcloud", "points": target.points.tolist()}
            if target.point_sigma is not None:
                values["pointSigma"] = float(target.point_sigma)
            if target.point_covariance is not None:
                upper = target.point_covariance[:, *_UPPER]
                values["pointCovariance"] = upper.tolist()
            if target.unit_m != 1:
                values["unitMeters"] = float(target.unit_m)
    write_text(path, dump_yaml(values))


def _read_aprilgrid(record: Record) -> Target:
    required = ("target_type", "tagCols", "tagRows", "tagSize", "tagSpacing")
    record.check_keys(required, ("tagBorder",))
    size_m, spacing = _length_m(record, "tagSize"), record.number("tagSpacing", at_least=0)
    if spacing > MAX_TAG_SPACING:
        raise record.fault(
            "tagSpacing",
            f"{spacing:g} would be a gap {spacing:g} times as wide as a tag. It is the gap divided "
            f"by tagSize, such as 0.3: a gap of {spacing:g} mm gives {spacing / 1e3 / size_m:.3g}.",
        )
    has_border = "tagBorder" in record.values
    return record.build(
        AprilGrid,
        tag_cols=record.integer("tagCols", at_least=1, at_most=MAX_COUNT),
        tag_rows=record.integer("tagRows", at_least=1, at_most=MAX_COUNT),
        tag_size_m=size_m,
        tag_spacing=spacing,
        border_cells=record.integer("tagBorder", at_least=1) if has_border else BORDER_CELLS,
    )


def _length_m(record: Record, key: str) -> float:
    """The side of a tag or square, which nobody prints metres long."""
    value = record.number(key, above=0)
    if value > MAX_SIDE_M:
        raise record.fault(
            key,
            f"{value:g} is in metres, and no board has that: for {value:g} mm write "
            f"{value / 1e3:g}.",
        )
    return value


def _read_checkerboard(record: Record) -> Target:
    spacings = ("colSpacingMeters", "rowSpacingMeters")
    record.check_keys(("target_type", "targetCols", "targetRows", *spacings))
    return record.build(
        Checkerboard,
        cols=record.integer("targetCols", at_least=2, at_most=MAX_COUNT),
        rows=record.integer("targetRows", at_least=2, at_most=MAX_COUNT),
        col_spacing_m=_length_m(record, "colSpacingMeters"),
        row_spacing_m=_length_m(record, "rowSpacingMeters"),
    )


def _read_charuco(record: Record) -> Target:
    sizes = ("squareCols", "squareRows", "squareSize", "markerSize", "dictionary")
    record.check_keys(("target_type", *sizes), ("legacyPattern",))
    return record.build(
        charuco_board,
        cols=record.integer("squareCols", at_least=2, at_most=MAX_COUNT),
        rows=record.integer("squareRows", at_least=2, at_most=MAX_COUNT),
        square_size_m=_length_m(record, "squareSize"),
        marker_size_m=_length_m(record, "markerSize"),
        dictionary=record.text("dictionary"),
        legacy=record.flag("legacyPattern"),
    )


def _read_circlegrid(record: Record) -> Target:
    required = ("target_type", "targetCols", "targetRows", "spacingMeters")
    record.check_keys(required, ("asymmetricGrid",))
    return record.build(
        CircleGrid,
        cols=record.integer("targetCols", at_least=2, at_most=MAX_COUNT),
        rows=record.integer("targetRows", at_least=2, at_most=MAX_COUNT),
        spacing_m=_length_m(record, "spacingMeters"),
        asymmetric=record.flag("asymmetricGrid"),
    )


def _read_pointcloud(record: Record) -> Target:
    optional = ("pointSigma", "pointCovariance", "unitMeters")
    record.check_keys(("target_type", "points"), optional)
    has_sigma, has_covariance, has_unit = (key in record.values for key in optional)
    return record.build(
        PointCloud,
        points=record.rows("points", 3),
        point_sigma=record.number("pointSigma", at_least=0) if has_sigma else None,
        unit_m=record.number("unitMeters", above=0) if has_unit else 1.0,
        point_covariance=_symmetric(record.rows("pointCovariance", 6)) if has_covariance else None,
    )


def _symmetric(upper: FloatArray) -> FloatArray:
    """(T, 3, 3) from the upper triangles (T, 6)."""
    matrices = np.empty((len(upper), 3, 3))
    rows, cols = _UPPER
    matrices[:, rows, cols] = matrices[:, cols, rows] = upper
    return matrices


_READERS = {
    "aprilgrid": _read_aprilgrid,
    "checkerboard": _read_checkerboard,
    "charuco": _read_charuco,
    "circlegrid": _read_circlegrid,
    "pointcloud": _read_pointcloud,
}


def read_observations(
    coords_path: str | Path,
    successes_path: str | Path,
    target: Target,
    image_size: tuple[int, int],
) -> Observations:
    """Observations of ``target`` in images of ``image_size`` (width, height).

    Views without any point (frames that do not show the target) are left out; the
    ids of the others are ``view_ids``. If there is a ``view_names.json`` beside the
    coordinates, they are called by its names.

    Example:
        seen = iw.read_observations("coords_2d.csv", "successes.csv", board, (3424, 2202))
    """
    coords_path, successes_path = Path(coords_path), Path(successes_path)
    coords = _load_table(coords_path, _COORDS_COLUMNS)
    successes = _load_table(successes_path, _SUCCESSES_COLUMNS)
    _check_rows_agree(coords_path, coords, successes_path, successes)
    ids = _block_ids(coords_path, coords["observation_id"], len(target.points))

    valid = successes["success"] == 1
    uv = np.stack([coords["x"], coords["y"]], axis=-1)
    finite = np.isfinite(uv).all(axis=1)
    row = _first(valid & ~finite)
    if row is not None:
        raise _fault(coords_path, row, "the coordinates are not finite, yet the point was found.")
    uv[~finite] = 0

    uv, valid = uv.reshape(len(ids), -1, 2), valid.reshape(len(ids), -1)
    seen = valid.any(axis=1)
    log.info("%s: %d of %d views show no point", coords_path, len(seen) - seen.sum(), len(seen))
    has_names = coords_path.name == COORDS
    names = read_view_names(coords_path.parent, ids[seen]) if has_names else ()
    try:
        return Observations(target, uv[seen], valid[seen], image_size, ids[seen], names)
    except InputError as error:
        raise InputError(f"{coords_path}: {error}") from None


def write_observations(coords_path: Path, successes_path: Path, observations: Observations) -> None:
    """Write the two CSV files; points that were not found get the coordinates 0,0.

    Names of the views, if they have any, go to a file of our own beside the coordinates.
    """
    if coords_path.name == COORDS:
        names = zip(observations.view_ids.tolist(), observations.view_names, strict=True)
        write_view_names(coords_path.parent, dict(names) if observations.has_own_names else {})
    write_text(coords_path, coords_rows(observations.view_ids, observations.uv, observations.valid))
    write_text(successes_path, successes_rows(observations.view_ids, observations.valid))


def coords_rows(view_ids: IntArray, uv: FloatArray, valid: BoolArray) -> str:
    """Rows of ``coords_2d.csv`` for views (V,) with pixels (V, T, 2), where ``valid`` (V, T)."""
    ids = np.repeat(view_ids, uv.shape[1]).tolist()
    pixels = np.where(valid[..., None], uv, 0.0).reshape(-1, 2).tolist()
    return "".join([f"{i},{u:.9f},{v:.9f}\n" for i, (u, v) in zip(ids, pixels, strict=True)])


def successes_rows(view_ids: IntArray, valid: BoolArray) -> str:
    """Rows of ``successes.csv`` for views (V,) with ``valid`` (V, T)."""
    ids = np.repeat(view_ids, valid.shape[1]).tolist()
    found = valid.ravel().tolist()
    return "".join([f"{i},{int(ok)}\n" for i, ok in zip(ids, found, strict=True)])


def _check_rows_agree(
    coords_path: Path, coords: NDArray[Any], successes_path: Path, successes: NDArray[Any]
) -> None:
    if len(coords) != len(successes):
        raise InputError(
            f"{coords_path} has {len(coords)} rows, but {successes_path} has {len(successes)}: "
            "both need one row per point and view."
        )
    row = _first(coords["observation_id"] != successes["observation_id"])
    if row is not None:
        here, there = coords["observation_id"][row], successes["observation_id"][row]
        raise _fault(
            coords_path, row, f"observation id {here}, but {successes_path} has {there} there."
        )
    row = _first((successes["success"] != 0) & (successes["success"] != 1))
    if row is not None:
        value = successes["success"][row]
        raise _fault(successes_path, row, f"a success must be 0 or 1, got {value}.")


def _block_ids(path: Path, row_ids: IntArray, n_points: int) -> IntArray:
    """(V,) the id of each block of ``n_points`` rows."""
    if len(row_ids) % n_points:
        raise InputError(
            f"{path}: size mismatch with the target: {len(row_ids)} rows are no multiple of its "
            f"{n_points} points. Is this the right target?"
        )
    ids = row_ids[::n_points]
    row = _first(row_ids != np.repeat(ids, n_points))
    if row is not None:
        raise _fault(
            path,
            row,
            f"observation id {row_ids[row]} inside the block of {ids[row // n_points]}: each view "
            f"needs {n_points} rows, one per point of the target. Is this the right target?",
        )
    _, first_block, block = np.unique(ids, return_index=True, return_inverse=True)
    repeated = _first(first_block[block] != np.arange(len(ids)))
    if repeated is not None:
        raise _fault(
            path, repeated * n_points, f"observation id {ids[repeated]} has had a block already."
        )
    return ids


def _load_table(path: Path, columns: np.dtype[Any]) -> NDArray[Any]:
    """The rows of a CSV file without header, as a structured array."""
    with reading(path), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        # A number such as 1.0 in a whole-number column only warns in older numpy.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            table = np.loadtxt(
                path, dtype=columns, delimiter=",", comments=None, encoding="utf-8-sig", ndmin=1
            )
        except UnicodeDecodeError:
            raise
        except (ValueError, DeprecationWarning) as error:
            raise _explain(path, columns, str(error)) from None
    if len(table) == 0:
        raise InputError(f"{path} is empty: it needs rows {','.join(columns.names or ())}.")
    return table


def _explain(path: Path, columns: np.dtype[Any], problem: str) -> InputError:
    """Which line made the fast parser give up."""
    names = columns.names or ()
    for number, line in _lines(path):
        values = line.split(",")
        if len(values) != len(names):
            return InputError(
                f"{path}, line {number}: {len(values)} values instead of {len(names)} "
                f"({','.join(names)})."
            )
        for name, value in zip(names, values, strict=True):
            whole = columns[name].kind == "i"
            try:
                int(value) if whole else float(value)
            except ValueError:
                kind = "whole number" if whole else "number"
                return InputError(
                    f"{path}, line {number}: {name} {value.strip()!r} is not a {kind}."
                )
    return InputError(f"{path}: {problem}")


def _fault(path: Path, row: int, problem: str) -> InputError:
    line = next(number for i, (number, _) in enumerate(_lines(path)) if i == row)
    return InputError(f"{path}, line {line}: {problem}")


def _lines(path: Path) -> list[tuple[int, str]]:
    """(line number, text) of the lines that are not empty, as the fast parser counts rows."""
    lines = enumerate(read_text(path).split("\n"), start=1)
    return [(number, line) for number, line in lines if line]


def _first(flags: BoolArray) -> int | None:
    """Index of the first True."""
    return int(np.argmax(flags)) if flags.any() else None
