"""``view_names.json``: what the views of a ``coords_2d.csv`` beside it are called.

Kalibr's files number the views; people know photographs by their files and video frames by their
numbers: ``{"0": "left01.jpg", "1": "left02.jpg"}``, by observation id. The file is ours, and may be
missing; coordinates of another name have none, as a folder may hold those of several cameras.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_json, write_json
from influx_wrap.model.arrays import IntArray

VIEW_NAMES = "view_names.json"


def write_view_names(folder: Path, names: Mapping[int, str]) -> None:
    """Write the names by observation id; if there are none, there is no file."""
    path = folder / VIEW_NAMES
    if names:
        write_json(path, {str(view): name for view, name in names.items()})
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from None


def read_view_names(folder: Path, view_ids: IntArray) -> tuple[str, ...]:
    """Names of the views (V,), none if there is no file; one without a name is ``view 12``."""
    path = folder / VIEW_NAMES
    if not path.exists():
        return ()
    record = read_json(path)
    return tuple(
        record.text(str(view)) if str(view) in record.values else f"view {view}"
        for view in view_ids.tolist()
    )
