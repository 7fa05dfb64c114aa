"""The cache of compiled kernels: used while it is whole, made anew when it is not."""

import importlib.util
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.compute import jit as module
from influx_wrap.compute import kernel_cache

SOURCE = """
from influx_wrap.compute.jit import jit


@jit
def doubled(x):
    return 2.0 * x
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """The kernel, as a new process would have it, with a cache of its own."""
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path / "cache")
    source = tmp_path / "a_kernels.py"
    source.write_text(SOURCE)

    def loaded() -> Any:
        spec = importlib.util.spec_from_file_location("a_kernels", source)
        assert spec is not None
        assert spec.loader is not None
        kernels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(kernels)
        return kernels.doubled

    return loaded


def files(folder: Path) -> dict[str, Path]:
    """The index (``.nbi``) and the machine code (``.nbc``)."""
    return {path.suffix: path for path in (folder / "cache").rglob("*.nb*")}


def hits(kernel: Any) -> int:
    assert kernel(21.0) == 42
    return sum(kernel.stats.cache_hits.values())


def test_it_is_used(load: Callable[[], Any], tmp_path: Path) -> None:
    assert hits(load()) == 0
    assert set(files(tmp_path)) == {".nbi", ".nbc"}
    assert hits(load()) == 1


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "one byte short": lambda data: data[:-1],
    "garbage": lambda data: b"garbage",
    "zeros": lambda data: bytes(len(data)),
    "longer": lambda data: data + b"\0",
    "a bit": lambda data: bytes([*data[:300], data[300] ^ 4, *data[301:]]),
    "another pickle": lambda data: pickle.dumps(os.getcwd),
}


@pytest.mark.parametrize("which", [".nbi", ".nbc"])
@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_one_is_made_anew(
    load: Callable[[], Any], tmp_path: Path, which: str, how: str
) -> None:
    hits(load())
    path = files(tmp_path)[which]
    data = path.read_bytes()
    path.write_bytes(DAMAGE[how](data) if len(data) > 301 or how != "a bit" else data[:-1])
    assert hits(load()) == 0, "it was taken as it is"
    assert hits(load()) == 1, "it was not made anew"


def test_machine_code_with_single_bits_flipped(load: Callable[[], Any], tmp_path: Path) -> None:
    """None of them is run."""
    hits(load())
    path = files(tmp_path)[".nbc"]
    data, rng = path.read_bytes(), np.random.default_rng(0)
    for at in rng.integers(len(data), size=200).tolist():
        spoiled = bytearray(data)
        spoiled[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(spoiled)
        with pytest.raises(OSError, match="is damaged"):
            module._whole(str(path))


def test_a_folder_that_cannot_be_written(load: Callable[[], Any], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert hits(load()) == 0


def test_a_full_disk(
    load: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel works all the same."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module._Files, "_save_index", full)
    assert hits(load()) == 0
    assert hits(load()) == 0
