"""The 3D points whose projections are compared (the paper's evaluation details).

The paper takes the first laser scan of every high-resolution scene of ETH3D, puts a camera
into it, drops the points that no frame of the benchmark has in view, and draws 100 000 of the
rest, once and for all. ``eth3d`` does so with the scans in a folder; as the paper's cameras are
not published, they stand where ``scan_camera`` puts them, or where the folder's
``cameras.json`` says.

``builtin`` needs no download: an indoor and an outdoor place as a scanner at the camera would
see them, from boxes at arm's length to distant facades.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.compute.progress import Progress
from influx_wrap.errors import InputError
from influx_wrap.evaluate.field import Field, union_field
from influx_wrap.evaluate.scan_camera import ScanCamera, look, place_camera
from influx_wrap.formats.files import read_json, reading
from influx_wrap.formats.ply import PlyPoints, open_ply
from influx_wrap.model.arrays import FloatArray

N_POINTS = 100_000
BUILTIN, ETH3D = "builtin", "eth3d"
CAMERAS = "cameras.json"
SCAN_FOLDERS = ("dslr_scan_eval", "scan_clean")
"""Where ETH3D's archives have the scans of a scene; the first that is there is used."""

WIDEST_FIELD = (1.3, 1.0)
"""Half-extent of the scanned directions x/z and y/z: more than a 17 mm lens sees."""

# Walls as (axis, coordinate) and boxes as (lowest corner, highest corner), in metres in
# camera space: x right, y down, z forward, the camera 1.44 m above the ground.
INDOOR_WALLS = ((1, 1.44), (1, -1.56), (0, -3.0), (0, 3.0), (2, 9.0))
INDOOR_BOXES = (
    ((-1.6, 0.7, 2.2), (-0.4, 1.44, 3.0)),
    ((0.3, 0.2, 1.2), (0.7, 1.44, 1.6)),
    ((-0.5, -0.2, 5.0), (0.6, 1.44, 5.6)),
    ((1.4, -0.9, 4.0), (2.2, 1.44, 4.5)),
)
OUTDOOR_WALLS = ((1, 1.44), (0, -18.0), (0, 22.0), (2, 120.0))
OUTDOOR_BOXES = (
    ((-4.5, -0.1, 9.0), (-2.6, 1.44, 13.5)),
    ((1.8, -0.4, 16.0), (3.9, 1.44, 20.0)),
    ((-0.4, -0.3, 6.0), (0.2, 1.44, 6.4)),
    ((-14.0, -9.0, 45.0), (-3.0, 1.44, 60.0)),
    ((6.0, -16.0, 70.0), (20.0, 1.44, 90.0)),
)

Walls = tuple[tuple[int, float], ...]
Boxes = tuple[tuple[tuple[float, float, float], tuple[float, float, float]], ...]


@dataclass(frozen=True, eq=False)
class EvaluationPoints:
    """Points (n, 3) in camera space in metres; ``source`` is what results say of them."""

    points: FloatArray
    source: str


