"""``influx-calib export`` as a user meets it."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from influx_wrap.cli.main import main
from influx_wrap.formats.export import EXPORTS
from influx_wrap.formats.groundtruth import write_ground_truth
from influx_wrap.formats.lut import write_table
from influx_wrap.lut.lookup import make_lookup
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.lens_metadata import LensMetadata
from tests.lut.lenses import breathing_table, fitted_table

ENDINGS = {"opentrackio": "jsonl", "ulens": "ulens", "colmap": "txt", "nerfstudio": "json",
           "usd": "usda", "opencv": "yaml", "camchain": "yaml"}  # fmt: skip


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def write_clip(path: Path, n: int) -> None:
    table = breathing_table("canon17")
    lfl_mm, fd_m = np.linspace(20, 30, n), np.linspace(1.2, 3, n)
    answers = make_lookup(table, "paper").query(lfl_mm, fd_m)
    metadata = LensMetadata(np.arange(n), lfl_mm, fd_m)
    write_ground_truth(path, GroundTruth(metadata, answers.intrinsics, answers.status == 0))


@pytest.mark.parametrize("to", sorted(set(EXPORTS) - {"stmap"}))
def test_a_clip_in_every_format(tmp_path: Path, to: str) -> None:
    write_clip(tmp_path / "gt.json", 1 if to == "camchain" else 3)
    out = tmp_path / f"out.{ENDINGS[to]}"
    result = run("export", tmp_path / "gt.json", "--to", to, "--out", out)
    assert result.exit_code == 0, result.output
    assert out.stat().st_size > 0


def test_a_table_for_unreal(tmp_path: Path) -> None:
    write_table(tmp_path / "lut.json", fitted_table("canon17"))
    out = tmp_path / "canon17.ulens"
    result = run("export", tmp_path / "lut.json", "--to", "ulens", "--out", out)
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["metadata"]["type"] == "LensFile"


def test_nothing_to_export(tmp_path: Path) -> None:
    nothing = {"0": {"intrinsics_gt": None, "intrinsics_gt_extrapolated": None,
                     "lens_metadata": {"focal_length_mm": 24, "focus_distance_m": 2}}}  # fmt: skip
    (tmp_path / "gt.json").write_text(json.dumps(nothing))
    out = tmp_path / "cameras.txt"
    result = run("export", tmp_path / "gt.json", "--to", "colmap", "--out", out)
    assert result.exit_code == 2
    assert "nothing to export" in result.output
    assert not out.exists()


RIG = {"lens": "mine", "camera": "small", "image_size": [1280, 720], "pixel_um": [5.0, 5.0]}
SMALL = {"fx": 1000.0, "fy": 1000.0, "cx": 640.0, "cy": 360.0,
         "k1": 0.0, "k2": 0.0, "p1": 0.0, "p2": 0.0}  # fmt: skip


def small_clip(folder: Path, **extra: object) -> Path:
    """A frame of a camera with 1280 x 720 pixels."""
    lens = {"focal_length_mm": 5, "focus_distance_m": 2}
    frame = {"intrinsics_gt": SMALL, "intrinsics_gt_extrapolated": SMALL, "lens_metadata": lens}
    (folder / "gt.json").write_text(json.dumps({"0": frame | extra}))
    return folder / "gt.json"


def test_the_camera_of_the_file(tmp_path: Path) -> None:
    clip, out = small_clip(tmp_path, filmed_with=RIG), tmp_path / "clip.jsonl"
    result = run("export", clip, "--to", "opentrackio", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    sample = json.loads(out.read_text())
    assert sample["lens"]["pinholeFocalLength"] == pytest.approx(5.0)
    camera = sample["static"]["camera"]
    assert camera["activeSensorResolution"] == {"width": 1280, "height": 720}
    assert camera["activeSensorPhysicalDimensions"]["width"] == pytest.approx(6.4)


def test_a_camera_that_contradicts_the_file(tmp_path: Path) -> None:
    out = tmp_path / "cameras.txt"
    options = ("--to", "colmap", "--out", out, "--camera", "arri-alexa-mini")
    cases = [
        (RIG, ("small", "arri-alexa-mini")),
        (RIG | {"camera": None}, ("1280 x 720", "3424 x 2202")),
        (RIG | {"camera": None, "image_size": [3424, 2202]}, ("5 x 5 um", "8.25")),
    ]
    for rig, words in cases:
        result = run("export", small_clip(tmp_path, filmed_with=rig), *options)
        assert result.exit_code == 2, result.output
        for word in words:
            assert word in result.stderr
        assert not out.exists()
    result = run("export", small_clip(tmp_path, filmed_with=RIG | {"pixel_um": None}), *options[:4])
    assert result.exit_code == 2
    assert "pixels are" in result.stderr


def test_a_table_of_another_camera(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "small.yaml").write_text(
        "kind: camera\nname: small\nsensor_width_mm: 6.4\nsensor_height_mm: 3.6\n"
        "width_px: 1280\nheight_px: 720\n"
    )
    write_table(tmp_path / "lut.json", fitted_table("canon17"))
    result = run("--catalogue", mine, "export", tmp_path / "lut.json", "--to", "ulens",
                 "--out", tmp_path / "out.ulens", "--camera", "small")  # fmt: skip
    assert result.exit_code == 2
    assert "camera arri-alexa-mini, not of --camera small" in result.stderr


def test_a_file_that_does_not_say(tmp_path: Path) -> None:
    """Taken for the camera of InFlux if it can be, with a note; else it is asked for."""
    out = tmp_path / "cameras.txt"
    result = run("export", small_clip(tmp_path), "--to", "colmap", "--out", out)
    assert result.exit_code == 2
    for word in ("640, 360 px", "3424 x 2202", "--camera"):
        assert word in result.stderr
    assert not out.exists()
    write_clip(tmp_path / "gt.json", 2)
    result = run("export", tmp_path / "gt.json", "--to", "colmap", "--out", out)
    assert result.exit_code == 0, result.output
    assert "arri-alexa-mini is assumed, 3424 x 2202 pixels on 28.25 x 18.17 mm" in result.stderr


def test_doubts_are_handed_on(tmp_path: Path) -> None:
    clip = small_clip(tmp_path, filmed_with=RIG | {"doubts": ["the lens is another"]})
    result = run("export", clip, "--to", "colmap", "--out", tmp_path / "cameras.txt")
    assert result.exit_code == 0
    assert "annotated although the lens is another." in result.stderr
