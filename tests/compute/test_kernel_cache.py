"""Who is compiling kernels, as the cache's folder tells it."""

import importlib.metadata
import time
from pathlib import Path

import numba
import pytest

from influx_wrap.compute import kernel_cache
from influx_wrap.compute.kernel_cache import Compilation, begin, compilation_since, end


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path / "kernels")
    return tmp_path / "kernels"


def test_numba_is_part_of_the_folder_without_being_loaded() -> None:
    assert importlib.metadata.version("numba") == numba.__version__


def test_nothing_is_compiled(folder: Path) -> None:
    assert compilation_since(0.0) is None


def test_while_kernels_are_compiled_here(folder: Path) -> None:
    moment_s = time.time() - 1
    begin()
    begin()
    assert compilation_since(moment_s) == Compilation(here=True, done=0)
    (folder / "sources").mkdir()
    (folder / "sources" / "inner.nbc").touch()
    end()
    assert compilation_since(moment_s) == Compilation(here=True, done=1)
    end()
    assert compilation_since(moment_s) == Compilation(here=False, done=1)
    # What was there before does not count.
    assert compilation_since(time.time() + 1) is None


def test_another_process_compiles(folder: Path) -> None:
    folder.mkdir()
    (folder / "began").touch()
    assert compilation_since(time.time() - 1) == Compilation(here=False, done=0)


def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    folder.parent.joinpath("kernels").write_text("a file")
    begin()
    assert compilation_since(time.time()) == Compilation(here=True, done=0)
    end()
    assert compilation_since(time.time()) is None
