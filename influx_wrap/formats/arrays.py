"""The one reader of NumPy's ``.npz`` files, within limits.

A ``.npz`` is a zip file: a few kilobytes of it may promise, or become, more than there is memory.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 1 << 28
"""Of all arrays of a file, unpacked."""


def read_arrays(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]] | None:
    """The arrays of these names; None if the file is not there, or is not whole and sane."""
    try:
        with zipfile.ZipFile(path) as file:
            members = {name: file.getinfo(f"{name}.npy") for name in names}
            if sum(member.file_size for member in members.values()) > MOST_BYTES:
                return None
            # Reading a member ends at the size that was just looked at, whatever is packed in it.
            return {name: _array(file.read(member)) for name, member in members.items()}
    except (OSError, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError):
        return None
    except (zipfile.BadZipFile, zlib.error, MemoryError, OverflowError):
        return None


def _array(data: bytes) -> NDArray[Any]:
    stream = io.BytesIO(data)
    major, _ = np.lib.format.read_magic(stream)
    read_header = (
        np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    )
    try:
        shape, is_fortran, dtype = read_header(stream)
    except Exception as error:
        # A header is an expression of Python's, whose parsers fail in many ways.
        raise ValueError(f"its header is damaged: {error}") from None
    if dtype.hasobject:
        raise ValueError("objects are not read")
    # Counted as Python counts, which does not overflow.
    n_bytes = dtype.itemsize
    for side in shape:
        n_bytes *= side
    rest = data[stream.tell() :]
    if n_bytes != len(rest) or any(side < 0 for side in shape):
        raise ValueError("it is not as long as it says")
    array: NDArray[Any] = np.frombuffer(rest, dtype) if n_bytes else np.empty(0, dtype)
    return array.reshape(shape, order="F" if is_fortran else "C").copy()
