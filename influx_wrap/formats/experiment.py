"""The folder of one experiment, as a calibration takes it.

``target.yaml``, ``coords_2d.csv`` and ``successes.csv`` are Kalibr's;
``experiment.yaml`` says which lens setting and camera they belong to, and
``truth.json`` holds the answer if the experiment was simulated: rotations with their
nine numbers row by row, outliers as pairs of view index and point index.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import (
    PIXEL_ORIGIN,
    Record,
    dump_yaml,
    read_json,
    read_yaml,
    write_json_lines,
    write_text,
)
from influx_wrap.formats.kalibr import (
    COORDS,
    SUCCESSES,
    TARGET,
    read_observations,
    read_target,
    write_observations,
    write_target,
)
from influx_wrap.model.arrays import BoolArray
from influx_wrap.model.experiment import Cell, Setting
from influx_wrap.model.hardware import Camera
from influx_wrap.model.observations import Observations
from influx_wrap.model.truth import Noise, Truth

EXPERIMENT, TRUTH = "experiment.yaml", "truth.json"
FILES = EXPERIMENT, TARGET, COORDS, SUCCESSES
"""What every experiment has."""


@dataclass(frozen=True, eq=False)
class StoredExperiment:
    """What the folder of an experiment holds; ``truth`` is None if it is a real one.

    ``is_trusted`` says that a person vouches for it where the pictures contradict it.
    """

    lens: str
    camera: str
    cell: str
    target_name: str
    lfl_mm: float
    fd_m: float
    pixel_um: float
    observations: Observations
    truth: Truth | None
    is_trusted: bool = False


def write_experiment(
    folder: Path,
    cell: Cell | Setting,
    camera: Camera,
    lens_name: str,
    observations: Observations,
    truth: Truth | None,
) -> None:
    """Write the folder of ``cell``, creating it if need be; ``experiment.yaml`` comes last."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TRUTH).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}.") from None
    write_target(folder / TARGET, observations.target)
    write_observations(folder / COORDS, folder / SUCCESSES, observations)
    if truth is not None:
        _write_truth(folder / TRUTH, truth)
    description = {
        "lens": lens_name,
        "camera": camera.name,
        "cell": cell.name,
        "target": cell.target_name,
        "lfl_mm": float(cell.lfl_mm),
        "fd_m": float(cell.fd_m),
        "image_size": list(observations.image_size),
        "pixel_um": float(camera.pixel_um),
        "pixel_origin": PIXEL_ORIGIN,
    }
    write_text(folder / EXPERIMENT, dump_yaml(description))


def read_experiment(folder: Path) -> StoredExperiment:
    """Read the folder of one experiment."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; an experiment is a folder of files.")
    record = read_yaml(folder / EXPERIMENT)
    names = ("lens", "camera", "cell", "target")
    required = (*names, "lfl_mm", "fd_m", "image_size", "pixel_um", "pixel_origin")
    record.check_keys(required, ("trust",))
    record.check_pixel_origin()
    target = read_target(folder / TARGET)
    observations = read_observations(
        folder / COORDS, folder / SUCCESSES, target, record.image_size("image_size")
    )
    has_truth = (folder / TRUTH).exists()
    return StoredExperiment(
        lens=record.text("lens"),
        camera=record.text("camera"),
        cell=record.text("cell"),
        target_name=record.text("target"),
        lfl_mm=record.number("lfl_mm", above=0),
        fd_m=record.number("fd_m", above=0, infinite=True),
        pixel_um=record.number("pixel_um", above=0),
        observations=observations,
        truth=_read_truth(folder / TRUTH, observations) if has_truth else None,
        is_trusted=record.flag("trust"),
    )


def _write_truth(path: Path, truth: Truth) -> None:
    values = {
        "pixel_origin": PIXEL_ORIGIN,
        "intrinsics": truth.intrinsics.as_dict(),
        "corner_sigma_px": truth.corner_sigma_px,
        "bow_m": truth.bow_m.tolist(),
        "noise": asdict(truth.noise),
        "rotations": truth.rotations.reshape(-1, 9).tolist(),
        "translations": truth.translations.tolist(),
        "target_points": truth.target_points.tolist(),
        "outliers": np.argwhere(truth.outliers).tolist(),
    }
    write_json_lines(path, values)


def _read_truth(path: Path, observations: Observations) -> Truth:
    record = read_json(path)
    shapes = ("rotations", "translations", "target_points", "outliers")
    settings = ("pixel_origin", "intrinsics", "corner_sigma_px", "bow_m", "noise")
    record.check_keys((*settings, *shapes))
    noise = record.record("noise")
    noise_names = [field.name for field in fields(Noise)]
    noise.check_keys(noise_names)
    n_views, n_points = observations.valid.shape
    return Truth(
        intrinsics=record.intrinsics("intrinsics"),
        rotations=record.rows("rotations", 9, n_views).reshape(-1, 3, 3),
        translations=record.rows("translations", 3, n_views),
        target_points=record.rows("target_points", 3, n_points),
        bow_m=np.array(record.numbers("bow_m", 3)),
        outliers=_outlier_mask(record, n_views, n_points),
        noise=noise.build(Noise, **{name: noise.number(name) for name in noise_names}),
    )


def _outlier_mask(record: Record, n_views: int, n_points: int) -> BoolArray:
    """(V, T) from [view, point] pairs of indices."""
    mask = np.zeros((n_views, n_points), dtype=bool)
    pairs = record.rows("outliers", 2)
    view, point = pairs.astype(int).T
    inside = (pairs >= 0).all(axis=1) & (view < n_views) & (point < n_points)
    if not inside.all():
        first = int(np.argmin(inside))
        raise record.fault(f"outliers[{first}]", "is no [view, point] of the observations.")
    mask[view, point] = True
    return mask
