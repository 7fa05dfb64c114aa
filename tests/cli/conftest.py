"""Commands as a user gives them, in this process or in one of their own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from influx_wrap.cli.main import main

Invoke = Callable[..., Result]


@pytest.fixture(scope="session")
def invoke() -> Invoke:
    """``invoke("plan", "canon17")``: the result of a command, in this process."""

    def run(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return run


def command_line(*arguments: object) -> list[str]:
    """The command as a process of its own would be started."""
    return [sys.executable, "-m", "influx_wrap.cli.main", *(str(a) for a in arguments)]


def execute(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
    return subprocess.run(command_line(*arguments), capture_output=True, text=True, check=False)


def assert_mistake(result: Result, *words: str) -> None:
    """One sentence on stderr that contains the words, exit code 2, no traceback. A command to be
    pasted may follow on a line of its own."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    lines = [line for line in result.stderr.splitlines() if not line.startswith("Try: ")]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("Error: ")
    assert lines[0].endswith((".", "?"))
    for word in words:
        assert word in lines[0]


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory, invoke: Invoke) -> Path:
    """A folder with a board cell (z7f0) and two drone cells (z0f9, z1f9) of canon17."""
    folder = tmp_path_factory.mktemp("simulated") / "sim"
    result = invoke("simulate", "canon17", "--out", folder, "--cells", "z7f0,z0f9,z1f9")
    assert result.exit_code == 0, result.output
    return folder
