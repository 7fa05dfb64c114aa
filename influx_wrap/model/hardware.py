"""What the rig is made of: cameras, lenses, boards. Their numbers live in the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from influx_wrap.errors import InputError
from influx_wrap.model.target import AprilGrid

FOCUSING = ("internal", "front")
"""What a zoom moves to focus: a group behind the stop, or the front group."""


def _require_positive(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise InputError(f"{owner}: {name} must be positive, got {value:g}.")


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera body: its sensor in millimetres and its picture in pixels.

    ``pp_prior_px`` is how far from the picture's middle its principal points are expected, a
    standard deviation; None: 1 % of the width.
    """

    name: str
    sensor_width_mm: float
    sensor_height_mm: float
    width_px: int
    height_px: int
    height_above_ground_m: float = 1.44
    pp_prior_px: float | None = None
    metadata_model: str | None = None

    def __post_init__(self) -> None:
        _require_positive(
            f"camera {self.name}",
            sensor_width_mm=self.sensor_width_mm,
            sensor_height_mm=self.sensor_height_mm,
            width_px=self.width_px,
            height_px=self.height_px,
            height_above_ground_m=self.height_above_ground_m,
        )
        if self.pp_prior_px is not None:
            _require_positive(f"camera {self.name}", pp_prior_px=self.pp_prior_px)

    @property
    def image_size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.width_px, self.height_px

    @property
    def sensor_mm(self) -> tuple[float, float]:
        """(width, height) in millimetres."""
        return self.sensor_width_mm, self.sensor_height_mm

    @property
    def pixel_um(self) -> float:
        """Pixel pitch in micrometres, along the width."""
        return 1e3 * self.sensor_width_mm / self.width_px

    @property
    def pitch_um(self) -> tuple[float, float]:
        """Pixel pitch in micrometres, in x and in y."""
        return self.pixel_um, 1e3 * self.sensor_height_mm / self.height_px


@dataclass(frozen=True, slots=True)
class Lens:
    """A zoom lens: its ranges, where its sampling starts, and what its simulation is like.

    synthetic_k1_min    k1 at the shortest LFL, focused at infinity
    synthetic_focusing  one of ``FOCUSING``
    """

    name: str
    lfl_min_mm: float
    lfl_max_mm: float
    fd_min_m: float
    fd_lower_m: float
    synthetic_k1_min: float = -0.15
    metadata_model: str | None = None
    synthetic_focusing: str = "internal"

    def __post_init__(self) -> None:
        _require_positive(
            f"lens {self.name}",
            lfl_min_mm=self.lfl_min_mm,
            lfl_max_mm=self.lfl_max_mm,
            fd_min_m=self.fd_min_m,
            fd_lower_m=self.fd_lower_m,
        )
        if self.lfl_max_mm < self.lfl_min_mm:
            raise InputError(f"lens {self.name}: lfl_max_mm is below lfl_min_mm.")
        if self.fd_lower_m < self.fd_min_m:
            raise InputError(f"lens {self.name}: fd_lower_m is below fd_min_m.")
        if self.synthetic_focusing not in FOCUSING:
            raise InputError(
                f"lens {self.name}: synthetic_focusing must be one of {', '.join(FOCUSING)}, "
                f"got {self.synthetic_focusing!r}."
            )


@dataclass(frozen=True, slots=True)
class Board:
    """A printed AprilGrid: the sheet, and the grid on it."""

    name: str
    width_mm: float
    height_mm: float
    grid: AprilGrid

    def __post_init__(self) -> None:
        _require_positive(f"board {self.name}", width_mm=self.width_mm, height_mm=self.height_mm)


@dataclass(frozen=True, slots=True)
class Rig:
    """What a lens's experiments are said to be made with, and the boards there are."""

    camera: Camera
    lens: Lens
    boards: tuple[Board, ...] = ()
