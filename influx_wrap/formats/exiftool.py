"""What ``exiftool -j`` tells of photographs, and of videos with ``-ee``.

A list with an object per file. Numbers come with units (``24.0 mm``, ``1.26 m``) or, with ``-n``,
without, in mm and m; with ``-G`` a key begins with its group. Photographs are the frames 0, 1, ...
in the order of their names. Of a video, ``-ee -G3`` tells a setting per sample, as ``Doc1``,
``Doc2`` and so on, which are its frames.

Cameras that know the distance only between two bounds (Canon's) tell its middle in 1 / FD, unless
the farther bound is infinite. ``FocalLengthIn35mmFormat`` is no focal length of the lens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import natural_key
from influx_wrap.formats.lens_text import make_rig, middle_fd, parsed_fd, parsed_lfl, quoted_text
from influx_wrap.model.arrays import IntArray
from influx_wrap.model.lens_metadata import Channel, LensMetadata, ReportedClip
from influx_wrap.model.words import counted

FILE_KEY = "SourceFile"
LFL_KEYS = ("FocalLength", "LensFocalLength")
FD_KEYS = ("FocusDistance", "SubjectDistance", "FocusDistance2", "ApproximateFocusDistance")
BOUNDS = ("FocusDistanceLower", "FocusDistanceUpper")
LENS_KEYS = ("LensModel", "LensID", "LensType", "Lens")
SIZE_KEYS = (("ImageWidth", "ImageHeight"), ("ExifImageWidth", "ExifImageHeight"))
_DOCUMENT = re.compile(r"Doc([0-9]{1,8})(?:-[0-9-]+)?")

_Tags = Mapping[str, object]


def is_exiftool(value: object) -> bool:
    """Whether a JSON value is a list of what exiftool tells of files."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(entry, Mapping) and _is_name(entry.get(FILE_KEY)) for entry in value)
    )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def read_exiftool(path: Path, entries: Sequence[Mapping[str, object]]) -> LensMetadata:
    """LFL and FD of photographs in the order of their names, or of a video's samples."""
    files = sorted(entries, key=lambda entry: natural_key(str(entry[FILE_KEY])))
    names = [str(entry[FILE_KEY]) for entry in files]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: {twice[:200]} comes twice.")
    documents = [_documents(entry) for entry in files]
    notes: list[str] = []
    if any(len(found) > 1 for found in documents):
        if len(files) > 1:
            raise InputError(
                f"{path} is of {len(files)} files, and of samples in them: give one video's alone."
            )
        rows = [(f"{path}, Doc{number}", tags) for number, tags in documents[0].items() if number]
        frames = np.array([number - 1 for number in documents[0] if number], dtype=np.int64)
        notes.append(
            f"{quoted_text(names[0])} has {counted(len(rows), 'sample')} (Doc1 and so on), taken "
            "for its frames."
        )
    else:
        rows = [(f"{path}, {name}", found[0]) for name, found in zip(names, documents, strict=True)]
        frames = np.arange(len(rows))
        if len(rows) > 1:
            notes.append(
                f"Frames are the photographs in the order of their names: 0 is "
                f"{quoted_text(names[0])}, {len(rows) - 1} is {quoted_text(names[-1])}."
            )
    return _metadata(rows, frames, documents, notes)


def _metadata(
    rows: Sequence[tuple[str, _Tags]],
    frames: IntArray,
    documents: Sequence[Mapping[int, _Tags]],
    notes: list[str],
) -> LensMetadata:
    lfl_mm = np.array([_lfl_mm(where, tags) for where, tags in rows])
    used, others, wide = [], [], 0
    for where, tags in rows:
        told = [_distance(where, tags, key) for key in FD_KEYS]
        told = [value for value in told if not math.isnan(value)]
        if not told:
            between, is_wide = _between(where, tags)
            wide += is_wide
            told = [between]
        used.append(told[0])
        others.append(told[1] if len(told) > 1 else math.nan)
    channels: tuple[Channel, ...] = ()
    if not np.isnan(others).all():
        channels = (Channel("FD", "the first distance", "the second", np.array(others)),)
    if wide:
        notes.append(
            f"{counted(wide, 'frame')} with a focus between a distance and infinity: no FD."
        )
    every = [tags for found in documents for tags in found.values()]
    lens_names = [_texts(tags, LENS_KEYS) for tags in every]
    rig = make_rig(
        [group[0] for group in lens_names if group],
        [name for tags in every for name in _texts(tags, ("Model",))[:1]],
        [_size(tags) for tags in every],
        [*lens_names, *[_with_make(tags) for tags in every]],
    )
    rate = [_number(tags.get("VideoFrameRate")) for tags in every]
    fps = next((value for value in rate if value is not None), None)
    return LensMetadata(
        frames, lfl_mm, np.array(used), rig, ReportedClip(fps=fps), channels, tuple(notes)
    )


def _documents(entry: Mapping[str, object]) -> dict[int, dict[str, object]]:
    """_Tags without their groups by the number of their sample, 0 of the file itself."""
    found: dict[int, dict[str, object]] = {0: {}}
    for key, value in entry.items():
        *groups, tag = key.split(":")
        numbers = [match for group in groups if (match := _DOCUMENT.fullmatch(group))]
        number = int(numbers[0][1]) if numbers else 0
        if isinstance(value, Mapping):
            value = value.get("num", value.get("val"))
        tags = found.setdefault(number, {})
        # Of a tag in several groups the camera's own notes count less.
        if tag not in tags or groups[:1] in (["EXIF"], ["ExifIFD"]):
            tags[tag] = value
    settings = {*LFL_KEYS, *FD_KEYS, *BOUNDS}
    kept = {n: tags for n, tags in found.items() if n == 0 or settings & set(tags)}
    return dict(sorted(kept.items()))


def _lfl_mm(where: str, tags: _Tags) -> float:
    for key in LFL_KEYS:
        if tags.get(key) is not None:
            value = parsed_lfl(where, key, _text(tags[key]))
            if not math.isnan(value):
                return value
    return math.nan


def _distance(where: str, tags: _Tags, key: str) -> float:
    """A distance in metres, which is what numbers without a unit are in."""
    text = _text(tags.get(key))
    return parsed_fd(where, key, text, "m")


def _between(where: str, tags: _Tags) -> tuple[float, bool]:
    """The middle of two bounds, and whether there is none as the farther one is infinite."""
    near, far = (_distance(where, tags, key) for key in BOUNDS)
    middle = middle_fd(near, far)
    return middle, math.isnan(middle) and math.isinf(far) and not math.isnan(near)


def _text(value: object) -> str:
    """As it would stand in a file; nothing for what is neither text nor number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return value if isinstance(value, str) else repr(value)


def _texts(tags: _Tags, keys: Sequence[str]) -> list[str]:
    """What the tags say that is a name, and no span of focal lengths."""
    values = [tags.get(key) for key in keys]
    texts = [value.strip() for value in values if isinstance(value, str)]
    return [text for text in texts if text and not re.match(r"[0-9.]+(?:-| - )?[0-9.]* ?mm", text)
            and not text.startswith("Unknown")]  # fmt: skip


def _with_make(tags: _Tags) -> list[str]:
    """A camera's name without and with its maker's."""
    make, model = tags.get("Make"), tags.get("Model")
    if not isinstance(make, str) or not isinstance(model, str):
        return []
    return [model, f"{make} {model}"]


def _size(tags: _Tags) -> tuple[object, object]:
    for width, height in SIZE_KEYS:
        if width in tags and height in tags:
            return tags[width], tags[height]
    return None, None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e4:
        return None
    return float(value)
