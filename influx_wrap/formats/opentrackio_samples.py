"""OpenTrackIO samples: one JSON file, a file with a sample per line, or a folder of files.

A sample tells ``lens.pinholeFocalLength`` in mm and ``lens.focusDistance`` in m. The pinhole focal
length is what the projection has, breathing included; of a lens whose scale is what its table
knows, it is taken for the LFL, and a note says so. Our own exports also carry the LFL, as the only
number of ``lens.custom``, and leave out the distance of a lens focused at infinity; they are known
by their sample's identifier, which follows from those of source and frame.

A source counts its samples by ``timing.sequenceNumber``, which begins again after 65535. A tracker
that samples several times a frame says so by its rates.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from influx_wrap.errors import InputError
from influx_wrap.formats.files import Record, natural_key, reading
from influx_wrap.formats.json_text import parse_json_text
from influx_wrap.formats.lens_text import LEAST_FD_M, MOST_LFL_MM, make_rig, read_any_text
from influx_wrap.model.arrays import IntArray
from influx_wrap.model.lens_metadata import LensMetadata, ReportedClip
from influx_wrap.model.rig import ReportedRig

_ROUND = 65536
"""After as many samples their numbers begin again."""


@dataclass(frozen=True)
class _Sample:
    """What counts of a sample; rates are frames and samples a second, None if not stated."""

    lfl_mm: float
    fd_m: float
    number: int | None
    source: object
    is_ours: bool
    rates: tuple[float | None, float | None]


def is_sample(value: object) -> bool:
    """Whether a JSON value looks like a sample."""
    if not isinstance(value, Mapping):
        return False
    protocol = value.get("protocol")
    if isinstance(protocol, Mapping) and protocol.get("name") == "OpenTrackIO":
        return True
    lens = value.get("lens")
    return isinstance(lens, Mapping) and "sampleId" in value and "sourceId" in value


def read_sample_folder(path: Path) -> LensMetadata:
    """Samples of a folder's files, in the order of their names."""
    with reading(path):
        files = [file for file in path.iterdir() if file.suffix.lower() in (".json", ".jsonl")]
    files = [file for file in files if not file.name.startswith(".")]
    if not files:
        raise InputError(
            f"{path} is a folder without OpenTrackIO samples (.json, .jsonl): give the file of "
            "lens metadata."
        )
    found: list[tuple[str, object]] = []
    for file in sorted(files, key=lambda one: natural_key(one.name)):
        text = read_any_text(file)
        lines = sample_lines(file, text)
        found += [(str(file), _parsed(text, str(file)))] if lines is None else lines
    return read_samples(path, found)