@dataclass(frozen=True)
class PointsChoice:
    """Which points a user wants: those of the scans in ``folder``, or the built-in scene."""

    folder: Path | None

    def load(
        self,
        seen_by: FloatArray,
        image_size: tuple[int, int],
        progress: Progress = lambda done, total: None,
    ) -> EvaluationPoints:
        """The points; the arguments are those of ``eth3d``."""
        if self.folder is None:
            return builtin()
        return eth3d(self.folder, seen_by=seen_by, image_size=image_size, progress=progress)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Points (m, 3) in camera space in the order in which they were drawn."""

    points: FloatArray
    dropped: int


def parse_points(text: str) -> PointsChoice:
    """``builtin``, or ``eth3d:DIR`` with a folder that exists."""
    if text == BUILTIN:
        return PointsChoice(None)
    kind, colon, folder = text.partition(":")
    if kind != ETH3D or not colon or not folder:
        raise InputError(f"points {text!r} are not known; say {BUILTIN} or {ETH3D}:DIR.")
    if not Path(folder).is_dir():
        raise InputError(f"{folder} is not a folder; {ETH3D}:DIR needs one with ETH3D's scenes.")
    return PointsChoice(Path(folder))


def builtin(n: int = N_POINTS, seed: int = 0) -> EvaluationPoints:
    """Points of the built-in scene, half of them indoors and half outdoors.

    Directions fill a field that is itself drawn between nothing and the widest, so that
    telephoto and wide-angle settings both see thousands of points.
    """
    rng = np.random.default_rng(seed)
    field = np.array(WIDEST_FIELD) * rng.uniform(0, 1, (n, 1))
    directions = np.column_stack([field * rng.uniform(-1, 1, (n, 2)), np.ones(n)])
    indoors = np.arange(n) < n // 2
    depth = np.where(
        indoors,
        _first_hit(directions, INDOOR_WALLS, INDOOR_BOXES),
        _first_hit(directions, OUTDOOR_WALLS, OUTDOOR_BOXES),
    )
    return EvaluationPoints(directions * depth[:, None], BUILTIN)


def eth3d(
    folder: Path,
    n: int = N_POINTS,
    seed: int = 0,
    *,
    seen_by: FloatArray,
    image_size: tuple[int, int],
    progress: Progress = lambda done, total: None,
) -> EvaluationPoints:
    """Points of the first scan of every scene in ``folder``, as many from each.

    ``seen_by`` (m, 8) are the true intrinsics of all frames: points outside all their fields of
    view are not drawn. Every scene gives the same number of points, the first ones in
    alphabetical order one more if need be; what a scene cannot give, the others make up for.
    What is drawn from a scene depends on its name, its scan and the seed, and a smaller ``n``
    draws the first of a larger one. ``progress`` hears how many scenes of how many are done.
    """
    scans = find_scans(folder)
    cameras = _read_cameras(folder, list(scans))
    field = union_field(seen_by, image_size)
    drawn = {}
    for done, (scene, path) in enumerate(scans.items()):
        progress(done, len(scans))
        scan = open_ply(path)
        camera = cameras.get(scene) or place_camera(_points(scan), _points(scan))
        # The scene's own generator: another scene more or less changes nothing here.
        rng = np.random.default_rng([seed, *os.fsencode(scene)])
        drawn[scene] = _draw(scan, camera, field, n, rng)
        if not len(drawn[scene].points):
            raise InputError(
                f"{path}: no point is in view of the camera at "
                f"{np.round(camera.position, 2).tolist()}, which looks along "
                f"{np.round(camera.axes[2], 2).tolist()}. Put the scene {scene!r} with a better "
                f"position, forward and up into {folder / CAMERAS}."
            )
    progress(len(scans), len(scans))
    shares = equal_shares([len(scene.points) for scene in drawn.values()], n)
    points = np.concatenate(
        [scene.points[:share] for scene, share in zip(drawn.values(), shares, strict=True)]
    )
    dropped = sum(scene.dropped for scene in drawn.values())
    return EvaluationPoints(points, _source(scans, cameras, seed, dropped))


def find_scans(folder: Path) -> dict[str, Path]:
    """The first scan of every scene, by name: the data set's folder, or that of one scene."""
    with reading(folder):
        inside = sorted(path for path in folder.iterdir() if path.is_dir())
    scenes = inside
    if any(path.name in SCAN_FOLDERS for path in inside):
        scenes = [folder.resolve()]
    scans = {path.name: scan for path in scenes if (scan := _first_scan(path)) is not None}
    if not scans:
        raise InputError(
            f"{folder}: no scene in it has a scan. Unpack ETH3D's multi_view_training_"
            f"dslr_scan_eval there, so that there is <scene>/{SCAN_FOLDERS[0]}/scan1.ply."
        )
    return scans


