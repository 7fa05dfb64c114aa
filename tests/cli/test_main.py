"""The group: help at once, every command documented, errors as sentences."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from influx_wrap import __version__
from influx_wrap.cli.main import COMMANDS, main
from tests.cli.conftest import Invoke, assert_mistake, execute


def test_version(invoke: Invoke) -> None:
    assert invoke("--version").output.strip() == f"influx-calib, version {__version__}"


def test_help_lists_every_command_without_loading_any() -> None:
    code = "import sys; from influx_wrap.cli.main import main\n"
    code += "try: main(['--help'])\nfinally: print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in COMMANDS)
    assert done.stdout.strip().endswith("False")


@pytest.mark.parametrize("module", ["numba", "cv2", "matplotlib"])
def test_plan_loads_nothing_heavy(module: str) -> None:
    code = "import sys; from influx_wrap.cli.main import main\n"
    code += f"try: main(['plan', 'canon17'])\nfinally: print({module!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("False")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(invoke: Invoke, name: str) -> None:
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert f"influx-calib {name}" in result.output
    assert "Example" in result.output


def test_unknown_lens(invoke: Invoke) -> None:
    assert_mistake(invoke("plan", "canon18"), "no lens 'canon18'", "Did you mean canon17?")


def test_a_catalogue_that_is_no_folder(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("--catalogue", tmp_path / "none", "plan", "canon17")
    assert_mistake(result, "none is not a folder")


def test_lenses_of_a_user_are_found(invoke: Invoke, tmp_path: Path) -> None:
    lens = "kind: lens\nname: mine\nlfl_min_mm: 24\nlfl_max_mm: 70\nfd_min_m: 0.5\nfd_lower_m: 1\n"
    (tmp_path / "mine.yaml").write_text(lens)
    result = invoke("--catalogue", tmp_path, "plan", "mine")
    assert result.exit_code == 0
    assert "mine on arri-alexa-mini" in result.output


def test_missing_options_show_the_usage(invoke: Invoke) -> None:
    result = invoke("simulate", "canon17")
    assert result.exit_code == 2
    assert "Missing option '--out'" in result.stderr
    assert "Usage" in result.stderr


def test_operating_system_errors_name_the_path(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, ctx: click.Context, name: str) -> click.Command:
        raise OSError(28, "No space left on device", "some/file")

    monkeypatch.setattr(type(main), "get_command", fail)
    assert_mistake(invoke("plan", "canon17"), "some/file: No space left on device.")


def test_a_mistake_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = execute("simulate", "canon17", "--out", tmp_path, "--cells", "z9f0")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "Error: canon17 has no cell 'z9f0': cells run from z0f0 to z7f9.\n"


def test_interrupt_exits_with_130(tmp_path: Path) -> None:
    arguments = ["simulate", "canon17", "--out", str(tmp_path / "sim")]
    process = subprocess.Popen(
        [sys.executable, "-m", "influx_wrap.cli.main", *arguments],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "sim" / "z0f0" / "experiment.yaml").exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Interrupted." in errors
    assert "Traceback" not in errors


LENS = "kind: lens\nname: mine\nlfl_min_mm: 24\nlfl_max_mm: 70\nfd_min_m: 0.5\nfd_lower_m: 1\n"


def test_a_catalogue_after_the_command_or_in_the_environment(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text(LENS)
    assert invoke("plan", "mine", "--catalogue", tmp_path).exit_code == 0
    # The one after the command is nearer to it.
    other = tmp_path / "other"
    other.mkdir()
    assert_mistake(invoke("--catalogue", tmp_path, "plan", "mine", "--catalogue", other), "mine")
    monkeypatch.setenv("INFLUX_CATALOGUE", str(tmp_path))
    assert invoke("plan", "mine").exit_code == 0
    assert_mistake(invoke("plan", "mine", "--catalogue", other), "no lens 'mine'")
    assert_mistake(invoke("--catalogue", other, "plan", "mine"), "no lens 'mine'")


@pytest.mark.parametrize(
    "name",
    ["plan", "board", "simulate", "run", "lut build", "export", "predict", "evaluate", "compare",
     "drone plan", "drone match"],
)  # fmt: skip
def test_every_command_that_has_cameras_takes_a_catalogue(invoke: Invoke, name: str) -> None:
    result = invoke(*name.split(), "--help")
    assert "--catalogue DIR" in result.output


def test_the_makefile_hands_on_camera_and_catalogue() -> None:
    root = Path(__file__).parents[2]
    asked = ["make", "-n", "calibrate", "CAMERA=my cam", "CATALOGUE=a b", "STAMP="]
    done = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True)
    assert '--camera "my cam"' in done.stdout
    assert '--catalogue "a b"' in done.stdout
