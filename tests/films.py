"""Recordings of a small board by a small camera, that are long enough to be divided."""

from pathlib import Path

import numpy as np
import yaml

from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.model.experiment import Plan
from influx_wrap.plan import make_plan
from influx_wrap.run.observe import FootageSettings
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board
from tests.clips import CAMERA, GRID, SIZE, pose, write_clip

EMPTY = np.full((SIZE[1], SIZE[0]), 120, np.uint8)
TILTS = [(x, y, 5.0 * x) for x in (-1, 0, 1) for y in (-1, 0, 1)]
POSES = [
    pose((25.0 * x, 25.0 * y, z), (0.02 * y, -0.02 * x, 0.36 + 0.02 * x * y)) for x, y, z in TILTS
]
N_HELD, N_MOVED = 44, 2
"""Frames in each pose, and without the board after it; all of them are three stretches."""
N_FRAMES = (N_HELD + N_MOVED) * len(POSES)


def write_rig(folder: Path) -> None:
    """A catalogue with the camera and the board."""
    camera = {"kind": "camera", "name": "small", "sensor_width_mm": 32.0, "sensor_height_mm": 24.0}
    camera |= {"width_px": SIZE[0], "height_px": SIZE[1]}
    board = {"kind": "board", "name": "little", "width_mm": 300.0, "height_mm": 250.0}
    board |= {"tag_rows": GRID.tag_rows, "tag_cols": GRID.tag_cols, "tag_spacing": 0.3}
    board |= {"tag_size_mm": 1e3 * GRID.tag_size_m}
    (folder / "camera.yaml").write_text(yaml.safe_dump(camera))
    (folder / "board.yaml").write_text(yaml.safe_dump(board))


def rig_footage(folder: Path) -> FootageSettings:
    """What recordings are turned into experiments with, of the catalogue in a folder."""
    known = load_catalogue(folder)
    plan: Plan = make_plan(known.lens("canon17"), known.camera("small"), known.boards.values())
    return FootageSettings(plan, known.boards)


def pictures_of_poses(seed: int = 0) -> list[np.ndarray]:
    """Of each pose one."""
    rng = np.random.default_rng(seed)
    rays, options = ray_grid(CAMERA, SIZE), RenderOptions(blur_px=0.5, noise=2)
    return [render_board(rays, GRID, *held, options, rng) for held in POSES]


def write_film(folder: Path, seed: int = 0) -> Path:
    """A recording of a board that is held in each pose; its video."""
    folder.mkdir(parents=True)
    (folder / "recording.yaml").write_text("lfl_mm: 32\nfd_m: 20\nboard: little\n")
    frames = (
        picture
        for held in pictures_of_poses(seed)
        for picture in [held] * N_HELD + [EMPTY] * N_MOVED
    )
    return write_clip(folder / "clip.mp4", frames, movflags="faststart")


def write_empty_film(folder: Path) -> Path:
    """One in which there is no board."""
    folder.mkdir(parents=True)
    (folder / "recording.yaml").write_text("lfl_mm: 32\nfd_m: 20\nboard: little\n")
    frames = (EMPTY for _ in range(N_FRAMES))
    return write_clip(folder / "clip.mp4", frames, movflags="faststart")
