"""Which kind of recording a path is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from influx_wrap.errors import InputError
from influx_wrap.formats.files import PICTURES, reading
from influx_wrap.formats.recording_yaml import VIDEOS
from influx_wrap.model.words import by_reason
from influx_wrap.observe.arriraw import ARRI, Arriraw, is_arriraw
from influx_wrap.observe.frames import FrameSource
from influx_wrap.observe.stills import Stills
from influx_wrap.observe.video import SOFTWARE, VideoFile

_HEIC = "HEIC is not read here, convert to JPEG (with heif-convert, or where the camera exports)"
_RAW = "raw files are not read here, develop them to TIFF without correction of the lens"
_OTHER = "this kind of picture is not read here, convert to PNG or TIFF"
OTHER_PICTURES = {
    **dict.fromkeys((".heic", ".heif", ".hif", ".avif"), _HEIC),
    **dict.fromkeys((".cr2", ".cr3", ".nef", ".arw", ".dng", ".raf", ".orf", ".rw2", ".pef"), _RAW),
    **dict.fromkeys((".bmp", ".webp", ".gif", ".jp2", ".dpx", ".exr", ".pgm", ".ppm"), _OTHER),
}


def open_frames(path: Path, *, colour: bool = False, decoder: str = SOFTWARE) -> FrameSource:
    """The frames of a video file, a folder of pictures, or an ARRIRAW file or folder; a video's by
    a ``decoder``: software, hardware by FFmpeg's name for it, or auto.

    Raises ``GreyInput`` if ``colour`` is wanted and there is none.
    """
    if path.is_dir():
        return _open_folder(path, colour)
    with reading(path):
        path.open("rb").close()
    try:
        return VideoFile(path, colour, decoder)
    except InputError:
        if not is_arriraw(path):
            raise
    return Arriraw(path, colour)


def open_several(paths: Sequence[Path]) -> tuple[list[FrameSource], dict[str, str]]:
    """The recordings among several paths, and files that are not read, with why.

    Folders of photographs and videos are sources of their own, and so are all videos of a folder
    without photographs. Single photographs are put together, those of a folder in one source.
    Raises ``InputError`` if a path is not there, or none can be read.
    """
    sources: list[FrameSource] = []
    photographs: dict[Path, list[Path]] = {}
    unread: dict[str, str] = {}
    for path in dict.fromkeys(paths):
        suffix = path.suffix.lower()
        if path.is_dir():
            sources += _open_whole_folder(path, unread)
        elif suffix not in {*PICTURES, *OTHER_PICTURES}:
            sources.append(open_frames(path))
        else:
            with reading(path):
                path.open("rb").close()
            if suffix in PICTURES:
                photographs.setdefault(path.parent, []).append(path)
            else:
                unread[path.name] = OTHER_PICTURES[suffix]
    sources += [Stills(folder, files, colour=False) for folder, files in photographs.items()]
    if not sources:
        raise InputError(" ".join(f"{text}." for text in by_reason(unread)) or "no path is given.")
    return sources, unread


def _open_whole_folder(path: Path, unread: dict[str, str]) -> list[FrameSource]:
    """Its photographs, or else its videos; videos beside photographs become ``unread``."""
    with reading(path):
        names = sorted(file.name for file in path.iterdir() if not file.name.startswith("."))
    videos = [path / name for name in names if Path(name).suffix.lower() in VIDEOS]
    has_pictures = any(Path(name).suffix.lower() in PICTURES for name in names)
    if not has_pictures and videos and not any(v.suffix.lower() in ARRI for v in videos):
        return [open_frames(video) for video in videos]
    unread.update({v.name: "a video among photographs, give its own path" for v in videos})
    return [open_frames(path)]


def _open_folder(path: Path, colour: bool) -> FrameSource:
    with reading(path):
        files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    pictures = [file for file in files if file.suffix.lower() in PICTURES]
    unread = {
        file.name: OTHER_PICTURES[file.suffix.lower()]
        for file in files
        if file.suffix.lower() in OTHER_PICTURES
    }
    if pictures:
        return Stills(path, pictures, colour, unread)
    if any(file.suffix.lower() in ARRI for file in files):
        return Arriraw(path, colour)
    there = "".join(f" {text[0].upper()}{text[1:]}." for text in by_reason(unread))
    text = f"{path} holds no pictures: {', '.join(PICTURES)} files are needed.{there}"
    within = [folder for folder in files if folder.is_dir() and _has_pictures(folder)]
    if not within:
        raise InputError(text)
    named = " and ".join(map(str, within[:3]))
    raise InputError(f"{text} There are some in {named}.", instead=(str(path), str(within[0])))


def _has_pictures(folder: Path) -> bool:
    try:
        return any(file.suffix.lower() in PICTURES for file in folder.iterdir())
    except OSError:
        return False
