"""A thousand spoiled files of truth and of metadata: an answer or a sentence, and never a NaN."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from influx_wrap.formats.lut import write_table
from tests.cli.conftest import Invoke
from tests.lut.lenses import fitted_table
from tests.mutated_json import mutated_json, mutated_lines
from tests.mutations import holds_nan

EXPORTS = {"colmap": "c.txt", "nerfstudio": "t.json", "opencv": "c.yml", "opentrackio": "c.jsonl",
           "ulens": "c.ulens", "camchain": "chains"}  # fmt: skip
NAN = re.compile(r"(?<![a-z])nan(?![a-z])")
STATE = {"lensFocalLength": 35000, "lensFocusDistanceMetric": 2000}
CLIP = "frame,lfl_mm,fd_m\n0,35,2.4\n1,36,2.5\n2,36,inf\n4,200,3\n"
EXTRACT = [
    "Lens Model\tCamera Model\tImage Width\tImage Height\tLens Focal Length\tLens Focus Distance\t"
    "Lens Distance Unit",
    *["CN7x17 KAS S/P1\tALEXA Mini\t3424\t2202\t40.0\t4.8\tMeter"] * 3,
]
DEVICE = {
    "metadataSetName": "Lens Device",
    "metadataSetPayload": {"lensModel": "CN7x17 KAS S/P1"},
}
ART: dict[str, Any] = {
    "clipBasedMetadataSets": [
        {
            "metadataSetName": "Sensor State",
            "metadataSetPayload": {"acquisitionRect": {"width": 3424, "height": 2202}},
        }
    ],
    "descriptiveMetadataSets": [DEVICE],
    "frameBasedMetadata": {
        "frames": [
            {"frameId": k, "frameBasedMetadataSets": [{"metadataSetName": "Lens State",
                                                       "metadataSetPayload": STATE}]}
            for k in (3, 4)
        ]
    },
}  # fmt: skip
INFLUX = {
    "frames": {str(k): {"focal_length_mm": 35.0, "focus_distance_m": 2.0} for k in range(3)},
    "lens": "canon17",
    "descriptiveMetadata": [DEVICE],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, invoke: Invoke) -> Path:
    """A folder with a table, the truth of a clip, and a submission that is right."""
    folder = tmp_path_factory.mktemp("made")
    write_table(folder / "lut.json", fitted_table("canon17"))
    (folder / "clip.csv").write_text(CLIP)
    truth = folder / "gt.json"
    invoke("annotate", folder / "clip.csv", "--lut", folder / "lut.json", "--out", truth)
    frames = json.loads(truth.read_text())
    about = {"method_name": "m", "intrinsics_type": "rad-tan", "version": "influx"}
    film = {k: frames[k]["intrinsics_gt_extrapolated"] for k in "012"}
    (folder / "sub.json").write_text(json.dumps({"submission_metadata": about, "film": film}))
    return folder


def assert_decent(result: Result, data: bytes) -> bool:
    """Whether it was done; else a sentence says why not."""
    assert result.exit_code in (0, 2), (result.exception, data)
    assert result.exception is None or isinstance(result.exception, SystemExit), data
    if result.exit_code == 2:
        assert "Error: " in result.stderr
        assert len(result.stderr) < 2000
    return result.exit_code == 0


def test_truth_in_exports(made: Path, tmp_path: Path, invoke: Invoke) -> None:
    gt, done = json.loads((made / "gt.json").read_text()), 0
    for k, data in enumerate(mutated_json(gt, 350, 1)):
        (tmp_path / "gt.json").write_bytes(data)
        to = list(EXPORTS)[k % len(EXPORTS)]
        out = tmp_path / EXPORTS[to]
        if assert_decent(invoke("export", tmp_path / "gt.json", "--to", to, "--out", out), data):
            done += 1
            files = list(out.iterdir()) if out.is_dir() else [out]
            assert not any(NAN.search(file.read_text().lower()) for file in files), data
            shutil.rmtree(out) if out.is_dir() else out.unlink()
    assert done > 25


@pytest.mark.parametrize(("spoiled", "n"), [("gt.json", 200), ("sub.json", 100)])
def test_evaluations(made: Path, tmp_path: Path, invoke: Invoke, spoiled: str, n: int) -> None:
    for name in ("gt.json", "sub.json"):
        shutil.copy(made / name, tmp_path)
    values, out, done = json.loads((made / spoiled).read_text()), tmp_path / "scores", 0
    for data in mutated_json(values, n, 2):
        (tmp_path / spoiled).write_bytes(data)
        options = ("--truth", tmp_path / "gt.json", "--out", out, "--jobs", 1)
        if assert_decent(invoke("evaluate", tmp_path / "sub.json", *options), data):
            done += 1
            assert not holds_nan((out / "scores.json").read_text()), data
    assert done > 5


def metadata_files() -> Iterator[bytes]:
    yield from mutated_lines(CLIP, ",", 100, 3)
    yield from mutated_lines("\n".join(EXTRACT), "\t", 100, 4)
    yield from mutated_json(ART, 100, 5)
    yield from mutated_json(INFLUX, 100, 6)


def test_metadata(made: Path, tmp_path: Path, invoke: Invoke) -> None:
    done = 0
    for k, data in enumerate(metadata_files()):
        (tmp_path / "clip").write_bytes(data)
        out = tmp_path / ("gt.json" if k % 4 else "gt.csv")
        options = ("--lut", made / "lut.json", "--out", out, "--fill-gaps", k % 3)
        if assert_decent(invoke("annotate", tmp_path / "clip", *options), data):
            done += 1
            text = out.read_text()
            assert not NAN.search(text.lower()), data
            assert out.suffix == ".csv" or not holds_nan(text)
    assert done > 50


@pytest.mark.parametrize("digits", [30, 400, 5000])
@pytest.mark.parametrize("key", ["fx", "focal_length_mm", "focus_distance_m", "image_size"])
def test_long_integers(made: Path, tmp_path: Path, invoke: Invoke, key: str, digits: int) -> None:
    text, n = re.subn(
        rf'("{key}": \[?)[^,}}]*', rf"\g<1>{'7' * digits}", (made / "gt.json").read_text()
    )
    assert n
    (tmp_path / "gt.json").write_text(text)
    out = tmp_path / "out"
    for command in (
        ("evaluate", made / "sub.json", "--truth", tmp_path / "gt.json", "--out", out, "--jobs", 1),
        ("export", tmp_path / "gt.json", "--to", "camchain", "--out", out),
    ):
        assert_decent(invoke(*command), text.encode())
