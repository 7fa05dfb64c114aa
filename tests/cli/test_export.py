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
from tests.cli.conftest import assert_mistake
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


NAMES = {"clip": "A001C003", "lens": "mine", "camera": "small"}


def test_another_size(tmp_path: Path) -> None:
    """Proxies of half the size of a crop; the folder is made."""
    clip, out = small_clip(tmp_path, filmed_with=RIG), tmp_path / "new" / "folder" / "cameras.txt"
    options = ("--size", "320x240", "--crop", "640x480+100+50")
    result = run("export", clip, "--to", "colmap", "--out", out, *options)
    assert result.exit_code == 0, result.output
    # fx and fy halve; cx and cy, from the corner, are (640 - 100) / 2 and (360 - 50) / 2.
    line = "0 OPENCV 320 240 500.0 500.0 270.0 155.0 0.0 0.0 0.0 0.0"
    assert out.read_text().splitlines()[-1] == line
    note = "the window 640 x 480 at 100, 50 of the calibrated 1280 x 720, scaled by 0.5."
    assert note in result.stderr
    result = run("export", clip, "--to", "colmap", "--out", out, "--size", "720x720", "--crop",
                 "centre")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert out.read_text().splitlines()[-1].startswith("0 OPENCV 720 720 1000.0 1000.0 360.0 360.0")
    result = run("export", clip, "--to", "colmap", "--out", out, "--size", "640x480", "--stretch")
    assert result.exit_code == 0, result.output
    assert out.read_text().splitlines()[-1].startswith("0 OPENCV 640 480 500.0 666.6666")


@pytest.mark.parametrize("to", sorted(EXPORTS))
def test_every_format_has_a_size(tmp_path: Path, to: str) -> None:
    for module in {"usd": ("pxr",), "stmap": ("OpenEXR",)}.get(to, ()):
        pytest.importorskip(module)
    out = tmp_path / "new" / f"out.{ENDINGS.get(to, 'd')}"
    clip = small_clip(tmp_path, filmed_with=RIG)
    result = run("export", clip, "--to", to, "--out", out, "--size", "64x36")
    assert result.exit_code == 0, result.output
    assert out.exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--size", "640x480"), ("--size", "1281x720"), ("--size", "0x0"), ("--size", "-640x-360"),
        ("--size", "640"), ("--size", "640x360x2"), ("--size", "nanxnan"), ("--size", "1e9x1e9"),
        ("--size", "1000000000x1000000000"), ("--size", f"{'9' * 5000}x1"), ("--size", "6٤0x360"),
        ("--size", "8x4"), ("--size", "640x360", "--crop", "0x0"), ("--crop", "center"),
        ("--crop", "middle"), ("--crop", "1281x720"), ("--crop", "640x360+700+0"),
        ("--crop", "640x360+0+361"), ("--crop", "640x360-5+0"), ("--crop", "640x360+nan+0"),
        ("--crop", "1e9x10"), ("--crop", f"64x36+{'9' * 5000}+0"), ("--crop", "640.5x360"),
        ("--crop", "640x360+1"), ("--size", "640x360", "--crop", "400x400"), ("--stretch",),
        ("--stretch", "--size", "1280x721"), ("--clip", " "),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be(tmp_path: Path, options: tuple[str, ...]) -> None:
    clip, out = small_clip(tmp_path, filmed_with=RIG), tmp_path / "new" / "cameras.txt"
    assert_mistake(run("export", clip, "--to", "colmap", "--out", out, *options))
    assert not out.parent.exists()


def test_names(tmp_path: Path) -> None:
    """What the file says, or --clip, or else the file's name."""
    out = tmp_path / "transforms.json"
    cases = (({"clip": "A001C003"}, (), "A001C003"), ({}, (), "gt"), ({}, ("--clip", "B"), "B"),
             ({"clip": "A001C003"}, ("--clip", "B"), "B"))  # fmt: skip
    for more, options, name in cases:
        clip = small_clip(tmp_path, filmed_with=RIG | more)
        result = run("export", clip, "--to", "nerfstudio", "--out", out, *options)
        assert result.exit_code == 0, result.output
        data = json.loads(out.read_text())
        assert {key: data[key] for key in NAMES} == NAMES | {"clip": name}
    # An assumed camera is not called by its name.
    write_clip(tmp_path / "old.json", 2)
    assert run("export", tmp_path / "old.json", "--to", "nerfstudio", "--out", out).exit_code == 0
    data = json.loads(out.read_text())
    assert data["clip"] == "old"
    assert not {"lens", "camera"} & data.keys()


def test_annotate_says_which_clip(tmp_path: Path) -> None:
    write_table(tmp_path / "lut.json", fitted_table("canon17"))
    (tmp_path / "A001C003.csv").write_text("frame,lfl_mm,fd_m\n0,35,2.4\n")
    gt, out = tmp_path / "gt.json", tmp_path / "clip.jsonl"
    done = run("annotate", tmp_path / "A001C003.csv", "--lut", tmp_path / "lut.json", "--out", gt)
    assert done.exit_code == 0, done.output
    assert run("export", gt, "--to", "opentrackio", "--out", out).exit_code == 0
    sample = json.loads(out.read_text())
    assert sample["tracker"] == {"slate": "A001C003"}
    assert sample["static"]["lens"] == {"model": "canon17"}
    assert sample["static"]["camera"]["model"] == "arri-alexa-mini"


def test_opentrackio_as_lines_or_as_one_list(tmp_path: Path) -> None:
    write_clip(tmp_path / "gt.json", 3)
    texts = {}
    for name in ("clip.jsonl", "clip.json"):
        result = run(
            "export", tmp_path / "gt.json", "--to", "opentrackio", "--out", tmp_path / name
        )
        assert result.exit_code == 0, result.output
        texts[name] = (tmp_path / name).read_text()
    lines = [json.loads(line) for line in texts["clip.jsonl"].splitlines()]
    assert [line["timing"]["sequenceNumber"] for line in lines] == [0, 1, 2]
    assert json.loads(texts["clip.json"]) == lines


def test_what_people_take_for_a_clip(tmp_path: Path) -> None:
    clip = small_clip(tmp_path, filmed_with=RIG)
    entry = json.loads(clip.read_text())
    texts = {
        "videos.json": (json.dumps({"a": entry, "b": entry}), "this is the truth of 2 videos"),
        "pred.json": ('{"submission_metadata": {}}', "has predictions"),
        "result.json": ('{"format": "influx_wrap result"}', "by its format it is 'influx_wrap r"),
        "gt.csv": ("frame,lfl_mm\n", "annotate with --out NAME.json"),
    }
    for name, (text, words) in texts.items():
        (tmp_path / name).write_text(text)
        result = run("export", tmp_path / name, "--to", "colmap", "--out", tmp_path / "c.txt")
        assert_mistake(result, words)
    before = clip.read_text()
    assert_mistake(run("export", clip, "--to", "colmap", "--out", clip), "would replace")
    assert clip.read_text() == before