def equal_shares(available: list[int], n: int) -> list[int]:
    """How many each gives so that they give ``n`` together, or all they have, most equally."""
    shares = [0] * len(available)
    # Those with little first: what they cannot give is left to the ones after them.
    order = sorted(range(len(available)), key=lambda k: (available[k], -k))
    for position, k in enumerate(order):
        shares[k] = min(available[k], n // (len(order) - position))
        n -= shares[k]
    return shares


def _first_scan(scene: Path) -> Path | None:
    for name in SCAN_FOLDERS:
        found = _numbered((scene / name).glob("scan*.ply"))
        if found:
            return found[min(found)]
    found = _numbered(scene.rglob("scan*.ply"))
    return found[min(found)] if found else None


def _numbered(paths: Iterable[Path]) -> dict[tuple[int, str], Path]:
    """Scans by number, so that scan2 comes before scan10, and then by place."""
    named = {path: re.fullmatch(r"scan([0-9]+)", path.stem) for path in paths}
    return {(int(name[1]), str(path)): path for path, name in named.items() if name}


def _read_cameras(folder: Path, scenes: list[str]) -> dict[str, ScanCamera]:
    """The cameras that ``cameras.json`` places, if it is there."""
    path = folder / CAMERAS
    if not path.exists():
        return {}
    record = read_json(path)
    record.check_keys((), scenes)
    cameras = {}
    for scene in record.values:
        place = record.record(scene)
        keys = ("position", "forward", "up")
        place.check_keys(keys)
        cameras[scene] = place.build(look, **{key: place.numbers(key, 3) for key in keys})
    return cameras


def _points(scan: PlyPoints) -> Iterator[FloatArray]:
    return (points for points, _ in scan.chunks())


def _draw(
    scan: PlyPoints, camera: ScanCamera, field: Field, n: int, rng: np.random.Generator
) -> _Drawn:
    """The ``n`` points in view with the smallest of the random numbers that every point gets."""
    kept, kept_draws, dropped = np.zeros((0, 3)), np.zeros(0), 0
    for points, not_finite in scan.chunks():
        dropped += not_finite
        draws = rng.random(len(points))
        if len(kept) == n:
            chosen = draws < kept_draws[-1]
            points, draws = points[chosen], draws[chosen]
        points = camera.to_camera(points)
        seen = field.contains(points)
        kept_draws = np.concatenate([kept_draws, draws[seen]])
        order = np.argsort(kept_draws, kind="stable")[:n]
        kept, kept_draws = np.concatenate([kept, points[seen]])[order], kept_draws[order]
    return _Drawn(kept, dropped)


def _source(
    scans: Mapping[str, Path], cameras: Mapping[str, ScanCamera], seed: int, dropped: int
) -> str:
    """Which points these are, for somebody who wants the same."""
    folders = sorted({path.parent.name for path in scans.values()})
    parts = [f"{len(scans)} scenes: {', '.join(scans)}", f"first scans of {', '.join(folders)}"]
    if cameras:
        parts.append(f"cameras of {', '.join(cameras)} from {CAMERAS}")
    parts.append(f"seed {seed}")
    if dropped:
        parts.append(f"{dropped} points without a place left out")
    return f"{ETH3D} ({'; '.join(parts)})"


def _first_hit(directions: FloatArray, walls: Walls, boxes: Boxes) -> FloatArray:
    """(n,) depth at which rays (n, 3) with z = 1 first meet a surface."""
    depth = np.full(len(directions), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for axis, coordinate in walls:
            hit = coordinate / directions[:, axis]
            depth = np.minimum(depth, np.where(hit > 0, hit, np.inf))
        for low, high in boxes:
            ends = np.stack([np.array(low) / directions, np.array(high) / directions])
            enter, leave = ends.min(axis=0).max(axis=1), ends.max(axis=0).min(axis=1)
            depth = np.minimum(depth, np.where((enter <= leave) & (enter > 0), enter, np.inf))
    return depth
