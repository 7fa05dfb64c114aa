"""ARRI's own recordings, by ARRI's own tool."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import PICTURES, reading, write_bytes
from influx_wrap.model.arrays import Picture
from influx_wrap.observe.frames import FrameSource, TruncatedInput
from influx_wrap.observe.stills import Stills

ARRI = (".ari", ".arx", ".mxf")
MXF_HEADER_BYTES = 1 << 20


def is_arriraw(path: Path) -> bool:
    """True for ARRI's own files, and for MXF files that say they come from ARRI's camera.

    FFmpeg cannot decode those; another MXF file that it cannot decode is damaged.
    """
    suffix = path.suffix.lower()
    if suffix != ".mxf":
        return suffix in ARRI
    with reading(path), path.open("rb") as file:
        header = file.read(MXF_HEADER_BYTES)
    return any("ARRI".encode(coding) in header for coding in ("ascii", "utf-16-be", "utf-16-le"))


def export_metadata(clip: Path, out: Path) -> None:
    """Write the lens metadata of an ARRI clip to ``out``, a JSON file, by ARRI's own tool."""
    if not clip.is_file():
        raise InputError(f"{clip} does not exist.")
    with tempfile.TemporaryDirectory(prefix="influx-art-") as folder:
        made = Path(folder) / "metadata.json"
        done = subprocess.run(
            [_art_cmd(clip), "export", "--input", str(clip), "--output", str(made)],
            capture_output=True,
            text=True,
            errors="replace",
        )
        if done.returncode != 0 or not made.exists():
            raise InputError(
                f"{clip}: art-cmd made no metadata of it (it said: {_last_words(done)})."
            )
        write_bytes(out, made.read_bytes())


class Arriraw(FrameSource):
    """An ARRIRAW clip, developed by ARRI's own tool into a temporary folder of TIFFs.

    The folder is removed together with the source.
    """

    def __init__(self, path: Path, colour: bool) -> None:
        self.path = path
        self.colour = colour
        tool = _art_cmd(path)
        self._temporary = tempfile.TemporaryDirectory(prefix="influx-art-")
        folder = Path(self._temporary.name)
        done = subprocess.run(
            [
                *(tool, "process", "--input", str(path)),
                *("--target-colorspace", "Rec.709/D65/BT.1886"),
                *("--output", str(folder / "%07d.tiff")),
            ],
            capture_output=True,
            text=True,
            errors="replace",
        )
        files = [file for file in folder.iterdir() if file.suffix.lower() in PICTURES]
        if not files:
            said = _last_words(done)
            raise InputError(f"{path}: art-cmd made no frame of it (it said: {said}).")
        self._pictures = Stills(folder, files, colour)
        self._failed = done.returncode != 0
        self.image_size = self._pictures.image_size
        self.n_frames = None if self._failed else len(files)

    def _frames(self, start: int, stop: int | None) -> Iterator[tuple[int, Picture]]:
        n_read = start
        try:
            for index, picture in self._pictures.frames(start, stop):
                n_read = index + 1
                yield index, picture
        except TruncatedInput as error:
            raise TruncatedInput(self.path, error.n_read, "art-cmd wrote a damaged frame") from None
        if self._failed:
            raise TruncatedInput(self.path, n_read, "art-cmd stopped with an error")


def _art_cmd(path: Path) -> str:
    """ARRI's own tool, for a clip that needs it."""
    tool = shutil.which("art-cmd")
    if tool is None:
        raise InputError(
            f"{path} cannot be read by FFmpeg alone. If it is an ARRI clip, install art-cmd, "
            "the command line version of the ARRI Reference Tool (www.arri.com, Learn & Help, "
            "Tools), and put it on the PATH."
        )
    return tool


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines()
    return lines[-1] if lines else "nothing"
