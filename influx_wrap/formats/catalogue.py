"""The catalogue: cameras, lenses and boards, one YAML file each.

Packaged entries come with influx_wrap; a user's folder adds to them or replaces
entries of the same name. ``kind`` says what a file describes, the other keys are
those of the class it becomes, boards with their grid's tags beside the sheet.
"""

from __future__ import annotations

import difflib
import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TypeVar

from influx_wrap.errors import InputError
from influx_wrap.formats.files import (
    Record,
    dump_yaml,
    make_folder,
    read_text,
    read_yaml,
    write_text,
)
from influx_wrap.model.hardware import Board, Camera, Lens
from influx_wrap.model.rig import DeviceName
from influx_wrap.model.target import AprilGrid

Entry = Camera | Lens | Board
T = TypeVar("T")

CAMERA = "arri-alexa-mini"
"""The camera of whoever names none."""

MAX_SIDE_PX, MAX_TAGS = 100_000, 1000
"""Of a picture, and along one side of a board: more is a slip of the keyboard."""


@dataclass(frozen=True)
class Catalogue:
    """Everything known, by name."""

    cameras: dict[str, Camera]
    lenses: dict[str, Lens]
    boards: dict[str, Board]

    def camera(self, name: str) -> Camera:
        """The camera called ``name``."""
        return _look_up("camera", self.cameras, name)

    def lens(self, name: str) -> Lens:
        """The lens called ``name``."""
        return _look_up("lens", self.lenses, name)

    def lens_name(self, name: str) -> DeviceName:
        """What metadata call the lens ``name``, which need not be in the catalogue."""
        return _device_name(self.lenses, name)

    def camera_name(self, name: str) -> DeviceName:
        """What metadata call the camera ``name``, which need not be in the catalogue."""
        return _device_name(self.cameras, name)

    def board(self, name: str) -> Board:
        """The board called ``name``."""
        return _look_up("board", self.boards, name)


@dataclass(frozen=True)
class Described:
    """An entry as its file has it; ``path`` is ``None`` for one that comes with the package."""

    kind: str
    entry: Entry
    text: str
    path: Path | None


def load_catalogue(extra: Path | None = None) -> Catalogue:
    """The packaged catalogue, and every ``*.yaml`` below the folder ``extra``."""
    entries = [described.entry for described in described_entries(extra)]
    return Catalogue(
        {e.name: e for e in entries if isinstance(e, Camera)},
        {e.name: e for e in entries if isinstance(e, Lens)},
        {e.name: e for e in entries if isinstance(e, Board)},
    )


def described_entries(extra: Path | None = None) -> list[Described]:
    """Those of ``load_catalogue``, with their files."""
    with as_file(files("influx_wrap") / "catalogue") as packaged:
        entries = {
            key: replace(described, path=None) for key, described in _load_folder(packaged).items()
        }
    if extra is not None:
        if not extra.is_dir():
            raise InputError(f"{extra} is not a folder; a catalogue is a folder of YAML files.")
        entries |= _load_folder(extra)
    return list(entries.values())


def new_path(folder: Path, kind: str, name: str) -> Path:
    """Where a new entry of a catalogue goes; nothing that is there is written over."""
    path = folder / f"{name}.yaml"
    if path.parent != folder:
        raise InputError(f"{name!r} cannot be the name of a file: leave the / out.")
    known = _load_folder(folder).get((kind, name)) if folder.is_dir() else None
    taken = known.path if known else path if path.exists() else None
    if taken is not None:
        raise InputError(f"{taken} is there already: choose another name, or edit the file.")
    return path


def write_entry(path: Path, values: Mapping[str, object]) -> None:
    """Write an entry, with its ``kind`` among its values, if it is one that can be read."""
    _as_entry(Record(str(path), values))
    make_folder(path.parent)
    write_text(path, dump_yaml(values))


def _key(entry: Entry) -> tuple[str, str]:
    return type(entry).__name__.lower(), entry.name


def _load_folder(folder: Path) -> dict[tuple[str, str], Described]:
    """Entries by (kind, name)."""
    entries: dict[tuple[str, str], Described] = {}
    for path in sorted(folder.rglob("*.yaml")):
        entry = _as_entry(read_yaml(path))
        key = _key(entry)
        if key in entries:
            raise InputError(
                f"{path}: {key[0]} {entry.name} is described in {entries[key].path} already. "
                "Rename or remove one of them."
            )
        entries[key] = Described(key[0], entry, read_text(path), path)
    return entries


