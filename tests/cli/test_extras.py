"""What an extra brings, and who says so where it is missing: one by one, with the line to paste."""

import importlib.util
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from influx_wrap.errors import InputError, install_line
from influx_wrap.formats.export.frames import extra
from tests.cli.conftest import Invoke

EXTRA_OF_MODULE = {
    "av": "video", "distributed": "cluster", "docker": "docker", "bpy": "blender",
}  # fmt: skip


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("av", ("camera", "clip.mp4")),
        ("av", ("detect", "clip.mp4", "--target", "target.yaml", "--out", "out")),
        ("av", ("simulate", "canon17", "--cells", "z0f0", "--video", "--out", "out")),
        ("distributed", ("run", "canon17", "--scheduler", "tcp://127.0.0.1:9", "--out", "out")),
        ("docker", ("run", "canon17", "--engine", "kalibr", "--image", "x", "--out", "out")),
    ],
)
def test_a_command_names_the_extra(
    invoke: Invoke,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clip.mp4").write_bytes(b"\0\0\0\x18ftypmp42")
    assert invoke("board", "A4", "--out", "b.pdf").exit_code == 0
    monkeypatch.setitem(sys.modules, module, None)
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert install_line(EXTRA_OF_MODULE[module]) in result.stderr.splitlines()[-1]


@pytest.mark.parametrize(("module", "package"), [("OpenEXR", "OpenEXR"), ("pxr.Usd", "usd-core")])
def test_exports_name_the_extra(monkeypatch: pytest.MonkeyPatch, module: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError) as caught:
        extra(module, package, Path("clip.usda"))
    assert str(caught.value).endswith(f"written by {package}: {install_line('export')}.")


def test_the_drones_server_names_the_extra() -> None:
    code = "import sys; sys.modules['gpiozero'] = None\nfrom influx_drone.cli import main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("influx-drone-server needs gpiozero: ")
    assert "-m pip install 'influx_wrap[drone]'" in done.stderr


def test_the_line_is_for_the_python_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(sys.executable).parent
    monkeypatch.setattr(shutil, "which", lambda name: str(here / name))
    assert install_line("video") == "pip install 'influx_wrap[video]'"
    monkeypatch.setattr(shutil, "which", lambda name: "/elsewhere/bin/pip")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    line = shlex.split(install_line("video"))
    assert line[0] == sys.executable or line[0] == "uv"
    assert "influx_wrap[video]" in line
