"""Compiled functions, kept on disk for the next process.

numba's own cache looks only at the file a function is in. Kernels here build on each other
across files, so a change in one would leave stale machine code behind in the others; the cache
is therefore kept in a folder named after the sources of all of them, the files ``*kernels.py``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

Function = Callable[..., Any]

_PACKAGE = Path(__file__).parents[1]
_SUFFIX = "kernels.py"


@cache
def _cache_folder() -> Path:
    digest = hashlib.sha256(numba.__version__.encode())
    digest.update(Path(__file__).read_bytes())
    for source in sorted(_PACKAGE.rglob(f"*{_SUFFIX}")):
        digest.update(source.read_bytes())
    if os.access(_PACKAGE, os.W_OK):
        base = _PACKAGE / "__pycache__"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "influx_wrap"
    return base / f"kernels-{digest.hexdigest()[:16]}"


def _check_source(function: Function) -> None:
    assert function.__code__.co_filename.endswith(_SUFFIX), "the cache does not see its source"


def _compiled(function: Function, **options: Any) -> Function:
    _check_source(function)
    options |= {"nogil": True, "error_model": "numpy"}
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(_cache_folder())
    try:
        return numba.njit(cache=True, **options)(function)
    except (RuntimeError, OSError):
        # No folder can be written: compiled code lives as long as the process.
        return numba.njit(**options)(function)
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
