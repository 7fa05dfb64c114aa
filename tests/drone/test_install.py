"""What a Raspberry Pi gets."""

from __future__ import annotations

import re
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

DRONE = Path(__file__).parents[2] / "drone"


def install(*options: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(DRONE / "install.sh"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def test_the_installation_can_be_looked_at_first() -> None:
    done = install("--dry-run", "--gps", "tcp://127.0.0.1:28784", "--pin", "22", "--user", "crew")
    assert done.returncode == 0
    assert "--gps tcp://127.0.0.1:28784 --pin 22" in done.stdout
    assert "User=crew" in done.stdout
    assert (
        "ExecStopPost=/opt/influx-drone/bin/influx-drone-server --led-off --pin 22" in done.stdout
    )
    assert not re.search("@[A-Z]+@", done.stdout)


def unit_of(*options: str) -> list[str]:
    """The lines of the unit that would be written."""
    done = install("--dry-run", *options)
    assert done.returncode == 0
    unit = done.stdout.partition("[Unit]")[2].partition("\n+ ")[0]
    return [line.strip() for line in unit.splitlines()]


def commands_of(unit: list[str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in unit if line.startswith("Exec"))


@pytest.mark.parametrize("options", [[], ["--active-high"]])
def test_all_commands_of_the_unit_know_how_the_relay_is_wired(options: list[str]) -> None:
    commands = commands_of(unit_of("--pin", "22", *options))
    assert set(commands) == {"ExecStart", "ExecStopPost"}
    for command in commands.values():
        assert " ".join(["--pin 22", *options]) in command
        assert ("--active-high" in command) == bool(options)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit for this machine: commands that exist, a user that is there."""
    lines = "\n".join(["[Unit]", *unit_of("--user", "daemon")])
    path = tmp_path / "influx-drone.service"
    path.write_text(lines.replace("/opt/influx-drone/bin/influx-drone-server", "/bin/true"))
    return path


def analyse(*words: object) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing")
    command = ["systemd-analyze", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.system
def test_the_unit_is_understood(unit: Path) -> None:
    done = analyse("verify", "--man=no", unit)
    assert done.returncode == 0
    assert unit.name not in done.stderr


@pytest.mark.system
def test_the_unit_exposes_little(unit: Path) -> None:
    """Below 4 of 10, "OK" by systemd's own measure."""
    done = analyse("security", "--offline=true", "--threshold=39", "--no-pager", unit)
    assert done.returncode == 0, done.stdout
    assert "Overall exposure level" in done.stdout


@pytest.mark.parametrize(
    "options", [["--pin", "x"], ["--pin"], ["--nonsense"], ["--gps", "a b; rm -rf c"]]
)
def test_senseless_options_are_refused(options: list[str]) -> None:
    done = install("--dry-run", *options)
    assert done.returncode == 2
    assert done.stderr.startswith("install.sh: ")


@pytest.mark.system
def test_the_server_runs_without_anything_heavy(tmp_path: Path) -> None:
    venv.create(tmp_path / "pi", with_pip=True)
    python = tmp_path / "pi" / "bin" / "python"
    source = tmp_path / "drone"
    shutil.copytree(DRONE, source, ignore=shutil.ignore_patterns("*.egg-info", "build"))
    subprocess.run([python, "-m", "pip", "install", "--quiet", source], check=True)
    heavy = "import importlib.util as u, sys; print([n for n in sys.argv[1:] if u.find_spec(n)])"
    names = ["numpy", "pyproj", "cv2", "paramiko"]
    found = subprocess.run(
        [python, "-c", heavy, *names], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
    server = tmp_path / "pi" / "bin" / "influx-drone-server"
    subprocess.run([server, "--help"], check=True, capture_output=True)
    state = ["--dry-run", "--state", tmp_path / "state"]
    subprocess.run([server, "--led-off", *state], check=True)
    process = subprocess.Popen([server, "--port", "0", *state])
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=4)
        assert (tmp_path / "state" / "connection.json").exists()
    finally:
        process.terminate()
    assert process.wait(timeout=10) == 0
