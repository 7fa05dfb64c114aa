"""What a result was made from: versions, recipe, seed and the hashes of its inputs.

Two results with the same provenance are the same bytes, so one of them need not be computed.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from types import MappingProxyType
from typing import Any

from influx_wrap import __version__
from influx_wrap.compute import arithmetic

LIBRARIES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "numba": "numba",
    "opencv": "opencv-python-headless",
}


def provenance(
    *, recipe: Mapping[str, Any], seed: int, inputs: Mapping[str, str | None], **settings: Any
) -> dict[str, Any]:
    """What a result was made from, as plain data; ``inputs`` are hashes, None where missing."""
    return {
        **versions(),
        "seed": seed,
        "recipe": dict(recipe),
        "inputs": dict(inputs),
        **settings,
    }


@cache
def versions() -> Mapping[str, str]:
    """Of influx_wrap, Python and the libraries on which the digits of a result depend, and the
    arithmetic they work with."""
    libraries = {name: metadata.version(package) for name, package in LIBRARIES.items()}
    own = {"influx_wrap": __version__, "python": platform.python_version()}
    return MappingProxyType({**own, **libraries, "arithmetic": arithmetic.name()})
