"""The XML file that Sony's cameras write beside a clip (NonRealTimeMeta).

It names lens and camera, tells how long the clip is and how large its pictures are. Cameras with
a lens that talks also write focal length and focus distance at the start, each with its unit; of
every frame tells the CSV that Sony's tools export. There the lens is called by a number, which the
XML has as ``LensAttributes``.
"""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import reading
from influx_wrap.formats.lens_text import make_rig, parsed_fd, parsed_lfl
from influx_wrap.model.lens_metadata import LensMetadata, ReportedClip

ROOT = "NonRealTimeMeta"
LFL_ITEMS = ("LensZoomActualFocalLength", "FocalLength")
FD_ITEMS = ("FocusPositionFromImagePlane", "FocusDistance")


def sony_xml_beside(path: Path) -> Path | None:
    """The only XML file of the same folder whose name begins as that of a CSV file does."""
    stem = path.stem.casefold()
    if not stem:
        return None
    with reading(path.parent):
        found = [
            file
            for file in path.parent.iterdir()
            if file.suffix.lower() == ".xml" and file.stem.casefold().startswith(stem)
        ]
    return found[0] if len(found) == 1 and found[0].is_file() else None


def read_sony_xml(path: Path, text: str) -> LensMetadata:
    """The setting at the start of a clip, NaN where it is not told, and what filmed it."""
    root = _parsed(path, text)
    elements = {_local(element.tag): element for element in reversed(list(root.iter()))}
    items: dict[str, str] = {}
    for element in root.iter():
        if _local(element.tag) == "Item":
            items.setdefault(element.get("name", ""), element.get("value", "").strip())

    def attribute(tag: str, name: str) -> str:
        element = elements.get(tag)
        return "" if element is None else element.get(name, "").strip()

    def item(names: tuple[str, ...]) -> tuple[str, str]:
        return next(((name, items[name]) for name in names if items.get(name)), (names[0], ""))

    lens, number = attribute("Lens", "modelName"), items.get("LensAttributes", "")
    camera = attribute("Camera", "modelName") or attribute("Device", "modelName")
    size = [attribute("VideoLayout", side) for side in ("pixel", "numOfVerticalLine")]
    rig = make_rig([lens or number], [camera], [size], [(lens, number)])
    duration = attribute("Duration", "value")
    n = int(duration) if duration.isascii() and duration.isdigit() and len(duration) < 10 else None
    fps = _rate(attribute("LtcChangeTable", "tcFps")) or _rate(attribute("VideoFrame", "formatFps"))
    lfl_mm = parsed_lfl(str(path), *item(LFL_ITEMS))
    fd_m = parsed_fd(str(path), *item(FD_ITEMS), None)
    return LensMetadata(
        np.zeros(1, dtype=np.int64),
        np.array([lfl_mm]),
        np.array([fd_m]),
        rig,
        ReportedClip(n or None, fps),
        notes=(
            f"{path.name} tells the setting at the start of a clip: it is taken for that of its "
            "first frame only. Of all frames tells the CSV file that Sony's tools export.",
        ),
    )


def is_sony_xml(text: str) -> bool:
    """Whether a text may be such a file."""
    return text.lstrip().startswith("<") and ROOT in text


def check_has_lens(path: Path, metadata: LensMetadata) -> LensMetadata:
    """The metadata of an XML file alone, refused if it tells neither LFL nor FD."""
    if math.isnan(metadata.lfl_mm[0]) and math.isnan(metadata.fd_m[0]):
        raise InputError(
            f"{path} names lens and camera, but tells neither LFL nor FD: give the CSV file with a "
            "line per frame that Sony's tools export, and leave this one beside it."
        )
    return metadata


def _parsed(path: Path, text: str) -> ElementTree.Element:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError(f"{path}: a camera writes no XML that defines entities: it is not read.")
    try:
        root = ElementTree.fromstring(text.lstrip())
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"{path}: this is not XML: {error}. Is the file complete?") from None
    if _local(root.tag) != ROOT:
        raise InputError(f"{path}: this is XML, but not of a Sony clip ({ROOT}).")
    return root


def _local(tag: object) -> str:
    """A tag without its namespace."""
    return str(tag).rpartition("}")[2]


def _rate(text: str) -> float | None:
    """Frames a second from ``24``, ``23.98p`` or ``24000/1001``."""
    number, _, divisor = text.rstrip("pPiI").partition("/")
    try:
        rate = float(number) / float(divisor or 1)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return rate if 0 < rate < math.inf else None
