"""What is printed on terminals that do not know all characters: +- in place of the sign for it.

Python writes UTF-8 even where ``LANG=C`` says that a terminal knows ASCII alone, and ends with a
traceback where an encoding lacks a character. Here both get the nearest plain text.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
from collections.abc import Mapping
from pathlib import Path

PLAIN = {
    "±": "+-", "×": "x", "σ": "sigma", "µ": "u", "μ": "u", "°": " deg", "–": "-", "—": "-",
    "−": "-", "…": "...", "→": "->", "≤": "<=", "≥": ">=", "·": ".", "‘": "'", "’": "'",
    "“": '"', "”": '"', "²": "^2", "█": "#", "━": "-",
}  # fmt: skip


def settle_streams() -> None:
    """Have standard output and error write nothing that a terminal cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_plain = _is_plain(_environment()) or codecs.lookup(stream.encoding).name == "ascii"
            encoding = _ASCII.name if is_plain else stream.encoding
            stream.reconfigure(encoding=encoding, errors=_HANDLER)


def _is_plain(environment: Mapping[str, str]) -> bool:
    """Whether the locale says ASCII, and nobody has told Python otherwise."""
    if environment.get("PYTHONIOENCODING") or environment.get("PYTHONUTF8") == "1":
        return False
    named = [environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    return next((name for name in named if name), None) in ("C", "POSIX")


def _environment() -> Mapping[str, str]:
    """That of the start: in the locale C, Python sets LC_CTYPE to UTF-8 for itself."""
    try:
        began_with = Path("/proc/self/environ").read_bytes()
    except OSError:
        return os.environ
    pairs = (os.fsdecode(entry).partition("=") for entry in began_with.split(b"\0") if entry)
    return {name: value for name, _, value in pairs}


def _in_plain_text(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(letter: str) -> str:
    if letter in PLAIN:
        return PLAIN[letter]
    bare = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return bare or letter.encode("ascii", "backslashreplace").decode()


def _codec(name: str) -> codecs.CodecInfo | None:
    return _ASCII if name == _ASCII.name else None


_HANDLER = "influx_wrap.plain"
_ascii = codecs.lookup("ascii")
# By its own name: click takes ASCII for a mistake of Python's, and writes UTF-8 all the same.
_ASCII = codecs.CodecInfo(
    name="plain_ascii",
    encode=_ascii.encode,
    decode=_ascii.decode,
    incrementalencoder=_ascii.incrementalencoder,
    incrementaldecoder=_ascii.incrementaldecoder,
    streamreader=_ascii.streamreader,
    streamwriter=_ascii.streamwriter,
)
codecs.register(_codec)
codecs.register_error(_HANDLER, _in_plain_text)
