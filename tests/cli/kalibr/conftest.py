"""A rendered board clip as pictures named by nanoseconds, and commands run in this process."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import pytest

from influx_wrap.cli.kalibr import (
    kalibr_bagcreater,
    kalibr_calibrate_cameras,
    kalibr_create_target_pdf,
    kalibr_detect_corners,
)
from influx_wrap.formats.kalibr import write_target
from influx_wrap.synth.render import RenderOptions, ray_grid, render_board
from tests.clips import CAMERA, GRID, SIZE, pose

COMMANDS = {
    module.NAME: module.main
    for module in (
        kalibr_bagcreater,
        kalibr_calibrate_cameras,
        kalibr_create_target_pdf,
        kalibr_detect_corners,
    )
}
N = 14
START_NS, PERIOD_NS = 1_600_000_000_000_000_000, 50_000_000


@dataclass(frozen=True)
class Outcome:
    """What a command said."""

    code: int
    out: str
    err: str

    def assert_mistake(self, *words: str) -> None:
        """One sentence on stderr, exit code 2."""
        assert self.code == 2, (self.out, self.err)
        (line,) = self.err.strip().splitlines()
        assert line.startswith("Error: ")
        assert line.endswith((".", "?"))
        for word in words:
            assert word in line


Command = Callable[..., Outcome]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """``command("kalibr_bagcreater", "--folder", folder)``: run one."""
    for variable in ("FOCAL_LENGTH_GUESS", "INFLUX_SEED", "DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    # Another process takes longer to start than these few pictures take one.
    monkeypatch.setattr(os, "cpu_count", lambda: 1)

    def run(name: str, *arguments: object) -> Outcome:
        capsys.readouterr()
        code = COMMANDS[name]([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``april.yaml`` and ``cam0/<nanoseconds>.png``."""
    folder = tmp_path_factory.mktemp("kalibr")
    write_target(folder / "april.yaml", GRID)
    (folder / "cam0").mkdir()
    rays = ray_grid(CAMERA, SIZE)
    for index in range(N):
        rng = np.random.default_rng(index)
        tilt, shift = 35 * rng.uniform(-1, 1, 3), rng.uniform(-0.03, 0.03, 2)
        options = RenderOptions(blur_px=0.5, noise=2)
        picture = render_board(rays, GRID, *pose(tuple(tilt), (*shift, 0.4)), options, rng)
        name = f"{START_NS + index * PERIOD_NS}.png"
        cv2.imwrite(str(folder / "cam0" / name), picture)
    return folder


@pytest.fixture(scope="session")
def corners(clip: Path) -> Path:
    """A folder with the clip's corners."""
    folder = clip / "corners"
    arguments = ("--target", clip / "april.yaml", "--frames-dir", clip / "cam0")
    detect = COMMANDS["kalibr_detect_corners"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        assert detect([str(a) for a in (*arguments, "--output-dir", folder)]) == 0
    return folder
