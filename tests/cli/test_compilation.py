"""Kernels that are compiled while somebody waits: a sentence at once and a count, on a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from influx_wrap.cli.compilation import ANNOUNCEMENT

KERNELS = """
from influx_wrap.compute.jit import jit


@jit
def doubled(x):
    return 2.0 * x
"""
# Slow enough to be seen, whatever the machine.
PROGRAM = """
import sys, time
from pathlib import Path
from influx_wrap.compute import kernel_cache
kernel_cache.cache_folder = lambda: Path("cache")
from influx_wrap.cli.compilation import announced
from influx_wrap.cli.progress import watch
from a_kernels import doubled
save = type(doubled._cache).save_overload
def slow(*arguments):
    time.sleep(1.5)
    save(*arguments)
    time.sleep(0.6)
type(doubled._cache).save_overload = slow
with announced():
    if "bar" in sys.argv:
        with watch("calibrating") as progress:
            progress(1, 7)
            print(doubled(21.0))
            time.sleep(0.6)
    else:
        print(doubled(21.0))
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    (tmp_path / "a_kernels.py").write_text(KERNELS)
    (tmp_path / "program.py").write_text(PROGRAM)
    return [sys.executable, str(tmp_path / "program.py")]


def on_terminal(command: list[str], folder: Path) -> str:
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            text = os.read(ours, 65536)
        except OSError:
            break
        if not text:
            break
        said += text
    assert process.wait() == 0, said.decode()
    os.close(ours)
    return said.decode()


def test_a_file_gets_results_only(program: list[str], tmp_path: Path) -> None:
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("42.0\n", "")


def test_on_a_terminal_it_is_seen_to_go_on(program: list[str], tmp_path: Path) -> None:
    said = on_terminal(program, tmp_path)
    assert ANNOUNCEMENT in said
    assert "compiling kernels" in said
    assert "42.0" in said


def test_the_bar_of_a_command_has_the_terminal(program: list[str], tmp_path: Path) -> None:
    said = on_terminal([*program, "bar"], tmp_path)
    assert ANNOUNCEMENT in said
    assert "calibrating" in said
    assert "compiling kernels" not in said
    assert "kernel 1" in said
