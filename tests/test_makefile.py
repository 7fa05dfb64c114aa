"""``make``: what it installs, with which program, and what it says; no network, no real package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A Makefile, and a uv that notes what it is asked for and fails while there is a file
    ``broken``."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text('#!/bin/sh\n[ ! -e broken ] || exit 1\necho "$@" >> asked\n')
    uv.chmod(0o755)
    return tmp_path


def make(source: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": f"{source / 'bin'}:{os.environ['PATH']}"}
    environment |= {"PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0", "PIP_NO_INDEX": "1"}
    # A make that runs the tests has options of its own.
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        environment.pop(name, None)
    return subprocess.run(
        ["make", f"PYTHON={sys.executable}", *words],
        cwd=source, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_what_a_calibration_needs_comes_first(source: Path) -> None:
    done = make(source)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0] == "Installing influx_wrap and what a calibration needs in .venv, with uv (once)"
    assert said[1] == "Installed in .venv. Next, one of:"
    asked = (source / "asked").read_text().splitlines()
    assert asked == ["pip install --quiet --python .venv/bin/python --editable .[video]"]
    again = make(source)
    assert again.stdout.splitlines() == said[1:]
    # What tests need is added by those who run them.
    assert make(source, ".venv/.developing").returncode == 0
    assert (source / "asked").read_text().splitlines()[1:] == [
        "pip install --quiet --python .venv/bin/python --editable .[dev]"
    ]


def test_an_interrupted_installation_is_done_again(source: Path) -> None:
    (source / "broken").touch()
    failed = make(source)
    assert failed.returncode == 2
    assert "The same command tries again." in failed.stdout
    assert not (source / ".venv" / ".installed").exists()
    (source / ".venv" / "rubbish").touch()
    (source / "broken").unlink()
    assert make(source).returncode == 0
    assert not (source / ".venv" / "rubbish").exists()
    assert (source / ".venv" / ".installed").exists()


def test_an_installation_is_brought_up_to_date_without_being_thrown_away(source: Path) -> None:
    assert make(source).returncode == 0
    (source / ".venv" / "kept").touch()
    os.utime(source / ".venv" / ".installed", (0, 0))
    assert make(source).returncode == 0
    assert (source / ".venv" / "kept").exists()


def test_a_python_that_is_missing_or_too_old(source: Path) -> None:
    done = make(source, "PYTHON=no-such-python")
    assert done.returncode == 2
    assert "needs Python 3.11 or newer; no-such-python is missing. Name another" in done.stdout
    old = source / "bin" / "python3.9"
    old.write_text('#!/bin/sh\ncase "$*" in *version_info*) exit 1;; *) echo Python 3.9.2;; esac\n')
    old.chmod(0o755)
    done = make(source, "PYTHON=python3.9")
    assert done.returncode == 2
    assert "python3.9 is Python 3.9.2. Name another one: make PYTHON=python3.11" in done.stdout
    assert not (source / ".venv").exists()


def test_the_program_is_pip_where_there_is_no_uv(source: Path) -> None:
    said = make(source, "UV=no-such-uv", "--dry-run").stdout
    assert "-m pip install --quiet" in said