def sample_lines(path: Path, text: str) -> list[tuple[str, object]] | None:
    """JSON values of a text that has one per line, with where they are; None if it has not."""
    lines = [(k, line) for k, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if len(lines) < 2 and path.suffix.lower() != ".jsonl":
        return None
    if not all(line.lstrip().startswith("{") for _, line in lines[:2]):
        return None
    result: list[tuple[str, object]] = []
    for k, line in lines:
        where = f"{path}, line {k}"
        try:
            result.append((where, _parsed(line, where)))
        except InputError:
            if not result:
                return None
            raise InputError(f"{where}: this is not JSON. Is the file complete?") from None
    return result


def _parsed(text: str, where: str) -> object:
    return parse_json_text(text.encode(), where, bare_nan=True)


def read_samples(path: Path, values: Sequence[tuple[str, object]]) -> LensMetadata:
    """LFL and FD of all samples, whose order is that of their frames."""
    samples, records = [], []
    for where, value in values:
        if not is_sample(value) or not isinstance(value, dict):
            raise InputError(f"{where} is no OpenTrackIO sample.")
        records.append(Record(where, value))
        samples.append(_sample(records[-1]))
    sources = {str(sample.source) for sample in samples if sample.source is not None}
    if len(sources) > 1:
        raise InputError(
            f"{path} has samples of {len(sources)} sources: give those of one camera alone."
        )
    notes = []
    ours = all(sample.is_ours for sample in samples)
    numbers = [sample.number for sample in samples]
    kept, frames = _frames(path, numbers, from_first=not ours)
    per_frame = _samples_per_frame(path, samples)
    if per_frame > 1:
        inside = frames % per_frame == 0
        kept, frames = kept[inside], frames[inside] // per_frame
        notes.append(
            f"There are {per_frame} samples a frame by the rates: the first of each frame is used."
        )
    if not ours:
        notes.append(
            "OpenTrackIO tells the pinhole focal length, breathing included: it is taken for the "
            "LFL."
        )
    return LensMetadata(
        frames,
        np.array([samples[k].lfl_mm for k in kept.tolist()]),
        np.array([samples[k].fd_m for k in kept.tolist()]),
        _rig(records),
        ReportedClip(fps=next((s.rates[0] for s in samples if s.rates[0] is not None), None)),
        notes=tuple(notes),
    )


def _sample(record: Record) -> _Sample:
    lens = _inner(record, "lens")
    timing = _inner(record, "timing")
    camera = _inner(_inner(record, "static"), "camera")
    number = timing.values.get("sequenceNumber")
    if number is not None:
        number = timing.integer("sequenceNumber", at_least=0, at_most=10**15)
    is_ours = _is_ours(record.values, number, camera.values.get("activeSensorResolution"))
    lfl_mm = _length(lens, "pinholeFocalLength", 0.0, MOST_LFL_MM)
    fd_m = _length(lens, "focusDistance", LEAST_FD_M, math.inf)
    custom = lens.values.get("custom")
    if is_ours and isinstance(custom, list) and custom:
        lfl_mm = _length(Record(lens.where, {"custom[0]": custom[0]}), "custom[0]", 0, MOST_LFL_MM)
        fd_m = math.inf if "focusDistance" not in lens.values else fd_m
    rates = _rate(camera, "captureFrameRate"), _rate(timing, "sampleRate")
    return _Sample(lfl_mm, fd_m, number, record.values.get("sourceId"), is_ours, rates)


def _inner(record: Record, key: str) -> Record:
    """A mapping inside another; an empty one if there is none."""
    if record.values.get(key) is None:
        return Record(f"{record.where}: {key}", {})
    return record.record(key)


def _length(record: Record, key: str, least: float, most: float) -> float:
    """A positive number; NaN if there is none."""
    value = record.values.get(key)
    if isinstance(value, list) and len(value) == 1:
        record = Record(record.where, {key: value[0]})
        value = value[0]
    if value is None:
        return math.nan
    if isinstance(value, str) and value.casefold() in ("inf", "infinity"):
        number = math.inf
    else:
        number = record.number(key, infinite=True)
    if number == 0:
        return math.nan
    if number < least or number > most or number < 0:
        raise record.fault(key, f"is no such length: {number:g}.")
    return number


def _rate(record: Record, key: str) -> float | None:
    """A rate as {num, denom}; None if there is none."""
    value = record.values.get(key)
    if not isinstance(value, Mapping):
        return None
    number, divisor = value.get("num"), value.get("denom", 1)
    if not all(type(part) is int and 0 < part < 10**9 for part in (number, divisor)):
        return None
    return float(number / divisor)


def _is_ours(sample: Mapping[str, object], number: int | None, size: object) -> bool:
    """Whether a sample's identifier is the one that our export gives it, by its frame's number
    and, if it may have another size than the clip, that."""
    try:
        source = uuid.UUID(str(sample.get("sourceId")).removeprefix("urn:uuid:"))
    except ValueError:
        return False
    names = [str(number)]
    sides = [size.get(side) for side in ("width", "height")] if isinstance(size, Mapping) else []
    if sides and all(type(side) is int and 0 < side < 10**9 for side in sides):
        names.append(f"{number} {sides[0]}x{sides[1]}")
    return sample.get("sampleId") in [uuid.uuid5(source, name).urn for name in names]


def _frames(
    path: Path, numbers: Sequence[int | None], *, from_first: bool
) -> tuple[IntArray, IntArray]:
    """Places of samples (m,) and the frames (m,) that they are of, by number if all have one.

    Our exports number frames as the clip does; other sources begin anywhere.
    """
    n = len(numbers)
    counts = np.array([number for number in numbers if number is not None], dtype=np.int64)
    if len(counts) < n or len(np.unique(counts)) == 1:
        return np.arange(n), np.arange(n)
    counts += _ROUND * np.cumsum(np.diff(counts, prepend=counts[0]) < -_ROUND // 2)
    order = np.argsort(counts, kind="stable")
    counts = counts[order]
    same = np.flatnonzero(np.diff(counts) == 0)
    if len(same):
        raise InputError(f"{path}: two samples have the sequenceNumber {counts[same[0]]}.")
    return order, counts - counts[0] if from_first else counts


def _samples_per_frame(path: Path, samples: Sequence[_Sample]) -> int:
    """How many samples a frame has by the rates of the first sample that states both."""
    for sample in samples:
        per_second, samples_per_second = sample.rates
        if per_second is not None and samples_per_second is not None:
            ratio = samples_per_second / per_second
            if abs(ratio - round(ratio)) > 1e-3 * ratio or not 1 <= round(ratio) <= 1000:
                raise InputError(
                    f"{path}: {samples_per_second:g} samples a second of a camera with "
                    f"{per_second:g} frames: which sample a frame has, nobody can tell. Export one "
                    "sample per frame."
                )
            return round(ratio)
    return 1


def _rig(records: Sequence[Record]) -> ReportedRig:
    """Lens, camera and size of pictures as the samples' static parts say."""
    lenses: list[object] = []
    cameras: list[object] = []
    sizes: list[tuple[object, object]] = []
    aliases: list[tuple[object, object]] = []
    for record in records:
        static = record.values.get("static")
        if not isinstance(static, Mapping):
            continue
        for key, models in (("lens", lenses), ("camera", cameras)):
            device = static.get(key)
            if isinstance(device, Mapping):
                models.append(device.get("model"))
                aliases.append((device.get("model"), f"{device.get('make')} {models[-1]}"))
        camera = static.get("camera")
        size = camera.get("activeSensorResolution") if isinstance(camera, Mapping) else None
        if isinstance(size, Mapping):
            sizes.append((size.get("width"), size.get("height")))
    return make_rig(lenses, cameras, list(dict.fromkeys(map(_hashable, sizes))), aliases)


def _hashable(size: Sequence[object]) -> tuple[object, ...]:
    return tuple(side if isinstance(side, int | str) else None for side in size)
