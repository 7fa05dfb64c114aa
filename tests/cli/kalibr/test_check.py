"""``influx-calib kalibr check`` and ``fork``, with a stand-in and a made-up Kalibr."""

from pathlib import Path

from influx_wrap.engines.kalibr_fork import read_series
from tests.calibrate.scenes import CAMERA, IMAGE_SIZE
from tests.cli.conftest import Invoke, assert_mistake
from tests.engines.standin import FORK_HELP, install
from tests.patches.fork import make_upstream


def test_check(invoke: Invoke, tmp_path: Path) -> None:
    place = install(tmp_path / "bin", CAMERA.array, IMAGE_SIZE, help=FORK_HELP)
    command = place / "kalibr_calibrate_cameras"
    said = invoke("kalibr", "check", command).output
    assert said.startswith(f"{command}: our fork of Kalibr (influx_wrap patches, series 1")
    upstream = tmp_path / "upstream"
    upstream.mkdir()
    make_upstream(upstream)
    said = invoke("kalibr", "check", upstream).output
    assert said.startswith(f"{upstream}: upstream's Kalibr (not {read_series().commit[:12]}: ")
    assert_mistake(invoke("kalibr", "check", tmp_path / "no"), "neither a command nor a folder")
    assert_mistake(invoke("kalibr", "check", tmp_path, "--image", "x"), "exclude each other")
    assert_mistake(invoke("kalibr", "fork", upstream), "kalibr_calibrate_cameras is not that of")
