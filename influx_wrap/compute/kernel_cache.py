"""Where compiled kernels are kept, and who is compiling: known without loading numba.

Compiling takes seconds for each kernel, once after an installation. Whoever waits should be told,
also if a process at work for the command does it: a process that begins to compile touches a file
in the cache's folder, and every kernel that is done is a new file there.
"""

from __future__ import annotations

import hashlib
import math
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

KERNELS = "kernels.py"
"""How the name of a module of kernels ends."""

_PACKAGE = Path(__file__).parents[1]
_BEGAN = "began"
_MACHINE_CODE = ".nbc"


@cache
def cache_folder() -> Path:
    """The folder for the kernels as their sources are now."""
    digest = hashlib.sha256(version("numba").encode())
    digest.update((_PACKAGE / "compute" / "jit.py").read_bytes())
    for source in sorted(_PACKAGE.rglob(f"*{KERNELS}")):
        digest.update(source.read_bytes())
    if os.access(_PACKAGE, os.W_OK):
        base = _PACKAGE / "__pycache__"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "influx_wrap"
    return base / f"kernels-{digest.hexdigest()[:16]}"


_compiling = 0


def begin() -> None:
    """A kernel is about to be compiled; others that it calls may begin before it is done."""
    global _compiling
    _compiling += 1
    with suppress(OSError):
        cache_folder().mkdir(parents=True, exist_ok=True)
        (cache_folder() / _BEGAN).touch()


def end() -> None:
    """One of them is compiled."""
    global _compiling
    _compiling -= 1


@dataclass(frozen=True)
class Compilation:
    """What was compiled since some moment, in any process.

    here  whether this process is compiling now
    done  how many kernels are compiled
    """

    here: bool
    done: int


def compilation_since(moment_s: float) -> Compilation | None:
    """``None`` if nothing was compiled after ``moment_s`` (``time.time``)."""
    here = _compiling > 0
    folder = cache_folder()
    if not here and _modified_s(folder / _BEGAN) < moment_s:
        return None
    done = sum(_modified_s(path) >= moment_s for path in folder.glob(f"*/*{_MACHINE_CODE}"))
    return Compilation(here, done)


def _modified_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return -math.inf
