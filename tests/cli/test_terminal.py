"""Terminals that know few characters: a command as a process, with the locale of one."""

import os
import subprocess
from pathlib import Path

import pytest

from influx_wrap.cli.terminal import _is_plain
from influx_wrap.formats.lut import write_table
from tests.cli.conftest import command_line
from tests.lut.lenses import breathing_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "Objektivtabelle-Größe.json"
    write_table(path, breathing_table("canon17"))
    return path


def query(table: Path, **locale: str) -> bytes:
    told = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LC_", "LANG", "PYTHONIO", "PYTHONUTF8"))
    }
    setting = ("--lfl-mm", "35", "--fd-m", "2", "--scheme", "paper")
    run = subprocess.run(
        command_line("lut", "query", table, *setting),
        capture_output=True,
        env=told | locale,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}])
def test_ascii(table: Path, locale: dict[str, str]) -> None:
    text = query(table, **locale)
    assert text.isascii()
    assert b"+- sigma" in text


def test_utf_8(table: Path) -> None:
    assert "± sigma" in query(table, LANG="C.UTF-8").decode()


def test_latin_1(table: Path) -> None:
    """What an encoding has is kept."""
    assert "± sigma" in query(table, PYTHONIOENCODING="latin-1").decode("latin-1")


def test_names_that_cannot_be_shown(tmp_path: Path) -> None:
    """In a sentence, too, and not as a traceback."""
    run = subprocess.run(
        command_line("lut", "query", tmp_path / "板-é.json", "--lfl-mm", "1", "--fd-m", "1"),
        capture_output=True,
        env=os.environ | {"LC_ALL": "C"},
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr.isascii()
    assert rb"\u677f-e.json does not exist" in run.stderr


@pytest.mark.parametrize(
    ("environment", "plain"),
    [
        ({}, False),
        ({"LANG": "C"}, True),
        ({"LANG": "POSIX"}, True),
        ({"LANG": "C", "LC_ALL": "de_DE.UTF-8"}, False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, True),
        ({"LANG": "C", "PYTHONUTF8": "1"}, False),
    ],
)
def test_which_locales_are_plain(environment: dict[str, str], plain: bool) -> None:
    assert _is_plain(environment) == plain
