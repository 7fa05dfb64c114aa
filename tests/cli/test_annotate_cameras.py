"""``annotate`` with metadata of many cameras: the right lens, lengths, delays, two records."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from influx_wrap.formats.lens_metadata import FORMATS
from influx_wrap.formats.lut import write_table
from influx_wrap.formats.video import write_video
from tests.cli.conftest import Invoke, assert_mistake
from tests.formats import camera_files as files
from tests.formats.test_exiftool import photo
from tests.formats.test_opentrackio_samples import STATIC, sample
from tests.lut.lenses import fitted_table

LENS, CAMERA, SIZE = "CN7x17 KAS S/P1", "ALEXA Mini", (3424, 2202)


@pytest.fixture(scope="module")
def lut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lut") / "lut.json"
    write_table(path, fitted_table("canon17"))
    return path


def kinds(lens: str, camera: str, size: tuple[int, int]) -> dict[str, dict[str, str]]:
    """Files of each kind by name, the first of which is given, that name lens, camera and size."""
    width, height = map(str, size)
    static = {
        "static": {
            "camera": {
                "activeSensorResolution": {"width": size[0], "height": size[1]},
                "model": camera,
            },
            "lens": {"model": lens},
        }
    }
    setting = {"pinholeFocalLength": 35.0, "focusDistance": 2.4}
    tags = {"FocalLength": "35 mm", "SubjectDistance": "2.4 m", "Model": camera, "LensModel": lens}
    return {
        "venice": {
            "A.csv": files.VENICE.replace("7050.0100", "7001").replace("MPC-3628", camera),
            "AM01.XML": files.VENICE_XML.replace("S7i-50                 ", lens)
            .replace("7050.0100", "7001")
            .replace('modelName="MPC-3628"', f'modelName="{camera}"')
            .replace('"4096"', f'"{width}"')
            .replace('"2160"', f'"{height}"'),
        },
        "red": {
            "B.frames.csv": files.RED,
            "B.static.csv": files.RED_STATIC.replace("35mm T1.5", lens)
            .replace("KOMODO-X 6K S35", camera)
            .replace("6144,3240", f"{width},{height}"),
        },
        "blackmagic": {
            "C.txt": files.BLACKMAGIC.replace("ACME Zoom 18-35mm", lens)
            .replace("Blackmagic Pocket Cinema Camera 6K Pro", camera)
            .replace("6144,3456", f"{width},{height}")
        },
        "opentrackio": {
            "D.jsonl": "\n".join(json.dumps(sample(k, setting, **static)) for k in range(3))
        },
        "exiftool": {
            "E.json": json.dumps(
                [{**photo("a.jpg", **tags), "ImageWidth": size[0], "ImageHeight": size[1]}]
            )
        },
        "table": {
            "F.csv": "Lens Model;Camera Model;Image Width;Image Height;LFL (mm);FD (ft)\n"
            f"{lens};{camera};{width};{height};35,5;7,9\n"
        },
    }


KINDS = list(kinds(LENS, CAMERA, SIZE))


def write(folder: Path, named: dict[str, str]) -> Path:
    for name, text in named.items():
        (folder / name).write_text(text)
    return folder / next(iter(named))


@pytest.mark.parametrize("kind", KINDS)
def test_the_right_lens_is_recognised(invoke: Invoke, tmp_path: Path, lut: Path, kind: str) -> None:
    clip = write(tmp_path, kinds("cn7x17 kas s/p1", "Alexa MINI", SIZE)[kind])
    result = invoke("annotate", clip, "--lut", lut, "--out", tmp_path / "gt.csv")
    assert result.exit_code == 0, result.output
    assert "name no lens" not in result.stderr
    with (tmp_path / "gt.csv").open(newline="") as file:
        assert float(next(csv.DictReader(file))["fx"]) > 1000


@pytest.mark.parametrize("wrong", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_another_lens_camera_or_size_is_refused(
    invoke: Invoke, tmp_path: Path, lut: Path, kind: str, wrong: int
) -> None:
    rig = (LENS, CAMERA, SIZE)
    others = ("ACME Zoom", "MPC-3628", (4096, 2160))
    named = kinds(*(others[k] if k == wrong else rig[k] for k in range(3)))[kind]  # type: ignore[arg-type]
    clip, out = write(tmp_path, named), tmp_path / "gt.json"
    said = ("ACME Zoom", "MPC-3628", "4096 x 2160")[wrong]
    assert_mistake(invoke("annotate", clip, "--lut", lut, "--out", out), said, "--any-lens")
    assert not out.exists()
    insisted = invoke("annotate", clip, "--lut", lut, "--out", out, "--any-lens")
    assert insisted.exit_code == 0, insisted.output
    assert said in insisted.stderr


def test_canon_is_refused_for_want_of_a_distance(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    clip = write(tmp_path, {"X_Frames.csv": files.CANON})
    result = invoke("annotate", clip, "--lut", lut, "--out", tmp_path / "gt.json")
    assert_mistake(result, "none has both LFL and FD", "not a distance", "frame,lfl_mm,fd_m")


def test_two_records_of_red(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    clip = write(tmp_path, kinds(LENS, CAMERA, SIZE)["red"])
    result = invoke("annotate", clip, "--lut", lut, "--out", tmp_path / "gt.json")
    assert (
        "note: FD is told twice: 'Focus Distance' is used, 'Cooke Metadata' is not. In 2 frames "
        "they differ by 0.011 m in the middle, and by 0.02 m (1.7 %) at most, in frame 0."
    ) in result.stderr
    assert "'Focal Length' is used, 'the static file' is not. They are the same" in result.stderr


def test_list_formats(invoke: Invoke) -> None:
    result = invoke("annotate", "--list-formats")
    assert result.exit_code == 0
    for kind in FORMATS:
        assert kind.file in result.stdout
    names = ("ARRI", "Sony", "RED", "Canon", "Blackmagic", "OpenTrackIO", "exiftool", "InFlux")
    assert all(name in result.stdout for name in names)


@pytest.mark.parametrize("delay", [2, -1, 1.5])
def test_delay(invoke: Invoke, tmp_path: Path, lut: Path, delay: float) -> None:
    """A clip whose metadata lag, mended, is the clip whose metadata do not."""
    frame = np.arange(12)
    lfl, fd = 30 + 0.5 * frame, 1 / (0.3 + 0.01 * frame)
    late, fds = 30 + 0.5 * (frame - delay), 1 / (0.3 + 0.01 * (frame - delay))
    found = {}
    for name, values in (("late", (late, fds)), ("right", (lfl, fd))):
        rows = "".join(f"{k},{a!r},{b!r}\n" for k, (a, b) in
                       enumerate(zip(*(v.tolist() for v in values), strict=True)))  # fmt: skip
        (tmp_path / f"{name}.csv").write_text(f"frame,lfl_mm,fd_m\n{rows}")
        options = ("--delay", delay) if name == "late" else ()
        out = tmp_path / f"{name}.json"
        result = invoke("annotate", tmp_path / f"{name}.csv", "--lut", lut, "--out", out, *options)
        assert result.exit_code == 0, result.output
        assert (f"metadata of frame k {delay:+g}" in result.stderr) == (name == "late")
        found[name] = json.loads(out.read_text())
    lost = [k for k in range(12) if not 0 <= k + delay <= 11]
    for k in range(12):
        one, other = (found[name][str(k)]["intrinsics_gt_extrapolated"] for name in found)
        if k in lost:
            assert one is None
        else:
            assert one == pytest.approx(other, rel=1e-7)


@pytest.mark.parametrize("delay", ["nan", "2000", "soon"])
def test_no_delays(invoke: Invoke, tmp_path: Path, lut: Path, delay: str) -> None:
    clip = write(tmp_path, {"c.csv": "frame,lfl_mm,fd_m\n0,35,2.4\n"})
    out = tmp_path / "gt.json"
    result = invoke("annotate", clip, "--lut", lut, "--out", out, "--delay", delay)
    assert result.exit_code == 2
    assert not out.exists()


def test_a_video_of_another_length_and_rate(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    video = tmp_path / "clip.mkv"
    write_video(video, [np.zeros((36, 56, 3), np.uint8)] * 6, 30, "ffv1")
    clip = write(tmp_path, kinds(LENS, CAMERA, SIZE)["venice"])
    arguments = (clip, "--lut", lut, "--out", tmp_path / "gt.json")
    result = invoke("annotate", *arguments, "--video", video)
    assert result.exit_code == 0, result.output
    assert "The clip has 6 frames, the metadata list them up to frame 3" in result.stderr
    assert "The clip has 30 frames a second, by the metadata 24" in result.stderr
    assert "a second" not in invoke("annotate", *arguments).stderr


def test_a_video_says_whether_lines_are_missing(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    """Timecodes jump by one: with 4 pictures a line is missing, with 3 the clip jumps as well."""
    lines = files.VENICE.splitlines()
    clip = write(tmp_path, {"c.csv": "\n".join([*lines[:3], *lines[4:]]).replace("Infinity", "9")})
    for n, frames in ((4, ["0", "1", "3"]), (3, ["0", "1", "2"])):
        video = tmp_path / f"{n}.mkv"
        write_video(video, [np.zeros((36, 56, 3), np.uint8)] * n, 24, "ffv1")
        out = tmp_path / f"{n}.json"
        result = invoke(
            "annotate", clip, "--lut", lut, "--out", out, "--video", video, "--any-lens"
        )
        assert result.exit_code == 0, result.output
        assert list(json.loads(out.read_text())) == frames
        assert "Timecodes jump ahead (10:00:00:23 to 10:00:01:01, 1 frame" in result.stderr


def test_a_folder_of_samples(invoke: Invoke, tmp_path: Path, lut: Path) -> None:
    folder = tmp_path / "take"
    folder.mkdir()
    for k in range(3):
        one = sample(k, {"pinholeFocalLength": 35.0 + k, "focusDistance": 2.4})
        (folder / f"{k}.json").write_text(json.dumps(one))
    result = invoke("annotate", folder, "--lut", lut, "--out", tmp_path / "gt.json")
    assert "3 frames: 3 interpolated" in result.stdout
    assert "name no lens" in result.stderr
    assert STATIC["static"]["lens"]["model"] not in result.stderr