def _as_entry(record: Record) -> Entry:
    kind = record.text("kind")
    if kind not in _READERS:
        raise record.fault("kind", f"must be one of {', '.join(_READERS)}, got {kind!r}.")
    return _READERS[kind](record)


def _read_camera(record: Record) -> Camera:
    required = ("kind", "name", "sensor_width_mm", "sensor_height_mm", "width_px", "height_px")
    record.check_keys(required, ("height_above_ground_m", "pp_prior_px", "metadata_model"))
    return record.build(
        Camera,
        name=record.text("name"),
        sensor_width_mm=record.number("sensor_width_mm", above=0),
        sensor_height_mm=record.number("sensor_height_mm", above=0),
        width_px=record.integer("width_px", at_least=1, at_most=MAX_SIDE_PX),
        height_px=record.integer("height_px", at_least=1, at_most=MAX_SIDE_PX),
        **_optional_number(record, "height_above_ground_m", above=0),
        **_optional_number(record, "pp_prior_px", above=0),
        **_optional_text(record, "metadata_model"),
    )


def _read_lens(record: Record) -> Lens:
    required = ("kind", "name", "lfl_min_mm", "lfl_max_mm", "fd_min_m", "fd_lower_m")
    record.check_keys(required, ("synthetic_k1_min", "synthetic_focusing", "metadata_model"))
    return record.build(
        Lens,
        name=record.text("name"),
        lfl_min_mm=record.number("lfl_min_mm", above=0),
        lfl_max_mm=record.number("lfl_max_mm", above=0),
        fd_min_m=record.number("fd_min_m", above=0),
        fd_lower_m=record.number("fd_lower_m", above=0),
        **_optional_text(record, "metadata_model"),
        **_optional_text(record, "synthetic_focusing"),
        **_optional_number(record, "synthetic_k1_min"),
    )


def _read_board(record: Record) -> Board:
    required = ("kind", "name", "width_mm", "height_mm")
    record.check_keys((*required, "tag_rows", "tag_cols", "tag_size_mm", "tag_spacing"))
    grid = AprilGrid(
        tag_cols=record.integer("tag_cols", at_least=1, at_most=MAX_TAGS),
        tag_rows=record.integer("tag_rows", at_least=1, at_most=MAX_TAGS),
        tag_size_m=record.number("tag_size_mm", above=0) / 1e3,
        tag_spacing=record.number("tag_spacing", at_least=0),
    )
    width_mm = record.number("width_mm", above=0)
    height_mm = record.number("height_mm", above=0)
    grid_width_mm, grid_height_mm, _ = 1e3 * grid.points.max(axis=0)
    if grid_width_mm > width_mm or grid_height_mm > height_mm:
        size = f"{grid_width_mm:g} x {grid_height_mm:g} mm"
        raise record.fault("tag_size_mm", f"makes a grid of {size}, larger than the sheet.")
    return Board(record.text("name"), width_mm, height_mm, grid)


_READERS: dict[str, Callable[[Record], Entry]] = {
    "camera": _read_camera,
    "lens": _read_lens,
    "board": _read_board,
}


def _optional_number(record: Record, key: str, *, above: float = -math.inf) -> dict[str, float]:
    return {key: record.number(key, above=above)} if key in record.values else {}


def _optional_text(record: Record, key: str) -> dict[str, str]:
    return {key: record.text(key)} if key in record.values else {}


def _device_name(known: Mapping[str, Camera] | Mapping[str, Lens], name: str) -> DeviceName:
    return DeviceName(name, known[name].metadata_model if name in known else None)


def _look_up(kind: str, known: Mapping[str, T], name: str) -> T:
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1)
    text = f"there is no {kind} {name!r} in the catalogue; known: {', '.join(known)}."
    if close:
        raise InputError(f"{text} Did you mean {close[0]}?", instead=(name, close[0]))
    raise InputError(
        f"{text} Describe it with influx-calib catalogue new, and name its folder with "
        "--catalogue.",
        command=f"influx-calib catalogue new {kind} {shlex.quote(name)}",
    )
