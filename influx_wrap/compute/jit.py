"""Compiled functions, kept on disk for the next process.

numba's own cache looks only at the file a function is in. Kernels here build on each other
across files, so a change in one would leave stale machine code behind in the others; the cache
is therefore kept in a folder named after the sources of all of them, the files ``*kernels.py``.

What is loaded from there is run as it is, so every file of the cache ends with a hash of its
content: a damaged one counts as missing, and is made anew.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from influx_wrap.compute import kernel_cache
from influx_wrap.compute.kernel_cache import KERNELS

Function = Callable[..., Any]

_DIGEST_BYTES = hashlib.sha256().digest_size


class _Files(IndexDataCacheFile):
    """A kernel's index and its machine code, each with a hash at its end."""

    def _dump(self, obj: Any) -> bytes:
        content: bytes = super()._dump(obj)
        return content + hashlib.sha256(content).digest()

    def _load_index(self) -> dict[Any, str]:
        try:
            stamp, overloads = _whole(self._index_path)
        except (OSError, TypeError, ValueError):
            return {}
        return overloads if stamp == self._source_stamp else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._source_stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        return _whole(self._data_path(name))


class _Cache(FunctionCache):
    """A kernel's cache, which is a help and never a hindrance."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self._cache_file = _Files(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code, or ``None``: it is compiled next, then."""
        loaded = super().load_overload(sig, target_context)
        if loaded is None:
            kernel_cache.begin()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code, unless the disk is full."""
        kernel_cache.end()
        with suppress(OSError):
            super().save_overload(sig, data)


def _whole(path: str) -> Any:
    """What a file of the cache holds; ``OSError`` if it is not as it was written."""
    data = Path(path).read_bytes()
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        raise OSError(f"{path} is damaged")
    return pickle.loads(content)


def _check_source(function: Function) -> None:
    assert function.__code__.co_filename.endswith(KERNELS), "the cache does not see its source"


def _compiled(function: Function, **options: Any) -> Function:
    _check_source(function)
    options |= {"nogil": True, "error_model": "numpy"}
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(kernel_cache.cache_folder())
    try:
        compiled: Any = numba.njit(**options)(function)
        # No folder can be written: compiled code lives as long as the process.
        with suppress(RuntimeError, OSError):
            compiled._cache = _Cache(function)
        return compiled
    finally:
        config.CACHE_DIR = before


def jit(function: Function) -> Function:
    """Compile with IEEE arithmetic."""
    return _compiled(function)


def fused_jit(function: Function) -> Function:
    """Compile with a product and a sum rounded at once."""
    return _compiled(function, fastmath={"contract"})


def fast_jit(function: Function) -> Function:
    """Compile with sums in any order, so that loops become SIMD code; NaN and inf still work."""
    return _compiled(function, fastmath={"reassoc", "contract", "arcp", "nsz"})


def inlined(function: Function) -> Function:
    """Make it part of each kernel that calls it, compiled with that kernel's arithmetic."""
    _check_source(function)
    return numba.njit(inline="always", error_model="numpy")(function)
