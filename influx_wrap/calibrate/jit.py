"""Compiled functions, kept on disk for the next process.

numba's own cache looks only at the file a function is in. Kernels here build on each
other across files, so a change in one would leave stale machine code behind in the
others; the cache is therefore kept in a folder named after the sources of all of them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

_HERE = Path(__file__).parent
_SOURCES = ("jit.py", "problem.py", "kernels.py", "incremental_kernels.py")


def _cache_folder() -> Path:
    digest = hashlib.sha256(numba.__version__.encode())
    for name in _SOURCES:
        digest.update((_HERE / name).read_bytes())
    if os.access(_HERE, os.W_OK):
        base = _HERE / "__pycache__"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "influx_wrap"
    return base / f"kernels-{digest.hexdigest()[:16]}"


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
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


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with IEEE arithmetic."""
    return _compiled(function)


def fast_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with sums in any order, so that loops become SIMD code; NaN and inf still work."""
    return _compiled(function, fastmath={"reassoc", "contract", "arcp", "nsz"})
