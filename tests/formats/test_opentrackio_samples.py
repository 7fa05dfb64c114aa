"""OpenTrackIO samples: a file, lines, a folder; ours give back what they were made from."""

import json
import math
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.errors import InputError
from influx_wrap.formats.export.opentrackio import samples as exported
from influx_wrap.formats.export.opentrackio import write_opentrackio
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.model.rig import ReportedRig
from tests.formats.export.clips import make_clip

SOURCE = "urn:uuid:3a90a5d3-0374-47aa-a308-cfa6c67e937d"


def sample(number: int | None, lens: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A tracker's sample, with the parts that count here and some that do not."""
    timing: dict[str, Any] = {"mode": "internal", "sampleRate": {"num": 25, "denom": 1}}
    if number is not None:
        timing["sequenceNumber"] = number
    return {
        "protocol": {"name": "OpenTrackIO", "version": [1, 0, 1]},
        "sampleId": f"urn:uuid:0a7a7520-3740-439d-aec8-{number or 0:012d}",
        "sourceId": SOURCE,
        "sourceNumber": 1,
        "timing": timing,
        "lens": {"fStop": 4.0, "encoders": {"focus": 0.1}, **lens},
        **more,
    }


STATIC = {
    "static": {
        "camera": {
            "captureFrameRate": {"num": 25, "denom": 1},
            "activeSensorResolution": {"width": 3840, "height": 2160},
            "make": "CameraMaker",
            "model": "Model20",
        },
        "lens": {"make": "LensMaker", "model": "Model15"},
    }
}
THREE = [
    sample(7, {"pinholeFocalLength": 24.305, "focusDistance": 2.5}, **STATIC),
    sample(8, {"pinholeFocalLength": 24.5}),
    sample(10, {"focusDistance": 3}),
]


def as_lines(folder: Path, values: list[Any]) -> Path:
    path = folder / "take.jsonl"
    path.write_text("\n".join(map(json.dumps, values)) + "\n\n")
    return path


def as_list(folder: Path, values: list[Any]) -> Path:
    path = folder / "take.json"
    path.write_text(json.dumps(values), encoding="utf-8-sig")
    return path


def as_folder(folder: Path, values: list[Any]) -> Path:
    """Files whose names sort as numbers do, not as text."""
    path = folder / "take"
    path.mkdir()
    for k, value in enumerate(values):
        (path / f"sample{8 + k}.json").write_text(json.dumps(value, indent=2))
    (path / "readme.txt").write_text("notes")
    return path


WRITERS = [as_lines, as_list, as_folder]
Writer = Callable[[Path, list[Any]], Path]


@pytest.mark.parametrize("write", WRITERS)
def test_samples_of_a_tracker(tmp_path: Path, write: Writer) -> None:
    found = read_metadata(write(tmp_path, THREE))
    assert found.frame.tolist() == [0, 1, 3]
    np.testing.assert_array_equal(found.lfl_mm, [24.305, 24.5, math.nan])
    np.testing.assert_array_equal(found.fd_m, [2.5, math.nan, 3])
    aliases = (("Model15", "LensMaker Model15"), ("Model20", "CameraMaker Model20"))
    assert found.rig == ReportedRig(("Model15",), ("Model20",), ((3840, 2160),), aliases)
    assert found.clip.fps == 25
    assert found.notes == (
        "OpenTrackIO tells the pinhole focal length, breathing included: it is taken for the LFL.",
    )


def test_one_sample(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(THREE[0], indent=1))
    found = read_metadata(tmp_path / "s.json")
    assert (found.frame.tolist(), found.lfl_mm.tolist()) == ([0], [24.305])


@pytest.mark.parametrize("write", WRITERS)
def test_our_own_export(tmp_path: Path, write: Writer) -> None:
    clip = make_clip(missing=False)
    found = read_metadata(write(tmp_path, exported(clip)))
    np.testing.assert_array_equal(found.frame, clip.frames)
    np.testing.assert_array_equal(found.lfl_mm, clip.lfl_mm)
    np.testing.assert_array_equal(found.fd_m, clip.fd_m)
    assert found.rig.image_sizes == (clip.image_size,)
    assert found.notes == ()


def test_our_own_export_in_another_size(tmp_path: Path) -> None:
    """There the identifier follows from the size, too."""
    values = exported(make_clip(missing=False))
    for value in values:
        source, frame = uuid.UUID(str(value["sourceId"])), value["timing"]["sequenceNumber"]  # type: ignore[index]
        value["sampleId"] = uuid.uuid5(source, f"{frame} 3424x2202").urn
    assert read_metadata(as_lines(tmp_path, values)).lfl_mm.tolist()[0] == 17.3


def test_our_own_file(tmp_path: Path) -> None:
    clip = make_clip(missing=False)
    write_opentrackio(clip, tmp_path / "c.jsonl")
    np.testing.assert_array_equal(read_metadata(tmp_path / "c.jsonl").lfl_mm, clip.lfl_mm)


def test_numbers_begin_again(tmp_path: Path) -> None:
    lens = {"pinholeFocalLength": 24.0, "focusDistance": 2.0}
    values = [sample(k % 65536, lens) for k in (65534, 65535, 65536, 65538)]
    assert read_metadata(as_lines(tmp_path, values)).frame.tolist() == [0, 1, 2, 4]


def test_without_numbers(tmp_path: Path) -> None:
    values = [sample(None, {"pinholeFocalLength": 20.0 + k}) for k in range(3)]
    assert read_metadata(as_lines(tmp_path, values)).frame.tolist() == [0, 1, 2]


def test_several_samples_a_frame(tmp_path: Path) -> None:
    values = [sample(k, {"pinholeFocalLength": 20.0 + k}, **STATIC) for k in range(8)]
    for value in values:
        value["timing"]["sampleRate"] = {"num": 100, "denom": 1}
    found = read_metadata(as_lines(tmp_path, values))
    assert found.frame.tolist() == [0, 1]
    assert found.lfl_mm.tolist() == [20, 24]
    assert "4 samples a frame" in found.notes[0]
    for value in values:
        value["timing"]["sampleRate"] = {"num": 60, "denom": 1}
    with pytest.raises(InputError, match="60 samples a second of a camera with 25 frames"):
        read_metadata(as_lines(tmp_path, values))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([THREE[0], {"sourceId": 3}], "line 2 is no OpenTrackIO sample"),
        ([THREE[0], {**THREE[1], "sourceId": "urn:uuid:other"}], "samples of 2 sources"),
        ([THREE[0], THREE[0], *THREE], "two samples have the sequenceNumber 7"),
        ([sample(0, {"pinholeFocalLength": -3})] * 2, "pinholeFocalLength is no such length: -3"),
        ([sample(0, {"focusDistance": "far"})] * 2, "focusDistance must be a number"),
        ([sample(0, {"focusDistance": 1e-5})] * 2, "focusDistance is no such length"),
        ([sample(0, {}), {**THREE[1], "lens": 3}], "line 2: lens must be a mapping"),
    ],
)
def test_refused(tmp_path: Path, values: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_metadata(as_lines(tmp_path, values))


def test_cut_lines_and_empty_folders(tmp_path: Path) -> None:
    path = as_lines(tmp_path, THREE)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(InputError, match="line 3: this is not JSON"):
        read_metadata(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is a folder without OpenTrackIO samples"):
        read_metadata(tmp_path / "empty")
