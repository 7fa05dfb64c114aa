"""The same arithmetic on every x86-64 processor, so that a result has the same bytes on each.

numba, OpenBLAS, numpy and OpenCV choose instructions by the processor they find. Sums then run
in another order and products are rounded at another place: the last digit of a result differs,
and with it, where two rollouts are almost equal, which one is chosen. Here all of them are told
to work as for an x86-64-v3 processor (AVX2 and FMA: Intel's since 2013, AMD's since 2015),
whatever more the one at hand can do.

Libraries read these settings when they are loaded, so ``influx_wrap`` makes them first of all.
Child processes inherit them. Where numpy was imported before, or on another processor, the
libraries keep their own choice, and ``name`` says which, in the provenance of every result.
"""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from pathlib import Path

LEVEL = "x86-64-v3"
NEEDED_FLAGS = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"})

ENVIRONMENT = {
    "NUMBA_CPU_NAME": LEVEL,
    "NUMBA_CPU_FEATURES": "",
    "OPENBLAS_CORETYPE": "Haswell",
    # Groups of instructions beyond the level, under their names in numpy 1 and 2.
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL "
    "AVX512_SPR X86_V4",
    "OPENCV_CPU_DISABLE": "AVX512-SKX",
    "OPENCV_IPP": "avx2",
}
"""What the libraries are told, before they are loaded."""

_fixed = False


def settle() -> None:
    """Tell the libraries, unless the processor cannot do what they would be told."""
    global _fixed
    if not _has_level():
        return
    # All of them load numpy. A process whose parent settled was told before it began.
    _fixed = "numpy" not in sys.modules or _was_told()
    os.environ.update(ENVIRONMENT)


@cache
def name() -> str:
    """Of the arithmetic in this process: ``x86-64-v3``, or what OpenBLAS chose by itself."""
    if _fixed:
        return LEVEL
    import numpy  # noqa: F401 - loads the OpenBLAS that is asked
    from threadpoolctl import threadpool_info

    chosen = {
        str(library["architecture"]) for library in threadpool_info() if "architecture" in library
    }
    return " and ".join(sorted(chosen)) or platform.machine()


def _was_told() -> bool:
    """Whether this process began with the settings; ``os.environ`` may have them since."""
    try:
        began_with = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return all(f"{key}={value}".encode() in began_with for key, value in ENVIRONMENT.items())


def _has_level() -> bool:
    if platform.machine() != "x86_64":
        return False
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as file:
            flags = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return False
    return set(flags.split()) >= NEEDED_FLAGS
