"""Two thousand spoiled files of all cameras: lens metadata that make sense, or a sentence."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from influx_wrap.annotate.channels import describe_channels
from influx_wrap.annotate.delay import undelayed
from influx_wrap.errors import InputError
from influx_wrap.formats.export.opentrackio import samples as exported
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.formats.lut import write_table
from tests.cli.conftest import Invoke
from tests.formats import camera_files as files
from tests.formats.export.clips import make_clip
from tests.formats.test_exiftool import photo
from tests.formats.test_opentrackio_samples import THREE
from tests.lut.lenses import fitted_table
from tests.mutated_json import mutated_json, mutated_lines, mutated_text
from tests.mutations import holds_nan

NAN = re.compile(r"(?<![a-z'])nan(?![a-z])")
EVERY = 16
"""So many files are read for one that also goes through the command line."""
EXTRACT = [
    "Index\tMaster TC\tProject FPS\tLens Model\tImage Width\tImage Height\tLens Focal Length\t"
    "Lens Focus Distance\tLens Distance Unit\tRawEncoderFocus RawLds",
    *[f"{k}\t01:00:00:{k:02d}\t24\tACME\t1920\t1080\t40.0\t{4 + k}.8\tMeter\t{777 + k}"
      for k in range(6)],
]  # fmt: skip
GERMAN = files.VENICE.replace('"', "").replace(",", ";").replace("7.5", "7,5")
ART = {
    "frameBasedMetadata": {
        "frames": [
            {
                "frameId": k,
                "frameBasedMetadataSets": {
                    "Lens State": {
                        "lensFocalLength": 35000,
                        "lensFocusDistanceMetric": 2000,
                        "lensFocusDistanceImperial": 80000,
                        "lensScaleRawEncoderValueFocus": 777 + k,
                    }
                },
            }
            for k in range(3)
        ]
    }
}
VIDEO = {
    "SourceFile": "clip.mp4",
    "Main:VideoFrameRate": 25,
    **{f"Doc{k}:FocalLength": f"{34 + k}.0 mm" for k in range(1, 5)},
    **{f"Doc{k}:FocusDistance": f"{k} m" for k in range(1, 5)},
}
PHOTOS = [
    photo("IMG_9.JPG", FocalLength="24.5 mm", FocusDistance="1.26 m", SubjectDistance="1.3 m"),
    photo("IMG_10.JPG", FocalLength="70.0 mm", FocusDistanceLower="1 m", FocusDistanceUpper="2 m"),
]


def lines_of(samples: list[Any], n: int, seed: int) -> Iterator[bytes]:
    """JSON lines of which one is spoiled."""
    for k, data in enumerate(mutated_json(samples[seed % len(samples)], n, seed)):
        lines = [json.dumps(one).encode() for one in samples]
        lines[k % len(lines)] = data.replace(b"\n", b" ")
        yield b"\n".join(lines)


def spoiled() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Names of files to read, with the files: itself and those beside it."""
    for name, data in (
        ("a.csv", mutated_lines(files.VENICE, ",", 200, 1)),
        ("a.csv", mutated_lines(GERMAN, ";", 150, 2)),
        ("a.frames.csv", mutated_lines(files.RED, ",", 250, 3)),
        ("a.static.csv", mutated_lines(files.RED_STATIC.replace("\ncomma", ""), ",", 100, 4)),
        ("a_Frames.csv", mutated_lines(files.CANON, ",", 150, 5)),
        ("a.csv", mutated_lines("\n".join(EXTRACT), "\t", 200, 6)),
        ("a.json", mutated_json(ART, 100, 16)),
        ("a.xml", mutated_text(files.TALKING_XML, 150, 7)),
        ("a.txt", mutated_text(files.BLACKMAGIC, 200, 8)),
        ("a.csv", mutated_text(files.VENICE, 100, 9)),
        ("a.jsonl", lines_of(THREE, 150, 10)),
        ("a.jsonl", lines_of(exported(make_clip(missing=False)), 100, 11)),
        ("a.json", mutated_json(PHOTOS, 150, 12)),
        ("a.json", mutated_json([VIDEO], 100, 13)),
    ):
        for one in data:
            yield name, {name: one}
    for one in mutated_text(files.TALKING_XML, 100, 14):
        yield "a.csv", {"a.csv": files.VENICE.encode(), "aM01.XML": one}
    for one in mutated_lines(files.RED_STATIC.replace("\ncomma", ""), ",", 100, 15):
        yield "a.frames.csv", {"a.frames.csv": files.RED.encode(), "a.static.csv": one}


@pytest.fixture(scope="module")
def lut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lut") / "lut.json"
    write_table(path, fitted_table("canon17"))
    return path


def check(path: Path, data: dict[str, bytes]) -> bool:
    """Whether it is read, and then makes sense."""
    problem = ""
    try:
        found = read_metadata(path)
        moved = undelayed(found, 0.5)
    except InputError as error:
        problem = str(error)
    if problem:
        assert 10 < len(problem) < 1500, data
        return False
    said = " ".join((*found.notes, *describe_channels(found)))
    assert not NAN.search(said.lower()), (said, data)
    assert (np.diff(found.frame) > 0).all(), data
    assert (found.frame >= 0).all()
    for one in (found, moved):
        assert len(one.frame) == len(one.lfl_mm) == len(one.fd_m) > 0
        assert not (one.lfl_mm <= 0).any(), data
        assert not np.isinf(one.lfl_mm).any(), data
        assert not (one.fd_m <= 0).any(), data
    assert all(len(channel.values) == len(found.frame) for channel in found.channels)
    return True


def test_two_thousand_files(tmp_path: Path, lut: Path, invoke: Invoke) -> None:
    total, read, annotated = 0, 0, 0
    for k, (name, beside) in enumerate(spoiled()):
        folder = tmp_path / "clip"
        folder.mkdir()
        for other, data in beside.items():
            (folder / other).write_bytes(data)
        is_read = check(folder / name, beside)
        total, read = total + 1, read + is_read
        if k % EVERY == 0:
            out = tmp_path / ("gt.json" if k % (2 * EVERY) else "gt.csv")
            options = ("--lut", lut, "--out", out, "--any-lens", "--delay", k % 3)
            result = invoke("annotate", folder / name, *options)
            assert result.exit_code in (0, 2), (result.exception, beside)
            assert is_read or result.exit_code == 2
            assert ("Error: " in result.stderr) == (result.exit_code == 2)
            if result.exit_code == 0:
                annotated += 1
                text = out.read_text().lower()
                assert not NAN.search(text), beside
                assert out.suffix == ".csv" or not holds_nan(text)
        shutil.rmtree(folder)
    assert total >= 2000
    assert 400 < read < 1900
    assert annotated > 20
